// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of explain: recordings are made and read by the real reader. This file has the tests of facts, of
   chains of wakers and of the text; test-rules.c has those of the rules. */
#include "../files.h"
#include "../perfdata/synth.h"
#include "report/chain.h"
#include "scene.h"

#include <stdio.h>
#include <stdlib.h>

TEST(the_parts_and_their_sums)
{
	struct scene s;
	const struct fr_process_facts *p;

	scene_begin(&s, root);
	scene_run(&s, HOG, FROM_NS + SAMPLE_NS, 5);
	scene_run(&s, HOG, INCIDENT_NS, 7);
	scene_run(&s, 0, INCIDENT_NS + 8 * SAMPLE_NS, 9); /* an idle CPU */
	scene_explain(&s, root);
	p = fr_facts_find(&s.e.facts, HOG);
	assert_non_null(p);
	assert_string_equal(p->comm, "hog");
	assert_int_equal(p->sums[FR_BEFORE].cpu_ns, 5 * SAMPLE_NS);
	assert_int_equal(p->sums[FR_INCIDENT].cpu_ns, 7 * SAMPLE_NS);
	assert_int_equal(s.e.facts.all[FR_INCIDENT].cpu_samples, 7);
	assert_true(s.e.facts.has_cpu && !s.e.facts.has_waits);
	assert_int_equal(s.e.findings.n, 0);
	scene_finish(&s);
}

/* A machine can hide that a thread gets a CPU. Its samples show that it had one. */
TEST(a_wait_in_which_the_thread_runs_is_none)
{
	struct scene s;
	const struct fr_process_facts *p;

	scene_begin(&s, root);
	scene_wait(&s, &(struct wait){HOG, 0, INCIDENT_NS + FR_NSEC_PER_SEC, 0, 500 * MS_NS, 'R'});
	scene_run(&s, HOG, INCIDENT_NS + 700 * MS_NS, 1);
	scene_wait(&s, &(struct wait){HOG, 0, INCIDENT_NS + 3 * FR_NSEC_PER_SEC, 0, 100 * MS_NS, 'R'});
	scene_run(&s, HOG + 1, INCIDENT_NS + 2900 * MS_NS, 10);
	scene_explain(&s, root);
	p = fr_facts_find(&s.e.facts, HOG);
	assert_int_equal(p->sums[FR_INCIDENT].wait_ns[FR_WAIT_CPU], 100 * MS_NS);
	assert_int_equal(p->sums[FR_INCIDENT].waits[FR_WAIT_CPU], 1);
	assert_int_equal(p->sums[FR_INCIDENT].longest_ns[FR_WAIT_CPU], 100 * MS_NS);
	assert_int_equal(s.e.facts.all[FR_INCIDENT].wait_ns[FR_WAIT_CPU], 100 * MS_NS);
	scene_finish(&s);
}

/* "third" waits for "second", which waits for "hog", which runs. */
TEST(the_chain_leads_to_the_thread_that_ran)
{
	struct scene s;
	struct fr_chains *chains;
	struct fr_chain chain;
	const uint64_t end = INCIDENT_NS + FR_NSEC_PER_SEC;
	struct fr_wait_fact *waits;

	scene_begin(&s, root);
	scene_run(&s, HOG, end - 300 * MS_NS, 29);
	scene_wait(&s, &(struct wait){HOG + 1, HOG, end, 290 * MS_NS, 0, 'S'});
	scene_wait(&s, &(struct wait){HOG + 2, HOG + 1, end + MS_NS, 280 * MS_NS, 0, 'S'});
	scene_explain(&s, root);
	waits = (void *)s.e.facts.waits.data;
	assert_int_equal(s.e.facts.waits.len / sizeof(*waits), 2);
	assert_int_equal(fr_chains_new(s.profile, &s.e.facts, &chains), 0);
	fr_chains_follow(chains, &waits[1], &chain);
	assert_int_equal(chain.n, 2);
	assert_int_equal(chain.links[0].tid, HOG + 1);
	assert_int_equal(chain.links[0].doing, FR_LINK_WAITED);
	assert_int_equal(chain.links[1].tid, HOG);
	assert_int_equal(chain.links[1].doing, FR_LINK_RAN);
	assert_int_not_equal(chain.links[1].stack, FR_STACK_NONE);
	fr_chains_free(chains);
	scene_finish(&s);
}

/* Two threads wake each other: the chain ends. */
TEST(a_chain_does_not_go_in_a_circle)
{
	struct scene s;
	struct fr_chains *chains;
	struct fr_chain chain;
	const uint64_t end = INCIDENT_NS + FR_NSEC_PER_SEC;

	scene_begin(&s, root);
	scene_wait(&s, &(struct wait){HOG, HOG + 1, end, 290 * MS_NS, 0, 'S'});
	scene_wait(&s, &(struct wait){HOG + 1, HOG, end, 290 * MS_NS, 0, 'S'});
	scene_explain(&s, root);
	assert_int_equal(fr_chains_new(s.profile, &s.e.facts, &chains), 0);
	fr_chains_follow(chains, (const struct fr_wait_fact *)(void *)s.e.facts.waits.data, &chain);
	assert_int_equal(chain.n, 1);
	fr_chains_free(chains);
	scene_finish(&s);
}

/* The text has at most 30 lines, also if all rules find something for many processes. */
TEST(the_text_is_short)
{
	struct scene s;
	char *text = NULL;
	size_t size, lines = 0;
	FILE *out = open_memstream(&text, &size);

	scene_begin(&s, root);
	for (uint32_t pid = 1000; pid < 1020; pid++) {
		char name[16];

		snprintf(name, sizeof(name), "load-%u", pid);
		synth_comm(&s.records, CLOCK_ID + 2, INCIDENT_NS - 1, pid, name);
	}
	for (unsigned i = 0; i < 200; i++)
		scene_fork(&s, HOG, 20000 + i, INCIDENT_NS + i * MS_NS);
	for (uint32_t pid = 1000; pid < 1020; pid++) {
		const uint64_t at = INCIDENT_NS + FR_NSEC_PER_SEC + (pid - 1000) * 400 * MS_NS;

		scene_run(&s, pid, at, 30);
		scene_wait(&s, &(struct wait){pid, 0, at + 390 * MS_NS, 350 * MS_NS, 0, 'D'});
	}
	scene_explain(&s, root);
	s.e.path = s.path;
	assert_true(s.e.findings.n > 3);
	fr_explanation_print(&s.e, out);
	fclose(out);
	for (const char *p = text; *p; p++)
		lines += *p == '\n';
	assert_true(lines <= 30);
	assert_non_null(strstr(text, "more findings"));
	assert_non_null(strstr(text, "Next: "));
	free(text);
	scene_finish(&s);
}

FIXTURE(make_root, remove_root)
