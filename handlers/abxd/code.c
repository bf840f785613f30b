/* What the Python package hands over when a template's commands.py becomes abxd: the launch document (--code FD). */
#include "handlers/abxd/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/json.h"
#include "policy/code.h"
#include "policy/policy.h"

#define LAUNCH_MAX ((off_t)64 << 20)

static int refuse(struct abx_err *err, const char *what)
{
	return abx_err_set(err, ABX_E_VALUE, "--code: the launch document: %s", what);
}

static json_t *read_launch(int fd, struct abx_err *err)
{
	abx_auto_free char *text = NULL;
	struct stat st;
	json_t *json;

	if (fstat(fd, &st) < 0) {
		abx_err_set(err, ABX_E_VALUE, "--code: descriptor %d: %s", fd, strerror(errno));
		return NULL;
	}
	text = S_ISREG(st.st_mode) && st.st_size > 0 && st.st_size <= LAUNCH_MAX ? malloc((size_t)st.st_size) : NULL;
	if (!text || pread(fd, text, (size_t)st.st_size, 0) != st.st_size) {
		refuse(err, "is not a file, empty, or cannot be read");
		return NULL;
	}
	json = abx_json_parse(text, (size_t)st.st_size, err);
	if (!json)
		abx_err_prefix(err, "--code: the launch document");
	return json;
}

/* Take an inherited socket of this type over to a number that no child is handed descriptors under. -1: it is none. */
static int take_socket(const json_t *number, int type)
{
	json_int_t fd = json_is_integer(number) ? json_integer_value(number) : -1;
	int own, is_type = 0;
	socklen_t len = sizeof(is_type);

	if (fd <= STDERR_FILENO || fd > INT32_MAX || getsockopt((int)fd, SOL_SOCKET, SO_TYPE, &is_type, &len) < 0 || is_type != type)
		return -1;
	own = fcntl((int)fd, F_DUPFD_CLOEXEC, ABX_FD__END);
	close((int)fd);
	return own;
}

static int take_sockets(struct abx_worker *worker, const json_t *launch, struct abx_err *err)
{
	const json_t *calls = json_object_get(launch, "calls");

	worker->calls_fd = take_socket(json_array_get(calls, 0), SOCK_SEQPACKET);
	worker->their_calls_fd = take_socket(json_array_get(calls, 1), SOCK_SEQPACKET);
	worker->control_fd = take_socket(json_object_get(launch, "control"), SOCK_STREAM);
	if (worker->calls_fd < 0 || worker->their_calls_fd < 0 || worker->control_fd < 0)
		return refuse(err, "'calls' must be two SOCK_SEQPACKET sockets, and 'control' a SOCK_STREAM one");
	return 0;
}

static int take_argv(struct abx_worker *worker, const json_t *argv, struct abx_err *err)
{
	const json_t *item;
	size_t i;

	worker->argv = calloc(1, sizeof(*worker->argv));
	json_array_foreach(argv, i, item)
		if (!json_is_string(item) || !worker->argv || abx_list_add(&worker->argv, json_string_value(item)) < 0)
			return refuse(err, "'argv' must be a list of texts");
	if (!worker->argv || !worker->argv[0] || *worker->argv[0] != '/')
		return refuse(err, "'argv' must begin with the absolute path of the interpreter");
	return 0;
}

static int take_names(struct abx_server *server, const json_t *launch, struct abx_err *err)
{
	struct abx_worker *worker = &server->worker;
	const char *cwd = json_string_value(json_object_get(launch, "cwd"));
	const json_t *template = json_object_get(launch, "template");
	const char *file = json_string_value(template);

	if (!cwd || *cwd != '/')
		return refuse(err, "'cwd' must be an absolute path");
	if (template && !json_is_null(template) && (!file || *file != '/'))
		return refuse(err, "'template' must be an absolute path or null");
	worker->cwd = strdup(cwd);
	server->settings.template_file = file ? strdup(file) : NULL;
	if (!worker->cwd || (file && !server->settings.template_file))
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	return take_argv(worker, json_object_get(launch, "argv"), err);
}

/* The worker is a child of ours: we were its parent before we became abxd. */
static int take_pid(struct abx_worker *worker, const json_t *launch, struct abx_err *err)
{
	json_int_t pid = json_integer_value(json_object_get(launch, "pid"));
	siginfo_t info;

	if (pid <= 1 || pid > INT32_MAX || waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0)
		return refuse(err, "'pid' is no child of this process");
	worker->pid = (pid_t)pid;
	/* It never ran another program, so it can still be given a group of its own, in which its end finds what it has started. */
	setpgid(worker->pid, worker->pid);
	return 0;
}

int abx_code_take(struct abx_server *server, int fd, struct abx_err *err)
{
	json_auto_t *launch = read_launch(fd, err);
	const char *table = json_string_value(json_object_get(launch, "table"));
	struct abx_code *code;

	if (!launch)
		return -1;
	close(fd);
	if (!table)
		return refuse(err, "'table' is missing");
	if (take_pid(&server->worker, launch, err) < 0 || take_names(server, launch, err) < 0 ||
	    take_sockets(&server->worker, launch, err) < 0)
		return -1;
	code = abx_code_parse(table, strlen(table), err);
	if (!code)
		return -1;
	server->worker.code = code;
	abx_code_use(code);
	return 0;
}
