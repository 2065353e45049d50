/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in server, told how to misbehave and asked what it has. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/fd.h"
#include "runtime/base/json.h"
#include "tests/conformance/provider/suite.h"

#define ANSWER_MAX (64UL * 1024 * 1024)

bool is_e2b(const struct suite *t)
{
	return strcmp(t->provider, "e2b") == 0;
}

bool suite_has_secret(const struct suite *t, const char *text)
{
	return t->secret && strstr(text, t->secret) != NULL;
}

static int connect_to(int port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		cm_fd_close(&fd);
	return fd;
}

/* Who keeps the connection says how long the answer is. */
static bool is_whole(const struct cm_buf *text)
{
	const char *end = text->data ? strstr(text->data, "\r\n\r\n") : NULL;
	const char *length = end ? strcasestr(text->data, "\r\ncontent-length:") : NULL;

	return length && length < end &&
	       text->len >= (size_t)(end + 4 - text->data) + strtoul(length + 17, NULL, 10);
}

bool admin(struct suite *t, const char *method, const char *path, const char *body,
	   struct cm_buf *out)
{
	CM_AUTO_BUF struct cm_buf text = { 0 };
	CM_AUTO_FD int fd = connect_to(t->port);
	char chunk[8192];
	const char *end;
	ssize_t n = 0;

	cm_buf_init(&text, ANSWER_MAX);
	cm_buf_printf(&text,
		      "%s /__test/%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n"
		      "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
		      method, path, t->port, body ? strlen(body) : 0, body ? body : "");
	if (fd < 0 || cm_buf_status(&text) < 0 || cm_write_all(fd, text.data, text.len) < 0)
		return false;
	cm_buf_reset(&text);
	while (!is_whole(&text) && (n = read(fd, chunk, sizeof(chunk))) > 0)
		cm_buf_append(&text, chunk, (size_t)n);
	if (cm_buf_status(&text) < 0 || text.len < 12 || text.data[9] != '2')
		return false;
	end = strstr(text.data, "\r\n\r\n");
	if (out && end)
		cm_buf_puts(out, end + 4);
	return end != NULL;
}

/* --- faults -------------------------------------------------------------------------------- */

bool fault_set(struct suite *t, const struct fault *f)
{
	const char *match = is_e2b(t) ? f->e2b : f->platform;
	CM_AUTO_BUF struct cm_buf text = { 0 };
	char times[16] = "null";

	cm_buf_init(&text, 65536);
	if (f->times >= 0 || !is_e2b(t))
		(void)snprintf(times, sizeof(times), "%d", f->times);
	cm_buf_printf(&text, "[{\"match\": \"%s\", \"fault\": \"%s\", \"times\": %s, \"skip\": %d",
		      match ? match : "never", f->name, times, f->skip);
	if (f->params)
		cm_buf_printf(&text, is_e2b(t) ? ", %s" : ", \"params\": {%s}", f->params);
	cm_buf_puts(&text, "}]");
	return CHECK(t, admin(t, "POST", "faults", text.data, NULL), "the rule is taken: %s",
		     text.data);
}

void fault_clear(struct suite *t)
{
	CHECK(t, admin(t, "POST", "faults", "[]", NULL), "the rules are cleared");
}

/* --- what it has --------------------------------------------------------------------------- */

int n_sandboxes(struct suite *t)
{
	CM_AUTO_BUF struct cm_buf text = { 0 };
	struct cm_json_doc *doc = NULL;
	const struct cm_json *list;
	int n = 0;

	cm_buf_init(&text, ANSWER_MAX);
	if (!admin(t, "GET", "state", NULL, &text) ||
	    cm_json_parse(text.data, text.len, "state", 0, &doc, NULL) < 0)
		return -1;
	list = cm_json_get(cm_json_root(doc), "sandboxes");
	for (const struct cm_json *v = list ? list->first_child : NULL; v; v = v->next) {
		const char *state = cm_json_str(v, "state", cm_json_str(v, "status", ""));

		n += strcmp(state, "running") == 0 || strcmp(state, "paused") == 0;
	}
	cm_json_free(doc);
	return n;
}

static int count_lines(const char *text)
{
	const char *path = getenv("CM_TEST_LOG");
	FILE *f = path ? fopen(path, "re") : NULL;
	char line[8192];
	int n = 0;

	while (f && fgets(line, sizeof(line), f))
		n += !strstr(line, "/__test/") && (!text || strstr(line, text));
	if (f)
		(void)fclose(f);
	return n;
}

int n_requests(struct suite *t)
{
	(void)t;
	return count_lines(NULL);
}

int n_logged(struct suite *t, const char *text)
{
	(void)t;
	return count_lines(text);
}
