/* SPDX-License-Identifier: Apache-2.0 */
/* /etc: what etc.def shows of the host's, and the files that are the jail's own. */
#include <string.h>

#include "isolation/plan/build_internal.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"
#include "runtime/base/text.h"

#define MAX_COPY (16UL * 1024)
/* An address for documents (RFC 5737): the kernel refuses the question for want of a route, at once,
 * and counts it. That a name was looked up is what most commands without a network can tell. */
#define NO_SERVER "192.0.2.53"

/*
 * A small file is cheaper copied than mounted; as it was when the session started, either way. No
 * program: the copy may lie on a file system from which nothing is executed.
 */
static bool is_copied(const struct cm_node *node)
{
	return node->type == CM_NODE_FILE && cm_node_is_public(node) && (node->mode & 0111) == 0 &&
	       node->size <= MAX_COPY;
}

static void copy(struct cm_build *build, const struct cm_node *node, const char *target)
{
	struct cm_plan_op *op = cm_plan_builder_op(build->b, CM_OP_COPY);

	op->source = cm_plan_builder_str(build->b, node->path);
	op->target = cm_plan_builder_str(build->b, target);
	op->mode = 0644;
	op->expect_dev = node->dev;
	op->expect_ino = node->ino;
	op->expect_ctime_ns = node->ctime_ns;
	op->expect_bytes = node->size;
}

void cm_build_etc(struct cm_build *build)
{
	const struct cm_nodes *etc = &build->req->tree->etc;

	for (size_t i = 0; i < etc->n; i++) {
		const struct cm_node *node = &etc->v[i];
		const char *target = cm_build_target(build->req, node);

		if (node->type == CM_NODE_SYMLINK)
			cm_build_symlink(build, target, node->link);
		else if (is_copied(node))
			copy(build, node, target);
		else if (node->type != CM_NODE_OTHER && cm_build_can_read(build, node))
			(void)cm_build_bind_node(build, node, target, CM_OPF_READ_ONLY);
	}
}

static const struct cm_node *find_extra(const struct cm_build *build, const char *path)
{
	const struct cm_nodes *extra = &build->req->tree->extra;

	for (size_t i = 0; i < extra->n; i++) {
		if (strcmp(extra->v[i].path, path) == 0)
			return &extra->v[i];
	}
	return NULL;
}

/* With the host's network its names, read when they are looked up: they change with the network. */
static void build_host_names(struct cm_build *build)
{
	static const char *const names[] = { "/etc/resolv.conf", "/etc/hosts" };

	for (size_t i = 0; i < CM_ARRAY_SIZE(names); i++) {
		const struct cm_node *node = find_extra(build, names[i]);

		if (node && node->type == CM_NODE_FILE && cm_build_can_read(build, node))
			(void)cm_build_bind_node(build, node, names[i], CM_OPF_READ_ONLY);
	}
	cm_build_file(build, "/etc/nsswitch.conf",
		      "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
		      "networks: files\nprotocols: files\nservices: files\nethers: files\n"
		      "rpc: files\n");
}

/* After a resolver that fails, the last of hosts makes it "no such name", which nobody tries again,
 * and not "try again later". */
static void build_own_names(struct cm_build *build)
{
	struct cm_buf *text = cm_build_text(build);
	char hostname[65];

	cm_build_hostname(build->req, hostname);

	cm_buf_puts(text, "127.0.0.1 localhost ");
	cm_buf_puts(text, hostname);
	cm_buf_puts(text, "\n::1 localhost ip6-localhost ip6-loopback\n");
	cm_build_file_text(build, "/etc/hosts");
	cm_build_file(build, "/etc/resolv.conf",
		      "# this session has no network: no name can be looked up\n"
		      "nameserver " NO_SERVER "\noptions timeout:1 attempts:1\n");
	cm_build_file(build, "/etc/nsswitch.conf",
		      "passwd: files\ngroup: files\nshadow: files\nhosts: files dns files\n"
		      "networks: files\nprotocols: files\nservices: files\nethers: files\n"
		      "rpc: files\n");
}

/* A value of git's configuration in its quotes. */
static void put_quoted(struct cm_buf *text, const char *value)
{
	cm_buf_putc(text, '"');
	while (*value) {
		size_t n = strcspn(value, "\"\\");

		cm_buf_append(text, value, n);
		value += n;
		if (*value == '\0')
			break;
		cm_buf_putc(text, '\\');
		cm_buf_putc(text, *value++);
	}
	cm_buf_puts(text, "\"\n");
}

static bool has_control(const char *s)
{
	for (; *s; s++) {
		if ((unsigned char)*s < ' ')
			return true;
	}
	return false;
}

static void build_gitconfig(struct cm_build *build)
{
	const struct cm_strv *settings = &build->req->git->settings;
	struct cm_buf *text = cm_build_text(build);

	for (size_t i = 0; i < settings->n; i++) {
		const char *name = settings->v[i];
		const char *dot = strchr(name, '.');
		const char *equals = strchr(name, '=');

		if (!dot || !equals || dot > equals || has_control(name))
			continue;
		cm_buf_putc(text, '[');
		cm_buf_append(text, name, (size_t)(dot - name));
		cm_buf_puts(text, "]\n\t");
		cm_buf_append(text, dot + 1, (size_t)(equals - dot - 1));
		cm_buf_puts(text, " = ");
		put_quoted(text, equals + 1);
	}
	/* git refuses repositories whose owner is not the caller, as a mapped or a shared tree can be,
	 * for fear of other users: inside there are none, and what git runs is confined as the caller
	 * is. Of any path, so that sessions in different trees have the same file. */
	cm_buf_puts(text, "[safe]\n\tdirectory = *\n");
	cm_build_file_text(build, "/etc/gitconfig");
}

/* A setting that names a file which is not inside would break what it was to help. */
static bool is_usable(const struct cm_build *build, const char *setting)
{
	const char *value = strchr(setting, '=');

	return value && (value[1] != '/' || cm_build_shows(build->req, value + 1));
}

static void build_tool_settings(struct cm_build *build)
{
	const struct cm_tree_facts *tree = build->req->tree;
	struct cm_buf *text = cm_build_text(build);

	for (size_t i = 0; i < tree->npm.n; i++) {
		if (!is_usable(build, tree->npm.v[i]))
			continue;
		cm_buf_puts(text, tree->npm.v[i]);
		cm_buf_putc(text, '\n');
	}
	if (text->len > 0)
		cm_build_file_text(build, "/etc/npmrc");
	text = cm_build_text(build);
	for (size_t i = 0; i < tree->pip.n; i++) {
		if (!is_usable(build, tree->pip.v[i]))
			continue;
		cm_buf_puts(text, text->len == 0 ? "[global]\n" : "");
		cm_buf_puts(text, tree->pip.v[i]);
		cm_buf_putc(text, '\n');
	}
	if (text->len > 0)
		cm_build_file_text(build, "/etc/pip.conf");
}

void cm_build_own_etc(struct cm_build *build)
{
	if (build->req->spec->network == CM_NETWORK_HOST)
		build_host_names(build);
	else
		build_own_names(build);
	if (build->req->git)
		build_gitconfig(build);
	build_tool_settings(build);
	cm_build_names(build);
}
