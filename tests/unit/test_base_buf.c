/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers at their maximum, string vectors, and every allocation of both failing once. */
#include "runtime/base/buf.h"
#include "tests/unit/test_base.h"

static void test_maximum(void **state)
{
	(void)state;
	/* around the first capacity and its double */
	for (size_t max = 0; max < 200; max++) {
		struct cm_buf b;
		char *s;

		cm_buf_init(&b, max);
		for (size_t i = 0; i < max; i++) {
			cm_buf_putc(&b, (char)('a' + i % 26));
			assert_int_equal(b.data[b.len], '\0');
		}
		assert_int_equal(cm_buf_status(&b), CM_OK);
		assert_int_equal(b.len, max);
		assert_true(b.capacity <= max + 1);
		cm_buf_append(&b, "", 0);
		assert_int_equal(cm_buf_status(&b), CM_OK);
		cm_buf_putc(&b, '!');
		assert_int_equal(cm_buf_status(&b), CM_E_LIMIT);
		assert_true(b.is_over_max);
		/* what was there is left alone, and later appends change nothing */
		assert_int_equal(b.len, max);
		cm_buf_append(&b, "", 0);
		cm_buf_puts(&b, "");
		cm_buf_printf(&b, "%s", "");
		assert_int_equal(cm_buf_status(&b), CM_E_LIMIT);
		assert_int_equal(b.len, max);
		s = cm_buf_take(&b);
		assert_null(s);
		assert_null(b.data);
		/* usable again, with the same maximum */
		assert_int_equal(cm_buf_status(&b), CM_OK);
		assert_int_equal(b.max, max);
		cm_buf_clear(&b);
	}
}

static void test_at_once(void **state)
{
	CM_AUTO_BUF struct cm_buf b;

	(void)state;
	cm_buf_init(&b, 10);
	cm_buf_puts(&b, "0123456789");
	assert_int_equal(cm_buf_status(&b), CM_OK);
	cm_buf_clear(&b);
	cm_buf_puts(&b, "0123456789x");
	assert_int_equal(cm_buf_status(&b), CM_E_LIMIT);
	assert_int_equal(b.len, 0);
	cm_buf_clear(&b);
	cm_buf_printf(&b, "%010d", 7);
	assert_string_equal(b.data, "0000000007");
	cm_buf_printf(&b, "%d", 7);
	assert_int_equal(cm_buf_status(&b), CM_E_LIMIT);
	assert_string_equal(b.data, "0000000007");
	cm_buf_clear(&b);
	cm_buf_printf(&b, "%011d", 7);
	assert_int_equal(cm_buf_status(&b), CM_E_LIMIT);
}

static void test_sizes_that_overflow(void **state)
{
	CM_AUTO_BUF struct cm_buf b;

	(void)state;
	cm_buf_init(&b, SIZE_MAX);
	cm_buf_putc(&b, 'a');
	/* never read: the size is refused first */
	cm_buf_append(&b, "x", SIZE_MAX);
	assert_int_equal(cm_buf_status(&b), CM_E_LIMIT);
	cm_buf_clear(&b);
	cm_buf_putc(&b, 'a');
	cm_buf_append(&b, "x", SIZE_MAX / 4 - 1);
	assert_int_equal(cm_buf_status(&b), CM_E_LIMIT);
	assert_int_equal(b.len, 1);
}

static void test_bytes_and_take(void **state)
{
	static const char bytes[] = { 'a', '\0', 'b', '\xff' };
	struct cm_buf b;
	char *s;

	(void)state;
	cm_buf_init(&b, 1000);
	/* nothing was appended: the empty string and not NULL */
	s = cm_buf_take(&b);
	assert_non_null(s);
	assert_string_equal(s, "");
	free(s);
	cm_buf_append(&b, NULL, 0);
	assert_int_equal(b.len, 0);
	assert_string_equal(b.data, "");
	cm_buf_append(&b, bytes, sizeof(bytes));
	assert_int_equal(b.len, 4);
	assert_memory_equal(b.data, bytes, sizeof(bytes));
	cm_buf_printf(&b, "%s", "");
	assert_int_equal(b.len, 4);
	s = cm_buf_take(&b);
	assert_memory_equal(s, "a\0b\xff", 5);
	assert_null(b.data);
	assert_int_equal(b.len, 0);
	assert_int_equal(b.capacity, 0);
	free(s);
	cm_buf_clear(&b);
	cm_buf_clear(&b);
}

static bool grow_buf(void *data)
{
	struct cm_buf b;
	char *s;
	bool is_done;

	(void)data;
	cm_buf_init(&b, 100000);
	for (int i = 0; i < 5000; i++) {
		cm_buf_printf(&b, "%d,", i);
		cm_buf_puts(&b, "x");
		cm_buf_putc(&b, 'y');
	}
	is_done = cm_buf_status(&b) == CM_OK;
	if (!is_done) {
		assert_int_equal(cm_buf_status(&b), CM_E_NOMEM);
		assert_false(b.is_over_max);
		/* what fitted before is whole */
		assert_true(b.len == 0 || b.data[b.len] == '\0');
	}
	s = cm_buf_take(&b);
	assert_int_equal(s != NULL, is_done);
	free(s);
	return is_done;
}

static bool take_empty(void *data)
{
	struct cm_buf b;
	char *s;

	(void)data;
	cm_buf_init(&b, 10);
	s = cm_buf_take(&b);
	free(s);
	return s != NULL;
}

static void test_no_memory_buf(void **state)
{
	(void)state;
	/* 64 doubled until it holds everything */
	assert_in_range(fail_each_allocation(grow_buf, NULL), 8, 16);
	assert_int_equal(fail_each_allocation(take_empty, NULL), 1);
}

static void assert_strv(const struct cm_strv *sv, const char *const *expected)
{
	size_t n = 0;

	for (; expected[n]; n++) {
		assert_true(n < sv->n);
		assert_string_equal(sv->v[n], expected[n]);
	}
	assert_int_equal(sv->n, n);
	if (n > 0)
		assert_null(sv->v[n]);
}

#define ASSERT_STRV(sv, ...) assert_strv(sv, (const char *const[]){ __VA_ARGS__, NULL })

static void test_strv(void **state)
{
	CM_AUTO_STRV struct cm_strv sv = { 0 };
	CM_AUTO_STRV struct cm_strv copy = { 0 };
	char *own = strdup("own");

	(void)state;
	assert_false(cm_strv_has(&sv, ""));
	assert_null(cm_strv_env_get(&sv, "A"));
	assert_int_equal(cm_strv_add(&sv, "one"), CM_OK);
	assert_int_equal(cm_strv_add_own(&sv, own), CM_OK);
	assert_int_equal(cm_strv_addf(&sv, "%s-%d", "three", 3), CM_OK);
	assert_int_equal(cm_strv_add(&sv, ""), CM_OK);
	ASSERT_STRV(&sv, "one", "own", "three-3", "");
	assert_true(cm_strv_has(&sv, ""));
	assert_true(cm_strv_has(&sv, "own"));
	assert_false(cm_strv_has(&sv, "ow"));
	assert_false(cm_strv_has(&sv, "owns"));
	assert_int_equal(cm_strv_add(&copy, "old"), CM_OK);
	assert_int_equal(cm_strv_copy(&copy, &sv), CM_OK);
	ASSERT_STRV(&copy, "one", "own", "three-3", "");
	assert_ptr_not_equal(copy.v[0], sv.v[0]);
	/* onto itself: still there */
	assert_int_equal(cm_strv_copy(&copy, &copy), CM_OK);
	ASSERT_STRV(&copy, "one", "own", "three-3", "");
	cm_strv_clear(&sv);
	assert_null(sv.v);
	cm_strv_clear(&sv);
	assert_int_equal(cm_strv_copy(&copy, &sv), CM_OK);
	assert_int_equal(copy.n, 0);
	assert_int_equal(cm_strv_add_own(&sv, NULL), CM_E_NOMEM);
	assert_int_equal(sv.n, 0);
}

static void test_strv_env(void **state)
{
	CM_AUTO_STRV struct cm_strv sv = { 0 };
	static const char *const bad[] = { "", "=", "A=", "A=B", "=A" };

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++)
		assert_int_equal(cm_strv_env_set(&sv, bad[i], "x"), CM_E_INVALID);
	assert_int_equal(sv.n, 0);
	assert_int_equal(cm_strv_env_set(&sv, "A", "1"), CM_OK);
	assert_int_equal(cm_strv_env_set(&sv, "AB", "2=3"), CM_OK);
	assert_int_equal(cm_strv_add(&sv, "C"), CM_OK);
	ASSERT_STRV(&sv, "A=1", "AB=2=3", "C");
	assert_string_equal(cm_strv_env_get(&sv, "A"), "1");
	assert_string_equal(cm_strv_env_get(&sv, "AB"), "2=3");
	assert_null(cm_strv_env_get(&sv, "C"));
	assert_null(cm_strv_env_get(&sv, "a"));
	/* a value that is the one being replaced */
	assert_int_equal(cm_strv_env_set(&sv, "AB", cm_strv_env_get(&sv, "AB")), CM_OK);
	assert_int_equal(cm_strv_env_set(&sv, "A", ""), CM_OK);
	ASSERT_STRV(&sv, "A=", "AB=2=3", "C");
	assert_string_equal(cm_strv_env_get(&sv, "A"), "");
}

static void test_strv_env_duplicates(void **state)
{
	CM_AUTO_STRV struct cm_strv sv = { 0 };
	static const char *const rows[] = { "A=1", "A=2", "B=1", "A=3", "A=4", "B=2", "A=5" };

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++)
		assert_int_equal(cm_strv_add(&sv, rows[i]), CM_OK);
	assert_int_equal(cm_strv_env_set(&sv, "A", "new"), CM_OK);
	ASSERT_STRV(&sv, "A=new", "B=1", "B=2");
	assert_int_equal(cm_strv_env_set(&sv, "B", "new"), CM_OK);
	ASSERT_STRV(&sv, "A=new", "B=new");
	assert_int_equal(cm_strv_add(&sv, "C=1"), CM_OK);
	ASSERT_STRV(&sv, "A=new", "B=new", "C=1");
}

static bool fill_strv(void *data)
{
	CM_AUTO_STRV struct cm_strv sv = { 0 };
	CM_AUTO_STRV struct cm_strv copy = { 0 };
	int r = cm_strv_add(&copy, "left alone");

	(void)data;
	for (int i = 0; i < 3 && r == CM_OK; i++)
		r = cm_strv_add(&sv, "text");
	if (r == CM_OK)
		r = cm_strv_addf(&sv, "%d", 7);
	/* added, then replaced */
	for (int i = 0; i < 2 && r == CM_OK; i++) {
		size_t n = sv.n;

		r = cm_strv_env_set(&sv, "A", i == 0 ? "old" : "new");
		if (r != CM_OK) {
			assert_int_equal(sv.n, n);
			if (i == 1)
				assert_string_equal(cm_strv_env_get(&sv, "A"), "old");
		}
	}
	if (r == CM_OK) {
		r = cm_strv_copy(&copy, &sv);
		if (r != CM_OK)
			ASSERT_STRV(&copy, "left alone");
	}
	if (r == CM_OK)
		ASSERT_STRV(&copy, "text", "text", "text", "7", "A=new");
	else
		assert_int_equal(r, CM_E_NOMEM);
	for (size_t i = 0; i < sv.n; i++)
		assert_non_null(sv.v[i]);
	return r == CM_OK;
}

static bool take_own(void *data)
{
	struct cm_strv sv = { 0 };
	/* freed by the vector, added or not */
	int r = cm_strv_add_own(&sv, strdup("own"));

	(void)data;
	cm_strv_clear(&sv);
	return r == CM_OK;
}

static bool copy_strings(void *data)
{
	char *a = cm_strdup("a");
	char *b = cm_asprintf("%s%d", "b", 1);
	bool is_done = a != NULL && b != NULL;

	(void)data;
	if (is_done) {
		assert_string_equal(a, "a");
		assert_string_equal(b, "b1");
	}
	free(a);
	free(b);
	assert_null(cm_strdup(NULL));
	return is_done;
}

/* No capacity is stored: shortened anywhere, a vector takes as many again. */
static void test_strv_shortened(void **state)
{
	(void)state;
	for (size_t full = 1; full < 40; full++) {
		for (size_t left = 0; left <= full; left++) {
			CM_AUTO_STRV struct cm_strv sv = { 0 };

			while (sv.n < full)
				assert_int_equal(cm_strv_add(&sv, "x"), CM_OK);
			while (sv.n > left) {
				sv.n--;
				free(sv.v[sv.n]);
				sv.v[sv.n] = NULL;
			}
			while (sv.n < full + 2)
				assert_int_equal(cm_strv_add(&sv, "y"), CM_OK);
			assert_null(sv.v[full + 2]);
			assert_string_equal(sv.v[full + 1], "y");
		}
	}
}

static void test_no_memory_strv(void **state)
{
	(void)state;
	assert_int_equal(fail_each_allocation(fill_strv, NULL), 2 + 4 + 2 + 1 + 1 + 7);
	assert_int_equal(fail_each_allocation(take_own, NULL), 1);
	assert_int_equal(fail_each_allocation(copy_strings, NULL), 2);
}

static void test_alloc(void **state)
{
	char *p;

	(void)state;
	/* a size of 0 is not "no memory" */
	p = cm_malloc(0);
	assert_non_null(p);
	p = cm_realloc(p, 0);
	assert_non_null(p);
	free(p);
	p = cm_calloc(0, 8);
	assert_non_null(p);
	assert_int_equal(p[0], 0);
	free(p);
	p = cm_calloc(8, 0);
	assert_non_null(p);
	free(p);
	assert_null(cm_calloc(SIZE_MAX / 2, 3));
	cm_alloc_fail_after(1);
	p = cm_malloc(1);
	assert_non_null(p);
	errno = 0;
	assert_null(cm_malloc(1));
	assert_int_equal(errno, ENOMEM);
	assert_null(cm_calloc(1, 1));
	/* the old block is kept */
	assert_null(cm_realloc(p, 2));
	cm_alloc_fail_after(-1);
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_maximum),
		cmocka_unit_test(test_at_once),
		cmocka_unit_test(test_sizes_that_overflow),
		cmocka_unit_test(test_bytes_and_take),
		cmocka_unit_test(test_no_memory_buf),
		cmocka_unit_test(test_strv),
		cmocka_unit_test(test_strv_env),
		cmocka_unit_test(test_strv_env_duplicates),
		cmocka_unit_test(test_strv_shortened),
		cmocka_unit_test(test_no_memory_strv),
		cmocka_unit_test(test_alloc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
