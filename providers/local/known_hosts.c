/* SPDX-License-Identifier: Apache-2.0 */
#include "providers/local/known_hosts.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/base64.h"
#include "runtime/base/fd.h"
#include "runtime/base/sha1.h"
#include "runtime/base/text.h"

/* of a key, decoded: the longest are RSA's, with 16384 bits */
#define KEY_MAX 4096
#define SSH_PORT 22

/*
 * The kinds that the reader knows, the best first. ssh-rsa is of a time before SHA-2: new servers sign
 * so no more.
 */
static const struct {
	const char *name;
	bool is_modern;
} kinds[] = {
	{ "ssh-ed25519", true },
	{ "ecdsa-sha2-nistp256", true },
	{ "ecdsa-sha2-nistp384", true },
	{ "ecdsa-sha2-nistp521", true },
	{ "ssh-rsa", false },
};

/* As their owners publish them, at the address above each. */
static const struct {
	const char *host;
	const char *kind;
	const char *key;
} built_in[] = {
	/* https://docs.github.com/en/authentication/keeping-your-account-and-data-secure/
	 * githubs-ssh-key-fingerprints */
	{ "github.com", "ssh-ed25519",
	  "AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl" },
	{ "github.com", "ecdsa-sha2-nistp256",
	  "AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBEmKSENjQEezOmxkZMy7opKg"
	  "wFB9nkt5YRrYMjNuG5N87uRgg6CLrbo5wAdT/y6v0mKV0U2w0WZ2YB/++Tpockg=" },
	{ "github.com", "ssh-rsa",
	  "AAAAB3NzaC1yc2EAAAADAQABAAABgQCj7ndNxQowgcQnjshcLrqPEiiphnt+VTTvDP6mHBL9j1aN"
	  "UkY4Ue1gvwnGLVlOhGeYrnZaMgRK6+PKCUXaDbC7qtbW8gIkhL7aGCsOr/C56SJMy/BCZfxd1nWz"
	  "AOxSDPgVsmerOBYfNqltV9/hWCqBywINIR+5dIg6JTJ72pcEpEjcYgXkE2YEFXV1JHnsKgbLWNlh"
	  "Scqb2UmyRkQyytRLtL+38TGxkxCflmO+5Z8CSSNY7GidjMIZ7Q4zMjA2n1nGrlTDkzwDCsw+wqFP"
	  "GQA179cnfGWOWRVruj16z6XyvxvjJwbz0wQZ75XK5tKSb7FNyeIEs4TT4jk+S4dhPeAUC5y+bDYi"
	  "rYgM4GC7uEnztnZyaVWQ7B381AK4Qdrwt51ZqExKbQpTUNn+EjqoTwvqNj4kqx5QUCI0ThS/YkOx"
	  "JCXmPUWZbhjpCg56i+2aB6CmK2JGhn57K5mj0MNdBXA4/WnwH6XoPWJzK5Nyu2zB3nAZp+S5hpQs"
	  "+p1vN1/wsjk=" },
	/* https://docs.gitlab.com/user/gitlab_com/#ssh-known_hosts-entries */
	{ "gitlab.com", "ssh-ed25519",
	  "AAAAC3NzaC1lZDI1NTE5AAAAIAfuCHKVTjquxvt6CM6tdG4SLp1Btn/nOeHHE5UOzRdf" },
	{ "gitlab.com", "ecdsa-sha2-nistp256",
	  "AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBFSMqzJeV9rUzU4kWitGjeR4"
	  "PWSa29SPqJ1fVkhtj3Hw9xjLVXVYrU9QlYWrOLXBpQ6KWjbjTDTdDkoohFzgbEY=" },
	{ "gitlab.com", "ssh-rsa",
	  "AAAAB3NzaC1yc2EAAAADAQABAAABAQCsj2bNKTBSpIYDEGk9KxsGh3mySTRgMtXL583qmBpzeQ+j"
	  "qCMRgBqB98u3z++J1sKlXHWfM9dyhSevkMwSbhoR8XIq/U0tCNyokEi/ueaBMCvbcTHhO7FcwzY9"
	  "2WK4Yt0aGROY5qX2UKSeOvuP4D6TPqKF1onrSzH9bx9XUf2lEdWT/ia1NEKjunUqu1xOB/StKDHM"
	  "oX4/OKyIzuS0q/T1zOATthvasJFoPrAjkohTyaDUz2LN5JoH839hViyEG82yB+MjcFV5MU3N1l1Q"
	  "L3cVUCh93xSaua1N85qivl+siMkPGbO5xR/En4iEY6K2XPASUEMaieWVNTRCtJ4S8H+9" },
	/* https://bitbucket.org/site/ssh */
	{ "bitbucket.org", "ssh-ed25519",
	  "AAAAC3NzaC1lZDI1NTE5AAAAIIazEu89wgQZ4bqs3d63QSMzYVa0MuJ2e2gKTKqu+UUO" },
	{ "bitbucket.org", "ecdsa-sha2-nistp256",
	  "AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBPIQmuzMBuKdWeF4+a2sjSSp"
	  "BK0iqitSQ+5BM9KhpexuGt20JpTVM7u5BDZngncgrqDMbWdxMWWOGtZ9UgbqgZE=" },
	{ "bitbucket.org", "ssh-rsa",
	  "AAAAB3NzaC1yc2EAAAADAQABAAABgQDQeJzhupRu0u0cdegZIa8e86EG2qOCsIsD1Xw0xSeiPDlC"
	  "r7kq97NLmMbpKTX6Esc30NuoqEEHCuc7yWtwp8dI76EEEB1VqY9QJq6vk+aySyboD5QF61I/1WeT"
	  "wu+deCbgKMGbUijeXhtfbxSxm6JwGrXrhBdofTsbKRUsrN1WoNgUa8uqN1Vx6WAJw1JHPhglEGGH"
	  "ea6QICwJOAr/6mrui/oB7pkaWKHj3z7d1IC4KWLtY47elvjbaTlkN04Kc/5LFEirorGYVbt15kAU"
	  "lqGM65pk6ZBxtaO3+30LVlORZkxOh+LKL/BvbZ/iRNhItLqNyieoQj/uh/7Iv4uyH/cV/0b4WDSd"
	  "3DptigWq84lJubb9t/DnZlrJazxyDCulTmKdOR7vs9gMTo+uoIrPSb8ScTtvw65+odKAlBj59dhn"
	  "Vp9zd7QUojOpXlL62Aw56U4oO+FALuevvMjiWeavKhJqlR7i5n9srYcrNV7ttmDw7kf/97P5zauI"
	  "hxcjX+xHv4M=" },
	/* https://docs.codeberg.org/security/ssh-fingerprint/ */
	{ "codeberg.org", "ssh-ed25519",
	  "AAAAC3NzaC1lZDI1NTE5AAAAIIVIC02vnjFyL+I4RHfvIGNtOgJMe769VTF1VR4EB3ZB" },
	{ "codeberg.org", "ecdsa-sha2-nistp256",
	  "AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBL2pDxWr18SoiDJCGZ5LmxPy"
	  "gTlPu+cCKSkpqkvCyQzl5xmIMeKNdfdBpfbCGDPoZQghePzFZkKJNR/v9Win3Sc=" },
	{ "codeberg.org", "ssh-rsa",
	  "AAAAB3NzaC1yc2EAAAADAQABAAABAQC8hZi7K1/2E2uBX8gwPRJAHvRAob+3Sn+y2hxiEhN0buv1"
	  "igjYFTgFO2qQD8vLfU/HT/P/rqvEeTvaDfY1y/vcvQ8+YuUYyTwE2UaVU5aJv89y6PEZBYycaJCP"
	  "dGIfZlLMmjilh/Sk8IWSEK6dQr+g686lu5cSWrFW60ixWpHpEVB26eRWin3lKYWSQGMwwKv4LwmW"
	  "3ouqqs4Z4vsqRFqXJ/eCi3yhpT+nOjljXvZKiYTpYajqUC48IHAxTWugrKe1vXWOPxVXXMQEPsaI"
	  "Rc2hpK+v1LmfB7GnEGvF1UAKnEZbUuiD9PBEeD5a1MZQIzcoPWCrTxipEpuXQ5Tni4mN" },
};

struct word {
	const char *at;
	size_t len;
};

struct line {
	struct word marker;
	struct word hosts;
	struct word kind;
	struct word key;
};

int cm_known_hosts_init(struct cm_known_hosts *k, const char *host, unsigned int port,
			struct cm_error *err)
{
	cm_buf_init(&k->lines, CM_KNOWN_HOSTS_MAX);
	k->has_modern_key = false;
	k->name = port == SSH_PORT ? cm_strdup(host) : cm_asprintf("[%s]:%u", host, port);
	if (!k->name)
		return cm_error_set(err, CM_E_NOMEM, 0, "no memory for the known hosts");
	return CM_OK;
}

void cm_known_hosts_clear(struct cm_known_hosts *k)
{
	free(cm_ptr_take(&k->name));
	cm_buf_clear(&k->lines);
}

static bool is_word(const struct word *w, const char *text)
{
	return w->len == strlen(text) && memcmp(w->at, text, w->len) == 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* The next word of what begins at *at; empty at the end. */
static struct word take_word(const char **at, const char *end)
{
	struct word w;

	while (*at < end && is_blank(**at))
		(*at)++;
	w.at = *at;
	while (*at < end && !is_blank(**at))
		(*at)++;
	w.len = (size_t)(*at - w.at);
	return w;
}

/* [@MARKER] HOSTS KIND KEY [COMMENT] */
static bool split(const char *at, const char *end, struct line *ret)
{
	if (end > at && end[-1] == '\r')
		end--;
	ret->marker = (struct word){ NULL, 0 };
	ret->hosts = take_word(&at, end);
	if (ret->hosts.len == 0 || ret->hosts.at[0] == '#')
		return false;
	if (ret->hosts.at[0] == '@') {
		ret->marker = ret->hosts;
		ret->hosts = take_word(&at, end);
	}
	ret->kind = take_word(&at, end);
	ret->key = take_word(&at, end);
	return ret->key.len > 0;
}

/* "|1|SALT|DIGEST" */
static bool matches_hidden(const char *name, const struct word *hosts)
{
	const char *end = hosts->at + hosts->len;
	const char *salt = hosts->at + 3;
	const char *digest = memchr(salt, '|', (size_t)(end - salt));
	uint8_t expected[CM_SHA1_SIZE];
	CM_AUTO_BUF struct cm_buf salts = { 0 };
	CM_AUTO_BUF struct cm_buf digests = { 0 };

	cm_buf_init(&salts, CM_HMAC_SHA1_KEY_MAX);
	cm_buf_init(&digests, CM_SHA1_SIZE);
	if (!digest || !cm_base64_decode(&salts, salt, (size_t)(digest - salt)) ||
	    !cm_base64_decode(&digests, digest + 1, (size_t)(end - digest - 1)) ||
	    cm_buf_status(&salts) < 0 || cm_buf_status(&digests) < 0 || salts.len == 0 ||
	    digests.len != CM_SHA1_SIZE)
		return false;
	return cm_hmac_sha1(salts.data, salts.len, name, strlen(name), expected) &&
	       memcmp(expected, digests.data, CM_SHA1_SIZE) == 0;
}

/* The files' names are in any case, and a pattern is a name here as there. */
static bool matches_pattern(const char *pattern, size_t len, const char *name)
{
	char lower[512];

	if (len >= sizeof(lower) || memchr(pattern, '\0', len))
		return false;
	for (size_t i = 0; i < len; i++) {
		lower[i] = pattern[i];
		if (lower[i] >= 'A' && lower[i] <= 'Z')
			lower[i] = (char)(lower[i] - 'A' + 'a');
	}
	lower[len] = '\0';
	return cm_text_matches(lower, name);
}

/* "a,*.b,!c.b": one that is excluded is not of the line, whatever else matches. */
static bool matches(const char *name, const struct word *hosts)
{
	const char *end = hosts->at + hosts->len;
	bool is_in = false;

	if (hosts->len > 3 && memcmp(hosts->at, "|1|", 3) == 0)
		return matches_hidden(name, hosts);
	for (const char *at = hosts->at; at < end;) {
		const char *comma = memchr(at, ',', (size_t)(end - at));
		const char *stop = comma ? comma : end;
		bool is_out = *at == '!';

		if (matches_pattern(at + is_out, (size_t)(stop - at) - is_out, name)) {
			if (is_out)
				return false;
			is_in = true;
		}
		at = stop + 1;
	}
	return is_in;
}

/* NULL: of none that the reader knows. */
static const bool *find_kind(const struct word *kind)
{
	for (size_t i = 0; i < CM_ARRAY_SIZE(kinds); i++) {
		if (is_word(kind, kinds[i].name))
			return &kinds[i].is_modern;
	}
	return NULL;
}

/* A key begins with its kind and the length of that: what has another one is damaged. */
static bool is_key(const struct line *line)
{
	CM_AUTO_BUF struct cm_buf key = { 0 };
	const uint8_t *p;

	cm_buf_init(&key, KEY_MAX);
	if (!cm_base64_decode(&key, line->key.at, line->key.len) || cm_buf_status(&key) < 0 ||
	    key.len <= 4 + line->kind.len)
		return false;
	p = (const uint8_t *)key.data;
	return p[0] == 0 && p[1] == 0 && p[2] == 0 && p[3] == line->kind.len &&
	       memcmp(p + 4, line->kind.at, line->kind.len) == 0;
}

static void add_line(struct cm_known_hosts *k, const struct line *line)
{
	const bool *is_modern = find_kind(&line->kind);
	bool is_revoked = is_word(&line->marker, "@revoked");

	/* an authority signs keys of servers, which the reader does not understand */
	if ((line->marker.len > 0 && !is_revoked) || !is_modern ||
	    !matches(k->name, &line->hosts) || !is_key(line))
		return;
	if (is_revoked) {
		cm_buf_puts(&k->lines, "#revoked ");
	} else {
		k->has_modern_key |= *is_modern;
		cm_buf_printf(&k->lines, "%s ", k->name);
		cm_buf_append(&k->lines, line->kind.at, line->kind.len);
		cm_buf_putc(&k->lines, ' ');
	}
	cm_buf_append(&k->lines, line->key.at, line->key.len);
	cm_buf_putc(&k->lines, '\n');
}

void cm_known_hosts_add(struct cm_known_hosts *k, const char *text, size_t len)
{
	const char *end = text + len;

	for (const char *at = text; at < end;) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;
		struct line line;

		if (split(at, stop, &line))
			add_line(k, &line);
		at = stop + 1;
	}
}

/* The lines of text that begin so. */
static void copy_lines(struct cm_buf *out, const char *text, const char *beginning)
{
	while (*text != '\0') {
		size_t len = strcspn(text, "\n") + 1;

		if (cm_text_has_prefix(text, beginning))
			cm_buf_append(out, text, len);
		text += len;
	}
}

/*
 * libgit2 asks the server for a key of the kind that the first line has, and for no other: were it
 * an old one, a new key below would be of no use.
 */
static int sort_lines(struct cm_known_hosts *k)
{
	struct cm_buf sorted;
	int r = CM_OK;

	cm_buf_init(&sorted, CM_KNOWN_HOSTS_MAX);
	copy_lines(&sorted, k->lines.data, "#");
	for (size_t i = 0; i < CM_ARRAY_SIZE(kinds) && r == CM_OK; i++) {
		CM_AUTO_FREE char *beginning = cm_asprintf("%s %s ", k->name, kinds[i].name);

		if (beginning)
			copy_lines(&sorted, k->lines.data, beginning);
		else
			r = CM_E_NOMEM;
	}
	/* so that there is a text */
	cm_buf_puts(&sorted, "");
	if (r == CM_OK)
		r = cm_buf_status(&sorted);
	cm_buf_clear(&k->lines);
	k->lines = sorted;
	return r;
}

static int failed(const struct cm_known_hosts *k, int code, struct cm_error *err)
{
	if (code == CM_E_NOMEM)
		return cm_error_set(err, code, 0, "no memory for the known hosts");
	cm_error_set(err, code, 0, "the known hosts have more than %lu bytes of keys for '%s'",
		     CM_KNOWN_HOSTS_MAX, k->name);
	cm_error_hint(err, "remove what is not needed: ssh-keygen -R '%s'", k->name);
	return code;
}

int cm_known_hosts_finish(struct cm_known_hosts *k, struct cm_error *err)
{
	int r;

	for (size_t i = 0; i < CM_ARRAY_SIZE(built_in) && !k->has_modern_key; i++) {
		if (strcmp(built_in[i].host, k->name) == 0)
			cm_buf_printf(&k->lines, "%s %s %s\n", k->name, built_in[i].kind,
				      built_in[i].key);
	}
	cm_buf_puts(&k->lines, "");
	r = cm_buf_status(&k->lines);
	if (r == CM_OK)
		r = sort_lines(k);
	return r == CM_OK ? r : failed(k, r, err);
}
