/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees between this host and a session, as tar streams: by the session's tar and, on this side, by
 * libarchive, which reads no other format. Nothing of a stream is believed: on this side all that is
 * made is made by a struct cm_file_receiver, and all that is read is read by descriptors.
 *
 * Modes go along without set-id and sticky bits, and so do times: to the nanosecond where tar is GNU's and
 * the tree goes in, else to the second. So do links that stay inside. Holes of files stay holes where
 * tar is GNU's. Devices, fifos, sockets, and links that lead out are told, and
 * the rest goes on. Owners do not go along.
 *
 * Hard links become copies. In a stream out of a session one link can stand for as much as a file has: all
 * of them together add at most as many bytes as files of the stream had so far, and CM_TREE_LINKED_MORE;
 * holes do not count. They name what the same stream made before, among the first CM_TREE_MADE_MAX of
 * its files, and never what was in the directory already. Others are told, and the rest goes on.
 *
 * A sandbox whose tar is busybox's, and whose user is not root, gets no files into directories that are
 * read-only.
 */
#ifndef CM_PROVIDERS_REMOTE_TREE_H
#define CM_PROVIDERS_REMOTE_TREE_H

#include "isolation/keeper/file_recv.h"
#include "providers/provider.h"

#define CM_TREE_LINKED_MORE (64ULL * 1024 * 1024)
#define CM_TREE_MADE_MAX 1000000U

/*
 * `path` of the session to where `to` was initialised for; its `failed` is told what does not come. The
 * caller closes it. Names are those of the session: the top's is `to`'s own.
 *
 * CM_OK: the stream is whole; to->has_failed says whether all of it was made. CM_E_NOT_FOUND, CM_E_DENIED
 * (path), CM_E_LIMIT (this host's disk), CM_E_UNSUPPORTED (no tar), CM_E_PROTOCOL (no tar stream, or one
 * that is not of this path), CM_E_SYS (tar could not read all, after the rest was copied), and those of
 * commands.
 */
int cm_tree_get(struct cm_session *s, const char *path, struct cm_file_receiver *to,
		const struct cm_call *call, struct cm_error *err);

struct cm_tree_source {
	/* what is copied on this side: dirfd/name, "." for dirfd itself */
	int dirfd;
	const char *name;
	/* what that is called where something fails */
	const char *path;
	/* links that lead out, too */
	bool keeps_links;
	/* Something is not sent, and the rest is; error is 0 for what is left out on purpose. -errno to
	 * give up. */
	int (*failed)(void *data, enum cm_file_step step, int error, const char *path);
	void *data;
};

struct cm_tree_sent {
	bool has_failed;
	uint64_t n_entries;
	uint64_t n_bytes;
	uint64_t n_stripped;
};

/*
 * Into the directory to_dir of the session, as to_name; "": what is in the directory on this side, and
 * not itself. Where the provider has no standard input the stream is a file in the session's /tmp for a
 * while. ret is filled whatever is returned.
 */
int cm_tree_put(struct cm_session *s, const struct cm_tree_source *source, const char *to_dir,
		const char *to_name, const struct cm_call *call, struct cm_tree_sent *ret,
		struct cm_error *err);

#endif
