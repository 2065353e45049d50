/* SPDX-License-Identifier: Apache-2.0 */
#include "isolation/checkout/names.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "casemate/error.h"
#include "runtime/base/fd.h"
#include "runtime/base/text.h"

/* as resolve.c has them */
#define ID_MIN 4
#define SHA1_LEN 40
#define SHA256_LEN 64
/* Both git and libgit2 look at each of the server's refs for each name that is asked for. */
#define CHOSEN_MAX 1000

static bool is_head(const char *ref)
{
	return !ref || strcmp(ref, "HEAD") == 0 || strcmp(ref, "@") == 0;
}

static bool is_id(const char *ref)
{
	size_t len = strlen(ref);

	return len >= ID_MIN && len <= SHA256_LEN && strspn(ref, "0123456789abcdefABCDEF") == len;
}

/* A name cannot mean it, whatever there is. */
static bool is_whole_id(const char *ref)
{
	return is_id(ref) && (strlen(ref) == SHA1_LEN || strlen(ref) == SHA256_LEN);
}

static bool is_branch_or_tag(const char *name)
{
	return cm_text_has_prefix(name, "refs/heads/") || cm_text_has_prefix(name, "refs/tags/");
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort(struct cm_strv *sv)
{
	if (sv->n > 1)
		qsort(sv->v, sv->n, sizeof(*sv->v), compare);
}

static bool has_sorted(const struct cm_strv *sv, const char *name)
{
	return sv->n > 0 && bsearch(&name, sv->v, sv->n, sizeof(*sv->v), compare);
}

int cm_names_init(struct cm_names *names, const char *ref, const char *branch)
{
	static const char *const prefixes[] = { "refs/tags/", "refs/heads/", "refs/", "" };
	int r = CM_OK;

	names->ref = is_head(ref) ? NULL : ref;
	if (branch)
		r = cm_strv_addf(&names->wanted, "refs/heads/%s", branch);
	for (size_t i = 0; i < CM_ARRAY_SIZE(prefixes) && names->ref && !is_whole_id(ref); i++) {
		if (r == CM_OK)
			r = cm_strv_addf(&names->candidates, "%s%s", prefixes[i], ref);
	}
	return r;
}

int cm_names_want(struct cm_names *names, const char *name)
{
	return cm_strv_add(&names->wanted, name);
}

int cm_names_had(struct cm_names *names, const char *name)
{
	return is_branch_or_tag(name) ? cm_strv_add(&names->had, name) : CM_OK;
}

static int choose(struct cm_names *names, const char *name)
{
	/* a tag is offered twice, one after the other */
	if (names->chosen.n > 0 && strcmp(names->chosen.v[names->chosen.n - 1], name) == 0)
		return CM_OK;
	return cm_strv_add(&names->chosen, name);
}

int cm_names_offer(struct cm_names *names, const char *offered, const char *id)
{
	static const char peeled[] = "^{}";
	size_t len = strlen(offered);
	bool is_peeled =
		len > strlen(peeled) && strcmp(offered + len - strlen(peeled), peeled) == 0;
	CM_AUTO_FREE char *name =
		cm_asprintf("%.*s", (int)(is_peeled ? len - strlen(peeled) : len), offered);
	bool is_ref;
	bool is_its_id;

	if (!name)
		return CM_E_NOMEM;
	if (!names->is_had_sorted)
		sort(&names->had);
	names->is_had_sorted = true;
	is_ref = cm_strv_has(&names->candidates, name);
	is_its_id = names->ref && is_id(names->ref) && is_branch_or_tag(name) &&
		    strncasecmp(names->ref, id, strlen(names->ref)) == 0;
	names->has_ref = names->has_ref || is_ref || is_its_id;
	if (!is_branch_or_tag(name) || !(is_ref || is_its_id || cm_strv_has(&names->wanted, name) ||
					 has_sorted(&names->had, name)))
		return CM_OK;
	return choose(names, name);
}

void cm_names_end(struct cm_names *names)
{
	sort(&names->chosen);
	/* a commit somewhere in a history, or a name that is missed with the nearest ones */
	names->is_all = (names->ref && !names->has_ref) || names->chosen.n > CHOSEN_MAX;
}

bool cm_names_has(const struct cm_names *names, const char *name)
{
	return names->is_all ? is_branch_or_tag(name) : has_sorted(&names->chosen, name);
}

void cm_names_clear(struct cm_names *names)
{
	cm_strv_clear(&names->candidates);
	cm_strv_clear(&names->wanted);
	cm_strv_clear(&names->had);
	cm_strv_clear(&names->chosen);
	*names = (struct cm_names){ 0 };
}
