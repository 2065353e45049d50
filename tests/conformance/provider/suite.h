/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One suite for all providers: what each test has, and how it says what is wrong.
 *
 * A test is a function; it says what did not hold by CHECK, and goes on as long as that makes sense. It
 * is skipped where the provider has not all of its capabilities, and the expected skips of each provider
 * are a list of their own, so that a capability that is lost is a failure.
 */
#ifndef CM_TESTS_CONFORMANCE_PROVIDER_SUITE_H
#define CM_TESTS_CONFORMANCE_PROVIDER_SUITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "providers/provider.h"
#include "runtime/base/buf.h"
#include "runtime/spec/config.h"

struct suite {
	const char *provider;
	struct cm_config config;
	struct cm_provider *p;
	uint32_t caps;
	/* one that most tests share */
	struct cm_session *s;
	/* of the stand-in server; 0: there is none */
	int port;
	unsigned int n;
	unsigned int n_failed;
	bool has_failed;
	/* names that are made up end with this */
	char tag[24];
	unsigned int n_names;
	/* what nobody is to be told; NULL: there is none */
	const char *secret;
	/* it was, by a note or a line of the trace */
	bool is_told;
};

struct test {
	const char *name;
	/* CM_CAP_*, all of them */
	uint32_t needs;
	void (*run)(struct suite *t);
};

/* Each ends with an empty name. */
extern const struct test suite_lifecycle[];
extern const struct test suite_refusals[];
extern const struct test suite_exec[];
extern const struct test suite_streams[];
extern const struct test suite_process[];
extern const struct test suite_files[];
extern const struct test suite_watch[];
extern const struct test suite_urls[];
extern const struct test suite_copies[];
extern const struct test suite_templates[];
extern const struct test suite_errors[];
/* Of sessions of this host alone. */
extern const struct test suite_kept[];
/* With a stand-in server alone. */
extern const struct test suite_faults[];
extern const struct test suite_elsewhere[];

/* --- what holds ------------------------------------------------------------------------------ */

bool suite_check(struct suite *t, bool holds, const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));
/* True where it holds. */
#define CHECK(t, cond, ...) suite_check(t, cond, __FILE__, __LINE__, __VA_ARGS__)
/* r is CM_OK; else err says why it is not. r may be a call that fills err: it comes first, and once. */
#define CHECK_OK(t, r, err, what) suite_check_ok(t, r, &(err), __FILE__, __LINE__, what)
bool suite_check_ok(struct suite *t, int r, const struct cm_error *err, const char *file, int line,
		    const char *what);
/* r is the code that is wanted, with a message. */
#define CHECK_CODE(t, r, err, want, what)                                                          \
	suite_check_code(t, r, &(err), want, __FILE__, __LINE__, what)
bool suite_check_code(struct suite *t, int r, const struct cm_error *err, int want,
		      const char *file, int line, const char *what);

/* --- calls, sessions ------------------------------------------------------------------------- */

/* A busy machine takes its time. Nothing sleeps so long: these are bounds of what does not end. */
#define SUITE_PATIENCE 4
/* As long as an operation of the suite may take. */
#define SUITE_MS (SUITE_PATIENCE * 30000)
struct cm_call suite_call(int ms);
int64_t suite_now(void);
void suite_sleep(int ms);
/* What a command that is to run for a while waits for in the shared session, and how it is told. */
#define UNTIL_TOLD "until [ -e /tmp/told ]; do sleep 0.05; done"
void suite_untell(struct suite *t);
void suite_tell(struct suite *t);
/* An error that is a mistake of ours: whoever meets it, the test that runs fails. */
void suite_note_bug(int code, const char *why);
/* NULL: there was none since the last call. */
const char *suite_take_bug(void);
/* A session name that nobody has. */
void suite_name(struct suite *t, char buf[64]);
/* One that any provider can make. The caller clears it. */
void suite_spec(const struct suite *t, const char *id, struct cm_spec *ret);
/* NULL, and it was said why. */
struct cm_session *suite_create(struct suite *t, const char *id);
/* The same of a spec, which is cleared; what it is said as. */
struct cm_session *suite_create_of(struct suite *t, struct cm_spec *spec, const char *what);
/* the same of one whose commands are root's */
struct cm_session *suite_create_root(struct suite *t, const char *id);
/* It is destroyed and let go; NULL is allowed. */
void suite_end(struct suite *t, struct cm_session *s);

/* What a request has of texts that nobody writes to. */
static inline char *const *suite_v(const char *const *v)
{
	return (char *const *)(uintptr_t)v;
}

/* --- commands -------------------------------------------------------------------------------- */

struct outcome {
	/* CM_OK: it has ended, and how is in end */
	int r;
	struct cm_error err;
	struct cm_exec_end end;
	struct cm_buf out;
	struct cm_buf errs;
	char name[CM_EXEC_NAME_SIZE];
	/* what was not as it has to be with any command */
	const char *wrong;
};
void outcome_clear(struct outcome *o);
/* From its start to its end. *o needs no initialisation. */
void suite_run(struct suite *t, struct cm_session *s, const struct cm_exec_request *request,
	       struct outcome *o);
/* sh -c TEXT, in the session that is shared */
void suite_sh(struct suite *t, const char *text, struct outcome *o);
/* The same of one that is no other's business: it has to end with 0, and prints. */
bool suite_sh_is(struct suite *t, struct cm_session *s, const char *text, const char *prints);
/* Follow a command to its end; *o is initialised. */
void suite_follow(struct cm_exec *e, int ms, struct outcome *o);
void outcome_init(struct outcome *o);
bool outcome_printed(const struct outcome *o, const char *out);
#define CHECK_PRINTED(t, o, text)                                                                  \
	CHECK(t, outcome_printed(o, text), "printed '%.200s', wanted '%.200s' (%s)",               \
	      (o)->out.data ? (o)->out.data : "", text, (o)->r < 0 ? (o)->err.msg : "")
#define CHECK_EXIT(t, o, code)                                                                     \
	CHECK(t, (o)->r == CM_OK && (o)->end.exit_code == (code) && !(o)->wrong,                   \
	      "exit code %d, wanted %d (%s; %.200s; %.200s)", (o)->end.exit_code, code,            \
	      (o)->wrong ? (o)->wrong : cm_error_name((o)->r), (o)->r < 0 ? (o)->err.msg : "",     \
	      (o)->errs.data ? (o)->errs.data : "")

/* --- files ----------------------------------------------------------------------------------- */

int suite_write(struct suite *t, const char *path, const char *text, uint32_t flags, uint32_t mode,
		struct cm_error *err);
/* For cm_session_read: appends to a struct cm_buf. */
int suite_take(void *data, const void *bytes, size_t len);
/* Appends what was read. */
int suite_read(struct suite *t, const char *path, struct cm_buf *out, struct cm_error *err);

/* --- the stand-in server --------------------------------------------------------------------- */

/* The body of the answer, or false: no 2xx. out may be NULL; else it is initialised. */
bool admin(struct suite *t, const char *method, const char *path, const char *body,
	   struct cm_buf *out);
/*
 * In place of the rules there were: requests that `match` meet the fault. times -1: for ever. params: the
 * rule's own members as JSON ("\"code\": 503"), or NULL.
 */
struct fault {
	/* by provider: NULL: it has no such requests */
	const char *e2b;
	const char *platform;
	const char *name;
	int times;
	int skip;
	const char *params;
};
bool fault_set(struct suite *t, const struct fault *f);
void fault_clear(struct suite *t);
/* A text that somebody may read has the service's key. */
bool suite_has_secret(const struct suite *t, const char *text);
/* Which of the two it is. */
bool is_e2b(const struct suite *t);
/* Sandboxes that cost money; -1: it could not be told. */
int n_sandboxes(struct suite *t);
/* How many requests the server has had, but for those of tests. */
int n_requests(struct suite *t);
/* How many requests were made whose "METHOD PATH" has this. */
int n_logged(struct suite *t, const char *text);

#endif
