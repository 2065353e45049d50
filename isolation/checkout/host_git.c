/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. git is a child in a process group of its own, with pipes for what it says, a
 * memory file for what it reads, and one more that is its configuration. This process looks on a few
 * times a second: what git says, or computes, is told to the guard as a sign of life; and when the
 * guard says that a bound was exceeded, the group is killed. What git and its children allocate and
 * write is bounded by the same rlimits, which they inherit.
 *
 * The process's own hardening holds for git, too (no_new_privs, no core); that it cannot be traced
 * does not, since executing makes it dumpable: in the jail there is nobody else.
 */
#include "isolation/checkout/host_git.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "isolation/checkout/guard.h"
#include "isolation/checkout/host_git_ssh.h"
#include "isolation/checkout/pulse.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"
#include "runtime/base/text.h"

#define TICK_MS 200
/* after its end, for children of its that have its pipes */
#define LINGER_MS 1000
/* of processor time in so long that is work: a twentieth, and more than waiting for a timer takes */
#define CPU_LIFE_MS 250
#define CPU_WINDOW_MS 5000
#define CONFIG_MAX 65536
#define SAID_MAX 4096
#define LINE_MAX_BYTES 65536

static const char *const git_places[] = { "/usr/bin/git", "/bin/git" };
static const char *const lfs_places[] = { "/usr/bin/git-lfs", "/bin/git-lfs",
					  "/usr/lib/git-core/git-lfs",
					  "/usr/libexec/git-core/git-lfs" };

const char *cm_host_git_program(const char *const *places, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (access(places[i], X_OK) == 0)
			return places[i];
	}
	return NULL;
}

bool cm_host_git_is_wanted(const struct cm_host_git_wants *wants)
{
	return wants->has_lfs || wants->filters_blobs || wants->sparse;
}

int cm_host_git_check(bool has_lfs, struct cm_error *err)
{
	bool has_git = cm_host_git_program(git_places, CM_ARRAY_SIZE(git_places)) != NULL;

	if (has_git && (!has_lfs || cm_host_git_program(lfs_places, CM_ARRAY_SIZE(lfs_places))))
		return CM_OK;
	cm_error_set(err, CM_E_UNSUPPORTED, 0,
		     "%s is not installed on this host, and does what libgit2 cannot",
		     has_git ? "git-lfs" : "git");
	cm_error_hint(err,
		      has_git ? "install it (the package git-lfs), or leave --lfs out"
			      : "install it, or leave --lfs, --sparse, --filter and --depth out");
	return CM_E_UNSUPPORTED;
}

/* Its first 16 KiB; a format is set when a repository is made, before all else. */
bool cm_host_git_has_sha256(const char *git_dir)
{
	static const char key[] = "objectformat";
	CM_AUTO_FREE char *path = cm_path_join(git_dir, "config");
	CM_AUTO_FD int fd = path ? open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
	const char *value;
	char text[16384];
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	n = read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	value = strcasestr(text, key);
	if (!value)
		return false;
	value += strlen(key);
	value += strspn(value, " \t=");
	return strncasecmp(value, "sha256", strlen("sha256")) == 0;
}

/* --- environment and configuration ---------------------------------------------------------------- */

static int fill_environment(struct cm_host_git *g, const struct cm_host_git_access *access)
{
	static const char *const fixed[] = {
		"PATH=/usr/bin:/bin",
		"HOME=/nonexistent",
		"LC_ALL=C",
		"TZ=UTC0",
		"GIT_CONFIG_NOSYSTEM=1",
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0",
		"GIT_ASKPASS=/bin/false",
		"SSH_ASKPASS=/bin/false",
		"GIT_NO_REPLACE_OBJECTS=1",
		"GIT_OPTIONAL_LOCKS=0",
		"GIT_LFS_FORCE_PROGRESS=1",
	};
	int r = cm_strv_add(&g->env, "GIT_CONFIG_GLOBAL=" CM_HOST_GIT_FILE_PATH);

	for (size_t i = 0; i < CM_ARRAY_SIZE(fixed) && r == CM_OK; i++)
		r = cm_strv_add(&g->env, fixed[i]);
	/* later versions ask nobody for what is missing; there is nobody to ask */
	if (r == CM_OK && !access->url)
		r = cm_strv_add(&g->env, "GIT_NO_LAZY_FETCH=1");
	return r;
}

int cm_host_git_memory(const char *name, const struct cm_buf *text, int *ret, struct cm_error *err)
{
	CM_AUTO_FD int fd = cm_memfd_sealed(name, text->data, text->len);

	if (fd < 0)
		return cm_error_set(err, CM_E_SYS, -fd, "cannot make a memory file");
	*ret = fcntl(fd, F_DUPFD_CLOEXEC, CM_HOST_GIT_SSH_FD + 1);
	return *ret < 0 ? cm_error_set(err, CM_E_SYS, errno, "cannot make a memory file") : CM_OK;
}

static int make_config(struct cm_host_git *g, const struct cm_host_git_access *access,
		       const char *self, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf text = { 0 };
	int r;

	cm_buf_init(&text, CONFIG_MAX);
	r = cm_host_git_config(access, self, &text, err);
	if (r < 0)
		return r;
	return cm_host_git_memory("git-config", &text, &g->config_fd, err);
}

static int keep_secret(struct cm_host_git *g, const struct cm_credential *c, struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf texts = { 0 };
	int r;

	cm_buf_init(&texts, CM_CREDENTIAL_MAX);
	/* at once: growing leaves copies behind */
	cm_buf_reserve(&texts, CM_CREDENTIAL_MAX);
	cm_buf_append(&texts, c->user, strlen(c->user) + 1);
	cm_buf_append(&texts, c->secret, strlen(c->secret) + 1);
	if (cm_buf_status(&texts) < 0)
		return cm_error_set(err, CM_E_LIMIT, 0, "the credential is too long");
	r = cm_host_git_memory("credential", &texts, &g->secret_fd, err);
	explicit_bzero(texts.data, texts.len);
	return r;
}

int cm_host_git_open(struct cm_host_git *g, const struct cm_host_git_access *access,
		     struct cm_report *rep, struct cm_error *err)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int r = cm_host_git_check(false, err);

	if (r < 0)
		return r;
	if (n < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot find this program");
	self[n] = '\0';
	g->rep = rep;
	g->program = cm_host_git_program(git_places, CM_ARRAY_SIZE(git_places));
	if (fill_environment(g, access) < 0)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	if (access->url && access->url->kind == CM_GITURL_SSH)
		r = cm_host_git_ssh_open(g, access, self, err);
	else if (access->url && access->credential && access->credential->secret)
		r = keep_secret(g, access->credential, err);
	return r == CM_OK ? make_config(g, access, self, err) : r;
}

void cm_host_git_close(struct cm_host_git *g)
{
	cm_strv_clear(&g->env);
	cm_fd_close(&g->config_fd);
	cm_fd_close(&g->secret_fd);
	cm_fd_close(&g->ssh_fd);
}

/* --- one run --------------------------------------------------------------------------------------- */

struct run {
	struct cm_host_git *g;
	struct cm_host_git_call *call;
	pid_t pid;
	int out_fd;
	int err_fd;
	struct cm_buf out;
	struct cm_buf line;
	/* the last line of its standard error: the same one again is no news */
	struct cm_buf before;
	uint64_t cpu_ms;
	int64_t cpu_since_ms;
	/* processor time since it last said something new */
	uint64_t busy_ms;
	bool has_ended;
	int64_t ended_ms;
	int wait_status;
};

/* What it inherits. The credential is for git and what git starts. */
static int give_files(const struct run *run, int in_fd, int out_fd, int err_fd,
		      posix_spawn_file_actions_t *actions)
{
	const struct cm_host_git *g = run->g;
	bool is_git = !run->call->program;
	const int files[][2] = {
		{ in_fd, STDIN_FILENO },
		{ out_fd, STDOUT_FILENO },
		{ err_fd, STDERR_FILENO },
		{ is_git ? g->config_fd : run->call->file_fd, CM_HOST_GIT_FILE_FD },
		{ is_git ? g->secret_fd : -1, CM_HOST_GIT_SECRET_FD },
		{ is_git ? g->ssh_fd : -1, CM_HOST_GIT_SSH_FD },
	};
	int r = 0;

	for (size_t i = 0; i < CM_ARRAY_SIZE(files) && r == 0; i++) {
		if (files[i][0] >= 0)
			r = posix_spawn_file_actions_adddup2(actions, files[i][0], files[i][1]);
	}
	return r;
}

/* In a session of its own there is no terminal to ask. 2 MiB of arguments are far above what is given. */
static int start(struct run *run, int in_fd, int out_fd, int err_fd)
{
	const char *program = run->call->program ? run->call->program : run->g->program;
	char *argv[48] = { (char *)(uintptr_t)program };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t defaults;
	size_t n = 1;
	int r;

	for (; run->call->argv[n - 1]; n++) {
		if (n + 1 >= CM_ARRAY_SIZE(argv))
			return E2BIG;
		argv[n] = (char *)(uintptr_t)run->call->argv[n - 1];
	}
	r = posix_spawn_file_actions_init(&actions);
	if (r != 0)
		return r;
	r = posix_spawnattr_init(&attr);
	if (r != 0) {
		(void)posix_spawn_file_actions_destroy(&actions);
		return r;
	}
	(void)sigemptyset(&defaults);
	(void)sigaddset(&defaults, SIGPIPE);
	(void)sigaddset(&defaults, SIGPROF);
	(void)posix_spawnattr_setsigdefault(&attr, &defaults);
	(void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF);
	r = give_files(run, in_fd, out_fd, err_fd, &actions);
	if (r == 0)
		r = posix_spawn(&run->pid, program, &actions, &attr, argv, run->g->env.v);
	(void)posix_spawnattr_destroy(&attr);
	(void)posix_spawn_file_actions_destroy(&actions);
	return r;
}

/* The last words are what tells why; where they are too long their beginning goes. */
static void keep_words(struct cm_buf *said, const char *line)
{
	if (line[0] == '\0')
		return;
	if (said->len + strlen(line) + 2 > SAID_MAX)
		cm_buf_reset(said);
	cm_buf_printf(said, "%s%.*s", said->len > 0 ? "\n" : "", SAID_MAX / 2, line);
}

static void show_life(struct run *run)
{
	cm_guard_progress();
	cm_pulse_beat();
	cm_report_alive(run->g->rep);
}

static void take_line(struct run *run)
{
	const char *line = run->line.data ? run->line.data : "";
	bool is_new = !run->before.data || strcmp(run->before.data, line) != 0;

	if (is_new) {
		run->busy_ms = 0;
		show_life(run);
	}
	if (!cm_host_git_progress(run->g->rep, line))
		keep_words(&run->call->said, line);
	cm_buf_reset(&run->before);
	cm_buf_puts(&run->before, line);
	cm_buf_reset(&run->line);
}

static void take_words(struct run *run, const char *chunk, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (chunk[i] == '\r' || chunk[i] == '\n' || run->line.len >= SAID_MAX / 2)
			take_line(run);
		if (chunk[i] != '\r' && chunk[i] != '\n' && chunk[i] != '\0')
			cm_buf_putc(&run->line, chunk[i]);
	}
}

static int take_parts(struct run *run, const char *chunk, size_t len, struct cm_error *err)
{
	struct cm_host_git_call *call = run->call;

	while (len > 0) {
		const char *end = memchr(chunk, call->end, len);
		size_t n = end ? (size_t)(end - chunk) : len;
		int r;

		cm_buf_append(&run->out, chunk, n);
		if (cm_buf_status(&run->out) < 0)
			return cm_error_set(err, CM_E_LIMIT, 0, "git says a line without end");
		if (!end)
			return CM_OK;
		r = call->on_part(call->data, run->out.data ? run->out.data : "", run->out.len);
		if (r < 0)
			return cm_error_set(err, r, 0, "cannot take what git says");
		cm_buf_reset(&run->out);
		chunk += n + 1;
		len -= n + 1;
	}
	return CM_OK;
}

static int take_output(struct run *run, int *fd, struct cm_error *err)
{
	char chunk[16384];
	ssize_t n = read(*fd, chunk, sizeof(chunk));

	if (n < 0 && errno == EINTR)
		return CM_OK;
	if (n <= 0) {
		cm_fd_close(fd);
		return CM_OK;
	}
	if (fd == &run->err_fd) {
		take_words(run, chunk, (size_t)n);
		return CM_OK;
	}
	show_life(run);
	return take_parts(run, chunk, (size_t)n, err);
}

/* Seldom: looking costs this process processor time, which the guard would take for work. */
static void look_for_work(struct run *run)
{
	int64_t now = cm_clock_mono_ms();
	uint64_t cpu;

	if (now - run->cpu_since_ms < CPU_WINDOW_MS)
		return;
	cpu = cm_host_git_cpu_ms(run->pid);
	/* less than before: one that ended took its own along */
	if (cpu >= run->cpu_ms + CPU_LIFE_MS) {
		run->busy_ms += cpu - run->cpu_ms;
		if (run->call->busy_ms_max == 0 || run->busy_ms <= run->call->busy_ms_max)
			show_life(run);
	}
	run->cpu_ms = cpu;
	run->cpu_since_ms = now;
}

static void look(struct run *run)
{
	look_for_work(run);
	if (!run->has_ended && waitpid(run->pid, &run->wait_status, WNOHANG) == run->pid) {
		run->has_ended = true;
		run->ended_ms = cm_clock_mono_ms();
	}
	if (cm_guard_exceeded() == CM_GUARD_NONE &&
	    (!run->has_ended || cm_clock_mono_ms() - run->ended_ms < LINGER_MS))
		return;
	(void)kill(-run->pid, SIGKILL);
	/* who left the group may have the pipes for ever */
	if (run->has_ended) {
		cm_fd_close(&run->out_fd);
		cm_fd_close(&run->err_fd);
	}
}

static int collect(struct run *run, struct cm_error *err)
{
	int64_t looked_ms = 0;
	int r = CM_OK;

	while (!run->has_ended || run->out_fd >= 0 || run->err_fd >= 0) {
		struct pollfd p[2] = { { .fd = run->out_fd, .events = POLLIN },
				       { .fd = run->err_fd, .events = POLLIN } };
		bool is_open = run->out_fd >= 0 || run->err_fd >= 0;
		/* its end follows at once where nothing is left to be read */
		int n = poll(p, 2, is_open ? TICK_MS : 5);

		if (n > 0 && p[0].revents != 0 && r == CM_OK)
			r = take_output(run, &run->out_fd, err);
		if (n > 0 && p[1].revents != 0)
			(void)take_output(run, &run->err_fd, err);
		if (r < 0) {
			(void)kill(-run->pid, SIGKILL);
			cm_fd_close(&run->out_fd);
		}
		if (n <= 0 || !is_open || cm_clock_mono_ms() - looked_ms >= TICK_MS) {
			looked_ms = cm_clock_mono_ms();
			look(run);
		}
	}
	if (run->line.len > 0)
		take_line(run);
	return r;
}

static int open_input(const struct cm_buf *in, int *ret, struct cm_error *err)
{
	int fd = in && in->len > 0 ? cm_memfd_sealed("git-input", in->data, in->len)
				   : open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || (in && in->len > 0 && lseek(fd, 0, SEEK_SET) < 0))
		return cm_error_set(err, CM_E_SYS, errno, "cannot make git's input");
	*ret = fd;
	return CM_OK;
}

static int run_with(struct run *run, int in_fd, struct cm_error *err)
{
	CM_AUTO_FD int out_write = -1;
	CM_AUTO_FD int err_write = -1;
	int out[2];
	int errs[2];
	int r;

	if (pipe2(out, O_CLOEXEC) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot make a pipe");
	run->out_fd = out[0];
	out_write = out[1];
	if (pipe2(errs, O_CLOEXEC) < 0)
		return cm_error_set(err, CM_E_SYS, errno, "cannot make a pipe");
	run->err_fd = errs[0];
	err_write = errs[1];
	/* git-lfs tells its progress there */
	r = start(run, in_fd, run->call->on_part ? out_write : err_write, err_write);
	if (r != 0)
		return cm_error_set(err, CM_E_SYS, r, "cannot start '%s'", run->g->program);
	cm_fd_close(&out_write);
	cm_fd_close(&err_write);
	return collect(run, err);
}

int cm_host_git_run(struct cm_host_git *g, struct cm_host_git_call *call, struct cm_error *err)
{
	struct run run = {
		.g = g, .call = call, .out_fd = -1, .err_fd = -1, .cpu_since_ms = cm_clock_mono_ms()
	};
	CM_AUTO_FD int in_fd = -1;
	int r = open_input(call->in, &in_fd, err);

	if (r < 0)
		return r;
	cm_buf_init(&run.out, LINE_MAX_BYTES);
	cm_buf_init(&run.line, SAID_MAX);
	cm_buf_init(&run.before, SAID_MAX);
	cm_buf_init(&call->said, 2 * SAID_MAX);
	cm_host_git_ssh_forget(g);
	r = run_with(&run, in_fd, err);
	cm_fd_close(&run.out_fd);
	cm_fd_close(&run.err_fd);
	cm_buf_clear(&run.out);
	cm_buf_clear(&run.line);
	cm_buf_clear(&run.before);
	call->status = WIFEXITED(run.wait_status) ? WEXITSTATUS(run.wait_status)
						  : 128 + WTERMSIG(run.wait_status);
	cm_host_git_ssh_read(g, &call->ssh);
	if (call->ssh.is_too_much)
		cm_guard_exceed(CM_GUARD_TALK);
	if (r == CM_OK && cm_guard_exceeded() != CM_GUARD_NONE)
		return cm_guard_error(g->rep, err);
	return r;
}

/* --- what callers have in common ------------------------------------------------------------------- */

int cm_host_git_failed(const struct cm_host_git_call *call, const char *what, struct cm_error *err)
{
	const char *said = call->said.data ? call->said.data : "";
	const char *last = strrchr(said, '\n');
	const char *words = last ? last + 1 : said;

	/* the first complaint is the reason, and what comes after it its consequence */
	for (const char *line = said; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (cm_text_has_prefix(line, "fatal: ") || cm_text_has_prefix(line, "error: ")) {
			words = line + strlen("fatal: ");
			break;
		}
	}
	cm_error_set(err, CM_E_CHECKOUT, 0, "cannot %s: git says '%.*s'", what,
		     (int)strcspn(words, "\n"), words);
	cm_error_hint(err, "check the repository with 'git fsck'");
	return CM_E_CHECKOUT;
}

int cm_host_git_must(struct cm_host_git *g, const char *const *argv, struct cm_error *err)
{
	struct cm_host_git_call call = { .argv = argv };
	int r = cm_host_git_run(g, &call, err);

	if (r == CM_OK && call.status != 0)
		r = cm_host_git_failed(&call, "use the host's git", err);
	cm_buf_clear(&call.said);
	return r;
}

struct line {
	char *text;
	size_t size;
	bool is_there;
};

static int keep_line(void *data, const char *part, size_t len)
{
	struct line *line = data;

	if (!line->is_there && len < line->size)
		memcpy(line->text, part, len + 1);
	line->is_there = true;
	return CM_OK;
}

int cm_host_git_line(struct cm_host_git *g, const char *const *argv, char *text, size_t size,
		     struct cm_error *err)
{
	struct line line = { text, size, false };
	struct cm_host_git_call call = {
		.argv = argv, .on_part = keep_line, .data = &line, .end = '\n'
	};
	int r;

	text[0] = '\0';
	r = cm_host_git_run(g, &call, err);
	if (r == CM_OK && call.status != 0)
		text[0] = '\0';
	cm_buf_clear(&call.said);
	return r;
}

int cm_host_git_note(struct cm_report *rep, const char *const *reasons, size_t n,
		     struct cm_error *err)
{
	CM_AUTO_BUF struct cm_buf text = { 0 };

	cm_buf_init(&text, 512);
	cm_buf_puts(&text, "the host's git does this, because libgit2 has ");
	for (size_t i = 0; i < n; i++)
		cm_buf_printf(&text, "%sno %s", i > 0 ? ", " : "", reasons[i]);
	if (cm_buf_status(&text) < 0)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	return cm_report_note(rep, err, "%s", text.data);
}

bool cm_host_git_is_in_cone(const char *sparse, const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t dir_len = slash ? (size_t)(slash - path) : 0;

	if (!sparse || dir_len == 0)
		return true;
	for (const char *dir = sparse; dir; dir = strchr(dir, '\n')) {
		size_t len;

		dir += *dir == '\n';
		len = strcspn(dir, "\n");
		/* below it, or in one that it is below of */
		if ((strncmp(path, dir, len) == 0 && path[len] == '/') ||
		    (dir_len < len && strncmp(dir, path, dir_len) == 0 && dir[dir_len] == '/'))
			return true;
	}
	return false;
}
