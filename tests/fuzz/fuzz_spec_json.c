/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configuration files of any bytes: what is taken reads back as the same values when it is shown,
 * and as a ceiling it widens nothing.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/spec/format.h"
#include "runtime/spec/merge.h"
#include "runtime/spec/spec_json.h"
#include "tests/fuzz/fuzz.h"

#define OUT_MAX (64UL * 1024 * 1024)

static const struct cm_strv no_env;
static const struct cm_caller nobody = { .cwd = "/", .home = "/", .env = &no_env };

static void require_error(int r, const struct cm_error *err)
{
	require(r < 0 && r == err->code && err->msg[0] != '\0');
}

/* The keys that have a value, as a file; the environment as pairs, as `write_json` has it. */
static void show(const struct cm_spec *spec, struct cm_buf *out)
{
	struct cm_json_writer w;

	cm_buf_init(out, OUT_MAX);
	cm_jw_init(&w, out, false);
	cm_jw_object(&w);
	for (unsigned int key = 0; key < CM_KEY_COUNT; key++) {
		const struct cm_key_info *info = cm_key_info((enum cm_key)key);

		if (!info->json || cm_key_count_values(info, spec) == 0)
			continue;
		cm_jw_key(&w, info->json);
		cm_key_write_json(info, spec, &w);
	}
	cm_jw_end_object(&w);
	require(cm_buf_status(out) == CM_OK);
}

static void lay(const struct cm_layer *layer, struct cm_spec *ret)
{
	struct cm_merge m = { .spec = ret, .caller = &nobody };

	cm_spec_init(ret);
	/* every value was tried when the file was read */
	require(cm_merge_layer(&m, layer, NULL) == CM_OK);
}

static void check_round_trip(const struct cm_layer *layer)
{
	struct cm_file file = { 0 };
	struct cm_spec spec;
	struct cm_spec again;
	struct cm_buf first;
	struct cm_buf second;

	lay(layer, &spec);
	show(&spec, &first);
	/* what takes more room when it is shown may be over the reader's bounds */
	if (cm_file_parse(first.data, first.len, "shown", "/", 0, &file, NULL) == CM_OK) {
		lay(&file.keys, &again);
		show(&again, &second);
		require(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
		cm_buf_clear(&second);
		cm_spec_clear(&again);
	}
	cm_file_clear(&file);
	cm_buf_clear(&first);
	cm_spec_clear(&spec);
}

static void check_limit(const struct cm_limit *before, const struct cm_limit *after)
{
	require(after->value <= before->value);
	/* an optional ceiling may lower a required limit, but not release it */
	require(!after->is_optional || before->is_optional || after->value < before->value);
}

static void check_ceiling(const struct cm_layer *layer)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_spec before;
	struct cm_spec spec;
	struct cm_merge m = { .spec = &spec, .caller = &nobody };
	int r;

	cm_spec_init(&before);
	before.limits.memory = (struct cm_limit){ UINT64_C(1) << 30, true, false };
	cm_spec_init(&spec);
	spec.limits.memory = before.limits.memory;
	r = cm_merge_ceiling(&m, layer, true, &err);
	if (r != CM_OK)
		require_error(r, &err);
	check_limit(&before.limits.memory, &spec.limits.memory);
	check_limit(&before.limits.pids, &spec.limits.pids);
	check_limit(&before.limits.swap, &spec.limits.swap);
	check_limit(&before.limits.cpus, &spec.limits.cpus);
	check_limit(&before.limits.timeout, &spec.limits.timeout);
	require(spec.network == CM_NETWORK_NONE && spec.user == CM_USER_USER);
	require(spec.git == CM_GIT_PINNED && spec.min_level >= before.min_level);
	require(spec.env.n == 0 && spec.pass_env.n == 0 && spec.setup.n == 0);
	require(spec.n_volumes == 0 && !spec.root && !spec.rootfs && !spec.workspace);
	require(!spec.repo && !spec.workdir);
	cm_merge_clear(&m);
	cm_spec_clear(&spec);
	cm_spec_clear(&before);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_file file = { 0 };
	int r = cm_file_parse((const char *)data, size, "f", "/",
			      CM_FILE_PROFILES | CM_FILE_CEILING, &file, &err);

	if (r != CM_OK) {
		require_error(r, &err);
	} else {
		check_round_trip(&file.keys);
		check_ceiling(&file.keys);
		check_ceiling(&file.ceiling);
	}
	cm_file_clear(&file);
	return 0;
}
