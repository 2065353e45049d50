/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a session: nothing is left behind, and the last word is written. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "isolation/keeper/jobs.h"
#include "isolation/keeper/keeper.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/kernel.h"
#include "runtime/store/keeper_lock.h"

/*
 * The starter has been told the end of the last command, lives, and becomes init's parent: then it
 * waits for init, and this process ends beside it and not after it. Groups can be removed only when
 * they are empty, and that is done here.
 */
static bool is_left_to_starter(const struct cm_keeper *k)
{
	return k->starter_reaps && k->is_last_told && k->cgroup.kind == CM_CGROUP_NONE;
}

static void kill_init(struct cm_keeper *k)
{
	if (k->init_pid <= 0)
		return;
	/* pid 1 of the namespace: the kernel takes everything else with it, and wait returns when
	 * that is done */
	(void)cm_sys_pidfd_send_signal(k->init_pidfd, SIGKILL);
	while (!is_left_to_starter(k) && waitpid(k->init_pid, NULL, 0) < 0 && errno == EINTR)
		;
	k->init_pid = 0;
	cm_fd_close(&k->init_pidfd);
	cm_outbox_clear(&k->outbox);
}

static void tell_end(struct cm_keeper *k, uint32_t reason)
{
	struct cm_event event;

	cm_event_begin(&event, &k->events, "session.stopped", 0);
	cm_jw_kstring(&event.w, "reason", cm_end_reason_name(reason));
	cm_event_end(&event);
}

static void write_end(struct cm_keeper *k)
{
	struct cm_end_record end = {
		.reason = k->end_reason != 0 ? k->end_reason : CM_ENDED_START_FAILED,
		.real_ms = cm_clock_real_ms(),
	};

	/* before the plan is there, there is neither */
	if (k->state_dir_fd < 0 || k->lock_fd < 0)
		return;
	end.generation = k->plan.header->generation;
	tell_end(k, end.reason);
	(void)cm_store_write_end(k->state_dir_fd, &end);
}

void cm_keeper_end(struct cm_keeper *k)
{
	kill_init(k);
	cm_job_end_all(k);
	cm_cgroup_remove(&k->cgroup);
	if (k->listen_fd >= 0) {
		(void)unlink(cm_plan_str(&k->plan, k->plan.header->socket_path));
		cm_fd_close(&k->listen_fd);
	}
	write_end(k);
	cm_fd_close(&k->state_dir_fd);
	/* last: who finds it free may start the session anew */
	cm_fd_close(&k->lock_fd);
	for (int i = 0; i < k->n_clients; i++) {
		struct cm_rec rec = { .type = CM_REC_STOPPED, .id = k->clients[i].stop_id };

		if (k->clients[i].sock >= 0 && k->clients[i].wants_stopped)
			(void)cm_proto_send(k->clients[i].sock, &rec, NULL, NULL, 0);
	}
}

void cm_keeper_fail(struct cm_keeper *k, const struct cm_error *why)
{
	for (int i = 0; i < k->n_clients; i++) {
		if (k->clients[i].sock >= 0)
			(void)cm_proto_send_error(k->clients[i].sock, CM_REC_FAILED, 0, why);
	}
}
