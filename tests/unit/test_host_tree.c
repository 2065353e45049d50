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

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_GROUND(test_host_tree),
		ON_GROUND(test_shared_group),
		ON_GROUND(test_rootfs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
