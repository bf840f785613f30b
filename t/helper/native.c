/* Native commands for tests: what goes well, and what goes wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <abx/command.h>

static int started; /* by init */

static void pause_ms(long ms)
{
	struct timespec left = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&left, NULL);
}

static int run_echo(struct abx_call *call)
{
	return abx_call_return_json(call, call->args, (ptrdiff_t)call->args_len);
}

static int run_about(struct abx_call *call)
{
	static const char *const wanted[] = { "about", "anonymous" };

	if (strcmp(call->command, wanted[0]) != 0 || strcmp(call->identity, wanted[1]) != 0 || !*call->request_id || started != 1)
		return abx_call_fail(call, NULL, "it is not as it should be");
	return abx_call_return_text(call, (const char *)call->data, -1);
}

static int run_getters(struct abx_call *call)
{
	size_t len = 99;
	const char *text = abx_call_text(call, "text", &len);

	if (abx_call_text(call, "missing", NULL) || abx_call_text(call, "int", NULL) || abx_call_integer(call, "text", -7) != -7 ||
	    abx_call_number(call, "bool", 0.5) != 0.5 || abx_call_boolean(call, "int") != -1 || abx_call_number(call, "int", 0) != 5)
		return abx_call_fail(call, "TypeError", "a getter is wrong");
	if (abx_call_integer(call, "int", 0) != 5 || abx_call_number(call, "float", 0) != 2.5 || abx_call_boolean(call, "bool") != 1)
		return abx_call_fail(call, "TypeError", "a value is wrong");
	return abx_call_return_text(call, text, (ptrdiff_t)len);
}

static int run_raw(struct abx_call *call)
{
	size_t len = 0;
	const char *text = abx_call_text(call, "json", &len);

	return text ? abx_call_return_json(call, text, (ptrdiff_t)len) : 0;
}

static int run_fail(struct abx_call *call)
{
	return abx_call_fail(call, abx_call_text(call, "type", NULL), abx_call_text(call, "message", NULL));
}

static int run_silent(struct abx_call *call)
{
	return call->args_len > 0 ? -1 : 0;
}

/* Until somebody makes the file of this name, whatever the caller does; and a second call that asks. */
static int run_hang(struct abx_call *call)
{
	const char *file = abx_call_text(call, "until", NULL);

	while (file && access(file, F_OK) < 0)
		pause_ms(5);
	/* Nobody hears of it. */
	return abx_call_return_text(call, "late", -1);
}

static int run_patient(struct abx_call *call)
{
	const char *file = abx_call_text(call, "tells", NULL);
	FILE *out;

	while (!abx_call_cancelled(call))
		pause_ms(5);
	out = file ? fopen(file, "we") : NULL;
	if (out)
		fclose(out);
	return 0;
}

static int run_crash(struct abx_call *call)
{
	if (call->args_len > 0)
		abort();
	return 0;
}

static int run_large(struct abx_call *call)
{
	size_t len = (size_t)abx_call_integer(call, "bytes", 2);
	char *text = malloc(len);
	int result;

	if (!text)
		return abx_call_fail(call, "MemoryError", "out of memory");
	memset(text, 'x', len);
	text[0] = text[len - 1] = '"';
	result = abx_call_return_json(call, text, (ptrdiff_t)len);
	free(text);
	return result;
}

static int init(char *message, size_t size)
{
	const char *refuse = getenv("NATIVE_REFUSES");

	started++;
	if (!refuse)
		return 0;
	strncpy(message, refuse, size - 1);
	message[size - 1] = '\0';
	return -1;
}

static const struct abx_command_arg all_args[] = {
	{ "text", "string", 1, NULL, "A text." },
	{ "int", "integer", 0, "3", NULL },
	{ "float", "float", 0, "1.5", "A number." },
	{ "bool", "boolean", 0, "false", NULL },
};
static const struct abx_command_arg json_args[] = { { "json", "string", 0, NULL, NULL } };
static const struct abx_command_arg fail_args[] = { { "type", "string", 0, NULL, NULL }, { "message", "string", 0, NULL, NULL } };
static const struct abx_command_arg hang_args[] = { { "until", "string", 1, NULL, NULL } };
static const struct abx_command_arg patient_args[] = { { "tells", "string", 1, NULL, NULL } };
static const struct abx_command_arg large_args[] = { { "bytes", "integer", 1, NULL, NULL } };
static const char *const scopes[] = { "native:run", NULL };
static char about[] = "what it is about";

static const struct abx_command_def commands[] = {
	{ "echo", "Give the arguments back.", all_args, 4, NULL, 0, 0, run_echo, NULL },
	{ "about", NULL, NULL, 0, NULL, 0, 0, run_about, about },
	{ "getters", NULL, all_args, 4, NULL, 0, 0, run_getters, NULL },
	{ "raw", NULL, json_args, 1, NULL, 0, 0, run_raw, NULL },
	{ "fail", NULL, fail_args, 2, NULL, 0, 0, run_fail, NULL },
	{ "silent", NULL, NULL, 0, NULL, 0, 0, run_silent, NULL },
	{ "hang", NULL, hang_args, 1, NULL, 0, 0.2, run_hang, NULL },
	{ "patient", NULL, patient_args, 1, NULL, 0, 0, run_patient, NULL },
	{ "crash", NULL, NULL, 0, NULL, 0, 0, run_crash, NULL },
	{ "large", NULL, large_args, 1, NULL, 0, 0, run_large, NULL },
	{ "secret", NULL, NULL, 0, NULL, 1, 0, run_echo, NULL },
	{ "scoped", NULL, NULL, 0, scopes, 0, 0, run_echo, NULL },
};

static const struct abx_command_module module =
	ABX_COMMAND_MODULE(commands, sizeof(commands) / sizeof(commands[0]), init);

ABX_COMMAND_EXPORT const struct abx_command_module *abx_command_entry(void)
{
	return &module;
}
