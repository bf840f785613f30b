/* The browser group: one headless Chromium. */
#include "handlers/tables.h"

static const struct abx_arg navigate_args[] = {
	{ "url", ABX_ARG_STRING, true, NULL },
	{ "wait_until", ABX_ARG_STRING, false, "\"load\"" },
	{ "timeout", ABX_ARG_TIMEOUT, false, "30" },
};

static const struct abx_arg screenshot_args[] = {
	{ "selector", ABX_ARG_STRING, false, NULL },
	{ "full_page", ABX_ARG_BOOL, false, "false" },
	{ "format", ABX_ARG_STRING, false, "\"png\"" },
	{ "quality", ABX_ARG_INT, false, NULL },
};

static const struct abx_arg click_args[] = {
	{ "selector", ABX_ARG_STRING, true, NULL },
	{ "timeout", ABX_ARG_TIMEOUT, false, "30" },
};

static const struct abx_arg type_args[] = {
	{ "selector", ABX_ARG_STRING, true, NULL },
	{ "text", ABX_ARG_DATA, true, NULL },
	{ "clear", ABX_ARG_BOOL, false, "false" },
	{ "press_enter", ABX_ARG_BOOL, false, "false" },
};

static const struct abx_arg evaluate_args[] = {
	{ "expression", ABX_ARG_STRING, true, NULL },
};

const struct abx_endpoint abx_rows_browser[] = {
	{
		.id = "browser_navigate",
		.group = ABX_GROUP_BROWSER,
		.method = ABX_POST,
		.path = "/browser/navigate",
		.summary = "Load a page.",
		ABX_ARGS(navigate_args),
		.flags = ABX_EP_PLANNED,
	},
	{
		.id = "browser_content",
		.group = ABX_GROUP_BROWSER,
		.method = ABX_GET,
		.path = "/browser/content",
		.summary = "HTML and text of the page.",
		.flags = ABX_EP_PLANNED,
	},
	{
		.id = "browser_screenshot",
		.group = ABX_GROUP_BROWSER,
		.method = ABX_POST,
		.path = "/browser/screenshot",
		.summary = "A picture of the page or of one element.",
		ABX_ARGS(screenshot_args),
		.flags = ABX_EP_PLANNED,
	},
	{
		.id = "browser_click",
		.group = ABX_GROUP_BROWSER,
		.method = ABX_POST,
		.path = "/browser/click",
		.summary = "Click an element.",
		ABX_ARGS(click_args),
		.flags = ABX_EP_PLANNED,
	},
	{
		.id = "browser_type",
		.group = ABX_GROUP_BROWSER,
		.method = ABX_POST,
		.path = "/browser/type",
		.summary = "Type into an element.",
		ABX_ARGS(type_args),
		.flags = ABX_EP_PLANNED,
	},
	{
		.id = "browser_evaluate",
		.group = ABX_GROUP_BROWSER,
		.method = ABX_POST,
		.path = "/browser/evaluate",
		.summary = "Evaluate JavaScript in the page.",
		ABX_ARGS(evaluate_args),
		.flags = ABX_EP_PLANNED,
	},
	{
		.id = "browser_close",
		.group = ABX_GROUP_BROWSER,
		.method = ABX_POST,
		.path = "/browser/close",
		.summary = "Close the browser.",
		.flags = ABX_EP_PLANNED,
	},
};

ABX_TABLE_END(browser);

const char *const abx_prefixes_browser[] = { "/browser", NULL };
