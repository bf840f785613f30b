#include "common/json_scan.h"

#include <stdint.h>
#include <string.h>

#include "common/json.h"

/* Sixteen bytes that are looked at together; the compiler has instructions for this on every machine we build for. */
typedef unsigned char block __attribute__((vector_size(16)));

static bool has_special(const char *p)
{
	block b;
	uint64_t half[2];

	memcpy(&b, p, sizeof(b));
	block hit = (block)(b == '"') | (block)(b == '\\') | (block)(b < 0x20);
	memcpy(half, &hit, sizeof(half));
	return half[0] | half[1];
}

size_t abx_json_plain_run(const char *text, size_t len)
{
	size_t i = 0;

	while (len - i >= sizeof(block) && !has_special(text + i))
		i += sizeof(block);
	while (i < len && (unsigned char)text[i] >= 0x20 && text[i] != '"' && text[i] != '\\')
		i++;
	return i;
}

/* The value of the four hex digits at `p`, or -1. */
static int hex4(const char *p)
{
	int value = 0;

	for (int i = 0; i < 4; i++) {
		if (p[i] >= '0' && p[i] <= '9')
			value = value << 4 | (p[i] - '0');
		else if ((p[i] >= 'a' && p[i] <= 'f') || (p[i] >= 'A' && p[i] <= 'F'))
			value = value << 4 | ((p[i] | 0x20) - 'a' + 10);
		else
			return -1;
	}
	return value;
}

/* The bytes of the escape at `p`, which is a backslash; 0 when it is not a valid one. A surrogate pair is one escape. */
static size_t escape_length(const char *p, size_t n)
{
	if (n < 2)
		return 0;
	if (p[1] != 'u')
		return p[1] && strchr("\"\\/bfnrt", p[1]) ? 2 : 0;
	int unit = n >= 6 ? hex4(p + 2) : -1;
	if (unit < 0 || (unit >= 0xdc00 && unit < 0xe000))
		return 0;
	if (unit < 0xd800 || unit >= 0xe000)
		return 6;
	int low = n >= 12 && p[6] == '\\' && p[7] == 'u' ? hex4(p + 8) : -1;
	return low >= 0xdc00 && low < 0xe000 ? 12 : 0;
}

/*
 * The end of the string whose contents begin at `at`: the offset of its closing quote, or `len`
 * where it has none or holds a raw control character. *ret_valid tells whether all escapes are right.
 */
static size_t string_end(const char *text, size_t len, size_t at, bool *ret_valid)
{
	*ret_valid = true;
	for (;;) {
		at += abx_json_plain_run(text + at, len - at);
		if (at == len || (text[at] != '"' && text[at] != '\\'))
			return len;
		if (text[at] == '"')
			return at;
		size_t escape = escape_length(text + at, len - at);
		if (escape == 0) {
			*ret_valid = false;
			escape = 2;
		}
		if (len - at <= escape)
			return len;
		at += escape;
	}
}

/* Where the scan is. `key` is the last string of the outermost object; `after_colon`: it was a key, its value comes next. */
struct scan {
	const char *text;
	size_t len, depth;
	const char *const *names;
	size_t key, key_len;
	bool has_key, after_colon;
};

static const char *wanted_name(const struct scan *s)
{
	for (const char *const *name = s->names; name && *name; name++)
		if (strlen(*name) == s->key_len && memcmp(*name, s->text + s->key, s->key_len) == 0)
			return *name;
	return NULL;
}

/* Take the string whose contents begin at `at`. Returns the offset behind its closing quote, or `len` without one. */
static size_t scan_string(struct scan *s, size_t at, struct abx_json_cut *cut)
{
	bool valid;
	size_t end = string_end(s->text, s->len, at, &valid);

	if (end == s->len)
		return end;
	if (s->after_colon) {
		const char *name = valid && !cut->name && end - at >= ABX_JSON_CUT_MIN ? wanted_name(s) : NULL;
		if (name)
			*cut = (struct abx_json_cut){ .name = name, .offset = at, .len = end - at };
	} else if (s->depth == 1) {
		s->has_key = true;
		s->key = at;
		s->key_len = end - at;
	}
	s->after_colon = false;
	return end + 1;
}

size_t abx_json_scan(const char *text, size_t len, const char *const *names, struct abx_json_cut *ret_cut)
{
	struct scan s = { .text = text, .len = len, .names = names };

	*ret_cut = (struct abx_json_cut){ .name = NULL };
	for (size_t at = 0; at < len;) {
		switch (text[at]) {
		case '"':
			at = scan_string(&s, at + 1, ret_cut);
			continue;
		case '[':
		case '{':
			if (s.depth == ABX_JSON_DEPTH)
				return at;
			s.depth++;
			s.has_key = s.after_colon = false;
			break;
		case ']':
		case '}':
			if (s.depth == 0)
				return len;
			s.depth--;
			s.has_key = s.after_colon = false;
			break;
		case ' ':
		case '\t':
		case '\n':
		case '\r':
			break;
		case ':':
			s.after_colon = s.has_key;
			s.has_key = false;
			break;
		default:
			s.has_key = s.after_colon = false;
			break;
		}
		at++;
	}
	return len;
}

static char simple_escape(char c)
{
	switch (c) {
	case 'b':
		return '\b';
	case 'f':
		return '\f';
	case 'n':
		return '\n';
	case 'r':
		return '\r';
	case 't':
		return '\t';
	default:
		return c;
	}
}

/* Write the UTF-8 of `c` to `out`. Returns the bytes written: fewer than its escape had. */
static size_t put_character(unsigned c, char *out)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 63));
		out[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 63));
	out[2] = (char)(0x80 | (c >> 6 & 63));
	out[3] = (char)(0x80 | (c & 63));
	return 4;
}

/* Resolve the escape at `p` to `out`, which may begin before it. Adds to *at what it read; returns what it wrote. */
static size_t resolve(const char *p, char *out, size_t *at)
{
	if (p[1] != 'u') {
		*at += 2;
		out[0] = simple_escape(p[1]);
		return 1;
	}
	unsigned c = (unsigned)hex4(p + 2);
	*at += 6;
	if (c >= 0xd800 && c < 0xdc00) {
		c = 0x10000 + ((c - 0xd800) << 10) + ((unsigned)hex4(p + 8) - 0xdc00);
		*at += 6;
	}
	return put_character(c, out);
}

size_t abx_json_unescape(char *text, size_t len)
{
	size_t at = 0, n = 0;

	while (at < len) {
		const char *escape = memchr(text + at, '\\', len - at);
		size_t run = escape ? (size_t)(escape - text) - at : len - at;
		if (n != at)
			memmove(text + n, text + at, run);
		at += run;
		n += run;
		if (escape)
			n += resolve(escape, text + n, &at);
	}
	return n;
}
