/* An object for another version of the header. */
#include <abx/command.h>

static const struct abx_command_module module = { ABX_COMMAND_ABI + 1, 0, 0, 0, NULL, NULL };

ABX_COMMAND_EXPORT const struct abx_command_module *abx_command_entry(void)
{
	return &module;
}
