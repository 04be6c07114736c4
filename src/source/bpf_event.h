/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The events that BPF programs write into the ring buffer flightrec_events. A program of a user's object can
   also write other bytes into this buffer, without the functions of the ABI's header
   (include/flightrec/trigger.bpf.h). So the events are not trusted. */

#include "source/cause.h"

#include <stddef.h>
#include <stdint.h>

/* Parses N bytes of DATA. In RET, all strings are terminated and printable, and the members trigger, source
   and cgroup are empty. The time in RET is NOW_NS if the event has no time, or a time after NOW_NS.
   RET_CGROUP_ID gets the id of the cgroup (0: unknown). Returns 0; or -EBADMSG if DATA is not an event. */
int fr_bpf_event_parse(
	const void *data, size_t n, uint64_t now_ns, struct fr_cause *ret, uint64_t *ret_cgroup_id);
