/* SPDX-License-Identifier: Apache-2.0 */
/* What a skeleton takes out of a plan, what it leaves there, and what its key tells apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "isolation/plan/skeleton.h"
#include "tests/unit/plan_fixture.h"

#define MAX_TEXT (1UL << 20)
#define MAX_KEY (2UL * CM_PLAN_MAX_STRINGS)

static struct cm_plan_builder builder;
static struct cm_skeleton skeleton;

static struct cm_plan_op *add(enum cm_plan_op_kind kind, const char *target, const char *source,
			      uint32_t flags)
{
	struct cm_plan_op *op = cm_plan_builder_op(&builder, kind);

	op->target = cm_plan_builder_str(&builder, target);
	if (source)
		op->source = cm_plan_builder_str(&builder, source);
	op->flags = flags;
	return op;
}

static void take(struct cm_buf *key)
{
	struct cm_error err = CM_ERROR_INIT;

	cm_buf_init(key, MAX_KEY);
	cm_skeleton_init(&skeleton);
	if (cm_skeleton_take(&builder, &skeleton, &err) != CM_OK)
		fail_msg("%s", err.msg);
	cm_skeleton_key(&builder, &skeleton, key);
	assert_int_equal(cm_buf_status(key), CM_OK);
}

static const char *text_at(uint32_t offset)
{
	return builder.strings.data + offset;
}

/* Targets in order, each with a word before it. */
static void assert_ops(const struct cm_plan_op *ops, uint32_t n, const char *expected)
{
	static const char *const names[CM_OP_COUNT_] = {
		[CM_OP_BIND] = "bind",	       [CM_OP_BIND_INERT] = "inert",
		[CM_OP_TMPFS] = "tmpfs",       [CM_OP_PROC] = "proc",
		[CM_OP_DEVPTS] = "devpts",     [CM_OP_MQUEUE] = "mqueue",
		[CM_OP_CGROUPFS] = "cgroupfs", [CM_OP_DIR] = "dir",
		[CM_OP_FILE] = "file",	       [CM_OP_SYMLINK] = "link",
		[CM_OP_MASK] = "mask",	       [CM_OP_READ_ONLY] = "read-only",
		[CM_OP_SYSCTL] = "sysctl",     [CM_OP_PIN] = "pin",
		[CM_OP_COPY] = "copy",	       [CM_OP_ROOT] = "root",
	};
	CM_AUTO_BUF struct cm_buf text;

	cm_buf_init(&text, MAX_TEXT);
	cm_buf_puts(&text, "");
	for (uint32_t i = 0; i < n; i++) {
		bool is_point = (ops[i].flags & CM_OPF_OPTIONAL) != 0;

		cm_buf_printf(&text, "%s%s%s %s", i == 0 ? "" : "; ", is_point ? "point " : "",
			      names[ops[i].kind], text_at(ops[i].target));
	}
	assert_string_equal(text.data ? text.data : "", expected);
}

static void assert_taken(const char *stays, const char *goes)
{
	CM_AUTO_BUF struct cm_buf key;

	take(&key);
	assert_ops(builder.ops, builder.header.n_ops, stays);
	assert_ops(skeleton.ops, skeleton.n_ops, goes);
}

static int setup(void **state)
{
	(void)state;
	memset(&skeleton, 0, sizeof(skeleton));
	cm_plan_builder_init(&builder);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	cm_plan_builder_clear(&builder);
	return 0;
}

static void test_kinds(void **state)
{
	(void)state;
	add(CM_OP_ROOT, "/", "", CM_OPF_READ_ONLY);
	add(CM_OP_BIND, "/usr", "/usr", CM_OPF_READ_ONLY);
	add(CM_OP_BIND_INERT, "/ro", "/srv", CM_OPF_READ_ONLY);
	add(CM_OP_SYMLINK, "/bin", "usr/bin", 0);
	add(CM_OP_PROC, "/proc", NULL, 0);
	add(CM_OP_SYSCTL, "user/max_user_namespaces", NULL, 0);
	add(CM_OP_DEVPTS, "/dev/pts", NULL, 0);
	add(CM_OP_MQUEUE, "/dev/mqueue", NULL, 0);
	add(CM_OP_CGROUPFS, "/sys/fs/cgroup", NULL, 0);
	add(CM_OP_TMPFS, "/tmp", NULL, 0);
	add(CM_OP_DIR, "/var/cache", NULL, 0);
	add(CM_OP_FILE, "/etc/hosts", NULL, 0);
	add(CM_OP_COPY, "/etc/bash.bashrc", "/etc/bash.bashrc", 0);
	add(CM_OP_PIN, "/usr/share", NULL, 0);
	add(CM_OP_READ_ONLY, "/var/cache", NULL, 0);
	assert_taken("root /; bind /usr; inert /ro; proc /proc; sysctl user/max_user_namespaces; "
		     "devpts /dev/pts; mqueue /dev/mqueue; cgroupfs /sys/fs/cgroup; tmpfs /tmp; "
		     "pin /usr/share; read-only /var/cache",
		     "point dir /usr; point dir /ro; link /bin; point dir /proc; "
		     "point dir /dev/pts; point dir /dev/mqueue; point dir /sys/fs/cgroup; "
		     "point dir /tmp; dir /var/cache; file /etc/hosts; copy /etc/bash.bashrc");
}

/* What stands in another file system is that one's. */
static void test_below_mounts(void **state)
{
	(void)state;
	add(CM_OP_TMPFS, "/run", NULL, 0);
	add(CM_OP_DIR, "/run/lock", NULL, 0);
	add(CM_OP_TMPFS, "/home/alice", NULL, 0);
	add(CM_OP_FILE, "/home/alice/.x", NULL, 0);
	add(CM_OP_SYMLINK, "/home/alice/l", "x", 0);
	add(CM_OP_COPY, "/home/alice/c", "/x", 0);
	add(CM_OP_BIND, "/home/alice/app", "/home/alice/app", 0);
	add(CM_OP_PROC, "/proc", NULL, 0);
	add(CM_OP_MASK, "/proc/acpi", NULL, 0);
	add(CM_OP_READ_ONLY, "/proc/sys", NULL, 0);
	assert_taken("tmpfs /run; dir /run/lock; tmpfs /home/alice; file /home/alice/.x; "
		     "link /home/alice/l; copy /home/alice/c; bind /home/alice/app; proc /proc; "
		     "mask /proc/acpi; read-only /proc/sys",
		     "point dir /run; point dir /home/alice; point dir /proc");
}

/* A name that begins like a mount's, its parents, and a mount's own name. */
static void test_names(void **state)
{
	(void)state;
	add(CM_OP_TMPFS, "/a/run", NULL, 0);
	add(CM_OP_DIR, "/a/runner", NULL, 0);
	add(CM_OP_DIR, "/a/run.d/x", NULL, 0);
	add(CM_OP_DIR, "/a", NULL, 0);
	add(CM_OP_DIR, "/a/run", NULL, 0);
	add(CM_OP_TMPFS, "/a/running", NULL, 0);
	add(CM_OP_DIR, "/run", NULL, 0);
	assert_taken("tmpfs /a/run; dir /a/run; tmpfs /a/running",
		     "point dir /a/run; dir /a/runner; dir /a/run.d/x; dir /a; "
		     "point dir /a/running; dir /run");
}

/* Only what is mounted before a step decides where it stands. */
static void test_order(void **state)
{
	(void)state;
	add(CM_OP_FILE, "/data/before", NULL, 0);
	add(CM_OP_BIND, "/data/deep", "/x", 0);
	add(CM_OP_BIND, "/data", "/y", 0);
	add(CM_OP_FILE, "/data/after", NULL, 0);
	/* over the first, and on that one's file system */
	add(CM_OP_TMPFS, "/data", NULL, 0);
	add(CM_OP_BIND, "/data/deep", "/z", 0);
	add(CM_OP_DIR, "/data/deep/er", NULL, 0);
	assert_taken("bind /data/deep; bind /data; file /data/after; tmpfs /data; "
		     "bind /data/deep; dir /data/deep/er",
		     "file /data/before; point dir /data/deep; point dir /data");
}

static void test_mount_points(void **state)
{
	CM_AUTO_BUF struct cm_buf key;

	(void)state;
	add(CM_OP_BIND, "/dev/null", "/dev/null", CM_OPF_FILE | CM_OPF_DEV | CM_OPF_WRITABLE);
	add(CM_OP_BIND_INERT, "/one", "/srv/one", CM_OPF_FILE | CM_OPF_READ_ONLY);
	add(CM_OP_TMPFS, "/tmp", NULL, CM_OPF_AGENT | CM_OPF_WRITABLE)->mode = 01777;
	take(&key);
	assert_int_equal(skeleton.n_ops, 3);
	for (uint32_t i = 0; i < 3; i++) {
		const struct cm_plan_op *op = &skeleton.ops[i];
		const struct cm_plan_op expected = {
			.kind = i == 2 ? CM_OP_DIR : CM_OP_FILE,
			.mode = i == 2 ? 0755 : 0644,
			.flags = CM_OPF_OPTIONAL,
			.target = builder.ops[i].target,
		};

		/* nothing of the mount but its place */
		assert_memory_equal(op, &expected, sizeof(expected));
	}
}

static void test_use(void **state)
{
	struct cm_plan_op before[5];

	(void)state;
	add(CM_OP_ROOT, "/", NULL, CM_OPF_READ_ONLY);
	add(CM_OP_PROC, "/proc", NULL, 0);
	add(CM_OP_MASK, "/proc/acpi", NULL, CM_OPF_READ_ONLY);
	add(CM_OP_MASK, "/proc/kcore", NULL, CM_OPF_READ_ONLY | CM_OPF_FILE);
	add(CM_OP_BIND, "/usr", "/usr", CM_OPF_READ_ONLY);
	memcpy(before, builder.ops, sizeof(before));
	cm_skeleton_use(&builder, "/run/casemate/skeletons/0-0");
	assert_string_equal(text_at(builder.ops[0].source), "/run/casemate/skeletons/0-0/root");
	assert_string_equal(text_at(builder.ops[2].source), "/run/casemate/skeletons/0-0/dir");
	assert_string_equal(text_at(builder.ops[3].source), "/run/casemate/skeletons/0-0/file");
	before[0].source = builder.ops[0].source;
	before[2].source = builder.ops[2].source;
	before[3].source = builder.ops[3].source;
	assert_memory_equal(before, builder.ops, sizeof(before));
}

/* Texts that do not fit are kept in mind, as the builder's own are. */
static void test_use_overflow(void **state)
{
	static char big[CM_PLAN_MAX_STRINGS];
	CM_AUTO_BUF struct cm_buf flat;

	(void)state;
	cm_buf_init(&flat, 16 * MAX_TEXT);
	memset(big, 'x', sizeof(big));
	add(CM_OP_ROOT, "/", NULL, CM_OPF_READ_ONLY);
	assert_true(cm_plan_builder_blob(&builder, big, sizeof(big) - 100) != 0);
	assert_int_equal(cm_plan_builder_status(&builder, NULL), CM_OK);
	cm_skeleton_use(&builder, "/a/path/that/together/with/the/others/is/just/too/long/for/it/"
				  "/and/with/this/it/really/is");
	assert_int_equal(cm_plan_builder_finish(&builder, &flat, NULL), CM_E_LIMIT);
}

/* --- of whole plans ----------------------------------------------------------------------------- */

static void be_root(struct fixture *f)
{
	fixture_be_root(f);
	cm_workspace_facts_clear(&f->workspace);
	fix_workspace(&f->workspace, "/srv/app", ALICE);
}

static void with_volumes(struct fixture *f)
{
	fix_volume(f, "/srv/cache/npm", "/data/cache/npm", false, ALICE);
	fix_volume(f, "/srv/cache", "/data/cache", true, 0);
	fix_volume(f, "/srv/models", "/home/alice/app/models", true, ALICE);
	fix_volume(f, "/srv/t", "/var/tmp/t", true, ALICE);
}

static void be_lasting(struct fixture *f)
{
	f->req.is_temporary = false;
	f->req.home_dir = "/home/alice/.local/state/casemate/sessions/t1/home";
	f->req.tmp_dir = "/home/alice/.local/state/casemate/sessions/t1/tmp";
	f->req.state_dir = "/home/alice/.local/state/casemate/sessions/t1";
	f->req.socket_path = "/run/user/1001/casemate/s/0011223344556677";
}

static void on_host_network(struct fixture *f)
{
	f->spec.network = CM_NETWORK_HOST;
}

static void as_it_is(struct fixture *f)
{
	(void)f;
}

static void make_plan(struct fixture *f)
{
	struct cm_plan_summary summary = { 0 };
	struct cm_error err = CM_ERROR_INIT;

	cm_plan_builder_clear(&builder);
	cm_plan_builder_init(&builder);
	if (fixture_build(f, &builder, &summary, &err) != CM_OK)
		fail_msg("%s", err.msg);
}

static void assert_all_there(const struct cm_plan_op *all, uint32_t n)
{
	uint32_t stays = 0;
	uint32_t goes = 0;

	for (uint32_t i = 0; i < n; i++) {
		while (goes < skeleton.n_ops && (skeleton.ops[goes].flags & CM_OPF_OPTIONAL) != 0)
			goes++;
		if (stays < builder.header.n_ops &&
		    memcmp(&all[i], &builder.ops[stays], sizeof(all[i])) == 0)
			stays++;
		else if (goes < skeleton.n_ops &&
			 memcmp(&all[i], &skeleton.ops[goes], sizeof(all[i])) == 0)
			goes++;
		else
			fail_msg("step %u is lost: %s", i, text_at(all[i].target));
	}
	while (goes < skeleton.n_ops && (skeleton.ops[goes].flags & CM_OPF_OPTIONAL) != 0)
		goes++;
	assert_int_equal(stays, builder.header.n_ops);
	assert_int_equal(goes, skeleton.n_ops);
}

/* Both parts, each in its order, are the plan; what stays is one that the checker takes. */
static void test_nothing_lost(void **state)
{
	static void (*const changes[])(struct fixture *) = {
		as_it_is, be_root, with_volumes, be_lasting, on_host_network,
	};
	static struct cm_plan_op all[CM_PLAN_MAX_OPS];

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(changes); i++) {
		static struct fixture f;
		struct cm_error err = CM_ERROR_INIT;
		CM_AUTO_BUF struct cm_buf key;
		CM_AUTO_BUF struct cm_buf flat;
		uint32_t n;

		cm_buf_init(&flat, 16 * MAX_TEXT);
		fixture_init(&f);
		changes[i](&f);
		make_plan(&f);
		n = builder.header.n_ops;
		memcpy(all, builder.ops, n * sizeof(all[0]));
		take(&key);
		assert_all_there(all, n);
		/* most of it goes, or all this is for nothing */
		assert_true(skeleton.n_ops > 30);
		for (uint32_t j = 0; j < builder.header.n_ops; j++)
			assert_int_not_equal(builder.ops[j].kind, CM_OP_COPY);
		cm_skeleton_use(&builder, "/run/casemate/skeletons/0-0");
		if (cm_plan_builder_finish(&builder, &flat, &err) != CM_OK)
			fail_msg("%s", err.msg);
		fixture_clear(&f);
	}
}

static void key_of(struct fixture *f, struct cm_buf *key)
{
	make_plan(f);
	take(key);
}

static void another_session(struct fixture *f)
{
	f->req.session_id = "run-another";
}

static void another_slot(struct fixture *f)
{
	f->req.session_id = "run-another";
	f->req.slot_base += CM_ID_SLOT_SIZE;
}

static void other_limits(struct fixture *f)
{
	f->spec.limits.memory = (struct cm_limit){ 1ULL << 30, true, false };
	f->spec.limits.pids = (struct cm_limit){ 64, true, false };
	f->req.generation = 9;
}

static void other_directory(struct fixture *f)
{
	fix_set(&f->workspace.cwd, "/home/alice/app/src");
}

static void another_workspace(struct fixture *f)
{
	cm_workspace_facts_clear(&f->workspace);
	fix_workspace(&f->workspace, "/srv/other", ALICE);
}

static void changed_file(struct fixture *f)
{
	for (size_t i = 0; i < f->tree.etc.n; i++)
		f->tree.etc.v[i].ctime_ns++;
}

static void one_more_in_a_directory(struct fixture *f)
{
	fix_node(&f->tree.etc, "/etc/perl/new", S_IFREG | 0644, 0, NULL);
}

static void one_more_volume(struct fixture *f)
{
	fix_volume(f, "/srv/x", "/mnt/x", true, ALICE);
}

static const struct {
	const char *what;
	void (*first)(struct fixture *f);
	void (*change)(struct fixture *f);
	bool is_same;
} key_cases[] = {
	{ "nothing", as_it_is, as_it_is, true },
	{ "another temporary session", as_it_is, another_session, true },
	{ "another temporary session of root", be_root, another_slot, true },
	{ "other limits", as_it_is, other_limits, true },
	{ "another directory in the workspace", as_it_is, other_directory, true },
	{ "another lasting session", be_lasting, another_session, false },
	{ "a lasting one", as_it_is, be_lasting, false },
	{ "another workspace", as_it_is, another_workspace, false },
	{ "the host's network", as_it_is, on_host_network, false },
	{ "a volume", as_it_is, one_more_volume, false },
	{ "a file of /etc", as_it_is, changed_file, false },
	{ "a file in a directory of /etc", as_it_is, one_more_in_a_directory, false },
};

static void test_key_of_plans(void **state)
{
	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(key_cases); i++) {
		static struct fixture f;
		CM_AUTO_BUF struct cm_buf before;
		CM_AUTO_BUF struct cm_buf after;
		bool is_same;

		fixture_init(&f);
		key_cases[i].first(&f);
		key_of(&f, &before);
		key_cases[i].change(&f);
		key_of(&f, &after);
		is_same =
			before.len == after.len && memcmp(before.data, after.data, after.len) == 0;
		if (is_same != key_cases[i].is_same)
			fail_msg("%s: %s key", key_cases[i].what, is_same ? "the same" : "another");
		fixture_clear(&f);
	}
}

/* --- the key, field by field -------------------------------------------------------------------- */

static struct {
	enum cm_plan_op_kind kind;
	const char *target;
	const char *source;
	const char *content;
	/* the rest: numbers only */
	struct cm_plan_op op;
} steps[2];
static size_t n_steps;

static void default_steps(void)
{
	memset(steps, 0, sizeof(steps));
	n_steps = 2;
	steps[0].kind = CM_OP_FILE;
	steps[0].target = "/etc/a";
	steps[0].source = "";
	steps[0].content = "bc";
	steps[0].op.content_len = 2;
	steps[0].op.mode = 0644;
	steps[1].kind = CM_OP_COPY;
	steps[1].target = "/etc/b";
	steps[1].source = "/etc/b";
	steps[1].content = "";
	steps[1].op.mode = 0644;
	steps[1].op.expect_bytes = 5;
	steps[1].op.expect_dev = 6;
	steps[1].op.expect_ino = 7;
	steps[1].op.expect_ctime_ns = 8;
}

/* pad: a text that no step has, so that all others stand elsewhere */
static void key_of_steps(const char *pad, struct cm_buf *key)
{
	cm_plan_builder_clear(&builder);
	cm_plan_builder_init(&builder);
	(void)cm_plan_builder_str(&builder, pad);
	for (size_t i = 0; i < n_steps; i++) {
		struct cm_plan_op *op = cm_plan_builder_op(&builder, steps[i].kind);

		*op = steps[i].op;
		op->kind = (uint16_t)steps[i].kind;
		op->target = cm_plan_builder_str(&builder, steps[i].target);
		op->source = cm_plan_builder_str(&builder, steps[i].source);
		op->content = cm_plan_builder_blob(&builder, steps[i].content, op->content_len);
	}
	take(key);
}

static void assert_key(bool is_same, int line)
{
	CM_AUTO_BUF struct cm_buf changed;
	CM_AUTO_BUF struct cm_buf key;
	bool is;

	key_of_steps("pad", &changed);
	default_steps();
	key_of_steps("", &key);
	is = key.len == changed.len && memcmp(key.data, changed.data, key.len) == 0;
	if (is != is_same)
		fail_msg("line %d: %s key", line, is ? "the same" : "another");
}

#define OTHER(change)                                                                              \
	do {                                                                                       \
		default_steps();                                                                   \
		change;                                                                            \
		assert_key(false, __LINE__);                                                       \
	} while (0)

static void test_key_fields(void **state)
{
	(void)state;
	default_steps();
	assert_key(true, __LINE__);
	OTHER(steps[0].kind = CM_OP_DIR);
	OTHER(steps[0].kind = CM_OP_SYMLINK);
	OTHER(steps[0].op.mode = 0600);
	OTHER(steps[0].op.flags = CM_OPF_OPTIONAL);
	OTHER(steps[0].target = "/etc/aa");
	OTHER(steps[0].source = "x");
	OTHER(steps[0].content = "bd");
	OTHER(steps[0].op.content_len = 1);
	OTHER(steps[1].op.mode = 0600);
	OTHER(steps[1].target = "/etc/c");
	OTHER(steps[1].source = "/etc/c");
	OTHER(steps[1].op.expect_bytes++);
	OTHER(steps[1].op.expect_dev++);
	OTHER(steps[1].op.expect_ino++);
	OTHER(steps[1].op.expect_ctime_ns++);
	OTHER(steps[1].op.expect_ctime_ns += 1ULL << 32);
	OTHER(n_steps = 1);
	OTHER(n_steps = 0);
	OTHER(steps[1] = steps[0]);
}

/* Where one text ends and the next begins is told, too. */
static void test_key_boundaries(void **state)
{
	CM_AUTO_BUF struct cm_buf one;
	CM_AUTO_BUF struct cm_buf two;

	(void)state;
	default_steps();
	steps[0].target = "/etc/ab";
	steps[0].source = "c";
	key_of_steps("", &one);
	steps[0].target = "/etc/a";
	steps[0].source = "bc";
	key_of_steps("", &two);
	assert_int_equal(one.len, two.len);
	assert_memory_not_equal(one.data, two.data, one.len);
	cm_buf_clear(&one);
	cm_buf_clear(&two);
	default_steps();
	n_steps = 1;
	steps[0].source = "b";
	steps[0].content = "c\0d";
	steps[0].op.content_len = 3;
	key_of_steps("", &one);
	steps[0].content = "c\0e";
	key_of_steps("", &two);
	assert_int_equal(one.len, two.len);
	assert_memory_not_equal(one.data, two.data, one.len);
}

static void test_key_order(void **state)
{
	CM_AUTO_BUF struct cm_buf one;
	CM_AUTO_BUF struct cm_buf two;

	(void)state;
	/* the later one wins where both are at one place */
	add(CM_OP_SYMLINK, "/a", "x", 0);
	add(CM_OP_SYMLINK, "/a", "y", 0);
	take(&one);
	cm_plan_builder_clear(&builder);
	cm_plan_builder_init(&builder);
	add(CM_OP_SYMLINK, "/a", "y", 0);
	add(CM_OP_SYMLINK, "/a", "x", 0);
	take(&two);
	assert_int_equal(one.len, two.len);
	assert_memory_not_equal(one.data, two.data, one.len);
}

/* Another build may make the same steps otherwise. */
static void test_key_build(void **state)
{
	CM_AUTO_BUF struct cm_buf key;

	(void)state;
	take(&key);
	assert_int_equal(key.len, sizeof(cm_build_id));
	assert_memory_equal(key.data, cm_build_id, sizeof(cm_build_id));
}

/* Of a mount only its place and whether it is a file. */
static void test_key_mounts(void **state)
{
	CM_AUTO_BUF struct cm_buf one;
	CM_AUTO_BUF struct cm_buf two;
	CM_AUTO_BUF struct cm_buf file;
	struct cm_plan_op *op;

	(void)state;
	add(CM_OP_BIND, "/w", "/srv/w", 0);
	take(&one);
	cm_plan_builder_clear(&builder);
	cm_plan_builder_init(&builder);
	op = add(CM_OP_TMPFS, "/w", NULL, CM_OPF_WRITABLE | CM_OPF_AGENT);
	op->expect_bytes = 4096;
	op->expect_dev = 6;
	op->expect_ino = 7;
	op->owner_uid = 8;
	op->mode = 0700;
	take(&two);
	assert_int_equal(one.len, two.len);
	assert_memory_equal(one.data, two.data, one.len);
	cm_plan_builder_clear(&builder);
	cm_plan_builder_init(&builder);
	add(CM_OP_BIND, "/w", "/srv/w", CM_OPF_FILE);
	take(&file);
	assert_int_equal(one.len, file.len);
	assert_memory_not_equal(one.data, file.data, one.len);
}

/* --- failures ----------------------------------------------------------------------------------- */

static void assert_refused(int code)
{
	struct cm_error err = CM_ERROR_INIT;
	uint32_t n = builder.header.n_ops;

	skeleton.n_ops = 77;
	assert_int_equal(cm_skeleton_take(&builder, &skeleton, &err), code);
	assert_int_equal(err.code, code);
	assert_true(err.msg[0] != '\0');
	assert_int_equal(skeleton.n_ops, 77);
	assert_int_equal(builder.header.n_ops, n);
}

static void test_too_many_steps(void **state)
{
	CM_AUTO_BUF struct cm_buf key;
	char path[32];

	(void)state;
	for (unsigned int i = 0; i < CM_PLAN_MAX_OPS; i++) {
		(void)snprintf(path, sizeof(path), "/m%u", i);
		add(CM_OP_TMPFS, path, NULL, 0);
	}
	/* each with a mount point: as many as there can be */
	take(&key);
	assert_int_equal(skeleton.n_ops, CM_PLAN_MAX_OPS);
	assert_int_equal(builder.header.n_ops, CM_PLAN_MAX_OPS);
	add(CM_OP_DIR, "/one-more", NULL, 0);
	assert_refused(CM_E_LIMIT);
}

/* What the first go has taken leaves room in the plan, and none in the skeleton. */
static void test_too_many_in_two_goes(void **state)
{
	char path[32];

	(void)state;
	cm_skeleton_init(&skeleton);
	for (unsigned int i = 0; i < CM_PLAN_MAX_OPS - 1; i++) {
		(void)snprintf(path, sizeof(path), "/d%u", i);
		add(CM_OP_DIR, path, NULL, 0);
	}
	assert_int_equal(cm_skeleton_take(&builder, &skeleton, NULL), CM_OK);
	assert_int_equal(builder.header.n_ops, 0);
	add(CM_OP_DIR, "/last", NULL, 0);
	add(CM_OP_DIR, "/one-more", NULL, 0);
	assert_int_equal(cm_skeleton_take(&builder, &skeleton, NULL), CM_E_LIMIT);
	assert_int_equal(skeleton.n_ops, CM_PLAN_MAX_OPS - 1);
	assert_int_equal(builder.header.n_ops, 2);
}

static void test_too_much_text(void **state)
{
	static char big[CM_PLAN_MAX_STRINGS];

	(void)state;
	memset(big, 'x', sizeof(big));
	add(CM_OP_DIR, "/a", NULL, 0);
	(void)cm_plan_builder_blob(&builder, big, sizeof(big));
	assert_refused(CM_E_LIMIT);
}

static void test_key_too_long(void **state)
{
	CM_AUTO_BUF struct cm_buf key;

	(void)state;
	cm_buf_init(&key, 40);
	add(CM_OP_DIR, "/a", NULL, 0);
	cm_skeleton_init(&skeleton);
	assert_int_equal(cm_skeleton_take(&builder, &skeleton, NULL), CM_OK);
	cm_skeleton_key(&builder, &skeleton, &key);
	assert_int_equal(cm_buf_status(&key), CM_E_LIMIT);
}

/* In two goes as in one: what was taken first is not taken again, and its mounts still count. */
static void test_in_two_goes(void **state)
{
	CM_AUTO_BUF struct cm_buf whole;
	CM_AUTO_BUF struct cm_buf parts;

	(void)state;
	cm_buf_init(&parts, MAX_KEY);
	for (int n_goes = 1; n_goes <= 2; n_goes++) {
		struct cm_buf *key = n_goes == 1 ? &whole : &parts;

		cm_plan_builder_clear(&builder);
		cm_plan_builder_init(&builder);
		cm_skeleton_init(&skeleton);
		add(CM_OP_TMPFS, "/run", NULL, 0);
		add(CM_OP_DIR, "/a", NULL, 0);
		if (n_goes == 2)
			assert_int_equal(cm_skeleton_take(&builder, &skeleton, NULL), CM_OK);
		add(CM_OP_DIR, "/run/b", NULL, 0);
		add(CM_OP_BIND, "/c", "/srv", 0);
		assert_int_equal(cm_skeleton_take(&builder, &skeleton, NULL), CM_OK);
		cm_buf_init(key, MAX_KEY);
		cm_skeleton_key(&builder, &skeleton, key);
		assert_int_equal(builder.header.n_ops, 3);
		assert_int_equal(skeleton.n_ops, 3);
	}
	assert_int_equal(whole.len, parts.len);
	assert_memory_equal(whole.data, parts.data, whole.len);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_kinds),
		T(test_below_mounts),
		T(test_names),
		T(test_order),
		T(test_mount_points),
		T(test_use),
		T(test_use_overflow),
		T(test_nothing_lost),
		T(test_key_of_plans),
		T(test_key_fields),
		T(test_key_boundaries),
		T(test_key_order),
		T(test_key_build),
		T(test_key_mounts),
		T(test_too_many_steps),
		T(test_too_much_text),
		T(test_key_too_long),
		T(test_in_two_goes),
		T(test_too_many_in_two_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
