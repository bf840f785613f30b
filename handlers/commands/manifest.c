/* Manifests: files of YAML or JSON that make a program a command. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "handlers/commands/program.h"
#include "policy/schema.h"

/* What a manifest says. It is taken over by the command, which lives as long as the program. */
struct manifest {
	const char *file;
	char *name, *description;
	struct command_arg *args;
	size_t n_args;
	bool hidden;
	char **scopes;
	double timeout;
	char **exec;
};

/* What it says of an argument. */
struct argument {
	char *name, *description;
	enum abx_arg_type type;
	bool required;
	const struct abx_node *standard; /* NULL: none */
};

static int out_of_memory(struct abx_err *err)
{
	return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
}

/* Text that may be empty. */
static int take_description(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema, void *target,
			    struct abx_err *err)
{
	char **text = (char **)((char *)target + schema->offset);

	if (abx_expect(r, node, ABX_NODE_STRING, err) < 0)
		return -1;
	*text = strdup(node->text);
	return *text ? 0 : out_of_memory(err);
}

static int take_name(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema, void *target, struct abx_err *err)
{
	struct abx_err wrong = ABX_ERR_INIT;

	if (abx_take_text(r, node, schema, target, err) < 0)
		return -1;
	return command_check_name(node->text, &wrong) < 0 ? abx_complain(r, node->line, err, "%s", wrong.message) : 0;
}

static int take_type(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema ABX_UNUSED, void *target,
		     struct abx_err *err)
{
	struct argument *argument = target;

	if (abx_expect(r, node, ABX_NODE_STRING, err) < 0)
		return -1;
	if (command_arg_type(node->text, &argument->type) == 0)
		return 0;
	return abx_complain(r, node->line, err, "unknown type '%s': it is one of string, integer, float and boolean", node->text);
}

/* Its type may come after it, so that it is looked at when all is there. */
static int take_default(struct abx_reader *r ABX_UNUSED, const struct abx_node *node, const struct abx_schema *schema ABX_UNUSED,
			void *target, struct abx_err *err ABX_UNUSED)
{
	((struct argument *)target)->standard = node;
	return 0;
}

static const struct abx_schema argument_schema[] = {
	{ .key = "name", .take = take_name, .offset = offsetof(struct argument, name) },
	{ .key = "type", .take = take_type },
	{ .key = "required", .take = abx_take_bool, .offset = offsetof(struct argument, required) },
	{ .key = "default", .take = take_default },
	{ .key = "description", .take = take_description, .offset = offsetof(struct argument, description) },
	{ .key = NULL },
};

/* A default as JSON: it has the type of the argument. null is none. */
static int default_json(struct abx_reader *r, const struct argument *argument, const char **ret_json, struct abx_err *err)
{
	static const enum abx_node_type types[] = {
		[ABX_ARG_STRING] = ABX_NODE_STRING, [ABX_ARG_INT] = ABX_NODE_INT, [ABX_ARG_NUMBER] = ABX_NODE_REAL, [ABX_ARG_BOOL] = ABX_NODE_BOOL,
	};
	struct abx_strbuf text = ABX_STRBUF_INIT;
	const struct abx_node *node = argument->standard;
	size_t mark;

	if (!node || (node->type == ABX_NODE_NULL && !node->refused))
		return 0;
	mark = abx_path_push(r, "default");
	if (!(argument->type == ABX_ARG_NUMBER && node->type == ABX_NODE_INT && !node->refused) &&
	    abx_expect(r, node, types[argument->type], err) < 0)
		return -1;
	abx_path_pop(r, mark);
	abx_node_canonical(node, &text);
	*ret_json = abx_strbuf_detach(&text);
	return *ret_json ? 0 : out_of_memory(err);
}

static int take_arg(struct abx_reader *r, const struct abx_node *node, struct manifest *manifest, struct abx_err *err)
{
	struct argument argument = { .type = ABX_ARG_STRING };
	struct command_arg *arg = &manifest->args[manifest->n_args];

	if (abx_schema_take(r, node, argument_schema, &argument, err) < 0)
		return -1;
	if (!argument.name)
		return abx_complain(r, node->line, err, "the key 'name' is missing");
	for (size_t i = 0; i < manifest->n_args; i++)
		if (strcmp(manifest->args[i].spec.name, argument.name) == 0)
			return abx_complain(r, node->line, err, "the argument '%s' is there twice", argument.name);
	*arg = (struct command_arg){ .spec = { .name = argument.name, .type = argument.type, .required = argument.required },
				     .description = argument.description ? argument.description : "" };
	manifest->n_args++;
	return default_json(r, &argument, &arg->spec.default_json, err);
}

static int take_args(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema ABX_UNUSED, void *target,
		     struct abx_err *err)
{
	struct manifest *manifest = target;
	size_t n = 0;

	if (abx_expect(r, node, ABX_NODE_LIST, err) < 0)
		return -1;
	for (const struct abx_node *item = node->first; item; item = item->next)
		n++;
	manifest->args = calloc(n + 1, sizeof(*manifest->args));
	if (!manifest->args)
		return out_of_memory(err);
	for (const struct abx_node *item = node->first; item; item = item->next) {
		char number[24];
		size_t mark;

		snprintf(number, sizeof(number), "%zu", manifest->n_args);
		mark = abx_path_push(r, number);
		if (take_arg(r, item, manifest, err) < 0)
			return -1;
		abx_path_pop(r, mark);
	}
	return 0;
}

static int take_timeout(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema ABX_UNUSED, void *target,
			struct abx_err *err)
{
	struct manifest *manifest = target;

	if (node->type != ABX_NODE_REAL && abx_expect(r, node, ABX_NODE_INT, err) < 0)
		return -1;
	manifest->timeout = node->type == ABX_NODE_REAL ? node->real : (double)node->integer;
	if (!(manifest->timeout > 0))
		return abx_complain(r, node->line, err, "must be more than 0 seconds");
	return 0;
}

/* A program and its arguments, which may be empty. */
static int take_exec(struct abx_reader *r, const struct abx_node *node, const struct abx_schema *schema ABX_UNUSED, void *target,
		     struct abx_err *err)
{
	struct manifest *manifest = target;

	if (abx_expect(r, node, ABX_NODE_LIST, err) < 0)
		return -1;
	if (!node->first)
		return abx_complain(r, node->line, err, "must have at least the program");
	for (const struct abx_node *item = node->first; item; item = item->next) {
		if (abx_expect(r, item, ABX_NODE_STRING, err) < 0)
			return -1;
		if (item == node->first && !*item->text)
			return abx_complain(r, item->line, err, "the program's name is empty");
		if (abx_list_add(&manifest->exec, item->text) < 0)
			return out_of_memory(err);
	}
	return 0;
}

static const struct abx_schema manifest_schema[] = {
	{ .key = "name", .take = take_name, .offset = offsetof(struct manifest, name) },
	{ .key = "description", .take = take_description, .offset = offsetof(struct manifest, description) },
	{ .key = "args", .take = take_args },
	{ .key = "hidden", .take = abx_take_bool, .offset = offsetof(struct manifest, hidden) },
	{ .key = "scopes", .take = abx_take_texts, .offset = offsetof(struct manifest, scopes) },
	{ .key = "timeout", .take = take_timeout },
	{ .key = "exec", .take = take_exec },
	{ .key = NULL },
};

/* Without a name it is called as its file is. */
static int name_by_file(struct abx_reader *r, struct manifest *manifest, struct abx_err *err)
{
	const char *base = strrchr(manifest->file, '/') + 1;
	struct abx_err wrong = ABX_ERR_INIT;

	manifest->name = strndup(base, (size_t)(strrchr(base, '.') - base));
	if (!manifest->name)
		return out_of_memory(err);
	return command_check_name(manifest->name, &wrong) < 0 ? abx_complain(r, 1, err, "name: %s", wrong.message) : 0;
}

static int take_manifest(struct abx_reader *r, const struct abx_node *root, struct manifest *manifest, struct abx_err *err)
{
	if (abx_schema_take(r, root, manifest_schema, manifest, err) < 0)
		return -1;
	if (!manifest->exec)
		return abx_complain(r, root->line, err, "the key 'exec' is missing");
	return manifest->name ? 0 : name_by_file(r, manifest, err);
}

/* A program with a slash, or one that lies beside the manifest, is looked for from there; others are found by PATH. */
static int locate_program(struct manifest *manifest, const char *dir, struct abx_err *err)
{
	char *path, *program = manifest->exec[0];

	if (*program == '/')
		return 0;
	if (asprintf(&path, "%s/%s", dir, program) < 0)
		return out_of_memory(err);
	if (!strchr(program, '/') && access(path, F_OK) < 0) {
		free(path);
		return 0;
	}
	free(program);
	manifest->exec[0] = path;
	return 0;
}

static int add_manifest(struct manifest *manifest, const char *dir, int dir_fd, struct abx_err *err)
{
	struct program *program = malloc(sizeof(*program));
	struct command command = {
		.kind = &program_kind,
		.name = manifest->name,
		.description = manifest->description ? manifest->description : "",
		.args = manifest->args,
		.n_args = manifest->n_args,
		.hidden = manifest->hidden,
		.scopes = manifest->scopes,
		.timeout = manifest->timeout,
		.source = manifest->file,
		.data = program,
	};

	if (!program)
		return out_of_memory(err);
	if (locate_program(manifest, dir, err) < 0 || command_registry_add(&command, err) < 0) {
		free(program);
		return -1;
	}
	*program = (struct program){ .argv = manifest->exec, .dir_fd = dir_fd };
	return 0;
}

static int load_file(const char *file, const char *dir, int dir_fd, struct abx_err *err)
{
	struct manifest manifest = { .file = file };
	struct abx_reader r = { .name = file, .path = ABX_STRBUF_INIT };
	size_t len;
	abx_auto_free char *text = abx_node_file(file, &len, err);
	abx_auto_node struct abx_node *root = text ? abx_nodes_parse(file, false, text, len, err) : NULL;
	int result = root ? take_manifest(&r, root, &manifest, err) : -1;

	abx_strbuf_release(&r.path);
	return result < 0 ? -1 : add_manifest(&manifest, dir, dir_fd, err);
}

int command_load_manifests(const struct abx_service *service, struct abx_err *err)
{
	static const char *const endings[] = { ".json", ".yaml", ".yml", NULL };
	const char *dir = service->policy->commands_dir;
	char **files;
	int dir_fd;

	if (command_files(dir, endings, &files, err) < 0)
		return -1;
	if (!files[0]) {
		abx_list_free(files);
		return 0;
	}
	dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return abx_err_set(err, ABX_E_VALUE, "ABX_COMMANDS_DIR: %s: %s", dir, strerror(errno));
	/* Files, their names, and what they say stay for as long as the commands do: to the program's end. */
	for (size_t i = 0; files[i]; i++)
		if (load_file(files[i], dir, dir_fd, err) < 0)
			return -1;
	return 0;
}
