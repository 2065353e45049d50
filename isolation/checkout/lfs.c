/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/checkout/lfs.h"

#include <string.h>

static const char magic[] = "version https://git-lfs.github.com/spec/";

bool cm_lfs_is_pointer(const void *data, size_t len)
{
	return len >= sizeof(magic) - 1 && len <= CM_LFS_POINTER_MAX &&
	       memcmp(data, magic, sizeof(magic) - 1) == 0;
}

bool cm_lfs_is_pointer_blob(git_repository *repo, const git_oid *id)
{
	CM_AUTO_GIT(git_odb) git_odb *odb = NULL;
	CM_AUTO_GIT(git_odb_object) git_odb_object *blob = NULL;
	git_object_t type;
	size_t len;

	return git_repository_odb(&odb, repo) == 0 &&
	       git_odb_read_header(&len, &type, odb, id) == 0 && type == GIT_OBJECT_BLOB &&
	       len <= CM_LFS_POINTER_MAX && git_odb_read(&blob, odb, id) == 0 &&
	       cm_lfs_is_pointer(git_odb_object_data(blob), len);
}

bool cm_lfs_is_file(git_repository *repo, const git_oid *commit, const char *path,
		    const git_oid *id)
{
	git_attr_options opts = GIT_ATTR_OPTIONS_INIT;
	const char *filter = NULL;

	opts.flags = GIT_ATTR_CHECK_NO_SYSTEM | GIT_ATTR_CHECK_INCLUDE_COMMIT;
	opts.attr_commit_id = *commit;
	return cm_lfs_is_pointer_blob(repo, id) &&
	       git_attr_get_ext(&filter, repo, &opts, path, "filter") == 0 && filter &&
	       git_attr_value(filter) == GIT_ATTR_VALUE_STRING && strcmp(filter, "lfs") == 0;
}
