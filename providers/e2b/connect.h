/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Connect protocol's envelopes and errors. Pure.
 *
 * A stream is a row of envelopes: a byte of flags, a length of four bytes, big end first, and so many
 * bytes of JSON. The last one has the flag END and says how it went; a stream without it was cut off.
 */
#ifndef CM_PROVIDERS_E2B_CONNECT_H
#define CM_PROVIDERS_E2B_CONNECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "casemate/error.h"
#include "runtime/base/buf.h"
#include "runtime/base/json.h"

#define CM_E2B_ENVELOPE_MAX (16UL * 1024 * 1024)
#define CM_E2B_ENVELOPE_HEAD 5

struct cm_e2b_envelopes {
	uint8_t head[CM_E2B_ENVELOPE_HEAD];
	size_t n_head;
	/* what the head says */
	uint32_t len;
	/* the JSON of the envelope that is complete, or of one that is not yet */
	struct cm_buf body;
	/* an envelope was given out: the next byte begins another */
	bool is_complete;
	/* END came */
	bool has_ended;
};

void cm_e2b_envelopes_init(struct cm_e2b_envelopes *e);
void cm_e2b_envelopes_clear(struct cm_e2b_envelopes *e);

enum cm_e2b_envelope {
	/* all bytes were taken, and none is complete */
	CM_E2B_ENVELOPE_NONE = 0,
	/* e->body is a message */
	CM_E2B_ENVELOPE_MESSAGE,
	/* e->body is how the stream ended; nothing may follow */
	CM_E2B_ENVELOPE_END,
};
/*
 * Takes bytes up to the end of an envelope: enum cm_e2b_envelope, or CM_E_PROTOCOL, CM_E_LIMIT,
 * CM_E_NOMEM. *ret_used: how many were taken.
 */
int cm_e2b_envelopes_take(struct cm_e2b_envelopes *e, const void *bytes, size_t len,
			  size_t *ret_used, struct cm_error *err);
/* Appends a message of a request. */
void cm_e2b_envelope_write(struct cm_buf *out, const void *json, size_t len);

/* What an error's name means: CM_E_*; CM_E_REMOTE for one that is not known, and for NULL. */
int cm_e2b_code(const char *name);
/*
 * What is usual of files, in words of ours: "it is not there"; NULL: it is none of that. name: of Connect's
 * errors, NULL: there is the HTTP status alone. message may be NULL.
 */
const char *cm_e2b_file_fault(const char *name, int status, const char *message);
/*
 * Of { "code": ..., "message": ... } an error: "cannot WHAT: MESSAGE (NAME)". Returns its code. v may be
 * NULL, or anything else.
 */
int cm_e2b_error_of(const struct cm_json *v, const char *what, struct cm_error *err);
/*
 * Of the JSON of an END envelope: CM_OK, the error that it has, or CM_E_PROTOCOL. ret_name: the error's
 * name, cut to size, "" for none; may be NULL.
 */
int cm_e2b_end_of(const char *json, size_t len, const char *what, char *ret_name, size_t size,
		  struct cm_error *err);

#endif
