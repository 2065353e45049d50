/* SPDX-License-Identifier: Apache-2.0 */
/* Who and where one is inside: passwd, group, hostname, machine-id. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "isolation/plan/build_internal.h"
#include "runtime/base/fd.h"
#include "runtime/base/path.h"

#define MAX_FILE (512UL * 1024)

/* passwd's separator, and what is not a name for useradd and the shell. */
static bool is_name(const char *name)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789._-@";

	return *name && strspn(name, plain) == strlen(name) && strlen(name) <= 64;
}

const char *cm_build_user_name(const struct cm_plan_request *req)
{
	const char *name = req->host->user_name;

	if (req->spec->user == CM_USER_ROOT)
		return "root";
	/* these names have other ids inside */
	if (req->tree->root || !is_name(name) || strcmp(name, "root") == 0 ||
	    strcmp(name, "nobody") == 0 || strcmp(name, "casemate") == 0)
		return "user";
	return name;
}

const char *cm_build_shell(const struct cm_plan_request *req)
{
	const char *shell = req->host->shell;

	if (req->tree->root || !cm_build_shows(req, shell) || strpbrk(shell, ":\n"))
		return "/bin/sh";
	return shell;
}

/* A temporary session's id says nothing; a named one's shows in the prompt. */
void cm_build_hostname(const struct cm_plan_request *req, char buf[65])
{
	size_t n = 0;

	if (!req->is_temporary) {
		for (const char *p = req->session_id; *p && n < 63; p++) {
			bool is_plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
					(*p >= '0' && *p <= '9');

			if (is_plain || n > 0)
				buf[n++] = is_plain ? *p : '-';
		}
		while (n > 0 && buf[n - 1] == '-')
			n--;
	}
	buf[n] = '\0';
	if (n == 0)
		memcpy(buf, "casemate", sizeof("casemate"));
}

/* Does a line of the text have this number as its third field? */
static bool has_id(const char *text, unsigned int id)
{
	char number[16];
	size_t n = (size_t)snprintf(number, sizeof(number), "%u", id);

	for (const char *line = text; line && *line;) {
		const char *field = line;
		const char *end = strchr(line, '\n');

		for (int i = 0; field && i < 2; i++) {
			field = strpbrk(field, ":\n");
			field = field && *field == ':' ? field + 1 : NULL;
		}
		if (field && strncmp(field, number, n) == 0 && field[n] == ':')
			return true;
		line = end ? end + 1 : NULL;
	}
	return false;
}

static void put_own_text(struct cm_buf *text, const char *own)
{
	cm_buf_puts(text, own);
	if (text->len > 0 && text->data && text->data[text->len - 1] != '\n')
		cm_buf_putc(text, '\n');
}

static void put_agent(struct cm_build *build, struct cm_buf *text)
{
	const char *home = cm_plan_home(build->req);

	if (strpbrk(home, ":\n"))
		home = "/";
	if (build->req->spec->user == CM_USER_ROOT)
		cm_buf_printf(text, "user:x:%u:%u::/nonexistent:/bin/sh\n", CM_ID_AGENT,
			      CM_ID_AGENT);
	else
		cm_buf_printf(text, "%s:x:%u:%u::%s:%s\n", cm_build_user_name(build->req),
			      CM_ID_AGENT, CM_ID_AGENT, home, cm_build_shell(build->req));
}

static void build_passwd(struct cm_build *build)
{
	const char *image = build->req->tree->passwd;
	bool is_root = build->req->spec->user == CM_USER_ROOT;
	const char *home = cm_plan_home(build->req);
	struct cm_buf text;

	cm_buf_init(&text, MAX_FILE);
	if (image) {
		put_own_text(&text, image);
		/* the image's own user of that id is the agent, by its own name */
		if (!has_id(image, CM_ID_AGENT))
			put_agent(build, &text);
	} else {
		cm_buf_printf(&text, "root:x:0:0:root:%s:%s\n",
			      is_root && !strpbrk(home, ":\n") ? home : "/root",
			      is_root ? cm_build_shell(build->req) : "/bin/sh");
		put_agent(build, &text);
		cm_buf_puts(&text, "nobody:x:65534:65534:nobody:/nonexistent:/bin/false\n");
	}
	cm_buf_printf(&text, "casemate:x:%u:%u::/nonexistent:/bin/false\n", CM_ID_INIT, CM_ID_INIT);
	cm_build_file_buf(build, "/etc/passwd", &text);
}

static void build_group(struct cm_build *build)
{
	const char *image = build->req->tree->group;
	bool is_root = build->req->spec->user == CM_USER_ROOT;
	struct cm_buf text;

	cm_buf_init(&text, MAX_FILE);
	if (image)
		put_own_text(&text, image);
	else
		cm_buf_puts(&text, "root:x:0:\ntty:x:5:\nnogroup:x:65534:\n");
	if (!image || !has_id(image, CM_ID_AGENT))
		cm_buf_printf(&text, "%s:x:%u:\n",
			      is_root ? "user" : cm_build_user_name(build->req), CM_ID_AGENT);
	cm_buf_printf(&text, "casemate:x:%u:\n", CM_ID_INIT);
	cm_build_file_buf(build, "/etc/group", &text);
}

/* 64-bit FNV-1a, then the finishing steps of splitmix64: a name, not a secret. */
static uint64_t hash(const char *s, uint64_t seed)
{
	uint64_t h = 0xcbf29ce484222325ULL ^ seed;

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3ULL;
	h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ULL;
	h = (h ^ (h >> 27)) * 0x94d049bb133111ebULL;
	return h ^ (h >> 31);
}

static void build_machine(struct cm_build *build)
{
	const char *id = build->req->session_id;
	char text[80];

	/* the same for a session's whole life, and nothing of the host's */
	(void)snprintf(text, sizeof(text), "%016" PRIx64 "%016" PRIx64 "\n", hash(id, 0),
		       hash(id, 0x636173656d617465ULL));
	cm_build_file(build, "/etc/machine-id", text);
	cm_build_hostname(build->req, text);
	strcat(text, "\n");
	cm_build_file(build, "/etc/hostname", text);
	cm_build_symlink(build, "/etc/mtab", "../proc/self/mounts");
}

void cm_build_names(struct cm_build *build)
{
	build_passwd(build);
	build_group(build);
	build_machine(build);
}
