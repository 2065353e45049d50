/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the keeper itself leaves in a session's state directory: the lock that says it lives, and
 * its last word. A component of its own (cm_store_keeper), so that the keeper links no parser.
 */
#ifndef CM_RUNTIME_STORE_KEEPER_LOCK_H
#define CM_RUNTIME_STORE_KEEPER_LOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "casemate/error.h"

/* The keeper's last word; written by the keeper, fixed size, believed only after a check. */
#define CM_END_RECORD_MAGIC 0x434d4544U
#define CM_END_RECORD_VERSION 1U
struct cm_end_record {
	uint32_t magic;
	uint32_t version;
	uint64_t generation;
	/* enum cm_end_reason */
	uint32_t reason;
	int32_t status;
	int64_t real_ms;
};

enum cm_end_reason {
	CM_ENDED_STOPPED = 1,
	CM_ENDED_INIT_DIED,
	CM_ENDED_START_FAILED,
	CM_ENDED_TEMPORARY,
	/* it was idle, or lived, for as long as it may */
	CM_ENDED_IDLE,
	CM_ENDED_LIFETIME,
	CM_ENDED_COUNT_,
};

/* "stopped", "init died", ...; NULL for what is no reason */
const char *cm_end_reason_name(uint32_t reason);

/*
 * Take <dir>/keeper.lock for as long as *ret_fd (and its copies in forked children: close it in
 * init) is open. CM_E_BUSY when another keeper has it.
 *
 * An open-file-description lock and not flock: cm_keeper_lock_is_held can ask without taking it,
 * so a client that looks never makes a starting keeper fail.
 */
int cm_store_keeper_lock(int dir_fd, int *ret_fd, struct cm_error *err);
bool cm_keeper_lock_is_held(int dir_fd);
/*
 * Replace dir_fd/name through a file of the fixed name temp. 0 or -errno. For a file with one
 * writer at a time: what a writer leaves that dies on the way is overwritten by the next, where
 * cm_replace_file_at's random names would heap up.
 */
int cm_store_replace(int dir_fd, const char *name, const char *temp, const void *data, size_t len,
		     bool is_durable);
/* Replace <dir>/end by *end; magic and version are filled in here. 0 or -errno. */
int cm_store_write_end(int dir_fd, const struct cm_end_record *end);

#endif
