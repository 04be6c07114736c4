/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The events that BPF programs write into the ring buffer. The programs of a user's object can bypass the
   ABI's helper and write any bytes. */

#include "source/cause.h"

#include <stddef.h>
#include <stdint.h>

struct flightrec_event;

/* Parses N bytes of DATA. In RET all strings are terminated and printable, the time is not after NOW_NS, and
   the unit is one of enum flightrec_unit. Returns 0; -EBADMSG if DATA is not an event. */
int fr_bpf_event_parse(const void *data, size_t n, uint64_t now_ns, struct flightrec_event *ret);

/* Converts the parsed event E to a cause. The members trigger, source and cgroup of the cause stay empty. */
void fr_bpf_event_to_cause(const struct flightrec_event *e, struct fr_cause *ret);
