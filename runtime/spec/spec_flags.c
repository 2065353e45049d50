/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line: options up to the command, which is left as it is.
 *
 * One walker reads it for all questions (the layer, --help, and in a line that is wrong elsewhere
 * --failure-exit and where the result goes); what differs is what is done with each option.
 */
#include "runtime/spec/spec_flags.h"

#include <string.h>

#include "runtime/base/fd.h"
#include "runtime/base/num.h"
#include "runtime/base/text.h"

struct walk {
	int argc;
	char *const *argv;
	/* next word */
	int at;
	/* rest of a bundle such as "-it", or NULL */
	const char *letters;
};

/* One option as it was found. */
struct found {
	const struct cm_key_info *info;
	/* as typed, "--opt" without "=value", or "-x" */
	char spelling[64];
	/* --no-NAME */
	bool is_negated;
	/* NULL: none was given */
	const char *value;
};

enum step {
	STEP_OPTION,
	/* at is the command's first word, or argc */
	STEP_END,
	STEP_ERROR,
};

/* The value in the next word; NULL when there is none. */
static const char *next_word(struct walk *w)
{
	return w->at < w->argc ? w->argv[w->at++] : NULL;
}

static enum step step_letter(struct walk *w, struct found *f, struct cm_error *err)
{
	char letter = *w->letters++;

	f->spelling[0] = '-';
	f->spelling[1] = letter;
	f->spelling[2] = '\0';
	f->info = cm_key_by_letter(letter);
	if (!f->info) {
		cm_flags_unknown(f->spelling, err);
		w->letters = NULL;
		return STEP_ERROR;
	}
	if (cm_key_is_switch(f->info)) {
		if (*w->letters == '\0')
			w->letters = NULL;
		return STEP_OPTION;
	}
	/* "-m4g", "-m=4g", "-m 4g" */
	f->value = w->letters;
	w->letters = NULL;
	if (*f->value == '\0')
		f->value = next_word(w);
	else if (*f->value == '=')
		f->value++;
	return STEP_OPTION;
}

static const struct cm_key_info *find_long(const char *name, size_t len, bool *ret_is_negated)
{
	const struct cm_key_info *info = cm_key_by_flag(name, len);

	*ret_is_negated = false;
	if (info || len <= 3 || memcmp(name, "no-", 3) != 0)
		return info;
	info = cm_key_by_flag(name + 3, len - 3);
	*ret_is_negated = info && (info->flags & CM_KEYF_NO);
	return *ret_is_negated ? info : NULL;
}

static enum step step_long(struct walk *w, const char *word, struct found *f, struct cm_error *err)
{
	size_t len = strcspn(word, "=");

	f->info = find_long(word + 2, len - 2, &f->is_negated);
	if (!f->info) {
		cm_flags_unknown(word, err);
		return STEP_ERROR;
	}
	/* our longest option is far shorter than the buffer, which a test holds */
	memcpy(f->spelling, word, len);
	f->spelling[len] = '\0';
	if (word[len] == '=')
		f->value = word + len + 1;
	else if (!cm_key_is_switch(f->info) && !f->is_negated)
		f->value = next_word(w);
	return STEP_OPTION;
}

static enum step step(struct walk *w, struct found *f, struct cm_error *err)
{
	const char *word;

	*f = (struct found){ 0 };
	if (w->letters)
		return step_letter(w, f, err);
	if (w->at >= w->argc)
		return STEP_END;
	word = w->argv[w->at];
	if (word[0] != '-' || word[1] == '\0')
		return STEP_END;
	w->at++;
	if (strcmp(word, "--") == 0)
		return STEP_END;
	if (word[1] == '-')
		return step_long(w, word, f, err);
	w->letters = word + 1;
	return step_letter(w, f, err);
}

static int missing_value(const struct found *f, struct cm_error *err)
{
	int r = cm_error_set(err, CM_E_INVALID, 0, "option '%s' needs a value", f->spelling);

	cm_error_hint(err, "write %s %s, for example --%s %s", f->spelling, f->info->metavar,
		      f->info->name, f->info->example);
	return r;
}

static int no_value(const struct found *f, struct cm_error *err)
{
	int r = cm_error_set(err, CM_E_INVALID, 0, "option '%s' takes no value, but has '%.100s'",
			     f->spelling, f->value);

	cm_error_hint(err, "write %s alone", f->spelling);
	return r;
}

/* The setting's text, or NULL with err filled. */
static const char *value_of(const struct found *f, struct cm_error *err)
{
	if (f->is_negated && f->value) {
		no_value(f, err);
		return NULL;
	}
	if (f->is_negated)
		return f->info->kind == CM_KIND_WORKSPACE ? "" : "false";
	if (!cm_key_is_switch(f->info)) {
		if (!f->value || *f->value == '\0') {
			missing_value(f, err);
			return NULL;
		}
		return f->value;
	}
	if (f->value && strcmp(f->value, "true") != 0 && strcmp(f->value, "false") != 0) {
		no_value(f, err);
		return NULL;
	}
	return f->value ? f->value : "true";
}

static int add_option(struct cm_layer *layer, const struct found *f, struct cm_error *err)
{
	const char *value = value_of(f, err);
	CM_AUTO_FREE char *what = NULL;

	if (!value)
		return CM_E_INVALID;
	/* in full: the same name in every message, whichever spelling was used */
	what = cm_asprintf("--%s", f->info->name);
	if (!what)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	return cm_layer_add(layer, f->info->key, value, f->is_negated ? f->spelling : what, NULL,
			    err);
}

int cm_flags_parse(int argc, char *const *argv, struct cm_layer *ret, struct cm_error *err)
{
	struct walk w = { .argc = argc, .argv = argv };
	struct cm_error local = CM_ERROR_INIT;
	struct found f;
	enum step s = STEP_END;
	int r = CM_OK;

	while (r == CM_OK && (s = step(&w, &f, &local)) == STEP_OPTION)
		r = add_option(ret, &f, &local);
	if (r == CM_OK && s == STEP_ERROR)
		r = local.code;
	for (int i = w.at; r == CM_OK && i < argc; i++) {
		if (cm_strv_add(&ret->argv, argv[i]) != CM_OK)
			r = cm_error_set(&local, CM_E_NOMEM, 0, "out of memory");
	}
	if (r != CM_OK && err)
		*err = local;
	return r;
}

int cm_flags_failure_exit(int argc, char *const *argv)
{
	const struct cm_key_info *info = cm_key_info(CM_KEY_FAILURE_EXIT);
	struct walk w = { .argc = argc, .argv = argv };
	struct found f;
	enum step s;
	uint64_t value;
	int found = -1;

	while ((s = step(&w, &f, NULL)) != STEP_END) {
		if (s == STEP_ERROR || f.info != info || !f.value)
			continue;
		if (cm_parse_u64(f.value, "", info->min, info->max, &value, NULL) == CM_OK)
			found = (int)value;
	}
	return found;
}

void cm_flags_outputs(int argc, char *const *argv, struct cm_layer *ret)
{
	struct walk w = { .argc = argc, .argv = argv };
	struct found f;
	enum step s;

	while ((s = step(&w, &f, NULL)) != STEP_END) {
		if (s == STEP_OPTION &&
		    (f.info->key == CM_KEY_JSON || f.info->key == CM_KEY_RESULT))
			(void)add_option(ret, &f, NULL);
	}
}

bool cm_flags_wants_help(int argc, char *const *argv)
{
	struct walk w = { .argc = argc, .argv = argv };
	struct found f;

	while (step(&w, &f, NULL) == STEP_OPTION) {
		if (f.info->kind == CM_KIND_HELP)
			return true;
	}
	return false;
}

const char *cm_flags_provider(int argc, char *const *argv, bool takes_session)
{
	struct walk w = { .argc = argc, .argv = argv };
	const char *found = NULL;
	struct found f;
	enum step s;

	while ((s = step(&w, &f, NULL)) != STEP_END || takes_session) {
		if (s == STEP_OPTION && f.info->kind == CM_KIND_PROVIDER)
			found = f.value;
		if (s != STEP_END)
			continue;
		takes_session = false;
		w.at++;
	}
	return found;
}
