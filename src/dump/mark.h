/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Inside dump/: the causes of a dump as samples of an event of its own, "flightrec:trigger", so that any
 * reader shows them where they happened.
 *
 * The event is a tracepoint that no kernel has: the file itself says how it is decoded. Its id and its attr
 * are the same in all files of a boot, so that a merge makes one event of them, and a mark that two files
 * have is the same record. It is the last event, as reports begin with the first.
 */

#include "dump/dump.h"
#include "base/buf.h"
#include "perfdata/writer.h"

#define FR_MARK_EVENT "flightrec:trigger"

struct fr_marks {
	struct fr_buf records; /* by time */
	size_t at;	       /* of them written */
	uint64_t n;
};

/* The event into S, behind all that it has, with its format and its description. 0 or a negative errno. */
int fr_marks_add_event(struct fr_session *s);
/* Records of the N MARKS (borrowed), by their time. S has the event. 0 or -ENOMEM. */
int fr_marks_init(
	struct fr_marks *m, const struct fr_session *s, const struct fr_trigger_sample *marks, size_t n);
void fr_marks_deinit(struct fr_marks *m);
/* Write those that are not yet written and not later than UNTIL_NS. 0 or the sink's errno. */
int fr_marks_write(struct fr_marks *m, struct fr_file_writer *out, uint64_t until_ns);
