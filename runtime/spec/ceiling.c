/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ceilings: a layer that can only tighten a spec.
 *
 * The layer is first read onto a spec of its own; then each key that it names is compared with
 * the real one and the tighter value holds.  What is tighter is said here, a function a kind.
 */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/fd.h"
#include "runtime/spec/cpuset.h"
#include "runtime/spec/format.h"
#include "runtime/spec/merge.h"

struct tighten {
	struct cm_spec *spec;
	struct cm_spec *ceiling;
	const struct cm_key_info *info;
	/* the ceiling is a repository's own */
	bool is_repository;
	/* what the comparison found */
	bool is_changed;
	bool is_looser;
};

/* The others Casemate keeps itself, wherever it runs. */
static bool needs_host(enum cm_key key)
{
	return key == CM_KEY_MEMORY || key == CM_KEY_SWAP || key == CM_KEY_CPUS ||
	       key == CM_KEY_PIDS_LIMIT || key == CM_KEY_OPEN_FILES;
}

static bool is_demanded(const struct cm_limit *limit)
{
	return limit->is_set && !limit->is_optional && limit->value != CM_UNLIMITED;
}

/*
 * A repository cannot know what its users' hosts enforce, and a limit that stops every start there
 * limits nothing. So what is its own holds where it can be enforced; where not, the start says so.
 * What the caller or the administrator has named stays as they have it: enforced, or refused.
 */
static void advise_limit(struct tighten *t, struct cm_limit *have, const struct cm_limit *most)
{
	t->is_looser = most->value > have->value;
	if (t->is_looser)
		return;
	t->is_changed = most->value < have->value;
	have->value = most->value;
	have->is_optional = true;
	have->is_advised = true;
	have->is_set = true;
}

static int tighten_limit(struct tighten *t, struct cm_error *err)
{
	struct cm_limit *have = cm_key_field(t->info, t->spec);
	const struct cm_limit *most = cm_key_field_const(t->info, t->ceiling);

	(void)err;
	if (t->is_repository && needs_host(t->info->key) && !is_demanded(have)) {
		advise_limit(t, have, most);
		return CM_OK;
	}
	t->is_looser = most->value > have->value;
	if (most->value < have->value) {
		have->value = most->value;
		have->is_set = true;
		/* nor can a repository let go of what was demanded */
		have->is_optional = most->is_optional && !t->is_repository;
		t->is_changed = true;
	} else if (have->is_optional && !most->is_optional && most->value != CM_UNLIMITED) {
		/* an optional limit may go unenforced, which would be above any ceiling */
		have->is_optional = false;
		have->is_set = true;
		t->is_changed = true;
	}
	return CM_OK;
}

static int tighten_cpuset(struct tighten *t, struct cm_error *err)
{
	struct cm_limits *have = &t->spec->limits;
	const struct cm_limits *most = &t->ceiling->limits;
	/* as advise_limit has it */
	bool is_optional = most->is_cpuset_optional || t->is_repository;
	CM_AUTO_BUF struct cm_buf text = { 0 };
	struct cm_cpuset mine;
	struct cm_cpuset theirs;
	int r = cm_cpuset_parse(most->cpuset, "'cpuset'", &theirs, err);

	cm_buf_init(&text, 65536);
	if (r == CM_OK && have->cpuset)
		r = cm_cpuset_parse(have->cpuset, "--cpuset", &mine, err);
	if (r != CM_OK)
		return r;
	if (!have->cpuset)
		mine = theirs;
	else if (!cm_cpuset_intersect(&mine, &theirs))
		return cm_error_set(err, CM_E_DENIED, 0, "cpuset '%.100s' has nothing of '%.100s'",
				    have->cpuset, most->cpuset);
	cm_cpuset_format(&mine, &text);
	if (cm_buf_status(&text) != CM_OK)
		return cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	t->is_changed = !have->cpuset || strcmp(have->cpuset, text.data) != 0 ||
			(have->is_cpuset_optional && !is_optional);
	have->is_cpuset_optional = is_optional && (!have->cpuset || have->is_cpuset_optional);
	have->is_cpuset_advised = have->is_cpuset_optional && t->is_repository;
	free(have->cpuset);
	have->cpuset = cm_buf_take(&text);
	return CM_OK;
}

/* The one word of each key that is tighter than every other. */
static unsigned int tightest_word(enum cm_key key)
{
	if (key == CM_KEY_NETWORK || key == CM_KEY_SETUP_NETWORK)
		return CM_NETWORK_NONE;
	if (key == CM_KEY_USER)
		return CM_USER_USER;
	if (key == CM_KEY_GIT)
		return CM_GIT_PINNED;
	return CM_LEVEL_FULL;
}

/* Larger is looser. Of the keys here the network alone has more than two words. */
static unsigned int looseness(enum cm_key key, unsigned int word)
{
	if (word == tightest_word(key))
		return 0;
	return word == CM_NETWORK_HOST && (key == CM_KEY_NETWORK || key == CM_KEY_SETUP_NETWORK)
		       ? 2
		       : 1;
}

static int tighten_word(struct tighten *t, struct cm_error *err)
{
	unsigned int *have = cm_key_field(t->info, t->spec);
	const unsigned int *most = cm_key_field_const(t->info, t->ceiling);
	enum cm_key key = t->info->key;

	/* what setup has where nothing is said of it */
	unsigned int now =
		*have == 0 && key == CM_KEY_SETUP_NETWORK ? (unsigned int)t->spec->network : *have;

	(void)err;
	t->is_changed = looseness(key, *most) < looseness(key, now);
	t->is_looser = looseness(key, *most) > looseness(key, now);
	if (t->is_changed)
		*have = *most;
	/* setup is no way around it; 0 is the session's */
	if (key == CM_KEY_NETWORK && t->spec->setup_network != 0 &&
	    looseness(key, *most) < looseness(key, t->spec->setup_network))
		t->spec->setup_network = (enum cm_network) * most;
	return CM_OK;
}

/* Only read-only is a switch that may be in a ceiling. */
static int tighten_bool(struct tighten *t, struct cm_error *err)
{
	bool *have = cm_key_field(t->info, t->spec);
	const bool *most = cm_key_field_const(t->info, t->ceiling);

	(void)err;
	t->is_changed = *most && !*have;
	t->is_looser = !*most && *have;
	if (*most)
		*have = true;
	return CM_OK;
}

static int tighten_one(struct tighten *t, struct cm_error *err)
{
	if (cm_key_is_limit(t->info))
		return tighten_limit(t, err);
	if (t->info->kind == CM_KIND_CPUSET)
		return tighten_cpuset(t, err);
	if (t->info->kind == CM_KIND_WORD)
		return tighten_word(t, err);
	return tighten_bool(t, err);
}

static int note_looser(struct cm_merge *m, const struct tighten *t,
		       const struct cm_setting *setting)
{
	CM_AUTO_BUF struct cm_buf mine = { 0 };
	const struct cm_strv *of = m->origins ? &m->origins->of[t->info->key] : NULL;
	const char *origin = of && of->n > 0 ? of->v[0] : "built in";

	cm_buf_init(&mine, 4096);
	cm_key_format(t->info, m->spec, 0, &mine);
	return cm_strv_addf(&m->notes, "%s: '%s' cannot widen '%s' (%s) to '%s'; ignored",
			    cm_setting_origin(setting), t->info->name, mine.data ? mine.data : "",
			    origin, setting->value);
}

static int take_origin(struct cm_merge *m, const struct tighten *t,
		       const struct cm_setting *setting)
{
	struct cm_strv *of;

	if (!m->origins || !t->is_changed)
		return CM_OK;
	of = &m->origins->of[t->info->key];
	cm_strv_clear(of);
	return cm_strv_addf(of, "%s (ceiling)", cm_setting_origin(setting));
}

static int tighten_to(struct cm_merge *m, const struct cm_setting *setting, const char *base,
		      bool is_repository, struct cm_error *err)
{
	struct cm_spec ceiling;
	struct tighten t = {
		.spec = m->spec,
		.ceiling = &ceiling,
		.info = cm_key_info(setting->key),
		.is_repository = is_repository,
	};
	int r;

	cm_spec_init(&ceiling);
	r = cm_spec_apply(&ceiling, NULL, setting, base, m->caller, 0, err);
	if (r == CM_OK) {
		r = tighten_one(&t, err);
		if (r != CM_OK)
			cm_error_wrap(err, "%s", cm_setting_origin(setting));
	}
	if (r == CM_OK && is_repository && t.is_looser && note_looser(m, &t, setting) != CM_OK)
		r = cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	if (r == CM_OK && take_origin(m, &t, setting) != CM_OK)
		r = cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	cm_spec_clear(&ceiling);
	return r;
}

int cm_merge_ceiling(struct cm_merge *m, const struct cm_layer *ceiling, bool is_repository,
		     struct cm_error *err)
{
	struct cm_limits *limits = &m->spec->limits;
	bool was_swap_set = limits->swap.is_set;
	int r = CM_OK;

	for (size_t i = 0; r == CM_OK && i < ceiling->n; i++) {
		const struct cm_setting *setting = &ceiling->settings[i];
		const struct cm_key_info *info = cm_key_info(setting->key);

		if (info->flags & CM_KEYF_CEILING) {
			r = tighten_to(m, setting, ceiling->base, is_repository, err);
			continue;
		}
		/* a list has a setting an item: one note */
		if (i > 0 && ceiling->settings[i - 1].key == setting->key)
			continue;
		if (cm_strv_addf(&m->notes, "%s: a repository cannot set '%s'; ignored",
				 cm_setting_origin(setting), info->name) != CM_OK)
			r = cm_error_set(err, CM_E_NOMEM, 0, "out of memory");
	}
	/* unnamed swap is none beside a memory limit; a ceiling of 1G must not make it 1G */
	if (!was_swap_set && limits->memory.is_set)
		limits->swap.value = 0;
	return r;
}
