// The header in C++.
#include <abx/command.h>

#include <string>

static int shout(abx_call *call)
{
	std::size_t len = 0;
	const char *text = abx_call_text(call, "text", &len);
	std::string loud(text ? text : "", len);

	for (char &c : loud)
		c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
	return abx_call_return_text(call, loud.data(), static_cast<std::ptrdiff_t>(loud.size()));
}

static const abx_command_arg args[] = { { "text", "string", 1, nullptr, "What to shout." } };
static const abx_command_def commands[] = { { "shout", "In capitals.", args, 1, nullptr, 0, 0, shout, nullptr } };
static const abx_command_module module = ABX_COMMAND_MODULE(commands, 1, nullptr);

ABX_COMMAND_EXPORT const abx_command_module *abx_command_entry(void)
{
	return &module;
}
