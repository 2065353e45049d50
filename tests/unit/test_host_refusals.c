/* SPDX-License-Identifier: Apache-2.0 */
/* Host paths that nobody may give to a jail. */
#include <sys/socket.h>
#include <sys/un.h>

#include "runtime/base/alloc.h"
#include "tests/unit/host_ground.h"

struct refusal_fixture {
	struct cm_host host;
	struct cm_strv env;
	struct cm_strv private_dirs;
	struct cm_refusals refusals;
};

static void refusals_read(struct refusal_fixture *f)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memset(f, 0, sizeof(*f));
	dir("home/alice/app");
	dir("home/alice/.local/state/casemate/sessions");
	dir("home/alice/.sandboxes/s1/app");
	dir("home/alice/.sandboxes/s2");
	dir("agent");
	assert_true(snprintf(address.sun_path, sizeof(address.sun_path), "%s/agent/sock", top) <
		    (int)sizeof(address.sun_path));
	assert_int_equal(bind(sock, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(close(sock), 0);
	f->host.home = cm_strdup(at("home/alice"));
	f->host.uid = getuid();
	assert_int_equal(cm_strv_addf(&f->env, "SSH_AUTH_SOCK=%s/agent/sock", top), CM_OK);
	assert_int_equal(cm_strv_add(&f->env, "DOCKER_HOST=tcp://127.0.0.1:2375"), CM_OK);
	assert_int_equal(cm_strv_add(&f->private_dirs, at("home/alice/.local/state/casemate")),
			 CM_OK);
	assert_int_equal(cm_strv_add(&f->private_dirs, at("home/alice/.sandboxes")), CM_OK);
	assert_int_equal(cm_strv_add(&f->private_dirs, at("not-there")), CM_OK);
	assert_int_equal(cm_refusals_read(&f->host, &f->env, &f->private_dirs, &f->refusals, NULL),
			 CM_OK);
}

static void refusals_end(struct refusal_fixture *f)
{
	cm_refusals_clear(&f->refusals);
	cm_strv_clear(&f->env);
	cm_strv_clear(&f->private_dirs);
	free(f->host.home);
}

static int check(struct refusal_fixture *f, const char *path)
{
	return cm_refusals_check(&f->refusals, path, "a workspace", NULL, NULL);
}

static void test_refused_paths(void **state)
{
	static const char *const refused[] = {
		"home/alice",
		"home/alice/",
		"home/alice/app/..",
		"home",
		"home/alice/.local",
		"home/alice/.local/state/casemate",
		"home/alice/.local/state/casemate/sessions",
		"home/alice/.sandboxes",
		"home/alice/.sandboxes/s1",
		"home/alice/.sandboxes/s1/app",
		"agent",
		"agent/sock",
		"link-home",
		"link-state/sessions",
		"link-etc",
		"link-run",
	};
	static const char *const system_paths[] = {
		"/",	"/etc", "/etc/ssl", "/proc", "/proc/self/root", "/dev/shm",
		"/usr", "/var", "/run",	    "/tmp",  "/sys/kernel",	"/home",
	};
	struct refusal_fixture f;

	(void)state;
	refusals_read(&f);
	link_to("home/alice", "link-home");
	link_to("home/alice/.local/state/casemate", "link-state");
	link_to("/etc", "link-etc");
	link_to("/var/run", "link-run");
	assert_int_equal(check(&f, at("home/alice/app")), CM_OK);
	for (size_t i = 0; i < CM_ARRAY_SIZE(refused); i++) {
		if (check(&f, at(refused[i])) != CM_E_DENIED)
			fail_msg("not refused: %s", refused[i]);
	}
	for (size_t i = 0; i < CM_ARRAY_SIZE(system_paths); i++) {
		if (access(system_paths[i], F_OK) == 0 && check(&f, system_paths[i]) != CM_E_DENIED)
			fail_msg("not refused: %s", system_paths[i]);
	}
	assert_int_equal(check(&f, at("none")), CM_E_NOT_FOUND);
	/* nothing refused lies in these */
	assert_int_equal(check(&f, "/usr/share"), CM_OK);
	assert_int_equal(check(&f, "/usr/bin/env"), CM_OK);
	refusals_end(&f);
}

static void test_refusal_words(void **state)
{
	struct cm_error err = CM_ERROR_INIT;
	struct refusal_fixture f;
	char expected[512];

	(void)state;
	refusals_read(&f);
	assert_int_equal(
		cm_refusals_check(&f.refusals, at("home/alice"), "a workspace", NULL, &err),
		CM_E_DENIED);
	assert_true(snprintf(expected, sizeof(expected), "refusing to use '%s' as a workspace",
			     at("home/alice")) > 0);
	assert_string_equal(err.msg, expected);
	assert_string_equal(err.hint, "cd into a project, or name one with --workspace DIR");
	assert_int_equal(cm_refusals_check(&f.refusals, "/etc", "a volume", NULL, &err),
			 CM_E_DENIED);
	assert_string_equal(err.msg, "refusing to use '/etc' as a volume");
	assert_true(err.hint[0] != '\0');
	refusals_end(&f);
}

/* The session's own directory, and nothing beside or above it. */
static void test_allowed(void **state)
{
	struct refusal_fixture f;
	char own[512];

	(void)state;
	refusals_read(&f);
	assert_true(snprintf(own, sizeof(own), "%s", at("home/alice/.sandboxes/s1")) > 0);
	assert_int_equal(cm_refusals_check(&f.refusals, own, "a workspace", own, NULL), CM_OK);
	assert_int_equal(cm_refusals_check(&f.refusals, at("home/alice/.sandboxes/s1/app"),
					   "a workspace", own, NULL),
			 CM_OK);
	assert_int_equal(cm_refusals_check(&f.refusals, at("home/alice/.sandboxes/s2"),
					   "a workspace", own, NULL),
			 CM_E_DENIED);
	assert_int_equal(cm_refusals_check(&f.refusals, at("home/alice/.sandboxes"), "a workspace",
					   own, NULL),
			 CM_E_DENIED);
	/* a link in its place allows nothing */
	link_to("home/alice/.sandboxes/s2", "fake");
	assert_int_equal(cm_refusals_check(&f.refusals, at("home/alice/.sandboxes/s2"),
					   "a workspace", at("fake"), NULL),
			 CM_E_DENIED);
	refusals_end(&f);
}

/* Renamed under another name, it is still the same directory. */
static void test_refused_by_identity(void **state)
{
	struct refusal_fixture f;

	(void)state;
	refusals_read(&f);
	assert_int_equal(rename(at("home/alice/.sandboxes"), at("innocent")), 0);
	dir("home/alice/.sandboxes");
	assert_int_equal(check(&f, at("innocent/s1")), CM_E_DENIED);
	assert_int_equal(check(&f, at("home/alice/.sandboxes")), CM_OK);
	refusals_end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_GROUND(test_refused_paths),
		ON_GROUND(test_refusal_words),
		ON_GROUND(test_allowed),
		ON_GROUND(test_refused_by_identity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
