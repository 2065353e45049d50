/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The planner: a request each, compared with the printed plan in golden/, so that a change to a
 * mount or a limit shows in a review; and requests that must be refused.
 *
 *	test_plan_build --update	writes golden/ anew; read the difference before committing
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "runtime/base/alloc.h"
#include "tests/unit/plan_fixture.h"

#define MAX_TEXT (1UL << 20)
#define CHECK_LEN(n, what) assert_true((n) >= 0 && (size_t)(n) < sizeof(what))

static bool wants_update;
static struct cm_plan_builder builder;

static int build(struct fixture *f, struct cm_plan_summary *summary, struct cm_buf *flat,
		 struct cm_error *err)
{
	int r;

	cm_plan_builder_init(&builder);
	r = fixture_build(f, &builder, summary, err);
	if (r == CM_OK)
		r = cm_plan_builder_finish(&builder, flat, err);
	cm_plan_builder_clear(&builder);
	return r;
}

static void print(const struct cm_buf *flat, const struct cm_plan_summary *summary,
		  struct cm_buf *text)
{
	struct cm_plan plan;

	assert_int_equal(cm_plan_check(flat->data, flat->len, &plan, NULL), CM_OK);
	cm_buf_printf(text, "level %s\n", summary->level);
	cm_plan_print(&plan, text);
	cm_buf_puts(text, summary->notes);
	assert_int_equal(cm_buf_status(text), CM_OK);
}

static void compare(const char *name, const struct cm_buf *text)
{
	static char golden[MAX_TEXT];
	char path[512];
	ssize_t n;

	CHECK_LEN(snprintf(path, sizeof(path), "%s/%s.txt", CM_GOLDEN_DIR, name), path);
	if (wants_update) {
		FILE *file = fopen(path, "we");

		assert_non_null(file);
		assert_int_equal(fwrite(text->data, 1, text->len, file), text->len);
		assert_int_equal(fclose(file), 0);
		return;
	}
	n = cm_read_file_at(AT_FDCWD, path, golden, sizeof(golden));
	if (n < 0)
		fail_msg("golden text %s is missing: run with --update and read it", path);
	assert_string_equal(text->data, golden);
}

typedef void (*change_fn)(struct fixture *f);

static void as_root(struct fixture *f)
{
	fixture_be_root(f);
	cm_workspace_facts_clear(&f->workspace);
	fix_workspace(&f->workspace, "/srv/app", ALICE);
	fix_node(&f->workspace.git_dirs, "/srv/app/.git", S_IFDIR | 0755, ALICE, NULL);
	fix_node(&f->tree.tools, "/root/.rustup/toolchains", S_IFDIR | 0755, 0, NULL);
	fix_node(&f->tree.tools, "/root/.rustup/settings.toml", S_IFREG | 0600, 0, NULL);
	fix_node(&f->tree.tools, "/nix/store", S_IFDIR | 0775, 0, NULL);
}

static void as_user(struct fixture *f)
{
	/* nothing of a temporary session's */
	f->spec.limits.idle = (struct cm_limit){ 1800000, true, false };
	f->spec.limits.lifetime = (struct cm_limit){ 28800000, true, false };
	fix_node(&f->tree.tools, "/home/alice/.nvm/versions", S_IFDIR | 0755, ALICE, NULL);
	fix_node(&f->tree.tools, "/home/alice/.local/bin/uv", S_IFREG | 0755, ALICE,
		 "/home/alice/.local/share/uv/0.9/uv");
	/* left out, each with a note */
	fix_node(&f->tree.tools, "/home/alice/app/.venv/bin", S_IFDIR | 0755, ALICE, NULL);
	fix_node(&f->tree.tools, "/home/alice/go/bin", S_IFDIR | 0700, 1005, NULL);
	fix_node(&f->tree.certificates, "/srv/ca/company.pem", S_IFREG | 0644, 0,
		 "/srv/ca/2026.pem");
	fix_node(&f->tree.certificates, "/srv/ca/key.pem", S_IFREG | 0600, 0, NULL);
	must(cm_strv_add(&f->tree.npm, "registry=https://npm.example.org/") == CM_OK);
	must(cm_strv_add(&f->tree.npm, "nodedir=/usr") == CM_OK);
	must(cm_strv_add(&f->tree.npm, "cafile=/srv/elsewhere.pem") == CM_OK);
	must(cm_strv_add(&f->tree.pip, "index-url=https://pip.example.org/simple") == CM_OK);
}

static void as_root_inside(struct fixture *f)
{
	f->spec.user = CM_USER_ROOT;
	f->host.subids = (struct cm_host_subids){ 100000, 65536, 200000, 65536 };
}

static void with_rootfs(struct fixture *f)
{
	cm_tree_facts_clear(&f->tree);
	fix_set(&f->tree.root, "/srv/images/debian");
	fix_node(&f->tree.top, "/srv/images/debian/usr", S_IFDIR | 0755, 0, NULL);
	fix_node(&f->tree.top, "/srv/images/debian/bin", S_IFLNK | 0777, 0, "usr/bin");
	fix_node(&f->tree.top, "/srv/images/debian/secret", S_IFDIR | 0700, 0, NULL);
	fix_node(&f->tree.etc, "/srv/images/debian/etc/alternatives", S_IFDIR | 0755, 0, NULL);
	fix_node(&f->tree.extra, "/dev/null", S_IFCHR | 0666, 0, NULL);
	fix_node(&f->tree.extra, "/srv/images/debian/var/lib/dpkg", S_IFDIR | 0755, 0, NULL);
	fix_set(&f->tree.passwd,
		"root:x:0:0:root:/root:/bin/sh\nnode:x:1000:1000::/srv/node:/bin/sh");
	fix_set(&f->tree.group, "root:x:0:\nstaff:x:50:\n");
}

static void on_host_network(struct fixture *f)
{
	f->spec.network = CM_NETWORK_HOST;
}

/* Before Linux 6.12, with a spec that asks for the most. */
static void refusing_unix_sockets(struct fixture *f)
{
	on_host_network(f);
	f->req.refuses_unix_sockets = true;
	f->host.landlock_abi = 4;
	f->spec.min_level = CM_LEVEL_FULL;
}

static void read_only(struct fixture *f)
{
	f->workspace.is_read_only = true;
}

/* A linked worktree, spelled through a link. */
static void in_worktree(struct fixture *f)
{
	cm_workspace_facts_clear(&f->workspace);
	fix_workspace(&f->workspace, "/data/wt", ALICE);
	fix_set(&f->workspace.spelled, "/home/alice/work/wt");
	fix_set(&f->workspace.cwd, "/home/alice/work/wt/src");
	fix_node(&f->workspace.links, "/home/alice/work", S_IFLNK | 0777, ALICE, "/data");
	/* comes with /usr, and twice */
	fix_node(&f->workspace.links, "/bin", S_IFLNK | 0777, 0, "usr/bin");
	fix_node(&f->workspace.links, "/home/alice/work", S_IFLNK | 0777, ALICE, "/data");
	f->workspace.has_gitfile = true;
	fix_node(&f->workspace.git_dirs, "/data/app/.git/worktrees/wt", S_IFDIR | 0755, ALICE,
		 NULL);
	fix_node(&f->workspace.git_dirs, "/data/app/.git", S_IFDIR | 0755, ALICE, NULL);
}

static void in_submodule(struct fixture *f)
{
	cm_workspace_facts_clear(&f->workspace);
	fix_workspace(&f->workspace, "/home/alice/app/lib", ALICE);
	f->workspace.has_gitfile = true;
	fix_node(&f->workspace.git_dirs, "/home/alice/app/.git/modules/lib", S_IFDIR | 0755, ALICE,
		 NULL);
}

static void with_volumes(struct fixture *f)
{
	/* the longer target first: order of mounting is not order of writing */
	fix_volume(f, "/srv/cache/npm", "/data/cache/npm", false, ALICE);
	fix_volume(f, "/srv/cache", "/data/cache", true, 0);
	fix_volume(f, "/usr/share/dict", "/dict", true, 0);
	fix_volume(f, "/srv/models", "/home/alice/app/models", true, ALICE);
}

static void with_volumes_as_root(struct fixture *f)
{
	as_root(f);
	with_volumes(f);
	/* a session's own directory needs no map */
	fix_volume(f, "/srv/sandboxes/s", "/mine", false, f->req.slot_base + CM_ID_AGENT);
}

static void as_session(struct fixture *f)
{
	as_root(f);
	f->req.session_id = "fix_login.2";
	f->req.is_temporary = false;
	f->req.home_dir = "/var/lib/casemate/sessions/fix_login.2/home";
	f->req.tmp_dir = "/var/lib/casemate/sessions/fix_login.2/tmp";
	f->req.state_dir = "/var/lib/casemate/sessions/fix_login.2";
	f->req.socket_path = "/run/casemate/s/0011223344556677";
	f->req.generation = 4;
	f->host.cgroup.kind = CM_CGROUP_V1;
	f->host.cgroup.controllers =
		CM_CG_MEMORY | CM_CG_PIDS | CM_CG_CPU | CM_CG_CPUSET | CM_CG_FREEZER;
	for (size_t i = 0; i < CM_CG_N; i++)
		(void)snprintf(f->host.cgroup.v1_base[i], PATH_MAX, "/sys/fs/cgroup/%zu", i);
	f->spec.limits.memory = (struct cm_limit){ 512ULL << 20, true, false };
	f->spec.limits.swap = (struct cm_limit){ 64ULL << 20, true, false };
	f->spec.limits.cpus = (struct cm_limit){ 1500, true, true };
	f->spec.limits.pids = (struct cm_limit){ 64, true, false };
	f->spec.limits.open_files = (struct cm_limit){ 1024, true, false };
	f->spec.limits.idle = (struct cm_limit){ 1800000, true, false };
	f->spec.limits.lifetime = (struct cm_limit){ 28800000, true, false };
	fix_set(&f->spec.limits.cpuset, "0-1");
}

static void with_git_writable(struct fixture *f)
{
	in_worktree(f);
	f->spec.git = CM_GIT_RW;
}

static void without_group(struct fixture *f)
{
	f->host.cgroup = (struct cm_host_cgroup){ .kind = CM_CGROUP_NONE };
	(void)snprintf(f->host.cgroup.reason, sizeof(f->host.cgroup.reason),
		       "no cgroup to be had for user 'alice' (no systemd user session)");
	f->spec.limits.memory = (struct cm_limit){ 4ULL << 30, true, true };
}

static void without_workspace(struct fixture *f)
{
	cm_workspace_facts_clear(&f->workspace);
	/* a home that cannot be mounted */
	fix_set(&f->host.home, "/");
	fix_set(&f->host.shell, "/opt/fish");
}

static const struct {
	const char *name;
	change_fn change;
} golden_cases[] = {
	{ "root", as_root },
	{ "user", as_user },
	{ "user-root", as_root_inside },
	{ "rootfs", with_rootfs },
	{ "host-network", on_host_network },
	{ "no-unix", refusing_unix_sockets },
	{ "read-only", read_only },
	{ "worktree", in_worktree },
	{ "submodule", in_submodule },
	{ "volumes", with_volumes },
	{ "volumes-root", with_volumes_as_root },
	{ "session-v1", as_session },
	{ "git-rw", with_git_writable },
	{ "no-cgroup", without_group },
	{ "no-workspace", without_workspace },
};

static void test_golden(void **state)
{
	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(golden_cases); i++) {
		static struct fixture f;
		struct cm_plan_summary summary = { 0 };
		struct cm_error err = CM_ERROR_INIT;
		CM_AUTO_BUF struct cm_buf flat;
		CM_AUTO_BUF struct cm_buf text;

		cm_buf_init(&flat, MAX_TEXT);
		cm_buf_init(&text, MAX_TEXT);
		fixture_init(&f);
		golden_cases[i].change(&f);
		if (build(&f, &summary, &flat, &err) != CM_OK)
			fail_msg("%s: %s", golden_cases[i].name, err.msg);
		print(&flat, &summary, &text);
		compare(golden_cases[i].name, &text);
		fixture_clear(&f);
	}
}

static void no_group(struct fixture *f)
{
	without_group(f);
	f->spec.limits.memory = (struct cm_limit){ 4ULL << 30, true, false };
}

static void no_cpu_controller(struct fixture *f)
{
	f->host.cgroup.controllers &= ~CM_CG_CPU;
	f->spec.limits.cpus = (struct cm_limit){ 1500, true, false };
}

static void no_cpuset_controller(struct fixture *f)
{
	fix_set(&f->spec.limits.cpuset, "0-1");
}

static void too_many_files(struct fixture *f)
{
	f->host.max_open_files = 4096;
	f->spec.limits.open_files = (struct cm_limit){ 8192, true, false };
}

static void full_without_group(struct fixture *f)
{
	without_group(f);
	f->spec.min_level = CM_LEVEL_FULL;
}

static void full_without_pids(struct fixture *f)
{
	f->host.cgroup.controllers = CM_CG_MEMORY;
	f->spec.min_level = CM_LEVEL_FULL;
}

static void full_without_manager(struct fixture *f)
{
	f->host.cgroup = (struct cm_host_cgroup){ .needs_manager = true,
						  .reason = "no systemd user session" };
	f->spec.min_level = CM_LEVEL_FULL;
}

static void no_manager(struct fixture *f)
{
	full_without_manager(f);
	f->spec.min_level = CM_LEVEL_NO_CGROUP;
	f->spec.limits.memory = (struct cm_limit){ 4ULL << 30, true, false };
}

static void old_landlock(struct fixture *f)
{
	f->spec.network = CM_NETWORK_HOST;
	f->host.landlock_abi = 5;
}

static void full_on_host_network(struct fixture *f)
{
	f->spec.network = CM_NETWORK_HOST;
	f->spec.min_level = CM_LEVEL_FULL;
}

/* The rest of the level is still asked for. */
static void fetching_without_group(struct fixture *f)
{
	full_without_group(f);
	refusing_unix_sockets(f);
}

static void no_subids(struct fixture *f)
{
	f->spec.user = CM_USER_ROOT;
	f->host.subids = (struct cm_host_subids){ 100000, 65536, 200000, 2000 };
}

static void powerless_root(struct fixture *f)
{
	fixture_be_root(f);
	f->host.is_root = false;
}

static void root_group(struct fixture *f)
{
	f->host.gid = 0;
}

/* The workspace belongs to another user, and is open to a group that the caller is in. */
static void group_workspace(struct fixture *f)
{
	f->workspace.node.uid = 1005;
	f->workspace.node.gid = 27;
	f->workspace.node.mode = 0770;
	f->host.groups = calloc(1, sizeof(gid_t));
	must(f->host.groups != NULL);
	f->host.groups[0] = 27;
	f->host.n_groups = 1;
}

static void volume_over_home(struct fixture *f)
{
	fix_volume(f, "/srv/x", "/home/alice", false, ALICE);
}

static void volume_over_workspace(struct fixture *f)
{
	fix_volume(f, "/srv/x", "/home/alice/app", false, ALICE);
}

static void volume_in_proc(struct fixture *f)
{
	fix_volume(f, "/srv/x", "/proc/sys", false, ALICE);
}

static void volume_over_usr(struct fixture *f)
{
	fix_volume(f, "/srv/x", "/usr", false, ALICE);
}

static const struct {
	change_fn change;
	int code;
	const char *msg;
	const char *hint;
} refused_cases[] = {
	{ no_group, CM_E_LEVEL,
	  "memory limit cannot be enforced here (no cgroup to be had for user 'alice' (no systemd "
	  "user session))",
	  "see 'casemate doctor', or use --memory '4G?' to go on without" },
	{ no_manager, CM_E_LEVEL, "memory limit cannot be enforced here (no systemd user session)",
	  "sudo loginctl enable-linger alice, or use --memory '4G?' to go on without" },
	{ full_without_manager, CM_E_LEVEL,
	  "level 'full' cannot be had here (no systemd user session)",
	  "sudo loginctl enable-linger alice, or use --min-level no-cgroup to go on without" },
	{ no_cpu_controller, CM_E_LEVEL,
	  "cpus limit cannot be enforced here (no delegated cpu controller)",
	  "see 'casemate doctor', or use --cpus '1.5?' to go on without" },
	{ no_cpuset_controller, CM_E_LEVEL,
	  "cpuset limit cannot be enforced here (no delegated cpuset controller)",
	  "see 'casemate doctor', or use --cpuset '0-1?' to go on without" },
	{ too_many_files, CM_E_LEVEL,
	  "open-files limit cannot be 8192 here (the caller's hard limit is 4096)",
	  "--open-files 4096, or raise the limit with ulimit -Hn" },
	{ full_without_group, CM_E_LEVEL,
	  "level 'full' cannot be had here (no cgroup to be had for user 'alice' (no systemd user "
	  "session))",
	  "see 'casemate doctor', or use --min-level no-cgroup to go on without" },
	{ full_without_pids, CM_E_LEVEL,
	  "level 'full' cannot be had here (no control group for memory and pids)",
	  "see 'casemate doctor', or use --min-level no-cgroup to go on without" },
	{ old_landlock, CM_E_LEVEL,
	  "network 'host' would reach the host's abstract sockets (this kernel's Landlock ABI is "
	  "5, 6 is needed)",
	  "leave --network host out, or use Linux 6.12 or newer with Landlock" },
	{ full_on_host_network, CM_E_LEVEL, "network 'host' is never level 'full'",
	  "leave --network host or --min-level full out" },
	{ fetching_without_group, CM_E_LEVEL,
	  "level 'full' cannot be had here (no cgroup to be had for user 'alice' (no systemd user "
	  "session))",
	  "see 'casemate doctor', or use --min-level no-cgroup to go on without" },
	{ no_subids, CM_E_LEVEL,
	  "--user root needs a range of 65536 subordinate ids for user 'alice'",
	  "sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 alice (take a free "
	  "range), or leave --user root out" },
	{ powerless_root, CM_E_LEVEL,
	  "root without the ids or capabilities to make a jail (CAP_SYS_ADMIN, CAP_SETUID and "
	  "CAP_SETGID are needed)",
	  "run casemate as an ordinary user, or give this container --cap-add SYS_ADMIN and no user "
	  "namespace of its own" },
	{ root_group, CM_E_LEVEL, "the primary group of user 'alice' is root's",
	  "run casemate with another primary group: host group 0 is never mapped into a jail" },
	{ group_workspace, CM_E_DENIED,
	  "'/home/alice/app' is open to one of your groups (27) and to nobody else, and the agent "
	  "would keep that group",
	  "chown it to yourself, or run casemate without that group" },
	{ volume_over_home, CM_E_INVALID, "cannot put a volume at '/home/alice' in the jail",
	  "choose a path of its own, as in --volume SRC:/data" },
	{ volume_over_workspace, CM_E_INVALID,
	  "cannot put a volume at '/home/alice/app' in the jail",
	  "choose a path of its own, as in --volume SRC:/data" },
	{ volume_in_proc, CM_E_INVALID, "cannot put a volume at '/proc/sys' in the jail",
	  "choose a path of its own, as in --volume SRC:/data" },
	{ volume_over_usr, CM_E_INVALID, "cannot put a volume at '/usr' in the jail",
	  "choose a path of its own, as in --volume SRC:/data" },
};

static void test_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(refused_cases); i++) {
		static struct fixture f;
		struct cm_plan_summary summary = { .cgroup_controllers = 77 };
		struct cm_error err = CM_ERROR_INIT;
		CM_AUTO_BUF struct cm_buf flat;

		cm_buf_init(&flat, MAX_TEXT);
		fixture_init(&f);
		refused_cases[i].change(&f);
		assert_int_equal(build(&f, &summary, &flat, &err), refused_cases[i].code);
		assert_string_equal(err.msg, refused_cases[i].msg);
		assert_string_equal(err.hint, refused_cases[i].hint);
		/* written on success only */
		assert_int_equal(summary.cgroup_controllers, 77);
		fixture_clear(&f);
	}
}

/* A group that owns what others can read too, or the user herself owns, hands nothing over. */
static void test_groups_that_are_harmless(void **state)
{
	static struct fixture f;
	struct cm_plan_summary summary;
	CM_AUTO_BUF struct cm_buf flat;

	(void)state;
	cm_buf_init(&flat, MAX_TEXT);
	fixture_init(&f);
	group_workspace(&f);
	f.workspace.node.mode = 0775;
	assert_int_equal(build(&f, &summary, &flat, NULL), CM_OK);
	cm_buf_clear(&flat);
	f.workspace.node.mode = 0770;
	f.workspace.node.uid = ALICE;
	assert_int_equal(build(&f, &summary, &flat, NULL), CM_OK);
	fixture_clear(&f);
}

/* Notes that do not fit are left out as whole lines. */
static void test_many_notes(void **state)
{
	static struct fixture f;
	struct cm_plan_summary summary = { .level = "" };
	CM_AUTO_BUF struct cm_buf flat;
	char path[128];

	(void)state;
	cm_buf_init(&flat, MAX_TEXT);
	fixture_init(&f);
	for (unsigned int i = 0; i < 100; i++) {
		CHECK_LEN(snprintf(path, sizeof(path), "/home/alice/app/tool%u/bin", i), path);
		fix_node(&f.tree.tools, path, S_IFDIR | 0755, ALICE, NULL);
	}
	assert_int_equal(build(&f, &summary, &flat, NULL), CM_OK);
	assert_true(strlen(summary.notes) > sizeof(summary.notes) - 128);
	assert_true(strlen(summary.notes) < sizeof(summary.notes));
	assert_int_equal(summary.notes[strlen(summary.notes) - 1], '\n');
	fixture_clear(&f);
}

/* Same session, same machine-id; another session, another one; temporary ones have none. */
static void test_machine_id(void **state)
{
	static struct fixture f;
	struct cm_plan_summary summary;
	char ids[5][33] = { "", "", "", "", "" };
	static const char *const sessions[] = { "a", "a", "b", "a", "b" };

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(sessions); i++) {
		CM_AUTO_BUF struct cm_buf flat;
		CM_AUTO_BUF struct cm_buf text;
		const char *at;

		cm_buf_init(&flat, MAX_TEXT);
		cm_buf_init(&text, MAX_TEXT);
		fixture_init(&f);
		f.req.session_id = sessions[i];
		f.req.is_temporary = i >= 3;
		assert_int_equal(build(&f, &summary, &flat, NULL), CM_OK);
		print(&flat, &summary, &text);
		at = strstr(text.data, "file /etc/machine-id mode=0644 content=");
		assert_non_null(at);
		at = strstr(at, "content=") + strlen("content=");
		assert_int_equal(strspn(at, "0123456789abcdef"), 32);
		memcpy(ids[i], at, 32);
		fixture_clear(&f);
	}
	assert_string_equal(ids[0], ids[1]);
	assert_string_not_equal(ids[0], ids[2]);
	assert_string_equal(ids[3], ids[4]);
}

/* /var/tmp is a link to /tmp, but for mounts below it, which go through no link. */
static void test_var_tmp(void **state)
{
	static struct fixture f;
	static const char *const homes[] = { "/home/alice", "/var/tmp/alice" };
	static const char *const works[] = { "/home/alice/app", "/var/tmp/app" };
	static const char *const volumes[] = { "/data", "/var/tmp/data" };
	struct cm_plan_summary summary;

	(void)state;
	for (unsigned int i = 0; i < 8; i++) {
		CM_AUTO_BUF struct cm_buf flat;
		CM_AUTO_BUF struct cm_buf text;

		cm_buf_init(&flat, MAX_TEXT);
		cm_buf_init(&text, MAX_TEXT);
		fixture_init(&f);
		fix_set(&f.host.home, homes[i & 1]);
		cm_workspace_facts_clear(&f.workspace);
		fix_workspace(&f.workspace, works[i >> 1 & 1], ALICE);
		fix_volume(&f, "/srv/data", volumes[i >> 2], true, ALICE);
		assert_int_equal(build(&f, &summary, &flat, NULL), CM_OK);
		print(&flat, &summary, &text);
		assert_int_equal(strstr(text.data, "symlink /var/tmp <- ../tmp") != NULL, i == 0);
		assert_int_equal(strstr(text.data, "tmpfs /var/tmp ") != NULL, i != 0);
		fixture_clear(&f);
	}
}

/* Every allocation fails once: an error and nothing else. */
static void test_no_memory(void **state)
{
	static struct fixture f;
	bool is_done = false;

	(void)state;
	fixture_init(&f);
	as_user(&f);
	with_volumes(&f);
	for (long n = 0; !is_done; n++) {
		struct cm_plan_summary summary;
		struct cm_error err = CM_ERROR_INIT;
		CM_AUTO_BUF struct cm_buf flat;
		int r;

		cm_buf_init(&flat, MAX_TEXT);
		cm_alloc_fail_after(n);
		r = build(&f, &summary, &flat, &err);
		cm_alloc_fail_after(-1);
		is_done = r == CM_OK;
		if (!is_done)
			assert_true(err.code == CM_E_NOMEM || err.code == CM_E_LIMIT);
		assert_true(n < 1000);
	}
	fixture_clear(&f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_groups_that_are_harmless),
		cmocka_unit_test(test_many_notes),
		cmocka_unit_test(test_machine_id),
		cmocka_unit_test(test_var_tmp),
		cmocka_unit_test(test_no_memory),
	};

	wants_update = argc == 2 && strcmp(argv[1], "--update") == 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
