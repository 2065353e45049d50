/* SPDX-License-Identifier: Apache-2.0 */
/* Text from outside on its way to a terminal, and small string helpers. */
#ifndef CM_RUNTIME_BASE_TEXT_H
#define CM_RUNTIME_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/buf.h"

/*
 * Append s with every control byte, DEL, C1 control, invalid UTF-8 byte and what changes the direction
 * of text as \xNN, so that it is inert on a terminal and reads as it is. Newline and tab are escaped too unless keep_newlines.
 */
void cm_text_escape(struct cm_buf *out, const char *s, size_t len, bool keep_newlines);
/* Length (1 to 4) of the UTF-8 sequence at s, at most len bytes; 0 when it is not a valid one. */
size_t cm_text_utf8_len(const char *s, size_t len);
/* How many of the first len bytes fit into so many columns, one a character. */
size_t cm_text_fitting(const char *s, size_t len, size_t columns);
/*
 * What s has between blanks (of the shell: space, \t, \n, \v, \f, \r) at its ends, and in *ret_len how many
 * bytes. NULL: s is NULL, or nothing but blanks.
 */
const char *cm_text_trimmed(const char *s, size_t *ret_len);
bool cm_text_has_prefix(const char *s, const char *prefix);
/*
 * 1 to CM_SESSION_ID_MAX of A-Z a-z 0-9 . _ - and no dot or dash at the beginning. Such a name is
 * a file's, a control group's and a unit's as it stands, and never an option.
 */
#define CM_SESSION_ID_MAX 128
bool cm_text_is_session_id(const char *s);
/* Shell-style pattern of '*' and '?' (one byte) only, whole string. */
bool cm_text_matches(const char *pattern, const char *s);
/* The first len bytes of s, which are all of its own. */
bool cm_text_matches_len(const char *pattern, const char *s, size_t len);
/* Edit distance (Damerau-Levenshtein, adjacent swaps), capped at max + 1. */
unsigned int cm_text_distance(const char *a, const char *b, unsigned int max);
/* Single-quoted for a POSIX shell when it needs to be. */
void cm_text_shell_quote(struct cm_buf *out, const char *s);

#endif
