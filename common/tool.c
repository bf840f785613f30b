#include "common/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "common/spawn_internal.h"
#include "common/utf8.h"

int abx_tool_run(const struct abx_request *req, const struct abx_tool *tool, struct abx_spawn_result *ret_result,
		 struct abx_err *err)
{
	abx_auto_fd int root_fd = tool->cwd_fd < 0 ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	abx_auto_result struct abx_spawn_result result = ABX_SPAWN_RESULT_INIT;
	struct abx_spawn spawn = {
		.argv = tool->argv,
		.env = tool->env,
		.cwd_fd = tool->cwd_fd < 0 ? root_fd : tool->cwd_fd,
		.timeout = tool->timeout,
		.max_output = tool->max_output,
		.client_fd = req->io->client_fd,
		.raw = true,
	};

	abx_peer_init(&spawn.peer, req->io->params);
	if (spawn.cwd_fd < 0)
		return abx_err_errno(err, errno, "/");
	if (abx_spawn_run(&spawn, &result, err) < 0)
		return -1;
	switch (result.end) {
	case ABX_SPAWN_EXITED:
		break;
	case ABX_SPAWN_TIMED_OUT:
		return abx_err_set(err, ABX_E_TIMEOUT, "%s timed out after %g s", tool->argv[0], tool->timeout);
	case ABX_SPAWN_CLIENT_GONE:
		return abx_err_set(err, ABX_E_GONE, "The client left before %s ended", tool->argv[0]);
	case ABX_SPAWN_STOPPED:
		return abx_err_set(err, ABX_E_UNAVAILABLE, "The server is stopping");
	}
	*ret_result = result;
	result = (struct abx_spawn_result)ABX_SPAWN_RESULT_INIT;
	return 0;
}

bool abx_tool_is_installed(const char *name)
{
	abx_auto_fd int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	abx_auto_env struct abx_env env = { 0 };
	abx_auto_free char *path = NULL;

	/* Where that cannot be found out, running it will tell. */
	return root_fd < 0 || abx_env_init(&env) < 0 || abx_env_find_program(&env, root_fd, name, &path) != ENOENT;
}

bool abx_tool_is_missing(const struct abx_err *err)
{
	return err->kind == ABX_E_ERRNO && err->os_errno == ENOENT;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

void abx_tool_last_line(const struct abx_spawn_result *result, struct abx_strbuf *out)
{
	const char *begin = result->err.buf, *end = begin + result->err.len, *line;

	while (end > begin && is_blank(end[-1]))
		end--;
	line = memrchr(begin, '\n', (size_t)(end - begin));
	line = line ? line + 1 : begin;
	while (line < end && is_blank(*line))
		line++;
	if (line < end)
		abx_utf8_lossy(line, (size_t)(end - line), out);
	else
		abx_strbuf_adds(out, "no message");
}
