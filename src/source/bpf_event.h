/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What a BPF program wrote into the ring buffer, which may be anything: an object's programs can reach the
   map without the ABI's helper. */

#include "source/cause.h"

#include <stddef.h>
#include <stdint.h>

struct flightrec_event;

/* DATA as an event: strings end, and have no control characters; the time is not after NOW_NS, the unit is
   one of enum flightrec_unit. -EBADMSG: it is none. */
int fr_bpf_event_parse(const void *data, size_t n, uint64_t now_ns, struct flightrec_event *ret);

/* E, parsed, as a cause without trigger, source and cgroup. */
void fr_bpf_event_to_cause(const struct flightrec_event *e, struct fr_cause *ret);
