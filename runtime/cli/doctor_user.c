/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of the account, the directories and the programs. Pure. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/fd.h"
#include "runtime/base/num.h"
#include "runtime/cli/doctor.h"

/* as the planner asks for with --user root */
#define SUBIDS_NEEDED 65535U
#define LITTLE_SPACE (1024ULL * 1024 * 1024)
/* sockets and locks only */
#define LITTLE_RUNTIME_SPACE (4ULL * 1024 * 1024)

static void join(struct cm_buf *out, const struct cm_strv *words)
{
	cm_buf_init(out, 65536);
	for (size_t i = 0; i < words->n; i++)
		cm_buf_printf(out, "%s%s", i > 0 ? ", " : "", words->v[i]);
}

static void check_subids(const struct cm_doctor_facts *facts, struct cm_doctor_report *report)
{
	const struct cm_host *host = facts->host;
	const struct cm_host_subids *s = &host->subids;
	bool has_tools = facts->has_newuidmap && facts->has_newgidmap;
	uint64_t first = facts->next_subid;

	if (host->uid == 0)
		return;
	if (s->uid_count < SUBIDS_NEEDED || s->gid_count < SUBIDS_NEEDED) {
		cm_doctor_add(report, "subordinate-ids", CM_DOCTOR_WARN,
			      "no range of 65536 for user '%s' in /etc/subuid and /etc/subgid: "
			      "--user root cannot be had",
			      host->user_name);
		cm_doctor_fix(report, 0,
			      "sudo usermod --add-subuids %" PRIu64 "-%" PRIu64
			      " --add-subgids %" PRIu64 "-%" PRIu64 " %s%s",
			      first, first + 65535, first, first + 65535, host->user_name,
			      has_tools		 ? ""
			      : facts->is_debian ? " && sudo apt-get install uidmap"
						 : ", and install newuidmap and newgidmap");
	} else if (!has_tools) {
		cm_doctor_add(report, "subordinate-ids", CM_DOCTOR_WARN,
			      "'/usr/bin/%s' is not there with its rights: --user root cannot be "
			      "had",
			      facts->has_newuidmap ? "newgidmap" : "newuidmap");
		cm_doctor_fix(report, 0, "%s",
			      facts->is_debian ? "sudo apt-get install --reinstall uidmap"
					       : "install newuidmap and newgidmap (shadow-utils)");
	} else {
		cm_doctor_add(report, "subordinate-ids", CM_DOCTOR_OK,
			      "%u uids and %u gids, for --user root", s->uid_count, s->gid_count);
	}
}

static void check_groups(const struct cm_doctor_facts *facts, struct cm_doctor_report *report)
{
	const struct cm_host *host = facts->host;
	CM_AUTO_BUF struct cm_buf names = { 0 };

	/* a map with more than one id lets init drop them */
	if (host->is_root)
		return;
	if (facts->groups.n == 0) {
		cm_doctor_add(report, "groups", CM_DOCTOR_OK,
			      "no supplementary group that a jail would keep");
		return;
	}
	join(&names, &facts->groups);
	cm_doctor_add(
		report, "groups", CM_DOCTOR_WARN,
		"a jail with a single id cannot drop these: %s; a workspace or volume that is "
		"open to one of them only is refused",
		names.data ? names.data : "");
	cm_doctor_fix(report, 0, "sudo setpriv --reuid %u --regid %u --clear-groups casemate ...",
		      (unsigned int)host->uid, (unsigned int)host->gid);
}

void cm_doctor_check_user(const struct cm_doctor_facts *facts, struct cm_doctor_report *report)
{
	check_subids(facts, report);
	check_groups(facts, report);
}

static const struct {
	const char *name;
	/* how to have it elsewhere, as an ordinary user */
	const char *move;
	uint64_t little;
	/* nothing works without it */
	bool is_needed;
} dir_rules[CM_DOCTOR_DIRS_] = {
	[CM_DOCTOR_DIR_STATE] = { "state-directory", "XDG_STATE_HOME", LITTLE_SPACE, true },
	[CM_DOCTOR_DIR_RUNTIME] = { "runtime-directory", "XDG_RUNTIME_DIR", LITTLE_RUNTIME_SPACE,
				    true },
	[CM_DOCTOR_DIR_CACHE] = { "cache-directory", "XDG_CACHE_HOME", 0, false },
	[CM_DOCTOR_DIR_ROOT] = { "session-root", "CASEMATE_ROOT", LITTLE_SPACE, false },
};

static void check_dir(const struct cm_doctor_facts *facts, enum cm_doctor_dir_kind kind,
		      struct cm_doctor_report *report)
{
	const struct cm_doctor_dir *dir = &facts->dirs[kind];
	const char *name = dir_rules[kind].name;
	/* root's own places are fixed, but for the session root */
	const char *move =
		kind == CM_DOCTOR_DIR_ROOT || facts->host->uid != 0 ? dir_rules[kind].move : NULL;
	const char *absent = dir->is_present ? "" : " (made when it is needed)";
	char space[32];

	cm_format_size(dir->free_bytes, space, sizeof(space));
	if (!dir->is_writable) {
		cm_doctor_add(report, name,
			      dir_rules[kind].is_needed ? CM_DOCTOR_FAIL : CM_DOCTOR_WARN,
			      "'%s' cannot be written%s", dir->nearest,
			      dir->is_present ? "" : ", and the directory is to be below it");
		cm_doctor_fix(report, dir_rules[kind].is_needed ? 45 : 20, "%s%s%s'%s'",
			      move ? "set " : "", move ? move : "",
			      move ? " to a directory of your own, or make this one yours: "
				   : "make this one writable: ",
			      dir->nearest);
	} else if (dir->free_bytes < dir_rules[kind].little) {
		cm_doctor_add(report, name, CM_DOCTOR_WARN, "'%s' has only %s free", dir->path,
			      space);
		cm_doctor_fix(report, 35, "free space on the file system of '%s'%s%s", dir->nearest,
			      move ? ", or use another by " : "", move ? move : "");
	} else if (kind == CM_DOCTOR_DIR_ROOT && dir->is_noexec) {
		cm_doctor_add(report, name, CM_DOCTOR_WARN,
			      "'%s' is on a noexec file system: no program of a checkout can run",
			      dir->path);
		cm_doctor_fix(report, 35, "use another place: --root DIR, or CASEMATE_ROOT");
	} else {
		cm_doctor_add(report, name, CM_DOCTOR_OK, "'%s'%s, %s free", dir->path, absent,
			      space);
	}
}

static void check_dirs(const struct cm_doctor_facts *facts, struct cm_doctor_report *report)
{
	const struct cm_error *err = &facts->store_err;

	if (err->code == CM_OK) {
		for (size_t i = 0; i < CM_DOCTOR_DIRS_; i++)
			check_dir(facts, (enum cm_doctor_dir_kind)i, report);
		return;
	}
	cm_doctor_add(report, "directories", CM_DOCTOR_FAIL, "%s%s%s", err->msg,
		      err->sys_errno ? ": " : "", err->sys_errno ? strerror(err->sys_errno) : "");
	cm_doctor_fix(report, 45, "%s",
		      err->hint[0] ? err->hint
				   : "set HOME to a directory of your "
				     "own");
}

static void check_helper(const struct cm_doctor_facts *facts, enum cm_doctor_helper_kind kind,
			 struct cm_doctor_report *report)
{
	const struct cm_doctor_helper *helper = &facts->helpers[kind];
	const char *name = cm_doctor_helper_names[kind];
	bool needs_scope = facts->host->cgroup.needs_scope;
	const char *loss = NULL;
	enum cm_doctor_status status = CM_DOCTOR_FAIL;

	if (kind == CM_DOCTOR_CHECKOUT) {
		loss = "--repo cannot be used";
		status = CM_DOCTOR_WARN;
	} else if (kind == CM_DOCTOR_SCOPE) {
		/* asked for by ordinary users below systemd only */
		if (!needs_scope)
			return;
		loss = "systemd cannot be asked for a control group, so no session starts";
	}
	if (helper->err.code == CM_OK) {
		cm_doctor_add(report, name, CM_DOCTOR_OK, "'%s'", helper->path);
		return;
	}
	cm_doctor_add(report, name, status, "%s%s%s", helper->err.msg, loss ? ": " : "",
		      loss ? loss : "");
	if (helper->err.code == CM_E_NOT_FOUND)
		cm_doctor_fix(report, status == CM_DOCTOR_FAIL ? 60 : 20,
			      "build or install '%s' beside '%s', or install casemate again", name,
			      facts->program);
	else
		cm_doctor_fix(report, status == CM_DOCTOR_FAIL ? 60 : 20, "%s", helper->err.hint);
}

static void check_tools(const struct cm_doctor_facts *facts, struct cm_doctor_report *report)
{
	CM_AUTO_BUF struct cm_buf text = { 0 };

	if (facts->git[0] != '\0') {
		cm_doctor_add(report, "git", CM_DOCTOR_OK, "'%s'", facts->git);
	} else {
		cm_doctor_add(report, "git", CM_DOCTOR_WARN,
			      "not on PATH: a jail shows this host's programs, so it has none");
		cm_doctor_fix(report, 10, "%s",
			      facts->is_debian ? "sudo apt-get install git" : "install git");
	}
	if (facts->tools.n > 0) {
		join(&text, &facts->tools);
		cm_doctor_add(report, "tools", CM_DOCTOR_OK, "shown read-only: %s",
			      text.data ? text.data : "");
	} else {
		cm_doctor_add(report, "tools", CM_DOCTOR_OK,
			      "none below '%s'; those of /usr are shown", facts->host->home);
	}
	if (facts->tool_notes.n > 0) {
		cm_buf_clear(&text);
		join(&text, &facts->tool_notes);
		cm_doctor_add(report, "tools-left-out", CM_DOCTOR_WARN, "%s",
			      text.data ? text.data : "");
		cm_doctor_fix(report, 0, "chmod go-w what is yours of these");
	}
}

void cm_doctor_check_files(const struct cm_doctor_facts *facts, struct cm_doctor_report *report)
{
	check_dirs(facts, report);
	for (size_t i = 0; i < CM_DOCTOR_HELPERS_; i++)
		check_helper(facts, (enum cm_doctor_helper_kind)i, report);
	check_tools(facts, report);
}
