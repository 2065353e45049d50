/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes sessions, as many as it is told, and prints nothing: make_sessions N. They were started once
 * and are stopped, every tenth is labelled; they are the caller's, in the store of its environment.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/num.h"
#include "runtime/store/store.h"

extern char **environ;

#define DAY_MS (24LL * 60 * 60 * 1000)
#define MAX_SESSIONS 1000000
/* as isolation/plan has them */
#define SLOT_BASE 0x70000000U
#define SLOT_SIZE 65536U
#define N_SLOTS 4000U

static int fail(const struct cm_error *err)
{
	(void)fprintf(stderr, "make_sessions: %s\n", err->msg);
	return 1;
}

static int make_one(struct cm_store *store, uint64_t number, struct cm_error *err)
{
	const struct cm_slot_space space = { SLOT_BASE, SLOT_SIZE, N_SLOTS };
	struct cm_end_record end = { .generation = 1, .reason = CM_ENDED_STOPPED };
	struct cm_session_record record;
	struct cm_store_session s;
	int r = CM_OK;

	cm_session_record_init(&record);
	record.id = cm_asprintf("agent-%06llu", (unsigned long long)number);
	record.root = cm_strdup(store->root);
	record.repo = cm_asprintf("https://git.example.org/team/project-%llu.git",
				  (unsigned long long)number % 50);
	record.level = cm_strdup("full");
	record.settings_json = cm_strdup("{\"memory\":{\"max\":4294967296,\"optional\":false},"
					 "\"pids\":{\"max\":1024,\"optional\":true}}");
	record.enforced_json = cm_strdup("{\"memory\":\"cgroup v2\",\"swap\":\"cgroup v2\","
					 "\"pids\":\"cgroup v2\",\"openFiles\":\"rlimit\"}");
	record.generation = 1;
	record.workspace_kind = CM_WORKSPACE_REPO;
	record.created_ms = cm_clock_real_ms() - (int64_t)number * DAY_MS / 100;
	if (number % 10 == 0)
		(void)cm_strv_add(&record.labels, "team=web");
	if (geteuid() == 0)
		r = cm_store_slot_claim(store, record.id, &space, &record.slot, err);
	if (r == CM_OK)
		r = cm_store_session_create(store, &record, &s, err);
	cm_session_record_clear(&record);
	if (r != CM_OK)
		return r;
	end.real_ms = cm_clock_real_ms();
	(void)cm_store_write_end(s.dir_fd, &end);
	cm_store_session_close(&s);
	return CM_OK;
}

int main(int argc, char **argv)
{
	struct cm_error err = CM_ERROR_INIT;
	struct cm_strv env = { 0 };
	struct cm_store store;
	uint64_t n;
	int r = cm_parse_u64(argc == 2 ? argv[1] : "", "N", 1, MAX_SESSIONS, &n, &err);

	for (char **e = environ; r == CM_OK && *e; e++)
		r = cm_strv_add(&env, *e);
	if (r == CM_OK)
		r = cm_store_open(&env, NULL, getenv("HOME"), geteuid() == 0, &store, &err);
	if (r != CM_OK)
		return fail(&err);
	for (uint64_t i = 0; r == CM_OK && i < n; i++)
		r = make_one(&store, i, &err);
	cm_store_close(&store);
	cm_strv_clear(&env);
	return r == CM_OK ? 0 : fail(&err);
}
