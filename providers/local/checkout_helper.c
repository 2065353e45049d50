/* SPDX-License-Identifier: Apache-2.0 */
#include "providers/local/checkout_helper.h"

#include <stdio.h>
#include <string.h>

#include "providers/local/helper.h"
#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/base/json.h"

#define HELPER_INSIDE "/run/casemate/casemate-checkout"
#define REPORT_MAX (1024UL * 1024)
#define OPTIONS_MAX 40
/* what one argument may have is 128 KiB */
#define OPTION_BYTES_MAX (100UL * 1024)
/* a line of progress is shorter */
#define LINE_MAX_BYTES 512

void cm_checkout_result_init(struct cm_checkout_result *result)
{
	memset(result, 0, sizeof(*result));
}

void cm_checkout_option(char **argv, size_t *n, const char *option, const char *value)
{
	if (!value)
		return;
	argv[(*n)++] = (char *)(uintptr_t)option;
	argv[(*n)++] = (char *)(uintptr_t)value;
}

const char *cm_checkout_number(int value, char *buf)
{
	(void)snprintf(buf, CM_CHECKOUT_NUMBER_SIZE, "%d", value);
	return value != 0 ? buf : NULL;
}

/* A line each, as the helper takes them; none has a line's end in it. */
static int join_lines(const struct cm_strv *lines, char **ret, struct cm_error *err)
{
	struct cm_buf out;

	cm_buf_init(&out, OPTION_BYTES_MAX);
	for (size_t i = 0; i < lines->n; i++)
		cm_buf_printf(&out, "%s%s", i > 0 ? "\n" : "", lines->v[i]);
	*ret = cm_buf_take(&out);
	return *ret ? CM_OK : cm_error_set(err, CM_E_LIMIT, 0, "too many directories for --sparse");
}

int cm_checkout_git_options(const struct cm_spec *spec, bool is_local, char **argv, size_t *n,
			    char **own_sparse, struct cm_error *err)
{
	int r = spec->sparse.n > 0 ? join_lines(&spec->sparse, own_sparse, err) : CM_OK;

	if (r < 0)
		return r;
	if (spec->has_lfs)
		argv[(*n)++] = (char *)(uintptr_t) "--lfs";
	cm_checkout_option(argv, n, "--sparse", *own_sparse);
	cm_checkout_option(argv, n, "--filter",
			   spec->filter == CM_FILTER_BLOB_NONE && !is_local ? "blob:none" : NULL);
	return CM_OK;
}

int cm_checkout_helper_mount(struct cm_local_plan *extra, char *path, size_t size,
			     struct cm_error *err)
{
	extra->mounts[extra->n_mounts++] =
		(struct cm_local_mount){ path, HELPER_INSIDE, CM_OPF_FILE | CM_OPF_READ_ONLY };
	return cm_helper_path("casemate-checkout", path, size, err);
}

int cm_checkout_helper_spec(const struct cm_local *l, struct cm_spec *spec, struct cm_error *err)
{
	cm_spec_init(spec);
	spec->workspace_kind = CM_WORKSPACE_DIR;
	spec->workspace = cm_strdup(l->session.session_dir);
	spec->network = CM_NETWORK_NONE;
	spec->user = CM_USER_USER;
	spec->git = CM_GIT_RW;
	spec->min_level = l->spec.min_level;
	spec->limits.timeout.value = CM_UNLIMITED;
	return spec->workspace ? CM_OK
			       : cm_error_set(err, CM_E_NOMEM, 0, "no memory for the checkout");
}

static int add_volume(struct cm_spec *spec, const char *path)
{
	struct cm_volume *volume = &spec->volumes[spec->n_volumes++];

	volume->src = cm_strdup(path);
	volume->dst = cm_strdup(path);
	volume->is_read_only = true;
	return volume->src && volume->dst ? CM_OK : CM_E_NOMEM;
}

int cm_checkout_helper_show(struct cm_spec *spec, const char *path, const char *git_dir,
			    struct cm_error *err)
{
	spec->volumes = cm_calloc(2, sizeof(*spec->volumes));
	if (!spec->volumes || add_volume(spec, path) < 0 ||
	    (git_dir && add_volume(spec, git_dir) < 0))
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the checkout");
	return CM_OK;
}

static int read_failure(const struct cm_json *root, const struct cm_buf *text,
			struct cm_checkout_result *result, struct cm_error *err)
{
	(void)snprintf(result->code, sizeof(result->code), "%s", cm_json_str(root, "code", ""));
	(void)snprintf(result->reason, sizeof(result->reason), "%s",
		       cm_json_str(root, "reason", ""));
	cm_error_set(err, CM_E_CHECKOUT, 0, "%s",
		     cm_json_str(root, "msg", text->len > 0 ? text->data : "the helper failed"));
	cm_error_hint(err, "%s", cm_json_str(root, "hint", ""));
	return CM_E_CHECKOUT;
}

static bool is_commit(const char *text)
{
	size_t len = strlen(text);

	return len < CM_CHECKOUT_COMMIT_SIZE && strspn(text, "0123456789abcdef") == len;
}

static int take_report(struct cm_local *l, const struct cm_local_program *program,
		       struct cm_checkout_result *result, struct cm_error *err)
{
	struct cm_json_doc *doc = NULL;
	const struct cm_json *root = NULL;
	const struct cm_json *notes;
	int r = CM_OK;

	if (program->out.len > 0 &&
	    cm_json_parse(program->out.data, program->out.len, "checkout", 0, &doc, NULL) == CM_OK)
		root = cm_json_root(doc);
	notes = cm_json_get(root, "notes");
	for (const struct cm_json *n = notes ? notes->first_child : NULL; n; n = n->next) {
		if (n->type == CM_JSON_STRING)
			cm_local_note(l, n->u.string);
	}
	if (program->end.kind != CM_END_EXIT || program->end.status != 0)
		r = read_failure(root, &program->err, result, err);
	else if (is_commit(cm_json_str(root, "commit", "")))
		(void)snprintf(result->commit, sizeof(result->commit), "%s",
			       cm_json_str(root, "commit", ""));
	result->is_held = r == CM_OK && cm_json_bool(root, "held", false);
	if (r == CM_OK && result->modules)
		r = cm_module_list_read(cm_json_get(root, "modules"), result->modules, err);
	(void)snprintf(l->checkout_reason, sizeof(l->checkout_reason), "%s",
		       r < 0 ? result->reason : "");
	(void)snprintf(l->checkout_code, sizeof(l->checkout_code), "%s", r < 0 ? result->code : "");
	cm_json_free(doc);
	return r;
}

struct watch {
	const struct cm_local *l;
	/* NULL: nobody wants to know how far it is */
	struct cm_checkout_result *result;
};

/* What comes from a jail is looked up, and never passed on. */
static void on_line(void *data, const char *line, size_t len)
{
	static const struct {
		const char *stage;
		const char *name;
	} stages[] = {
		{ "fetch", "fetch" }, { "loose", "objects" }, { "packs", "packs" },
		{ "lfs", "lfs" },     { "files", "files" },
	};
	const struct watch *watch = data;
	const struct cm_local *l = watch->l;
	struct cm_json_doc *doc = NULL;
	const struct cm_json *root;
	int64_t received;
	int64_t total;
	int64_t bytes;
	const char *stage;

	if (len > LINE_MAX_BYTES || cm_json_parse(line, len, "progress", 0, &doc, NULL) != CM_OK)
		return;
	root = cm_json_root(doc);
	stage = cm_json_str(root, "stage", "");
	received = cm_json_int(root, "received", -1);
	total = cm_json_int(root, "total", -1);
	bytes = cm_json_int(root, "bytes", 0);
	for (size_t i = 0; i < CM_ARRAY_SIZE(stages); i++) {
		if (l->events.progress && strcmp(stage, stages[i].stage) == 0 && total > 0 &&
		    received >= 0 && received <= total && bytes >= 0)
			l->events.progress(l->events.data, stages[i].name, (uint64_t)received,
					   (uint64_t)total, (uint64_t)bytes);
	}
	if (watch->result && strcmp(stage, "files") == 0)
		watch->result->is_writing = true;
	cm_json_free(doc);
}

/* all: options to be completed, of OPTIONS_MAX + 8 */
static int run(struct cm_local *l, char **all, size_t n, struct cm_local_program *program,
	       struct cm_checkout_result *result, struct cm_error *err)
{
	struct watch watch = { l, result };
	struct cm_local_program watched = *program;
	int r;

	all[n++] = (char *)(uintptr_t) "--progress-fd";
	all[n++] = (char *)(uintptr_t) "1";
	all[n] = NULL;
	watched.argv = all;
	watched.silence_ms = CM_CHECKOUT_SILENCE_MS;
	watched.is_last_line = true;
	watched.on_line = on_line;
	watched.data = &watch;
	watched.is_committed = result && result->is_kept_up ? &result->is_writing : NULL;
	r = cm_local_inside(l, &watched, err);
	program->out = watched.out;
	program->err = watched.err;
	program->end = watched.end;
	return r;
}

int cm_checkout_helper_run(struct cm_local *l, char *const *options, const struct cm_buf *in,
			   struct cm_checkout_result *result, struct cm_error *err)
{
	struct cm_local_program program = { .in = in, .flags = CM_EXECF_LAST };
	char *all[OPTIONS_MAX + 8] = { (char *)(uintptr_t)HELPER_INSIDE };
	size_t n = 1;
	int r;

	while (*options && n <= OPTIONS_MAX)
		all[n++] = *options++;
	all[n++] = (char *)(uintptr_t) "--report-fd";
	all[n++] = (char *)(uintptr_t) "1";
	cm_buf_init(&program.out, REPORT_MAX);
	cm_buf_init(&program.err, REPORT_MAX);
	r = run(l, all, n, &program, result, err);
	if (r == CM_OK)
		r = take_report(l, &program, result, err);
	cm_buf_clear(&program.out);
	cm_buf_clear(&program.err);
	return r;
}

/* *ret: the answer, which the caller frees; NULL where there is none that is understood. */
static int ask_status(struct cm_local *l, const char *path, bool with_unsaved,
		      struct cm_json_doc **ret, struct cm_buf *ret_err, struct cm_error *err)
{
	char *all[8] = { (char *)(uintptr_t)HELPER_INSIDE, (char *)(uintptr_t) "--status",
			 (char *)(uintptr_t)path };
	struct cm_local_program program = { 0 };
	size_t n = 3;
	int r;

	*ret = NULL;
	if (with_unsaved)
		all[n++] = (char *)(uintptr_t) "--unsaved";
	cm_buf_init(&program.out, REPORT_MAX);
	cm_buf_init(&program.err, REPORT_MAX);
	r = run(l, all, n, &program, NULL, err);
	if (r == CM_OK && program.end.kind == CM_END_EXIT && program.end.status == 0 &&
	    program.out.len > 0)
		(void)cm_json_parse(program.out.data, program.out.len, "status", 0, ret, NULL);
	if (r == CM_OK && !*ret && ret_err && program.err.len > 0)
		cm_buf_append(ret_err, program.err.data, strcspn(program.err.data, "\n"));
	cm_buf_clear(&program.out);
	cm_buf_clear(&program.err);
	return r;
}

int cm_checkout_helper_status(struct cm_local *l, const char *path, int64_t *ret,
			      struct cm_error *err)
{
	struct cm_json_doc *doc = NULL;
	int r = ask_status(l, path, false, &doc, NULL, err);

	*ret = doc ? cm_json_int(cm_json_root(doc), "uncommitted", -1) : -1;
	cm_json_free(doc);
	return r;
}

int cm_checkout_helper_unsaved(struct cm_local *l, const char *path,
			       struct cm_checkout_unsaved *ret, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf said = { 0 };
	struct cm_json_doc *doc = NULL;
	const struct cm_json *root;
	int r;

	cm_buf_init(&said, REPORT_MAX);
	r = ask_status(l, path, true, &doc, &said, err);
	if (r < 0)
		return r;
	root = doc ? cm_json_root(doc) : NULL;
	*ret = (struct cm_checkout_unsaved){
		.uncommitted = cm_json_int(root, "uncommitted", -1),
		.untracked = cm_json_int(root, "untracked", -1),
		.stashes = cm_json_int(root, "stashes", -1),
		.commits = cm_json_int(root, "commits", -1),
	};
	cm_json_free(doc);
	if (ret->uncommitted >= 0 && ret->untracked >= 0 && ret->stashes >= 0 && ret->commits >= 0)
		return CM_OK;
	return cm_error_set(err, CM_E_CHECKOUT, 0, "%.300s",
			    said.len > 0 ? said.data
					 : "it says that its work tree is elsewhere, or has none");
}
