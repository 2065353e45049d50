/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/session_use.h"

#include <poll.h>
#include <stdio.h>

#include "runtime/base/clock.h"
#include "runtime/base/num.h"

#define ANSWER_MS 5000
/* between the two looks of inspect */
#define INSPECT_MS 100
#define MIB (1024UL * 1024)
#define CELL_SIZE 40

int cm_session_use_update(struct cm_session_use *use, const struct cm_store_session *s,
			  struct cm_error *err)
{
	struct cm_local_measure now;
	int r = cm_local_measure(s, cm_clock_mono_ms() + ANSWER_MS, &now, err);

	if (r < 0)
		return r;
	use->percent = cm_local_measure_percent(&use->last, &now);
	use->last = now;
	return CM_OK;
}

/* --- for programs -------------------------------------------------------------------------- */

static void write_known(struct cm_json_writer *w, const char *key, uint64_t value, uint64_t unit)
{
	cm_jw_known_uint(w, key, value != CM_USAGE_UNKNOWN, (value + unit / 2) / unit);
}

static void write_percent(struct cm_json_writer *w, double percent)
{
	bool is_known = percent >= 0;

	cm_jw_known_double(w, "cpuPercent", is_known,
			   is_known ? (double)(uint64_t)(percent * 10 + 0.5) / 10 : 0);
}

static void write_processors(struct cm_json_writer *w, const char *key, uint64_t milli)
{
	cm_jw_known_double(w, key, milli != CM_USAGE_UNKNOWN, (double)milli / 1000);
}

static void write_approximate(struct cm_json_writer *w, const struct cm_local_measure *m)
{
	cm_jw_key(w, "approximate");
	cm_jw_array(w);
	if (m->is_memory_approximate)
		cm_jw_string(w, "memoryBytes");
	if (m->is_cpu_approximate) {
		cm_jw_string(w, "cpuMs");
		cm_jw_string(w, "cpuPercent");
	}
	cm_jw_end_array(w);
}

void cm_session_use_write(struct cm_json_writer *w, const struct cm_session_use *use)
{
	const struct cm_local_measure *m = &use->last;

	cm_jw_object(w);
	cm_jw_kstring(w, "id", use->id);
	write_known(w, "memoryBytes", m->memory_bytes, 1);
	write_known(w, "memoryPeakBytes", m->memory_peak_bytes, 1);
	write_known(w, "memoryLimitBytes", m->memory_max_bytes, 1);
	write_known(w, "cpuMs", m->cpu_us, 1000);
	write_percent(w, use->percent);
	write_processors(w, "cpuLimit", m->cpu_max_milli);
	write_known(w, "processes", m->n_processes, 1);
	write_known(w, "processesLimit", m->processes_max, 1);
	cm_jw_kuint(w, "commands", m->n_commands);
	if (use->has_disk) {
		cm_jw_kuint(w, "diskBytes", use->disk.bytes);
		cm_jw_kbool(w, "diskPartial", use->disk.is_partial);
	}
	write_approximate(w, m);
	cm_jw_end_object(w);
}

void cm_session_use_look(struct cm_session_use *use, const struct cm_store_session *s,
			 bool with_size)
{
	*use = (struct cm_session_use){ .percent = -1, .has_disk = with_size };
	use->is_running = cm_session_use_update(use, s, NULL) == CM_OK;
	if (use->is_running) {
		(void)poll(NULL, 0, INSPECT_MS);
		use->is_running = cm_session_use_update(use, s, NULL) == CM_OK;
	}
	if (!use->is_running) {
		use->percent = -1;
		use->last.memory_bytes = use->last.memory_max_bytes = use->last.cpu_max_milli =
			CM_USAGE_UNKNOWN;
	}
	if (with_size)
		cm_local_measure_disk(s, &use->disk);
}

void cm_session_use_resources(struct cm_json_writer *w, const struct cm_session_use *use)
{
	cm_jw_key(w, "resources");
	cm_jw_object(w);
	write_known(w, "memoryMB", use->last.memory_max_bytes, MIB);
	write_known(w, "memoryUsedMB", use->last.memory_bytes, MIB);
	write_processors(w, "cpuCores", use->last.cpu_max_milli);
	write_percent(w, use->percent);
	/* there is no limit of it */
	write_known(w, "diskMB", CM_USAGE_UNKNOWN, MIB);
	write_known(w, "diskUsedMB", use->has_disk ? use->disk.bytes : CM_USAGE_UNKNOWN, MIB);
	cm_jw_end_object(w);
}

/* --- for people ---------------------------------------------------------------------------- */

static const char *size_cell(uint64_t bytes, bool is_approximate, char cell[CELL_SIZE])
{
	char text[32];

	if (bytes == CM_USAGE_UNKNOWN)
		return "-";
	cm_format_size(bytes, text, sizeof(text));
	(void)snprintf(cell, CELL_SIZE, "%s%s", is_approximate ? "~" : "", text);
	return cell;
}

static const char *time_cell(const struct cm_local_measure *m, char cell[CELL_SIZE])
{
	char text[32];

	if (m->cpu_us == CM_USAGE_UNKNOWN)
		return "-";
	cm_format_duration(m->cpu_us / 1000, text, sizeof(text));
	(void)snprintf(cell, CELL_SIZE, "%s%s", m->is_cpu_approximate ? "~" : "", text);
	return cell;
}

static const char *count_cell(uint64_t n, char cell[CELL_SIZE])
{
	if (n == CM_USAGE_UNKNOWN)
		return "-";
	(void)snprintf(cell, CELL_SIZE, "%llu", (unsigned long long)n);
	return cell;
}

/* 80 columns without DISK */
#define COLUMNS "%-15s  %-7s  %-8s  %-9s  %-9s  %-9s  %-5s  "

void cm_session_use_header(struct cm_buf *out, bool with_size)
{
	cm_buf_printf(out, COLUMNS "CMDS%s\n", "ID", "CPU", "TIME", "MEMORY", "PEAK", "LIMIT",
		      "PROCS", with_size ? "  DISK" : "");
}

void cm_session_use_row(struct cm_buf *out, const struct cm_session_use *use, bool with_size)
{
	const struct cm_local_measure *m = &use->last;
	char percent[CELL_SIZE] = "-";
	char cells[6][CELL_SIZE];

	if (use->percent >= 0)
		(void)snprintf(percent, sizeof(percent), "%s%.1f%%",
			       m->is_cpu_approximate ? "~" : "", use->percent);
	cm_buf_printf(out, COLUMNS, use->id, percent, time_cell(m, cells[0]),
		      size_cell(m->memory_bytes, m->is_memory_approximate, cells[1]),
		      size_cell(m->memory_peak_bytes, false, cells[2]),
		      size_cell(m->memory_max_bytes, false, cells[3]),
		      count_cell(m->n_processes, cells[4]));
	if (with_size && use->has_disk)
		cm_buf_printf(out, "%-4llu  %s\n", (unsigned long long)m->n_commands,
			      size_cell(use->disk.bytes, use->disk.is_partial, cells[5]));
	else
		cm_buf_printf(out, "%llu\n", (unsigned long long)m->n_commands);
}
