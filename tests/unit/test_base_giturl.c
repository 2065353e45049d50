/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of repositories: what is taken and how it is read, what is refused, and names. */
#include "runtime/base/buf.h"
#include "runtime/base/giturl.h"
#include "tests/unit/test_base.h"

/* what no message and no text may hold */
#define SECRET "s3cr3t"

static const struct {
	const char *address;
	enum cm_giturl_kind kind;
	const char *host;
	unsigned int port;
	const char *user;
	const char *password;
	const char *path;
	/* NULL: the address itself */
	const char *text;
} taken[] = {
	{ "https://example.org/a/b.git", CM_GITURL_HTTPS, "example.org", 443, NULL, NULL,
	  "/a/b.git", NULL },
	{ "HTTPS://Example.ORG/A", CM_GITURL_HTTPS, "example.org", 443, NULL, NULL, "/A",
	  "https://example.org/A" },
	{ "https://example.org:443/a", CM_GITURL_HTTPS, "example.org", 443, NULL, NULL, "/a",
	  "https://example.org/a" },
	{ "https://example.org:/a", CM_GITURL_HTTPS, "example.org", 443, NULL, NULL, "/a",
	  "https://example.org/a" },
	{ "https://example.org:00443/a", CM_GITURL_HTTPS, "example.org", 443, NULL, NULL, "/a",
	  "https://example.org/a" },
	{ "https://example.org:8443/a", CM_GITURL_HTTPS, "example.org", 8443, NULL, NULL, "/a",
	  NULL },
	{ "https://example.org:65535/a", CM_GITURL_HTTPS, "example.org", 65535, NULL, NULL, "/a",
	  NULL },
	{ "http://example.org:443/a", CM_GITURL_HTTP, "example.org", 443, NULL, NULL, "/a", NULL },
	{ "http://localhost/a%20b", CM_GITURL_HTTP, "localhost", 80, NULL, NULL, "/a%20b", NULL },
	{ "https://under_score.x-y.org/a", CM_GITURL_HTTPS, "under_score.x-y.org", 443, NULL, NULL,
	  "/a", NULL },
	/* user names and passwords */
	{ "https://alice@example.org/a", CM_GITURL_HTTPS, "example.org", 443, "alice", NULL, "/a",
	  "https://example.org/a" },
	{ "https://alice:" SECRET "@example.org:8443/a", CM_GITURL_HTTPS, "example.org", 8443,
	  "alice", SECRET, "/a", "https://example.org:8443/a" },
	{ "https://alice:" SECRET ":x@example.org/a", CM_GITURL_HTTPS, "example.org", 443, "alice",
	  SECRET ":x", "/a", "https://example.org/a" },
	{ "https://al%40x:%73%25%40%2f@example.org/a", CM_GITURL_HTTPS, "example.org", 443, "al@x",
	  "s%@/", "/a", "https://example.org/a" },
	{ "https://:" SECRET "@example.org/a", CM_GITURL_HTTPS, "example.org", 443, NULL, SECRET,
	  "/a", "https://example.org/a" },
	{ "https://alice:@example.org/a", CM_GITURL_HTTPS, "example.org", 443, "alice", "", "/a",
	  "https://example.org/a" },
	{ "https://@example.org/a", CM_GITURL_HTTPS, "example.org", 443, NULL, NULL, "/a",
	  "https://example.org/a" },
	{ "ssh://git:" SECRET "@example.org/a", CM_GITURL_SSH, "example.org", 22, "git", SECRET,
	  "/a", "ssh://git@example.org/a" },
	{ "ssh://al%40x@example.org/a", CM_GITURL_SSH, "example.org", 22, "al@x", NULL, "/a",
	  NULL },
	/* an '@' behind the host is the path's */
	{ "https://example.org/a@b:c", CM_GITURL_HTTPS, "example.org", 443, NULL, NULL, "/a@b:c",
	  NULL },
	{ "https://example.org/https://u:p@h/", CM_GITURL_HTTPS, "example.org", 443, NULL, NULL,
	  "/https://u:p@h/", NULL },
	/* addresses in brackets */
	{ "https://[::1]/a", CM_GITURL_HTTPS, "::1", 443, NULL, NULL, "/a", NULL },
	{ "https://u@[FE80::A]:8443/a", CM_GITURL_HTTPS, "fe80::a", 8443, "u", NULL, "/a",
	  "https://[fe80::a]:8443/a" },
	{ "ssh://[::1]:/a", CM_GITURL_SSH, "::1", 22, NULL, NULL, "/a", "ssh://[::1]/a" },
	{ "https://127.0.0.1/a", CM_GITURL_HTTPS, "127.0.0.1", 443, NULL, NULL, "/a", NULL },
	/* ssh and git */
	{ "ssh://git@example.org:2222/~/a", CM_GITURL_SSH, "example.org", 2222, "git", NULL, "/~/a",
	  NULL },
	{ "git+ssh://example.org/a", CM_GITURL_SSH, "example.org", 22, NULL, NULL, "/a",
	  "ssh://example.org/a" },
	{ "ssh+git://example.org:22/a", CM_GITURL_SSH, "example.org", 22, NULL, NULL, "/a",
	  "ssh://example.org/a" },
	{ "git://example.org/a", CM_GITURL_GIT, "example.org", 9418, NULL, NULL, "/a", NULL },
	/* ssh's own form */
	{ "git@example.org:a/b.git", CM_GITURL_SSH, "example.org", 22, "git", NULL, "a/b.git",
	  NULL },
	{ "example.org:/srv/a", CM_GITURL_SSH, "example.org", 22, NULL, NULL, "/srv/a", NULL },
	{ "example.org:a/x@y:z", CM_GITURL_SSH, "example.org", 22, NULL, NULL, "a/x@y:z", NULL },
	{ "example.org:a[b]", CM_GITURL_SSH, "example.org", 22, NULL, NULL, "a[b]", NULL },
	{ "git@[::1]:a", CM_GITURL_SSH, "::1", 22, "git", NULL, "a", NULL },
	{ "h:a", CM_GITURL_SSH, "h", 22, NULL, NULL, "a", NULL },
	/* files */
	{ "file:///srv/a%20b%3f", CM_GITURL_FILE, NULL, 0, NULL, NULL, "/srv/a b?", "/srv/a b?" },
	{ "file://localhost/a", CM_GITURL_FILE, NULL, 0, NULL, NULL, "/a", "/a" },
	{ "file:///a#b", CM_GITURL_FILE, NULL, 0, NULL, NULL, "/a#b", "/a#b" },
	/* paths: a colon behind a slash, and what only looks like a scheme */
	{ ".", CM_GITURL_PATH, NULL, 0, NULL, NULL, ".", NULL },
	{ "a b\\c", CM_GITURL_PATH, NULL, 0, NULL, NULL, "a b\\c", NULL },
	{ "./a:b", CM_GITURL_PATH, NULL, 0, NULL, NULL, "./a:b", NULL },
	{ "/a/https://b", CM_GITURL_PATH, NULL, 0, NULL, NULL, "/a/https://b", NULL },
	{ "./https://b", CM_GITURL_PATH, NULL, 0, NULL, NULL, "./https://b", NULL },
};

static void assert_text(const char *address, const char *what, const char *have, const char *wanted)
{
	if (!have && !wanted)
		return;
	if (!have || !wanted || strcmp(have, wanted) != 0)
		fail_msg("%s: the %s is '%s', not '%s'", address, what, have ? have : "(none)",
			 wanted ? wanted : "(none)");
}

static void test_taken(void **state)
{
	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(taken); i++) {
		const char *address = taken[i].address;
		struct cm_error err = CM_ERROR_INIT;
		struct cm_giturl url;

		if (cm_giturl_parse(address, &url, &err) != CM_OK)
			fail_msg("%s: %s", address, err.msg);
		assert_int_equal(url.kind, taken[i].kind);
		assert_text(address, "host", url.host, taken[i].host);
		if (url.port != taken[i].port)
			fail_msg("%s: the port is %u", address, url.port);
		assert_text(address, "user", url.user, taken[i].user);
		assert_text(address, "password", url.password, taken[i].password);
		assert_text(address, "path", url.path, taken[i].path);
		assert_text(address, "text", url.text,
			    taken[i].text ? taken[i].text : taken[i].address);
		assert_null(strstr(url.text, SECRET));
		cm_giturl_clear(&url);
		assert_null(url.text);
	}
}

static const struct {
	const char *address;
	/* behind "the repository's address " */
	const char *reason;
} refused[] = {
	{ "", "is empty, or an option" },
	{ "--upload-pack=touch x", "is empty, or an option" },
	/* options of the programs that get a part */
	{ "ssh://-oProxyCommand=x/a", "has no usable host name" },
	{ "ssh://git@-oProxyCommand=x/a", "has no usable host name" },
	{ "-oProxyCommand=x:a", "is empty, or an option" },
	{ "git@-oProxyCommand=x:a", "has no usable host name" },
	{ "ssh://-l@example.org/a", "has a user name that begins with a dash" },
	{ "ssh://%2dl@example.org/a", "has a user name that begins with a dash" },
	{ "ssh://example.org/-a", "has a path that begins with a dash" },
	{ "ssh://example.org/%2da", "has a path that begins with a dash" },
	{ "example.org:-a", "has a path that begins with a dash" },
	{ "example.org:/-a", "has a path that begins with a dash" },
	/* what git would run or read otherwise */
	{ "ext::sh", "is of an unknown kind" },
	{ "ext::ssh://example.org/a", "is of an unknown kind" },
	{ "fd::17/a", "is of an unknown kind" },
	{ "ftp://example.org/a", "is of an unknown kind" },
	{ "ext://example.org/a", "is of an unknown kind" },
	{ "httpss://example.org/a", "is of an unknown kind" },
	{ "http:/example.org/a", "is of an unknown kind" },
	{ "HTTPS:alice:" SECRET "@example.org/a", "is of an unknown kind" },
	{ "file:a", "is of an unknown kind" },
	{ "file:/a", "is of an unknown kind" },
	{ "file://example.org/a", "names a host, where file:// has none" },
	{ "file://localhost.x/a", "names a host, where file:// has none" },
	{ "file://example.org", "names a host, where file:// has none" },
	{ "file://", "has no path" },
	{ "file://localhost", "has no path" },
	{ "file:///a%00b", "has a path that cannot be read" },
	{ "file:///a%0ab", "has a path that cannot be read" },
	{ "C:/a", "is a path of Windows" },
	{ "C:\\a", "has a blank, a backslash or a control character in it" },
	/* lines of protocols and of configuration files */
	{ "https://example.org/a\nb", "has a blank, a backslash or a control character in it" },
	{ "https://example.org/a b", "has a blank, a backslash or a control character in it" },
	{ "https://example.org/a\x7f", "has a blank, a backslash or a control character in it" },
	{ " https://example.org/a", "has a blank, a backslash or a control character in it" },
	{ "/a\nb", "has a control character in it" },
	{ "git://example.org/a%0ahost=b", "has a path that cannot be read" },
	{ "git://example.org/a%00host=b", "has a path that cannot be read" },
	{ "https://example.org/a%", "has a path that cannot be read" },
	{ "https://example.org/a%4", "has a path that cannot be read" },
	{ "https://example.org/%zz", "has a path that cannot be read" },
	{ "https://a%0ab:" SECRET "@example.org/a",
	  "has a user name or a password that cannot be read" },
	{ "https://a:" SECRET "%0a@example.org/a",
	  "has a user name or a password that cannot be read" },
	{ "https://a:" SECRET "%4@example.org/a",
	  "has a user name or a password that cannot be read" },
	/* one host to some readers, another one to others */
	{ "https://a@example.org@example.com/a", "has more than one '@' before its path" },
	{ "https://a:" SECRET "@x@example.org/a", "has more than one '@' before its path" },
	{ "a@b@example.org:a", "has more than one '@' before its path" },
	{ "https://example.org\\@example.com/a",
	  "has a blank, a backslash or a control character in it" },
	{ "https://example.org#@example.com/a", "has no path" },
	{ "https://example.org?@example.com/a", "has no path" },
	{ "https://example.org/a?token=" SECRET, "has a '?' or '#' in it" },
	{ "https://example.org/a#b", "has a '?' or '#' in it" },
	/* hosts */
	{ "https:///a", "has no usable host name" },
	{ "https://alice:" SECRET "@/a", "has no usable host name" },
	{ "https://:443/a", "has no usable host name" },
	{ "https://.example.org/a", "has no usable host name" },
	{ "https://ex%61mple.org/a", "has no usable host name" },
	{ "https://ex\xc3\xa4mple.org/a", "has no usable host name" },
	{ "https://ex!mple/a", "has no usable host name" },
	{ "https://[::1/a", "has no usable host name" },
	{ "https://[::1]x/a", "has no usable host name" },
	{ "https://[]/a", "has no usable host name" },
	{ "https://[::1%25eth0]/a", "has no usable host name" },
	{ "https://[127.0.0.1]/a", "has no usable host name" },
	{ "https://[::::]/a", "has no usable host name" },
	{ "https://::1/a", "has no usable host name" },
	{ ":a", "has no usable host name" },
	{ "@:a", "has no usable host name" },
	{ "[::1]", "has no usable host name" },
	{ "[::1]a:b", "has no usable host name" },
	{ "[git@example.org:22]:a", "has a port that is none" },
	{ "[git@example.org]:a", "has no usable host name" },
	/* ports */
	{ "https://example.org:0/a", "has a port that is none" },
	{ "https://example.org:65536/a", "has a port that is none" },
	{ "https://example.org:4294967739/a", "has a port that is none" },
	{ "https://example.org:-1/a", "has a port that is none" },
	{ "https://example.org:44a/a", "has a port that is none" },
	{ "https://example.org:1:2/a", "has a port that is none" },
	{ "https://[::1]:x/a", "has a port that is none" },
	/* paths */
	{ "https://example.org", "has no path" },
	{ "https://example.org/", "has no path" },
	{ "example.org:", "has no path" },
	{ "example.org:/", "has no path" },
	/* passwords where none can be */
	{ "alice:" SECRET "@example.org:a", "has a password, but no scheme" },
	{ "alice:" SECRET "@example.org/a", "has a password, but no scheme" },
	{ "alice:" SECRET "@[::1]:a", "has a password, but no scheme" },
	{ "git://alice:" SECRET "@example.org/a", "has a user name, where git:// has none" },
};

static void assert_refused(const char *address, const char *reason)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_giturl url = { .port = 4711 };
	CM_AUTO_FREE char *msg = cm_asprintf("the repository's address %s", reason);

	if (cm_giturl_parse(address, &url, &err) == CM_OK)
		fail_msg("%s was taken: %s", address, url.text);
	/* nothing is written on failure */
	assert_int_equal(url.port, 4711);
	if (strcmp(err.msg, msg) != 0)
		fail_msg("%s: %s", address, err.msg);
	assert_int_equal(err.code, CM_E_INVALID);
	assert_string_not_equal(err.hint, "");
	assert_null(strstr(err.msg, SECRET));
	assert_null(strstr(err.hint, SECRET));
}

static void test_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(refused); i++)
		assert_refused(refused[i].address, refused[i].reason);
}

/* Every byte at every place of a short address: none but those that are known gets through. */
static void test_every_byte_in_a_host(void **state)
{
	static const char known[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "-._";

	(void)state;
	for (int c = 1; c < 256; c++) {
		char address[] = "https://exa?mple/a";
		struct cm_giturl url = { 0 };
		bool is_taken;

		address[11] = (char)c;
		is_taken = cm_giturl_parse(address, &url, NULL) == CM_OK;
		/* the ends of a user name, a host and an address */
		if (strchr("@/:", c)) {
			cm_giturl_clear(&url);
			continue;
		}
		if (is_taken != (strchr(known, c) != NULL))
			fail_msg("byte %d was %s", c, is_taken ? "taken" : "refused");
		cm_giturl_clear(&url);
	}
}

static void test_bounds(void **state)
{
	char address[CM_GITURL_MAX + 2];
	struct cm_giturl url;

	(void)state;
	memset(address, 'a', sizeof(address));
	memcpy(address, "https://h/", strlen("https://h/"));
	address[CM_GITURL_MAX] = '\0';
	assert_int_equal(cm_giturl_parse(address, &url, NULL), CM_OK);
	assert_string_equal(url.text, address);
	cm_giturl_clear(&url);
	address[CM_GITURL_MAX] = 'a';
	address[CM_GITURL_MAX + 1] = '\0';
	assert_refused(address, "is too long");
	/* 254 bytes of a host */
	memset(address + 8, 'h', 254);
	memcpy(address + 8 + 254, "/a", sizeof("/a"));
	assert_refused(address, "has no usable host name");
	memmove(address + 8, address + 9, strlen(address + 9) + 1);
	assert_int_equal(cm_giturl_parse(address, &url, NULL), CM_OK);
	cm_giturl_clear(&url);
}

static void test_is_remote(void **state)
{
	static const struct {
		const char *text;
		bool is_remote;
	} rows[] = {
		{ "", false },	     { ".", false },	  { "a", false },
		{ "./a:b", false },  { "a/b:c", false },  { "a/b://c", false },
		{ "/a", false },     { "a:b", true },	  { "https://h/a", true },
		{ "git@h:a", true }, { "[::1]:a", true }, { ":", true },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		if (cm_giturl_is_remote(rows[i].text) != rows[i].is_remote)
			fail_msg("'%s'", rows[i].text);
	}
}

static void test_same_server(void **state)
{
	static const struct {
		const char *a;
		const char *b;
		bool is_same;
	} rows[] = {
		{ "https://h/a", "HTTPS://H:443/b", true },
		{ "https://u:p@h/a", "https://h/a", true },
		{ "ssh://h/a", "git@h:b", true },
		{ "https://[::1]/a", "https://[::1]:443/a", true },
		{ "https://h/a", "http://h/a", false },
		{ "https://h/a", "http://h:443/a", false },
		{ "https://h/a", "https://h:444/a", false },
		{ "https://h/a", "https://h.x/a", false },
		{ "https://h/a", "ssh://h/a", false },
		/* without a server nothing is one */
		{ "/a", "/a", false },
		{ "file:///a", "file:///a", false },
	};

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		struct cm_giturl a;
		struct cm_giturl b;

		assert_int_equal(cm_giturl_parse(rows[i].a, &a, NULL), CM_OK);
		assert_int_equal(cm_giturl_parse(rows[i].b, &b, NULL), CM_OK);
		if (cm_giturl_same_server(&a, &b) != rows[i].is_same ||
		    cm_giturl_same_server(&b, &a) != rows[i].is_same)
			fail_msg("%s, %s", rows[i].a, rows[i].b);
		cm_giturl_clear(&a);
		cm_giturl_clear(&b);
	}
}

static void test_names(void **state)
{
	static const struct {
		const char *address;
		const char *name;
	} rows[] = {
		{ "https://example.org/a/name.git", "name" },
		{ "https://example.org/name", "name" },
		{ "https://example.org/name.git/", "name" },
		{ "https://example.org/name/.git", "name" },
		{ "https://example.org/name/.git/.//", "name" },
		{ "git@example.org:name.git", "name" },
		{ "git@example.org:a/name", "name" },
		{ "/srv/Name_1.2-x", "Name_1.2-x" },
		{ "/srv/name.git", "name" },
		{ "/srv/name/.git", "name" },
		{ "/srv/name.git.git", "name.git" },
		{ "name", "name" },
		{ "/srv/a b$(c):\xc3\xa4", "a-b--c----" },
		{ "https://example.org/a%2f..%2fb", "a-2f..-2fb" },
		/* hidden, an option, the directory above */
		{ "/srv/.name", "name" },
		{ "/srv/-rf", "rf" },
		{ "/srv/.-.name", "name" },
		{ "https://example.org/a/..", "repository" },
		{ "https://example.org/a/...git", "repository" },
		{ "https://example.org/.git", "repository" },
		{ "/srv/$$", "repository" },
		{ "/", "repository" },
		{ ".", "repository" },
		{ "..", "repository" },
		{ ".git", "git" },
	};
	char address[400];
	struct cm_giturl url;
	char *name;

	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++) {
		if (cm_giturl_parse(rows[i].address, &url, NULL) != CM_OK)
			fail_msg("%s is refused", rows[i].address);
		name = cm_giturl_name(&url);
		assert_text(rows[i].address, "name", name, rows[i].name);
		free(name);
		cm_giturl_clear(&url);
	}
	memset(address, 'a', sizeof(address));
	address[0] = '/';
	address[sizeof(address) - 1] = '\0';
	assert_int_equal(cm_giturl_parse(address, &url, NULL), CM_OK);
	name = cm_giturl_name(&url);
	assert_int_equal(strlen(name), 128);
	free(name);
	cm_giturl_clear(&url);
}

static bool parse_once(void *data)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_giturl url = { .port = 4711 };
	int r = cm_giturl_parse(data, &url, &err);

	if (r == CM_OK) {
		cm_giturl_clear(&url);
		return true;
	}
	assert_int_equal(r, CM_E_NOMEM);
	assert_int_equal(err.code, CM_E_NOMEM);
	assert_int_equal(url.port, 4711);
	return false;
}

static void test_without_memory(void **state)
{
	(void)state;
	for (size_t i = 0; i < CM_ARRAY_SIZE(taken); i++) {
		CM_AUTO_FREE char *address = strdup(taken[i].address);

		assert_true(fail_each_allocation(parse_once, address) >= 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_taken),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_every_byte_in_a_host),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_is_remote),
		cmocka_unit_test(test_same_server),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
