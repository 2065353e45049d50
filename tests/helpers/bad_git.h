/* SPDX-License-Identifier: Apache-2.0 */
/* A git server that misbehaves: what it says (bad_git_modes.c) and to whom (bad_git_server.c). */
#ifndef CM_TESTS_HELPERS_BAD_GIT_H
#define CM_TESTS_HELPERS_BAD_GIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct peer {
	int fd;
	bool is_http;
	bool in_chunks;
	bool has_bands;
	bool is_slow;
	uint64_t sent;
};

/* What a right answer is made of. The pack is a copy of one's own, to be spoilt. */
struct cargo {
	const char *head;
	const char *ref;
	uint8_t *pack;
	size_t pack_len;
};

struct mode {
	const char *name;
	/* instead of what is right, which is NULL; answer is all that follows a request */
	void (*answer)(struct peer *peer);
	void (*refs)(struct peer *peer);
	void (*pack)(struct peer *peer);
	bool wants_pack;
	const char *what;
};

extern struct cargo bad_cargo;
extern const struct mode bad_modes[];
extern const size_t bad_n_modes;

void bad_refs(struct peer *peer, const struct mode *mode);
void bad_pack(struct peer *peer, const struct mode *mode);

/* The parts of an answer that are right in every mode. */
void bad_http_head(struct peer *peer, const char *type);
void bad_http_end(struct peer *peer);
void bad_text(struct peer *peer, const char *text);

/* Says how much was sent. */
_Noreturn void bad_end(struct peer *peer);

#endif
