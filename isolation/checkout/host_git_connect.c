/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What git and git-lfs take for ssh. They may ask for one server, the repository's, and two things of
 * it: its objects, and where its LFS content is. Then the host's OpenSSH is started, with every setting
 * said here and none read, and its end waited for; git's pipes are its own.
 *
 * OpenSSH closes what descriptors it inherits and takes keys by names: they are this process's memory
 * files, which have names as long as it lives (/proc/PID/fd/N), and none in any directory. So is the
 * known_hosts. Its log is a pipe beside the one of its standard error, which is the server's to write
 * to: what the server says is looked through, and never passed on.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "isolation/checkout/host_git_ssh.h"
#include "isolation/checkout/ssh.h"
#include "isolation/checkout/ssh_answer.h"
#include "isolation/checkout/ssh_known.h"
#include "runtime/base/fd.h"
#include "runtime/base/num.h"
#include "runtime/base/text.h"

#define EXIT_FAILED 255
/* as guard.c has it: more of the server's words are too much */
#define WORDS_BYTES_MAX (16UL << 20)
/* of which so much is looked through */
#define WORDS_KEPT 4096
#define LINE_MAX_BYTES 2048
/* what git-lfs-authenticate answers is an address and a header */
#define ANSWER_MAX 65536
#define SSH_PORT 22
#define NUMBER_SIZE 64

/* The order has no meaning: the first of two that contradict counts, and there are none. */
static const char *const fixed[] = {
	/* neither the user's configuration nor the machine's */
	"-Fnone",
	"-oBatchMode=yes",
	"-oStrictHostKeyChecking=yes",
	"-oGlobalKnownHostsFile=none",
	"-oUpdateHostKeys=no",
	"-oCheckHostIP=no",
	"-oVerifyHostKeyDNS=no",
	"-oKnownHostsCommand=none",
	"-oNoHostAuthenticationForLocalhost=no",
	"-oPreferredAuthentications=publickey",
	"-oPasswordAuthentication=no",
	"-oKbdInteractiveAuthentication=no",
	"-oHostbasedAuthentication=no",
	"-oAddKeysToAgent=no",
	"-oPKCS11Provider=none",
	/* one connection, of its own, for one command */
	"-oProxyCommand=none",
	"-oProxyJump=none",
	"-oControlMaster=no",
	"-oControlPath=none",
	"-oPermitLocalCommand=no",
	"-oCanonicalizeHostname=no",
	"-oForwardAgent=no",
	"-oForwardX11=no",
	"-oClearAllForwardings=yes",
	"-oTunnel=no",
	"-oRequestTTY=no",
	"-oEscapeChar=none",
	"-oConnectionAttempts=1",
	"-oConnectTimeout=25",
	"-oFingerprintHash=sha256",
	"-oLogLevel=DEBUG1",
};

/* What git wants of ssh. */
struct wish {
	const char *destination;
	const char *command;
	unsigned int port;
	/* the variable GIT_PROTOCOL, by which git and its server agree on a version */
	bool sends_protocol;
	bool is_lfs;
};

struct connection {
	struct cm_giturl url;
	const char *host;
	const char *port;
	const char *home;
	const char *agent;
	struct wish wish;
	struct cm_credential credential;
	struct cm_ssh_known known;
	/* ssh's arguments, and the variables that it has */
	struct cm_strv argv;
	struct cm_strv env;
	struct cm_ssh_log log;
	/* what it reads by name, until this process ends */
	int known_fd;
	int log_write_fd;
	/* this process's ends */
	int log_fd;
	int err_fd;
	int answer_fd;
	struct cm_buf line;
	struct cm_buf words;
	size_t words_bytes;
	struct cm_buf answer;
};

/* --- what is asked for ------------------------------------------------------------------------------ */

static bool read_words(char *const *argv, struct wish *w)
{
	uint64_t port;

	w->port = SSH_PORT;
	for (; *argv && !w->destination; argv++) {
		if (strcmp(*argv, "-o") == 0 && argv[1] &&
		    strcmp(argv[1], "SendEnv=GIT_PROTOCOL") == 0) {
			w->sends_protocol = true;
			argv++;
		} else if (strcmp(*argv, "-p") == 0 && argv[1] &&
			   cm_parse_u64(argv[1], "port", 1, 65535, &port, NULL) == CM_OK) {
			w->port = (unsigned int)port;
			argv++;
		} else if (strcmp(*argv, "--") == 0 && argv[1]) {
			w->destination = *++argv;
		} else if (**argv == '-') {
			return false;
		} else {
			w->destination = *argv;
		}
	}
	if (!w->destination || !argv[0] || argv[1])
		return false;
	w->command = argv[0];
	return true;
}

/* One program of the server's with a path. Of git-lfs the way that gets on with one connection. */
static bool is_command_ok(struct wish *w)
{
	static const char end[] = " download";
	size_t len = strlen(w->command);

	w->is_lfs = cm_text_has_prefix(w->command, "git-lfs-authenticate ") && len > sizeof(end) &&
		    strcmp(w->command + len - sizeof(end) + 1, end) == 0;
	return w->is_lfs || cm_text_has_prefix(w->command, "git-upload-pack '");
}

/* As the address names it, and not what it stands for: that is the caller's to know. */
static bool is_own_server(const struct connection *c)
{
	const char *at = strrchr(c->wish.destination, '@');
	const char *host = at ? at + 1 : c->wish.destination;
	const char *user = cm_ssh_user(&c->url, &c->credential);
	size_t len = at ? (size_t)(at - c->wish.destination) : 0;

	return strcasecmp(host, c->url.host) == 0 && c->wish.port == c->url.port &&
	       (!at || (strlen(user) == len && strncmp(c->wish.destination, user, len) == 0));
}

static int read_keys(struct connection *c, struct cm_error *err)
{
	/* others have the descriptor, too, and its offset */
	int fd = open(CM_HOST_GIT_SECRET_PATH, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot open the keys");
	return cm_credential_read(fd, &c->credential, err);
}

static int check(struct connection *c, char *const *words, struct cm_error *err)
{
	if (!read_words(words, &c->wish) || !is_command_ok(&c->wish))
		return cm_error_set(err, CM_E_UNSUPPORTED, 0, "this is not asked of an ssh server");
	if (!is_own_server(c))
		return cm_error_set(err, CM_E_DENIED, 0,
				    "another ssh server than the repository's is not asked");
	return CM_OK;
}

/* --- ssh's arguments ---------------------------------------------------------------------------------- */

/* Of this process, and read by its name, as OpenSSH reads a key: by nobody else's right. */
static int add_file(struct connection *c, const char *option, const char *name, const char *text,
		    int *ret_fd, struct cm_error *err)
{
	int fd = cm_memfd_sealed(name, text, strlen(text));

	*ret_fd = fd;
	if (fd < 0 || fchmod(fd, 0600) < 0 ||
	    cm_strv_addf(&c->argv, "-o%s=/proc/%d/fd/%d", option, (int)getpid(), fd) < 0)
		return cm_error_set(err, CM_E_SYS, fd < 0 ? -fd : errno,
				    "cannot make a memory file");
	return CM_OK;
}

static int add_identities(struct connection *c, struct cm_error *err)
{
	bool has_agent = strcmp(c->agent, "-") != 0;
	int ignored;
	int r;

	if (has_agent) {
		/* which socket is then a variable's, where no letter of it has a meaning */
		r = cm_strv_addf(&c->env, "SSH_AUTH_SOCK=%s", c->agent);
		if (r == CM_OK)
			r = cm_strv_add(&c->argv, "-oIdentityAgent=SSH_AUTH_SOCK");
	} else {
		r = cm_strv_add(&c->argv, "-oIdentityAgent=none");
	}
	if (r == CM_OK)
		r = cm_strv_add(&c->argv,
				has_agent ? "-oIdentitiesOnly=no" : "-oIdentitiesOnly=yes");
	/* else those of the home would be looked for */
	if (r == CM_OK && (has_agent || c->credential.n_keys == 0))
		r = cm_strv_add(&c->argv, "-oIdentityFile=none");
	if (r < 0)
		return cm_error_set(err, r, 0, "out of memory");
	for (size_t i = 0; i < c->credential.n_keys && !has_agent && r == CM_OK; i++)
		r = add_file(c, "IdentityFile", "key", c->credential.keys[i].text, &ignored, err);
	c->log.has_keys = has_agent || c->credential.n_keys > 0;
	return r;
}

static int add_known(struct connection *c, struct cm_error *err)
{
	int r = CM_OK;

	if (strcmp(c->home, "-") != 0)
		r = cm_ssh_known_read(c->home, &c->known, err);
	if (r == CM_OK)
		r = add_file(c, "UserKnownHostsFile", "known_hosts",
			     c->known.lines.data ? c->known.lines.data : "", &c->known_fd, err);
	c->log.has_known_key = c->known.algorithms.len > 0;
	/* of another kind none is known, whatever the server would rather show */
	if (r == CM_OK && c->known.algorithms.len > 0 &&
	    cm_strv_addf(&c->argv, "-oHostKeyAlgorithms=%s", c->known.algorithms.data) < 0)
		r = cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	return r;
}

static int add_destination(struct connection *c)
{
	const char *const words[] = { "-p",	      c->port,
				      "-l",	      cm_ssh_user(&c->url, &c->credential),
				      "--",	      c->host,
				      c->wish.command };
	int r = CM_OK;

	if (c->wish.sends_protocol)
		r = cm_strv_add(&c->argv, "-oSendEnv=GIT_PROTOCOL");
	for (size_t i = 0; i < CM_ARRAY_SIZE(words) && r == CM_OK; i++)
		r = cm_strv_add(&c->argv, words[i]);
	return r;
}

static int add_environment(struct connection *c)
{
	int r = cm_strv_add(&c->env, "PATH=/usr/bin:/bin");

	if (r == CM_OK)
		r = cm_strv_add(&c->env, "HOME=/nonexistent");
	if (r == CM_OK)
		r = cm_strv_add(&c->env, "LC_ALL=C");
	/* as git's configuration has it */
	if (r == CM_OK && c->wish.sends_protocol)
		r = cm_strv_add(&c->env, "GIT_PROTOCOL=version=2");
	return r;
}

static int make_arguments(struct connection *c, struct cm_error *err)
{
	const char *program = cm_host_git_ssh_program();
	int r = program ? cm_strv_add(&c->argv, program) : CM_E_UNSUPPORTED;

	for (size_t i = 0; i < CM_ARRAY_SIZE(fixed) && r == CM_OK; i++)
		r = cm_strv_add(&c->argv, fixed[i]);
	if (r == CM_OK)
		r = cm_strv_addf(&c->argv, "-E/proc/%d/fd/%d", (int)getpid(), c->log_write_fd);
	if (r == CM_OK)
		r = add_environment(c);
	if (r < 0)
		return cm_error_set(err, r, 0, program ? "out of memory" : "there is no ssh");
	r = add_known(c, err);
	if (r == CM_OK)
		r = add_identities(c, err);
	if (r == CM_OK && add_destination(c) < 0)
		r = cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	return r;
}

/* --- ssh ------------------------------------------------------------------------------------------------ */

/* Does not return. What it has of this process's memory is gone with the next program. */
static void be_ssh(const struct connection *c, pid_t parent, int err_fd, int answer_fd)
{
	/* whoever ends this one ends it */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent ||
	    dup2(err_fd, STDERR_FILENO) < 0 ||
	    (answer_fd >= 0 && dup2(answer_fd, STDOUT_FILENO) < 0))
		_exit(EXIT_FAILED);
	(void)execve(c->argv.v[0], c->argv.v, c->env.v);
	_exit(EXIT_FAILED);
}

static int make_pipe(int *ret_read, int *ret_write, struct cm_error *err)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot make a pipe");
	*ret_read = ends[0];
	*ret_write = ends[1];
	return CM_OK;
}

/* git's pipes have their end when ssh has its: this process keeps none of them. */
static int let_go(struct cm_error *err)
{
	CM_AUTO_FD int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || dup2(null, STDIN_FILENO) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot open '/dev/null'");
	return CM_OK;
}

static int start(struct connection *c, pid_t *ret, struct cm_error *err)
{
	CM_AUTO_FD int err_write = -1;
	CM_AUTO_FD int answer_write = -1;
	pid_t parent = getpid();
	int r = make_pipe(&c->err_fd, &err_write, err);

	if (r == CM_OK && c->wish.is_lfs)
		r = make_pipe(&c->answer_fd, &answer_write, err);
	if (r < 0)
		return r;
	*ret = fork();
	if (*ret < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot start ssh");
	if (*ret == 0)
		be_ssh(c, parent, err_write, answer_write);
	r = let_go(err);
	if (r == CM_OK && !c->wish.is_lfs && dup2(STDIN_FILENO, STDOUT_FILENO) < 0)
		r = cm_error_set(err, CM_E_SYS, errno, "cannot let go of a pipe");
	return r;
}

static void take_log(struct connection *c)
{
	char chunk[4096];
	ssize_t n;

	while ((n = read(c->log_fd, chunk, sizeof(chunk))) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			if (chunk[i] != '\n' && chunk[i] != '\r' && chunk[i] != '\0' &&
			    c->line.len < LINE_MAX_BYTES)
				cm_buf_putc(&c->line, chunk[i]);
			if (chunk[i] != '\n' || c->line.len == 0)
				continue;
			cm_ssh_log_line(&c->log, c->line.data);
			cm_buf_reset(&c->line);
		}
	}
}

/* Its beginning: what comes later is a consequence. */
static void take_words(struct connection *c)
{
	char chunk[4096];
	ssize_t n = read(c->err_fd, chunk, sizeof(chunk));

	if (n < 0 && errno == EINTR)
		return;
	if (n <= 0) {
		cm_fd_close(&c->err_fd);
		return;
	}
	c->words_bytes += (size_t)n;
	for (ssize_t i = 0; i < n && c->words.len < WORDS_KEPT; i++) {
		if (chunk[i] != '\0')
			cm_buf_putc(&c->words, chunk[i]);
	}
}

static void take_answer(struct connection *c)
{
	char chunk[4096];
	ssize_t n = read(c->answer_fd, chunk, sizeof(chunk));

	if (n < 0 && errno == EINTR)
		return;
	if (n <= 0)
		cm_fd_close(&c->answer_fd);
	else
		cm_buf_append(&c->answer, chunk, (size_t)n);
	explicit_bzero(chunk, sizeof(chunk));
}

/* Until ssh has ended; its exit status. */
static int attend(struct connection *c, pid_t ssh)
{
	int status;

	while (c->err_fd >= 0 || c->answer_fd >= 0) {
		struct pollfd p[3] = { { .fd = c->err_fd, .events = POLLIN },
				       { .fd = c->answer_fd, .events = POLLIN },
				       { .fd = c->log_fd, .events = POLLIN } };

		if (poll(p, 3, -1) < 0 && errno != EINTR)
			break;
		if (p[0].revents != 0)
			take_words(c);
		if (p[1].revents != 0)
			take_answer(c);
		take_log(c);
		if (c->words_bytes > WORDS_BYTES_MAX || cm_buf_status(&c->answer) < 0) {
			c->log.is_too_much = true;
			(void)kill(ssh, SIGKILL);
			break;
		}
	}
	while (waitpid(ssh, &status, 0) < 0) {
		if (errno != EINTR)
			return EXIT_FAILED;
	}
	take_log(c);
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED;
}

/* What git-lfs gets: an address, and what to tell there, which is not told in clear. */
static int pass_answer(struct connection *c, int status)
{
	/* the host that the address stands for: what listens here is no business of one elsewhere */
	const struct cm_giturl asked = { .host = (char *)(uintptr_t)c->host };
	struct cm_buf passed;
	int r;

	if (!c->wish.is_lfs || status != 0)
		return status;
	cm_buf_init(&passed, 2 * ANSWER_MAX);
	/* at once: growing leaves copies behind */
	cm_buf_reserve(&passed, 2 * ANSWER_MAX);
	r = cm_ssh_answer_make(c->answer.data ? c->answer.data : "", c->answer.len,
			       cm_giturl_is_here(&asked), &passed);
	if (r == CM_E_DENIED)
		c->log.reason = CM_FETCH_AUTH_IN_CLEAR;
	if (r == CM_OK && passed.len > 0)
		r = cm_write_all(STDOUT_FILENO, passed.data, passed.len);
	if (passed.data)
		explicit_bzero(passed.data, passed.len);
	cm_buf_clear(&passed);
	return r < 0 ? EXIT_FAILED : 0;
}

static int run(struct connection *c, char *const *words, struct cm_error *err)
{
	pid_t ssh = -1;
	int status;
	int r = read_keys(c, err);

	if (r == CM_OK)
		r = check(c, words, err);
	if (r == CM_OK)
		r = make_pipe(&c->log_fd, &c->log_write_fd, err);
	if (r == CM_OK && fcntl(c->log_fd, F_SETFL, O_NONBLOCK) < 0)
		r = cm_error_set(err, CM_E_SYS, errno, "cannot make a pipe");
	/* else its files have no names; of who could read them by that all have the keys already */
	if (r == CM_OK && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		r = cm_error_set(err, CM_E_SYS, errno, "cannot make the process dumpable");
	if (r == CM_OK)
		r = make_arguments(c, err);
	if (r == CM_OK)
		r = start(c, &ssh, err);
	if (r < 0)
		return r;
	status = attend(c, ssh);
	cm_ssh_log_end(&c->log, status, c->words.data ? c->words.data : "");
	return pass_answer(c, status);
}

static void clear(struct connection *c)
{
	if (c->answer.data)
		explicit_bzero(c->answer.data, c->answer.len);
	cm_buf_clear(&c->answer);
	cm_buf_clear(&c->line);
	cm_buf_clear(&c->words);
	cm_ssh_known_clear(&c->known);
	cm_credential_clear(&c->credential);
	cm_strv_clear(&c->argv);
	cm_strv_clear(&c->env);
	cm_giturl_clear(&c->url);
}

int cm_host_git_connect(int argc, char **argv)
{
	struct cm_error err = CM_ERROR_INIT;
	struct connection c = {
		.known_fd = -1, .log_write_fd = -1, .log_fd = -1, .err_fd = -1, .answer_fd = -1
	};
	int r;

	if (argc < 8)
		return EXIT_FAILED;
	cm_buf_init(&c.line, LINE_MAX_BYTES + 1);
	cm_buf_init(&c.words, WORDS_KEPT + 1);
	cm_buf_init(&c.answer, ANSWER_MAX);
	/* at once: growing leaves copies behind */
	cm_buf_reserve(&c.answer, ANSWER_MAX);
	c.host = argv[3];
	c.port = argv[4];
	c.home = argv[5];
	c.agent = argv[6];
	r = cm_giturl_parse(argv[2], &c.url, &err);
	if (r == CM_OK)
		r = run(&c, argv + 7, &err);
	if (r < 0)
		(void)fprintf(stderr, "casemate: %s\n", err.msg);
	/* over whatever an earlier connection of the same git's left */
	if (pwrite(CM_HOST_GIT_SSH_FD, &c.log, sizeof(c.log), 0) < 0)
		r = EXIT_FAILED;
	clear(&c);
	return r < 0 ? EXIT_FAILED : r;
}
