/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a session. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/base/fd.h"
#include "runtime/base/sha256.h"
#include "tests/conformance/provider/suite.h"

#define MIB (1024UL * 1024)
#define TOP "/tmp/files"

/* --- content ------------------------------------------------------------------------------- */

static void holds(struct suite *t, const char *path, const char *want)
{
	CM_AUTO_BUF struct cm_buf got = { 0 };
	struct cm_error err = CM_ERROR_INIT;
	int r;

	cm_buf_init(&got, MIB);
	r = suite_read(t, path, &got, &err);
	if (CHECK_OK(t, r, err, path))
		CHECK(t,
		      got.len == strlen(want) &&
			      memcmp(got.data ? got.data : "", want, got.len) == 0,
		      "%s has '%.100s', wanted '%.100s'", path, got.data ? got.data : "", want);
}

static void writes(struct suite *t, const char *path, const char *text, uint32_t flags)
{
	struct cm_error err = CM_ERROR_INIT;
	int r = suite_write(t, path, text, flags, UINT32_MAX, &err);

	CHECK_OK(t, r, err, path);
}

static void there_and_back(struct suite *t)
{
	writes(t, TOP "/a", "one\n", CM_WRITE_PARENTS);
	holds(t, TOP "/a", "one\n");
	suite_sh_is(t, t->s, "cat " TOP "/a", "one\n");
	writes(t, TOP "/a", "two", 0);
	holds(t, TOP "/a", "two");
	writes(t, TOP "/a", " three", CM_WRITE_APPEND);
	holds(t, TOP "/a", "two three");
	suite_sh_is(t, t->s, "printf made > " TOP "/b", "");
	holds(t, TOP "/b", "made");
}

static void empty_file(struct suite *t)
{
	writes(t, TOP "/empty", "", CM_WRITE_PARENTS);
	holds(t, TOP "/empty", "");
	suite_sh_is(t, t->s, "test -f " TOP "/empty && wc -c < " TOP "/empty | tr -d ' '", "0\n");
}

static void part_of_it(struct suite *t)
{
	static const struct {
		uint64_t offset;
		uint64_t length;
		const char *want;
	} parts[] = {
		{ 0, 4, "0123" },	{ 3, 4, "3456" }, { 8, 100, "89" },
		{ 10, UINT64_MAX, "" }, { 100, 5, "" },	  { 5, UINT64_MAX, "56789" },
		{ 4, 0, "" },
	};
	struct cm_call call = suite_call(SUITE_MS);

	writes(t, TOP "/digits", "0123456789", CM_WRITE_PARENTS);
	for (size_t i = 0; i < CM_ARRAY_SIZE(parts); i++) {
		CM_AUTO_BUF struct cm_buf got = { 0 };
		const struct cm_read_request request = { .offset = parts[i].offset,
							 .length = parts[i].length,
							 .take = suite_take,
							 .data = &got };
		struct cm_error err = CM_ERROR_INIT;
		int r;

		cm_buf_init(&got, MIB);
		r = cm_session_read(t->s, TOP "/digits", &request, &call, &err);
		if (CHECK_OK(t, r, err, "a part"))
			CHECK(t, strcmp(got.data ? got.data : "", parts[i].want) == 0,
			      "part %zu is '%s'", i, got.data ? got.data : "");
	}
}

/* Each 4 KiB of it begin with their number. */
struct stream {
	uint64_t at;
	uint64_t size;
	bool is_wrong;
	uint64_t fail_at;
};

static unsigned char byte_at(uint64_t at)
{
	uint64_t block = at >> 12;
	unsigned int in = at & 4095;

	return in < 8 ? (unsigned char)(block >> (8 * in)) : (unsigned char)(in * 31 + block);
}

static ssize_t make(void *data, void *buf, size_t size)
{
	struct stream *s = data;
	unsigned char *p = buf;
	size_t n = 0;

	if (s->fail_at != 0 && s->at >= s->fail_at)
		return -EIO;
	while (n < size && s->at < s->size)
		p[n++] = byte_at(s->at++);
	return (ssize_t)n;
}

static int compare(void *data, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	struct stream *s = data;

	for (size_t i = 0; i < len && !s->is_wrong; i++)
		s->is_wrong = p[i] != byte_at(s->at++);
	return 0;
}

static long peak_kib(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_maxrss : 0;
}

static void large_file(struct suite *t)
{
	/* through a shell it takes its time */
	bool is_slow = strcmp(t->provider, "platform") == 0;
	uint64_t size = (is_slow ? 16 : 64) * MIB;
	struct stream s = { .size = size };
	const struct cm_write_request request = { .flags = CM_WRITE_PARENTS,
						  .mode = UINT32_MAX,
						  .fill = make,
						  .data = &s,
						  .len = (int64_t)size };
	const struct cm_read_request back = { .length = UINT64_MAX, .take = compare, .data = &s };
	struct cm_call call = suite_call(SUITE_PATIENCE * 60000);
	struct cm_error err = CM_ERROR_INIT;
	long before = peak_kib();
	int r = cm_session_write(t->s, TOP "/large", &request, &call, &err);

	CHECK_OK(t, r, err, "it is written");
	suite_sh_is(t, t->s, "wc -c < " TOP "/large | tr -d ' '",
		    is_slow ? "16777216\n" : "67108864\n");
	s.at = 0;
	r = cm_session_read(t->s, TOP "/large", &back, &call, &err);
	CHECK_OK(t, r, err, "it is read");
	CHECK(t, s.at == size && !s.is_wrong, "%llu bytes came back%s", (unsigned long long)s.at,
	      s.is_wrong ? ", and are others" : "");
	/* the memory of the suite's own earlier tests is there already */
	CHECK(t, peak_kib() - before < (is_slow ? 8192 : 16384), "it took %ld KiB",
	      peak_kib() - before);
	suite_sh_is(t, t->s, "rm " TOP "/large", "");
}

/* How many there will be is not always known. */
static void unknown_length(struct suite *t)
{
	struct stream s = { .size = 300000 };
	const struct cm_write_request request = {
		.flags = CM_WRITE_PARENTS, .mode = UINT32_MAX, .fill = make, .data = &s, .len = -1
	};
	const struct cm_read_request back = { .length = UINT64_MAX, .take = compare, .data = &s };
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	int r = cm_session_write(t->s, TOP "/unknown", &request, &call, &err);

	CHECK_OK(t, r, err, "written");
	s.at = 0;
	r = cm_session_read(t->s, TOP "/unknown", &back, &call, &err);
	CHECK_OK(t, r, err, "read");
	CHECK(t, s.at == 300000 && !s.is_wrong, "%llu bytes came back", (unsigned long long)s.at);
}

static int give_up(void *data, const void *bytes, size_t len)
{
	(void)data;
	(void)bytes;
	(void)len;
	return -EPIPE;
}

static void reader_gives_up(struct suite *t)
{
	const struct cm_read_request request = { .length = UINT64_MAX, .take = give_up };
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	int r;

	suite_sh_is(t, t->s, "mkdir -p " TOP "; head -c 1000000 /dev/zero > " TOP "/zeros", "");
	r = cm_session_read(t->s, TOP "/zeros", &request, &call, &err);
	CHECK_CODE(t, r, err, CM_E_SYS, "a reader that takes no more");
	CHECK(t, err.sys_errno == EPIPE, "errno %d", err.sys_errno);
	holds(t, TOP "/digits", "0123456789");
}

/* --- atomic -------------------------------------------------------------------------------- */

static void atomic_write(struct suite *t)
{
	struct stream s = { .size = 1000000, .fail_at = 200000 };
	const struct cm_write_request request = {
		.flags = CM_WRITE_ATOMIC, .mode = UINT32_MAX, .fill = make, .data = &s, .len = -1
	};
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	int r;

	writes(t, TOP "/at/old", "old", CM_WRITE_PARENTS);
	writes(t, TOP "/at/old", "new", CM_WRITE_ATOMIC);
	holds(t, TOP "/at/old", "new");
	r = cm_session_write(t->s, TOP "/at/old", &request, &call, &err);
	CHECK_CODE(t, r, err, CM_E_SYS, "a write that its source gives up");
	CHECK(t, err.sys_errno == EIO, "errno %d", err.sys_errno);
	holds(t, TOP "/at/old", "new");
	s.at = 0;
	r = cm_session_write(t->s, TOP "/at/none", &request, &call, &err);
	CHECK(t, r < 0, "a new file that its source gives up");
	suite_sh_is(t, t->s, "ls -A " TOP "/at", "old\n");
}

/* --- names --------------------------------------------------------------------------------- */

struct entries {
	struct cm_strv names;
	struct cm_path_info last;
	char target[256];
	unsigned int n;
};

static int add_entry(void *data, const struct cm_path_info *info)
{
	struct entries *e = data;

	e->n++;
	e->last = *info;
	e->target[0] = '\0';
	if (info->target)
		(void)snprintf(e->target, sizeof(e->target), "%s", info->target);
	return cm_strv_add(&e->names, info->path);
}

static int list(struct suite *t, const char *path, uint32_t flags, struct entries *e,
		struct cm_error *err)
{
	struct cm_call call = suite_call(SUITE_MS);

	memset(e, 0, sizeof(*e));
	return cm_session_list_files(t->s, path, flags, add_entry, e, &call, err);
}

/* A path's byte as it counts: what is below 'a' comes before 'a-b'. */
static unsigned int rank(char c)
{
	return c == '\0' ? 0 : c == '/' ? 1 : (unsigned char)c + 2U;
}

static bool is_before(const char *a, const char *b)
{
	while (*a != '\0' && *a == *b) {
		a++;
		b++;
	}
	return rank(*a) < rank(*b);
}

static void listed(struct suite *t, const char *path, uint32_t flags, const char *const *names)
{
	struct cm_error err = CM_ERROR_INIT;
	struct entries e;
	size_t n = 0;
	int r = list(t, path, flags, &e, &err);

	CHECK_OK(t, r, err, path);
	for (; names[n]; n++)
		CHECK(t, cm_strv_has(&e.names, names[n]), "'%s' is not listed", names[n]);
	for (size_t i = 1; i < e.names.n; i++)
		CHECK(t, is_before(e.names.v[i - 1], e.names.v[i]), "'%s' before '%s'",
		      e.names.v[i - 1], e.names.v[i]);
	CHECK(t, e.names.n == n, "%zu names, wanted %zu: '%s', ...", e.names.n, n,
	      e.names.n > 0 ? e.names.v[0] : "");
	cm_strv_clear(&e.names);
}

#define NO_UTF8 1

/* JSON has no way to say it: then that is said of each operation, and nobody is asked. */
static bool cannot_name(struct suite *t, const char *path, bool is_special)
{
	CM_AUTO_BUF struct cm_buf got = { 0 };
	struct cm_error err = CM_ERROR_INIT;
	int r = is_special ? suite_write(t, path, "x", 0, UINT32_MAX, &err) : CM_OK;

	int why = r;

	if (r != CM_E_INVALID && r != CM_E_UNSUPPORTED)
		return false;
	CHECK(t, t->port != 0 && err.msg[0], "here any name can be said");
	cm_buf_init(&got, 64);
	err = (struct cm_error)CM_ERROR_INIT;
	r = suite_read(t, path, &got, &err);
	CHECK_CODE(t, r, err, why, "a name that cannot be said");
	return true;
}

static void any_names(struct suite *t)
{
	static const char *const names[] = { "new\nline",   "\xff\xfe\x80", "a b",     "-rf",
					     "'\"$HOME`\\", "\xc3\xa4",	    ".hidden", "*",
					     "tab\t",	    "x\x01y",	    "end ",    NULL };

	const char *there[CM_ARRAY_SIZE(names)];
	size_t n = 0;

	suite_sh_is(t, t->s, "rm -rf " TOP "/names && mkdir -p " TOP "/names", "");
	for (size_t i = 0; names[i]; i++) {
		char path[256];

		(void)snprintf(path, sizeof(path), TOP "/names/%s", names[i]);
		if (cannot_name(t, path, i == NO_UTF8))
			continue;
		there[n++] = names[i];
		writes(t, path, names[i], 0);
		holds(t, path, names[i]);
	}
	there[n] = NULL;
	CHECK(t, n + 1 >= CM_ARRAY_SIZE(names) - (t->port != 0), "%zu names", n);
	listed(t, TOP "/names", 0, there);
}

static void recursive_list(struct suite *t)
{
	static const char *const flat[] = { "f", "d", "l", "d-", NULL };
	static const char *const deep[] = { "f", "d", "l", "d/e", "d/e/g", "d-", NULL };

	suite_sh_is(t, t->s,
		    "rm -rf " TOP "/tree; mkdir -p " TOP "/tree/d/e; cd " TOP
		    "/tree; echo > f; echo > d/e/g; echo > d-; ln -s d l",
		    "");
	listed(t, TOP "/tree", 0, flat);
	listed(t, TOP "/tree", CM_LIST_RECURSIVE, deep);
	listed(t, TOP "/tree/", 0, flat);
	listed(t, TOP "/tree", CM_LIST_RECURSIVE | CM_LIST_ANY, deep);
}

/* With CM_LIST_ANY what is no directory is told itself, a link to nowhere, too. */
static void list_anything(struct suite *t)
{
	static const char *const itself[] = { "", NULL };
	struct cm_error err = CM_ERROR_INIT;
	struct entries e;
	int r;

	suite_sh_is(t, t->s,
		    "rm -rf " TOP "/any; mkdir -p " TOP "/any; cd " TOP
		    "/any; printf 123 > f; ln -s f l; ln -s nowhere broken",
		    "");
	listed(t, TOP "/any/f", CM_LIST_ANY, itself);
	listed(t, TOP "/any/l", CM_LIST_ANY | CM_LIST_RECURSIVE, itself);
	listed(t, TOP "/any/broken", CM_LIST_ANY, itself);
	r = list(t, TOP "/any/f", CM_LIST_ANY, &e, &err);
	CHECK(t, r == CM_OK && e.last.type == CM_PATH_FILE && e.last.size == 3,
	      "type %d, size %llu", e.last.type, (unsigned long long)e.last.size);
	cm_strv_clear(&e.names);
	err = (struct cm_error)CM_ERROR_INIT;
	r = list(t, TOP "/any/none", CM_LIST_ANY, &e, &err);
	CHECK_CODE(t, r, err, CM_E_NOT_FOUND, "what is not there");
	cm_strv_clear(&e.names);
}

static void list_failures(struct suite *t)
{
	struct cm_error err = CM_ERROR_INIT;
	struct entries e;
	int r = list(t, TOP "/not-there", 0, &e, &err);

	CHECK_CODE(t, r, err, CM_E_NOT_FOUND, "a list of what is not there");
	cm_strv_clear(&e.names);
	writes(t, TOP "/file", "x", CM_WRITE_PARENTS);
	err = (struct cm_error)CM_ERROR_INIT;
	r = list(t, TOP "/file", 0, &e, &err);
	CHECK(t, r < 0 && err.code == r && err.msg[0], "a list of a file: %s", cm_error_name(r));
	CHECK(t, e.n == 0, "a file is listed as a directory");
	cm_strv_clear(&e.names);
	suite_sh_is(t, t->s, "rm -rf " TOP "/none; mkdir " TOP "/none", "");
	r = list(t, TOP "/none", 0, &e, &err);
	CHECK(t, r == CM_OK && e.n == 0, "an empty directory has %u entries (%d)", e.n, r);
	cm_strv_clear(&e.names);
}

/* --- what is said of one ------------------------------------------------------------------- */

static int stat_of(struct suite *t, const char *path, uint32_t flags, struct entries *e,
		   struct cm_error *err)
{
	struct cm_call call = suite_call(SUITE_MS);

	memset(e, 0, sizeof(*e));
	return cm_session_stat(t->s, path, flags, add_entry, e, &call, err);
}

/* As it is, or resolved. */
static bool is_target(const char *has, const char *want)
{
	size_t at = strlen(has) - strlen(want);

	if (strlen(has) < strlen(want) || want[0] == '\0')
		return strcmp(has, want) == 0;
	return strcmp(has + at, want) == 0 && (at == 0 || has[at - 1] == '/');
}

static void stats(struct suite *t, const char *path, uint32_t flags, enum cm_path_type type,
		  uint32_t mode, const char *target)
{
	struct cm_error err = CM_ERROR_INIT;
	struct entries e;
	int r = stat_of(t, path, flags, &e, &err);

	if (CHECK_OK(t, r, err, path)) {
		CHECK(t, e.n == 1, "told %u times", e.n);
		CHECK(t, e.last.type == type, "%s: type %d, wanted %d", path, e.last.type, type);
		CHECK(t, mode == 0 || e.last.mode == mode, "%s: mode %o, wanted %o", path,
		      e.last.mode, mode);
		CHECK(t, is_target(e.target, target), "%s: target '%s'", path, e.target);
		CHECK(t, e.names.n == 1 && strcmp(e.names.v[0], path) == 0, "%s: path '%s'", path,
		      e.names.n > 0 ? e.names.v[0] : "");
	}
	cm_strv_clear(&e.names);
}

static void stat_all(struct suite *t)
{
	struct cm_error err = CM_ERROR_INIT;
	struct entries e;
	int r;

	suite_sh_is(t, t->s,
		    "rm -rf " TOP "/st; mkdir -p " TOP "/st; cd " TOP
		    "/st; printf 12345 > f; chmod 640 f; mkdir d; chmod 751 d; ln -s f l; "
		    "ln -s nowhere broken; touch -d @1234567890 f; mkfifo p",
		    "");
	stats(t, TOP "/st/f", 0, CM_PATH_FILE, 0640, "");
	stats(t, TOP "/st/d", 0, CM_PATH_DIRECTORY, 0751, "");
	stats(t, TOP "/st/l", 0, CM_PATH_LINK, 0, "f");
	stats(t, TOP "/st/l", CM_STAT_FOLLOW, CM_PATH_FILE, 0640, "");
	stats(t, TOP "/st/broken", 0, CM_PATH_LINK, 0, "nowhere");
	stats(t, TOP "/st/p", 0, CM_PATH_OTHER, 0, "");
	r = stat_of(t, TOP "/st/f", 0, &e, &err);
	CHECK(t, r == CM_OK && e.last.size == 5, "size %llu", (unsigned long long)e.last.size);
	CHECK(t, e.last.mtime_sec == 1234567890, "mtime %lld", (long long)e.last.mtime_sec);
	cm_strv_clear(&e.names);
	r = stat_of(t, TOP "/st/none", 0, &e, &err);
	CHECK_CODE(t, r, err, CM_E_NOT_FOUND, "what is not there");
	cm_strv_clear(&e.names);
	r = stat_of(t, TOP "/st/broken", CM_STAT_FOLLOW, &e, &err);
	CHECK_CODE(t, r, err, CM_E_NOT_FOUND, "what a link leads to nowhere");
	cm_strv_clear(&e.names);
}

static void modes(struct suite *t)
{
	struct cm_error err = CM_ERROR_INIT;
	int r = suite_write(t, TOP "/run", "#!/bin/sh\necho ran\n", CM_WRITE_PARENTS, 0755, &err);

	CHECK_OK(t, r, err, "a program");
	suite_sh_is(t, t->s, TOP "/run", "ran\n");
	stats(t, TOP "/run", 0, CM_PATH_FILE, 0755, "");
	/* no set-id bits, however they are asked for */
	r = suite_write(t, TOP "/setid", "x", 0, 06755, &err);
	if (r == CM_OK)
		suite_sh_is(t, t->s, "stat -c %a " TOP "/setid", "755\n");
	else
		CHECK(t, r == CM_E_INVALID, "set-id bits: %s", cm_error_name(r));
	/* what has one all the same is not told to have it */
	suite_sh_is(t, t->s, "chmod 4755 " TOP "/run 2>/dev/null; :", "");
	stats(t, TOP "/run", 0, CM_PATH_FILE, 0755, "");
}

/* --- changes ------------------------------------------------------------------------------- */

static int make_dir(struct suite *t, const char *path, uint32_t flags, struct cm_error *err)
{
	struct cm_call call = suite_call(SUITE_MS);

	return cm_session_mkdir(t->s, path, flags, 0755, &call, err);
}

static void directories(struct suite *t)
{
	struct cm_error err = CM_ERROR_INIT;
	int r;

	suite_sh_is(t, t->s, "rm -rf " TOP "/mk; mkdir -p " TOP "/mk", "");
	r = make_dir(t, TOP "/mk/a", 0, &err);
	CHECK_OK(t, r, err, "a directory");
	stats(t, TOP "/mk/a", 0, CM_PATH_DIRECTORY, 0755, "");
	r = make_dir(t, TOP "/mk/a", 0, &err);
	CHECK_CODE(t, r, err, CM_E_EXISTS, "one that is there");
	err = (struct cm_error)CM_ERROR_INIT;
	r = make_dir(t, TOP "/mk/b/c/d", 0, &err);
	CHECK_CODE(t, r, err, CM_E_NOT_FOUND, "one below what is not there");
	r = make_dir(t, TOP "/mk/b/c/d", CM_MKDIR_PARENTS, &err);
	CHECK_OK(t, r, err, "with parents");
	r = make_dir(t, TOP "/mk/b/c/d", CM_MKDIR_PARENTS, &err);
	CHECK_OK(t, r, err, "with parents, and it is there");
	writes(t, TOP "/mk/f", "x", 0);
	err = (struct cm_error)CM_ERROR_INIT;
	r = make_dir(t, TOP "/mk/f", CM_MKDIR_PARENTS, &err);
	CHECK(t, r < 0 && err.code == r, "where a file is: %s", cm_error_name(r));
}

static int move(struct suite *t, const char *from, const char *to, uint32_t flags,
		struct cm_error *err)
{
	struct cm_call call = suite_call(SUITE_MS);

	return cm_session_move(t->s, from, to, flags, &call, err);
}

static void moves(struct suite *t)
{
	struct cm_error err = CM_ERROR_INIT;
	int r;

	suite_sh_is(t, t->s, "rm -rf " TOP "/mv; mkdir -p " TOP "/mv/d/e", "");
	writes(t, TOP "/mv/a", "a", 0);
	writes(t, TOP "/mv/b", "b", 0);
	r = move(t, TOP "/mv/a", TOP "/mv/b", CM_MOVE_NO_CLOBBER, &err);
	CHECK_CODE(t, r, err, CM_E_EXISTS, "over what is there");
	holds(t, TOP "/mv/a", "a");
	holds(t, TOP "/mv/b", "b");
	r = move(t, TOP "/mv/a", TOP "/mv/b", 0, &err);
	CHECK_OK(t, r, err, "over what is there, on purpose");
	holds(t, TOP "/mv/b", "a");
	r = move(t, TOP "/mv/b", TOP "/mv/new", CM_MOVE_NO_CLOBBER, &err);
	CHECK_OK(t, r, err, "to a new name");
	holds(t, TOP "/mv/new", "a");
	r = move(t, TOP "/mv/d", TOP "/mv/f", 0, &err);
	CHECK_OK(t, r, err, "a directory");
	suite_sh_is(t, t->s, "cd " TOP "/mv; ls -A; ls f", "f\nnew\ne\n");
	err = (struct cm_error)CM_ERROR_INIT;
	r = move(t, TOP "/mv/none", TOP "/mv/x", 0, &err);
	CHECK_CODE(t, r, err, CM_E_NOT_FOUND, "what is not there");
}

static int discard(struct suite *t, const char *path, uint32_t flags, struct cm_error *err)
{
	struct cm_call call = suite_call(SUITE_MS);

	return cm_session_remove(t->s, path, flags, &call, err);
}

static void removes(struct suite *t)
{
	struct cm_error err = CM_ERROR_INIT;
	int r;

	suite_sh_is(t, t->s,
		    "rm -rf " TOP "/rm; mkdir -p " TOP "/rm/d/e; cd " TOP
		    "/rm; echo > f; echo > d/e/g; ln -s d l; echo kept > kept; ln -s ../kept d/out",
		    "");
	r = discard(t, TOP "/rm/f", 0, &err);
	CHECK_OK(t, r, err, "a file");
	r = discard(t, TOP "/rm/f", 0, &err);
	CHECK_CODE(t, r, err, CM_E_NOT_FOUND, "what is not there");
	r = discard(t, TOP "/rm/f", CM_REMOVE_FORCE, &err);
	CHECK_OK(t, r, err, "what is not there, by force");
	r = discard(t, TOP "/rm/d", 0, &err);
	CHECK(t, r < 0 && err.code == r && err.msg[0], "a directory: %s", cm_error_name(r));
	r = discard(t, TOP "/rm/l", 0, &err);
	CHECK_OK(t, r, err, "a link");
	suite_sh_is(t, t->s, "ls -A " TOP "/rm", "d\nkept\n");
	r = discard(t, TOP "/rm/d", CM_REMOVE_RECURSIVE, &err);
	CHECK_OK(t, r, err, "a directory with all in it");
	suite_sh_is(t, t->s, "ls -A " TOP "/rm; cat " TOP "/rm/kept", "kept\nkept\n");
}

static void failures(struct suite *t)
{
	CM_AUTO_BUF struct cm_buf got = { 0 };
	struct cm_error err = CM_ERROR_INIT;
	int r;

	cm_buf_init(&got, MIB);
	r = suite_read(t, TOP "/not/there", &got, &err);
	CHECK_CODE(t, r, err, CM_E_NOT_FOUND, "a file that is not there");
	CHECK(t, got.len == 0, "it had something");
	err = (struct cm_error)CM_ERROR_INIT;
	r = suite_read(t, "/tmp", &got, &err);
	CHECK(t, r < 0 && err.code == r && err.msg[0] && got.len == 0, "a directory is read: %s",
	      cm_error_name(r));
	suite_sh_is(t, t->s, "rm -rf " TOP "/np; mkdir -p " TOP, "");
	err = (struct cm_error)CM_ERROR_INIT;
	r = suite_write(t, "/proc/version", "x", 0, UINT32_MAX, &err);
	CHECK(t, r < 0 && err.code == r && err.msg[0], "what cannot be written: %s",
	      cm_error_name(r));
	suite_sh_is(t, t->s, "echo on", "on\n");
}

const struct test suite_files[] = {
	{ "written, appended, read", CM_CAP_FILES, there_and_back },
	{ "an empty file", CM_CAP_FILES, empty_file },
	{ "a part of a file", CM_CAP_FILES, part_of_it },
	{ "a large one, and no more memory for it", CM_CAP_FILES, large_file },
	{ "of unknown length", CM_CAP_FILES, unknown_length },
	{ "a reader that gives up", CM_CAP_FILES, reader_gives_up },
	{ "atomic, or not at all", CM_CAP_FILES, atomic_write },
	{ "names of any bytes", CM_CAP_FILES, any_names },
	{ "a list, and with what is below", CM_CAP_FILES, recursive_list },
	{ "a list of what is no directory", CM_CAP_FILES, list_anything },
	{ "what cannot be listed", CM_CAP_FILES, list_failures },
	{ "type, mode, size, time and target", CM_CAP_FILES, stat_all },
	{ "modes, and never a set-id bit", CM_CAP_FILES, modes },
	{ "mkdir, with parents and without", CM_CAP_FILES, directories },
	{ "move, over what is there and not", CM_CAP_FILES, moves },
	{ "remove, with what is in it", CM_CAP_FILES, removes },
	{ "what cannot be read or written", CM_CAP_FILES, failures },
	{ NULL, 0, NULL },
};
