#include "common/glob.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/utf8.h"

/* A part of a pattern or of a text. */
struct span {
	const char *p, *end;
};

/* Take one character off the front. A byte that begins no valid character is one of its own, beyond those that UTF-8 can spell. */
static uint32_t take(struct span *s)
{
	unsigned char lead = (unsigned char)*s->p;
	size_t len = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
	uint32_t c = lead;

	if (len == 1 || (size_t)(s->end - s->p) < len || !abx_utf8_is_valid(s->p, len)) {
		s->p++;
		return lead < 0x80 ? lead : 0xdc00u + lead;
	}
	c &= 0xffu >> (len + 1);
	for (size_t i = 1; i < len; i++)
		c = c << 6 | ((unsigned char)s->p[i] & 0x3f);
	s->p += len;
	return c;
}

static uint32_t swap_case(uint32_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ? c ^ 0x20 : c;
}

/* The ']' that ends the set behind `p`, or NULL: then the '[' is an ordinary character. */
static const char *set_end(const char *p, const char *end)
{
	if (p < end && *p == '!')
		p++;
	if (p < end && *p == ']')
		p++;
	return p < end ? memchr(p, ']', (size_t)(end - p)) : NULL;
}

/*
 * What fnmatch makes of a set. It cuts the content at hyphens into ranges, drops ranges that are empty, and only then looks whether the first
 * character of what is left is '!'. So "[b-a!c]" is negated, and "[b-a]" matches nothing.
 */
struct set {
	uint32_t c, other; /* what is looked for, in both cases of the letter where they count as one */
	bool empty;   /* nothing of the content is left so far */
	bool negated;
	bool members; /* there is something besides the '!' */
	bool hit;
};

static void set_literal(struct set *set, uint32_t c)
{
	if (set->empty && c == '!') {
		set->negated = true;
	} else {
		set->members = true;
		set->hit |= c == set->c || c == set->other;
	}
	set->empty = false;
}

static void set_range(struct set *set, uint32_t low, uint32_t high)
{
	if (low > high)
		return;
	if (set->empty && low == '!') {
		/* The '!' is taken for the negation, so that the hyphen stands for itself. */
		set_literal(set, low);
		set_literal(set, '-');
		set_literal(set, high);
		return;
	}
	set->empty = false;
	set->members = true;
	set->hit |= (set->c >= low && set->c <= high) || (set->other >= low && set->other <= high);
}

static bool set_has(struct span content, uint32_t c, uint32_t other)
{
	struct set set = { .c = c, .other = other, .empty = true };
	size_t index = 0, hyphen_from = 1; /* a hyphen before this index stands for itself */

	if (*content.p == '!') {
		set_literal(&set, take(&content));
		index = 1;
		hyphen_from = 2;
	}
	while (content.p < content.end) {
		uint32_t low = take(&content);

		if (index + 1 >= hyphen_from && content.end - content.p >= 2 && *content.p == '-') {
			content.p++;
			set_range(&set, low, take(&content));
			index += 3;
			hyphen_from = index + 1;
		} else {
			set_literal(&set, low);
			index++;
		}
	}
	if (set.empty)
		return false;
	return set.negated ? !set.members || !set.hit : set.hit;
}

struct matcher {
	bool nocase;
	const char *no_set; /* behind this place in the pattern no set is closed: not searched for again */
};

/* Whether the first character of the text fits the first element of the pattern, which is no star; both are taken off. */
static bool match_one(struct matcher *m, struct span *pattern, struct span *text)
{
	uint32_t c = take(text), wanted;

	if (*pattern->p == '?') {
		pattern->p++;
		return true;
	}
	if (*pattern->p == '[' && (!m->no_set || pattern->p < m->no_set)) {
		const char *end = set_end(pattern->p + 1, pattern->end);
		struct span content = { pattern->p + 1, end };

		if (end) {
			pattern->p = end + 1;
			return set_has(content, c, m->nocase ? swap_case(c) : c);
		}
		m->no_set = pattern->p;
	}
	wanted = take(pattern);
	return c == wanted || (m->nocase && swap_case(c) == wanted);
}

/* The last star takes as little as it can; when the rest does not fit, one character more. Earlier stars need never be looked at again. */
static bool match(struct span pattern, struct span text, bool nocase)
{
	struct matcher m = { .nocase = nocase };
	struct span star_pattern = { NULL, NULL }, star_text = { NULL, NULL };

	for (;;) {
		if (pattern.p < pattern.end && *pattern.p == '*') {
			while (pattern.p < pattern.end && *pattern.p == '*')
				pattern.p++;
			if (pattern.p == pattern.end)
				return true;
			star_pattern = pattern;
			star_text = text;
		}
		if (text.p == text.end)
			return pattern.p == pattern.end;
		if (pattern.p < pattern.end && match_one(&m, &pattern, &text))
			continue;
		if (!star_pattern.p)
			return false;
		take(&star_text);
		pattern = star_pattern;
		text = star_text;
	}
}

static struct span whole(const char *s)
{
	return (struct span){ s, s + strlen(s) };
}

bool abx_glob_match(const char *pattern, const char *text)
{
	return match(whole(pattern), whole(text), false);
}

bool abx_glob_match_nocase(const char *pattern, const char *text)
{
	return match(whole(pattern), whole(text), true);
}

/* Take the next component off a path. An empty one means that there is none left. */
static struct span take_component(struct span *path)
{
	struct span component;

	while (path->p < path->end && *path->p == '/')
		path->p++;
	component.p = path->p;
	while (path->p < path->end && *path->p != '/')
		path->p++;
	component.end = path->p;
	return component;
}

static bool is_empty(struct span s)
{
	return s.p == s.end;
}

static bool is_any(struct span component)
{
	return component.end - component.p == 2 && memcmp(component.p, "**", 2) == 0;
}

/* As match(), with components in the place of characters and "**" in that of the star. */
static bool match_path(struct span pattern, struct span path)
{
	struct span any_pattern = { NULL, NULL }, any_path = { NULL, NULL };

	for (;;) {
		struct span wanted = take_component(&pattern), component;

		if (is_any(wanted)) {
			any_pattern = pattern;
			any_path = path;
			if (is_empty(take_component(&pattern)))
				return true;
			pattern = any_pattern;
			continue;
		}
		component = take_component(&path);
		if (is_empty(component))
			return is_empty(wanted);
		if (!is_empty(wanted) && match(wanted, component, false))
			continue;
		if (!any_pattern.p)
			return false;
		take_component(&any_path);
		pattern = any_pattern;
		path = any_path;
	}
}

static bool in_tree(struct span tree, struct span path)
{
	for (;;) {
		struct span wanted = take_component(&tree), component = take_component(&path);
		size_t len = (size_t)(wanted.end - wanted.p);

		if (is_empty(wanted))
			return true;
		if ((size_t)(component.end - component.p) != len || memcmp(component.p, wanted.p, len) != 0)
			return false;
	}
}

bool abx_glob_path(const char *pattern, const char *path)
{
	if (!strpbrk(pattern, "*?["))
		return in_tree(whole(pattern), whole(path));
	return match_path(whole(pattern), whole(path));
}
