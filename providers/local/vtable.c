/* SPDX-License-Identifier: Apache-2.0 */
/* Local sessions as a provider: the table; sessions found, made, started and ended. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "isolation/host/host.h"
#include "providers/local/vtable_internal.h"
#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

/* of a lock that somebody else has: looked for again that often, whoever gives up meanwhile */
#define LOCK_SLICE_MS 100
/* a keeper ends by itself within some seconds; one that does not is killed then */
#define STOP_MS 10000
/* a session that ends while it is joined is started, and that may meet the next one that ends */
#define N_ATTEMPTS 5

/* --- the provider -------------------------------------------------------------------------- */

static int lv_open(const struct cm_provider_config *config, struct cm_provider **ret,
		   struct cm_error *err)
{
	struct cm_provider *p = cm_calloc(1, sizeof(*p));

	(void)config;
	if (!p)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the provider");
	*ret = p;
	return CM_OK;
}

static void lv_close(struct cm_provider *p)
{
	free(p);
}

/* What a session would be refused for the lack of. */
static uint32_t missing(const struct cm_host *host)
{
	const struct cm_host_cgroup *cg = &host->cgroup;
	uint32_t controllers = cg->kind != CM_CGROUP_NONE ? cg->controllers : 0;
	uint32_t caps = 0;

	if ((controllers & CM_CG_MEMORY) == 0)
		caps |= CM_CAP_LIMIT_MEMORY;
	if ((controllers & CM_CG_CPU) == 0)
		caps |= CM_CAP_LIMIT_CPU;
	if ((controllers & CM_CG_PIDS) == 0)
		caps |= CM_CAP_LIMIT_PIDS;
	if (!host->is_root && (host->subids.uid_count == 0 || host->subids.gid_count == 0))
		caps |= CM_CAP_ROOT_USER;
	return caps;
}

static int lv_probe(struct cm_provider *p, const struct cm_call *call, uint32_t *ret_caps,
		    struct cm_error *err)
{
	struct cm_local *l = cm_malloc(sizeof(*l));
	int r;

	(void)call;
	if (!l)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory to look at this host");
	cm_local_init(l);
	r = cm_host_read(&p->config.config->env, &l->host, err);
	if (r == CM_OK)
		*ret_caps = p->ops->caps & ~missing(&l->host);
	cm_host_clear(&l->host);
	free(l);
	return r;
}

/* --- records ------------------------------------------------------------------------------- */

int cm_lv_store_open(const struct cm_provider *p, const char *root, struct cm_store *ret,
		     struct cm_error *err)
{
	const struct cm_strv *env = &p->config.config->env;
	CM_AUTO_FREE char *home = cm_host_home(env);

	if (!home)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the session");
	return cm_store_open(env, root, home, geteuid() == 0, ret, err);
}

static int open_record(const char *id, unsigned int flags, const struct cm_call *call,
		       struct cm_store *store, struct cm_store_session *ret, struct cm_error *err)
{
	struct cm_error why;
	int r;

	do {
		why = (struct cm_error)CM_ERROR_INIT;
		r = cm_store_session_open_as(store, id, flags | CM_STORE_ANY_ROOT,
					     cm_lv_deadline(call, LOCK_SLICE_MS), ret, &why);
	} while (r == CM_E_BUSY && cm_lv_call_check(call, &why) == CM_OK);
	if (r < 0 && err)
		*err = why;
	return r < 0 ? why.code : CM_OK;
}

int cm_lv_open(const struct cm_lv_session *s, unsigned int flags, const struct cm_call *call,
	       struct cm_store *store, struct cm_store_session *ret, struct cm_error *err)
{
	int r = cm_lv_store_open(s->base.provider, s->root, store, err);

	if (r < 0)
		return r;
	r = open_record(s->base.id, flags, call, store, ret, err);
	if (r < 0)
		cm_store_close(store);
	return r;
}

/* --- starting ------------------------------------------------------------------------------ */

static struct cm_local *new_local(struct cm_error *err)
{
	/* large, and not to be cleared as a whole */
	struct cm_local *l = cm_malloc(sizeof(*l));

	if (l)
		cm_local_init(l);
	else
		(void)cm_error_set(err, CM_E_NOMEM, 0, "no memory for the session");
	return l;
}

void cm_lv_leave(struct cm_local *l)
{
	if (!l)
		return;
	cm_local_close(l);
	free(l);
}

static struct cm_local_events events_of(const struct cm_provider *p, const struct cm_lv_call *c)
{
	return (struct cm_local_events){
		.note = p->config.note,
		.phase = p->config.phase,
		.data = p->config.data,
		.cancel_fd = c->fd,
	};
}

static int refuse_setup(const struct cm_local *l, struct cm_error *err)
{
	(void)cm_error_set(err, CM_E_UNSUPPORTED, 0,
			   "session '%s' has setup commands that did not run yet",
			   l->session.record.id);
	cm_error_hint(err,
		      "'casemate start %s' makes it with them; or run them as commands of the "
		      "session",
		      l->session.record.id);
	return CM_E_UNSUPPORTED;
}

/* Until it stands, and its record says so. */
static int await_jail(struct cm_local *l, struct cm_error *err)
{
	int r = CM_OK;

	if (!l->is_running)
		r = cm_local_wait_up(l, INT64_MAX, err);
	if (r == CM_OK && !l->is_running)
		r = cm_local_started(l, err);
	return r;
}

struct made {
	char id[sizeof(((struct cm_session *)0)->id)];
	bool is_new;
	bool was_running;
};

/* From the spec to a jail that stands, and let go of: who wants to use it connects. */
static int start(struct cm_local *l, const struct cm_provider *p, const struct cm_spec *spec,
		 const struct cm_lv_call *c, struct made *ret, struct cm_error *err)
{
	const struct cm_local_events events = events_of(p, c);
	int r = cm_local_open(l, spec, p->config.config, &events, err);

	if (r == CM_OK)
		r = cm_local_session(l, err);
	if (r < 0)
		return r;
	/* it is not stopped when this handle of it is let go */
	l->is_kept = false;
	(void)snprintf(ret->id, sizeof(ret->id), "%s", l->session.record.id);
	ret->is_new = l->is_new;
	ret->was_running = l->is_running;
	if (spec->setup.n > 0 && cm_local_needs_setup(l))
		return refuse_setup(l, err);
	r = cm_local_checkout(l, err);
	if (r == CM_OK)
		r = cm_local_start(l, err);
	if (r == CM_OK)
		r = await_jail(l, err);
	return r;
}

static int start_spec(const struct cm_provider *p, const struct cm_spec *spec, bool must_exist,
		      const struct cm_call *call, struct made *ret, struct cm_error *err)
{
	struct cm_local *l = new_local(err);
	struct cm_lv_call c;
	int r;

	if (!l)
		return CM_E_NOMEM;
	r = cm_lv_call_open(&c, call, err);
	if (r < 0) {
		free(l);
		return r;
	}
	l->must_exist = must_exist;
	l->keeps_env = !must_exist;
	r = start(l, p, spec, &c, ret, err);
	cm_lv_leave(l);
	r = cm_lv_call_result(&c, r, err);
	cm_lv_call_close(&c);
	return r;
}

/* What a session that exists is asked for: nothing but itself. */
static int spec_of(const struct cm_lv_session *s, struct cm_spec *ret, struct cm_error *err)
{
	cm_spec_init(ret);
	ret->session_id = cm_strdup(s->base.id);
	ret->root = cm_strdup(s->root);
	if (ret->session_id && (ret->root || !s->root))
		return CM_OK;
	cm_spec_clear(ret);
	return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the session");
}

int cm_lv_spec_for(const struct cm_lv_session *s, const struct cm_lv_want *want,
		   struct cm_spec *ret, struct cm_error *err)
{
	int r = spec_of(s, ret, err);

	if (r < 0)
		return r;
	r = cm_strv_add_all(&ret->env, want->env);
	if (want->cwd) {
		ret->workdir = cm_strdup(want->cwd);
		r = ret->workdir ? r : CM_E_NOMEM;
	}
	return r < 0 ? cm_error_set(err, r, 0, "no memory for the command") : CM_OK;
}

/* *ret is NULL where it does not run. */
static int join(const struct cm_lv_session *s, const struct cm_spec *spec,
		const struct cm_lv_call *c, struct cm_local **ret, struct cm_error *err)
{
	const struct cm_local_events events = events_of(s->base.provider, c);
	struct cm_local *l = new_local(err);
	int r;

	*ret = NULL;
	if (!l)
		return CM_E_NOMEM;
	r = cm_local_join(l, spec, s->base.provider->config.config, &events, err);
	if (r == CM_OK && l->is_running)
		r = cm_local_greeted(l, err);
	if (r == CM_OK && l->is_running)
		*ret = l;
	else
		cm_lv_leave(l);
	return r;
}

static int reach(struct cm_lv_session *s, const struct cm_spec *spec, const struct cm_call *call,
		 const struct cm_lv_call *c, struct cm_local **ret, struct cm_error *err)
{
	struct cm_spec plain;
	struct made made;
	int r = spec_of(s, &plain, err);

	if (r < 0)
		return r;
	*ret = NULL;
	for (int i = 0; i < N_ATTEMPTS && r == CM_OK && !*ret; i++) {
		r = join(s, spec, c, ret, err);
		if (r == CM_OK && !*ret)
			r = start_spec(s->base.provider, &plain, true, call, &made, err);
	}
	cm_spec_clear(&plain);
	if (r == CM_OK && !*ret)
		r = cm_error_set(err, CM_E_BUSY, 0, "session '%s' ends as soon as it is started",
				 s->base.id);
	return r;
}

int cm_lv_reach(struct cm_lv_session *s, const struct cm_lv_want *want, const struct cm_call *call,
		struct cm_local **ret, struct cm_error *err)
{
	struct cm_lv_call c;
	struct cm_spec spec;
	int r = cm_lv_spec_for(s, want, &spec, err);

	if (r == CM_OK) {
		r = cm_lv_call_open(&c, call, err);
		if (r == CM_OK) {
			r = reach(s, &spec, call, &c, ret, err);
			cm_lv_call_close(&c);
		}
	}
	cm_spec_clear(&spec);
	return r;
}

/* --- sessions ------------------------------------------------------------------------------ */

static int new_session(struct cm_provider *p, const char *id, const char *root,
		       struct cm_session **ret, struct cm_error *err)
{
	struct cm_lv_session *s = cm_calloc(1, sizeof(*s));

	if (s)
		s->root = cm_strdup(root);
	if (!s || (root && !s->root)) {
		free(s);
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the session");
	}
	s->base.provider = p;
	(void)snprintf(s->base.id, sizeof(s->base.id), "%s", id);
	*ret = &s->base;
	return CM_OK;
}

static void lv_release(struct cm_session *session)
{
	struct cm_lv_session *s = (struct cm_lv_session *)session;

	cm_lv_forget_kept(s);
	free(s->root);
	free(s);
}

int cm_local_session_of(struct cm_provider *p, const struct cm_local_reached *reached,
			struct cm_session **ret, struct cm_error *err)
{
	struct cm_session *s = NULL;
	int r = new_session(p, reached->id, NULL, &s, err);

	if (r < 0 || !s)
		return r;
	s->was_running = true;
	((struct cm_lv_session *)s)->reached = reached;
	*ret = s;
	return CM_OK;
}

static int lv_create(struct cm_provider *p, const struct cm_spec *asked, const struct cm_call *call,
		     struct cm_session **ret, struct cm_error *err)
{
	struct cm_session *session = NULL;
	struct made made = { .id = "" };
	struct cm_spec spec;
	int r = cm_spec_copy(&spec, asked);

	if (r < 0)
		return cm_error_set(err, r, 0, "no memory for the session");
	spec.is_kept = !spec.session_id;
	r = start_spec(p, &spec, false, call, &made, err);
	if (r == CM_OK)
		r = new_session(p, made.id, spec.root, &session, err);
	cm_spec_clear(&spec);
	if (r < 0 || !session)
		return r;
	session->is_new = made.is_new;
	session->was_running = made.was_running;
	*ret = session;
	return CM_OK;
}

static int lv_attach(struct cm_provider *p, const char *id, const struct cm_call *call,
		     struct cm_session **ret, struct cm_error *err)
{
	struct cm_store_session record;
	struct cm_store store;
	int r = cm_lv_store_open(p, NULL, &store, err);

	if (r < 0)
		return r;
	r = open_record(id, 0, call, &store, &record, err);
	if (r == CM_OK) {
		r = record.record.is_temporary
			    ? cm_error_set(err, CM_E_UNSUPPORTED, 0,
					   "session '%s' is temporary, and its client's alone", id)
			    : new_session(p, id, record.record.root, ret, err);
		if (r == CM_OK)
			(*ret)->was_running = cm_store_keeper_alive(&record);
		cm_store_session_close(&record);
	}
	cm_store_close(&store);
	return r;
}

static int lv_start(struct cm_session *session, const struct cm_call *call, struct cm_error *err)
{
	struct cm_lv_session *s = (struct cm_lv_session *)session;
	struct cm_spec spec;
	struct made made;
	int r = spec_of(s, &spec, err);

	if (r < 0)
		return r;
	r = start_spec(session->provider, &spec, true, call, &made, err);
	cm_spec_clear(&spec);
	return r;
}

static void note(const struct cm_provider *p, const char *text)
{
	if (p->config.note && text)
		p->config.note(p->config.data, text);
}

static int stop_record(const struct cm_lv_session *s, struct cm_store_session *record,
		       const struct cm_call *call, struct cm_error *err)
{
	const struct cm_provider *p = s->base.provider;
	CM_AUTO_FREE char *text = NULL;
	int r;

	if (!cm_store_keeper_alive(record))
		return CM_OK;
	if (record->record.teardown_json)
		note(p, "the session's teardown commands do not run: 'casemate stop' runs them");
	r = cm_local_stop(record, cm_lv_deadline(call, STOP_MS), err);
	if (r != CM_LOCAL_KILLED)
		return r;
	text = cm_asprintf("session '%s' did not stop when asked to; its keeper was killed",
			   s->base.id);
	note(p, text);
	return CM_OK;
}

static int lv_stop(struct cm_session *session, const struct cm_call *call, struct cm_error *err)
{
	struct cm_lv_session *s = (struct cm_lv_session *)session;
	struct cm_store_session record;
	struct cm_store store;
	int r;

	cm_lv_forget_kept(s);
	r = cm_lv_open(s, CM_STORE_CHANGE | CM_STORE_DAMAGED, call, &store, &record, err);
	if (r < 0)
		return r;
	r = stop_record(s, &record, call, err);
	cm_store_session_close(&record);
	cm_store_close(&store);
	return r;
}

static int destroy(struct cm_lv_session *s, const struct cm_call *call, struct cm_error *err)
{
	const unsigned int flags = CM_STORE_CHANGE | CM_STORE_DAMAGED | CM_STORE_KEPT;
	struct cm_store_session record;
	struct cm_store store;
	int r;

	cm_lv_forget_kept(s);
	r = cm_lv_open(s, flags, call, &store, &record, err);
	if (r < 0)
		return r;
	r = stop_record(s, &record, call, err);
	if (r == CM_OK)
		r = cm_local_remove(&store, &record, true, s->base.provider->config.config, err);
	if (r < 0 && record.is_revived)
		(void)cm_store_session_remove(&store, &record, false, NULL);
	cm_store_session_close(&record);
	cm_store_kept_collect(&store);
	(void)cm_store_collect_slots(&store, NULL);
	cm_store_close(&store);
	return r;
}

static int lv_destroy(struct cm_session *session, const struct cm_call *call, struct cm_error *err)
{
	struct cm_error why = CM_ERROR_INIT;
	int r = destroy((struct cm_lv_session *)session, call, &why);

	if (r == CM_E_NOT_FOUND)
		return CM_OK;
	if (r < 0 && err)
		*err = why;
	return r;
}

const struct cm_provider_ops cm_local_ops = {
	.abi = CM_PROVIDER_ABI,
	.name = "local",
	.caps = CM_CAP_NETWORK_NONE | CM_CAP_NETWORK_HOST | CM_CAP_LIMIT_MEMORY | CM_CAP_LIMIT_CPU |
		CM_CAP_LIMIT_PIDS | CM_CAP_LIMIT_FILES | CM_CAP_LIMIT_TIME | CM_CAP_LIMIT_SESSIONS |
		CM_CAP_EXEC_TIMEOUT | CM_CAP_HOST_FILES | CM_CAP_ROOTFS | CM_CAP_GIT_PINNED |
		CM_CAP_LEVEL | CM_CAP_RETENTION | CM_CAP_ROOT_USER | CM_CAP_STDIN | CM_CAP_TTY |
		CM_CAP_SIGNAL | CM_CAP_DETACH | CM_CAP_FILES | CM_CAP_AS_USER | CM_CAP_WATCH |
		CM_CAP_LABELS | CM_CAP_CHECKOUT,
	.open = lv_open,
	.close = lv_close,
	.probe = lv_probe,
	.session_create = lv_create,
	.session_attach = lv_attach,
	.session_start = lv_start,
	.session_stop = lv_stop,
	.session_destroy = lv_destroy,
	.session_release = lv_release,
	.session_info = cm_lv_info,
	.session_list = cm_lv_list,
	.exec_start = cm_lv_exec_start,
	.exec_attach = cm_lv_exec_attach,
	.exec_list = cm_lv_exec_list,
	.file_read = cm_lv_file_read,
	.file_write = cm_lv_file_write,
	.file_list = cm_lv_file_list,
	.file_stat = cm_lv_file_stat,
	.file_mkdir = cm_lv_file_mkdir,
	.file_move = cm_lv_file_move,
	.file_remove = cm_lv_file_remove,
	.file_paths = cm_lv_file_paths,
	.file_watch = cm_lv_file_watch,
};
