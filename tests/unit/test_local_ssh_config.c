/* SPDX-License-Identifier: Apache-2.0 */
/* What ssh's configuration says of a server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "providers/local/ssh_config.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"

/* "HOSTNAME USER PORT IDENTITY..." */
static char *read_as(const char *text, const char *host)
{
	struct cm_ssh_config c = { 0 };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_buf out;

	cm_buf_init(&out, 10000);
	assert_int_equal(cm_ssh_config_add(&c, text, strlen(text), host, &err), CM_OK);
	cm_buf_printf(&out, "%s %s %u", c.host_name ? c.host_name : "-", c.user ? c.user : "-",
		      c.port);
	for (size_t i = 0; i < c.identities.n; i++)
		cm_buf_printf(&out, " %s", c.identities.v[i]);
	cm_ssh_config_clear(&c);
	return cm_buf_take(&out);
}

static void test_lines(void **state)
{
	static const struct {
		const char *text;
		const char *expected;
	} rows[] = {
		{ "", "- - 0" },
		{ "User alice\nPort 2222\nHostName h.example.org\nIdentityFile ~/.ssh/k\n",
		  "h.example.org alice 2222 ~/.ssh/k" },
		{ "\t uSER\t= \"alice\" \t# a comment\r\n", "- alice 0" },
		{ "User=alice", "- alice 0" },
		{ "User alice\nUser bob\nPort 1\nPort 2\nHostName a\nHostName b", "a alice 1" },
		{ "IdentityFile a\nIdentityFile \"b c\"\nIdentityFile none", "- - 0 a b c" },
		{ "#User alice\n", "- - 0" },
		{ "User", "- - 0" },
		{ "User \"alice", "- - 0" },
		{ "User \"\"", "- - 0" },
		{ "User -oProxyCommand=x", "- - 0" },
		{ "User a\x1b[31m", "- - 0" },
		{ "Port 0\nPort 65536\nPort x\nPort 22", "- - 22" },
		{ "HostName %h.example.org", "git.example.org - 0" },
		{ "HostName 100%%", "100% - 0" },
		{ "HostName %n", "- - 0" },
		{ "HostName x%", "- - 0" },
		{ "ProxyCommand User\nUserKnownHostsFile x\nSendEnv User alice", "- - 0" },
		{ "Host git\nUser alice\nHost other\nUser bob\nPort 7", "- alice 0" },
		{ "Host other\nUser bob\nHost *\nUser carol", "- carol 0" },
		{ "Host other g?t\nUser bob", "- bob 0" },
		{ "Host * !git\nUser bob", "- - 0" },
		{ "Host !git *\nUser bob", "- - 0" },
		{ "Host !other *\nUser bob", "- bob 0" },
		{ "Host\nUser bob", "- - 0" },
		{ "Host \"git\"\nUser bob", "- bob 0" },
		{ "Host=git\nUser=bob", "- bob 0" },
		/* whether a Match holds is not known: nobody's, until the next Host */
		{ "Match host git\nUser bob\nHost git\nPort 9", "- - 9" },
		{ "Match all\nUser bob", "- - 0" },
		{ "Include x\nUser bob", "- bob 0" },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		CM_AUTO_FREE char *got = read_as(rows[i].text, "git");

		if (strcmp(got, rows[i].expected) != 0)
			fail_msg("of '%s': '%s'", rows[i].text, got);
	}
}

static void test_bounds(void **state)
{
	struct cm_ssh_config c = { 0 };
	struct cm_error err = CM_ERROR_INIT;
	char text[40000];

	(void)state;
	/* a line that is too long, one with a NUL, and one that counts */
	memset(text, 'x', sizeof(text));
	memcpy(text, "User ", 5);
	text[20000] = '\n';
	memcpy(text + 20001, "User a\0b\nUser ok\n", 17);
	assert_int_equal(cm_ssh_config_add(&c, text, 20018, "git", &err), CM_OK);
	assert_string_equal(c.user, "ok");
	cm_ssh_config_clear(&c);
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(cm_ssh_config_add(&c, "IdentityFile a\n", 15, "git", &err), CM_OK);
	assert_true(c.identities.n < 100);
	cm_ssh_config_clear(&c);
}

static void test_no_memory(void **state)
{
	static const char text[] = "IdentityFile a\nIdentityFile b\nHostName h\nUser u\n";
	int r = CM_E_NOMEM;

	(void)state;
	for (long allowed = 0; r != CM_OK; allowed++) {
		struct cm_ssh_config c = { 0 };

		assert_true(allowed < 100);
		cm_alloc_fail_after(allowed);
		r = cm_ssh_config_add(&c, text, strlen(text), "git", NULL);
		cm_alloc_fail_after(-1);
		assert_true(r == CM_E_NOMEM || (r == CM_OK && c.user && c.host_name));
		cm_ssh_config_clear(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
