/* SPDX-License-Identifier: Apache-2.0 */
/* The groups of a session: written down, read, and what they say of one that runs. */
#include "providers/local/groups.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "isolation/host/node.h"
#include "providers/local/local_internal.h"
#include "runtime/base/fd.h"

#define GROUPS_FORMAT "casemate groups 1"
/* in the order of the bits: where v1 has a hierarchy of each */
#define BASE_MEMORY 0
#define BASE_PIDS 1

int cm_local_keep_groups(struct cm_local *l, const struct cm_buf *plan)
{
	CM_AUTO_BUF struct cm_buf text = { 0 };
	struct cm_plan p;

	if (l->summary.cgroup_controllers == 0)
		return 0;
	if (cm_plan_check(plan->data, plan->len, &p, NULL) < 0)
		return -EINVAL;
	cm_buf_init(&text, CM_GROUPS_MAX);
	cm_buf_printf(&text, GROUPS_FORMAT "\n%u %u\n%s\n%s", p.header->cgroup,
		      (p.header->flags & CM_PLANF_TEMPORARY) != 0,
		      cm_plan_str(&p, p.header->session_id),
		      cm_plan_str(&p, p.header->cgroup_base));
	if (cm_buf_status(&text) != CM_OK)
		return -ENOMEM;
	return cm_replace_file_at(l->session.dir_fd, CM_STORE_GROUPS, text.data, text.len, 0600,
				  false);
}

void cm_groups_clear(struct cm_groups *g)
{
	cm_ptr_free(&g->text);
}

static int parse_groups(struct cm_groups *g)
{
	static const char format[] = GROUPS_FORMAT "\n";
	char *line = g->text + sizeof(format) - 1;
	char *base;

	/* two digits in a line */
	if (strncmp(g->text, format, sizeof(format) - 1) != 0 || line[0] < '0' ||
	    line[0] > '0' + CM_CGROUP_V2 || line[1] != ' ' || line[2] < '0' || line[2] > '1' ||
	    line[3] != '\n')
		return -ENOENT;
	g->session_id = line + 4;
	base = strchr(g->session_id, '\n');
	if (!base)
		return -ENOENT;
	*base = '\0';
	g->kind = (unsigned int)(line[0] - '0');
	g->is_temporary = line[2] == '1';
	g->base = base + 1;
	return 0;
}

int cm_groups_load(int dir_fd, struct cm_groups *g)
{
	int r;

	memset(g, 0, sizeof(*g));
	r = cm_read_text_at(dir_fd, CM_STORE_GROUPS, CM_GROUPS_MAX, &g->text);
	/* a NUL, or more than was ever written */
	if (r == -EINVAL || r == -E2BIG)
		return -ENOENT;
	if (r < 0)
		return r;
	r = parse_groups(g);
	if (r < 0)
		cm_groups_clear(g);
	return r;
}

/* The group's directory in the hierarchy of this number; v2 has one. false: there is none. */
static bool group_path(const struct cm_groups *g, size_t number, char path[PATH_MAX])
{
	const char *dir = g->base;
	int len;

	for (size_t i = 0; i < number && g->kind == CM_CGROUP_V1; i++) {
		dir += strcspn(dir, "\n");
		dir += *dir == '\n';
	}
	len = (int)strcspn(dir, "\n");
	return len > 0 && g->kind != CM_CGROUP_NONE &&
	       snprintf(path, PATH_MAX, "%.*s/cm-%s", len, dir, g->session_id) < PATH_MAX;
}

static bool read_value(const struct cm_groups *g, size_t number, const char *v1, const char *v2,
		       uint64_t *ret)
{
	char path[PATH_MAX];
	char text[32];
	CM_AUTO_FD int fd = -1;
	char *end;

	if (!group_path(g, number, path))
		return false;
	fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 ||
	    cm_read_file_at(fd, g->kind == CM_CGROUP_V1 ? v1 : v2, text, sizeof(text)) <= 0)
		return false;
	*ret = strtoull(text, &end, 10);
	return end != text;
}

void cm_local_usage(const struct cm_store_session *s, struct cm_local_usage *ret)
{
	struct cm_groups g;
	uint64_t n_tasks;

	*ret = (struct cm_local_usage){ 0 };
	if (cm_groups_load(s->dir_fd, &g) < 0)
		return;
	ret->has_memory = read_value(&g, BASE_MEMORY, "memory.usage_in_bytes", "memory.current",
				     &ret->memory_bytes);
	/* init is one */
	ret->has_tasks = read_value(&g, BASE_PIDS, "pids.current", "pids.current", &n_tasks);
	ret->is_active = ret->has_tasks && n_tasks > 1;
	cm_groups_clear(&g);
}
