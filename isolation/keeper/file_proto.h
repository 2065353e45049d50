/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File operations: execs whose program is built in (CM_EXECF_BUILTIN). What their arguments are, and
 * what goes through their stdin and stdout: frames, native endian, one build on both sides. A frame
 * is a struct cm_file_frame, then frame.len bytes.
 *
 * Arguments: "file", the operation, options, paths. Options are five hexadecimal numbers, separated
 * by colons: CM_FILE_VERSION, flags (CM_FILEF_*), mode, offset, length. An operation or a version that
 * is not known is answered by ERROR. Relative paths are below the working directory.
 *
 *   read PATH             > [ENTRY content END] DONE           of what PATH leads to
 *   write PATH            < content END DONE  > DONE(bytes)
 *   ls PATH...            > ENTRY... DONE                      names as they were given, or below that
 *   stat PATH...          > ENTRY... DONE
 *   mkdir, rm PATH...     > DONE
 *   mv FROM TO            > DONE
 *   get PATH              > tree DONE                          of PATH itself, if it is a link
 *   put PATH NAME         < tree DONE  > DONE(entries)         at PATH, or as NAME in the directory PATH
 *   watch PATH            > EVENT...                           until the end of stdin
 *
 *   content = (DATA | HOLE)...
 *   tree    = ENTRY(file) content END | ENTRY(directory) tree... LEAVE | ENTRY(link)
 *
 * Below the top of a tree a name is a single component. ERROR may come between any two frames out:
 * with CM_FRAMEF_GOES_ON the rest follows, else nothing but the end does.
 *
 * Who reads what comes out believes nothing of it: who is in the jail may have written it.
 */
#ifndef CM_ISOLATION_KEEPER_FILE_PROTO_H
#define CM_ISOLATION_KEEPER_FILE_PROTO_H

#include <stdint.h>

#define CM_FILE_VERSION 1U
/* of one DATA */
#define CM_FILE_DATA_MAX (128U * 1024)
/* PATH_MAX without the NUL */
#define CM_FILE_PATH_MAX 4095U
/* Directories in each other that a tree may have: one descriptor each, on both sides. */
#define CM_FILE_DEPTH_MAX 256U

/* write: behind what is there */
#define CM_FILEF_APPEND (1U << 0)
/* write: a new file beside it, synced, in its place at the end */
#define CM_FILEF_ATOMIC (1U << 1)
/* write, mkdir: options have a mode */
#define CM_FILEF_MODE (1U << 2)
/* mkdir, write: with the directories above; one that is there is no error */
#define CM_FILEF_PARENTS (1U << 3)
/* rm, ls: with what is below */
#define CM_FILEF_RECURSIVE (1U << 4)
/* rm: what is not there is no error */
#define CM_FILEF_FORCE (1U << 5)
/* mv: refused where something is */
#define CM_FILEF_NO_CLOBBER (1U << 6)
/* stat: of what a link leads to */
#define CM_FILEF_FOLLOW (1U << 7)
/* put: what is in the directory and not itself; PATH has to be one */
#define CM_FILEF_CONTENTS (1U << 8)
/* read: options have a length */
#define CM_FILEF_LENGTH (1U << 9)
/* ls: directories themselves */
#define CM_FILEF_ITSELF (1U << 10)

/* The bits of a mode that are passed on: no set-id bits, and not the sticky one. */
#define CM_FILE_MODE_MASK 0777U

enum cm_file_frame_type {
	CM_FRAME_ENTRY = 1,
	CM_FRAME_DATA,
	/* value bytes that are zero and take no room */
	CM_FRAME_HOLE,
	/* of a file. With CM_FRAMEF_FAILED the rest of it could not be read: it is not to be kept. */
	CM_FRAME_END,
	/* the end of a directory */
	CM_FRAME_LEAVE,
	CM_FRAME_DONE,
	CM_FRAME_ERROR,
	CM_FRAME_EVENT,
};

#define CM_FRAMEF_FAILED (1U << 0)
#define CM_FRAMEF_GOES_ON (1U << 1)

struct cm_file_frame {
	uint16_t type;
	uint16_t flags;
	uint32_t len;
	/* HOLE: how many; DONE: bytes or entries; ERROR: bytes that were written before */
	uint64_t value;
};
_Static_assert(sizeof(struct cm_file_frame) == 16, "a frame's header has 16 bytes");

/* Then the name, and the target of a link; neither has a NUL. */
struct cm_file_entry {
	/* as st_mode has it */
	uint32_t mode;
	/* as the jail sees them */
	uint32_t uid;
	uint32_t gid;
	uint32_t n_links;
	uint64_t size;
	uint64_t allocated;
	int64_t mtime_sec;
	uint32_t mtime_nsec;
	uint32_t name_len;
	uint32_t target_len;
	uint32_t reserved_;
	/* which directory it is, on either side: what is copied into itself has no end */
	uint64_t device;
	uint64_t inode;
};
_Static_assert(sizeof(struct cm_file_entry) == 72, "an entry has 72 bytes");

/* What could not be done: after "cannot ". */
enum cm_file_step {
	CM_FILE_STEP_REQUEST = 1,
	CM_FILE_STEP_OPEN,
	CM_FILE_STEP_READ,
	CM_FILE_STEP_WRITE,
	CM_FILE_STEP_CREATE,
	CM_FILE_STEP_MKDIR,
	CM_FILE_STEP_REMOVE,
	CM_FILE_STEP_RENAME,
	CM_FILE_STEP_STAT,
	CM_FILE_STEP_LIST,
	CM_FILE_STEP_LINK,
	CM_FILE_STEP_ATTRIBUTES,
	CM_FILE_STEP_SYNC,
	CM_FILE_STEP_WATCH,
	/* what is there is no file, directory or link */
	CM_FILE_STEP_SPECIAL,
	/* the link leads out of what is copied */
	CM_FILE_STEP_LEADS_OUT,
	/* nested deeper than CM_FILE_DEPTH_MAX */
	CM_FILE_STEP_DEPTH,
	/* it is what the tree is copied to */
	CM_FILE_STEP_ITSELF,
	/* the stream is not what it should be */
	CM_FILE_STEP_STREAM,
	CM_FILE_STEP_COUNT_,
};

/* Then the path. */
struct cm_file_error {
	int32_t error;
	uint32_t step;
	uint32_t path_len;
	uint32_t reserved_;
};
_Static_assert(sizeof(struct cm_file_error) == 16, "an error has 16 bytes");

enum cm_file_event_kind {
	/* the watch stands: what happens from now on is told */
	CM_FILE_EVENT_READY = 1,
	CM_FILE_EVENT_CREATED,
	/* its content was written to */
	CM_FILE_EVENT_MODIFIED,
	/* who had it open for writing has closed it */
	CM_FILE_EVENT_CLOSED,
	CM_FILE_EVENT_ATTRIBUTES,
	CM_FILE_EVENT_REMOVED,
	/* both names are below what is watched */
	CM_FILE_EVENT_RENAMED,
	/* events were lost; what is there follows as FOUND, and then READY */
	CM_FILE_EVENT_OVERFLOW,
	CM_FILE_EVENT_FOUND,
	/* what is watched is not there any more: the last one */
	CM_FILE_EVENT_GONE,
	CM_FILE_EVENT_COUNT_,
};

#define CM_FILE_EVENTF_DIRECTORY (1U << 0)

/* Then the path below what is watched (empty: that), and for RENAMED the one that it had before. */
struct cm_file_event {
	uint32_t kind;
	/* CM_FILE_EVENTF_* */
	uint32_t flags;
	uint32_t path_len;
	uint32_t from_len;
};
_Static_assert(sizeof(struct cm_file_event) == 16, "an event has 16 bytes");

#endif
