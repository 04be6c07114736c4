/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The AUX data of the inputs (perfdata/auxtrace.h, docs/design/62). The cursors hand over the records that
 * describe it. From the records at the start of the inputs, fr_aux_make_head() makes the records for the
 * start of the output. When all inputs are read, fr_aux_plan() says which pieces of AUX data the output gets:
 * each byte once, and the pieces of a queue in their order. The data itself stays in the inputs until it is
 * copied to the output.
 */

#include "base/buf.h"
#include "merge/input.h"
#include "perfdata/auxtrace.h"
#include "perfdata/id_table.h"

/* The largest number of pieces of AUX data. The limit bounds the memory. */
#define FR_AUX_MAX (1u << 20)
/* The largest number of a queue. perf makes a table of all queues up to the largest number. */
#define FR_AUX_QUEUE_MAX 65535u

/* A piece of AUX data. `t.data` is NULL. */
struct fr_aux_piece {
	size_t input;	  /* the input that has the data */
	uint64_t at;	  /* the place of the data in the file of the input */
	uint64_t opening; /* increases each time the event of the queue is opened; 0: unknown */
	struct fr_auxtrace t;
};

struct fr_aux {
	const struct fr_merge_options *options;
	struct fr_inputs *inputs;
	struct fr_buf pieces;	  /* struct fr_aux_piece */
	struct fr_buf entries;	  /* the entries of the inputs' ID_INDEX, with their inputs */
	struct fr_buf *infos;	  /* for each input its AUXTRACE_INFO, or nothing */
	size_t *recordings;	  /* for each input the first input of the same recording */
	uint32_t *first_queues;	  /* for each input the number to add to the numbers of its queues */
	bool has_recordings;	  /* fr_aux_find_recordings() was called */
	uint32_t n_queues;	  /* the first number that no recording uses */
	struct fr_id_table slots; /* (input, queue) to an index of `openings` */
	struct fr_buf openings;	  /* uint64_t */
	size_t chosen;		  /* the input whose AUXTRACE_INFO the output gets; SIZE_MAX: there is none */
	uint64_t too_many;	  /* bytes of the pieces after the first FR_AUX_MAX */
	uint64_t duplicates;	  /* bytes that fr_aux_plan() has left out, because another piece has them */
};

/* OPTIONS and INPUTS are borrowed. Returns 0 or -ENOMEM. The caller calls fr_aux_deinit(), also after a
   failure. */
int fr_aux_init(struct fr_aux *a, const struct fr_merge_options *options, struct fr_inputs *inputs);
void fr_aux_deinit(struct fr_aux *a);

/* Returns whether records of TYPE are for fr_aux_add(): ID_INDEX, AUXTRACE_INFO and AUXTRACE. */
bool fr_aux_wants(uint32_t type);
/* Takes such a record of an input. AT is the file offset of the record. Returns 0 or -ENOMEM. */
int fr_aux_add(struct fr_aux *a, size_t input, const struct perf_event_header *record, uint64_t at);

/* Appends the ID_INDEX of all inputs and one AUXTRACE_INFO to RET. Warns if the AUXTRACE_INFOs of the inputs
   differ. Call it when the start of each input has been read. Returns 0 or -ENOMEM. */
int fr_aux_make_head(struct fr_aux *a, struct fr_buf *ret);

/* Finds the inputs that belong to the same recording. Gives each recording numbers of queues of its own. */
void fr_aux_find_recordings(struct fr_aux *a);

/* In aux_plan.c. Replaces the pieces by the pieces for the output, in the order in which they are written.
   Reads and compares the data of pieces that overlap. Warns about data that is left out for another reason
   than being a duplicate, and marks its inputs as incomplete. Returns 0, -ENOMEM, -EBADMSG if an input was
   truncated meanwhile, or another negative errno. */
int fr_aux_plan(struct fr_aux *a);

static inline size_t fr_aux_count(const struct fr_aux *a)
{
	return a->pieces.len / sizeof(struct fr_aux_piece);
}

static inline struct fr_aux_piece *fr_aux_pieces(const struct fr_aux *a)
{
	return (struct fr_aux_piece *)a->pieces.data;
}

/* Returns whether the AUXTRACE_INFO of INPUT describes other hardware than the chosen AUXTRACE_INFO. perf can
   decode only the AUX data of one PMU in a file. */
bool fr_aux_is_foreign(const struct fr_aux *a, size_t input);
