/* A thread's stack is small (responder.c): the deepest JSON, in and out, on half of it. */
#include <pthread.h>

#include "t/unit/request.h"

#include "handlers/file_ops/handlers.h"

/* Half of what a responder gives its threads; sanitizers make every frame several times larger, and responders give more then. */
#if ABX_SANITIZERS
#define STACK ((size_t)1 << 20)
#else
#define STACK ((size_t)128 << 10)
#endif

/* Answers with the argument `path` as it came: any depth. */
int h_upload(struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);

	abx_jw_value(&jw, abx_arg_json(req, "deep"));
	return abx_response_json(&req->res, 200, &body, err);
}

/* A body whose deepest value lies `depth` levels down, the object itself being the first. */
static char *nested(size_t depth, bool objects)
{
	struct abx_strbuf text = ABX_STRBUF_INIT;

	abx_strbuf_adds(&text, "{\"path\": \"x\", \"content_base64\": \"\", \"deep\": ");
	for (size_t i = 1; i < depth; i++)
		abx_strbuf_adds(&text, objects ? "{\"a\": " : "[");
	abx_strbuf_adds(&text, objects ? "1" : "");
	for (size_t i = 1; i < depth; i++)
		abx_strbuf_adds(&text, objects ? "}" : "]");
	abx_strbuf_adds(&text, "}");
	return abx_strbuf_detach(&text);
}

static void try_depth(const struct abx_service *service, size_t depth, bool objects, int status)
{
	abx_auto_free char *body = nested(depth, objects);
	struct abx_memory_io mem;

	serve(service, &mem, "POST", "/upload", body, NULL);
	is_int(status_of(&mem), status, "%zu levels of %s", depth, objects ? "objects" : "arrays");
	if (status == 200)
		ok(strlen(body_of(&mem)) >= 2 * (depth - 2), "and back again");
	abx_strbuf_release(&mem.out);
}

static void *run(void *arg)
{
	const struct abx_service *service = arg;

	for (int objects = 0; objects <= 1; objects++) {
		try_depth(service, 250, objects, 200);
		try_depth(service, ABX_JSON_DEPTH, objects, 200);
		try_depth(service, ABX_JSON_DEPTH + 1, objects, 400);
		try_depth(service, 200000, objects, 400);
	}
	return NULL;
}

int main(void)
{
	char *env[] = { NULL };
	struct abx_service service = make_service(ABX_GROUP_FILE_OPS, env);
	pthread_attr_t attr;
	pthread_t thread;

	abx_log_init("t", ABX_LOG_ERROR, false);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	if (!ok(pthread_create(&thread, &attr, run, &service) == 0, "a thread with %zu bytes of stack", STACK))
		return done_testing();
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
	free_service(&service);
	return done_testing();
}
