/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the platform provider share. */
#ifndef CM_PROVIDERS_PLATFORM_PLATFORM_INTERNAL_H
#define CM_PROVIDERS_PLATFORM_PLATFORM_INTERNAL_H

#include "providers/http.h"
#include "providers/platform/answers.h"
#include "providers/platform/platform.h"
#include "providers/platform/settings.h"
#include "runtime/base/json.h"

struct cm_platform {
	struct cm_provider base;
	struct cm_platform_settings settings;
	struct cm_http *http;
	/* a header; a secret */
	char *authorization;
	/* of the platform's last answer (clock_ahead_ms there) */
	int64_t clock_ahead_ms;
};

struct cm_platform_session {
	struct cm_session base;
	/* id NULL: there never was one */
	struct cm_platform_sandbox sandbox;
	/* nothing runs there any more: its id is good for its checkpoint alone */
	bool is_gone;
	/* as the session's spec had them; each may be NULL */
	char *template_name;
	char *workdir;
	/* the checkpoint that it begins with as long as it has none of its own; may be NULL */
	char *seed;
	/* its name was made for it, and is nobody else's; it may be kept all the same */
	bool has_made_name;
	/* of its commands, as far as this process was told them */
	struct cm_strv env;
	/* the names of those that it was made with; may be NULL */
	char *env_names;
	/* "KEY=value": what is asked for now; its record has all */
	struct cm_strv labels;
	int64_t created_ms;
	/* its files were captured once: it is more than its sandbox */
	bool has_checkpoint;
	/* its files were kept, and nobody has started it since */
	bool is_stopped;
	/* until then what was seen of its sandbox is taken for what it is; CLOCK_MONOTONIC */
	int64_t seen_until_ms;
	/* jwt NULL: none; good until, on CLOCK_MONOTONIC */
	struct cm_platform_lease lease;
	int64_t lease_until_ms;
	/* its sidecar was asked how it is, and answered */
	bool has_asked_sidecar;
	bool has_sidecar;
};

/* before the name of a checkpoint that is named as a template */
#define CM_PLATFORM_CHECKPOINT_PREFIX "checkpoint:"

struct cm_platform *cm_platform_of(struct cm_provider *p);
struct cm_platform_session *cm_platform_session_of(struct cm_session *s);
bool cm_platform_is_running(const struct cm_platform_session *s);
/* Its sandbox is gone. */
void cm_platform_session_lose(struct cm_platform_session *s);
/* Whose routes name the provider. */
bool cm_platform_has_provider(const struct cm_platform *p, const struct cm_platform_session *s);

/* --- control.c: the proxy's routes ------------------------------------------------------------ */

/* What is asked for with a sandbox. Texts but id may be NULL. */
struct cm_platform_wish {
	const char *id;
	const char *seed;
	/* a template's definition, checked */
	const struct cm_json *definition;
	const struct cm_strv *env;
};
/*
 * Again after an answer of 500 or more, twice, as long as the call has time. *ret_is_unsure, of a failure:
 * it was sent, and what came of it is not known.
 */
int cm_platform_provision(struct cm_platform *p, const struct cm_platform_wish *wish,
			  const struct cm_call *call, struct cm_platform_sandbox *ret,
			  bool *ret_is_unsure, struct cm_error *err);
/* CM_E_NOT_FOUND: it is gone. */
int cm_platform_look(struct cm_platform *p, const struct cm_platform_session *s,
		     const struct cm_call *call, struct cm_platform_sandbox *ret,
		     struct cm_error *err);
/* What is gone already is CM_OK, both. */
int cm_platform_delete(struct cm_platform *p, const struct cm_platform_session *s,
		       const struct cm_call *call, struct cm_error *err);
int cm_platform_forget(struct cm_platform *p, const struct cm_platform_session *s,
		       const struct cm_call *call, bool *ret_was_there, struct cm_error *err);
/* A sandbox that is gone is SKIPPED. */
int cm_platform_capture(struct cm_platform *p, const struct cm_platform_session *s,
			const struct cm_call *call, struct cm_platform_checkpoint *ret,
			struct cm_error *err);
/* A build is begun, or looked at. */
int cm_platform_build(struct cm_platform *p, const struct cm_json *definition,
		      const struct cm_call *call, struct cm_platform_build *ret,
		      struct cm_error *err);
/* A route below the sandbox ("/exec"), whatever comes of it. body: NULL or JSON. */
int cm_platform_ask(struct cm_platform *p, const struct cm_platform_session *s, const char *method,
		    const char *route, const struct cm_buf *body, const struct cm_call *call,
		    struct cm_http_answer *ret, struct cm_error *err);
/* The error of an answer that is no success. */
int cm_platform_refuse(struct cm_platform *p, const struct cm_http_answer *answer, const char *what,
		       struct cm_error *err);

/* --- session.c -------------------------------------------------------------------------------- */

int cm_platform_session_new(struct cm_platform *p, const char *id, struct cm_platform_session **ret,
			    struct cm_error *err);
/* The sandbox that it has, as it is now. CM_E_NOT_FOUND: it is gone. */
int cm_platform_session_look(struct cm_platform_session *s, const struct cm_call *call,
			     struct cm_error *err);
/* What the record has by now, by who holds the lock: another client may have changed it. */
int cm_platform_session_reload(struct cm_platform_session *s, struct cm_error *err);
/* A session that begins with a checkpoint of another, and else is as that is. */
int cm_platform_create_clone(const struct cm_platform_session *from, const char *id,
			     const char *checkpoint, const struct cm_call *call,
			     struct cm_session **ret, struct cm_error *err);

/* --- template_store.c ------------------------------------------------------------------------- */

/* The definition that a name stands for, checked; the caller frees it. CM_E_NOT_FOUND. */
int cm_platform_template_find(struct cm_platform *p, const char *name, struct cm_json_doc **ret,
			      struct cm_error *err);

/* --- lease.c ---------------------------------------------------------------------------------- */

/*
 * The session's lease, asked for where there is none that holds. CM_E_UNSUPPORTED with *ret_is_absent:
 * this proxy has no such route.
 */
int cm_platform_lease(struct cm_platform_session *s, const struct cm_call *call,
		      bool *ret_is_absent, struct cm_error *err);
void cm_platform_lease_drop(struct cm_platform_session *s);

/* --- exec.c ------------------------------------------------------------------------------------ */

int cm_platform_exec_start(struct cm_session *s, const struct cm_exec_request *request,
			   const struct cm_call *call, struct cm_exec **ret, struct cm_error *err);

#endif
