/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of single files, signed by what a sandbox and its agent know. Pure. */
#ifndef CM_PROVIDERS_E2B_URL_H
#define CM_PROVIDERS_E2B_URL_H

#include <stdbool.h>
#include <stdint.h>

struct cm_e2b_url {
	/* without a '/' at the end */
	const char *base;
	/* as the agent is to get it */
	const char *path;
	/* NULL: the sandbox's usual one */
	const char *user;
	/* NULL: the sandbox has none, and then nothing is signed */
	const char *token;
	bool is_write;
	/* seconds since 1970, with a token alone; 0: never */
	int64_t end_s;
};
/* The caller frees; NULL: memory. */
char *cm_e2b_url_make(const struct cm_e2b_url *url);

#endif
