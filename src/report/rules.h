/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The rules of explain: each looks for one kind of cause in the facts, and makes findings with a headline and
 * its evidence. docs/design/76-explain.md describes the rules, their limits, and why they are ordered as they
 * are.
 */

#include "report/facts.h"

#define FR_EVIDENCE_MAX 8
#define FR_LINE_MAX 400

/* How sure a finding is. */
enum fr_certainty { FR_CERTAINTY_LOW, FR_CERTAINTY_MEDIUM, FR_CERTAINTY_HIGH };
/* "low", "medium", "high". */
const char *fr_certainty_name(enum fr_certainty c);

struct fr_finding {
	const char *rule; /* "cpu-hog", "lock", … */
	enum fr_certainty certainty;
	const char *why; /* what the certainty rests on */
	double score; /* how many CPUs or threads it cost, on average over the incident; findings are ordered
		      by it */
	uint32_t pid, tid; /* who is the cause; 0: nobody in particular */
	const char *comm;
	char headline[FR_LINE_MAX];
	char evidence[FR_EVIDENCE_MAX][FR_LINE_MAX];
	size_t n_evidence;
	uint32_t stack; /* of the cause; FR_STACK_NONE: none */
};

/* The processes with one name that used most CPU time, as they did before. */
struct fr_steady {
	const char *comm; /* NULL: there are none */
	uint32_t pid;	  /* of the one that used most */
	double before, cpus;
};

struct fr_findings {
	struct fr_finding *v;
	size_t n;
	struct fr_steady steady;
};

/* Runs all rules. The caller frees RET. Returns 0 or -ENOMEM. */
int fr_rules_run(const struct fr_profile *p, const struct fr_facts *f, struct fr_findings *ret);
void fr_findings_deinit(struct fr_findings *f);
