/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Two threads on one CPU wake each other through two pipes. Each round trip is two context switches. */

#include "load.h"

#include <pthread.h>
#include <sys/prctl.h>

struct game {
	int ping[2], pong[2];
	int cpu;
};

static void *frtest_pong(void *arg)
{
	struct game *g = arg;
	char ball;

	prctl(PR_SET_NAME, "frtest-pong");
	fr_load_pin(g->cpu);
	while (read(g->ping[0], &ball, 1) == 1) {
		if (write(g->pong[1], &ball, 1) != 1)
			break;
	}
	return NULL;
}

FR_LOAD_FRAME static uint64_t frtest_ping(struct game *g, uint64_t end)
{
	uint64_t trips = 0;
	char ball = 0;

	while (fr_load_now_ns() < end) {
		if (write(g->ping[1], &ball, 1) != 1 || read(g->pong[0], &ball, 1) != 1)
			err(EXIT_FAILURE, "the pipe broke");
		trips++;
	}
	return trips;
}

int main(int argc, char *argv[])
{
	struct game g = {.cpu = -1};
	uint64_t ns = 1000000000ULL;
	pthread_t pong;

	fr_load_options(argc, argv, "frtest-pingpong [-t SECONDS] [-c CPU]",
		(struct fr_load_option[]){{'t', .ns = &ns}, {'c', .number = &g.cpu}, {0}});
	if (pipe(g.ping) < 0 || pipe(g.pong) < 0)
		err(EXIT_FAILURE, "no pipe");
	fr_load_pin(g.cpu);
	if (pthread_create(&pong, NULL, frtest_pong, &g) != 0)
		errx(EXIT_FAILURE, "no thread");

	uint64_t trips = frtest_ping(&g, fr_load_now_ns() + ns);
	close(g.ping[1]);
	pthread_join(pong, NULL);
	printf("{\"pid\":%d,\"round_trips\":%" PRIu64 ",\"cpu_ns\":%" PRIu64 "}\n", getpid(), trips,
		fr_load_cpu_ns());
	return 0;
}
