/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/setup.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/num.h"
#include "runtime/base/text.h"

#define TEARDOWN_MS 60000

/* Drop from the front what is more than the most that is kept. */
static void keep_tail(struct cm_setup_report *report, const char *bytes, size_t len)
{
	size_t old_len;

	if (len > sizeof(report->tail)) {
		bytes += len - sizeof(report->tail);
		len = sizeof(report->tail);
	}
	old_len = sizeof(report->tail) - len;
	if (old_len > report->tail_len)
		old_len = report->tail_len;
	memmove(report->tail, report->tail + report->tail_len - old_len, old_len);
	memcpy(report->tail + old_len, bytes, len);
	report->tail_len = old_len + len;
}

/* Where it was cut, half a character may be left. */
static void cut_tail(struct cm_setup_report *report)
{
	size_t n = 0;

	if (report->tail_len < sizeof(report->tail))
		return;
	while (n < 3 && ((unsigned char)report->tail[n] & 0xc0) == 0x80)
		n++;
	memmove(report->tail, report->tail + n, report->tail_len - n);
	report->tail_len -= n;
}

/* What is shown goes to who has the secrets; what is kept must not have them. */
static void keep(struct cm_setup *setup, struct cm_redact *redact, const char *bytes, size_t len,
		 bool is_last)
{
	CM_AUTO_BUF struct cm_buf out = { 0 };

	cm_buf_init(&out, SIZE_MAX / 2);
	cm_redact_add(redact, bytes, len, is_last, &out);
	if (cm_buf_status(&out) != CM_OK || out.len == 0)
		return;
	cm_setup_log_add(&setup->log, out.data, out.len);
	keep_tail(&setup->report, out.data, out.len);
}

static void on_seen(void *data, int from, const char *bytes, size_t len)
{
	struct cm_setup *setup = data;

	keep(setup, from == STDERR_FILENO ? &setup->redact_err : &setup->redact_out, bytes, len,
	     false);
}

/* A command has ended: nothing completes what was held back. */
static void keep_rest(struct cm_setup *setup)
{
	keep(setup, &setup->redact_out, "", 0, true);
	keep(setup, &setup->redact_err, "", 0, true);
}

static int ask(struct cm_setup *setup, char *const *argv, uint64_t timeout_ms, struct cm_error *err)
{
	struct cm_relay *relay = setup->relay;
	const struct cm_jail_command command = {
		.argv = argv,
		.env = setup->local->env.v,
		.cwd = cm_local_cwd(setup->local),
		/* what it leaves running has more rights to come than the session's commands */
		.flags = CM_EXECF_KILL_TREE,
		.stdio = { relay->far[0], relay->far[1], relay->far[2] },
		.timeout_ms = timeout_ms,
		.grace_ms = CM_CLI_GRACE_MS,
	};

	relay->jail = &setup->local->jail;
	return cm_jail_exec(relay->jail, &command, &relay->id, err);
}

static const char *id_of(const struct cm_setup *setup)
{
	return setup->local->session.record.id;
}

static void hint_again(const struct cm_setup *setup, struct cm_error *err)
{
	if (setup->local->is_temporary)
		cm_error_hint(err, "nothing of it is left: the next run begins again");
	else
		cm_error_hint(err,
			      "the same command line again, or 'casemate setup %s --retry', "
			      "runs its setup again",
			      id_of(setup));
}

static int interrupted(const struct cm_setup *setup, struct cm_error *err)
{
	(void)cm_error_set(err, CM_E_CANCELLED, 0, "interrupted while session '%s' was %s",
			   id_of(setup), setup->is_teardown ? "torn down" : "set up");
	if (setup->is_teardown)
		return CM_E_CANCELLED;
	hint_again(setup, err);
	return CM_E_CANCELLED;
}

/* Its jail is gone: that says nothing of the commands. */
static int lost(const struct cm_setup *setup, struct cm_error *err)
{
	const struct cm_relay *relay = setup->relay;

	(void)cm_error_set(err, CM_E_ISOLATION, 0, "the jail ended while session '%s' was %s%s%s",
			   id_of(setup), setup->is_teardown ? "torn down" : "set up",
			   relay->is_lost ? ": " : "", relay->is_lost ? relay->why.msg : "");
	/* of a teardown nothing is run again */
	if (!setup->is_teardown)
		hint_again(setup, err);
	return CM_E_ISOLATION;
}

/* A setup command, or the marker: their tree ends with them. timeout_ms 0: it may take its time. */
static int run_inside(struct cm_setup *setup, char *const *argv, uint64_t timeout_ms,
		      struct cm_rec_end *ret, struct cm_error *err)
{
	struct cm_relay *relay = setup->relay;
	int r = cm_relay_open(relay, false, false, true, err);

	relay->is_to_stderr = true;
	relay->is_muted = setup->cli->is_quiet;
	relay->seen = on_seen;
	relay->seen_data = setup;
	if (r == CM_OK)
		r = ask(setup, argv, timeout_ms, err);
	if (r == CM_OK)
		r = cm_relay_run(relay, err);
	keep_rest(setup);
	if (r == CM_OK)
		*ret = relay->end;
	/* whatever it made of the signal: who sent it wants no more of this */
	if (r == CM_OK && relay->signal != 0)
		r = interrupted(setup, err);
	else if (r == CM_OK && relay->end.kind == CM_END_KILLED)
		r = lost(setup, err);
	cm_relay_close(relay);
	return r;
}

static int write_marker(struct cm_setup *setup, struct cm_error *err)
{
	/* byte for byte what Mastra writes: no newline */
	static const char script[] = "printf %s \"$1\" >\"$2/.mastra-sandbox/setup\"";
	const char *dir = cm_local_marker_dir(setup->local);
	char *const argv[] = { (char *)(uintptr_t) "/bin/sh",
			       (char *)(uintptr_t) "-c",
			       (char *)(uintptr_t)script,
			       (char *)(uintptr_t) "sh",
			       setup->local->session.record.setup_digest,
			       (char *)(uintptr_t)dir,
			       NULL };
	struct cm_rec_end end = { 0 };

	return dir ? run_inside(setup, argv, 0, &end, err) : CM_OK;
}

static int status_of(const struct cm_rec_end *end)
{
	if (end->kind == CM_END_EXIT)
		return end->status;
	return 128 + (end->kind == CM_END_SIGNAL ? end->status : SIGKILL);
}

static int failed(struct cm_setup *setup, const char *command, const struct cm_rec_end *end,
		  int64_t since_us, struct cm_error *err)
{
	struct cm_setup_report *report = &setup->report;
	const char *why = end->kind == CM_END_MEMORY ? ", ended by the memory limit" : "";

	report->has_failed = true;
	report->exit_status = status_of(end);
	(void)cm_local_setup_done(setup->local, true, report->exit_status, since_us, NULL);
	/* it was not shown as it came, and is what one has to know now */
	if (setup->cli->is_quiet)
		(void)cm_write_all(STDERR_FILENO, report->tail, report->tail_len);
	(void)cm_error_set(err, CM_E_SETUP, 0, "setup command '%s' failed (exit %d%s)", command,
			   report->exit_status, why);
	if (setup->local->is_temporary)
		cm_error_hint(err, "its output is above");
	else
		cm_error_hint(err,
			      "repair it inside: casemate run --session %s -- COMMAND; then "
			      "'casemate setup %s --retry' runs it again",
			      id_of(setup), id_of(setup));
	return CM_E_SETUP;
}

static void tell_teardown(const struct cm_setup *setup, const char *command,
			  const struct cm_rec_end *end)
{
	if (end->kind == CM_END_TIMEOUT)
		cm_cli_note(setup->cli, "teardown command '%s' was ended: %d s are all it has",
			    command, TEARDOWN_MS / 1000);
	else
		cm_cli_note(setup->cli, "teardown command '%s' failed (exit %d)", command,
			    status_of(end));
}

int cm_cli_teardown_run(struct cm_setup *setup, struct cm_error *err)
{
	const struct cm_strv *commands = &setup->local->spec.teardown;
	int64_t deadline = cm_clock_mono_ms() + TEARDOWN_MS;
	int r = CM_OK;

	setup->is_teardown = true;
	for (size_t i = 0; i < commands->n && r == CM_OK; i++) {
		char *const argv[] = { (char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c",
				       commands->v[i], NULL };
		int64_t left = deadline - cm_clock_mono_ms();
		struct cm_rec_end end = { 0 };

		r = run_inside(setup, argv, left > 0 ? (uint64_t)left : 1, &end, err);
		setup->report.has_torn_down = true;
		if (r < 0 || (end.kind == CM_END_EXIT && end.status == 0))
			continue;
		if (setup->report.teardown_exit == 0)
			setup->report.teardown_exit = status_of(&end);
		tell_teardown(setup, commands->v[i], &end);
	}
	return r;
}

/* What a command began that failed is taken back; that the setup failed stays what went wrong. */
static void tear_down(struct cm_setup *setup)
{
	struct cm_error err = CM_ERROR_INIT;

	if (setup->local->spec.teardown.n > 0 && cm_cli_teardown_run(setup, &err) < 0)
		cm_cli_note(setup->cli, "teardown came to no end: %s", err.msg);
}

static int run_one(struct cm_setup *setup, size_t i, int64_t since_us, struct cm_error *err)
{
	const struct cm_strv *commands = &setup->local->spec.setup;
	char *const argv[] = { (char *)(uintptr_t) "/bin/sh", (char *)(uintptr_t) "-c",
			       commands->v[i], NULL };
	struct cm_rec_end end = { 0 };
	int64_t start_us = cm_clock_mono_us();
	char name[48];
	int r = run_inside(setup, argv, 0, &end, err);

	if (r == CM_OK && (end.kind != CM_END_EXIT || end.status != 0))
		r = failed(setup, commands->v[i], &end, since_us, err);
	(void)snprintf(name, sizeof(name), "setup %zu/%zu", i + 1, commands->n);
	if (r == CM_OK)
		setup->phase(setup->data, name, (uint64_t)(cm_clock_mono_us() - start_us));
	return r;
}

static void tell_interrupted(const struct cm_setup *setup)
{
	const struct cm_session_record *record = &setup->local->session.record;
	int64_t ago = cm_clock_real_ms() - record->setup_begun_ms;
	char since[32];

	if (record->setup_begun_ms == 0)
		return;
	cm_format_duration(ago > 0 ? (uint64_t)ago : 0, since, sizeof(since));
	cm_cli_note(setup->cli,
		    "setup of session '%s' began %s ago and came to no end; it is run "
		    "again",
		    record->id, since);
}

/* Of a session that goes with this run nobody could read it. */
static void open_log(struct cm_setup *setup)
{
	struct cm_error err = CM_ERROR_INIT;

	setup->log.fd = -1;
	if (setup->local->is_temporary ||
	    cm_setup_log_create(setup->local->session.dir_fd, &setup->log, &err) == CM_OK)
		return;
	cm_cli_note(setup->cli, "%s: %s", err.msg, strerror(err.sys_errno));
}

static void close_log(struct cm_setup *setup)
{
	if (setup->log.fd >= 0 && setup->log.error != 0)
		cm_cli_note(setup->cli, "not all of the output of setup could be kept: %s",
			    strerror(setup->log.error));
	cm_setup_log_close(&setup->log);
}

int cm_cli_setup_run(struct cm_setup *setup, struct cm_error *err)
{
	struct cm_local *local = setup->local;
	int64_t since_us = cm_clock_mono_us();
	int r;

	if (!cm_local_needs_setup(local))
		return CM_OK;
	tell_interrupted(setup);
	r = cm_local_setup_begin(local, err);
	if (r < 0)
		return r;
	setup->report = (struct cm_setup_report){ .has_run = true };
	cm_redact_init(&setup->redact_out, &local->config->setup_secrets);
	cm_redact_init(&setup->redact_err, &local->config->setup_secrets);
	open_log(setup);
	for (size_t i = 0; i < local->spec.setup.n && r == CM_OK; i++)
		r = run_one(setup, i, since_us, err);
	if (r == CM_E_SETUP)
		tear_down(setup);
	if (r == CM_OK)
		r = write_marker(setup, err);
	if (r == CM_OK)
		r = cm_local_setup_done(local, false, 0, since_us, err);
	setup->report.is_done = r == CM_OK;
	setup->report.took_ms = (cm_clock_mono_us() - since_us) / 1000;
	cut_tail(&setup->report);
	close_log(setup);
	cm_redact_clear(&setup->redact_out);
	cm_redact_clear(&setup->redact_err);
	return r;
}
