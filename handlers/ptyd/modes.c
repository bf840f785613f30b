#include "handlers/ptyd/modes.h"

#include <stdlib.h>
#include <string.h>

/* The modes that are told. The first three are the alternate screen. */
static const struct {
	int number;
	bool at_first;
} table[] = {
	{ 1049, false }, { 1047, false }, { 47, false },
	{ 1, false },    /* cursor keys of applications */
	{ 7, true },     /* wrapping at the right edge */
	{ 25, true },    /* the cursor is shown */
	{ 9, false }, { 1000, false }, { 1002, false }, { 1003, false }, { 1004, false }, { 1005, false }, { 1006, false }, { 1015, false }, /* the mouse */
	{ 2004, false }, /* pasted text is marked */
};

#define ALTERNATE 7u

/* The numeric keypad's mode has a sequence of its own. */
#define KEYPAD (1u << ABX_N(table))

static void set_mode(struct pty_modes *modes, long number, bool on)
{
	for (size_t i = 0; i < ABX_N(table); i++) {
		if (table[i].number != number)
			continue;
		if (on == table[i].at_first)
			modes->changed &= ~(1u << i);
		else
			modes->changed |= 1u << i;
	}
}

/* A whole control sequence: its parameters, and its final byte. */
static void take_control(struct pty_modes *modes, char final)
{
	char *p = modes->params;

	modes->params[modes->len] = '\0';
	if (modes->overlong)
		return;
	/* A soft reset. */
	if (final == 'p' && strcmp(p, "!") == 0)
		modes->changed &= ALTERNATE;
	if ((final != 'h' && final != 'l') || *p != '?')
		return;
	do
		set_mode(modes, strtol(p + 1, &p, 10), final == 'h');
	while (*p == ';');
}

static void take_escape(struct pty_modes *modes, char c)
{
	modes->state = PTY_PLAIN;
	modes->len = 0;
	modes->overlong = false;
	if (c == '[')
		modes->state = PTY_CSI;
	else if (strchr("]PX^_", c))
		modes->state = PTY_STRING;
	else if (c >= ' ' && c <= '/')
		modes->state = PTY_ESCAPE_MORE;
	else if (c == '\033')
		modes->state = PTY_ESCAPE;
	else if (c == '=')
		modes->changed |= KEYPAD;
	else if (c == '>')
		modes->changed &= ~KEYPAD;
	else if (c == 'c')
		modes->changed = 0;
}

static void take_csi(struct pty_modes *modes, char c)
{
	if (c >= '@' && c <= '~') {
		take_control(modes, c);
		modes->state = PTY_PLAIN;
	} else if (c >= ' ' && c <= '?') {
		if (modes->len < sizeof(modes->params) - 1)
			modes->params[modes->len++] = c;
		else
			modes->overlong = true;
	} else if (c == '\033') {
		modes->state = PTY_ESCAPE;
	} else if (c == 0x18 || c == 0x1a || (unsigned char)c >= 0x80) {
		/* It was given up. */
		modes->state = PTY_PLAIN;
	}
}

static void take(struct pty_modes *modes, char c)
{
	switch ((enum pty_modes_state)modes->state) {
	case PTY_PLAIN:
		if (c == '\033')
			modes->state = PTY_ESCAPE;
		break;
	case PTY_ESCAPE:
		take_escape(modes, c);
		break;
	case PTY_ESCAPE_MORE:
		if (c < ' ' || c > '/')
			modes->state = c == '\033' ? PTY_ESCAPE : PTY_PLAIN;
		break;
	case PTY_CSI:
		take_csi(modes, c);
		break;
	case PTY_STRING:
		if (c == '\033')
			modes->state = PTY_STRING_ESCAPE;
		else if (c == '\a' || c == 0x18 || c == 0x1a)
			modes->state = PTY_PLAIN;
		break;
	case PTY_STRING_ESCAPE:
		if (c == '\\')
			modes->state = PTY_PLAIN;
		else
			take_escape(modes, c);
		break;
	}
}

void pty_modes_feed(struct pty_modes *modes, const char *text, size_t len)
{
	const char *end = text + len;

	while (text < end) {
		if (modes->state == PTY_PLAIN) {
			/* Most output is plain. */
			text = memchr(text, '\033', (size_t)(end - text));
			if (!text)
				return;
		}
		take(modes, *text++);
	}
}

bool pty_modes_alternate(const struct pty_modes *modes)
{
	return modes->changed & ALTERNATE;
}

void pty_modes_write(const struct pty_modes *modes, struct abx_strbuf *out)
{
	for (size_t i = 0; i < ABX_N(table); i++)
		if (modes->changed & (1u << i))
			abx_strbuf_addf(out, "\033[?%d%c", table[i].number, table[i].at_first ? 'l' : 'h');
	if (modes->changed & KEYPAD)
		abx_strbuf_adds(out, "\033=");
}
