/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The events that BPF programs write into the ring buffer flightrec_events. A program of a user's object can
   also write other bytes there, without the functions of the ABI's header, so the events are not trusted. */

#include "source/cause.h"

#include <stddef.h>
#include <stdint.h>

struct flightrec_event;

/* Parses N bytes of DATA. In RET all strings are terminated and printable, the time is not after NOW_NS, and
   the unit is one of enum flightrec_unit. Returns 0; or -EBADMSG if DATA is not an event of this ABI. */
int fr_bpf_event_parse(const void *data, size_t n, uint64_t now_ns, struct flightrec_event *ret);

/* Converts the parsed event E to a cause. The members trigger, source and cgroup of the cause stay empty. */
void fr_bpf_event_to_cause(const struct flightrec_event *e, struct fr_cause *ret);
