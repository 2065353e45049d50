/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to start a command: numbers of arguments and variables (two bytes each), flags (one),
 * and the blob.  What is taken is terminated, and its texts are those of the blob.
 */
#include <stdlib.h>
#include <string.h>

#include "isolation/keeper/image.h"
#include "tests/fuzz/fuzz.h"

/* The texts, each with its NUL, are the blob from `at` on; what follows them is returned. */
static const char *check_vector(char *const *v, uint32_t n, const char *at, const char *end)
{
	for (uint32_t i = 0; i < n; i++) {
		size_t len_with_nul;

		require(v[i] != NULL);
		len_with_nul = strlen(v[i]) + 1;
		require(len_with_nul <= (size_t)(end - at) && memcmp(v[i], at, len_with_nul) == 0);
		at += len_with_nul;
	}
	require(v[n] == NULL);
	return at;
}

static void check(const struct cm_exec_image *image, const struct cm_rec_exec *exec,
		  const char *blob, size_t len)
{
	const char *end = blob + len;
	const char *at = blob + strlen(image->cwd) + 1;
	size_t name_len = strlen(image->argv[0]);
	size_t n = 0;

	require(at <= end && memcmp(blob, image->cwd, strlen(image->cwd) + 1) == 0);
	at = check_vector(image->argv, exec->n_args, at, end);
	at = check_vector(image->env, exec->n_env, at, end);
	require(at == end);
	for (; image->paths[n]; n++) {
		size_t path_len = strlen(image->paths[n]);

		require(path_len >= name_len &&
			strcmp(image->paths[n] + path_len - name_len, image->argv[0]) == 0);
	}
	require(n > 0);
	/* the free slot */
	image->argv[-1] = NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_exec_image image = { 0 };
	struct cm_image_memory memory[CM_IMAGE_MEMORIES] = { { NULL, 0 } };
	struct cm_msg msg;
	struct cm_rec_exec *exec = &msg.rec.body.exec;
	int r;

	if (size < 5)
		return 0;
	cm_msg_init(&msg);
	exec->n_args = data[0] | (uint32_t)data[1] << 8;
	exec->n_env = data[2] | (uint32_t)data[3] << 8;
	exec->flags = data[4];
	msg.rec.len = (uint32_t)size - 5;
	msg.blob = malloc(size - 4);
	require(msg.blob != NULL);
	memcpy(msg.blob, data + 5, size - 5);
	msg.blob[size - 5] = '\0';
	r = cm_image_parse(&msg, &image, memory, &err);
	if (r == CM_OK)
		check(&image, exec, msg.blob, msg.rec.len);
	else
		require(r == CM_E_PROTOCOL && !image.argv);
	for (size_t i = 0; i < CM_IMAGE_MEMORIES; i++)
		free(memory[i].at);
	cm_msg_clear(&msg);
	return 0;
}
