// SPDX-License-Identifier: GPL-2.0-or-later
/* Many short processes, with the BPF programs in the kernel. */
#include "../unit.h"
#include "base/clock.h"
#include "live.h"
#include "unwind/slots.h"
#include "unwind/unwinder_private.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static struct fr_unwinder *u;
static struct live *live;

static void start(void)
{
	struct fr_diag d = {0};
	int r = fr_unwinder_start(&(struct fr_unwinder_config){0}, &u, &d);

	if (r == -EPERM || r == -EOPNOTSUPP)
		unit_skip("%s", d.what);
	assert_int_equal(r, 0);
	live = live_new(u, false);
}

static int tear_down(void **state)
{
	live = live_free(live);
	u = fr_unwinder_stop(u);
	return 0;
}
FIXTURE(NULL, tear_down)

static uint8_t mine[1 << 22]; /* pids of this test */

static void run_short_process(unsigned i)
{
	const pid_t pid = i % 20 == 1 ? fork() : vfork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (i % 20 == 0)
			execl("/bin/true", "true", (char *)NULL);
		_exit(0);
	}
	mine[pid] = 1;
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Counts the slots of processes of this test that are dead. */
static unsigned count_dead_slots(void)
{
	unsigned n = 0;

	for (size_t i = 0; i < FR_UNWIND_SLOTS; i++) {
		const pid_t pid = (pid_t)u->kernel.shared->slots[i].pid;

		n += pid && mine[pid] && kill(pid, 0) < 0 && errno == ESRCH;
	}
	return n;
}

TEST(ten_thousand_short_processes_leave_nothing)
{
	struct fr_unwinder_stats before, stats;
	uint64_t until_ns;

	start();
	fr_unwinder_stats(u, &before);
	for (unsigned i = 0; i < 10000; i++) {
		run_short_process(i);
		if (i % 500 == 0)
			live_round(live);
	}
	assert_true(count_dead_slots() > 100); /* the last 500 */
	/* Another process of the machine can have used one of the pids since the last round. */
	until_ns = fr_monotonic_ns() + 30 * FR_NSEC_PER_SEC;
	do {
		live_round(live);
		assert_true(fr_monotonic_ns() < until_ns);
	} while (count_dead_slots() > 0);
	usleep(1200000); /* the memory becomes free a moment later */
	fr_unwinder_stats(u, &stats);
	assert_int_equal(stats.processes_dropped, 0);
	assert_true(stats.memory_bytes <= before.memory_bytes + (1 << 20));
	assert_int_not_equal(fr_unwind_slot_find(u->kernel.shared, (uint32_t)getpid()), 0);
}
