/* SPDX-License-Identifier: Apache-2.0 */
/* How every probe reports: one line an attempt, compared to the letter by escape.sh. */
#ifndef CM_TESTS_ESCAPE_PROBE_H
#define CM_TESTS_ESCAPE_PROBE_H

#include <stdbool.h>

/* "ATTEMPT: reached" when value is not negative, else "ATTEMPT: refused ERRNO". */
void probe_result(const char *attempt, long value);

/*
 * The same for a call that cannot succeed with these harmless arguments: reached, too, when errno
 * is one of the two, which the kernel gives only after every permission check has passed.
 */
void probe_result_or(const char *attempt, long value, int reached_errno, int other_errno);

/* "ATTEMPT: reached" or "ATTEMPT: refused", for what has no errno. */
void probe_bool(const char *attempt, bool is_reached);

/* fn in a child: reached when it returns 0, "refused ERRNO" for an errno, "killed SIGNAL". */
void probe_child(const char *attempt, int (*fn)(void));

const char *probe_errno_name(int error);

#endif
