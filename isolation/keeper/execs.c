/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of a session as the keeper knows them: who started each, who follows it, which slot
 * and leaf it has. Init has the processes.
 */
#include <stdlib.h>
#include <string.h>

#include "isolation/keeper/jobs.h"
#include "isolation/keeper/keeper.h"
#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

int cm_keeper_exec_by_id(const struct cm_keeper *k, uint64_t id)
{
	for (int i = 0; i < (int)CM_MAX_EXECS; i++) {
		if (k->execs[i].is_running && k->execs[i].id == id)
			return i;
	}
	return -1;
}

static struct cm_keeper_watch *find_watch(struct cm_keeper *k, int client, uint64_t client_id)
{
	for (size_t i = 0; i < k->n_watches; i++) {
		struct cm_keeper_watch *w = &k->watches[i];

		if (w->is_used && w->client == client && w->client_id == client_id)
			return w;
	}
	return NULL;
}

int cm_keeper_exec_of(struct cm_keeper *k, int client, uint64_t client_id)
{
	const struct cm_keeper_watch *watch;

	for (int i = 0; i < (int)CM_MAX_EXECS; i++) {
		const struct cm_keeper_exec *e = &k->execs[i];

		if (e->is_running && e->client == client && e->client_id == client_id)
			return i;
	}
	watch = find_watch(k, client, client_id);
	return watch ? cm_keeper_exec_by_id(k, watch->exec_id) : -1;
}

bool cm_keeper_client_waits(const struct cm_keeper *k, int client)
{
	for (size_t i = 0; i < CM_MAX_EXECS; i++) {
		if (k->execs[i].is_running && k->execs[i].client == client)
			return true;
	}
	for (size_t i = 0; i < k->n_watches; i++) {
		if (k->watches[i].is_used && k->watches[i].client == client)
			return true;
	}
	return false;
}

/*
 * A slot for the next command, and its leaf where there can be one. The leaf of a slot that is free
 * again may still hold what the kernel has not buried yet: then the next slot is taken, so that no
 * command goes without. In a temporary session the tree of a command is the whole jail.
 */
static int take_slot(struct cm_keeper *k, struct cm_cgroup_leaf *ret_leaf)
{
	bool wants_leaf = !k->is_temporary && k->cgroup.kind != CM_CGROUP_NONE;
	int first = -1;

	for (int i = 0; i < (int)CM_MAX_EXECS; i++) {
		int r = CM_OK;

		if (k->execs[i].is_used)
			continue;
		if (first < 0)
			first = i;
		if (wants_leaf)
			r = cm_cgroup_leaf_take(&k->cgroup, (unsigned int)i, ret_leaf, NULL);
		if (r == CM_OK)
			return i;
		if (r != CM_E_BUSY)
			break;
	}
	*ret_leaf = (struct cm_cgroup_leaf){ -1, -1, false };
	return first;
}

void cm_keeper_exec_free(struct cm_keeper *k, uint32_t slot)
{
	struct cm_keeper_exec *e = &k->execs[slot];

	if (e->is_leaf_spent)
		cm_cgroup_leaf_drop(&k->cgroup, slot);
	else
		cm_cgroup_leaf_settle(&k->cgroup, slot);
	free(e->text);
	e->text = NULL;
	e->is_used = false;
}

/* cwd and arguments without the environment behind them; 0: that is not what the blob is. */
static uint32_t text_len(const struct cm_msg *msg)
{
	uint32_t at = 0;

	for (uint32_t n = 0; n <= msg->rec.body.exec.n_args; n++) {
		size_t len = at < msg->rec.len ? strnlen(msg->blob + at, msg->rec.len - at) : 0;

		if (at + len >= msg->rec.len)
			return 0;
		at += (uint32_t)len + 1;
	}
	return at;
}

/* For LIST; a command that it is not known of is listed without. */
static void keep_text(struct cm_keeper_exec *e, const struct cm_msg *msg, uint32_t len)
{
	if (len > CM_ITEM_TEXT_MAX)
		len = CM_ITEM_TEXT_MAX;
	e->text = cm_malloc(len + 1);
	e->text_len = e->text ? len : 0;
	if (e->text)
		memcpy(e->text, msg->blob, len);
}

static void fill(struct cm_keeper *k, struct cm_keeper_exec *e, int client, struct cm_rec *rec,
		 uint32_t slot)
{
	memset(e, 0, sizeof(*e));
	e->is_used = e->is_running = true;
	e->client = client;
	e->client_id = rec->id;
	e->flags = rec->body.exec.flags;
	e->id = k->plan.header->generation << 32 | ++k->counter;
	e->started_ms = cm_clock_real_ms();
	rec->id = e->id;
	rec->body.exec.slot = slot;
	rec->body.exec.exec_id = e->id;
	k->clients[client].spare_since_ms = 0;
	if ((k->cgroup.enforced & CM_CG_MEMORY) != 0)
		e->oom_before = cm_cgroup_oom_kills(&k->cgroup);
}

static void take_back(struct cm_keeper *k, int slot)
{
	struct cm_keeper_exec *e = &k->execs[slot];

	cm_job_forget(&e->job);
	e->is_running = false;
	cm_keeper_exec_free(k, (uint32_t)slot);
	/* it was busy for a moment */
	cm_keeper_was_active(k);
}

/* To init, with the far ends (the client's, or those of a detached command) and the leaf's two. */
static int pass_on(struct cm_keeper *k, struct cm_rec *rec, const int far[3], unsigned int n_far,
		   const struct cm_cgroup_leaf *leaf)
{
	int fds[8];
	unsigned int n = 0;

	for (; n < n_far; n++)
		fds[n] = far[n];
	if (leaf->join_fd >= 0) {
		rec->body.exec.flags |= CM_EXECF_LEAF;
		fds[n++] = leaf->join_fd;
		fds[n++] = leaf->kill_fd;
	}
	return cm_keeper_to_init(k, rec, k->msg.blob, fds, n);
}

static int start(struct cm_keeper *k, int slot, struct cm_rec *rec, uint32_t len,
		 const struct cm_cgroup_leaf *leaf, struct cm_error *err)
{
	struct cm_keeper_exec *e = &k->execs[slot];
	int far[3] = { -1, -1, -1 };
	unsigned int n_far = 0;
	int r = CM_OK;

	if ((e->flags & CM_EXECF_DETACH) != 0)
		r = cm_job_open(k, rec, k->msg.blob, len, &e->job, far, &n_far, err);
	else
		for (; n_far < k->msg.n_fds; n_far++)
			far[n_far] = k->msg.fds[n_far];
	if (r == CM_OK && pass_on(k, rec, far, n_far, leaf) < 0)
		r = cm_error_set(err, CM_E_LIMIT, 0,
				 "cannot pass the request on to the session's init");
	for (int i = 0; i < 3 && e->job; i++)
		cm_fd_close(&far[i]);
	return r;
}

static bool is_well_formed(const struct cm_keeper *k, uint32_t len)
{
	uint32_t flags = k->msg.rec.body.exec.flags;
	bool is_detached = (flags & CM_EXECF_DETACH) != 0;

	/* three descriptors from the client at the most, and none for what is journaled */
	return len > 0 && (flags & ~CM_EXECF_CLIENT_) == 0 &&
	       k->msg.n_fds <= (is_detached ? 0 : 3) &&
	       (!is_detached ||
		(flags & (CM_EXECF_STDIN | CM_EXECF_STDOUT | CM_EXECF_STDERR)) == 0) &&
	       (is_detached || (flags & CM_EXECF_INPUT) == 0) &&
	       (!is_detached || !k->is_temporary) &&
	       ((flags & CM_EXECF_BUILTIN) == 0 || (flags & (CM_EXECF_DETACH | CM_EXECF_TTY)) == 0);
}

static void refuse_one_more(struct cm_keeper *k, int client)
{
	struct cm_error err = CM_ERROR_INIT;

	(void)cm_error_set(&err, CM_E_LIMIT, 0,
			   "the session has %u commands already, with those that left processes",
			   CM_MAX_EXECS);
	cm_error_hint(&err, "try again when some of them have ended; 'casemate stop %s' ends all",
		      cm_plan_str(&k->plan, k->plan.header->session_id));
	cm_keeper_refuse_as(k, client, k->msg.rec.id, &err);
}

void cm_keeper_exec(struct cm_keeper *k, int client)
{
	struct cm_rec rec = k->msg.rec;
	struct cm_cgroup_leaf leaf = { -1, -1, false };
	struct cm_error err = CM_ERROR_INIT;
	uint32_t len = text_len(&k->msg);
	uint64_t client_id = rec.id;
	int slot;
	int r;

	if (!is_well_formed(k, len)) {
		cm_keeper_refuse(k, client, rec.id, CM_E_PROTOCOL, "malformed request");
		return;
	}
	/* who asks for it knew of another start's environment */
	if (rec.body.exec.generation != 0 &&
	    rec.body.exec.generation != k->plan.header->generation) {
		cm_keeper_refuse(k, client, rec.id, CM_E_BUSY,
				 "the session was started anew meanwhile: try again");
		return;
	}
	slot = take_slot(k, &leaf);
	if (slot < 0) {
		refuse_one_more(k, client);
		return;
	}
	if (!k->is_temporary)
		rec.body.exec.flags &= ~CM_EXECF_LAST;
	fill(k, &k->execs[slot], client, &rec, (uint32_t)slot);
	r = start(k, slot, &rec, len, &leaf, &err);
	cm_keeper_was_active(k);
	if (r < 0) {
		take_back(k, slot);
		cm_keeper_refuse_as(k, client, client_id, &err);
		return;
	}
	/* when it is on its way */
	if (!k->is_temporary)
		keep_text(&k->execs[slot], &k->msg, len);
}

static void add_item(struct cm_buf *out, const struct cm_keeper_exec *e)
{
	static const char padding[8];
	struct cm_rec_item item = {
		.exec_id = e->id,
		.started_ms = e->started_ms,
		.flags = e->flags,
		.state = CM_ITEM_CHILDREN_LEFT,
		.pid = e->pid,
		.text_len = e->text_len,
	};

	if (e->is_running)
		item.state = e->pid != 0 ? CM_ITEM_RUNNING : CM_ITEM_STARTING;
	cm_buf_append(out, &item, sizeof(item));
	if (e->text_len > 0)
		cm_buf_append(out, e->text, e->text_len);
	cm_buf_append(out, padding, -(size_t)e->text_len % 8);
}

void cm_keeper_list(struct cm_keeper *k, int client)
{
	struct cm_rec rec = { .type = CM_REC_LISTED, .id = k->msg.rec.id };
	CM_AUTO_BUF struct cm_buf out = { 0 };

	cm_buf_init(&out, CM_MAX_EXECS * (sizeof(struct cm_rec_item) + CM_ITEM_TEXT_MAX));
	for (size_t i = 0; i < CM_MAX_EXECS; i++) {
		if (k->execs[i].is_used)
			add_item(&out, &k->execs[i]);
	}
	if (cm_buf_status(&out) < 0) {
		cm_keeper_refuse(k, client, rec.id, CM_E_NOMEM, "no memory for the list");
		return;
	}
	rec.len = (uint32_t)out.len;
	cm_keeper_tell(k, client, &rec, out.data, NULL, 0);
}

static struct cm_keeper_watch *free_watch(struct cm_keeper *k)
{
	for (size_t i = 0; i < k->n_watches; i++) {
		if (!k->watches[i].is_used)
			return &k->watches[i];
	}
	return k->n_watches < CM_KEEPER_MAX_WATCHES ? &k->watches[k->n_watches++] : NULL;
}

static struct cm_keeper_watch *add_watch(struct cm_keeper *k, int client, uint64_t client_id,
					 uint64_t exec_id)
{
	struct cm_keeper_watch *w = free_watch(k);

	if (w)
		*w = (struct cm_keeper_watch){ true, client, client_id, exec_id };
	return w;
}

void cm_keeper_attach(struct cm_keeper *k, int client)
{
	const struct cm_rec_attach *attach = &k->msg.rec.body.attach;
	struct cm_rec rec = { .type = CM_REC_STARTED, .id = k->msg.rec.id };
	int slot = cm_keeper_exec_by_id(k, attach->exec_id);
	bool wants_input = (attach->flags & CM_ATTACHF_INPUT) != 0;
	int input = slot >= 0 && wants_input ? cm_job_input(k->execs[slot].job) : -1;

	if (slot < 0) {
		cm_keeper_refuse(k, client, rec.id, CM_E_NOT_FOUND, "the command does not run");
		return;
	}
	if (wants_input && input < 0) {
		cm_keeper_refuse(k, client, rec.id, CM_E_UNSUPPORTED,
				 "the command was started without an input that can be written to, "
				 "or it is closed");
		return;
	}
	if (cm_keeper_exec_of(k, client, rec.id) >= 0 ||
	    !add_watch(k, client, rec.id, attach->exec_id)) {
		cm_keeper_refuse(k, client, rec.id, CM_E_LIMIT,
				 "too many follow the session's commands");
		return;
	}
	rec.body.started.exec_id = attach->exec_id;
	rec.body.started.pid = k->execs[slot].pid;
	cm_keeper_tell(k, client, &rec, NULL, &input, input >= 0 ? 1 : 0);
}

void cm_keeper_exec_ended(struct cm_keeper *k, int slot, struct cm_rec *end)
{
	struct cm_keeper_exec *e = &k->execs[slot];

	e->is_running = false;
	e->is_leaf_spent = (end->body.end.flags & (CM_ENDF_KILLED | CM_ENDF_TIMED_OUT)) != 0 ||
			   (e->flags & CM_EXECF_KILL_TREE) != 0;
	end->len = 0;
	end->id = e->client_id;
	cm_keeper_tell(k, e->client, end, NULL, NULL, 0);
	if (e->client >= 0)
		k->clients[e->client].spare_since_ms = cm_clock_mono_ms();
	for (size_t i = 0; i < k->n_watches; i++) {
		struct cm_keeper_watch *w = &k->watches[i];

		if (!w->is_used || w->exec_id != e->id)
			continue;
		w->is_used = false;
		end->id = w->client_id;
		cm_keeper_tell(k, w->client, end, NULL, NULL, 0);
	}
}

void cm_keeper_exec_refused(struct cm_keeper *k, int slot, const struct cm_error *why)
{
	struct cm_keeper_exec *e = &k->execs[slot];

	e->is_running = false;
	cm_job_forget(&e->job);
	cm_keeper_was_active(k);
	if (e->client >= 0)
		cm_keeper_refuse_as(k, e->client, e->client_id, why);
	for (size_t i = 0; i < k->n_watches; i++) {
		struct cm_keeper_watch *w = &k->watches[i];

		if (!w->is_used || w->exec_id != e->id)
			continue;
		w->is_used = false;
		cm_keeper_refuse_as(k, w->client, w->client_id, why);
	}
}

void cm_keeper_exec_forget(struct cm_keeper *k, int client)
{
	for (size_t i = 0; i < CM_MAX_EXECS; i++) {
		if (k->execs[i].is_running && k->execs[i].client == client)
			k->execs[i].client = -1;
	}
	for (size_t i = 0; i < k->n_watches; i++) {
		if (k->watches[i].client == client)
			k->watches[i].is_used = false;
	}
}
