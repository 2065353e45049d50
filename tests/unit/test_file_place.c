/* SPDX-License-Identifier: Apache-2.0 */
/* ID:PATH, a path of this side, or "-". */
#include "runtime/cli/file_place.h"
#include "tests/unit/test_base.h"

static void is(const char *text, enum cm_file_place_kind kind, const char *session,
	       const char *path)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_file_place place;

	assert_int_equal(cm_file_place_parse(text, &place, &err), CM_OK);
	assert_int_equal(place.kind, kind);
	assert_string_equal(place.session, session);
	assert_string_equal(place.path, path);
}

static void test_places(void **state)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_file_place place;
	char text[CM_SESSION_ID_MAX + 4];

	(void)state;
	is("s:a", CM_PLACE_SESSION, "s", "a");
	is("s:", CM_PLACE_SESSION, "s", ".");
	is("fix.1-x_:/tmp/a:b", CM_PLACE_SESSION, "fix.1-x_", "/tmp/a:b");
	is("s:-", CM_PLACE_SESSION, "s", "-");
	is("s:a\n\xff", CM_PLACE_SESSION, "s", "a\n\xff");
	is("-", CM_PLACE_STREAM, "", "-");
	is("a", CM_PLACE_HERE, "", "a");
	is("./s:a", CM_PLACE_HERE, "", "./s:a");
	is("/x:y", CM_PLACE_HERE, "", "/x:y");
	is(":a", CM_PLACE_HERE, "", ":a");
	is(".s:a", CM_PLACE_HERE, "", ".s:a");
	is("-s:a", CM_PLACE_HERE, "", "-s:a");
	is("a b:c", CM_PLACE_HERE, "", "a b:c");
	memset(text, 's', sizeof(text));
	memcpy(text + CM_SESSION_ID_MAX, ":p", 3);
	assert_int_equal(cm_file_place_parse(text, &place, &err), CM_OK);
	assert_int_equal(place.kind, CM_PLACE_SESSION);
	memcpy(text + CM_SESSION_ID_MAX, "s:p", 4);
	assert_int_equal(cm_file_place_parse(text, &place, &err), CM_OK);
	assert_int_equal(place.kind, CM_PLACE_HERE);
	assert_int_equal(cm_file_place_parse("", &place, &err), CM_E_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
