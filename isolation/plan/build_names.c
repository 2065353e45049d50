/* SPDX-License-Identifier: Apache-2.0 */
/* Who and where one is inside: passwd, group, hostname, machine-id. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "isolation/plan/build_internal.h"
#include "runtime/base/fd.h"
#include "runtime/base/fields.h"
#include "runtime/base/hash.h"
#include "runtime/base/path.h"

/* passwd's separator, and what is not a name for useradd and the shell. */
static bool is_name(const char *name)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789._-@";

	return *name && strspn(name, plain) == strlen(name) && strlen(name) <= 64;
}

/* The first line of passwd or group whose third field is id; NULL. */
static const char *find_id(const char *text, unsigned int id)
{
	struct cm_field f[4];

	for (; *text; text = cm_next_line(text)) {
		if (cm_fields_split(text, ':', f, CM_ARRAY_SIZE(f)) >= 3 &&
		    cm_field_is_id(&f[2], id))
			return text;
	}
	return NULL;
}

void cm_build_user_name(const struct cm_plan_request *req, char buf[CM_USER_NAME_SIZE])
{
	const char *name = req->host->user_name;
	const char *image = req->tree->passwd ? find_id(req->tree->passwd, CM_ID_AGENT) : NULL;
	size_t len = image ? strcspn(image, ":\n") : 0;

	if (req->spec->user == CM_USER_ROOT) {
		name = "root";
	} else if (len > 0 && len < CM_USER_NAME_SIZE) {
		/* an image's own user of that id is the agent, by its own name */
		memcpy(buf, image, len);
		buf[len] = '\0';
		return;
	} else if (req->tree->root || !is_name(name) || strcmp(name, "root") == 0 ||
		   strcmp(name, "nobody") == 0 || strcmp(name, "casemate") == 0) {
		/* these names have other ids inside */
		name = "user";
	}
	(void)snprintf(buf, CM_USER_NAME_SIZE, "%s", name);
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

			if (is_plain)
				buf[n++] = *p;
			else if (n > 0)
				buf[n++] = '-';
		}
		while (n > 0 && buf[n - 1] == '-')
			n--;
	}
	buf[n] = '\0';
	if (n == 0)
		memcpy(buf, "casemate", sizeof("casemate"));
}

/* Ends what was put so far with a newline. */
static void end_line(struct cm_buf *text)
{
	if (text->len > 0 && text->data && text->data[text->len - 1] != '\n')
		cm_buf_putc(text, '\n');
}

/* ':' and newline cannot be written in these files. */
static const char *home_field(const struct cm_build *build)
{
	const char *home = cm_plan_home(build->req);

	return strpbrk(home, ":\n") ? "/" : home;
}

/* HOME holds: ssh and node ask passwd, so the image's user of the agent's id moves there. */
static void put_image_passwd(struct cm_build *build, struct cm_buf *text, const char *image)
{
	const char *line = find_id(image, CM_ID_AGENT);
	struct cm_field f[7];

	if (!line || build->req->spec->user == CM_USER_ROOT ||
	    cm_fields_split(line, ':', f, CM_ARRAY_SIZE(f)) < 6) {
		cm_buf_puts(text, image);
	} else {
		cm_buf_append(text, image, (size_t)(f[5].at - image));
		cm_buf_puts(text, home_field(build));
		cm_buf_puts(text, f[5].at + f[5].len);
	}
	end_line(text);
}

static void put_agent(struct cm_build *build, struct cm_buf *text)
{
	char name[CM_USER_NAME_SIZE];

	if (build->req->spec->user == CM_USER_ROOT) {
		cm_buf_printf(text, "user:x:%u:%u::/nonexistent:/bin/sh\n", CM_ID_AGENT,
			      CM_ID_AGENT);
		return;
	}
	cm_build_user_name(build->req, name);
	cm_buf_printf(text, "%s:x:%u:%u::%s:%s\n", name, CM_ID_AGENT, CM_ID_AGENT,
		      home_field(build), cm_build_shell(build->req));
}

static void build_passwd(struct cm_build *build)
{
	const char *image = build->req->tree->passwd;
	bool is_root = build->req->spec->user == CM_USER_ROOT;
	struct cm_buf *text = cm_build_text(build);

	if (image)
		put_image_passwd(build, text, image);
	else
		cm_buf_printf(text, "root:x:0:0:root:%s:%s\n",
			      is_root ? home_field(build) : "/root",
			      is_root ? cm_build_shell(build->req) : "/bin/sh");
	if (!image || !find_id(image, CM_ID_AGENT))
		put_agent(build, text);
	if (!image)
		cm_buf_puts(text, "nobody:x:65534:65534:nobody:/nonexistent:/bin/false\n");
	cm_buf_printf(text, "casemate:x:%u:%u::/nonexistent:/bin/false\n", CM_ID_INIT, CM_ID_INIT);
	cm_build_file_text(build, "/etc/passwd");
}

static void build_group(struct cm_build *build)
{
	const char *image = build->req->tree->group;
	char name[CM_USER_NAME_SIZE] = "user";
	struct cm_buf *text = cm_build_text(build);

	cm_buf_puts(text, image ? image : "root:x:0:\ntty:x:5:\nnogroup:x:65534:\n");
	end_line(text);
	if (build->req->spec->user != CM_USER_ROOT)
		cm_build_user_name(build->req, name);
	if (!image || !find_id(image, CM_ID_AGENT))
		cm_buf_printf(text, "%s:x:%u:\n", name, CM_ID_AGENT);
	cm_buf_printf(text, "casemate:x:%u:\n", CM_ID_INIT);
	cm_build_file_text(build, "/etc/group");
}

/* With the finishing steps of splitmix64: a name, not a secret. */
static uint64_t hash(const char *s, uint64_t seed)
{
	uint64_t h = cm_hash(CM_HASH_START ^ seed, s, strlen(s));

	h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ULL;
	h = (h ^ (h >> 27)) * 0x94d049bb133111ebULL;
	return h ^ (h >> 31);
}

static void build_machine(struct cm_build *build)
{
	/* what has no name shares one, and with it its skeleton */
	const char *id = build->req->is_temporary ? "" : build->req->session_id;
	char hostname[65];
	char text[80];

	/* the same for a session's whole life, and nothing of the host's */
	(void)snprintf(text, sizeof(text), "%016" PRIx64 "%016" PRIx64 "\n", hash(id, 0),
		       hash(id, 0x636173656d617465ULL));
	cm_build_file(build, "/etc/machine-id", text);
	cm_build_hostname(build->req, hostname);
	(void)snprintf(text, sizeof(text), "%s\n", hostname);
	cm_build_file(build, "/etc/hostname", text);
	cm_build_symlink(build, "/etc/mtab", "../proc/self/mounts");
}

void cm_build_names(struct cm_build *build)
{
	build_passwd(build);
	build_group(build);
	build_machine(build);
}
