#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "common/log.h"
#include "handlers/abxd/server.h"

extern char **environ;

struct options {
	bool foreground, no_lighttpd;
	const char *peer_user;
	int port; /* -1: not given */
	int code_fd; /* -1: not given */
};

static const char help[] =
	"Usage: abxd [--foreground [--code FD]] [--port N] [--no-lighttpd [--peer-user USER]]\n"
	"Serve this machine's files and processes over HTTP. Settings come from the environment (ABX_*).\n"
	"\n"
	"  --foreground      stay in the foreground; otherwise return once the server answers\n"
	"  --code FD         serve a template's own code as well: what commands.py hands over to abxd\n"
	"  --port N          listen on this port, whatever ABX_SERVER_PORT says; 0 takes a free one\n"
	"  --no-lighttpd     leave the web server to somebody else, who includes the files in <run directory>/lighttpd\n"
	"  --peer-user USER  with --no-lighttpd: the user that the web server runs as (default: www-data as root, else you)\n"
	"  --help, --version\n"
	"\n"
	"SIGTERM ends the server and all that it has started; SIGHUP reads the policy again.\n";

enum { OPT_FOREGROUND = 256, OPT_PORT, OPT_CODE, OPT_NO_LIGHTTPD, OPT_PEER_USER, OPT_HELP, OPT_VERSION };

static const struct option long_options[] = {
	{ "foreground", no_argument, NULL, OPT_FOREGROUND },
	{ "port", required_argument, NULL, OPT_PORT },
	{ "code", required_argument, NULL, OPT_CODE },
	{ "no-lighttpd", no_argument, NULL, OPT_NO_LIGHTTPD },
	{ "peer-user", required_argument, NULL, OPT_PEER_USER },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ NULL, 0, NULL, 0 },
};

static int parse_number(const char *text, int *ret_number)
{
	char *end;
	long number = strtol(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || number > 65535)
		return -1;
	*ret_number = (int)number;
	return 0;
}

/* Returns -1 to go on, or the exit status. */
static int parse_options(int argc, char **argv, struct options *options)
{
	for (int c = getopt_long(argc, argv, "", long_options, NULL); c != -1; c = getopt_long(argc, argv, "", long_options, NULL)) {
		switch (c) {
		case OPT_FOREGROUND:
			options->foreground = true;
			break;
		case OPT_PORT:
			if (parse_number(optarg, &options->port) < 0) {
				fprintf(stderr, "abxd: --port: '%s' is not a number from 0 to 65535\n", optarg);
				return EX_CONFIG;
			}
			break;
		case OPT_CODE:
			if (parse_number(optarg, &options->code_fd) < 0) {
				fprintf(stderr, "abxd: --code: '%s' is not the number of a descriptor\n", optarg);
				return EX_CONFIG;
			}
			break;
		case OPT_NO_LIGHTTPD:
			options->no_lighttpd = true;
			break;
		case OPT_PEER_USER:
			options->peer_user = optarg;
			break;
		case OPT_HELP:
			fputs(help, stdout);
			return 0;
		case OPT_VERSION:
			puts("abxd " PACKAGE_VERSION);
			return 0;
		default:
			return EX_USAGE;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "abxd: unexpected argument '%s'\n", argv[optind]);
		return EX_USAGE;
	}
	if (options->peer_user && !options->no_lighttpd) {
		fprintf(stderr, "abxd: --peer-user needs --no-lighttpd\n");
		return EX_USAGE;
	}
	if (options->code_fd >= 0 && !options->foreground) {
		fprintf(stderr, "abxd: --code needs --foreground\n");
		return EX_USAGE;
	}
	return -1;
}

/*
 * Standard input from /dev/null, and the numbers that responders are handed descriptors under taken, so that no descriptor of ours lies there.
 */
static int reserve_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd < ABX_FD__END);
	return fd < 0 || close(fd) < 0 || dup2(ABX_FD_POLICY, STDIN_FILENO) < 0 ? -1 : 0;
}

/* Wait for what the daemon reports, pass it on, and return its status. */
static int wait_for_report(int fd, pid_t child)
{
	FILE *in = fdopen(fd, "r");
	int status = in ? fgetc(in) : EOF, wait_status;

	if (status == EOF) {
		waitpid(child, &wait_status, 0);
		fprintf(stderr, "abxd: the server ended before it was ready\n");
		return WIFEXITED(wait_status) && WEXITSTATUS(wait_status) ? WEXITSTATUS(wait_status) : EXIT_FAILURE;
	}
	if (status)
		fputs("abxd: ", stderr);
	for (int c = fgetc(in); c != EOF; c = fgetc(in))
		fputc(c, status ? stderr : stdout);
	return status;
}

/* Go on in a child, in a session of its own. The parent returns its exit status, the child -1. */
static int become_daemon(struct abx_server *server)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return EXIT_FAILURE;
	pid_t pid = fork();
	if (pid < 0) {
		perror("abxd: fork");
		return EXIT_FAILURE;
	}
	if (pid > 0) {
		close(ends[1]);
		return wait_for_report(ends[0], pid);
	}
	close(ends[0]);
	server->daemon = true;
	server->report_fd = ends[1];
	setsid();
	/* What has started us may read from these until they are closed. */
	dup2(STDIN_FILENO, STDOUT_FILENO);
	return -1;
}

static int serve(struct abx_server *server)
{
	struct abx_err err = ABX_ERR_INIT;

	if (abx_server_open(server, &err) < 0) {
		server->exit_status = err.kind == ABX_E_VALUE ? EX_CONFIG : EXIT_FAILURE;
		abx_server_report(server, server->exit_status, err.message);
	} else {
		abx_server_run(server);
	}
	abx_server_close(server);
	return server->exit_status;
}

/* They wait until they can be handled. The kernel would keep them from the first process of a container, and from every other they would take its clean end. */
static void hold_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

int main(int argc, char **argv)
{
	static struct abx_server server = { .report_fd = -1, .board_fd = -1, .policy_fd = -1,
					    .dir = { .fd = -1, .spool_fd = -1, .web_uid = (uid_t)-1, .web_gid = (gid_t)-1 },
					    .web = { .listen_fd = -1, .log_fd = -1, .probe_fd = -1 },
					    .ptyd = { .listen_fd = -1, .fd = -1, .terminal_fd = -1, .control_fd = -1 },
					    .worker = { .calls_fd = -1, .their_calls_fd = -1, .control_fd = -1, .log_fd = -1 } };
	struct options options = { .port = -1, .code_fd = -1 };
	struct abx_err err = ABX_ERR_INIT;
	int status = parse_options(argc, argv, &options);

	if (status >= 0)
		return status;
	if (options.foreground)
		hold_signals();
	if (abx_settings_load(environ, &server.settings, &err) < 0 ||
	    (options.code_fd >= 0 && abx_code_take(&server, options.code_fd, &err) < 0) || abx_server_read_policy(&server, &err) < 0) {
		fprintf(stderr, "abxd: %s\n", err.message);
		return EX_CONFIG;
	}
	/* From here on nobody of our own user reads our memory or environment, or has us leave a core file. */
	if (prctl(PR_SET_DUMPABLE, 0) < 0 || reserve_descriptors() < 0) {
		perror("abxd");
		return EXIT_FAILURE;
	}
	if (options.port >= 0)
		server.settings.port = options.port;
	if (options.no_lighttpd)
		server.peer_user = options.peer_user ? options.peer_user : geteuid() == 0 ? "www-data" : "";
	abx_log_init("abxd", server.settings.log_level, server.settings.log_json);
	if (!options.foreground) {
		status = become_daemon(&server);
		if (status >= 0)
			return status;
	}
	return serve(&server);
}
