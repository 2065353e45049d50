/* SPDX-License-Identifier: Apache-2.0 */
/* Submodules: which names, places and addresses are taken, and what relative ones mean. */
#include "runtime/base/buf.h"
#include "runtime/base/submodule.h"
#include "tests/unit/test_base.h"

static const char *const paths[] = {
	"a", "a/b", "third_party/lib.git", "a b", "...", ".github", "\xc3\xbc", "a/-b", "\"a\"",
};

static const char *const bad_paths[] = {
	"",	  "/",	  "/a",	  "a/",	      "a//b",	      ".",  "..",  "../a", "a/..",
	"a/../b", "./a",  ".git", ".GIT",     "a/.git/hooks", "-a", "-ua", "a\nb", "\x1b[31m",
	"a\x7f",  "a\\b", "\xff", "\xc0\xaf",
};

static void test_paths(void **state)
{
	char longest[CM_SUBMODULE_PATH_MAX + 2];

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(paths); i++)
		assert_true(cm_submodule_is_path(paths[i]));
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad_paths); i++) {
		assert_false(cm_submodule_is_path(bad_paths[i]));
		assert_false(cm_submodule_is_name(bad_paths[i]));
	}
	assert_true(cm_submodule_is_name("libs/a b"));
	/* it stands between quotes in git's configuration */
	assert_false(cm_submodule_is_name("\"a\""));
	memset(longest, 'a', sizeof(longest));
	longest[CM_SUBMODULE_PATH_MAX + 1] = '\0';
	assert_false(cm_submodule_is_path(longest));
	longest[CM_SUBMODULE_PATH_MAX] = '\0';
	assert_true(cm_submodule_is_path(longest));
}

#define BASE "https://example.org:8443/team/app.git"

static const struct {
	const char *base;
	const char *url;
	/* NULL: refused */
	const char *text;
} addresses[] = {
	{ BASE, "https://other.example.org/x", "https://other.example.org/x" },
	{ BASE, "https://a:b@other.example.org/x", "https://other.example.org/x" },
	{ BASE, "ssh://git@example.org/x", "ssh://git@example.org/x" },
	{ BASE, "git@example.org:x/y.git", "git@example.org:x/y.git" },
	{ "/srv/app", "https://example.org/x", "https://example.org/x" },
	/* relative ones, as git has them */
	{ BASE, "../lib.git", "https://example.org:8443/team/lib.git" },
	{ BASE "/", "../lib.git", "https://example.org:8443/team/lib.git" },
	{ BASE, "./lib.git", BASE "/lib.git" },
	{ BASE, "../../lib", "https://example.org:8443/lib" },
	{ BASE, ".././../other/lib", "https://example.org:8443/other/lib" },
	{ "git@example.org:team/app.git", "../lib.git", "git@example.org:team/lib.git" },
	{ "git@example.org:app.git", "../lib.git", "git@example.org:lib.git" },
	{ "git@example.org:/team/app.git", "../../lib.git", "git@example.org:/lib.git" },
	{ "ssh://git@example.org/team/app", "../lib", "ssh://git@example.org/team/lib" },
	/* not of the server's any more */
	{ BASE, "../../../lib", NULL },
	{ BASE, "../../../evil.example.org/lib", NULL },
	{ BASE, "../../../../http:/evil.example.org/lib", NULL },
	{ "git@example.org:app.git", "../../evil:lib", NULL },
	{ "git@example.org:app.git", "../-oProxyCommand=x", NULL },
	{ BASE, "../lib?x", NULL },
	{ BASE, "../a b", NULL },
	{ BASE, "../", "https://example.org:8443/team/" },
	/* plain paths and what follows from one, other protocols, programs, options */
	{ "/srv/app", "../lib", NULL },
	{ "file:///srv/app", "../lib", NULL },
	{ "http://example.org/app", "../lib", NULL },
	{ "git://example.org/app", "../lib", NULL },
	{ BASE, "/srv/lib", NULL },
	{ BASE, "lib", NULL },
	{ BASE, "", NULL },
	{ BASE, "file:///srv/lib", NULL },
	{ BASE, "http://example.org/lib", NULL },
	{ BASE, "git://example.org/lib", NULL },
	{ BASE, "ext::sh -c x", NULL },
	{ BASE, "--upload-pack=x", NULL },
	{ BASE, "-ux", NULL },
	{ BASE, "ssh://-oProxyCommand=x/y", NULL },
	{ BASE, "git@-oProxyCommand=x:y", NULL },
	{ BASE, "https://example.org\n--upload-pack=x/y", NULL },
};

static void test_addresses(void **state)
{
	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(addresses); i++) {
		struct cm_giturl url = { 0 };
		struct cm_error err = CM_ERROR_INIT;
		int r = cm_submodule_url(addresses[i].base, addresses[i].url, &url, &err);

		if (!addresses[i].text) {
			assert_int_equal(r, CM_E_INVALID);
			assert_null(url.text);
			assert_true(err.msg[0] != '\0' && err.hint[0] != '\0');
			continue;
		}
		assert_int_equal(r, CM_OK);
		assert_string_equal(url.text, addresses[i].text);
		cm_giturl_clear(&url);
	}
}

static void test_long_address(void **state)
{
	static char relative[2 * CM_GITURL_MAX];
	struct cm_giturl url = { 0 };

	(void)state;
	memset(relative, 'a', sizeof(relative) - 1);
	memcpy(relative, "../", 3);
	assert_int_equal(cm_submodule_url(BASE, relative, &url, NULL), CM_E_INVALID);
}

static bool take_once(void *data)
{
	struct cm_giturl url = { 0 };
	struct cm_error err = CM_ERROR_INIT;
	int r = cm_submodule_url(BASE, data, &url, &err);

	if (r == CM_OK) {
		cm_giturl_clear(&url);
		return true;
	}
	assert_int_equal(r, CM_E_NOMEM);
	assert_null(url.text);
	return false;
}

static void test_without_memory(void **state)
{
	CM_AUTO_FREE char *relative = cm_strdup("../lib");

	(void)state;
	assert_true(fail_each_allocation(take_once, relative) >= 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_long_address),
		cmocka_unit_test(test_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
