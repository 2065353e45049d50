/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of things: checkout, setup; and around both of them the session's network, which it gets back
 * whatever becomes of them, and this host's record of what was done.
 */
#include "providers/remote/prepare.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/remote/prepare_internal.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"

#define NOTE_MAX 512
/* for the network to be taken away again after a call that is over */
#define RESTORE_MS 30000

void cm_prep_note(const struct cm_prep *p, const char *fmt, ...)
{
	const struct cm_provider_config *config = &p->session->provider->config;
	char text[NOTE_MAX];
	va_list ap;

	if (!config->note)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	config->note(config->data, text);
}

void cm_prep_phase(const struct cm_prep *p, const char *name, int64_t since_us)
{
	const struct cm_provider_config *config = &p->session->provider->config;

	if (config->phase)
		config->phase(config->data, name, (uint64_t)(cm_clock_mono_us() - since_us));
}

int cm_prep_output(void *data, const void *bytes, size_t len)
{
	const struct cm_prep *p = data;

	if (p->prepare->output)
		p->prepare->output(p->prepare->data, bytes, len);
	return 0;
}

/* --- network --------------------------------------------------------------------------------- */

int cm_prep_network(struct cm_prep *p, enum cm_network network, struct cm_error *err)
{
	int r;

	if (network == p->network)
		return CM_OK;
	r = cm_session_network(p->session, network, p->call, err);
	if (r == CM_OK)
		p->network = network;
	else if (r == CM_E_UNSUPPORTED && err && !err->hint[0])
		cm_error_hint(err, "begin the session with --network internet");
	return r;
}

/* r is kept, unless the session would go on with more than it was to have. */
static int restore_network(struct cm_prep *p, int r, struct cm_error *err)
{
	const struct cm_call call = { .deadline_ms = cm_clock_mono_ms() + RESTORE_MS,
				      .cancel_fd = -1 };
	struct cm_error why = CM_ERROR_INIT;

	if (p->network == p->spec->network)
		return r;
	if (cm_session_network(p->session, p->spec->network, &call, &why) == CM_OK) {
		p->network = p->spec->network;
		return r;
	}
	(void)cm_error_set(err, CM_E_ISOLATION, 0,
			   "the session still has the network of its setup: %.300s", why.msg);
	cm_error_hint(err, "'casemate rm %s': it has more than it was to have", p->session->id);
	return CM_E_ISOLATION;
}

/* --- record ---------------------------------------------------------------------------------- */

static void forget(struct cm_record *record)
{
	static const char *const keys[] = { CM_RECORD_CHECKOUT,	   CM_RECORD_REPO,
					    CM_RECORD_BRANCH,	   CM_RECORD_SETUP_DIGEST,
					    CM_RECORD_SETUP_STATE, CM_RECORD_SETUP_EXIT };

	for (size_t i = 0; i < CM_ARRAY_SIZE(keys); i++)
		(void)cm_record_set(record, keys[i], NULL, NULL);
}

/* Without it, all of it is looked for in the sandbox: it is no failure that there is none. */
int cm_prep_open_record(struct cm_prep *p, struct cm_error *err)
{
	int r;

	/* one that is temporary is prepared once */
	if (!p->spec->session_id ||
	    cm_records_open(p->config, p->session->provider->ops->name, &p->records, NULL) < 0)
		return CM_OK;
	p->has_records = true;
	r = cm_record_read(&p->records, p->session->id, &p->record, err);
	if (r == CM_E_NOMEM)
		return r;
	cm_error_clear(err);
	/* another sandbox by the same name */
	if (p->session->is_new)
		forget(&p->record);
	return CM_OK;
}

static void save_record(struct cm_prep *p)
{
	struct cm_error err = CM_ERROR_INIT;

	if (p->has_records && cm_record_write(&p->records, p->session->id, &p->record, &err) < 0)
		cm_prep_note(p, "%.400s", err.msg);
}

/* --- checkout -------------------------------------------------------------------------------- */

/* What an earlier one made, and nothing else was asked for. */
static bool is_recorded(const struct cm_prep *p)
{
	const char *repo = cm_record_get(&p->record, CM_RECORD_REPO);
	const char *place = cm_record_get(&p->record, CM_RECORD_CHECKOUT);
	const char *branch = cm_record_get(&p->record, CM_RECORD_BRANCH);

	if (p->spec->branch && (!branch || strcmp(branch, p->spec->branch) != 0))
		return false;
	return repo && place && place[0] == '/' && cm_prep_same_repository(&p->url, repo);
}

int cm_prep_take_recorded(struct cm_prep *p, struct cm_error *err)
{
	const char *place = cm_record_get(&p->record, CM_RECORD_CHECKOUT);

	if (!place || place[0] != '/')
		return CM_OK;
	p->checkout = cm_strdup(place);
	return p->checkout ? CM_OK : cm_error_set(err, CM_E_NOMEM, 0, "no memory for the checkout");
}

static int checkout(struct cm_prep *p, struct cm_error *err)
{
	int64_t since = cm_clock_mono_us();
	int r;

	if (!p->spec->repo || is_recorded(p))
		return cm_prep_take_recorded(p, err);
	r = cm_prep_checkout(p, err);
	cm_prep_phase(p, "checkout", since);
	if (r == CM_OK)
		r = cm_record_set(&p->record, CM_RECORD_REPO, p->url.text, err);
	if (r == CM_OK)
		r = cm_record_set(&p->record, CM_RECORD_CHECKOUT, p->checkout, err);
	if (r == CM_OK)
		r = cm_record_set(&p->record, CM_RECORD_WORKDIR, p->workdir, err);
	if (r == CM_OK && p->spec->branch)
		r = cm_record_set(&p->record, CM_RECORD_BRANCH, p->spec->branch, err);
	return r;
}

static int parse_repository(struct cm_prep *p, struct cm_error *err)
{
	int r;

	if (!p->spec->repo)
		return CM_OK;
	r = cm_giturl_parse(p->spec->repo, &p->url, err);
	if (r < 0)
		return r;
	p->name = cm_giturl_name(&p->url);
	if (!p->name)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the checkout");
	return cm_prep_check_repository(p, err);
}

void cm_prep_clear(struct cm_prep *p)
{
	if (p->has_records)
		cm_records_close(&p->records);
	cm_record_clear(&p->record);
	cm_giturl_clear(&p->url);
	free(p->name);
	free(p->workdir);
	free(p->origin);
	free(p->branch);
	free(p->marker);
	free(p->failed_marker);
	free(p->checkout);
}

struct cm_prep cm_prep_make(struct cm_session *s, const struct cm_prepare *prepare,
			    const struct cm_call *call)
{
	return (struct cm_prep){
		.session = s,
		.prepare = prepare,
		.spec = prepare->spec,
		.config = prepare->config,
		.call = call,
		.network = prepare->spec->network,
		.records = CM_RECORDS_INIT,
	};
}

static bool has_work(const struct cm_spec *spec)
{
	return spec->repo || spec->setup.n > 0 || spec->teardown.n > 0;
}

int cm_prepare_session(struct cm_session *s, const struct cm_prepare *prepare,
		       const struct cm_call *call, char **ret_cwd, struct cm_error *err)
{
	struct cm_prep p = cm_prep_make(s, prepare, call);
	CM_AUTO_FD int lock = -1;
	int r = parse_repository(&p, err);

	if (r == CM_OK)
		r = cm_prep_open_record(&p, err);
	/* two clients at once make one checkout: the other one finds it then */
	if (r == CM_OK && p.has_records && has_work(prepare->spec)) {
		r = cm_record_lock(&p.records, s->id, call, &lock, err);
		if (r == CM_OK) {
			cm_record_clear(&p.record);
			cm_records_close(&p.records);
			r = cm_prep_open_record(&p, err);
		}
	}
	if (r == CM_OK)
		r = checkout(&p, err);
	if (r == CM_OK)
		r = cm_prep_keep_teardown(&p, err);
	if (r == CM_OK)
		r = cm_prep_setup(&p, err);
	r = restore_network(&p, r, err);
	if (lock >= 0)
		save_record(&p);
	if (p.has_records)
		cm_record_unlock(&p.records, s->id, &lock);
	if (r == CM_OK)
		*ret_cwd = cm_ptr_take(&p.checkout);
	cm_prep_clear(&p);
	return r;
}

void cm_prepare_forget(const struct cm_config *config, const struct cm_session *s)
{
	struct cm_records records = CM_RECORDS_INIT;

	if (cm_records_open(config, s->provider->ops->name, &records, NULL) < 0)
		return;
	(void)cm_record_remove(&records, s->id, NULL);
	cm_records_close(&records);
}
