/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which keys one ssh server may have, out of files as sshd(8) has them ("SSH_KNOWN_HOSTS FILE
 * FORMAT"): for a reader that knows no patterns and no markers, and gives up a file for one line that
 * it cannot parse. Pure: texts in, a text out.
 */
#ifndef CM_PROVIDERS_LOCAL_KNOWN_HOSTS_H
#define CM_PROVIDERS_LOCAL_KNOWN_HOSTS_H

#include "casemate/error.h"
#include "runtime/base/buf.h"

/* of what is written, in bytes: more keys than a server has, and bad ones besides */
#define CM_KNOWN_HOSTS_MAX (256UL * 1024)

struct cm_known_hosts {
	/* as the files write it: HOST, or [HOST]:PORT for another port than 22 */
	char *name;
	struct cm_buf lines;
	/* of a kind that a server of today still has */
	bool has_modern_key;
};

/* host is in lower case. cm_known_hosts_clear is right also after a failure. */
int cm_known_hosts_init(struct cm_known_hosts *k, const char *host, unsigned int port,
			struct cm_error *err);
void cm_known_hosts_clear(struct cm_known_hosts *k);
/* A file's text; what is not a line for this server is passed over. */
void cm_known_hosts_add(struct cm_known_hosts *k, const char *text, size_t len);
/*
 * After the files: the built-in keys, where the server has some and no file has a modern one. Then
 * the text is in k->lines: "NAME KIND KEY" for a key that it may have, "#revoked KEY" for one that
 * it must not; better kinds come first.
 */
int cm_known_hosts_finish(struct cm_known_hosts *k, struct cm_error *err);

#endif
