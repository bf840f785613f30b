/* The file_ops group: files below the base directory. */
#include "handlers/tables.h"

#include "handlers/file_ops/handlers.h"

static const struct abx_arg upload_args[] = {
	{ "path", ABX_ARG_PATH, true, NULL },
	{ "content_base64", ABX_ARG_DATA, true, NULL },
};

static const struct abx_arg raw_upload_args[] = {
	{ "path", ABX_ARG_PATH, true, NULL },
	{ "mode", ABX_ARG_STRING, false, NULL },
	{ "overwrite", ABX_ARG_BOOL, false, "true" },
};

static const struct abx_arg download_args[] = {
	{ "path", ABX_ARG_PATH, true, NULL },
	{ "raw", ABX_ARG_BOOL, false, "false" },
};

static const struct abx_arg path_args[] = {
	{ "path", ABX_ARG_PATH, true, NULL },
};

static const struct abx_arg list_args[] = {
	{ "path", ABX_ARG_PATH, true, NULL },
	{ "recursive", ABX_ARG_BOOL, false, "false" },
};

static const struct abx_arg move_args[] = {
	{ "source", ABX_ARG_PATH, true, NULL },
	{ "destination", ABX_ARG_PATH, true, NULL },
};

static const struct abx_arg search_args[] = {
	{ "path", ABX_ARG_PATH, true, NULL },
	{ "pattern", ABX_ARG_STRING, true, NULL },
	{ "max_depth", ABX_ARG_INT, false, "5" },
	{ "max_results", ABX_ARG_INT, false, "100" },
};

static const struct abx_arg archive_args[] = {
	{ "paths", ABX_ARG_PATHS, true, NULL },
	{ "format", ABX_ARG_STRING, false, "\"tar.gz\"" },
};

static const struct abx_arg watch_args[] = {
	{ "path", ABX_ARG_PATH, true, NULL },
	{ "recursive", ABX_ARG_BOOL, false, "false" },
	{ "interval", ABX_ARG_NUMBER, false, "0.5" },
	{ "timeout", ABX_ARG_NUMBER, false, "300" },
};

static const char *const cut_content_base64[] = { "content_base64", NULL };

const struct abx_endpoint abx_rows_file_ops[] = {
	{
		.id = "upload",
		.group = ABX_GROUP_FILE_OPS,
		.method = ABX_POST,
		.path = "/upload",
		.summary = "Write a file from base64.",
		ABX_ARGS(upload_args),
		.fn = h_upload,
		.limits = { .max_bytes = ABX_LIMIT_UPLOAD },
		.cut = cut_content_base64,
		.raw_args = raw_upload_args,
		.n_raw_args = ABX_N(raw_upload_args),
	},
	{
		.id = "download",
		.group = ABX_GROUP_FILE_OPS,
		.method = ABX_GET,
		.path = "/download",
		.summary = "Read a file as base64.",
		ABX_ARGS(download_args),
		.fn = h_download,
		.flags = ABX_EP_RAW_ANSWER,
		.limits = { .max_bytes = ABX_LIMIT_UPLOAD },
	},
	{
		.id = "files_list",
		.group = ABX_GROUP_FILE_OPS,
		.method = ABX_GET,
		.path = "/files/list",
		.summary = "The entries of a directory.",
		ABX_ARGS(list_args),
		.fn = h_files_list,
		.limits = { .max_depth = 3 },
	},
	{
		.id = "files_stat",
		.group = ABX_GROUP_FILE_OPS,
		.method = ABX_GET,
		.path = "/files/stat",
		.summary = "Type, size, mode and times of a path.",
		ABX_ARGS(path_args),
		.fn = h_files_stat,
		.flags = ABX_EP_LINK,
	},
	{
		.id = "files_mkdir",
		.group = ABX_GROUP_FILE_OPS,
		.method = ABX_POST,
		.path = "/files/mkdir",
		.summary = "Make a directory and its parents.",
		ABX_ARGS(path_args),
		.fn = h_files_mkdir,
	},
	{
		.id = "files_delete",
		.group = ABX_GROUP_FILE_OPS,
		.method = ABX_DELETE,
		.path = "/files",
		.summary = "Delete a file or a directory tree.",
		ABX_ARGS(path_args),
		.fn = h_files_delete,
		.flags = ABX_EP_LINK | ABX_EP_REMOVES,
	},
	{
		.id = "files_move",
		.group = ABX_GROUP_FILE_OPS,
		.method = ABX_POST,
		.path = "/files/move",
		.summary = "Move or rename a file or directory.",
		ABX_ARGS(move_args),
		.fn = h_files_move,
		.flags = ABX_EP_LINK | ABX_EP_REMOVES,
	},
	{
		.id = "files_search",
		.group = ABX_GROUP_FILE_OPS,
		.method = ABX_POST,
		.path = "/files/search",
		.summary = "Find files by name.",
		ABX_ARGS(search_args),
		.fn = h_files_search,
		.limits = { .timeout_seconds = 10, .max_depth = 5 },
	},
	{
		.id = "upload_stream",
		.group = ABX_GROUP_FILE_OPS,
		.method = ABX_POST,
		.path = "/files/upload-stream",
		.summary = "Write a file from base64, in pieces.",
		ABX_ARGS(upload_args),
		.fn = h_upload_stream,
		.limits = { .max_bytes = ABX_LIMIT_UPLOAD },
		.cut = cut_content_base64,
		.raw_args = raw_upload_args,
		.n_raw_args = ABX_N(raw_upload_args),
	},
	{
		.id = "download_stream",
		.group = ABX_GROUP_FILE_OPS,
		.method = ABX_GET,
		.path = "/files/download-stream",
		.summary = "Read a file as base64, with its size.",
		ABX_ARGS(download_args),
		.fn = h_download_stream,
		.flags = ABX_EP_RAW_ANSWER,
		.limits = { .max_bytes = ABX_LIMIT_UPLOAD },
	},
	{
		.id = "files_archive",
		.group = ABX_GROUP_FILE_OPS,
		.method = ABX_POST,
		.path = "/files/archive",
		.summary = "Pack paths into a tar.gz or zip archive.",
		ABX_ARGS(archive_args),
		.fn = h_files_archive,
		.flags = ABX_EP_RAW_ANSWER,
		.limits = { .max_bytes = 104857600, .max_files = 10000 },
	},
	{
		.id = "files_watch",
		.group = ABX_GROUP_FILE_OPS,
		.method = ABX_GET,
		.path = "/files/watch",
		.summary = "Changes below a directory, as events.",
		ABX_ARGS(watch_args),
		.fn = h_files_watch,
		.flags = ABX_EP_STREAM,
	},
};

ABX_TABLE_END(file_ops);

const char *const abx_prefixes_file_ops[] = { "/upload", "/download", "/files", NULL };
