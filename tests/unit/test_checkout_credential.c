/* SPDX-License-Identifier: Apache-2.0 */
/* What the checkout helper reads of its credential, and that it closes what it read from. */
#include "tests/unit/test_base.h"

#include "isolation/checkout/credential.h"
#include "runtime/base/buf.h"

#define OF(text) text, sizeof(text) - 1

static int read_text(const void *text, size_t len, struct cm_credential *c, struct cm_error *err)
{
	int pair[2];
	int r;

	assert_int_equal(pipe(pair), 0);
	assert_int_equal(write(pair[1], text, len), len);
	close(pair[1]);
	r = cm_credential_read(pair[0], c, err);
	assert_int_equal(fcntl(pair[0], F_GETFD), -1);
	return r;
}

/* "USER|SECRET|KEY|PASSPHRASE...", with - for what is not there */
static void assert_read(const char *text, size_t len, const char *expected)
{
	struct cm_credential c = CM_CREDENTIAL_INIT;
	struct cm_error err = CM_ERROR_INIT;
	struct cm_buf got;

	cm_buf_init(&got, 10000);
	assert_int_equal(read_text(text, len, &c, &err), CM_OK);
	cm_buf_printf(&got, "%s|%s", c.user ? c.user : "-", c.secret ? c.secret : "-");
	for (size_t i = 0; i < c.n_keys; i++)
		cm_buf_printf(&got, "|%s|%s", c.keys[i].text,
			      c.keys[i].passphrase ? c.keys[i].passphrase : "-");
	assert_string_equal(got.data, expected);
	cm_buf_clear(&got);
	cm_credential_clear(&c);
	assert_null(c.user);
	assert_int_equal(c.n_keys, 0);
}

static void test_forms(void **state)
{
	(void)state;
	assert_read(OF(""), "-|-");
	assert_read(OF("git\0"), "git|-");
	assert_read(OF("git\0token\0"), "git|token");
	assert_read(OF("\0\0"), "|");
	assert_read(OF("git\0key\0\0"), "git|-|key|-");
	assert_read(OF("git\0key\0pass\0"), "git|-|key|pass");
	assert_read(OF("git\0a\0\0b\0p\0"), "git|-|a|-|b|p");
	assert_read(OF("git\0001\0\0002\0\0003\0\0004\0\0005\0\0006\0\0007\0\0008\0\0"),
		    "git|-|1|-|2|-|3|-|4|-|5|-|6|-|7|-|8|-");
}

static void test_what_is_none(void **state)
{
	static const struct {
		const char *text;
		size_t len;
	} rows[] = {
		{ OF("git") },
		{ OF("git\0token") },
		{ OF("git\0key\0pass") },
		{ OF("git\0a\0\0b\0") },
		{ OF("git\0\0pass\0") },
		{ OF("git\0001\0\0002\0\0003\0\0004\0\0005\0\0006\0\0007\0\0008\0\0009\0\0") },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		struct cm_credential c = { .n_keys = 77 };
		struct cm_error err = CM_ERROR_INIT;

		assert_int_equal(read_text(rows[i].text, rows[i].len, &c, &err), CM_E_INVALID);
		assert_int_equal(c.n_keys, 77);
		assert_null(strstr(err.msg, "key"));
	}
}

static void test_bounds(void **state)
{
	static char text[CM_CREDENTIAL_MAX + 1];
	struct cm_credential c = CM_CREDENTIAL_INIT;
	struct cm_error err = CM_ERROR_INIT;
	char path[] = "/tmp/cm-test-credential.XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(unlink(path), 0);
	memset(text, 'x', sizeof(text));
	text[1] = '\0';
	text[sizeof(text) - 2] = text[sizeof(text) - 1] = '\0';
	assert_int_equal(cm_write_all(fd, text, sizeof(text)), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(cm_credential_read(dup(fd), &c, &err), CM_E_INVALID);
	assert_int_equal(ftruncate(fd, sizeof(text) - 1), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(cm_credential_read(fd, &c, &err), CM_OK);
	assert_int_equal(strlen(c.secret), sizeof(text) - 4);
	cm_credential_clear(&c);
}

static void test_no_memory(void **state)
{
	static const char text[] = "git\0key\0pass\0key\0pass";
	int r = CM_E_NOMEM;

	(void)state;
	for (long allowed = 0; r != CM_OK; allowed++) {
		struct cm_credential c = CM_CREDENTIAL_INIT;

		assert_true(allowed < 50);
		cm_alloc_fail_after(allowed);
		r = read_text(text, sizeof(text), &c, NULL);
		cm_alloc_fail_after(-1);
		assert_true(r == CM_OK || r == CM_E_NOMEM);
		cm_credential_clear(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_what_is_none),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
