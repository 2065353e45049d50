/* SPDX-License-Identifier: Apache-2.0 */
/*
 * git's configuration as a text. What a repository brings along cannot undo it: its configuration is
 * written by this program, and of .lfsconfig git-lfs takes only what its own configuration leaves
 * open, which is why the LFS server is named here.
 */
#include <string.h>

#include "isolation/checkout/host_git.h"
#include "isolation/checkout/ssh.h"

static const char fixed[] =
	"[core]\n"
	"\thooksPath = /dev/null\n"
	"\tattributesFile = /dev/null\n"
	"\texcludesFile = /dev/null\n"
	"\tfsmonitor = false\n"
	"\tpager = cat\n"
	"\tautocrlf = false\n"
	/* names that another file system takes for .git, as library and target have it */
	"\tprotectNTFS = true\n"
	"\tprotectHFS = true\n"
	/* the repository belongs to another id of the jail's, and nothing of its configuration runs */
	"[safe]\n"
	"\tdirectory = *\n"
	"[gc]\n"
	"\tauto = 0\n"
	"[maintenance]\n"
	"\tauto = false\n"
	"[submodule]\n"
	"\trecurse = false\n"
	"[advice]\n"
	"\tdetachedHead = false\n"
	"[user]\n"
	"\tname = casemate\n"
	"\temail = casemate@localhost\n"
	"[protocol]\n"
	"\tallow = never\n"
	"\tversion = 2\n"
	"[credential]\n"
	"\thelper =\n"
	"[http]\n"
	"\tsslVerify = true\n"
	/* to elsewhere nothing is taken, and git cannot tell elsewhere from here */
	"\tfollowRedirects = false\n"
	"\tproxy =\n"
	/* as guard.c has it, which does not see a child's connections */
	"\tlowSpeedLimit = 1000\n"
	"\tlowSpeedTime = 25\n"
	"[lfs]\n"
	/* seconds without a byte */
	"\tactivitytimeout = 25\n"
	"\tdialtimeout = 25\n"
	"\ttlstimeout = 25\n"
	"\tlocksverify = false\n"
	/* all that is checked out, whatever .lfsconfig would leave out, and no failure is passed over */
	"\tfetchinclude =\n"
	"\tfetchexclude =\n"
	"\tskipdownloaderrors = false\n"
	"\tstandalonetransferagent =\n"
	/* what the server would have git-lfs start beside itself is not asked for */
	"\tbasictransfersonly = true\n"
	/* by ssh an address is asked for and no content, over one connection for each question */
	"\tsshtransfer = never\n"
	"[lfs \"ssh\"]\n"
	"\tautomultiplex = false\n"
	"\tretries = 0\n"
	"[lfs \"transfer\"]\n"
	"\tmaxretries = 1\n";

static const char lfs_filter[] = "[filter \"lfs\"]\n"
				 "\tclean = git-lfs clean -- %f\n"
				 "\tsmudge = git-lfs smudge -- %f\n"
				 "\tprocess = git-lfs filter-process\n"
				 "\trequired = true\n";

static void put_quoted(struct cm_buf *out, const char *text)
{
	cm_buf_putc(out, '"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			cm_buf_putc(out, '\\');
		cm_buf_putc(out, *text);
	}
	cm_buf_putc(out, '"');
}

/* For the shell that git gives it to. */
static void put_helper(struct cm_buf *out, const char *self, const char *url)
{
	CM_AUTO_BUF struct cm_buf command = { 0 };
	const char *const words[] = { self, url };

	cm_buf_init(&command, 4 * CM_GITURL_MAX + 8192);
	for (size_t i = 0; i < 2; i++) {
		cm_buf_puts(&command, i == 0 ? "!'" : " --answer-git '");
		for (const char *p = words[i]; *p; p++) {
			if (*p == '\'')
				cm_buf_puts(&command, "'\\'");
			cm_buf_putc(&command, *p);
		}
		cm_buf_putc(&command, '\'');
	}
	cm_buf_puts(out, "[credential]\n\thelper = ");
	put_quoted(out, cm_buf_status(&command) == CM_OK ? command.data : "");
	cm_buf_putc(out, '\n');
}

static const char *scheme_of(const struct cm_giturl *url)
{
	switch (url->kind) {
	case CM_GITURL_HTTPS:
		return "https";
	case CM_GITURL_HTTP:
		return "http";
	case CM_GITURL_GIT:
		return "git";
	case CM_GITURL_SSH:
		return "ssh";
	case CM_GITURL_PATH:
	case CM_GITURL_FILE:
		break;
	}
	return "file";
}

static void put_lfs_url(struct cm_buf *out, const struct cm_host_git_access *access)
{
	CM_AUTO_BUF struct cm_buf url = { 0 };

	cm_buf_init(&url, 2 * CM_GITURL_MAX);
	(void)cm_host_git_lfs_url(access, &url, NULL);
	cm_buf_puts(out, "[lfs]\n\turl = ");
	put_quoted(out, cm_buf_status(&url) == CM_OK && url.data ? url.data : "");
	cm_buf_putc(out, '\n');
}

static void put_access(struct cm_buf *out, const struct cm_host_git_access *access,
		       const char *self)
{
	const struct cm_giturl *url = access->url;
	bool is_http = url->kind == CM_GITURL_HTTPS || url->kind == CM_GITURL_HTTP;

	cm_buf_printf(out, "[protocol \"%s\"]\n\tallow = always\n", scheme_of(url));
	if (url->text) {
		cm_buf_puts(out, "[remote \"origin\"]\n\turl = ");
		put_quoted(out, url->text);
		cm_buf_putc(out, '\n');
	}
	if (access->ca_file) {
		cm_buf_puts(out, "[http]\n\tsslCAInfo = ");
		put_quoted(out, access->ca_file);
		cm_buf_putc(out, '\n');
	}
	if (url->text && is_http && access->credential && access->credential->secret)
		put_helper(out, self, url->text);
	if (url->text && (is_http || url->kind == CM_GITURL_SSH))
		put_lfs_url(out, access);
}

/* Without a user name git-lfs would take "HOST:PATH" for a scheme. */
static void put_ssh_url(struct cm_buf *out, const struct cm_host_git_access *access, size_t len)
{
	const struct cm_giturl *url = access->url;

	if (!url->user && !strstr(url->text, "://"))
		cm_buf_printf(out, "%s@", cm_ssh_user(url, access->credential));
	cm_buf_append(out, url->text, len);
}

int cm_host_git_lfs_url(const struct cm_host_git_access *access, struct cm_buf *out,
			struct cm_error *err)
{
	const struct cm_giturl *url = access->url;
	size_t len = strlen(url->text);
	bool has_end;

	while (len > 0 && url->text[len - 1] == '/')
		len--;
	has_end = len >= 4 && strncmp(url->text + len - 4, ".git", 4) == 0;
	if (url->kind == CM_GITURL_SSH) {
		put_ssh_url(out, access, len);
	} else {
		cm_buf_append(out, url->text, len);
		cm_buf_puts(out, has_end ? "/info/lfs" : ".git/info/lfs");
	}
	return cm_buf_status(out) == CM_OK ? CM_OK
					   : cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}

int cm_host_git_config(const struct cm_host_git_access *access, const char *self,
		       struct cm_buf *out, struct cm_error *err)
{
	cm_buf_puts(out, fixed);
	if (access->has_lfs)
		cm_buf_puts(out, lfs_filter);
	if (access->url)
		put_access(out, access, self);
	return cm_buf_status(out) == CM_OK ? CM_OK
					   : cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
}
