/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The writer of traces for Perfetto: what perfetto.c and perfetto_samples.c share. The names of fields are
   those of the messages in protos/perfetto/trace, in short. Not thread-safe. */

#include "report/output.h"
#include "report/profile.h"
#include "report/protobuf.h"

#include <stdio.h>

/* Fields of TracePacket, and the values of its flags and of its clocks. */
enum {
	FR_PACKET_FTRACE = 1,
	FR_PACKET_PROCESS_TREE,
	FR_PACKET_CLOCK = 6,
	FR_PACKET_TIME = 8,
	FR_PACKET_SEQUENCE = 10,
	FR_PACKET_TRACK_EVENT,
	FR_PACKET_INTERNED,
	FR_PACKET_FLAGS,
	FR_PACKET_SYSTEM = 45,
	FR_PACKET_TIME_CLOCK = 58,
	FR_PACKET_DEFAULTS,
	FR_PACKET_TRACK,
	FR_PACKET_PERF_SAMPLE = 66
};
enum { FR_PACKET_CLEARED = 1, FR_PACKET_NEEDS_STATE = 2 };
enum { FR_CLOCK_REALTIME = 1, FR_CLOCK_MONOTONIC = 3, FR_CLOCK_BOOTTIME = 6 };

/* The sequence of packets that has all that is of no perf event. */
#define FR_PERFETTO_SEQUENCE 1ull
/* Each machine has its own sequences and tracks. */
#define FR_PERFETTO_SEQUENCES (1ull << 20)
#define FR_PERFETTO_TRACKS (1ull << 40)

/* A set of small numbers. */
struct fr_bits {
	struct fr_buf buf;
};

/* Adds N to the set. Returns 1 if it is new, 0 if the set has it, or -ENOMEM. */
int fr_bits_add(struct fr_bits *b, size_t n);

/* What the packet sequence of an event has defined already. */
struct fr_perfetto_sequence {
	bool has_begun;
	struct fr_bits objects, frames, stacks;
	uint64_t *counts; /* of each CPU: the sum of the periods */
	uint32_t n_cpus;
};

struct fr_perfetto {
	FILE *out;
	struct fr_perfetto_machine machine;		       /* all zeros: there is only one */
	struct fr_protobuf file, packet, message, part, small; /* from the outer to the inner messages */
	struct fr_protobuf interned, bundle;
	uint32_t bundle_cpu, n_bundle;
	struct fr_perfetto_sequence *sequences; /* of each event */
	size_t n_sequences;
	struct fr_bits tasks, tracks;
	bool has_begun, has_trigger_track;
};

/* Returns the id of a process or thread in the file. The idle tasks of all machines have the id 0. */
static inline uint64_t fr_perfetto_pid(const struct fr_perfetto *x, uint32_t pid)
{
	const uint64_t base = (uint64_t)x->machine.number * FR_PERFETTO_PIDS;

	return x->machine.name && pid != 0 ? base + pid % FR_PERFETTO_PIDS : pid;
}

/* Ends the packet, which is in X->packet. TIME 0: it has none. SEQUENCE is that of the machine. Returns 0 or
   a negative errno. */
int fr_perfetto_put_packet(struct fr_perfetto *x, uint64_t time, uint64_t sequence, uint64_t flags);

/* perfetto_samples.c: writes S as a PerfSample, with its stack. Returns 0 or a negative errno. */
int fr_perfetto_put_sample(
	struct fr_perfetto *x, const struct fr_profile *p, const struct fr_profile_sample *s);
void fr_perfetto_free_sequences(struct fr_perfetto *x);
