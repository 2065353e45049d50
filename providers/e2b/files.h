/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a sandbox: what the files about them share. */
#ifndef CM_PROVIDERS_E2B_FILES_H
#define CM_PROVIDERS_E2B_FILES_H

#include "providers/e2b/e2b_internal.h"
#include "providers/e2b/entry.h"

/*
 * What the agent is to be told in place of a path: relative ones are below where commands start, and '~' is
 * no home. The caller frees; NULL: memory.
 */
char *cm_e2b_place(const struct cm_e2b_session *s, const char *path);
/* CM_E_INVALID: the agent cannot be told of it. */
int cm_e2b_check_path(const char *path, struct cm_error *err);
/* "read 'notes'": a place as it was given. The caller frees; NULL: memory. */
char *cm_e2b_doing(const struct cm_e2b_session *s, const char *verb, const char *place);
/* A method of the agent about one path; verb: "look at". As cm_e2b_unary. */
int cm_e2b_path_rpc(struct cm_e2b_session *s, const char *method, const char *path,
		    const char *verb, const struct cm_call *call, struct cm_json_doc **ret_doc,
		    struct cm_error *err);
/* What is at path, itself: *ret has texts of *ret_doc, which the caller frees. */
int cm_e2b_look(struct cm_e2b_session *s, const char *path, const struct cm_call *call,
		struct cm_json_doc **ret_doc, struct cm_path_info *ret, struct cm_error *err);
/* The type alone; 0: nothing is there. Below 0: a code. follows: of what a link leads to. */
int cm_e2b_type_of(struct cm_e2b_session *s, const char *path, bool follows,
		   const struct cm_call *call, struct cm_error *err);
/* CM_E_NOT_FOUND unless the directory that path is to be in is there. */
int cm_e2b_need_parent(struct cm_e2b_session *s, const char *path, const struct cm_call *call,
		       struct cm_error *err);
/* chmod; JSON has no way for that. */
int cm_e2b_set_mode(struct cm_e2b_session *s, const char *path, uint32_t mode,
		    const struct cm_call *call, struct cm_error *err);
int cm_e2b_rename(struct cm_e2b_session *s, const char *from, const char *to,
		  const struct cm_call *call, struct cm_error *err);
int cm_e2b_unlink(struct cm_e2b_session *s, const char *path, const struct cm_call *call,
		  struct cm_error *err);
/* The address of /files for a path, once the session is reached; the caller frees. NULL: memory. */
char *cm_e2b_files_url(const struct cm_e2b_session *s, const char *path);

#endif
