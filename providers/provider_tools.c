/* SPDX-License-Identifier: Apache-2.0 */
/* What every implementer needs, and has from here. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/random.h>

#include "providers/provider.h"
#include "runtime/base/clock.h"

#define NOTE_MAX 1024
#define POLL_MAX_MS 60000
#define NS_PER_S INT64_C(1000000000)

void cm_provider_note(const struct cm_provider *p, const char *fmt, ...)
{
	char text[NOTE_MAX];
	va_list ap;

	if (!p->config.note)
		return;
	va_start(ap, fmt);
	/* clang-tidy 14 does not see va_start here */
	/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized) */
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	p->config.note(p->config.data, text);
}

void cm_provider_phase(const struct cm_provider *p, const char *name, int64_t since_us)
{
	if (p->config.phase)
		p->config.phase(p->config.data, name, (uint64_t)(cm_clock_mono_us() - since_us));
}

int cm_provider_random_hex(char buf[CM_PROVIDER_HEX_SIZE], struct cm_error *err)
{
	uint64_t v = 0;

	if (getrandom(&v, sizeof(v), 0) != (ssize_t)sizeof(v))
		return cm_error_set(err, CM_E_SYS, errno, "cannot get random bytes");
	(void)snprintf(buf, CM_PROVIDER_HEX_SIZE, "%016" PRIx64, v);
	return CM_OK;
}

void cm_path_info_set_mtime(struct cm_path_info *info, int64_t ns)
{
	int64_t rest = ns % NS_PER_S;

	info->mtime_sec = ns / NS_PER_S - (rest < 0 ? 1 : 0);
	info->mtime_nsec = (uint32_t)(rest + (rest < 0 ? NS_PER_S : 0));
}

int cm_call_sleep(const struct cm_call *call, int64_t ms, struct cm_error *err)
{
	struct pollfd cancel = { .fd = call->cancel_fd, .events = POLLIN };
	int64_t end = cm_clock_mono_ms() + ms;
	bool is_late = end > call->deadline_ms;

	if (is_late)
		end = call->deadline_ms;
	for (;;) {
		int64_t left = end - cm_clock_mono_ms();
		int n = poll(&cancel, 1,
			     left <= 0		  ? 0
			     : left > POLL_MAX_MS ? POLL_MAX_MS
						  : (int)left);

		if (n < 0 && errno != EINTR)
			return cm_error_set(err, CM_E_SYS, errno, "cannot wait");
		if (n > 0)
			return cm_error_set(err, CM_E_CANCELLED, 0, "given up while waiting");
		if (left <= 0)
			break;
	}
	return is_late ? cm_error_set(err, CM_E_TIMEOUT, 0, "it took too long") : CM_OK;
}
