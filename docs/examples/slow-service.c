// SPDX-License-Identifier: MIT

/*
 * A service that is sometimes slow, for flightrec-tutorial(7). Four threads answer requests from an index.
 * Every few seconds, another thread rebuilds the index, and holds the lock of the index for about 300 ms.
 *
 *   gcc -O2 -pthread slow-service.c -o slow-service
 *   ./slow-service
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#define REQUEST_THREADS 4
#define REBUILD_EVERY_MS 3000
#define REBUILD_MS 300
#define SLOW_MS 100
#define ENTRIES 65536

static pthread_mutex_t index_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t index_of[ENTRIES];
static volatile unsigned rebuilds;

static int64_t now_ms(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

static void sleep_ms(long ms)
{
	const struct timespec t = {ms / 1000, ms % 1000 * 1000000};

	nanosleep(&t, NULL);
}

static int by_value(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The lock is held during the whole rebuild: this is the fault to find. */
static __attribute__((noinline)) void rebuild_index(void)
{
	int64_t end = now_ms(CLOCK_MONOTONIC) + REBUILD_MS;

	pthread_mutex_lock(&index_lock);
	do {
		for (size_t i = 0; i < ENTRIES; i++)
			index_of[i] = (uint32_t)rand();
		qsort(index_of, ENTRIES, sizeof(index_of[0]), by_value);
	} while (now_ms(CLOCK_MONOTONIC) < end);
	pthread_mutex_unlock(&index_lock);
	rebuilds++;
}

static void *rebuild(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, "rebuild_index");
	for (;;) {
		sleep_ms(REBUILD_EVERY_MS);
		rebuild_index();
	}
	return NULL;
}

static __attribute__((noinline)) uint32_t look_up(size_t key)
{
	uint32_t value;

	pthread_mutex_lock(&index_lock);
	value = index_of[key % ENTRIES];
	pthread_mutex_unlock(&index_lock);
	return value;
}

static __attribute__((noinline)) void handle_request(unsigned number)
{
	int64_t begin = now_ms(CLOCK_MONOTONIC), took;
	uint32_t value = look_up(number * 2654435761u);

	took = now_ms(CLOCK_MONOTONIC) - begin;
	if (took >= SLOW_MS)
		printf("request %u took %lld ms (%u)\n", number, (long long)took, value);
}

static void *serve(void *unused)
{
	(void)unused;
	prctl(PR_SET_NAME, "request");
	for (unsigned number = 1;; number++) {
		sleep_ms(10);
		handle_request(number);
	}
	return NULL;
}

int main(void)
{
	pthread_t thread;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 0; i < REQUEST_THREADS; i++)
		if (pthread_create(&thread, NULL, serve, NULL))
			return EXIT_FAILURE;
	if (pthread_create(&thread, NULL, rebuild, NULL))
		return EXIT_FAILURE;
	pthread_join(thread, NULL);
	return EXIT_SUCCESS;
}
