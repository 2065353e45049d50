/* SPDX-License-Identifier: Apache-2.0 */
/* A command that execve did not find: what the host and the command's name say about why. */
#include "runtime/cli/not_found.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/fd.h"

#define EXIT_NOT_FOUND 127

/* What only a shell can do; a program of the name may be there all the same, and is found then. */
static const char *const builtins[] = {
	".",	 ":",	   "alias",  "bg",	"builtin", "cd",    "command", "declare", "dirs",
	"eval",	 "exec",   "exit",   "export",	"fc",	   "fg",    "hash",    "jobs",	  "popd",
	"pushd", "read",   "return", "set",	"shift",   "shopt", "source",  "times",	  "trap",
	"type",	 "ulimit", "umask",  "unalias", "unset",   "wait",
};

static bool is_shell_text(const char *name)
{
	size_t len = strcspn(name, "=");

	for (size_t i = 0; i < sizeof(builtins) / sizeof(builtins[0]); i++) {
		if (strcmp(name, builtins[i]) == 0)
			return true;
	}
	/* an assignment: a path has a slash before its '=' */
	if (name[len] == '=' && len > 0 && memchr(name, '/', len) == NULL)
		return true;
	return strpbrk(name, " \t\n;|&<>") != NULL;
}

/*
 * The first bytes of a file that is here, where the jail shows the same one: below the directory
 * that the command was to start in. Less than 0: there is none.
 */
static ssize_t read_start(const char *name, const char *cwd, char *buf, size_t size)
{
	char full[4096];
	size_t len = cwd ? strlen(cwd) : 0;
	CM_AUTO_FD int fd = -1;
	struct stat st;
	int n;

	if (!cwd || !strchr(name, '/'))
		return -1;
	if (name[0] == '/' && (strncmp(name, cwd, len) != 0 || name[len] != '/'))
		return -1;
	n = name[0] == '/' ? snprintf(full, sizeof(full), "%s", name)
			   : snprintf(full, sizeof(full), "%s/%s", cwd, name);
	if (n >= (int)sizeof(full))
		return -1;
	fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -1;
	return read(fd, buf, size);
}

static bool explain_interpreter(const char *name, const char *cwd, struct cm_error *err)
{
	char start[256];
	ssize_t n = read_start(name, cwd, start, sizeof(start) - 1);
	char *interpreter = start + 2;

	if (n < 4)
		return false;
	start[n] = '\0';
	if (memcmp(start, "\177ELF", 4) == 0) {
		(void)cm_error_set(err, CM_E_NOT_FOUND, 0,
				   "the loader of '%s' not found in the jail (exit %d)", name,
				   EXIT_NOT_FOUND);
		cm_error_hint(err, "'file %s' names it: the program is of another system", name);
		return true;
	}
	if (start[0] != '#' || start[1] != '!')
		return false;
	interpreter += strspn(interpreter, " \t");
	n = (ssize_t)strcspn(interpreter, " \t\n");
	interpreter[n] = '\0';
	(void)cm_error_set(err, CM_E_NOT_FOUND, 0,
			   "the interpreter of '%s', '%s', not found in the jail (exit %d)", name,
			   interpreter, EXIT_NOT_FOUND);
	if (n > 0 && interpreter[n - 1] == '\r')
		cm_error_hint(err, "its first line ends with a carriage return, as on Windows");
	else
		cm_error_hint(err,
			      "its first line names it; --volume DIR:ro shows more of the host");
	return true;
}

static void hint_host(const char *name, const char *path, struct cm_error *err)
{
	char full[4096];

	while (path && *path && !strchr(name, '/')) {
		int n = (int)strcspn(path, ":");

		if (snprintf(full, sizeof(full), "%.*s/%s", n, path, name) < (int)sizeof(full) &&
		    access(full, X_OK) == 0) {
			cm_error_hint(err,
				      "on this host it is '%s', which the jail does not show: "
				      "--volume %s:ro",
				      full, full);
			return;
		}
		path += n;
		path += *path == ':';
	}
}

void cm_cli_explain_not_found(const char *name, const char *path, const char *cwd,
			      struct cm_error *err)
{
	if (explain_interpreter(name, cwd, err))
		return;
	(void)cm_error_set(err, CM_E_NOT_FOUND, 0, "'%s' not found in the jail (exit %d)", name,
			   EXIT_NOT_FOUND);
	if (name[0] == '\0')
		cm_error_hint(err,
			      "the command's name is empty; is it a variable that is not set?");
	else if (is_shell_text(name))
		cm_error_hint(err,
			      "shell text goes after -c: -c 'TEXT' in place of -- and the command");
	else
		hint_host(name, path, err);
}
