/* SPDX-License-Identifier: Apache-2.0 */
/* Base64, SHA-256, and HMAC with SHA-1. */
#include "runtime/base/base64.h"
#include "runtime/base/sha1.h"
#include "runtime/base/sha256.h"
#include "tests/unit/test_base.h"

/* RFC 4648, section 10, and each digit */
static const struct {
	const char *data;
	const char *text;
} vectors[] = {
	{ "", "" },
	{ "f", "Zg==" },
	{ "fo", "Zm8=" },
	{ "foo", "Zm9v" },
	{ "foob", "Zm9vYg==" },
	{ "fooba", "Zm9vYmE=" },
	{ "foobar", "Zm9vYmFy" },
	{ "\xfb\xff\xbf", "+/+/" },
};

static void test_encode(void **state)
{
	CM_AUTO_BUF struct cm_buf out;

	(void)state;
	cm_buf_init(&out, 100);
	for (size_t i = 0; i < CM_ARRAY_SIZE(vectors); i++) {
		cm_buf_reset(&out);
		cm_buf_puts(&out, "x");
		cm_base64_encode(&out, vectors[i].data, strlen(vectors[i].data), true);
		assert_string_equal(out.data + 1, vectors[i].text);
	}
	cm_buf_reset(&out);
	cm_base64_encode(&out, "foob", 4, false);
	assert_string_equal(out.data, "Zm9vYg");
}

static void test_decode(void **state)
{
	static const char *const wrong[] = { "Z",    "Zg",   "Zg=",	"Zg===",  "=",	  "====",
					     "Zh==", "Zm9=", "Zm 9v",	"Zm9v\n", "Zm9-", "Z=9v",
					     "Zg=a", "=Zg=", "Zm9vYg=", "Zm9*",	  "A===" };
	CM_AUTO_BUF struct cm_buf out;

	(void)state;
	cm_buf_init(&out, 100);
	for (size_t i = 0; i < CM_ARRAY_SIZE(vectors); i++) {
		cm_buf_reset(&out);
		cm_buf_puts(&out, "x");
		assert_true(cm_base64_decode(&out, vectors[i].text, strlen(vectors[i].text)));
		assert_string_equal(out.data + 1, vectors[i].data);
	}
	for (size_t i = 0; i < CM_ARRAY_SIZE(wrong); i++) {
		if (cm_base64_decode(&out, wrong[i], strlen(wrong[i])))
			fail_msg("'%s' is none", wrong[i]);
	}
	assert_false(cm_base64_decode(&out, "Zm9\0", 4));
}

static void assert_hmac(const char *key, size_t key_len, const char *data, size_t len,
			const char *expected)
{
	uint8_t digest[CM_SHA1_SIZE];
	char hex[2 * CM_SHA1_SIZE + 1];

	assert_true(cm_hmac_sha1(key, key_len, data, len, digest));
	for (size_t i = 0; i < CM_SHA1_SIZE; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	assert_string_equal(hex, expected);
}

/* RFC 2202 */
static void test_hmac(void **state)
{
	uint8_t digest[CM_SHA1_SIZE];
	char long_text[CM_HMAC_SHA1_DATA_MAX + 1];

	(void)state;
	memset(long_text, '\xdd', sizeof(long_text));
	assert_hmac("Jefe", 4, "what do ya want for nothing?", 28,
		    "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79");
	assert_hmac(
		"\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa",
		20, long_text, 50, "125d7342b9ac11cd91a39af48aa17b4f63f175d3");
	/* around the end of a block, by another implementation */
	assert_hmac("k", 1, long_text, 55, "55269991fe2819c89e3813cb2893a2ced699c89f");
	assert_hmac("k", 1, long_text, 56, "082f86d4fcb350730695dea0ec3031ca5fcac2c2");
	assert_hmac("k", 1, long_text, 64, "29b3ab8044f97b946a8ca90d74431054704a65f5");
	assert_hmac("k", 1, long_text, CM_HMAC_SHA1_DATA_MAX,
		    "1bd8ba9362ebea0cf89027ff0f03b323b6551d44");
	assert_false(cm_hmac_sha1("k", 1, long_text, sizeof(long_text), digest));
	assert_false(cm_hmac_sha1(long_text, CM_HMAC_SHA1_KEY_MAX + 1, "", 0, digest));
}

/* So many of the letter 'a', around the ends of blocks; by another implementation. */
static void test_sha256(void **state)
{
	static const struct {
		size_t len;
		const char *hex;
	} rows[] = {
		{ 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ 3, "9834876dcfb05cb167a5c24953eba58c4ac89b1adf57f28f2f9d09af107ee8f0" },
		{ 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318" },
		{ 56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a" },
		{ 63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34" },
		{ 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb" },
		{ 119, "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb" },
		{ 120, "2f3d335432c70b580af0e8e1b3674a7c020d683aa5f73aaaedfdc55af904c21c" },
	};
	uint8_t digest[CM_SHA256_SIZE];
	char hex[CM_SHA256_HEX_SIZE];
	char text[120];

	(void)state;
	memset(text, 'a', sizeof(text));
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		char byte[3];

		cm_sha256_hex(text, rows[i].len, hex);
		assert_string_equal(hex, rows[i].hex);
		cm_sha256(text, rows[i].len, digest);
		for (size_t at = 0; at < sizeof(digest); at++) {
			(void)snprintf(byte, sizeof(byte), "%02x", digest[at]);
			assert_memory_equal(byte, rows[i].hex + 2 * at, 2);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_encode),
		cmocka_unit_test(test_decode),
		cmocka_unit_test(test_sha256),
		cmocka_unit_test(test_hmac),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
