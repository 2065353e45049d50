/* SPDX-License-Identifier: Apache-2.0 */
/* The provider: opening, the table, and what all its files use. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/e2b/e2b_internal.h"
#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"

/* What a header may have, and nothing that would end it. */
static bool is_printable(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (s[i] <= ' ' || s[i] >= 0x7f)
			return false;
	}
	return len > 0;
}

static int read_key(const struct cm_strv *env, char **ret, struct cm_error *err)
{
	size_t len = 0;
	const char *key = cm_text_trimmed(cm_strv_env_get(env, "E2B_API_KEY"), &len);

	if (!key) {
		(void)cm_error_set(err, CM_E_INVALID, 0,
				   "no key for E2B: 'E2B_API_KEY' is not set");
		cm_error_hint(err,
			      "set E2B_API_KEY to a key of your team's (e2b.dev/dashboard), or "
			      "--provider local");
		return CM_E_INVALID;
	}
	if (!is_printable(key, len)) {
		(void)cm_error_set(err, CM_E_INVALID, 0,
				   "'E2B_API_KEY' has characters that no key has");
		cm_error_hint(err, "set E2B_API_KEY to the key alone, on one line");
		return CM_E_INVALID;
	}
	*ret = cm_asprintf("X-API-Key: %.*s", (int)len, key);
	return *ret ? CM_OK : cm_e2b_no_memory(err);
}

int cm_e2b_open(const struct cm_provider_config *config, struct cm_provider **ret,
		struct cm_error *err)
{
	const struct cm_strv *env = &config->config->env;
	struct cm_e2b *e = cm_calloc(1, sizeof(*e));
	struct cm_http_options options = { .env = env,
					   .trace = config->trace,
					   .data = config->data };
	int r;

	if (!e)
		return cm_e2b_no_memory(err);
	e->base = (struct cm_provider){ .ops = &cm_e2b_ops,
					.config = *config,
					.caps = cm_e2b_ops.caps };
	r = cm_e2b_places_read(env, &e->places, err);
	if (r == CM_OK)
		r = read_key(env, &e->key_header, err);
	if (r == CM_OK)
		r = cm_http_open(&options, &e->http, err);
	if (r < 0) {
		cm_e2b_close(&e->base);
		return r;
	}
	*ret = &e->base;
	return CM_OK;
}

void cm_e2b_close(struct cm_provider *p)
{
	struct cm_e2b *e = (struct cm_e2b *)(void *)p;

	if (!e)
		return;
	cm_http_close(e->http);
	cm_e2b_places_clear(&e->places);
	cm_free_secret(&e->key_header);
	free(e);
}

static int ignore(void *data, const struct cm_json *sandbox)
{
	(void)data;
	(void)sandbox;
	/* one page is enough */
	return 1;
}

int cm_e2b_probe(struct cm_provider *p, const struct cm_call *call, uint32_t *ret_caps,
		 struct cm_error *err)
{
	struct cm_e2b *e = (struct cm_e2b *)(void *)p;
	int r = cm_e2b_each_sandbox(e, CM_E2B_KEY_ID, "probe", call, ignore, NULL, err);

	if (r < 0)
		return r;
	*ret_caps = p->ops->caps;
	return CM_OK;
}

struct cm_call cm_e2b_cleanup_call(void)
{
	return (struct cm_call){ .deadline_ms = cm_clock_mono_ms() + CM_E2B_CLEANUP_MS,
				 .cancel_fd = -1 };
}

uint64_t cm_e2b_seconds(uint64_t ms)
{
	return ms <= 1000 ? 1 : ms / 1000 + (ms % 1000 != 0);
}

const struct cm_provider_ops cm_e2b_ops = {
	.abi = CM_PROVIDER_ABI,
	.name = "e2b",
	.caps = CM_CAP_NETWORK_NONE | CM_CAP_NETWORK_INTERNET | CM_CAP_LIMIT_TIME |
		CM_CAP_EXEC_TIMEOUT | CM_CAP_ROOT_USER | CM_CAP_STDIN | CM_CAP_TTY | CM_CAP_SIGNAL |
		CM_CAP_DETACH | CM_CAP_FILES | CM_CAP_WATCH | CM_CAP_FILE_URL | CM_CAP_LABELS |
		CM_CAP_CHECKOUT | CM_CAP_TEARDOWN | CM_CAP_SNAPSHOT | CM_CAP_CLONE |
		CM_CAP_TEMPLATE | CM_CAP_PUBLISH,
	.open = cm_e2b_open,
	.close = cm_e2b_close,
	.probe = cm_e2b_probe,
	.session_create = cm_e2b_session_create,
	.session_attach = cm_e2b_session_attach,
	.session_start = cm_e2b_session_start,
	.session_stop = cm_e2b_session_stop,
	.session_destroy = cm_e2b_session_destroy,
	.session_release = cm_e2b_session_release,
	.session_info = cm_e2b_session_info,
	.session_list = cm_e2b_session_list,
	.session_network = cm_e2b_session_network,
	.exec_start = cm_e2b_exec_start,
	.exec_attach = cm_e2b_exec_attach,
	.exec_list = cm_e2b_exec_list,
	.file_read = cm_e2b_file_read,
	.file_write = cm_e2b_file_write,
	.file_list = cm_e2b_file_list,
	.file_stat = cm_e2b_file_stat,
	.file_mkdir = cm_e2b_file_mkdir,
	.file_move = cm_e2b_file_move,
	.file_remove = cm_e2b_file_remove,
	.file_watch = cm_e2b_file_watch,
	.file_url = cm_e2b_file_url,
	.snapshot = cm_e2b_snapshot,
	.clone = cm_e2b_clone,
	.template_build = cm_e2b_template_build,
	.template_list = cm_e2b_template_list,
	.template_remove = cm_e2b_template_remove,
	.publish = cm_e2b_publish,
};
