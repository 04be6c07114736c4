/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the files of rules (rules.h) share: rules.c runs them, and each of the other files has the rules
   of one kind. */

#include "base/clock.h"
#include "report/rules.h"

/* Limits that several rules have. docs/design/76-explain.md gives the reasons. */
#define FR_RULE_WAIT_MIN 0.03 /* threads that waited, on average over the incident */
#define FR_RULE_MORE 2.0      /* at least so many times as much as before */
/* Added to the score of a rule that names a cause, not only its effect on a CPU. */
#define FR_RULE_SPECIFIC 0.5

#define FR_SECONDS(ns) ((double)(ns) / (double)FR_NSEC_PER_SEC)
#define FR_MS(ns) ((double)(ns) / (double)FR_NSEC_PER_MSEC)

/* A process that did much, before or in the incident, or all others with one name. Processes that were there
   before and in the incident are not mixed with those that replace others. */
struct fr_rule_group {
	UT_hash_handle hh;
	const void *key; /* the process, or the name */
	const char *comm;
	struct fr_sums sums[FR_PARTS];
	uint64_t idle_cpu_ns, idle_cpu_waits;
	size_t n;
	bool is_kernel; /* threads of the kernel */
};

struct fr_rules {
	const struct fr_profile *profile;
	const struct fr_facts *facts;
	struct fr_rule_group *groups;
	struct fr_findings *found;
	double before, incident; /* seconds */
};

/* The rules. They return 0 or -ENOMEM. */
int fr_rule_stuck(struct fr_rules *r, const struct fr_rule_group *g);
int fr_rule_locks(struct fr_rules *r, const struct fr_rule_group *g);
int fr_rule_forks(struct fr_rules *r, const struct fr_rule_group *g);
int fr_rule_throttling(struct fr_rules *r, const struct fr_rule_group *g);
int fr_rule_reclaim(struct fr_rules *r, const struct fr_rule_group *g);
int fr_rule_disk(struct fr_rules *r, const struct fr_rule_group *g);
int fr_rule_server(struct fr_rules *r, const struct fr_rule_group *g);
int fr_rule_blocked(struct fr_rules *r, const struct fr_rule_group *g);
int fr_rule_cpu(struct fr_rules *r, const struct fr_rule_group *g);

/* What a rule of waits says of them. */
enum fr_verdict {
	FR_VERDICT_NORMAL,
	FR_VERDICT_NEW,	    /* there are more than before */
	FR_VERDICT_CHRONIC, /* they are long, and were so before */
};
/* Judges waits by their sums and the longest one in both parts. MIN is the number of threads that must wait
   on average. */
enum fr_verdict fr_rules_judge(const struct fr_rules *r, double min, const uint64_t ns[static FR_PARTS],
	const uint64_t longest_ns[static FR_PARTS]);
/* The score of a cause that cost NS in the incident. BONUS is added if the cause is new. */
double fr_rules_score(const struct fr_rules *r, enum fr_verdict v, double bonus, double ns);

/* Returns whether P belongs to G. */
bool fr_rule_is_in(const struct fr_rules *r, const struct fr_rule_group *g, const struct fr_process_facts *p);
/* Returns the process of G for which VALUE is greatest. KIND is given to VALUE. */
typedef uint64_t (*fr_rule_value)(const struct fr_process_facts *p, enum fr_wait kind);
const struct fr_process_facts *fr_rule_most(
	const struct fr_rules *r, const struct fr_rule_group *g, fr_rule_value value, enum fr_wait kind);
/* The waits of KIND in the incident. */
uint64_t fr_rule_waits_of(const struct fr_process_facts *p, enum fr_wait kind);

/* Makes a finding. WHO is the cause or NULL. Returns NULL if there is no memory. The result is valid
   until the next call. */
struct fr_finding *fr_finding_add(
	struct fr_rules *r, const char *rule, double score, const struct fr_process_facts *who);
void fr_finding_headline(struct fr_finding *x, const char *format, ...) __attribute__((format(printf, 2, 3)));
void fr_finding_evidence(struct fr_finding *x, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds the times of both parts as evidence. */
void fr_finding_compare(struct fr_finding *x, const struct fr_rules *r, const char *what, uint64_t before_ns,
	uint64_t incident_ns);

/* "postgres (pid 77)", or "cc1 (12 processes, most is pid 77)". MOST is that process. Returns RET. */
const char *fr_rule_group_name(
	const struct fr_rule_group *g, const struct fr_process_facts *most, char ret[static 64]);
/* The innermost function of a stack; of the program only, without its C library, if USER is true. */
const char *fr_rule_innermost(const struct fr_rules *r, uint32_t stack, bool user);
/* Says at the end of the headline that a cause is not new. */
void fr_finding_as_before(struct fr_finding *x, enum fr_verdict v);
/* How much more than before, in seconds of the incident. */
double fr_rules_more(const struct fr_rules *r, uint64_t before_ns, uint64_t incident_ns);
/* Returns whether the incident has at least FR_RULE_MORE times as much, in relation to its length. */
bool fr_rules_is_more(const struct fr_rules *r, uint64_t before_ns, uint64_t incident_ns);
/* CPU time in code of a class. */
uint64_t fr_sums_class_ns(const struct fr_sums *s, uint32_t one_class);
/* The share of the CPU time in code of that one of CLASSES that has most of it. */
double fr_sums_share(const struct fr_sums *s, uint32_t classes);
