/* SPDX-License-Identifier: Apache-2.0 */
/* Capabilities: what a spec needs, and what is missing. */
#include <stdio.h>

#include "providers/provider.h"
#include "runtime/base/fd.h"
#include "runtime/spec/keys.h"

static const struct {
	const char *name;
	const char *text;
} all[] = {
#define X(id, text_) { #id, text_ },
	CM_CAPS(X)
#undef X
};
_Static_assert(CM_CAP_BIT_COUNT_ <= 31, "a bit each, of an int");

const char *cm_cap_text(uint32_t caps)
{
	for (size_t i = 0; i < CM_ARRAY_SIZE(all); i++) {
		if ((caps & 1U << i) != 0)
			return all[i].text;
	}
	return "do nothing";
}

const char *cm_cap_name(uint32_t cap, char buf[CM_CAP_NAME_SIZE])
{
	size_t at = 0;
	size_t n = 0;

	while (at < CM_ARRAY_SIZE(all) && cap != 1U << at)
		at++;
	if (at == CM_ARRAY_SIZE(all))
		return "";
	for (const char *p = all[at].name; *p != '\0' && n + 1 < CM_CAP_NAME_SIZE; p++)
		buf[n++] = (char)(*p == '_' ? '-' : *p - 'A' + 'a');
	buf[n] = '\0';
	return buf;
}

static bool is_asked(const struct cm_spec *spec, enum cm_key key)
{
	return (spec->asked & UINT64_C(1) << key) != 0;
}

/* By somebody, for certain, and not "unlimited". */
static uint32_t limit(const struct cm_limit *limit, uint32_t cap)
{
	return limit->is_set && !limit->is_optional && limit->value != CM_UNLIMITED ? cap : 0;
}

static uint32_t needs_of_limits(const struct cm_limits *l)
{
	return limit(&l->memory, CM_CAP_LIMIT_MEMORY) | limit(&l->swap, CM_CAP_LIMIT_MEMORY) |
	       limit(&l->cpus, CM_CAP_LIMIT_CPU) | limit(&l->pids, CM_CAP_LIMIT_PIDS) |
	       limit(&l->open_files, CM_CAP_LIMIT_FILES) | limit(&l->idle, CM_CAP_LIMIT_TIME) |
	       limit(&l->lifetime, CM_CAP_LIMIT_TIME) | limit(&l->sessions, CM_CAP_LIMIT_SESSIONS) |
	       limit(&l->timeout, CM_CAP_EXEC_TIMEOUT) |
	       (l->cpuset && !l->is_cpuset_optional ? CM_CAP_LIMIT_CPU : 0U);
}

static uint32_t network(enum cm_network network)
{
	switch (network) {
	case CM_NETWORK_NONE:
		return CM_CAP_NETWORK_NONE;
	case CM_NETWORK_HOST:
		return CM_CAP_NETWORK_HOST;
	case CM_NETWORK_INTERNET:
		return CM_CAP_NETWORK_INTERNET;
	}
	/* setup_network: the session's */
	return 0;
}

/* A tree of this host: one that is named, or the one around the current directory. */
static bool wants_host_files(const struct cm_spec *spec)
{
	return spec->workspace_kind == CM_WORKSPACE_DIR || spec->n_volumes > 0 ||
	       spec->is_read_only ||
	       (spec->workspace_kind == CM_WORKSPACE_DEFAULT && !spec->session_id);
}

/* What a configuration says of keeping and counting sessions is about those of this host. */
uint32_t cm_provider_needs(const struct cm_spec *spec)
{
	return needs_of_limits(&spec->limits) | network(spec->network) |
	       network(spec->setup_network) | (wants_host_files(spec) ? CM_CAP_HOST_FILES : 0U) |
	       (spec->rootfs ? CM_CAP_ROOTFS : 0U) |
	       (spec->git == CM_GIT_PINNED && is_asked(spec, CM_KEY_GIT) ? CM_CAP_GIT_PINNED : 0U) |
	       (spec->min_level == CM_LEVEL_FULL || is_asked(spec, CM_KEY_MIN_LEVEL) ? CM_CAP_LEVEL
										     : 0U) |
	       (is_asked(spec, CM_KEY_RETENTION) ? CM_CAP_RETENTION : 0U) |
	       (is_asked(spec, CM_KEY_MAX_SESSIONS) ? CM_CAP_LIMIT_SESSIONS : 0U) |
	       (spec->user == CM_USER_ROOT ? CM_CAP_ROOT_USER : 0U) |
	       (spec->tty == CM_YES ? CM_CAP_TTY : 0U) | (spec->is_detached ? CM_CAP_DETACH : 0U) |
	       (spec->labels.n > 0 ? CM_CAP_LABELS : 0U) |
	       (spec->workspace_kind == CM_WORKSPACE_REPO ? CM_CAP_CHECKOUT : 0U) |
	       (spec->teardown.n > 0 ? CM_CAP_TEARDOWN : 0U) |
	       (spec->template_name ? CM_CAP_TEMPLATE : 0U);
}

/* What to write in place of what is missing. */
static void hint(uint32_t missing, struct cm_error *err)
{
	if ((missing & CM_CAP_NETWORK_NONE) != 0)
		cm_error_hint(err, "--network internet, or --provider local");
	else if ((missing & CM_CAP_HOST_FILES) != 0)
		cm_error_hint(err,
			      "the current directory would be the workspace: name another one with "
			      "--repo URL or --no-workspace, or --provider local");
	else
		cm_error_hint(err, "leave it out, or --provider local");
}

int cm_provider_check(const struct cm_provider *p, const struct cm_spec *spec, struct cm_error *err)
{
	uint32_t missing = cm_provider_needs(spec) & ~p->caps;
	char text[CM_ERROR_MSG_SIZE] = "";
	size_t len = 0;

	if (missing == 0)
		return CM_OK;
	for (size_t i = 0; i < CM_ARRAY_SIZE(all) && len < sizeof(text); i++) {
		if ((missing & 1U << i) != 0)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s",
						len > 0 ? "; " : "", all[i].text);
	}
	(void)cm_error_set(err, CM_E_UNSUPPORTED, 0, "provider '%s' does not have: %s",
			   p->ops->name, text);
	hint(missing, err);
	return CM_E_UNSUPPORTED;
}
