/* SPDX-License-Identifier: Apache-2.0 */
/* What is told with the end of a command: how it ended, and what it used. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "isolation/keeper/serve.h"
#include "runtime/base/fd.h"

/* OutNoRoutes of the jail's network: attempts to reach something that is not there. */
static bool read_refused(uint64_t *ret)
{
	char text[4096];
	const char *names;
	const char *values;
	unsigned int column = 0;

	if (cm_read_file_at(AT_FDCWD, "/proc/self/net/snmp", text, sizeof(text)) < 0)
		return false;
	names = strstr(text, "Ip: ");
	values = names ? strstr(names + 1, "\nIp: ") : NULL;
	if (!values)
		return false;
	values++;
	for (const char *p = strstr(names, " OutNoRoutes"); p && p > names; p--)
		column += *p == ' ';
	for (; column > 0 && *values && *values != '\n'; values++)
		column -= *values == ' ';
	*ret = strtoull(values, NULL, 10);
	return true;
}

/* Since the last time that it was asked; 0, too, while it cannot be read. */
static uint32_t take_refused(struct cm_serve *serve)
{
	uint64_t before = serve->refused_before;
	uint64_t now;

	if (!read_refused(&now))
		return 0;
	serve->refused_before = now;
	if (now <= before)
		return 0;
	return now - before < UINT32_MAX ? (uint32_t)(now - before) : UINT32_MAX;
}

void cm_serve_fill_end(const struct cm_serve_exec *e, struct cm_rec_end *end)
{
	struct cm_serve *serve = e->serve;

	if (WIFSIGNALED(e->wait_status)) {
		end->kind = CM_END_SIGNAL;
		end->status = WTERMSIG(e->wait_status);
	} else {
		end->kind = CM_END_EXIT;
		end->status = WEXITSTATUS(e->wait_status);
	}
	if (e->end_kind == CM_END_TIMEOUT)
		end->flags |= CM_ENDF_TIMED_OUT | CM_ENDF_KILLED;
	else if (e->end_kind == CM_END_KILLED)
		end->flags |= CM_ENDF_KILLED;
	if (e->end_kind != 0)
		end->kind = e->end_kind;
	end->wall_us = (uint64_t)(e->end_us - e->start_us);
	end->cpu_user_us =
		(uint64_t)e->usage.ru_utime.tv_sec * 1000000U + (uint64_t)e->usage.ru_utime.tv_usec;
	end->cpu_system_us =
		(uint64_t)e->usage.ru_stime.tv_sec * 1000000U + (uint64_t)e->usage.ru_stime.tv_usec;
	end->max_rss_bytes = (uint64_t)e->usage.ru_maxrss * 1024U;
	end->flags |= CM_ENDF_USAGE_APPROXIMATE;
	if (end->kind == CM_END_EXIT && end->status != 0 &&
	    (serve->plan->header->flags & CM_PLANF_NETNS) != 0)
		end->detail = take_refused(serve);
}
