/* SPDX-License-Identifier: Apache-2.0 */
/* ssh's configuration: what is taken from it ends in addresses and in the paths of files. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "providers/local/ssh_config.h"
#include "tests/fuzz/fuzz.h"

static void check_text(const char *text)
{
	require(!text || text[0] != '-');
	for (const char *p = text; p && *p != '\0'; p++)
		require((unsigned char)*p >= ' ' && *p != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cm_ssh_config c = { 0 };

	require(cm_ssh_config_add(&c, (const char *)data, size, "git", NULL) == CM_OK);
	check_text(c.host_name);
	check_text(c.user);
	require(c.port <= 65535);
	for (size_t i = 0; i < c.identities.n; i++)
		check_text(c.identities.v[i]);
	cm_ssh_config_clear(&c);
	return 0;
}
