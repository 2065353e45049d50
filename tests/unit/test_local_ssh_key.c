/* SPDX-License-Identifier: Apache-2.0 */
/* Private keys: which are encrypted, and which are none. The bodies are cut: nobody's keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "providers/local/ssh_key.h"
#include "runtime/base/fd.h"

#define OPENSSH "-----BEGIN OPENSSH PRIVATE KEY-----\n"
#define PLAIN "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW\n"
#define LOCKED "b3BlbnNzaC1rZXktdjEAAAAACmFlczI1Ni1jdHIAAAAGYmNyeXB0AAAAGAAAABCKG6mfH2\n"

static void test_kinds(void **state)
{
	static const struct {
		const char *text;
		enum cm_ssh_key_kind kind;
	} rows[] = {
		{ "", CM_SSH_KEY_NONE },
		{ "x", CM_SSH_KEY_NONE },
		{ OPENSSH PLAIN, CM_SSH_KEY_PLAIN },
		{ OPENSSH LOCKED, CM_SSH_KEY_LOCKED },
		{ "-----BEGIN OPENSSH PRIVATE KEY-----\r\n" LOCKED, CM_SSH_KEY_LOCKED },
		{ OPENSSH, CM_SSH_KEY_NONE },
		{ OPENSSH "b3BlbnNzaC1rZXktdjEAAAAABG5vbmU", CM_SSH_KEY_NONE },
		{ OPENSSH "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n",
		  CM_SSH_KEY_NONE },
		{ OPENSSH "$$$$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n",
		  CM_SSH_KEY_NONE },
		{ "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEE\n", CM_SSH_KEY_PLAIN },
		{ "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: A\n",
		  CM_SSH_KEY_LOCKED },
		{ "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n", CM_SSH_KEY_PLAIN },
		{ "-----BEGIN PRIVATE KEY-----\nMIGH\n", CM_SSH_KEY_PLAIN },
		{ "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIGj\n", CM_SSH_KEY_LOCKED },
		{ "-----BEGIN CERTIFICATE-----\nMIGj\n", CM_SSH_KEY_NONE },
		{ " -----BEGIN PRIVATE KEY-----\nMIGH\n", CM_SSH_KEY_NONE },
		{ "ssh-ed25519 AAAA comment\n", CM_SSH_KEY_PUBLIC },
		{ "ecdsa-sha2-nistp256 AAAA comment\n", CM_SSH_KEY_PUBLIC },
	};
	static const char nul[] = "-----BEGIN PRIVATE KEY-----\nMI\0GH\n";

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		if (cm_ssh_key_look(rows[i].text, strlen(rows[i].text)) != rows[i].kind)
			fail_msg("'%s'", rows[i].text);
	}
	/* what it is handed on by ends at a NUL */
	assert_int_equal(cm_ssh_key_look(nul, sizeof(nul) - 1), CM_SSH_KEY_NONE);
	/* nothing is read behind the end */
	for (size_t i = 0; i < sizeof(OPENSSH LOCKED) - 1; i++) {
		CM_AUTO_FREE char *copy = malloc(i + 1);

		memcpy(copy, OPENSSH LOCKED, i);
		assert_true(cm_ssh_key_look(copy, i) == CM_SSH_KEY_NONE ||
			    i >= sizeof(OPENSSH) - 1 + 64);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
