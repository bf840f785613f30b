/* The policy: read at the start and on SIGHUP, decided here, and handed to the responders. */
#include "handlers/abxd/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/audit.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/log.h"
#include "policy/document.h"
#include "policy/policy.h"

#define STATUS_FILE "reload.status"

/* How the warning begins that a bad document leaves. */
#define STALE "The policy could not be read again"

extern char **environ;

static void replace_fd(int *fd, int new_fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = new_fd;
}

/* Every rule that counts calls gets a place for each identity. */
static int assign_slots(struct abx_rates *rates, struct abx_policy *policy, struct abx_err *err)
{
	abx_rates_begin(rates);
	for (size_t i = 0; i < abx_endpoint_count(); i++) {
		struct abx_rule *rule = &policy->rules[i];
		bool is_open = abx_endpoint_at(i)->flags & ABX_EP_OPEN;

		if (!rule->rate.count && !rule->max_concurrent)
			continue;
		rule->slots = calloc(policy->n_identities, sizeof(*rule->slots));
		if (!rule->slots)
			return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
		for (size_t k = 0; k < policy->n_identities; k++) {
			rule->slots[k] = abx_rates_slot(rates, is_open ? "" : policy->identities[k].id, abx_endpoint_at(i)->id);
			if (rule->slots[k] < 0)
				return abx_err_set(err, ABX_E_VALUE, "rate and max_concurrent of %zu identities need more than %d counters",
						   policy->n_identities, ABX_RATE_SLOTS);
		}
	}
	return 0;
}

/* A file that cannot be written is told now, and not by the first call that is to be noted. */
static int try_audit(const struct abx_policy *policy, struct abx_err *err)
{
	struct abx_err why = ABX_ERR_INIT;
	struct abx_audit *audit;

	if (!policy->audit_file)
		return 0;
	audit = abx_audit_open(policy->audit_file, false, &why);
	if (!audit)
		return abx_err_set(err, ABX_E_VALUE, "audit.file: %s", why.message);
	abx_audit_close(audit);
	return 0;
}

/* Decide from a document (or none), and publish. On success both are the server's. */
static int publish(struct abx_server *server, struct abx_document *document, struct abx_err *err)
{
	struct abx_policy *policy = abx_policy_build(&server->settings, document, err);
	int fd = -1;

	if (policy && assign_slots(&server->board->rates, policy, err) == 0 && try_audit(policy, err) == 0 &&
	    abx_policy_warn_runtimes(policy, getenv("PATH"), err) == 0)
		fd = abx_policy_publish(policy, err);
	if (fd < 0) {
		abx_policy_free(policy);
		return -1;
	}
	replace_fd(&server->policy_fd, fd);
	abx_policy_free(server->policy);
	server->policy = policy;
	abx_ptyd_follow(server, policy);
	if (server->document != document)
		abx_document_free(server->document);
	server->document = document;
	return 0;
}

int abx_server_read_policy(struct abx_server *server, struct abx_err *err)
{
	if (abx_document_load(&server->settings, environ, &server->document, err) < 0)
		return -1;
	abx_settings_scrub_environment(&server->settings, environ);
	server->env = abx_settings_child_env(&server->settings, environ);
	return server->env ? 0 : abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
}

int abx_server_publish_policy(struct abx_server *server, struct abx_err *err)
{
	if (publish(server, server->document, err) < 0)
		return -1;
	for (char *const *warning = server->policy->warnings; *warning; warning++)
		abx_log(ABX_LOG_WARNING, "%s", *warning);
	return 0;
}

static int read_again(struct abx_server *server, struct abx_err *err)
{
	struct abx_document *document;
	char **env;

	if (abx_document_load(&server->settings, environ, &document, err) < 0)
		return -1;
	env = abx_settings_child_env(&server->settings, environ);
	if (!env || publish(server, document, err) < 0) {
		free(env);
		if (document != server->document)
			abx_document_free(document);
		return env ? -1 : abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	}
	/* A variable that holds the token of a new identity. */
	abx_settings_scrub_environment(&server->settings, environ);
	free(server->env);
	server->env = env;
	return 0;
}

/* The policy that stays in force says that it is not the one in the file. What is wrong with that one is no caller's business. */
static void tell_callers(struct abx_server *server)
{
	char now[ABX_CLOCK_ISO_SIZE];
	struct abx_err err = ABX_ERR_INIT;
	struct timespec ts;
	int fd;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_nsec = 0;
	abx_clock_iso(now, ts);
	abx_list_drop(server->policy->warnings, STALE);
	if (abx_policy_warn(server->policy, &err, STALE " at %s: the one before is still in force. The server's log tells why.", now) < 0)
		return;
	fd = abx_policy_publish(server->policy, &err);
	if (fd < 0) {
		abx_log(ABX_LOG_ERROR, "%s", err.message);
		return;
	}
	replace_fd(&server->policy_fd, fd);
	abx_group_reload(server, ABX_GROUP_CORE);
}

/* <run>/reload.status: what `abxctl reload` waits for. The serial number tells one reload from the next. */
static void write_status(struct abx_server *server)
{
	abx_auto_strbuf struct abx_strbuf text = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&text);
	struct abx_err err = ABX_ERR_INIT;

	abx_jw_object(&jw);
	abx_jw_kint(&jw, "serial", server->reloads);
	abx_jw_kbool(&jw, "ok", !server->reload_error);
	abx_jw_kstring(&jw, "revision", server->policy->revision);
	abx_jw_kstring(&jw, "error", server->reload_error);
	abx_jw_object_end(&jw);
	abx_strbuf_addc(&text, '\n');
	if (abx_rundir_write(&server->dir, STATUS_FILE, text.buf, &err) < 0)
		abx_log(ABX_LOG_ERROR, "%s", err.message);
}

void abx_server_reload_policy(struct abx_server *server)
{
	struct abx_err err = ABX_ERR_INIT;

	free(server->reload_error);
	server->reload_error = NULL;
	server->reloading = true;
	server->reloads++;
	if (read_again(server, &err) < 0) {
		abx_log(ABX_LOG_ERROR, "the new policy is not taken, the one before stays in force: %s", err.message);
		server->reload_error = strdup(err.message);
		tell_callers(server);
		return;
	}
	abx_log(ABX_LOG_INFO, "the policy was read again (revision %s)", server->policy->revision);
	for (enum abx_group g = 0; g < ABX_GROUP__COUNT; g++)
		abx_group_reload(server, g);
	abx_ptyd_reload(server);
	abx_worker_reload(server);
}

void abx_server_reload_failed(struct abx_server *server, const char *what)
{
	if (server->reloading && !server->reload_error)
		server->reload_error = strdup(what);
}

void abx_server_reload_tick(struct abx_server *server)
{
	if (!server->reloading || !abx_groups_settled(server))
		return;
	server->reloading = false;
	write_status(server);
}
