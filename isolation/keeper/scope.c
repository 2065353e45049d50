/* SPDX-License-Identifier: Apache-2.0 */
/*
 * casemate-scope: gives a user's keeper a control group that may hand controllers down.
 *
 *	casemate-scope SESSION-ID -- KEEPER ARGS...
 *
 * A shell of a user lives in a group that is root's (session-3.scope) or that the user's systemd
 * rules (app.slice), and clone3 into a group asks for the right to write the common ancestor of
 * both ends. So the keeper itself must be moved, and only systemd can do that: it is asked for a
 * scope around this process with Delegate=yes, after which the scope's directory is ours by
 * systemd's own rules. The process then moves one further down, into `keeper`, because a group
 * that holds processes cannot hand controllers down, and becomes the keeper.
 *
 * An executable of its own, because it is dynamic and links libsystemd, which a keeper must not.
 * Descriptors from 3 up belong to the keeper and are passed on as they are; ours are
 * close-on-exec. 3 is the socket to the starter, who is told there, in the keeper's own words,
 * what went wrong: standard error is the user's command's.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <systemd/sd-bus.h>
#include <time.h>
#include <unistd.h>

#include "casemate/error.h"
#include "isolation/keeper/proto.h"
#include "isolation/keeper/scope_text.h"
#include "isolation/plan/plan.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

#define STATUS_FAILED 125
#define STARTER_FD 3
#define CALL_TIMEOUT_US (10ULL * 1000 * 1000)
#define JOB_TIMEOUT_MS 10000
#define GONE_TIMEOUT_MS 5000
#define GONE_PAUSE_NS (20L * 1000 * 1000)

static const char systemd_name[] = "org.freedesktop.systemd1";
static const char systemd_path[] = "/org/freedesktop/systemd1";
static const char systemd_manager[] = "org.freedesktop.systemd1.Manager";

struct job {
	char path[128];
	bool has_ended;
	char result[32];
};

static const char *user_name(void)
{
	static char name[64];
	char text[4096];
	struct passwd pw;
	struct passwd *found = NULL;

	if (getpwuid_r(geteuid(), &pw, text, sizeof(text), &found) == 0 && found)
		(void)snprintf(name, sizeof(name), "%s", pw.pw_name);
	else
		(void)snprintf(name, sizeof(name), "%u", (unsigned int)geteuid());
	return name;
}

static int no_session(struct cm_error *err)
{
	cm_error_set(err, CM_E_LEVEL, 0,
		     "no cgroup to be had for user '%s' (no systemd user session)", user_name());
	cm_error_hint(err, "sudo loginctl enable-linger %s", user_name());
	return CM_E_LEVEL;
}

static int refused(struct cm_error *err, const char *unit, const char *what, const char *why)
{
	cm_error_set(err, CM_E_LEVEL, 0, "no cgroup to be had for user '%s' (%s '%s': %s)",
		     user_name(), what, unit, why);
	cm_error_hint(err, "systemctl --user status '%s'", unit);
	return CM_E_LEVEL;
}

/* `is_direct`: the manager's own socket, which speaks without a bus between. */
static int connect_to(const char *address, bool is_direct, sd_bus **ret)
{
	sd_bus *bus = NULL;
	int r = sd_bus_new(&bus);

	if (r >= 0)
		r = sd_bus_set_address(bus, address);
	if (r >= 0 && !is_direct)
		r = sd_bus_set_bus_client(bus, 1);
	if (r >= 0)
		r = sd_bus_set_method_call_timeout(bus, CALL_TIMEOUT_US);
	if (r >= 0)
		r = sd_bus_start(bus);
	if (r < 0) {
		sd_bus_unref(bus);
		return r;
	}
	*ret = bus;
	return 0;
}

/*
 * The addresses are made from the uid: the environment is the caller's, and cron has none. The
 * manager's socket is there without dbus-user-session, as on small servers.
 */
static int connect_to_manager(sd_bus **ret, bool *ret_is_direct, struct cm_error *err)
{
	char address[96];

	(void)snprintf(address, sizeof(address), "unix:path=/run/user/%u/bus",
		       (unsigned int)geteuid());
	if (connect_to(address, false, ret) == 0) {
		*ret_is_direct = false;
		return CM_OK;
	}
	(void)snprintf(address, sizeof(address), "unix:path=/run/user/%u/systemd/private",
		       (unsigned int)geteuid());
	if (connect_to(address, true, ret) == 0) {
		*ret_is_direct = true;
		return CM_OK;
	}
	return no_session(err);
}

static int on_job_removed(sd_bus_message *m, void *data, sd_bus_error *ret_error)
{
	struct job *job = data;
	const char *path = NULL;
	const char *unit = NULL;
	const char *result = NULL;
	uint32_t id = 0;

	(void)ret_error;
	if (sd_bus_message_read(m, "uoss", &id, &path, &unit, &result) < 0 ||
	    strcmp(path, job->path) != 0)
		return 0;
	job->has_ended = true;
	(void)snprintf(job->result, sizeof(job->result), "%s", result);
	return 0;
}

static int fill_request(sd_bus_message *m, const char *unit)
{
	int r = sd_bus_message_append(m, "ss", unit, "fail");

	if (r >= 0)
		r = sd_bus_message_open_container(m, 'a', "(sv)");
	if (r >= 0)
		r = sd_bus_message_append(m, "(sv)", "Description", "s", "Casemate session");
	if (r >= 0)
		r = sd_bus_message_append(m, "(sv)", "Slice", "s", "casemate.slice");
	if (r >= 0)
		r = sd_bus_message_append(m, "(sv)", "Delegate", "b", 1);
	if (r >= 0)
		r = sd_bus_message_append(m, "(sv)", "CollectMode", "s", "inactive-or-failed");
	if (r >= 0)
		r = sd_bus_message_append(m, "(sv)", "PIDs", "au", 1, (uint32_t)getpid());
	if (r >= 0)
		r = sd_bus_message_close_container(m);
	if (r >= 0)
		r = sd_bus_message_append(m, "a(sa(sv))", 0);
	return r;
}

/* The call; job->path on success. *ret_exists: a unit of this name is what is in the way. */
static int start_unit(sd_bus *bus, const char *unit, struct job *job, bool *ret_exists,
		      struct cm_error *err)
{
	sd_bus_message *m = NULL;
	sd_bus_message *reply = NULL;
	sd_bus_error why = SD_BUS_ERROR_NULL;
	const char *path = NULL;
	int r = sd_bus_message_new_method_call(bus, &m, systemd_name, systemd_path, systemd_manager,
					       "StartTransientUnit");

	if (r >= 0)
		r = fill_request(m, unit);
	if (r >= 0)
		r = sd_bus_call(bus, m, CALL_TIMEOUT_US, &why, &reply);
	if (r >= 0)
		r = sd_bus_message_read(reply, "o", &path);
	if (r >= 0)
		(void)snprintf(job->path, sizeof(job->path), "%s", path);
	else if (sd_bus_error_has_name(&why, SD_BUS_ERROR_SERVICE_UNKNOWN))
		/* a bus, but no systemd on it */
		r = no_session(err);
	else
		r = refused(err, unit, "cannot start", why.message ? why.message : strerror(-r));
	*ret_exists = sd_bus_error_has_name(&why, "org.freedesktop.systemd1.UnitExists") > 0;
	sd_bus_error_free(&why);
	sd_bus_message_unref(reply);
	sd_bus_message_unref(m);
	return r < 0 ? r : CM_OK;
}

/*
 * The scope of the session's last jail: systemd hears a moment later than we do that it is empty.
 * The session's lock says that no other keeper is in it.
 */
static int start_unit_again(sd_bus *bus, const char *unit, struct job *job, struct cm_error *err)
{
	const struct timespec pause = { 0, GONE_PAUSE_NS };
	int64_t deadline = cm_clock_mono_ms() + GONE_TIMEOUT_MS;
	bool exists = false;
	int r = start_unit(bus, unit, job, &exists, err);

	while (r < 0 && exists && cm_clock_mono_ms() < deadline) {
		(void)nanosleep(&pause, NULL);
		r = start_unit(bus, unit, job, &exists, err);
	}
	return r;
}

/* We are in the scope when its job has ended, and not before. */
static int wait_for_job(sd_bus *bus, const char *unit, const struct job *job, struct cm_error *err)
{
	int64_t deadline = cm_clock_mono_ms() + JOB_TIMEOUT_MS;

	while (!job->has_ended) {
		int64_t left_ms = deadline - cm_clock_mono_ms();
		int r = sd_bus_process(bus, NULL);

		if (r == 0 && left_ms > 0)
			r = sd_bus_wait(bus, (uint64_t)left_ms * 1000);
		if (r < 0 && r != -EINTR)
			return refused(err, unit, "lost systemd while starting", strerror(-r));
		if (left_ms <= 0)
			return refused(err, unit, "systemd does not start", "timed out");
	}
	if (strcmp(job->result, "done") != 0)
		return refused(err, unit, "systemd did not start", job->result);
	return CM_OK;
}

static int ask_for_scope(const char *unit, struct cm_error *err)
{
	struct job job = { "", false, "" };
	sd_bus *bus = NULL;
	bool is_direct = false;
	int r = connect_to_manager(&bus, &is_direct, err);

	if (r < 0)
		return r;
	/* before the call, or a quick job ends unseen; nobody has a name where there is no bus */
	r = sd_bus_match_signal(bus, NULL, is_direct ? NULL : systemd_name, systemd_path,
				systemd_manager, "JobRemoved", on_job_removed, &job);
	if (r < 0)
		r = no_session(err);
	else
		r = start_unit_again(bus, unit, &job, err);
	if (r == CM_OK)
		r = wait_for_job(bus, unit, &job, err);
	sd_bus_flush_close_unref(bus);
	return r;
}

/*
 * Controllers that cannot be had are left out without a word: the keeper reads its limits back
 * and knows which of them are required.
 */
static void enable_controllers(int dir_fd)
{
	char text[16];

	for (size_t i = 0; i < CM_CG_N; i++) {
		if ((CM_CG_LIMITING & 1U << i) == 0)
			continue;
		(void)snprintf(text, sizeof(text), "+%s", cm_cgroup_names[i]);
		(void)cm_write_file_at(dir_fd, "cgroup.subtree_control", text);
	}
}

/* From the scope's top into its `keeper`. The number 0 stands for the writer. */
static int settle(const char *dir, const char *unit, struct cm_error *err)
{
	struct statfs fs;
	CM_AUTO_FD int fd = open(dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r;

	if (fd < 0 || fstatfs(fd, &fs) < 0)
		return refused(err, unit, "cannot open the group of", strerror(errno));
	if (fs.f_type != CGROUP2_SUPER_MAGIC)
		return refused(err, unit, "cannot use", "not a v2 control group");
	if (mkdirat(fd, "keeper", 0755) < 0 && errno != EEXIST)
		return refused(err, unit, "cannot make a group in", strerror(errno));
	r = cm_write_file_at(fd, "keeper/cgroup.procs", "0");
	if (r < 0)
		return refused(err, unit, "cannot move into a group of", strerror(-r));
	enable_controllers(fd);
	return CM_OK;
}

static int run(char *argv[], struct cm_error *err)
{
	static char base[sizeof("--cgroup-base=") + PATH_MAX] = "--cgroup-base=";
	char *dir = base + strlen(base);
	char unit[CM_SCOPE_UNIT_SIZE];
	char self[8192];
	const char *keeper = argv[3];
	ssize_t n;
	int r;

	if (!cm_scope_unit_name(argv[1], unit, sizeof(unit))) {
		cm_error_set(err, CM_E_INVALID, 0, "'%s' is not a session id", argv[1]);
		cm_error_hint(err, "use 1 to 128 of A-Z a-z 0-9 . _ -");
		return CM_E_INVALID;
	}
	r = ask_for_scope(unit, err);
	if (r < 0)
		return r;
	n = cm_read_file_at(AT_FDCWD, "/proc/self/cgroup", self, sizeof(self));
	if (n < 0)
		return refused(err, unit, "cannot find the group of", strerror((int)-n));
	if (!cm_scope_own_dir(self, unit, dir, PATH_MAX))
		return refused(err, unit, "not moved into", "systemd does not use v2 alone here");
	r = settle(dir, unit, err);
	if (r < 0)
		return r;
	/* the place of "--" and of the keeper's name make room for one argument more */
	argv[2] = argv[3];
	argv[3] = base;
	execv(keeper, &argv[2]);
	cm_error_set(err, CM_E_SYS, errno, "cannot execute '%s' (%s)", keeper, strerror(errno));
	cm_error_hint(err, "install casemate again, all of its files at once");
	return CM_E_SYS;
}

int main(int argc, char *argv[])
{
	struct cm_error err = CM_ERROR_INIT;

	if (argc < 4 || strcmp(argv[2], "--") != 0) {
		(void)fprintf(stderr, "usage: casemate-scope SESSION-ID -- KEEPER [ARG...]\n");
		return STATUS_FAILED;
	}
	run(argv, &err);
	/* the plan is in the socket unread: the starter gets a reset, and then this */
	if (cm_proto_send_error(STARTER_FD, CM_REC_FAILED, 0, &err) < 0)
		(void)fprintf(stderr, "casemate: %s\n", err.msg);
	return STATUS_FAILED;
}
