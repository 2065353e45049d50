/* SPDX-License-Identifier: Apache-2.0 */
/* The readers of text: passwd, subuid, git's configuration, gitfiles, npm's and pip's settings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "isolation/host/gitprograms.h"
#include "isolation/host/host.h"
#include "isolation/host/passwd.h"
#include "isolation/host/toolconf.h"
#include "isolation/host/workspace_internal.h"
#include "runtime/base/fd.h"

static void test_subids(void **state)
{
	static const char text[] = "bob:100000:65536\n"
				   "alice:165536:1000\n"
				   "alicex:1:65536\n"
				   "alice:300000:65536\n"
				   "1001:500000:65536\n"
				   "eve:0:65536\n"
				   "1003:7:0\n"
				   "1004:4294967295:2\n"
				   "1005:4294901760:65535\n"
				   "1006:12x:3\n"
				   "1007:12:-3\n"
				   "1008:99:65536";
	static const struct {
		const char *name;
		uint32_t id;
		bool is_found;
		uint32_t first;
		uint32_t count;
	} cases[] = {
		{ "bob", 7, true, 100000, 65536 },
		/* the largest of several */
		{ "alice", 1001, true, 300000, 65536 },
		/* by number when there is no line by name */
		{ "carol", 1001, true, 500000, 65536 },
		{ NULL, 1001, true, 500000, 65536 },
		{ "", 1001, true, 500000, 65536 },
		{ "ali", 1002, false, 0, 0 },
		/* host root, nothing, past the end, not numbers */
		{ "eve", 1, false, 0, 0 },
		{ "x", 1003, false, 0, 0 },
		{ "x", 1004, false, 0, 0 },
		{ "x", 1005, true, 4294901760U, 65535 },
		{ "x", 1006, false, 0, 0 },
		{ "x", 1007, false, 0, 0 },
		{ "x", 1008, true, 99, 65536 },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(cases); i++) {
		uint32_t first = 7777;
		uint32_t count = 8888;
		bool is_found =
			cm_host_subid_parse(text, cases[i].name, cases[i].id, &first, &count);

		assert_int_equal(is_found, cases[i].is_found);
		assert_int_equal(first, is_found ? cases[i].first : 7777);
		assert_int_equal(count, is_found ? cases[i].count : 8888);
	}
}

static void test_private_groups(void **state)
{
	static const char passwd[] = "root:x:0:0:root:/root:/bin/bash\n"
				     "toor:x:0:900:root:/root:/bin/bash\n"
				     "alice:x:1001:1001::/home/alice:/bin/sh\n"
				     "bob:x:1002:1002::/home/bob:/bin/sh\n"
				     "carol:x:1003:1001\n"
				     "dan:x:1004:1007::/home/dan:/bin/sh\n"
				     "eve:x:1005:1008::/home/eve:/bin/sh\n"
				     "twice:x:1001:1001::/:/bin/sh\n"
				     "twice:x:1002:1002::/:/bin/sh\n";
	static const char group[] = "root:x:0:\n"
				    "alice:x:1001:\n"
				    "bob:x:1002:bob,root\n"
				    "users:x:1003:alice,bob\n"
				    "ghost:x:1004:nobody-knows\n"
				    "toor:x:900:toor\n"
				    "a:x:1005:alice\n"
				    "b:x:1005:bob\n"
				    "odd:x:1006:,alice,\n"
				    "of-dan:x:1007:alice\n"
				    "short:x:1008\n"
				    "t:x:1009:twice\n"
				    "prefix:x:1010:ali";
	static const struct {
		gid_t gid;
		uid_t uid;
		bool is_private;
	} cases[] = {
		{ 1001, 1001, true },
		{ 1001, 1002, false },
		{ 1002, 1002, true },
		{ 1003, 1001, false },
		/* a member that is no user here may be one elsewhere */
		{ 1004, 1001, false },
		{ 0, 1001, true },
		{ 0, 0, true },
		{ 900, 1001, true },
		/* each line of a group counts */
		{ 1005, 1001, false },
		{ 1006, 1001, true },
		/* somebody else's first group */
		{ 1007, 1001, false },
		{ 1007, 1004, false },
		/* not known at all, or not as a group */
		{ 1008, 1005, false },
		{ 1099, 1001, false },
		/* each line of a user counts */
		{ 1009, 1001, false },
		{ 1010, 1001, false },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(cases); i++) {
		if (cm_passwd_is_private_group(passwd, group, cases[i].gid, cases[i].uid) !=
		    cases[i].is_private)
			fail_msg("group %u of user %u", cases[i].gid, cases[i].uid);
	}
	assert_false(cm_passwd_is_private_group("", "", 1001, 1001));
	/* that is a group for set-gid programs */
	assert_false(cm_passwd_is_private_group("", "x:x:1001:", 1001, 1001));
}

static void test_passwd(void **state)
{
	static const char text[] = "root:x:0:0:root:/root:/bin/bash\n"
				   "# 1001\n"
				   "short:x:1001\n"
				   ":x:1001:1::/none:/bin/sh\n"
				   "alice:x:1001:1001:A, B:/home/alice:/bin/zsh\n"
				   "again:x:1001:1001::/other:/bin/sh\n"
				   "odd:x:1002x:1::/o:/bin/sh\n"
				   "colon:x:1003:1::/c:/bin/sh:x\n"
				   "last:x:1004:1::/l:";
	struct cm_passwd_entry entry = { 0 };
	const char *next = text;
	char home[32];

	(void)state;
	assert_true(cm_passwd_find(text, 1001, &entry));
	assert_string_equal(entry.name, "alice");
	assert_string_equal(entry.home, "/home/alice");
	assert_string_equal(entry.shell, "/bin/zsh");
	cm_passwd_entry_clear(&entry);
	assert_false(cm_passwd_find(text, 1002, &entry));
	assert_false(cm_passwd_find(text, 10, &entry));
	assert_null(entry.name);
	assert_true(cm_passwd_find(text, 1004, &entry));
	assert_string_equal(entry.shell, "");
	cm_passwd_entry_clear(&entry);
	assert_true(cm_passwd_next_home(&next, home, sizeof(home)));
	assert_string_equal(home, "/root");
	assert_true(cm_passwd_next_home(&next, home, sizeof(home)));
	assert_string_equal(home, "/none");
	/* one that does not fit is passed over */
	assert_true(cm_passwd_next_home(&next, home, 8));
	assert_string_equal(home, "/other");
}

struct seen {
	char text[4096];
};

static int collect(const struct cm_gitconfig_item *item, void *data)
{
	struct seen *seen = data;
	size_t len = strlen(seen->text);

	(void)snprintf(seen->text + len, sizeof(seen->text) - len, "%s|%s|%s=%s\n", item->section,
		       item->subsection, item->key, item->value);
	return 0;
}

static void check_gitconfig(const char *text, const char *expected)
{
	struct seen seen = { "" };

	assert_int_equal(cm_gitconfig_parse(text, strlen(text), collect, &seen), 0);
	assert_string_equal(seen.text, expected);
}

static void test_gitconfig(void **state)
{
	(void)state;
	check_gitconfig("", "");
	check_gitconfig("[User]\n\tName = Alice B  \n\temail=a@b # c\n",
			"user||name=Alice B\nuser||email=a@b\n");
	check_gitconfig("[a \"B.c\\\"d\"]\nk\n[A] x = 1\n", "a|B.c\"d|k=true\na||x=1\n");
	check_gitconfig("[a]\nk = \"  q # \\\" \\\\ \\n\" tail ; c\n",
			"a||k=  q # \" \\ \n tail\n");
	check_gitconfig("[a]\nk = one \\\n two\r\nl = 2\r\n", "a||k=one  two\na||l=2\n");
	/* git's old form */
	check_gitconfig("[branch.main]\nremote = origin\n", "branch|main|remote=origin\n");
	check_gitconfig("[a.b.C \"D\"]\nk\n", "a|b.c.D|k=true\n");
	check_gitconfig("\xef\xbb\xbf[a]\nk\n", "a||k=true\n");
	check_gitconfig("\xef\xbb[a]\nk\n", "");
	/* what git refuses is passed over, and what follows is read */
	check_gitconfig("k = 1\n[a\nb = 2\n[b]\nc = \"open\nd = \\x\ne = 3", "b||e=3\n");
	check_gitconfig("[a \"x]\nk = 1\n[b]\nl = 2\n", "b||l=2\n");
	check_gitconfig("[include]\npath = ~/other\n", "include||path=~/other\n");
}

static int take_cut(const struct cm_gitconfig_item *item, void *data)
{
	*(bool *)data = *(bool *)data || (item->is_cut && strcmp(item->key, "long") == 0);
	return 0;
}

static int stop(const struct cm_gitconfig_item *item, void *data)
{
	(void)item;
	++*(int *)data;
	return 42;
}

/* "[SECTION] KEY = VALUE" and the paths in it: D a directory counts, E it is expected to be there. */
static int take_word(const char *path, unsigned int flags, void *data)
{
	char *out = data;
	size_t len = strlen(out);

	(void)snprintf(out + len, 1024 - len, "%s%s%s%s", len > 0 ? " | " : "", path,
		       (flags & CM_GITPATH_DIR) != 0 ? " D" : "",
		       (flags & CM_GITPATH_EXPECTED) != 0 ? "E" : "");
	return 0;
}

static int take_programs(const struct cm_gitconfig_item *item, void *data)
{
	return cm_gitprograms_read(item, take_word, data);
}

static void test_gitprograms(void **state)
{
	static const struct {
		const char *config;
		const char *words;
	} cases[] = {
		{ "[core]\nhooksPath = .husky/_\n", ".husky/_ DE" },
		{ "[core]\nhookspath = hooks\n", "hooks DE" },
		{ "[core]\nfsmonitor = tools/watch\n", "tools/watch DE" },
		{ "[core]\nfsmonitor = true\n", "" },
		{ "[core]\nsshCommand = ssh -i keys/id -F ./conf\n",
		  "ssh -i keys/id -F ./conf | keys/id D | ./conf DE" },
		{ "[filter \"x\"]\nclean = ~/ws/clean %f\n", "~/ws/clean %f | ~/ws/clean DE" },
		{ "[filter \"x\"]\nsmudge = python3 smudge.py --map=m/x\n",
		  "python3 smudge.py --map=m/x | smudge.py | m/x D" },
		{ "[filter \"x\"]\nprocess = A=b/c sh \\\"d e/f\\\"\n",
		  "A=b/c sh \"d e/f\" | b/c D | d e/f D | b/c D | d | e/f D" },
		{ "[diff \"x\"]\ntextconv = sh -c 'a/b \\\"$1\\\"' -\n",
		  "sh -c 'a/b \"$1\"' - | \" | a/b D | \"" },
		{ "[diff]\nexternal = ./d\n", "./d DE" },
		{ "[merge \"x\"]\ndriver = tools/merge %O %A %B\n",
		  "tools/merge %O %A %B | tools/merge DE" },
		{ "[merge \"x\"]\nname = tools/merge\n", "" },
		{ "[credential \"https://x\"]\nhelper = !c/h store\n",
		  "c/h store | c/h DE | store" },
		{ "[gpg]\nprogram = my gpg/gpg\n", "my gpg/gpg | gpg/gpg D" },
		{ "[gpg \"ssh\"]\nprogram = s/k\n", "s/k DE" },
		{ "[pager]\nlog = p/less\n", "p/less DE" },
		{ "[alias]\nx = !cd src/app && ./run a\ny = log src/app\n",
		  "cd src/app && ./run a | src/app | ./run | a" },
		{ "[submodule \"s\"]\nupdate = !u/p\nupdate = rebase\n", "u/p DE" },
		{ "[core]\neditor = $(git rev-parse --show-toplevel)/tools/e\n",
		  "$(git rev-parse --show-toplevel)/tools/e | rev-parse | tools/e D" },
		{ "[core]\neditor = \"$PWD/e/f\"\n", "e/f DE" },
		{ "[core]\npager = ${X:-a b}/p/q|c/d&&e/f;`g/h`\n", NULL },
		{ "[user]\nname = a/b\n[remote \"o\"]\nurl = ../x/y\n[branch \"m\"]\nmerge = "
		  "refs/heads/m\n[core]\nbare = false\nworktree = ../x\n",
		  "" },
		{ "[core]\nhooksPath =\neditor = \npager = ' \n", NULL },
		{ "[imap]\ntunnel = i/t\n", "i/t DE" },
		{ "[sendemail]\nheaderCmd = s/h\n", "s/h DE" },
		{ "[instaweb]\nhttpd = i/w -f\n", "i/w -f | i/w DE" },
		{ "[gc]\nrecentObjectsHook = g/r --x=y/z\n", "g/r --x=y/z | g/r DE | y/z D" },
		{ "[instaweb]\ngitwebDir = i/g\nmodulePath = i/m\n", "i/g DE | i/m DE" },
		{ "[svn]\nauthorsProg = s/a\n", "s/a DE" },
		{ "[remote \"o\"]\nurl = ext::r/e %S x\npushurl = ext:: r/p\npushurl = r/n\n",
		  "r/e %S x | r/e DE | x |  r/p | r/p DE" },
		{ "[lfs \"extension.x\"]\nclean = l/c\nsmudge = l/s\n", "l/c DE | l/s DE" },
		{ "[filter.q]\nclean = f/q\n", "f/q DE" },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(cases); i++) {
		char words[1024] = "";

		assert_int_equal(cm_gitconfig_parse(cases[i].config, strlen(cases[i].config),
						    take_programs, words),
				 0);
		if (cases[i].words)
			assert_string_equal(words, cases[i].words);
	}
}

static void test_gitconfig_bounds(void **state)
{
	static const char cut[] = "[a \"b\\\"\"]\nk = \"v\\\0\\\n\"";
	static char text[10240];
	static char name[1100];
	struct seen seen = { "" };
	int calls = 0;
	bool is_cut = false;

	(void)state;
	(void)snprintf(text, sizeof(text), "[a]\nlong = ");
	memset(text + strlen(text), 'x', 9000);
	(void)snprintf(text + 11 + 9000, sizeof(text) - 9011, "\nshort = 1\n");
	assert_int_equal(cm_gitconfig_parse(text, strlen(text), collect, &seen), 0);
	assert_string_equal(seen.text, "a||short=1\n");
	(void)cm_gitconfig_parse_all(text, strlen(text), take_cut, &is_cut);
	assert_true(is_cut);
	/* what stands below a long name is read */
	memset(name, 'n', sizeof(name) - 1);
	(void)snprintf(text, sizeof(text), "[a \"%s\"]\nk = 1\n[b.%s]\nk = 2\n", name, name);
	seen.text[0] = '\0';
	assert_int_equal(cm_gitconfig_parse(text, strlen(text), collect, &seen), 0);
	assert_non_null(strstr(seen.text, "a|nnn"));
	assert_non_null(strstr(seen.text, "|k=1\nb|nnn"));
	assert_int_equal(cm_gitconfig_parse("[a]\nx\ny\n", 8, stop, &calls), 42);
	assert_int_equal(calls, 1);
	/* a NUL in the middle, and a text that ends anywhere */
	for (size_t n = 0; n <= sizeof(cut); n++)
		(void)cm_gitconfig_parse(cut, n, collect, &seen);
}

static void test_gitfile(void **state)
{
	char buf[16];

	(void)state;
	assert_true(cm_gitfile_parse("gitdir: ../x\n", "gitdir: ", buf, sizeof(buf)));
	assert_string_equal(buf, "../x");
	assert_true(cm_gitfile_parse("gitdir: /a b\r\n", "gitdir: ", buf, sizeof(buf)));
	assert_string_equal(buf, "/a b");
	assert_true(cm_gitfile_parse("..", "", buf, sizeof(buf)));
	assert_false(cm_gitfile_parse("gitdir: ", "gitdir: ", buf, sizeof(buf)));
	assert_false(cm_gitfile_parse("gitdir: \n", "gitdir: ", buf, sizeof(buf)));
	assert_false(cm_gitfile_parse("x\ngitdir: /a\n", "gitdir: ", buf, sizeof(buf)));
	assert_false(cm_gitfile_parse("gitdir: /a\n/b\n", "gitdir: ", buf, sizeof(buf)));
	assert_false(cm_gitfile_parse("gitdir: /0123456789abcdef\n", "gitdir: ", buf, sizeof(buf)));
}

static void test_npm(void **state)
{
	static const char text[] = "# comment\n"
				   "registry = https://npm.example.org/\n"
				   "@acme:registry=\"https://npm.acme.example/\"\n"
				   "//npm.example.org/:_authToken=secret\n"
				   "_auth=c2VjcmV0\n"
				   "email=alice@example.org\n"
				   "nodedir=/usr\n"
				   "fetch-retries=1\n"
				   "ignore-scripts=true\n"
				   "python=${HOME}/python\n"
				   "proxy=http://proxy.example.org\n"
				   "cafile=/etc/ssl/a\x01.pem\n"
				   "script-shell=\n"
				   "registry=https://u:p@npm.example.org/\n"
				   "nodedir=/usr/local\n"
				   "save-exact";
	struct cm_strv got = { 0 };

	(void)state;
	assert_int_equal(cm_toolconf_parse_npm(text, &got), CM_OK);
	assert_int_equal(got.n, 5);
	assert_string_equal(got.v[0], "registry=https://npm.example.org/");
	assert_string_equal(got.v[1], "@acme:registry=https://npm.acme.example/");
	assert_string_equal(got.v[2], "nodedir=/usr/local");
	assert_string_equal(got.v[3], "fetch-retries=1");
	assert_string_equal(got.v[4], "ignore-scripts=true");
	cm_strv_clear(&got);
}

static void test_pip(void **state)
{
	static const char text[] = "[global]\n"
				   "index-url = https://u:secret@pip.example.org/simple\n"
				   "extra-index-url = https://pip.example.org/simple\n"
				   "proxy = http://proxy.example.org\n"
				   "cert = /etc/ssl/certs/ca.pem\n"
				   "[freeze]\nfind-links = /x\n"
				   "[install]\nfind-links = /srv/wheels\n";
	struct cm_strv got = { 0 };

	(void)state;
	assert_int_equal(cm_toolconf_parse_pip(text, &got), CM_OK);
	assert_int_equal(got.n, 3);
	assert_string_equal(got.v[0], "extra-index-url=https://pip.example.org/simple");
	assert_string_equal(got.v[1], "cert=/etc/ssl/certs/ca.pem");
	assert_string_equal(got.v[2], "find-links=/srv/wheels");
	cm_strv_clear(&got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_subids),
		cmocka_unit_test(test_passwd),
		cmocka_unit_test(test_private_groups),
		cmocka_unit_test(test_gitconfig),
		cmocka_unit_test(test_gitconfig_bounds),
		cmocka_unit_test(test_gitprograms),
		cmocka_unit_test(test_gitfile),
		cmocka_unit_test(test_npm),
		cmocka_unit_test(test_pip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
