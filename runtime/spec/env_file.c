/* SPDX-License-Identifier: Apache-2.0 */
/* --env-file: NAME=VALUE lines, as docker reads them; nothing is unquoted or expanded. */
#include <string.h>

#include "runtime/base/alloc.h"
#include "runtime/base/fd.h"
#include "runtime/spec/spec_json.h"

static int add_line(const char *line, size_t len, const char *name, unsigned int number,
		    struct cm_layer *ret, struct cm_error *err)
{
	CM_AUTO_FREE char *text = cm_malloc(len + 1);
	CM_AUTO_FREE char *place = cm_asprintf("%s:%u", name, number);

	if (!text || !place)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	memcpy(text, line, len);
	text[len] = '\0';
	return cm_layer_add(ret, CM_KEY_ENV, text, "--env-file", place, err);
}

int cm_env_file_parse(const char *text, size_t len, const char *name, struct cm_layer *ret,
		      struct cm_error *err)
{
	const char *end = text + len;
	unsigned int number = 0;
	int r;

	if (memchr(text, '\0', len)) {
		r = cm_error_set(err, CM_E_INVALID, 0, "'%s' is not a text file", name);
		cm_error_hint(err, "--env-file takes lines of NAME=VALUE");
		return r;
	}
	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *stop = newline ? newline : end;
		const char *line = text;

		number++;
		text = newline ? newline + 1 : end;
		while (line < stop && (*line == ' ' || *line == '\t'))
			line++;
		if (stop > line && stop[-1] == '\r')
			stop--;
		if (line == stop || *line == '#')
			continue;
		r = add_line(line, (size_t)(stop - line), name, number, ret, err);
		if (r != CM_OK)
			return r;
	}
	return CM_OK;
}
