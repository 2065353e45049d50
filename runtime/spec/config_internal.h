/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that read what configures a run. */
#ifndef CM_RUNTIME_SPEC_CONFIG_INTERNAL_H
#define CM_RUNTIME_SPEC_CONFIG_INTERNAL_H

#include <stddef.h>

#include "runtime/spec/config.h"

/* what a file must be to be read */
enum {
	/* an absent file is empty */
	CM_READ_OPTIONAL = 1U << 0,
	/* a regular file, so that opening cannot hang */
	CM_READ_REGULAR = 1U << 1,
	/* no symbolic link: another may have made it */
	CM_READ_NO_LINK = 1U << 2,
	/* the caller's own, or root's */
	CM_READ_OWN = 1U << 3,
};

/* CM_READ_*. *ret_text stays NULL when the file is optional and absent. */
int cm_config_read_file(const char *path, unsigned int flags, char **ret_text, size_t *ret_len,
			struct cm_error *err);
/*
 * The value of a variable, which config->env and the process's environment have no longer then:
 * *ret is NULL where it is not set.
 */
int cm_config_take_variable(struct cm_config *config, const char *name, char **ret,
			    struct cm_error *err);
/*
 * Into config: what --git-credential of the flags names. Before any layer is merged, since a
 * setting such as --env NAME passes variables.
 */
int cm_config_read_credential(struct cm_config *config, const struct cm_layer *flags,
			      struct cm_merge *m, struct cm_error *err);
/* The same of --ssh-key and --ssh-agent; no key is read here. */
int cm_config_read_ssh(struct cm_config *config, const struct cm_layer *flags,
		       struct cm_error *err);
int cm_config_check_ssh(const struct cm_config *config, const struct cm_spec *spec,
			struct cm_error *err);
/* The same of what --setup-secret names; a variable that is not set is missed by who needs it. */
int cm_config_read_setup_secrets(struct cm_config *config, const struct cm_layer *flags,
				 struct cm_error *err);
/* Is what was read good for anything? When the spec is whole. */
int cm_config_check_credential(const struct cm_config *config, const struct cm_spec *spec,
			       struct cm_error *err);

#endif
