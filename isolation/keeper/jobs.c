/* SPDX-License-Identifier: Apache-2.0 */
/* Detached commands and their journals. */
#include "isolation/keeper/jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "isolation/keeper/keeper.h"
#include "runtime/base/alloc.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/store/journal.h"

/* those count whose command has ended, but whose children hold a stream */
#define MAX_JOBS (CM_MAX_EXECS + CM_MAX_EXECS / 2)
/* with the first, and then every so many, the oldest journals go */
#define PRUNE_EVERY 8
/* A pipe that holds more is emptied less often; an ordinary user may have 64 MiB of pipes in all. */
#define PIPE_BYTES (1 << 18)
/* one stream's turn: others wait meanwhile */
#define TURN_BYTES (256UL * 1024)
/* a result that could not be written is tried again: the disk may have room by then */
#define RESULT_AGAIN_MS 1000
/* a terminal that nobody has open is looked at again */
#define HUNG_MS 50
/* when a command has ended, what is in a pipe then: it can hold no more */
#define LAST_BYTES (16UL * PIPE_BYTES)

/* what is watched else: init, signals, new clients, the session's age */
_Static_assert(CM_JOURNAL_STREAMS *MAX_JOBS + CM_KEEPER_MAX_CLIENTS + 4 <= CM_LOOP_MAX_SOURCES,
	       "the loop has room for every stream and every client");

struct cm_keeper_job {
	struct cm_keeper *k;
	struct cm_keeper_job *next;
	struct cm_journal journal;
	/* what is read from: pipes, or the terminal's master and nothing; -1: at its end */
	int fd[CM_JOURNAL_STREAMS];
	/* the pipe's write end; -1: none */
	int in_fd;
	bool is_tty;
	/* nobody has the terminal open, and it is not watched */
	bool is_hung;
	bool has_ended;
	bool is_loss_told;
	/* when it has ended, and as long as that is not on the disk */
	struct cm_journal_result result;
	bool is_result_due;
};

static void unlink_job(struct cm_keeper_job *job)
{
	struct cm_keeper_job **at = &job->k->jobs;

	while (*at != job)
		at = &(*at)->next;
	*at = job->next;
	job->k->n_jobs--;
}

static void close_stream(struct cm_keeper_job *job, int stream)
{
	cm_loop_remove(&job->k->loop, job->fd[stream]);
	cm_fd_close(&job->fd[stream]);
}

static void free_job(struct cm_keeper_job *job)
{
	for (int i = 0; i < CM_JOURNAL_STREAMS; i++)
		close_stream(job, i);
	cm_fd_close(&job->in_fd);
	cm_journal_close(&job->journal);
	unlink_job(job);
	free(job);
}

static void free_if_done(struct cm_keeper_job *job)
{
	if (job->has_ended && !job->is_result_due && job->fd[CM_JOURNAL_OUT] < 0 &&
	    job->fd[CM_JOURNAL_ERR] < 0)
		free_job(job);
}

/* Told once: the result has the number. */
static void tell_lost(struct cm_keeper_job *job)
{
	struct cm_event event;

	if (job->is_loss_told ||
	    job->journal.lost[CM_JOURNAL_OUT] + job->journal.lost[CM_JOURNAL_ERR] == 0)
		return;
	job->is_loss_told = true;
	cm_event_begin(&event, &job->k->events, "exec.journal-lost", job->journal.exec_id);
	cm_event_end(&event);
}

static void on_hung(struct cm_loop *loop, int timer, void *data);

/*
 * The last holder of the terminal has closed it (EIO). The command may still run, as one that closes its
 * streams before it exits, and would be hung up by our closing, too. The loop would be told of it again
 * and again.
 */
static void hang(struct cm_keeper_job *job)
{
	struct cm_keeper *k = job->k;

	cm_loop_remove(&k->loop, job->fd[CM_JOURNAL_OUT]);
	job->is_hung = true;
	if (k->hung_timer < 0)
		k->hung_timer =
			cm_loop_timer_add(&k->loop, cm_clock_mono_ms() + HUNG_MS, on_hung, k);
	/* no timer: it is read once more when the command has ended */
}

/* Up to max bytes of what is there now. */
static void take(struct cm_keeper_job *job, int stream, size_t max)
{
	size_t done = 0;

	while (job->fd[stream] >= 0 && done < max) {
		ssize_t n = cm_journal_take(&job->journal, (enum cm_journal_stream)stream,
					    job->fd[stream], max - done);

		if (n == -EAGAIN || n == -EINTR)
			break;
		if (n <= 0 && job->is_tty && !job->has_ended) {
			hang(job);
			break;
		}
		if (n <= 0)
			close_stream(job, stream);
		else
			done += (size_t)n;
	}
	tell_lost(job);
}

static void on_stream(struct cm_loop *loop, int fd, uint32_t events, void *data)
{
	struct cm_keeper_job *job = data;
	int stream = fd == job->fd[CM_JOURNAL_ERR] ? CM_JOURNAL_ERR : CM_JOURNAL_OUT;

	(void)loop;
	(void)events;
	take(job, stream, TURN_BYTES);
	free_if_done(job);
}

/* Somebody may have opened it again; who has not hangs on. What cannot be watched is lost. */
static void look_again(struct cm_keeper_job *job)
{
	int fd = job->fd[CM_JOURNAL_OUT];

	job->is_hung = false;
	take(job, CM_JOURNAL_OUT, TURN_BYTES);
	if (!job->is_hung && job->fd[CM_JOURNAL_OUT] >= 0 &&
	    cm_loop_add(&job->k->loop, fd, EPOLLIN, on_stream, job, NULL) < 0)
		close_stream(job, CM_JOURNAL_OUT);
}

static void on_hung(struct cm_loop *loop, int timer, void *data)
{
	struct cm_keeper *k = data;

	(void)loop;
	(void)timer;
	k->hung_timer = -1;
	for (struct cm_keeper_job *job = k->jobs; job; job = job->next) {
		if (job->is_hung)
			look_again(job);
	}
}

static int watch(struct cm_keeper_job *job, int stream, int fd, struct cm_error *err)
{
	int r;

	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot set up a stream");
	r = cm_loop_add(&job->k->loop, fd, EPOLLIN, on_stream, job, err);
	if (r == CM_OK)
		job->fd[stream] = fd;
	return r;
}

static int make_output(struct cm_keeper_job *job, int stream, int *ret_far, struct cm_error *err)
{
	int fds[2];
	int r;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot make a pipe");
	(void)fcntl(fds[0], F_SETPIPE_SZ, PIPE_BYTES);
	/* as root the agent is another than the pipe's owner, and opens /dev/stdout like a file; only
	 * who has the descriptor can */
	(void)fchmod(fds[1], 0622);
	*ret_far = fds[1];
	r = watch(job, stream, fds[0], err);
	if (r < 0)
		(void)close(fds[0]);
	return r;
}

static int make_input(struct cm_keeper_job *job, int *ret_far, struct cm_error *err)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot make a pipe");
	(void)fchmod(fds[0], 0644);
	*ret_far = fds[0];
	job->in_fd = fds[1];
	return CM_OK;
}

/* In the order that init expects. A terminal is made by init. */
static int make_streams(struct cm_keeper_job *job, struct cm_rec *rec, int far[3],
			unsigned int *ret_n, struct cm_error *err)
{
	struct cm_rec_exec *exec = &rec->body.exec;
	int r = CM_OK;

	if (job->is_tty)
		return CM_OK;
	if ((exec->flags & CM_EXECF_INPUT) != 0) {
		r = make_input(job, &far[(*ret_n)++], err);
		exec->flags |= CM_EXECF_STDIN;
	}
	if (r == CM_OK)
		r = make_output(job, CM_JOURNAL_OUT, &far[(*ret_n)++], err);
	if (r == CM_OK)
		r = make_output(job, CM_JOURNAL_ERR, &far[(*ret_n)++], err);
	exec->flags |= CM_EXECF_STDOUT | CM_EXECF_STDERR;
	return r;
}

static int make_journal(struct cm_keeper_job *job, const struct cm_rec *rec, const char *text,
			uint32_t text_len, struct cm_error *err)
{
	const struct cm_rec_exec *exec = &rec->body.exec;
	struct cm_journal_request request = {
		.exec_id = rec->id,
		.n_args = exec->n_args,
		.started_ms = cm_clock_real_ms(),
		.max_bytes = exec->journal_bytes != 0 ? exec->journal_bytes : CM_JOURNAL_BYTES,
		.timeout_ms = exec->timeout_ms,
		.text_len = text_len,
	};

	if (request.max_bytes < CM_JOURNAL_MIN)
		request.max_bytes = CM_JOURNAL_MIN;
	if (job->is_tty)
		request.flags |= CM_JOURNALF_TTY;
	if ((exec->flags & (CM_EXECF_INPUT | CM_EXECF_TTY)) != 0)
		request.flags |= CM_JOURNALF_STDIN;
	return cm_journal_create(job->k->state_dir_fd, &request, text, &job->journal, err);
}

static struct cm_keeper_job *new_job(struct cm_keeper *k)
{
	struct cm_keeper_job *job = cm_calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	job->k = k;
	job->in_fd = -1;
	for (int i = 0; i < CM_JOURNAL_STREAMS; i++)
		job->fd[i] = -1;
	cm_journal_init(&job->journal);
	job->next = k->jobs;
	k->jobs = job;
	k->n_jobs++;
	return job;
}

int cm_job_open(struct cm_keeper *k, struct cm_rec *rec, const char *text, uint32_t text_len,
		struct cm_keeper_job **ret, int far[3], unsigned int *ret_n, struct cm_error *err)
{
	struct cm_keeper_job *job;
	int r;

	if (k->n_jobs >= MAX_JOBS)
		return cm_error_set(err, CM_E_LIMIT, 0,
				    "too many commands of the session hold their output open");
	job = new_job(k);
	if (!job)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the command");
	job->is_tty = (rec->body.exec.flags & CM_EXECF_TTY) != 0;
	if (k->n_journaled++ % PRUNE_EVERY == 0)
		cm_journal_prune(k->state_dir_fd, CM_JOURNALS_KEPT,
				 (uint32_t)k->plan.header->generation);
	r = make_journal(job, rec, text, text_len, err);
	if (r == CM_OK)
		r = make_streams(job, rec, far, ret_n, err);
	/* until init has them there is nobody at the far ends: that is not their end */
	if (r == CM_OK) {
		*ret = job;
		return CM_OK;
	}
	for (unsigned int i = 0; i < *ret_n; i++)
		cm_fd_close(&far[i]);
	cm_job_forget(&job);
	return r;
}

void cm_job_started(struct cm_keeper_job *job, int *master)
{
	/* what cannot be watched is lost, and then the command shall feel it */
	if (*master >= 0 && job->fd[CM_JOURNAL_OUT] < 0 &&
	    watch(job, CM_JOURNAL_OUT, *master, NULL) == CM_OK)
		*master = -1;
	cm_fd_close(master);
}

int cm_job_input(const struct cm_keeper_job *job)
{
	if (!job)
		return -1;
	return job->is_tty ? job->fd[CM_JOURNAL_OUT] : job->in_fd;
}

void cm_job_close_input(struct cm_keeper_job *job)
{
	cm_fd_close(&job->in_fd);
}

static void write_result(struct cm_keeper_job *job)
{
	job->is_result_due = cm_journal_finish(&job->journal, &job->result) < 0;
}

static void on_result_again(struct cm_loop *loop, int timer, void *data);

static void arm_result_again(struct cm_keeper *k)
{
	if (k->result_timer < 0)
		k->result_timer = cm_loop_timer_add(&k->loop, cm_clock_mono_ms() + RESULT_AGAIN_MS,
						    on_result_again, k);
}

static void on_result_again(struct cm_loop *loop, int timer, void *data)
{
	struct cm_keeper *k = data;
	struct cm_keeper_job *next;
	bool is_any_due = false;

	(void)loop;
	(void)timer;
	k->result_timer = -1;
	for (struct cm_keeper_job *job = k->jobs; job; job = next) {
		next = job->next;
		if (job->is_result_due)
			write_result(job);
		is_any_due = is_any_due || job->is_result_due;
		free_if_done(job);
	}
	if (is_any_due)
		arm_result_again(k);
}

void cm_job_end(struct cm_keeper_job **ref, const struct cm_rec_end *end)
{
	struct cm_keeper_job *job = *ref;

	job->result = (struct cm_journal_result){
		.kind = end->kind,
		.status = end->status,
		.flags = end->flags,
		.detail = end->detail,
		.wall_us = end->wall_us,
		.cpu_user_us = end->cpu_user_us,
		.cpu_system_us = end->cpu_system_us,
		.max_rss_bytes = end->max_rss_bytes,
		.memory_peak_bytes = end->memory_peak_bytes,
		.ended_ms = cm_clock_real_ms(),
	};

	*ref = NULL;
	job->has_ended = true;
	if (job->is_hung)
		look_again(job);
	for (int i = 0; i < CM_JOURNAL_STREAMS; i++)
		take(job, i, LAST_BYTES);
	/* where the disk has no room for it, who waits now is told all the same */
	write_result(job);
	if (job->is_result_due)
		arm_result_again(job->k);
	cm_job_close_input(job);
	free_if_done(job);
}

void cm_job_forget(struct cm_keeper_job **ref)
{
	struct cm_keeper_job *job = *ref;

	*ref = NULL;
	if (!job)
		return;
	if (job->journal.dir_fd >= 0)
		(void)cm_journal_remove(job->k->state_dir_fd, job->journal.exec_id);
	free_job(job);
}

void cm_job_end_all(struct cm_keeper *k)
{
	const struct cm_journal_result killed = {
		.kind = CM_END_KILLED,
		.flags = CM_ENDF_KILLED,
		.ended_ms = cm_clock_real_ms(),
	};

	struct cm_keeper_job *next;

	for (struct cm_keeper_job *job = k->jobs; job; job = next) {
		next = job->next;
		for (int i = 0; i < CM_JOURNAL_STREAMS; i++)
			take(job, i, LAST_BYTES);
		if (!job->has_ended)
			job->result = killed;
		if (!job->has_ended || job->is_result_due)
			write_result(job);
		free_job(job);
	}
}
