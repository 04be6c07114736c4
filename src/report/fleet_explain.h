/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * One explanation of many machines, in at most 30 lines. The rules (rules.h) look at one machine after the
 * other. Their findings are ranked together: those of one rule about processes of one name are one finding,
 * with all its machines. docs/design/93-many-machines.md has the reasons. Not thread-safe.
 */

#include "report/explain.h"
#include "report/fleet_folder.h"

/* What is kept of a finding after its profile is gone. */
struct fr_fleet_finding {
	struct fr_finding f; /* comm and stack are not valid */
	char comm[64];
	char *stack;	/* the line "   stack: …\n", or "" */
	size_t machine; /* the number of the machine */
};

/* What a machine did in the incident. */
struct fr_fleet_load {
	bool is_known;
	double cpus;	/* that were busy */
	double waiting; /* threads that waited, but not for work */
	size_t n_findings;
	uint64_t lost; /* records that were lost or left out */
};

struct fr_fleet_explanation {
	const struct fr_fleet_folder *folder; /* borrowed */
	const char *path;	    /* for the commands that are proposed; borrowed; NULL: none are */
	struct fr_fleet_finding *v; /* the findings of all machines */
	size_t n;
	struct fr_fleet_load *loads; /* of each machine of the folder */
	cJSON *json;		     /* the machines; NULL: not wanted */
};

/* FOLDER and PATH are borrowed. WANTS_JSON: keep all that fr_fleet_explanation_json() needs. Returns 0 or
   -ENOMEM. The caller calls fr_fleet_explanation_deinit() in any case. */
int fr_fleet_explanation_init(struct fr_fleet_explanation *x, const struct fr_fleet_folder *folder,
	const char *path, bool wants_json);
/* Adds the machine with the number MACHINE. Nothing of E is needed after that. Returns 0 or -ENOMEM. */
int fr_fleet_explanation_add(struct fr_fleet_explanation *x, size_t machine, const struct fr_explanation *e);
/* Both of these are called after all machines were added, in any order and often. */
int fr_fleet_explanation_print(struct fr_fleet_explanation *x, FILE *out);
/* Returns an object that the caller frees, or NULL if there is no memory. */
cJSON *fr_fleet_explanation_json(struct fr_fleet_explanation *x);
void fr_fleet_explanation_deinit(struct fr_fleet_explanation *x);

/* Findings that are one: of one rule, about processes with one name. */
struct fr_fleet_group {
	const struct fr_fleet_finding *first; /* the one with the highest score */
	size_t *machines;		      /* of all of them, the one of `first` first; each only once */
	size_t n;
};
/* Makes the groups, the one with the highest score first. The caller frees RET by fr_fleet_groups_free().
   Returns 0 or -ENOMEM. */
int fr_fleet_groups(struct fr_fleet_explanation *x, struct fr_fleet_group **ret, size_t *ret_n);
void fr_fleet_groups_free(struct fr_fleet_group *v, size_t n);

/* The machine that has most more busy CPUs and waiting threads than the others. */
struct fr_fleet_difference {
	size_t machine;
	double cpus, waiting;		    /* of it */
	double others_cpus, others_waiting; /* the medians of the others */
};
/* Returns whether one machine clearly differs. */
bool fr_fleet_difference(const struct fr_fleet_explanation *x, struct fr_fleet_difference *ret);
