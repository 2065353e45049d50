/* SPDX-License-Identifier: Apache-2.0 */
/* See bad_git.h: what is right to say, and the ways of not saying it. */
#include "tests/helpers/bad_git.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* of a pkt-line, its length included */
#define PKT_MAX 65520

/* What a terminal would obey: its title, a cleared screen, a colour, a bell; and a line of one's own */
#define ESCAPES "\033]0;owned\a\033[2J\033[31mevil\r\n\ahint: all is well"

struct cargo bad_cargo = {
	.head = "0123456789012345678901234567890123456789",
	.ref = "refs/heads/main",
};

_Noreturn void bad_end(struct peer *peer)
{
	(void)printf("sent %" PRIu64 "\n", peer->sent);
	(void)fflush(stdout);
	_exit(0);
}

/* --- what is sent ------------------------------------------------------------------------------ */

static void send_all(struct peer *peer, const void *data, size_t len)
{
	const struct timespec second = { .tv_sec = 1 };
	const char *p = data;

	while (len > 0) {
		ssize_t n = write(peer->fd, p, peer->is_slow ? 1 : len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			bad_end(peer);
		p += n;
		len -= (size_t)n;
		peer->sent += (uint64_t)n;
		if (peer->is_slow)
			(void)nanosleep(&second, NULL);
	}
}

static void send_text(struct peer *peer, const char *text)
{
	send_all(peer, text, strlen(text));
}

/* Within the body of an answer. */
static void put(struct peer *peer, const void *data, size_t len)
{
	char size[32];

	if (!peer->in_chunks) {
		send_all(peer, data, len);
		return;
	}
	(void)snprintf(size, sizeof(size), "%zx\r\n", len);
	send_text(peer, size);
	send_all(peer, data, len);
	send_text(peer, "\r\n");
}

void bad_text(struct peer *peer, const char *text)
{
	put(peer, text, strlen(text));
}

static void put_pkt(struct peer *peer, const void *data, size_t len)
{
	static char pkt[PKT_MAX + 1];

	if (len > PKT_MAX - 4)
		len = PKT_MAX - 4;
	(void)snprintf(pkt, sizeof(pkt), "%04zx", len + 4);
	(void)memcpy(pkt + 4, data, len);
	put(peer, pkt, len + 4);
}

__attribute__((format(printf, 2, 3))) static void put_line(struct peer *peer, const char *format,
							   ...)
{
	static char line[PKT_MAX];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	put_pkt(peer, line, strlen(line));
}

/* Channel 1 is the pack, 2 is shown to the user, 3 ends it all and is shown, too. */
static void put_band(struct peer *peer, char channel, const void *data, size_t len)
{
	static char band[PKT_MAX - 4];
	const char *p = data;

	if (!peer->has_bands) {
		if (channel == 1)
			put(peer, data, len);
		return;
	}
	while (len > 0) {
		size_t n = len < sizeof(band) - 1 ? len : sizeof(band) - 1;

		band[0] = channel;
		(void)memcpy(band + 1, p, n);
		put_pkt(peer, band, n + 1);
		p += n;
		len -= n;
	}
}

/* Until the other one ends it. */
static _Noreturn void stall(struct peer *peer)
{
	char byte[256];

	while (read(peer->fd, byte, sizeof(byte)) > 0)
		;
	bad_end(peer);
}

/* --- as it should be --------------------------------------------------------------------------- */

void bad_http_head(struct peer *peer, const char *type)
{
	send_text(peer, "HTTP/1.1 200 OK\r\nCache-Control: no-cache\r\nContent-Type: ");
	send_text(peer, type);
	send_text(peer, "\r\nTransfer-Encoding: chunked\r\n\r\n");
	peer->in_chunks = true;
}

void bad_http_end(struct peer *peer)
{
	send_text(peer, "0\r\n\r\n");
	peer->in_chunks = false;
}

static void first_ref(struct peer *peer)
{
	static char line[PKT_MAX];
	int n = snprintf(line, sizeof(line),
			 "%s HEAD%csymref=HEAD:%s side-band side-band-64k ofs-delta agent=bad/1\n",
			 bad_cargo.head, '\0', bad_cargo.ref);

	put_pkt(peer, line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1);
}

static void good_refs(struct peer *peer)
{
	first_ref(peer);
	put_line(peer, "%s %s\n", bad_cargo.head, bad_cargo.ref);
	bad_text(peer, "0000");
}

static void good_pack(struct peer *peer)
{
	bad_text(peer, "0008NAK\n");
	put_band(peer, 1, bad_cargo.pack, bad_cargo.pack_len);
	if (peer->has_bands)
		bad_text(peer, "0000");
}

/* --- one way of misbehaving each --------------------------------------------------------------- */

static void half_a_pack(struct peer *peer)
{
	bad_text(peer, "0008NAK\n");
	put_band(peer, 1, bad_cargo.pack, bad_cargo.pack_len / 2);
}

static void stop_in_pack(struct peer *peer)
{
	half_a_pack(peer);
	bad_end(peer);
}

static void stall_in_pack(struct peer *peer)
{
	half_a_pack(peer);
	stall(peer);
}

/* What was sent may be lost with it. */
static void reset(struct peer *peer)
{
	const struct linger now = { .l_onoff = 1, .l_linger = 0 };

	(void)setsockopt(peer->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	bad_end(peer);
}

static void reset_in_refs(struct peer *peer)
{
	first_ref(peer);
	reset(peer);
}

static void reset_in_pack(struct peer *peer)
{
	half_a_pack(peer);
	reset(peer);
}

static void bad_checksum(struct peer *peer)
{
	bad_cargo.pack[bad_cargo.pack_len - 1] ^= 1;
	good_pack(peer);
}

/* behind the first object's type and size, which are at most ten bytes */
static void bad_zlib(struct peer *peer)
{
	for (size_t i = 12 + 10; i < bad_cargo.pack_len && i < 12 + 42; i++)
		bad_cargo.pack[i] = 0xff;
	good_pack(peer);
}

/* 2^31 objects, one more than a signed number has room for */
static void huge_count(struct peer *peer)
{
	static const uint8_t count[] = { 0x80, 0, 0, 0 };

	(void)memcpy(bad_cargo.pack + 8, count, sizeof(count));
	good_pack(peer);
}

static void no_pack(struct peer *peer)
{
	static char noise[4096];

	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (char)(i * 31);
	bad_text(peer, "0008NAK\n");
	put_band(peer, 1, noise, sizeof(noise));
	if (peer->has_bands)
		bad_text(peer, "0000");
}

static void endless_refs(struct peer *peer)
{
	first_ref(peer);
	for (uint64_t i = 0;; i++)
		put_line(peer, "%s refs/heads/%020" PRIu64 "\n", bad_cargo.head, i);
}

static void garbage_refs(struct peer *peer)
{
	static const char noise[] = "\x80\xff\0\x01 not an id " ESCAPES "\n";

	put_pkt(peer, noise, sizeof(noise) - 1);
	put_pkt(peer, noise, sizeof(noise) - 1);
	bad_text(peer, "0000");
}

static void garbage_length(struct peer *peer)
{
	first_ref(peer);
	bad_text(peer, "-0zz refs/heads/x\n0000");
}

static void short_length(struct peer *peer)
{
	first_ref(peer);
	bad_text(peer, "0003");
	bad_text(peer, "0000");
}

static void error_refs(struct peer *peer)
{
	put_line(peer, "ERR " ESCAPES);
	if (peer->is_http)
		bad_http_end(peer);
	bad_end(peer);
}

static void error_band(struct peer *peer)
{
	static const char text[] = ESCAPES;

	half_a_pack(peer);
	put_band(peer, 3, text, sizeof(text) - 1);
	if (peer->is_http)
		bad_http_end(peer);
	bad_end(peer);
}

static void band_length(struct peer *peer)
{
	half_a_pack(peer);
	bad_text(peer, "fffg\x01junk");
	stall(peer);
}

static void band_channel(struct peer *peer)
{
	half_a_pack(peer);
	put_band(peer, 9, "junk", 4);
	stall(peer);
}

static void endless_progress(struct peer *peer)
{
	static const char text[] = "Counting " ESCAPES "\r";

	bad_text(peer, "0008NAK\n");
	for (;;)
		put_band(peer, 2, text, sizeof(text) - 1);
}

static void slow_pack(struct peer *peer)
{
	peer->is_slow = true;
	good_pack(peer);
}

static void slow_refs(struct peer *peer)
{
	peer->is_slow = true;
	good_refs(peer);
}

static void wrong_type(struct peer *peer)
{
	bad_http_head(peer, "text/html; charset=utf-8");
	bad_text(peer, "<html>" ESCAPES "</html>\n");
	bad_http_end(peer);
}

static void endless_headers(struct peer *peer)
{
	send_text(peer, "HTTP/1.1 200 OK\r\n");
	for (;;)
		send_text(peer, "X-More: and more\r\n");
}

static void endless_header(struct peer *peer)
{
	send_text(peer, "HTTP/1.1 200 OK\r\nX-Long: ");
	for (;;)
		send_text(peer, "0123456789abcdef0123456789abcdef");
}

static void lying_length(struct peer *peer)
{
	send_text(peer, "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n"
			"Content-Type: application/x-git-upload-pack-advertisement\r\n\r\n"
			"001e# service=git-upload-pack\n0000");
	stall(peer);
}

/* Who has seen the refs is asked who he is. */
static void denied_pack(struct peer *peer)
{
	static bool has_refs;

	if (has_refs) {
		send_text(peer, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n"
				"WWW-Authenticate: Basic realm=\"x\"\r\n\r\n");
		return;
	}
	has_refs = true;
	bad_http_head(peer, "application/x-git-upload-pack-advertisement");
	bad_text(peer, "001e# service=git-upload-pack\n0000");
	good_refs(peer);
	bad_http_end(peer);
}

static void failing(struct peer *peer)
{
	send_text(peer, "HTTP/1.1 503 " ESCAPES "\r\nContent-Length: 0\r\n\r\n");
}

const struct mode bad_modes[] = {
	{ .name = "good", .what = "nothing is wrong, but perhaps the pack or the ref's name" },
	{ .name = "stop",
	  .pack = stop_in_pack,
	  .wants_pack = true,
	  .what = "closes in the middle of the pack" },
	{ .name = "stall",
	  .pack = stall_in_pack,
	  .wants_pack = true,
	  .what = "says no more from the middle of the pack on" },
	{ .name = "reset", .answer = reset, .what = "resets the connection" },
	{ .name = "reset-refs",
	  .refs = reset_in_refs,
	  .what = "resets it in the middle of the refs" },
	{ .name = "reset-pack",
	  .pack = reset_in_pack,
	  .wants_pack = true,
	  .what = "resets it in the middle of the pack" },
	{ .name = "checksum",
	  .pack = bad_checksum,
	  .wants_pack = true,
	  .what = "the pack's last byte is another" },
	{ .name = "zlib",
	  .pack = bad_zlib,
	  .wants_pack = true,
	  .what = "the pack's first object cannot be inflated" },
	{ .name = "count",
	  .pack = huge_count,
	  .wants_pack = true,
	  .what = "the pack claims 2^31 objects" },
	{ .name = "no-pack", .pack = no_pack, .what = "noise instead of a pack" },
	{ .name = "endless-refs", .refs = endless_refs, .what = "refs without end" },
	{ .name = "garbage-refs", .refs = garbage_refs, .what = "noise instead of refs" },
	{ .name = "garbage-length",
	  .refs = garbage_length,
	  .what = "a length among refs that is none" },
	{ .name = "short-length", .refs = short_length, .what = "a length less than its own" },
	{ .name = "error",
	  .refs = error_refs,
	  .what = "an error with terminal escapes instead of refs" },
	{ .name = "error-band",
	  .pack = error_band,
	  .wants_pack = true,
	  .what = "the same in the middle of the pack" },
	{ .name = "band-length",
	  .pack = band_length,
	  .wants_pack = true,
	  .what = "a length in the pack that is none" },
	{ .name = "band-channel",
	  .pack = band_channel,
	  .wants_pack = true,
	  .what = "a channel that there is none of" },
	{ .name = "progress",
	  .pack = endless_progress,
	  .what = "progress without end, with terminal escapes" },
	{ .name = "slow-pack",
	  .pack = slow_pack,
	  .wants_pack = true,
	  .what = "a byte a second of the pack" },
	{ .name = "slow-refs", .refs = slow_refs, .what = "a byte a second of the refs" },
	{ .name = "silent", .answer = stall, .what = "not a word" },
	{ .name = "type", .answer = wrong_type, .what = "http: a page instead of refs" },
	{ .name = "headers", .answer = endless_headers, .what = "http: headers without end" },
	{ .name = "header", .answer = endless_header, .what = "http: one header without end" },
	{ .name = "length",
	  .answer = lying_length,
	  .what = "http: a length of 2^63 - 1, and nothing" },
	{ .name = "denied-pack",
	  .answer = denied_pack,
	  .what = "http: status 401 where the pack is asked for" },
	{ .name = "status", .answer = failing, .what = "http: status 503, with terminal escapes" },
};
const size_t bad_n_modes = ARRAY_SIZE(bad_modes);

void bad_refs(struct peer *peer, const struct mode *mode)
{
	if (mode->refs)
		mode->refs(peer);
	else
		good_refs(peer);
}

void bad_pack(struct peer *peer, const struct mode *mode)
{
	if (mode->pack)
		mode->pack(peer);
	else
		good_pack(peer);
}
