/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/spec/retention.h"

#include <string.h>

#include "runtime/base/buf.h"
#include "runtime/base/fd.h"
#include "runtime/base/num.h"
#include "runtime/base/text.h"

#define OLDEST_MS (3650ULL * 24 * 60 * 60 * 1000)
#define LAST_MAX 1000000
#define OLDER "older-than="
#define LAST "keep-last="

static int parse_part(const char *part, const char *what, struct cm_retention *ret,
		      struct cm_error *err)
{
	uint64_t last = 0;
	int r = CM_OK;

	if (cm_text_has_prefix(part, OLDER)) {
		r = cm_parse_duration(part + strlen(OLDER), what, 1000, OLDEST_MS, &ret->older_ms,
				      err);
	} else if (cm_text_has_prefix(part, LAST)) {
		r = cm_parse_u64(part + strlen(LAST), what, 1, LAST_MAX, &last, err);
		ret->keep_last = (size_t)last;
	} else if (strcmp(part, "files") == 0) {
		ret->with_files = true;
	} else {
		r = cm_error_set(err, CM_E_INVALID, 0, "%s does not know '%.60s'", what, part);
	}
	return r;
}

int cm_retention_parse(const char *text, const char *what, struct cm_retention *ret,
		       struct cm_error *err)
{
	int r = CM_OK;

	*ret = (struct cm_retention){ 0 };
	while (r == CM_OK && *text != '\0') {
		size_t len = strcspn(text, ",");
		CM_AUTO_FREE char *part = cm_asprintf("%.*s", (int)len, text);

		r = part ? parse_part(part, what, ret, err)
			 : cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
		text += len;
		text += *text == ',';
	}
	if (r == CM_OK && ret->older_ms == 0 && ret->keep_last == 0)
		r = cm_error_set(err, CM_E_INVALID, 0, "%s does not say which sessions may go",
				 what);
	if (r == CM_E_INVALID)
		cm_error_hint(err, "for example older-than=7d,keep-last=20; 'files' adds their "
				   "directories");
	return r;
}
