/* SPDX-License-Identifier: Apache-2.0 */
/* The order of a plan, and its steps in words. */
#include "isolation/plan/build.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "isolation/plan/build_internal.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"

/* An unbounded tmpfs would hold half of the machine's memory. */
#define MIN_TMPFS_BYTES (16ULL * 1024 * 1024)
#define MAX_TMPFS_INODES (1024ULL * 1024)
/* of one file of ours, in bytes */
#define MAX_TEXT (512UL * 1024)
#define USUAL_TEXT 2000

struct cm_plan_op *cm_build_bind(struct cm_build *build, const char *source, const char *target,
				 uint32_t flags)
{
	struct cm_plan_op *op = cm_plan_builder_op(build->b, CM_OP_BIND);

	op->source = cm_plan_builder_str(build->b, source);
	op->target =
		strcmp(source, target) == 0 ? op->source : cm_plan_builder_str(build->b, target);
	op->flags = flags;
	return op;
}

struct cm_plan_op *cm_build_bind_node(struct cm_build *build, const struct cm_node *node,
				      const char *target, uint32_t flags)
{
	const char *source = node->link ? node->link : node->path;

	if (node->type != CM_NODE_DIR)
		flags |= CM_OPF_FILE;
	return cm_build_bind(build, source, target, flags);
}

void cm_build_symlink(struct cm_build *build, const char *target, const char *text)
{
	struct cm_plan_op *op = cm_plan_builder_op(build->b, CM_OP_SYMLINK);

	op->source = cm_plan_builder_str(build->b, text);
	op->target = cm_plan_builder_str(build->b, target);
}

void cm_build_dir(struct cm_build *build, const char *target, uint16_t mode, uint32_t flags)
{
	struct cm_plan_op *op = cm_plan_builder_op(build->b, CM_OP_DIR);

	op->target = cm_plan_builder_str(build->b, target);
	op->mode = mode;
	op->flags = flags;
}

static void put_file(struct cm_build *build, const char *target, const char *data, size_t len)
{
	struct cm_plan_op *op = cm_plan_builder_op(build->b, CM_OP_FILE);

	op->target = cm_plan_builder_str(build->b, target);
	op->content = cm_plan_builder_blob(build->b, data, len);
	op->content_len = (uint32_t)len;
	op->mode = 0644;
}

void cm_build_file(struct cm_build *build, const char *target, const char *content)
{
	put_file(build, target, content, strlen(content));
}

struct cm_buf *cm_build_text(struct cm_build *build)
{
	cm_buf_reset(&build->text);
	return &build->text;
}

void cm_build_file_text(struct cm_build *build, const char *target)
{
	const struct cm_buf *text = &build->text;

	if (cm_buf_status(text) != CM_OK)
		build->b->strings.has_failed = true;
	else
		put_file(build, target, text->data ? text->data : "", text->len);
}

void cm_build_tmpfs(struct cm_build *build, const char *target, uint16_t mode, uint32_t flags)
{
	struct cm_plan_op *op = cm_plan_builder_op(build->b, CM_OP_TMPFS);

	op->target = cm_plan_builder_str(build->b, target);
	op->mode = mode;
	op->flags = flags;
}

void cm_build_idmap(struct cm_build *build, struct cm_plan_op *op, const struct cm_node *node)
{
	uint32_t agent = build->b->header.uid_base + CM_ID_AGENT;

	/* a session's own directory has the agent's kernel id on disk */
	if (build->b->header.idmap != CM_IDMAP_SLOT || node->uid == agent)
		return;
	op->flags |= CM_OPF_IDMAP;
	op->owner_uid = node->uid;
	op->owner_gid = node->gid;
}

/* Whole lines or nothing. */
__attribute__((format(printf, 3, 4))) static void add_line(char *to, size_t size, const char *fmt,
							   ...)
{
	size_t len = strlen(to);
	va_list ap;
	int n;

	va_start(ap, fmt);
	/* clang-tidy 14 does not see va_start here */
	/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized) */
	n = vsnprintf(to + len, size - len, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= size - len)
		to[len] = '\0';
}

void cm_build_warn_unenforced(struct cm_build *build, const char *what, const char *value)
{
	add_line(build->summary->warnings, sizeof(build->summary->warnings),
		 "the repository limits %s to %s, which nothing enforces here\n", what, value);
}

void cm_build_note_hidden(struct cm_build *build, const char *path, const char *why)
{
	add_line(build->summary->notes, sizeof(build->summary->notes), "'%s' is not shown: %s\n",
		 path, why);
}

static void set_tmpfs_bounds(struct cm_build *build)
{
	struct cm_plan_header *h = &build->b->header;
	uint64_t memory = h->limits.memory_bytes;

	if (memory == UINT64_MAX || memory > build->req->host->memory_bytes)
		memory = build->req->host->memory_bytes;
	h->tmpfs_bytes = memory / 2 < MIN_TMPFS_BYTES ? MIN_TMPFS_BYTES : memory / 2;
	/* an inode costs the kernel about 1 KiB that no size counts */
	h->tmpfs_inodes = h->tmpfs_bytes / 4096;
	if (h->tmpfs_inodes > MAX_TMPFS_INODES)
		h->tmpfs_inodes = MAX_TMPFS_INODES;
}

/* 0 where there is none */
static uint64_t time_of(const struct cm_limit *limit)
{
	return limit->is_set && limit->value != CM_UNLIMITED ? limit->value : 0;
}

/* Of a temporary session its client decides. */
static void set_times(struct cm_build *build)
{
	const struct cm_limits *limits = &build->req->spec->limits;

	if (build->req->is_temporary)
		return;
	build->b->header.idle_ms = time_of(&limits->idle);
	build->b->header.lifetime_ms = time_of(&limits->lifetime);
}

static void set_header(struct cm_build *build)
{
	const struct cm_plan_request *req = build->req;
	struct cm_plan_header *h = &build->b->header;
	char hostname[65];

	cm_build_hostname(req, hostname);
	h->hostname = cm_plan_builder_str(build->b, hostname);
	h->session_id = cm_plan_builder_str(build->b, req->session_id);
	h->seccomp = req->refuses_unix_sockets ? CM_SECCOMP_NO_UNIX : CM_SECCOMP_DEFAULT;
	h->landlock_abi = req->host->landlock_abi;
	h->generation = req->generation;
	if (req->spec->network != CM_NETWORK_HOST)
		h->flags |= CM_PLANF_NETNS;
	if (req->spec->user == CM_USER_ROOT)
		h->flags |= CM_PLANF_ROOT_USER;
	if (req->is_temporary)
		h->flags |= CM_PLANF_TEMPORARY;
	if (req->socket_path)
		h->socket_path = cm_plan_builder_str(build->b, req->socket_path);
	if (req->state_dir)
		h->state_dir = cm_plan_builder_str(build->b, req->state_dir);
}

static void build_root(struct cm_build *build)
{
	struct cm_plan_op *op = cm_plan_builder_op(build->b, CM_OP_ROOT);

	op->target = cm_plan_builder_str(build->b, "/");
	op->flags = CM_OPF_READ_ONLY;
}

/* What is below something stands after it. */
static void add_system(struct cm_build *build)
{
	build_root(build);
	cm_build_system(build);
	/* early: its parameters are written before /proc/sys is made read-only */
	cm_build_proc(build);
	cm_build_dev(build);
	cm_build_sys(build);
	cm_build_etc(build);
}

/* The home can be below anything but the work. */
static int add_session(struct cm_build *build, struct cm_error *err)
{
	cm_build_own_etc(build);
	cm_build_var(build);
	cm_build_tmp(build);
	cm_build_home(build);
	return cm_build_work(build, err);
}

static void begin(struct cm_build *build, const struct cm_plan_request *req,
		  struct cm_plan_builder *b, struct cm_plan_summary *summary)
{
	*build = (struct cm_build){ .req = req, .b = b, .summary = summary };
	cm_buf_init(&build->text, MAX_TEXT);
	cm_buf_reserve(&build->text, USUAL_TEXT);
}

int cm_plan_build_system(const struct cm_plan_request *req, struct cm_plan_builder *b,
			 struct cm_plan_summary *ret, struct cm_error *err)
{
	struct cm_plan_summary summary = { 0 };
	struct cm_build build;
	int r;

	begin(&build, req, b, &summary);
	r = cm_build_identity(&build, err);
	if (r == CM_OK)
		r = cm_build_limits(&build, err);
	if (r == CM_OK)
		r = cm_build_level(&build, err);
	if (r == CM_OK) {
		set_header(&build);
		set_times(&build);
		set_tmpfs_bounds(&build);
		add_system(&build);
		*ret = summary;
	}
	cm_buf_clear(&build.text);
	return r;
}

int cm_plan_build_session(const struct cm_plan_request *req, struct cm_plan_builder *b,
			  struct cm_plan_summary *summary, struct cm_error *err)
{
	struct cm_build build;
	int r;

	begin(&build, req, b, summary);
	r = add_session(&build, err);
	cm_buf_clear(&build.text);
	return r;
}
