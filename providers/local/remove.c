/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a session's state and files, and of control groups that nobody looks after.
 *
 * A session with root inside leaves files of subordinate ids, which the user who owns the session
 * cannot remove. They are given back to the user from inside a jail that has those ids, and then
 * removed as any others: the host never walks such a tree with more rights than the user's.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "isolation/host/node.h"
#include "providers/local/groups.h"
#include "providers/local/inside.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"

static int spec_of_root(const char *dir, struct cm_spec *spec, struct cm_error *err)
{
	cm_spec_init(spec);
	spec->workspace_kind = CM_WORKSPACE_DIR;
	spec->workspace = cm_strdup(dir);
	spec->network = CM_NETWORK_NONE;
	spec->user = CM_USER_ROOT;
	spec->git = CM_GIT_RW;
	if (!spec->workspace)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the session");
	return CM_OK;
}

/* dir is the workspace, home is mounted beside it; both become the user's, whoever owns what. */
static int chown_inside(struct cm_local *l, const char *dir, char *home, struct cm_error *err)
{
	char owner[32];
	char *const argv[] = { (char *)(uintptr_t) "/bin/chown",
			       (char *)(uintptr_t) "-hR",
			       owner,
			       (char *)(uintptr_t) "--",
			       (char *)(uintptr_t)dir,
			       home,
			       NULL };
	const struct cm_local_plan extra = { .mounts = { { home, home, CM_OPF_WRITABLE } },
					     .n_mounts = 1 };
	struct cm_local_program chown = { .argv = argv, .flags = CM_EXECF_LAST };
	int r;

	(void)snprintf(owner, sizeof(owner), "%u:%u", CM_ID_AGENT, CM_ID_AGENT);
	cm_buf_init(&chown.out, 65536);
	cm_buf_init(&chown.err, 65536);
	r = cm_local_task_open(l, &l->spec, dir, home ? &extra : NULL, err);
	if (r == CM_OK)
		r = cm_local_inside(l, &chown, err);
	cm_local_task_close(l);
	cm_buf_clear(&chown.out);
	cm_buf_clear(&chown.err);
	if (r == CM_OK && (chown.end.kind != CM_END_EXIT || chown.end.status != 0))
		r = cm_error_set(err, CM_E_DENIED, 0, "cannot give the files below '%s' back", dir);
	return r;
}

static int give_back(struct cm_store_session *s, const struct cm_config *config,
		     struct cm_error *err)
{
	const struct cm_local_events silent = { NULL, NULL, NULL };
	CM_AUTO_FREE char *home = NULL;
	struct cm_local l;
	struct cm_spec spec;
	int r = spec_of_root(s->session_dir, &spec, err);

	cm_local_init(&l);
	if (r == CM_OK)
		r = cm_local_open(&l, &spec, config, &silent, err);
	if (r == CM_OK) {
		/* lent: cm_local_close leaves alone what has_session does not claim */
		l.session = *s;
		if (!s->record.is_temporary)
			home = cm_path_join(s->dir, CM_STORE_HOME);
		r = chown_inside(&l, s->session_dir, home, err);
		memset(&l.session, 0, sizeof(l.session));
	}
	cm_local_close(&l);
	cm_spec_clear(&spec);
	return r;
}

int cm_local_remove(struct cm_store *store, struct cm_store_session *s, bool with_files,
		    const struct cm_config *config, struct cm_error *err)
{
	struct cm_error denied = CM_ERROR_INIT;
	/* the state is what knows of them */
	int r = cm_local_collect_left(s, err);

	if (r < 0)
		return r;
	r = cm_store_session_remove(store, s, with_files, &denied);

	if (r == CM_E_DENIED && s->record.user == CM_USER_ROOT && geteuid() != 0) {
		r = give_back(s, config, err);
		return r < 0 ? r : cm_store_session_remove(store, s, with_files, err);
	}
	if (r < 0 && err)
		*err = denied;
	return r;
}

void cm_local_forget_groups(struct cm_local *l)
{
	if (l->summary.cgroup_controllers != 0)
		(void)unlinkat(l->session.dir_fd, CM_STORE_GROUPS, 0);
}

void cm_local_drop_groups(struct cm_local *l)
{
	if (l->has_session && l->is_temporary)
		cm_local_forget_groups(l);
}

/* Where none was made, or all went with the last of them, nobody is needed to remove them. */
static bool is_any_there(const struct cm_groups *g)
{
	const char *dir = g->base;
	char path[PATH_MAX];
	struct stat st;

	while (g->kind != CM_CGROUP_NONE && *dir != '\0') {
		int n = (int)strcspn(dir, "\n");

		if (n > 0 && (snprintf(path, sizeof(path), "%.*s/cm-%s", n, dir, g->session_id) >=
				      (int)sizeof(path) ||
			      lstat(path, &st) == 0 || errno != ENOENT))
			return true;
		dir += n;
		dir += *dir == '\n';
	}
	return false;
}

/* As much of a plan as names the groups. */
static int make_plan(const struct cm_groups *g, struct cm_buf *plan)
{
	struct cm_plan_builder *b = cm_malloc(sizeof(*b));
	int r;

	if (!b)
		return CM_E_NOMEM;
	cm_buf_init(plan, CM_GROUPS_MAX + 64UL * 1024);
	cm_plan_builder_init(b);
	b->header.flags = CM_PLANF_TEMPORARY;
	b->header.idmap = CM_IDMAP_SLOT;
	b->header.uid_base = b->header.gid_base = CM_ID_SLOT_BASE;
	b->header.seccomp = CM_SECCOMP_DEFAULT;
	b->header.cgroup = g->kind;
	b->header.cgroup_controllers = (1U << CM_CG_N) - 1;
	b->header.session_id = cm_plan_builder_str(b, g->session_id);
	b->header.cgroup_base = cm_plan_builder_str(b, g->base);
	r = cm_plan_builder_finish(b, plan, NULL);
	cm_plan_builder_clear(b);
	free(b);
	return r;
}

/* A keeper does it: it is what has the rights, and what knows how to end what is in them. */
static int remove_groups(const struct cm_groups *g, struct cm_error *err)
{
	const struct cm_jail_start start = { .is_temporary = true, .is_collect = true };
	CM_AUTO_BUF struct cm_buf plan = { 0 };
	struct cm_jail jail;
	int r = make_plan(g, &plan);

	if (r < 0)
		return r;
	cm_jail_init(&jail);
	r = cm_jail_spawn(&jail, &start, err);
	if (r == CM_OK)
		r = cm_jail_plan(&jail, plan.data, plan.len, err);
	/* killed like the one before it, or something still runs there: the next one will do it */
	(void)cm_jail_close(&jail);
	if (r == CM_OK && (!WIFEXITED(jail.wait_status) || WEXITSTATUS(jail.wait_status) != 0))
		r = -EBUSY;
	return r;
}

static int collect_groups(int dir_fd, const struct cm_groups *g, struct cm_error *err)
{
	int r = is_any_there(g) ? remove_groups(g, err) : 0;

	if (r == 0)
		(void)unlinkat(dir_fd, CM_STORE_GROUPS, 0);
	return r;
}

/*
 * A keeper that ends by itself says so last, when its groups are gone: that of a lasting session in
 * the end record, that of any other jail to its client, who then forgets them.
 */
static bool was_killed(const struct cm_store_session *s, const struct cm_groups *g)
{
	struct cm_end_record end = { 0 };

	return g->is_temporary || cm_store_read_end(s, &end) != CM_OK ||
	       end.generation != s->record.generation;
}

int cm_local_collect_left(const struct cm_store_session *s, struct cm_error *err)
{
	struct cm_error why = CM_ERROR_INIT;
	struct cm_groups g;
	int r = cm_groups_load(s->dir_fd, &g);

	if (r == -ENOENT)
		return CM_OK;
	if (r == 0 && was_killed(s, &g))
		r = collect_groups(s->dir_fd, &g, &why);
	cm_groups_clear(&g);
	if (r == 0)
		return CM_OK;
	cm_error_set(err, CM_E_BUSY, 0, "cannot remove the control groups of session '%s'%s%s",
		     s->record.id, why.msg[0] != '\0' ? ": " : "", why.msg);
	if (why.hint[0] != '\0')
		cm_error_hint(err, "%s", why.hint);
	else
		cm_error_hint(err, "casemate rm %s tries again", s->record.id);
	return CM_E_BUSY;
}

/* For cm_store_collect: dir is the state directory of a session whose client is dead. */
int cm_local_collect_group(const char *dir, void *data)
{
	CM_AUTO_FD int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct cm_groups g;
	int r;

	(void)data;
	if (dir_fd < 0)
		return -errno;
	r = cm_groups_load(dir_fd, &g);
	/* nothing that could be removed is no reason for the session's directory to stay */
	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = collect_groups(dir_fd, &g, NULL);
	cm_groups_clear(&g);
	return r;
}
