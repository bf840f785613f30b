#include <string.h>

#include "handlers/commands/commands.h"

/* The types of `003`: clients know "float", not "number". */
static const char *type_name(const struct command_arg *arg)
{
	const char *name = arg->type ? arg->type : abx_arg_type_name(arg->spec.type);

	return strcmp(name, "number") == 0 ? "float" : name;
}

static void write_args(struct abx_json_writer *jw, const struct command *command)
{
	abx_jw_key(jw, "args");
	abx_jw_array(jw);
	for (size_t i = 0; i < command->n_args; i++) {
		const struct command_arg *arg = &command->args[i];
		json_auto_t *standard = arg->spec.default_json ? json_loads(arg->spec.default_json, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL) : NULL;

		abx_jw_object(jw);
		abx_jw_kstring(jw, "name", arg->spec.name);
		abx_jw_kstring(jw, "type", type_name(arg));
		abx_jw_kbool(jw, "required", arg->spec.required);
		abx_jw_key(jw, "default");
		if (standard)
			abx_jw_value(jw, standard);
		else
			abx_jw_null(jw);
		abx_jw_kstring(jw, "description", arg->description);
		abx_jw_object_end(jw);
	}
	abx_jw_array_end(jw);
}

static void write_command(struct abx_json_writer *jw, const struct command *command)
{
	abx_jw_object(jw);
	abx_jw_kstring(jw, "name", command->name);
	abx_jw_kstring(jw, "description", command->description);
	write_args(jw, command);
	abx_jw_object_end(jw);
}

int h_commands_list(struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	const struct abx_endpoint *self = req->endpoint;

	abx_jw_object(&jw);
	abx_jw_key(&jw, "commands");
	abx_jw_array(&jw);
	for (size_t i = 0; i < command_count(); i++) {
		const struct command *command = command_at(i);
		struct abx_err unseen = ABX_ERR_INIT;

		if (!command->hidden && command_authorize(req, command, &unseen) == 0)
			write_command(&jw, command);
		/* What is asked for a command must not become the request's own. */
		req->endpoint = self;
	}
	abx_jw_array_end(&jw);
	abx_jw_object_end(&jw);
	return abx_response_json(&req->res, 200, &body, err);
}
