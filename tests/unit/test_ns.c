/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces and id maps, each function alone: what the kernel then says about them. */
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/utsname.h>

#include "isolation/mech/ns.h"
#include "tests/unit/test_base.h"

#define BASE (CM_ID_SLOT_BASE + (CM_ID_SLOTS - 1) * CM_ID_SLOT_SIZE)

static const char strings[] = "\0jail-1";

static struct cm_plan_header header;
static const struct cm_plan plan = { .header = &header, .strings = strings };

static void use_plan(uint32_t idmap, uint32_t flags)
{
	header = (struct cm_plan_header){ .idmap = idmap, .flags = flags, .hostname = 1 };
	header.uid_base = idmap == CM_IDMAP_SLOT ? BASE : geteuid();
	header.gid_base = idmap == CM_IDMAP_SLOT ? BASE : getegid();
}

/* Lines with single spaces, as "0 1879048192 65536\n". */
static void read_map(pid_t pid, const char *file, char *text, size_t size)
{
	char path[64];
	char raw[512];
	size_t n = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	assert_true(cm_read_file_at(AT_FDCWD, path, raw, sizeof(raw)) >= 0);
	for (const char *p = raw + strspn(raw, " "); *p && n + 1 < size; p++) {
		if (*p != ' ' || (p[1] != ' ' && p[1] != '\n' && n > 0 && text[n - 1] != '\n'))
			text[n++] = *p;
	}
	text[n] = '\0';
}

static bool same_namespace(pid_t pid, const char *name)
{
	char ours[64];
	char theirs[64];
	struct stat a;
	struct stat b;

	(void)snprintf(ours, sizeof(ours), "/proc/self/ns/%s", name);
	(void)snprintf(theirs, sizeof(theirs), "/proc/%d/ns/%s", (int)pid, name);
	assert_int_equal(stat(ours, &a), 0);
	assert_int_equal(stat(theirs, &b), 0);
	return a.st_ino == b.st_ino;
}

static bool is_loopback_up(void)
{
	CM_AUTO_FD int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { .ifr_name = "lo" };

	return sock >= 0 && ioctl(sock, SIOCGIFFLAGS, &request) == 0 &&
	       (request.ifr_flags & IFF_UP) != 0;
}

struct init_report {
	int pid;
	int r;
	uint32_t uid;
	uint32_t gid;
	bool was_up;
	bool is_up;
	char hostname[65];
	struct cm_error err;
};

/* What init does with these functions, and what it sees then. */
static void be_init(int go_fd, int report_fd)
{
	struct init_report report = { .pid = getpid() };
	struct utsname name;

	report.was_up = is_loopback_up();
	report.r = cm_ns_settle(&report.err);
	if (report.r == CM_OK && (header.flags & CM_PLANF_NETNS) != 0)
		report.r = cm_ns_loopback_up(&report.err);
	/* the maps are written from outside meanwhile */
	if (cm_read_exact(go_fd, &(char){ 0 }, 1) != 0)
		_exit(1);
	if (report.r == CM_OK)
		report.r = cm_ns_become_builder(&plan, &report.err);
	if (report.r == CM_OK)
		report.r = cm_ns_set_hostname(&plan, &report.err);
	if (report.r == CM_OK)
		report.r = cm_ns_become_init(&plan, &report.err);
	report.uid = geteuid();
	report.gid = getegid();
	report.is_up = is_loopback_up();
	if (uname(&name) == 0)
		(void)snprintf(report.hostname, sizeof(report.hostname), "%s", name.nodename);
	(void)cm_write_all(report_fd, &report, sizeof(report));
	(void)cm_read_exact(go_fd, &(char){ 0 }, 1);
	_exit(0);
}

struct init {
	pid_t pid;
	int pidfd;
	int go;
	int report;
};

static void start(struct init *init, bool has_own_network)
{
	struct cm_error err = CM_ERROR_INIT;
	int go[2];
	int report[2];

	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	assert_int_equal(pipe2(report, O_CLOEXEC), 0);
	init->pid = cm_ns_clone_init(has_own_network, -1, &init->pidfd, &err);
	if (init->pid == 0) {
		close(go[1]);
		be_init(go[0], report[1]);
	}
	close(go[0]);
	close(report[1]);
	init->go = go[1];
	init->report = report[0];
	if (init->pid < 0) {
		assert_int_equal(err.code, CM_E_ISOLATION);
		assert_true(err.hint[0] != '\0');
		close(init->go);
		close(init->report);
		skip();
	}
	assert_int_equal(fcntl(init->pidfd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

static void finish(struct init *init)
{
	int status = 0;

	close(init->go);
	close(init->report);
	close(init->pidfd);
	assert_int_equal(waitpid(init->pid, &status, 0), init->pid);
	assert_int_equal(status, 0);
}

static void check_init(bool has_own_network)
{
	static const char *const own[] = { "user", "mnt", "pid", "ipc", "uts", "time" };
	struct cm_error err = CM_ERROR_INIT;
	struct init_report report;
	struct init init;
	char map[128];
	char expected[128];
	bool is_single = header.idmap == CM_IDMAP_SINGLE;

	start(&init, has_own_network);
	if (cm_ns_write_maps(&plan, init.pid, &err) != CM_OK)
		fail_msg("%s: %s", err.msg, strerror(err.sys_errno));
	for (size_t i = 0; i < CM_ARRAY_SIZE(own); i++)
		assert_false(same_namespace(init.pid, own[i]));
	assert_int_equal(same_namespace(init.pid, "net"), !has_own_network);
	/* its own step, after it has joined its group */
	assert_true(same_namespace(init.pid, "cgroup"));
	read_map(init.pid, "uid_map", map, sizeof(map));
	(void)snprintf(expected, sizeof(expected), is_single ? "1000 %u 1\n" : "0 %u 65536\n",
		       header.uid_base);
	assert_string_equal(map, expected);
	read_map(init.pid, "gid_map", map, sizeof(map));
	(void)snprintf(expected, sizeof(expected), is_single ? "1000 %u 1\n" : "0 %u 65536\n",
		       header.gid_base);
	assert_string_equal(map, expected);
	read_map(init.pid, "setgroups", map, sizeof(map));
	assert_string_equal(map, is_single ? "deny\n" : "allow\n");
	/* once and for all */
	assert_int_equal(cm_ns_write_maps(&plan, init.pid, &err), CM_E_ISOLATION);
	assert_int_equal(err.sys_errno, EPERM);
	assert_int_equal(write(init.go, "g", 1), 1);
	assert_int_equal(cm_read_exact(init.report, &report, sizeof(report)), 0);
	if (report.r != CM_OK)
		fail_msg("%s: %s", report.err.msg, strerror(report.err.sys_errno));
	assert_int_equal(report.pid, 1);
	assert_string_equal(report.hostname, "jail-1");
	assert_int_equal(report.uid, is_single ? CM_ID_AGENT : CM_ID_INIT);
	assert_int_equal(report.gid, is_single ? CM_ID_AGENT : CM_ID_INIT);
	if (has_own_network)
		assert_false(report.was_up);
	if (has_own_network)
		assert_true(report.is_up);
	finish(&init);
}

static void test_single_id(void **state)
{
	(void)state;
	use_plan(CM_IDMAP_SINGLE, CM_PLANF_NETNS);
	/* the planner never asks for host id 0; here it is only the number that the test has */
	check_init(true);
	use_plan(CM_IDMAP_SINGLE, 0);
	check_init(false);
}

static void test_slot(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	use_plan(CM_IDMAP_SLOT, CM_PLANF_NETNS);
	check_init(true);
}

static void test_maps_of_nobody(void **state)
{
	struct cm_error err = CM_ERROR_INIT;

	(void)state;
	use_plan(CM_IDMAP_SINGLE, 0);
	/* no such process */
	assert_int_equal(cm_ns_write_maps(&plan, 0x3fffffff, &err), CM_E_ISOLATION);
	assert_int_equal(err.sys_errno, ENOENT);
	assert_string_equal(err.msg, "cannot write the jail's setgroups");
}

/* The map of a namespace: a process enters it, so that it can be read from outside. */
static void assert_idmap(int ns_fd, const char *file, const char *expected)
{
	char map[512];
	char joined = 0;
	int ready[2];
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork_child();
	if (pid == 0) {
		joined = setns(ns_fd, CLONE_NEWUSER) == 0 ? 1 : 0;
		(void)cm_write_all(ready[1], &joined, 1);
		for (;;)
			(void)pause();
	}
	assert_int_equal(cm_read_exact(ready[0], &joined, 1), 0);
	assert_true(joined);
	read_map(pid, file, map, sizeof(map));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(ready[0]);
	close(ready[1]);
	assert_string_equal(map, expected);
}

static void test_idmap_open(void **state)
{
	/* the slot's own agent is not in it: its kernel id is where the owner is mapped to */
	static const char rest[] = "%u %u 1\n%u %u 1000\n%u %u 64535\n";
	char expected[128];
	struct cm_error err = CM_ERROR_INIT;
	size_t fds = count_fds();
	pid_t holder = 0;
	int fd = -7;

	(void)state;
	if (geteuid() != 0)
		skip();
	if (cm_ns_idmap_open(BASE, 0, 50, &fd, &holder, &err) != CM_OK)
		fail_msg("%s: %s", err.msg, strerror(err.sys_errno));
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	(void)snprintf(expected, sizeof(expected), rest, 0U, BASE + 1000, BASE, BASE, BASE + 1001,
		       BASE + 1001);
	assert_idmap(fd, "uid_map", expected);
	(void)snprintf(expected, sizeof(expected), rest, 50U, BASE + 1000, BASE, BASE, BASE + 1001,
		       BASE + 1001);
	assert_idmap(fd, "gid_map", expected);
	close(fd);
	assert_int_equal(count_fds(), fds);
	/* the process that held it is waited for, once */
	assert_true(holder > 0);
	cm_ns_idmap_reap(&holder);
	assert_int_equal(holder, 0);
	cm_ns_idmap_reap(&holder);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void test_idmap_refusals(void **state)
{
	static const uint32_t own[] = { BASE, BASE + 1, BASE + CM_ID_AGENT,
					BASE + CM_ID_SLOT_SIZE - 1 };
	struct cm_error err = CM_ERROR_INIT;
	pid_t holder = 0;
	int fd = -7;

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(own); i++) {
		assert_int_equal(cm_ns_idmap_open(BASE, own[i], 0, &fd, &holder, &err), CM_E_BUG);
		assert_int_equal(cm_ns_idmap_open(BASE, 0, own[i], &fd, &holder, &err), CM_E_BUG);
	}
	assert_int_equal(fd, -7);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static int be_nobody_and_open(void *data)
{
	struct cm_error err = CM_ERROR_INIT;
	size_t fds = count_fds();
	pid_t holder = 0;
	int fd = -7;

	(void)data;
	if (geteuid() == 0 && (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)))
		return 1;
	/* a child is made and cannot be given the map: it is ended, and nothing stays open */
	if (cm_ns_idmap_open(BASE, 5, 5, &fd, &holder, &err) != CM_E_ISOLATION || fd != -7)
		return 2;
	if (count_fds() != fds)
		return 3;
	return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD ? 0 : 4;
}

static void test_idmap_denied(void **state)
{
	(void)state;
	assert_int_equal(run_child(be_nobody_and_open, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_single_id),      cmocka_unit_test(test_slot),
		cmocka_unit_test(test_maps_of_nobody), cmocka_unit_test(test_idmap_open),
		cmocka_unit_test(test_idmap_refusals), cmocka_unit_test(test_idmap_denied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
