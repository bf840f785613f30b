/* What a stranger sends to the pty port: the head of a handshake, or a message. And what a program prints: the reader of escape sequences. */
#include <string.h>

#include "common/utf8.h"
#include "handlers/ptyd/frame.h"
#include "handlers/ptyd/head.h"
#include "handlers/ptyd/modes.h"
#include "t/fuzz/fuzz.h"

static void check_frame(const uint8_t *data, size_t size)
{
	abx_auto_free char *text = malloc(size + 1);
	struct abx_err err = ABX_ERR_INIT;
	struct pty_frame frame;

	memcpy(text, data, size);
	if (pty_frame_parse(text, size, &frame, &err) < 0) {
		FUZZ_CHECK(err.kind == ABX_E_VALUE && err.message[0]);
		return;
	}
	if (frame.kind == PTY_FRAME_INPUT)
		FUZZ_CHECK(frame.len < size && abx_utf8_is_valid(frame.data, frame.len));
	if (frame.kind == PTY_FRAME_RESIZE)
		FUZZ_CHECK(frame.cols >= 1 && frame.cols <= PTY_SIZE_MAX && frame.rows >= 1 && frame.rows <= PTY_SIZE_MAX);
	if (frame.kind == PTY_FRAME_SIGNAL)
		FUZZ_CHECK(frame.signal > 0);
	pty_frame_release(&frame);
}

static void check_head(const uint8_t *data, size_t size)
{
	abx_auto_free char *text = malloc(size + 1);
	struct abx_err err = ABX_ERR_INIT;
	struct pty_head head;

	memcpy(text, data, size);
	if (pty_head_parse(text, size, &head, &err) < 0)
		return;
	FUZZ_CHECK(head.path[0] == '/' && strlen(head.path) < size && strlen(head.query) < size);
	FUZZ_CHECK(strlen(head.key) == 0 || strlen(head.key) == PTY_KEY_SIZE - 1);
	FUZZ_CHECK(!head.is_upgrade || strcmp(head.method, "GET") == 0);
	FUZZ_CHECK(!memchr(head.credentials.tokens.buf, '\n', head.credentials.tokens.len));
	pty_head_release(&head);
}

/* In pieces or whole: it comes to the same. */
static void check_modes(const uint8_t *data, size_t size)
{
	struct pty_modes whole = { 0 }, pieces = { 0 };
	size_t step = size ? 1 + data[0] % 7 : 1;

	pty_modes_feed(&whole, (const char *)data, size);
	for (size_t i = 0; i < size; i += step)
		pty_modes_feed(&pieces, (const char *)data + i, size - i < step ? size - i : step);
	FUZZ_CHECK(memcmp(&whole, &pieces, sizeof(whole)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_frame(data, size);
	check_head(data, size);
	check_modes(data, size);
	return 0;
}
