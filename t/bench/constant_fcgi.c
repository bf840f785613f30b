/* The bare minimum to compare with: a libfcgi responder that answers every request with the same JSON, with 16 threads on the listening socket that is fd 0. */
#include <fcgiapp.h>
#include <pthread.h>
#include <stdio.h>

#define THREADS 16

static void *serve(void *arg)
{
	FCGX_Request request;

	if (FCGX_InitRequest(&request, 0, 0) != 0)
		return arg;
	while (FCGX_Accept_r(&request) == 0)
		FCGX_PutS("Status: 200 OK\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: 16\r\n"
			  "\r\n{\"status\": \"ok\"}",
			  request.out);
	return arg;
}

int main(void)
{
	pthread_t threads[THREADS];

	if (FCGX_Init() != 0)
		return 1;
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, serve, NULL) != 0)
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
