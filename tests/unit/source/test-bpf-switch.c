// SPDX-License-Identifier: GPL-2.0-or-later

/* Tests of BPF objects that switch events: they get the slots of the events, and report each switch. */

#include "bpf_test.h"
#include "base/pidns.h"
#include "capture/switches.h"

#include <linux/types.h>
#include <sys/syscall.h>

#include <flightrec/trigger.bpf.h>

#define EVENT "raw_syscalls:sys_enter"

static struct fr_switches *switches;
static char unique[16], set[24];
static bool is_gone;
static struct fr_switch_record records[8];
static unsigned n_records;

static int find_switch(void *ctx, const char *name, uint32_t *ret_slot, struct fr_diag *d)
{
	if (is_gone || strcmp(name, EVENT) != 0)
		return fr_fail(d, -ENOENT, "look again", "no event %s is recorded", name);
	*ret_slot = fr_switches_find(switches, name);
	return 0;
}

static void on_switched(void *ctx, void *trigger, const struct fr_switch_record *record)
{
	assert_ptr_equal(trigger, ctx);
	if (n_records < FR_ARRAY_SIZE(records))
		records[n_records] = *record;
	n_records++;
}

static void init(struct heard *h)
{
	need_bpf();
	assert_int_equal(fr_switches_new(&switches), 0);
	assert_true(fr_switches_fd(switches) >= 0);
	(void)fr_switches_add(switches, "another", false);
	(void)fr_switches_add(switches, EVENT, false);
	snprintf(unique, sizeof(unique), "frt%d", (int)getpid());
	init_program(h, OBJECT("switches"));
	snprintf(set, sizeof(set), "comm=%s", unique);
	h->config.set = set;
	h->config.set_len = strlen(set) + 1;
	h->env.find_switch = find_switch;
	h->env.switched = on_switched;
	h->env.switches_fd = fr_switches_fd(switches);
	h->env.pidns = fr_own_pidns();
	is_gone = false;
	n_records = 0;
}

static void call_all(void *numbers)
{
	for (const long *n = numbers; *n >= 0; n++)
		syscall(*n, 0);
}

/* Lets a child make the calls NUMBERS, and waits until it has ended. Returns its pid. */
static pid_t call(const long *numbers)
{
	struct child c = child_new(unique, call_all, (void *)numbers);

	end_well(&c);
	return c.pid;
}

static bool is_off(void)
{
	return fr_switches_is_off(switches, fr_switches_find(switches, EVENT));
}

TEST(each_switch_is_reported_once)
{
	static const long off[] = {SYS_getppid, SYS_getppid, -1},
			  on[] = {SYS_getpgrp, SYS_getsid, SYS_getpgrp, -1},
			  off_and_on_for[] = {SYS_getppid, SYS_getsid, -1};
	const uint64_t begin = fr_monotonic_ns();
	_cleanup_heard_ struct heard h = {0};
	pid_t pid;

	init(&h);
	heard_arm(&h);
	pid = call(off);
	assert_true(is_off());
	HEARD_UNTIL(&h, n_records == 1);
	assert_true(records[0].is_off);
	assert_int_equal(records[0].pid, pid);
	assert_int_equal(records[0].tid, pid);
	assert_string_equal(records[0].comm, unique);
	assert_int_equal(records[0].slot, fr_switches_find(switches, EVENT));
	assert_true(records[0].time_ns > begin && records[0].time_ns < fr_monotonic_ns());
	assert_true(records[0].cpu >= 0);
	call(on);
	assert_false(is_off());
	HEARD_UNTIL(&h, n_records == 2);
	assert_false(records[1].is_off);
	assert_int_equal(records[1].for_ns, 0);
	call(off_and_on_for);
	HEARD_UNTIL(&h, n_records == 4);
	assert_int_equal(records[3].for_ns, 500 * MS);
	assert_int_equal(fr_switches_changes(switches, records[0].slot), 4);
	assert_int_equal(h.n, 0);
	assert_int_equal(heard_stats(&h).bad, 0);
	assert_false(fr_switches_is_off(switches, fr_switches_find(switches, "another")));
	heard_disarm(&h);
	call(off);
	assert_false(is_off());
	switches = fr_switches_free(switches);
}

/* Processes outside of the pid namespace of flightrecd have no number there, and not that of another process.
 */
TEST(a_process_without_a_number)
{
	static const long off[] = {SYS_getppid, -1};
	_cleanup_heard_ struct heard h = {0};

	init(&h);
	h.env.pidns = 1; /* no namespace has this inode */
	heard_arm(&h);
	call(off);
	HEARD_UNTIL(&h, n_records == 1);
	assert_int_equal(records[0].pid, 0);
	assert_int_equal(records[0].tid, 0);
	assert_string_equal(records[0].comm, unique);
	heard_disarm(&h);
	switches = fr_switches_free(switches);
}

/* From the decision to the end of the call, which is later than the switch itself. */
TEST(a_switch_takes_less_than_a_microsecond)
{
	static const long mean[] = {SYS_getpgid, -1}, fast[] = {SYS_getegid, -1};
	static long many[501];
	_cleanup_heard_ struct heard h = {0};

	for (int i = 0; i < 500; i++)
		many[i] = i % 2 ? SYS_getpgrp : SYS_getppid;
	many[500] = -1;
	init(&h);
	heard_arm(&h);
	/* The ring buffer has room for the records of some hundred switches. */
	for (int i = 0; i < 10; i++) {
		call(many);
		heard_run(&h, 20, 0);
	}
	call(mean);
	heard_wait(&h, 1);
	print_message("a switch takes %llu ns on average, ", (unsigned long long)h.last.value);
	call(fast);
	heard_wait(&h, 2);
	print_message("and %.1f %% take less than 1 us\n", (double)h.last.value / 10);
	/* The host can stop a virtual machine during some of them. */
	assert_true(h.last.value >= 900);
	heard_disarm(&h);
	switches = fr_switches_free(switches);
}

/* If the ring buffer is full, the switch takes effect, and is counted. */
TEST(a_switch_without_a_record_is_counted)
{
	static long many[4001];
	_cleanup_heard_ struct heard h = {0};

	for (int i = 0; i < 4000; i++)
		many[i] = i % 2 ? SYS_getpgrp : SYS_getppid;
	many[4000] = -1;
	init(&h);
	heard_arm(&h);
	call(many); /* nobody reads the ring buffer meanwhile */
	heard_run(&h, 200, 0);
	assert_in_range(n_records, 100, 3000);
	assert_int_equal(fr_switches_changes(switches, records[0].slot), 4000);
	assert_false(is_off());
	heard_disarm(&h);
	switches = fr_switches_free(switches);
}

TEST(an_unknown_event_is_refused)
{
	_cleanup_heard_ struct heard h = {0};

	init(&h);
	is_gone = true;
	heard_refused(&h, -ENOENT, OBJECT("switches") " switches an event: no event " EVENT " is recorded");
	is_gone = false;
	heard_arm(&h);
	assert_false(h.source->class->is_stale(h.source));
	is_gone = true;
	assert_true(h.source->class->is_stale(h.source));
	heard_disarm(&h);
	h.env.find_switch = NULL;
	heard_refused(&h, -EOPNOTSUPP, "events cannot be switched here");
	switches = fr_switches_free(switches);
}

/* A check of a configuration does not know which events the recorder has. Objects that switch nothing have no
   map of switches. */
TEST(other_objects_and_checks)
{
	_cleanup_heard_ struct heard h = {0};
	struct fr_diag d = {0};

	init(&h);
	assert_int_equal(fr_source_bpf.check(&h.config, &d), 0);
	h.config.subject = (char *)OBJECT("getppid");
	h.config.set = NULL;
	h.config.set_len = 0;
	h.env.find_switch = NULL;
	h.env.switches_fd = -1;
	heard_arm(&h);
	assert_false(h.source->class->is_stale(h.source));
	switches = fr_switches_free(switches);
}
