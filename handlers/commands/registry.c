#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "common/utf8.h"
#include "handlers/commands/custom.h"

#define NAME_MAX_BYTES 128

static struct {
	struct command *commands;
	size_t n;
	bool frozen;
	struct abx_strbuf warnings; /* a line each */
} registry = { .warnings = ABX_STRBUF_INIT };

/* Who looks for commands, in this order. */
static int (*const loaders[])(const struct abx_service *service, struct abx_err *err) = {
	command_load_builtins,
	command_load_python,
	command_load_manifests,
	command_load_natives,
};

size_t command_count(void)
{
	return registry.n;
}

const struct command *command_at(size_t index)
{
	return &registry.commands[index];
}

static struct command *find(const char *name)
{
	for (size_t i = 0; i < registry.n; i++)
		if (strcmp(registry.commands[i].name, name) == 0)
			return &registry.commands[i];
	return NULL;
}

const struct command *command_find(const char *name)
{
	return find(name);
}

/* Built-ins, and what has taken their places, have the first ones; the others follow by name. */
static int compare(const void *a, const void *b)
{
	return strcmp(((const struct command *)a)->name, ((const struct command *)b)->name);
}

int command_check_name(const char *name, struct abx_err *err)
{
	size_t len = strlen(name);

	if (len == 0 || len > NAME_MAX_BYTES)
		return abx_err_set(err, ABX_E_VALUE, "must have 1 to %d bytes", NAME_MAX_BYTES);
	if (!abx_utf8_is_valid(name, len))
		return abx_err_set(err, ABX_E_VALUE, "must be UTF-8");
	if (*name == '.' || *name == '-')
		return abx_err_set(err, ABX_E_VALUE, "'%s' must not begin with '%c'", name, *name);
	for (const unsigned char *p = (const unsigned char *)name; *p; p++)
		if (*p < 0x80 && !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:", *p))
			return abx_err_set(err, ABX_E_VALUE, "'%s' may have letters, digits, '_', '-', '.' and ':' only", name);
	return 0;
}

static int replace(struct command *old, const struct command *command, struct abx_err *err)
{
	if (old->source)
		return abx_err_set(err, ABX_E_VALUE, "%s: the command '%s' is defined twice: %s has it as well", command->source, command->name,
				   old->source);
	abx_strbuf_addf(&registry.warnings, "%s: the command '%s' replaces the built-in one\n", command->source, command->name);
	*old = *command;
	return 0;
}

int command_registry_add(const struct command *command, struct abx_err *err)
{
	struct command *old = find(command->name), *grown;

	if (registry.frozen)
		return abx_err_set(err, ABX_E_INTERNAL, "The commands are frozen");
	if (old)
		return replace(old, command, err);
	grown = realloc(registry.commands, (registry.n + 1) * sizeof(*grown));
	if (!grown)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	registry.commands = grown;
	registry.commands[registry.n++] = *command;
	return 0;
}

int command_registry_load(const struct abx_service *service, struct abx_err *err)
{
	size_t n_builtins = 0;

	for (size_t i = 0; i < ABX_N(loaders); i++) {
		if (loaders[i](service, err) < 0)
			return -1;
		if (i == 0)
			n_builtins = registry.n;
	}
	qsort(registry.commands, n_builtins, sizeof(*registry.commands), compare);
	qsort(registry.commands + n_builtins, registry.n - n_builtins, sizeof(*registry.commands), compare);
	for (const char *line = registry.warnings.buf, *end; (end = strchr(line, '\n')); line = end + 1)
		abx_log(ABX_LOG_WARNING, "%.*s", (int)(end - line), line);
	abx_board_warn(service->board, ABX_GROUP_COMMANDS, registry.warnings.buf);
	registry.frozen = true;
	return 0;
}
