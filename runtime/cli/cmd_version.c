/* SPDX-License-Identifier: Apache-2.0 */
/* casemate version. */
#include "runtime/base/json_write.h"
#include "runtime/cli/commands.h"

int cm_cmd_version(struct cm_cli *cli, int argc, char **argv)
{
	struct cm_error err = CM_ERROR_INIT;
	CM_AUTO_BUF struct cm_buf text = { 0 };
	struct cm_json_writer w;
	bool is_json = false;
	const struct cm_cli_option options[] = {
		{ "json", '\0', CM_OPTION_SWITCH, &is_json },
		{ NULL },
	};
	int n = 0;

	cm_buf_init(&text, 4096);
	if (cm_cli_options(argc - 1, argv + 1, options, &n, &err) != CM_OK)
		return cm_cli_fail(cli, &err);
	if (n > 0) {
		cm_error_set(&err, CM_E_INVALID, 0, "version takes no arguments");
		cm_error_hint(&err, "write casemate version [--json]");
		return cm_cli_fail(cli, &err);
	}
	if (is_json) {
		cm_jw_init(&w, &text, false);
		cm_jw_object(&w);
		cm_jw_kstring(&w, "version", CM_VERSION);
		cm_jw_kstring(&w, "libc", CM_LIBC_NAME);
		cm_jw_end_object(&w);
		cm_buf_putc(&text, '\n');
	} else {
		cm_buf_printf(&text, "casemate %s\n", CM_VERSION);
	}
	return cm_cli_print(cli, text.data ? text.data : "", text.len);
}
