/* SPDX-License-Identifier: Apache-2.0 */
/* What is said to an option that is not ours. */
#include <string.h>

#include "runtime/base/fd.h"
#include "runtime/spec/spec_flags.h"

static const struct foreign {
	const char *option;
	const char *hint;
	bool is_later;
} foreign[] = {
#define CM_FOREIGN(option_, hint_) { .option = option_, .hint = hint_, .is_later = false },
#define CM_LATER(option_, hint_) { .option = option_, .hint = hint_, .is_later = true },
#include "runtime/spec/foreign.def"
#undef CM_FOREIGN
#undef CM_LATER
};

static const struct foreign *find(const char *option, size_t len)
{
	for (size_t i = 0; i < CM_ARRAY_SIZE(foreign); i++) {
		if (strlen(foreign[i].option) == len && memcmp(foreign[i].option, option, len) == 0)
			return &foreign[i];
	}
	return NULL;
}

/* The value after '=' may be a secret, and says nothing. */
int cm_flags_unknown(const char *option, struct cm_error *err)
{
	size_t len = strcspn(option, "=");
	int shown = len < 100 ? (int)len : 100;
	const struct foreign *known = find(option, len);
	char name[101];
	const char *near;
	int r;

	if (known && known->is_later) {
		r = cm_error_set(err, CM_E_UNSUPPORTED, 0, "option '%.*s' is not supported yet",
				 shown, option);
		cm_error_hint(err, "%s", known->hint);
		return r;
	}
	r = cm_error_set(err, CM_E_INVALID, 0, "unknown option '%.*s'", shown, option);
	if (known) {
		cm_error_hint(err, "%s", known->hint);
		return r;
	}
	memcpy(name, option, (size_t)shown);
	name[shown] = '\0';
	near = name[1] == '-' ? cm_key_nearest_flag(name + 2) : NULL;
	if (near)
		cm_error_hint(err, "did you mean '--%s'?", near);
	else
		cm_error_hint(err, "'casemate help run' lists the options; '--' ends them");
	return r;
}
