/* Native commands: functions of shared objects (include/abx/command.h). */
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/spawn.h"
#include "handlers/commands/custom.h"
#include "handlers/commands/watch.h"
#include "include/abx/command.h"

/* What a result grows to at most, whatever the policy says. */
#define RESULT_MAX ((size_t)1 << 30)

/* A command's own. */
struct native {
	int (*run)(struct abx_call *call);
	void *data;
	atomic_uint lost; /* threads that it did not give back in time */
};

/* A call, behind what the object sees of it. */
struct call {
	struct abx_call shown;
	struct watch watch;
	int client_fd;
	json_t *parsed; /* the arguments, once one was asked for */
	struct abx_strbuf result;
	char type[64];
	char *message;
};

/* ---- what the object calls */

static const json_t *argument(struct abx_call *shown, const char *name)
{
	struct call *call = (struct call *)shown;

	if (!call->parsed)
		call->parsed = json_loadb(shown->args, shown->args_len, JSON_ALLOW_NUL, NULL);
	return json_object_get(call->parsed, name);
}

static const char *call_text(struct abx_call *call, const char *name, size_t *ret_len)
{
	const json_t *value = argument(call, name);

	if (json_is_string(value) && ret_len)
		*ret_len = json_string_length(value);
	return json_string_value(value);
}

static int call_integer(struct abx_call *call, const char *name, int64_t *ret)
{
	const json_t *value = argument(call, name);

	if (!json_is_integer(value))
		return -1;
	*ret = json_integer_value(value);
	return 0;
}

static int call_number(struct abx_call *call, const char *name, double *ret)
{
	const json_t *value = argument(call, name);

	if (!json_is_number(value))
		return -1;
	*ret = json_number_value(value);
	return 0;
}

static int call_boolean(struct abx_call *call, const char *name)
{
	const json_t *value = argument(call, name);

	return json_is_boolean(value) ? json_is_true(value) : -1;
}

static int call_return_json(struct abx_call *shown, const char *json, size_t len)
{
	struct call *call = (struct call *)shown;

	abx_strbuf_release(&call->result);
	call->result.failed = false;
	abx_strbuf_add(&call->result, json, len);
	return call->result.failed ? -1 : 0;
}

static int call_return_text(struct abx_call *shown, const char *text, size_t len)
{
	struct call *call = (struct call *)shown;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&call->result);

	abx_strbuf_release(&call->result);
	call->result.failed = false;
	abx_jw_stringn(&jw, text, len);
	return call->result.failed ? -1 : 0;
}

static int call_fail(struct abx_call *shown, const char *type, const char *message)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
	struct call *call = (struct call *)shown;

	if (!type || !*type || strlen(type) >= sizeof(call->type) || type[strspn(type, allowed)])
		type = "RuntimeError";
	snprintf(call->type, sizeof(call->type), "%s", type);
	free(call->message);
	call->message = strdup(message ? message : "");
	return -1;
}

static int call_cancelled(struct abx_call *shown)
{
	struct call *call = (struct call *)shown;
	struct pollfd fds[2] = { { .fd = call->client_fd, .events = POLLRDHUP }, { .fd = abx_spawn_stop_fd(), .events = POLLIN } };

	/* Once it was answered the descriptor may be another's. */
	if (call->watch.state != WATCH_RUNS || abx_clock_us() >= call->watch.deadline_us)
		return 1;
	return poll(fds, 2, 0) > 0;
}

static const struct abx_call_ops call_ops = {
	.size = sizeof(call_ops),
	.text = call_text,
	.integer = call_integer,
	.number = call_number,
	.boolean = call_boolean,
	.return_json = call_return_json,
	.return_text = call_return_text,
	.fail = call_fail,
	.cancelled = call_cancelled,
};

/* ---- running */

static void call_release(struct call *call)
{
	json_decref(call->parsed);
	abx_strbuf_release(&call->result);
	free(call->message);
}

static int answer(struct abx_request *req, const struct command *command, int returned, const struct call *call, struct abx_err *err)
{
	size_t max = (size_t)req->rule->limits.max_output_bytes;

	if (returned != 0 && call->message) {
		snprintf(req->failure.type, sizeof(req->failure.type), "%s", call->type);
		return command_fail(req, call->message, strlen(call->message), err);
	}
	if (call->result.failed)
		return abx_err_set(err, ABX_E_INTERNAL, "The result of '%s' is too large for memory", command->name);
	if (returned != 0)
		return abx_err_set(err, ABX_E_INTERNAL, "The command '%s' failed and does not say why", command->name);
	if (call->result.len > max)
		return abx_err_set(err, ABX_E_INTERNAL, "The result of '%s' is larger than %zu bytes", command->name, max);
	return command_result(req, command, call->result.buf, call->result.len, err);
}

static int run_native(struct abx_request *req, const struct command *command, struct abx_err *err)
{
	struct native *native = command->data;
	abx_auto_strbuf struct abx_strbuf args = ABX_STRBUF_INIT_MAX((size_t)64 << 20);
	__attribute__((cleanup(call_release))) struct call call = { .client_fd = req->io->client_fd, .result = ABX_STRBUF_INIT_MAX(RESULT_MAX) };
	int returned;

	if (command_arguments(req, command, &args, err) < 0)
		return -1;
	call.shown = (struct abx_call){ .ops = &call_ops, .data = native->data, .command = command->name, .args = args.buf, .args_len = args.len,
					.request_id = req->request_id, .identity = req->identity ? req->identity->id : "" };
	call.watch = (struct watch){ .req = req, .command = command, .lost = &native->lost, .seconds = command_timeout(req, command) };
	if (watch_begin(&call.watch, err) < 0)
		return -1;
	returned = native->run(&call.shown);
	return watch_end(&call.watch) ? 0 : answer(req, command, returned, &call, err);
}

/* ---- loading */

static const struct command_kind native_kind = { .name = "native", .run = run_native, .in_server = true };

static int out_of_memory(struct abx_err *err)
{
	return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
}

static int complain(const char *file, const char *command, const char *what, struct abx_err *err)
{
	return abx_err_set(err, ABX_E_VALUE, "%s: command '%s': %s", file, command ? command : "", what);
}

/* The element `i` of an array whose elements may have had fewer fields, or more, when the object was built. */
static void copy_element(void *to, size_t size, const void *array, size_t stride, size_t i)
{
	memset(to, 0, size);
	memcpy(to, (const char *)array + i * stride, stride < size ? stride : size);
}

/* A default has to be JSON of the argument's type. */
static bool is_default(const char *text, enum abx_arg_type type)
{
	json_auto_t *value = json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);

	switch ((int)type) {
	case ABX_ARG_INT:
		return json_is_integer(value);
	case ABX_ARG_NUMBER:
		return json_is_number(value);
	case ABX_ARG_BOOL:
		return json_is_boolean(value);
	default:
		return json_is_string(value);
	}
}

static int take_arg(const char *file, const struct abx_command_def *def, const struct abx_command_arg *given, struct command_arg *arg,
		    struct abx_err *err)
{
	struct abx_err wrong = ABX_ERR_INIT;

	if (!given->name || command_check_name(given->name, &wrong) < 0)
		return complain(file, def->name, given->name ? wrong.message : "an argument has no name", err);
	if (!given->type || command_arg_type(given->type, &arg->spec.type) < 0)
		return complain(file, def->name, "the type of an argument is not one of string, integer, float and boolean", err);
	if (given->default_json && !is_default(given->default_json, arg->spec.type))
		return complain(file, def->name, "the default of an argument is not JSON of its type", err);
	arg->spec.name = given->name;
	arg->spec.required = given->required != 0;
	arg->spec.default_json = given->default_json;
	arg->description = given->description ? given->description : "";
	return 0;
}

/* A copy that is the table's, since the object may spell a list in its own way. */
static char **copy_scopes(const char *const *scopes)
{
	char **list = calloc(1, sizeof(*list));

	for (; list && *scopes; scopes++) {
		if (abx_list_add(&list, *scopes) < 0) {
			abx_list_free(list);
			return NULL;
		}
	}
	return list;
}

static int take_command(const char *file, const struct abx_command_def *def, size_t arg_size, struct abx_err *err)
{
	struct native *native = calloc(1, sizeof(*native));
	struct command_arg *args = calloc(def->n_args + 1, sizeof(*args));
	struct command command = { .kind = &native_kind, .name = def->name, .description = def->description ? def->description : "",
				   .args = args, .n_args = def->n_args, .hidden = def->hidden != 0, .timeout = def->timeout, .source = file,
				   .data = native };
	struct abx_err wrong = ABX_ERR_INIT;

	/* Whatever fails here ends the program. */
	if (!native || !args)
		return out_of_memory(err);
	*native = (struct native){ .run = def->run, .data = def->data };
	if (!def->name || command_check_name(def->name, &wrong) < 0)
		return complain(file, def->name, def->name ? wrong.message : "it has no name", err);
	if (!def->run || !(def->timeout >= 0))
		return complain(file, def->name, def->run ? "its timeout is negative" : "it has no function", err);
	for (size_t i = 0; i < def->n_args; i++) {
		struct abx_command_arg given;

		copy_element(&given, sizeof(given), def->args, arg_size, i);
		if (take_arg(file, def, &given, &args[i], err) < 0)
			return -1;
		for (size_t k = 0; k < i; k++)
			if (strcmp(args[k].spec.name, args[i].spec.name) == 0)
				return complain(file, def->name, "an argument is there twice", err);
	}
	if (def->scopes && !(command.scopes = copy_scopes(def->scopes)))
		return out_of_memory(err);
	return command_registry_add(&command, err);
}

static int take_module(const char *file, const struct abx_command_module *module, struct abx_err *err)
{
	char message[256] = "";

	if (!module)
		return abx_err_set(err, ABX_E_VALUE, "%s: abx_command_entry returns nothing", file);
	if (module->abi != ABX_COMMAND_ABI)
		return abx_err_set(err, ABX_E_VALUE, "%s: was built for version %u of abx/command.h; this server has version %u", file, module->abi,
				   ABX_COMMAND_ABI);
	if (module->n_commands > 0 && (!module->commands || !module->command_size || !module->arg_size))
		return abx_err_set(err, ABX_E_VALUE, "%s: its list of commands is not whole: use ABX_COMMAND_MODULE", file);
	if (module->init && module->init(message, sizeof(message)) != 0)
		return abx_err_set(err, ABX_E_VALUE, "%s: %.*s", file, (int)sizeof(message) - 1, *message ? message : "its init failed");
	for (size_t i = 0; i < module->n_commands; i++) {
		struct abx_command_def def;

		copy_element(&def, sizeof(def), module->commands, module->command_size, i);
		if (take_command(file, &def, module->arg_size, err) < 0)
			return -1;
	}
	return 0;
}

static int load_file(const char *file, struct abx_err *err)
{
	union {
		void *symbol;
		const struct abx_command_module *(*entry)(void);
	} found;
	void *object = dlopen(file, RTLD_NOW | RTLD_LOCAL);

	/* The loader's message names the file. */
	if (!object)
		return abx_err_set(err, ABX_E_VALUE, "cannot load a native command: %s", dlerror());
	found.symbol = dlsym(object, "abx_command_entry");
	if (!found.symbol)
		return abx_err_set(err, ABX_E_VALUE, "%s: does not export abx_command_entry", file);
	return take_module(file, found.entry(), err);
}

int command_load_natives(const struct abx_service *service, struct abx_err *err)
{
	static const char *const endings[] = { ".so", NULL };
	char **files;

	if (command_files(service->policy->commands_dir, endings, &files, err) < 0)
		return -1;
	/* Their names stay, like all that commands point to. */
	for (size_t i = 0; files[i]; i++)
		if (load_file(files[i], err) < 0)
			return -1;
	return 0;
}
