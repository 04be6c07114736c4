/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Used in dump/ only: writes the AUX data of a dump (docs/design/62). In all functions, A may be NULL: the
   recording has no AUX events. */

#include "perfdata/auxtrace.h"
#include "perfdata/session.h"

/* Returns the bytes that the AUX data takes in the file. */
uint64_t fr_dump_aux_bytes(const struct fr_aux_data *a);
/* Writes the records with which the data begins: TIME_CONV, ID_INDEX, AUXTRACE_INFO. S has the events of the
   file: perf refuses other ids. Returns 0, -ENOMEM or the errno of the sink. */
int fr_dump_aux_write_head(
	struct fr_file_writer *out, const struct fr_aux_data *a, const struct fr_session *s);
/* Writes the records that the kernel writes only when an event starts, if they are older than BEFORE_NS: the
   frames do not have them. Returns the same values. */
int fr_dump_aux_write_records(struct fr_file_writer *out, const struct fr_aux_data *a, uint64_t before_ns);
/* Writes the AUX data. Returns the same values. */
int fr_dump_aux_write_pieces(struct fr_file_writer *out, const struct fr_aux_data *a);
