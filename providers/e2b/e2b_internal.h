/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the E2B provider share. */
#ifndef CM_PROVIDERS_E2B_E2B_INTERNAL_H
#define CM_PROVIDERS_E2B_E2B_INTERNAL_H

#include "providers/e2b/connect.h"
#include "providers/e2b/e2b.h"
#include "providers/e2b/events.h"
#include "providers/e2b/places.h"
#include "providers/http.h"
#include "runtime/base/json.h"
#include "runtime/base/json_write.h"

/* What sandboxes are found by: the key that Mastra's own provider has, and with it the sandboxes. */
#define CM_E2B_KEY_ID "mastra-sandbox-id"
/* Ours: which request made it, and how long it may be idle and live, in seconds. */
#define CM_E2B_KEY_MARK "casemate-request"
#define CM_E2B_KEY_IDLE "casemate-idle"
#define CM_E2B_KEY_LIFETIME "casemate-lifetime"
/* And what each command in it begins with: "root" or nothing, an absolute path; what it was made of. */
#define CM_E2B_KEY_USER "casemate-user"
#define CM_E2B_KEY_WORKDIR "casemate-workdir"
#define CM_E2B_KEY_TEMPLATE "casemate-template"

/* How long a sandbox lives when nobody says; it is kept alive while a command is followed. */
#define CM_E2B_USUAL_S 3600U
/* of what is done after a failure, whose own deadline may have passed */
#define CM_E2B_CLEANUP_MS 10000

struct cm_e2b {
	struct cm_provider base;
	struct cm_http *http;
	struct cm_e2b_places places;
	/* "X-API-Key: ..." */
	char *key_header;
	/* the service has no v2 of the routes that make and resume */
	bool is_v1;
	/* of its last answer (clock_ahead_ms there) */
	int64_t clock_ahead_ms;
};

struct cm_e2b_session {
	struct cm_session base;
	char *sandbox_id;
	/* NULL: the configured one */
	char *domain;
	/* NULL: not asked for yet, as what follows; see cm_e2b_session_reach */
	char *agent_url;
	/* what each request to the agent has; the token's is NULL where there is none */
	char *id_header;
	char *token_header;
	/* the agent takes a file as it is */
	bool takes_octets;
	bool is_root;
	bool is_temporary;
	/* absolute; NULL: the template's */
	char *workdir;
	/* over the sandbox's own, in each command */
	struct cm_strv env;
	/* seconds; 0: not asked for */
	uint64_t idle_s;
	uint64_t lifetime_s;
	/* CLOCK_REALTIME, when it has lived long enough; 0: never */
	int64_t lifetime_end_ms;
	/* CLOCK_MONOTONIC, when its time is to be extended; INT64_MAX: never */
	int64_t refresh_ms;
};

#define CM_E2B_TOKEN_HEADER "X-Access-Token: "
/* Borrowed; NULL: it has none. */
static inline const char *cm_e2b_session_token(const struct cm_e2b_session *s)
{
	return s->token_header ? s->token_header + sizeof(CM_E2B_TOKEN_HEADER) - 1 : NULL;
}

static inline struct cm_e2b *cm_e2b_of(const struct cm_session *s)
{
	return (struct cm_e2b *)(void *)s->provider;
}

/* --- open.c ----------------------------------------------------------------------------------- */

int cm_e2b_open(const struct cm_provider_config *config, struct cm_provider **ret,
		struct cm_error *err);
void cm_e2b_close(struct cm_provider *p);
int cm_e2b_probe(struct cm_provider *p, const struct cm_call *call, uint32_t *ret_caps,
		 struct cm_error *err);
/* CM_E_NOMEM, with the usual words; in sight of those who call it, so that it is seen to be no success. */
static inline int cm_e2b_no_memory(struct cm_error *err)
{
	(void)cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	return CM_E_NOMEM;
}
/*
 * Of a service that is not there, or a sandbox that goes in this moment: it must not be taken for a session
 * that is not there. *err has the code that is returned.
 */
static inline int cm_e2b_no_absence(int r, struct cm_error *err)
{
	if (r != CM_E_NOT_FOUND)
		return r;
	if (err)
		err->code = CM_E_REMOTE;
	return CM_E_REMOTE;
}
/* A call of its own, for what follows a failure. */
struct cm_call cm_e2b_cleanup_call(void);
/* seconds, rounded up, at least 1 */
uint64_t cm_e2b_seconds(uint64_t ms);

/* --- control.c: the API ----------------------------------------------------------------------- */

struct cm_e2b_query {
	const char *method;
	/* below the API's address, as it stands in a URL */
	const char *path;
	/* JSON; NULL: none */
	const struct cm_buf *body;
	bool is_idempotent;
	/* "list sessions": for messages */
	const char *what;
};

struct cm_e2b_reply {
	struct cm_http_answer answer;
	/* NULL: the body is empty, or no JSON */
	struct cm_json_doc *doc;
	char *url;
	const char *method;
};

/*
 * CM_OK: there was an answer, of whatever status; a 2xx one has JSON or nothing. After a failure *ret has
 * answer.may_have_arrived alone.
 */
int cm_e2b_ask(struct cm_e2b *e, const struct cm_e2b_query *q, const struct cm_call *call,
	       struct cm_e2b_reply *ret, struct cm_error *err);
void cm_e2b_reply_clear(struct cm_e2b_reply *reply);
static inline bool cm_e2b_reply_is_2xx(const struct cm_e2b_reply *reply)
{
	return reply->answer.status >= 200 && reply->answer.status < 300;
}
/* The service itself says so, and not what stands before it: its body has the code too. */
bool cm_e2b_reply_says(const struct cm_e2b_reply *reply, int status);
/* The error of a reply that is no success. */
int cm_e2b_refused(const struct cm_e2b *e, const struct cm_e2b_reply *reply, const char *what,
		   struct cm_error *err);
/* ask, and any status but 2xx is an error. The caller clears *ret after success. */
int cm_e2b_demand(struct cm_e2b *e, const struct cm_e2b_query *q, const struct cm_call *call,
		  struct cm_e2b_reply *ret, struct cm_error *err);
/*
 * As demand, by a route that has two versions. write fills the body of the one that is tried. *ret_arrived:
 * it cannot be ruled out that the service did it, although this failed. May be NULL.
 */
int cm_e2b_demand_versions(struct cm_e2b *e, const struct cm_e2b_query *q,
			   void (*write)(struct cm_json_writer *w, bool is_v1, const void *data),
			   const void *data, const struct cm_call *call, struct cm_e2b_reply *ret,
			   bool *ret_arrived, struct cm_error *err);
/* How "KEY=value" of metadata stands in a query: three deep. */
void cm_e2b_metadata_query(struct cm_buf *out, const char *key, const char *value);
/*
 * Running and paused sandboxes with this metadata (key NULL: all). each: as of session_list. What it
 * gets is borrowed.
 */
int cm_e2b_each_sandbox(struct cm_e2b *e, const char *key, const char *value,
			const struct cm_call *call,
			int (*each)(void *data, const struct cm_json *sandbox), void *data,
			struct cm_error *err);
/* What the service says of one thing of its own, as it may be shown and compared; NULL: nothing. */
const char *cm_e2b_metadata(const struct cm_json *sandbox, const char *key);
/* No label can have it. */
bool cm_e2b_is_our_key(const char *key);

/* --- sandbox.c: what is made, found and ended -------------------------------------------------- */

int cm_e2b_session_create(struct cm_provider *p, const struct cm_spec *spec,
			  const struct cm_call *call, struct cm_session **ret,
			  struct cm_error *err);
int cm_e2b_session_network(struct cm_session *s, enum cm_network network,
			   const struct cm_call *call, struct cm_error *err);
/* Which of those it has, as its detail says; NULL, where there is none: none. */
enum cm_network cm_e2b_network_in(const struct cm_json *detail);
/* The same, asked for. */
int cm_e2b_network_of(struct cm_e2b *e, const char *sandbox_id, const struct cm_call *call,
		      enum cm_network *ret, struct cm_error *err);
/* Makes one of a template for clone: as create, without a spec. */
int cm_e2b_make_clone(struct cm_e2b_session *of, const char *template_id, const char *id,
		      const struct cm_call *call, struct cm_session **ret, struct cm_error *err);
/* DELETE; what is gone already is CM_OK. */
int cm_e2b_delete(struct cm_e2b *e, const char *sandbox_id, const struct cm_call *call,
		  struct cm_error *err);

/* --- find.c ------------------------------------------------------------------------------------- */

/* What a list says of a sandbox, as far as it is needed. */
struct cm_e2b_found {
	char *sandbox_id;
	/* what the service calls its template, by id and by name; what it was asked for by. Each may be NULL */
	char *template_id;
	char *alias;
	char *template_name;
	/* absolute; NULL: the template's */
	char *workdir;
	bool is_root;
	bool is_running;
	/* CLOCK_REALTIME */
	int64_t started_ms;
	int64_t ends_ms;
	uint64_t idle_s;
	uint64_t lifetime_s;
};
void cm_e2b_found_clear(struct cm_e2b_found *found);
/*
 * The sandbox of this name that counts. CM_E_NOT_FOUND: there is none, and *err says nothing. *ret is
 * cleared by the caller after success.
 */
int cm_e2b_find(struct cm_e2b *e, const char *id, const struct cm_call *call,
		struct cm_e2b_found *ret, struct cm_error *err);
/* One row of a list. CM_OK or CM_E_NOMEM; *ret is cleared by the caller. */
int cm_e2b_found_read(const struct cm_json *sandbox, struct cm_e2b_found *ret);
/* "running", "paused" */
bool cm_e2b_is_state(const struct cm_json *sandbox, const char *state);

/* --- session.c ---------------------------------------------------------------------------------- */

int cm_e2b_session_attach(struct cm_provider *p, const char *id, const struct cm_call *call,
			  struct cm_session **ret, struct cm_error *err);
int cm_e2b_session_start(struct cm_session *s, const struct cm_call *call, struct cm_error *err);
int cm_e2b_session_stop(struct cm_session *s, const struct cm_call *call, struct cm_error *err);
int cm_e2b_session_destroy(struct cm_session *s, const struct cm_call *call, struct cm_error *err);
void cm_e2b_session_release(struct cm_session *s);
int cm_e2b_session_info(struct cm_session *s, const struct cm_call *call,
			struct cm_session_info *ret, struct cm_error *err);
int cm_e2b_session_list(struct cm_provider *p, const struct cm_call *call,
			int (*each)(void *data, const struct cm_session_info *info), void *data,
			struct cm_error *err);
/* One without a sandbox yet. */
int cm_e2b_session_new(struct cm_e2b *e, const char *id, struct cm_e2b_session **ret,
		       struct cm_error *err);
/* Takes over what the service says of its sandbox. */
int cm_e2b_session_adopt(struct cm_e2b_session *s, const struct cm_json *sandbox,
			 struct cm_error *err);
/*
 * Before the agent is asked, and before agent_url, domain and token_header are looked at: a session that was
 * found in a list and not started since has none of them yet.
 */
int cm_e2b_session_reach(struct cm_e2b_session *s, const struct cm_call *call,
			 struct cm_error *err);
/* Resumes it, or extends its time. *ret_was_running may be NULL. */
int cm_e2b_session_connect(struct cm_e2b_session *s, bool is_refresh, const struct cm_call *call,
			   bool *ret_was_running, struct cm_error *err);
/* Its time is extended, if that is due. Nothing depends on it, so nothing is said of a failure. */
void cm_e2b_session_keep(struct cm_e2b_session *s, const struct cm_call *call);
/* What time it is by the service's clock, which the times that it tells and is told are by. */
int64_t cm_e2b_now_ms(const struct cm_e2b_session *s);
/* How long it is to live from now on, in seconds; and when to say so again. */
uint64_t cm_e2b_session_ttl(const struct cm_e2b_session *s, bool is_refresh);
void cm_e2b_session_set_refresh(struct cm_e2b_session *s, uint64_t ttl_s);
/* Takes over what a session has; what was asked for just now goes before it. */
void cm_e2b_session_found(struct cm_e2b_session *s, struct cm_e2b_found *found);

/* --- adopt.c: what is asked for, and what a session that exists was made with ------------------- */

/* CM_OK, or CM_E_EXISTS: a command line contradicts it. No network and no template. Pure. */
int cm_e2b_adopt_check(const char *id, const struct cm_spec *spec, const struct cm_e2b_found *found,
		       struct cm_error *err);
/* As above, and what the service is asked for: its network and its template. Changes nothing. */
int cm_e2b_adopt(struct cm_e2b_session *s, const struct cm_spec *spec,
		 const struct cm_e2b_found *found, const struct cm_call *call,
		 struct cm_error *err);

/* --- rpc.c: the agent ----------------------------------------------------------------------------- */

/* "Name: value", NULL-terminated, for cm_http_request; of the agent, as root or as the session's user. */
#define CM_E2B_HEADERS_MAX 10
struct cm_e2b_headers {
	const char *v[CM_E2B_HEADERS_MAX + 1];
};
void cm_e2b_headers_init(struct cm_e2b_headers *h, const struct cm_e2b_session *s, bool is_root);
void cm_e2b_headers_add(struct cm_e2b_headers *h, const char *line);
/* The agent's error about a file: of a body in Connect's manner, of the proxy before it, or by status. */
int cm_e2b_agent_refused(const struct cm_e2b_session *s, const struct cm_http_request *request,
			 const struct cm_http_answer *answer, const char *what,
			 struct cm_error *err);

struct cm_e2b_rpc {
	/* "process.Process/List" */
	const char *method;
	const struct cm_buf *body;
	bool is_idempotent;
	bool is_root;
	/* the agent may take its time until it answers */
	bool may_wait;
	/* it is about a file, which `what` names: its usual faults have words of ours */
	bool is_file;
	const char *what;
};
/*
 * *ret_doc: an object, freed by the caller; NULL is allowed: it is not wanted. *ret_name: of an error
 * that the agent told of, "internal"; "" else; NULL is allowed.
 */
#define CM_E2B_NAME_SIZE 32
int cm_e2b_unary(struct cm_e2b_session *s, const struct cm_e2b_rpc *rpc, const struct cm_call *call,
		 struct cm_json_doc **ret_doc, char ret_name[CM_E2B_NAME_SIZE],
		 struct cm_error *err);

/* An answer in envelopes. */
struct cm_e2b_stream {
	struct cm_http_stream *http;
	struct cm_e2b_envelopes envelopes;
	/* borrowed, and as of struct cm_e2b_rpc */
	const char *what;
	bool is_file;
	/* what came and is not looked at yet */
	size_t at;
	size_t len;
	char bytes[16384];
};
int cm_e2b_stream_open(struct cm_e2b_session *s, const struct cm_e2b_rpc *rpc,
		       const struct cm_call *call, struct cm_e2b_stream **ret,
		       struct cm_error *err);
void cm_e2b_stream_close(struct cm_e2b_stream *stream);
enum cm_e2b_stream_result {
	/* stream->envelopes.body is a message */
	CM_E2B_STREAM_MESSAGE = 1,
	CM_E2B_STREAM_WOKEN,
	/* it ended as it should; END's error, if it has one, is of *ret_end */
	CM_E2B_STREAM_END,
	/* the connection was lost, or the stream ended without its end: *err says how */
	CM_E2B_STREAM_CUT,
};
/* Or a negative code. *ret_end: CM_OK or the code of the error in *err. */
int cm_e2b_stream_next(struct cm_e2b_stream *stream, struct cm_wake *wake,
		       const struct cm_call *call, int *ret_end, struct cm_error *err);
/* What is left of it, where that is at hand, so that the connection can be used again. */
void cm_e2b_stream_finish(struct cm_e2b_stream *stream);
enum cm_e2b_health {
	CM_E2B_ALIVE = 1,
	CM_E2B_GONE,
	CM_E2B_SILENT,
};
/* What has become of the sandbox. CM_E_CANCELLED and CM_E_TIMEOUT are the call's. */
int cm_e2b_health(struct cm_e2b_session *s, const struct cm_call *call, enum cm_e2b_health *ret,
		  struct cm_error *err);

/* --- process.c, command.c, follow.c ------------------------------------------------------------------ */

int cm_e2b_exec_start(struct cm_session *s, const struct cm_exec_request *request,
		      const struct cm_call *call, struct cm_exec **ret, struct cm_error *err);
int cm_e2b_exec_attach(struct cm_session *s, const char *name, const uint64_t offsets[2],
		       bool follows, const struct cm_call *call, struct cm_exec **ret,
		       struct cm_error *err);
int cm_e2b_exec_list(struct cm_session *s, const struct cm_call *call,
		     int (*each)(void *data, const struct cm_exec_info *info), void *data,
		     struct cm_error *err);
/* --- files.c, write.c, watch.c, entry.c, url.c ----------------------------------------------------------- */

int cm_e2b_file_read(struct cm_session *s, const char *path, const struct cm_read_request *wanted,
		     const struct cm_call *call, struct cm_error *err);
int cm_e2b_file_write(struct cm_session *s, const char *path,
		      const struct cm_write_request *request, const struct cm_call *call,
		      struct cm_error *err);
int cm_e2b_file_list(struct cm_session *s, const char *path, uint32_t flags,
		     int (*each)(void *data, const struct cm_path_info *info), void *data,
		     const struct cm_call *call, struct cm_error *err);
int cm_e2b_file_stat(struct cm_session *s, const char *path, uint32_t flags,
		     int (*each)(void *data, const struct cm_path_info *info), void *data,
		     const struct cm_call *call, struct cm_error *err);
int cm_e2b_file_mkdir(struct cm_session *s, const char *path, uint32_t flags, uint32_t mode,
		      const struct cm_call *call, struct cm_error *err);
int cm_e2b_file_move(struct cm_session *s, const char *from, const char *to, uint32_t flags,
		     const struct cm_call *call, struct cm_error *err);
int cm_e2b_file_remove(struct cm_session *s, const char *path, uint32_t flags,
		       const struct cm_call *call, struct cm_error *err);
int cm_e2b_file_watch(struct cm_session *s, const char *path,
		      int (*each)(void *data, const struct cm_watch_event *event), void *data,
		      const struct cm_call *call, struct cm_error *err);
int cm_e2b_file_url(struct cm_session *s, const char *path, uint32_t flags, uint64_t lifetime_ms,
		    const struct cm_call *call, char **ret, int64_t *ret_end_ms,
		    struct cm_error *err);

/* --- templates.c, snapshot.c ---------------------------------------------------------------------- */

int cm_e2b_template_build(struct cm_provider *p, const struct cm_template_request *request,
			  const struct cm_call *call, char **ret, struct cm_error *err);
int cm_e2b_template_list(struct cm_provider *p, const struct cm_call *call,
			 int (*each)(void *data, const char *name, const char *state), void *data,
			 struct cm_error *err);
/* Its id; NULL, with CM_OK: there is none, or it is another's. *ret_is_there: it can be built upon. */
int cm_e2b_template_look_up(struct cm_e2b *e, const char *name, const struct cm_call *call,
			    char **ret, bool *ret_is_there, struct cm_error *err);
int cm_e2b_template_remove(struct cm_provider *p, const char *name, const struct cm_call *call,
			   struct cm_error *err);
int cm_e2b_snapshot(struct cm_session *s, const char *name, const struct cm_call *call, char **ret,
		    struct cm_error *err);
int cm_e2b_clone(struct cm_session *s, const char *id, const struct cm_call *call,
		 struct cm_session **ret, struct cm_error *err);
int cm_e2b_publish(struct cm_session *s, uint16_t port, const struct cm_call *call, char **ret,
		   struct cm_error *err);

#endif
