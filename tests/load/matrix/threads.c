/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Two threads with different names, which they change. With the argument "leader", the first thread (the
   leader) ends before the second thread runs. */

#include "phase.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/prctl.h>

FR_BURNER(frtest_thread_early)
FR_BURNER(frtest_thread_late)
FR_BURNER(frtest_thread_main)

/* The function of the second thread. It first waits for the end of the thread LEADER, unless LEADER is
   NULL. */
static void *work(void *leader)
{
	if (leader && pthread_join(*(pthread_t *)leader, NULL) != 0)
		errx(EXIT_FAILURE, "cannot wait for the leader");
	fr_phase(frtest_thread_early, "frtest_thread_early"); /* the thread still has the inherited name */
	prctl(PR_SET_NAME, "frtest worker 1");
	fr_phase(frtest_thread_early, "frtest_thread_early");
	pthread_setname_np(pthread_self(), "worker-renamed");
	fr_phase(frtest_thread_late, "frtest_thread_late");
	return NULL;
}

int main(int argc, char *argv[])
{
	bool leave = argc > 1 && strcmp(argv[1], "leader") == 0;
	static pthread_t leader;
	pthread_t t;

	fr_phase_rounds(1);
	prctl(PR_SET_NAME, "frtest-leader");
	leader = pthread_self();
	if (pthread_create(&t, NULL, work, leave ? &leader : NULL) != 0)
		errx(EXIT_FAILURE, "no thread");
	if (leave)
		pthread_exit(NULL);
	fr_phase(frtest_thread_main, "frtest_thread_main");
	prctl(PR_SET_NAME, "leader-renamed");
	fr_phase(frtest_thread_main, "frtest_thread_main");
	pthread_join(t, NULL);
	return EXIT_SUCCESS;
}
