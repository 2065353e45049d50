/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. libgit2 1.5 has no time limit, waits for a connection in recv(2) for ever, and
 * calls back too seldom to be bounded from there: not between two lines of refs, nor while a file is
 * inflated. So a second thread looks on, a few times a second, by system calls alone. It is a thread
 * and no timer's signal because a signal interrupts the waits of libraries that take that for an
 * error.
 *
 * Whoever exceeds a bound is asked first: connections are shut down and no file may grow any more, so
 * that libgit2 fails, and what it began is removed on the way out. What then still goes on after
 * INSIST_MS (a name server that is waited for, a huge file that is inflated) is ended from here.
 *
 * Memory is bounded by the kernel: RLIMIT_DATA counts what libgit2 allocates, and not the packs and
 * indexes that it maps, which RLIMIT_AS would count as well. So is the size of a file.
 */
#include "isolation/checkout/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "isolation/checkout/pulse.h"
#include "isolation/checkout/traffic.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

#define TICK_MS 200
#define INSIST_MS 3000
#define SECOND_MS 1000
/* of processor time that is work */
#define CPU_LIFE_MS 50

/*
 * A rate of 1000 bytes a second over a time is what users of git's http.lowSpeedLimit choose. The time
 * is less than the caller's patience with a silent helper, so that it is the helper that says why.
 */
#define WINDOW_S 25
#define RATE_MIN 1000
/*
 * A server that packs a large repository says little, but it says something: how far it is, every
 * second or so, and at least a few bytes so that nothing on the way takes the connection for dead.
 */
#define WORDLESS_MAX_MS (60LL * 1000)
#define PREPARING_MAX_MS (10LL * 60 * 1000)
#define REMOTE_MAX_MS (6LL * 60 * 60 * 1000)
/* Two million refs have no more; their number is bounded in fetch.c. */
#define REFS_BYTES_MAX (160ULL << 20)
#define TALK_BYTES_MAX (16ULL << 20)
/* Indexing the largest repositories that there are takes a quarter of that. */
#define CPU_MAX_S (2ULL * 60 * 60)
/* after the guard's own, for who does not heed it */
#define CPU_SPARE_S 10
#define MEMORY_MAX (4ULL << 30)
#define MEMORY_MIN (512ULL << 20)
/* What stays free on a file system: a twentieth, or a GiB where that is less. */
#define FREE_SHARE 20
#define FREE_MAX (1ULL << 30)

static const struct {
	const char *msg;
	const char *hint;
} words[] = {
	[CM_GUARD_SILENT] = { "the server said nothing for 25 s",
			      "check the address, and that nothing on the way swallows the "
			      "connection; then try again" },
	[CM_GUARD_SLOW] = { "the server sent less than 1000 bytes a second for 25 s",
			    "try again when the server, and the way to it, are less busy" },
	[CM_GUARD_LONG] = { "the server was not done in time (10 min until it sends objects, 6 h in "
			    "all)",
			    "try again later, or clone it with git and give --repo the path of the "
			    "clone" },
	[CM_GUARD_TALK] = { "the server sends refs or messages without end",
			    "check the address, and the repository's refs with 'git ls-remote'" },
	[CM_GUARD_WORK] = { "the repository takes more processor time than it may (2 h)",
			    "somebody may have made it so; clone it with git, and give --repo the "
			    "path of the clone, if you trust it" },
	[CM_GUARD_MEMORY] = { "the repository needs more memory than there may be for it (half of "
			      "this host's, at most 4 GiB)",
			      "it has a huge file, or was made to do harm; 'git clone' may need less" },
	[CM_GUARD_DISK] = { "the repository would fill the disk (5 % of it or 1 GiB stay free)",
			    "free space or inodes on the file system of the target" },
};

static struct {
	struct cm_report *rep;
	/* -1: nowhere */
	int dir_fd;
	pthread_t thread;
	/* readable: the thread is to end */
	int stop_fd;
	bool is_running;
	uint64_t cpu_max_ms;
	rlim_t file_size;
	_Atomic enum cm_guard_phase phase;
	_Atomic enum cm_guard_bound exceeded;
	atomic_uint progress;
	/* of the main thread alone */
	uint64_t talk;
} guard = { .dir_fd = -1, .stop_fd = -1 };

/* What the thread has seen so far. */
struct watch {
	struct cm_traffic traffic;
	enum cm_guard_phase phase;
	int64_t start_ms;
	int64_t phase_ms;
	uint64_t phase_total;
	/* bytes by the second, the oldest one at n_seconds % WINDOW_S when it is full */
	uint64_t seconds[WINDOW_S];
	size_t n_seconds;
	int64_t second_ms;
	/* the last sign of life */
	int64_t life_ms;
	uint64_t life_cpu_ms;
	unsigned int life_progress;
	int64_t progress_ms;
	int64_t exceeded_ms;
};

/* --- what is asked of the kernel ---------------------------------------------------------------- */

static uint64_t cpu_ms_of(int who)
{
	struct rusage use;

	if (getrusage(who, &use) < 0)
		return 0;
	return (uint64_t)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000 +
	       (uint64_t)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1000;
}

/* Of the other thread. */
static uint64_t cpu_ms(void)
{
	uint64_t all = cpu_ms_of(RUSAGE_SELF);
	uint64_t own = cpu_ms_of(RUSAGE_THREAD);

	return all > own ? all - own : 0;
}

/* How much may still be written; 0: no more. A file system that cannot tell is not full. */
static uint64_t room(void)
{
	struct statvfs st;
	uint64_t keep;
	uint64_t free_bytes;

	if (guard.dir_fd < 0 || fstatvfs(guard.dir_fd, &st) < 0 || st.f_blocks == 0)
		return RLIM_INFINITY;
	/* where inodes are made as they are needed their number is 0 */
	if (st.f_files > 0 && st.f_favail < st.f_files / FREE_SHARE)
		return 0;
	keep = (uint64_t)st.f_blocks * st.f_frsize / FREE_SHARE;
	if (keep > FREE_MAX)
		keep = FREE_MAX;
	free_bytes = (uint64_t)st.f_bavail * st.f_frsize;
	return free_bytes > keep ? free_bytes - keep : 0;
}

static void limit_file_size(rlim_t size)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) < 0)
		return;
	limit.rlim_cur = size < limit.rlim_max ? size : limit.rlim_max;
	(void)setrlimit(RLIMIT_FSIZE, &limit);
}

/* --- bounds -------------------------------------------------------------------------------------- */

void cm_guard_exceed(enum cm_guard_bound bound)
{
	enum cm_guard_bound none = CM_GUARD_NONE;

	atomic_compare_exchange_strong(&guard.exceeded, &none, bound);
}

enum cm_guard_bound cm_guard_exceeded(void)
{
	return atomic_load(&guard.exceeded);
}

void cm_guard_phase(enum cm_guard_phase phase)
{
	atomic_store(&guard.phase, phase);
}

void cm_guard_progress(void)
{
	atomic_fetch_add(&guard.progress, 1);
}

int cm_guard_talk(uint64_t bytes)
{
	guard.talk += bytes;
	if (guard.talk <= TALK_BYTES_MAX)
		return 0;
	cm_guard_exceed(CM_GUARD_TALK);
	return -1;
}

/* The window begins anew: what came before has nothing to do with what comes now. */
static void begin_phase(struct watch *w, enum cm_guard_phase phase, int64_t now)
{
	w->phase = phase;
	w->phase_ms = now;
	w->phase_total = w->traffic.total;
	w->n_seconds = 0;
	w->second_ms = now;
	w->life_ms = now;
	w->progress_ms = now;
}

static void look_for_life(struct watch *w, uint64_t total_before, int64_t now)
{
	unsigned int progress = atomic_load(&guard.progress);
	uint64_t cpu = cpu_ms();

	if (w->traffic.total != total_before)
		cm_pulse_beat();
	if (progress != w->life_progress)
		w->progress_ms = now;
	/* waiting takes some processor time, too */
	if (w->traffic.total == total_before && progress == w->life_progress &&
	    cpu < w->life_cpu_ms + CPU_LIFE_MS)
		return;
	w->life_ms = now;
	w->life_cpu_ms = cpu;
	w->life_progress = progress;
}

/* Is what came in the last WINDOW_S seconds too little? */
static bool is_slow(struct watch *w, int64_t now)
{
	bool is_too_little = false;

	/* it is we who are slow, or a name server */
	if (w->traffic.has_unread || !w->traffic.has_connection) {
		w->n_seconds = 0;
		w->second_ms = now;
		return false;
	}
	while (now - w->second_ms >= SECOND_MS && !is_too_little) {
		uint64_t *oldest = &w->seconds[w->n_seconds % WINDOW_S];

		is_too_little = w->n_seconds >= WINDOW_S &&
				w->traffic.total - *oldest < (uint64_t)RATE_MIN * WINDOW_S;
		*oldest = w->traffic.total;
		w->n_seconds++;
		w->second_ms += SECOND_MS;
	}
	return is_too_little;
}

static enum cm_guard_bound remote_bound(struct watch *w, int64_t now)
{
	if (w->phase == CM_GUARD_LOCAL)
		return CM_GUARD_NONE;
	if (now - w->life_ms >= (int64_t)WINDOW_S * SECOND_MS)
		return CM_GUARD_SILENT;
	if (w->phase == CM_GUARD_INDEXING)
		return CM_GUARD_NONE;
	if (now - w->start_ms >= REMOTE_MAX_MS ||
	    (w->phase == CM_GUARD_PREPARING && now - w->phase_ms >= PREPARING_MAX_MS))
		return CM_GUARD_LONG;
	if (w->phase == CM_GUARD_REFS && w->traffic.total - w->phase_total > REFS_BYTES_MAX)
		return CM_GUARD_TALK;
	if (!is_slow(w, now) ||
	    (w->phase == CM_GUARD_PREPARING && now - w->progress_ms < WORDLESS_MAX_MS))
		return CM_GUARD_NONE;
	return CM_GUARD_SLOW;
}

static enum cm_guard_bound bound_of(struct watch *w, int64_t now)
{
	if (room() == 0)
		return CM_GUARD_DISK;
	if (cpu_ms() >= guard.cpu_max_ms)
		return CM_GUARD_WORK;
	return remote_bound(w, now);
}

/* --- the thread ---------------------------------------------------------------------------------- */

/* The main thread is where it cannot be asked. It writes no report: cm_guard_stop comes before. */
static _Noreturn void insist(void)
{
	struct cm_error err = CM_ERROR_INIT;

	cm_pulse_stop();
	limit_file_size(guard.file_size);
	(void)cm_guard_error(guard.rep, &err);
	cm_report_print_error(&err);
	(void)cm_report_finish(guard.rep, &err, NULL);
	_exit(1);
}

static void look(struct watch *w)
{
	int64_t now = cm_clock_mono_ms();
	enum cm_guard_phase phase = atomic_load(&guard.phase);
	uint64_t before = w->traffic.total;

	cm_traffic_look(&w->traffic);
	if (phase != w->phase)
		begin_phase(w, phase, now);
	look_for_life(w, before, now);
	if (cm_guard_exceeded() == CM_GUARD_NONE)
		cm_guard_exceed(bound_of(w, now));
	if (cm_guard_exceeded() == CM_GUARD_NONE)
		return;
	/* each time: it may connect anew */
	cm_traffic_end();
	limit_file_size(0);
	if (w->exceeded_ms == 0)
		w->exceeded_ms = now;
	else if (now - w->exceeded_ms >= INSIST_MS)
		insist();
}

static void *run(void *data)
{
	struct pollfd p = { .fd = guard.stop_fd, .events = POLLIN };
	struct watch w = { .start_ms = cm_clock_mono_ms() };

	begin_phase(&w, CM_GUARD_LOCAL, w.start_ms);
	while (poll(&p, 1, TICK_MS) <= 0)
		look(&w);
	return data;
}

/* --- start and end ------------------------------------------------------------------------------- */

static uint64_t memory_max(void)
{
	struct sysinfo info;
	uint64_t half;

	if (sysinfo(&info) < 0)
		return MEMORY_MIN;
	half = (uint64_t)info.totalram * info.mem_unit / 2;
	if (half > MEMORY_MAX)
		return MEMORY_MAX;
	return half < MEMORY_MIN ? MEMORY_MIN : half;
}

/* Never more than what was given: who started this may have bounds of his own. */
static int lower(int what, uint64_t value, uint64_t spare, uint64_t *ret, struct cm_error *err)
{
	struct rlimit limit;

	if (getrlimit(what, &limit) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot read a limit of this process");
	if (limit.rlim_cur < value)
		value = limit.rlim_cur;
	*ret = value;
	limit.rlim_cur = value + spare < limit.rlim_max ? value + spare : limit.rlim_max;
	if (setrlimit(what, &limit) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot set a limit of this process");
	return CM_OK;
}

static int set_limits(struct cm_error *err)
{
	uint64_t cpu_s = 0;
	uint64_t unused = 0;
	int r;

	/* so that writing too much is an error, and no end */
	if (signal(SIGXFSZ, SIG_IGN) == SIG_ERR)
		return cm_error_set(err, CM_E_SYS, errno, "cannot ignore SIGXFSZ");
	r = lower(RLIMIT_CPU, CPU_MAX_S, CPU_SPARE_S, &cpu_s, err);
	if (r == CM_OK)
		r = lower(RLIMIT_DATA, memory_max(), 0, &unused, err);
	if (r == CM_OK)
		r = lower(RLIMIT_FSIZE, room(), 0, &guard.file_size, err);
	guard.cpu_max_ms = r == CM_OK ? cpu_s * 1000 : 0;
	return r;
}

/* Signals are for the main thread. */
static int start_thread(struct cm_error *err)
{
	sigset_t all;
	sigset_t before;
	int r;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&guard.thread, NULL, run, NULL);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r != 0)
		return cm_error_set(err, CM_E_SYS, r, "cannot start a thread");
	guard.is_running = true;
	return CM_OK;
}

int cm_guard_start(const char *dir, struct cm_report *rep, struct cm_error *err)
{
	int r;

	guard.rep = rep;
	/* one that cannot be opened is an error of who writes there */
	guard.dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (room() == 0) {
		cm_guard_exceed(CM_GUARD_DISK);
		return cm_guard_error(rep, err);
	}
	r = set_limits(err);
	if (r < 0)
		return r;
	guard.stop_fd = eventfd(0, EFD_CLOEXEC);
	if (guard.stop_fd < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot make an event descriptor");
	return start_thread(err);
}

void cm_guard_stop(void)
{
	static const uint64_t one = 1;

	if (!guard.is_running)
		return;
	guard.is_running = false;
	if (write(guard.stop_fd, &one, sizeof(one)) == (ssize_t)sizeof(one))
		(void)pthread_join(guard.thread, NULL);
	cm_fd_close(&guard.stop_fd);
	cm_fd_close(&guard.dir_fd);
	/* the report may be a file */
	limit_file_size(guard.file_size);
}

int cm_guard_error(struct cm_report *rep, struct cm_error *err)
{
	static const struct {
		const char *name;
		int code;
	} bounds[] = {
#define X(id, name, code) [CM_GUARD_##id] = { name, CM_E_##code },
		CM_GUARD_BOUNDS(X)
#undef X
	};
	enum cm_guard_bound bound = cm_guard_exceeded();

	if (bound == CM_GUARD_NONE)
		return CM_OK;
	rep->reason = bounds[bound].name;
	cm_error_set(err, bounds[bound].code, 0, "%s", words[bound].msg);
	cm_error_hint(err, "%s", words[bound].hint);
	return bounds[bound].code;
}
