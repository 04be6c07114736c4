/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "phase.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#define CALIBRATE_ROUNDS 200000ULL
#define CALIBRATIONS 5
#define COMM_SIZE 16

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

uint64_t fr_phase_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t fr_phase_cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static FR_BURNER(frtest_calibrate)

	uint64_t fr_phase_rounds(uint64_t cpu_ms)
{
	static bool calibrated;
	static uint64_t ns;

	/* Take the shortest measurement, because a time in which the host stops a virtual CPU counts as CPU
	   time. */
	for (int i = 0; !calibrated && i < CALIBRATIONS; i++) {
		uint64_t begin = fr_phase_cpu_ns(), took;

		frtest_calibrate(CALIBRATE_ROUNDS);
		took = fr_phase_cpu_ns() - begin + 1;
		ns = i && ns < took ? ns : took;
	}
	calibrated = true;
	return cpu_ms * 1000000 * CALIBRATE_ROUNDS / ns;
}

uint64_t fr_phase_ms(void)
{
	const char *s = getenv("FR_PHASE_MS");

	return s ? strtoull(s, NULL, 10) : 300;
}

void fr_phase_stop(void)
{
	if (getenv("FR_PHASE_STOP"))
		raise(SIGSTOP);
}

void fr_phase_hold(void)
{
	while (getenv("FR_PHASE_HOLD"))
		pause();
}

/* Print a line by one write(), because several threads and processes write to the same pipe. */
static void print_line(const char *line, int len, size_t size)
{
	if (len < 0 || (size_t)len >= size || write(STDOUT_FILENO, line, (size_t)len) != len)
		err(EXIT_FAILURE, "cannot report a phase");
}

void fr_phase_report(uint64_t begin_ns, const char *symbols, const char *rule)
{
	char comm[COMM_SIZE + 1] = "", hex[2 * COMM_SIZE + 1] = "", line[512];
	uint64_t end_ns = fr_phase_now_ns();

	prctl(PR_GET_NAME, comm);
	for (size_t i = 0; comm[i]; i++)
		snprintf(hex + 2 * i, 3, "%02x", (unsigned char)comm[i]);
	int len = snprintf(line, sizeof(line),
		"{\"pid\":%d,\"tid\":%ld,\"comm\":\"%s\",\"from\":%" PRIu64 ",\"to\":%" PRIu64
		",\"symbols\":\"%s\",\"rule\":\"%s\"}\n",
		getpid(), syscall(SYS_gettid), hex, begin_ns, end_ns, symbols, rule);
	print_line(line, len, sizeof(line));
}

void fr_phase(fr_burner burn, const char *symbols)
{
	uint64_t rounds = fr_phase_rounds(fr_phase_ms());
	uint64_t begin = fr_phase_now_ns();

	burn(rounds);
	fr_phase_report(begin, symbols, "leaf");
}

void fr_phase_note(const char *key, uint64_t value)
{
	char line[128];
	int len = snprintf(line, sizeof(line), "{\"note\":\"%s\",\"value\":%" PRIu64 "}\n", key, value);

	print_line(line, len, sizeof(line));
}
