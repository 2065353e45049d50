/* SPDX-License-Identifier: Apache-2.0 */
/* Files of known hosts: whatever is in them, what comes out is lines for the one server. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "providers/local/known_hosts.h"
#include "runtime/base/text.h"
#include "tests/fuzz/fuzz.h"

static void check_lines(const struct cm_known_hosts *k)
{
	const char *at = k->lines.data;

	require(strlen(at) == k->lines.len);
	while (*at != '\0') {
		const char *end = strchr(at, '\n');

		require(end != NULL);
		require(cm_text_has_prefix(at, "#revoked ") ||
			(cm_text_has_prefix(at, k->name) && at[strlen(k->name)] == ' '));
		for (; at < end; at++)
			require(*at >= ' ' && *at < 0x7f);
		at = end + 1;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cm_known_hosts k;

	require(cm_known_hosts_init(&k, "git.example.org", size % 2 ? 22 : 2222, NULL) == CM_OK);
	cm_known_hosts_add(&k, (const char *)data, size);
	if (cm_known_hosts_finish(&k, NULL) == CM_OK)
		check_lines(&k);
	cm_known_hosts_clear(&k);
	return 0;
}
