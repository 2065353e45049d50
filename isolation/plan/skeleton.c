/* SPDX-License-Identifier: Apache-2.0 */
/* What of a plan goes into the skeleton, and the skeleton's key. */
#include "isolation/plan/skeleton.h"

#include <string.h>

struct taker {
	struct cm_plan_builder *b;
	struct cm_skeleton *skeleton;
	/* targets of the mounts so far */
	const char *mounts[CM_PLAN_MAX_OPS];
	size_t n_mounts;
};

static const char *text_of(const struct cm_plan_builder *b, uint32_t offset)
{
	return b->strings.data + offset;
}

static bool is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* On the root file system, as far as the steps before this one have mounted? */
static bool is_on_root(const struct taker *t, const char *target)
{
	for (size_t i = 0; i < t->n_mounts; i++) {
		if (is_below(target, t->mounts[i]))
			return false;
	}
	return true;
}

static bool is_mount(const struct cm_plan_op *op)
{
	return op->kind == CM_OP_BIND || op->kind == CM_OP_BIND_INERT || op->kind == CM_OP_TMPFS ||
	       op->kind == CM_OP_PROC || op->kind == CM_OP_DEVPTS || op->kind == CM_OP_MQUEUE ||
	       op->kind == CM_OP_CGROUPFS;
}

static bool is_node(const struct cm_plan_op *op)
{
	return op->kind == CM_OP_DIR || op->kind == CM_OP_FILE || op->kind == CM_OP_SYMLINK ||
	       op->kind == CM_OP_COPY;
}

static void add_mount_point(struct taker *t, const struct cm_plan_op *mount)
{
	struct cm_plan_op *op = &t->skeleton->ops[t->skeleton->n_ops++];

	memset(op, 0, sizeof(*op));
	op->kind = (mount->flags & CM_OPF_FILE) != 0 ? CM_OP_FILE : CM_OP_DIR;
	op->target = mount->target;
	op->flags = CM_OPF_OPTIONAL;
	op->mode = op->kind == CM_OP_DIR ? 0755 : 0644;
}

/* True: it stays in the plan. */
static bool take(struct taker *t, const struct cm_plan_op *op)
{
	const char *target = text_of(t->b, op->target);

	if (op->kind == CM_OP_SYSCTL || op->kind == CM_OP_ROOT)
		return true;
	if (is_node(op) && is_on_root(t, target)) {
		t->skeleton->ops[t->skeleton->n_ops++] = *op;
		return false;
	}
	if (is_mount(op)) {
		if (is_on_root(t, target))
			add_mount_point(t, op);
		t->mounts[t->n_mounts++] = target;
	}
	return true;
}

static void put_text(struct cm_buf *out, const char *s)
{
	cm_buf_append(out, s, strlen(s) + 1);
}

/* All that decides what is made, in an unambiguous form; of copies what tells that they changed. */
static void put_key(const struct cm_plan_builder *b, const struct cm_plan_op *op,
		    struct cm_buf *key)
{
	const uint32_t what[4] = { op->kind, op->mode, op->flags, op->content_len };
	const uint64_t identity[4] = { op->expect_dev, op->expect_ino, op->expect_ctime_ns,
				       op->expect_bytes };

	cm_buf_append(key, what, sizeof(what));
	if (op->kind == CM_OP_COPY)
		cm_buf_append(key, identity, sizeof(identity));
	put_text(key, text_of(b, op->target));
	put_text(key, text_of(b, op->source));
	cm_buf_append(key, text_of(b, op->content), op->content_len);
}

void cm_skeleton_init(struct cm_skeleton *skeleton)
{
	skeleton->n_ops = skeleton->n_seen = 0;
}

int cm_skeleton_take(struct cm_plan_builder *b, struct cm_skeleton *skeleton, struct cm_error *err)
{
	struct taker t = { .b = b, .skeleton = skeleton };
	int r = cm_plan_builder_status(b, err);
	uint32_t n = skeleton->n_seen;

	if (r < 0)
		return r;
	/* each step adds one at most; what an earlier call has moved is no longer in the builder's count */
	if (b->header.n_ops - n > CM_PLAN_MAX_OPS - skeleton->n_ops)
		return cm_error_set(err, CM_E_LIMIT, 0, "the plan needs more than %u steps",
				    CM_PLAN_MAX_OPS);
	for (uint32_t i = 0; i < skeleton->n_seen; i++) {
		if (is_mount(&b->ops[i]))
			t.mounts[t.n_mounts++] = text_of(b, b->ops[i].target);
	}
	for (uint32_t i = skeleton->n_seen; i < b->header.n_ops; i++) {
		if (take(&t, &b->ops[i]))
			b->ops[n++] = b->ops[i];
	}
	b->header.n_ops = skeleton->n_seen = n;
	return CM_OK;
}

void cm_skeleton_key(const struct cm_plan_builder *b, const struct cm_skeleton *skeleton,
		     struct cm_buf *key)
{
	cm_buf_reserve(key, b->strings.len + skeleton->n_ops * sizeof(uint64_t[8]));
	cm_buf_append(key, cm_build_id, sizeof(cm_build_id));
	for (uint32_t i = 0; i < skeleton->n_ops; i++)
		put_key(b, &skeleton->ops[i], key);
}

static uint32_t put_path(struct cm_plan_builder *b, const char *dir, const char *name)
{
	uint32_t at = (uint32_t)b->strings.len;

	cm_buf_puts(&b->strings, dir);
	cm_buf_puts(&b->strings, "/");
	put_text(&b->strings, name);
	return b->strings.has_failed ? 0 : at;
}

void cm_skeleton_use(struct cm_plan_builder *b, const char *dir)
{
	uint32_t empty_dir = put_path(b, dir, CM_SKELETON_EMPTY_DIR);
	uint32_t empty_file = put_path(b, dir, CM_SKELETON_EMPTY_FILE);

	for (uint32_t i = 0; i < b->header.n_ops; i++) {
		struct cm_plan_op *op = &b->ops[i];

		if (op->kind == CM_OP_ROOT)
			op->source = put_path(b, dir, CM_SKELETON_ROOT);
		else if (op->kind == CM_OP_MASK)
			op->source = (op->flags & CM_OPF_FILE) != 0 ? empty_file : empty_dir;
	}
}
