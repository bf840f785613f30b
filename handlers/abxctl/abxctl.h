/*
 * abxctl: the command-line client, and what starts and stops a server of this machine. main.c holds the table of
 * subcommands; each is a function `cmd_<name>` that returns the exit status.
 */
#ifndef ABXCTL_H
#define ABXCTL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "common/strbuf.h"

/* Exit statuses. A command that ran on the server may have any other. */
enum {
	CTL_OK = 0,
	CTL_FAILED = 1,        /* the request failed */
	CTL_USAGE = 2,         /* arguments or settings that cannot be right */
	CTL_NOT_RUNNING = 3,   /* there is no server here */
	CTL_NO_CONNECTION = 7, /* nothing answers at the URL */
};

struct ctl {
	char *url;   /* of the server, without a slash at the end */
	char *token; /* or NULL */
	bool json, foreground;
	const char *port; /* of --port, or NULL */
	int64_t wait_ms;  /* of --wait */
	const char *session, *shell; /* of the options of these names, or NULL */
	int argc;         /* operands */
	char **argv;
};

/* ---- settings.c */

/* Take URL and token from the environment, and the token out of it. 0, or an exit status after a message. */
int ctl_settings(struct ctl *ctl);
void ctl_release(struct ctl *ctl);

/* ---- print.c */

/* Print "abxctl: <text>" to standard error. Returns `status`. */
int ctl_fail(int status, const char *fmt, ...) ABX_PRINTF(2, 3);

/* Print a value to standard output: indented, or in one line with --json. */
int ctl_print_json(const struct ctl *ctl, json_t *value);

/*
 * Print what a command has returned. A string is printed as it is; what a shell command returns goes to standard output
 * and standard error, and its exit code (128 + N after signal N) is returned; the rest, and with --json everything, is
 * printed as JSON.
 */
int ctl_print_result(const struct ctl *ctl, json_t *result);

/* ---- rundir.c */

/* A server that runs on this machine. */
struct ctl_server {
	char *dir; /* its run directory */
	pid_t pid;
	int pidfd;
	char *url; /* NULL: another web server serves it */
};

#define CTL_SERVER_INIT { .pidfd = -1 }

/*
 * Find the server of ABX_RUN_DIR or of the default run directories. 0, or an exit status with *err set: CTL_NOT_RUNNING
 * or CTL_FAILED. Release with ctl_server_release.
 */
int ctl_server_find(struct ctl_server *ret_server, struct abx_err *err);
void ctl_server_release(struct ctl_server *server);
#define ctl_auto_server __attribute__((cleanup(ctl_server_release)))

/* ---- the subcommands */

int cmd_start(struct ctl *ctl);
int cmd_stop(struct ctl *ctl);
int cmd_status(struct ctl *ctl);
int cmd_reload(struct ctl *ctl);
int cmd_policy(struct ctl *ctl);
int cmd_health(struct ctl *ctl);
int cmd_discover(struct ctl *ctl);
int cmd_call(struct ctl *ctl);
int cmd_get(struct ctl *ctl);
int cmd_post(struct ctl *ctl);
int cmd_delete(struct ctl *ctl);
int cmd_capabilities(struct ctl *ctl);
int cmd_upload(struct ctl *ctl);
int cmd_download(struct ctl *ctl);
int cmd_shell(struct ctl *ctl);
int cmd_pty(struct ctl *ctl);
int cmd_version(struct ctl *ctl);

#endif
