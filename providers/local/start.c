/* SPDX-License-Identifier: Apache-2.0 */
/* The jail of a session: started, or found running. */
#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "providers/local/local_internal.h"
#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/json_write.h"

#define CONNECT_WAIT_MS 10000
#define POLL_NS 2000000L
#define MARKER_DIR "/.mastra-sandbox"

const char *cm_local_work_dir(const struct cm_local *l)
{
	switch (l->spec.workspace_kind) {
	case CM_WORKSPACE_REPO:
		return l->session.record.checkout;
	case CM_WORKSPACE_DIR:
		return l->spec.workspace;
	case CM_WORKSPACE_NONE:
		return l->session.session_dir;
	case CM_WORKSPACE_DEFAULT:
		break;
	}
	return l->spec.session_id ? l->session.session_dir : NULL;
}

static bool needs_session_dir(const struct cm_local *l)
{
	return cm_local_work_dir(l) == l->session.session_dir ||
	       l->spec.workspace_kind == CM_WORKSPACE_REPO;
}

/* Beside the checkout, so that what looks for Mastra's marker finds it where it always was. */
static int make_marker_dir(const struct cm_local *l, const char *path, struct cm_error *err)
{
	uint32_t owner = l->session.record.agent_id;

	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return cm_error_set(err, CM_E_SYS, errno, "cannot make '%s'", path);
	if (owner != 0 && lchown(path, owner, owner) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot give away '%s'", path);
	return CM_OK;
}

/* Borrowed by a spec of which nothing is freed but this. */
static struct cm_volume *volumes_there(const struct cm_spec *spec, size_t *ret_n)
{
	struct cm_volume *there = cm_calloc(spec->n_volumes + 1, sizeof(*there));
	struct stat st;

	*ret_n = 0;
	for (size_t i = 0; there && i < spec->n_volumes; i++) {
		if (stat(spec->volumes[i].src, &st) == 0)
			there[(*ret_n)++] = spec->volumes[i];
	}
	return there;
}

/*
 * Of a temporary session the whole spec was, by who read it, and the keeper may know of it by now; but
 * not by the file of a repository that was not there then.
 */
static int bound(struct cm_local *l, struct cm_error *err)
{
	if (l->is_temporary && l->spec.workspace_kind != CM_WORKSPACE_REPO)
		return CM_OK;
	return cm_local_bound(l, err);
}

static int connect_running(struct cm_local *l, struct cm_error *err)
{
	int64_t deadline = cm_clock_mono_ms() + CONNECT_WAIT_MS;
	struct cm_spec spec;
	int r = cm_local_check_bounds(l, err);

	if (r < 0)
		return r;
	spec = l->spec;
	/* the jail has its volumes, also those whose source is gone by now */
	spec.volumes = volumes_there(&l->spec, &spec.n_volumes);
	if (!spec.volumes)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the session");
	/* facts and environment as a start would have them; the plan is the running jail's */
	r = cm_local_plan_make(l, &spec, cm_local_work_dir(l), false, NULL, NULL, err);
	free(spec.volumes);
	if (r < 0)
		return r;
	/* a keeper of another version refuses, and says what to do */
	return cm_jail_connect(&l->jail, l->session.socket_path, l->session.record.id, deadline,
			       err);
}

/*
 * A keeper that dies or stops while it is greeted was not running after all: the session starts
 * again, as soon as that keeper is gone. Nothing was asked of it, so nothing happens twice.
 */
static int join_running(struct cm_local *l, struct cm_error *err)
{
	const struct timespec pause = { .tv_nsec = POLL_NS };
	int64_t deadline = cm_clock_mono_ms() + CONNECT_WAIT_MS;
	int r = connect_running(l, err);

	if (r != CM_E_NOT_FOUND)
		return r;
	while (cm_store_keeper_alive(&l->session)) {
		if (cm_clock_mono_ms() >= deadline) {
			cm_error_hint(err,
				      "its keeper lives, but does not listen at '%s': end it "
				      "(look for 'casemate-keeper' in the process list)",
				      l->session.socket_path);
			return r;
		}
		(void)nanosleep(&pause, NULL);
	}
	if (err)
		*err = (struct cm_error)CM_ERROR_INIT;
	l->is_running = false;
	return CM_OK;
}

int cm_local_make_session_dir(struct cm_local *l, struct cm_error *err)
{
	/* before: half a directory has to go as well */
	l->has_session_dir = true;
	return cm_store_session_dir_make(&l->store, &l->session, err);
}

static int spawn(struct cm_local *l, struct cm_error *err)
{
	struct cm_jail_start start = { .is_temporary = l->is_temporary };

	if (l->host.cgroup.needs_scope && l->summary.cgroup_controllers != 0)
		start.scope_id = l->session.record.id;
	return cm_jail_spawn(&l->jail, &start, err);
}

/* Where cgroup v2 is what there is, init may have to be born into a group: see cm_host_cgroup. A
 * quick look; what it misses cm_local_open finds. */
static bool is_cgroup_v2(void)
{
	struct statfs fs;

	return statfs("/sys/fs/cgroup", &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC;
}

int cm_local_spawn_ahead(struct cm_local *l, struct cm_error *err)
{
	const struct cm_jail_start start = { .is_temporary = true };
	int r;

	/* a lasting session may run already; a checkout's jail comes before its session's */
	if (l->spec.session_id || l->spec.is_kept || l->spec.workspace_kind == CM_WORKSPACE_REPO ||
	    is_cgroup_v2())
		return CM_OK;
	r = cm_jail_spawn(&l->jail, &start, err);
	return r < 0 ? r : cm_jail_ahead(&l->jail, l->spec.network != CM_NETWORK_HOST, err);
}

static int hand_over(struct cm_local *l, const struct cm_buf *plan, struct cm_error *err)
{
	int r = CM_OK;

	/* before the keeper can make a group; from a part of it, it may have made one already */
	if (!l->jail.is_ahead)
		r = cm_local_keep_groups(l, plan);
	if (r < 0)
		return cm_local_write_failed(l, -r, err);
	/* nor may a keeper run under a generation that nobody remembers: ids come from it */
	if (!l->is_temporary)
		r = cm_local_record_start(&l->spec, &l->session.record, err);
	if (r == CM_OK && !l->is_temporary)
		r = cm_store_session_save(&l->session, false, err);
	if (r == CM_OK && !l->jail.is_ahead)
		r = spawn(l, err);
	/* a plan that nobody got made no group */
	if (r < 0 && l->is_new)
		cm_local_forget_groups(l);
	return r < 0 ? r : cm_jail_plan(&l->jail, plan->data, plan->len, err);
}

int cm_local_mount_own(struct cm_local *l, struct cm_local_plan *extra, char **ret_marker,
		       struct cm_error *err)
{
	CM_AUTO_FREE char *marker = NULL;
	int r = needs_session_dir(l) ? cm_local_make_session_dir(l, err) : CM_OK;

	if (r < 0 || l->spec.workspace_kind != CM_WORKSPACE_REPO)
		return r;
	marker = cm_asprintf("%s" MARKER_DIR, l->session.session_dir);
	if (!marker)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the session");
	r = make_marker_dir(l, marker, err);
	if (r < 0)
		return r;
	extra->mounts[extra->n_mounts++] =
		(struct cm_local_mount){ marker, marker, CM_OPF_WRITABLE };
	*ret_marker = cm_ptr_take(&marker);
	return CM_OK;
}

int cm_local_start(struct cm_local *l, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf plan = { 0 };
	CM_AUTO_FREE char *marker = NULL;
	struct cm_local_plan extra = { .ready = hand_over };
	int r = CM_OK;

	if (l->is_running) {
		r = join_running(l, err);
		if (r < 0 || l->is_running)
			return r;
	}
	r = bound(l, err);
	if (r == CM_OK && !l->is_temporary)
		r = cm_local_cap(l, err);
	if (r == CM_OK)
		r = cm_local_mount_own(l, &extra, &marker, err);
	if (r < 0)
		return r;
	l->session.record.generation++;
	cm_buf_init(&plan, 16UL * 1024 * 1024);
	return cm_local_plan_make(l, &l->spec, cm_local_work_dir(l), l->is_temporary, &extra, &plan,
				  err);
}

const char *cm_local_marker_dir(const struct cm_local *l)
{
	return l->spec.workspace_kind == CM_WORKSPACE_REPO ? l->session.session_dir : NULL;
}

/* For each limit what enforces it, as `inspect` shows it. */
static char *enforced_text(const struct cm_local *l)
{
	static const struct {
		const char *name;
		uint32_t bit;
	} groups[] = {
		{ "memory", CM_CG_MEMORY }, { "swap", CM_CG_SWAP },	{ "pids", CM_CG_PIDS },
		{ "cpus", CM_CG_CPU },	    { "cpuset", CM_CG_CPUSET },
	};
	const struct cm_rec_up *up = &l->jail.up;
	const char *kind = (up->flags & CM_UPF_CGROUP_V2) != 0 ? "cgroup v2" : "cgroup v1";
	CM_AUTO_BUF struct cm_buf out = { 0 };
	struct cm_json_writer w;

	cm_buf_init(&out, 4096);
	cm_jw_init(&w, &out, false);
	cm_jw_object(&w);
	for (size_t i = 0; i < CM_ARRAY_SIZE(groups); i++)
		cm_jw_kstring(&w, groups[i].name,
			      (up->enforced & groups[i].bit) != 0 ? kind : "not limited");
	cm_jw_kstring(&w, "openFiles", "rlimit");
	cm_jw_end_object(&w);
	return cm_buf_take(&out);
}

int cm_local_started(struct cm_local *l, struct cm_error *err)
{
	struct cm_session_record *record = &l->session.record;
	int r = CM_OK;

	/* its keeper has the session's lock */
	cm_local_uncap(l);
	l->is_new = false;
	if (l->is_temporary)
		return CM_OK;
	if (!l->is_running) {
		free(record->level);
		free(record->enforced_json);
		record->level = cm_strdup(l->summary.level);
		record->enforced_json = enforced_text(l);
		if (l->plan_text.len > 0)
			(void)cm_replace_file_at(l->session.dir_fd, CM_STORE_PLAN_TEXT,
						 l->plan_text.data, l->plan_text.len, 0600, false);
		r = cm_local_env_write(l, err);
	}
	if (r == CM_OK && !l->is_running)
		r = cm_store_session_save(&l->session, false, err);
	return r;
}

void cm_local_unlock(struct cm_local *l)
{
	/* a temporary session's lock is its sign of life */
	if (l->has_session && !l->is_temporary)
		cm_fd_close(&l->session.lock_fd);
}
