/* SPDX-License-Identifier: Apache-2.0 */
/* Which directories a checkout is shown: what a .git file may name, and what it may not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "isolation/host/facts.h"
#include "runtime/base/alloc.h"
#include "tests/unit/host_files.h"

/* as the reader has it */
#define MAX_GITFILE 8192

static int setup(void **state)
{
	(void)state;
	return files_begin();
}

static int teardown(void **state)
{
	(void)state;
	return files_end();
}

/* git_dir: below the test's directory; NULL: nothing but the tree is shown. */
static void check_shown(const char *name, const char *path, const char *git_dir)
{
	struct cm_source_facts source = { NULL, NULL };
	struct cm_error err = CM_ERROR_INIT;

	if (cm_source_facts_read(at(name), &source, &err) != CM_OK)
		fail_msg("%s: %s", name, err.msg);
	assert_string_equal(source.path, at(path));
	if (git_dir && !source.git_dir)
		fail_msg("%s: nothing is shown beside it", name);
	if (git_dir)
		assert_string_equal(source.git_dir, at(git_dir));
	else if (source.git_dir)
		fail_msg("%s: %s is shown", name, source.git_dir);
	cm_source_facts_clear(&source);
	assert_null(source.path);
	assert_null(source.git_dir);
}

static void check_refused(const char *name, const char *msg, const char *hint)
{
	char before[] = "before";
	struct cm_source_facts source = { before, before };
	struct cm_error err = CM_ERROR_INIT;
	int r = cm_source_facts_read(at(name), &source, &err);

	if (r == CM_OK)
		fail_msg("%s: shows %s", name, source.git_dir ? source.git_dir : "no more");
	assert_int_equal(r, CM_E_CHECKOUT);
	assert_ptr_equal(source.path, before);
	assert_ptr_equal(source.git_dir, before);
	if (!strstr(err.msg, msg) || !strstr(err.hint, hint))
		fail_msg("%s: %s\nhint: %s", name, err.msg, err.hint);
}

static void check_liar(const char *name)
{
	check_refused(name, "the git directory that its '.git' file names", "--ref");
}

/* The same with a text in one of the files. */
static void check_liar_with(const char *tree, const char *name, const char *text)
{
	struct cm_source_facts source = { NULL, NULL };

	file(name, text);
	if (cm_source_facts_read(at(tree), &source, NULL) == CM_OK)
		fail_msg("believed: %s", text);
	check_liar(tree);
}

/* name in parent; valid until the fourth next call */
static const char *in(const char *parent, const char *name)
{
	static char paths[4][256];
	static unsigned int next;
	char *path = paths[next++ % 4];

	assert_true(snprintf(path, 256, "%s/%s", parent, name) < 256);
	return path;
}

/* What git makes for a linked worktree: own is the directory below common/worktrees. */
static void worktree(const char *tree, const char *own)
{
	dir(tree);
	dir(own);
	text_of(in(tree, ".git"), "gitdir: ", at(own));
	text_of(in(own, "gitdir"), "", at(in(tree, ".git")));
	file(in(own, "commondir"), "../..\n");
	file(in(own, "HEAD"), "ref: refs/heads/topic\n");
}

static void test_plain(void **state)
{
	(void)state;
	git_dir("app/.git");
	link_to("app", "link");
	check_shown("app", "app", NULL);
	check_shown("link/../link/.", "app", NULL);
	check_shown("app/.git", "app/.git", NULL);
	git_dir("bare.git");
	check_shown("bare.git", "bare.git", NULL);
	/* whether it is one at all is the helper's to say */
	dir("none");
	file("file", "");
	check_shown("none", "none", NULL);
	check_shown("file", "file", NULL);
}

static void test_absent(void **state)
{
	struct cm_source_facts source = { NULL, NULL };
	struct cm_error err = CM_ERROR_INIT;

	(void)state;
	assert_int_equal(cm_source_facts_read(at("none"), &source, &err), CM_E_NOT_FOUND);
	assert_true(err.hint[0] != '\0');
	link_to("loop", "loop");
	assert_int_equal(cm_source_facts_read(at("loop"), &source, &err), CM_E_SYS);
	assert_null(source.path);
}

static void test_below(void **state)
{
	char hint[600];

	(void)state;
	git_dir("app/.git");
	dir("app/lib/deep");
	dir("app/.git/more");
	link_to("app/lib", "link");
	assert_true(snprintf(hint, sizeof(hint), "--repo '%s'", at("app")) > 0);
	check_refused("app/lib", "below the top level", hint);
	check_refused("app/lib/deep", "below the top level", hint);
	check_refused("app/.git/more", "below the top level", hint);
	check_refused("link", "below the top level", hint);
	/* a repository of its own in another one is a top level */
	git_dir("app/lib/.git");
	check_shown("app/lib", "app/lib", NULL);
	git_dir("app/bare.git");
	check_shown("app/bare.git", "app/bare.git", NULL);
}

static void test_worktree(void **state)
{
	(void)state;
	git_dir("app/.git");
	worktree("wt", "app/.git/worktrees/wt");
	check_shown("wt", "wt", "app/.git");
	link_to("wt", "link");
	check_shown("link", "wt", "app/.git");
	/* git 2.48 writes relative paths where it is told to */
	file("wt/.git", "gitdir: ../app/.git/worktrees/wt\n");
	file("app/.git/worktrees/wt/gitdir", "../../../../wt/.git\n");
	check_shown("wt", "wt", "app/.git");
	/* by a link in the path that the file names */
	link_to("app/.git", "to");
	file("wt/.git", "gitdir: ../to/worktrees/wt\n");
	check_shown("wt", "wt", "app/.git");
	file("wt/.git", "gitdir: ../app/.git/worktrees/wt\r\n");
	check_shown("wt", "wt", "app/.git");
	worktree("app/inner", "app/.git/worktrees/inner");
	check_shown("app/inner", "app/inner", "app/.git");
	worktree("app/.git/tree", "app/.git/worktrees/tree");
	check_shown("app/.git/tree", "app/.git/tree", "app/.git");
	git_dir("bare.git");
	worktree("bare.git/main", "bare.git/worktrees/main");
	check_shown("bare.git/main", "bare.git/main", "bare.git");
	/* and of a submodule */
	git_dir("app/.git/modules/lib");
	worktree("lib-wt", "app/.git/modules/lib/worktrees/x");
	check_shown("lib-wt", "lib-wt", "app/.git/modules/lib");
}

static void test_submodule(void **state)
{
	static const char good[] = "[core]\n\tworktree = ../../../lib\n";

	(void)state;
	git_dir("app/.git");
	git_dir("app/.git/modules/lib");
	dir("app/lib");
	file("app/lib/.git", "gitdir: ../.git/modules/lib\n");
	file("app/.git/modules/lib/config", good);
	check_shown("app/lib", "app/lib", "app/.git/modules/lib");
	file("app/.git/modules/lib/config", "[core]\n\tworktree = ../../../other\n");
	check_liar("app/lib");
	file("app/.git/modules/lib/config", "[core]\n\tworktree = /\n");
	check_liar("app/lib");
	/* a NUL at the end */
	bytes("app/.git/modules/lib/config", good, sizeof(good));
	check_liar("app/lib");
	assert_int_equal(unlink(at("app/.git/modules/lib/config")), 0);
	assert_int_equal(mkfifo(at("app/.git/modules/lib/config"), 0600), 0);
	check_liar("app/lib");
}

/* What lies in the tree is shown with it, and needs to name nothing back. */
static void test_inner(void **state)
{
	(void)state;
	git_dir("proj/.bare");
	file("proj/.git", "gitdir: ./.bare\n");
	check_shown("proj", "proj", NULL);
	worktree("proj/main", "proj/.bare/worktrees/main");
	check_shown("proj/main", "proj/main", "proj/.bare");
	/* by a name that leads out of it */
	git_dir("other");
	link_to("../other", "proj/out");
	file("proj/.git", "gitdir: out\n");
	check_liar("proj");
	/* what it says of a common directory elsewhere opens nothing */
	file("proj/.bare/commondir", "../../other\n");
	file("proj/.git", "gitdir: .bare\n");
	check_shown("proj", "proj", NULL);
}

/* Texts that make nothing be shown, whoever wrote them. */
static void test_hostile_text(void **state)
{
	static const char *const texts[] = {
		"",
		"gitdir: ",
		"gitdir: \n",
		"gitdir:../victim/.git\n",
		" gitdir: ../victim/.git\n",
		"gitdir: ../victim/.git\n",
		"gitdir: ../victim/.git\n\n",
		"gitdir: ../victim\n",
		"gitdir: ../victim/.git/worktrees/tree\n",
		"gitdir: ../victim/.git/worktrees/tree/.\n",
		"gitdir: ../secrets\n",
		"gitdir: ../secrets\n../victim/.git\n",
		"gitdir: ..\n",
		"gitdir: .\n",
		"gitdir: .git\n",
		"gitdir: .git/x\n",
		"gitdir: ../none\n",
		"gitdir: ../fifo\n",
		"gitdir: ../fifo/x\n",
		"gitdir: /\n",
		"gitdir: /etc\n",
		"gitdir: /dev/zero\n",
		"gitdir: /proc/self/root\n",
		"gitdir: /proc/self/cwd\n",
		"gitdir: /proc/self/fd/3\n",
		"gitdir: ../a\n",
		"gitdir: ../a/b\n",
		"gitdir: ../deep\n",
		"gitdir: ~/x\n",
		"gitdir: file:///etc\n",
	};

	(void)state;
	git_dir("victim/.git");
	worktree("tree", "victim/.git/worktrees/tree");
	dir("secrets");
	dir("ws");
	assert_int_equal(mkfifo(at("fifo"), 0600), 0);
	link_to("b", "a");
	link_to("a", "b");
	link_to("ws", "deep");
	for (size_t i = 0; i < CM_ARRAY_SIZE(texts); i++) {
		check_liar_with("ws", "ws/.git", texts[i]);
	}
	check_shown("tree", "tree", "victim/.git");
}

/* The same path, made the wrong size. */
static void test_long_text(void **state)
{
	static const char good[] = "gitdir: ../app/.git/worktrees/wt\n";
	static const char head[] = "gitdir: ";
	char text[MAX_GITFILE + 16];

	(void)state;
	git_dir("app/.git");
	worktree("wt", "app/.git/worktrees/wt");
	/* a NUL: the text before it would do */
	bytes("wt/.git", good, sizeof(good));
	check_liar("wt");
	memset(text, 0, sizeof(text));
	bytes("wt/.git", text, sizeof(text));
	check_liar("wt");
	/* as long as may be, of slashes that name the same place: longer than a path can be */
	memset(text, '/', sizeof(text));
	memcpy(text, head, strlen(head));
	bytes("wt/.git", text, MAX_GITFILE);
	check_liar("wt");
	/* a good line, and line ends up to the bound and beyond it */
	memset(text, '\r', sizeof(text));
	memcpy(text, good, sizeof(good) - 2);
	bytes("wt/.git", text, MAX_GITFILE);
	check_shown("wt", "wt", "app/.git");
	bytes("wt/.git", text, MAX_GITFILE + 1);
	check_liar("wt");
	/* a terabyte is not read */
	file("wt/.git", good);
	assert_int_equal(truncate(at("wt/.git"), (off_t)1 << 40), 0);
	check_liar("wt");
}

/* Files beside the .git file that say what is not so. */
static void test_hostile_files(void **state)
{
	static const char *const backs[] = { "",
					     "\n",
					     "../../../../victim/.git\n",
					     "/\n",
					     "gitdir\n",
					     "../../../../ws\n",
					     "../../../../ws/.git\n/etc\n",
					     "../../../../ws/.git/.\n" };
	static const char good[] = "../../../../ws/.git\n";

	(void)state;
	git_dir("app/.git");
	worktree("ws", "app/.git/worktrees/ws");
	check_shown("ws", "ws", "app/.git");
	for (size_t i = 0; i < CM_ARRAY_SIZE(backs); i++) {
		check_liar_with("ws", "app/.git/worktrees/ws/gitdir", backs[i]);
	}
	file("app/.git/worktrees/ws/gitdir", good);
	check_shown("ws", "ws", "app/.git");
	bytes("app/.git/worktrees/ws/gitdir", good, sizeof(good));
	check_liar("ws");
	assert_int_equal(unlink(at("app/.git/worktrees/ws/gitdir")), 0);
	check_liar("ws");
	assert_int_equal(mkfifo(at("app/.git/worktrees/ws/gitdir"), 0600), 0);
	check_liar("ws");
	assert_int_equal(unlink(at("app/.git/worktrees/ws/gitdir")), 0);
	file("app/.git/worktrees/ws/gitdir", good);
	check_shown("ws", "ws", "app/.git");
	file("app/.git/worktrees/ws/commondir", "/\n");
	check_liar("ws");
	file("app/.git/worktrees/ws/commondir", ".\n");
	check_liar("ws");
	file("app/.git/worktrees/ws/commondir", "../../..\n");
	check_liar("ws");
}

/* Who can write one directory, and names another one as the common one, is shown neither. */
static void test_foreign_common(void **state)
{
	(void)state;
	git_dir("victim/.git");
	worktree("tree", "victim/.git/worktrees/tree");
	dir("ws");
	dir("mine");
	text_of("mine/gitdir", "", at("ws/.git"));
	text_of("mine/commondir", "", at("victim/.git"));
	file("mine/HEAD", "ref: refs/heads/main\n");
	file("ws/.git", "gitdir: ../mine\n");
	check_liar("ws");
	/* a worktree of that name is there, and is another one */
	dir("victim/.git/worktrees/mine");
	check_liar("ws");
	assert_int_equal(rmdir(at("victim/.git/worktrees/mine")), 0);
	/* or is a link to this one */
	link_to("../../../mine", "victim/.git/worktrees/mine");
	check_liar("ws");
	/* or all worktrees are behind a link: by its names it lies in a directory that would be
	 * shown, and it would not be there */
	git_dir("common");
	link_to("../elsewhere", "common/worktrees");
	dir("elsewhere");
	worktree("ws", "elsewhere/ws");
	text_of("elsewhere/ws/commondir", "", at("common"));
	file("ws/.git", "gitdir: ../common/worktrees/ws\n");
	check_liar("ws");
	/* an incomplete one is no repository */
	worktree("half", "halves/.git/worktrees/half");
	check_liar("half");
}

/* .git that is no file: nothing beside the tree is shown, and nobody is waited for. */
static void test_other_kinds(void **state)
{
	(void)state;
	git_dir("victim/.git");
	dir("ws");
	link_to("../victim/.git", "ws/.git");
	check_shown("ws", "ws", NULL);
	assert_int_equal(unlink(at("ws/.git")), 0);
	/* a link to a good .git file, too */
	worktree("tree", "victim/.git/worktrees/tree");
	link_to("../tree/.git", "ws/.git");
	check_shown("ws", "ws", NULL);
	assert_int_equal(unlink(at("ws/.git")), 0);
	link_to(".git", "ws/.git");
	check_shown("ws", "ws", NULL);
	assert_int_equal(unlink(at("ws/.git")), 0);
	assert_int_equal(mkfifo(at("ws/.git"), 0600), 0);
	check_shown("ws", "ws", NULL);
}

static void test_no_memory(void **state)
{
	struct cm_source_facts source = { NULL, NULL };
	int r = CM_E_NOMEM;

	(void)state;
	git_dir("app/.git");
	worktree("wt", "app/.git/worktrees/wt");
	for (long n = 0; r != CM_OK; n++) {
		cm_alloc_fail_after(n);
		r = cm_source_facts_read(at("wt"), &source, NULL);
		cm_alloc_fail_after(-1);
		assert_true(n < 200);
		if (r != CM_OK)
			assert_null(source.path);
	}
	assert_string_equal(source.git_dir, at("app/.git"));
	cm_source_facts_clear(&source);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_plain),	   TEST(test_absent),	   TEST(test_below),
		TEST(test_worktree),	   TEST(test_submodule),   TEST(test_inner),
		TEST(test_hostile_text),   TEST(test_long_text),   TEST(test_hostile_files),
		TEST(test_foreign_common), TEST(test_other_kinds), TEST(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
