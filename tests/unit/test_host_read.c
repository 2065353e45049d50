/* SPDX-License-Identifier: Apache-2.0 */
/* Who the caller is, and every reader of facts without memory. */
#include <sched.h>
#include <sys/wait.h>

#include "runtime/base/alloc.h"
#include "tests/unit/host_ground.h"

static void test_identity(void **state)
{
	struct cm_host host = { .uid = getuid() };
	struct cm_git_identity git;
	struct cm_strv env = { 0 };

	(void)state;
	dir("home/.config/git");
	host.home = cm_strdup(at("home"));
	file("home/.config/git/config", "[user]\n\tname = Old\n[init]\n\tdefaultBranch = main\n");
	file("home/.gitconfig", "[user]\n\tname = Alice\n\tsigningkey = K\n"
				"[core]\n\tsshCommand = evil\n\tautocrlf = input\n"
				"[credential]\n\thelper = store\n[include]\n\tpath = other\n"
				"[alias]\n\tx = !evil\n[merge]\n\tff = only\n"
				"[merge \"d\"]\n\tdriver = evil %A\n[pull]\n\trebase = true\n");
	file("home/other", "[user]\n\temail = other@example.org\n");
	assert_int_equal(cm_git_identity_read(&host, &env, &git, NULL), CM_OK);
	assert_int_equal(git.settings.n, 5);
	assert_string_equal(cm_strv_env_get(&git.settings, "user.name"), "Alice");
	assert_string_equal(cm_strv_env_get(&git.settings, "init.defaultbranch"), "main");
	assert_string_equal(cm_strv_env_get(&git.settings, "core.autocrlf"), "input");
	assert_string_equal(cm_strv_env_get(&git.settings, "merge.ff"), "only");
	assert_string_equal(cm_strv_env_get(&git.settings, "pull.rebase"), "true");
	cm_strv_clear(&git.settings);
	free(host.home);
}

static void test_host(void **state)
{
	struct cm_strv env = { 0 };
	static struct cm_host host;
	char *home;

	(void)state;
	dir("home");
	assert_int_equal(cm_strv_addf(&env, "HOME=%s/home/", top), CM_OK);
	assert_int_equal(cm_strv_add(&env, "SHELL=/bin/dash"), CM_OK);
	assert_int_equal(cm_host_read(&env, &host, NULL), CM_OK);
	assert_string_equal(host.home, at("home"));
	assert_string_equal(host.shell, "/bin/dash");
	assert_true(host.user_name[0] != '\0');
	assert_int_equal(host.uid, getuid());
	assert_true(host.kernel_major >= 4);
	assert_true(host.memory_bytes > 0);
	assert_true(host.max_open_files > 0);
	cm_host_clear(&host);
	/* a HOME that is not there is not the home */
	assert_int_equal(cm_strv_env_set(&env, "HOME", at("none")), CM_OK);
	assert_int_equal(cm_host_read(&env, &host, NULL), CM_OK);
	assert_string_not_equal(host.home, at("none"));
	cm_host_clear(&host);
	home = cm_host_home(&env);
	assert_non_null(home);
	assert_int_equal(home[0], '/');
	assert_string_not_equal(home, at("none"));
	free(home);
	cm_strv_clear(&env);
}

/* In a user namespace of its own, once its parent has written the maps. */
static _Noreturn void be_root_again(int told_fd, int wait_fd)
{
	static struct cm_host host;
	struct cm_strv none = { 0 };
	char byte = 0;

	if (unshare(CLONE_NEWUSER) < 0 || write(told_fd, &byte, 1) != 1 ||
	    read(wait_fd, &byte, 1) != 1 || cm_host_read(&none, &host, NULL) != CM_OK)
		_exit(2);
	_exit(host.is_root);
}

static void write_map(pid_t pid, const char *name, bool has_slots)
{
	char path[64];
	char text[128] = "0 0 1\n";

	if (has_slots)
		(void)snprintf(text, sizeof(text), "0 0 1\n%u %u %u\n", CM_ID_SLOT_BASE,
			       CM_ID_SLOT_BASE, CM_ID_SLOTS * CM_ID_SLOT_SIZE);
	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	assert_int_equal(cm_write_file_at(AT_FDCWD, path, text), 0);
}

static bool is_root_with(bool has_uids, bool has_gids)
{
	int told[2];
	int go[2];
	int status;
	char byte = 0;
	pid_t pid;

	assert_int_equal(pipe2(told, O_CLOEXEC), 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		be_root_again(told[1], go[0]);
	(void)close(told[1]);
	assert_int_equal(read(told[0], &byte, 1), 1);
	write_map(pid, "uid_map", has_uids);
	write_map(pid, "gid_map", has_gids);
	assert_int_equal(write(go[1], &byte, 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	(void)close(told[0]);
	(void)close(go[0]);
	(void)close(go[1]);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
	return WEXITSTATUS(status) == 1;
}

/* A session's ids are users' and groups'. */
static void test_both_maps(void **state)
{
	static struct cm_host host;
	struct cm_strv none = { 0 };
	bool is_root;

	(void)state;
	assert_int_equal(cm_host_read(&none, &host, NULL), CM_OK);
	is_root = host.is_root;
	cm_host_clear(&host);
	if (!is_root) {
		print_message("SKIP ROOT: there are no ids to give away\n");
		skip();
	}
	assert_true(is_root_with(true, true));
	assert_false(is_root_with(true, false));
	assert_false(is_root_with(false, true));
}

/* Every allocation fails once in each reader: an error and nothing written. */
static int read_everything(void)
{
	struct cm_host host = { .uid = getuid(), .gid = getgid() };
	struct cm_tree_facts tree = { .root = NULL };
	struct cm_workspace_facts ws = { .path = NULL };
	struct cm_refusals refusals = { .n_trees = 0 };
	struct cm_strv none = { 0 };
	char home[512];
	char wt[512];
	int r;

	(void)snprintf(home, sizeof(home), "%s/home", top);
	(void)snprintf(wt, sizeof(wt), "%s/link", top);
	host.home = home;
	r = cm_tree_facts_read(&host, NULL, &none, &tree, NULL);
	if (r == CM_OK)
		r = cm_workspace_facts_read(&spec, wt, wt, &ws, NULL);
	if (r == CM_OK)
		r = cm_refusals_read(&host, &none, &none, &refusals, NULL);
	cm_tree_facts_clear(&tree);
	cm_workspace_facts_clear(&ws);
	cm_refusals_clear(&refusals);
	return r;
}

static void test_no_memory(void **state)
{
	int r = CM_E_NOMEM;

	(void)state;
	dir("home/.pyenv/shims");
	dir("wt");
	link_to("wt", "link");
	file("wt/.git", "gitdir: x\n");
	for (long n = 0; r != CM_OK; n++) {
		cm_alloc_fail_after(n);
		r = read_everything();
		cm_alloc_fail_after(-1);
		assert_true(n < 5000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_GROUND(test_identity),
		ON_GROUND(test_host),
		ON_GROUND(test_both_maps),
		ON_GROUND(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
