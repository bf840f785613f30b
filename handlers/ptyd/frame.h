/* The messages that a client of a terminal sends (contract, section 5 "terminal"). */
#ifndef PTYD_FRAME_H
#define PTYD_FRAME_H

#include "common/json.h"

/* Longest message; a longer one ends the connection. */
#define PTY_MESSAGE_MAX ((size_t)1 << 20)

/* A terminal has 1 to this many columns and rows. */
#define PTY_SIZE_MAX 1000

enum pty_frame_kind { PTY_FRAME_INPUT, PTY_FRAME_RESIZE, PTY_FRAME_SIGNAL };

struct pty_frame {
	enum pty_frame_kind kind;
	const char *data; /* INPUT: lives in `text` or in `body` */
	size_t len;
	int cols, rows; /* RESIZE */
	int signal;     /* SIGNAL */
	json_t *body;
};

/* Read one message; `text` is changed. On success the caller releases *ret_frame. -1: ABX_E_VALUE says what is wrong with it. */
int pty_frame_parse(char *text, size_t len, struct pty_frame *ret_frame, struct abx_err *err);
void pty_frame_release(struct pty_frame *frame);

/* Take a number of columns or rows out of `object`: an integer from 1 to PTY_SIZE_MAX. */
int pty_size_take(const json_t *object, const char *name, int *ret_size, struct abx_err *err);

#endif
