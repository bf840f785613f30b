/*
 * Groups and endpoints: one row per endpoint.
 *
 * The rows (handlers/<group>/table.c) are data that every program links, so that core can describe all groups and abxd
 * can write the web server's routes. They drive routing, 405 and Allow, the argument checks, /capabilities and the
 * generic tests. A handler is referenced weakly: it is there in the responder of its group and NULL elsewhere.
 */
#ifndef ABX_ENDPOINT_H
#define ABX_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

enum abx_group {
	ABX_GROUP_CORE,
	ABX_GROUP_COMMANDS,
	ABX_GROUP_FILE_OPS,
	ABX_GROUP_PROCESS,
	ABX_GROUP_TERMINAL,
	ABX_GROUP_SYSTEM,
	ABX_GROUP_DEV_TOOLS,
	ABX_GROUP_BROWSER,
	ABX_GROUP_AGENTS,
	ABX_GROUP__COUNT
};

enum abx_method { ABX_GET, ABX_POST, ABX_DELETE, ABX_WS, ABX_METHOD_OTHER };

/* What a parameter of a query or body must be. What a string's rule forbids is checked by the gate, with 400. */
enum abx_arg_type {
	ABX_ARG_STRING,  /* text without NUL */
	ABX_ARG_DATA,    /* text that may hold NUL; may be cut out of the body (see .cut) */
	ABX_ARG_PATH,    /* as STRING, not empty; its twin <name>_base64 holds the bytes of a name that is not UTF-8 */
	ABX_ARG_PATHS,   /* a list of at least one PATH; its twin <name>_base64 is a list as well */
	ABX_ARG_INT,     /* a JSON integer, or its decimal text in a query */
	ABX_ARG_NUMBER,  /* a finite number, or its text in a query */
	ABX_ARG_BOOL,    /* a JSON boolean; in a query: true, yes, 1 in any case, else false */
	ABX_ARG_OBJECT,
	ABX_ARG_ARRAY,
	ABX_ARG_ENV,     /* an object of strings: the environment of a child */
	ABX_ARG_TIMEOUT, /* anything: what is not a positive number means the default (contract, section 8 "HTTP") */
	ABX_ARG_ANY
};

struct abx_arg {
	const char *name;
	enum abx_arg_type type;
	bool required;
	const char *default_json; /* for /capabilities, and the value that handlers see when the field is left out; NULL: none */
};

/* Built-in limits: a policy may lower them. 0 means that the limit does not apply to the endpoint. */
struct abx_limits {
	int64_t timeout_seconds, max_output_bytes, max_bytes, max_files, max_depth, max_duration_seconds;
};

enum abx_endpoint_flags {
	ABX_EP_PUBLIC = 1 << 0,    /* no credential asked for */
	ABX_EP_STREAM = 1 << 1,    /* answers with text/event-stream */
	ABX_EP_PLANNED = 1 << 2,   /* not implemented yet: 501 */
	ABX_EP_RAW_ARGS = 1 << 3,  /* only the handler knows what it is about: from abx_gate_admit on the steps of the gate are its own (named commands) */
	ABX_EP_STRICT = 1 << 4,    /* unknown parameters are 400 (agents) */
	ABX_EP_RAW_ANSWER = 1 << 5, /* sends bytes instead of JSON where the caller asks for them (abx_request_wants_raw); a GET allows HEAD then */
	ABX_EP_LINK = 1 << 6,      /* its path may be a link, and is the link itself then */
	ABX_EP_REMOVES = 1 << 7,   /* takes its path away, so that it cannot be the base directory */
	ABX_EP_OPEN = 1 << 8,      /* no credential asked for, and nobody is the caller; all else is looked at (routes of a template's own) */
};

/* The most {parameters} that a path has. */
#define ABX_PATH_PARAMS 8

struct abx_request;
typedef int abx_handler(struct abx_request *req, struct abx_err *err);

struct abx_endpoint {
	const char *id;
	enum abx_group group;
	enum abx_method method;
	const char *path; /* literal segments and {parameters} */
	const char *summary;
	const struct abx_arg *args;
	size_t n_args;
	abx_handler *fn;
	unsigned flags;
	struct abx_limits limits;
	const char *scope;      /* the default scope, or NULL: none */
	char *const *scopes;    /* further ones, NULL-terminated, or NULL */
	const char *const *cut; /* NULL-terminated names of members that may be large (abx_json_parse_body) */
	/* What the query of a raw body (application/octet-stream) holds; NULL: the endpoint takes none. The handler reads the body itself. */
	const struct abx_arg *raw_args;
	size_t n_raw_args;
};

struct abx_group_info {
	const char *name;
	bool opt_in;      /* off until enabled */
	const struct abx_endpoint *rows;
	const size_t *n_rows; /* by address: only the table's own file knows the number at compile time */
	const char *const *prefixes; /* NULL-terminated first path segments ("/files", …) that the web server routes to the group; NULL for core, which takes the rest */
};

/* The registry: one entry per group, in the order of enum abx_group. */
extern const struct abx_group_info abx_groups[ABX_GROUP__COUNT];

/* The group of this name, or ABX_GROUP__COUNT. */
enum abx_group abx_group_find(const char *name);

/*
 * Rows behind the built-in ones: the routes that a template's own code has registered. They are set once, before anything is indexed by endpoints, and stay as
 * long as the program; a second call changes nothing. Whatever their group, abx-commands serves them.
 */
void abx_endpoint_extend(const struct abx_endpoint *rows, size_t n);
bool abx_endpoint_is_custom(const struct abx_endpoint *endpoint);

/* The group whose responder serves the endpoint. */
enum abx_group abx_endpoint_home(const struct abx_endpoint *endpoint);

/* Endpoints are numbered through all groups, in table order, then the custom ones: rules of a policy are arrays over these numbers. */
size_t abx_endpoint_count(void);
size_t abx_endpoint_count_builtin(void);
const struct abx_endpoint *abx_endpoint_at(size_t index);
size_t abx_endpoint_index(const struct abx_endpoint *endpoint);

/* The endpoint with this id, or NULL. */
const struct abx_endpoint *abx_endpoint_find(const char *id);

const char *abx_method_name(enum abx_method method);
enum abx_method abx_method_parse(const char *name);
const char *abx_arg_type_name(enum abx_arg_type type);

#endif
