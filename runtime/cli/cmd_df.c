/* SPDX-License-Identifier: Apache-2.0 */
/* casemate df: what sessions take of the disk, and what of it could go. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/fd.h"
#include "runtime/base/num.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/sessions.h"
#include "runtime/store/usage.h"

#define MAX_TEXT (64UL * 1024)
#define SIZE_TEXT 32

static void write_share(struct cm_json_writer *w, const struct cm_store_share *share)
{
	cm_jw_object(w);
	cm_jw_kuint(w, "count", share->count);
	cm_jw_kuint(w, "bytes", share->size.bytes);
	cm_jw_kbool(w, "partial", share->size.is_partial);
	cm_jw_kuint(w, "reclaimableCount", share->n_idle);
	cm_jw_kuint(w, "reclaimableBytes", share->idle_bytes);
	cm_jw_end_object(w);
}

static void write_json(const struct cm_store_usage *usage, struct cm_buf *out)
{
	struct cm_json_writer w;

	cm_jw_init(&w, out, true);
	cm_jw_object(&w);
	for (int i = 0; i < CM_STORE_PART_COUNT; i++) {
		cm_jw_key(&w, cm_store_part_name((enum cm_store_part)i));
		write_share(&w, &usage->of[i]);
	}
	cm_jw_end_object(&w);
	cm_buf_putc(out, '\n');
}

static void put_row(struct cm_buf *out, const char *name, const struct cm_store_share *share)
{
	char size[SIZE_TEXT];
	char idle[SIZE_TEXT];
	char whole[SIZE_TEXT + 2];

	cm_format_size(share->size.bytes, size, sizeof(size));
	cm_format_size(share->idle_bytes, idle, sizeof(idle));
	(void)snprintf(whole, sizeof(whole), "%s%s", size, share->size.is_partial ? "+" : "");
	cm_buf_printf(out, "%-18s  %6llu  %11s  %11s\n", name, (unsigned long long)share->count,
		      whole, idle);
}

/* How to get it back; of homes and the like with their sessions. */
static void write_text(const struct cm_store_usage *usage, struct cm_buf *out)
{
	struct cm_store_share total = { 0 };

	cm_buf_printf(out, "%-18s  %6s  %11s  %11s\n", "WHAT", "COUNT", "SIZE", "RECLAIMABLE");
	for (int i = 0; i < CM_STORE_PART_COUNT; i++) {
		const struct cm_store_share *share = &usage->of[i];

		put_row(out, cm_store_part_name((enum cm_store_part)i), share);
		total.count += share->count;
		total.size.bytes += share->size.bytes;
		total.size.is_partial = total.size.is_partial || share->size.is_partial;
		total.idle_bytes += share->idle_bytes;
	}
	put_row(out, "total", &total);
}

static int show(struct cm_cli *cli, const struct cm_store_usage *usage, bool is_json,
		struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf out = { 0 };

	cm_buf_init(&out, MAX_TEXT);
	if (is_json)
		write_json(usage, &out);
	else
		write_text(usage, &out);
	if (cm_buf_status(&out) == CM_OK)
		return cm_cli_print(cli, out.data, out.len);
	(void)cm_error_set(err, cm_buf_status(&out), 0, "out of memory");
	return cm_cli_fail(cli, err);
}

int cm_cmd_df(struct cm_cli *cli, int argc, char **argv)
{
	bool is_json = false;
	const struct cm_cli_option options[] = {
		{ "json", '\0', CM_OPTION_SWITCH, &is_json },
		{ NULL, '\0', CM_OPTION_SWITCH, NULL },
	};
	struct cm_error err = CM_ERROR_INIT;
	struct cm_store_usage usage;
	struct cm_store store;
	int status;
	int n = 0;

	if (cm_cli_options(argc - 1, argv + 1, options, &n, &err) != CM_OK)
		return cm_cli_fail(cli, &err);
	if (n > 0) {
		(void)cm_error_set(&err, CM_E_INVALID, 0, "'%.100s' is not an option of 'df'",
				   argv[1]);
		cm_error_hint(&err, "'casemate ls --size --filter name=%.60s' tells of one session",
			      argv[1]);
		return cm_cli_fail(cli, &err);
	}
	if (cm_cli_store_open(cli, NULL, &store, &err) != CM_OK)
		return cm_cli_fail(cli, &err);
	if (cm_store_usage_read(&store, &usage, &err) == CM_OK)
		status = show(cli, &usage, is_json, &err);
	else
		status = cm_cli_fail(cli, &err);
	cm_store_close(&store);
	return status;
}
