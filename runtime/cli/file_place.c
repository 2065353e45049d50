/* SPDX-License-Identifier: Apache-2.0 */
/* ID:PATH, a path of this side, or "-". */
#include "runtime/cli/file_place.h"

#include <string.h>

int cm_file_place_parse(const char *text, struct cm_file_place *ret, struct cm_error *err)
{
	const char *colon = strchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;

	memset(ret, 0, sizeof(*ret));
	ret->path = text;
	if (text[0] == '\0') {
		(void)cm_error_set(err, CM_E_INVALID, 0, "an empty path");
		cm_error_hint(err, "'.' is the current directory, ID: the session's");
		return CM_E_INVALID;
	}
	if (strcmp(text, "-") == 0)
		ret->kind = CM_PLACE_STREAM;
	if (!colon || len > CM_SESSION_ID_MAX)
		return CM_OK;
	memcpy(ret->session, text, len);
	ret->session[len] = '\0';
	if (!cm_text_is_session_id(ret->session)) {
		ret->session[0] = '\0';
		return CM_OK;
	}
	ret->kind = CM_PLACE_SESSION;
	ret->path = colon[1] != '\0' ? colon + 1 : ".";
	return CM_OK;
}
