/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The events that BPF programs write into the ring buffer flightrec_events. A program of a user's object can
   also write other bytes there, without the functions of the ABI's header, so the events are not trusted. */

#include "source/cause.h"

#include <stddef.h>
#include <stdint.h>

/* Parses N bytes of DATA. In RET all strings are terminated and printable, the time is not after NOW_NS, and
   the members trigger, source and cgroup stay empty. Returns 0; -EBADMSG if DATA is not an event. */
int fr_bpf_event_parse(
	const void *data, size_t n, uint64_t now_ns, struct fr_cause *ret, uint64_t *ret_cgroup_id);
