/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command lines of any words (separated by NUL, or by newlines in the corpus): no crash, errors
 * are whole, and what follows the options reaches the command as it was.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/spec/merge.h"
#include "runtime/spec/spec_flags.h"
#include "tests/fuzz/fuzz.h"

#define MAX_WORDS 256

static int split(char *text, size_t size, char **words)
{
	int n = 0;
	size_t start = 0;

	for (size_t i = 0; i <= size && n < MAX_WORDS; i++) {
		if (i < size && text[i] != '\n' && text[i] != '\0')
			continue;
		text[i] = '\0';
		words[n++] = text + start;
		start = i + 1;
	}
	return n;
}

/* The command is a tail of the words: the very same text, to the last one. */
static void check_tail(const struct cm_layer *layer, int n, char *const *words)
{
	require(layer->argv.n <= (size_t)n);
	for (size_t i = 0; i < layer->argv.n; i++)
		require(strcmp(layer->argv.v[i], words[(size_t)n - layer->argv.n + i]) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct cm_strv no_env;
	static const struct cm_caller nobody = { .cwd = "/", .home = "/h", .env = &no_env };
	struct cm_error err = CM_ERROR_INIT;
	struct cm_layer layer = { 0 };
	struct cm_origins origins = { 0 };
	struct cm_spec spec;
	struct cm_merge m = { .spec = &spec, .origins = &origins, .caller = &nobody };
	char *words[MAX_WORDS];
	char *text = malloc(size + 1);
	int n;
	int r;

	require(text != NULL);
	if (size > 0)
		memcpy(text, data, size);
	n = split(text, size, words);
	cm_spec_init(&spec);
	r = cm_flags_parse(n, words, &layer, &err);
	if (r == CM_OK) {
		check_tail(&layer, n, words);
		r = cm_merge_layer(&m, &layer, &err);
	}
	if (r == CM_OK)
		r = cm_merge_check(&m, &err);
	if (r == CM_OK)
		cm_merge_finish(&m);
	else
		require(r < 0 && r == err.code && err.msg[0] != '\0');
	(void)cm_flags_failure_exit(n, words);
	(void)cm_flags_wants_help(n, words);
	cm_layer_clear(&layer);
	cm_origins_clear(&origins);
	cm_merge_clear(&m);
	cm_spec_clear(&spec);
	free(text);
	return 0;
}
