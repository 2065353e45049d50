/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the workspace proxy and its transports say, read from JSON with distrust. No system calls.
 *
 * A member that is there with another type than it should have is an error where something depends on
 * it, and not there else. Unknown members are passed over. Errors are CM_E_PROTOCOL and CM_E_NOMEM.
 */
#ifndef CM_PROVIDERS_PLATFORM_ANSWERS_H
#define CM_PROVIDERS_PLATFORM_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "casemate/error.h"

/* of names that come from the service and go into a path or a record again */
#define CM_PLATFORM_NAME_MAX 256

/* Texts are owned; each but id may be NULL. */
struct cm_platform_sandbox {
	char *id;
	char *resource_id;
	char *status;
	/* where its sidecar answers */
	char *instance_url;
	/* CLOCK_REALTIME, milliseconds; 0: not known */
	int64_t created_ms;
	bool is_destroyed;
	/* its template is still being built */
	bool is_template_pending;
};
int cm_platform_sandbox_read(const char *text, size_t len, struct cm_platform_sandbox *ret,
			     struct cm_error *err);
void cm_platform_sandbox_clear(struct cm_platform_sandbox *sandbox);

struct cm_platform_lease {
	char *provider;
	/* a secret */
	char *jwt;
	char *endpoint;
	char *subprotocol;
	/* CLOCK_REALTIME, milliseconds; 0: not said, or not to be read */
	int64_t expires_ms;
};
int cm_platform_lease_read(const char *text, size_t len, struct cm_platform_lease *ret,
			   struct cm_error *err);
void cm_platform_lease_clear(struct cm_platform_lease *lease);

enum cm_platform_checkpoint_status {
	CM_PLATFORM_CAPTURED = 1,
	CM_PLATFORM_COALESCED,
	CM_PLATFORM_SKIPPED,
};
struct cm_platform_checkpoint {
	/* owned; may be NULL */
	char *name;
	enum cm_platform_checkpoint_status status;
};
int cm_platform_checkpoint_read(const char *text, size_t len, struct cm_platform_checkpoint *ret,
				struct cm_error *err);

enum cm_platform_build_status {
	CM_PLATFORM_READY = 1,
	CM_PLATFORM_PENDING,
	CM_PLATFORM_FAILED,
};
struct cm_platform_build {
	enum cm_platform_build_status status;
	/* owned; may be NULL */
	char *error;
	/* 0: not said */
	uint32_t retry_after_ms;
};
int cm_platform_build_read(const char *text, size_t len, struct cm_platform_build *ret,
			   struct cm_error *err);

/* Of a command that ran within one request. */
struct cm_platform_result {
	char *out;
	char *err;
	int exit_code;
	bool is_timed_out;
	bool is_truncated;
};
int cm_platform_result_read(const char *text, size_t len, struct cm_platform_result *ret,
			    struct cm_error *err);
void cm_platform_result_clear(struct cm_platform_result *result);

enum cm_platform_line_kind {
	/* of a kind that there is not, or no JSON: to be passed over */
	CM_PLATFORM_LINE_OTHER = 0,
	/* it is to be an end, and does not say how */
	CM_PLATFORM_LINE_BAD_EXIT,
	CM_PLATFORM_LINE_EXIT,
	CM_PLATFORM_LINE_STDOUT,
	CM_PLATFORM_LINE_STDERR,
};
struct cm_platform_line {
	enum cm_platform_line_kind kind;
	/* of EXIT: 0 to 255 */
	int exit_code;
	/* of STDOUT and STDERR; owned */
	char *data;
};
/* A text message of the exec socket: {"type":"exit","data":{"exit_code":0}}. OTHER where it is not. */
int cm_platform_message_read(const char *text, size_t len, struct cm_platform_line *ret);
/* A line of a sidecar: {"type":"stdout","data":"..."}, {"type":"exit","code":0}. */
int cm_platform_line_read(const char *text, size_t len, struct cm_platform_line *ret);

/* {"error":{"message":...}}: the message, owned; NULL where there is none. */
char *cm_platform_error_text(const char *text, size_t len);
/* "2026-11-29T20:52:26.123Z" or with "+01:00": milliseconds since 1970; 0: it is none. */
int64_t cm_platform_time(const char *text);

#endif
