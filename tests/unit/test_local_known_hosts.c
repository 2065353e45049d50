/* SPDX-License-Identifier: Apache-2.0 */
/* Which keys an ssh server may have, out of files of the host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "providers/local/known_hosts.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"

#define ED "AAAAC3NzaC1lZDI1NTE5AAAAIPKPP4RWz9d88kIMFeQ8cCqX5rkJA4AF4U3rV7jlUtrx"
#define ED_OTHER "AAAAC3NzaC1lZDI1NTE5AAAAIJ9CUyYvyWLVBuBwqUJki/DryhoQAr0xZUvRke32t2wU"
#define EC                                                                                         \
	"AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBJZGADL6tfDC7Dgnea/p13LwpNfT7HP0pQ/aoYTlIhQLL4+nsh2BkvHGRLo0zthuW5ivQusGsAeQj4tZ4C60CpA="
#define RSA                                                                                        \
	"AAAAB3NzaC1yc2EAAAADAQABAAAAgQCqccWNYpybOMi6FtHujIt6ZCXsbCMVKj4zL1QZknaBkulkwPOqKthpM8LLOUC8olSuJdTgEubFV9KB1ahPcz7u38AxNY+A/KnvIAkSeCKHi3B8NULsUB421+2Tr4y/Mx3MCkTr4iwOf8j4NtnSbNheFYBpd+AxfEDOTtk/LVAm7w=="
/* of a kind that is gone */
#define DSS "AAAAB3NzaC1kc3N4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHg="
/* as ssh-keygen -H hides git.example.org, and [git.example.org]:2222 */
#define HIDDEN "|1|W7TN6JTcMem941XoWYCcivcG02g=|3KDBtScJpvB+E9qM2MNwq4B+03w="
#define HIDDEN_2222 "|1|vjssOI+bwm8YWAmQObU2p/KVFIk=|cIpi2eY7dm0CzJs8ZmqIRL3UsF4="

static void assert_known(const char *host, unsigned int port, const char *text,
			 const char *expected)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_known_hosts k;

	assert_int_equal(cm_known_hosts_init(&k, host, port, &err), CM_OK);
	cm_known_hosts_add(&k, text, strlen(text));
	assert_int_equal(cm_known_hosts_finish(&k, &err), CM_OK);
	if (strcmp(k.lines.data, expected) != 0)
		fail_msg("of '%s' for %s:\n%s", text, host, k.lines.data);
	cm_known_hosts_clear(&k);
}

#define OURS "git.example.org ssh-ed25519 " ED "\n"
#define OURS_OTHER "git.example.org ssh-ed25519 " ED_OTHER "\n"
#define OURS_EC "git.example.org ecdsa-sha2-nistp256 " EC "\n"
#define OURS_2222 "[git.example.org]:2222 ssh-ed25519 " ED "\n"

static void test_names(void **state)
{
	static const struct {
		const char *text;
		bool is_ours;
		bool is_2222;
	} rows[] = {
		{ "git.example.org", true, false },
		{ "Git.Example.ORG", true, false },
		{ "other.example.org", false, false },
		{ "git.example.org.evil.org", false, false },
		{ "example.org", false, false },
		{ "a.example.org,git.example.org,192.0.2.1", true, false },
		{ "*.example.org", true, false },
		{ "g?t.example.org", true, false },
		{ "*", true, true },
		{ "*.example.org,!git.example.org", false, false },
		{ "!git.example.org,*.example.org", false, false },
		{ "!other.example.org,*.example.org", true, false },
		{ "!git.example.org", false, false },
		{ "[git.example.org]:2222", false, true },
		{ "[*.example.org]:2222", false, true },
		{ "[git.example.org]:22222", false, false },
		{ HIDDEN, true, false },
		{ HIDDEN_2222, false, true },
		/* hidden badly: a salt or a digest that is none, other lengths, another version */
		{ "|1|", false, false },
		{ "|1|AAAA", false, false },
		{ "|1||AAAA", false, false },
		{ "|1|AAAA|AAAA", false, false },
		{ "|1|A|B", false, false },
		{ "|2|", false, false },
		{ ",,", false, false },
		{ "!", false, false },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		CM_AUTO_FREE char *text = cm_asprintf("%s ssh-ed25519 " ED "\n", rows[i].text);

		assert_known("git.example.org", 22, text, rows[i].is_ours ? OURS : "");
		assert_known("git.example.org", 2222, text, rows[i].is_2222 ? OURS_2222 : "");
	}
}

static void test_lines(void **state)
{
	static const struct {
		const char *text;
		const char *expected;
	} rows[] = {
		{ "", "" },
		{ "\n\n\n", "" },
		{ "# git.example.org ssh-ed25519 " ED "\n", "" },
		{ " \tgit.example.org \t ssh-ed25519\t" ED "\t a comment of two", OURS },
		{ "git.example.org ssh-ed25519 " ED "\r\n", OURS },
		{ "git.example.org ssh-ed25519", "" },
		{ "git.example.org", "" },
		{ "git.example.org " ED, "" },
		{ "git.example.org ssh-rsa " RSA "\ngit.example.org ecdsa-sha2-nistp256 " EC "\n",
		  OURS_EC "git.example.org ssh-rsa " RSA "\n" },
		/* the best kind is first, and each keeps its order */
		{ "git.example.org ssh-rsa " RSA "\n" OURS_EC OURS OURS_OTHER,
		  OURS OURS_OTHER OURS_EC "git.example.org ssh-rsa " RSA "\n" },
		/* what the reader would give the file up for, or not understand */
		{ "git.example.org ssh-dss " DSS "\n" OURS, OURS },
		{ "git.example.org sk-ssh-ed25519@openssh.com " ED "\n" OURS, OURS },
		{ "git.example.org ssh-rsa " ED "\n" OURS, OURS },
		{ "git.example.org ssh-ed25519 AAAA\n" OURS, OURS },
		{ "git.example.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5\n" OURS, OURS },
		{ "git.example.org ssh-ed25519 " ED "*\n" OURS, OURS },
		{ "git.example.org 1024 35 12345678901234567890\n" OURS, OURS },
		/* an authority's key is no server's */
		{ "@cert-authority *.example.org ssh-ed25519 " ED_OTHER "\n" OURS, OURS },
		{ "@cert-authority git.example.org ssh-ed25519 " ED "\n", "" },
		{ "@something git.example.org ssh-ed25519 " ED "\n", "" },
		{ "@revoked * ssh-ed25519 " ED_OTHER "\n" OURS, "#revoked " ED_OTHER "\n" OURS },
		{ "@revoked other.org ssh-ed25519 " ED_OTHER "\n" OURS, OURS },
		{ OURS "@revoked git.example.org ssh-ed25519 " ED "\n", "#revoked " ED "\n" OURS },
		{ "@revoked", "" },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++)
		assert_known("git.example.org", 22, rows[i].text, rows[i].expected);
}

/* How many keys of this text; and is the first one of the files'? */
static size_t count(const char *host, unsigned int port, const char *text, bool *is_own_first)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_known_hosts k;
	size_t n = 0;

	assert_int_equal(cm_known_hosts_init(&k, host, port, &err), CM_OK);
	cm_known_hosts_add(&k, text, strlen(text));
	assert_int_equal(cm_known_hosts_finish(&k, &err), CM_OK);
	*is_own_first = strstr(k.lines.data, " " ED "\n") || strstr(k.lines.data, " " RSA "\n");
	for (const char *at = k.lines.data; (at = strchr(at, '\n')) != NULL; at++)
		n++;
	cm_known_hosts_clear(&k);
	return n;
}

static void test_built_in(void **state)
{
	static const char *const hosts[] = { "github.com", "gitlab.com", "bitbucket.org",
					     "codeberg.org" };
	bool is_own;

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(hosts); i++) {
		CM_AUTO_FREE char *own = cm_asprintf("%s ssh-ed25519 " ED "\n", hosts[i]);
		CM_AUTO_FREE char *old = cm_asprintf("%s ssh-rsa " RSA "\n", hosts[i]);
		CM_AUTO_FREE char *bad = cm_asprintf("@revoked %s ssh-ed25519 " ED "\n", hosts[i]);

		assert_int_equal(count(hosts[i], 22, "", &is_own), 3);
		assert_false(is_own);
		assert_int_equal(count(hosts[i], 2222, "", &is_own), 0);
		/* the user knows better */
		assert_int_equal(count(hosts[i], 22, own, &is_own), 1);
		assert_true(is_own);
		/* but a key that servers sign with no more would keep everybody out */
		assert_int_equal(count(hosts[i], 22, old, &is_own), 4);
		assert_true(is_own);
		assert_int_equal(count(hosts[i], 22, bad, &is_own), 4);
	}
	assert_int_equal(count("github.com.evil.org", 22, "", &is_own), 0);
}

/* Each built-in key is a line that the reader of files would take. */
static void test_built_in_is_sound(void **state)
{
	static const char *const hosts[] = { "github.com", "gitlab.com", "bitbucket.org",
					     "codeberg.org" };
	struct cm_error err = CM_ERROR_INIT;

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(hosts); i++) {
		struct cm_known_hosts k;

		assert_int_equal(cm_known_hosts_init(&k, hosts[i], 22, &err), CM_OK);
		assert_int_equal(cm_known_hosts_finish(&k, &err), CM_OK);
		assert_known(hosts[i], 22, k.lines.data, k.lines.data);
		cm_known_hosts_clear(&k);
	}
}

static void test_bounds(void **state)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_known_hosts k;

	(void)state;
	assert_int_equal(cm_known_hosts_init(&k, "git.example.org", 22, &err), CM_OK);
	for (size_t i = 0; i < CM_KNOWN_HOSTS_MAX / strlen(OURS) + 1; i++)
		cm_known_hosts_add(&k, OURS, strlen(OURS));
	assert_int_equal(cm_known_hosts_finish(&k, &err), CM_E_LIMIT);
	assert_non_null(strstr(err.msg, "'git.example.org'"));
	cm_known_hosts_clear(&k);
	/* a NUL ends no name */
	assert_int_equal(cm_known_hosts_init(&k, "git.example.org", 22, &err), CM_OK);
	cm_known_hosts_add(&k, "git.example.org\0x ssh-ed25519 " ED "\n", strlen(OURS) + 2);
	assert_int_equal(cm_known_hosts_finish(&k, &err), CM_OK);
	assert_string_equal(k.lines.data, "");
	cm_known_hosts_clear(&k);
}

static void test_no_memory(void **state)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_known_hosts k;
	int r = CM_E_NOMEM;

	(void)state;
	for (long allowed = 0; r != CM_OK; allowed++) {
		assert_true(allowed < 100);
		cm_alloc_fail_after(allowed);
		r = cm_known_hosts_init(&k, "github.com", 22, &err);
		if (r == CM_OK) {
			cm_known_hosts_add(&k, OURS, strlen(OURS));
			r = cm_known_hosts_finish(&k, &err);
		}
		cm_alloc_fail_after(-1);
		cm_known_hosts_clear(&k);
		assert_true(r == CM_OK || r == CM_E_NOMEM);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),	 cmocka_unit_test(test_lines),
		cmocka_unit_test(test_built_in), cmocka_unit_test(test_built_in_is_sound),
		cmocka_unit_test(test_bounds),	 cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
