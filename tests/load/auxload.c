/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * A load for tests of AUX snapshots: a task that works on one CPU after the other, and is idle during each
 * snapshot. Usage: frtest-auxload PIDFILE SCRIPT COMMAND [ARG…]. Forks the task, writes its pid to PIDFILE,
 * and waits until PIDFILE.go exists. Each line of SCRIPT is "CPU MICROSECONDS SNAPSHOT": the task moves to
 * the CPU and uses so much of its time. If SNAPSHOT is 1, COMMAND then runs while the task sleeps. Then two
 * numbers are printed, in ns: the CPU time that the task has used so far, and the time (CLOCK_MONOTONIC) of
 * the end of its work. COMMAND is not a child of the task, so a recording of the task does not contain it.
 */

#include <err.h>
#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

struct order {
	int cpu;
	uint64_t work_ns;
};

static uint64_t read_clock(clockid_t clock)
{
	struct timespec t;

	if (clock_gettime(clock, &t) < 0)
		err(1, "clock_gettime");
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void work(int orders, int answers)
{
	struct order o;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(orders, &o, sizeof(o)) == (ssize_t)sizeof(o)) {
		const uint64_t end_ns = read_clock(CLOCK_PROCESS_CPUTIME_ID) + o.work_ns;
		uint64_t now_ns;
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(o.cpu, &set);
		if (sched_setaffinity(0, sizeof(set), &set) < 0)
			err(1, "sched_setaffinity");
		while (read_clock(CLOCK_PROCESS_CPUTIME_ID) < end_ns)
			;
		now_ns = read_clock(CLOCK_MONOTONIC);
		if (write(answers, &now_ns, sizeof(now_ns)) != (ssize_t)sizeof(now_ns))
			err(1, "write");
	}
}

/* Waits until the task sleeps, so that all its work belongs to this snapshot. */
static void wait_until_asleep(pid_t pid)
{
	char path[64], state = 'R';
	int asleep = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	while (asleep < 2) {
		FILE *f = fopen(path, "re");

		if (!f || fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
			err(1, "%s", path);
		fclose(f);
		/* The kernel sets the state just before the task leaves its CPU, so one look is not enough.
		 */
		asleep = state == 'S' ? asleep + 1 : 0;
		usleep(200);
	}
}

static void run(char *argv[])
{
	int status;
	pid_t pid;

	if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) != 0)
		err(1, "%s", argv[0]);
	if (waitpid(pid, &status, 0) != pid || status != 0)
		errx(1, "%s failed", argv[0]);
}

static void publish(const char *pidfile, pid_t pid)
{
	char go[4096];
	FILE *f = fopen(pidfile, "we");

	if (!f || fprintf(f, "%d\n", (int)pid) < 0 || fclose(f) != 0)
		err(1, "%s", pidfile);
	snprintf(go, sizeof(go), "%s.go", pidfile);
	while (access(go, F_OK) < 0)
		usleep(10000);
}

int main(int argc, char *argv[])
{
	int orders[2], answers[2], snapshot;
	unsigned long long us;
	uint64_t worked_ns;
	struct order o;
	clockid_t clock;
	FILE *script;
	pid_t pid;

	if (argc < 4)
		errx(2, "usage: frtest-auxload PIDFILE SCRIPT COMMAND [ARG...]");
	script = fopen(argv[2], "re");
	if (!script || pipe2(orders, O_CLOEXEC) < 0 || pipe2(answers, O_CLOEXEC) < 0)
		err(1, "%s", argv[2]);
	pid = fork();
	if (pid < 0)
		err(1, "fork");
	if (pid == 0) {
		close(orders[1]);
		work(orders[0], answers[1]);
		_exit(0);
	}
	if (clock_getcpuclockid(pid, &clock) != 0)
		errx(1, "no clock of the task");
	publish(argv[1], pid);
	while (fscanf(script, "%d %llu %d", &o.cpu, &us, &snapshot) == 3) {
		o.work_ns = us * 1000;
		if (write(orders[1], &o, sizeof(o)) != (ssize_t)sizeof(o) ||
			read(answers[0], &worked_ns, sizeof(worked_ns)) != (ssize_t)sizeof(worked_ns))
			err(1, "the task has ended");
		wait_until_asleep(pid);
		if (snapshot)
			run(argv + 3);
		printf("%llu %llu\n", (unsigned long long)read_clock(clock), (unsigned long long)worked_ns);
		fflush(stdout);
	}
	close(orders[1]);
	waitpid(pid, NULL, 0);
	return 0;
}
