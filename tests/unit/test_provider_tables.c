/* SPDX-License-Identifier: Apache-2.0 */
/* All tables: what a capability promises has an operation, and none is there without it. */
#include "tests/unit/test_base.h"

#include "providers/registry.h"
#include "providers/selection.h"
#include "providers/skeleton/skeleton.h"
#include "runtime/spec/spec.h"

static void check_bit(const struct cm_provider_ops *ops, uint32_t cap, bool has_slot)
{
	if (((ops->caps & cap) != 0) != has_slot)
		fail_msg("%s: '%s' and its operation disagree", ops->name, cm_cap_text(cap));
}

static void check_table(const struct cm_provider_ops *ops)
{
	assert_int_equal(ops->abi, CM_PROVIDER_ABI);
	assert_true(ops->name && ops->name[0] != '\0');
	/* without these it is none */
	assert_true(ops->open && ops->close && ops->probe && ops->session_create &&
		    ops->session_attach && ops->session_start && ops->session_stop &&
		    ops->session_destroy && ops->session_release && ops->session_info &&
		    ops->session_list);
	check_bit(ops, CM_CAP_FILES,
		  ops->file_read && ops->file_write && ops->file_list && ops->file_stat &&
			  ops->file_mkdir && ops->file_move && ops->file_remove);
	/* it has no bit of its own */
	assert_true(!ops->file_paths || (ops->caps & CM_CAP_FILES) != 0);
	check_bit(ops, CM_CAP_WATCH, ops->file_watch != NULL);
	check_bit(ops, CM_CAP_FILE_URL, ops->file_url != NULL);
	check_bit(ops, CM_CAP_DETACH, ops->exec_attach && ops->exec_list);
	check_bit(ops, CM_CAP_SNAPSHOT, ops->snapshot != NULL);
	check_bit(ops, CM_CAP_CLONE, ops->clone != NULL);
	check_bit(ops, CM_CAP_PUBLISH, ops->publish != NULL);
	check_bit(ops, CM_CAP_TEMPLATE,
		  ops->template_build && ops->template_list && ops->template_remove);
	/* what is about commands needs commands */
	if ((ops->caps & (CM_CAP_STDIN | CM_CAP_TTY | CM_CAP_SIGNAL | CM_CAP_DETACH |
			  CM_CAP_EXEC_TIMEOUT)) != 0)
		assert_non_null(ops->exec_start);
	/* some policy of the network has to be had, or no session can ever be made */
	assert_true((ops->caps &
		     (CM_CAP_NETWORK_NONE | CM_CAP_NETWORK_INTERNET | CM_CAP_NETWORK_HOST)) != 0);
}

static void test_tables(void **state)
{
	size_t n = 0;

	(void)state;
	for (; cm_provider_tables[n]; n++)
		check_table(cm_provider_tables[n]);
	check_table(&cm_skeleton_ops);
	/* and each that can be chosen is there */
	assert_int_equal(n, CM_PROVIDER_COUNT_);
	for (unsigned int kind = 0; kind < CM_PROVIDER_COUNT_; kind++)
		assert_non_null(
			cm_provider_find(cm_provider_kind_name((enum cm_provider_kind)kind)));
}

static int count(void *data, const struct cm_session_info *info)
{
	assert_true(info->id[0] != '\0');
	++*(size_t *)data;
	return 0;
}

/* What everybody copies does what everybody promises. */
static void test_skeleton(void **state)
{
	const struct cm_provider_config config = { NULL };
	const struct cm_call call = { .deadline_ms = INT64_MAX, .cancel_fd = -1 };
	static char id[] = "s";
	struct cm_session_info info = { 0 };
	struct cm_provider *p = NULL;
	struct cm_session *first = NULL;
	struct cm_session *second = NULL;
	struct cm_spec spec;
	size_t n = 0;

	(void)state;
	assert_int_equal(cm_provider_open(&cm_skeleton_ops, &config, &p, NULL), CM_OK);
	cm_spec_init(&spec);
	spec.network = CM_NETWORK_NONE;
	spec.session_id = id;
	assert_int_equal(cm_session_create(p, &spec, &call, &first, NULL), CM_OK);
	assert_true(first->is_new);
	assert_int_equal(cm_session_create(p, &spec, &call, &second, NULL), CM_OK);
	assert_false(second->is_new);
	assert_true(second->was_running);
	assert_int_equal(cm_session_list(p, &call, count, &n, NULL), CM_OK);
	assert_int_equal(n, 1);
	assert_int_equal(cm_session_stop(first, &call, NULL), CM_OK);
	assert_int_equal(cm_session_info(second, &call, &info, NULL), CM_OK);
	assert_int_equal(info.state, CM_SESSION_STOPPED);
	cm_session_info_clear(&info);
	assert_int_equal(cm_session_destroy(first, &call, NULL), CM_OK);
	assert_int_equal(cm_session_destroy(second, &call, NULL), CM_OK);
	cm_session_release(first);
	cm_session_release(second);
	assert_int_equal(cm_session_attach(p, id, &call, &first, NULL), CM_E_NOT_FOUND);
	spec.session_id = NULL;
	cm_spec_clear(&spec);
	cm_provider_close(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_skeleton),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
