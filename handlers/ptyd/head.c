#include "handlers/ptyd/head.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "common/base64.h"

/* The characters of a header's name (RFC 9110, section 5.6.2). */
static bool is_token(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && !memchr("!#$%&'*+-.^_`|~", text[i], 15))
			return false;
	return len > 0;
}

/* A value may hold anything but control characters. */
static bool is_value(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (((unsigned char)text[i] < ' ' && text[i] != '\t') || text[i] == 0x7f)
			return false;
	return true;
}

/* The next line, without its end, NUL-terminated in place. NULL: there is none, or it has a bare CR or LF inside. */
static char *next_line(char **rest, char *end, size_t *ret_len)
{
	char *line = *rest, *lf = memchr(line, '\n', (size_t)(end - line));

	if (!lf || lf == line || lf[-1] != '\r')
		return NULL;
	*rest = lf + 1;
	*ret_len = (size_t)(lf - 1 - line);
	lf[-1] = '\0';
	return line;
}

/* "GET /path?query HTTP/1.1" */
static int take_request_line(char *line, size_t len, struct pty_head *head, struct abx_err *err)
{
	char *target = memchr(line, ' ', len), *version = target ? strrchr(line, ' ') : NULL;

	if (!target || version <= target + 1 || !is_token(line, (size_t)(target - line)) || !is_value(line, len) ||
	    strncmp(version + 1, "HTTP/1.", 7) != 0 || !isdigit((unsigned char)version[8]) || version[9])
		return abx_err_set(err, ABX_E_VALUE, "The request line is not HTTP/1.1");
	*target++ = '\0';
	*version = '\0';
	if (*target != '/' || strchr(target, ' '))
		return abx_err_set(err, ABX_E_VALUE, "The request target is not a path");
	head->method = line;
	head->path = target;
	target += strcspn(target, "?#");
	head->query = *target == '?' ? target + 1 : "";
	*target = '\0';
	return 0;
}

/* Whether a comma-separated list has this word. */
static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	while (*list) {
		list += strspn(list, ", \t");
		size_t n = strcspn(list, ", \t");
		if (n == len && strncasecmp(list, word, len) == 0)
			return true;
		list += n;
	}
	return false;
}

static void take_key(const char *value, struct pty_head *head)
{
	char bytes[ABX_BASE64_DECODED(PTY_KEY_SIZE)];
	size_t len = strlen(value);

	if (len == PTY_KEY_SIZE - 1 && abx_base64_decode(value, len, bytes) == 16)
		memcpy(head->key, value, PTY_KEY_SIZE);
}

static void take_header(const char *name, const char *value, struct pty_head *head)
{
	static const char *const names[] = { "Host", "X-Forwarded-Host", "Origin" };
	const char **const places[] = { &head->host, &head->forwarded_host, &head->origin };

	for (size_t i = 0; i < ABX_N(names); i++)
		if (strcasecmp(name, names[i]) == 0 && !*places[i])
			*places[i] = value;
	if (strcasecmp(name, "X-Access-Token") == 0 && *value)
		abx_strbuf_addf(&head->credentials.tokens, "%s,", value);
	else if (strcasecmp(name, "Authorization") == 0 && *value)
		abx_strbuf_addf(&head->credentials.authorizations, "%s%s", head->credentials.authorizations.len ? ", " : "", value);
	else if (strcasecmp(name, "Upgrade") == 0)
		head->is_upgrade |= has_word(value, "websocket");
	else if (strcasecmp(name, "Sec-WebSocket-Version") == 0)
		head->version_ok = strcmp(value, "13") == 0;
	else if (strcasecmp(name, "Sec-WebSocket-Key") == 0)
		take_key(value, head);
}

/* One "Name: value". The old way to go on in the next line is refused, as is a blank before the colon: both have been used to hide a header. */
static int take_line(char *line, size_t len, struct pty_head *head, bool *connection, struct abx_err *err)
{
	char *colon = memchr(line, ':', len);

	if (!colon || !is_token(line, (size_t)(colon - line)) || !is_value(line, len))
		return abx_err_set(err, ABX_E_VALUE, "A header is malformed");
	*colon = '\0';
	char *value = colon + 1, *end = line + len;
	value += strspn(value, " \t");
	while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
		*--end = '\0';
	take_header(line, value, head);
	if (strcasecmp(line, "Connection") == 0)
		*connection |= has_word(value, "upgrade");
	return 0;
}

static int parse(char *text, size_t len, struct pty_head *head, struct abx_err *err)
{
	char *rest = text, *end = text + len;
	bool connection = false;
	size_t line_len = 0;
	char *line = next_line(&rest, end, &line_len);

	if (!line)
		return abx_err_set(err, ABX_E_VALUE, "The request line is not HTTP/1.1");
	if (take_request_line(line, line_len, head, err) < 0)
		return -1;
	for (line = next_line(&rest, end, &line_len); line && line_len > 0; line = next_line(&rest, end, &line_len))
		if (take_line(line, line_len, head, &connection, err) < 0)
			return -1;
	if (!line || rest != end)
		return abx_err_set(err, ABX_E_VALUE, "A header is malformed");
	if (head->credentials.tokens.failed || head->credentials.authorizations.failed)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	head->is_upgrade &= connection && strcmp(head->method, "GET") == 0;
	return 0;
}

int pty_head_parse(char *text, size_t len, struct pty_head *ret_head, struct abx_err *err)
{
	struct pty_head head = { .credentials = ABX_CREDENTIAL_TEXT_INIT };

	if (parse(text, len, &head, err) < 0) {
		pty_head_release(&head);
		return -1;
	}
	*ret_head = head;
	return 0;
}

void pty_head_release(struct pty_head *head)
{
	abx_credentials_forget(&head->credentials);
}
