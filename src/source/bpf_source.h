/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What every source has that is a BPF object of the trigger ABI: source_bpf.c, source_function.c. Such a
 * class' structure begins with struct fr_bpf_source:
 *
 *   init ─► (globals of its own) ─► load ─► (links of its own, or fr_bpf_object_attach()) … deinit
 *
 * One thread at a time, and from listen() on the main thread.
 */

#include "source/bpf_object.h"
#include "source/cgroup.h"
#include "source/source.h"

#include <sys/stat.h>

struct ring_buffer;

struct fr_bpf_source {
	struct fr_source source;
	struct fr_bpf_object *object;
	struct ring_buffer *ring;
	sd_event_source *io;
	enum fr_unit_of_cause unit;	 /* where an event has none */
	uint64_t threshold;		 /* in force, as far as it is a global; 0: none */
	uint64_t bad;			 /* events that were none */
	unsigned turn;			 /* events taken in this turn of the loop */
	char detail[FR_CAUSE_TEXT_SIZE]; /* of events that have none; set after init */
	struct fr_cgroup_cache cgroups;
	struct stat file; /* that its programs, or its probes' places, were read from; st_ino 0: none */
};

/* What an object is to be opened with. */
struct fr_bpf_source_object {
	const void *bytes; /* ELF */
	size_t n;
	const char *label;	    /* of it in errors */
	enum fr_unit_of_cause unit; /* NONE: as the object says */
	const char *threshold;	    /* default; NULL: what the object has */
};

/* Open OBJECT and set the ABI's globals from CONFIG. ENV: NULL to check only: nothing of this machine is
   looked up. S, zeroed, keeps both; CLASS and TRIGGER are for fire(). On failure S needs no deinit. */
int fr_bpf_source_init(struct fr_bpf_source *s, const struct fr_source_class *class,
	const struct fr_source_env *env, const struct fr_trigger_config *config, void *trigger,
	const struct fr_bpf_source_object *object, struct fr_diag *d);
/* Load it; what happens from then on is kept until somebody listens. On failure S is to be deinitialised. */
int fr_bpf_source_load(struct fr_bpf_source *s, struct fr_diag *d);
void fr_bpf_source_deinit(struct fr_bpf_source *s);

/* NOW is not what S was read from. */
bool fr_bpf_source_file_changed(const struct fr_bpf_source *s, const struct stat *now);
/* As struct fr_source_class wants them. */
int fr_bpf_source_listen(struct fr_source *s, struct fr_diag *d);
void fr_bpf_source_stats(struct fr_source *s, struct fr_source_stats *ret);
