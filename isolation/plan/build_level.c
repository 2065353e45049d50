/* SPDX-License-Identifier: Apache-2.0 */
/* Who the agent is to the kernel, and the level of isolation that comes of it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "isolation/plan/build_internal.h"

/* Ids 0 to 65535 inside, but for the agent's, which is the caller's own: init's id and the marks
 * of the execs lie at the top, so a smaller range is of no use. */
#define SUBIDS_NEEDED (CM_ID_SLOT_SIZE - 1)
#define MAP_ARGS_SIZE 96
/* the first that keeps a jail off the host's abstract sockets, Linux 6.12 */
#define LANDLOCK_ABSTRACT_SOCKETS 6

static void format_map(char buf[MAP_ARGS_SIZE], uint32_t own, uint32_t first)
{
	(void)snprintf(buf, MAP_ARGS_SIZE, "0 %" PRIu32 " %u %u %" PRIu32 " 1 %u %" PRIu32 " %u",
		       first, CM_ID_AGENT, CM_ID_AGENT, own, CM_ID_AGENT + 1, first + CM_ID_AGENT,
		       SUBIDS_NEEDED - CM_ID_AGENT);
}

static int use_subids(struct cm_build *build, struct cm_error *err)
{
	const struct cm_host *host = build->req->host;
	const struct cm_host_subids *s = &host->subids;
	struct cm_plan_header *h = &build->b->header;
	char args[MAP_ARGS_SIZE];

	if (s->uid_count < SUBIDS_NEEDED || s->gid_count < SUBIDS_NEEDED) {
		cm_error_set(err, CM_E_LEVEL, 0,
			     "--user root needs a range of %u subordinate ids for user '%s'",
			     CM_ID_SLOT_SIZE, host->user_name);
		cm_error_hint(err,
			      "sudo usermod --add-subuids 100000-165535 --add-subgids "
			      "100000-165535 %s (take a free range), or leave --user root out",
			      host->user_name);
		return CM_E_LEVEL;
	}
	h->idmap = CM_IDMAP_SUBIDS;
	format_map(args, host->uid, s->uid_first);
	h->newuidmap_args = cm_plan_builder_str(build->b, args);
	format_map(args, host->gid, s->gid_first);
	h->newgidmap_args = cm_plan_builder_str(build->b, args);
	return CM_OK;
}

static int use_own_id(struct cm_build *build, struct cm_error *err)
{
	const struct cm_host *host = build->req->host;
	struct cm_plan_header *h = &build->b->header;

	if (host->uid == 0) {
		cm_error_set(err, CM_E_LEVEL, 0,
			     "root without the ids or capabilities to make a jail "
			     "(CAP_SYS_ADMIN, CAP_SETUID and CAP_SETGID are needed)");
		cm_error_hint(err, "run casemate as an ordinary user, or give this container "
				   "--cap-add SYS_ADMIN and no user namespace of its own");
		return CM_E_LEVEL;
	}
	if (host->gid == 0) {
		cm_error_set(err, CM_E_LEVEL, 0, "the primary group of user '%s' is root's",
			     host->user_name);
		cm_error_hint(err, "run casemate with another primary group: host group 0 is "
				   "never mapped into a jail");
		return CM_E_LEVEL;
	}
	h->uid_base = host->uid;
	h->gid_base = host->gid;
	if (build->req->spec->user == CM_USER_ROOT)
		return use_subids(build, err);
	h->idmap = CM_IDMAP_SINGLE;
	return CM_OK;
}

int cm_build_identity(struct cm_build *build, struct cm_error *err)
{
	struct cm_plan_header *h = &build->b->header;

	if (!build->req->host->is_root)
		return use_own_id(build, err);
	h->idmap = CM_IDMAP_SLOT;
	h->uid_base = build->req->slot_base;
	h->gid_base = build->req->slot_base;
	return CM_OK;
}

static int check_host_network(const struct cm_build *build, struct cm_error *err)
{
	/* its filter keeps it from abstract sockets, and no command of the agent's is in it */
	if (build->req->refuses_unix_sockets)
		return CM_OK;
	if (build->req->host->landlock_abi < LANDLOCK_ABSTRACT_SOCKETS) {
		cm_error_set(err, CM_E_LEVEL, 0,
			     "network 'host' would reach the host's abstract sockets (this "
			     "kernel's Landlock ABI is %u, %d is needed)",
			     build->req->host->landlock_abi, LANDLOCK_ABSTRACT_SOCKETS);
		cm_error_hint(err, "leave --network host out, or use Linux 6.12 or newer with "
				   "Landlock");
		return CM_E_LEVEL;
	}
	if (build->req->spec->min_level == CM_LEVEL_FULL) {
		cm_error_set(err, CM_E_LEVEL, 0, "network 'host' is never level 'full'");
		cm_error_hint(err, "leave --network host or --min-level full out");
		return CM_E_LEVEL;
	}
	return CM_OK;
}

int cm_build_level(struct cm_build *build, struct cm_error *err)
{
	const struct cm_plan_request *req = build->req;
	struct cm_plan_summary *s = build->summary;
	bool is_host_network = req->spec->network == CM_NETWORK_HOST;
	int r;

	if (is_host_network) {
		r = check_host_network(build, err);
		if (r < 0)
			return r;
	}
	if (s->base_level < req->spec->min_level) {
		cm_error_set(err, CM_E_LEVEL, 0, "level '%s' cannot be had here (%s)",
			     cm_level_name(req->spec->min_level),
			     req->host->cgroup.reason[0] ? req->host->cgroup.reason
							 : "no control group for memory and pids");
		if (req->host->cgroup.needs_manager)
			cm_error_hint(err,
				      "sudo loginctl enable-linger %s, or use --min-level %s to go "
				      "on without",
				      req->host->user_name, cm_level_name(s->base_level));
		else
			cm_error_hint(err,
				      "see 'casemate doctor', or use --min-level %s to go on "
				      "without",
				      cm_level_name(s->base_level));
		return CM_E_LEVEL;
	}
	(void)snprintf(s->level, sizeof(s->level), "%s%s%s", cm_level_name(s->base_level),
		       build->b->header.idmap == CM_IDMAP_SINGLE ? "-single-id" : "",
		       is_host_network ? "+hostnet" : "");
	return CM_OK;
}
