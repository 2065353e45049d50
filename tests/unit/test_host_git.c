/* SPDX-License-Identifier: Apache-2.0 */
/* What git's configuration and its submodules name in the workspace. */
#include <signal.h>

#include "runtime/base/alloc.h"
#include "tests/unit/host_ground.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_GROUND(test_programs),	ON_GROUND(test_many_includes),
		ON_GROUND(test_deep_includes),	ON_GROUND(test_unreadable),
		ON_GROUND(test_odd_submodules), ON_GROUND(test_many_submodules),
		ON_GROUND(test_other_tops),	ON_GROUND(test_many_notes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
