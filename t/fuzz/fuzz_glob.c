/*
 * The glob matcher against one that tries everything: it works on decoded characters, goes back to every star, and makes of a set what Python's
 * fnmatch.translate makes of it, with lists of chunks. The input is pattern, line feed, text.
 */
#include "common/glob.h"

#include <string.h>

#include "common/auto.h"
#include "common/utf8.h"
#include "t/fuzz/fuzz.h"

#define CHARS 48

struct text {
	uint32_t c[CHARS];
	int n;
};

static int fuel;

static struct text decode(const char *s, size_t len)
{
	struct text out = { .n = 0 };

	for (size_t i = 0; i < len && out.n < CHARS;) {
		size_t n = 1;

		while (n <= 4 && i + n <= len && !abx_utf8_is_valid(s + i, n))
			n++;
		if (n > 4 || i + n > len) {
			out.c[out.n++] = 0xdc00u + (unsigned char)s[i++];
			continue;
		}
		uint32_t c = (unsigned char)s[i];
		if (n > 1) {
			c &= 0x7fu >> n;
			for (size_t k = 1; k < n; k++)
				c = c << 6 | ((unsigned char)s[i + k] & 0x3fu);
		}
		out.c[out.n++] = c;
		i += n;
	}
	return out;
}

/* The chunks between the hyphens that make ranges. */
struct chunks {
	struct text chunk[CHARS];
	int n;
};

static void add_chunk(struct chunks *chunks, const struct text *pattern, int from, int to)
{
	struct text *chunk = &chunks->chunk[chunks->n++];

	chunk->n = 0;
	for (int i = from; i < to; i++)
		chunk->c[chunk->n++] = pattern->c[i];
}

static int find(const struct text *pattern, uint32_t c, int from, int to)
{
	for (int i = from; i < to; i++)
		if (pattern->c[i] == c)
			return i;
	return -1;
}

static void merge_empty_ranges(struct chunks *chunks)
{
	for (int k = chunks->n - 1; k > 0; k--) {
		struct text *left = &chunks->chunk[k - 1], *right = &chunks->chunk[k];

		if (left->c[left->n - 1] <= right->c[0])
			continue;
		left->n--;
		for (int i = 1; i < right->n; i++)
			left->c[left->n++] = right->c[i];
		for (int i = k; i + 1 < chunks->n; i++)
			chunks->chunk[i] = chunks->chunk[i + 1];
		chunks->n--;
	}
}

/* Whether the set of pattern[i..j) holds c. */
static bool naive_set(const struct text *pattern, int i, int j, uint32_t c)
{
	static struct chunks chunks;
	uint32_t stuff[2 * CHARS];
	bool is_range[2 * CHARS] = { false };
	bool negated, hit = false;
	int n = 0, at = 0, k = pattern->c[i] == '!' ? i + 2 : i + 1;

	chunks.n = 0;
	for (int hyphen = find(pattern, '-', k, j); hyphen >= 0; hyphen = find(pattern, '-', k, j)) {
		add_chunk(&chunks, pattern, i, hyphen);
		i = hyphen + 1;
		k = hyphen + 3;
	}
	if (i < j) {
		add_chunk(&chunks, pattern, i, j);
	} else {
		struct text *last = &chunks.chunk[chunks.n - 1];
		last->c[last->n++] = '-';
	}
	merge_empty_ranges(&chunks);
	for (int b = 0; b < chunks.n; b++) {
		if (b > 0) {
			is_range[n] = true;
			stuff[n++] = '-';
		}
		for (int a = 0; a < chunks.chunk[b].n; a++)
			stuff[n++] = chunks.chunk[b].c[a];
	}
	if (n == 0)
		return false;
	negated = stuff[0] == '!';
	if (negated && n == 1)
		return true;
	/* As a regular expression reads it: a hyphen at the very beginning makes no range. */
	for (at = negated; at < n; at++) {
		if (at + 2 < n && is_range[at + 1]) {
			hit |= c >= stuff[at] && c <= stuff[at + 2];
			at += 2;
		} else {
			hit |= c == stuff[at];
		}
	}
	return negated ? !hit : hit;
}

static bool naive(const struct text *pattern, int p, const struct text *text, int t)
{
	if (--fuel < 0)
		return false;
	if (p == pattern->n)
		return t == text->n;
	if (pattern->c[p] == '*') {
		for (int from = t; from <= text->n; from++)
			if (naive(pattern, p + 1, text, from))
				return true;
		return false;
	}
	if (t == text->n)
		return false;
	if (pattern->c[p] == '?')
		return naive(pattern, p + 1, text, t + 1);
	if (pattern->c[p] == '[') {
		int j = p + 1;

		j += j < pattern->n && pattern->c[j] == '!';
		j += j < pattern->n && pattern->c[j] == ']';
		j = find(pattern, ']', j, pattern->n);
		if (j >= 0)
			return naive_set(pattern, p + 1, j, text->c[t]) && naive(pattern, j + 1, text, t + 1);
	}
	return pattern->c[p] == text->c[t] && naive(pattern, p + 1, text, t + 1);
}

/* Components of a path. */
struct path {
	struct text component[CHARS];
	int n;
};

static struct path split(const struct text *text)
{
	static struct path path;
	bool in = false;

	path.n = 0;
	for (int i = 0; i < text->n; i++) {
		if (text->c[i] == '/') {
			in = false;
			continue;
		}
		if (!in)
			path.component[path.n++].n = 0;
		in = true;
		struct text *last = &path.component[path.n - 1];
		last->c[last->n++] = text->c[i];
	}
	return path;
}

static bool is_any(const struct text *component)
{
	return component->n == 2 && component->c[0] == '*' && component->c[1] == '*';
}

static bool naive_path(const struct path *pattern, int p, const struct path *path, int t)
{
	if (--fuel < 0)
		return false;
	if (p == pattern->n)
		return t == path->n;
	if (is_any(&pattern->component[p])) {
		for (int from = t; from <= path->n; from++)
			if (naive_path(pattern, p + 1, path, from))
				return true;
		return false;
	}
	return t < path->n && naive(&pattern->component[p], 0, &path->component[t], 0) &&
	       naive_path(pattern, p + 1, path, t + 1);
}

static bool naive_tree(const struct path *tree, const struct path *path)
{
	for (int i = 0; i < tree->n; i++) {
		const struct text *a = &tree->component[i], *b = &path->component[i];

		if (i >= path->n || a->n != b->n || memcmp(a->c, b->c, (size_t)a->n * sizeof(a->c[0])) != 0)
			return false;
	}
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct path pattern_path, text_path;
	abx_auto_free char *copy = strndup((const char *)data, size);
	char *newline = copy ? strchr(copy, '\n') : NULL;

	if (!newline || newline - copy > CHARS || strlen(newline + 1) > CHARS)
		return 0;
	*newline = '\0';
	struct text pattern = decode(copy, strlen(copy)), text = decode(newline + 1, strlen(newline + 1));

	fuel = 200000;
	bool want = naive(&pattern, 0, &text, 0);
	if (fuel >= 0)
		FUZZ_CHECK(abx_glob_match(copy, newline + 1) == want);
	/* What matches as it is matches without regard to case. */
	FUZZ_CHECK(!want || strchr(copy, '[') || abx_glob_match_nocase(copy, newline + 1));
	pattern_path = split(&pattern);
	text_path = split(&text);
	fuel = 200000;
	want = strpbrk(copy, "*?[") ? naive_path(&pattern_path, 0, &text_path, 0) : naive_tree(&pattern_path, &text_path);
	if (fuel >= 0)
		FUZZ_CHECK(abx_glob_path(copy, newline + 1) == want);
	return 0;
}
