#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "common/uri.h"
#include "handlers/abxctl/http.h"

#define BODY_MAX ((size_t)64 << 20)

/* Send a value as the body of a POST; the answer is a new reference, or NULL and *ret_status. */
static json_t *post(const struct ctl *ctl, const char *target, const json_t *value, int *ret_status)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT_MAX(BODY_MAX);
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	struct http_request request = { .method = "POST", .target = target };

	abx_jw_value(&jw, value);
	if (body.failed) {
		*ret_status = ctl_fail(CTL_USAGE, "the arguments are too large");
		return NULL;
	}
	request.body = body.buf;
	request.body_len = body.len;
	return http_call_json(ctl, &request, ret_status);
}

/* ---- call */

/* Take "key=text" or "key:=json" into the arguments. */
static int add_argument(json_t *args, const char *text)
{
	const char *equals = strchr(text, '=');
	bool typed = equals && equals > text && equals[-1] == ':';
	size_t len = equals ? (size_t)(equals - text) - typed : 0;
	abx_auto_free char *key = strndup(text, len);
	struct abx_err err = ABX_ERR_INIT;

	if (!key)
		return ctl_fail(CTL_FAILED, "out of memory");
	if (len == 0)
		return ctl_fail(CTL_USAGE, "'%s' is not of the form key=value or key:=json", text);
	if (json_object_get(args, key))
		return ctl_fail(CTL_USAGE, "%s is given twice", key);
	json_t *value = typed ? abx_json_parse(equals + 1, strlen(equals + 1), &err) : json_string(equals + 1);
	if (!value && typed)
		return ctl_fail(CTL_USAGE, "%s: %s", key, err.message);
	if (!value || json_object_set_new(args, key, value) < 0)
		return ctl_fail(CTL_USAGE, "%s: the argument is not UTF-8", key);
	return CTL_OK;
}

int cmd_call(struct ctl *ctl)
{
	abx_auto_strbuf struct abx_strbuf target = ABX_STRBUF_INIT;
	json_auto_t *args = json_object(), *body = NULL;
	int status = CTL_OK;

	for (int i = 1; i < ctl->argc && status == CTL_OK; i++)
		status = add_argument(args, ctl->argv[i]);
	if (status != CTL_OK)
		return status;
	abx_strbuf_adds(&target, "/commands/");
	abx_uri_encode(ctl->argv[0], strlen(ctl->argv[0]), false, &target);
	body = post(ctl, target.buf, args, &status);
	if (!body)
		return status;
	json_t *result = json_object_get(body, "result");
	if (!result)
		return ctl_fail(CTL_FAILED, "%s does not answer as expected: there is no result", ctl->url);
	return ctl_print_result(ctl, result);
}

/* ---- shell */

/* Append a word so that the server splits it off as the same word. */
static void add_word(struct abx_strbuf *out, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";

	if (*word && !word[strspn(word, plain)]) {
		abx_strbuf_adds(out, word);
		return;
	}
	abx_strbuf_addc(out, '\'');
	for (; *word; word++) {
		if (*word == '\'')
			abx_strbuf_adds(out, "'\\''");
		else
			abx_strbuf_addc(out, *word);
	}
	abx_strbuf_addc(out, '\'');
}

/* One operand is a whole command line; several are the words of one. */
static int make_command(const struct ctl *ctl, struct abx_strbuf *out)
{
	if (ctl->argc == 1)
		abx_strbuf_adds(out, ctl->argv[0]);
	for (int i = 0; ctl->argc > 1 && i < ctl->argc; i++) {
		if (i > 0)
			abx_strbuf_addc(out, ' ');
		add_word(out, ctl->argv[i]);
	}
	return out->failed ? ctl_fail(CTL_USAGE, "the command is too long") : CTL_OK;
}

int cmd_shell(struct ctl *ctl)
{
	abx_auto_strbuf struct abx_strbuf command = ABX_STRBUF_INIT;
	json_auto_t *args = json_object(), *result = NULL;
	int status = make_command(ctl, &command);

	if (status != CTL_OK)
		return status;
	if (json_object_set_new(args, "command", json_stringn(command.buf, command.len)) < 0)
		return ctl_fail(CTL_USAGE, "the command is not UTF-8");
	result = post(ctl, "/shell", args, &status);
	return result ? ctl_print_result(ctl, result) : status;
}
