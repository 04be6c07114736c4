/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Two threads on each CPU yield to each other, which makes as many context switches as the machine can. */

#include "load.h"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/sysinfo.h>

#define YIELDS 100

struct task {
	pthread_t thread;
	int cpu;
	uint64_t end_ns, yields;
};

static void *frtest_yield(void *arg)
{
	struct task *t = arg;

	prctl(PR_SET_NAME, "frtest-yield");
	fr_load_pin(t->cpu);
	do {
		for (int i = 0; i < YIELDS; i++)
			sched_yield();
		t->yields += YIELDS;
	} while (fr_load_now_ns() < t->end_ns);
	return NULL;
}

int main(int argc, char *argv[])
{
	const size_t n = 2 * (size_t)get_nprocs();
	struct task *tasks = calloc(n, sizeof(*tasks));
	uint64_t ns = 1000000000ULL, yields = 0;

	fr_load_options(
		argc, argv, "frtest-yield [-t SECONDS]", (struct fr_load_option[]){{'t', .ns = &ns}, {0}});
	if (!tasks)
		err(EXIT_FAILURE, "no memory");
	ns += fr_load_now_ns();
	for (size_t i = 0; i < n; i++) {
		tasks[i].cpu = (int)(i / 2);
		tasks[i].end_ns = ns;
		if (pthread_create(&tasks[i].thread, NULL, frtest_yield, &tasks[i]) != 0)
			errx(EXIT_FAILURE, "no thread");
	}
	for (size_t i = 0; i < n; i++) {
		pthread_join(tasks[i].thread, NULL);
		yields += tasks[i].yields;
	}
	free(tasks);
	printf("{\"pid\":%d,\"yields\":%" PRIu64 ",\"cpu_ns\":%" PRIu64 "}\n", getpid(), yields,
		fr_load_cpu_ns());
	return 0;
}
