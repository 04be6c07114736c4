/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The events that BPF programs write into the ring buffer. Programs of a user's object can write any bytes
   into it, without the ABI's helper. */

#include "source/cause.h"

#include <stddef.h>
#include <stdint.h>

struct flightrec_event;

/* Parses N bytes. In RET all strings are terminated and printable, the time is not after NOW_NS, and the unit
   is one of enum flightrec_unit. 0, or -EBADMSG: it is not an event. */
int fr_bpf_event_parse(const void *data, size_t n, uint64_t now_ns, struct flightrec_event *ret);

/* Converts the parsed event E to a cause without trigger, source and cgroup. */
void fr_bpf_event_to_cause(const struct flightrec_event *e, struct fr_cause *ret);
