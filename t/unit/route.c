/* From method and path to a row. */
#include "t/unit/request.h"

#include "common/route.h"

/* want: the id of the row; or "404"; or "405 <Allow>". `value`: the first path parameter. */
static const struct {
	const char *method, *target, *want, *value;
} cases[] = {
	{ "GET", "/health", "health", NULL },
	{ "GET", "/health/", "health", NULL },
	{ "GET", "/health//", "404", NULL },
	{ "GET", "/health?x=1", "health", NULL },
	{ "GET", "/health/?x=/y", "health", NULL },
	{ "GET", "//health", "404", NULL },
	{ "GET", "/%68ealth", "404", NULL },
	{ "GET", "/Health", "404", NULL },
	{ "GET", "/", "404", NULL },
	{ "GET", "", "404", NULL },
	{ "GET", "health", "404", NULL },
	{ "GET", "*", "404", NULL },
	{ "GET", "/healthx", "404", NULL },
	{ "GET", "/health/x", "404", NULL },
	{ "POST", "/health", "405 GET", NULL },
	{ "HEAD", "/health", "405 GET", NULL },
	{ "OPTIONS", "/health", "405 GET", NULL },
	{ "get", "/health", "405 GET", NULL },
	{ "GET", "http://host:1/health", "health", NULL },
	{ "GET", "http://host:1/health?x", "health", NULL },
	{ "GET", "/commands", "commands_list", NULL },
	{ "POST", "/commands", "405 GET", NULL },
	{ "POST", "/commands/hello", "commands_run", "hello" },
	{ "POST", "/commands/hello/", "commands_run", "hello" },
	{ "GET", "/commands/hello", "405 POST", NULL },
	{ "POST", "/commands/h%C3%A9llo%20x", "commands_run", "h\xc3\xa9llo x" },
	{ "POST", "/commands/a%2Fb", "404", NULL },
	{ "POST", "/commands/a%00b", "404", NULL },
	{ "POST", "/commands/%ff", "404", NULL },
	{ "POST", "/commands/\xff", "404", NULL },
	{ "POST", "/commands/%C3%A9", "commands_run", "\xc3\xa9" },
	{ "POST", "/commands/a%252Fb", "commands_run", "a%2Fb" },
	{ "POST", "/commands/%", "commands_run", "%" },
	{ "POST", "/commands/a+b", "commands_run", "a+b" },
	{ "POST", "/commands//", "404", NULL },
	{ "POST", "/commands/a/b", "404", NULL },
	{ "DELETE", "/files", "files_delete", NULL },
	{ "GET", "/files", "405 DELETE", NULL },
	{ "GET", "/process/list", "process_list", NULL },
	{ "GET", "/process/12", "process_get", "12" },
	{ "GET", "/process/start", "405 POST", NULL },
	{ "POST", "/process/list", "405 GET", NULL },
	{ "GET", "/process/12/output", "process_output", "12" },
	{ "POST", "/process/12/signal", "process_signal", "12" },
	{ "GET", "/pty", "404", NULL },
	{ "GET", "/pty/sessions", "pty_list", NULL },
	{ "PUT", "/pty/sessions", "405 GET, POST", NULL },
	{ "PUT", "/pty/sessions/x", "405 DELETE, GET", NULL },
	{ "GET", "/v1/agents/runtimes", "agents_runtimes_list", NULL },
	{ "GET", "/v1/agents/other", "agents_retrieve", "other" },
	{ "GET", "/v1/agents/environments/templates", "agents_environments_templates_list", NULL },
	{ "GET", "/v1/agents/environments/files", "agents_environments_retrieve", "files" },
	{ "GET", "/v1/agents/environments/templates/files", "agents_environments_templates_retrieve", "files" },
	{ "GET", "/v1/agents/environments/e/files", "agents_environments_files_list", "e" },
};

static void check(const struct abx_service *service, size_t i)
{
	char method[32], target[128], allow[32] = "", got[64];
	char *params[] = { method, target, NULL };
	struct abx_err err = ABX_ERR_INIT;
	struct abx_memory_io mem;
	struct abx_request req;

	snprintf(method, sizeof(method), "REQUEST_METHOD=%s", cases[i].method);
	snprintf(target, sizeof(target), "REQUEST_URI=%s%s", service->policy->mount_prefix, cases[i].target);
	if (strncmp(cases[i].target, "http:", 5) == 0)
		snprintf(target, sizeof(target), "REQUEST_URI=%.13s%s%s", cases[i].target, service->policy->mount_prefix,
			 cases[i].target + 13);
	abx_memory_io_init(&mem, params, "", 0);
	abx_request_init(&req, service, &mem.io);
	if (abx_route(&req, allow, &err) == 0)
		snprintf(got, sizeof(got), "%s", req.endpoint->id);
	else if (err.kind == ABX_E_METHOD)
		snprintf(got, sizeof(got), "405 %s", allow);
	else
		snprintf(got, sizeof(got), "%d", abx_err_status(&err));
	is_str(got, cases[i].want, "%s '%s' below '%s'", cases[i].method, cases[i].target, service->policy->mount_prefix);
	if (cases[i].value)
		is_str(req.n_params ? req.params[0].value : NULL, cases[i].value, "its parameter");
	abx_request_release(&req);
}

int main(void)
{
	char prefix[] = "ABX_MOUNT_PREFIX=/sandbox/";
	char *none[] = { NULL }, *mounted[] = { prefix, NULL };
	struct abx_service plain = make_service(ABX_GROUP_CORE, none), below = make_service(ABX_GROUP_CORE, mounted);

	is_str(below.policy->mount_prefix, "/sandbox", "the prefix loses its last slash");
	for (size_t i = 0; i < ABX_N(cases); i++) {
		check(&plain, i);
		check(&below, i);
	}
	free_service(&plain);
	free_service(&below);
	return done_testing();
}
