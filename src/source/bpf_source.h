/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The common part of the sources that are BPF objects of the trigger ABI: source_bpf.c, source_function.c.
 *
 *   init ─► (set more globals) ─► load ─► (attach) ─► listen … close
 *
 * source_bpf.c and source_function.c do the steps in parentheses themselves. Only one thread at a time is
 * allowed to use a source. From the step `listen` on, only the main thread is allowed to use it.
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
	unsigned handled;		 /* events in this iteration of the event loop */
	char detail[FR_CAUSE_TEXT_SIZE]; /* the detail of a cause whose event has no detail; "": such a cause
					    has no detail */
	struct fr_cgroup_cache cgroups;
	struct stat file; /* the object file of Program=, or the probed file; st_ino 0: a built-in probe */
};

/* Describes a BPF object. */
struct fr_bpf_source_object {
	const void *bytes; /* ELF; not needed after init */
	size_t n;
	const char *label;	    /* the object's name in messages */
	enum fr_unit_of_cause unit; /* FR_CAUSE_NONE: the unit that the object declares is used */
	const char *threshold;	    /* default of Threshold=; NULL: the object's own default */
};

/* Opens OBJECT, sets the ABI's globals from S's config, and chooses the programs for this kernel. If S has no
   env, only checks the config: does not choose programs, and does not set the globals whose values are facts
   about this machine. Returns 0; or a negative errno, with a message in D. */
int fr_bpf_source_init(struct fr_bpf_source *s, const struct fr_bpf_source_object *object, struct fr_diag *d);
/* Loads the programs and opens the ring buffer of events. Returns 0; or a negative errno, with a
   message in D. */
int fr_bpf_source_load(struct fr_bpf_source *s, struct fr_diag *d);

/* Returns whether NOW is the state of another file than S->file, or of the same file with changed content. */
bool fr_bpf_source_is_other_file(const struct fr_bpf_source *s, const struct stat *now);

/* bpf_switch.c: gives the programs the slots of the events that they switch. Returns 0; or a negative errno,
   with a message in D: an event is not recorded, or a program cannot switch it. */
int fr_bpf_source_find_switches(struct fr_bpf_source *s, struct fr_diag *d);
/* Returns whether S is loaded and one of these events cannot be switched any more. */
bool fr_bpf_source_misses_switch(const struct fr_bpf_source *s);
/* Reads a record of the ring buffer. Returns 0; or -EBADMSG if it is not about a switch. */
struct fr_switch_record;
int fr_bpf_switch_parse(const void *data, size_t n, uint64_t now_ns, struct fr_switch_record *ret);

/* Functions for struct fr_source_class. */
int fr_bpf_source_listen(struct fr_source *s, struct fr_diag *d);
void fr_bpf_source_close(struct fr_source *s);
void fr_bpf_source_get_stats(struct fr_source *s, struct fr_source_stats *ret);
