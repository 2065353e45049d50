/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions that are elsewhere: the provider opened, a session found, and how a failure is told. */
#include "runtime/cli/remote/away.h"

#include <stdint.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "providers/registry.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/cli/relay.h"

static void on_note(void *data, const char *text)
{
	const struct cm_away *away = data;

	cm_cli_note(away->cli, "%s", text);
}

static void on_trace(void *data, const char *line)
{
	const struct cm_away *away = data;

	if (away->cli->is_verbose)
		cm_cli_note(away->cli, "%s", line);
}

static void on_phase(void *data, const char *name, uint64_t duration_us)
{
	const struct cm_away *away = data;

	if (away->phase)
		away->phase(away->data, name, duration_us);
}

int cm_away_open(struct cm_away *away, struct cm_cli *cli, struct cm_error *err)
{
	const struct cm_provider_ops *ops = cm_provider_find(cm_away_provider_name());
	struct cm_provider_config config = {
		.config = &cli->config,
		.note = on_note,
		.phase = on_phase,
		.trace = on_trace,
		.data = away,
	};
	int r;

	away->cli = cli;
	away->provider = NULL;
	away->session = NULL;
	away->signal_fd = -1;
	away->call = (struct cm_call){ .deadline_ms = INT64_MAX, .cancel_fd = -1 };
	if (!ops)
		return cm_error_set(err, CM_E_BUG, 0, "there is no provider '%s' here",
				    cm_away_provider_name());
	r = cm_relay_block_signals(err);
	if (r == CM_OK)
		r = cm_relay_watch_end(&away->signal_fd, err);
	away->call.cancel_fd = away->signal_fd;
	return r < 0 ? r : cm_provider_open(ops, &config, &away->provider, err);
}

int cm_away_attach(struct cm_away *away, struct cm_cli *cli, const char *id, struct cm_error *err)
{
	int r = cm_away_open(away, cli, err);

	if (r == CM_OK)
		r = cm_session_attach(away->provider, id, &away->call, &away->session, err);
	if (r == CM_E_NOT_FOUND && err && err->hint[0] == '\0')
		cm_error_hint(err, "'casemate ls --provider %s' lists the sessions",
			      cm_away_provider_name());
	return r;
}

int cm_away_attach_running(struct cm_away *away, struct cm_cli *cli, const char *id,
			   struct cm_error *err)
{
	int r = cm_away_attach(away, cli, id, err);

	return r < 0 ? r : cm_session_start(away->session, &away->call, err);
}

void cm_away_close(struct cm_away *away)
{
	cm_session_release(away->session);
	cm_provider_close(away->provider);
	cm_fd_close(&away->signal_fd);
	away->session = NULL;
	away->provider = NULL;
}

struct cm_call cm_away_cleanup_call(void)
{
	return (struct cm_call){ .deadline_ms = cm_clock_mono_ms() + CM_AWAY_CLEANUP_MS,
				 .cancel_fd = -1 };
}

int cm_away_signal(const struct cm_away *away)
{
	return away->signal_fd < 0 ? 0 : cm_relay_take_end(away->signal_fd);
}

int cm_away_fail(const struct cm_away *away, const struct cm_error *err)
{
	int sig = err->code == CM_E_CANCELLED ? cm_away_signal(away) : 0;
	int status = cm_cli_fail(away->cli, err);

	return sig != 0 ? 128 + sig : status;
}
