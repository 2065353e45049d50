/* SPDX-License-Identifier: Apache-2.0 */
/* What the provider asks of the planner for jails of our own: real facts, no jail. */
#include "isolation/plan/plan.h"
#include "providers/local/local_internal.h"
#include "tests/unit/skip_syscalls.h"
#include "tests/unit/test_base.h"

#define ID "plan-test"

static struct cm_config config;
static struct cm_local local;

static void open_local(const char *scratch)
{
	static const char *const variables[] = { "XDG_STATE_HOME", "XDG_RUNTIME_DIR",
						 "XDG_CACHE_HOME" };
	const struct cm_local_events events = { 0 };
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_FREE char *root = cm_asprintf("%s/root", scratch);
	struct cm_spec spec;

	assert_int_equal(cm_config_init(&config, &err), CM_OK);
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		assert_int_equal(cm_strv_env_set(&config.env, variables[i], scratch), CM_OK);
	cm_spec_init(&spec);
	spec.session_id = cm_strdup(ID);
	spec.root = cm_strdup(root);
	spec.workspace_kind = CM_WORKSPACE_NONE;
	spec.network = CM_NETWORK_HOST;
	cm_local_init(&local);
	if (cm_local_open(&local, &spec, &config, &events, &err) != CM_OK)
		fail_msg("%s", err.msg);
	cm_spec_clear(&spec);
	local.session.record.id = cm_strdup(ID);
	/* whoever runs this, also root without capabilities */
	local.session.record.slot = CM_SLOT_NONE;
	local.host.is_root = false;
	local.host.uid = local.host.gid = CM_ID_AGENT;
	/* of Linux 6.7: without scopes */
	local.host.landlock_abi = 4;
}

static void close_local(void)
{
	free(local.session.record.id);
	local.session.record.id = NULL;
	cm_local_close(&local);
	cm_config_clear(&config);
}

static int make(const struct cm_local_plan *extra, struct cm_buf *flat, struct cm_error *err)
{
	cm_buf_clear(flat);
	cm_buf_init(flat, 2UL * CM_PLAN_MAX_STRINGS);
	return cm_local_plan_make(&local, &local.spec, NULL, true, extra, flat, err);
}

static void test_refuses_unix_sockets(void **state)
{
	const struct cm_local_plan extra = { .refuses_unix_sockets = true };
	const struct cm_local_plan other = { .mounts = { { "/usr", "/mnt", CM_OPF_WRITABLE } },
					     .n_mounts = 1 };
	CM_AUTO_BUF struct cm_buf flat = { 0 };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_plan plan;

	skip_without_openat2();
	open_local(*state);
	if (make(&extra, &flat, &err) != CM_OK)
		fail_msg("%s", err.msg);
	assert_int_equal(cm_plan_check(flat.data, flat.len, &plan, &err), CM_OK);
	assert_int_equal(plan.header->seccomp, CM_SECCOMP_NO_UNIX);
	assert_int_equal(plan.header->flags & CM_PLANF_NETNS, 0);
	/* who did not ask for it has neither */
	assert_int_equal(make(&other, &flat, &err), CM_E_LEVEL);
	assert_int_equal(make(NULL, &flat, &err), CM_E_LEVEL);
	local.spec.network = CM_NETWORK_NONE;
	assert_int_equal(make(NULL, &flat, &err), CM_OK);
	assert_int_equal(cm_plan_check(flat.data, flat.len, &plan, &err), CM_OK);
	assert_int_equal(plan.header->seccomp, CM_SECCOMP_DEFAULT);
	close_local();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_refuses_unix_sockets, scratch_setup,
						scratch_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
