/* SPDX-License-Identifier: Apache-2.0 */
/* The plan's flat form: builder and checker. The checker believes nothing it has not looked at. */
#include "isolation/plan/plan.h"

#include <string.h>

#include "runtime/base/text.h"

#define USUAL_STRINGS (16UL * 1024 - 64)

void cm_plan_builder_init(struct cm_plan_builder *b)
{
	memset(&b->header, 0, sizeof(b->header));
	b->header.magic = CM_PLAN_MAGIC;
	memcpy(b->header.build_id, cm_build_id, sizeof(b->header.build_id));
	b->has_overflowed = false;
	cm_buf_init(&b->strings, CM_PLAN_MAX_STRINGS);
	/* what a plan usually has, so that it does not grow step by step */
	cm_buf_reserve(&b->strings, USUAL_STRINGS);
	/* offset 0 is the empty string */
	cm_buf_append(&b->strings, "", 1);
}

void cm_plan_builder_clear(struct cm_plan_builder *b)
{
	cm_buf_clear(&b->strings);
	b->header.n_ops = 0;
}

uint32_t cm_plan_builder_blob(struct cm_plan_builder *b, const void *data, size_t len)
{
	size_t at = b->strings.len;

	cm_buf_append(&b->strings, data, len);
	cm_buf_append(&b->strings, "", 1);
	if (b->strings.has_failed)
		return 0;
	return (uint32_t)at;
}

uint32_t cm_plan_builder_str(struct cm_plan_builder *b, const char *s)
{
	if (!s || *s == '\0')
		return 0;
	return cm_plan_builder_blob(b, s, strlen(s));
}

struct cm_plan_op *cm_plan_builder_op(struct cm_plan_builder *b, enum cm_plan_op_kind kind)
{
	struct cm_plan_op *op;

	if (b->header.n_ops >= CM_PLAN_MAX_OPS) {
		b->has_overflowed = true;
		op = &b->ops[CM_PLAN_MAX_OPS - 1];
	} else {
		op = &b->ops[b->header.n_ops++];
	}
	memset(op, 0, sizeof(*op));
	op->kind = (uint16_t)kind;
	return op;
}

int cm_plan_builder_status(const struct cm_plan_builder *b, struct cm_error *err)
{
	if (b->has_overflowed)
		return cm_error_set(err, CM_E_LIMIT, 0, "the plan needs more than %u steps",
				    CM_PLAN_MAX_OPS);
	if (cm_buf_status(&b->strings) == CM_E_NOMEM)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the plan");
	if (cm_buf_status(&b->strings) != CM_OK)
		return cm_error_set(err, CM_E_LIMIT, 0, "the plan's texts are larger than %u bytes",
				    CM_PLAN_MAX_STRINGS);
	return CM_OK;
}

int cm_plan_builder_finish(struct cm_plan_builder *b, struct cm_buf *out, struct cm_error *err)
{
	size_t start = out->len;
	struct cm_plan plan;
	int r = cm_plan_builder_status(b, err);

	if (r < 0)
		return r;
	b->header.strings_len = (uint32_t)b->strings.len;
	b->header.size = (uint32_t)(sizeof(b->header) + b->header.n_ops * sizeof(b->ops[0]) +
				    b->strings.len);
	cm_buf_reserve(out, b->header.size);
	cm_buf_append(out, &b->header, sizeof(b->header));
	cm_buf_append(out, b->ops, b->header.n_ops * sizeof(b->ops[0]));
	cm_buf_append(out, b->strings.data, b->strings.len);
	if (cm_buf_status(out) != CM_OK)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the plan");
	return cm_plan_check(out->data + start, out->len - start, &plan, err);
}

static int malformed(struct cm_error *err, const char *what)
{
	return cm_error_set(err, CM_E_PROTOCOL, 0, "malformed plan: %s", what);
}

static bool string_ok(const struct cm_plan_header *h, const char *strings, uint32_t offset)
{
	/* the table ends with a NUL, so any offset inside it is a terminated string */
	return offset < h->strings_len && strings[h->strings_len - 1] == '\0';
}

/* Absolute, no empty, "." or ".." component: so that a walk below a root cannot leave it. */
static bool path_ok(const char *path)
{
	size_t n;

	if (*path != '/')
		return false;
	if (path[1] == '\0')
		return true;
	while (*path == '/') {
		path++;
		n = strcspn(path, "/");
		if (n == 0 || n > 255)
			return false;
		if ((n == 1 && path[0] == '.') || (n == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		path += n;
	}
	return true;
}

/* A path below a fixed directory, as SYSCTL targets and controller names are. */
static bool relative_ok(const char *path)
{
	size_t i;

	if (*path == '/' || *path == '\0' || strstr(path, ".."))
		return false;
	for (i = 0; path[i]; i++) {
		char c = path[i];
		bool is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			       (c >= '0' && c <= '9') || c == '_' || c == '/' || c == '-' ||
			       c == '.';

		if (!is_word)
			return false;
	}
	return i < 128;
}

/* A root and masks without a source are of a plan that is only to be printed. */
static bool source_ok(const struct cm_plan_op *op, const char *source)
{
	if (op->kind == CM_OP_ROOT || op->kind == CM_OP_MASK)
		return *source == '\0' || path_ok(source);
	if (op->kind == CM_OP_BIND || op->kind == CM_OP_BIND_INERT || op->kind == CM_OP_COPY)
		return path_ok(source);
	return true;
}

static int check_op(const struct cm_plan_header *h, const struct cm_plan_op *op,
		    const char *strings, struct cm_error *err)
{
	const char *source;
	const char *target;

	if (op->kind == 0 || op->kind >= CM_OP_COUNT_)
		return malformed(err, "unknown step");
	if ((op->flags & ~CM_OPF_ALL_) != 0 || (op->mode & ~07777) != 0)
		return malformed(err, "unknown flag");
	if ((op->mode & 06000) != 0)
		return malformed(err, "set-id mode");
	if (!string_ok(h, strings, op->source) || !string_ok(h, strings, op->target) ||
	    !string_ok(h, strings, op->content))
		return malformed(err, "text outside the table");
	if (op->content_len >= h->strings_len - op->content)
		return malformed(err, "content outside the table");
	if ((op->flags & CM_OPF_IDMAP) != 0 && h->idmap != CM_IDMAP_SLOT)
		return malformed(err, "mapped mount without a range of ids");
	source = strings + op->source;
	target = strings + op->target;
	if (op->kind == CM_OP_SYSCTL) {
		if (!relative_ok(target))
			return malformed(err, "bad sysctl name");
		return CM_OK;
	}
	if (!path_ok(target) || (target[1] == '\0') != (op->kind == CM_OP_ROOT))
		return malformed(err, "target is not a clean absolute path");
	/* the root is shared with other sessions */
	if (op->kind == CM_OP_ROOT && (op->flags & CM_OPF_READ_ONLY) == 0)
		return malformed(err, "a root that can be written");
	if (!source_ok(op, source))
		return malformed(err, "source is not a clean absolute path");
	if (op->kind == CM_OP_CGROUPFS && *source != '\0' && !relative_ok(source))
		return malformed(err, "bad controller name");
	if (op->kind == CM_OP_TMPFS && (h->tmpfs_bytes == 0 || h->tmpfs_inodes == 0))
		return malformed(err, "tmpfs without bounds");
	return CM_OK;
}

static int check_identity(const struct cm_plan_header *h, struct cm_error *err)
{
	switch (h->idmap) {
	case CM_IDMAP_SINGLE:
	case CM_IDMAP_SUBIDS:
		/* host uid 0 is never mapped in */
		if (h->uid_base == 0 || h->gid_base == 0)
			return malformed(err, "host id 0 would be mapped");
		break;
	case CM_IDMAP_SLOT:
		if (h->uid_base < CM_ID_SLOT_BASE || h->uid_base != h->gid_base ||
		    (h->uid_base - CM_ID_SLOT_BASE) % CM_ID_SLOT_SIZE != 0 ||
		    (h->uid_base - CM_ID_SLOT_BASE) / CM_ID_SLOT_SIZE > CM_ID_SLOT_MIRRORS)
			return malformed(err, "not a slot of ids");
		break;
	default:
		return malformed(err, "unknown id map");
	}
	if ((h->flags & CM_PLANF_ROOT_USER) != 0 && h->idmap == CM_IDMAP_SINGLE)
		return malformed(err, "root inside without an id for it");
	return CM_OK;
}

/* Decimal digits alone, at most max; moves on to what follows them. */
static bool read_number(const char **at, uint64_t max, uint64_t *ret)
{
	uint64_t value = 0;
	const char *p = *at;

	for (; *p >= '0' && *p <= '9'; p++) {
		value = value * 10 + (uint64_t)(*p - '0');
		if (value > max)
			return false;
	}
	if (p == *at)
		return false;
	*at = p;
	*ret = value;
	return true;
}

/*
 * The tools that get these words are set-id, and what /etc/subuid grants a user is not for us to
 * repeat; but nobody's grant makes host id 0, or the id that means none, one of a jail's.
 */
static bool id_ranges_ok(const char *text)
{
	for (unsigned int n = 0; n < CM_PLAN_MAX_ID_RANGES; n++) {
		uint64_t inside;
		uint64_t host;
		uint64_t count;

		if (!read_number(&text, CM_ID_SLOT_SIZE - 1, &inside) || *text++ != ' ' ||
		    !read_number(&text, UINT32_MAX - 1, &host) || *text++ != ' ' ||
		    !read_number(&text, CM_ID_SLOT_SIZE, &count))
			return false;
		if (host == 0 || count == 0 || inside + count > CM_ID_SLOT_SIZE ||
		    host + count > UINT32_MAX)
			return false;
		if (*text == '\0')
			return true;
		if (*text++ != ' ')
			return false;
	}
	return false;
}

static int check_header(const struct cm_plan_header *h, size_t len, struct cm_error *err)
{
	if (h->magic != CM_PLAN_MAGIC)
		return malformed(err, "bad magic");
	if (memcmp(h->build_id, cm_build_id, sizeof(h->build_id)) != 0) {
		cm_error_set(
			err, CM_E_PROTOCOL, 0,
			"the installation is mixed: client and keeper are of different builds");
		cm_error_hint(err, "install casemate again, all of its files at once");
		return CM_E_PROTOCOL;
	}
	if (h->size != len || h->n_ops > CM_PLAN_MAX_OPS || h->strings_len == 0 ||
	    h->strings_len > CM_PLAN_MAX_STRINGS + 1 ||
	    len != sizeof(*h) + (size_t)h->n_ops * sizeof(struct cm_plan_op) + h->strings_len)
		return malformed(err, "sizes do not add up");
	if ((h->flags & ~(CM_PLANF_NETNS | CM_PLANF_ROOT_USER | CM_PLANF_TEMPORARY)) != 0)
		return malformed(err, "unknown flag");
	if (h->cgroup > CM_CGROUP_V2 || (h->cgroup_controllers >> CM_CG_N) != 0 ||
	    (h->cgroup_required & ~(h->cgroup_controllers | CM_CG_SWAP)) != 0)
		return malformed(err, "bad control groups");
	if (h->idle_ms > CM_PLAN_MAX_MS || h->lifetime_ms > CM_PLAN_MAX_MS ||
	    ((h->flags & CM_PLANF_TEMPORARY) != 0 && (h->idle_ms | h->lifetime_ms) != 0))
		return malformed(err, "bad times of a session");
	if (h->seccomp == 0 || h->seccomp >= CM_SECCOMP_COUNT_)
		return malformed(err, "unknown system-call profile");
	return check_identity(h, err);
}

int cm_plan_check(const void *data, size_t len, struct cm_plan *ret, struct cm_error *err)
{
	const struct cm_plan_header *h = data;
	const struct cm_plan_op *ops;
	const char *strings;
	int r;

	if (len < sizeof(*h) || ((uintptr_t)data % _Alignof(struct cm_plan_header)) != 0)
		return malformed(err, "too short");
	r = check_header(h, len, err);
	if (r < 0)
		return r;
	ops = (const struct cm_plan_op *)(h + 1);
	strings = (const char *)(ops + h->n_ops);
	if (strings[0] != '\0' || strings[h->strings_len - 1] != '\0')
		return malformed(err, "texts are not terminated");
	if (!string_ok(h, strings, h->hostname) || !string_ok(h, strings, h->session_id) ||
	    !string_ok(h, strings, h->cpuset) || !string_ok(h, strings, h->cgroup_base) ||
	    !string_ok(h, strings, h->newuidmap_args) ||
	    !string_ok(h, strings, h->newgidmap_args) || !string_ok(h, strings, h->socket_path) ||
	    !string_ok(h, strings, h->state_dir))
		return malformed(err, "text outside the table");
	if (!cm_text_is_session_id(strings + h->session_id))
		return malformed(err, "bad session id");
	if (h->idmap == CM_IDMAP_SUBIDS && (!id_ranges_ok(strings + h->newuidmap_args) ||
					    !id_ranges_ok(strings + h->newgidmap_args)))
		return malformed(err, "bad ranges of ids");
	for (uint32_t i = 0; i < h->n_ops; i++) {
		r = check_op(h, &ops[i], strings, err);
		if (r < 0)
			return r;
	}
	ret->header = h;
	ret->ops = ops;
	ret->strings = strings;
	return CM_OK;
}

static bool is_same_step(const struct cm_plan_op *a, const struct cm_plan_op *b)
{
	struct cm_plan_op with_source = *a;

	if (a->kind == CM_OP_ROOT || a->kind == CM_OP_MASK)
		with_source.source = b->source;
	return memcmp((const char *)&with_source, (const char *)b, sizeof(*b)) == 0;
}

bool cm_plan_continues(const struct cm_plan *plan, const struct cm_plan *announced)
{
	struct cm_plan_header h = *announced->header;

	h.size = plan->header->size;
	h.n_ops = plan->header->n_ops;
	h.strings_len = plan->header->strings_len;
	/* both were zeroed before they were filled: what is between the fields is alike, too */
	if (memcmp((const char *)&h, (const char *)plan->header, sizeof(h)) != 0 ||
	    announced->header->n_ops > plan->header->n_ops ||
	    announced->header->strings_len > plan->header->strings_len ||
	    memcmp(announced->strings, plan->strings, announced->header->strings_len) != 0)
		return false;
	for (uint32_t i = 0; i < announced->header->n_ops; i++) {
		if (!is_same_step(&announced->ops[i], &plan->ops[i]))
			return false;
	}
	return true;
}
