/* SPDX-License-Identifier: Apache-2.0 */
/* When something was. */
#include "runtime/cli/shown_time.h"

#include <stdio.h>

#include "runtime/base/clock.h"
#include "runtime/base/num.h"

void cm_cli_write_time(struct cm_json_writer *w, const char *key, int64_t real_ms)
{
	char text[CM_CLOCK_RFC3339_SIZE];

	if (real_ms > 0)
		cm_clock_rfc3339(real_ms, text);
	cm_jw_kstring(w, key, real_ms > 0 ? text : NULL);
}

void cm_cli_format_age(int64_t since_ms, char *buf, size_t size)
{
	int64_t age = cm_clock_real_ms() - since_ms;

	if (since_ms <= 0)
		(void)snprintf(buf, size, "-");
	else
		/* a clock that was set back, or another one, makes nobody younger than new */
		cm_format_duration(age > 0 ? (uint64_t)age : 0, buf, size);
}
