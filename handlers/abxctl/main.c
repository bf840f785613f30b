#include <ctype.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "handlers/abxctl/abxctl.h"

/* ---- options */

enum { OPT_JSON = 1 << 0, OPT_FOREGROUND = 1 << 1, OPT_PORT = 1 << 2, OPT_WAIT = 1 << 3,
       OPT_SESSION = 1 << 4, OPT_SHELL = 1 << 5 };

/* What getopt returns for --help. */
#define OPT_HELP 'h'

static const struct {
	unsigned bit;
	const char *usage, *meaning;
} options[] = {
	{ OPT_JSON, "--json", "print JSON in one line, for programs" },
	{ OPT_FOREGROUND, "--foreground", "stay in the foreground until the server ends" },
	{ OPT_PORT, "--port N", "listen on this port, whatever ABX_SERVER_PORT says; 0 takes a free one" },
	{ OPT_WAIT, "--wait SECONDS", "try again for so long" },
	{ OPT_SESSION, "--session ID", "come back to this session" },
	{ OPT_SHELL, "--shell PATH", "the shell of a new session, /bin/bash by default" },
};

static const struct option long_options[] = {
	{ "json", no_argument, NULL, OPT_JSON },
	{ "foreground", no_argument, NULL, OPT_FOREGROUND },
	{ "port", required_argument, NULL, OPT_PORT },
	{ "wait", required_argument, NULL, OPT_WAIT },
	{ "session", required_argument, NULL, OPT_SESSION },
	{ "shell", required_argument, NULL, OPT_SHELL },
	{ "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

/* ---- subcommands */

struct subcommand {
	const char *name, *usage, *summary, *details;
	int (*run)(struct ctl *ctl);
	unsigned options;
	int min, max;   /* operands; max -1: any number */
	bool no_server; /* needs neither URL nor token */
	bool verbatim;  /* what follows the first operand belongs to it, also if it looks like an option */
};

static const struct subcommand subcommands[] = {
	{ .name = "start", .usage = "[--port N] [--foreground]", .run = cmd_start,
	  .options = OPT_PORT | OPT_FOREGROUND, .no_server = true,
	  .summary = "Start a server here and return once it answers.",
	  .details = "Runs the abxd beside abxctl, or the one on PATH, with the settings of the environment (ABX_*).\n"
		     "Its exit status is passed on: 78 is a setting that cannot be parsed." },
	{ .name = "stop", .usage = "", .run = cmd_stop, .no_server = true,
	  .summary = "Stop the server of ABX_RUN_DIR and wait until it has ended." },
	{ .name = "status", .usage = "[--json]", .run = cmd_status, .options = OPT_JSON,
	  .summary = "Tell whether a server is running, and which groups are on.",
	  .details = "The exit status is 0 when one is running and 3 when none is." },
	{ .name = "reload", .usage = "", .run = cmd_reload, .no_server = true,
	  .summary = "Ask the server of ABX_RUN_DIR to read its policy again." },
	{ .name = "health", .usage = "[--json] [--wait SECONDS]", .run = cmd_health, .options = OPT_WAIT | OPT_JSON,
	  .summary = "Ask whether the server answers: exit status 0 or 1." },
	{ .name = "discover", .usage = "[--json]", .run = cmd_discover, .options = OPT_JSON,
	  .summary = "List the named commands and their arguments." },
	{ .name = "call", .usage = "[--json] NAME [key=value | key:=json]...", .run = cmd_call,
	  .options = OPT_JSON, .min = 1, .max = -1,
	  .summary = "Run a named command and print its result.",
	  .details = "key=value gives a string, key:=json any JSON value: env:='{\"A\": \"1\"}'. What a shell command returns is\n"
		     "printed as it was written, and its exit code becomes that of abxctl (128 + N after signal N)." },
	{ .name = "get", .usage = "PATH", .run = cmd_get, .min = 1, .max = 1,
	  .summary = "Send a GET request and print the answer." },
	{ .name = "post", .usage = "PATH [JSON | -]", .run = cmd_post, .min = 1, .max = 2,
	  .summary = "Send a POST request and print the answer.",
	  .details = "- takes the body from standard input." },
	{ .name = "delete", .usage = "PATH [JSON | -]", .run = cmd_delete, .min = 1, .max = 2,
	  .summary = "Send a DELETE request and print the answer.",
	  .details = "- takes the body from standard input." },
	{ .name = "capabilities", .usage = "[--json]", .run = cmd_capabilities, .options = OPT_JSON,
	  .summary = "Print what the server offers to this caller." },
	{ .name = "upload", .usage = "[--json] LOCAL REMOTE", .run = cmd_upload, .options = OPT_JSON, .min = 2, .max = 2,
	  .summary = "Write a local file to the server.",
	  .details = "LOCAL may be - for standard input. A transfer that takes more than two seconds shows a bar on a terminal." },
	{ .name = "download", .usage = "[--json] REMOTE LOCAL", .run = cmd_download, .options = OPT_JSON, .min = 2, .max = 2,
	  .summary = "Fetch a file from the server.",
	  .details = "LOCAL may be - for standard output; a file is replaced as a whole or not at all. A transfer that takes more\n"
		     "than two seconds shows a bar on a terminal." },
	{ .name = "shell", .usage = "[--json] COMMAND [ARGUMENT]...", .run = cmd_shell,
	  .options = OPT_JSON, .min = 1, .max = -1, .verbatim = true,
	  .summary = "Run a command on the server.",
	  .details = "A single operand is split into words by the server, several are passed on as they are. No shell is\n"
		     "involved: for pipes and variables use: abxctl shell sh -c '...'. The exit code is that of the command." },
	{ .name = "policy", .usage = "check FILE | explain FILE ENDPOINT [VALUE]", .run = cmd_policy, .min = 2, .max = 4,
	  .no_server = true, .verbatim = true,
	  .summary = "Look at a policy document, without a server.",
	  .details = "check validates it and prints the table that follows from it; explain tells which rule decides on an endpoint and why, and\n"
		     "whether a value (a command, path, language, variable or URL) would be allowed." },
	{ .name = "pty", .usage = "[--session ID | --shell PATH]", .run = cmd_pty, .options = OPT_SESSION | OPT_SHELL,
	  .summary = "Open a terminal of the server in this one.",
	  .details = "Control-] leaves the session running, to be come back to. The exit code is that of the shell. Where standard input\n"
		     "is no terminal, it is typed into the session, and its end ends the shell." },
	{ .name = "version", .usage = "[--json]", .run = cmd_version, .options = OPT_JSON, .no_server = true,
	  .summary = "Print the version of abxctl." },
};

static const struct subcommand *find(const char *name)
{
	for (size_t i = 0; i < ABX_N(subcommands); i++)
		if (strcmp(subcommands[i].name, name) == 0)
			return &subcommands[i];
	return NULL;
}

/* ---- help */

static void print_usage(const struct subcommand *sub)
{
	printf("Usage: abxctl %s%s%s\n\n%s\n", sub->name, *sub->usage ? " " : "", sub->usage, sub->summary);
	if (sub->details)
		puts(sub->details);
	for (size_t i = 0, n = 0; i < ABX_N(options); i++)
		if (sub->options & options[i].bit)
			printf("%s  %-15s %s\n", n++ ? "" : "\n", options[i].usage, options[i].meaning);
}

static void print_help(void)
{
	puts("Usage: abxctl COMMAND [ARGUMENT]...\n\nControl and call the server that gives a container over HTTP.\n");
	for (size_t i = 0; i < ABX_N(subcommands); i++)
		printf("  %-13s %s\n", subcommands[i].name, subcommands[i].summary);
	puts("\n\"abxctl COMMAND --help\" tells more about each.\n\n"
	     "Environment:\n"
	     "  ABX_TEMPLATE_URL  the server's URL (default http://127.0.0.1:9000)\n"
	     "  ABX_SERVER_TOKEN  the token to send\n"
	     "  ABX_RUN_DIR       the run directory of the server that start, stop, status and reload are about\n\n"
	     "Exit status: 1 the request failed, 2 wrong usage, 3 no server is running, 7 no connection.");
}

/* ---- the command line */

static int parse_port(const char *text, struct ctl *ctl)
{
	char *end;
	long port = strtol(text, &end, 10);

	if (!isdigit((unsigned char)*text) || *end || port > 65535)
		return ctl_fail(CTL_USAGE, "--port: '%s' is not a number from 0 to 65535", text);
	ctl->port = text;
	return CTL_OK;
}

static int parse_wait(const char *text, struct ctl *ctl)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end == text || *end || !(seconds >= 0 && seconds <= 86400))
		return ctl_fail(CTL_USAGE, "--wait: '%s' is not a number of seconds from 0 to 86400", text);
	ctl->wait_ms = (int64_t)(seconds * 1000);
	return CTL_OK;
}

static int take_option(int option, const struct subcommand *sub, const char *word, struct ctl *ctl)
{
	if (option == ':')
		return ctl_fail(CTL_USAGE, "%s: option '%s' needs a value", sub->name, word);
	if (option == '?' || !(sub->options & (unsigned)option))
		return ctl_fail(CTL_USAGE, "%s: there is no option '%s'", sub->name, word);
	if (option == OPT_PORT)
		return parse_port(optarg, ctl);
	if (option == OPT_WAIT)
		return parse_wait(optarg, ctl);
	if (option == OPT_SESSION)
		ctl->session = optarg;
	if (option == OPT_SHELL)
		ctl->shell = optarg;
	ctl->json |= option == OPT_JSON;
	ctl->foreground |= option == OPT_FOREGROUND;
	return CTL_OK;
}

/* `argv` begins with the subcommand. 0, or an exit status; *ret_help when help was asked for. */
static int parse(int argc, char **argv, const struct subcommand *sub, struct ctl *ctl, bool *ret_help)
{
	int status = CTL_OK;

	opterr = 0;
	while (status == CTL_OK) {
		/* The word that getopt is about to look at: it is the one to blame if it does not know it. */
		int at = optind;
		int index = -1, option = getopt_long(argc, argv, sub->verbatim ? "+:h" : ":h", long_options, &index);

		if (option == -1)
			break;
		if (option == OPT_HELP) {
			*ret_help = true;
			return CTL_OK;
		}
		const char *word = index >= 0 ? long_options[index].name : argv[optind > at ? optind - 1 : at];
		status = take_option(option, sub, word + strspn(word, "-"), ctl);
	}
	if (status != CTL_OK)
		return status;
	ctl->argc = argc - optind;
	ctl->argv = argv + optind;
	if (ctl->argc < sub->min || (sub->max >= 0 && ctl->argc > sub->max))
		return ctl_fail(CTL_USAGE, "usage: abxctl %s %s", sub->name, sub->usage);
	return CTL_OK;
}

static int run(int argc, char **argv, const struct subcommand *sub, struct ctl *ctl)
{
	bool help = false;
	int status = parse(argc, argv, sub, ctl, &help);

	if (help) {
		print_usage(sub);
		return CTL_OK;
	}
	if (status == CTL_OK && !sub->no_server)
		status = ctl_settings(ctl);
	return status == CTL_OK ? sub->run(ctl) : status;
}

static const struct subcommand *choose(const char *word, int *ret_status)
{
	if (!word) {
		*ret_status = ctl_fail(CTL_USAGE, "what shall be done? abxctl --help lists the commands");
		return NULL;
	}
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
		print_help();
		return NULL;
	}
	const struct subcommand *sub = find(strcmp(word, "--version") == 0 ? "version" : word);
	if (!sub)
		*ret_status = ctl_fail(CTL_USAGE, "unknown command '%s'; abxctl --help lists them", word);
	return sub;
}

int main(int argc, char **argv)
{
	struct ctl ctl = { .wait_ms = 0 };
	int status = CTL_OK;
	const struct subcommand *sub = choose(argc > 1 ? argv[1] : NULL, &status);

	if (sub)
		status = run(argc - 1, argv + 1, sub, &ctl);
	ctl_release(&ctl);
	if ((fflush(stdout) != 0 || ferror(stdout)) && status == CTL_OK)
		return ctl_fail(CTL_FAILED, "cannot write to standard output");
	return status;
}
