/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The variables by which git's configuration makes git run something, and the words in them.
 *
 * What a word means is the shell's to say; here it is cut into pieces in each way that could make a
 * path of it. A piece too many costs its reader a look at a name that is not there. Variables and
 * substitutions ("$(git rev-parse --show-toplevel)/tools/x") are taken for the top of the work tree.
 */
#include "isolation/host/gitprograms.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/fd.h"
#include "runtime/base/text.h"

enum kind {
	/* a directory of programs */
	KIND_DIR = 1,
	/* a command that git runs by itself, as part of others */
	KIND_COMMAND,
	/* a command that the user asks for by its name, as any script of the tree: it may well name
	 * a directory only to work on it */
	KIND_ASKED,
};

/*
 * Not here: uploadpack.packObjectsHook, which git never takes from a repository's own configuration;
 * init.templateDir is, since git before 2.45.1 does take that.
 */
static const struct {
	const char *section;
	/* NULL: each */
	const char *key;
	enum kind kind;
	/* only a value that begins so is a command */
	const char *mark;
} programs[] = {
	{ "core", "hookspath", KIND_DIR, "" },
	{ "init", "templatedir", KIND_DIR, "" },
	{ "core", "fsmonitor", KIND_COMMAND, "" },
	{ "core", "sshcommand", KIND_COMMAND, "" },
	{ "core", "editor", KIND_COMMAND, "" },
	{ "core", "pager", KIND_COMMAND, "" },
	{ "core", "askpass", KIND_COMMAND, "" },
	{ "core", "gitproxy", KIND_COMMAND, "" },
	{ "core", "alternaterefscommand", KIND_COMMAND, "" },
	{ "gc", "recentobjectshook", KIND_COMMAND, "" },
	{ "sequence", "editor", KIND_COMMAND, "" },
	{ "pager", NULL, KIND_COMMAND, "" },
	{ "hook", "command", KIND_COMMAND, "" },
	{ "filter", "clean", KIND_COMMAND, "" },
	{ "filter", "smudge", KIND_COMMAND, "" },
	{ "filter", "process", KIND_COMMAND, "" },
	{ "diff", "external", KIND_COMMAND, "" },
	{ "diff", "command", KIND_COMMAND, "" },
	{ "diff", "textconv", KIND_COMMAND, "" },
	{ "merge", "driver", KIND_COMMAND, "" },
	{ "interactive", "difffilter", KIND_COMMAND, "" },
	{ "gpg", "program", KIND_COMMAND, "" },
	{ "gpg", "defaultkeycommand", KIND_COMMAND, "" },
	{ "credential", "helper", KIND_COMMAND, "" },
	{ "remote", "uploadpack", KIND_COMMAND, "" },
	{ "remote", "receivepack", KIND_COMMAND, "" },
	/* git-remote-ext, which the user must have allowed */
	{ "remote", "url", KIND_COMMAND, "ext::" },
	{ "remote", "pushurl", KIND_COMMAND, "ext::" },
	{ "submodule", "update", KIND_COMMAND, "!" },
	{ "tar", "command", KIND_COMMAND, "" },
	{ "trailer", "command", KIND_COMMAND, "" },
	{ "trailer", "cmd", KIND_COMMAND, "" },
	{ "sendemail", "smtpserver", KIND_COMMAND, "" },
	{ "sendemail", "sendmailcmd", KIND_COMMAND, "" },
	{ "sendemail", "tocmd", KIND_COMMAND, "" },
	{ "sendemail", "cccmd", KIND_COMMAND, "" },
	{ "sendemail", "headercmd", KIND_COMMAND, "" },
	{ "imap", "tunnel", KIND_COMMAND, "" },
	{ "instaweb", "httpd", KIND_COMMAND, "" },
	/* a web server's CGI program and modules */
	{ "instaweb", "gitwebdir", KIND_DIR, "" },
	{ "instaweb", "modulepath", KIND_DIR, "" },
	{ "svn", "authorsprog", KIND_COMMAND, "" },
	{ "lfs", "path", KIND_COMMAND, "" },
	{ "lfs", "clean", KIND_COMMAND, "" },
	{ "lfs", "smudge", KIND_COMMAND, "" },
	{ "alias", NULL, KIND_ASKED, "!" },
	{ "guitool", "cmd", KIND_ASKED, "" },
	{ "mergetool", "cmd", KIND_ASKED, "" },
	{ "mergetool", "path", KIND_ASKED, "" },
	{ "difftool", "cmd", KIND_ASKED, "" },
	{ "difftool", "path", KIND_ASKED, "" },
	{ "browser", "cmd", KIND_ASKED, "" },
	{ "browser", "path", KIND_ASKED, "" },
	{ "man", "cmd", KIND_ASKED, "" },
	{ "man", "path", KIND_ASKED, "" },
};

struct splitter {
	enum kind kind;
	cm_gitprograms_fn fn;
	void *data;
	/* blanks in quotes belong to the word */
	bool has_quotes;
	/* the next word is a program's name */
	bool is_command;
	/* what the word began with is unknown here: the rest is taken from the top */
	bool is_expanded;
	char word[sizeof(((struct cm_gitconfig_item *)NULL)->value)];
	size_t len;
};

static int give(struct splitter *s, const char *path, bool is_command)
{
	bool has_slash = strchr(path, '/') != NULL;
	unsigned int flags = s->kind == KIND_COMMAND ? CM_GITPATH_TOLD : 0;

	/* a program's name alone is looked for in PATH, a placeholder is a file of git's own */
	if (path[0] == '\0' || path[0] == '%' || (is_command && !has_slash))
		return 0;
	if (s->kind == KIND_COMMAND && has_slash) {
		flags |= CM_GITPATH_DIR;
		if (is_command || strncmp(path, "./", 2) == 0)
			flags |= CM_GITPATH_EXPECTED;
	}
	return s->fn(path, flags, s->data);
}

static bool is_assignment(const char *word, const char *equals)
{
	for (const char *p = word; p < equals; p++) {
		if (!(*p >= 'a' && *p <= 'z') && !(*p >= 'A' && *p <= 'Z') &&
		    !(*p >= '0' && *p <= '9') && *p != '_')
			return false;
	}
	return equals > word;
}

static int end_word(struct splitter *s)
{
	const char *word = s->word;
	bool is_command = s->is_command;
	const char *equals;
	int r = 0;

	s->word[s->len] = '\0';
	s->len = 0;
	if (s->is_expanded) {
		while (*word == '/')
			word++;
	}
	s->is_expanded = false;
	if (*word == '\0')
		return 0;
	/* --option=path, VARIABLE=path */
	equals = strchr(word, '=');
	if (equals)
		r = give(s, equals + 1, false);
	/* the command comes after it */
	if (r != 0 || (equals && is_assignment(word, equals)))
		return r;
	s->is_command = false;
	return *word == '-' ? 0 : give(s, word, is_command);
}

static const char *skip_variable(const char *p)
{
	if (*p == '{') {
		size_t n = strcspn(p, "}");

		return p[n] == '}' ? p + n + 1 : p + n;
	}
	while ((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
	       *p == '_')
		p++;
	return p;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

static bool begins_command(char c)
{
	return c != '\0' && strchr(";|&(`!", c) != NULL;
}

static int split(struct splitter *s, const char *p)
{
	char quote = '\0';
	int r = 0;

	s->is_command = true;
	while (*p && r == 0) {
		char c = *p++;

		if ((c == '"' || c == '\'') && (quote == '\0' || quote == c)) {
			if (quote == '\0')
				quote = c;
			else
				quote = '\0';
			/* the second time: sh -c 'tools/x --y' has a command in it */
			if (!s->has_quotes)
				r = end_word(s);
		} else if (c == '$' && *p != '(') {
			p = skip_variable(p);
			s->len = 0;
			s->is_expanded = true;
		} else if (c == '\\' && *p != '\0' && quote != '\'') {
			s->word[s->len++] = *p++;
		} else if (quote != '\0' && s->has_quotes) {
			s->word[s->len++] = c;
		} else if (is_blank(c) || strchr("<>)", c) || begins_command(c)) {
			if (c == '(' && s->len > 0 && s->word[s->len - 1] == '$')
				s->len--;
			r = end_word(s);
			s->is_command = s->is_command || begins_command(c);
			s->is_expanded = c == ')' || c == '`';
		} else {
			s->word[s->len++] = c;
		}
	}
	return r != 0 ? r : end_word(s);
}

static int read_command(const char *value, enum kind kind, cm_gitprograms_fn fn, void *data)
{
	struct splitter s = { .kind = kind, .fn = fn, .data = data, .has_quotes = true };
	int r;

	/* gpg.program and others are no shell's: a blank is part of the name */
	if (strchr(value, ' ') && strchr(value, '/')) {
		r = fn(value, 0, data);
		if (r != 0)
			return r;
	}
	r = split(&s, value);
	if (r != 0 || !strpbrk(value, "'\""))
		return r;
	s.has_quotes = false;
	return split(&s, value);
}

/* The index in programs; their number: not one. */
static size_t find(const struct cm_gitconfig_item *item)
{
	size_t i = 0;

	for (; i < CM_ARRAY_SIZE(programs); i++) {
		if (strcmp(programs[i].section, item->section) == 0 &&
		    (!programs[i].key || strcmp(programs[i].key, item->key) == 0))
			break;
	}
	return i;
}

bool cm_gitprograms_has(const struct cm_gitconfig_item *item)
{
	return find(item) < CM_ARRAY_SIZE(programs);
}

int cm_gitprograms_read(const struct cm_gitconfig_item *item, cm_gitprograms_fn fn, void *data)
{
	const char *value = item->value;
	size_t i = find(item);

	if (i == CM_ARRAY_SIZE(programs) || value[0] == '\0')
		return 0;
	if (!cm_text_has_prefix(value, programs[i].mark))
		return 0;
	if (programs[i].kind == KIND_DIR)
		return fn(value, CM_GITPATH_DIR | CM_GITPATH_EXPECTED | CM_GITPATH_TOLD, data);
	value += strlen(programs[i].mark);
	return read_command(value + (value[0] == '!'), programs[i].kind, fn, data);
}
