/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A checkout that is there, brought up to date.
 *
 * What the remote has comes into the mirror as for a first checkout, and from there into the checkout,
 * in a jail with the session's ids that sees the session directory and the mirror (or the repository
 * of this host) and no more. The session may run meanwhile, so these jails are a temporary session's
 * of their own: control groups, state directory and lock have its name, and who dies here leaves what
 * every start collects. The session's lock is held; what runs in it goes on.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "providers/local/checkout_helper.h"
#include "providers/local/fetch.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/giturl.h"
#include "runtime/base/text.h"

struct task {
	/* whose checkout it is */
	struct cm_local *of;
	struct cm_local l;
	/* of the temporary session; in l is the directory of the other one meanwhile */
	char *session_dir;
	/* files of the checkout may be others now */
	bool has_written;
};

static int out_of_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the checkout");
}

static int create(struct cm_local *l, struct cm_error *err)
{
	struct cm_session_record record;
	char id[64];
	int r;

	(void)cm_store_collect(&l->store, cm_local_collect_group, NULL, NULL);
	cm_store_new_id(id, sizeof(id));
	cm_session_record_init(&record);
	record.id = cm_strdup(id);
	record.is_temporary = true;
	r = record.id ? cm_store_session_create(&l->store, &record, &l->session, err)
		      : out_of_memory(err);
	cm_session_record_clear(&record);
	if (r < 0)
		return r;
	l->has_session = l->is_temporary = true;
	/* nothing is made of its directory, nor looked for there when it goes */
	l->has_earlier_files = true;
	return CM_OK;
}

static int open_task(struct cm_local *of, struct task *task, struct cm_error *err)
{
	const struct cm_session_record *record = &of->session.record;
	struct cm_local *l = &task->l;
	char *dir;
	int r;

	*task = (struct task){ .of = of };
	cm_local_init(l);
	r = cm_local_open(l, &of->spec, of->config, &of->events, err);
	if (r == CM_OK)
		r = create(l, err);
	if (r < 0)
		return r;
	dir = cm_strdup(of->session.session_dir);
	if (!dir)
		return out_of_memory(err);
	task->session_dir = l->session.session_dir;
	l->session.session_dir = dir;
	/* lent: the agent's rights are those of the session that it is done for */
	l->session.record.slot = record->slot;
	l->session.record.agent_id = record->agent_id;
	return CM_OK;
}

static void close_task(struct task *task)
{
	struct cm_store_session *s = &task->l.session;

	if (task->session_dir) {
		free(s->session_dir);
		s->session_dir = task->session_dir;
		s->record.slot = CM_SLOT_NONE;
		s->record.agent_id = 0;
	}
	memcpy(task->of->checkout_reason, task->l.checkout_reason,
	       sizeof(task->of->checkout_reason));
	memcpy(task->of->checkout_code, task->l.checkout_code, sizeof(task->of->checkout_code));
	cm_local_close(&task->l);
}

/* Where it comes from, as its jail shows it. */
struct source {
	/* NULL: a repository of this host */
	const struct cm_store_mirror *mirror;
	/* NULL: nothing comes, and what was begun is gone through with */
	const char *path;
	const char *git_dir;
};

static int was_held_up(const struct cm_local *of, struct cm_error *err)
{
	cm_error_set(err, CM_E_TIMEOUT, 0, "cannot update '%s': nothing moved for %d seconds",
		     of->session.record.checkout, CM_CHECKOUT_SILENCE_MS / 1000);
	cm_error_hint(err, "its git directory has a FIFO or a device that waits for somebody (find "
			   "DIR -type p), or lies on a file system that does not answer");
	return CM_E_TIMEOUT;
}

/* At most 13 of argv; number is for one of them. */
static void add_wanted(const struct task *task, const struct source *source, char **argv,
		       size_t *ret_n, char *number)
{
	const struct cm_local *of = task->of;
	const struct cm_local_update *update = of->update;
	size_t n = *ret_n;

	cm_checkout_option(argv, &n, "--source", source->path);
	cm_checkout_option(argv, &n, "--origin", source->mirror ? of->spec.repo : NULL);
	cm_checkout_option(argv, &n, "--ref", update->ref);
	cm_checkout_option(argv, &n, "--pr", cm_checkout_number(update->pr, number));
	cm_checkout_option(argv, &n, "--branch", update->branch);
	cm_checkout_option(argv, &n, "--from", update->base);
	if (update->is_unshallow)
		argv[n++] = (char *)(uintptr_t) "--unshallow";
	else if (source->mirror && of->spec.depth > 0)
		argv[n++] = (char *)(uintptr_t) "--keep-branches";
	*ret_n = n;
}

static int run_helper(struct task *task, const struct source *source,
		      struct cm_checkout_result *result, struct cm_error *err)
{
	const struct cm_local *of = task->of;
	char *argv[20] = { NULL };
	char number[CM_CHECKOUT_NUMBER_SIZE];
	size_t n = 0;
	int r;

	cm_checkout_option(argv, &n, "--update", of->session.record.checkout);
	if (source->path)
		add_wanted(task, source, argv, &n, number);
	else
		argv[n++] = (char *)(uintptr_t) "--finish";
	result->is_kept_up = true;
	r = cm_checkout_helper_run(&task->l, argv, NULL, result, err);
	/* who did not come to the end of it may not have said so any more */
	task->has_written = result->is_writing || (r < 0 && r != CM_E_CHECKOUT);
	if (r == CM_E_TIMEOUT)
		return was_held_up(of, err);
	return r == CM_E_CHECKOUT
		       ? cm_error_wrap(err, "cannot update '%s'", of->session.record.checkout)
		       : r;
}

static int in_jail(struct task *task, const struct source *source,
		   struct cm_checkout_result *result, struct cm_error *err)
{
	struct cm_local *l = &task->l;
	struct cm_local_plan extra = { 0 };
	char helper[PATH_MAX];
	struct cm_spec spec;
	int r = cm_checkout_helper_mount(&extra, helper, sizeof(helper), err);

	if (r < 0)
		return r;
	if (source->mirror)
		extra.mounts[extra.n_mounts++] =
			(struct cm_local_mount){ source->mirror->dir, CM_FETCH_MIRROR_INSIDE,
						 CM_OPF_READ_ONLY };
	r = cm_checkout_helper_spec(l, &spec, err);
	if (r == CM_OK && !source->mirror && source->path)
		r = cm_checkout_helper_show(&spec, source->path, source->git_dir, err);
	if (r == CM_OK)
		r = cm_local_task_open(l, &spec, l->session.session_dir, &extra, err);
	if (r == CM_OK)
		r = run_helper(task, source, result, err);
	cm_local_task_close(l);
	cm_spec_clear(&spec);
	return r;
}

static int take(struct cm_local *l, const struct cm_store_mirror *mirror, void *data,
		struct cm_checkout_result *result, struct cm_error *err)
{
	const struct source source = { .mirror = mirror, .path = CM_FETCH_REPOSITORY_INSIDE };

	(void)l;
	return in_jail(data, &source, result, err);
}

/* Where nothing is asked for, what the session was made for is what is wanted to be up to date. */
static const char *branch_of(const struct cm_local *of)
{
	static const char heads[] = "refs/heads/";
	const struct cm_local_update *update = of->update;
	const char *ref = of->spec.ref;

	if (update->ref || update->pr > 0 || update->branch)
		return update->branch;
	if (of->spec.branch || !ref)
		return of->spec.branch;
	return cm_text_has_prefix(ref, heads) ? ref + strlen(heads) : ref;
}

static int from_remote(struct task *task, struct cm_checkout_result *result, struct cm_error *err)
{
	const struct cm_local_update *update = task->of->update;
	struct cm_local_remote remote;
	int r;

	cm_local_remote_of(task->of, &remote);
	remote.ref = update->base ? update->base : update->ref;
	remote.branch = branch_of(task->of);
	remote.pr = update->pr;
	/* content beside git's own objects stays git-lfs's to fetch */
	remote.spec = NULL;
	if (update->is_unshallow)
		remote.depth = 0;
	r = cm_local_fetch(&task->l, &remote, take, task, result, err);
	cm_store_mirrors_prune(&task->l.store);
	return r;
}

static int from_here(struct task *task, struct cm_checkout_result *result, struct cm_error *err)
{
	struct cm_source_facts facts = { NULL, NULL };
	struct source source = { NULL };
	int r = cm_source_facts_read(task->of->spec.repo, &facts, err);

	source.path = facts.path;
	source.git_dir = facts.git_dir;
	if (r == CM_OK)
		r = in_jail(task, &source, result, err);
	cm_source_facts_clear(&facts);
	return r;
}

/* A mirror is never less than what was asked of it, so nothing has to be fetched to know that. */
static int check_unshallow(const struct cm_local *l, struct cm_error *err)
{
	if (!l->update->is_unshallow || l->session.record.depth > 0 ||
	    !cm_giturl_is_remote(l->spec.repo))
		return CM_OK;
	cm_error_set(err, CM_E_INVALID, 0, "the checkout of session '%s' was made without --depth",
		     l->session.record.id);
	cm_error_hint(err, "it has all of its history: leave --unshallow out");
	return CM_E_INVALID;
}

/* Objects that come from outside would lack those that they name, and git would take that for damage. */
static int check_partial(const struct cm_local *l, struct cm_error *err)
{
	if (l->spec.filter != CM_FILTER_BLOB_NONE || !cm_giturl_is_remote(l->spec.repo))
		return CM_OK;
	cm_error_set(err, CM_E_UNSUPPORTED, 0,
		     "the checkout of session '%s' is a partial clone (--filter), which is not "
		     "updated from outside",
		     l->session.record.id);
	cm_error_hint(err, "fetch and switch with git, in the session (--git rw, --network host)");
	return CM_E_UNSUPPORTED;
}

static int check_repository(const struct cm_local *l, struct cm_error *err)
{
	if (l->session.record.checkout)
		return CM_OK;
	cm_error_set(err, CM_E_INVALID, 0, "session '%s' has no repository", l->session.record.id);
	cm_error_hint(err, "name another session: casemate checkout ID --repo URL makes it");
	return CM_E_INVALID;
}

static int run_task(struct task *task, bool is_finish, struct cm_error *err)
{
	static const struct source none = { NULL };
	struct cm_checkout_result result;
	int r;

	cm_checkout_result_init(&result);
	if (is_finish)
		return in_jail(task, &none, &result, err);
	r = cm_giturl_is_remote(task->of->spec.repo) ? from_remote(task, &result, err)
						     : from_here(task, &result, err);
	task->of->is_held = result.is_held;
	return r;
}

static int carry_out(struct cm_local *l, bool is_finish, bool *ret_has_written,
		     struct cm_error *err)
{
	struct task task;
	int r = open_task(l, &task, err);

	if (r == CM_OK)
		r = run_task(&task, is_finish, err);
	*ret_has_written = task.has_written;
	close_task(&task);
	if (r == CM_E_CANCELLED) {
		cm_error_set(err, r, 0, "stopped while '%s' was brought up to date",
			     l->session.record.checkout);
		cm_error_hint(err, "casemate checkout %s goes on with it", l->session.record.id);
	}
	return r;
}

static int set_begun(struct cm_local *l, bool is_begun, struct cm_error *err)
{
	if (l->session.record.is_update_begun == is_begun)
		return CM_OK;
	l->session.record.is_update_begun = is_begun;
	return cm_store_session_save(&l->session, false, err);
}

static int run_update(struct cm_local *l, struct cm_error *err)
{
	bool was_begun = l->session.record.is_update_begun;
	bool has_written = true;
	int r = set_begun(l, true, err);

	if (r == CM_OK)
		r = carry_out(l, false, &has_written, err);
	/* as after a death: whoever comes next looks */
	if (r < 0 && !has_written)
		(void)set_begun(l, was_begun, NULL);
	if (r < 0)
		return r;
	if (l->update->is_unshallow)
		l->session.record.depth = 0;
	return set_begun(l, false, err);
}

int cm_local_update(struct cm_local *l, struct cm_error *err)
{
	int64_t start_us = cm_clock_mono_us();
	int r = check_repository(l, err);

	if (r == CM_OK)
		r = check_partial(l, err);
	if (r == CM_OK)
		r = check_unshallow(l, err);
	if (r < 0)
		return r;
	if (cm_key_is_asked(CM_KEY_DEPTH, &l->spec))
		cm_local_note(l, "--depth is for a first checkout: this one keeps the history that "
				 "it has");
	if (cm_key_is_asked(CM_KEY_FILTER, &l->spec))
		cm_local_note(l, "--filter is for a first checkout: this one keeps the objects "
				 "that it has");
	r = run_update(l, err);
	if (r == CM_OK)
		cm_local_phase(l, "update", start_us);
	return r;
}

int cm_local_update_finish(struct cm_local *l, struct cm_error *err)
{
	struct cm_error why = CM_ERROR_INIT;
	bool has_written;
	int r = carry_out(l, true, &has_written, &why);

	if (r == CM_E_CANCELLED || r == CM_E_LEVEL || r == CM_E_ISOLATION) {
		if (err)
			*err = why;
		return r;
	}
	if (r < 0) {
		CM_AUTO_FREE char *line = cm_asprintf("an update was broken off, and what it began "
						      "cannot be finished: %s",
						      why.msg);

		if (line)
			cm_local_note(l, line);
	}
	return set_begun(l, false, err);
}

/* The first option that only a checkout that is there can do without --repo; "" where none is given. */
static const char *asked_of_checkout(const struct cm_local *l)
{
	static const enum cm_key keys[] = { CM_KEY_REF,	  CM_KEY_PR,  CM_KEY_BRANCH, CM_KEY_FROM,
					    CM_KEY_DEPTH, CM_KEY_LFS, CM_KEY_SPARSE, CM_KEY_FILTER };

	if (l->update->is_unshallow)
		return "unshallow";
	for (size_t i = 0; i < CM_ARRAY_SIZE(keys); i++) {
		if (cm_key_is_asked(keys[i], &l->spec))
			return cm_key_info(keys[i])->name;
	}
	return "";
}

int cm_local_check_new(const struct cm_local *l, struct cm_error *err)
{
	const char *id = l->spec.session_id;
	const char *option;

	if (!l->update || (l->spec.repo && !l->update->is_unshallow))
		return CM_OK;
	option = asked_of_checkout(l);
	cm_error_set(err, CM_E_INVALID, 0, "there is no session '%s'%s%s", id,
		     option[0] != '\0' ? " for --" : "", option);
	cm_error_hint(err, "to make one, name its repository: casemate checkout %s --repo URL%s",
		      id, l->update->is_unshallow ? ", without --unshallow" : "");
	return CM_E_INVALID;
}
