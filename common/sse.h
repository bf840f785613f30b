/* Server-sent events (HTML standard, section 9.2), as `003` frames them: "event: <name>\ndata: <json>\n\n". */
#ifndef ABX_SSE_H
#define ABX_SSE_H

#include "common/response.h"

/* Silence after which a comment line is sent. */
#define ABX_SSE_HEARTBEAT_MS 15000

/* Begin the stream: the header block goes out at once. 0 or -1: the client has gone. */
int abx_sse_begin(struct abx_response *res);

/* Send one event and flush. `json` is one line. */
int abx_sse_event(struct abx_response *res, const char *name, const struct abx_strbuf *json);

/* Send a comment line and flush. */
int abx_sse_heartbeat(struct abx_response *res);

/* For those who send many events at once: what comes before the line of JSON, and after it. */
void abx_sse_open(struct abx_strbuf *out, const char *name);
void abx_sse_close(struct abx_strbuf *out);

/* The comment line. */
void abx_sse_comment(struct abx_strbuf *out);

#endif
