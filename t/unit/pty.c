/* The pure parts of the pty daemon: the ring of output, the modes of a terminal, the head of a handshake, idleness. */
#include <stdlib.h>
#include <string.h>

#include "common/auto.h"
#include "common/utf8.h"
#include "handlers/ptyd/client.h"
#include "handlers/ptyd/head.h"
#include "handlers/ptyd/modes.h"
#include "handlers/ptyd/ring.h"
#include "t/tap.h"

/* ---- the ring */

static void test_ring(void)
{
	struct pty_ring ring;
	char out[64];

	is_int(pty_ring_init(&ring, 16), 0, "a ring of 16 bytes");
	is_int((long long)pty_ring_read(&ring, 0, out, sizeof(out)), 0, "it is empty");
	is_int((long long)pty_ring_replay(&ring, 8), 0, "and replays nothing");
	pty_ring_add(&ring, "0123456789", 10);
	is_int((long long)pty_ring_read(&ring, 0, out, sizeof(out)), 10, "all of it");
	ok(memcmp(out, "0123456789", 10) == 0, "as it came");
	is_int((long long)pty_ring_read(&ring, 7, out, 2), 2, "a part");
	ok(memcmp(out, "78", 2) == 0, "of it");
	pty_ring_add(&ring, "abcdefghij", 10);
	is_int((long long)pty_ring_start(&ring), 4, "the oldest bytes are overwritten");
	is_int((long long)pty_ring_read(&ring, 4, out, sizeof(out)), 16, "what is there");
	ok(memcmp(out, "456789abcdefghij", 16) == 0, "goes round the end");
	is_int((long long)pty_ring_replay(&ring, 5), 15, "the last five");
	pty_ring_add(&ring, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", 26);
	is_int((long long)ring.end, 46, "more than fits counts all the same");
	is_int((long long)pty_ring_read(&ring, pty_ring_start(&ring), out, sizeof(out)), 16, "and its end");
	ok(memcmp(out, "KLMNOPQRSTUVWXYZ", 16) == 0, "is kept");
	pty_ring_release(&ring);
}

static void test_ring_characters(void)
{
	static const char text[] = "a\xc3\xa9\xe6\xbc\xa2\xf0\x9f\x98\x80z"; /* 1 + 2 + 3 + 4 + 1 bytes */
	static const size_t edges[] = { 0, 1, 3, 6, 10, 11 };
	struct pty_ring ring;
	char out[64];

	is_int(pty_ring_init(&ring, 16), 0, "a ring");
	/* The characters lie at every place of the ring's end. */
	for (size_t before = 0; before < 16; before++) {
		pty_ring_release(&ring);
		if (pty_ring_init(&ring, 16) < 0)
			return;
		pty_ring_add(&ring, "----------------", before);
		pty_ring_add(&ring, text, sizeof(text) - 1);
		bool right = true;
		for (size_t max = 0; max <= 11; max++) {
			size_t edge = 0;
			for (size_t i = 0; i < ABX_N(edges); i++)
				if (edges[i] <= max)
					edge = edges[i];
			right &= pty_ring_read(&ring, before, out, max) == edge && abx_utf8_is_valid(out, edge);
		}
		for (size_t window = 0; window <= 11; window++) {
			size_t edge = 11;
			for (size_t i = ABX_N(edges); i-- > 0;)
				if (edges[i] >= 11 - window)
					edge = edges[i];
			right &= pty_ring_replay(&ring, window) == before + edge;
		}
		ok(right, "no character is cut, %zu bytes from the beginning", before);
	}
	pty_ring_release(&ring);
}

/* ---- modes */

static const char *modes_after(const char *text)
{
	static char shown[256];
	struct pty_modes whole = { 0 }, pieces = { 0 };
	abx_auto_strbuf struct abx_strbuf out = ABX_STRBUF_INIT;

	pty_modes_feed(&whole, text, strlen(text));
	for (const char *c = text; *c; c++)
		pty_modes_feed(&pieces, c, 1);
	if (memcmp(&whole, &pieces, sizeof(whole)) != 0)
		return "pieces differ";
	if (!pty_modes_between(&whole))
		return "inside";
	pty_modes_write(&whole, &out);
	snprintf(shown, sizeof(shown), "%s", out.buf);
	return shown;
}

static void test_modes(void)
{
	static const struct {
		const char *text, *want, *what;
	} cases[] = {
		{ "plain text\r\n", "", "plain text" },
		{ "\033[?1049h", "\033[?1049h", "the alternate screen" },
		{ "\033[?1049h\033[?1049l", "", "and back" },
		{ "\033[?25l", "\033[?25l", "no cursor" },
		{ "\033[?25l\033[?25h", "", "a cursor" },
		{ "\033[?7l\033[?1h\033=", "\033[?1h\033[?7l\033=", "keys and wrapping" },
		{ "\033=\033>", "", "the keypad's numbers" },
		{ "\033[?1000;1006;2004h", "\033[?1000h\033[?1006h\033[?2004h", "several at once" },
		{ "\033[?1000;1006h\033[?1000l", "\033[?1006h", "one of them off" },
		{ "\033[1049h\033[?1049m\033[>1049h", "", "what only looks alike" },
		{ "\033[?12345678901234567890123456789012345678901049h", "", "parameters that are too long" },
		{ "\033[?1049h\033c", "", "a reset" },
		{ "\033[?1049h\033[?25l\033[!p", "\033[?1049h", "a soft reset leaves the screen" },
		{ "\033]0;title [?1049h", "inside", "a title that has not ended" },
		{ "\033]0;ti\xc3\xa9tle\a\033[?25l", "\033[?25l", "a title" },
		{ "\033]0;title\033\\\033[?25l", "\033[?25l", "the other end of one" },
		{ "\033]0;title\033[?25l", "\033[?25l", "one that is broken off" },
		{ "\033P+q544e\033\\x", "", "a device control string" },
		{ "\033(B\033[m\033[?25l", "\033[?25l", "a character set" },
		{ "\033[?25\033[?25l", "\033[?25l", "a sequence that begins anew" },
		{ "\033[?25\030l", "", "one that is cancelled" },
		{ "\033", "inside", "an escape" },
		{ "\033[", "inside", "a sequence that has begun" },
		{ "\033[?104", "inside", "and goes on" },
		{ "\033[?\xc3\xa9", "", "text inside of one ends it" },
		{ "\033[?;h\033[?h\033[h", "", "no number" },
	};

	for (size_t i = 0; i < ABX_N(cases); i++)
		is_str(modes_after(cases[i].text), cases[i].want, "modes: %s", cases[i].what);
	struct pty_modes modes = { 0 };
	ok(!pty_modes_alternate(&modes), "at first it is not the alternate screen");
	pty_modes_feed(&modes, "\033[?47h", 6);
	ok(pty_modes_alternate(&modes), "the old way to it counts, too");
}

/* ---- heads */

#define GOOD "GET /pty?session_id=x HTTP/1.1\r\nHost: h:1\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n" \
	     "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n"

static int parse(const char *text, struct pty_head *head)
{
	static char copy[4096];
	struct abx_err err = ABX_ERR_INIT;

	snprintf(copy, sizeof(copy), "%s", text);
	*head = (struct pty_head){ .credentials = ABX_CREDENTIAL_TEXT_INIT };
	return pty_head_parse(copy, strlen(copy), head, &err);
}

static void test_heads(void)
{
	struct pty_head head;
	static const char *const bad[] = {
		"", "\r\n", "GET\r\n\r\n", "GET /pty\r\n\r\n", "GET  HTTP/1.1\r\n\r\n", "GET x HTTP/1.1\r\n\r\n", "GET /a b HTTP/1.1\r\n\r\n",
		"GET /pty HTTP/2.0\r\n\r\n", "GET /pty HTTP/1.x\r\n\r\n", "GET /pty HTTP/1.12\r\n\r\n", "G(T /pty HTTP/1.1\r\n\r\n", GOOD, GOOD "\n", GOOD "X\r\n\r\n",
		GOOD ": x\r\n\r\n", GOOD "X : y\r\n\r\n", GOOD " X: y\r\n\r\n", GOOD "X: a\001b\r\n\r\n", GOOD "X: a\rb\r\n\r\n", GOOD "X: y\n\r\n", GOOD "\r\nrest",
	};

	is_int(parse(GOOD "\r\n", &head), 0, "a handshake");
	ok(head.is_upgrade && head.version_ok, "it is one");
	is_str(head.key, "MDEyMzQ1Njc4OWFiY2RlZg==", "its key");
	is_str(head.path, "/pty", "its path");
	is_str(head.query, "session_id=x", "its query");
	is_str(head.host, "h:1", "its host");
	ok(!head.origin && !head.forwarded_host, "what it does not have");
	pty_head_release(&head);
	is_int(parse(GOOD "X-Access-Token:\t a \r\nx-access-token: b\r\nAUTHORIZATION: Bearer c\r\nAuthorization: d\r\nX-Access-Token:\r\nX_Access_Token: e\r\n\r\n", &head),
	       0, "credentials");
	is_str(head.credentials.tokens.buf, "a,b,", "every token, and no look-alike");
	is_str(head.credentials.authorizations.buf, "Bearer c, d", "every authorization");
	pty_head_release(&head);
	is_int(parse("GET /pty HTTP/1.0\r\nUpgrade: websocket\r\n\r\n", &head), 0, "without Connection");
	ok(!head.is_upgrade, "it is no upgrade");
	pty_head_release(&head);
	is_int(parse("POST /pty#x?y HTTP/1.1\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg=A\r\n\r\n", &head), 0, "a POST");
	ok(!head.is_upgrade && !head.version_ok && !*head.key, "is none, and its key is wrong");
	is_str(head.path, "/pty", "a fragment is no part of the path");
	is_str(head.query, "", "nor of the query");
	pty_head_release(&head);
	for (size_t i = 0; i < ABX_N(bad); i++)
		is_int(parse(bad[i], &head), -1, "bad head %zu", i);
}

static void test_idle(void)
{
	struct pty_client client = { .session = NULL };
	struct pty_session session = { .active_ms = 1000 };

	ok(!pty_session_is_idle(&session, 1000 + PTY_IDLE_MS - 1), "not idle yet");
	ok(pty_session_is_idle(&session, 1000 + PTY_IDLE_MS), "idle");
	session.clients = &client;
	ok(!pty_session_is_idle(&session, 1000 + PTY_IDLE_MS), "not while somebody is connected");
	session.clients = NULL;
	session.state = PTY_ENDED;
	ok(!pty_session_is_idle(&session, 1000 + PTY_IDLE_MS), "nor when it has ended");
}

int main(void)
{
	test_ring();
	test_ring_characters();
	test_modes();
	test_heads();
	test_idle();
	return done_testing();
}
