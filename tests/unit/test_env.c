/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of a command: what passes, what is ours, what is cut, what the caller names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/base/alloc.h"
#include "tests/unit/plan_fixture.h"

static void caller(struct fixture *f, const char *item)
{
	must(cm_strv_add(&f->env, item) == CM_OK);
}

static void check(struct fixture *f, const char *name, const char *value)
{
	struct cm_strv env = { 0 };
	const char *got;

	assert_int_equal(cm_env_build(&f->req, &f->env, &env, NULL), CM_OK);
	got = cm_strv_env_get(&env, name);
	if (value && !got)
		fail_msg("%s is not set", name);
	if (!value && got)
		fail_msg("%s is set to '%s'", name, got);
	if (value)
		assert_string_equal(got, value);
	cm_strv_clear(&env);
}

static void test_ours(void **state)
{
	static struct fixture f;

	(void)state;
	fixture_init(&f);
	caller(&f, "HOME=/elsewhere");
	caller(&f, "USER=mallory");
	caller(&f, "TMPDIR=/var/folders/x");
	caller(&f, "XDG_RUNTIME_DIR=/run/user/1001");
	caller(&f, "PWD=/somewhere");
	check(&f, "HOME", "/home/alice");
	check(&f, "USER", "alice");
	check(&f, "LOGNAME", "alice");
	check(&f, "SHELL", "/bin/bash");
	check(&f, "TMPDIR", "/tmp");
	check(&f, "XDG_RUNTIME_DIR", "/run/user/1000");
	check(&f, "CASEMATE", "1");
	check(&f, "CASEMATE_SESSION", "t1");
	check(&f, "PWD", "/home/alice/app");
	/* host root is not root inside, and root inside is */
	fixture_be_root(&f);
	check(&f, "USER", "user");
	f.spec.user = CM_USER_ROOT;
	check(&f, "USER", "root");
	fixture_clear(&f);
}

static void test_list(void **state)
{
	static struct fixture f;

	(void)state;
	fixture_init(&f);
	caller(&f, "LANG=C.UTF-8");
	caller(&f, "LC_MESSAGES=de_DE.UTF-8");
	caller(&f, "TERM=xterm");
	caller(&f, "CI=");
	caller(&f, "AWS_SECRET_ACCESS_KEY=k");
	caller(&f, "SSH_AUTH_SOCK=/run/agent");
	caller(&f, "https_proxy=http://u:p@proxy.example.org");
	caller(&f, "LD_PRELOAD=/x.so");
	check(&f, "LANG", "C.UTF-8");
	check(&f, "LC_MESSAGES", "de_DE.UTF-8");
	check(&f, "TERM", "xterm");
	check(&f, "CI", "");
	check(&f, "AWS_SECRET_ACCESS_KEY", NULL);
	check(&f, "SSH_AUTH_SOCK", NULL);
	check(&f, "https_proxy", NULL);
	check(&f, "LD_PRELOAD", NULL);
	fixture_clear(&f);
}

static void test_named(void **state)
{
	static struct fixture f;

	(void)state;
	fixture_init(&f);
	caller(&f, "CI_JOB=7");
	caller(&f, "CIRCUS=no");
	caller(&f, "TOKEN=t");
	must(cm_strv_add(&f.spec.pass_env, "CI_*") == CM_OK);
	must(cm_strv_add(&f.spec.env, "HOME=/opt/home") == CM_OK);
	must(cm_strv_add(&f.spec.env, "EMPTY=") == CM_OK);
	must(cm_strv_add(&f.spec.env, "X=1") == CM_OK);
	must(cm_strv_add(&f.spec.env, "X=2=3") == CM_OK);
	check(&f, "CI_JOB", "7");
	check(&f, "CIRCUS", NULL);
	check(&f, "TOKEN", NULL);
	check(&f, "HOME", "/opt/home");
	check(&f, "EMPTY", "");
	check(&f, "X", "2=3");
	fixture_clear(&f);
}

/* A name may be as long as it is. */
static void test_long_names(void **state)
{
	static struct fixture f;
	static char named[3000];
	static char passed[3000];
	static char item[4000];

	(void)state;
	fixture_init(&f);
	memset(named, 'N', sizeof(named) - 1);
	memset(passed, 'P', sizeof(passed) - 1);
	(void)snprintf(item, sizeof(item), "%s=1", named);
	must(cm_strv_add(&f.spec.env, item) == CM_OK);
	(void)snprintf(item, sizeof(item), "%s=2", passed);
	caller(&f, item);
	check(&f, named, "1");
	check(&f, passed, NULL);
	must(cm_strv_add(&f.spec.pass_env, "PP*P") == CM_OK);
	check(&f, passed, "2");
	fixture_clear(&f);
}

static void test_path(void **state)
{
	static struct fixture f;

	(void)state;
	fixture_init(&f);
	/* in the caller's order: a tool's own, one that is not inside, a link into one that is */
	cm_nodes_clear(&f.tree.path);
	fix_node(&f.tree.tools, "/home/alice/.nvm/versions", S_IFDIR | 0755, ALICE, NULL);
	fix_node(&f.tree.path, "/home/alice/.nvm/versions/node/v22/bin", S_IFDIR | 0755, ALICE,
		 NULL);
	fix_node(&f.tree.path, "/opt/tool/bin", S_IFDIR | 0755, 0, NULL);
	fix_node(&f.tree.path, "/run/user/1001/fnm/7/bin", S_IFDIR | 0755, ALICE,
		 "/home/alice/.nvm/versions/node/v20/bin");
	fix_node(&f.tree.path, "/bin", S_IFDIR | 0755, 0, NULL);
	fix_node(&f.tree.path, "/home/alice/app/node_modules/.bin", S_IFDIR | 0755, ALICE, NULL);
	check(&f, "PATH",
	      "/home/alice/.local/bin:/home/alice/.npm-global/bin:/home/alice/.cargo/bin:"
	      "/home/alice/.nvm/versions/node/v22/bin:/home/alice/.nvm/versions/node/v20/bin:/bin:"
	      "/home/alice/app/node_modules/.bin");
	/* the caller's place for cargo's programs is kept */
	fix_node(&f.tree.tools, "/home/alice/.cargo/bin", S_IFDIR | 0755, ALICE, NULL);
	fix_node(&f.tree.path, "/home/alice/.cargo/bin", S_IFDIR | 0755, ALICE, NULL);
	check(&f, "PATH",
	      "/home/alice/.local/bin:/home/alice/.npm-global/bin:"
	      "/home/alice/.nvm/versions/node/v22/bin:/home/alice/.nvm/versions/node/v20/bin:/bin:"
	      "/home/alice/app/node_modules/.bin:/home/alice/.cargo/bin");
	cm_nodes_clear(&f.tree.path);
	check(&f, "PATH",
	      "/home/alice/.local/bin:/home/alice/.npm-global/bin:/home/alice/.cargo/bin:"
	      "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin");
	fixture_clear(&f);
}

static void test_offline(void **state)
{
	static struct fixture f;

	(void)state;
	fixture_init(&f);
	caller(&f, "npm_config_fetch_retries=3");
	check(&f, "npm_config_fetch_retries", "3");
	check(&f, "npm_config_prefer_offline", "true");
	check(&f, "npm_config_audit", "false");
	check(&f, "CARGO_NET_OFFLINE", "true");
	check(&f, "PIP_RETRIES", "0");
	check(&f, "GOPROXY", "off");
	check(&f, "YARN_ENABLE_NETWORK", "0");
	f.spec.network = CM_NETWORK_HOST;
	check(&f, "npm_config_fetch_retries", NULL);
	check(&f, "PIP_RETRIES", NULL);
	check(&f, "GOPROXY", NULL);
	/* a proxy of the caller's, unless it has a password */
	caller(&f, "GOPROXY=https://go.example.org");
	check(&f, "GOPROXY", "https://go.example.org");
	must(cm_strv_env_set(&f.env, "GOPROXY", "https://u:p@go.example.org") == CM_OK);
	check(&f, "GOPROXY", NULL);
	fixture_clear(&f);
}

static void test_certificates(void **state)
{
	static struct fixture f;

	(void)state;
	fixture_init(&f);
	caller(&f, "SSL_CERT_FILE=/etc/ssl/certs/ca.pem");
	caller(&f, "PIP_CERT=/srv/ca.pem");
	caller(&f, "CURL_CA_BUNDLE=/srv/not-mounted.pem");
	caller(&f, "NODE_EXTRA_CA_CERTS=relative.pem");
	fix_node(&f.tree.certificates, "/srv/ca.pem", S_IFREG | 0644, 0, NULL);
	check(&f, "SSL_CERT_FILE", "/etc/ssl/certs/ca.pem");
	check(&f, "PIP_CERT", "/srv/ca.pem");
	check(&f, "CURL_CA_BUNDLE", NULL);
	check(&f, "NODE_EXTRA_CA_CERTS", NULL);
	fixture_clear(&f);
}

static void test_tools(void **state)
{
	static struct fixture f;

	(void)state;
	fixture_init(&f);
	caller(&f, "RUSTUP_HOME=/usr/local/rustup");
	caller(&f, "PYENV_ROOT=/srv/pyenv");
	caller(&f, "NVM_DIR=/srv/nvm");
	caller(&f, "CARGO_HOME=/home/alice/.cargo");
	fix_node(&f.tree.tools, "/srv/pyenv/bin", S_IFDIR | 0755, 0, NULL);
	check(&f, "RUSTUP_HOME", "/usr/local/rustup");
	check(&f, "PYENV_ROOT", "/srv/pyenv");
	/* nothing of it is inside */
	check(&f, "NVM_DIR", NULL);
	/* the private home's, always */
	check(&f, "CARGO_HOME", NULL);
	check(&f, "npm_config_prefix", "/home/alice/.npm-global");
	check(&f, "CARGO_INSTALL_ROOT", NULL);
	check(&f, "npm_config_globalconfig", NULL);
	fix_node(&f.tree.tools, "/home/alice/.cargo/bin", S_IFDIR | 0755, ALICE, NULL);
	fix_node(&f.tree.tools, "/home/alice/.nvm/versions", S_IFDIR | 0755, ALICE, NULL);
	must(cm_strv_add(&f.tree.npm, "nodedir=/usr") == CM_OK);
	check(&f, "CARGO_INSTALL_ROOT", "/home/alice/.local");
	/* nvm does not work beside one */
	check(&f, "npm_config_prefix", NULL);
	check(&f, "npm_config_globalconfig", "/etc/npmrc");
	fixture_clear(&f);
}

static void test_rootfs(void **state)
{
	static struct fixture f;

	(void)state;
	fixture_init(&f);
	fix_set(&f.tree.root, "/srv/images/debian");
	check(&f, "HOME", "/home/user");
	check(&f, "USER", "user");
	check(&f, "SHELL", "/bin/sh");
	fix_set(&f.tree.passwd, "root:x:0:0::/root:/bin/sh\nnode:x:1000:1000::/srv/node:/bin/sh\n");
	check(&f, "USER", "node");
	check(&f, "HOME", "/home/user");
	fixture_clear(&f);
}

static void test_no_memory(void **state)
{
	static struct fixture f;
	bool is_done = false;

	(void)state;
	fixture_init(&f);
	caller(&f, "LANG=C");
	must(cm_strv_add(&f.spec.env, "A=b") == CM_OK);
	for (long n = 0; !is_done; n++) {
		struct cm_error err = CM_ERROR_INIT;
		struct cm_strv env = { 0 };
		int r;

		cm_alloc_fail_after(n);
		r = cm_env_build(&f.req, &f.env, &env, &err);
		cm_alloc_fail_after(-1);
		is_done = r == CM_OK;
		if (!is_done) {
			assert_int_equal(err.code, CM_E_NOMEM);
			assert_null(env.v);
		}
		cm_strv_clear(&env);
		assert_true(n < 1000);
	}
	fixture_clear(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ours),	     cmocka_unit_test(test_list),
		cmocka_unit_test(test_named),	     cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_path),	     cmocka_unit_test(test_offline),
		cmocka_unit_test(test_certificates), cmocka_unit_test(test_tools),
		cmocka_unit_test(test_rootfs),	     cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
