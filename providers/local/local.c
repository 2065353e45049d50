/* SPDX-License-Identifier: Apache-2.0 */
/* Local sessions: opening, the session's record, letting go. */
#include "providers/local/local.h"
#include "providers/local/credential_helper.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "providers/local/local_internal.h"
#include "providers/local/prune.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/giturl.h"
#include "runtime/base/sha256.h"

/* how long another client may hold a session's lock (a checkout with setup takes its time) */
#define STOP_MS 30000
#define LOCK_WAIT_MS (15LL * 60 * 1000)
#define LOCK_SLICE_MS 200

void cm_local_init(struct cm_local *l)
{
	memset(l, 0, offsetof(struct cm_local, host.cgroup));
	cm_spec_init(&l->spec);
	cm_jail_init(&l->jail);
	cm_buf_init(&l->plan_text, 4UL * 1024 * 1024);
	l->store.state_fd = l->store.runtime_fd = l->store.slot_fd = -1;
	l->cap_fd = -1;
}

void cm_local_note(struct cm_local *l, const char *text)
{
	if (l->events.note)
		l->events.note(l->events.data, text);
}

void cm_local_phase(struct cm_local *l, const char *name, int64_t since_us)
{
	if (l->events.phase)
		l->events.phase(l->events.data, name, (uint64_t)(cm_clock_mono_us() - since_us));
}

int cm_local_write_failed(const struct cm_local *l, int sys_errno, struct cm_error *err)
{
	(void)cm_error_set(err, CM_E_SYS, sys_errno, "cannot write below '%s'", l->session.dir);
	cm_error_hint(err, "check that its file system is not full or read-only");
	return CM_E_SYS;
}

int cm_local_cancel_fd(const struct cm_local *l)
{
	return l->events.cancel_fd > 0 ? l->events.cancel_fd : -1;
}

int cm_local_read_refusals(struct cm_local *l, struct cm_error *err)
{
	CM_AUTO_STRV struct cm_strv dirs = { 0 };

	if (l->refusals.nodes.n > 0)
		return CM_OK;
	if (cm_strv_add(&dirs, l->store.state) < 0 || cm_strv_add(&dirs, l->store.runtime) < 0 ||
	    (l->store.cache && cm_strv_add(&dirs, l->store.cache) < 0) ||
	    (l->store.root && cm_strv_add(&dirs, l->store.root) < 0))
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the session");
	return cm_refusals_read(&l->host, &l->config->env, &dirs, &l->refusals, err);
}

/* What is of remote sessions alone: before anything is made. */
static int check_spec(const struct cm_spec *spec, struct cm_error *err)
{
	if (spec->network == CM_NETWORK_INTERNET || spec->setup_network == CM_NETWORK_INTERNET) {
		cm_error_set(err, CM_E_UNSUPPORTED, 0,
			     "a session of this host has no network of public addresses alone");
		cm_error_hint(err, "--network none or --network host, or a remote --provider");
		return CM_E_UNSUPPORTED;
	}
	if (spec->template_name) {
		cm_error_set(err, CM_E_UNSUPPORTED, 0,
			     "a session of this host begins with no template");
		cm_error_hint(err, "--rootfs DIR, --repo URL with --setup CMD, or a remote "
				   "--provider");
		return CM_E_UNSUPPORTED;
	}
	return CM_OK;
}

int cm_local_open(struct cm_local *l, const struct cm_spec *spec, const struct cm_config *config,
		  const struct cm_local_events *events, struct cm_error *err)
{
	int r = check_spec(spec, err);

	if (r < 0)
		return r;
	r = cm_spec_copy(&l->spec, spec);
	if (r < 0)
		return cm_error_set(err, r, 0, "no memory for the session");
	l->config = config;
	l->events = *events;
	r = cm_local_spawn_ahead(l, err);
	if (r < 0)
		return r;
	r = cm_host_read(&config->env, &l->host, err);
	/* v2 that is mounted elsewhere (a hybrid host): init is to be born into its group */
	if (r == CM_OK && l->jail.is_ahead && l->host.cgroup.kind == CM_CGROUP_V2) {
		(void)cm_jail_close(&l->jail);
		cm_jail_init(&l->jail);
	}
	if (r == CM_OK)
		r = cm_store_open(&config->env, spec->root, l->host.home, geteuid() == 0, &l->store,
				  err);
	return r;
}

/* Mastra's readers of the marker leave such a command out of what they compare. */
static bool is_blank(const char *command)
{
	return command[strspn(command, " \t\n\v\f\r")] == '\0';
}

char *cm_local_setup_digest(const struct cm_strv *setup)
{
	CM_AUTO_BUF struct cm_buf text = { 0 };
	char hex[CM_SHA256_HEX_SIZE];
	size_t n = 0;

	cm_buf_init(&text, 16UL * 1024 * 1024);
	for (size_t i = 0; i < setup->n; i++) {
		if (is_blank(setup->v[i]))
			continue;
		if (n++ > 0)
			cm_buf_putc(&text, '\n');
		cm_buf_puts(&text, setup->v[i]);
	}
	if (n == 0)
		return cm_strdup("");
	if (cm_buf_status(&text) != CM_OK)
		return NULL;
	cm_sha256_hex(text.data, text.len, hex);
	return cm_asprintf("sha256:%s", hex);
}

/* The directory of the session's that the repository is checked out in. */
static int checkout_path(const struct cm_local *l, const char *id, char **ret, struct cm_error *err)
{
	CM_AUTO_FREE char *name = NULL;
	struct cm_giturl url;
	int r = cm_giturl_parse(l->spec.repo, &url, err);

	if (r < 0)
		return r;
	name = cm_giturl_name(&url);
	cm_giturl_clear(&url);
	*ret = name ? cm_asprintf("%s/%s/%s", l->store.root, id, name) : NULL;
	return *ret ? CM_OK : cm_error_set(err, CM_E_NOMEM, 0, "no memory for the session");
}

static int fill_record(struct cm_local *l, struct cm_session_record *record, const char *id,
		       struct cm_error *err)
{
	const struct cm_spec *spec = &l->spec;
	int r;

	record->id = cm_strdup(id);
	record->root = cm_strdup(l->store.root);
	record->is_temporary = l->is_temporary;
	record->created_ms = cm_clock_real_ms();
	record->setup_digest = cm_local_setup_digest(&spec->setup);
	if (!record->id || !record->root || !record->setup_digest)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the session");
	if (spec->setup.n > 0)
		record->setup_json = cm_local_setup_commands(spec);
	if (spec->setup.n > 0 && !record->setup_json)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the session");
	r = spec->repo ? checkout_path(l, id, &record->checkout, err) : CM_OK;
	if (r == CM_OK)
		r = cm_local_env_record(l, record, err);
	return r < 0 ? r : cm_local_record(spec, record, err);
}

static bool is_there(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static int create(struct cm_local *l, const char *id, struct cm_error *err)
{
	const struct cm_slot_space space = { CM_ID_SLOT_BASE, CM_ID_SLOT_SIZE, CM_ID_SLOTS };
	struct cm_session_record record;
	int r;

	cm_session_record_init(&record);
	r = fill_record(l, &record, id, err);
	if (r == CM_OK && l->host.is_root) {
		r = cm_store_slot_claim(&l->store, id, &space, &record.slot, err);
		if (r == CM_OK)
			record.agent_id = cm_local_slot_base(record.slot) + CM_ID_AGENT;
	}
	if (r == CM_OK) {
		r = cm_store_session_create(&l->store, &record, &l->session, err);
		if (r < 0 && record.slot != CM_SLOT_NONE)
			cm_store_slot_release(&l->store, record.slot, id);
	}
	if (r == CM_OK) {
		l->has_session = l->is_new = true;
		/* the name of a temporary one was made up just now */
		l->has_earlier_files = !record.is_temporary && is_there(l->session.session_dir);
		/* a temporary one has no state, unless somebody is to find it by that */
		if (record.is_temporary && record.labels.n > 0)
			r = cm_store_session_save(&l->session, false, err);
	}
	cm_session_record_clear(&record);
	return r;
}

/* What is kept is a session like any other, and those do not depend on where their caller is. */
static int name_workspace(struct cm_local *l, struct cm_error *err)
{
	if (l->spec.workspace_kind != CM_WORKSPACE_DEFAULT)
		return CM_OK;
	l->spec.workspace = cm_config_project_dir(l->config->cwd);
	if (!l->spec.workspace)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the session");
	l->spec.workspace_kind = CM_WORKSPACE_DIR;
	return CM_OK;
}

static bool is_given_up(const struct cm_local *l)
{
	struct pollfd p = { .fd = cm_local_cancel_fd(l), .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

/* In slices: who waits for another's checkout or setup may have enough of it. */
static int open_locked(struct cm_local *l, struct cm_error *err)
{
	const char *id = l->spec.session_id;
	int64_t deadline = cm_clock_mono_ms() + LOCK_WAIT_MS;
	struct cm_error why;
	int r;

	do {
		int64_t now = cm_clock_mono_ms();

		why = (struct cm_error)CM_ERROR_INIT;
		r = cm_store_session_open(&l->store, id, true,
					  now + LOCK_SLICE_MS < deadline ? now + LOCK_SLICE_MS
									 : deadline,
					  &l->session, &why);
		if (r == CM_E_BUSY && is_given_up(l)) {
			cm_error_set(err, CM_E_CANCELLED, 0,
				     "stopped while another command held session '%s'", id);
			cm_error_hint(err, "a start, a checkout or a setup holds it: try again "
					   "later");
			return CM_E_CANCELLED;
		}
	} while (r == CM_E_BUSY && cm_clock_mono_ms() < deadline);
	if (r < 0 && err)
		*err = why;
	return r;
}

/* Before what takes long, and lasts: the start looks again, and then holds the lock. */
static int check_cap(struct cm_local *l, struct cm_error *err)
{
	int r = cm_local_cap(l, err);

	cm_local_uncap(l);
	return r;
}

/* A temporary session counts from here on. */
static int create_below_cap(struct cm_local *l, const char *id, struct cm_error *err)
{
	int r = cm_local_cap(l, err);

	if (r == CM_OK)
		r = create(l, id, err);
	cm_local_uncap(l);
	return r;
}

static int find_session(struct cm_local *l, struct cm_error *err)
{
	char id[64];
	int r = cm_local_env_begin(l, err);

	if (r < 0)
		return r;
	if (!l->spec.session_id) {
		(void)cm_store_collect(&l->store, cm_local_collect_group, NULL, NULL);
		cm_store_new_id(id, sizeof(id));
		l->is_temporary = !l->spec.is_kept;
		l->is_kept = l->spec.is_kept;
		if (l->is_kept)
			r = name_workspace(l, err);
		return r < 0 ? r : create_below_cap(l, id, err);
	}
	r = open_locked(l, err);
	if (r == CM_E_NOT_FOUND && !l->must_exist) {
		r = cm_local_check_new(l, err);
		if (r == CM_OK)
			r = create_below_cap(l, l->spec.session_id, err);
		if (r != CM_E_EXISTS)
			return r;
		/* somebody else was quicker: it is an existing one */
		r = open_locked(l, err);
	}
	if (r < 0)
		return r;
	l->has_session = true;
	l->is_running = cm_store_keeper_alive(&l->session);
	r = cm_local_adopt(l, err);
	if (r == CM_OK && !l->is_running)
		r = check_cap(l, err);
	if (r == CM_OK)
		cm_store_session_touch(&l->session);
	/* a start writes the record before anything runs; where there is none, what is to run again
	 * and is broken off must not pass for done either */
	if (r == CM_OK && l->is_running && l->spec.is_setup_again)
		r = cm_store_session_save(&l->session, false, err);
	return r == CM_OK && !l->is_running ? cm_store_socket_check(&l->session, err) : r;
}

int cm_local_session(struct cm_local *l, struct cm_error *err)
{
	int r = find_session(l, err);

	if (r == CM_OK && !l->is_running && l->spec.retention)
		cm_local_retention(&l->store, l->spec.retention, l->config);
	return r == CM_OK ? cm_local_keep_teardown(l, err) : r;
}

const char *cm_local_cwd(const struct cm_local *l)
{
	if (l->workspace.cwd)
		return l->workspace.cwd;
	return l->spec.workdir ? l->spec.workdir : "/";
}

void cm_local_keep(struct cm_local *l)
{
	l->is_new = false;
}

/* A temporary session's directory goes with it; its slot too. */
static void remove_session(struct cm_local *l)
{
	struct cm_error ignored = CM_ERROR_INIT;
	bool with_files = !l->has_earlier_files;
	uint32_t slot = l->session.record.slot;

	/* a keeper whose start failed has said so, and is about to end */
	if (!l->is_temporary)
		(void)cm_local_stop(&l->session, cm_clock_mono_ms() + STOP_MS, NULL);
	if (cm_local_remove(&l->store, &l->session, with_files, l->config, &ignored) == CM_OK)
		return;
	/* where the session root cannot be used there is nothing in it, and what was made of a
	 * session that never was must not stay */
	if (!l->is_new || !with_files ||
	    cm_local_remove(&l->store, &l->session, false, l->config, NULL) < 0)
		cm_local_note(l, ignored.msg);
	else if (slot != CM_SLOT_NONE)
		cm_store_slot_release(&l->store, slot, l->session.record.id);
}

/* --keep: what stays is the session, not its jail. */
static void stop_kept(struct cm_local *l)
{
	struct cm_error ignored = CM_ERROR_INIT;

	if (!l->is_kept || !l->has_session || l->is_new)
		return;
	if (cm_local_stop(&l->session, cm_clock_mono_ms() + STOP_MS, &ignored) < 0)
		cm_local_note(l, ignored.msg);
}

/* Nothing of the jail's is in the state of an ordinary user's temporary session without groups. */
static bool goes_before_its_keeper(const struct cm_local *l)
{
	return l->has_session && l->is_temporary && l->jail.sock >= 0 &&
	       l->session.record.slot == CM_SLOT_NONE && !l->has_session_dir &&
	       l->summary.cgroup_controllers == 0;
}

void cm_local_close(struct cm_local *l)
{
	bool is_early = goes_before_its_keeper(l);

	cm_local_uncap(l);

	/* first the jail, then what it used; meanwhile what the jail does not use */
	if (l->is_temporary)
		cm_fd_close(&l->jail.sock);
	if (is_early) {
		remove_session(l);
		cm_store_session_close(&l->session);
		l->has_session = false;
	}
	cm_credential_helper_forget(l);
	cm_workspace_facts_clear(&l->workspace);
	cm_refusals_clear(&l->refusals);
	cm_buf_clear(&l->plan_text);
	cm_strv_clear(&l->env);
	cm_strv_clear(&l->start_env);
	cm_strv_clear(&l->session_env.env);
	cm_strv_clear(&l->session_env.pass);
	stop_kept(l);
	/* a keeper that was killed has left its groups, which are found by what is kept */
	if (cm_jail_close(&l->jail))
		cm_local_drop_groups(l);
	if (l->has_session && (l->is_temporary || l->is_new))
		remove_session(l);
	else if (l->has_session && !l->is_touched)
		cm_store_session_touch(&l->session);
	if (l->has_session)
		cm_store_session_close(&l->session);
	cm_store_close(&l->store);
	cm_host_clear(&l->host);
	cm_spec_clear(&l->spec);
	cm_local_init(l);
}
