/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conformance suite of providers: TAP on standard output.
 *
 *	provider-suite PROVIDER [GROUP[/TEST]]
 *
 * CM_TEST_PORT: of the stand-in server that the provider's variables name, if it has one; CM_TEST_LOG: its
 * log. CM_TEST_SKIPS: capabilities that this host cannot give ("limit-memory ..."), and no others are
 * allowed to be missing.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "providers/registry.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "tests/conformance/provider/suite.h"

/* What each is known to lack: all else has to be there. */
static const struct lack {
	const char *provider;
	uint32_t caps;
} lacks[] = {
	{ "local", CM_CAP_NETWORK_INTERNET | CM_CAP_TEARDOWN | CM_CAP_SNAPSHOT | CM_CAP_CLONE |
			   CM_CAP_TEMPLATE | CM_CAP_PUBLISH | CM_CAP_FILE_URL },
	{ "e2b", CM_CAP_NETWORK_HOST | CM_CAP_LIMIT_MEMORY | CM_CAP_LIMIT_CPU | CM_CAP_LIMIT_PIDS |
			 CM_CAP_LIMIT_FILES | CM_CAP_LIMIT_SESSIONS | CM_CAP_HOST_FILES |
			 CM_CAP_ROOTFS | CM_CAP_GIT_PINNED | CM_CAP_LEVEL | CM_CAP_RETENTION |
			 CM_CAP_AS_USER },
	{ "platform", CM_CAP_NETWORK_NONE | CM_CAP_NETWORK_HOST | CM_CAP_LIMIT_MEMORY |
			      CM_CAP_LIMIT_CPU | CM_CAP_LIMIT_PIDS | CM_CAP_LIMIT_FILES |
			      CM_CAP_LIMIT_TIME | CM_CAP_LIMIT_SESSIONS | CM_CAP_HOST_FILES |
			      CM_CAP_ROOTFS | CM_CAP_GIT_PINNED | CM_CAP_LEVEL | CM_CAP_RETENTION |
			      CM_CAP_ROOT_USER | CM_CAP_TTY | CM_CAP_STDIN | CM_CAP_PUBLISH |
			      CM_CAP_FILE_URL | CM_CAP_AS_USER },
};

static const struct {
	const char *name;
	const struct test *tests;
} groups[] = {
	{ "lifecycle", suite_lifecycle }, { "refusals", suite_refusals },
	{ "exec", suite_exec },		  { "streams", suite_streams },
	{ "process", suite_process },	  { "files", suite_files },
	{ "watch", suite_watch },	  { "urls", suite_urls },
	{ "copies", suite_copies },	  { "templates", suite_templates },
	{ "errors", suite_errors },	  { "faults", suite_faults },
	{ "elsewhere", suite_elsewhere }, { "kept", suite_kept },
};

static void report(struct suite *t, const char *group, const char *name, const char *why)
{
	const char *bug = suite_take_bug();

	CHECK(t, !bug, "a mistake of ours: %s", bug);
	t->n++;
	t->n_failed += t->has_failed;
	(void)printf("%s %u - %s: %s%s%s\n", t->has_failed ? "not ok" : "ok", t->n, group, name,
		     why ? " # SKIP " : "", why ? why : "");
	(void)fflush(stdout);
	t->has_failed = false;
}

static void run(struct suite *t, const char *group, const struct test *test)
{
	uint32_t missing = test->needs & ~t->caps;
	int64_t since = cm_clock_mono_ms();

	if (missing != 0) {
		report(t, group, test->name, cm_cap_text(missing));
		return;
	}
	test->run(t);
	if (cm_clock_mono_ms() - since > 3000)
		(void)printf("# %s: %lld ms\n", test->name,
			     (long long)(cm_clock_mono_ms() - since));
	report(t, group, test->name, NULL);
}

static bool is_wanted(const char *only, const char *group, const char *name)
{
	size_t len = only ? strcspn(only, "/") : 0;

	if (!only)
		return true;
	if (strlen(group) != len || strncmp(only, group, len) != 0)
		return false;
	return only[len] == '\0' || strstr(name, only + len + 1) != NULL;
}

static void run_all(struct suite *t, const char *only)
{
	for (size_t i = 0; i < CM_ARRAY_SIZE(groups); i++) {
		bool is_remote =
			groups[i].tests == suite_faults || groups[i].tests == suite_elsewhere;

		if (t->port == 0 ? is_remote : groups[i].tests == suite_kept)
			continue;
		for (const struct test *test = groups[i].tests; test->name; test++) {
			if (is_wanted(only, groups[i].name, test->name))
				run(t, groups[i].name, test);
		}
	}
}

static bool may_lack(const char *name)
{
	const char *allowed = getenv("CM_TEST_SKIPS");
	const char *at = allowed ? strstr(allowed, name) : NULL;
	size_t len = strlen(name);

	return at && (at == allowed || at[-1] == ' ') && (at[len] == '\0' || at[len] == ' ');
}

/* A capability that is lost is no reason to skip what needs it. */
static void check_caps(struct suite *t)
{
	uint32_t lack = 0;

	for (size_t i = 0; i < CM_ARRAY_SIZE(lacks); i++) {
		if (strcmp(lacks[i].provider, t->provider) == 0)
			lack = lacks[i].caps;
	}
	for (unsigned int bit = 0; bit < CM_CAP_BIT_COUNT_; bit++) {
		uint32_t cap = UINT32_C(1) << bit;
		char name[CM_CAP_NAME_SIZE];

		(void)cm_cap_name(cap, name);
		CHECK(t, (t->caps & cap) != 0 || (lack & cap) != 0 || may_lack(name),
		      "capability %s is lost", name);
		CHECK(t, (t->caps & cap & lack) == 0, "capability %s is new: take it off the list",
		      name);
	}
	report(t, "suite", "it has what it is known to have, and no more", NULL);
}

static void on_text(void *data, const char *text)
{
	struct suite *t = data;

	t->is_told = t->is_told || suite_has_secret(t, text);
}

static int open_provider(struct suite *t, const struct cm_provider_ops *ops)
{
	const struct cm_provider_config config = {
		.config = &t->config, .note = on_text, .trace = on_text, .data = t
	};
	struct cm_call call = suite_call(SUITE_MS);
	struct cm_error err = CM_ERROR_INIT;
	int r = cm_config_init(&t->config, &err);

	if (r == CM_OK)
		r = cm_provider_open(ops, &config, &t->p, &err);
	if (r == CM_OK)
		r = cm_provider_probe(t->p, &call, &t->caps, &err);
	if (r < 0)
		(void)printf("Bail out! %s (%s)\n", err.msg, err.hint);
	return r;
}

static void end_shared(struct suite *t)
{
	suite_end(t, t->s);
	t->s = NULL;
	if (t->port != 0)
		CHECK(t, n_sandboxes(t) == 0, "%d sandboxes are left", n_sandboxes(t));
	report(t, "suite", "nothing is left", NULL);
	CHECK(t, !t->is_told, "a note or a trace has the service's key");
	report(t, "suite", "no secret was told", NULL);
}

int main(int argc, char **argv)
{
	const struct cm_provider_ops *ops = argc > 1 ? cm_provider_find(argv[1]) : NULL;
	const char *port = getenv("CM_TEST_PORT");
	struct suite t = { .provider = argc > 1 ? argv[1] : "" };
	char name[64];

	if (!ops) {
		(void)fprintf(stderr, "usage: %s PROVIDER [GROUP[/TEST]]\n", argv[0]);
		return 2;
	}
	t.port = port ? (int)strtol(port, NULL, 10) : 0;
	t.secret = getenv(strcmp(t.provider, "e2b") == 0 ? "E2B_API_KEY"
							 : "MASTRA_PLATFORM_ACCESS_TOKEN");
	(void)snprintf(t.tag, sizeof(t.tag), "%d", (int)getpid());
	if (open_provider(&t, ops) < 0)
		return 99;
	check_caps(&t);
	suite_name(&t, name);
	t.s = suite_create(&t, name);
	report(&t, "suite", "a session for what follows", NULL);
	if (t.s)
		run_all(&t, argc > 2 ? argv[2] : NULL);
	end_shared(&t);
	cm_provider_close(t.p);
	cm_config_clear(&t.config);
	(void)printf("1..%u\n", t.n);
	return t.n_failed == 0 ? 0 : 1;
}
