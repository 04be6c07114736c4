/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The state: the data that the next instance (process of flightrecd) needs besides the ring, for example the
 * ids of the events, and the counters. The state is in a memfd of a sealed size. The memfd has two slots, and
 * each write goes into the older slot. So if a kill interrupts a write, the newer slot stays whole:
 *
 *     slot 0 │ slot 1        a slot: magic, version, generation, length, crc32c │ payload
 *
 * Any thread, one call at a time.
 */

#include "base/clock.h"
#include "base/diag.h"
#include "base/loss.h"
#include "config/config.h"
#include "perfdata/session.h"

#include <stdint.h>

#define FR_STATE_NAME_MAX 32
#define FR_STATE_PART_MAX 16
#define FR_STATE_PARTS_MAX 17u
#define FR_STATE_SIDEBAND ".sideband" /* the name of the ring of the side-band */
/* The name of a ring that is not in the store, but in the crash memory. */
#define FR_STATE_RING_IN_MEMORY "memory"

/* Counters over all instances. Each anomaly is counted once: as done, joined, failed, suppressed or canceled.
   An anomaly that is not counted yet has a dump that still waits. A kept dump counts as failed, and later
   also as rescued or given up. */
struct fr_counters {
	uint64_t next_job_id;
	uint64_t dumps_done, dumps_joined, dumps_failed, dumps_suppressed, dumps_canceled;
	uint64_t dumps_rescued, dumps_given_up, dumps_removed, dumps_not_durable;
};

/* A ring beside that of [Recorder]: its name in the configuration, or FR_STATE_SIDEBAND; and the number in
   its name in the store, which is another one for each memfd. */
struct fr_state_part {
	char ring[FR_STATE_PART_MAX];
	uint32_t number;
};

struct fr_state {
	char boot_id[FR_BOOT_ID_SIZE];
	char ring[FR_STATE_NAME_MAX];		 /* the name that the ring has in the store */
	char memory[FR_RING_MEMORY_SIZE];	 /* RingMemory=; empty: the ring is in a memfd */
	struct fr_clock_pair clock;		 /* the newest pair */
	uint64_t period_ns;			 /* the longest time between two rounds */
	uint64_t first_started_ns;		 /* monotonic time of the start of the first instance */
	uint64_t restarts;			 /* number of instances that adopted the ring */
	uint64_t gap_ns, gap_from_ns, gap_to_ns; /* the sum of all gaps; begin of the last gap; end
						    of the last gap, 0: it goes on */
	struct fr_counters counters;
	uint64_t lost[_FR_LOSS_MAX];	       /* losses of all instances so far */
	uint64_t directory_dev, directory_ino; /* the directory of the auxiliary file */
	struct fr_state_part parts[FR_STATE_PARTS_MAX];
	uint32_t n_parts;
	struct fr_session session; /* the side-band event is the last event */
	struct fr_buf config; /* the last configuration of which all keys were in force (config/saved.h) */
};

/* Encodes S as the payload of a slot, and appends the payload to RET. Returns 0; -ENOMEM; or -E2BIG if the
   payload is larger than a slot. */
int fr_state_encode(const struct fr_state *s, struct fr_buf *ret);
/* Decodes a payload, which is not trusted: it can be any bytes. Returns 0, -EBADMSG or -ENOMEM. On an error,
   RET does not change. */
int fr_state_decode(const void *data, size_t len, struct fr_state *ret);
void fr_state_deinit(struct fr_state *s);
#define _cleanup_state_ _cleanup_(fr_state_deinit)

struct fr_state_file {
	int fd;
	uint64_t generation; /* generation of the newest slot; 0: no slot is written yet */
};

/* Creates the memfd, without a state. Returns 0; or a negative errno, with a message in D. */
int fr_state_file_new(struct fr_state_file *ret, struct fr_diag *d);
/* Adopts the memfd FD of the previous instance. On success, RET owns FD, and *RET_STATE gets the state in the
   newest whole slot. Returns 0; -EBADMSG, with a message in D, if no slot is both whole and of this version;
   or another negative errno, with a message in D. */
int fr_state_file_adopt(int fd, struct fr_state_file *ret, struct fr_state *ret_state, struct fr_diag *d);
/* Writes S into the older slot. The newer slot is not touched, so it stays valid if a kill interrupts the
   write. Returns 0 or a negative errno. */
int fr_state_file_write(struct fr_state_file *f, const struct fr_state *s);
