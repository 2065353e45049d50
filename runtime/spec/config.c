/* SPDX-License-Identifier: Apache-2.0 */
/* The environment, which nothing else reads, and what the configuration files make of a spec. */
#include "runtime/spec/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"
#include "runtime/base/text.h"
#include "runtime/spec/config_internal.h"

static int no_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

/* Of the copied environment, as secure_getenv has it, which looks through all of it at each name. */
static const char *variable(const struct cm_config *config, const char *name)
{
	return getauxval(AT_SECURE) != 0 ? NULL : cm_strv_env_get(&config->env, name);
}

/* A copy of the value without blanks around it; NULL when it is NULL or blank. */
static int copy_trimmed(const char *value, char **ret, struct cm_error *err)
{
	size_t len;

	value = cm_text_trimmed(value, &len);
	if (!value)
		return CM_OK;
	*ret = cm_asprintf("%.*s", (int)len, value);
	return *ret ? CM_OK : no_memory(err);
}

/* Overwritten, too: /proc/PID/environ shows the memory that a process was started with. */
static void erase_variable(const char *name)
{
	char *value = secure_getenv(name);

	if (value)
		explicit_bzero(value, strlen(value));
	(void)unsetenv(name);
}

int cm_config_take_variable(struct cm_config *config, const char *name, char **ret,
			    struct cm_error *err)
{
	struct cm_strv *env = &config->env;
	size_t len = strlen(name);
	size_t kept = 0;

	*ret = cm_strdup(cm_strv_env_get(env, name));
	if (!*ret && cm_strv_env_get(env, name))
		return no_memory(err);
	for (size_t i = 0; i < env->n; i++) {
		if (strncmp(env->v[i], name, len) == 0 && env->v[i][len] == '=')
			cm_free_secret(&env->v[i]);
		else
			env->v[kept++] = env->v[i];
	}
	if (env->v)
		env->v[kept] = NULL;
	env->n = kept;
	erase_variable(name);
	return CM_OK;
}

/* First: no pattern can pass it into a jail then, and no program of ours inherits it. */
static int take_git_token(char **ret, struct cm_error *err)
{
	int r = copy_trimmed(secure_getenv("CASEMATE_GIT_TOKEN"), ret, err);

	erase_variable("CASEMATE_GIT_TOKEN");
	return r;
}

static int copy_environment(struct cm_strv *env, struct cm_error *err)
{
	for (char **entry = environ; entry && *entry; entry++) {
		if (!strchr(*entry, '='))
			continue;
		if (cm_strv_add(env, *entry) != CM_OK)
			return no_memory(err);
	}
	return CM_OK;
}

static int read_home(struct cm_config *config, struct cm_error *err)
{
	const char *home = variable(config, "HOME");

	if (!home || home[0] != '/')
		return CM_OK;
	config->home = cm_path_clean(home);
	return config->home || errno != ENOMEM ? CM_OK : no_memory(err);
}

static int find_user_file(struct cm_config *config, struct cm_error *err)
{
	const char *xdg = variable(config, "XDG_CONFIG_HOME");
	int r = copy_trimmed(variable(config, "CASEMATE_CONFIG"), &config->user_file, err);

	if (r != CM_OK)
		return r;
	config->is_user_file_named = config->user_file != NULL;
	if (config->is_user_file_named)
		return CM_OK;
	/* a relative one is to be ignored, by the XDG specification */
	if (xdg && xdg[0] == '/')
		config->user_file = cm_asprintf("%s/casemate/config.json", xdg);
	else if (config->home)
		config->user_file = cm_asprintf("%s/.config/casemate/config.json", config->home);
	else
		return CM_OK;
	return config->user_file ? CM_OK : no_memory(err);
}

/* The first of the two that is set is the root; files are below it, flags above. */
static int read_root(struct cm_config *config, struct cm_error *err)
{
	static const char *const names[] = { "CASEMATE_ROOT", "MASTRACODE_LOCAL_SANDBOX_ROOT" };

	for (size_t i = 0; i < CM_ARRAY_SIZE(names); i++) {
		CM_AUTO_FREE char *root = NULL;
		int r = copy_trimmed(variable(config, names[i]), &root, err);

		if (r != CM_OK)
			return r;
		if (root)
			return cm_layer_add(&config->environment, CM_KEY_ROOT, root, names[i], NULL,
					    err);
	}
	return CM_OK;
}

int cm_config_init(struct cm_config *ret, struct cm_error *err)
{
	struct cm_config config = { .system_file = CM_CONFIG_SYSTEM_FILE };
	const char *no_colour;
	int r = take_git_token(&config.git_token, err);

	if (r == CM_OK)
		r = copy_environment(&config.env, err);
	if (r == CM_OK)
		r = cm_config_take_variable(&config, "CASEMATE_SSH_PASSPHRASE",
					    &config.ssh_passphrase, err);
	no_colour = variable(&config, "NO_COLOR");
	config.has_no_colour = no_colour && no_colour[0] != '\0';
	/* whoever needs it says so; `version` does not */
	config.cwd = getcwd(NULL, 0);
	if (r == CM_OK)
		r = read_home(&config, err);
	if (r == CM_OK)
		r = find_user_file(&config, err);
	if (r == CM_OK)
		r = read_root(&config, err);
	if (r == CM_OK)
		r = copy_trimmed(variable(&config, "CASEMATE_PROFILE"), &config.profile, err);
	if (r != CM_OK) {
		cm_config_clear(&config);
		return r;
	}
	*ret = config;
	return CM_OK;
}

void cm_config_clear(struct cm_config *config)
{
	cm_strv_clear(&config->env);
	cm_free_secret(&config->git_token);
	cm_free_secret(&config->git_user);
	cm_free_secret(&config->git_secret);
	cm_free_secret(&config->ssh_passphrase);
	free(config->ssh_key);
	for (size_t i = 0; i < config->setup_secrets.n; i++)
		cm_free_secret(&config->setup_secrets.v[i]);
	cm_strv_clear(&config->setup_secrets);
	free(config->cwd);
	free(config->home);
	free(config->user_file);
	free(config->profile);
	cm_layer_clear(&config->environment);
	cm_file_clear(&config->system);
	cm_file_clear(&config->user);
	*config = (struct cm_config){ 0 };
}

/* The directory that the file is in, absolute. */
static char *directory_of(const char *path, const char *cwd)
{
	char *absolute = cm_path_join(cwd ? cwd : "/", path);
	char *slash = absolute ? strrchr(absolute, '/') : NULL;

	if (slash == absolute && slash)
		slash[1] = '\0';
	else if (slash)
		*slash = '\0';
	return absolute;
}

/* name: what it is called; NULL: its path */
static int read_settings(const char *path, const char *name, const char *cwd, unsigned int flags,
			 unsigned int allowed, struct cm_file *ret, struct cm_error *err)
{
	CM_AUTO_FREE char *text = NULL;
	CM_AUTO_FREE char *base = NULL;
	size_t len = 0;
	int r = cm_config_read_file(path, flags, &text, &len, err);

	if (r != CM_OK && name)
		return cm_error_wrap(err, "%s", name);
	if (r != CM_OK || !text)
		return r;
	base = directory_of(path, cwd);
	if (!base)
		return no_memory(err);
	return cm_file_parse(text, len, name ? name : path, base, allowed, ret, err);
}

/* Reads both configuration files; a second call does nothing. A file that is absent is empty. */
static int load_files(struct cm_config *config, struct cm_error *err)
{
	unsigned int optional = config->is_user_file_named ? 0 : CM_READ_OPTIONAL;
	int r;

	if (config->are_files_loaded)
		return CM_OK;
	r = read_settings(config->system_file, NULL, config->cwd,
			  CM_READ_OPTIONAL | CM_READ_REGULAR, CM_FILE_PROFILES | CM_FILE_CEILING,
			  &config->system, err);
	if (r == CM_OK && config->user_file) {
		r = read_settings(config->user_file, NULL, config->cwd,
				  optional | CM_READ_REGULAR | CM_READ_OWN, CM_FILE_PROFILES,
				  &config->user, err);
		if (r == CM_E_NOT_FOUND)
			cm_error_wrap(err, "CASEMATE_CONFIG");
	}
	if (r == CM_OK) {
		config->are_files_loaded = true;
		return CM_OK;
	}
	cm_file_clear(&config->system);
	cm_file_clear(&config->user);
	return r;
}

static const struct cm_layer *find_profile(const struct cm_file *file, const char *name)
{
	for (size_t i = 0; i < file->n_profiles; i++) {
		if (strcmp(file->profiles[i].name, name) == 0)
			return &file->profiles[i].layer;
	}
	return NULL;
}

/* Those of file that other does not have. */
static void list_profiles(const struct cm_file *file, const struct cm_file *other,
			  struct cm_buf *out)
{
	for (size_t i = 0; i < file->n_profiles; i++) {
		if (!other || !find_profile(other, file->profiles[i].name))
			cm_buf_printf(out, "%s%s", out->len ? ", " : "", file->profiles[i].name);
	}
}

static int no_profile(const struct cm_config *config, const char *name, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf known = { 0 };
	int r = cm_error_set(err, CM_E_NOT_FOUND, 0, "profile '%.140s' not found", name);

	cm_buf_init(&known, CM_ERROR_HINT_SIZE);
	list_profiles(&config->system, NULL, &known);
	list_profiles(&config->user, &config->system, &known);
	if (known.len > 0)
		cm_error_hint(err, "there are: %s", known.data);
	else
		cm_error_hint(err,
			      "none is defined; write \"profiles\": { \"%.100s\": { ... } } in "
			      "'%.200s'",
			      name, config->user_file ? config->user_file : config->system_file);
	return r;
}

static int merge_profile(struct cm_config *config, const struct cm_layer *flags, struct cm_merge *m,
			 struct cm_error *err)
{
	const struct cm_setting *asked = cm_layer_find(flags, CM_KEY_PROFILE);
	const char *name = asked ? asked->value : config->profile;
	const struct cm_layer *of_system;
	const struct cm_layer *of_user;
	int r = CM_OK;

	if (!name)
		return CM_OK;
	of_system = find_profile(&config->system, name);
	of_user = find_profile(&config->user, name);
	if (!of_system && !of_user)
		return no_profile(config, name, err);
	m->is_asked = asked != NULL;
	if (of_system)
		r = cm_merge_layer(m, of_system, err);
	if (r == CM_OK && of_user)
		r = cm_merge_layer(m, of_user, err);
	m->is_asked = false;
	return r;
}

static int merge_policies(struct cm_config *config, const struct cm_layer *flags,
			  struct cm_merge *m, struct cm_error *err)
{
	int r = CM_OK;

	for (size_t i = 0; r == CM_OK && i < flags->n; i++) {
		CM_AUTO_FILE struct cm_file file = { 0 };

		if (flags->settings[i].key != CM_KEY_POLICY)
			continue;
		r = read_settings(flags->settings[i].value, NULL, config->cwd, 0, 0, &file, err);
		m->is_asked = true;
		if (r == CM_OK)
			r = cm_merge_layer(m, &file.keys, err);
		m->is_asked = false;
	}
	return r;
}

static int read_env_file(const char *path, struct cm_layer *ret, struct cm_error *err)
{
	CM_AUTO_FREE char *text = NULL;
	size_t len = 0;
	int r = cm_config_read_file(path, 0, &text, &len, err);

	return r == CM_OK ? cm_env_file_parse(text, len, path, ret, err) : r;
}

/* The flags with each --env-file replaced by its lines, at its place. */
static int merge_flags(const struct cm_layer *flags, struct cm_merge *m, struct cm_error *err)
{
	CM_AUTO_LAYER struct cm_layer all = { 0 };
	int r = CM_OK;

	for (size_t i = 0; r == CM_OK && i < flags->n; i++) {
		const struct cm_setting *s = &flags->settings[i];

		if (s->key == CM_KEY_ENV_FILE)
			r = read_env_file(s->value, &all, err);
		else
			r = cm_layer_add(&all, s->key, s->value, s->what, s->place, err);
	}
	if (r == CM_OK && cm_strv_copy(&all.argv, &flags->argv) != CM_OK)
		r = no_memory(err);
	if (r != CM_OK)
		return r;
	m->is_asked = true;
	r = cm_merge_layer(m, &all, err);
	m->is_asked = false;
	return r;
}

static int check_cwd(const struct cm_config *config, struct cm_error *err)
{
	int r;

	if (config->cwd && config->cwd[0] == '/')
		return CM_OK;
	r = cm_error_set(err, CM_E_NOT_FOUND, 0, "the current directory does not exist any more");
	cm_error_hint(err, "cd into a directory that does");
	return r;
}

int cm_config_resolve(struct cm_config *config, const struct cm_layer *flags, struct cm_merge *m,
		      struct cm_error *err)
{
	const struct cm_caller caller = {
		.cwd = config->cwd,
		.home = config->home,
		.env = &config->env,
	};
	int r = check_cwd(config, err);

	m->caller = &caller;
	if (r == CM_OK)
		r = cm_config_read_credential(config, flags, m, err);
	if (r == CM_OK)
		r = cm_config_read_ssh(config, flags, err);
	if (r == CM_OK)
		r = cm_config_read_setup_secrets(config, flags, err);
	if (r == CM_OK)
		r = load_files(config, err);
	if (r == CM_OK)
		r = cm_merge_layer(m, &config->system.keys, err);
	if (r == CM_OK)
		r = cm_merge_layer(m, &config->user.keys, err);
	if (r == CM_OK)
		r = merge_profile(config, flags, m, err);
	if (r == CM_OK)
		r = merge_policies(config, flags, m, err);
	if (r == CM_OK)
		r = cm_merge_layer(m, &config->environment, err);
	if (r == CM_OK)
		r = merge_flags(flags, m, err);
	m->is_of_session = config->is_of_session;
	if (r == CM_OK)
		r = cm_merge_check(m, err);
	if (r == CM_OK)
		r = cm_config_check_credential(config, m->spec, err);
	if (r == CM_OK)
		r = cm_config_check_ssh(config, m->spec, err);
	if (r == CM_OK)
		r = cm_merge_ceiling(m, &config->system.ceiling, false, err);
	if (r == CM_OK)
		cm_merge_finish(m);
	m->caller = NULL;
	return r;
}

/* The setting of the root that counts; its path is absolute, so no layer's base is needed. */
static const struct cm_setting *find_root(const struct cm_config *config)
{
	const struct cm_layer *layers[] = {
		&config->environment,
		config->profile ? find_profile(&config->user, config->profile) : NULL,
		config->profile ? find_profile(&config->system, config->profile) : NULL,
		&config->user.keys,
		&config->system.keys,
	};

	for (size_t i = 0; i < CM_ARRAY_SIZE(layers); i++) {
		const struct cm_setting *found =
			layers[i] ? cm_layer_find(layers[i], CM_KEY_ROOT) : NULL;

		if (found)
			return found;
	}
	return NULL;
}

int cm_config_root(struct cm_config *config, const char *flag, char **ret, struct cm_error *err)
{
	const struct cm_caller caller = {
		.cwd = config->cwd,
		.home = config->home,
		.env = &config->env,
	};
	CM_AUTO_LAYER struct cm_layer flags = { 0 };
	const struct cm_setting *root;
	struct cm_spec spec;
	int r = load_files(config, err);

	if (r == CM_OK && flag)
		r = cm_layer_add(&flags, CM_KEY_ROOT, flag, "--root", NULL, err);
	if (r != CM_OK)
		return r;
	root = flag ? &flags.settings[0] : find_root(config);
	cm_spec_init(&spec);
	if (root)
		r = cm_spec_apply(&spec, NULL, root, NULL, &caller, 0, err);
	if (r == CM_OK)
		*ret = cm_ptr_take(&spec.root);
	cm_spec_clear(&spec);
	return r;
}

int cm_config_repository(const char *dir, const char *name, struct cm_merge *m,
			 struct cm_error *err)
{
	/* no path of the file's is used, so nothing of the caller is needed */
	static const struct cm_strv no_env;
	static const struct cm_caller nobody = { .cwd = "/", .home = NULL, .env = &no_env };
	CM_AUTO_FILE struct cm_file file = { 0 };
	CM_AUTO_FREE char *path = cm_path_join(dir, CM_CONFIG_REPOSITORY_FILE);
	const struct cm_caller *caller = m->caller;
	int r;

	if (!path)
		return no_memory(err);
	r = read_settings(path, name, "/", CM_READ_OPTIONAL | CM_READ_REGULAR | CM_READ_NO_LINK, 0,
			  &file, err);
	if (r != CM_OK)
		return r;
	m->caller = &nobody;
	r = cm_merge_ceiling(m, &file.keys, true, err);
	m->caller = caller;
	if (r == CM_OK)
		cm_merge_finish(m);
	return r;
}

char *cm_config_project_dir(const char *cwd)
{
	return cm_path_git_top(cwd);
}

int cm_config_check(struct cm_config *config, const char *path, struct cm_error *err)
{
	CM_AUTO_FILE struct cm_file file = { 0 };
	const char *base = strrchr(path, '/');
	bool is_repository = strcmp(base ? base + 1 : path, CM_CONFIG_REPOSITORY_FILE) == 0;

	return read_settings(path, NULL, config->cwd, 0,
			     is_repository ? 0 : CM_FILE_PROFILES | CM_FILE_CEILING, &file, err);
}
