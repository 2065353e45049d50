/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/cli/progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/num.h"

#define QUICK_MS 1000
#define BAR_MS 100
#define LINE_MS 10000
#define BAR_WIDTH 20
#define TEXT_MAX 256

/* Asked when there is something to show: most runs have nothing. */
static bool has_bar(const struct cm_progress *p)
{
	return p->term && strcmp(p->term, "dumb") != 0 && isatty(STDERR_FILENO);
}

static size_t columns(void)
{
	struct winsize size = { 0 };

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_col < 20)
		return 79;
	return size.ws_col - 1U;
}

/* "1203/3110 objects, 1.2 MiB" */
static void format_amount(const char *stage, uint64_t received, uint64_t total, uint64_t bytes,
			  char *buf, size_t size)
{
	char done[32];
	char all[32];

	if (strcmp(stage, "packs") == 0) {
		cm_format_size(received, done, sizeof(done));
		cm_format_size(total, all, sizeof(all));
		(void)snprintf(buf, size, "%s of %s", done, all);
		return;
	}
	cm_format_size(bytes, done, sizeof(done));
	(void)snprintf(buf, size, "%llu/%llu %s%s%s", (unsigned long long)received,
		       (unsigned long long)total, strcmp(stage, "files") == 0 ? "files" : "objects",
		       bytes > 0 ? ", " : "", bytes > 0 ? done : "");
}

static unsigned int percent_of(uint64_t received, uint64_t total)
{
	return total == 0 ? 100 : (unsigned int)((double)received * 100 / (double)total);
}

static void draw_bar(const char *stage, unsigned int percent, const char *amount)
{
	static const char full[BAR_WIDTH + 1] = "####################";
	static const char empty[BAR_WIDTH + 1] = "....................";
	int filled = (int)(percent * BAR_WIDTH / 100);
	char text[TEXT_MAX];

	(void)snprintf(text, sizeof(text), "casemate: %-7s %3u%% [%.*s%.*s] %s", stage, percent,
		       filled, full, BAR_WIDTH - filled, empty, amount);
	/* a line that is longer than the terminal could not be taken away again */
	(void)fprintf(stderr, "\r\033[K%.*s", (int)columns(), text);
	(void)fflush(stderr);
}

void cm_progress_init(struct cm_progress *p, bool is_off, const char *term)
{
	*p = (struct cm_progress){ .is_off = is_off, .term = term };
}

void cm_progress_tell(struct cm_progress *p, const char *stage, uint64_t received, uint64_t total,
		      uint64_t bytes)
{
	int64_t now = cm_clock_mono_ms();
	char amount[96];
	bool is_bar;

	if (p->is_off)
		return;
	if (p->begun_ms == 0)
		p->begun_ms = p->shown_ms = now;
	if (now - p->begun_ms < QUICK_MS)
		return;
	is_bar = has_bar(p);
	if (now - p->shown_ms < (is_bar ? BAR_MS : LINE_MS))
		return;
	p->shown_ms = now;
	format_amount(stage, received, total, bytes, amount, sizeof(amount));
	if (is_bar) {
		draw_bar(stage, percent_of(received, total), amount);
		p->is_shown = true;
		return;
	}
	(void)fprintf(stderr, "casemate: %s %u%% (%s)\n", stage, percent_of(received, total),
		      amount);
}

void cm_progress_clear(struct cm_progress *p)
{
	if (p->is_shown)
		(void)fputs("\r\033[K", stderr);
	p->is_shown = false;
}
