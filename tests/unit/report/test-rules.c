// SPDX-License-Identifier: GPL-2.0-or-later
/* Each rule of explain is tested a little below and above its limits. test_explain.py tests them with real
 * causes. */
#include "../files.h"
#include "../perfdata/synth.h"
#include "scene.h"

/* Returns whether a hog is found that has N samples in the incident, and BEFORE samples before. They are in
   short parts, so no burst is seen. */
static bool is_hog(unsigned before, unsigned n)
{
	struct scene s;
	bool found;

	scene_begin(&s, root);
	for (unsigned i = 0; i < before; i++)
		scene_run(&s, HOG, FROM_NS + SAMPLE_NS + i * 2 * SAMPLE_NS, 1);
	for (unsigned i = 0; i < n; i++)
		scene_run(&s, HOG, INCIDENT_NS + i * 2 * SAMPLE_NS, 1);
	scene_explain(&s, root);
	found = scene_find(&s, "cpu-hog");
	if (found)
		assert_int_equal(s.e.findings.v[0].pid, HOG);
	scene_finish(&s);
	return found;
}

TEST(a_hog_has_a_quarter_of_a_cpu_more_than_before)
{
	assert_false(is_hog(0, 249));
	assert_true(is_hog(0, 250));
	assert_false(is_hog(100, 349));
	assert_true(is_hog(100, 350));
	assert_false(is_hog(400, 400)); /* busy, but not unusual */
}

TEST(a_short_burst_is_a_hog)
{
	for (unsigned n = 100; n <= 200; n += 100) {
		struct scene s;

		scene_begin(&s, root);
		scene_run(&s, HOG, INCIDENT_NS + 5 * FR_NSEC_PER_SEC, n);
		scene_explain(&s, root);
		assert_int_equal(scene_find(&s, "cpu-hog") != NULL, n == 200);
		scene_finish(&s);
	}
}

/* Returns whether a fork storm is found. */
static bool is_storm(unsigned before, unsigned n)
{
	struct scene s;
	const struct fr_finding *x;
	bool found;

	scene_begin(&s, root);
	scene_run(&s, HOG, FROM_NS, 1);
	for (unsigned i = 0; i < before; i++)
		scene_fork(&s, HOG, 10000 + i, FROM_NS + SAMPLE_NS + i * MS_NS);
	for (unsigned i = 0; i < n; i++)
		scene_fork(&s, HOG, 20000 + i, INCIDENT_NS + i * MS_NS);
	scene_explain(&s, root);
	x = scene_find(&s, "fork-storm");
	found = x;
	if (found)
		assert_int_equal(x->pid, HOG);
	scene_finish(&s);
	return found;
}

TEST(a_fork_storm_is_20_a_second_and_twice_as_much)
{
	assert_false(is_storm(0, 199));
	assert_true(is_storm(0, 200));
	assert_true(is_storm(100, 200));
	assert_false(is_storm(101, 200));
	assert_false(is_storm(499, 499));
	assert_true(is_storm(499, 500)); /* not new, but a storm */
}

/* Returns the finding of a wait of MS ms in the state D, of which nothing more is known. */
static bool is_blocked(uint64_t ms)
{
	struct scene s;
	const struct fr_finding *x;
	bool found;

	scene_begin(&s, root);
	scene_wait(&s, &(struct wait){HOG, 0, INCIDENT_NS + FR_NSEC_PER_SEC, ms * MS_NS, 0, 'D'});
	scene_explain(&s, root);
	x = scene_find(&s, "blocked");
	found = x;
	if (found)
		assert_int_equal(x->certainty, FR_CERTAINTY_LOW);
	assert_int_equal(s.e.findings.n, found);
	scene_finish(&s);
	return found;
}

TEST(a_wait_in_the_kernel_is_found_and_not_sure)
{
	assert_false(is_blocked(299));
	assert_true(is_blocked(300));
}

/* A thread waits for a CPU N_WAITS times, MS ms each, while another thread has N samples on that CPU in each
   wait. */
static bool is_throttled(unsigned n_waits, uint64_t ms, unsigned n, char state)
{
	struct scene s;
	bool found;

	scene_begin(&s, root);
	for (unsigned i = 0; i < n_waits; i++) {
		const uint64_t at = INCIDENT_NS + FR_NSEC_PER_SEC * (i + 1) / 2;

		scene_run(&s, HOG + 1, at, n);
		scene_wait(&s, &(struct wait){HOG, 0, at + ms * MS_NS, 0, ms * MS_NS, state});
	}
	scene_run(&s, HOG + 1, TO_NS - SAMPLE_NS, 1);
	scene_explain(&s, root);
	found = scene_find(&s, "cpu-throttling");
	scene_finish(&s);
	return found;
}

TEST(waits_for_an_idle_cpu_are_throttling)
{
	assert_true(is_throttled(3, 200, 0, 'R'));
	assert_false(is_throttled(2, 300, 0, 'R'));   /* a quota is used up again and again */
	assert_false(is_throttled(3, 160, 0, 'R'));   /* 480 ms of 10 s are too little */
	assert_true(is_throttled(10, 200, 9, 'R'));   /* the CPU was idle for most of the time */
	assert_false(is_throttled(10, 200, 11, 'R')); /* it was busy: this is a run queue */
	assert_false(is_throttled(3, 200, 0, 'S'));   /* it was woken, and that can have been hidden */
	assert_false(is_throttled(3, 2001, 0, 'R'));  /* no period is so long */
}

TEST(sleep_for_work_is_nothing_unusual)
{
	struct scene s;

	scene_begin(&s, root);
	for (unsigned i = 1; i < INCIDENT_S; i++)
		scene_wait(
			&s, &(struct wait){HOG, 0, INCIDENT_NS + i * FR_NSEC_PER_SEC, 990 * MS_NS, 0, 'S'});
	scene_explain(&s, root);
	assert_true(s.e.facts.has_waits);
	assert_int_equal(s.e.findings.n, 0);
	scene_finish(&s);
}

/* Returns whether a wait of MS ms that has not ended is found. It has the time of the end of the window,
   which is after the last other sample. */
static bool is_stuck(uint64_t ms, char state)
{
	struct scene s;
	bool found;

	scene_begin(&s, root);
	scene_run(&s, HOG + 1, INCIDENT_NS, 1);
	scene_wait_in(&s, &(struct wait){HOG, 0, TO_NS + MS_NS, ms * MS_NS, 0, state}, 0, true);
	scene_explain(&s, root);
	found = scene_find(&s, "stuck");
	if (found) {
		assert_int_equal(s.e.findings.v[0].pid, HOG);
		assert_string_equal(s.e.findings.v[0].rule, "stuck");
		assert_true(s.e.findings.v[0].n_evidence > 0);
	} else {
		assert_int_equal(s.e.findings.n > 0, state == 'D' && ms >= 300);
	}
	scene_finish(&s);
	return found;
}

TEST(a_thread_that_cannot_be_woken_for_2_s_is_stuck)
{
	assert_true(is_stuck(2000, 'D'));
	assert_true(is_stuck(600000, 'D')); /* longer than the recording */
	assert_false(is_stuck(1999, 'D'));  /* a wait in the kernel as others, see above */
	assert_false(is_stuck(100, 'D'));
	assert_false(is_stuck(9000, 'S')); /* it waits for work */
}

/* Processes with one name: one was there all the time, and another one is new. */
TEST(a_new_process_is_not_mixed_with_a_steady_one_of_its_name)
{
	struct scene s;

	scene_begin(&s, root);
	synth_comm(&s.records, CLOCK_ID + 2, INCIDENT_NS, HOG + 9, "hog");
	scene_run(&s, HOG, FROM_NS + SAMPLE_NS, INCIDENT_S * 100 - 1);
	scene_run(&s, HOG, INCIDENT_NS, INCIDENT_S * 60);
	scene_run(&s, HOG + 9, INCIDENT_NS + INCIDENT_S * 600 * MS_NS, INCIDENT_S * 40 - 1);
	scene_explain(&s, root);
	assert_int_equal(s.e.findings.n, 1);
	assert_string_equal(s.e.findings.v[0].rule, "cpu-hog");
	assert_int_equal(s.e.findings.v[0].pid, HOG + 9);
	scene_finish(&s);
}

/* A build runs one compiler after the other. */
TEST(a_new_process_replaces_one_of_its_name)
{
	struct scene s;

	scene_begin(&s, root);
	synth_comm(&s.records, CLOCK_ID + 2, INCIDENT_NS, HOG + 9, "hog");
	scene_run(&s, HOG, FROM_NS + SAMPLE_NS, INCIDENT_S * 90);
	scene_run(&s, HOG + 9, INCIDENT_NS, INCIDENT_S * 95);
	scene_explain(&s, root);
	assert_int_equal(s.e.findings.n, 0);
	assert_string_equal(s.e.findings.steady.comm, "hog");
	assert_int_equal(s.e.findings.steady.pid, HOG + 9);
	scene_finish(&s);
}

TEST(a_steady_load_is_context)
{
	struct scene s;

	scene_begin(&s, root);
	scene_run(&s, HOG, FROM_NS + SAMPLE_NS, INCIDENT_S * 50);
	scene_run(&s, HOG, INCIDENT_NS, INCIDENT_S * 50);
	scene_explain(&s, root);
	assert_int_equal(s.e.findings.n, 0);
	assert_string_equal(s.e.findings.steady.comm, "hog");
	assert_int_equal((int)(100 * s.e.findings.steady.cpus + 0.5), 50);
	scene_finish(&s);
}

/* The children have the name of their parent, and use the CPU. */
TEST(the_parent_is_the_cause_of_a_fork_storm)
{
	struct scene s;
	const struct fr_finding *x;

	scene_begin(&s, root);
	for (unsigned i = 0; i < 300; i++) {
		scene_fork(&s, HOG, 20000 + i, INCIDENT_NS + i * 20 * MS_NS);
		scene_run(&s, 20000 + i, INCIDENT_NS + i * 20 * MS_NS + MS_NS, 1);
	}
	scene_explain(&s, root);
	x = scene_find(&s, "fork-storm");
	assert_non_null(x);
	assert_int_equal(x->pid, HOG);
	assert_string_equal(x->comm, "hog");
	scene_finish(&s);
}

/* "third" waits for "second" and "second" for "hog", N times MS ms, in the part of the recording that begins
   at TIME. Meanwhile "hog" sleeps. */
static void hold(struct scene *s, uint64_t time, unsigned n, uint64_t ms)
{
	for (unsigned i = 0; i < n; i++) {
		const uint64_t end = time + (i + 1) * FR_NSEC_PER_SEC;

		scene_wait_in(s, &(struct wait){HOG, 0, end, ms * MS_NS, 0, 'S'}, SCENE_SLEEP, false);
		scene_wait_in(
			s, &(struct wait){HOG + 1, HOG, end + 1, ms * MS_NS, 0, 'S'}, SCENE_LOCK, false);
		scene_wait_in(
			s, &(struct wait){HOG + 2, HOG + 1, end + 2, ms * MS_NS, 0, 'S'}, SCENE_LOCK, false);
	}
}

/* Returns the score of the finding about the lock, which has N_BEFORE holds of BEFORE_MS ms and N of MS ms;
   0: there is none. */
static double lock_score(unsigned n_before, uint64_t before_ms, unsigned n, uint64_t ms)
{
	struct scene s;
	const struct fr_finding *x;
	double score;

	scene_begin(&s, root);
	hold(&s, FROM_NS, n_before, before_ms);
	hold(&s, INCIDENT_NS, n, ms);
	scene_explain(&s, root);
	x = scene_find(&s, "lock");
	score = x ? x->score : 0;
	assert_int_equal(s.e.findings.n, x != NULL); /* one finding for both waiting threads */
	if (x) {
		assert_int_equal(x->pid, HOG);
		assert_int_equal(x->certainty, FR_CERTAINTY_HIGH);
		assert_int_equal(strstr(x->headline, "as before") != NULL, score < 0.1);
	}
	scene_finish(&s);
	return score;
}

TEST(the_holder_of_a_lock_is_found)
{
	assert_true(lock_score(0, 0, 5, 20) > 0.5);
	assert_true(lock_score(0, 0, 5, 19) == 0);  /* short */
	assert_true(lock_score(0, 0, 3, 20) == 0);  /* rare */
	assert_true(lock_score(4, 4, 5, 20) > 0.5); /* short ones are normal */
	assert_true(lock_score(5, 20, 9, 20) == 0); /* nothing new */
	assert_true(lock_score(3, 20, 8, 20) == 0);
	assert_true(lock_score(3, 20, 9, 20) > 0.5); /* three times as much is new */
}

TEST(a_lock_that_is_held_for_long_all_the_time_is_found)
{
	double new_score = lock_score(0, 0, 3, 100), old_score = lock_score(3, 100, 3, 100);

	assert_true(old_score > 0 && old_score < 0.1 && new_score > 0.5);
	assert_true(lock_score(3, 100, 2, 100) == 0); /* less than 0.05 threads wait */
	assert_true(lock_score(9, 99, 9, 99) == 0);
	assert_true(lock_score(2, 300, 4, 300) < 0.1); /* twice as often by chance */
}

/* The process "hog" waits for MS ms in FUNCTION, in state STATE, before and in the incident. Returns the rule
   of the first finding, or "". */
static const char *rule_of_waits(uint64_t before_ms, uint64_t ms, unsigned function, char state)
{
	struct scene s;
	const char *rule;

	scene_begin(&s, root);
	if (before_ms)
		scene_wait_in(&s, &(struct wait){HOG, 0, INCIDENT_NS - 1, before_ms * MS_NS, 0, state},
			function, false);
	scene_wait_in(&s, &(struct wait){HOG, 0, TO_NS - 1, ms * MS_NS, 0, state}, function, false);
	scene_explain(&s, root);
	rule = s.e.findings.n ? s.e.findings.v[0].rule : "";
	scene_finish(&s);
	return rule; /* it is a literal */
}

TEST(what_the_stack_of_a_wait_says)
{
	assert_string_equal(rule_of_waits(0, 300, SCENE_DISK, 'D'), "disk");
	assert_string_equal(rule_of_waits(0, 299, SCENE_DISK, 'D'), "");
	assert_string_equal(rule_of_waits(600, 600, SCENE_DISK, 'D'), "disk"); /* as before */
	assert_string_equal(rule_of_waits(99, 99, SCENE_DISK, 'D'), "");
	assert_string_equal(rule_of_waits(0, 300, SCENE_RECLAIM, 'D'), "memory-reclaim");
	assert_string_equal(rule_of_waits(0, 3000, SCENE_WRITE, 'S'), "slow-reader");
	assert_string_equal(rule_of_waits(0, 2999, SCENE_WRITE, 'S'), "");
	assert_string_equal(rule_of_waits(3000, 3000, SCENE_WRITE, 'S'), "");
	assert_string_equal(rule_of_waits(0, 9000, SCENE_SLEEP, 'S'), "");
	assert_string_equal(rule_of_waits(0, 9000, SCENE_FUTEX, 'S'), "");
	assert_string_equal(rule_of_waits(0, 9000, SCENE_VFORK, 'D'), "");  /* waits for its child */
	assert_string_equal(rule_of_waits(0, 9000, SCENE_KERNEL, 'D'), ""); /* a thread of the kernel */
	assert_string_equal(rule_of_waits(0, 300, 0, 'D'), "blocked");
	assert_string_equal(rule_of_waits(600, 600, 0, 'D'), "");
}

/* Returns the rule for "hog", which runs in FUNCTION for N_BEFORE and N samples. */
static const char *rule_of_code(unsigned n_before, unsigned n, unsigned function)
{
	struct scene s;
	const char *rule;

	scene_begin(&s, root);
	for (unsigned i = 0; i < n_before; i++)
		scene_run_in(&s, HOG, FROM_NS + SAMPLE_NS + i * 2 * SAMPLE_NS, 1, function);
	for (unsigned i = 0; i < n; i++)
		scene_run_in(&s, HOG, INCIDENT_NS + i * 2 * SAMPLE_NS, 1, function);
	scene_explain(&s, root);
	rule = s.e.findings.n ? s.e.findings.v[0].rule : "";
	scene_finish(&s);
	return rule;
}

TEST(what_the_stack_of_a_sample_says)
{
	assert_string_equal(rule_of_code(0, 80, SCENE_TIMER), "timer-storm");
	assert_string_equal(rule_of_code(0, 79, SCENE_TIMER), "");
	assert_string_equal(rule_of_code(0, 80, SCENE_FAULT), "page-fault-storm");
	assert_string_equal(rule_of_code(240, 240, SCENE_FAULT), "");
	assert_string_equal(rule_of_code(250, 250, SCENE_FAULT), "page-fault-storm"); /* as before */
	assert_string_equal(rule_of_code(0, 80, SCENE_LOCK), "");
	assert_string_equal(rule_of_code(0, 250, SCENE_LOCK), "cpu-hog");
	assert_string_equal(rule_of_code(0, 30, SCENE_RECLAIM), "memory-reclaim");
}

TEST(the_function_that_throttles_is_seen_on_a_full_machine)
{
	struct scene s;
	const struct fr_finding *x;

	scene_begin(&s, root);
	scene_run(&s, HOG + 1, INCIDENT_NS, INCIDENT_S * 100 - 1);
	scene_wait_in(&s, &(struct wait){HOG, 0, INCIDENT_NS + FR_NSEC_PER_SEC, 0, 500 * MS_NS, 'R'},
		SCENE_THROTTLED, false);
	scene_explain(&s, root);
	x = scene_find(&s, "cpu-throttling");
	assert_non_null(x);
	assert_int_equal(x->pid, HOG);
	assert_int_equal(x->certainty, FR_CERTAINTY_HIGH);
	scene_finish(&s);
}

/* Returns whether a deadlock is found: "hog" and its thread wait for a futex. A timer ended such a wait
   before, if IS_TIMED. The process has a third thread that does not wait, if HAS_ANOTHER. */
static bool is_deadlock(uint64_t ms, bool is_timed, bool has_another)
{
	struct scene s;
	bool found;

	scene_begin(&s, root);
	scene_thread(&s, HOG, HOG + 20, FROM_NS);
	if (has_another)
		scene_thread(&s, HOG, HOG + 21, FROM_NS);
	if (is_timed)
		scene_wait_in(&s, &(struct wait){HOG, 0, FROM_NS + FR_NSEC_PER_SEC, 500 * MS_NS, 0, 'S'},
			SCENE_FUTEX, false);
	scene_run(&s, HOG + 1, TO_NS - SAMPLE_NS, 1);
	for (uint32_t tid = HOG; tid <= HOG + 20; tid += 20)
		scene_wait_in(&s, &(struct wait){tid, 0, TO_NS, ms * MS_NS, 0, 'S'}, SCENE_FUTEX, true);
	scene_explain(&s, root);
	found = scene_find(&s, "stuck");
	assert_int_equal(s.e.findings.n, found);
	if (found)
		assert_int_equal(s.e.findings.v[0].n_evidence, 2); /* each thread */
	scene_finish(&s);
	return found;
}

TEST(all_threads_wait_for_each_other)
{
	assert_true(is_deadlock(2000, false, false));
	assert_false(is_deadlock(1999, false, false));
	assert_false(is_deadlock(9000, true, false));
	assert_false(is_deadlock(9000, false, true));
}

FIXTURE(make_root, remove_root)
