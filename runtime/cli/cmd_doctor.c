/* SPDX-License-Identifier: Apache-2.0 */
/* casemate doctor: what this host can isolate, and what to do about the rest. */
#include <unistd.h>

#include "runtime/base/fd.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/doctor.h"

#define MAX_TEXT (1024UL * 1024)
#define EXIT_NO_JAIL 1

struct doctor_options {
	const char *root;
	bool is_json;
	bool is_summary;
};

static int print_report(const struct cm_cli *cli, const struct doctor_options *o,
			const struct cm_doctor_facts *facts, struct cm_doctor_report *report,
			struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf out = { 0 };
	struct cm_doctor_summary summary;
	bool has_colour = !cli->config.has_no_colour && isatty(STDOUT_FILENO) == 1;
	int status;

	cm_buf_init(&out, MAX_TEXT);
	cm_doctor_check(facts, report);
	cm_doctor_summarise(facts, report, &summary);
	if (o->is_json) {
		cm_doctor_print_json(report, &summary, &out);
	} else {
		if (!o->is_summary)
			cm_doctor_print_text(report, has_colour, &out);
		cm_doctor_print_summary(&summary, &out);
	}
	if (report->has_failed || cm_buf_status(&out) != CM_OK) {
		(void)cm_error_set(err, CM_E_NOMEM, 0, "cannot report: out of memory");
		return cm_cli_fail(cli, err);
	}
	status = cm_cli_print(cli, out.data, out.len);
	if (status == 0 && !summary.can_jail)
		status = EXIT_NO_JAIL;
	return status;
}

static int examine(struct cm_cli *cli, const struct doctor_options *o, struct cm_error *err)
{
	/* paths for pages in each: not for a stack */
	static struct cm_host host;
	static struct cm_doctor_facts facts;
	struct cm_doctor_report report = { 0 };
	CM_AUTO_FREE char *root = NULL;
	int status;

	if (cm_cli_root(cli, o->root, &root, err) != CM_OK ||
	    cm_host_read(&cli->config.env, &host, err) != CM_OK)
		return cm_cli_fail(cli, err);
	if (cm_doctor_facts_read(&cli->config, root, &host, &facts, err) == CM_OK) {
		status = print_report(cli, o, &facts, &report, err);
		cm_doctor_facts_clear(&facts);
	} else {
		status = cm_cli_fail(cli, err);
	}
	cm_doctor_report_clear(&report);
	cm_host_clear(&host);
	return status;
}

int cm_cmd_doctor(struct cm_cli *cli, int argc, char **argv)
{
	struct doctor_options o = { 0 };
	const struct cm_cli_option options[] = {
		{ "root", '\0', CM_OPTION_TEXT, &o.root },
		{ "json", '\0', CM_OPTION_SWITCH, &o.is_json },
		{ "summary", '\0', CM_OPTION_SWITCH, &o.is_summary },
		{ NULL, '\0', CM_OPTION_SWITCH, NULL },
	};
	struct cm_error err = CM_ERROR_INIT;
	int n = 0;

	if (cm_cli_options(argc - 1, argv + 1, options, &n, &err) != CM_OK)
		return cm_cli_fail(cli, &err);
	if (n > 0 || (o.is_json && o.is_summary)) {
		if (n > 0)
			(void)cm_error_set(&err, CM_E_INVALID, 0, "doctor takes no arguments");
		else
			(void)cm_error_set(&err, CM_E_INVALID, 0,
					   "--json and --summary exclude each other");
		cm_error_hint(&err, "write casemate doctor [--json | --summary] [--root DIR]");
		return cm_cli_fail(cli, &err);
	}
	return examine(cli, &o, &err);
}
