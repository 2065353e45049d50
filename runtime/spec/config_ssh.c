/* SPDX-License-Identifier: Apache-2.0 */
/* By which key an ssh server of --repo is told who asks. */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/buf.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"
#include "runtime/base/text.h"
#include "runtime/spec/config_internal.h"

#define KEY "--ssh-key"
#define AGENT "--ssh-agent"

int cm_config_read_ssh(struct cm_config *config, const struct cm_layer *flags, struct cm_error *err)
{
	const struct cm_setting *key = cm_layer_find(flags, CM_KEY_SSH_KEY);
	const struct cm_setting *agent = cm_layer_find(flags, CM_KEY_SSH_AGENT);
	bool is_home = key && cm_text_has_prefix(key->value, "~/") && config->home;

	/* set to nothing, and no passphrase: there is no key that has an empty one */
	if (config->ssh_passphrase && config->ssh_passphrase[0] == '\0')
		cm_free_secret(&config->ssh_passphrase);
	free(cm_ptr_take(&config->ssh_key));
	config->wants_ssh_agent = agent && strcmp(agent->value, "true") == 0;
	if (!key)
		return CM_OK;
	config->ssh_key = is_home ? cm_asprintf("%s%s", config->home, key->value + 1)
				  : cm_path_join(config->cwd, key->value);
	return config->ssh_key ? CM_OK : cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

static int wrong(struct cm_error *err, const char *option, const char *what, const char *hint)
{
	cm_error_set(err, CM_E_INVALID, 0, "%s %s", option, what);
	cm_error_hint(err, "%s", hint);
	return CM_E_INVALID;
}

static bool is_ssh(const char *repo)
{
	static const char *const others[] = { "/", "http://", "https://", "git://" };

	for (size_t i = 0; i < CM_ARRAY_SIZE(others); i++) {
		if (cm_text_has_prefix(repo, others[i]))
			return false;
	}
	return true;
}

int cm_config_check_ssh(const struct cm_config *config, const struct cm_spec *spec,
			struct cm_error *err)
{
	const char *option = config->ssh_key ? KEY : AGENT;

	if (!config->ssh_key && !config->wants_ssh_agent)
		return CM_OK;
	if (config->ssh_key && config->wants_ssh_agent)
		return wrong(err, KEY, "and " AGENT " contradict each other",
			     "leave one of them out");
	if (config->git_secret)
		return wrong(err, option, "and --git-credential contradict each other",
			     "leave one of them out");
	/* of a session that exists the repository is known */
	if (spec->workspace_kind != CM_WORKSPACE_REPO && !spec->session_id)
		return wrong(err, option, "needs --repo or --session",
			     "name the repository with --repo ssh://HOST/PATH");
	if (spec->workspace_kind == CM_WORKSPACE_REPO && spec->repo && !is_ssh(spec->repo))
		return wrong(err, option, "is for a repository by ssh",
			     "leave it out, or give its address by ssh: --repo ssh://HOST/PATH");
	return CM_OK;
}
