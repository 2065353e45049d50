/* SPDX-License-Identifier: Apache-2.0 */
/* The files of users and groups, kept for as long as somebody asks. */
#include "isolation/host/private_group.h"

#include <fcntl.h>
#include <stdlib.h>

#include "isolation/host/node.h"
#include "isolation/host/passwd.h"

static void read_files(struct cm_private_groups *groups)
{
	groups->is_read = true;
	/* one that cannot be read stays NULL */
	(void)cm_read_text_at(AT_FDCWD, "/etc/passwd", CM_PASSWD_MAX, &groups->passwd);
	(void)cm_read_text_at(AT_FDCWD, "/etc/group", CM_PASSWD_MAX, &groups->group);
}

bool cm_private_groups_has(struct cm_private_groups *groups, gid_t gid)
{
	if (groups->has_last && groups->last == gid)
		return groups->is_last_private;
	if (!groups->is_read)
		read_files(groups);
	groups->has_last = true;
	groups->last = gid;
	groups->is_last_private =
		groups->passwd && groups->group &&
		cm_passwd_is_private_group(groups->passwd, groups->group, gid, groups->uid);
	return groups->is_last_private;
}

void cm_private_groups_clear(struct cm_private_groups *groups)
{
	free(groups->passwd);
	free(groups->group);
	*groups = (struct cm_private_groups){ .uid = groups->uid };
}
