/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment of a command: a list of what passes, so that a secret in the caller's
 * environment is not in the jail's unless somebody named it.
 */
#include <stdio.h>
#include <string.h>

#include "isolation/plan/build_internal.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"
#include "runtime/base/text.h"

#define FALLBACK_PATH "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
#define MAX_PATH_BYTES (64UL * 1024)

static const char *const passed[] = {
	"LANG",	    "LANGUAGE",	   "TERM", "COLORTERM", "TZ",
	"NO_COLOR", "FORCE_COLOR", "CI",   "EDITOR",	"PAGER",
};

/* Name a file: they pass when it is inside. */
static const char *const certificates[] = {
	"SSL_CERT_FILE", "SSL_CERT_DIR",   "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE",
	"PIP_CERT",	 "CURL_CA_BUNDLE", "GIT_SSL_CAINFO",	  "AWS_CA_BUNDLE",
};

/* Where a tool's root is, when the user moved it: the home's own is found without. */
static const char *const tool_roots[] = {
#define CM_TOOL(tool, variable, base, entry) variable,
#include "isolation/plan/tools.def"
#undef CM_TOOL
};

/* Go has no file of settings that others know: these are the user's way to say them. */
static const char *const go_settings[] = { "GOPRIVATE", "GONOSUMDB", "GOFLAGS", "GOPROXY" };

/*
 * So that what a tool would fetch is missing after a second and not after a minute. npm and pip
 * ask once, unlike with their offline switches: their own text then says that a name was not found,
 * the attempt is counted, and the run ends with a note that the session has no network. An audit
 * that asked nobody would report that nothing is wrong.
 */
static const struct {
	const char *name;
	const char *value;
} offline[] = {
	{ "npm_config_prefer_offline", "true" }, { "npm_config_fetch_retries", "0" },
	{ "npm_config_audit", "false" },	 { "PIP_RETRIES", "0" },
	{ "CARGO_NET_OFFLINE", "true" },	 { "GOPROXY", "off" },
	{ "YARN_ENABLE_NETWORK", "0" },
};

struct env {
	const struct cm_plan_request *req;
	const struct cm_strv *caller;
	struct cm_strv *to;
};

static int set(struct env *env, const char *name, const char *value)
{
	return cm_strv_env_set(env->to, name, value);
}

static int set_default(struct env *env, const char *name, const char *value)
{
	const char *own = cm_strv_env_get(env->caller, name);

	return set(env, name, own ? own : value);
}

static bool is_below_certificate(const struct env *env, const char *path)
{
	const struct cm_nodes *nodes = &env->req->tree->certificates;

	for (size_t i = 0; i < nodes->n; i++) {
		if (cm_path_is_below(path, nodes->v[i].path))
			return true;
	}
	return cm_build_shows(env->req, path);
}

/* item: "NAME=value"; the name has len bytes, however many. */
static int set_item(struct env *env, const char *item, size_t len)
{
	CM_AUTO_FREE char *name = cm_asprintf("%.*s", (int)len, item);

	return name ? set(env, name, item + len + 1) : CM_E_NOMEM;
}

static int pass_matching(struct env *env, const char *pattern)
{
	for (size_t i = 0; i < env->caller->n; i++) {
		const char *item = env->caller->v[i];
		size_t len = strcspn(item, "=");

		if (len > 0 && item[len] == '=' && cm_text_matches_len(pattern, item, len) &&
		    set_item(env, item, len) < 0)
			return CM_E_NOMEM;
	}
	return CM_OK;
}

static int pass_list(struct env *env)
{
	for (size_t i = 0; i < CM_ARRAY_SIZE(passed); i++) {
		const char *value = cm_strv_env_get(env->caller, passed[i]);

		if (value && set(env, passed[i], value) < 0)
			return CM_E_NOMEM;
	}
	if (pass_matching(env, "LC_*") < 0)
		return CM_E_NOMEM;
	for (size_t i = 0; i < CM_ARRAY_SIZE(certificates); i++) {
		const char *value = cm_strv_env_get(env->caller, certificates[i]);

		if (value && value[0] == '/' && is_below_certificate(env, value) &&
		    set(env, certificates[i], value) < 0)
			return CM_E_NOMEM;
	}
	for (size_t i = 0; i < CM_ARRAY_SIZE(go_settings); i++) {
		const char *value = cm_strv_env_get(env->caller, go_settings[i]);

		/* a user in a URL comes with a password */
		if (value && !strchr(value, '@') && set(env, go_settings[i], value) < 0)
			return CM_E_NOMEM;
	}
	return CM_OK;
}

/* Below /usr, or with a tool of ours in it. */
static bool is_shown_root(const struct env *env, const char *path)
{
	const struct cm_nodes *tools = &env->req->tree->tools;
	const char *why;

	if (cm_build_shows(env->req, path))
		return true;
	for (size_t i = 0; i < tools->n; i++) {
		if (cm_path_is_below(tools->v[i].path, path) &&
		    cm_build_shows_tool(env->req, &tools->v[i], &why))
			return true;
	}
	return false;
}

static int pass_tool_roots(struct env *env)
{
	for (size_t i = 0; i < CM_ARRAY_SIZE(tool_roots); i++) {
		const char *name = tool_roots[i];
		const char *value = NULL;

		/* rows of one tool stand together */
		if (*name && (i == 0 || strcmp(name, tool_roots[i - 1]) != 0))
			value = cm_strv_env_get(env->caller, name);

		if (value && value[0] == '/' && is_shown_root(env, value) &&
		    set(env, name, value) < 0)
			return CM_E_NOMEM;
	}
	return CM_OK;
}

static void put_path(struct cm_buf *path, const char *dir)
{
	if (path->len > 0)
		cm_buf_putc(path, ':');
	cm_buf_puts(path, dir);
}

static bool has_entry(const struct cm_nodes *nodes, const char *path)
{
	for (size_t i = 0; i < nodes->n; i++) {
		if (strcmp(nodes->v[i].path, path) == 0)
			return true;
	}
	return false;
}

/* What the command itself may install comes first; then the caller's order, without what is not
 * there. A link out of sight (fnm's into /run) is replaced by where it leads. */
static int set_path(struct env *env)
{
	const struct cm_nodes *entries = &env->req->tree->path;
	const char *home = cm_plan_home(env->req);
	CM_AUTO_FREE char *cargo = cm_path_join(home, ".cargo/bin");
	CM_AUTO_BUF struct cm_buf path;
	size_t n_kept = 0;

	cm_buf_init(&path, MAX_PATH_BYTES);
	if (!cargo)
		return CM_E_NOMEM;
	cm_buf_printf(&path, "%s/.local/bin:%s/.npm-global/bin", home, home);
	if (!has_entry(entries, cargo))
		put_path(&path, cargo);
	for (size_t i = 0; i < entries->n; i++) {
		const struct cm_node *entry = &entries->v[i];

		if (cm_build_shows(env->req, entry->path))
			put_path(&path, entry->path);
		else if (entry->link && cm_build_shows(env->req, entry->link))
			put_path(&path, entry->link);
		else
			continue;
		n_kept++;
	}
	if (n_kept == 0)
		put_path(&path, FALLBACK_PATH);
	if (cm_buf_status(&path) != CM_OK)
		return CM_E_NOMEM;
	return set(env, "PATH", path.data);
}

static bool has_tool(const struct env *env, const char *below_home)
{
	CM_AUTO_FREE char *path = cm_path_join(cm_plan_home(env->req), below_home);
	const struct cm_nodes *tools = &env->req->tree->tools;

	for (size_t i = 0; path && i < tools->n; i++) {
		if (cm_path_is_below(tools->v[i].path, path))
			return true;
	}
	return false;
}

/* The tools' own directories are read-only, so what is installed goes to the private home. */
static int set_install_roots(struct env *env)
{
	const char *home = cm_plan_home(env->req);
	CM_AUTO_FREE char *npm = cm_path_join(home, ".npm-global");
	CM_AUTO_FREE char *cargo = cm_path_join(home, ".local");
	int r = CM_OK;

	if (!npm || !cargo)
		return CM_E_NOMEM;
	/* nvm refuses to work beside a prefix */
	if (!has_tool(env, ".nvm"))
		r = set_default(env, "npm_config_prefix", npm);
	if (r == CM_OK && has_tool(env, ".cargo/bin"))
		r = set_default(env, "CARGO_INSTALL_ROOT", cargo);
	/* npm looks for the file beside itself */
	if (r == CM_OK && env->req->tree->npm.n > 0)
		r = set_default(env, "npm_config_globalconfig", "/etc/npmrc");
	return r;
}

static int set_own(struct env *env)
{
	const struct cm_plan_request *req = env->req;
	char user[CM_USER_NAME_SIZE];
	const struct {
		const char *name;
		const char *value;
	} own[] = {
		{ "HOME", cm_plan_home(req) },
		{ "USER", user },
		{ "LOGNAME", user },
		{ "SHELL", cm_build_shell(req) },
		{ "TMPDIR", "/tmp" },
		{ "XDG_RUNTIME_DIR", "/run/user/1000" },
		{ "CASEMATE", "1" },
		{ "CASEMATE_SESSION", req->session_id },
		{ "PWD", req->workspace && req->workspace->cwd ? req->workspace->cwd : NULL },
	};

	cm_build_user_name(req, user);
	for (size_t i = 0; i < CM_ARRAY_SIZE(own); i++) {
		if (own[i].value && set(env, own[i].name, own[i].value) < 0)
			return CM_E_NOMEM;
	}
	return CM_OK;
}

static int set_offline(struct env *env)
{
	if (env->req->spec->network != CM_NETWORK_NONE)
		return CM_OK;
	for (size_t i = 0; i < CM_ARRAY_SIZE(offline); i++) {
		if (set_default(env, offline[i].name, offline[i].value) < 0)
			return CM_E_NOMEM;
	}
	return CM_OK;
}

/* Named by the caller: over everything, HOME and PATH included. */
static int set_named(struct env *env, const struct cm_spec *spec)
{
	for (size_t i = 0; i < spec->pass_env.n; i++) {
		if (pass_matching(env, spec->pass_env.v[i]) < 0)
			return CM_E_NOMEM;
	}
	for (size_t i = 0; i < spec->env.n; i++) {
		const char *item = spec->env.v[i];
		size_t len = strcspn(item, "=");

		if (len > 0 && item[len] == '=' && set_item(env, item, len) < 0)
			return CM_E_NOMEM;
	}
	return CM_OK;
}

int cm_env_add_named(const struct cm_spec *spec, const struct cm_strv *caller_env,
		     struct cm_strv *to, struct cm_error *err)
{
	struct env env = { .caller = caller_env, .to = to };

	return set_named(&env, spec) < 0
		       ? cm_error_set(err, CM_E_NOMEM, 0, "no memory for the environment")
		       : CM_OK;
}

int cm_env_build(const struct cm_plan_request *req, const struct cm_strv *caller_env,
		 struct cm_strv *ret, struct cm_error *err)
{
	static int (*const parts[])(struct env * env) = {
		pass_list, pass_tool_roots, set_path, set_install_roots, set_offline, set_own,
	};
	struct cm_strv to = { 0 };
	struct env env = { .req = req, .caller = caller_env, .to = &to };

	for (size_t i = 0; i < CM_ARRAY_SIZE(parts); i++) {
		if (parts[i](&env) < 0) {
			cm_strv_clear(&to);
			return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the environment");
		}
	}
	if (set_named(&env, req->spec) < 0) {
		cm_strv_clear(&to);
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the environment");
	}
	*ret = to;
	return CM_OK;
}
