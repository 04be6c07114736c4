/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The options --from and --to. */

#include "flightrec-report/command.h"

/* Sets the times of the filter of C. Texts are read as systemd does; relative ones are relative to the end of
   the recording. Returns 0; or a negative errno, with a message in D. */
int times_set(struct report_command *c, const struct fr_profile *p, struct fr_diag *d);
/* The same for a machine of a fleet: times are those of the fleet, whose recordings end at END_NS. OFFSET_NS
   is the time of the fleet minus that of the machine. */
int times_set_fleet(struct report_command *c, uint64_t end_ns, int64_t offset_ns, struct fr_diag *d);
