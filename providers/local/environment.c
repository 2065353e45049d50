/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment of a session and of its commands.
 *
 * A session keeps what `start` named (-e, --pass-env) in its record; each start builds the whole of
 * it from that, from the host and from its caller, and leaves it in a file, for commands that look at
 * nothing but that. What a single command names comes over it, and is kept nowhere.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "providers/local/local_internal.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/hash.h"
#include "runtime/base/json.h"
#include "runtime/base/json_write.h"
#include "runtime/base/num.h"

#define ENV_MAX (4UL * 1024 * 1024)
/* sixteen hex digits and a NUL */
#define SUM_SIZE 17U

static int no_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the environment");
}

/* --- in the record ------------------------------------------------------------------------- */

int cm_local_env_record(const struct cm_local *l, struct cm_session_record *record,
			struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf out = { 0 };
	struct cm_json_writer w;

	if (l->session_env.env.n == 0 && l->session_env.pass.n == 0)
		return CM_OK;
	cm_buf_init(&out, CM_JSON_MAX_BYTES);
	cm_jw_init(&w, &out, false);
	cm_jw_object(&w);
	cm_jw_kstrings(&w, "env", &l->session_env.env);
	cm_jw_kstrings(&w, "pass", &l->session_env.pass);
	cm_jw_end_object(&w);
	free(record->env_json);
	record->env_json = cm_buf_take(&out);
	return record->env_json ? CM_OK : no_memory(err);
}

static int read_record(struct cm_local *l, struct cm_error *err)
{
	const char *text = l->session.record.env_json;
	struct cm_json_doc *doc = NULL;
	int r;

	if (!text)
		return CM_OK;
	r = cm_json_parse(text, strlen(text), "env", 0, &doc, err);
	if (r < 0)
		return r;
	r = cm_json_strings(cm_json_get(cm_json_root(doc), "env"), &l->session_env.env);
	if (r == CM_OK)
		r = cm_json_strings(cm_json_get(cm_json_root(doc), "pass"), &l->session_env.pass);
	cm_json_free(doc);
	return r < 0 ? no_memory(err) : CM_OK;
}

/* "NAME=value" over what has that name. */
static int set_item(struct cm_strv *env, const char *item)
{
	size_t len = strcspn(item, "=");
	CM_AUTO_FREE char *name = cm_asprintf("%.*s", (int)len, item);

	if (!name || item[len] != '=')
		return CM_E_NOMEM;
	return cm_strv_env_set(env, name, item + len + 1);
}

/* What the command line names is the session's from now on. */
static int add_named(struct cm_local *l, struct cm_error *err)
{
	int r = CM_OK;

	for (size_t i = 0; i < l->spec.env.n && r == CM_OK; i++)
		r = set_item(&l->session_env.env, l->spec.env.v[i]);
	for (size_t i = 0; i < l->spec.pass_env.n && r == CM_OK; i++)
		if (!cm_strv_has(&l->session_env.pass, l->spec.pass_env.v[i]))
			r = cm_strv_add(&l->session_env.pass, l->spec.pass_env.v[i]);
	cm_strv_clear(&l->spec.env);
	cm_strv_clear(&l->spec.pass_env);
	return r < 0 ? no_memory(err) : CM_OK;
}

int cm_local_env_begin(struct cm_local *l, struct cm_error *err)
{
	return l->keeps_env ? add_named(l, err) : CM_OK;
}

int cm_local_env_adopt(struct cm_local *l, struct cm_error *err)
{
	struct cm_session_env asked = l->session_env;
	int r;

	memset(&l->session_env, 0, sizeof(l->session_env));
	if (l->is_running && (asked.env.n > 0 || asked.pass.n > 0)) {
		(void)cm_error_set(err, CM_E_BUSY, 0,
				   "session '%s' runs with the environment that it has",
				   l->session.record.id);
		cm_error_hint(err, "casemate exec -e NAME=VALUE for a command; 'casemate restart' "
				   "takes -e for all");
		r = CM_E_BUSY;
	} else {
		r = read_record(l, err);
	}
	if (!l->keeps_env)
		return r;
	/* what was asked for, over what it has */
	l->spec.env = asked.env;
	l->spec.pass_env = asked.pass;
	if (r == CM_OK)
		r = add_named(l, err);
	return r < 0 ? r : cm_local_env_record(l, &l->session.record, err);
}

/* --- of a start ---------------------------------------------------------------------------- */

int cm_local_env_make(struct cm_local *l, const struct cm_plan_request *req, struct cm_error *err)
{
	struct cm_plan_request of_session = *req;
	struct cm_spec spec = *req->spec;
	int r;

	/* borrowed by a spec of which nothing is freed */
	spec.env = l->session_env.env;
	spec.pass_env = l->session_env.pass;
	of_session.spec = &spec;
	cm_strv_clear(&l->env);
	r = cm_env_build(&of_session, &l->config->env, &l->env, err);
	if (r == CM_OK && cm_strv_copy(&l->start_env, &l->env) < 0)
		r = no_memory(err);
	return r < 0 ? r : cm_env_add_named(req->spec, &l->config->env, &l->env, err);
}

/*
 * CM_STORE_ENV: the start's generation, the workspace's path inside (empty: there is none), then the
 * session's environment and a checksum of all that, each ended by a NUL.
 */
static void put_sum(struct cm_buf *out)
{
	uint64_t sum = cm_hash(CM_HASH_START, out->data, out->len);

	cm_buf_printf(out, "%016llx", (unsigned long long)sum);
	cm_buf_putc(out, '\0');
}

/* Where the checksum begins; NULL: something is missing, or was changed. */
static const char *check_sum(const char *text, size_t len)
{
	char want[SUM_SIZE];
	const char *sum;

	if (len < SUM_SIZE)
		return NULL;
	sum = text + len - SUM_SIZE;
	(void)snprintf(want, sizeof(want), "%016llx",
		       (unsigned long long)cm_hash(CM_HASH_START, text, len - SUM_SIZE));
	return memcmp(sum, want, SUM_SIZE) == 0 ? sum : NULL;
}

int cm_local_env_write(const struct cm_local *l, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf out = { 0 };
	const char *workspace = l->workspace.path ? l->workspace.path : "";
	int r;

	cm_buf_init(&out, ENV_MAX);
	cm_buf_printf(&out, "%llu", (unsigned long long)l->session.record.generation);
	cm_buf_putc(&out, '\0');
	cm_buf_append(&out, workspace, strlen(workspace) + 1);
	for (size_t i = 0; i < l->start_env.n; i++)
		cm_buf_append(&out, l->start_env.v[i], strlen(l->start_env.v[i]) + 1);
	if (cm_buf_status(&out) == CM_OK)
		put_sum(&out);
	if (cm_buf_status(&out) < 0)
		return cm_error_set(err, CM_E_LIMIT, 0,
				    "the environment of the session is too large");
	r = cm_replace_file_at(l->session.dir_fd, CM_STORE_ENV, out.data, out.len, 0600, false);
	return r < 0 ? cm_local_write_failed(l, -r, err) : CM_OK;
}

/* Into l->workspace.path and l->env. 0: it is not of the start that runs. */
static int take(struct cm_local *l, const char *p, const char *end)
{
	uint64_t generation = 0;

	if (p == end || end[-1] != '\0' ||
	    cm_parse_u64(p, "generation", 0, UINT64_MAX, &generation, NULL) < 0 ||
	    generation != l->session.record.generation)
		return 0;
	p += strlen(p) + 1;
	if (p == end)
		return 0;
	if (*p != '\0') {
		l->workspace.path = cm_strdup(p);
		if (!l->workspace.path)
			return CM_E_NOMEM;
	}
	for (p += strlen(p) + 1; p < end; p += strlen(p) + 1) {
		if (cm_strv_add(&l->env, p) < 0)
			return CM_E_NOMEM;
	}
	return 1;
}

int cm_local_env_read(struct cm_local *l, struct cm_error *err)
{
	CM_AUTO_FD int fd =
		openat(l->session.dir_fd, CM_STORE_ENV, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	/* of most; what is larger is allocated */
	char usual[8192];
	CM_AUTO_FREE char *own = NULL;
	char *text = usual;
	struct stat st;
	const char *end = NULL;
	ssize_t n;
	int r = 0;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size <= 0 || st.st_size > (off_t)ENV_MAX)
		return 0;
	if (st.st_size > (off_t)sizeof(usual)) {
		own = cm_malloc((size_t)st.st_size);
		text = own;
	}
	if (!text)
		return no_memory(err);
	n = cm_read_all(fd, text, (size_t)st.st_size);
	if (n > 0)
		end = check_sum(text, (size_t)n);
	if (end)
		r = take(l, text, end);
	if (r == 1)
		r = cm_env_add_named(&l->spec, &l->config->env, &l->env, err) < 0 ? CM_E_NOMEM : 1;
	return r < 0 ? no_memory(err) : r;
}
