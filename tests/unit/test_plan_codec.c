/* SPDX-License-Identifier: Apache-2.0 */
/* The plan's flat form: round trip, every rule of the checker alone, every cut and flipped bit. */
#include "isolation/plan/plan.h"
#include "tests/unit/test_base.h"

#define FLAT_MAX (2UL * 1024 * 1024)
#define SLOT(n) (CM_ID_SLOT_BASE + (n)*CM_ID_SLOT_SIZE)

static struct cm_plan_builder builder;

static void fill_header(struct cm_plan_builder *b)
{
	struct cm_plan_header *h = &b->header;

	h->flags = CM_PLANF_NETNS | CM_PLANF_TEMPORARY;
	h->idmap = CM_IDMAP_SLOT;
	h->uid_base = SLOT(3);
	h->gid_base = SLOT(3);
	h->hostname = cm_plan_builder_str(b, "t1");
	h->session_id = cm_plan_builder_str(b, "T-1.x_y");
	h->cpuset = cm_plan_builder_str(b, "0-1");
	h->cgroup = CM_CGROUP_V1;
	h->cgroup_controllers = CM_CG_MEMORY | CM_CG_PIDS;
	h->cgroup_required = CM_CG_MEMORY | CM_CG_SWAP;
	h->cgroup_base = cm_plan_builder_str(b, "/a\n/b\n\n\n\n\n");
	h->seccomp = CM_SECCOMP_DEFAULT;
	h->landlock_abi = 7;
	h->newuidmap_args = cm_plan_builder_str(b, "0 1 1");
	h->newgidmap_args = cm_plan_builder_str(b, "0 2 1");
	h->socket_path = cm_plan_builder_str(b, "/run/s");
	h->state_dir = cm_plan_builder_str(b, "/var/s");
	h->generation = 5;
	h->limits = (struct cm_plan_limits){ 1, UINT64_MAX, 3, 4, 5, 6 };
}

static void fill_ops(struct cm_plan_builder *b)
{
	static const char content[] = "line\n\0\x1b[m";
	struct cm_plan_op *op = cm_plan_builder_op(b, CM_OP_TMPFS);

	op->target = cm_plan_builder_str(b, "/tmp");
	b->header.tmpfs_bytes = 4096;
	b->header.tmpfs_inodes = 10;
	op->mode = 01777;
	op = cm_plan_builder_op(b, CM_OP_BIND);
	op->source = cm_plan_builder_str(b, "/srv/x y");
	op->target = cm_plan_builder_str(b, "/work.d/..x");
	op->flags = CM_OPF_IDMAP | CM_OPF_WRITABLE;
	op->owner_uid = 7;
	op->owner_gid = 8;
	op->expect_dev = 9;
	op->expect_ino = 10;
	op = cm_plan_builder_op(b, CM_OP_FILE);
	op->target = cm_plan_builder_str(b, "/etc/f");
	op->mode = 0644;
	op->content = cm_plan_builder_blob(b, content, sizeof(content) - 1);
	op->content_len = sizeof(content) - 1;
	op = cm_plan_builder_op(b, CM_OP_SYSCTL);
	op->target = cm_plan_builder_str(b, "net/ipv4/x_y-z.1");
	op->content = cm_plan_builder_str(b, "1");
	op->content_len = 1;
	op->flags = CM_OPF_TRY;
	op = cm_plan_builder_op(b, CM_OP_CGROUPFS);
	op->source = cm_plan_builder_str(b, "memory");
	op->target = cm_plan_builder_str(b, "/sys/fs/cgroup/memory");
	op = cm_plan_builder_op(b, CM_OP_SYMLINK);
	op->source = cm_plan_builder_str(b, "../usr/bin");
	op->target = cm_plan_builder_str(b, "/bin");
}

enum {
	OP_TMPFS,
	OP_BIND,
	OP_FILE,
	OP_SYSCTL,
	OP_CGROUPFS,
	OP_SYMLINK,
};

static void begin(void)
{
	cm_plan_builder_init(&builder);
	fill_header(&builder);
	fill_ops(&builder);
}

/* The valid plan, owned by the caller. */
static char *make_flat(size_t *ret_len)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_buf out;

	begin();
	cm_buf_init(&out, FLAT_MAX);
	if (cm_plan_builder_finish(&builder, &out, &err) != CM_OK)
		fail_msg("%s", err.msg);
	cm_plan_builder_clear(&builder);
	*ret_len = out.len;
	return cm_buf_take(&out);
}

static char *print(const void *data, size_t len)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_plan plan;
	struct cm_buf out;

	if (cm_plan_check(data, len, &plan, &err) != CM_OK)
		fail_msg("%s", err.msg);
	cm_buf_init(&out, FLAT_MAX);
	cm_plan_print(&plan, &out);
	return cm_buf_take(&out);
}

static void test_round_trip(void **state)
{
	size_t len = 0;
	CM_AUTO_FREE char *flat = make_flat(&len);
	char *copy = malloc(len);
	CM_AUTO_FREE char *first = print(flat, len);
	CM_AUTO_FREE char *second = NULL;
	struct cm_plan plan;

	(void)state;
	assert_non_null(copy);
	memcpy(copy, flat, len);
	second = print(copy, len);
	assert_string_equal(first, second);
	assert_int_equal(cm_plan_check(copy, len, &plan, NULL), CM_OK);
	assert_int_equal(plan.header->n_ops, 6);
	assert_string_equal(cm_plan_str(&plan, plan.header->session_id), "T-1.x_y");
	assert_string_equal(cm_plan_str(&plan, plan.ops[OP_BIND].source), "/srv/x y");
	assert_int_equal(plan.ops[OP_BIND].expect_ino, 10);
	assert_int_equal(plan.header->limits.core_bytes, 6);
	assert_memory_equal(cm_plan_str(&plan, plan.ops[OP_FILE].content), "line\n\0\x1b[m", 9);
	assert_string_equal(cm_plan_str(&plan, 0), "");
	free(copy);
}

static void test_printed(void **state)
{
	size_t len = 0;
	CM_AUTO_FREE char *flat = make_flat(&len);
	CM_AUTO_FREE char *text = print(flat, len);

	(void)state;
	assert_string_equal(text, "session T-1.x_y hostname t1\n"
				  "ids slot 1879244800:1879244800\n"
				  "network none\n"
				  "user user\n"
				  "cgroup 1 controllers=0x3 required=0x81\n"
				  "seccomp default landlock 7\n"
				  "limit memory 1\n"
				  "limit pids 3\n"
				  "limit cpu-milli 4\n"
				  "limit open-files 5\n"
				  "limit core 6\n"
				  "limit tmpfs 4096\n"
				  "limit tmpfs-inodes 10\n"
				  "cpuset 0-1\n"
				  "tmpfs /tmp mode=1777\n"
				  "bind /work.d/..x <- /srv/x y idmap writable owner=7:8\n"
				  "file /etc/f mode=0644 content=line\\x0a\\x00\\x1b[m\n"
				  "sysctl net/ipv4/x_y-z.1 try content=1\n"
				  "cgroupfs /sys/fs/cgroup/memory <- memory\n"
				  "symlink /bin <- ../usr/bin\n");
}

static void test_profiles_printed(void **state)
{
	static const char *const lines[CM_SECCOMP_COUNT_] = {
		[CM_SECCOMP_DEFAULT] = "\nseccomp default landlock 7\n",
		[CM_SECCOMP_STRICT] = "\nseccomp strict landlock 7\n",
		[CM_SECCOMP_NO_UNIX] = "\nseccomp no-unix landlock 7\n",
	};

	(void)state;
	for (uint32_t p = CM_SECCOMP_DEFAULT; p < CM_SECCOMP_COUNT_; p++) {
		CM_AUTO_BUF struct cm_buf flat;
		CM_AUTO_FREE char *text = NULL;

		cm_buf_init(&flat, FLAT_MAX);
		begin();
		builder.header.seccomp = p;
		assert_int_equal(cm_plan_builder_finish(&builder, &flat, NULL), CM_OK);
		cm_plan_builder_clear(&builder);
		text = print(flat.data, flat.len);
		assert_non_null(strstr(text, lines[p]));
	}
}

static void test_smallest(void **state)
{
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_BUF struct cm_buf out;

	(void)state;
	cm_plan_builder_init(&builder);
	builder.header.idmap = CM_IDMAP_SINGLE;
	builder.header.uid_base = builder.header.gid_base = 1;
	builder.header.seccomp = CM_SECCOMP_STRICT;
	builder.header.session_id = cm_plan_builder_str(&builder, "a");
	/* nothing is at 0, and nothing is added for it */
	assert_int_equal(cm_plan_builder_str(&builder, ""), 0);
	assert_int_equal(cm_plan_builder_str(&builder, NULL), 0);
	cm_buf_init(&out, FLAT_MAX);
	assert_int_equal(cm_plan_builder_finish(&builder, &out, &err), CM_OK);
	assert_int_equal(out.len, sizeof(struct cm_plan_header) + 3);
	cm_plan_builder_clear(&builder);
}

/* --- one rule broken at a time ---------------------------------------------------------------- */

/* Finishes what begin() made and somebody changed; it must be refused for `reason` alone. */
static void assert_refused(const char *reason)
{
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_BUF struct cm_buf out;
	char message[128];

	cm_buf_init(&out, FLAT_MAX);
	if (cm_plan_builder_finish(&builder, &out, &err) != CM_E_PROTOCOL)
		fail_msg("taken, not refused as '%s'", reason);
	(void)snprintf(message, sizeof(message), "malformed plan: %s", reason);
	assert_string_equal(err.msg, message);
	cm_plan_builder_clear(&builder);
}

static void assert_taken(void)
{
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_BUF struct cm_buf out;

	cm_buf_init(&out, FLAT_MAX);
	if (cm_plan_builder_finish(&builder, &out, &err) != CM_OK)
		fail_msg("%s", err.msg);
	cm_plan_builder_clear(&builder);
}

static void test_host_id_0(void **state)
{
	static const uint32_t maps[] = { CM_IDMAP_SINGLE, CM_IDMAP_SUBIDS };

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(maps); i++) {
		for (int k = 0; k < 3; k++) {
			begin();
			builder.ops[OP_BIND].flags &= ~CM_OPF_IDMAP;
			builder.header.idmap = maps[i];
			builder.header.uid_base = k == 0 ? 0 : 1000;
			builder.header.gid_base = k == 1 ? 0 : 1000;
			if (k == 2)
				assert_taken();
			else
				assert_refused("host id 0 would be mapped");
		}
	}
}

static void test_slots(void **state)
{
	static const struct {
		uint32_t uid;
		uint32_t gid;
		bool is_good;
	} rows[] = {
		{ SLOT(0), SLOT(0), true },
		{ SLOT(CM_ID_SLOTS - 1), SLOT(CM_ID_SLOTS - 1), true },
		/* what is of mirrors */
		{ SLOT(CM_ID_SLOT_MIRRORS), SLOT(CM_ID_SLOT_MIRRORS), true },
		{ SLOT(CM_ID_SLOTS + 1), SLOT(CM_ID_SLOTS + 1), false },
		{ SLOT(0) - CM_ID_SLOT_SIZE, SLOT(0) - CM_ID_SLOT_SIZE, false },
		{ 0, 0, false },
		{ 65536, 65536, false },
		{ SLOT(1) + 1, SLOT(1) + 1, false },
		{ SLOT(1) - 1, SLOT(1) - 1, false },
		{ SLOT(1), SLOT(2), false },
		{ UINT32_MAX, UINT32_MAX, false },
		{ 0xffff0000, 0xffff0000, false },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		begin();
		builder.header.uid_base = rows[i].uid;
		builder.header.gid_base = rows[i].gid;
		if (rows[i].is_good)
			assert_taken();
		else
			assert_refused("not a slot of ids");
	}
}

static void test_idmap(void **state)
{
	static const uint32_t unknown[] = { 0, CM_IDMAP_SUBIDS + 1, UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(unknown); i++) {
		begin();
		builder.header.idmap = unknown[i];
		assert_refused("unknown id map");
	}
	begin();
	builder.header.idmap = CM_IDMAP_SUBIDS;
	assert_refused("mapped mount without a range of ids");
	/* whatever the step is */
	for (size_t op = 0; op <= OP_SYMLINK; op++) {
		begin();
		builder.header.idmap = CM_IDMAP_SUBIDS;
		builder.ops[OP_BIND].flags &= ~CM_OPF_IDMAP;
		builder.ops[op].flags |= CM_OPF_IDMAP;
		assert_refused("mapped mount without a range of ids");
	}
	begin();
	builder.header.flags |= CM_PLANF_ROOT_USER;
	assert_taken();
	begin();
	builder.ops[OP_BIND].flags &= ~CM_OPF_IDMAP;
	builder.header.flags |= CM_PLANF_ROOT_USER;
	builder.header.idmap = CM_IDMAP_SINGLE;
	assert_refused("root inside without an id for it");
}

static void test_header(void **state)
{
	(void)state;
	for (unsigned int bit = 3; bit < 32; bit++) {
		begin();
		builder.header.flags |= 1U << bit;
		assert_refused("unknown flag");
	}
	begin();
	builder.header.magic ^= 1;
	assert_refused("bad magic");
	begin();
	builder.header.seccomp = 0;
	assert_refused("unknown system-call profile");
	begin();
	builder.header.seccomp = CM_SECCOMP_COUNT_;
	assert_refused("unknown system-call profile");
	begin();
	builder.header.cgroup = CM_CGROUP_V2 + 1;
	assert_refused("bad control groups");
	begin();
	builder.header.cgroup_controllers |= 1U << CM_CG_N;
	assert_refused("bad control groups");
	/* a limit that must be enforced, by a controller that was not asked for */
	begin();
	builder.header.cgroup_required |= CM_CG_CPU;
	assert_refused("bad control groups");
	begin();
	builder.header.cgroup_required |= 1U << 8;
	assert_refused("bad control groups");
}

static void test_build_id(void **state)
{
	struct cm_error err = CM_ERROR_INIT;
	size_t len = 0;
	CM_AUTO_FREE char *flat = make_flat(&len);
	struct cm_plan plan = { 0 };

	(void)state;
	for (size_t i = 0; i < CM_PLAN_BUILD_ID_SIZE; i++) {
		struct cm_plan_header *h = (struct cm_plan_header *)(void *)flat;

		h->build_id[i] ^= 1;
		assert_int_equal(cm_plan_check(flat, len, &plan, &err), CM_E_PROTOCOL);
		assert_string_equal(err.msg, "the installation is mixed: client and keeper are of "
					     "different builds");
		assert_non_null(strstr(err.hint, "install casemate again"));
		assert_null(plan.header);
		h->build_id[i] ^= 1;
	}
	assert_int_equal(cm_plan_check(flat, len, &plan, &err), CM_OK);
}

static void test_session_ids(void **state)
{
	static const char *const bad[] = { "",	  ".a", "-a",	     "a/b", "a b",
					   "a\n", "..", "a\xc3\xa9", "a:b", "a%b" };
	static const char *const good[] = { "a", "9", "_a", "a-", "A.b_c-d" };
	char text[130];

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++) {
		begin();
		builder.header.session_id = cm_plan_builder_str(&builder, bad[i]);
		assert_refused("bad session id");
	}
	for (size_t i = 0; i < CM_ARRAY_SIZE(good); i++) {
		begin();
		builder.header.session_id = cm_plan_builder_str(&builder, good[i]);
		assert_taken();
	}
	memset(text, 'a', sizeof(text));
	text[129] = '\0';
	begin();
	builder.header.session_id = cm_plan_builder_str(&builder, text);
	assert_refused("bad session id");
	text[128] = '\0';
	begin();
	builder.header.session_id = cm_plan_builder_str(&builder, text);
	assert_taken();
}

/* What newuidmap and newgidmap are called with. */
static void test_id_ranges(void **state)
{
	static const char *const bad[] = {
		"",
		"0",
		"0 1",
		"0 1 ",
		"0 1 1 ",
		" 0 1 1",
		"0  1 1",
		"0 1 1 1",
		"0 1 1\n",
		"0 1 1,1 2 1",
		"-1 1 1",
		"0 -1 1",
		"0 +1 1",
		"0 0x1 1",
		"a b c",
		"--help 1 1",
		/* host root, alone and in a range */
		"0 0 1",
		"0 00 1",
		"0 1000 1 1 0 1",
		"1 1000 1 0 0 65535",
		/* no ids at all */
		"0 1 0",
		/* past what is mapped inside */
		"65536 1 1",
		"65535 1 2",
		"0 1 65537",
		"4294967296 1 1",
		"18446744073709551616 1 1",
		/* round the end, to host root again; the id that is none */
		"0 4294967295 1",
		"0 4294967294 2",
		"0 4294967296 1",
		"0 18446744073709551617 1",
		"0 1 18446744073709551617",
		/* one too many */
		"0 1 1 1 2 1 2 3 1 3 4 1 4 5 1 5 6 1 6 7 1 7 8 1 8 9 1",
	};
	static const char *const good[] = {
		"0 1 1",
		"0 100000 1000 1000 1000 1 1001 101000 64535",
		"0 1 65536",
		"65535 4294967294 1",
		"0 1 1 1 2 1 2 3 1 3 4 1 4 5 1 5 6 1 6 7 1 7 8 1",
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad) + CM_ARRAY_SIZE(good); i++) {
		bool is_bad = i < CM_ARRAY_SIZE(bad);
		const char *text = is_bad ? bad[i] : good[i - CM_ARRAY_SIZE(bad)];

		for (int is_gid = 0; is_gid < 2; is_gid++) {
			begin();
			builder.ops[OP_BIND].flags &= ~CM_OPF_IDMAP;
			builder.header.idmap = CM_IDMAP_SUBIDS;
			builder.header.uid_base = builder.header.gid_base = 1000;
			*(is_gid ? &builder.header.newgidmap_args
				 : &builder.header.newuidmap_args) =
				cm_plan_builder_str(&builder, text);
			if (is_bad)
				assert_refused("bad ranges of ids");
			else
				assert_taken();
		}
	}
}

static void test_paths(void **state)
{
	static const char *const bad[] = {
		"",	 "a",	   "./a",  "/.", "/..", "/a/..", "/a/../b",
		"/../a", "/a/./b", "/a/.", "//", "//a", "/a//b", "/a/",
	};
	static const char *const good[] = { "/a", "/...", "/..a", "/a..", "/.a", "/a b\n", "/-" };
	static const int kinds[] = { CM_OP_BIND, CM_OP_BIND_INERT, CM_OP_COPY };
	char text[300];

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++) {
		for (size_t op = 0; op <= OP_SYMLINK; op++) {
			if (op == OP_SYSCTL)
				continue;
			begin();
			builder.ops[op].target = cm_plan_builder_str(&builder, bad[i]);
			assert_refused("target is not a clean absolute path");
		}
		for (size_t k = 0; k < CM_ARRAY_SIZE(kinds); k++) {
			begin();
			builder.ops[OP_BIND].kind = (uint16_t)kinds[k];
			builder.ops[OP_BIND].source = cm_plan_builder_str(&builder, bad[i]);
			assert_refused("source is not a clean absolute path");
		}
	}
	for (size_t i = 0; i < CM_ARRAY_SIZE(good); i++) {
		begin();
		builder.ops[OP_BIND].target = cm_plan_builder_str(&builder, good[i]);
		builder.ops[OP_BIND].source = builder.ops[OP_BIND].target;
		assert_taken();
	}
	/* the root may be shown, but never be the place */
	begin();
	builder.ops[OP_BIND].source = cm_plan_builder_str(&builder, "/");
	assert_taken();
	begin();
	builder.ops[OP_BIND].target = cm_plan_builder_str(&builder, "/");
	assert_refused("target is not a clean absolute path");
	memset(text, 'a', sizeof(text));
	text[0] = '/';
	text[257] = '\0';
	begin();
	builder.ops[OP_BIND].target = cm_plan_builder_str(&builder, text);
	assert_refused("target is not a clean absolute path");
	text[256] = '\0';
	begin();
	builder.ops[OP_BIND].target = cm_plan_builder_str(&builder, text);
	assert_taken();
}

static void test_relative_names(void **state)
{
	static const char *const bad[] = { "/a",  "..", "a/../b", "a/..", "a b",
					   "a\n", "a*", "a\x80",  "../a" };
	char text[130];

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(bad); i++) {
		begin();
		builder.ops[OP_SYSCTL].target = cm_plan_builder_str(&builder, bad[i]);
		assert_refused("bad sysctl name");
		begin();
		builder.ops[OP_CGROUPFS].source = cm_plan_builder_str(&builder, bad[i]);
		assert_refused("bad controller name");
	}
	begin();
	builder.ops[OP_SYSCTL].target = 0;
	assert_refused("bad sysctl name");
	/* v2 has no controller's name */
	begin();
	builder.ops[OP_CGROUPFS].source = 0;
	assert_taken();
	memset(text, 'a', sizeof(text));
	text[128] = '\0';
	begin();
	builder.ops[OP_SYSCTL].target = cm_plan_builder_str(&builder, text);
	assert_refused("bad sysctl name");
	text[127] = '\0';
	begin();
	builder.ops[OP_SYSCTL].target = cm_plan_builder_str(&builder, text);
	assert_taken();
}

static void test_steps(void **state)
{
	static const uint16_t set_id[] = { 04000, 02000, 06755, 02755 };

	(void)state;
	for (uint32_t kind = 0; kind < 0x10000; kind += kind < 40 ? 1 : 997) {
		if (kind > 0 && kind < CM_OP_COUNT_)
			continue;
		begin();
		builder.ops[OP_FILE].kind = (uint16_t)kind;
		assert_refused("unknown step");
	}
	for (unsigned int bit = 10; bit < 32; bit++) {
		begin();
		builder.ops[OP_FILE].flags |= 1U << bit;
		assert_refused("unknown flag");
	}
	for (unsigned int bit = 12; bit < 16; bit++) {
		begin();
		builder.ops[OP_FILE].mode |= (uint16_t)(1U << bit);
		assert_refused("unknown flag");
	}
	for (size_t i = 0; i < CM_ARRAY_SIZE(set_id); i++) {
		begin();
		builder.ops[OP_FILE].mode = set_id[i];
		assert_refused("set-id mode");
	}
	begin();
	builder.header.tmpfs_bytes = 0;
	assert_refused("tmpfs without bounds");
	begin();
	builder.header.tmpfs_inodes = 0;
	assert_refused("tmpfs without bounds");
}

static void test_times(void **state)
{
	uint64_t *const times[] = { &builder.header.idle_ms, &builder.header.lifetime_ms };
	CM_AUTO_BUF struct cm_buf out;

	(void)state;
	cm_buf_init(&out, FLAT_MAX);
	for (size_t i = 0; i < CM_ARRAY_SIZE(times); i++) {
		begin();
		builder.header.flags &= ~CM_PLANF_TEMPORARY;
		*times[i] = CM_PLAN_MAX_MS;
		cm_buf_reset(&out);
		assert_int_equal(cm_plan_builder_finish(&builder, &out, NULL), CM_OK);
		cm_plan_builder_clear(&builder);
		begin();
		builder.header.flags &= ~CM_PLANF_TEMPORARY;
		*times[i] = CM_PLAN_MAX_MS + 1;
		assert_refused("bad times of a session");
		begin();
		builder.header.flags |= CM_PLANF_TEMPORARY;
		*times[i] = 1;
		assert_refused("bad times of a session");
	}
}

static void test_offsets(void **state)
{
	uint32_t *const header[] = {
		&builder.header.hostname,	&builder.header.session_id,
		&builder.header.cpuset,		&builder.header.cgroup_base,
		&builder.header.newuidmap_args, &builder.header.newgidmap_args,
		&builder.header.socket_path,	&builder.header.state_dir,
	};
	uint32_t *const op[] = {
		&builder.ops[OP_FILE].source,
		&builder.ops[OP_FILE].target,
		&builder.ops[OP_FILE].content,
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(header); i++) {
		begin();
		*header[i] = (uint32_t)builder.strings.len;
		assert_refused("text outside the table");
		begin();
		*header[i] = UINT32_MAX;
		assert_refused("text outside the table");
	}
	for (size_t i = 0; i < CM_ARRAY_SIZE(op); i++) {
		begin();
		*op[i] = (uint32_t)builder.strings.len;
		assert_refused("text outside the table");
		begin();
		*op[i] = UINT32_MAX;
		assert_refused("text outside the table");
	}
}

static void test_content(void **state)
{
	struct cm_plan_op *op = &builder.ops[OP_FILE];

	(void)state;
	begin();
	op->content_len = (uint32_t)builder.strings.len - op->content;
	assert_refused("content outside the table");
	/* up to the table's own NUL, which is not content */
	begin();
	op->content_len = (uint32_t)builder.strings.len - op->content - 1;
	assert_taken();
	begin();
	op->content_len = UINT32_MAX;
	assert_refused("content outside the table");
	begin();
	op->content = (uint32_t)builder.strings.len - 1;
	op->content_len = 0;
	assert_taken();
	begin();
	op->content = (uint32_t)builder.strings.len - 1;
	op->content_len = 1;
	assert_refused("content outside the table");
}

static void assert_flat_refused(const void *data, size_t len, const char *reason)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_plan plan = { 0 };
	char message[128];

	assert_int_equal(cm_plan_check(data, len, &plan, &err), CM_E_PROTOCOL);
	(void)snprintf(message, sizeof(message), "malformed plan: %s", reason);
	assert_string_equal(err.msg, message);
	/* written on success only */
	assert_null(plan.header);
	assert_null(plan.ops);
	assert_null(plan.strings);
}

static void test_flat(void **state)
{
	size_t len = 0;
	CM_AUTO_FREE char *flat = make_flat(&len);
	char *longer = calloc(1, len + 16);
	struct cm_plan_header *h = (struct cm_plan_header *)(void *)flat;
	size_t strings_at = sizeof(*h) + h->n_ops * sizeof(struct cm_plan_op);

	(void)state;
	assert_non_null(longer);
	assert_flat_refused(flat, 0, "too short");
	assert_flat_refused(flat, sizeof(*h) - 1, "too short");
	memcpy(longer, flat, len);
	assert_flat_refused(longer, len + 1, "sizes do not add up");
	/* a place that no structure may stand at */
	memcpy(longer + 4, flat, len);
	assert_flat_refused(longer + 4, len, "too short");
	free(longer);
	flat[strings_at] = 'x';
	assert_flat_refused(flat, len, "texts are not terminated");
	flat[strings_at] = '\0';
	flat[len - 1] = 'x';
	assert_flat_refused(flat, len, "texts are not terminated");
	flat[len - 1] = '\0';
	h->n_ops++;
	assert_flat_refused(flat, len, "sizes do not add up");
	h->n_ops = UINT32_MAX;
	assert_flat_refused(flat, len, "sizes do not add up");
	h->n_ops = 6;
	h->strings_len--;
	assert_flat_refused(flat, len, "sizes do not add up");
	h->strings_len = 0;
	assert_flat_refused(flat, len, "sizes do not add up");
	h->strings_len = (uint32_t)(len - strings_at);
	h->size++;
	assert_flat_refused(flat, len, "sizes do not add up");
	h->size--;
	assert_int_equal(cm_plan_check(flat, len, &(struct cm_plan){ 0 }, NULL), CM_OK);
}

/* What is taken holds to the rules, and can be printed. */
static void check_any(const char *data, size_t len)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_plan plan = { 0 };
	struct cm_buf out;
	int r = cm_plan_check(data, len, &plan, &err);

	if (r != CM_OK) {
		assert_int_equal(r, CM_E_PROTOCOL);
		assert_null(plan.header);
		assert_true(err.msg[0] != '\0');
		return;
	}
	cm_buf_init(&out, FLAT_MAX);
	cm_plan_print(&plan, &out);
	assert_int_equal(cm_buf_status(&out), CM_OK);
	cm_buf_clear(&out);
}

static void test_every_cut(void **state)
{
	size_t len = 0;
	CM_AUTO_FREE char *flat = make_flat(&len);

	(void)state;
	for (size_t cut = 0; cut < len; cut++) {
		/* exactly as large, so that a sanitizer sees a byte too many read */
		char *copy = malloc(cut ? cut : 1);
		struct cm_plan plan;

		assert_non_null(copy);
		memcpy(copy, flat, cut);
		assert_int_equal(cm_plan_check(copy, cut, &plan, NULL), CM_E_PROTOCOL);
		/* also when it says so itself */
		if (cut >= sizeof(struct cm_plan_header)) {
			((struct cm_plan_header *)(void *)copy)->size = (uint32_t)cut;
			check_any(copy, cut);
		}
		free(copy);
	}
}

static void test_every_bit(void **state)
{
	size_t len = 0;
	CM_AUTO_FREE char *flat = make_flat(&len);
	size_t n_taken = 0;

	(void)state;
	for (size_t i = 0; i < len; i++) {
		for (unsigned int bit = 0; bit < 8; bit++) {
			struct cm_plan plan;

			flat[i] = (char)(flat[i] ^ (1 << bit));
			check_any(flat, len);
			n_taken += cm_plan_check(flat, len, &plan, NULL) == CM_OK;
			flat[i] = (char)(flat[i] ^ (1 << bit));
		}
		/* and every byte at its ends */
		for (int k = 0; k < 2; k++) {
			char before = flat[i];

			flat[i] = k == 0 ? '\0' : '\xff';
			check_any(flat, len);
			flat[i] = before;
		}
	}
	/* neither refuses all nor takes all */
	assert_in_range(n_taken, 100, len * 8 - 500);
}

static void test_too_much(void **state)
{
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_BUF struct cm_buf out;
	static char text[1000];

	(void)state;
	cm_buf_init(&out, FLAT_MAX);
	begin();
	while (builder.header.n_ops < CM_PLAN_MAX_OPS) {
		struct cm_plan_op *op = cm_plan_builder_op(&builder, CM_OP_DIR);

		op->target = builder.ops[0].target;
	}
	assert_int_equal(cm_plan_builder_finish(&builder, &out, &err), CM_OK);
	assert_non_null(cm_plan_builder_op(&builder, CM_OP_DIR));
	assert_int_equal(cm_plan_builder_finish(&builder, &out, &err), CM_E_LIMIT);
	assert_string_equal(err.msg, "the plan needs more than 512 steps");
	cm_plan_builder_clear(&builder);
	begin();
	memset(text, 'a', sizeof(text) - 1);
	for (int i = 0; i < 2000; i++)
		(void)cm_plan_builder_str(&builder, text);
	assert_int_equal(cm_plan_builder_str(&builder, "a"), 0);
	assert_int_equal(cm_plan_builder_finish(&builder, &out, &err), CM_E_LIMIT);
	assert_string_equal(err.msg, "the plan's texts are larger than 1048576 bytes");
	cm_plan_builder_clear(&builder);
}

static bool build_once(void *data)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_buf out;
	int r;

	(void)data;
	begin();
	cm_buf_init(&out, FLAT_MAX);
	r = cm_plan_builder_finish(&builder, &out, &err);
	if (r != CM_OK)
		assert_int_equal(r, CM_E_NOMEM);
	cm_plan_builder_clear(&builder);
	cm_buf_clear(&out);
	return r == CM_OK;
}

static void test_no_memory(void **state)
{
	(void)state;
	assert_in_range(fail_each_allocation(build_once, NULL), 2, 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_printed),
		cmocka_unit_test(test_profiles_printed),
		cmocka_unit_test(test_smallest),
		cmocka_unit_test(test_host_id_0),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_idmap),
		cmocka_unit_test(test_header),
		cmocka_unit_test(test_build_id),
		cmocka_unit_test(test_session_ids),
		cmocka_unit_test(test_id_ranges),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_relative_names),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_offsets),
		cmocka_unit_test(test_content),
		cmocka_unit_test(test_flat),
		cmocka_unit_test(test_every_cut),
		cmocka_unit_test(test_every_bit),
		cmocka_unit_test(test_too_much),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
