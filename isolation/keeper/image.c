/* SPDX-License-Identifier: Apache-2.0 */
/* The blob of an EXEC record as arguments, environment, directory and candidate paths. */
#include "isolation/keeper/image.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/alloc.h"
#include "runtime/base/buf.h"

/* of a usual command and environment */
#define KEPT_MAX (32U * 1024)
#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

static int malformed(struct cm_error *err)
{
	return cm_error_set(err, CM_E_PROTOCOL, 0, "malformed request to start a command");
}

static void give_back(struct cm_image_memory *memory)
{
	free(memory->at);
	*memory = (struct cm_image_memory){ NULL, 0 };
}

/* At least size bytes, of any content; NULL: there are none. */
static void *make_room(struct cm_image_memory *memory, size_t size)
{
	if (size <= memory->size)
		return memory->at;
	give_back(memory);
	memory->at = cm_malloc(size);
	memory->size = memory->at ? size : 0;
	return memory->at;
}

void cm_image_settle(struct cm_image_memory memory[CM_IMAGE_MEMORIES])
{
	for (size_t i = 0; i < CM_IMAGE_MEMORIES; i++) {
		if (memory[i].at)
			explicit_bzero(memory[i].at, memory[i].size);
		if (memory[i].size > KEPT_MAX)
			give_back(&memory[i]);
	}
}

static const char *path_of(char *const *env)
{
	for (; *env; env++) {
		if (strncmp(*env, "PATH=", 5) == 0)
			return *env + 5;
	}
	return DEFAULT_PATH;
}

static size_t count_dirs(const char *path)
{
	size_t n = 1;

	for (; *path; path++)
		n += *path == ':';
	return n;
}

/* Vector of candidates and their texts in one block; an empty entry is the current directory. */
static char **make_paths(const char *name, const char *path, struct cm_image_memory *memory)
{
	size_t n = count_dirs(path);
	size_t name_len = strlen(name);
	char **v = make_room(memory, (n + 1) * sizeof(*v) + strlen(path) + n * (name_len + 3));
	char *text;

	if (!v)
		return NULL;
	text = (char *)(v + n + 1);
	for (size_t i = 0; i < n; i++) {
		size_t len = strcspn(path, ":");

		v[i] = text;
		memcpy(text, path, len);
		text += len;
		if (len == 0)
			*text++ = '.';
		*text++ = '/';
		memcpy(text, name, name_len + 1);
		text += name_len + 1;
		path += len + 1;
	}
	v[n] = NULL;
	return v;
}

static char **make_single_path(char *name, struct cm_image_memory *memory)
{
	char **v = make_room(memory, 2 * sizeof(*v));

	if (!v)
		return NULL;
	v[0] = name;
	v[1] = NULL;
	return v;
}

/*
 * A name that no file can have, and a PATH that makes execve fail whatever the program is (each
 * string may have 32 pages), are not multiplied with each other: it would be terabytes.
 */
static bool is_searched(const struct cm_rec_exec *exec, const char *name, const char *path)
{
	return (exec->flags & CM_EXECF_SEARCH_PATH) != 0 && *name != '\0' && !strchr(name, '/') &&
	       strlen(name) <= NAME_MAX && strlen(path) < 32 * (size_t)sysconf(_SC_PAGESIZE);
}

/* cwd, n_args, n_env strings; the blob must end with the last one's NUL. */
static int split(char *blob, size_t len, const struct cm_rec_exec *exec, char **v,
		 const char **ret_cwd)
{
	char *end = blob + len;
	char *p = blob;
	uint32_t total = exec->n_args + exec->n_env + 1;
	char **next = v + 1;

	for (uint32_t i = 0; i < total; i++) {
		size_t n;

		if (p >= end)
			return CM_E_PROTOCOL;
		n = strnlen(p, (size_t)(end - p));
		if (p + n == end)
			return CM_E_PROTOCOL;
		if (i == 0) {
			*ret_cwd = p;
		} else {
			*next++ = p;
			if (i == exec->n_args)
				*next++ = NULL;
		}
		p += n + 1;
	}
	*next = NULL;
	return p == end ? CM_OK : CM_E_PROTOCOL;
}

int cm_image_parse(struct cm_msg *msg, struct cm_exec_image *image,
		   struct cm_image_memory memory[CM_IMAGE_MEMORIES], struct cm_error *err)
{
	const struct cm_rec_exec *exec = &msg->rec.body.exec;
	const char *cwd = NULL;
	char **argv;
	char **env;
	char **paths;
	char **v;

	if (exec->n_args == 0 || exec->n_args > CM_PROTO_MAX_ARGS ||
	    exec->n_env > CM_PROTO_MAX_ARGS || msg->rec.len == 0)
		return malformed(err);
	/* a free slot in front, two terminators */
	v = make_room(&memory[0],
		      ((size_t)exec->n_args + exec->n_env + 3) * sizeof(*v) + msg->rec.len + 1);
	if (!v)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the command");
	memcpy(v + exec->n_args + exec->n_env + 3, msg->blob, (size_t)msg->rec.len + 1);
	if (split((char *)(v + exec->n_args + exec->n_env + 3), msg->rec.len, exec, v, &cwd) < 0 ||
	    !v[1])
		return malformed(err);
	argv = v + 1;
	env = argv + exec->n_args + 1;
	if (is_searched(exec, argv[0], path_of(env)))
		paths = make_paths(argv[0], path_of(env), &memory[1]);
	else
		paths = make_single_path(argv[0], &memory[1]);
	if (!paths)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the command");
	image->cwd = cwd;
	image->argv = argv;
	image->env = env;
	image->paths = paths;
	return CM_OK;
}
