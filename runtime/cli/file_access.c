/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/file_access.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/cli/file_source.h"
#include "runtime/cli/relay.h"

void cm_file_access_init(struct cm_file_access *f, struct cm_cli *cli)
{
	f->cli = cli;
	f->session = NULL;
	f->call = (struct cm_call){ .deadline_ms = INT64_MAX, .cancel_fd = -1 };
	f->directory = NULL;
	f->wants_length = false;
	f->is_refusal = NULL;
	f->has_failed = false;
	f->has_sink = false;
	cm_error_clear(&f->why);
}

void cm_file_access_clear(struct cm_file_access *f)
{
	if (f->has_sink)
		cm_file_sink_close(&f->sink);
	f->has_sink = false;
}

void cm_file_access_told(void *data, const struct cm_error *why)
{
	struct cm_file_access *f = data;

	f->has_failed = true;
	cm_cli_print_error(f->cli, why);
}

char *cm_file_access_path(const struct cm_file_access *f, const char *path)
{
	/* an empty one is refused as it is */
	if (!f->directory || path[0] == '/' || path[0] == '\0')
		return cm_strdup(path);
	return strcmp(path, ".") == 0 ? cm_strdup(f->directory)
				      : cm_asprintf("%s/%s", f->directory, path);
}

/* --- how it ends --------------------------------------------------------------------------- */

static int no_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

int cm_file_access_settle(struct cm_file_access *f, int r, struct cm_error *err)
{
	if (f->why.code == 0)
		return r;
	*err = f->why;
	return err->code;
}

int cm_file_access_go_on(struct cm_file_access *f, int r, struct cm_error *err)
{
	if (r >= 0 || f->why.code != 0 || !f->is_refusal(f, r, err))
		return cm_file_access_settle(f, r, err);
	cm_file_access_told(f, err);
	cm_error_clear(err);
	return CM_OK;
}

int cm_file_access_end(struct cm_file_access *f, int r, const struct cm_error *err)
{
	int sig;

	if (r >= 0)
		return f->has_failed ? CM_EXIT_FILE : 0;
	/* as of any program: who breaks it off knows that, and nobody reads what this prints */
	sig = r == CM_E_CANCELLED && f->call.cancel_fd >= 0 ? cm_relay_take_end(f->call.cancel_fd)
							    : 0;
	if (sig != 0)
		return 128 + sig;
	if (err->code == CM_E_SYS && err->sys_errno == EPIPE)
		return 128 + SIGPIPE;
	return cm_cli_fail(f->cli, err);
}

/* --- content ------------------------------------------------------------------------------- */

struct cm_file_sink *cm_file_access_sink(struct cm_file_access *f)
{
	if (!f->has_sink)
		cm_file_sink_init(&f->sink, f->call.cancel_fd);
	f->has_sink = true;
	return &f->sink;
}

static int gave_up(const struct cm_file_access *f)
{
	return f->why.sys_errno != 0 ? -f->why.sys_errno : -ECANCELED;
}

static int take(void *data, const void *bytes, size_t len)
{
	struct cm_file_access *f = data;

	return cm_file_sink_data(&f->sink, bytes, len, &f->why) == CM_OK ? 0 : gave_up(f);
}

static int take_hole(void *data, uint64_t len)
{
	struct cm_file_access *f = data;

	return cm_file_sink_hole(&f->sink, len, &f->why) == CM_OK ? 0 : gave_up(f);
}

int cm_file_access_print(struct cm_file_access *f, const char *path, uint64_t offset,
			 uint64_t length, struct cm_error *err)
{
	const struct cm_read_request request = {
		.offset = offset,
		.length = length,
		.take = take,
		.take_hole = take_hole,
		.data = f,
	};
	CM_AUTO_FREE char *whole = cm_file_access_path(f, path);
	struct cm_file_sink *sink = cm_file_access_sink(f);
	int r;

	if (!whole)
		return no_memory(err);
	r = cm_session_read(f->session, whole, &request, &f->call, err);
	r = cm_file_access_settle(f, r, err);
	return r < 0 ? r : cm_file_sink_end(sink, err);
}

int cm_file_access_write(struct cm_file_access *f, const char *path, uint32_t flags, uint32_t mode,
			 struct cm_error *err)
{
	CM_AUTO_FREE char *whole = cm_file_access_path(f, path);
	struct cm_write_request request = { .flags = flags, .mode = mode };
	struct cm_file_source source;

	cm_file_source_init(&source, f->call.cancel_fd, f->wants_length, &f->why, &request);
	return whole ? cm_file_access_settle(
			       f, cm_session_write(f->session, whole, &request, &f->call, err), err)
		     : no_memory(err);
}
