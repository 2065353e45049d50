/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans of any bytes: what the checker takes keeps its promises to those who execute it, and can
 * be printed.  A build id of zeros in the input stands for this build's, so that the corpus does
 * not age.
 */
#include <stdlib.h>
#include <string.h>

#include "isolation/plan/plan.h"
#include "runtime/base/fd.h"
#include "tests/fuzz/fuzz.h"
#include "tests/helpers/utf8.h"

#define OUT_MAX (64UL * 1024 * 1024)

static void require_text(const struct cm_plan *plan, uint32_t offset)
{
	uint32_t len = plan->header->strings_len;

	require(offset < len && memchr(plan->strings + offset, '\0', len - offset));
}

static void require_target(const char *path)
{
	require(path[0] == '/' && path[1] != '\0' && path[strlen(path) - 1] != '/');
	require(!strstr(path, "//") && !strstr(path, "/./") && !strstr(path, "/../"));
	require(strlen(path) < 3 || strcmp(path + strlen(path) - 3, "/..") != 0);
}

static void require_op(const struct cm_plan *plan, const struct cm_plan_op *op)
{
	require(op->kind > 0 && op->kind < CM_OP_COUNT_);
	require((op->flags & ~CM_OPF_ALL_) == 0 && (op->mode & ~01777) == 0);
	require_text(plan, op->source);
	require_text(plan, op->target);
	require_text(plan, op->content);
	require((uint64_t)op->content + op->content_len < plan->header->strings_len);
	if (op->kind == CM_OP_SYSCTL)
		require(cm_plan_str(plan, op->target)[0] != '/' &&
			!strstr(cm_plan_str(plan, op->target), ".."));
	else
		require_target(cm_plan_str(plan, op->target));
	if ((op->flags & CM_OPF_IDMAP) != 0)
		require(plan->header->idmap == CM_IDMAP_SLOT);
}

static void require_header(const struct cm_plan *plan)
{
	const struct cm_plan_header *h = plan->header;

	require(h->uid_base != 0 && h->gid_base != 0);
	if (h->idmap == CM_IDMAP_SLOT)
		require(h->uid_base >= CM_ID_SLOT_BASE &&
			h->uid_base < CM_ID_SLOT_BASE + (uint64_t)CM_ID_SLOTS * CM_ID_SLOT_SIZE);
	require(h->n_ops <= CM_PLAN_MAX_OPS);
	require_text(plan, h->hostname);
	require_text(plan, h->session_id);
	require_text(plan, h->cpuset);
	require_text(plan, h->cgroup_base);
	require_text(plan, h->newuidmap_args);
	require_text(plan, h->newgidmap_args);
	require_text(plan, h->socket_path);
	require_text(plan, h->state_dir);
	require(!strchr(cm_plan_str(plan, h->session_id), '/'));
}

static void print(const struct cm_plan *plan)
{
	struct cm_buf out;

	cm_buf_init(&out, OUT_MAX);
	cm_plan_print(plan, &out);
	require(cm_buf_status(&out) == CM_OK);
	/* inert on a terminal, and lines only where lines end */
	require(is_utf8(out.data, out.len));
	for (size_t i = 0; i < out.len; i++)
		require((unsigned char)out.data[i] >= 0x20 || out.data[i] == '\n');
	cm_buf_clear(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char no_id[CM_PLAN_BUILD_ID_SIZE];
	struct cm_error err = CM_ERROR_INIT;
	struct cm_plan plan = { 0 };
	char *copy = malloc(size ? size : 1);
	struct cm_plan_header *h = (struct cm_plan_header *)(void *)copy;
	int r;

	require(copy != NULL);
	if (size > 0)
		memcpy(copy, data, size);
	if (size >= sizeof(*h) && memcmp(h->build_id, no_id, sizeof(no_id)) == 0)
		memcpy(h->build_id, cm_build_id, sizeof(h->build_id));
	r = cm_plan_check(copy, size, &plan, &err);
	if (r == CM_OK) {
		require_header(&plan);
		for (uint32_t i = 0; i < plan.header->n_ops; i++)
			require_op(&plan, &plan.ops[i]);
		print(&plan);
	} else {
		require(r == CM_E_PROTOCOL && err.msg[0] != '\0' && !plan.header);
	}
	free(copy);
	return 0;
}
