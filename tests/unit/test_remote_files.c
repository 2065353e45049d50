/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a session by its shell, under dash with GNU's programs and under busybox. */
#include "providers/remote/shell_files.h"

#include <sched.h>
#include <sys/mount.h>
#include <time.h>

#include "providers/remote/shell_files_internal.h"
#include "tests/unit/fake_provider.h"
#include "tests/unit/test_base.h"

#include "runtime/base/clock.h"

#define NOBODY 65534
/* all that a name can have */
#define ODD "-n \n'\"$(id)`*?[\\\xff\xfe é"
#define BIG (700UL * 1024)

static struct fake_provider fake;
static char small_disk[64];

static int open_dash(void **state)
{
	(void)state;
	return fake_provider_open(&fake, "dash") ? 0 : -1;
}

static int open_busybox(void **state)
{
	(void)state;
	if (!fake_provider_open(&fake, "busybox"))
		fake.top[0] = '\0';
	return 0;
}

static int close_fake(void **state)
{
	(void)state;
	if (fake.top[0] != '\0')
		fake_provider_close(&fake);
	return 0;
}

static void need_session(void)
{
	if (fake.top[0] == '\0')
		skip();
}

static char *below(const char *name)
{
	char *path = cm_asprintf("%s/%s", fake.work, name);

	assert_non_null(path);
	return path;
}

static void put(const char *name, const char *text)
{
	CM_AUTO_FREE char *path = below(name);

	make_file(AT_FDCWD, path, text);
}

static void put_dir(const char *name)
{
	CM_AUTO_FREE char *path = below(name);

	assert_int_equal(mkdir(path, 0755), 0);
}

static void put_link(const char *name, const char *target)
{
	CM_AUTO_FREE char *path = below(name);

	assert_int_equal(symlink(target, path), 0);
}

static struct stat look(const char *name)
{
	CM_AUTO_FREE char *path = below(name);
	struct stat st = { .st_mode = 0 };

	(void)lstat(path, &st);
	return st;
}

static bool has(const char *name)
{
	return look(name).st_mode != 0;
}

/* --- reading --------------------------------------------------------------------------------- */

static int take(void *data, const void *bytes, size_t len)
{
	cm_buf_append(data, bytes, len);
	return 0;
}

static int read_some(const char *path, uint64_t offset, uint64_t length, struct cm_buf *out)
{
	const struct cm_read_request request = {
		.offset = offset, .length = length, .take = take, .data = out
	};
	const struct cm_call call = fake_call();
	struct cm_error err = CM_ERROR_INIT;

	cm_buf_init(out, 16UL * 1024 * 1024);
	return cm_shell_read(&fake.session, path, &request, &call, &err);
}

static void expect(const char *path, uint64_t offset, uint64_t length, const char *want)
{
	CM_AUTO_BUF struct cm_buf out = { 0 };

	assert_int_equal(read_some(path, offset, length, &out), CM_OK);
	assert_string_equal(out.data ? out.data : "", want);
}

static void expect_not(const char *path, int code)
{
	CM_AUTO_BUF struct cm_buf out = { 0 };

	assert_int_equal(read_some(path, 0, UINT64_MAX, &out), code);
}

static int refuse(void *data, const void *bytes, size_t len)
{
	(void)data;
	(void)bytes;
	(void)len;
	return -EPIPE;
}

static void test_read(void **state)
{
	const struct cm_read_request refused = { .length = UINT64_MAX, .take = refuse };
	const struct cm_call call = fake_call();
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_FREE char *path = NULL;

	(void)state;
	need_session();
	put(ODD, "0123456789");
	expect(ODD, 0, UINT64_MAX, "0123456789");
	expect(ODD, 3, UINT64_MAX, "3456789");
	expect(ODD, 0, 2, "01");
	expect(ODD, 9, 5, "9");
	expect(ODD, 10, 5, "");
	expect(ODD, 1000, UINT64_MAX, "");
	path = below(ODD);
	expect(path, 4, 3, "456");
	expect_not("missing", CM_E_NOT_FOUND);
	expect_not("missing/x", CM_E_NOT_FOUND);
	expect_not(ODD "/x", CM_E_INVALID);
	expect_not("", CM_E_INVALID);
	expect_not(".", CM_E_INVALID);
	expect_not("/dev/zero", CM_E_INVALID);
	put_link("nowhere", "gone");
	expect_not("nowhere", CM_E_NOT_FOUND);
	put_dir("closed");
	put("closed/x", "x");
	free(cm_ptr_take(&path));
	path = below("closed");
	assert_int_equal(chmod(path, 0), 0);
	expect_not("closed/x", CM_E_DENIED);
	assert_int_equal(chmod(path, 0755), 0);
	assert_int_equal(cm_shell_read(&fake.session, ODD, &refused, &call, &err), CM_E_SYS);
	assert_int_equal(err.sys_errno, EPIPE);
}

/* --- writing --------------------------------------------------------------------------------- */

struct source {
	const char *text;
	size_t len;
	size_t at;
	/* it fails there */
	size_t broken_at;
};

static ssize_t fill(void *data, void *buf, size_t size)
{
	struct source *s = data;
	size_t n = s->len - s->at;

	if (s->broken_at > 0 && s->at >= s->broken_at)
		return -EIO;
	if (n > size)
		n = size;
	if (n > 5000)
		n = 5000;
	for (size_t i = 0; i < n; i++)
		((unsigned char *)buf)[i] = s->text ? (unsigned char)s->text[s->at + i]
						    : (unsigned char)((s->at + i) % 251);
	s->at += n;
	return (ssize_t)n;
}

static int write_source(const char *path, struct source *source, uint32_t flags, uint32_t mode,
			int64_t len, struct cm_error *err)
{
	const struct cm_call call = fake_call();
	const struct cm_write_request request = {
		.flags = flags, .mode = mode, .fill = fill, .data = source, .len = len
	};

	*err = (struct cm_error)CM_ERROR_INIT;
	return cm_shell_write(&fake.session, path, &request, &call, err);
}

static int write_text(const char *path, const char *text, uint32_t flags, uint32_t mode)
{
	struct source source = { .text = text, .len = strlen(text) };
	struct cm_error err;

	return write_source(path, &source, flags, mode, (int64_t)source.len, &err);
}

static void check_big(const char *name)
{
	CM_AUTO_BUF struct cm_buf out = { 0 };

	assert_int_equal(read_some(name, 0, UINT64_MAX, &out), CM_OK);
	assert_int_equal(out.len, BIG);
	for (size_t i = 0; i < BIG; i++)
		assert_int_equal((unsigned char)out.data[i], i % 251);
}

static size_t count_work(void)
{
	return count_entries(fake.work);
}

static void try_write(void)
{
	struct source big = { .len = BIG };
	struct cm_error err;

	assert_int_equal(write_text(ODD, "one", 0, 0640), CM_OK);
	expect(ODD, 0, UINT64_MAX, "one");
	assert_int_equal(look(ODD).st_mode & 07777, 0640);
	/* over what is there, whose mode stays */
	assert_int_equal(write_text(ODD, "2", 0, 0600), CM_OK);
	expect(ODD, 0, UINT64_MAX, "2");
	assert_int_equal(look(ODD).st_mode & 07777, 0640);
	assert_int_equal(write_text(ODD, "", 0, 0600), CM_OK);
	expect(ODD, 0, UINT64_MAX, "");
	assert_int_equal(write_text(ODD, "a", CM_WRITE_APPEND, UINT32_MAX), CM_OK);
	assert_int_equal(write_text(ODD, "b\n", CM_WRITE_APPEND, UINT32_MAX), CM_OK);
	assert_int_equal(write_text(ODD, "c", CM_WRITE_APPEND | CM_WRITE_ATOMIC, UINT32_MAX),
			 CM_OK);
	expect(ODD, 0, UINT64_MAX, "ab\nc");
	assert_int_equal(write_text(ODD, "new", CM_WRITE_ATOMIC, 0600), CM_OK);
	expect(ODD, 0, UINT64_MAX, "new");
	assert_int_equal(look(ODD).st_mode & 07777, 0640);
	/* no set-id bits */
	assert_int_equal(write_text("suid", "x", 0, 06755), CM_OK);
	assert_int_equal(look("suid").st_mode & 07777, 0755);
	assert_int_equal(write_text("usual", "x", 0, UINT32_MAX), CM_OK);
	assert_int_equal(look("usual").st_mode & 07777, 0644);
	assert_int_equal(write_text("p/q/r", "x", 0, UINT32_MAX), CM_E_NOT_FOUND);
	assert_int_equal(write_text("p/q/r", "deep", CM_WRITE_PARENTS, UINT32_MAX), CM_OK);
	expect("p/q/r", 0, UINT64_MAX, "deep");
	assert_int_equal(write_text("p/q/r/s", "x", CM_WRITE_PARENTS, UINT32_MAX), CM_E_INVALID);
	assert_int_equal(write_text("p", "x", 0, UINT32_MAX), CM_E_INVALID);
	assert_int_equal(write_text("p/", "x", 0, UINT32_MAX), CM_E_INVALID);
	assert_int_equal(write_text("/etc/casemate-no", "x", 0, UINT32_MAX), CM_E_DENIED);
	/* of a length that is known, and of one that is not */
	assert_int_equal(write_source("big", &big, 0, UINT32_MAX, (int64_t)BIG, &err), CM_OK);
	check_big("big");
	big.at = 0;
	assert_int_equal(write_source("big2", &big, 0, UINT32_MAX, -1, &err), CM_OK);
	check_big("big2");
	big.at = 0;
	assert_int_equal(write_source("big2", &big, CM_WRITE_ATOMIC, UINT32_MAX, -1, &err), CM_OK);
	check_big("big2");
	big.at = 0;
	assert_int_equal(write_source("big", &big, 0, UINT32_MAX, -1, &err), CM_OK);
	check_big("big");
}

/* What is given up leaves nothing, and what was there as it was. */
static void try_give_up(void)
{
	struct source broken = { .len = BIG, .broken_at = 400UL * 1024 };
	struct source at_once = { .len = 10, .broken_at = 5 };
	struct cm_error err;
	size_t before = count_work();

	assert_int_equal(write_source("gone", &broken, 0, UINT32_MAX, (int64_t)BIG, &err),
			 CM_E_SYS);
	assert_int_equal(err.sys_errno, EIO);
	broken.at = 0;
	assert_int_equal(write_source("gone", &broken, 0, UINT32_MAX, -1, &err), CM_E_SYS);
	broken.at = 0;
	assert_int_equal(write_source(ODD, &broken, CM_WRITE_ATOMIC, UINT32_MAX, -1, &err),
			 CM_E_SYS);
	at_once.at = 5;
	assert_int_equal(write_source(ODD, &at_once, 0, UINT32_MAX, -1, &err), CM_E_SYS);
	expect(ODD, 0, UINT64_MAX, "new");
	/* another length than was said */
	at_once = (struct source){ .len = BIG };
	if ((fake.base.caps & CM_CAP_STDIN) != 0)
		assert_int_equal(
			write_source("gone", &at_once, 0, UINT32_MAX, (int64_t)BIG + 1, &err),
			CM_E_SYS);
	assert_false(has("gone"));
	assert_int_equal(count_work(), before);
}

static void test_write(void **state)
{
	(void)state;
	need_session();
	try_write();
	try_give_up();
}

static void test_write_by_arguments(void **state)
{
	(void)state;
	need_session();
	fake.base.caps &= ~(uint32_t)CM_CAP_STDIN;
	try_write();
	try_give_up();
}

static void test_full(void **state)
{
	CM_AUTO_FREE char *path = cm_asprintf("%s/x", small_disk);
	struct source big = { .len = 3UL * 1024 * 1024 };
	struct cm_error err;

	(void)state;
	need_session();
	if (small_disk[0] == '\0')
		skip();
	assert_int_equal(write_source(path, &big, 0, UINT32_MAX, (int64_t)big.len, &err),
			 CM_E_LIMIT);
	assert_int_equal(count_entries(small_disk), 0);
}

/* --- lists ----------------------------------------------------------------------------------- */

struct found {
	char lines[32][300];
	size_t n;
	int stop_after;
};

static int add(void *data, const struct cm_path_info *info)
{
	struct found *f = data;

	assert_true(f->n < CM_ARRAY_SIZE(f->lines));
	(void)snprintf(f->lines[f->n++], sizeof(f->lines[0]), "%s %d %o %llu %s", info->path,
		       (int)info->type, info->mode,
		       info->type == CM_PATH_FILE ? (unsigned long long)info->size : 0ULL,
		       info->target ? info->target : "-");
	assert_true(info->mtime_sec > 1600000000 && info->mtime_sec < 4000000000);
	assert_true(info->mtime_nsec < 1000000000);
	assert_non_null(info->owner);
	return f->stop_after > 0 && (int)f->n >= f->stop_after ? 17 : 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

static int list(const char *path, uint32_t flags, struct found *f)
{
	const struct cm_call call = fake_call();
	struct cm_error err = CM_ERROR_INIT;
	int r = cm_shell_list(&fake.session, path, flags, add, f, &call, &err);

	qsort(f->lines, f->n, sizeof(f->lines[0]), by_text);
	return r;
}

static void test_list(void **state)
{
	struct found f = { .n = 0 };
	CM_AUTO_FREE char *path = below("d/closed");

	(void)state;
	need_session();
	put_dir("d");
	assert_int_equal(list("d", 0, &f), CM_OK);
	assert_int_equal(f.n, 0);
	put("d/" ODD, "12345");
	put("d/.hidden", "");
	put_dir("d/[x]");
	put("d/[x]/..y", "1");
	put_link("d/" ODD ODD, "to\nit\n");
	assert_int_equal(list("d", 0, &f), CM_OK);
	assert_int_equal(f.n, 4);
	assert_string_equal(f.lines[0], ODD " 1 600 5 -");
	assert_string_equal(f.lines[1], ODD ODD " 3 777 0 to\nit\n");
	assert_string_equal(f.lines[2], ".hidden 1 600 0 -");
	assert_string_equal(f.lines[3], "[x] 2 755 0 -");
	f.n = 0;
	assert_int_equal(list("d/", CM_LIST_RECURSIVE, &f), CM_OK);
	assert_int_equal(f.n, 5);
	assert_string_equal(f.lines[4], "[x]/..y 1 600 1 -");
	f.n = 0;
	assert_int_equal(list("d/[x]", CM_LIST_RECURSIVE, &f), CM_OK);
	assert_int_equal(f.n, 1);
	assert_string_equal(f.lines[0], "..y 1 600 1 -");
	/* through a link at the top, and none below */
	put_link("l", "d");
	put_link("d/[x]/out", "/");
	f.n = 0;
	assert_int_equal(list("l", CM_LIST_RECURSIVE, &f), CM_OK);
	assert_int_equal(f.n, 6);
	f.n = 0;
	f.stop_after = 2;
	assert_int_equal(list("l", CM_LIST_RECURSIVE, &f), 17);
	assert_int_equal(f.n, 2);
	f.n = 0;
	f.stop_after = 0;
	assert_int_equal(list("missing", 0, &f), CM_E_NOT_FOUND);
	assert_int_equal(list("d/.hidden", 0, &f), CM_E_INVALID);
	assert_int_equal(mkdir(path, 0), 0);
	assert_int_equal(list("d/closed", 0, &f), CM_E_DENIED);
	assert_int_equal(f.n, 0);
	assert_int_equal(list("d", CM_LIST_RECURSIVE, &f), CM_E_DENIED);
	assert_int_equal(f.n, 7);
	assert_int_equal(chmod(path, 0700), 0);
}

static int stat_one(const char *path, uint32_t flags, struct found *f)
{
	const struct cm_call call = fake_call();
	struct cm_error err = CM_ERROR_INIT;

	f->n = 0;
	return cm_shell_stat(&fake.session, path, flags, add, f, &call, &err);
}

static void test_stat(void **state)
{
	struct found f = { .n = 0 };
	CM_AUTO_FREE char *path = below(ODD);

	(void)state;
	need_session();
	put(ODD, "123");
	/* in a jail no set-id bit can be made */
	assert_true(chmod(path, 04711) == 0 || (errno == EPERM && chmod(path, 0711) == 0));
	assert_int_equal(stat_one(ODD, 0, &f), CM_OK);
	assert_int_equal(f.n, 1);
	assert_string_equal(f.lines[0], ODD " 1 711 3 -");
	put_link("l", ODD);
	assert_int_equal(stat_one("l", 0, &f), CM_OK);
	assert_string_equal(f.lines[0], "l 3 777 0 " ODD);
	assert_int_equal(stat_one("l", CM_STAT_FOLLOW, &f), CM_OK);
	assert_string_equal(f.lines[0], "l 1 711 3 -");
	put_link("b", "nowhere");
	assert_int_equal(stat_one("b", 0, &f), CM_OK);
	assert_int_equal(stat_one("b", CM_STAT_FOLLOW, &f), CM_E_NOT_FOUND);
	assert_int_equal(stat_one("/", 0, &f), CM_OK);
	assert_int_equal(stat_one("none", 0, &f), CM_E_NOT_FOUND);
	assert_int_equal(stat_one("l/x", 0, &f), CM_E_INVALID);
}

/* --- changes --------------------------------------------------------------------------------- */

static int make(const char *path, uint32_t flags, uint32_t mode)
{
	const struct cm_call call = fake_call();
	struct cm_error err = CM_ERROR_INIT;

	return cm_shell_mkdir(&fake.session, path, flags, mode, &call, &err);
}

static void test_mkdir(void **state)
{
	(void)state;
	need_session();
	assert_int_equal(make(ODD, 0, 0750), CM_OK);
	assert_int_equal(look(ODD).st_mode, S_IFDIR | 0750);
	assert_int_equal(make(ODD, 0, UINT32_MAX), CM_E_EXISTS);
	assert_int_equal(make(ODD, CM_MKDIR_PARENTS, UINT32_MAX), CM_OK);
	assert_int_equal(make("a/b/c", 0, UINT32_MAX), CM_E_NOT_FOUND);
	assert_int_equal(make("a/b/c/", CM_MKDIR_PARENTS, 06700), CM_OK);
	assert_int_equal(look("a/b/c").st_mode, S_IFDIR | 0700);
	assert_int_equal(look("a/b").st_mode, S_IFDIR | 0755);
	put("f", "");
	assert_int_equal(make("f", CM_MKDIR_PARENTS, UINT32_MAX), CM_E_EXISTS);
	assert_int_equal(make("f/x", CM_MKDIR_PARENTS, UINT32_MAX), CM_E_INVALID);
	assert_int_equal(make("f/x", 0, UINT32_MAX), CM_E_INVALID);
	assert_int_equal(make("/etc/casemate-no", 0, UINT32_MAX), CM_E_DENIED);
	assert_int_equal(make("/etc/casemate-no/x", CM_MKDIR_PARENTS, UINT32_MAX), CM_E_DENIED);
}

static int move(const char *from, const char *to, uint32_t flags)
{
	const struct cm_call call = fake_call();
	struct cm_error err = CM_ERROR_INIT;

	return cm_shell_move(&fake.session, from, to, flags, &call, &err);
}

static void test_move(void **state)
{
	(void)state;
	need_session();
	put(ODD, "1");
	put("b", "2");
	assert_int_equal(move(ODD, "b", CM_MOVE_NO_CLOBBER), CM_E_EXISTS);
	assert_int_equal(move(ODD, "b", 0), CM_OK);
	assert_false(has(ODD));
	expect("b", 0, UINT64_MAX, "1");
	assert_int_equal(move("b", "new" ODD, CM_MOVE_NO_CLOBBER), CM_OK);
	assert_int_equal(move("b", "c", 0), CM_E_NOT_FOUND);
	put("f", "f");
	put_dir("d");
	put_dir("full");
	put("full/x", "x");
	/* never into a directory */
	assert_int_equal(move("f", "d", 0), CM_E_INVALID);
	assert_int_equal(move("d", "f", 0), CM_E_INVALID);
	assert_int_equal(move("d", "full", 0), CM_E_EXISTS);
	assert_int_equal(move("full", "d", 0), CM_OK);
	expect("d/x", 0, UINT64_MAX, "x");
	put_link("l", "d");
	assert_int_equal(move("f", "l", 0), CM_OK);
	assert_true(S_ISREG(look("l").st_mode));
	assert_false(has("d/f"));
	assert_int_equal(move("l", "no/such", 0), CM_E_NOT_FOUND);
	assert_int_equal(move("l", "l", 0), CM_OK);
	assert_true(has("l"));
	assert_int_equal(move("d", "d", 0), CM_OK);
	assert_true(has("d/x"));
	assert_int_equal(move("d", "d/e", 0), CM_E_SYS);
	assert_int_equal(move("l", "/etc/casemate-no", 0), CM_E_DENIED);
}

static void test_move_message(void **state)
{
	static const struct {
		const char *from;
		const char *to;
		uint32_t flags;
		int code;
		const char *msg;
	} cases[] = {
		{ "f", "dd", 0, CM_E_INVALID, "cannot move 'f' to 'dd': 'dd' is a directory" },
		{ "f", "dd/", 0, CM_E_INVALID, "cannot move 'f' to 'dd/': 'dd/' is a directory" },
		{ "f", "x/", 0, CM_E_INVALID, "cannot move 'f' to 'x/': 'x/' is no directory" },
		{ "dd", "f", 0, CM_E_INVALID, "cannot move 'dd' to 'f': 'f' is no directory" },
		{ "dd", "full", 0, CM_E_EXISTS, "cannot move 'dd' to 'full': 'full' is not empty" },
		{ "f", "g", CM_MOVE_NO_CLOBBER, CM_E_EXISTS,
		  "cannot move 'f' to 'g': 'g' is there" },
		{ "f", "no/x", 0, CM_E_NOT_FOUND,
		  "cannot move 'f' to 'no/x': the directory of 'no/x' is not there" },
		{ "no", "x", 0, CM_E_NOT_FOUND, "cannot move 'no': it is not there" },
	};
	const struct cm_call call = fake_call();

	(void)state;
	need_session();
	put("f", "f");
	put("g", "g");
	put_dir("dd");
	put_dir("full");
	put("full/x", "x");
	for (size_t i = 0; i < CM_ARRAY_SIZE(cases); i++) {
		struct cm_error err = CM_ERROR_INIT;

		assert_int_equal(cm_shell_move(&fake.session, cases[i].from, cases[i].to,
					       cases[i].flags, &call, &err),
				 cases[i].code);
		assert_string_equal(err.msg, cases[i].msg);
	}
	assert_true(has("f") && has("g") && has("dd") && has("full/x"));
}

static int take_away(const char *path, uint32_t flags)
{
	const struct cm_call call = fake_call();
	struct cm_error err = CM_ERROR_INIT;

	return cm_shell_remove(&fake.session, path, flags, &call, &err);
}

static void test_remove(void **state)
{
	(void)state;
	need_session();
	put(ODD, "1");
	put_dir("d");
	put("d/.x", "1");
	put_link("l", "d");
	assert_int_equal(take_away(ODD, 0), CM_OK);
	assert_int_equal(take_away(ODD, 0), CM_E_NOT_FOUND);
	assert_int_equal(take_away(ODD, CM_REMOVE_FORCE), CM_OK);
	assert_int_equal(take_away("d", 0), CM_E_INVALID);
	/* a link, and not what it leads to */
	assert_int_equal(take_away("l/", CM_REMOVE_RECURSIVE), CM_OK);
	assert_true(has("d/.x"));
	assert_int_equal(take_away("d/.x/y", CM_REMOVE_FORCE), CM_OK);
	assert_int_equal(take_away(".", CM_REMOVE_RECURSIVE), CM_E_INVALID);
	assert_int_equal(take_away("d/..", CM_REMOVE_RECURSIVE), CM_E_INVALID);
	assert_int_equal(take_away("/", CM_REMOVE_RECURSIVE), CM_E_INVALID);
	assert_int_equal(take_away("d/", CM_REMOVE_RECURSIVE), CM_OK);
	assert_false(has("d"));
	put_dir("e");
	assert_int_equal(take_away("e", 0), CM_E_INVALID);
	assert_int_equal(take_away("e", CM_REMOVE_FORCE), CM_E_INVALID);
	assert_true(has("e"));
	assert_int_equal(take_away("e", CM_REMOVE_RECURSIVE), CM_OK);
	assert_false(has("e"));
	assert_int_equal(take_away("/etc/passwd", CM_REMOVE_FORCE), CM_E_DENIED);
}

/* --- watching -------------------------------------------------------------------------------- */

struct seen {
	unsigned int step;
	char text[2048];
};

static int on_event(void *data, const struct cm_watch_event *event)
{
	static const char *const names[] = {
		[CM_WATCH_READY] = "ready",	  [CM_WATCH_CREATED] = "created",
		[CM_WATCH_MODIFIED] = "modified", [CM_WATCH_ATTRIBUTES] = "attributes",
		[CM_WATCH_REMOVED] = "removed",	  [CM_WATCH_RENAMED] = "renamed",
		[CM_WATCH_OVERFLOW] = "overflow"
	};
	struct seen *s = data;
	size_t len = strlen(s->text);
	CM_AUTO_FREE char *path = below("d/" ODD);
	CM_AUTO_FREE char *dir = below("d");

	(void)snprintf(s->text + len, sizeof(s->text) - len, "%s %s|", names[event->kind],
		       event->path);
	if (event->kind == CM_WATCH_READY) {
		put("d/" ODD, "1");
	} else if (event->kind == CM_WATCH_CREATED && s->step == 0) {
		s->step = 1;
		put("d/" ODD, "12");
	} else if (event->kind == CM_WATCH_MODIFIED && s->step == 1) {
		s->step = 2;
		assert_int_equal(unlink(path), 0);
	} else if (event->kind == CM_WATCH_REMOVED && s->step == 2) {
		s->step = 3;
		assert_int_equal(rmdir(dir), 0);
	}
	return 0;
}

/* One that is not what it should be: the tree is listed once a second. */
static void hide_inotifywait(void)
{
	CM_AUTO_FREE char *dir = cm_asprintf("%s/before", fake.top);
	CM_AUTO_FREE char *path = cm_asprintf("%s/inotifywait", dir);
	CM_AUTO_FREE char *old = cm_strdup(fake.path);

	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(symlink("/bin/false", path), 0);
	(void)snprintf(fake.path, sizeof(fake.path), "%s:%s", dir, old);
}

static void try_watch(void)
{
	const struct cm_call call = fake_call();
	struct cm_error err = CM_ERROR_INIT;
	struct seen s = { .step = 0 };
	int r;

	put_dir("d");
	r = cm_shell_watch(&fake.session, "d", on_event, &s, &call, &err);
	if (r < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(s.step, 3);
	assert_int_equal(strncmp(s.text, "ready |", 7), 0);
	assert_non_null(strstr(s.text, "created " ODD "|"));
	assert_int_equal(cm_shell_watch(&fake.session, "d", on_event, &s, &call, &err),
			 CM_E_NOT_FOUND);
}

static void test_watch(void **state)
{
	(void)state;
	need_session();
	try_watch();
}

static void test_watch_by_lists(void **state)
{
	(void)state;
	need_session();
	hide_inotifywait();
	try_watch();
}

static int stop_at(void *data, const struct cm_watch_event *event)
{
	(void)data;
	return event->kind == CM_WATCH_READY ? 23 : 0;
}

static void test_watch_ends(void **state)
{
	struct cm_call call = fake_call();
	struct cm_error err = CM_ERROR_INIT;
	struct seen s = { .step = 9 };
	int fds[2];

	(void)state;
	need_session();
	put("f", "x");
	assert_int_equal(cm_shell_watch(&fake.session, ".", stop_at, NULL, &call, &err), 23);
	assert_int_equal(cm_shell_watch(&fake.session, "f", stop_at, NULL, &call, &err), 23);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], "x", 1), 1);
	call.cancel_fd = fds[0];
	put_dir("d");
	assert_int_equal(cm_shell_watch(&fake.session, "d", on_event, &s, &call, &err),
			 CM_E_CANCELLED);
	close(fds[0]);
	close(fds[1]);
}

/* --- lies ------------------------------------------------------------------------------------ */

static void test_lies(void **state)
{
#define LIE(text)                                                                                  \
	{                                                                                          \
		text, sizeof(text) - 1, NULL, 0                                                    \
	}
	static const struct fake_answer answers[] = {
		LIE("f\000644\0001"),
		LIE("f\000999\0001\0001\0\0\0\0x\0"),
		LIE("f\000644\000-1\0001\0\0\0\0x\0"),
		LIE("f\000644\00099999999999999999999\0001\0\0\0\0x\0"),
		LIE("f\000644\0001\00099999999999999999999\0\0\0\0x\0"),
		LIE("f\000644\0001\0001.x\0\0\0\0x\0"),
		LIE("file\000644\0001\0001\0\0\0\0x\0"),
		LIE("\0\0\0\0\0\0\0\0"),
		LIE("nothing of the kind"),
	};
#undef LIE
	static char endless[CM_SHELL_ENTRY_MAX + 100];
	static struct fake_answer long_one = { endless, sizeof(endless), NULL, 0 };

	(void)state;
	memset(endless, 'x', sizeof(endless));
	for (size_t i = 0; i <= CM_ARRAY_SIZE(answers); i++) {
		struct found f = { .n = 0 };

		fake.answers = i < CM_ARRAY_SIZE(answers) ? &answers[i] : &long_one;
		fake.n_answers = 1;
		assert_int_equal(list("d", 0, &f), CM_E_PROTOCOL);
		assert_int_equal(f.n, 0);
	}
	{
		static const struct fake_answer nothing = { "", 0, NULL, 0 };
		static const struct fake_answer other = { "x\0/\0", 4, NULL, 0 };
		const struct cm_call call = fake_call();
		struct cm_error err = CM_ERROR_INIT;
		struct found f = { .n = 0 };

		fake.answers = &nothing;
		fake.n_answers = 1;
		assert_int_equal(stat_one("d", 0, &f), CM_E_PROTOCOL);
		fake.answers = &other;
		fake.n_answers = 1;
		assert_int_equal(cm_shell_watch(&fake.session, "d", stop_at, NULL, &call, &err),
				 CM_E_PROTOCOL);
	}
}

static void make_small_disk(void)
{
	(void)snprintf(small_disk, sizeof(small_disk), "/tmp/cm-test-small-XXXXXX");
	if (geteuid() != 0 || !mkdtemp(small_disk)) {
		small_disk[0] = '\0';
		return;
	}
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", small_disk, "tmpfs", 0, "size=1m,mode=0777") < 0) {
		(void)rmdir(small_disk);
		small_disk[0] = '\0';
	}
}

#define DASH(test) cmocka_unit_test_setup_teardown(test, open_dash, close_fake)
#define BOTH(test) DASH(test), cmocka_unit_test_setup_teardown(test, open_busybox, close_fake)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(test_read),       BOTH(test_write), BOTH(test_write_by_arguments),
		BOTH(test_full),       BOTH(test_list),	 BOTH(test_stat),
		BOTH(test_mkdir),      BOTH(test_move),	 BOTH(test_move_message),
		BOTH(test_remove),     BOTH(test_watch), BOTH(test_watch_by_lists),
		BOTH(test_watch_ends), DASH(test_lies),
	};
	int failed;
	pid_t pid;
	int status = 1;

	(void)umask(022);
	make_small_disk();
	/* what the user may not do is tested, too */
	pid = fork();
	if (pid == 0) {
		if (geteuid() == 0 && (setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
				       setresuid(NOBODY, NOBODY, NOBODY) < 0))
			_exit(1);
		failed = cmocka_run_group_tests_name("remote_files", tests, NULL, NULL);
		exit(failed == 0 ? 0 : 1);
	}
	if (pid > 0)
		(void)waitpid(pid, &status, 0);
	if (small_disk[0] != '\0') {
		(void)umount2(small_disk, MNT_DETACH);
		(void)rmdir(small_disk);
	}
	return status == 0 ? 0 : 1;
}
