/* SPDX-License-Identifier: Apache-2.0 */
#include "providers/platform/template.h"

#include <string.h>

#include "runtime/base/fd.h"

#define SCHEMA_VERSION 1
#define MIB (UINT64_C(1) << 20)
#define ARGS_MAX 2

/* What an argument of an operation may be. */
enum arg {
	NO_ARG = 0,
	/* a whole number above 0 */
	NUMBER,
	TEXT,
	/* one, or a list of at least one */
	TEXTS,
	/* null, or that */
	TEXTS_OR_NULL,
	/* an object of texts, at least one */
	VARIABLES,
	/* an object of these words with true or false */
	OPTIONS,
};

static const struct method {
	const char *name;
	size_t n_required;
	enum arg args[ARGS_MAX];
	const char *options[3];
} methods[] = {
	{ "cpuCount", 1, { NUMBER }, { NULL } },
	{ "memoryMB", 1, { NUMBER }, { NULL } },
	{ "runCmd", 1, { TEXTS }, { NULL } },
	{ "setWorkdir", 1, { TEXT }, { NULL } },
	/* what is ephemeral is no part of a definition, and goes beside it */
	{ "setEnvs", 1, { VARIABLES }, { NULL } },
	{ "aptInstall", 1, { TEXTS, OPTIONS }, { "noInstallRecommends", "fixMissing", NULL } },
	{ "pipInstall", 0, { TEXTS_OR_NULL, OPTIONS }, { "g", NULL } },
	{ "npmInstall", 0, { TEXTS_OR_NULL, OPTIONS }, { "g", "dev", NULL } },
};

static int no_memory(struct cm_error *err)
{
	return cm_error_set(err, CM_E_NOMEM, 0, "no memory for a template");
}

/* --- made ------------------------------------------------------------------------------------ */

static void begin_operation(struct cm_json_writer *w, const char *method)
{
	cm_jw_object(w);
	cm_jw_kstring(w, "method", method);
	cm_jw_key(w, "args");
	cm_jw_array(w);
}

static void end_operation(struct cm_json_writer *w)
{
	cm_jw_end_array(w);
	cm_jw_end_object(w);
}

static void write_number(struct cm_json_writer *w, const char *method, uint64_t value)
{
	if (value == 0)
		return;
	begin_operation(w, method);
	cm_jw_uint(w, value);
	end_operation(w);
}

int cm_platform_template_make(const struct cm_template_request *request, struct cm_buf *out,
			      struct cm_error *err)
{
	struct cm_json_writer w;
	int r;

	cm_jw_init(&w, out, false);
	cm_jw_object(&w);
	cm_jw_kint(&w, "schemaVersion", SCHEMA_VERSION);
	cm_jw_key(&w, "operations");
	cm_jw_array(&w);
	write_number(&w, "cpuCount", request->cpus);
	write_number(&w, "memoryMB",
		     request->memory_bytes / MIB + (request->memory_bytes % MIB != 0));
	for (size_t i = 0; request->commands && i < request->commands->n; i++) {
		begin_operation(&w, "runCmd");
		cm_jw_string(&w, request->commands->v[i]);
		end_operation(&w);
	}
	cm_jw_end_array(&w);
	/* while a new definition is built, a session begins with the last one of its name */
	cm_jw_kstring(&w, "family", request->name);
	cm_jw_end_object(&w);
	r = cm_buf_status(out);
	if (r == CM_E_LIMIT)
		return cm_error_set(err, r, 0, "template '%s' is too long", request->name);
	return r < 0 ? no_memory(err) : CM_OK;
}

/* --- checked --------------------------------------------------------------------------------- */

struct check {
	const char *name;
	struct cm_error *err;
};

static int invalid(const struct check *c, const struct cm_json *at, const char *what)
{
	return cm_error_set(c->err, CM_E_INVALID, 0, "template '%s', line %u: %s", c->name,
			    at->line, what);
}

static int over(const struct check *c, const char *what, uint64_t max)
{
	cm_error_set(c->err, CM_E_LIMIT, 0, "template '%s' has %s", c->name, what);
	cm_error_hint(c->err, "the platform takes %llu", (unsigned long long)max);
	return CM_E_LIMIT;
}

/* In UTF-16, where what is above U+FFFF counts twice. */
static size_t characters(const char *s)
{
	size_t n = 0;

	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if ((c & 0xc0) != 0x80)
			n += c >= 0xf0 ? 2 : 1;
	}
	return n;
}

/* The bounds of whatever value, below it too. */
static int check_bounds(const struct check *c, const struct cm_json *v)
{
	int r = CM_OK;

	if ((v->type == CM_JSON_STRING && characters(v->u.string) > CM_PLATFORM_STRING_MAX) ||
	    (v->key && characters(v->key) > CM_PLATFORM_STRING_MAX))
		return over(c, "a text that is too long", CM_PLATFORM_STRING_MAX);
	if (v->n_children > CM_PLATFORM_ITEMS_MAX)
		return over(c, "a list that is too long", CM_PLATFORM_ITEMS_MAX);
	for (const struct cm_json *child = v->first_child; child && r == CM_OK; child = child->next)
		r = check_bounds(c, child);
	return r;
}

static bool is_blank(const char *s)
{
	return s[strspn(s, " \t\r\n\v\f")] == '\0';
}

static bool is_text(const struct cm_json *v)
{
	return v->type == CM_JSON_STRING && !is_blank(v->u.string);
}

static bool are_texts(const struct cm_json *v)
{
	if (v->type != CM_JSON_ARRAY)
		return is_text(v);
	for (const struct cm_json *item = v->first_child; item; item = item->next) {
		if (!is_text(item))
			return false;
	}
	return v->first_child != NULL;
}

static bool are_variables(const struct cm_json *v)
{
	if (v->type != CM_JSON_OBJECT || !v->first_child)
		return false;
	for (const struct cm_json *item = v->first_child; item; item = item->next) {
		if (item->type != CM_JSON_STRING || *item->key == '\0' || strchr(item->key, '='))
			return false;
	}
	return true;
}

static bool are_options(const struct cm_json *v, const char *const words[3])
{
	if (v->type != CM_JSON_OBJECT)
		return false;
	for (const struct cm_json *item = v->first_child; item; item = item->next) {
		size_t i = 0;

		while (i < 3 && words[i] && strcmp(words[i], item->key) != 0)
			i++;
		if (i == 3 || !words[i] || item->type != CM_JSON_BOOL)
			return false;
	}
	return true;
}

static bool is_arg(const struct cm_json *v, enum arg kind, const struct method *method)
{
	switch (kind) {
	case NO_ARG:
		return false;
	case NUMBER:
		return v->type == CM_JSON_INT && v->u.integer > 0 &&
		       v->u.integer <= CM_PLATFORM_NUMBER_MAX;
	case TEXT:
		return is_text(v);
	case TEXTS:
		return are_texts(v);
	case TEXTS_OR_NULL:
		/* null stands where options follow, and nothing else does */
		return v->type == CM_JSON_NULL ? v->next != NULL : are_texts(v);
	case VARIABLES:
		return are_variables(v);
	case OPTIONS:
		return are_options(v, method->options);
	}
	return false;
}

static const struct method *find_method(const char *name)
{
	for (size_t i = 0; name && i < CM_ARRAY_SIZE(methods); i++) {
		if (strcmp(methods[i].name, name) == 0)
			return &methods[i];
	}
	return NULL;
}

static int check_operation(const struct check *c, const struct cm_json *v)
{
	const struct method *method = find_method(cm_json_str(v, "method", NULL));
	const struct cm_json *args = cm_json_get(v, "args");
	const struct cm_json *arg;
	size_t i = 0;

	if (!method)
		return invalid(c, v, "an operation has no method that there is");
	if (v->n_children != 2 || !args || args->type != CM_JSON_ARRAY)
		return invalid(c, v, "an operation has a method and args, and nothing else");
	if (args->n_children < method->n_required || args->n_children > ARGS_MAX)
		return invalid(c, v, "an operation has too few arguments, or too many");
	for (arg = args->first_child; arg; arg = arg->next, i++) {
		if (!is_arg(arg, method->args[i], method))
			return invalid(c, arg, "an operation has an argument that it cannot have");
	}
	return CM_OK;
}

static int check_family(const struct check *c, const struct cm_json *v)
{
	if (!is_text(v))
		return invalid(c, v, "a family is a text");
	if (characters(v->u.string) > CM_PLATFORM_FAMILY_MAX)
		return over(c, "a family's name that is too long", CM_PLATFORM_FAMILY_MAX);
	return CM_OK;
}

static int check_definition(const struct check *c, const struct cm_json *root)
{
	const struct cm_json *operations = cm_json_get(root, "operations");
	const struct cm_json *family = cm_json_get(root, "family");
	const struct cm_json *version = cm_json_get(root, "schemaVersion");
	int r;

	if (!operations || operations->type != CM_JSON_ARRAY)
		return invalid(c, root, "there are no operations");
	if (!version || version->type != CM_JSON_INT || version->u.integer != SCHEMA_VERSION)
		return invalid(c, root, "schemaVersion is not 1");
	if (root->n_children != (family ? 3U : 2U))
		return invalid(c, root, "there is a member that is unknown");
	if (operations->n_children > CM_PLATFORM_OPERATIONS_MAX)
		return over(c, "too many operations", CM_PLATFORM_OPERATIONS_MAX);
	r = family ? check_family(c, family) : CM_OK;
	if (r == CM_OK)
		r = check_bounds(c, root);
	for (const struct cm_json *v = operations->first_child; v && r == CM_OK; v = v->next)
		r = check_operation(c, v);
	return r;
}

int cm_platform_template_check(const char *text, size_t len, const char *name,
			       struct cm_json_doc **ret, struct cm_error *err)
{
	const struct check c = { name, err };
	struct cm_json_doc *doc = NULL;
	int r;

	if (len > CM_PLATFORM_DEFINITION_MAX)
		return over(&c, "a definition that is too long", CM_PLATFORM_DEFINITION_MAX);
	r = cm_json_parse(text, len, name, 0, &doc, err);
	if (r < 0)
		return r;
	r = check_definition(&c, cm_json_root(doc));
	if (r == CM_OK)
		*ret = doc;
	else
		cm_json_free(doc);
	return r;
}
