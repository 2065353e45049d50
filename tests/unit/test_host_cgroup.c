/* SPDX-License-Identifier: Apache-2.0 */
/* Control-group facts from texts of real hosts, and from trees of files that look like cgroupfs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "isolation/host/cgroup_internal.h"
#include "runtime/base/fd.h"

/* Too large for a stack of many. */
static struct cm_host_cgroup facts;
static struct cm_host_cgroup_v2 v2;

static const char debian_mounts[] =
	"22 28 0:20 / /sys rw,nosuid,nodev,noexec,relatime shared:7 - sysfs sysfs rw\n"
	"28 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,errors=remount-ro\n"
	"26 22 0:24 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 master:3 - cgroup2 "
	"cgroup2 rw,nsdelegate,memory_recursiveprot\n"
	"27 22 0:25 / /sys/fs/pstore rw,nosuid,nodev,noexec,relatime shared:10 - pstore pstore rw\n";

static const char hybrid_mounts[] =
	"31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
	"32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
	"33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct\n"
	"34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n"
	"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
	"36 31 0:33 / /sys/fs/cgroup/devices rw,relatime - cgroup cgroup rw,devices\n"
	"37 31 0:34 / /sys/fs/cgroup/freezer rw,relatime - cgroup cgroup rw,freezer\n"
	"38 31 0:35 / /sys/fs/cgroup/blkio rw,relatime - cgroup cgroup rw,blkio\n"
	"39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"
	"40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd\n"
	"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

static const char hybrid_self[] = "9:name=systemd:/\n"
				  "8:pids:/\n"
				  "7:blkio:/\n"
				  "6:freezer:/\n"
				  "5:devices:/\n"
				  "4:memory:/process_api/1cc0a72c218dc32b45132921d76c6b21\n"
				  "3:cpuset:/\n"
				  "2:cpuacct:/\n"
				  "1:cpu:/\n"
				  "0::/\n";

static const char v1_mounts[] =
	"25 18 0:22 / /sys/fs/cgroup ro,nosuid shared:9 - tmpfs tmpfs ro,mode=755\n"
	"30 25 0:26 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:11 - cgroup cgroup "
	"rw,cpu,cpuacct\n"
	"31 25 0:27 / /sys/fs/cgroup/memory,pids rw,nosuid shared:12 - cgroup cgroup "
	"rw,memory,pids\n"
	"32 25 0:28 / /sys/fs/cgroup/freezer rw,nosuid shared:13 - cgroup cgroup rw,freezer\n";

static void test_debian_user_session(void **state)
{
	static const char self[] =
		"0::/user.slice/user-1000.slice/user@1000.service/app.slice/vte-spawn-1.scope\n";

	(void)state;
	cm_host_cgroup_parse(debian_mounts, self, &facts);
	assert_int_equal(facts.kind, CM_CGROUP_V2);
	assert_int_equal(facts.controllers, 0);
	assert_string_equal(facts.v2_base,
			    "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/"
			    "vte-spawn-1.scope");
	assert_string_equal(facts.reason, "");
	assert_true(cm_host_cgroup_parse_v2(debian_mounts, self, &v2));
	assert_string_equal(v2.mount, "/sys/fs/cgroup");
	assert_string_equal(v2.own, facts.v2_base);
}

static void test_ssh_session_scope(void **state)
{
	(void)state;
	cm_host_cgroup_parse(debian_mounts, "0::/user.slice/user-1001.slice/session-3.scope\n",
			     &facts);
	assert_int_equal(facts.kind, CM_CGROUP_V2);
	assert_string_equal(facts.v2_base,
			    "/sys/fs/cgroup/user.slice/user-1001.slice/session-3.scope");
}

static void test_docker_with_a_cgroup_namespace(void **state)
{
	static const char mounts[] =
		"1290 1289 0:26 / /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup "
		"rw,nsdelegate,memory_recursiveprot\n";

	(void)state;
	assert_true(cm_host_cgroup_parse_v2(mounts, "0::/\n", &v2));
	assert_string_equal(v2.mount, "/sys/fs/cgroup");
	assert_string_equal(v2.own, "/sys/fs/cgroup");
	/* the mount is of a part above the namespace's root: nothing in it is ours by name */
	assert_false(cm_host_cgroup_parse_v2("1 1 0:26 /.. /sys/fs/cgroup rw - cgroup2 c rw\n",
					     "0::/\n", &v2));
	assert_string_equal(v2.own, "");
	/* moved out of the namespace */
	cm_host_cgroup_parse(mounts, "0::/../other\n", &facts);
	assert_int_equal(facts.kind, CM_CGROUP_NONE);
}

static void test_docker_without_a_cgroup_namespace(void **state)
{
	static const char mounts[] =
		"600 599 0:32 /docker/abc /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory\n"
		"601 599 0:36 /docker/ab /sys/fs/cgroup/pids rw,nosuid - cgroup cgroup rw,pids\n";
	static const char self[] = "4:memory:/docker/abc/inner\n8:pids:/docker/abc\n";

	(void)state;
	cm_host_cgroup_parse(mounts, self, &facts);
	assert_int_equal(facts.kind, CM_CGROUP_V1);
	assert_string_equal(facts.v1_base[0], "/sys/fs/cgroup/memory/inner");
	/* "/docker/ab" is not a parent of "/docker/abc" */
	assert_string_equal(facts.v1_base[1], "");
	assert_int_equal(facts.controllers, CM_CG_MEMORY);
}

static void test_hybrid(void **state)
{
	(void)state;
	cm_host_cgroup_parse(hybrid_mounts, hybrid_self, &facts);
	assert_int_equal(facts.kind, CM_CGROUP_V1);
	assert_int_equal(facts.controllers, (1U << CM_CG_N) - 1);
	assert_string_equal(facts.v1_base[0], "/sys/fs/cgroup/memory/process_api/"
					      "1cc0a72c218dc32b45132921d76c6b21");
	assert_string_equal(facts.v1_base[1], "/sys/fs/cgroup/pids");
	/* "cpu" is not the beginning of "cpuset" or "cpuacct" */
	assert_string_equal(facts.v1_base[2], "/sys/fs/cgroup/cpu");
	assert_string_equal(facts.v1_base[3], "/sys/fs/cgroup/cpuset");
	assert_string_equal(facts.v1_base[4], "/sys/fs/cgroup/freezer");
	assert_string_equal(facts.v2_base, "");
	/* v1 has neither memory nor pids: they are on v2, and v2 is used */
	cm_host_cgroup_parse("37 31 0:34 / /c/freezer rw - cgroup cgroup rw,freezer\n"
			     "41 31 0:38 / /c/unified rw - cgroup2 cgroup2 rw\n",
			     "6:freezer:/\n0::/a\n", &facts);
	assert_int_equal(facts.kind, CM_CGROUP_V2);
	assert_int_equal(facts.controllers, 0);
	assert_string_equal(facts.v1_base[4], "");
	assert_string_equal(facts.v2_base, "/c/unified/a");
}

static void test_v1_only(void **state)
{
	(void)state;
	cm_host_cgroup_parse(v1_mounts,
			     "5:freezer:/\n4:cpu,cpuacct:/user.slice\n3:memory,pids:/user.slice\n"
			     "1:name=systemd:/user.slice\n",
			     &facts);
	assert_int_equal(facts.kind, CM_CGROUP_V1);
	assert_int_equal(facts.controllers, CM_CG_MEMORY | CM_CG_PIDS | CM_CG_CPU | CM_CG_FREEZER);
	assert_string_equal(facts.v1_base[2], "/sys/fs/cgroup/cpu,cpuacct/user.slice");
	/* mounted together: one directory for both */
	assert_string_equal(facts.v1_base[0], "/sys/fs/cgroup/memory,pids/user.slice");
	assert_string_equal(facts.v1_base[1], facts.v1_base[0]);
	assert_string_equal(facts.v1_base[4], "/sys/fs/cgroup/freezer");
}

static void test_escaped_paths(void **state)
{
	(void)state;
	assert_true(cm_host_cgroup_parse_v2(
		"1 1 0:1 /a\\040b\\134c /my\\040c\\011g rw - cgroup2 none rw\n", "0::/a b\\c/d\n",
		&v2));
	assert_string_equal(v2.mount, "/my c\tg");
	assert_string_equal(v2.own, "/my c\tg/d");
	/* an escape that is cut off, a newline, a NUL, more than a byte */
	assert_false(
		cm_host_cgroup_parse_v2("1 1 0:1 / /x\\04 rw - cgroup2 n rw\n", "0::/\n", &v2));
	assert_false(
		cm_host_cgroup_parse_v2("1 1 0:1 / /x\\012y rw - cgroup2 n rw\n", "0::/\n", &v2));
	assert_false(
		cm_host_cgroup_parse_v2("1 1 0:1 / /x\\000y rw - cgroup2 n rw\n", "0::/\n", &v2));
	assert_false(
		cm_host_cgroup_parse_v2("1 1 0:1 / /x\\777 rw - cgroup2 n rw\n", "0::/\n", &v2));
}

static void test_garbage(void **state)
{
	static const char *const mounts[] = {
		"",
		"\n\n\n",
		"1",
		"1 1 0:1 / /x rw - cgroup2",
		"1 1 0:1 / /x rw cgroup2 n rw\n",
		"1 1 0:1 / / rw - cgroup2 n rw\n",
		"1 1 0:1 x y rw - cgroup2 n rw\n",
		"1 1 0:1  /x rw - cgroup2 n rw\n",
		"1 1 0:1 / /x rw - cgroup n rw,memory2,xmemory\n",
	};
	static const char *const selves[] = {
		"0::/\n4:memory:/\n", "", "0::\n", "0:/\n", "::/\n", "0::relative\n", "garbage",
		"0::/x (deleted)\n"
	};
	char longest[PATH_MAX + 64];

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(mounts); i++) {
		cm_host_cgroup_parse(mounts[i], "0::/\n4:memory:/\n", &facts);
		assert_int_equal(facts.kind, CM_CGROUP_NONE);
		assert_string_not_equal(facts.reason, "");
	}
	for (size_t i = 1; i < CM_ARRAY_SIZE(selves); i++) {
		cm_host_cgroup_parse(debian_mounts, selves[i], &facts);
		assert_int_equal(facts.kind, CM_CGROUP_NONE);
	}
	cm_host_cgroup_parse(debian_mounts, selves[0], &facts);
	assert_int_equal(facts.kind, CM_CGROUP_V2);
	/* a path that does not fit with the mount point before it */
	memset(longest, 'a', sizeof(longest));
	memcpy(longest, "0::/", 4);
	longest[PATH_MAX - 4] = '\0';
	cm_host_cgroup_parse(debian_mounts, longest, &facts);
	assert_int_equal(facts.kind, CM_CGROUP_NONE);
	assert_string_equal(facts.v2_base, "");
}

/* A directory that looks like a group. NULL text: the file is not made. */
static void fake_group(const char *dir, const char *procs, const char *controllers,
		       const char *enabled)
{
	const char *const files[] = { "cgroup.procs", "cgroup.controllers",
				      "cgroup.subtree_control" };
	const char *const texts[] = { procs, controllers, enabled };
	char path[PATH_MAX];

	assert_int_equal(mkdir(dir, 0755), 0);
	for (size_t i = 0; i < CM_ARRAY_SIZE(files); i++) {
		int fd;

		if (!texts[i])
			continue;
		assert_true(snprintf(path, sizeof(path), "%s/%s", dir, files[i]) > 0);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		assert_true(fd >= 0);
		assert_int_equal(cm_write_all(fd, texts[i], strlen(texts[i])), 0);
		close(fd);
	}
}

struct tree {
	char top[64];
	char mount[80];
	char run[80];
};

static int tree_setup(void **state)
{
	static struct tree t;

	(void)snprintf(t.top, sizeof(t.top), "/tmp/cm-test-cgroup.XXXXXX");
	if (!mkdtemp(t.top))
		return -1;
	(void)snprintf(t.mount, sizeof(t.mount), "%s/cg", t.top);
	(void)snprintf(t.run, sizeof(t.run), "%s/run", t.top);
	*state = &t;
	return mkdir(t.run, 0700);
}

static int tree_teardown(void **state)
{
	struct tree *t = *state;

	return cm_remove_tree_at(AT_FDCWD, t->top);
}

/* The path of a group of the tree, as static text. */
static const char *at(const struct tree *t, const char *rest)
{
	static char path[4][PATH_MAX];
	static unsigned int turn;
	char *out = path[turn++ % 4];

	(void)snprintf(out, PATH_MAX, "%s%s", t->mount, rest);
	return out;
}

static void resolve(const struct tree *t, bool is_root, const char *own)
{
	(void)snprintf(v2.mount, sizeof(v2.mount), "%s", t->mount);
	(void)snprintf(v2.own, sizeof(v2.own), "%s%s", t->mount, own);
	cm_host_cgroup_resolve_v2(is_root, 1000, t->run, &v2, &facts);
}

static void test_root_host(void **state)
{
	struct tree *t = *state;

	/* the true root: processes are no matter */
	fake_group(t->mount, "1\n2\n", "cpuset cpu io memory hugetlb pids rdma misc\n", "\n");
	resolve(t, true, "/system.slice/ssh.service");
	assert_int_equal(facts.kind, CM_CGROUP_V2);
	assert_string_equal(facts.v2_base, at(t, "/casemate.slice"));
	assert_int_equal(facts.controllers, (1U << CM_CG_N) - 1);
	assert_string_equal(facts.reason, "");
	assert_false(facts.needs_scope);
}

static void test_root_without_memory(void **state)
{
	struct tree *t = *state;

	fake_group(t->mount, "", "cpuset cpu io pids\n", "\n");
	resolve(t, true, "");
	assert_int_equal(facts.kind, CM_CGROUP_V2);
	assert_int_equal(facts.controllers & CM_CG_MEMORY, 0);
	assert_non_null(strstr(facts.reason, "for: memory"));
}

static void test_root_in_a_container(void **state)
{
	struct tree *t = *state;
	int fd;

	fake_group(t->mount, "1\n", "memory pids\n", "\n");
	fd = open(at(t, "/cgroup.type"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	close(fd);
	resolve(t, true, "");
	assert_int_equal(facts.kind, CM_CGROUP_NONE);
	assert_non_null(strstr(facts.reason, "holds processes"));
	assert_string_equal(facts.v2_base, "");
	/* the same without processes, as where systemd runs in the container */
	assert_int_equal(truncate(at(t, "/cgroup.procs"), 0), 0);
	resolve(t, true, "");
	assert_int_equal(facts.kind, CM_CGROUP_V2);
	/* without the file nothing can be handed down */
	assert_int_equal(unlink(at(t, "/cgroup.subtree_control")), 0);
	resolve(t, true, "");
	assert_int_equal(facts.kind, CM_CGROUP_NONE);
	assert_non_null(strstr(facts.reason, "cannot be written"));
}

static void test_user_in_a_delegated_scope(void **state)
{
	struct tree *t = *state;

	fake_group(t->mount, "", "memory pids cpu\n", "\n");
	fake_group(at(t, "/x.scope"), "", "memory pids\n", "\n");
	fake_group(at(t, "/x.scope/shell"), "7\n", "", "");
	resolve(t, false, "/x.scope/shell");
	assert_int_equal(facts.kind, CM_CGROUP_V2);
	assert_string_equal(facts.v2_base, at(t, "/x.scope"));
	assert_int_equal(facts.controllers, CM_CG_MEMORY | CM_CG_PIDS | CM_CG_FREEZER);
	assert_non_null(strstr(facts.reason, "for: cpu"));
	assert_false(facts.needs_scope);
}

static void test_user_base_with_processes(void **state)
{
	struct tree *t = *state;

	/* what is not handed down already cannot be any more */
	fake_group(t->mount, "3\n", "memory pids cpu\n", "pids\n");
	fake_group(at(t, "/own"), "7\n", "", "");
	resolve(t, false, "/own");
	assert_int_equal(facts.controllers, CM_CG_PIDS | CM_CG_FREEZER);
}

#define MANAGER "/user.slice/user-1000.slice/user@1000.service"

static void make_session(struct tree *t)
{
	fake_group(t->mount, "", "memory pids cpu\n", NULL);
	fake_group(at(t, "/user.slice"), "", "memory pids cpu\n", NULL);
	fake_group(at(t, "/user.slice/user-1000.slice"), "", "memory pids\n", NULL);
	fake_group(at(t, "/user.slice/user-1000.slice/session-3.scope"), "7\n", "", NULL);
	fake_group(at(t, MANAGER), "", "memory pids\n", "memory pids\n");
	fake_group(at(t, MANAGER "/app.slice"), "", "memory pids\n", "");
	fake_group(at(t, MANAGER "/app.slice/a.scope"), "7\n", "memory pids\n", "");
}

static void test_user_needs_a_scope(void **state)
{
	static const char *const owns[] = {
		"/user.slice/user-1000.slice/session-3.scope",
		/* writable above, but the user's manager rules there */
		"/user.slice/user-1000.slice/user@1000.service/app.slice/a.scope",
		"/user.slice/user-1000.slice/user@1000.service/app.slice",
	};
	struct tree *t = *state;
	char bus[128];
	int fd;

	make_session(t);
	for (size_t i = 0; i < CM_ARRAY_SIZE(owns); i++) {
		resolve(t, false, owns[i]);
		assert_int_equal(facts.kind, CM_CGROUP_NONE);
		assert_string_equal(facts.reason, "no systemd user session");
		assert_false(facts.needs_scope);
		assert_true(facts.needs_manager);
	}
	(void)snprintf(bus, sizeof(bus), "%s/bus", t->run);
	fd = open(bus, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	for (size_t i = 0; i < CM_ARRAY_SIZE(owns); i++) {
		resolve(t, false, owns[i]);
		assert_int_equal(facts.kind, CM_CGROUP_V2);
		assert_true(facts.needs_scope);
		assert_string_equal(facts.v2_base, "");
		assert_int_equal(facts.controllers, CM_CG_MEMORY | CM_CG_PIDS | CM_CG_FREEZER);
		assert_non_null(strstr(facts.reason, "for: cpu"));
		assert_false(facts.needs_manager);
	}
	/* the manager was killed: its socket is there, its group is not */
	assert_int_equal(unlink(at(t, MANAGER "/cgroup.controllers")), 0);
	resolve(t, false, owns[0]);
	assert_int_equal(facts.kind, CM_CGROUP_NONE);
	assert_string_equal(facts.reason, "no systemd user session");
	assert_true(facts.needs_manager);
}

static void test_v1_not_writable(void **state)
{
	struct tree *t = *state;

	fake_group(t->mount, "", NULL, NULL);
	memset(&facts, 0, sizeof(facts));
	facts.kind = CM_CGROUP_V1;
	facts.controllers = CM_CG_MEMORY | CM_CG_PIDS;
	(void)snprintf(facts.v1_base[0], sizeof(facts.v1_base[0]), "%s", t->mount);
	(void)snprintf(facts.v1_base[1], sizeof(facts.v1_base[1]), "%s/absent", t->mount);
	cm_host_cgroup_resolve_v1(&facts);
	assert_int_equal(facts.kind, CM_CGROUP_V1);
	assert_int_equal(facts.controllers, CM_CG_MEMORY);
	assert_string_equal(facts.v1_base[1], "");
	assert_non_null(strstr(facts.reason, " pids"));
	(void)snprintf(facts.v1_base[0], sizeof(facts.v1_base[0]), "%s/absent", t->mount);
	cm_host_cgroup_resolve_v1(&facts);
	assert_int_equal(facts.kind, CM_CGROUP_NONE);
	assert_int_equal(facts.controllers, 0);
	assert_string_not_equal(facts.reason, "");
}

/* Whatever this host is, what is said of it must hold together. */
static void test_this_host(void **state)
{
	(void)state;
	cm_host_cgroup_read(geteuid() == 0, &facts);
	switch (facts.kind) {
	case CM_CGROUP_NONE:
		assert_string_not_equal(facts.reason, "");
		assert_int_equal(facts.controllers, 0);
		break;
	case CM_CGROUP_V1:
		for (size_t i = 0; i < CM_CG_N; i++) {
			bool has = (facts.controllers & (1U << i)) != 0;

			assert_int_equal(has, facts.v1_base[i][0] != '\0');
			assert_true(!has || access(facts.v1_base[i], W_OK) == 0);
		}
		break;
	case CM_CGROUP_V2:
		assert_int_equal(facts.needs_scope, facts.v2_base[0] == '\0');
		break;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_debian_user_session),
		cmocka_unit_test(test_ssh_session_scope),
		cmocka_unit_test(test_docker_with_a_cgroup_namespace),
		cmocka_unit_test(test_docker_without_a_cgroup_namespace),
		cmocka_unit_test(test_hybrid),
		cmocka_unit_test(test_v1_only),
		cmocka_unit_test(test_escaped_paths),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test_setup_teardown(test_root_host, tree_setup, tree_teardown),
		cmocka_unit_test_setup_teardown(test_root_without_memory, tree_setup,
						tree_teardown),
		cmocka_unit_test_setup_teardown(test_root_in_a_container, tree_setup,
						tree_teardown),
		cmocka_unit_test_setup_teardown(test_user_in_a_delegated_scope, tree_setup,
						tree_teardown),
		cmocka_unit_test_setup_teardown(test_user_base_with_processes, tree_setup,
						tree_teardown),
		cmocka_unit_test_setup_teardown(test_user_needs_a_scope, tree_setup, tree_teardown),
		cmocka_unit_test_setup_teardown(test_v1_not_writable, tree_setup, tree_teardown),
		cmocka_unit_test(test_this_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
