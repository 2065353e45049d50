/* SPDX-License-Identifier: Apache-2.0 */
/* What OpenSSH's log means, which host keys it is told, and which answers go on to git-lfs. */
#include "tests/unit/test_base.h"

#include "isolation/checkout/ssh_answer.h"
#include "isolation/checkout/ssh_known.h"
#include "isolation/checkout/ssh_log.h"
#include "runtime/base/fd.h"

#define ED "AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
#define SHOWN "debug1: Server host key: ssh-ed25519 SHA256:abc\n"
#define IN "Authenticated to h ([192.0.2.1]:22) using \"publickey\".\n"

static const struct {
	const char *lines;
	int status;
	const char *words;
	bool has_known_key;
	bool has_keys;
	enum cm_fetch_reason reason;
} logs[] = {
	{ SHOWN "No ED25519 host key is known for h and you have requested strict checking.\n"
		"Host key verification failed.\n",
	  255, "", false, true, CM_FETCH_HOST_KEY },
	{ SHOWN "@@@@@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n"
		"Host key verification failed.\n",
	  255, "", true, true, CM_FETCH_HOST_KEY_CHANGED },
	{ SHOWN "@       WARNING: REVOKED HOST KEY DETECTED!               @\n"
		"Host key verification failed.\n",
	  255, "", true, true, CM_FETCH_HOST_KEY_REVOKED },
	{ "Unable to negotiate with 192.0.2.1 port 22: no matching host key type found. Their offer: x\n",
	  255, "", true, true, CM_FETCH_HOST_KEY_KIND },
	{ "Unable to negotiate with 192.0.2.1 port 22: no matching cipher found. Their offer: x\n",
	  255, "", true, true, CM_FETCH_PROTOCOL },
	/* what else it may dislike of a key */
	{ SHOWN "Host key verification failed.\n", 255, "", true, true, CM_FETCH_HOST_KEY_CHANGED },
	{ "ssh: Could not resolve hostname h: Name or service not known\n", 255, "", true, true,
	  CM_FETCH_NAME },
	{ "ssh: connect to host h port 22: Connection refused\n", 255, "", true, true,
	  CM_FETCH_CONNECT },
	{ "git@h: Permission denied (publickey).\n", 255, "", true, true, CM_FETCH_KEY_REFUSED },
	{ "git@h: Permission denied (publickey,password).\n", 255, "", true, false,
	  CM_FETCH_KEY_REQUIRED },
	{ "git@h: Permission denied (password).\n", 255, "", true, true,
	  CM_FETCH_AUTH_UNSUPPORTED },
	{ "Load key \"/proc/7/fd/3\": error in libcrypto\ngit@h: Permission denied (publickey).\n",
	  255, "", true, true, CM_FETCH_KEY_UNUSABLE },
	{ "debug1: get_agent_identities: ssh_get_authentication_socket: Connection refused\n"
	  "git@h: Permission denied (publickey).\n",
	  255, "", true, true, CM_FETCH_AGENT },
	{ "Received disconnect from h port 22:2: Too many authentication failures\n", 255, "", true,
	  true, CM_FETCH_KEY_REFUSED },
	{ "kex_exchange_identification: Connection closed by remote host\n"
	  "Connection closed by 192.0.2.1 port 22\n",
	  255, "", true, true, CM_FETCH_BROKEN_OFF },
	{ "kex_exchange_identification: banner line contains invalid characters\n", 255, "", true,
	  true, CM_FETCH_PROTOCOL },
	/* after the server let us in */
	{ IN, 255, "Connection to h closed by remote host.\r\n", true, true, CM_FETCH_BROKEN_OFF },
	{ IN, 128, "fatal: '/x' does not appear to be a git repository\n", true, true,
	  CM_FETCH_NOT_FOUND },
	{ IN, 1, "go away", true, true, CM_FETCH_COMMAND },
	{ IN, 0, "whatever", true, true, CM_FETCH_UNKNOWN },
	/* a key that could not be used is no matter where another one was */
	{ "Load key \"/proc/7/fd/3\": error in libcrypto\n" IN, 0, "", true, true,
	  CM_FETCH_UNKNOWN },
	/* a server's words are no words of ssh's */
	{ IN "debug1: Remote: x: Permission denied (publickey).\n", 1, "x not found", true, true,
	  CM_FETCH_NOT_FOUND },
	{ "", 255, "", true, true, CM_FETCH_UNKNOWN },
};

static void test_log(void **state)
{
	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(logs); i++) {
		struct cm_ssh_log log = { .has_known_key = logs[i].has_known_key,
					  .has_keys = logs[i].has_keys };
		CM_AUTO_FREE char *lines = cm_strdup(logs[i].lines);
		char *next = NULL;

		for (char *line = strtok_r(lines, "\n", &next); line;
		     line = strtok_r(NULL, "\n", &next))
			cm_ssh_log_line(&log, line);
		cm_ssh_log_end(&log, logs[i].status, logs[i].words);
		if (log.reason != logs[i].reason)
			fail_msg("%s: %d", logs[i].lines, (int)log.reason);
		if (strstr(logs[i].lines, SHOWN))
			assert_string_equal(log.offered, "ED25519 SHA256:abc");
	}
}

static void test_cause(void **state)
{
	struct cm_ssh_log log = { 0 };

	(void)state;
	cm_ssh_log_line(&log, "ssh: connect to host ::1 port 22: No route to host");
	assert_string_equal(log.cause, "ssh says 'No route to host'");
}

static void assert_known(const char *text, const char *lines, const char *algorithms)
{
	struct cm_ssh_known known = { 0 };

	assert_int_equal(cm_ssh_known_take(text, &known, NULL), CM_OK);
	assert_string_equal(known.lines.data ? known.lines.data : "", lines);
	assert_string_equal(known.algorithms.data ? known.algorithms.data : "", algorithms);
	cm_ssh_known_clear(&known);
}

static void test_known(void **state)
{
	struct cm_ssh_known known = { 0 };
	struct cm_error err = CM_ERROR_INIT;

	(void)state;
	assert_known("", "", "");
	assert_known("[h]:22 ssh-rsa KEY\nh ssh-ed25519 KEY\nh ssh-rsa OTHER\n",
		     "[h]:22 ssh-rsa KEY\nh ssh-ed25519 KEY\nh ssh-rsa OTHER\n",
		     "ssh-ed25519,rsa-sha2-512,rsa-sha2-256");
	/* what another program's file could have, this one's has not */
	assert_known("# h ssh-rsa KEY\n@cert-authority * ssh-rsa KEY\nh ssh-dss KEY\nh\n", "", "");
	assert_known("#revoked " ED "\nh ssh-ed25519 " ED "\n",
		     "@revoked * ssh-ed25519 " ED "\nh ssh-ed25519 " ED "\n", "ssh-ed25519");
	/* it would be believed */
	assert_int_equal(cm_ssh_known_take("#revoked AAAA\n", &known, &err), CM_E_INVALID);
	cm_ssh_known_clear(&known);
	assert_int_equal(cm_ssh_known_take("#revoked no-base64\n", &known, &err), CM_E_INVALID);
	cm_ssh_known_clear(&known);
}

static void assert_answer(const char *text, bool may_be_here, int want, const char *passed)
{
	CM_AUTO_BUF struct cm_buf out;
	int r;

	cm_buf_init(&out, 4096);
	r = cm_ssh_answer_make(text, strlen(text), may_be_here, &out);
	if (r != want)
		fail_msg("%s: %d", text, r);
	if (want == CM_OK)
		assert_string_equal(out.data ? out.data : "", passed);
}

static void test_answer(void **state)
{
	static const char *const denied[] = {
		"{\"href\":\"http://h/x\"}",
		"{\"href\":\"HTTP://h/x\"}",
		"{\"href\":\"http:\\/\\/h/x\"}",
		"{\"href\":\"\\u0068ttp://h/x\"}",
		"{\"href\":\"\\u0068\\u0074\\u0054p\\u003a\\u002f/h/x\"}",
		"{\"href\":\"http://127.0.0.1.h/x\"}",
		"{\"href\":\"ssh://h/x\"}",
		"{\"href\":\"file:///x\"}",
	};
	static const char *const malformed[] = {
		"{",
		"[]",
		"\"https://h/x\"",
		"{\"href\":\"https://\"}",
		/* git-lfs would ask again and again with it */
		"{\"href\":\"https://u:p@h/x\"}",
		"{\"href\":\"http://127.0.0.1@h/x\"}",
		"{\"href\":\"https://h/x\",\"href\":\"http://h/x\"}",
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(denied); i++)
		assert_answer(denied[i], true, CM_E_DENIED, NULL);
	for (size_t i = 0; i < CM_ARRAY_SIZE(malformed); i++)
		assert_answer(malformed[i], true, CM_E_PROTOCOL, NULL);
	assert_answer("", false, CM_OK, "");
	assert_answer("{}", false, CM_OK, "{}");
	assert_answer("{\"href\":\"https://h/x\",\"header\":{\"Authorization\":\"Basic x\"}}",
		      false, CM_OK,
		      "{\"href\":\"https://h/x\",\"header\":{\"Authorization\":\"Basic x\"}}");
	/* other headers would go along with a redirect; what is not known has no meaning here */
	assert_answer(
		"{\"href\":\"https://h/x\",\"header\":{\"Private-Token\":\"t\",\"Authorization\":\"b\"},"
		"\"expires_in\":60,\"expires_at\":\"2026-01-01T00:00:00Z\",\"more\":1}",
		false, CM_OK,
		"{\"href\":\"https://h/x\",\"header\":{\"Authorization\":\"b\"},"
		"\"expires_at\":\"2026-01-01T00:00:00Z\",\"expires_in\":60}");
	/* this host's http is for who is there */
	assert_answer("{\"href\":\"http://127.0.0.1:80/x\"}", true, CM_OK,
		      "{\"href\":\"http://127.0.0.1:80/x\"}");
	assert_answer("{\"href\":\"http://127.0.0.1:80/x\"}", false, CM_E_DENIED, NULL);
	assert_answer("{\"href\":\"http://localhost/x\"}", false, CM_E_DENIED, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_log),
		cmocka_unit_test(test_cause),
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
