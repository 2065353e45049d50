/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of keeper_client share. argv is main's: the socket is [1], the session's id [2]. */
#ifndef CM_TESTS_HELPERS_KEEPER_CLIENT_H
#define CM_TESTS_HELPERS_KEEPER_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "casemate/error.h"
#include "providers/local/jail.h"

#define KC_DEADLINE_MS 30000

struct kc_mode {
	const char *name;
	int (*run)(char **argv);
};
/* requests that are wrong (keeper_client_bad.c), and more of them than fit (keeper_client_many.c) */
extern const struct kc_mode kc_bad_modes[];
extern const struct kc_mode kc_many_modes[];

/* err NULL: errno says why */
_Noreturn void kc_fail(const char *what, const struct cm_error *err);
void kc_hello(struct cm_jail *jail, char **argv);
/* A connection on which nothing was said yet; the caller closes it. */
int kc_connect(char **argv);
/* Takes n records of that type, whatever comes between; false when they do not come. */
bool kc_take(struct cm_jail *jail, uint16_t type, int n);

#endif
