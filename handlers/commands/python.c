/* Commands of a template's own code: their functions run in its worker. */
#include <stdlib.h>
#include <string.h>

#include "handlers/commands/call.h"
#include "handlers/commands/commands.h"
#include "policy/code.h"

#define BEGINNING "{\"result\": "
#define END       "}"

/* The result goes out as the worker wrote it, whatever its size. */
static int send_result(struct call *call, uint32_t len, struct abx_err *err)
{
	struct abx_response *res = &call->req->res;

	if (abx_response_begin(res, 200, ABX_RESPONSE_JSON, (int64_t)strlen(BEGINNING) + len + (int64_t)strlen(END)) < 0 ||
	    abx_response_write(res, BEGINNING, strlen(BEGINNING)) < 0)
		return abx_err_set(err, ABX_E_GONE, "The client left during the answer");
	if (call_pass_on(call, len, err) < 0)
		return -1;
	call->answered = true;
	abx_response_write(res, END, strlen(END));
	return 0;
}

static int take_answer(struct call *call, struct abx_err *err)
{
	const struct abx_rule *rule = call->req->rule;
	struct abx_worker_frame frame;

	if (call_next(call, &frame, err) < 0)
		return -1;
	if (frame.kind == 'F')
		return call_fail(call, &frame, err);
	if (frame.kind != 'R' || frame.len == 0)
		return call_nonsense(call, "a command has a result or fails", err);
	if (rule->given & ABX_KEY_MAX_OUTPUT && frame.len > rule->limits.max_output_bytes)
		return abx_err_set(err, ABX_E_INTERNAL, "%s: the result has %u bytes; the policy allows %lld", call->what, frame.len,
				   (long long)rule->limits.max_output_bytes);
	return send_result(call, frame.len, err);
}

static int run(struct abx_request *req, const struct command *command, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf question = ABX_STRBUF_INIT, what = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&question);
	auto_call struct call call = CALL_INIT;

	abx_jw_object(&jw);
	abx_jw_kstring(&jw, "kind", "command");
	abx_jw_kstring(&jw, "name", command->name);
	abx_jw_kstring(&jw, "request_id", req->request_id);
	call_write_identity(&jw, req);
	abx_jw_object_end(&jw);
	abx_strbuf_addf(&what, "Command '%s'", command->name);
	if (call_begin(&call, req, &question, command_timeout(req, command), what.buf, err) < 0)
		return -1;
	return take_answer(&call, err);
}

/* ---- the registry */

static int take_arg(const json_t *json, struct command_arg *ret, struct abx_err *err)
{
	const json_t *standard = json_object_get(json, "default");

	*ret = (struct command_arg){ .spec = { .name = json_string_value(json_object_get(json, "name")), .type = ABX_ARG_ANY,
					       .required = json_is_true(json_object_get(json, "required")) },
				     .type = json_string_value(json_object_get(json, "type")),
				     .description = json_string_value(json_object_get(json, "description")) };
	if (!standard || json_is_null(standard))
		return 0;
	ret->spec.default_json = json_dumps(standard, JSON_ENCODE_ANY);
	return ret->spec.default_json ? 0 : abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
}

static int add(const struct abx_code *code, const json_t *json, struct abx_err *err)
{
	static const struct command_kind kind = { .name = "Python", .run = run, .in_server = true };
	const json_t *args = json_object_get(json, "args"), *item;
	struct command_arg *list = calloc(json_array_size(args) + 1, sizeof(*list));
	struct command command = {
		.kind = &kind,
		.name = json_string_value(json_object_get(json, "name")),
		.description = json_string_value(json_object_get(json, "description")),
		.args = list,
		.n_args = json_array_size(args),
		.hidden = json_is_true(json_object_get(json, "hidden")),
		.timeout = json_number_value(json_object_get(json, "timeout")),
		.source = code->name,
	};
	char **scopes;
	size_t i;

	if (!list || abx_code_scopes(json_object_get(json, "scopes"), &scopes) < 0) {
		free(list);
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	}
	command.scopes = scopes;
	json_array_foreach(args, i, item)
		if (take_arg(item, &list[i], err) < 0)
			return -1;
	return command_registry_add(&command, err);
}

int command_load_python(const struct abx_service *service ABX_UNUSED, struct abx_err *err)
{
	const struct abx_code *code = abx_code_current();
	const json_t *item;
	size_t i;

	if (!code)
		return 0;
	json_array_foreach(json_object_get(code->json, "commands"), i, item)
		if (add(code, item, err) < 0)
			return -1;
	return 0;
}
