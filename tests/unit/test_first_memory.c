/* SPDX-License-Identifier: Apache-2.0 */
/* The client's first memory, with libc's allocator counted behind it. */
#include <pthread.h>

#include "runtime/base/first_memory.h"
#include "tests/unit/test_base.h"

#define SIZE (256UL * 1024)

static unsigned int n_real;
static unsigned int n_freed;

void *__real_malloc(size_t size)
{
	n_real++;
	return malloc(size);
}

void *__real_calloc(size_t n, size_t size)
{
	n_real++;
	return calloc(n, size);
}

void *__real_realloc(void *p, size_t size)
{
	n_real++;
	return realloc(p, size);
}

void __real_free(void *p)
{
	n_freed++;
	free(p);
}

/* Each of these runs in a process of its own: what was taken is never given back. */
static void in_child(void (*test)(void))
{
	pid_t pid = fork();
	int status = 0;

	assert_true(pid >= 0);
	if (pid == 0) {
		test();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			(void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);           \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static void blocks(void)
{
	static const size_t sizes[] = { 0, 1, 7, 8, 16, 17, 100, 4096, 70000 };
	unsigned char *last = NULL;

	for (size_t i = 0; i < CM_ARRAY_SIZE(sizes); i++) {
		unsigned char *p = __wrap_malloc(sizes[i]);

		CHECK(p && (uintptr_t)p % _Alignof(max_align_t) == 0);
		CHECK(!last || p > last);
		for (size_t j = 0; j < sizes[i]; j++)
			CHECK(p[j] == 0);
		memset(p, 0xaa, sizes[i]);
		last = p + sizes[i];
	}
	CHECK(n_real == 0);
}

/* Not used again: neither whoever frees twice nor whoever writes late reaches another's. */
static void freed(void)
{
	char *first = __wrap_malloc(64);
	char *second;

	memset(first, 1, 64);
	__wrap_free(first);
	__wrap_free(first);
	second = __wrap_malloc(64);
	CHECK(second != first);
	memset(first, 2, 64);
	for (int i = 0; i < 64; i++)
		CHECK(second[i] == 0);
	__wrap_free(NULL);
	CHECK(n_real == 0 && n_freed == 1);
}

static void grown(void)
{
	char *p = __wrap_realloc(NULL, 10);
	char *same;
	char *other;

	memcpy(p, "0123456789", 10);
	same = __wrap_realloc(p, 5000);
	CHECK(same == p && memcmp(p, "0123456789", 10) == 0);
	/* smaller stays where it is, and so does what fits again */
	CHECK(__wrap_realloc(p, 3) == p && __wrap_realloc(p, 5000) == p);
	other = __wrap_malloc(1);
	p[4999] = 'x';
	same = __wrap_realloc(p, 6000);
	CHECK(same != p && memcmp(same, "0123456789", 10) == 0 && same[4999] == 'x');
	CHECK(*other == 0 && n_real == 0);
	/* to where there is no room for it */
	other = __wrap_realloc(same, SIZE);
	CHECK(other && n_real == 1 && memcmp(other, "0123456789", 10) == 0);
	other = __wrap_realloc(other, 2 * SIZE);
	CHECK(n_real == 2 && memcmp(other, "0123456789", 10) == 0);
	__wrap_free(other);
	CHECK(n_freed == 1);
}

static void sizes(void)
{
	volatile size_t most = SIZE_MAX;

	CHECK(!__wrap_malloc(most) && !__wrap_malloc(most - 8) && n_real == 2);
	CHECK(!__wrap_calloc(most, 2) && !__wrap_calloc(2, most) && n_real == 4);
	/* a product that is small again, modulo the size of size_t */
	CHECK(!__wrap_calloc(most / 16 + 2, 16) && n_real == 5);
	CHECK(__wrap_calloc(0, most) && __wrap_calloc(most, 0) && __wrap_calloc(3, 5) &&
	      n_real == 5);
}

static void used_up(void)
{
	void *p;

	for (size_t i = 0; i < SIZE / 1024; i++)
		CHECK(__wrap_malloc(1024));
	CHECK(n_real > 0 && n_real < 8);
	n_real = 0;
	p = __wrap_calloc(1, 1024);
	CHECK(p && n_real == 1);
	p = __wrap_realloc(p, 2048);
	CHECK(p && n_real == 2);
	__wrap_free(p);
	CHECK(n_freed == 1);
}

#define THREADS 4
#define BLOCKS 400

static void *taker(void *mark)
{
	unsigned char *v[BLOCKS];
	unsigned char byte = *(unsigned char *)mark;

	for (size_t i = 0; i < BLOCKS; i++) {
		v[i] = __wrap_malloc(40);
		memset(v[i], byte, 40);
		v[i] = __wrap_realloc(v[i], 70);
		memset(v[i], byte, 70);
	}
	for (size_t i = 0; i < BLOCKS; i++) {
		for (size_t j = 0; j < 70; j++)
			CHECK(v[i][j] == byte);
	}
	return NULL;
}

static void threads(void)
{
	static unsigned char marks[THREADS];
	pthread_t thread[THREADS];

	for (size_t i = 0; i < THREADS; i++) {
		marks[i] = (unsigned char)(i + 1);
		CHECK(pthread_create(&thread[i], NULL, taker, &marks[i]) == 0);
	}
	for (size_t i = 0; i < THREADS; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
}

#define TEST(name)                                                                                 \
	static void test_##name(void **state)                                                      \
	{                                                                                          \
		(void)state;                                                                       \
		in_child(name);                                                                    \
	}
TEST(blocks)
TEST(freed)
TEST(grown)
TEST(sizes)
TEST(used_up)
TEST(threads)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocks),	cmocka_unit_test(test_freed),
		cmocka_unit_test(test_grown),	cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_used_up), cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
