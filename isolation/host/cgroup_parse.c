/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which control-group hierarchies there are and where the caller stands in them, from text only.
 *
 * A group is named twice: by its path in /proc/self/cgroup and by where the hierarchy is mounted.
 * The mount may show only a part of the hierarchy (its "root" in mountinfo: a container without a
 * cgroup namespace), so the root is taken off the path before the mount point is put before it.
 * Both texts are the kernel's, but a container's owner chooses the names in them.
 */
#include <stdio.h>
#include <string.h>

#include "isolation/host/cgroup_internal.h"
#include "runtime/base/fd.h"

/* A piece of the text, not terminated. */
struct span {
	const char *p;
	size_t n;
};

struct mount_line {
	struct span root;
	struct span point;
	struct span type;
	struct span super;
};

static bool span_is(struct span s, const char *text)
{
	return strlen(text) == s.n && memcmp(s.p, text, s.n) == 0;
}

/* Cuts the text up to the next `end` off *rest; false when nothing is left. */
static bool span_cut(struct span *rest, char end, struct span *ret)
{
	const char *stop;

	if (rest->n == 0)
		return false;
	stop = memchr(rest->p, end, rest->n);
	ret->p = rest->p;
	ret->n = stop ? (size_t)(stop - rest->p) : rest->n;
	rest->p += ret->n;
	rest->n -= ret->n;
	if (stop) {
		rest->p++;
		rest->n--;
	}
	return true;
}

static bool list_has(struct span list, const char *name)
{
	struct span word;

	while (span_cut(&list, ',', &word))
		if (span_is(word, name))
			return true;
	return false;
}

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/*
 * The kernel writes blank, tab, newline and backslash as \ooo. A newline is refused: v1 bases
 * travel as lines, and no path that we would use has one.
 */
static bool span_unescape(struct span s, char *out, size_t size)
{
	size_t len = 0;

	for (size_t i = 0; i < s.n; i++) {
		unsigned int c = (unsigned char)s.p[i];

		if (c == '\\') {
			if (s.n - i < 4 || !is_octal(s.p[i + 1]) || !is_octal(s.p[i + 2]) ||
			    !is_octal(s.p[i + 3]))
				return false;
			c = (unsigned int)(s.p[i + 1] - '0') * 64U +
			    (unsigned int)(s.p[i + 2] - '0') * 8U +
			    (unsigned int)(s.p[i + 3] - '0');
			i += 3;
		}
		if (c == 0 || c == '\n' || c > 255 || len + 1 >= size)
			return false;
		out[len++] = (char)c;
	}
	out[len] = '\0';
	return len > 0 && out[0] == '/';
}

/* "31 23 0:28 ROOT POINT OPTIONS [OPTIONAL...] - TYPE SOURCE SUPER" */
static bool mount_line_parse(struct span line, struct mount_line *ret)
{
	struct span word;

	for (int i = 0; i < 6; i++) {
		if (!span_cut(&line, ' ', &word))
			return false;
		if (i == 3)
			ret->root = word;
		if (i == 4)
			ret->point = word;
	}
	do {
		if (!span_cut(&line, ' ', &word))
			return false;
	} while (!span_is(word, "-"));
	return span_cut(&line, ' ', &ret->type) && span_cut(&line, ' ', &word) &&
	       span_cut(&line, ' ', &ret->super);
}

static bool has_dot_dot(const char *path)
{
	for (const char *p = strstr(path, "/.."); p; p = strstr(p + 1, "/.."))
		if (p[3] == '/' || p[3] == '\0')
			return true;
	return false;
}

/*
 * The caller's path in the hierarchy with this controller ("" for v2), as the kernel gives it.
 * False when it lies outside the cgroup namespace ("/../x"), was removed, or is not there.
 */
static bool own_path(const char *self_cgroup, const char *controller, char *out, size_t size)
{
	static const char deleted[] = " (deleted)";
	struct span rest = { self_cgroup, strlen(self_cgroup) };
	struct span line;

	while (span_cut(&rest, '\n', &line)) {
		struct span id;
		struct span list;

		if (!span_cut(&line, ':', &id) || !span_cut(&line, ':', &list))
			continue;
		if (controller[0] ? !list_has(list, controller) : list.n != 0 || !span_is(id, "0"))
			continue;
		if (line.n == 0 || line.p[0] != '/' || line.n >= size)
			return false;
		if (line.n >= sizeof(deleted) - 1 && memcmp(line.p + line.n - (sizeof(deleted) - 1),
							    deleted, sizeof(deleted) - 1) == 0)
			return false;
		memcpy(out, line.p, line.n);
		out[line.n] = '\0';
		return !has_dot_dot(out);
	}
	return false;
}

/* point + (own without root): the group as a path of this mount namespace. */
static bool group_path(const struct mount_line *m, const char *own, char *out, size_t size)
{
	char root[CM_HOST_CGROUP_PATH_MAX];
	char point[CM_HOST_CGROUP_PATH_MAX];
	const char *rest = own;
	int len;

	if (!span_unescape(m->root, root, sizeof(root)) ||
	    !span_unescape(m->point, point, sizeof(point)))
		return false;
	if (strcmp(root, "/") != 0) {
		size_t n = strlen(root);

		if (strncmp(own, root, n) != 0 || (own[n] != '\0' && own[n] != '/'))
			return false;
		rest = own + n;
	}
	if (strcmp(rest, "/") == 0)
		rest = "";
	/* a hierarchy mounted on "/" itself is nothing that we could use */
	if (strcmp(point, "/") == 0)
		return false;
	len = snprintf(out, size, "%s%s", point, rest);
	if (len < 0 || (size_t)len >= size) {
		out[0] = '\0';
		return false;
	}
	return true;
}

static void take_v1(const struct mount_line *m, const char *self_cgroup, struct cm_host_cgroup *ret)
{
	char own[CM_HOST_CGROUP_PATH_MAX];

	for (size_t i = 0; i < CM_CG_N; i++) {
		if (ret->v1_base[i][0] != '\0' || !list_has(m->super, cm_cgroup_names[i]) ||
		    !own_path(self_cgroup, cm_cgroup_names[i], own, sizeof(own)))
			continue;
		if (group_path(m, own, ret->v1_base[i], sizeof(ret->v1_base[i])))
			ret->controllers |= 1U << i;
	}
}

bool cm_host_cgroup_parse_v2(const char *mountinfo, const char *self_cgroup,
			     struct cm_host_cgroup_v2 *ret)
{
	struct span rest = { mountinfo, strlen(mountinfo) };
	struct span line;
	char own[CM_HOST_CGROUP_PATH_MAX];

	memset(ret, 0, sizeof(*ret));
	if (!own_path(self_cgroup, "", own, sizeof(own)))
		return false;
	while (span_cut(&rest, '\n', &line)) {
		struct mount_line m;

		if (!mount_line_parse(line, &m) || !span_is(m.type, "cgroup2") ||
		    !group_path(&m, own, ret->own, sizeof(ret->own)))
			continue;
		if (span_unescape(m.point, ret->mount, sizeof(ret->mount)))
			return true;
	}
	ret->own[0] = '\0';
	return false;
}

/*
 * A controller belongs to one hierarchy at a time, so memory or pids on v1 means that v2 beside
 * it (a hybrid host) has neither; and v1 groups without both would be worth less than v2's.
 */
void cm_host_cgroup_parse(const char *mountinfo, const char *self_cgroup,
			  struct cm_host_cgroup *ret)
{
	struct span rest = { mountinfo, strlen(mountinfo) };
	struct cm_host_cgroup_v2 v2;
	struct span line;
	bool has_v2 = cm_host_cgroup_parse_v2(mountinfo, self_cgroup, &v2);

	memset(ret, 0, sizeof(*ret));
	while (span_cut(&rest, '\n', &line)) {
		struct mount_line m;

		if (mount_line_parse(line, &m) && span_is(m.type, "cgroup"))
			take_v1(&m, self_cgroup, ret);
	}
	if ((ret->controllers & (CM_CG_MEMORY | CM_CG_PIDS)) != 0 ||
	    (ret->controllers != 0 && !has_v2)) {
		ret->kind = CM_CGROUP_V1;
		return;
	}
	memset(ret->v1_base, 0, sizeof(ret->v1_base));
	ret->controllers = 0;
	if (has_v2) {
		ret->kind = CM_CGROUP_V2;
		memcpy(ret->v2_base, v2.own, sizeof(ret->v2_base));
		return;
	}
	ret->kind = CM_CGROUP_NONE;
	(void)snprintf(ret->reason, sizeof(ret->reason),
		       "no control group hierarchy is mounted here");
}
