/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debian's glibc archives of yajl and libcap, linked whole into a program of the static flavour,
 * work: their checked functions, errno, stdio and ctype are those of the program's libc.
 */
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>

#include "runtime/base/json.h"

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

static int check_yajl(void)
{
	static const char good[] = "{\"a\": [1, -2.5e3, \"x\\u00e9\\n\", null, true]}";
	static const char bad[] = "{\"a\": \"\x01\"}";
	const struct cm_json *a;
	struct cm_json_doc *doc;
	struct cm_error err = CM_ERROR_INIT;

	CHECK(cm_json_parse(good, strlen(good), "good", 0, &doc, &err) == CM_OK);
	a = cm_json_get(cm_json_root(doc), "a");
	CHECK(a && a->n_children == 5);
	CHECK(a->first_child->next->u.number == -2500.0);
	CHECK(strcmp(a->first_child->next->next->u.string, "x\xc3\xa9\n") == 0);
	cm_json_free(doc);
	/* yajl makes the text of an error with its checked functions */
	CHECK(cm_json_parse(bad, strlen(bad), "bad", 0, &doc, &err) == CM_E_INVALID);
	CHECK(strstr(err.msg, "invalid character inside string"));
	return 0;
}

static int check_libcap(void)
{
	cap_t caps = cap_from_text("cap_kill,cap_setuid=p cap_kill+e");
	cap_t own = cap_get_proc();
	cap_flag_value_t value;
	char *text;

	CHECK(own && caps);
	/* to text: __sprintf_chk and __snprintf_chk */
	text = cap_to_text(caps, NULL);
	CHECK(text && strstr(text, "cap_setuid") && strstr(text, "cap_kill"));
	CHECK(cap_get_flag(caps, CAP_KILL, CAP_EFFECTIVE, &value) == 0 && value == CAP_SET);
	CHECK(cap_get_flag(caps, CAP_SETUID, CAP_EFFECTIVE, &value) == 0 && value == CAP_CLEAR);
	CHECK(cap_set_proc(own) == 0);
	cap_free(text);
	cap_free(caps);
	cap_free(own);
	/* a name that is not known: __asprintf_chk */
	text = cap_to_name(63);
	CHECK(text && strcmp(text, "63") == 0);
	cap_free(text);
	return 0;
}

int main(void)
{
	return check_yajl() || check_libcap();
}
