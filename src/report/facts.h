/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the rules of explain (rules.h) need to know of a recording, collected in one pass: for each process,
 * its CPU time and its waits, in the time before the incident and in the incident. The incident is the last
 * part of the recording. Waits, and samples of the incident, are also kept one by one, up to a limit. Not
 * thread-safe.
 */

#include "report/classes.h"
#include "report/profile.h"
#include "sideband/hash.h"

#define FR_FACTS_CLASSES 20 /* bits of enum fr_code_class */
#define FR_FACTS_SLOTS 32   /* parts of the incident */

/* What a thread waited for. */
enum fr_wait {
	FR_WAIT_CPU, /* it could run, and did not: run queue, preemption, throttling */
	FR_WAIT_LOCK,
	FR_WAIT_DISK,
	FR_WAIT_RECLAIM,
	FR_WAIT_SERVER,	 /* FUSE, NFS … */
	FR_WAIT_PEER,	 /* to write: the reader of a pipe or socket is slower */
	FR_WAIT_UNKNOWN, /* uninterruptible, and the stack does not say what for */
	FR_WAIT_SLEEP,
	FR_WAIT_IDLE, /* for work, or it is not known what for */
	_FR_WAIT_N,
};

/* Finds what the blocked time of S, a sample of flightrec:offcpu, was for. Returns 0 or -ENOMEM. */
int fr_wait_kind(struct fr_classes *c, const struct fr_profile *p, const struct fr_recording_event *e,
	const struct fr_profile_sample *s, enum fr_wait *ret);

/* Sums over one of the two parts of a recording. Times are in ns. */
struct fr_sums {
	uint64_t cpu_ns, cpu_samples;
	uint64_t class_ns[FR_FACTS_CLASSES]; /* CPU time in code of each class; a sample can be in several
						classes */
	uint64_t wait_ns[_FR_WAIT_N], waits[_FR_WAIT_N], longest_ns[_FR_WAIT_N];
	uint64_t throttled_ns; /* of the waits for a CPU: in the function by which a cgroup without quota
				  leaves its CPU */
	uint64_t forks;	       /* processes that it made */
};

enum { FR_BEFORE, FR_INCIDENT, FR_PARTS };

struct fr_process_facts {
	UT_hash_handle hh;
	uint32_t pid;
	const char *comm; /* the last name of its main thread that was seen */
	struct fr_sums sums[FR_PARTS];
	uint64_t slot_ns[FR_FACTS_SLOTS]; /* CPU time in each part of the incident */
	/* Waits for a CPU in the incident, while every CPU was idle for most of the wait. */
	uint64_t idle_cpu_ns, idle_cpu_waits;
	uint32_t n_threads; /* at the end; 0: not known */
	bool is_kernel;	    /* a thread of the kernel */
};

/* CPU time in one function, without those that it calls. */
struct fr_function_facts {
	UT_hash_handle hh;
	uint32_t frame;
	uint64_t ns[FR_PARTS], samples[FR_PARTS];
};

/* A wait. */
struct fr_wait_fact {
	uint64_t end_ns, blocked_ns, runqueue_ns;
	uint32_t task, stack, cpu;
	uint32_t waker_pid, waker_tid; /* 0: not known, or an interrupt */
	enum fr_wait kind;	       /* of the blocked time */
	uint32_t classes;	       /* of its stack */
	char state;		       /* as in ps(1); 'R': it was preempted, so nobody woke it */
	bool is_open;		       /* it had not ended at the time of the dump */
	bool is_timed;		       /* an interrupt ended it, such as that of a timer */
};

/* A sample of CPU time in the incident. */
struct fr_cpu_fact {
	uint64_t time, ns;
	uint32_t task, stack, cpu;
};

struct fr_facts {
	uint64_t from_ns, incident_ns, to_ns; /* the two parts: from_ns … incident_ns … to_ns */
	uint64_t sample_ns;		      /* the time between two samples of a busy CPU */
	uint32_t n_cpus;
	struct fr_process_facts *processes;
	struct fr_function_facts *functions;
	struct fr_sums all[FR_PARTS]; /* all processes together */
	struct fr_buf waits;	      /* struct fr_wait_fact of both parts, in the order of their ends */
	size_t first_wait;	      /* the index of the first one of the incident */
	struct fr_buf cpu;	      /* struct fr_cpu_fact, in the order of time; without idle CPUs */
	uint64_t left_out;	      /* waits and samples that are not kept, because there were too many */
	uint64_t lost;		      /* records that the kernel lost */
	bool has_cpu, has_waits;      /* the recording has such events */
	struct fr_classes classes;
};

/* Reads the recording of P. INCIDENT_NS is the length of the incident; 0: choose it. ALSO is a view that gets
   the samples, too, or NULL. Returns 0; or a negative errno, with a message in D. The caller frees RET. */
int fr_facts_read(struct fr_profile *p, uint64_t incident_ns, const struct fr_view *also,
	struct fr_facts *ret, struct fr_diag *d);
void fr_facts_deinit(struct fr_facts *f);

/* The length of a part in ns and in s. */
uint64_t fr_facts_ns(const struct fr_facts *f, int part);
double fr_facts_seconds(const struct fr_facts *f, int part);
const struct fr_process_facts *fr_facts_find(const struct fr_facts *f, uint32_t pid);
/* The waits that ended in the incident, or had not ended at its end. */
const struct fr_wait_fact *fr_facts_waits(const struct fr_facts *f, size_t *ret_n);
/* For facts.c only: judges the waits for a CPU in the incident. Sets idle_cpu_ns and longest_ns[FR_WAIT_CPU]
   of each process, and subtracts waits that were none. Returns 0 or -ENOMEM. */
int fr_facts_judge_queues(const struct fr_profile *p, struct fr_facts *f);
