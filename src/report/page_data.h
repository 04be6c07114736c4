/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The data of the page, before page_json.c writes it. The time is divided into buckets of equal length. An
 * entry is the samples of one source, task, stack and other task in one bucket. If there are too many
 * entries, two buckets become one, and short threads with the same name become one, until there are few
 * enough. So the sums stay exact, and only the borders of the windows that a user can choose become coarse.
 * docs/design/95-the-page.md has the reasons and the limits. Not thread-safe.
 */

#include "report/classes.h"
#include "report/facts.h"

#include <string.h>

#define FR_PAGE_BUCKETS 600u /* at most; there are fewer only after fr_page_data_finish() */

struct fr_page_key {
	uint32_t bucket, source, task;
	uint32_t stack; /* in fr_page_data.stacks, or FR_STACK_NONE */
	uint32_t other; /* of a wait: who ended it; of a waking: who was woken; a number for fr_page_other(),
			   or 0 */
};

struct fr_page_entry {
	UT_hash_handle hh;
	struct fr_page_key key;
	uint64_t count, weight;
};

/* A source is an event. An event of waits is two sources: those for work, and the others. */
#define FR_PAGE_SOURCES_MAX 256
struct fr_page_source {
	uint32_t event;
	bool idle; /* the waits for work, and sleeps */
};

/* A wait that a lane shows. */
struct fr_page_wait {
	uint64_t from_ns, to_ns;
	uint32_t task, stack, other, waker_tid; /* waker_tid 0: not known, or an interrupt */
	enum fr_wait kind;			/* FR_WAIT_SLEEP and FR_WAIT_IDLE only if it is open */
	bool is_open;				/* it has not ended: to_ns is the end of the recording */
};

struct fr_page_name {
	UT_hash_handle hh;
	char key[16]; /* padded with zeros */
	uint32_t number;
};

struct fr_page_data {
	uint64_t from_ns, to_ns; /* of the recording */
	uint64_t bucket_ns;	 /* the first bucket begins at from_ns */
	uint32_t n_buckets;
	struct fr_page_entry *entries;
	struct fr_page_source sources[FR_PAGE_SOURCES_MAX];
	uint32_t n_sources;
	struct fr_stacks stacks; /* of fr_frame.same, so frames that look the same are one */
	struct fr_buf of_stack;	 /* uint32_t: for each stack of the profile, its number in `stacks` plus 1 */
	struct fr_page_name *by_name;
	struct fr_buf others; /* the same as an array of const struct fr_page_name * */
	uint32_t n_cpus;
	uint32_t cpus_min; /* the heat map has at least so many rows, if it has any: idle CPUs have no samples
			    */
	uint32_t cpu_event;	 /* plus 1: the event that `heat` shows; 0: there is none */
	struct fr_buf heat;	 /* uint64_t: CPU time of each CPU in each of FR_PAGE_BUCKETS buckets */
	struct fr_buf waits;	 /* struct fr_page_wait */
	struct fr_buf marks;	 /* uint64_t: the times of the trigger samples */
	bool *merged;		 /* of each task: it stands for several ones with its name; NULL: none does */
	uint64_t without_stack;	 /* samples whose stack is left out, because there are too many */
	uint64_t left_out;	 /* samples that are left out, because there are too many sources */
	uint64_t waits_left_out; /* waits that no lane shows */
	struct fr_classes classes;
};

/* The three events of design/13. The first one is a part of the second one. */
static inline bool fr_page_is_open_wait(const struct fr_recording_event *e)
{
	return strcmp(e->name, "flightrec:waiting") == 0;
}

static inline bool fr_page_is_wait(const struct fr_recording_event *e)
{
	return strcmp(e->name, "flightrec:offcpu") == 0 || fr_page_is_open_wait(e);
}

static inline bool fr_page_is_waking(const struct fr_recording_event *e)
{
	return strcmp(e->name, "flightrec:waker") == 0;
}

/* Returns whether TASK stands for several threads with its name. */
static inline bool fr_page_is_merged(const struct fr_page_data *x, uint32_t task)
{
	return x->merged && x->merged[task];
}

/* Prepares the data for a recording from FROM_NS to TO_NS. */
void fr_page_data_init(struct fr_page_data *x, uint64_t from_ns, uint64_t to_ns);
/* Adds a sample. Returns 0 or -ENOMEM. */
int fr_page_data_add(struct fr_page_data *x, const struct fr_profile *p, const struct fr_profile_sample *s);
/* Makes the buckets coarser, and merges threads, until there are at most ENTRIES_MAX entries, or only a few
   buckets. Sorts the entries by bucket. P is the profile of the samples. The tasks for which LANE_OF is not 0
   are not merged. Returns 0 or -ENOMEM. */
int fr_page_data_finish(
	struct fr_page_data *x, const struct fr_profile *p, size_t entries_max, const uint32_t *lane_of);
void fr_page_data_deinit(struct fr_page_data *x);

/* The name with the number OTHER, which is not 0. It has up to 16 bytes, and may be no text. */
const char *fr_page_other(const struct fr_page_data *x, uint32_t other, size_t *ret_len);
