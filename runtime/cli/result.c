/* SPDX-License-Identifier: Apache-2.0 */
/* How a run ended, for programs. */
#include "runtime/cli/result.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/fd.h"
#include "runtime/base/json_write.h"
#include "runtime/base/num.h"
#include "runtime/base/text.h"
#include "runtime/store/journal.h"

/* "exit", "timeout", ... as result.h has them; NULL: there was no command to end */
static const char *end_name(const struct cm_result *result)
{
	if (result->is_over_output)
		return "output-limit";
	if (result->is_lost)
		return "lost";
	if (result->has_end)
		return cm_end_kind_name(result->end.kind);
	if (result->is_detached)
		return "detached";
	return result->error.code != 0 ? "failed" : NULL;
}

static void write_flag(struct cm_json_writer *w, const char *key, bool is_known,
		       const struct cm_rec_end *end, uint32_t flag)
{
	cm_jw_known_bool(w, key, is_known, (end->flags & flag) != 0);
}

static void write_end(struct cm_json_writer *w, const struct cm_result *result)
{
	const struct cm_rec_end *end = &result->end;
	bool is_measured = !result->is_unmeasured;
	bool is_known = !result->is_lost;

	if (end->kind == CM_END_SIGNAL || end->kind == CM_END_MEMORY)
		cm_jw_kint(w, "signal", end->status);
	write_flag(w, "timedOut", is_known, end, CM_ENDF_TIMED_OUT);
	write_flag(w, "killed", is_known, end, CM_ENDF_KILLED);
	write_flag(w, "memoryLimit", is_known, end, CM_ENDF_MEMORY_LIMIT);
	write_flag(w, "childrenLeft", is_measured, end, CM_ENDF_CHILDREN_LEFT);
	cm_jw_known_uint(w, "wallMs", is_measured || end->wall_us != 0, end->wall_us / 1000);
	cm_jw_known_uint(w, "cpuUserMs", is_measured, end->cpu_user_us / 1000);
	cm_jw_known_uint(w, "cpuSystemMs", is_measured, end->cpu_system_us / 1000);
	cm_jw_known_uint(w, "maxRssBytes", is_measured, end->max_rss_bytes);
	if (end->memory_peak_bytes != 0)
		cm_jw_kuint(w, "memoryPeakBytes", end->memory_peak_bytes);
	write_flag(w, "usageApproximate", is_measured, end, CM_ENDF_USAGE_APPROXIMATE);
}

static void write_setup(struct cm_json_writer *w, const struct cm_setup_report *setup)
{
	const char *state = setup->is_done ? "done" : "interrupted";

	cm_jw_key(w, "setup");
	cm_jw_object(w);
	cm_jw_kstring(w, "state", setup->has_failed ? "failed" : state);
	cm_jw_kint(w, "exit", setup->exit_status);
	cm_jw_kint(w, "durationMs", setup->took_ms);
	if (setup->has_torn_down) {
		cm_jw_key(w, "teardown");
		cm_jw_object(w);
		cm_jw_kstring(w, "state", setup->teardown_exit == 0 ? "done" : "failed");
		cm_jw_kint(w, "exit", setup->teardown_exit);
		if (setup->teardown_exit != 0)
			cm_jw_kstring(w, "reason", "teardown-failed");
		cm_jw_end_object(w);
	}
	cm_jw_key(w, "tail");
	cm_jw_string_len(w, setup->tail, setup->tail_len);
	cm_jw_end_object(w);
}

static void write_reason(struct cm_json_writer *w, const struct cm_result *result)
{
	const struct cm_reason *reason = result->reason;

	if (!reason)
		reason = cm_reason_find(result->phase, result->error.code, "", "");
	cm_jw_kstring(w, "reason", reason->name);
	if (reason->detail)
		cm_jw_kstring(w, "detail", reason->detail);
}

static void write_exec(struct cm_json_writer *w, const struct cm_result *result)
{
	char id[CM_EXEC_ID_SIZE];

	if (result->exec_name)
		cm_jw_kstring(w, "exec", result->exec_name);
	if (result->exec_id == 0)
		return;
	cm_exec_id_format(result->exec_id, id);
	cm_jw_kstring(w, "exec", id);
}

static void write_phases(struct cm_json_writer *w, const struct cm_result *result)
{
	cm_jw_key(w, "phases");
	cm_jw_array(w);
	for (size_t i = 0; i < result->n_phases; i++) {
		cm_jw_object(w);
		cm_jw_kstring(w, "name", result->phases[i].name);
		cm_jw_kuint(w, "durationMs", result->phases[i].duration_us / 1000);
		cm_jw_end_object(w);
	}
	cm_jw_end_array(w);
}

void cm_result_write(const struct cm_result *result, const struct cm_relay *relay,
		     struct cm_buf *out)
{
	struct cm_json_writer w;

	cm_jw_init(&w, out, false);
	cm_jw_object(&w);
	cm_jw_kint(&w, "v", 1);
	cm_jw_kstring(&w, "session", result->session);
	write_exec(&w, result);
	cm_jw_kstring(&w, "phase", result->phase);
	cm_jw_kstring(&w, "end", end_name(result));
	cm_jw_kint(&w, "exitCode", result->exit_code);
	if (result->error.code != 0) {
		cm_jw_kstring(&w, "code", cm_error_name(result->error.code));
		cm_jw_kstring(&w, "message", result->error.msg);
		if (result->error.hint[0] != '\0')
			cm_jw_kstring(&w, "hint", result->error.hint);
		write_reason(&w, result);
	}
	write_phases(&w, result);
	if (result->is_held)
		cm_jw_kbool(&w, "moved", false);
	if (result->has_end)
		write_end(&w, result);
	if (result->level[0] != '\0')
		cm_jw_kstring(&w, "level", result->level);
	if (result->setup && result->setup->has_run)
		write_setup(&w, result->setup);
	cm_jw_kuint(&w, "outputBytes", result->output_bytes);
	if (relay) {
		cm_jw_key(&w, "stdout");
		cm_jw_string_len(&w, relay->out.data ? relay->out.data : "", relay->out.len);
		cm_jw_key(&w, "stderr");
		cm_jw_string_len(&w, relay->err.data ? relay->err.data : "", relay->err.len);
	}
	cm_jw_end_object(&w);
	cm_buf_putc(out, '\n');
}

static int target_fd(const char *target, struct cm_error *err)
{
	uint64_t fd = 0;
	int r;

	if (!cm_text_has_prefix(target, "fd:"))
		return -1;
	r = cm_parse_u64(target + 3, "--result fd:N", 0, 65535, &fd, err);
	if (r < 0)
		return r - 1;
	return (int)fd;
}

static int open_directory(const char *target)
{
	const char *slash = strrchr(target, '/');
	CM_AUTO_FREE char *dir =
		slash ? cm_asprintf("%.*s", slash == target ? 1 : (int)(slash - target), target)
		      : cm_strdup(".");
	int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (!dir)
		errno = ENOMEM;
	return fd < 0 ? -errno : fd;
}

static int open_file(const char *text, struct cm_result_target *ret, struct cm_error *err)
{
	CM_AUTO_FD int dir_fd = open_directory(text);
	struct stat st;
	int error = 0;

	if (dir_fd < 0)
		error = -dir_fd;
	else if (faccessat(dir_fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		error = errno;
	else if (stat(text, &st) == 0 && S_ISDIR(st.st_mode))
		error = EISDIR;
	if (error == 0) {
		ret->fd = cm_fd_take(&dir_fd);
		ret->is_file = true;
		return CM_OK;
	}
	cm_error_set(err, CM_E_INVALID, error, "cannot write the result to '%s'", text);
	cm_error_hint(err, "--result wants a file in a directory that you can write, or fd:N");
	return CM_E_INVALID;
}

int cm_result_open(const char *text, struct cm_result_target *ret, struct cm_error *err)
{
	int fd = target_fd(text, err);
	int flags;

	*ret = (struct cm_result_target){ .text = text, .fd = -1 };
	if (fd == -1)
		return open_file(text, ret, err);
	if (fd < 0)
		return CM_E_INVALID;
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) {
		cm_error_set(err, CM_E_INVALID, flags < 0 ? errno : EBADF,
			     "cannot write the result to descriptor %d", fd);
		cm_error_hint(err, "open it for writing: casemate run --result fd:%d ... %d>FILE",
			      fd, fd);
		return CM_E_INVALID;
	}
	/* ours to write at the end; not the keeper's */
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	ret->fd = fd;
	return CM_OK;
}

int cm_result_deliver(const struct cm_result_target *target, const struct cm_buf *text,
		      struct cm_error *err)
{
	const char *slash = strrchr(target->text, '/');
	const char *name = slash ? slash + 1 : target->text;
	int r = target->is_file
			? cm_replace_file_at(target->fd, name, text->data, text->len, 0644, false)
			: cm_write_all(target->fd, text->data, text->len);

	if (r == 0)
		return CM_OK;
	return cm_error_set(err, CM_E_SYS, -r, "cannot write the result to '%s'", target->text);
}

void cm_result_close(struct cm_result_target *target)
{
	if (target->is_file)
		cm_fd_close(&target->fd);
}
