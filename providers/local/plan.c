/* SPDX-License-Identifier: Apache-2.0 */
/* From a session to its plan: facts gathered, refusals checked, the planner called. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "isolation/host/node.h"
#include "providers/local/local_internal.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"

uint32_t cm_local_slot_base(uint32_t slot)
{
	return CM_ID_SLOT_BASE + slot * CM_ID_SLOT_SIZE;
}

struct facts {
	struct cm_tree_facts tree;
	struct cm_git_identity git;
	struct cm_nodes volumes;
};

static void clear_facts(struct facts *facts)
{
	cm_tree_facts_clear(&facts->tree);
	cm_strv_clear(&facts->git.settings);
	cm_nodes_clear(&facts->volumes);
}

static int read_volumes(const struct cm_spec *spec, struct cm_nodes *volumes, struct cm_error *err)
{
	int r = CM_OK;

	if (spec->n_volumes == 0)
		return CM_OK;
	volumes->v = cm_calloc(spec->n_volumes, sizeof(*volumes->v));
	if (!volumes->v)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the volumes");
	for (size_t i = 0; i < spec->n_volumes && r == CM_OK; i++) {
		r = cm_node_read(spec->volumes[i].src, &volumes->v[i], err);
		volumes->n += r == CM_OK;
	}
	return r;
}

/* As the caller spells it: a shell that went through a symbolic link says so in PWD. */
static const char *spelled_cwd(const struct cm_config *config)
{
	const char *pwd = cm_strv_env_get(&config->env, "PWD");
	struct stat named;
	struct stat dot;

	if (pwd && pwd[0] == '/' && stat(pwd, &named) == 0 && stat(".", &dot) == 0 &&
	    named.st_dev == dot.st_dev && named.st_ino == dot.st_ino)
		return pwd;
	return config->cwd;
}

static int read_workspace(struct cm_local *l, const struct cm_spec *spec, const char *dir,
			  struct cm_error *err)
{
	const char *cwd = spelled_cwd(l->config);
	int r;

	cm_workspace_facts_clear(&l->workspace);
	r = cm_workspace_facts_read(spec, dir, cwd, &l->workspace, err);
	if (r < 0 || !l->workspace.path)
		return r;
	/* what is not protected is said to everybody */
	for (size_t i = 0; i < l->workspace.notes.n; i++)
		cm_local_note(l, l->workspace.notes.v[i]);
	return CM_OK;
}

/* Nothing runs in a jail before what is mounted in it was looked at. */
static int check_refusals(struct cm_local *l, const struct facts *facts, struct cm_error *err)
{
	int r = cm_local_read_refusals(l, err);

	if (r == CM_OK && l->workspace.path)
		r = cm_refusals_check(&l->refusals, l->workspace.path, "a workspace",
				      l->session.session_dir, err);
	for (size_t i = 0; i < facts->volumes.n && r == CM_OK; i++)
		r = cm_refusals_check(&l->refusals, facts->volumes.v[i].path, "a volume", NULL,
				      err);
	return r;
}

static int read_facts(struct cm_local *l, const struct cm_spec *spec, const char *dir,
		      struct facts *facts, struct cm_error *err)
{
	int r = read_workspace(l, spec, dir, err);

	if (r == CM_OK)
		r = read_volumes(spec, &facts->volumes, err);
	if (r == CM_OK)
		r = cm_tree_facts_read_user(&l->host, &l->config->env, &facts->tree, err);
	if (r == CM_OK)
		r = cm_git_identity_read(&l->host, &l->config->env, &facts->git, err);
	for (size_t i = 0; r == CM_OK && i < facts->tree.notes.n && l->spec.is_verbose; i++)
		cm_local_note(l, facts->tree.notes.v[i]);
	return r;
}

static void add_mounts(struct cm_plan_builder *b, const struct cm_local_plan *extra)
{
	for (size_t i = 0; extra && i < extra->n_mounts; i++) {
		struct cm_plan_op *op = cm_plan_builder_op(b, CM_OP_BIND);

		op->source = cm_plan_builder_str(b, extra->mounts[i].source);
		op->target = cm_plan_builder_str(b, extra->mounts[i].target);
		op->flags = extra->mounts[i].flags;
	}
}

static void fill_request(const struct cm_local *l, const struct cm_spec *spec,
			 const struct facts *facts, bool is_temporary, bool has_home,
			 struct cm_plan_request *req, char **own_home, char **own_tmp)
{
	const struct cm_session_record *record = &l->session.record;
	CM_AUTO_FREE char *real = NULL;

	memset(req, 0, sizeof(*req));
	req->spec = spec;
	req->host = &l->host;
	req->tree = &facts->tree;
	req->workspace = &l->workspace;
	req->git = &facts->git;
	req->volumes = &facts->volumes;
	req->session_id = record->id;
	req->is_temporary = is_temporary;
	if (record->slot != CM_SLOT_NONE)
		req->slot_base = cm_local_slot_base(record->slot);
	req->generation = record->generation;
	if (is_temporary && !has_home)
		return;
	/* without a link on the way: who mounts them follows none */
	real = cm_fd_real_path(l->session.dir_fd);
	*own_home = cm_path_join(real ? real : l->session.dir, CM_STORE_HOME);
	*own_tmp = cm_path_join(real ? real : l->session.dir, CM_STORE_HOME_TMP);
	req->home_dir = *own_home;
	req->tmp_dir = *own_tmp;
	if (is_temporary)
		return;
	req->socket_path = l->session.socket_path;
	req->state_dir = l->session.dir;
}

static void tell_lines(struct cm_local *l, char *lines)
{
	char *save = NULL;

	for (char *line = strtok_r(lines, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		cm_local_note(l, line);
	/* another plan may follow */
	lines[0] = '\0';
}

static void tell_notes(struct cm_local *l)
{
	tell_lines(l, l->summary.warnings);
	if (l->spec.is_verbose)
		tell_lines(l, l->summary.notes);
}

/* What people may look at: with all that the skeleton has. */
static int print_plan(struct cm_local *l, struct cm_plan_builder *b, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf flat = { 0 };
	struct cm_plan plan;
	int r;

	cm_buf_init(&flat, 16UL * 1024 * 1024);
	r = cm_plan_builder_finish(b, &flat, err);
	if (r == CM_OK)
		r = cm_plan_check(flat.data, flat.len, &plan, err);
	if (r == CM_OK) {
		cm_buf_clear(&l->plan_text);
		cm_plan_print(&plan, &l->plan_text);
	}
	return r;
}

/* What a plan is made with; too large for the stack. */
struct workshop {
	struct cm_local *l;
	struct facts facts;
	struct cm_plan_request req;
	struct cm_plan_builder builder;
	struct cm_skeleton skeleton;
	char *home;
	char *tmp;
};

static void close_workshop(struct workshop *w)
{
	cm_plan_builder_clear(&w->builder);
	clear_facts(&w->facts);
	free(w->home);
	free(w->tmp);
	free(w);
}

/*
 * To a keeper that was started ahead: what is known of the plan before the workspace and the user's
 * tools are looked at. out is empty again afterwards.
 */
static int announce(struct cm_local *l, struct workshop *w, struct cm_buf *out,
		    struct cm_error *err)
{
	int r = cm_skeleton_take(&w->builder, &w->skeleton, err);

	if (r == CM_OK)
		r = cm_plan_builder_finish(&w->builder, out, err);
	if (r < 0)
		return r;
	/* before the keeper can make a group */
	r = cm_local_keep_groups(l, out);
	if (r < 0)
		r = cm_local_write_failed(l, -r, err);
	else
		r = cm_jail_prepare(&l->jail, out->data, out->len, err);
	cm_buf_reset(out);
	return r;
}

/* A file system for what is refused would stay, and take the place of one that is used. */
static int may_make(void *data, struct cm_error *err)
{
	struct workshop *w = data;

	return check_refusals(w->l, &w->facts, err);
}

static int finish(struct cm_local *l, struct workshop *w, const struct cm_local_plan *extra,
		  bool is_temporary, struct cm_buf *out, struct cm_error *err)
{
	int r = CM_OK;

	add_mounts(&w->builder, extra);
	if (!is_temporary)
		r = print_plan(l, &w->builder, err);
	if (r == CM_OK)
		r = cm_local_skeleton(l, &w->builder, &w->skeleton, may_make, w, err);
	if (r == CM_OK)
		r = cm_plan_builder_finish(&w->builder, out, err);
	if (r == CM_OK && extra && extra->ready)
		r = extra->ready(l, out, err);
	return r;
}

static int complete(struct cm_local *l, struct workshop *w, bool is_temporary,
		    const struct cm_local_plan *extra, struct cm_buf *out, struct cm_error *err)
{
	int r = cm_plan_build_session(&w->req, &w->builder, &l->summary, err);

	return r < 0 || !out ? r : finish(l, w, extra, is_temporary, out, err);
}

/* What lasts is not begun before it is known to be allowed. */
static int check_first(struct cm_local *l, struct workshop *w, bool is_temporary,
		       const struct cm_local_plan *extra, struct cm_buf *out, struct cm_error *err)
{
	int r = check_refusals(l, &w->facts, err);

	return r < 0 ? r : complete(l, w, is_temporary, extra, out, err);
}

/*
 * With a keeper that waits already: init makes the jail while it is found out whether it may be used.
 * Nothing runs in it before that, and with a refusal it goes.
 */
static int finish_first(struct cm_local *l, struct workshop *w, bool is_temporary,
			const struct cm_local_plan *extra, struct cm_buf *out, struct cm_error *err)
{
	struct cm_error why = CM_ERROR_INIT;
	int r = complete(l, w, is_temporary, extra, out, &why);
	int refused = check_refusals(l, &w->facts, err);

	/* that something is refused says more than what else went wrong with it */
	if (refused < 0)
		return refused;
	if (r < 0 && err)
		*err = why;
	return r;
}

static int make(struct cm_local *l, struct workshop *w, const char *dir, bool is_temporary,
		const struct cm_local_plan *extra, struct cm_buf *out, struct cm_error *err)
{
	struct cm_plan_request *req = &w->req;
	int r = cm_tree_facts_read_system(&l->host, req->spec->rootfs, &w->facts.tree, err);

	if (r == CM_OK)
		r = cm_plan_build_system(req, &w->builder, &l->summary, err);
	if (r == CM_OK && out && l->jail.is_ahead)
		r = announce(l, w, out, err);
	if (r == CM_OK)
		r = read_facts(l, req->spec, dir, &w->facts, err);
	if (r == CM_OK)
		r = l->jail.is_ahead ? finish_first(l, w, is_temporary, extra, out, err)
				     : check_first(l, w, is_temporary, extra, out, err);
	if (r == CM_OK)
		r = cm_tree_facts_read_path(&l->host, &l->config->env, &w->facts.tree, err);
	if (r < 0)
		return r;
	r = cm_local_env_make(l, req, err);
	if (r == CM_OK)
		tell_notes(l);
	return r;
}

int cm_local_plan_make(struct cm_local *l, const struct cm_spec *spec, const char *dir,
		       bool is_temporary, const struct cm_local_plan *extra, struct cm_buf *out,
		       struct cm_error *err)
{
	struct workshop *w = cm_malloc(sizeof(*w));
	int r;

	if (!w)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the plan");
	w->l = l;
	w->facts = (struct facts){ 0 };
	w->home = w->tmp = NULL;
	cm_plan_builder_init(&w->builder);
	cm_skeleton_init(&w->skeleton);
	fill_request(l, spec, &w->facts, is_temporary, extra && extra->has_home, &w->req, &w->home,
		     &w->tmp);
	w->req.refuses_unix_sockets = extra && extra->refuses_unix_sockets;
	if (extra && extra->is_of_mirrors)
		w->req.slot_base = cm_local_slot_base(CM_ID_SLOT_MIRRORS);
	r = make(l, w, dir, is_temporary, extra, out, err);
	close_workshop(w);
	return r;
}
