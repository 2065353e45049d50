/* SPDX-License-Identifier: Apache-2.0 */
/* The workspace: where it is, how it is spelled, and the git directory that belongs to it. */
#include "tests/unit/host_ground.h"

static void test_node(void **state)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_node node = { .ino = 77 };

	(void)state;
	dir("real/sub");
	link_to("real", "link");
	assert_int_equal(cm_node_read(at("none"), &node, &err), CM_E_NOT_FOUND);
	assert_int_equal(node.ino, 77);
	assert_true(err.hint[0] != '\0');
	assert_int_equal(cm_node_read(at("link/sub"), &node, &err), CM_OK);
	assert_string_equal(node.path, at("real/sub"));
	assert_int_equal(node.type, CM_NODE_DIR);
	cm_node_clear(&node);
}

static void test_plain_workspace(void **state)
{
	struct cm_workspace_facts ws;

	(void)state;
	dir("app/src/deep");
	/* no repository: the current directory, and nothing of git */
	read_workspace(NULL, at("app/src"), &ws);
	assert_string_equal(ws.path, at("app/src"));
	assert_null(ws.spelled);
	assert_string_equal(ws.cwd, at("app/src"));
	assert_int_equal(ws.git_dirs.n, 0);
	cm_workspace_facts_clear(&ws);
	/* a .git without a repository in it is none */
	dir("app/.git");
	read_workspace(NULL, at("app/src"), &ws);
	assert_string_equal(ws.path, at("app/src"));
	cm_workspace_facts_clear(&ws);
	git_dir("app/.git");
	read_workspace(NULL, at("app/src/deep"), &ws);
	assert_string_equal(ws.path, at("app"));
	assert_string_equal(ws.cwd, at("app/src/deep"));
	assert_int_equal(ws.git_dirs.n, 1);
	assert_string_equal(ws.git_dirs.v[0].path, at("app/.git"));
	assert_false(ws.has_gitfile);
	cm_workspace_facts_clear(&ws);
	/* named: that directory, whatever is above it */
	read_workspace(at("app/src"), at("app/src/deep"), &ws);
	assert_string_equal(ws.path, at("app/src"));
	assert_string_equal(ws.cwd, at("app/src/deep"));
	assert_int_equal(ws.git_dirs.n, 0);
	cm_workspace_facts_clear(&ws);
	/* the caller is elsewhere */
	read_workspace(at("app/src"), "/usr", &ws);
	assert_string_equal(ws.cwd, at("app/src"));
	cm_workspace_facts_clear(&ws);
}

static void test_no_workspace(void **state)
{
	struct cm_workspace_facts ws = { .has_gitfile = true };
	struct cm_error err = CM_ERROR_INIT;

	(void)state;
	spec.workspace_kind = CM_WORKSPACE_NONE;
	read_workspace(NULL, top, &ws);
	assert_null(ws.path);
	cm_workspace_facts_clear(&ws);
	file("f", "");
	ws.has_gitfile = true;
	assert_int_equal(cm_workspace_facts_read(&spec, at("f"), top, &ws, &err), CM_E_INVALID);
	assert_int_equal(cm_workspace_facts_read(&spec, at("g"), top, &ws, &err), CM_E_NOT_FOUND);
	assert_true(ws.has_gitfile);
}

static void test_workdir(void **state)
{
	struct cm_workspace_facts ws;

	(void)state;
	dir("app");
	spec.workdir = cm_strdup("web/../api");
	read_workspace(at("app"), top, &ws);
	assert_string_equal(ws.cwd, at("app/api"));
	cm_workspace_facts_clear(&ws);
	free(spec.workdir);
	spec.workdir = cm_strdup("/opt/x");
	read_workspace(at("app"), top, &ws);
	assert_string_equal(ws.cwd, "/opt/x");
	cm_workspace_facts_clear(&ws);
}

static void test_spelling(void **state)
{
	struct cm_workspace_facts ws;

	(void)state;
	dir("data/proj/app/src");
	git_dir("data/proj/app/.git");
	dir("home");
	/* home/work -> ../mid -> data/proj, so that a link's target goes through a link */
	link_to("data/proj", "mid");
	link_to("../mid", "home/work");
	read_workspace(NULL, at("home/work/app/src"), &ws);
	assert_string_equal(ws.path, at("data/proj/app"));
	assert_string_equal(ws.spelled, at("home/work/app"));
	assert_string_equal(ws.cwd, at("home/work/app/src"));
	assert_int_equal(ws.links.n, 2);
	assert_string_equal(ws.links.v[0].path, at("home/work"));
	assert_string_equal(ws.links.v[0].link, "../mid");
	assert_string_equal(ws.links.v[1].path, at("mid"));
	assert_string_equal(ws.links.v[1].link, "data/proj");
	cm_workspace_facts_clear(&ws);
	/* a link inside the workspace comes with it; from there the top has no other spelling */
	link_to("data/proj/app/src", "s");
	link_to("src", "data/proj/app/inner");
	read_workspace(NULL, at("s"), &ws);
	assert_string_equal(ws.path, at("data/proj/app"));
	assert_null(ws.spelled);
	assert_string_equal(ws.cwd, at("s"));
	assert_int_equal(ws.links.n, 1);
	cm_workspace_facts_clear(&ws);
	read_workspace(NULL, at("data/proj/app/inner"), &ws);
	assert_string_equal(ws.cwd, at("data/proj/app/inner"));
	assert_int_equal(ws.links.n, 0);
	cm_workspace_facts_clear(&ws);
	/* a loop of links is an error and not a loop of ours */
	link_to("l2", "l1");
	link_to("l1", "l2");
	assert_int_equal(cm_workspace_facts_read(&spec, at("l1"), top, &ws, NULL), CM_E_SYS);
}

static void test_worktree(void **state)
{
	struct cm_workspace_facts ws;

	(void)state;
	git_dir("app/.git");
	dir("app/.git/worktrees/wt");
	file("app/.git/worktrees/wt/HEAD", "ref: refs/heads/b\n");
	file("app/.git/worktrees/wt/commondir", "../..\n");
	dir("wt");
	text_of("wt/.git", "gitdir: ", at("app/.git/worktrees/wt"));
	text_of("app/.git/worktrees/wt/gitdir", "", at("wt/.git"));
	read_workspace(NULL, at("wt"), &ws);
	assert_string_equal(ws.path, at("wt"));
	assert_true(ws.has_gitfile);
	assert_int_equal(ws.git_dirs.n, 2);
	assert_string_equal(ws.git_dirs.v[0].path, at("app/.git/worktrees/wt"));
	assert_string_equal(ws.git_dirs.v[1].path, at("app/.git"));
	assert_int_equal(ws.notes.n, 0);
	cm_workspace_facts_clear(&ws);
	/* moved, and nobody told the repository */
	dir("moved");
	text_of("moved/.git", "gitdir: ", at("app/.git/worktrees/wt"));
	read_workspace(NULL, at("moved"), &ws);
	assert_int_equal(ws.git_dirs.n, 0);
	assert_int_equal(ws.notes.n, 1);
	cm_workspace_facts_clear(&ws);
}

static void test_submodule(void **state)
{
	struct cm_workspace_facts ws;

	(void)state;
	git_dir("app/.git");
	git_dir("app/.git/modules/lib");
	dir("app/lib/src");
	file("app/.git/modules/lib/config", "[core]\n\tworktree = ../../../lib\n");
	file("app/lib/.git", "gitdir: ../.git/modules/lib\n");
	file("app/.gitmodules", "[submodule \"lib\"]\n\tpath = lib\n\turl = ../lib\n"
				"[submodule \"up\"]\n\tpath = ../up\n"
				"[submodule \"abs\"]\n\tpath = /etc\n"
				"[submodule \"mid\"]\n\tpath = a/../../b\n");
	read_workspace(NULL, at("app/lib/src"), &ws);
	assert_string_equal(ws.path, at("app/lib"));
	assert_int_equal(ws.git_dirs.n, 1);
	assert_string_equal(ws.git_dirs.v[0].path, at("app/.git/modules/lib"));
	cm_workspace_facts_clear(&ws);
	read_workspace(NULL, at("app"), &ws);
	assert_int_equal(ws.submodules.n, 1);
	assert_string_equal(ws.submodules.v[0], at("app/lib"));
	cm_workspace_facts_clear(&ws);
}

/* What a .git file names in the tree itself can be seen anyway, and needs to name nothing back. */
static void test_inner_gitfile(void **state)
{
	struct cm_workspace_facts ws;

	(void)state;
	git_dir("app/meta/bare");
	file("app/.git", "gitdir: ./meta/bare\n");
	read_workspace(NULL, at("app/meta"), &ws);
	assert_string_equal(ws.path, at("app"));
	assert_int_equal(ws.git_dirs.n, 1);
	assert_string_equal(ws.git_dirs.v[0].path, at("app/meta/bare"));
	assert_int_equal(ws.pin_dirs.n, 1);
	assert_string_equal(ws.pin_dirs.v[0].path, at("app/meta"));
	assert_int_equal(ws.notes.n, 0);
	cm_workspace_facts_clear(&ws);
	/* a name in the tree that leads out of it */
	git_dir("other");
	link_to("../other", "app/out");
	file("app/.git", "gitdir: out\n");
	read_workspace(NULL, at("app"), &ws);
	assert_int_equal(ws.git_dirs.n, 0);
	assert_int_equal(ws.notes.n, 1);
	cm_workspace_facts_clear(&ws);
}

/* What a .git file can say to make us mount something else: nothing of it is shown. */
static void test_hostile_gitfile(void **state)
{
	static const char *const texts[] = {
		"gitdir: /etc\n",
		"gitdir: ../secrets\n",
		"gitdir: ../secrets/deep\n",
		"gitdir: ../other/.git\n",
		"gitdir: ../fake\n",
		"gitdir: ..\n",
		"gitdir: /proc/self/root\n",
		"gitdir: .\n",
		"gitdir: ../secrets\n\n\n../x\n",
		"gitdir:../other/.git\n",
		"",
		"gitdir: \n",
	};
	struct cm_workspace_facts ws;

	(void)state;
	dir("secrets/deep");
	git_dir("other/.git");
	file("other/.git/config", "[core]\n\tworktree = ..\n");
	/* names the workspace back, but its common directory does not hold it */
	dir("fake");
	dir("ws");
	text_of("fake/gitdir", "", at("ws/.git"));
	file("fake/commondir", "../secrets\n");
	for (size_t i = 0; i < CM_ARRAY_SIZE(texts); i++) {
		file("ws/.git", texts[i]);
		read_workspace(at("ws"), top, &ws);
		if (ws.git_dirs.n != 0)
			fail_msg("believed: %s", texts[i]);
		assert_int_equal(ws.notes.n, 1);
		assert_true(ws.has_gitfile);
		cm_workspace_facts_clear(&ws);
	}
	/* the same with a real repository as the common directory */
	file("ws/.git", "gitdir: ../fake\n");
	file("fake/commondir", "../other/.git\n");
	read_workspace(at("ws"), top, &ws);
	assert_int_equal(ws.git_dirs.n, 0);
	cm_workspace_facts_clear(&ws);
	/* that even has a worktree of this name, but another one */
	dir("other/.git/worktrees/fake");
	read_workspace(at("ws"), top, &ws);
	assert_int_equal(ws.git_dirs.n, 0);
	cm_workspace_facts_clear(&ws);
	/* a FIFO must not hold us up, a link is no gitfile, a long text is none */
	assert_int_equal(unlink(at("ws/.git")), 0);
	assert_int_equal(mkfifo(at("ws/.git"), 0600), 0);
	read_workspace(at("ws"), top, &ws);
	assert_int_equal(ws.git_dirs.n, 0);
	cm_workspace_facts_clear(&ws);
	assert_int_equal(unlink(at("ws/.git")), 0);
	link_to("../other/.git", "ws/.git");
	read_workspace(at("ws"), top, &ws);
	assert_int_equal(ws.git_dirs.n, 0);
	assert_int_equal(ws.notes.n, 1);
	cm_workspace_facts_clear(&ws);
}

/* .git as a link: into the tree, out of it, to nothing. */
static void test_linked_git(void **state)
{
	struct cm_workspace_facts ws;

	(void)state;
	git_dir("app/meta/deep/git");
	file("app/meta/deep/git/config", "[core]\n\thooksPath = hooks\n");
	dir("app/hooks");
	dir("app/src");
	link_to("meta/deep/git", "app/.git");
	read_workspace(NULL, at("app/src"), &ws);
	assert_string_equal(ws.path, at("app"));
	assert_int_equal(ws.git_dirs.n, 1);
	assert_string_equal(ws.git_dirs.v[0].path, at("app/meta/deep/git"));
	assert_true(has_node(&ws.pin_dirs, at("app/meta")));
	assert_true(has_node(&ws.pin_dirs, at("app/meta/deep")));
	assert_true(has_node(&ws.pins, at("app/hooks")));
	assert_true(has_note(&ws, "is a symbolic link: what it leads to is protected"));
	cm_workspace_facts_clear(&ws);
	git_dir("other");
	assert_int_equal(unlink(at("app/.git")), 0);
	link_to("../other", "app/.git");
	read_workspace(at("app"), top, &ws);
	assert_int_equal(ws.git_dirs.n, 0);
	assert_true(has_note(&ws, "leads to no git directory in the workspace"));
	cm_workspace_facts_clear(&ws);
	assert_int_equal(unlink(at("app/.git")), 0);
	link_to("src", "app/.git");
	read_workspace(at("app"), top, &ws);
	assert_int_equal(ws.git_dirs.n, 0);
	cm_workspace_facts_clear(&ws);
	assert_int_equal(unlink(at("app/.git")), 0);
	link_to(".", "app/.git");
	read_workspace(at("app"), top, &ws);
	assert_int_equal(ws.git_dirs.n + ws.pins.n, 0);
	cm_workspace_facts_clear(&ws);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_GROUND(test_node),
		ON_GROUND(test_plain_workspace),
		ON_GROUND(test_no_workspace),
		ON_GROUND(test_workdir),
		ON_GROUND(test_spelling),
		ON_GROUND(test_worktree),
		ON_GROUND(test_submodule),
		ON_GROUND(test_inner_gitfile),
		ON_GROUND(test_hostile_gitfile),
		ON_GROUND(test_linked_git),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
