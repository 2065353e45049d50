/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/spec/labels.h"

#include <string.h>

#include "runtime/base/text.h"

static bool is_key(const char *key, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char c = key[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '.' || c == '_' || c == '/' || c == '-'))
			return false;
	}
	return len > 0 && len <= CM_LABEL_KEY_MAX;
}

/* It is shown a line a label, and written as JSON, which has UTF-8 alone. */
static bool is_value(const char *value)
{
	size_t len = strlen(value);
	size_t n;

	for (size_t i = 0; i < len; i += n) {
		unsigned char c = (unsigned char)value[i];

		n = cm_text_utf8_len(value + i, len - i);
		if (n == 0 || c < 0x20 || c == 0x7f)
			return false;
	}
	return len <= CM_LABEL_VALUE_MAX;
}

int cm_label_check(const char *label, const char *what, struct cm_error *err)
{
	size_t key_len = strcspn(label, "=");
	int r;

	if (label[key_len] != '=') {
		r = cm_error_set(err, CM_E_INVALID, 0, "%s '%.100s' has no '='", what, label);
		cm_error_hint(err, "write KEY=VALUE, for example team=web");
		return r;
	}
	if (!is_key(label, key_len)) {
		r = cm_error_set(err, CM_E_INVALID, 0, "%s '%.100s': bad key", what, label);
		cm_error_hint(err, "the key of a label is 1 to %d of A-Z a-z 0-9 . _ / -",
			      CM_LABEL_KEY_MAX);
		return r;
	}
	if (!is_value(label + key_len + 1)) {
		r = cm_error_set(err, CM_E_INVALID, 0, "%s '%.*s': bad value", what, (int)key_len,
				 label);
		cm_error_hint(err,
			      "the value of a label is at most %d bytes of UTF-8, without "
			      "control characters",
			      CM_LABEL_VALUE_MAX);
		return r;
	}
	return CM_OK;
}

bool cm_labels_match(const struct cm_strv *labels, const char *wanted)
{
	size_t len = strlen(wanted);
	bool has_value = strchr(wanted, '=') != NULL;

	for (size_t i = 0; i < labels->n; i++) {
		const char *label = labels->v[i];

		if (strncmp(label, wanted, len) == 0 && label[len] == (has_value ? '\0' : '='))
			return true;
	}
	return false;
}
