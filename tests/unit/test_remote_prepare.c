/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkout and setup in a session, by the git of this host: from an HTTP server of the test's own, which
 * has git http-backend behind it and wants a credential.
 */
#include "providers/remote/prepare.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "providers/remote/prepare_internal.h"
#include "tests/unit/fake_provider.h"
#include "tests/unit/test_base.h"

#include "runtime/spec/keys.h"

#define SECRET "s3cret-t0ken"
#define BACKEND "/usr/lib/git-core/git-http-backend"
#define NOBODY 65534

static struct fake_provider fake;
static char served[64];
static pid_t server;
static unsigned int port;
static struct cm_config config;
static struct cm_spec spec;
static struct cm_buf output;
static struct cm_buf notes;
static struct cm_buf phases;
/* a provider that writes to its record while a phase is at work */
static bool is_written_meanwhile;

/* --- the server ------------------------------------------------------------------------------ */

static void answer(int fd, const char *status)
{
	char text[256];
	int n = snprintf(
		text, sizeof(text),
		"HTTP/1.0 %s\r\nWWW-Authenticate: Basic\r\nLocation: http://127.0.0.1:1/x\r\n"
		"Content-Length: 0\r\n\r\n",
		status);

	(void)cm_write_all(fd, text, (size_t)n);
}

static const char *header(const char *head, const char *name)
{
	static char value[1024];
	const char *at = strcasestr(head, name);

	value[0] = '\0';
	if (at)
		(void)snprintf(value, sizeof(value), "%.*s",
			       (int)strcspn(at + strlen(name), "\r\n"), at + strlen(name));
	return value;
}

static void run_backend(int fd, const char *head, const char *body, size_t len)
{
	char path[512] = "";
	char query[512] = "";
	char method[8] = "";
	const char *mark = strchr(head, '?');
	const char *target = strchr(head, ' ') + 1;
	size_t end = strcspn(target, " ?");
	int pipe_fds[2];
	pid_t pid;

	(void)snprintf(method, sizeof(method), "%.*s", (int)strcspn(head, " "), head);
	(void)snprintf(path, sizeof(path), "%.*s", (int)end, target);
	if (mark && mark < strchr(target, ' '))
		(void)snprintf(query, sizeof(query), "%.*s", (int)strcspn(mark + 1, " "), mark + 1);
	(void)setenv("GIT_PROJECT_ROOT", served, 1);
	(void)setenv("GIT_HTTP_EXPORT_ALL", "1", 1);
	(void)setenv("GIT_CONFIG_COUNT", "1", 1);
	(void)setenv("GIT_CONFIG_KEY_0", "uploadpack.allowAnySHA1InWant", 1);
	(void)setenv("GIT_CONFIG_VALUE_0", "true", 1);
	(void)setenv("PATH_INFO", path, 1);
	(void)setenv("QUERY_STRING", query, 1);
	(void)setenv("REQUEST_METHOD", method, 1);
	(void)setenv("CONTENT_TYPE", header(head, "\nContent-Type: "), 1);
	(void)setenv("HTTP_CONTENT_ENCODING", header(head, "\nContent-Encoding: "), 1);
	(void)setenv("GIT_PROTOCOL", header(head, "\nGit-Protocol: "), 1);
	(void)cm_write_all(fd, "HTTP/1.0 200 OK\r\n", 17);
	if (pipe(pipe_fds) < 0)
		return;
	pid = fork();
	if (pid == 0) {
		(void)dup2(pipe_fds[0], 0);
		(void)dup2(fd, 1);
		close(pipe_fds[1]);
		(void)execl(BACKEND, BACKEND, (char *)NULL);
		_exit(127);
	}
	close(pipe_fds[0]);
	(void)cm_write_all(pipe_fds[1], body, len);
	close(pipe_fds[1]);
	(void)waitpid(pid, NULL, 0);
}

static void serve_one(int fd)
{
	/* x-access-token:s3cret-t0ken */
	static const char wanted[] = "Basic eC1hY2Nlc3MtdG9rZW46czNjcmV0LXQwa2Vu";
	static char text[1024 * 1024];
	size_t len = 0;
	const char *end = NULL;
	size_t body = 0;

	while (!end && len < sizeof(text) - 1) {
		ssize_t n = read(fd, text + len, sizeof(text) - 1 - len);

		if (n <= 0)
			return;
		len += (size_t)n;
		text[len] = '\0';
		end = strstr(text, "\r\n\r\n");
	}
	if (!end)
		return;
	body = (size_t)strtoul(header(text, "\nContent-Length: "), NULL, 10);
	while (len - (size_t)(end + 4 - text) < body && len < sizeof(text) - 1) {
		ssize_t n = read(fd, text + len, sizeof(text) - 1 - len);

		if (n <= 0)
			return;
		len += (size_t)n;
		text[len] = '\0';
	}
	if (strncmp(text, "GET /moved", 10) == 0)
		answer(fd, "302 Found");
	else if (strncmp(text, "GET /nothing", 12) == 0)
		answer(fd, "404 Not Found");
	else if (strncmp(text, "GET /private", 12) == 0 ||
		 strncmp(text, "POST /private", 13) == 0) {
		if (strcmp(header(text, "\nAuthorization: "), wanted) != 0)
			answer(fd, "401 Unauthorized");
		else
			run_backend(fd, text, end + 4, body);
	} else
		run_backend(fd, text, end + 4, body);
}

static void serve(int listening)
{
	for (;;) {
		int fd = accept(listening, NULL, NULL);

		if (fd < 0)
			continue;
		serve_one(fd);
		(void)shutdown(fd, SHUT_RDWR);
		close(fd);
	}
}

static void script(const char *text)
{
	const struct cm_shell shell = { .session = &fake.session, .script = text };
	const struct cm_call call = fake_call();
	struct cm_error err = CM_ERROR_INIT;
	struct cm_shell_end end;

	if (cm_shell_run(&shell, &call, &end, &err) < 0 || end.exit_code != 0)
		fail_msg("%s%s", err.msg, end.tail);
	cm_shell_end_clear(&end);
}

static const char make_upstream[] =
	"set -e; cd \"$HOME\"; export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@a GIT_COMMITTER_NAME=a "
	"GIT_COMMITTER_EMAIL=a@a\n"
	"git init -q -b main up; cd up; mkdir d e; echo 1 >d/f; echo 2 >e/f; git add .; "
	"git commit -qm one\n"
	"git tag v1; echo 3 >d/f; git commit -qam two; git checkout -q -b topic; echo 4 >d/f; "
	"git commit -qam three\n"
	"git update-ref refs/pull/7/head HEAD; git checkout -q main; git branch -q feature/x v1\n"
	"cd ..; git init -q --bare empty.git; git clone -q --mirror up repo.git\n";

static int start_server(void **state)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char command[512];

	(void)state;
	if (access(BACKEND, X_OK) != 0)
		return 0;
	(void)snprintf(served, sizeof(served), "/tmp/cm-test-served-XXXXXX");
	if (!mkdtemp(served) || bind(fd, (struct sockaddr *)&addr, len) < 0 || listen(fd, 16) < 0 ||
	    getsockname(fd, (struct sockaddr *)&addr, &len) < 0)
		return -1;
	port = ntohs(addr.sin_port);
	if (!fake_provider_open(&fake, "dash"))
		return -1;
	script(make_upstream);
	(void)snprintf(command, sizeof(command),
		       "mv \"$HOME/repo.git\" '%s/repo.git' && mv \"$HOME/empty.git\" '%s/' && "
		       "cp -a '%s/repo.git' '%s/private.git'",
		       served, served, served, served);
	script(command);
	fake_provider_close(&fake);
	server = fork();
	if (server == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(fd);
	}
	close(fd);
	return 0;
}

static int stop_server(void **state)
{
	(void)state;
	if (server > 0) {
		(void)kill(server, SIGKILL);
		(void)waitpid(server, NULL, 0);
		(void)cm_remove_tree_at(AT_FDCWD, served);
	}
	return 0;
}

/* --- a session ------------------------------------------------------------------------------- */

static void on_note(void *data, const char *text)
{
	(void)data;
	cm_buf_puts(&notes, text);
	cm_buf_putc(&notes, '\n');
}

static void read_record(struct cm_record *ret)
{
	struct cm_records records = CM_RECORDS_INIT;
	struct cm_error err = CM_ERROR_INIT;

	assert_int_equal(cm_records_open(&config, "fake", &records, &err), CM_OK);
	assert_int_equal(cm_record_read(&records, fake.session.id, ret, &err), CM_OK);
	cm_records_close(&records);
}

static void write_meanwhile(void)
{
	struct cm_records records = CM_RECORDS_INIT;
	struct cm_record record = { { NULL, 0 }, { NULL, 0 } };
	struct cm_error err = CM_ERROR_INIT;

	assert_int_equal(cm_records_open(&config, "fake", &records, &err), CM_OK);
	(void)cm_record_read(&records, fake.session.id, &record, &err);
	assert_int_equal(cm_record_set(&record, "state", "stopped", &err), CM_OK);
	assert_int_equal(cm_record_write(&records, fake.session.id, &record, &err), CM_OK);
	cm_record_clear(&record);
	cm_records_close(&records);
}

static void on_phase(void *data, const char *name, uint64_t us)
{
	(void)data;
	(void)us;
	if (is_written_meanwhile)
		write_meanwhile();
	cm_buf_puts(&phases, name);
	cm_buf_putc(&phases, '\n');
}

static void on_output(void *data, const void *bytes, size_t len)
{
	(void)data;
	cm_buf_append(&output, bytes, len);
}

static int open_shell(const char *shell)
{
	memset(&config, 0, sizeof(config));
	cm_spec_init(&spec);
	spec.network = CM_NETWORK_NONE;
	is_written_meanwhile = false;
	cm_buf_init(&output, 1024 * 1024);
	cm_buf_init(&notes, 65536);
	cm_buf_init(&phases, 65536);
	if (!fake_provider_open(&fake, shell)) {
		fake.top[0] = '\0';
		return 0;
	}
	fake.base.config = (struct cm_provider_config){ .config = &config,
							.note = on_note,
							.phase = on_phase };
	config.home = cm_strdup(fake.home);
	return 0;
}

static int open_dash(void **state)
{
	(void)state;
	return open_shell("dash");
}

static int open_busybox(void **state)
{
	(void)state;
	return open_shell("busybox");
}

static int close_session(void **state)
{
	(void)state;
	if (fake.top[0] != '\0')
		fake_provider_close(&fake);
	cm_spec_clear(&spec);
	cm_config_clear(&config);
	cm_buf_clear(&output);
	cm_buf_clear(&notes);
	cm_buf_clear(&phases);
	return 0;
}

static void need_server(void)
{
	if (fake.top[0] == '\0' || server <= 0)
		skip();
}

static void set_repo(const char *name)
{
	free(spec.repo);
	spec.workspace_kind = CM_WORKSPACE_REPO;
	spec.repo = cm_asprintf("http://127.0.0.1:%u/%s", port, name);
}

static void set(char **to, const char *text)
{
	free(*to);
	*to = cm_strdup(text);
}

static int prepare(char **ret_cwd, struct cm_error *err)
{
	const struct cm_prepare what = { .spec = &spec, .config = &config, .output = on_output };
	const struct cm_call call = fake_call();

	*err = (struct cm_error)CM_ERROR_INIT;
	return cm_prepare_session(&fake.session, &what, &call, ret_cwd, err);
}

/* Its checkout has a file with this text, and is on this branch. */
static void expect(const char *file, const char *want, const char *branch)
{
	struct cm_error err;
	CM_AUTO_FREE char *cwd = NULL;
	char path[256];
	char text[64] = "";

	if (prepare(&cwd, &err) < 0)
		fail_msg("%s (%s)", err.msg, err.hint);
	(void)snprintf(path, sizeof(path), "%s/repo", fake.work);
	assert_string_equal(cwd, path);
	(void)snprintf(path, sizeof(path), "%s/repo/%s", fake.work, file);
	assert_true(cm_read_file_at(AT_FDCWD, path, text, sizeof(text)) > 0);
	assert_string_equal(text, want);
	(void)snprintf(path, sizeof(path), "%s/repo/.git/HEAD", fake.work);
	assert_true(cm_read_file_at(AT_FDCWD, path, text, sizeof(text)) > 0);
	if (branch) {
		(void)snprintf(path, sizeof(path), "ref: refs/heads/%s\n", branch);
		assert_string_equal(text, path);
	} else {
		assert_int_equal(strlen(text), 41);
	}
}

static void expect_failure(int code, const char *words)
{
	struct cm_error err;
	char *cwd = NULL;

	assert_int_equal(prepare(&cwd, &err), code);
	assert_null(cwd);
	if (!strstr(err.msg, words))
		fail_msg("'%s' is not in '%s'", words, err.msg);
	assert_true(err.hint[0] != '\0');
	assert_null(strstr(err.msg, SECRET));
}

static void reset_work(void)
{
	script("rm -rf ./* ./.mastra-sandbox");
	cm_buf_reset(&notes);
	cm_buf_reset(&phases);
	cm_buf_reset(&output);
	fake.n_networks = 0;
}

static void test_checkout(void **state)
{
	(void)state;
	need_server();
	set_repo("repo.git");
	expect("d/f", "3\n", "main");
	assert_string_equal(phases.data, "checkout\n");
	/* with a network for that long alone */
	assert_int_equal(fake.n_networks, 2);
	assert_int_equal(fake.networks[0], CM_NETWORK_INTERNET);
	assert_int_equal(fake.networks[1], CM_NETWORK_NONE);
	/* what is there is left alone, and asked about without a network */
	fake.n_networks = 0;
	script("echo mine >repo/d/f");
	expect("d/f", "mine\n", "main");
	assert_int_equal(fake.n_networks, 0);
	script("! test -e .mastra-sandbox/clone");
}

static void test_refs(void **state)
{
	(void)state;
	need_server();
	set_repo("repo.git");
	set(&spec.ref, "topic");
	expect("d/f", "4\n", "topic");
	script("cd repo; test \"$(git rev-parse --abbrev-ref '@{u}')\" = origin/topic");
	reset_work();
	set(&spec.ref, "refs/heads/feature/x");
	spec.depth = 1;
	expect("d/f", "1\n", "feature/x");
	script("cd repo; test \"$(git rev-list --count HEAD)\" = 1");
	reset_work();
	set(&spec.ref, "v1");
	expect("d/f", "1\n", NULL);
	reset_work();
	/* a commit, of which a shallow clone has nothing */
	{
		char command[256];
		char path[128];
		char text[64] = "";

		(void)snprintf(command, sizeof(command),
			       "git -C '%s/repo.git' rev-parse v1 >\"$HOME/id\"", served);
		script(command);
		(void)snprintf(path, sizeof(path), "%s/id", fake.home);
		assert_int_equal(cm_read_file_at(AT_FDCWD, path, text, sizeof(text)), 41);
		text[40] = '\0';
		set(&spec.ref, text);
	}
	expect("d/f", "1\n", NULL);
	reset_work();
	spec.depth = 0;
	expect("d/f", "1\n", NULL);
	reset_work();
	set(&spec.ref, "no/such");
	cm_buf_reset(&output);
	expect_failure(CM_E_NOT_FOUND, "no such ref");
	/* which is said between us and our script alone */
	assert_true(!output.data || !strstr(output.data, "casemate-verdict"));
	script("! test -e repo");
	set(&spec.ref, "--upload-pack=touch");
	expect_failure(CM_E_INVALID, "no name of a ref");
}

static void test_branches(void **state)
{
	(void)state;
	need_server();
	set_repo("repo.git");
	spec.pr = 7;
	expect("d/f", "4\n", "pr-7");
	reset_work();
	spec.pr = 8;
	expect_failure(CM_E_NOT_FOUND, "no such ref");
	spec.pr = 0;
	/* one that is new, at the default, and elsewhere; one that the server has */
	set(&spec.branch, "mine");
	expect("d/f", "3\n", "mine");
	reset_work();
	set(&spec.base, "v1");
	spec.depth = 1;
	expect("d/f", "1\n", "mine");
	reset_work();
	spec.depth = 0;
	set(&spec.branch, "topic");
	expect("d/f", "4\n", "topic");
	/* another one later: in a checkout that a template has */
	set(&spec.base, "feature/x");
	set(&spec.branch, "later");
	expect("d/f", "1\n", "later");
	set(&spec.branch, "topic");
	expect("d/f", "4\n", "topic");
	script("echo mine >repo/d/f");
	set(&spec.branch, "later");
	expect("d/f", "mine\n", "topic");
	assert_non_null(strstr(notes.data, "stays on its branch"));
}

static void test_parts(void **state)
{
	(void)state;
	need_server();
	set_repo("repo.git");
	assert_int_equal(cm_strv_add(&spec.sparse, "d"), CM_OK);
	expect("d/f", "3\n", "main");
	script("! test -e repo/e");
	cm_strv_clear(&spec.sparse);
	reset_work();
	spec.filter = CM_FILTER_BLOB_NONE;
	expect("d/f", "3\n", "main");
	spec.filter = 0;
	reset_work();
	set_repo("empty.git");
	{
		struct cm_error err;
		char *cwd = NULL;

		assert_int_equal(prepare(&cwd, &err), CM_OK);
		assert_non_null(strstr(cwd, "/empty"));
		free(cwd);
	}
	script("test -d empty/.git");
}

static void test_credential(void **state)
{
	static const char encoded[] = "eC1hY2Nlc3MtdG9rZW46czNjcmV0LXQwa2Vu";

	(void)state;
	need_server();
	set_repo("private.git");
	expect_failure(CM_E_DENIED, "wants a credential");
	config.git_token = cm_strdup("wrong");
	expect_failure(CM_E_DENIED, "does not accept");
	free(config.git_token);
	config.git_token = cm_strdup(SECRET);
	{
		struct cm_error err;
		char *cwd = NULL;

		if (prepare(&cwd, &err) < 0)
			fail_msg("%s", err.msg);
		free(cwd);
	}
	/* it is nowhere but in the environment */
	assert_non_null(strstr(fake.seen_env.data, encoded));
	assert_null(strstr(fake.seen_args.data, encoded));
	assert_null(strstr(fake.seen_args.data, SECRET));
	script("! grep -rq -e s3cret -e eC1hY2 . \"$HOME\"");
	script("test \"$(git -C private config --local --get-regexp 'http|credential')\" = ''");
	/* over http to elsewhere it is not sent at all */
	set(&spec.repo, "http://example.com/x.git");
	expect_failure(CM_E_DENIED, "over http others could read");
	set_repo("moved.git");
	expect_failure(CM_E_REMOTE, "redirects");
}

static void test_place(void **state)
{
	(void)state;
	need_server();
	set_repo("repo.git");
	script("mkdir repo; touch repo/.hidden");
	expect_failure(CM_E_EXISTS, "not empty");
	script("rm repo/.hidden");
	expect("d/f", "3\n", "main");
	script("git -C repo config remote.origin.url https://example.com/other.git");
	expect_failure(CM_E_EXISTS, "another repository");
	{
		char command[256];

		(void)snprintf(command, sizeof(command),
			       "git -C repo config remote.origin.url "
			       "http://user:pass@127.0.0.1:%u/repo",
			       port);
		script(command);
	}
	expect("d/f", "3\n", "main");
	script("test \"$(git -C repo config remote.origin.url | grep -c pass)\" = 0");
	script("rm -rf repo; ln -s /nowhere repo");
	expect_failure(CM_E_EXISTS, "not empty");
}

static void test_refusals(void **state)
{
	const struct cm_prepare what = { .spec = &spec, .config = &config };
	struct cm_provider_ops ops = fake_provider_ops;
	struct cm_error err = CM_ERROR_INIT;

	(void)state;
	set(&spec.repo, "git@github.com:o/r.git");
	expect_failure(CM_E_UNSUPPORTED, "by ssh");
	assert_int_equal(cm_prepare_check(&fake.base, &what, &err), CM_E_UNSUPPORTED);
	set(&spec.repo, "ssh://git@github.com/o/r.git");
	expect_failure(CM_E_UNSUPPORTED, "by ssh");
	set(&spec.repo, "/some/where");
	expect_failure(CM_E_UNSUPPORTED, "of this host");
	set(&spec.repo, "https://github.com/o/r.git");
	assert_int_equal(cm_prepare_check(&fake.base, &what, &err), CM_OK);
	set(&spec.branch, "-x");
	assert_int_equal(cm_prepare_check(&fake.base, &what, &err), CM_E_INVALID);
	set(&spec.branch, NULL);
	/* no network, and none to be had */
	ops.session_network = NULL;
	fake.base.ops = &ops;
	assert_int_equal(cm_prepare_check(&fake.base, &what, &err), CM_E_UNSUPPORTED);
	spec.network = CM_NETWORK_INTERNET;
	assert_int_equal(cm_prepare_check(&fake.base, &what, &err), CM_OK);
	fake.base.ops = &fake_provider_ops;
	assert_int_equal(cm_strv_add(&spec.setup, "true"), CM_OK);
	assert_int_equal(cm_strv_add(&spec.setup_secrets, "NOT_SET"), CM_OK);
	assert_int_equal(cm_prepare_check(&fake.base, &what, &err), CM_E_NOT_FOUND);
	assert_int_equal(fake.n_started, 0);
}

/* git's cause comes before what it advises; without one its last line counts. */
static void test_cause(void **state)
{
#define LOOK "/w\0001\0nothing\0\0\0\0\0"
	static const struct {
		const char *said;
		const char *seen;
		const char *cause;
	} cases[] = {
		{ "Cloning into 'x'...\nfatal: Could not read from remote.\n\nPlease make sure\n"
		  "and the repository exists.\n",
		  NULL, "': fatal: Could not read from remote." },
		{ "error: one\nfatal: two\n", NULL, "': error: one" },
		{ "no\nfatal word\n\n", NULL, "': fatal word" },
		{ "a\n\ncasemate-\n\ncasemate-verdict other\nb\n", "a\n\ncasemate-\nb\n", "': b" },
	};

	(void)state;
	need_server();
	set_repo("repo.git");
	for (size_t i = 0; i < CM_ARRAY_SIZE(cases); i++) {
		const struct fake_answer answers[] = { { LOOK, sizeof(LOOK) - 1, NULL, 0 },
						       { NULL, 0, cases[i].said, 1 } };
		const char *seen = cases[i].seen ? cases[i].seen : cases[i].said;

		fake.answers = answers;
		fake.n_answers = CM_ARRAY_SIZE(answers);
		cm_buf_reset(&output);
		expect_failure(CM_E_CHECKOUT, cases[i].cause);
		assert_int_equal(fake.n_answers, 0);
		assert_int_equal(output.len, strlen(seen));
		assert_memory_equal(output.data, seen, output.len);
	}
#undef LOOK
}

static void test_no_git(void **state)
{
	char path[160];

	(void)state;
	need_server();
	set_repo("repo.git");
	(void)snprintf(path, sizeof(path), "%s/tools", fake.top);
	assert_int_equal(mkdir(path, 0700), 0);
	(void)snprintf(path, sizeof(path), "%s/tools/sh", fake.top);
	assert_int_equal(symlink("/bin/dash", path), 0);
	(void)snprintf(fake.path, sizeof(fake.path), "%s/tools", fake.top);
	expect_failure(CM_E_CHECKOUT, "no 'git'");
}

static void test_unreachable(void **state)
{
	(void)state;
	need_server();
	set(&spec.repo, "http://127.0.0.1:1/x.git");
	expect_failure(CM_E_REMOTE, "cannot connect");
	/* what it was given for that is taken back */
	assert_int_equal(fake.networks[fake.n_networks - 1], CM_NETWORK_NONE);
	set_repo("nothing.git");
	expect_failure(CM_E_NOT_FOUND, "no such repository");
}

static void test_setup(void **state)
{
	char path[160];
	char text[128] = "";
	struct cm_error err;
	char *cwd = NULL;
	unsigned int n;

	(void)state;
	if (fake.top[0] == '\0')
		skip();
	set(&spec.session_id, "s");
	assert_int_equal(cm_strv_add(&spec.setup, "echo \"$A-$B\" >>ran; echo out # a comment"),
			 CM_OK);
	assert_int_equal(cm_strv_add(&spec.setup, "  "), CM_OK);
	assert_int_equal(cm_strv_add(&spec.setup, "pwd >>ran; echo err >&2"), CM_OK);
	assert_int_equal(cm_strv_add(&spec.setup_env, "A=x y"), CM_OK);
	assert_int_equal(cm_strv_add(&spec.setup_secrets, "B"), CM_OK);
	assert_int_equal(cm_strv_add(&config.setup_secrets, "B=" SECRET), CM_OK);
	if (prepare(&cwd, &err) < 0)
		fail_msg("%s", err.msg);
	assert_null(cwd);
	assert_string_equal(phases.data, "setup 1/2\nsetup 2/2\n");
	assert_string_equal(output.data, "out\nerr\n");
	(void)snprintf(path, sizeof(path), "%s/ran", fake.work);
	assert_true(cm_read_file_at(AT_FDCWD, path, text, sizeof(text)) > 0);
	assert_memory_equal(text, "x y-" SECRET "\n", 17);
	assert_null(strstr(fake.seen_args.data, SECRET));
	(void)snprintf(path, sizeof(path), "%s/.mastra-sandbox/setup", fake.work);
	assert_int_equal(cm_read_file_at(AT_FDCWD, path, text, sizeof(text)), 71);
	assert_memory_equal(text, "sha256:", 7);
	/* once: this host knows, and asks nothing; without what it knows the marker says so */
	n = fake.n_started;
	fake.session.is_new = false;
	assert_int_equal(prepare(&cwd, &err), CM_OK);
	assert_int_equal(fake.n_started, n);
	cm_prepare_forget(&config, &fake.session);
	assert_int_equal(prepare(&cwd, &err), CM_OK);
	assert_int_equal(fake.n_started, n + 1);
	script("test \"$(wc -l <ran)\" = 2");
	/* a new sandbox by that name has nothing */
	script("rm -rf .mastra-sandbox");
	fake.session.is_new = true;
	assert_int_equal(prepare(&cwd, &err), CM_OK);
	script("test \"$(wc -l <ran)\" = 4");
	fake.session.is_new = false;
	spec.is_setup_again = true;
	assert_int_equal(prepare(&cwd, &err), CM_OK);
	script("test \"$(wc -l <ran)\" = 6");
	script("! grep -rq s3cret \"$HOME\" .mastra-sandbox");
}

static void test_setup_failure(void **state)
{
	struct cm_error err;
	char *cwd = NULL;

	(void)state;
	if (fake.top[0] == '\0')
		skip();
	assert_int_equal(cm_strv_add(&spec.setup, "echo x >>ran; echo why it failed >&2; exit 3"),
			 CM_OK);
	assert_int_equal(cm_strv_add(&spec.setup, "echo never >>ran"), CM_OK);
	assert_int_equal(prepare(&cwd, &err), CM_E_SETUP);
	assert_string_equal(err.msg, "setup command 1 of 2 failed (exit 3): why it failed");
	script("grep -q '^sha256:.* 3$' .mastra-sandbox/setup-failed");
	/* not again by itself */
	assert_int_equal(prepare(&cwd, &err), CM_OK);
	assert_non_null(strstr(notes.data, "not run again"));
	script("test \"$(wc -l <ran)\" = 1");
	spec.is_setup_again = true;
	assert_int_equal(prepare(&cwd, &err), CM_E_SETUP);
	script("test \"$(wc -l <ran)\" = 2");
	/* another text is another setup */
	spec.is_setup_again = false;
	free(spec.setup.v[0]);
	spec.setup.v[0] = cm_strdup("echo good >>ran");
	assert_int_equal(prepare(&cwd, &err), CM_OK);
	script("test \"$(wc -l <ran)\" = 4; ! test -e .mastra-sandbox/setup-failed");
}

static void test_setup_network(void **state)
{
	struct cm_error err;
	char *cwd = NULL;

	(void)state;
	if (fake.top[0] == '\0')
		skip();
	assert_int_equal(cm_strv_add(&spec.setup, "exit 1"), CM_OK);
	spec.setup_network = CM_NETWORK_INTERNET;
	assert_int_equal(prepare(&cwd, &err), CM_E_SETUP);
	assert_int_equal(fake.n_networks, 2);
	assert_int_equal(fake.networks[0], CM_NETWORK_INTERNET);
	assert_int_equal(fake.networks[1], CM_NETWORK_NONE);
}

static void test_names(void **state)
{
	struct cm_error err;
	char *cwd = NULL;
	char path[160];

	(void)state;
	need_server();
	/* a place that a shell would trip over */
	(void)snprintf(path, sizeof(path), "%s/it's $HOME\n", fake.top);
	assert_int_equal(mkdir(path, 0700), 0);
	(void)snprintf(fake.work, sizeof(fake.work), "%.79s", path);
	set_repo("repo.git");
	assert_int_equal(cm_strv_add(&spec.setup, "pwd >ran"), CM_OK);
	if (prepare(&cwd, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(strncmp(cwd, path, strlen(path)), 0);
	free(cwd);
	script("test -s repo/ran");
}

static void test_teardown(void **state)
{
	const struct cm_prepare what = { .spec = &spec, .config = &config };
	const struct cm_call call = fake_call();

	(void)state;
	if (fake.top[0] == '\0')
		skip();
	assert_int_equal(cm_strv_add(&spec.teardown, "echo 1 >>ended; exit 4"), CM_OK);
	assert_int_equal(cm_strv_add(&spec.teardown, "echo 2 >>ended"), CM_OK);
	cm_prepare_teardown(&fake.session, &what, &call);
	script("test \"$(wc -l <ended)\" = 2");
	assert_non_null(strstr(notes.data, "exit 4"));
}

static void test_lies(void **state)
{
#define LIE(text)                                                                                  \
	{                                                                                          \
		text, sizeof(text) - 1, NULL, 0                                                    \
	}
	static const struct fake_answer answers[] = {
		LIE(""),
		LIE("/w\0001\0nothing\0\0\0\0"),
		LIE("/w\0001\0nothing\0\0\0\0\0\0"),
		LIE("w\0001\0nothing\0\0\0\0\0"),
		LIE("/w\0001\0somewhere\0\0\0\0\0"),
	};
#undef LIE
	struct cm_error err;
	char *cwd = NULL;

	(void)state;
	set(&spec.repo, "https://example.com/x.git");
	for (size_t i = 0; i < CM_ARRAY_SIZE(answers); i++) {
		fake.answers = &answers[i];
		fake.n_answers = 1;
		assert_int_equal(prepare(&cwd, &err), CM_E_PROTOCOL);
	}
}

static void test_same_repository(void **state)
{
	static const struct {
		const char *other;
		bool is_same;
	} rows[] = {
		{ "https://github.com/o/r", true },
		{ "https://github.com/o/r.git", true },
		{ "https://user:token@GitHub.com:443/o/r.git/", true },
		{ "https://github.com/o/r2", false },
		{ "https://github.com/o/R", false },
		{ "https://gitlab.com/o/r", false },
		{ "http://github.com/o/r", false },
		{ "https://github.com:444/o/r", false },
		{ "git@github.com:o/r.git", false },
		{ "/o/r", false },
		{ "", false },
	};
	struct cm_giturl url = { .kind = 0 };

	(void)state;
	assert_int_equal(cm_giturl_parse("https://github.com/o/r.git", &url, NULL), CM_OK);
	for (size_t i = 0; i < CM_ARRAY_SIZE(rows); i++)
		assert_int_equal(cm_prep_same_repository(&url, rows[i].other), rows[i].is_same);
	cm_giturl_clear(&url);
}

/* What a checkout was made with is what it is. */
static void ask(enum cm_key key)
{
	spec.asked = UINT64_C(1) << key;
}

static void test_contradictions(void **state)
{
	unsigned int n;

	(void)state;
	need_server();
	set_repo("repo.git");
	set(&spec.session_id, "s");
	set(&spec.ref, "topic");
	fake.session.is_new = true;
	expect("d/f", "4\n", "topic");
	fake.session.is_new = false;
	n = fake.n_started;
	ask(CM_KEY_REF);
	expect("d/f", "4\n", "topic");
	set(&spec.ref, "v1");
	expect_failure(CM_E_EXISTS, "made with another --ref: 'topic'");
	/* a configuration file's */
	spec.asked = 0;
	expect("d/f", "4\n", "topic");
	ask(CM_KEY_PR);
	spec.pr = 7;
	expect_failure(CM_E_EXISTS, "made without --pr");
	ask(CM_KEY_SPARSE);
	assert_int_equal(cm_strv_add(&spec.sparse, "d"), CM_OK);
	expect_failure(CM_E_EXISTS, "made without --sparse");
	ask(CM_KEY_LFS);
	spec.has_lfs = true;
	expect_failure(CM_E_EXISTS, "made with another --lfs: 'no'");
	ask(CM_KEY_FROM);
	set(&spec.base, "v1");
	expect_failure(CM_E_EXISTS, "made without --from");
	set_repo("empty.git");
	spec.asked = 0;
	expect("d/f", "4\n", "topic");
	ask(CM_KEY_REPO);
	expect_failure(CM_E_EXISTS, "made with another --repo: 'http://");
	/* none of which the sandbox was asked about */
	set_repo("repo.git");
	assert_int_equal(fake.n_started, n);
	/* where a branch begins that it is to go to */
	ask(CM_KEY_FROM);
	set(&spec.branch, "mine");
	expect("d/f", "1\n", "mine");
}

static void test_sparse_again(void **state)
{
	(void)state;
	need_server();
	set_repo("repo.git");
	set(&spec.session_id, "s");
	assert_int_equal(cm_strv_add(&spec.sparse, "e"), CM_OK);
	assert_int_equal(cm_strv_add(&spec.sparse, "d"), CM_OK);
	expect("d/f", "3\n", "main");
	ask(CM_KEY_SPARSE);
	cm_strv_clear(&spec.sparse);
	assert_int_equal(cm_strv_add(&spec.sparse, "d"), CM_OK);
	assert_int_equal(cm_strv_add(&spec.sparse, "e"), CM_OK);
	expect("d/f", "3\n", "main");
	assert_int_equal(cm_strv_add(&spec.sparse, "f"), CM_OK);
	expect_failure(CM_E_EXISTS, "made with another --sparse: 'd,e'");
}

/* One that a template has is as it is. */
static void test_found(void **state)
{
	(void)state;
	need_server();
	set_repo("repo.git");
	expect("d/f", "3\n", "main");
	set(&spec.session_id, "s");
	set(&spec.ref, "topic");
	ask(CM_KEY_REF);
	expect("d/f", "3\n", "main");
	assert_non_null(strstr(notes.data, "--ref is not followed"));
}

static void test_record(void **state)
{
	struct cm_record record = { { NULL, 0 }, { NULL, 0 } };
	const struct cm_prepare what = { .spec = &spec, .config = &config };
	const struct cm_call call = fake_call();
	struct cm_error err;
	char *cwd = NULL;
	unsigned int n;

	(void)state;
	if (fake.top[0] == '\0')
		skip();
	/* a run that is kept is found by its own name */
	spec.is_kept = true;
	is_written_meanwhile = true;
	fake.session.is_new = true;
	assert_int_equal(cm_strv_add(&config.env, "FAKE_KEY=a"), CM_OK);
	assert_int_equal(cm_strv_add(&spec.setup, "true"), CM_OK);
	assert_int_equal(cm_strv_add(&spec.teardown, "echo 1 >>ended"), CM_OK);
	assert_int_equal(prepare(&cwd, &err), CM_OK);
	read_record(&record);
	assert_string_equal(cm_record_get(&record, "state"), "stopped");
	assert_non_null(cm_record_get(&record, CM_RECORD_TEARDOWN));
	assert_string_equal(cm_record_get(&record, CM_RECORD_SETUP_STATE), "done");
	cm_record_clear(&record);
	n = fake.n_started;
	spec.is_kept = false;
	set(&spec.session_id, "s");
	fake.session.is_new = false;
	assert_int_equal(prepare(&cwd, &err), CM_OK);
	assert_int_equal(fake.n_started, n);
	/* another account has another session by that name */
	assert_int_equal(cm_strv_env_set(&config.env, "FAKE_KEY", "b"), CM_OK);
	assert_int_equal(prepare(&cwd, &err), CM_OK);
	assert_int_equal(fake.n_started, n + 1);
	/* so has another sandbox, though there is nothing to do */
	cm_strv_clear(&spec.setup);
	cm_strv_clear(&spec.teardown);
	fake.session.is_new = true;
	assert_int_equal(prepare(&cwd, &err), CM_OK);
	read_record(&record);
	assert_string_equal(cm_record_get(&record, "state"), "stopped");
	assert_null(cm_record_get(&record, CM_RECORD_SETUP_STATE));
	cm_record_clear(&record);
	fake.session.is_new = false;
	cm_prepare_teardown(&fake.session, &what, &call);
	script("! test -e ended");
}

#define DASH(test) cmocka_unit_test_setup_teardown(test, open_dash, close_session)
#define BOTH(test) DASH(test), cmocka_unit_test_setup_teardown(test, open_busybox, close_session)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(test_checkout),
		BOTH(test_refs),
		BOTH(test_branches),
		BOTH(test_parts),
		BOTH(test_contradictions),
		DASH(test_sparse_again),
		DASH(test_found),
		DASH(test_record),
		BOTH(test_credential),
		BOTH(test_place),
		DASH(test_refusals),
		DASH(test_no_git),
		DASH(test_cause),
		DASH(test_unreachable),
		BOTH(test_setup),
		BOTH(test_setup_failure),
		DASH(test_setup_network),
		BOTH(test_names),
		DASH(test_teardown),
		DASH(test_lies),
		cmocka_unit_test(test_same_repository),
	};

	/* records go to a home that is the test's own */
	if (geteuid() == 0 &&
	    (setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0))
		return 1;
	return cmocka_run_group_tests_name("remote_prepare", tests, start_server, stop_server);
}
