/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of things: checkout, setup; and around both of them the session's network, which it gets back
 * whatever becomes of them.
 */
#include "providers/remote/prepare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "providers/remote/prepare_internal.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/spec/keys.h"

/* for the network to be taken away again after a call that is over */
#define RESTORE_MS 30000

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

	if (p->network == p->own_network)
		return r;
	if (cm_session_network(p->session, p->own_network, &call, &why) == CM_OK) {
		p->network = p->own_network;
		return r;
	}
	(void)cm_error_set(err, CM_E_ISOLATION, 0,
			   "the session still has the network of its setup: %.300s", why.msg);
	cm_error_hint(err, "'casemate rm --files --force %s': it has more than it was to have",
		      p->session->id);
	return CM_E_ISOLATION;
}

/* --- checkout -------------------------------------------------------------------------------- */

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

	if (!p->spec->repo || cm_prep_is_recorded(p))
		return cm_prep_take_recorded(p, err);
	r = cm_prep_checkout(p, err);
	cm_provider_phase(p->session->provider, "checkout", since);
	return r == CM_OK ? cm_prep_remember_checkout(p, err) : r;
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
		.own_network = prepare->spec->network,
		.records = CM_RECORDS_INIT,
	};
}

/* One that was there keeps the network that it has, unless another one is asked for. */
static int find_network(struct cm_prep *p, struct cm_error *err)
{
	struct cm_session_info info = { 0 };
	int r;

	if (p->session->is_new || !cm_prep_can_switch(p->session->provider) ||
	    cm_key_is_asked(CM_KEY_NETWORK, p->spec))
		return CM_OK;
	r = cm_session_info(p->session, p->call, &info, err);
	if (r == CM_E_UNSUPPORTED) {
		cm_error_clear(err);
		return CM_OK;
	}
	if (r == CM_OK && info.network != 0)
		p->network = p->own_network = info.network;
	cm_session_info_clear(&info);
	return r;
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
	if (r == CM_OK && p.has_records && (has_work(prepare->spec) || p.has_forgotten)) {
		r = cm_record_lock(&p.records, s->id, call, &lock, err);
		if (r == CM_OK) {
			cm_record_clear(&p.record);
			cm_records_close(&p.records);
			r = cm_prep_open_record(&p, err);
		}
	}
	if (r == CM_OK)
		r = cm_prep_check_record(&p, err);
	if (r == CM_OK && has_work(prepare->spec))
		r = find_network(&p, err);
	if (r == CM_OK)
		r = checkout(&p, err);
	if (r == CM_OK)
		r = cm_prep_keep_teardown(&p, err);
	if (r == CM_OK)
		r = cm_prep_setup(&p, err);
	r = restore_network(&p, r, err);
	if (lock >= 0)
		cm_prep_save_record(&p);
	if (p.has_records)
		cm_record_unlock(&p.records, s->id, &lock);
	if (r == CM_OK)
		*ret_cwd = cm_ptr_take(&p.checkout);
	cm_prep_clear(&p);
	return r;
}
