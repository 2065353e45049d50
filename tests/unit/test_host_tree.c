/* SPDX-License-Identifier: Apache-2.0 */
/* What a jail shows of the host's tree, or of a root file system. */
#include <errno.h>

#include "runtime/base/alloc.h"
#include "tests/unit/host_ground.h"
#include "tests/unit/skip_syscalls.h"

static const struct cm_node *find(const struct cm_nodes *nodes, const char *path)
{
	for (size_t i = 0; i < nodes->n; i++) {
		if (strcmp(nodes->v[i].path, path) == 0)
			return &nodes->v[i];
	}
	return NULL;
}

static void test_host_tree(void **state)
{
	struct cm_host host = { .uid = getuid(), .gid = getgid() };
	struct cm_tree_facts tree;
	struct cm_strv env = { 0 };
	struct cm_error err = CM_ERROR_INIT;

	(void)state;
	skip_without_openat2();
	dir("home/.pyenv/versions/3.12/bin");
	dir("home/.pyenv/shims");
	dir("home/.cargo/bin");
	file("home/.cargo/credentials.toml", "token");
	dir("uv");
	file("uv/uv-0.9", "");
	dir("home/.local/bin");
	link_to("../../../uv/uv-0.9", "home/.local/bin/uv");
	file("home/.local/bin/other", "");
	dir("home/.deno/bin");
	assert_int_equal(chmod(at("home/.deno"), 0777), 0);
	dir("moved/versions");
	file("home/.npmrc", "nodedir=/usr\n_auth=x\n");
	file("ca.pem", "");
	host.home = cm_strdup(at("home"));
	assert_int_equal(cm_strv_addf(&env, "NVM_DIR=%s/moved/", top), CM_OK);
	assert_int_equal(cm_strv_addf(&env,
				      "PATH=%s/home/.pyenv/shims:/usr/bin:rel:%s/none:/usr/bin",
				      top, top),
			 CM_OK);
	assert_int_equal(cm_strv_addf(&env, "PIP_CERT=%s/ca.pem", top), CM_OK);
	assert_int_equal(cm_strv_addf(&env, "SSL_CERT_FILE=%s/ca.pem", top), CM_OK);
	if (cm_tree_facts_read(&host, NULL, &env, &tree, &err) != CM_OK)
		fail_msg("%s", err.msg);
	assert_int_equal(find(&tree.top, "/usr")->type, CM_NODE_DIR);
	assert_null(find(&tree.top, "/opt"));
	assert_null(find(&tree.etc, "/etc/shadow"));
	assert_null(find(&tree.etc, "/etc/passwd"));
	assert_null(find(&tree.etc, "/etc/ssl/private"));
	assert_non_null(find(&tree.proc, "/proc/sys"));
	assert_non_null(find(&tree.extra, "/dev/null"));
	assert_null(find(&tree.extra, "/dev/kmsg"));
	assert_non_null(find(&tree.tools, at("home/.pyenv/versions")));
	assert_non_null(find(&tree.tools, at("home/.cargo/bin")));
	assert_null(find(&tree.tools, at("home/.cargo/credentials.toml")));
	assert_null(find(&tree.tools, at("home/.local/bin/other")));
	assert_string_equal(find(&tree.tools, at("home/.local/bin/uv"))->link, at("uv/uv-0.9"));
	assert_non_null(find(&tree.tools, at("moved/versions")));
	/* others can write to it */
	assert_null(find(&tree.tools, at("home/.deno/bin")));
	assert_int_equal(tree.notes.n, 1);
	assert_int_equal(tree.path.n, 2);
	assert_string_equal(tree.path.v[0].path, at("home/.pyenv/shims"));
	assert_string_equal(tree.path.v[1].path, "/usr/bin");
	assert_int_equal(tree.certificates.n, 1);
	assert_string_equal(cm_strv_env_get(&tree.npm, "nodedir"), "/usr");
	assert_null(cm_strv_env_get(&tree.npm, "_auth"));
	cm_tree_facts_clear(&tree);
	cm_strv_clear(&env);
	free(host.home);
}

/* A group that more users can be in, even if it is the caller's own. */
static void test_shared_group(void **state)
{
	struct cm_host host = { .uid = getuid(), .gid = 64199 };
	struct cm_tree_facts tree;
	struct cm_strv env = { 0 };

	(void)state;
	skip_without_openat2();
	if (getuid() != 0) {
		print_message("SKIP ROOT: only root can give a file to another group\n");
		skip();
	}
	dir("home/.bun/bin");
	dir("home/.deno/bin");
	assert_int_equal(chown(at("home/.deno/bin"), (uid_t)-1, host.gid), 0);
	assert_int_equal(chmod(at("home/.deno/bin"), 0775), 0);
	host.home = cm_strdup(at("home"));
	assert_int_equal(cm_tree_facts_read(&host, NULL, &env, &tree, NULL), CM_OK);
	assert_non_null(find(&tree.tools, at("home/.bun/bin")));
	assert_null(find(&tree.tools, at("home/.deno/bin")));
	assert_int_equal(tree.notes.n, 1);
	assert_non_null(strstr(tree.notes.v[0], "others can write to it"));
	cm_tree_facts_clear(&tree);
	free(host.home);
}

static void check_rootfs(const struct cm_host *host, const char *path, int code, const char *msg)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_tree_facts tree = { .root = NULL };
	struct cm_strv env = { 0 };

	assert_int_equal(cm_tree_facts_read(host, path, &env, &tree, &err), code);
	assert_non_null(strstr(err.msg, msg));
	assert_true(err.hint[0] != '\0');
}

static void test_rootfs(void **state)
{
	struct cm_host host = { .uid = getuid(), .gid = getgid() };
	struct cm_tree_facts tree;
	struct cm_strv env = { 0 };

	(void)state;
	skip_without_openat2();
	host.home = cm_strdup(at("home"));
	dir("img/usr/bin");
	dir("img/etc/alternatives");
	dir("img/root");
	dir("img/srv");
	dir("img/var/lib/dpkg");
	dir("img/proc");
	dir("home/.cargo/bin");
	link_to("usr/bin", "img/bin");
	link_to("/etc/shadow", "img/etc/group");
	file("img/etc/passwd", "root:x:0:0:::\n");
	file("img/etc/shadow", "");
	link_to("img", "link");
	assert_int_equal(cm_strv_add(&env, "PATH=/usr/bin:/usr/sbin"), CM_OK);
	assert_int_equal(cm_tree_facts_read(&host, at("link"), &env, &tree, NULL), CM_OK);
	assert_string_equal(tree.root, at("img"));
	assert_int_equal(tree.top.n, 3);
	assert_string_equal(tree.top.v[0].path, at("img/bin"));
	assert_string_equal(tree.top.v[0].link, "usr/bin");
	assert_string_equal(tree.top.v[1].path, at("img/srv"));
	assert_string_equal(tree.top.v[2].path, at("img/usr"));
	assert_int_equal(tree.etc.n, 1);
	assert_non_null(find(&tree.extra, at("img/var/lib/dpkg")));
	assert_string_equal(tree.passwd, "root:x:0:0:::\n");
	/* it led to the host's */
	assert_null(tree.group);
	assert_int_equal(tree.tools.n, 0);
	assert_int_equal(tree.path.n, 1);
	cm_tree_facts_clear(&tree);
	check_rootfs(&host, at("none"), CM_E_NOT_FOUND, "cannot open the root file system");
	check_rootfs(&host, at("home"), CM_E_INVALID, "has neither /usr nor /bin");
	check_rootfs(&host, "/", CM_E_INVALID, "the root file system is '/'");
	assert_int_equal(rmdir(at("img/proc")), 0);
	link_to("/proc", "img/proc");
	check_rootfs(&host, at("img"), CM_E_INVALID, "is not a directory");
	cm_strv_clear(&env);
	free(host.home);
}

static void read_img(struct cm_tree_facts *tree)
{
	struct cm_host host = { .uid = getuid(), .gid = getgid() };
	struct cm_error err = CM_ERROR_INIT;

	if (cm_tree_facts_read_system(&host, at("img"), tree, &err) != CM_OK)
		fail_msg("%s", err.msg);
}

static size_t count_below(const struct cm_nodes *nodes, const char *path)
{
	size_t n = 0;

	for (size_t i = 0; i < nodes->n; i++)
		n += strcmp(nodes->v[i].path, path) != 0 &&
		     cm_path_is_below(nodes->v[i].path, path);
	return n;
}

static void assert_whole(const char *name, size_t n_entries)
{
	struct cm_tree_facts tree;
	const struct cm_node *node;

	read_img(&tree);
	node = find(&tree.etc, at(name));
	assert_non_null(node);
	if (!node->has_entries)
		fail_msg("%s: is mounted", name);
	assert_int_equal(count_below(&tree.etc, at(name)), n_entries);
	cm_tree_facts_clear(&tree);
}

static void assert_mounted(const char *name, const char *why)
{
	struct cm_tree_facts tree;
	const struct cm_node *node;

	read_img(&tree);
	node = find(&tree.etc, at(name));
	assert_non_null(node);
	if (node->has_entries || count_below(&tree.etc, at(name)) != 0)
		fail_msg("%s: %s is told of it", name, why);
	/* and what stands beside it is as it was */
	assert_int_equal(count_below(&tree.etc, at("img/etc/groff")), 1);
	cm_tree_facts_clear(&tree);
}

static void begin_img(void)
{
	/* what everybody may read, whatever the caller's is */
	(void)umask(022);
	dir("img/usr/bin");
	dir("img/etc/groff");
	file("img/etc/groff/man.local", "");
	dir("img/etc/perl/Net");
	file("img/etc/perl/Net/libnet.cfg", "x");
	link_to("Net/libnet.cfg", "img/etc/perl/link");
	file("img/etc/perl/config", "x");
	/* sorted between a directory and what is in it */
	dir("img/etc/php.d");
	dir("img/etc/php/cli");
	file("img/etc/php/cli/php.ini", "");
	file("img/etc/php.ini", "");
}

static void test_small_dirs(void **state)
{
	struct cm_tree_facts tree;
	const struct cm_node *node;

	(void)state;
	skip_without_openat2();
	begin_img();
	assert_whole("img/etc/perl", 4);
	read_img(&tree);
	assert_true(find(&tree.etc, at("img/etc/perl/Net"))->has_entries);
	assert_string_equal(find(&tree.etc, at("img/etc/perl/link"))->link, "Net/libnet.cfg");
	node = find(&tree.etc, at("img/etc/perl/Net/libnet.cfg"));
	assert_int_equal(node->type, CM_NODE_FILE);
	assert_int_equal(node->size, 1);
	/* each after what it is in */
	for (size_t i = 0; i < tree.etc.n; i++) {
		for (size_t j = 0; j < i; j++)
			assert_false(cm_path_is_below(tree.etc.v[j].path, tree.etc.v[i].path));
	}
	assert_non_null(find(&tree.etc, at("img/etc/php/cli/php.ini")));
	/* empty */
	assert_true(find(&tree.etc, at("img/etc/php.d"))->has_entries);
	cm_tree_facts_clear(&tree);
	/* a name below /etc */
	dir("img/etc/ssl/certs");
	file("img/etc/ssl/certs/ca.pem", "");
	assert_whole("img/etc/ssl/certs", 1);
}

/* Anything that is not to be copied, wherever in it: nothing is told of the directory. */
static void test_dirs_that_are_mounted(void **state)
{
	char name[64];

	(void)state;
	skip_without_openat2();
	begin_img();
	file("img/etc/perl/Net/private", "x");
	assert_int_equal(chmod(at("img/etc/perl/Net/private"), 0640), 0);
	assert_mounted("img/etc/perl", "a private file");
	assert_int_equal(chmod(at("img/etc/perl/Net/private"), 0755), 0);
	assert_mounted("img/etc/perl", "a program");
	assert_int_equal(chmod(at("img/etc/perl/Net/private"), 0644), 0);
	assert_whole("img/etc/perl", 5);
	assert_int_equal(truncate(at("img/etc/perl/Net/private"), CM_NODE_MAX_COPY), 0);
	assert_whole("img/etc/perl", 5);
	assert_int_equal(truncate(at("img/etc/perl/Net/private"), CM_NODE_MAX_COPY + 1), 0);
	assert_mounted("img/etc/perl", "a large file");
	assert_int_equal(unlink(at("img/etc/perl/Net/private")), 0);
	assert_int_equal(mkfifo(at("img/etc/perl/fifo"), 0644), 0);
	assert_int_equal(chmod(at("img/etc/perl/fifo"), 0644), 0);
	assert_mounted("img/etc/perl", "a FIFO");
	assert_int_equal(unlink(at("img/etc/perl/fifo")), 0);
	dir("img/etc/perl/Net/Deep");
	assert_mounted("img/etc/perl", "a third level");
	assert_int_equal(rmdir(at("img/etc/perl/Net/Deep")), 0);
	assert_int_equal(chmod(at("img/etc/perl/Net"), 0750), 0);
	assert_mounted("img/etc/perl", "a private directory");
	assert_int_equal(chmod(at("img/etc/perl/Net"), 0755), 0);
	assert_int_equal(chmod(at("img/etc/perl"), 0754), 0);
	assert_mounted("img/etc/perl", "a directory that not everybody may search");
	assert_int_equal(chmod(at("img/etc/perl"), 0755), 0);
	for (int i = 0; i < 4; i++) {
		assert_whole("img/etc/perl", 4 + (size_t)i);
		(void)snprintf(name, sizeof(name), "img/etc/perl/Net/%d", i);
		file(name, "");
	}
	assert_whole("img/etc/perl", 8);
	file("img/etc/perl/Net/4", "");
	assert_mounted("img/etc/perl", "the ninth entry");
}

/* A link is made again, wherever it leads; one on the way is for the mount to refuse. */
static void test_links_to_dirs(void **state)
{
	struct cm_tree_facts tree;

	(void)state;
	skip_without_openat2();
	begin_img();
	dir("img/else/certs");
	file("img/else/certs/ca.pem", "");
	link_to("../else", "img/etc/ssl");
	link_to("../else/certs", "img/etc/fonts");
	read_img(&tree);
	assert_int_equal(find(&tree.etc, at("img/etc/fonts"))->type, CM_NODE_SYMLINK);
	assert_int_equal(count_below(&tree.etc, at("img/etc/fonts")), 0);
	cm_tree_facts_clear(&tree);
	assert_mounted("img/etc/ssl/certs", "what a link leads to");
}

/* A plan has room for so many: the rest is mounted. */
static void test_many_small_dirs(void **state)
{
	static const char *const names[] = { "R",     "clang", "dotnet", "erlang", "fonts", "ghc",
					     "maven", "sgml",  "texmf",	 "xml",	   "java" };
	struct cm_tree_facts tree;
	char name[64];
	size_t n_whole = 0;
	size_t n_dirs = 0;

	(void)state;
	skip_without_openat2();
	(void)umask(022);
	dir("img/usr");
	for (size_t i = 0; i < CM_ARRAY_SIZE(names); i++) {
		(void)snprintf(name, sizeof(name), "img/etc/%s", names[i]);
		dir(name);
		for (int j = 0; j < 7; j++) {
			(void)snprintf(name, sizeof(name), "img/etc/%s/%d", names[i], j);
			file(name, "");
		}
	}
	read_img(&tree);
	for (size_t i = 0; i < tree.etc.n; i++) {
		n_dirs += tree.etc.v[i].type == CM_NODE_DIR;
		n_whole += tree.etc.v[i].has_entries;
	}
	assert_int_equal(n_dirs, CM_ARRAY_SIZE(names));
	assert_int_equal(n_whole, 9);
	assert_int_equal(tree.etc.n, n_dirs + 9 * 7);
	cm_tree_facts_clear(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_GROUND(test_host_tree),
		ON_GROUND(test_shared_group),
		ON_GROUND(test_rootfs),
		ON_GROUND(test_small_dirs),
		ON_GROUND(test_dirs_that_are_mounted),
		ON_GROUND(test_links_to_dirs),
		ON_GROUND(test_many_small_dirs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
