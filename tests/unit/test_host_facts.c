/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about real files, in a directory of the test's own: refusals, workspaces, trees. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "isolation/host/facts.h"
#include "isolation/host/node.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"
#include "tests/unit/host_files.h"

static struct cm_spec spec;

static int setup(void **state)
{
	(void)state;
	cm_spec_init(&spec);
	return files_begin();
}

static int teardown(void **state)
{
	(void)state;
	cm_spec_clear(&spec);
	return files_end();
}

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

/* Workspaces */

static void read_workspace(const char *path, const char *cwd, struct cm_workspace_facts *ws)
{
	struct cm_error err = CM_ERROR_INIT;

	if (cm_workspace_facts_read(&spec, path, cwd, ws, &err) != CM_OK)
		fail_msg("%s", err.msg);
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

static bool has_node(const struct cm_nodes *nodes, const char *path)
{
	for (size_t i = 0; i < nodes->n; i++) {
		if (strcmp(nodes->v[i].path, path) == 0)
			return true;
	}
	return false;
}

static bool has_note(const struct cm_workspace_facts *ws, const char *text)
{
	for (size_t i = 0; i < ws->notes.n; i++) {
		if (strstr(ws->notes.v[i], text))
			return true;
	}
	return false;
}

/* A workspace in a home, and what git's configuration names in it, in each of its files. */
static void test_programs(void **state)
{
	static const char *const pinned[] = {
		"hooks",	  "tools/watch",   "tools/clean.py", "tools/home",    "tools/abs",
		"tools/spelled",  "tools/inc",	   "tools/inc2",     "tools/if",      "tools/alias",
		"tools/worktree", "conf/a.config", "conf/b.config",  "lib/tools/sub", "lib/.git",
	};
	static const char *const kept[] = { "src", "src/app", "tools",	"file",
					    "lib", "log",     "lib/src" };
	static const char *const told[] = { "tools/absent'", "conf/absent'", "tools/link'" };
	struct cm_workspace_facts ws;

	(void)state;
	git_dir("home/u/app/.git");
	git_dir("home/u/app/.git/modules/lib");
	dir("home/u/app/hooks");
	dir("home/u/app/src/app");
	dir("home/u/app/tools");
	dir("home/u/app/conf");
	dir("home/u/app/lib/tools");
	dir("home/u/app/lib/src");
	for (size_t i = 1; i < CM_ARRAY_SIZE(pinned); i++) {
		char name[64];

		(void)snprintf(name, sizeof(name), "home/u/app/%s", pinned[i]);
		file(name, "");
	}
	file("home/u/app/file", "");
	link_to("home/u/app", "spelling");
	link_to("watch", "home/u/app/tools/link");
	file("home/u/app/.git/config",
	     "[core]\n\thooksPath = hooks\n\tfsmonitor = ./tools/watch\n"
	     "[filter \"x\"]\n\tclean = python3 tools/clean.py %f\n\tsmudge = ~/app/tools/home\n"
	     "[alias]\n\tx = \"!cd src/app && ../../file; sh tools/alias\"\n\ty = log\n"
	     "[diff \"x\"]\n\ttextconv = tools/absent\n\tcommand = tools/link -x\n"
	     "[include]\n\tpath = ../conf/a.config\n\tpath = ../conf/absent\n\tpath = ~/outside\n"
	     "[includeIf \"onbranch:never\"]\n\tpath = ~/app/conf/b.config\n");
	file("home/u/app/.git/config.worktree", "[core]\n\tsshCommand = tools/worktree\n");
	text_of("home/u/outside", "[core]\n\teditor = ", at("spelling/tools/spelled"));
	text_of("home/u/app/conf/a.config",
		"[include]\n\tpath = a.config\n\tpath = a.config\n"
		"[gpg]\n\tprogram = tools/inc\n[core]\n\tpager = \"less; tools/inc2\"\n\taskPass = ",
		at("home/u/app/tools/abs"));
	file("home/u/app/conf/b.config", "[merge \"x\"]\n\tdriver = $PWD/tools/if %O\n");
	file("home/u/app/.gitmodules", "[submodule \"lib\"]\n\tpath = lib\n");
	file("home/u/app/lib/.git", "gitdir: ../.git/modules/lib\n");
	file("home/u/app/.git/modules/lib/config", "[core]\n\tfsmonitor = tools/sub\n");
	read_workspace(NULL, at("home/u/app"), &ws);
	for (size_t i = 0; i < CM_ARRAY_SIZE(pinned); i++) {
		char name[64];

		(void)snprintf(name, sizeof(name), "home/u/app/%s", pinned[i]);
		if (!has_node(&ws.pins, at(name)))
			fail_msg("not pinned: %s", name);
	}
	for (size_t i = 0; i < CM_ARRAY_SIZE(kept); i++) {
		char name[64];

		(void)snprintf(name, sizeof(name), "home/u/app/%s", kept[i]);
		if (has_node(&ws.pins, at(name)))
			fail_msg("pinned: %s", name);
	}
	assert_true(has_node(&ws.pin_dirs, at("home/u/app/tools")));
	assert_true(has_node(&ws.pin_dirs, at("home/u/app/conf")));
	for (size_t i = 0; i < CM_ARRAY_SIZE(told); i++) {
		if (!has_note(&ws, told[i]))
			fail_msg("not told: %s", told[i]);
	}
	assert_int_equal(ws.notes.n, CM_ARRAY_SIZE(told));
	cm_workspace_facts_clear(&ws);
	/* with a configuration that can be written nothing of it is looked at */
	spec.git = CM_GIT_RW;
	read_workspace(NULL, at("home/u/app"), &ws);
	assert_int_equal(ws.pins.n + ws.notes.n, 0);
	cm_workspace_facts_clear(&ws);
	spec.git = CM_GIT_PINNED;
}

static void append_text(const char *name, const char *text)
{
	int fd = open(at(name), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(cm_write_all(fd, text, strlen(text)), 0);
	assert_int_equal(close(fd), 0);
}

/* text is taken */
static void append(const char *name, char *text)
{
	assert_non_null(text);
	append_text(name, text);
	free(text);
}

static void check_refused(const char *name, const char *why)
{
	struct cm_workspace_facts ws;
	struct cm_error err = CM_ERROR_INIT;

	if (cm_workspace_facts_read(&spec, NULL, at(name), &ws, &err) == CM_OK) {
		cm_workspace_facts_clear(&ws);
		fail_msg("not refused: %s", why);
	}
	if (!strstr(err.msg, why))
		fail_msg("'%s' and not '%s'", err.msg, why);
	assert_non_null(strstr(err.hint, "--git rw"));
}

/* However they include each other, the work is bounded. */
static void test_many_includes(void **state)
{
	struct cm_workspace_facts ws;
	char name[64];
	char text[4096];

	(void)state;
	git_dir("app/.git");
	file("app/tool", "");
	for (int i = 0; i < 100; i++) {
		size_t len = (size_t)snprintf(text, sizeof(text), "[include]\n");

		/* each includes all of its tens, itself too */
		for (int k = 0; k < 10; k++)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "\tpath = c%d\n",
						(i * 10 + k) % 100);
		(void)snprintf(name, sizeof(name), "app/.git/c%d", i);
		file(name, text);
	}
	file("app/.git/config", "[include]\n\tpath = c0\n[core]\n\teditor = ./tool\n");
	/* as git, which dies of it */
	check_refused("app", "included too deep");
	/* each of them once, however many there are */
	for (int i = 0; i < 100; i++) {
		(void)snprintf(name, sizeof(name), "app/.git/c%d", i);
		file(name, "[include]\n\tpath = c0\n\tpath = config\n");
	}
	read_workspace(NULL, at("app"), &ws);
	assert_true(has_node(&ws.pins, at("app/tool")));
	cm_workspace_facts_clear(&ws);
	/* and not without end */
	for (int i = 0; i < 1100; i++)
		append("app/.git/config", cm_asprintf("[include]\n\tpath = absent%d\n", i));
	check_refused("app", "more submodules");
}

/* git includes ten deep. */
static void test_deep_includes(void **state)
{
	struct cm_workspace_facts ws;

	(void)state;
	git_dir("app/.git");
	file("app/tool", "");
	file("app/.git/config", "[include]\n\tpath = c1\n");
	for (int i = 1; i < 10; i++) {
		char name[64];

		(void)snprintf(name, sizeof(name), "app/.git/c%d", i);
		append(name, cm_asprintf("[include]\n\tpath = c%d\n", i + 1));
	}
	file("app/.git/c10", "[core]\n\teditor = ./tool\n");
	read_workspace(NULL, at("app"), &ws);
	assert_true(has_node(&ws.pins, at("app/tool")));
	cm_workspace_facts_clear(&ws);
}

/* What is there, but cannot be read, stops the start: another time git may well read it. */
static void test_unreadable(void **state)
{
	static const char *const names[] = { "app/.gitmodules", "app/.git/config",
					     "app/.git/included", "app/lib/.git" };
	static char large[300UL * 1024];
	struct cm_workspace_facts ws;

	(void)state;
	git_dir("app/.git");
	dir("app/lib");
	memset(large, '\n', sizeof(large) - 1);
	assert_true(signal(SIGIO, SIG_IGN) != SIG_ERR);
	for (size_t i = 0; i < CM_ARRAY_SIZE(names); i++) {
		int fd;

		file("app/.gitmodules", "[submodule \"lib\"]\n\tpath = lib\n");
		file("app/.git/config", "[include]\n\tpath = included\n");
		file("app/.git/included", "");
		file("app/lib/.git", "gitdir: ../.git/modules/lib\n");
		read_workspace(NULL, at("app"), &ws);
		cm_workspace_facts_clear(&ws);
		fd = open(at(names[i]), O_RDWR | O_CLOEXEC);
		assert_true(fd >= 0);
		/* inside a session nobody may have a lease */
		if (fcntl(fd, F_SETLEASE, F_WRLCK) == 0) {
			check_refused("app", strrchr(at(names[i]), '/'));
			assert_int_equal(fcntl(fd, F_SETLEASE, F_UNLCK), 0);
		}
		assert_int_equal(pwrite(fd, "\0", 1, 0), 1);
		check_refused("app", "is not a text file");
		file(names[i], large);
		check_refused("app", "larger than");
		assert_int_equal(close(fd), 0);
	}
	/* who asked for no protection is not refused one; nor where nothing can be written */
	spec.git = CM_GIT_RW;
	read_workspace(NULL, at("app"), &ws);
	cm_workspace_facts_clear(&ws);
	spec.git = CM_GIT_PINNED;
	spec.is_workspace_read_only = true;
	read_workspace(NULL, at("app"), &ws);
	cm_workspace_facts_clear(&ws);
	spec.is_workspace_read_only = false;
	/* nothing to read outside is nothing that the command could change */
	file("app/lib/.git", "");
	file("app/.git/config", "[include]\n\tpath = /dev/null\n");
	read_workspace(NULL, at("app"), &ws);
	cm_workspace_facts_clear(&ws);
	/* a value that is cut could name anything */
	memset(large, 'x', 9000);
	large[9000] = '\0';
	text_of("app/.git/config", "[branch \"b\"]\n\tdescription = ", "short");
	append_text("app/.git/config", large);
	read_workspace(NULL, at("app"), &ws);
	cm_workspace_facts_clear(&ws);
	file("app/.git/config", "[core]\n\teditor = ");
	append_text("app/.git/config", large);
	check_refused("app", "too long");
	large[1500] = '\0';
	file("app/tool", "");
	file("app/.git/config", "[core]\n\teditor = ./tool ");
	append_text("app/.git/config", large);
	read_workspace(NULL, at("app"), &ws);
	assert_true(has_node(&ws.pins, at("app/tool")));
	cm_workspace_facts_clear(&ws);
}

/* However it is spelled, git finds it. */
static void test_odd_submodules(void **state)
{
	static const char *const paths[] = { "x/..odd", "bom",	      "dotted",		"long",
					     "c\tl",	"lib/nested", "lib/nested/deep" };
	static char name[1024];
	struct cm_workspace_facts ws;

	(void)state;
	git_dir("app/.git");
	memset(name, 'n', sizeof(name) - 1);
	file("app/.gitmodules",
	     "\xef\xbb\xbf[submodule \"b\"]\n\tpath = bom\n[submodule.d]\n\tpath = "
	     "dotted\n[submodule \"o\"]\n\tpath = x/..odd\n[submodule \"c\"]\n"
	     "\tpath = \"c\\tl\"\n[submodule \"l\"]\n\tpath = lib\n"
	     "[submodule \"gone\"]\n\tpath = gone\n[submodule \"");
	append_text("app/.gitmodules", name);
	append_text("app/.gitmodules", "\"]\n\tpath = long\n");
	for (size_t i = 0; i < CM_ARRAY_SIZE(paths); i++) {
		(void)snprintf(name, sizeof(name), "app/%s/.git", paths[i]);
		git_dir(name);
	}
	git_dir("app/lib/.git");
	file("app/lib/.gitmodules", "[submodule \"n\"]\n\tpath = nested\n");
	file("app/lib/nested/.gitmodules", "[submodule \"d\"]\n\tpath = deep\n");
	read_workspace(NULL, at("app"), &ws);
	for (size_t i = 0; i < CM_ARRAY_SIZE(paths); i++) {
		(void)snprintf(name, sizeof(name), "app/%s/.git", paths[i]);
		if (!has_node(&ws.pins, at(name)))
			fail_msg("not pinned: %s", name);
	}
	assert_true(has_node(&ws.pins, at("app/lib/.gitmodules")));
	assert_true(has_note(&ws, "app/gone' is not there"));
	assert_int_equal(ws.notes.n, 1);
	cm_workspace_facts_clear(&ws);
}

static void test_many_submodules(void **state)
{
	struct cm_workspace_facts ws;
	char name[256];

	(void)state;
	git_dir("app/.git");
	for (int i = 0; i < 70; i++) {
		(void)snprintf(name, sizeof(name), "app/m%d/.git", i);
		dir(name);
		append("app/.gitmodules", cm_asprintf("[submodule \"%d\"]\n", i));
		append("app/.gitmodules", cm_asprintf("\tpath = m%d\n", i));
	}
	read_workspace(NULL, at("app"), &ws);
	assert_true(has_node(&ws.pins, at("app/m69/.git")));
	cm_workspace_facts_clear(&ws);
	for (int i = 70; i < 300; i++)
		append("app/.gitmodules", cm_asprintf("[submodule \"x\"]\n\tpath = m%d\n", i));
	check_refused("app", "submodule");
	/* nested without end */
	file("app/.gitmodules", "[submodule \"n\"]\n\tpath = n\n");
	memcpy(name, "app", 4);
	for (int i = 0; i < 12; i++) {
		(void)snprintf(name + strlen(name), sizeof(name) - strlen(name), "/n");
		dir(name);
		(void)snprintf(name + strlen(name), sizeof(name) - strlen(name), "/.git");
		git_dir(name);
		(void)snprintf(name + strlen(name), sizeof(name) - strlen(name), "modules");
		file(name, "[submodule \"n\"]\n\tpath = n\n");
		*strrchr(name, '/') = '\0';
	}
	check_refused("app", "too deep");
}

/* The workspace is a part of a repository; its work tree is elsewhere; a submodule's git directory
 * is in the tree. */
static void test_other_tops(void **state)
{
	struct cm_workspace_facts ws;

	(void)state;
	git_dir("app/.git");
	git_dir("app/src/sub/.git");
	dir("app/src/tools");
	file("app/src/tools/watch", "");
	file("app/src/tools/sub", "");
	file("app/src/sub/tool", "");
	file("app/.gitmodules", "[submodule \"s\"]\n\tpath = src/sub\n");
	file("app/.git/config", "[core]\n\tfsmonitor = src/tools/watch\n");
	file("app/src/sub/.git/config", "[core]\n\tfsmonitor = ../tools/sub\n");
	read_workspace(at("app/src"), at("app"), &ws);
	assert_true(has_node(&ws.pins, at("app/src/sub/.git")));
	assert_true(has_node(&ws.pins, at("app/src/tools/watch")));
	assert_true(has_node(&ws.pins, at("app/src/tools/sub")));
	assert_int_equal(ws.notes.n, 0);
	cm_workspace_facts_clear(&ws);
	file("app/.git/config", "[core]\n\tworktree = ../src\n\tfsmonitor = tools/watch\n");
	read_workspace(NULL, at("app"), &ws);
	assert_true(has_node(&ws.pins, at("app/src/tools/watch")));
	cm_workspace_facts_clear(&ws);
	git_dir("app/meta");
	file("app/.git/config", "");
	file("app/meta/config", "[core]\n\teditor = ./tool\n");
	assert_int_equal(rename(at("app/src/sub/.git"), at("app/src/sub/old")), 0);
	file("app/src/sub/.git", "gitdir: ../../meta\n");
	read_workspace(NULL, at("app"), &ws);
	assert_true(has_node(&ws.pins, at("app/src/sub/.git")));
	assert_true(has_node(&ws.pins, at("app/meta")));
	assert_true(has_node(&ws.pins, at("app/src/sub/tool")));
	cm_workspace_facts_clear(&ws);
}

/* A tree cannot hold up the start, nor cover what else is said. */
static void test_many_notes(void **state)
{
	struct cm_workspace_facts ws;

	(void)state;
	git_dir("app/.git");
	for (int i = 0; i < 3000; i++)
		append("app/.git/config", cm_asprintf("[core]\n\tfsmonitor = tools/w%d\n", i));
	read_workspace(NULL, at("app"), &ws);
	assert_int_equal(ws.notes.n, 33);
	assert_string_equal(ws.notes.v[32], "and 2968 more that git's configuration names");
	cm_workspace_facts_clear(&ws);
	file("app/.git/config", "[a]\n");
	for (int i = 0; i < 33000; i++)
		append_text("app/.git/config", "k\n");
	check_refused("app", "more programs");
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

/* Refusals */

struct refusal_fixture {
	struct cm_host host;
	struct cm_strv env;
	struct cm_strv private_dirs;
	struct cm_refusals refusals;
};

static void refusals_read(struct refusal_fixture *f)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memset(f, 0, sizeof(*f));
	dir("home/alice/app");
	dir("home/alice/.local/state/casemate/sessions");
	dir("home/alice/.sandboxes/s1/app");
	dir("home/alice/.sandboxes/s2");
	dir("agent");
	assert_true(snprintf(address.sun_path, sizeof(address.sun_path), "%s/agent/sock", top) <
		    (int)sizeof(address.sun_path));
	assert_int_equal(bind(sock, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(close(sock), 0);
	f->host.home = cm_strdup(at("home/alice"));
	f->host.uid = getuid();
	assert_int_equal(cm_strv_addf(&f->env, "SSH_AUTH_SOCK=%s/agent/sock", top), CM_OK);
	assert_int_equal(cm_strv_add(&f->env, "DOCKER_HOST=tcp://127.0.0.1:2375"), CM_OK);
	assert_int_equal(cm_strv_add(&f->private_dirs, at("home/alice/.local/state/casemate")),
			 CM_OK);
	assert_int_equal(cm_strv_add(&f->private_dirs, at("home/alice/.sandboxes")), CM_OK);
	assert_int_equal(cm_strv_add(&f->private_dirs, at("not-there")), CM_OK);
	assert_int_equal(cm_refusals_read(&f->host, &f->env, &f->private_dirs, &f->refusals, NULL),
			 CM_OK);
}

static void refusals_end(struct refusal_fixture *f)
{
	cm_refusals_clear(&f->refusals);
	cm_strv_clear(&f->env);
	cm_strv_clear(&f->private_dirs);
	free(f->host.home);
}

static int check(struct refusal_fixture *f, const char *path)
{
	return cm_refusals_check(&f->refusals, path, "a workspace", NULL, NULL);
}

static void test_refused_paths(void **state)
{
	static const char *const refused[] = {
		"home/alice",
		"home/alice/",
		"home/alice/app/..",
		"home",
		"home/alice/.local",
		"home/alice/.local/state/casemate",
		"home/alice/.local/state/casemate/sessions",
		"home/alice/.sandboxes",
		"home/alice/.sandboxes/s1",
		"home/alice/.sandboxes/s1/app",
		"agent",
		"agent/sock",
		"link-home",
		"link-state/sessions",
		"link-etc",
		"link-run",
	};
	static const char *const system_paths[] = {
		"/",	"/etc", "/etc/ssl", "/proc", "/proc/self/root", "/dev/shm",
		"/usr", "/var", "/run",	    "/tmp",  "/sys/kernel",	"/home",
	};
	struct refusal_fixture f;

	(void)state;
	refusals_read(&f);
	link_to("home/alice", "link-home");
	link_to("home/alice/.local/state/casemate", "link-state");
	link_to("/etc", "link-etc");
	link_to("/var/run", "link-run");
	assert_int_equal(check(&f, at("home/alice/app")), CM_OK);
	for (size_t i = 0; i < CM_ARRAY_SIZE(refused); i++) {
		if (check(&f, at(refused[i])) != CM_E_DENIED)
			fail_msg("not refused: %s", refused[i]);
	}
	for (size_t i = 0; i < CM_ARRAY_SIZE(system_paths); i++) {
		if (access(system_paths[i], F_OK) == 0 && check(&f, system_paths[i]) != CM_E_DENIED)
			fail_msg("not refused: %s", system_paths[i]);
	}
	assert_int_equal(check(&f, at("none")), CM_E_NOT_FOUND);
	/* nothing refused lies in these */
	assert_int_equal(check(&f, "/usr/share"), CM_OK);
	assert_int_equal(check(&f, "/usr/bin/env"), CM_OK);
	refusals_end(&f);
}

static void test_refusal_words(void **state)
{
	struct cm_error err = CM_ERROR_INIT;
	struct refusal_fixture f;
	char expected[512];

	(void)state;
	refusals_read(&f);
	assert_int_equal(
		cm_refusals_check(&f.refusals, at("home/alice"), "a workspace", NULL, &err),
		CM_E_DENIED);
	assert_true(snprintf(expected, sizeof(expected), "refusing to use '%s' as a workspace",
			     at("home/alice")) > 0);
	assert_string_equal(err.msg, expected);
	assert_string_equal(err.hint, "cd into a project, or name one with --workspace DIR");
	assert_int_equal(cm_refusals_check(&f.refusals, "/etc", "a volume", NULL, &err),
			 CM_E_DENIED);
	assert_string_equal(err.msg, "refusing to use '/etc' as a volume");
	assert_true(err.hint[0] != '\0');
	refusals_end(&f);
}

/* The session's own directory, and nothing beside or above it. */
static void test_allowed(void **state)
{
	struct refusal_fixture f;
	char own[512];

	(void)state;
	refusals_read(&f);
	assert_true(snprintf(own, sizeof(own), "%s", at("home/alice/.sandboxes/s1")) > 0);
	assert_int_equal(cm_refusals_check(&f.refusals, own, "a workspace", own, NULL), CM_OK);
	assert_int_equal(cm_refusals_check(&f.refusals, at("home/alice/.sandboxes/s1/app"),
					   "a workspace", own, NULL),
			 CM_OK);
	assert_int_equal(cm_refusals_check(&f.refusals, at("home/alice/.sandboxes/s2"),
					   "a workspace", own, NULL),
			 CM_E_DENIED);
	assert_int_equal(cm_refusals_check(&f.refusals, at("home/alice/.sandboxes"), "a workspace",
					   own, NULL),
			 CM_E_DENIED);
	/* a link in its place allows nothing */
	link_to("home/alice/.sandboxes/s2", "fake");
	assert_int_equal(cm_refusals_check(&f.refusals, at("home/alice/.sandboxes/s2"),
					   "a workspace", at("fake"), NULL),
			 CM_E_DENIED);
	refusals_end(&f);
}

/* Renamed under another name, it is still the same directory. */
static void test_refused_by_identity(void **state)
{
	struct refusal_fixture f;

	(void)state;
	refusals_read(&f);
	assert_int_equal(rename(at("home/alice/.sandboxes"), at("innocent")), 0);
	dir("home/alice/.sandboxes");
	assert_int_equal(check(&f, at("innocent/s1")), CM_E_DENIED);
	assert_int_equal(check(&f, at("home/alice/.sandboxes")), CM_OK);
	refusals_end(&f);
}

/* The tree */

static const struct cm_node *find(const struct cm_nodes *nodes, const char *path)
{
	for (size_t i = 0; i < nodes->n; i++) {
		if (strcmp(nodes->v[i].path, path) == 0)
			return &nodes->v[i];
	}
	return NULL;
}

/* Tools and root file systems are opened by openat2 alone, which jails do not have. */
static void skip_without_openat2(void)
{
	if (syscall(SYS_openat2, -1, NULL, NULL, 0) < 0 && errno != ENOSYS && errno != EPERM)
		return;
	print_message("SKIP SYSCALLS: openat2 is filtered\n");
	skip();
}

static void test_host_tree(void **state)
{
	struct cm_host host = { .uid = getuid(), .gid = getgid() };
	struct cm_tree_facts tree;
	struct cm_strv env = { 0 };
	struct cm_error err = CM_ERROR_INIT;

	(void)state;
	skip_without_openat2();
	dir("home/.pyenv/versions/3.12/bin");
	dir("home/.pyenv/shims");
	dir("home/.cargo/bin");
	file("home/.cargo/credentials.toml", "token");
	dir("uv");
	file("uv/uv-0.9", "");
	dir("home/.local/bin");
	link_to("../../../uv/uv-0.9", "home/.local/bin/uv");
	file("home/.local/bin/other", "");
	dir("home/.deno/bin");
	assert_int_equal(chmod(at("home/.deno"), 0777), 0);
	dir("moved/versions");
	file("home/.npmrc", "nodedir=/usr\n_auth=x\n");
	file("ca.pem", "");
	host.home = cm_strdup(at("home"));
	assert_int_equal(cm_strv_addf(&env, "NVM_DIR=%s/moved/", top), CM_OK);
	assert_int_equal(cm_strv_addf(&env,
				      "PATH=%s/home/.pyenv/shims:/usr/bin:rel:%s/none:/usr/bin",
				      top, top),
			 CM_OK);
	assert_int_equal(cm_strv_addf(&env, "PIP_CERT=%s/ca.pem", top), CM_OK);
	assert_int_equal(cm_strv_addf(&env, "SSL_CERT_FILE=%s/ca.pem", top), CM_OK);
	if (cm_tree_facts_read(&host, NULL, &env, &tree, &err) != CM_OK)
		fail_msg("%s", err.msg);
	assert_int_equal(find(&tree.top, "/usr")->type, CM_NODE_DIR);
	assert_null(find(&tree.top, "/opt"));
	assert_null(find(&tree.etc, "/etc/shadow"));
	assert_null(find(&tree.etc, "/etc/passwd"));
	assert_null(find(&tree.etc, "/etc/ssl/private"));
	assert_non_null(find(&tree.proc, "/proc/sys"));
	assert_non_null(find(&tree.extra, "/dev/null"));
	assert_null(find(&tree.extra, "/dev/kmsg"));
	assert_non_null(find(&tree.tools, at("home/.pyenv/versions")));
	assert_non_null(find(&tree.tools, at("home/.cargo/bin")));
	assert_null(find(&tree.tools, at("home/.cargo/credentials.toml")));
	assert_null(find(&tree.tools, at("home/.local/bin/other")));
	assert_string_equal(find(&tree.tools, at("home/.local/bin/uv"))->link, at("uv/uv-0.9"));
	assert_non_null(find(&tree.tools, at("moved/versions")));
	/* others can write to it */
	assert_null(find(&tree.tools, at("home/.deno/bin")));
	assert_int_equal(tree.notes.n, 1);
	assert_int_equal(tree.path.n, 2);
	assert_string_equal(tree.path.v[0].path, at("home/.pyenv/shims"));
	assert_string_equal(tree.path.v[1].path, "/usr/bin");
	assert_int_equal(tree.certificates.n, 1);
	assert_string_equal(cm_strv_env_get(&tree.npm, "nodedir"), "/usr");
	assert_null(cm_strv_env_get(&tree.npm, "_auth"));
	cm_tree_facts_clear(&tree);
	cm_strv_clear(&env);
	free(host.home);
}

/* A group that more users can be in, even if it is the caller's own. */
static void test_shared_group(void **state)
{
	struct cm_host host = { .uid = getuid(), .gid = 64199 };
	struct cm_tree_facts tree;
	struct cm_strv env = { 0 };

	(void)state;
	skip_without_openat2();
	if (getuid() != 0) {
		print_message("SKIP ROOT: only root can give a file to another group\n");
		skip();
	}
	dir("home/.bun/bin");
	dir("home/.deno/bin");
	assert_int_equal(chown(at("home/.deno/bin"), (uid_t)-1, host.gid), 0);
	assert_int_equal(chmod(at("home/.deno/bin"), 0775), 0);
	host.home = cm_strdup(at("home"));
	assert_int_equal(cm_tree_facts_read(&host, NULL, &env, &tree, NULL), CM_OK);
	assert_non_null(find(&tree.tools, at("home/.bun/bin")));
	assert_null(find(&tree.tools, at("home/.deno/bin")));
	assert_int_equal(tree.notes.n, 1);
	assert_non_null(strstr(tree.notes.v[0], "others can write to it"));
	cm_tree_facts_clear(&tree);
	free(host.home);
}

static void check_rootfs(const struct cm_host *host, const char *path, int code, const char *msg)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_tree_facts tree = { .root = NULL };
	struct cm_strv env = { 0 };

	assert_int_equal(cm_tree_facts_read(host, path, &env, &tree, &err), code);
	assert_non_null(strstr(err.msg, msg));
	assert_true(err.hint[0] != '\0');
}

static void test_rootfs(void **state)
{
	struct cm_host host = { .uid = getuid(), .gid = getgid() };
	struct cm_tree_facts tree;
	struct cm_strv env = { 0 };

	(void)state;
	skip_without_openat2();
	host.home = cm_strdup(at("home"));
	dir("img/usr/bin");
	dir("img/etc/alternatives");
	dir("img/root");
	dir("img/srv");
	dir("img/var/lib/dpkg");
	dir("img/proc");
	dir("home/.cargo/bin");
	link_to("usr/bin", "img/bin");
	link_to("/etc/shadow", "img/etc/group");
	file("img/etc/passwd", "root:x:0:0:::\n");
	file("img/etc/shadow", "");
	link_to("img", "link");
	assert_int_equal(cm_strv_add(&env, "PATH=/usr/bin:/usr/sbin"), CM_OK);
	assert_int_equal(cm_tree_facts_read(&host, at("link"), &env, &tree, NULL), CM_OK);
	assert_string_equal(tree.root, at("img"));
	assert_int_equal(tree.top.n, 3);
	assert_string_equal(tree.top.v[0].path, at("img/bin"));
	assert_string_equal(tree.top.v[0].link, "usr/bin");
	assert_string_equal(tree.top.v[1].path, at("img/srv"));
	assert_string_equal(tree.top.v[2].path, at("img/usr"));
	assert_int_equal(tree.etc.n, 1);
	assert_non_null(find(&tree.extra, at("img/var/lib/dpkg")));
	assert_string_equal(tree.passwd, "root:x:0:0:::\n");
	/* it led to the host's */
	assert_null(tree.group);
	assert_int_equal(tree.tools.n, 0);
	assert_int_equal(tree.path.n, 1);
	cm_tree_facts_clear(&tree);
	check_rootfs(&host, at("none"), CM_E_NOT_FOUND, "cannot open the root file system");
	check_rootfs(&host, at("home"), CM_E_INVALID, "has neither /usr nor /bin");
	check_rootfs(&host, "/", CM_E_INVALID, "the root file system is '/'");
	assert_int_equal(rmdir(at("img/proc")), 0);
	link_to("/proc", "img/proc");
	check_rootfs(&host, at("img"), CM_E_INVALID, "is not a directory");
	cm_strv_clear(&env);
	free(host.home);
}

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
	cm_strv_clear(&env);
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
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_node),
		TEST(test_plain_workspace),
		TEST(test_no_workspace),
		TEST(test_workdir),
		TEST(test_spelling),
		TEST(test_worktree),
		TEST(test_submodule),
		TEST(test_inner_gitfile),
		TEST(test_hostile_gitfile),
		TEST(test_programs),
		TEST(test_many_includes),
		TEST(test_deep_includes),
		TEST(test_unreadable),
		TEST(test_odd_submodules),
		TEST(test_many_submodules),
		TEST(test_other_tops),
		TEST(test_many_notes),
		TEST(test_linked_git),
		TEST(test_refused_paths),
		TEST(test_refusal_words),
		TEST(test_allowed),
		TEST(test_refused_by_identity),
		TEST(test_host_tree),
		TEST(test_shared_group),
		TEST(test_rootfs),
		TEST(test_identity),
		TEST(test_host),
		TEST(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
