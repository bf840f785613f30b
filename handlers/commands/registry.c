#include <string.h>

#include "common/args.h"
#include "common/gate.h"
#include "handlers/commands/commands.h"

const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < command_n_builtins; i++)
		if (strcmp(command_builtins[i].name, name) == 0)
			return &command_builtins[i];
	return NULL;
}

/* The types of `003`: clients know "float", not "number". */
static const char *type_name(enum abx_arg_type type)
{
	const char *name = abx_arg_type_name(type);

	return strcmp(name, "number") == 0 ? "float" : name;
}

static void write_args(struct abx_json_writer *jw, const struct command *command)
{
	abx_jw_key(jw, "args");
	abx_jw_array(jw);
	for (size_t i = 0; i < command->n_args; i++) {
		const struct command_arg *arg = &command->args[i];
		json_auto_t *standard =
			arg->spec.default_json ? json_loads(arg->spec.default_json, JSON_DECODE_ANY, NULL) : json_null();

		abx_jw_object(jw);
		abx_jw_kstring(jw, "name", arg->spec.name);
		abx_jw_kstring(jw, "type", type_name(arg->spec.type));
		abx_jw_kbool(jw, "required", arg->spec.required);
		abx_jw_key(jw, "default");
		abx_jw_value(jw, standard);
		abx_jw_kstring(jw, "description", arg->description);
		abx_jw_object_end(jw);
	}
	abx_jw_array_end(jw);
}

/* Make the request one of the endpoint that does the same, and ask whether the caller may use that. */
static int authorize(struct abx_request *req, const struct command *command, struct abx_err *err)
{
	req->endpoint = abx_endpoint_find(command->endpoint);
	return abx_gate_authorize(req, err);
}

int h_commands_list(struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	const struct abx_endpoint *self = req->endpoint;

	abx_jw_object(&jw);
	abx_jw_key(&jw, "commands");
	abx_jw_array(&jw);
	for (size_t i = 0; i < command_n_builtins; i++) {
		const struct command *command = &command_builtins[i];
		struct abx_err hidden = ABX_ERR_INIT;

		if (authorize(req, command, &hidden) < 0)
			continue;
		abx_jw_object(&jw);
		abx_jw_kstring(&jw, "name", command->name);
		abx_jw_kstring(&jw, "description", command->description);
		write_args(&jw, command);
		abx_jw_object_end(&jw);
	}
	abx_jw_array_end(&jw);
	abx_jw_object_end(&jw);
	req->endpoint = self;
	return abx_response_json(&req->res, 200, &body, err);
}

/* A string argument that was given another JSON type gets its JSON text, as str() would make it. */
static void coerce(json_t *args, const struct abx_arg *spec)
{
	const json_t *value = json_object_get(args, spec->name);
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&text);

	if (!value || json_is_null(value) || json_is_string(value) || strcmp(abx_arg_type_name(spec->type), "string") != 0)
		return;
	abx_jw_value(&jw, value);
	json_object_set_new(args, spec->name, json_stringn(text.buf, text.len));
}

int h_commands_run(struct abx_request *req, struct abx_err *err)
{
	const char *name = abx_request_param(req, "name");
	const struct command *command = command_find(name);

	if (!command)
		return abx_err_set(err, ABX_E_NO_COMMAND, "Unknown command: %s", name);
	if (authorize(req, command, err) < 0 || abx_gate_admit(req, err) < 0)
		return -1;
	for (size_t i = 0; i < command->n_args; i++) {
		coerce(req->args, &command->args[i].spec);
		if (abx_args_check_list(req->args, &command->args[i].spec, 1, err) < 0)
			return -1;
	}
	return command->run(req, err);
}
