/*
 * One request, as handlers see it. Everything that it points to lives until the request ends.
 */
#ifndef ABX_REQUEST_H
#define ABX_REQUEST_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/block.h"
#include "common/board.h"
#include "common/endpoint.h"
#include "common/json.h"
#include "common/paths.h"
#include "common/response.h"
#include "policy/policy.h"

/* Raw bytes of one request body: more is 413 (contract, section 3). */
#define ABX_BODY_MAX ((size_t)10 << 20)

struct abx_request;

/*
 * What a responder knows for its whole life, and the policy with what was opened for it. A responder that reads its policy anew has one of these for each;
 * every request keeps the one that it began with, so handlers take it from there and remember none.
 */
struct abx_service {
	enum abx_group group;
	const struct abx_policy *policy;
	struct abx_board *board;
	struct abx_roots roots;       /* the base directory */
	struct abx_roots *rule_roots; /* by abx_endpoint_index; n == 0: the base directory. NULL: no rule has paths */
	struct abx_audit *audit;      /* NULL: none */
	/* Answers for the web server when it refused a request with `status` by itself; core's only. */
	int (*server_error)(struct abx_request *req, int status, struct abx_err *err);
};

struct abx_request {
	const struct abx_service *service;
	struct abx_io *io;
	const struct abx_endpoint *endpoint;
	const struct abx_rule *rule;          /* of the endpoint */
	const struct abx_roots *roots;        /* the trees that the endpoint may touch */
	const struct abx_identity *identity;  /* NULL on public endpoints */
	const char *method;                   /* as sent */
	char *path;                           /* as sent, without query and mount prefix; one trailing slash still there */
	const char *query;                    /* what follows '?', or "" */
	char request_id[129];
	struct {
		const char *name; /* as in the row, with its length: it is not terminated */
		size_t name_len;
		char *value;      /* decoded */
	} params[ABX_PATH_PARAMS];
	size_t n_params;
	bool raw_body;              /* the body is bytes that nobody has read yet, and the arguments came from the query */
	json_t *args;               /* checked arguments, defaults filled in; never NULL in a handler */
	struct abx_json_text text;  /* the large member that was cut out of the body */
	char *body;                 /* the bytes behind `text` */
	size_t body_len;
	struct abx_block block;     /* what holds them */
	json_t *error_members;      /* further members of an error body, or NULL */
	struct {
		int status;         /* 0: by the error's kind, like the type where it is empty and the message where it is NULL */
		char type[64];
		char *message;      /* of any length; freed with the request */
	} failure;                  /* what a custom command says of its own failure, which then goes up as ABX_E_INTERNAL */
	int32_t held[2];            /* slots of the board in which this call counts as running (abx_gate_admit) */
	size_t n_held;
	int64_t started_us;
	bool concluded;             /* it was answered while its handler still ran (abx_gate_conclude) */
	struct abx_response res;
};

/* The trees that an endpoint may touch. */
static inline const struct abx_roots *abx_service_roots(const struct abx_service *service, const struct abx_endpoint *endpoint)
{
	const struct abx_roots *own = service->rule_roots ? &service->rule_roots[abx_endpoint_index(endpoint)] : NULL;

	return own && own->n ? own : &service->roots;
}

/* Begin with what the transport knows. Release with abx_request_release. */
void abx_request_init(struct abx_request *req, const struct abx_service *service, struct abx_io *io);
void abx_request_release(struct abx_request *req);

/* The first CGI variable of this name ("HTTP_HOST", "CONTENT_LENGTH", …), or NULL. */
const char *abx_request_variable(const struct abx_request *req, const char *name);

/* Whether an include file of lighttpd.conf names the group: core is told of all that do, and is always there itself. */
bool abx_request_group_is_mounted(const struct abx_request *req, enum abx_group group);

/* The value of a {parameter} of the path. */
const char *abx_request_param(const struct abx_request *req, const char *name);

/*
 * Whether the caller asks for bytes: `Accept` prefers application/octet-stream to application/json (wildcards say nothing), or the query
 * of a GET says raw=1.
 */
bool abx_request_wants_raw(const struct abx_request *req);

/* Whether the request's body is bytes by its Content-Type. */
bool abx_request_has_raw_body(const struct abx_request *req);

/* The announced length of the body, or 0. Behind the web server it is always right. */
int64_t abx_request_length(const struct abx_request *req);

/* Checked arguments. The type must be the row's (asserted by the look-up functions of jansson: a wrong one reads as left out). */
bool abx_arg_given(const struct abx_request *req, const char *name);
const char *abx_arg_string(const struct abx_request *req, const char *name); /* NULL: left out */
int64_t abx_arg_int(const struct abx_request *req, const char *name);        /* 0: left out */
double abx_arg_number(const struct abx_request *req, const char *name);
bool abx_arg_bool(const struct abx_request *req, const char *name);
const json_t *abx_arg_json(const struct abx_request *req, const char *name); /* borrowed */

/* A text that may be large or hold NUL bytes, wherever it is. false: left out. */
bool abx_arg_data(const struct abx_request *req, const char *name, const char **ret_data, size_t *ret_len);

/*
 * The bytes of a base64 argument, decoded over the request's own body: nothing is allocated, and it works once per request. The argument must
 * be given. -1: ABX_E_VALUE, it is not base64.
 */
int abx_arg_base64(struct abx_request *req, const char *name, const char **ret_data, size_t *ret_len, struct abx_err *err);

/*
 * The seconds that the work may take: the argument "timeout" where it is a positive number, else the endpoint's default, and no more than a policy allows.
 * `text` gets the number as a message names it ("0.5", "300").
 */
double abx_arg_timeout(const struct abx_request *req, char text[32]);

#endif
