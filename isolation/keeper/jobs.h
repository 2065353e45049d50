/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Detached commands: the keeper holds the far side of their streams, and journals what comes.
 *
 * A job lives until its command has ended and nobody holds a stream of it any more; children that
 * the command left go on being journaled, but never delay its result.
 */
#ifndef CM_ISOLATION_KEEPER_JOBS_H
#define CM_ISOLATION_KEEPER_JOBS_H

#include <stdint.h>

#include "isolation/keeper/proto.h"

struct cm_keeper;
struct cm_keeper_job;

/*
 * For an EXEC record (its exec id is set, its flags get those of the descriptors): journal and
 * pipes. text: cwd and arguments, text_len bytes. far gets *ret_n descriptors for init, which the
 * caller closes. Nothing is left when it fails.
 */
int cm_job_open(struct cm_keeper *k, struct cm_rec *rec, const char *text, uint32_t text_len,
		struct cm_keeper_job **ret, int far[3], unsigned int *ret_n, struct cm_error *err);
/* The command runs; of one with a terminal its master, which is taken. */
void cm_job_started(struct cm_keeper_job *job, int *master);
/* What can be written to for the command to read; -1: nothing. Borrowed. */
int cm_job_input(const struct cm_keeper_job *job);
void cm_job_close_input(struct cm_keeper_job *job);
/* The command has ended: what it wrote until then is journaled, and the result. *ref is NULL then. */
void cm_job_end(struct cm_keeper_job **ref, const struct cm_rec_end *end);
/* The command was refused: its journal goes. *ref is NULL then; a no-op for NULL. */
void cm_job_forget(struct cm_keeper_job **ref);
/* The keeper ends, and everything in the jail has: what is in the pipes still is journaled, and that
 * what had not ended was killed. */
void cm_job_end_all(struct cm_keeper *k);

#endif
