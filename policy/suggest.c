#include <stdlib.h>
#include <string.h>

#include "policy/document.h"

#define WORD_MAX 64

/* How many letters have to be put in, taken out, changed or swapped with their neighbour (the restricted Damerau distance). */
static size_t distance(const char *a, const char *b)
{
	size_t rows[3][WORD_MAX + 1];
	size_t len_a = strlen(a), len_b = strlen(b);
	size_t *before = rows[0], *last = rows[1], *now = rows[2];

	if (len_a > WORD_MAX || len_b > WORD_MAX)
		return WORD_MAX;
	for (size_t k = 0; k <= len_b; k++)
		last[k] = k;
	for (size_t i = 1; i <= len_a; i++) {
		now[0] = i;
		for (size_t k = 1; k <= len_b; k++) {
			size_t best = last[k - 1] + (a[i - 1] != b[k - 1]);

			if (last[k] + 1 < best)
				best = last[k] + 1;
			if (now[k - 1] + 1 < best)
				best = now[k - 1] + 1;
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1] && before[k - 2] + 1 < best)
				best = before[k - 2] + 1;
			now[k] = best;
		}
		size_t *spare = before;
		before = last;
		last = now;
		now = spare;
	}
	return last[len_b];
}

const char *abx_suggest(const char *word, const char *const *words)
{
	/* A third of the letters may be wrong: more makes of anything something. */
	size_t limit = strlen(word) / 3 + 1, best = limit + 1;
	const char *found = NULL;

	for (; *words; words++) {
		size_t d = distance(word, *words);

		if (d < best && d < strlen(*words)) {
			best = d;
			found = *words;
		}
	}
	return found;
}
