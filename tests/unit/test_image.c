/* SPDX-License-Identifier: Apache-2.0 */
/* The blob of a request to start a command: counts, terminators, PATH, allocations. */
#include <limits.h>

#include "isolation/keeper/image.h"
#include "tests/unit/test_base.h"

struct parsed {
	struct cm_msg msg;
	struct cm_exec_image image;
	struct cm_image_memory memory[CM_IMAGE_MEMORIES];
	struct cm_error err;
};

static int parse(struct parsed *p, const char *blob, size_t len, uint32_t n_args, uint32_t n_env,
		 uint32_t flags)
{
	*p = (struct parsed){ .image = { .cwd = "untouched" } };
	cm_msg_init(&p->msg);
	p->msg.rec.type = CM_REC_EXEC;
	p->msg.rec.len = (uint32_t)len;
	p->msg.rec.body.exec.flags = flags;
	p->msg.rec.body.exec.n_args = n_args;
	p->msg.rec.body.exec.n_env = n_env;
	/* as cm_proto_recv gives it: exactly as large, and a NUL behind */
	p->msg.blob = malloc(len + 1);
	assert_non_null(p->msg.blob);
	memcpy(p->msg.blob, blob, len);
	p->msg.blob[len] = '\0';
	return cm_image_parse(&p->msg, &p->image, p->memory, &p->err);
}

static void clear(struct parsed *p)
{
	cm_msg_clear(&p->msg);
	for (size_t i = 0; i < CM_IMAGE_MEMORIES; i++)
		free(p->memory[i].at);
}

#define PARSE(p, blob, n_args, n_env, flags) parse(p, blob, sizeof(blob) - 1, n_args, n_env, flags)

static void assert_vector(char *const *v, const char *const *expected)
{
	size_t n = 0;

	for (; expected[n]; n++) {
		assert_non_null(v[n]);
		assert_string_equal(v[n], expected[n]);
	}
	assert_null(v[n]);
}

#define ASSERT_VECTOR(v, ...) assert_vector(v, (const char *const[]){ __VA_ARGS__, NULL })

static void test_whole(void **state)
{
	struct parsed p;

	(void)state;
	assert_int_equal(PARSE(&p, "/dir\0prog\0-x\0\0A=1\0B=\0", 3, 2, 0), CM_OK);
	assert_string_equal(p.image.cwd, "/dir");
	ASSERT_VECTOR(p.image.argv, "prog", "-x", "");
	ASSERT_VECTOR(p.image.env, "A=1", "B=");
	ASSERT_VECTOR(p.image.paths, "prog");
	/* it is for whoever puts an interpreter in front */
	p.image.argv[-1] = p.image.argv[0];
	/* nothing points into the message, which its owner clears */
	cm_msg_clear(&p.msg);
	assert_string_equal(p.image.argv[1], "-x");
	assert_string_equal(p.image.cwd, "/dir");
	clear(&p);
	assert_int_equal(PARSE(&p, "\0\0", 1, 0, 0), CM_OK);
	assert_string_equal(p.image.cwd, "");
	ASSERT_VECTOR(p.image.argv, "");
	assert_null(p.image.env[0]);
	ASSERT_VECTOR(p.image.paths, "");
	clear(&p);
}

static void assert_malformed(struct parsed *p, int r)
{
	assert_int_equal(r, CM_E_PROTOCOL);
	assert_string_equal(p->err.msg, "malformed request to start a command");
	/* nothing half made */
	assert_string_equal(p->image.cwd, "untouched");
	assert_null(p->image.argv);
	assert_null(p->image.env);
	assert_null(p->image.paths);
	clear(p);
}

static void test_counts(void **state)
{
	static const char blob[] = "/\0a\0b\0E=1\0";
	static const struct {
		uint32_t n_args;
		uint32_t n_env;
	} bad[] = {
		{ 0, 0 },
		{ 0, 3 },
		{ 1, 0 },
		{ 1, 1 },
		{ 2, 0 },
		{ 2, 2 },
		{ 4, 0 },
		{ 3, 1 },
		{ 1, 3 },
		{ CM_PROTO_MAX_ARGS, 0 },
		{ CM_PROTO_MAX_ARGS + 1, 0 },
		{ 2, CM_PROTO_MAX_ARGS + 1 },
		{ UINT32_MAX, 0 },
		{ UINT32_MAX, UINT32_MAX },
		/* sums that come round to the right number */
		{ UINT32_MAX, 4 },
		{ 4, UINT32_MAX },
		{ 0x80000002, 0x80000001 },
	};
	struct parsed p;

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++)
		assert_malformed(&p, PARSE(&p, blob, bad[i].n_args, bad[i].n_env, 0));
	assert_int_equal(PARSE(&p, blob, 2, 1, 0), CM_OK);
	clear(&p);
	assert_int_equal(PARSE(&p, blob, 3, 0, 0), CM_OK);
	ASSERT_VECTOR(p.image.argv, "a", "b", "E=1");
	clear(&p);
}

static void test_terminators(void **state)
{
	struct parsed p;

	(void)state;
	assert_malformed(&p, parse(&p, "", 0, 1, 0, 0));
	assert_malformed(&p, PARSE(&p, "/", 1, 0, 0));
	assert_malformed(&p, PARSE(&p, "/\0", 1, 0, 0));
	assert_malformed(&p, PARSE(&p, "/\0a", 1, 0, 0));
	assert_malformed(&p, PARSE(&p, "/\0a\0b", 1, 0, 0));
	assert_malformed(&p, PARSE(&p, "/\0a\0\0", 1, 0, 0));
	assert_malformed(&p, PARSE(&p, "/\0a\0E=1", 1, 1, 0));
	assert_malformed(&p, PARSE(&p, "abcdef", 1, 0, 0));
}

static void test_every_cut(void **state)
{
	static const char blob[] = "/dir\0prog\0-x\0PATH=/a:/b\0B=\0";

	(void)state;
	for (size_t len = 0; len < sizeof(blob) - 1; len++) {
		struct parsed p;

		assert_malformed(&p, parse(&p, blob, len, 2, 2, CM_EXECF_SEARCH_PATH));
	}
}

static void assert_paths(const char *blob, size_t len, const char *const *expected)
{
	struct parsed p;

	assert_int_equal(parse(&p, blob, len, 1, 1, CM_EXECF_SEARCH_PATH), CM_OK);
	assert_vector(p.image.paths, expected);
	clear(&p);
}

#define ASSERT_PATHS(blob, ...)                                                                    \
	assert_paths(blob, sizeof(blob) - 1, (const char *const[]){ __VA_ARGS__, NULL })

static void test_path(void **state)
{
	(void)state;
	ASSERT_PATHS("/\0p\0PATH=/a:/b/c\0", "/a/p", "/b/c/p");
	ASSERT_PATHS("/\0p\0PATH=/a\0", "/a/p");
	/* an empty entry is the current directory */
	ASSERT_PATHS("/\0p\0PATH=\0", "./p");
	ASSERT_PATHS("/\0p\0PATH=:\0", "./p", "./p");
	ASSERT_PATHS("/\0p\0PATH=:/a\0", "./p", "/a/p");
	ASSERT_PATHS("/\0p\0PATH=/a:\0", "/a/p", "./p");
	ASSERT_PATHS("/\0p\0PATH=/a::/b\0", "/a/p", "./p", "/b/p");
	ASSERT_PATHS("/\0p\0PATH=/a/\0", "/a//p");
	ASSERT_PATHS("/\0p\0PATH=rel\0", "rel/p");
	/* what is no PATH */
	ASSERT_PATHS("/\0p\0XPATH=/a\0", "/usr/local/bin/p", "/usr/bin/p", "/bin/p");
	ASSERT_PATHS("/\0p\0PATHS=/a\0", "/usr/local/bin/p", "/usr/bin/p", "/bin/p");
	ASSERT_PATHS("/\0p\0PATH\0", "/usr/local/bin/p", "/usr/bin/p", "/bin/p");
	/* a name that is a path, and one that is none */
	ASSERT_PATHS("/\0./p\0PATH=/a\0", "./p");
	ASSERT_PATHS("/\0/x/p\0PATH=/a\0", "/x/p");
	ASSERT_PATHS("/\0p/\0PATH=/a\0", "p/");
	ASSERT_PATHS("/\0\0PATH=/a\0", "");
}

static void test_no_search(void **state)
{
	struct parsed p;

	(void)state;
	assert_int_equal(PARSE(&p, "/\0p\0PATH=/a\0", 1, 1, 0), CM_OK);
	ASSERT_VECTOR(p.image.paths, "p");
	clear(&p);
	assert_int_equal(PARSE(&p, "/\0p\0", 1, 0, CM_EXECF_SEARCH_PATH), CM_OK);
	ASSERT_VECTOR(p.image.paths, "/usr/local/bin/p", "/usr/bin/p", "/bin/p");
	clear(&p);
	/* the first one counts, as for the C library */
	assert_int_equal(PARSE(&p, "/\0p\0PATH=/a\0PATH=/b\0", 1, 2, CM_EXECF_SEARCH_PATH), CM_OK);
	ASSERT_VECTOR(p.image.paths, "/a/p");
	clear(&p);
}

/* A name of `name_len` and a PATH of `path_len` colons. */
static int parse_large(struct parsed *p, size_t name_len, size_t path_len)
{
	size_t len = 2 + name_len + 1 + 5 + path_len + 1;
	char *blob = malloc(len);
	char *at = blob;
	int r;

	assert_non_null(blob);
	memcpy(at, "/", 2);
	at += 2;
	memset(at, 'n', name_len);
	at[name_len] = '\0';
	at += name_len + 1;
	memcpy(at, "PATH=", 5);
	memset(at + 5, ':', path_len);
	at[5 + path_len] = '\0';
	r = parse(p, blob, len, 1, 1, CM_EXECF_SEARCH_PATH);
	free(blob);
	return r;
}

static void test_large(void **state)
{
	struct parsed p;
	size_t n = 0;

	(void)state;
	assert_int_equal(parse_large(&p, NAME_MAX, 1000), CM_OK);
	for (; p.image.paths[n]; n++)
		assert_int_equal(strlen(p.image.paths[n]), NAME_MAX + 2);
	assert_int_equal(n, 1001);
	clear(&p);
	/* no file has such a name: not a thousand copies of it */
	assert_int_equal(parse_large(&p, NAME_MAX + 1, 1000), CM_OK);
	assert_null(p.image.paths[1]);
	assert_int_equal(strlen(p.image.paths[0]), NAME_MAX + 1);
	clear(&p);
	/* no program can have such an environment */
	assert_int_equal(parse_large(&p, 2000000, 2000000), CM_OK);
	assert_null(p.image.paths[1]);
	clear(&p);
	assert_int_equal(parse_large(&p, 100, 4000000), CM_OK);
	assert_null(p.image.paths[1]);
	clear(&p);
}

/* A slot's memory serves one command after the other, and what is large goes. */
static void test_memory_again(void **state)
{
	struct cm_image_memory memory[CM_IMAGE_MEMORIES] = { { NULL, 0 } };
	static char large[128 * 1024];
	struct parsed p;
	void *kept;

	(void)state;
	assert_int_equal(PARSE(&p, "/\0prog\0PATH=/a:/b\0", 1, 1, CM_EXECF_SEARCH_PATH), CM_OK);
	memcpy(memory, p.memory, sizeof(memory));
	cm_image_settle(memory);
	kept = memory[0].at;
	assert_non_null(kept);
	assert_non_null(memory[1].at);
	assert_int_equal(cm_image_parse(&p.msg, &p.image, memory, &p.err), CM_OK);
	assert_ptr_equal(memory[0].at, kept);
	ASSERT_VECTOR(p.image.paths, "/a/prog", "/b/prog");
	memcpy(p.memory, memory, sizeof(memory));
	cm_msg_clear(&p.msg);
	memset(large, 'x', sizeof(large) - 1);
	memcpy(large, "/", 2);
	p.msg.rec.len = sizeof(large);
	p.msg.rec.body.exec.n_args = 1;
	p.msg.rec.body.exec.n_env = 0;
	p.msg.blob = malloc(sizeof(large) + 1);
	assert_non_null(p.msg.blob);
	memcpy(p.msg.blob, large, sizeof(large));
	p.msg.blob[sizeof(large)] = '\0';
	assert_int_equal(cm_image_parse(&p.msg, &p.image, p.memory, &p.err), CM_OK);
	assert_int_equal(strlen(p.image.argv[0]), sizeof(large) - 3);
	cm_image_settle(p.memory);
	assert_null(p.memory[0].at);
	assert_non_null(p.memory[1].at);
	clear(&p);
}

static bool parse_once(void *data)
{
	struct parsed p;
	bool is_done;
	int r = PARSE(&p, "/\0p\0PATH=/a:/b\0", 1, 1, *(uint32_t *)data);

	is_done = r == CM_OK;
	if (!is_done) {
		assert_int_equal(r, CM_E_NOMEM);
		assert_null(p.image.argv);
		assert_string_equal(p.image.cwd, "untouched");
	}
	clear(&p);
	return is_done;
}

static void test_no_memory(void **state)
{
	static uint32_t flags[] = { 0, CM_EXECF_SEARCH_PATH };

	(void)state;
	assert_int_equal(fail_each_allocation(parse_once, &flags[0]), 2);
	assert_int_equal(fail_each_allocation(parse_once, &flags[1]), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),	     cmocka_unit_test(test_counts),
		cmocka_unit_test(test_terminators),  cmocka_unit_test(test_every_cut),
		cmocka_unit_test(test_path),	     cmocka_unit_test(test_no_search),
		cmocka_unit_test(test_large),	     cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_memory_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
