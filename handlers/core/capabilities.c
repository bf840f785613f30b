#include <stdio.h>
#include <string.h>

#include "handlers/core/core.h"

#define API_VERSION 2

void core_judge(const struct abx_request *req, const struct abx_endpoint *endpoint, struct core_verdict *ret)
{
	const struct abx_rule *rule = abx_policy_rule(req->service->policy, endpoint);
	bool mounted = abx_request_group_is_mounted(req, abx_endpoint_home(endpoint));

	*ret = (struct core_verdict){ .enabled = rule->enabled && mounted };
	if (!rule->enabled) {
		ret->code = "endpoint_disabled";
		snprintf(ret->rule, sizeof(ret->rule), "%s", rule->rule);
	} else if (!mounted) {
		ret->code = "endpoint_disabled";
		snprintf(ret->rule, sizeof(ret->rule), "mount:%s", abx_groups[abx_endpoint_home(endpoint)].name);
	} else if (!abx_policy_scopes_allow(req->identity->scopes, rule->scopes)) {
		ret->code = "missing_scope";
		snprintf(ret->rule, sizeof(ret->rule), "%s", abx_rule_scopes_name(rule));
	} else {
		ret->allowed = true;
	}
}

static void write_list(struct abx_json_writer *jw, const char *key, char *const *list)
{
	abx_jw_key(jw, key);
	abx_jw_array(jw);
	for (; *list; list++)
		abx_jw_string(jw, *list);
	abx_jw_array_end(jw);
}

/* The policy's warnings, those of the responders, and what abxd has to say of the worker. */
static void write_warnings(struct abx_json_writer *jw, const struct abx_request *req)
{
	abx_auto_free char *text = malloc(ABX_BOARD_WARNINGS);

	abx_jw_key(jw, "warnings");
	abx_jw_array(jw);
	for (char *const *warning = req->service->policy->warnings; *warning; warning++)
		abx_jw_string(jw, *warning);
	for (enum abx_group g = 0; text && req->service->board && g <= ABX_BOARD_WORKER; g++) {
		abx_board_warnings(req->service->board, g, text);
		for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1)
			abx_jw_stringn(jw, line, (size_t)(end - line));
	}
	abx_jw_array_end(jw);
}

static void write_limits(struct abx_json_writer *jw, const struct abx_rule *rule)
{
	const struct abx_limits *limits = &rule->limits;
	char rate[ABX_RATE_TEXT];
	const struct {
		const char *name;
		int64_t value;
	} fields[] = {
		{ "timeout_seconds", limits->timeout_seconds }, { "max_output_bytes", limits->max_output_bytes },
		{ "max_bytes", limits->max_bytes },		{ "max_files", limits->max_files },
		{ "max_depth", limits->max_depth },		{ "max_duration_seconds", limits->max_duration_seconds },
	};

	abx_jw_key(jw, "limits");
	abx_jw_object(jw);
	for (size_t i = 0; i < ABX_N(fields); i++)
		if (fields[i].value)
			abx_jw_kint(jw, fields[i].name, fields[i].value);
	if (rule->rate.count) {
		abx_rate_text(&rule->rate, rate);
		abx_jw_kstring(jw, "rate", rate);
	}
	if (rule->max_concurrent)
		abx_jw_kint(jw, "max_concurrent", rule->max_concurrent);
	abx_jw_object_end(jw);
}

/* The {parameters} of the path: all that is known of a route of the template's own. */
static void write_path_params(struct abx_json_writer *jw, const char *path)
{
	for (const char *p = strchr(path, '{'); p; p = strchr(p, '{')) {
		abx_auto_free char *name = strndup(p + 1, strcspn(p + 1, "}"));

		abx_jw_key(jw, name ? name : "");
		abx_jw_object(jw);
		abx_jw_kstring(jw, "type", "string");
		abx_jw_kbool(jw, "required", true);
		abx_jw_kstring(jw, "default", NULL);
		abx_jw_object_end(jw);
		p++;
	}
}

static void write_params(struct abx_json_writer *jw, const struct abx_endpoint *endpoint)
{
	abx_jw_key(jw, "params");
	abx_jw_object(jw);
	for (size_t i = 0; i < endpoint->n_args; i++) {
		const struct abx_arg *arg = &endpoint->args[i];
		json_auto_t *value = arg->default_json ? json_loads(arg->default_json, JSON_DECODE_ANY, NULL) : json_null();

		abx_jw_key(jw, arg->name);
		abx_jw_object(jw);
		abx_jw_kstring(jw, "type", abx_arg_type_name(arg->type));
		abx_jw_kbool(jw, "required", arg->required);
		abx_jw_key(jw, "default");
		abx_jw_value(jw, value);
		abx_jw_object_end(jw);
	}
	if (abx_endpoint_is_custom(endpoint))
		write_path_params(jw, endpoint->path);
	abx_jw_object_end(jw);
}

static void write_endpoint(struct abx_json_writer *jw, const struct abx_request *req,
			   const struct abx_endpoint *endpoint, const struct core_verdict *verdict)
{
	const struct abx_rule *rule = abx_policy_rule(req->service->policy, endpoint);

	abx_jw_key(jw, endpoint->id);
	abx_jw_object(jw);
	abx_jw_kstring(jw, "method", abx_method_name(endpoint->method));
	abx_jw_kstring(jw, "path", endpoint->path);
	abx_jw_kstring(jw, "group", abx_groups[endpoint->group].name);
	abx_jw_kstring(jw, "summary", endpoint->summary);
	abx_jw_kbool(jw, "streaming", endpoint->flags & ABX_EP_STREAM);
	abx_jw_kbool(jw, "enabled", verdict->enabled);
	abx_jw_kbool(jw, "allowed", verdict->allowed);
	abx_jw_kstring(jw, "reason", verdict->code);
	abx_jw_kstring(jw, "rule", verdict->rule[0] ? verdict->rule : NULL);
	if (endpoint->flags & ABX_EP_PLANNED)
		abx_jw_kbool(jw, "implemented", false);
	if (verdict->allowed) {
		write_list(jw, "scopes", rule->scopes);
		write_limits(jw, rule);
		write_params(jw, endpoint);
	}
	abx_jw_object_end(jw);
}

/* The numbers of a group. */
struct tally {
	size_t enabled, total;
};

static void write_groups(struct abx_json_writer *jw, const struct tally tallies[ABX_GROUP__COUNT])
{
	abx_jw_key(jw, "groups");
	abx_jw_object(jw);
	for (size_t g = 0; g < ABX_GROUP__COUNT; g++)
		abx_jw_kbool(jw, abx_groups[g].name, tallies[g].enabled > 0);
	abx_jw_object_end(jw);
	abx_jw_key(jw, "group_summary");
	abx_jw_object(jw);
	for (size_t g = 0; g < ABX_GROUP__COUNT; g++) {
		abx_jw_key(jw, abx_groups[g].name);
		abx_jw_object(jw);
		abx_jw_kint(jw, "enabled", (int64_t)tallies[g].enabled);
		abx_jw_kint(jw, "total", (int64_t)tallies[g].total);
		abx_jw_object_end(jw);
	}
	abx_jw_object_end(jw);
}

static void write_identity_and_policy(struct abx_json_writer *jw, const struct abx_request *req)
{
	const struct abx_policy *policy = req->service->policy;

	abx_jw_key(jw, "identity");
	abx_jw_object(jw);
	abx_jw_kstring(jw, "id", req->identity->id);
	write_list(jw, "scopes", req->identity->scopes);
	abx_jw_object_end(jw);
	abx_jw_key(jw, "policy");
	abx_jw_object(jw);
	abx_jw_kstring(jw, "preset", policy->preset);
	abx_jw_kstring(jw, "revision", policy->revision);
	abx_jw_kbool(jw, "configured", policy->configured);
	abx_jw_object_end(jw);
}

int h_capabilities(struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	struct tally tallies[ABX_GROUP__COUNT] = { 0 };
	size_t n = abx_endpoint_count();
	struct core_verdict verdict;

	for (size_t i = 0; i < n; i++) {
		core_judge(req, abx_endpoint_at(i), &verdict);
		tallies[abx_endpoint_at(i)->group].total++;
		tallies[abx_endpoint_at(i)->group].enabled += verdict.enabled;
	}
	abx_jw_object(&jw);
	abx_jw_kint(&jw, "api_version", API_VERSION);
	abx_jw_kstring(&jw, "server_version", PACKAGE_VERSION);
	write_groups(&jw, tallies);
	write_identity_and_policy(&jw, req);
	abx_jw_key(&jw, "endpoints");
	abx_jw_object(&jw);
	for (size_t i = 0; i < n; i++) {
		core_judge(req, abx_endpoint_at(i), &verdict);
		write_endpoint(&jw, req, abx_endpoint_at(i), &verdict);
	}
	abx_jw_object_end(&jw);
	write_warnings(&jw, req);
	abx_jw_object_end(&jw);
	return abx_response_json(&req->res, 200, &body, err);
}
