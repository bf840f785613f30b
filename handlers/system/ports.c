#include <stdbool.h>

#include "common/proc_file.h"
#include "common/tool.h"
#include "handlers/system/handlers.h"
#include "handlers/system/sockets.h"

#define PROC_MAX   ((size_t)64 << 20)
#define SS_SECONDS 10
#define SS_MAX     ((size_t)8 << 20)

static int out_of_memory(struct abx_err *err)
{
	return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
}

static int read_proc(const char *path, bool v6, struct system_sockets *sockets, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT_MAX(PROC_MAX);

	/* A file that is not there has no sockets. */
	if (abx_proc_file_read(path, &text) < 0 && !text.failed)
		return 0;
	return system_sockets_parse_proc(text.buf, v6, sockets) < 0 ? out_of_memory(err) : 0;
}

/* Where the kernel's files show nothing, ss asks over netlink. Without ss there is nothing to tell. */
static int read_ss(struct abx_request *req, struct system_sockets *sockets, struct abx_err *err)
{
	abx_auto_env struct abx_env env = { 0 };
	abx_auto_result struct abx_spawn_result result = ABX_SPAWN_RESULT_INIT;
	char *const argv[] = { "ss", "-tlnp", NULL };
	struct abx_tool tool = { .argv = argv, .env = &env, .cwd_fd = -1, .timeout = SS_SECONDS, .max_output = SS_MAX };

	if (abx_env_init(&env) < 0)
		return out_of_memory(err);
	if (abx_tool_run(req, &tool, &result, err) < 0)
		return abx_tool_is_missing(err) ? 0 : -1;
	return system_sockets_parse_ss(result.out.buf, sockets) < 0 ? out_of_memory(err) : 0;
}

static void write_socket(struct abx_json_writer *jw, const struct system_socket *socket)
{
	abx_jw_object(jw);
	abx_jw_kint(jw, "port", socket->port);
	abx_jw_kstring(jw, "protocol", socket->v6 ? "tcp6" : "tcp");
	abx_jw_kstring(jw, "address", socket->address);
	abx_jw_key(jw, "pid");
	if (socket->pid)
		abx_jw_int(jw, socket->pid);
	else
		abx_jw_null(jw);
	abx_jw_object_end(jw);
}

int h_ports(struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT_MAX(PROC_MAX);
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	system_auto_sockets struct system_sockets sockets = { 0 };

	if (read_proc("/proc/net/tcp", false, &sockets, err) < 0 ||
	    read_proc("/proc/net/tcp6", true, &sockets, err) < 0)
		return -1;
	system_sockets_find_owners(&sockets);
	if (sockets.n == 0 && read_ss(req, &sockets, err) < 0)
		return -1;
	abx_jw_object(&jw);
	abx_jw_key(&jw, "listening");
	abx_jw_array(&jw);
	for (size_t i = 0; i < sockets.n; i++)
		write_socket(&jw, &sockets.at[i]);
	abx_jw_array_end(&jw);
	abx_jw_object_end(&jw);
	return abx_response_json(&req->res, 200, &body, err);
}
