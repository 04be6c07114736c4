/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the next instance needs besides the ring: which event an id stands for, and the counters. The state is
 * in a memfd of a sealed size. It has two slots, which are written in turns, so a kill at any instant leaves
 * one of them whole:
 *
 *     slot 0 │ slot 1        a slot: magic, version, generation, length, crc32c │ payload
 *
 * Main thread.
 */

#include "base/clock.h"
#include "base/diag.h"
#include "base/loss.h"
#include "perfdata/session.h"

#include <stdint.h>

#define FR_STATE_NAME_MAX 32

/* What is counted over all instances. Every trigger is one of these, or its dump still waits. A dump that
   failed and was kept counts as failed, and may be rescued later. */
struct fr_counters {
	uint64_t next_job_id;
	uint64_t dumps_done, dumps_joined, dumps_failed, dumps_suppressed, dumps_canceled;
	uint64_t dumps_rescued, dumps_given_up, dumps_removed, dumps_not_durable;
};

struct fr_state {
	char boot_id[FR_BOOT_ID_SIZE];
	char ring[FR_STATE_NAME_MAX];		 /* the name that the ring has in the store */
	uint64_t first_started_ns;		 /* monotonic; of the first instance */
	uint64_t restarts;			 /* instances that adopted the ring */
	uint64_t gap_ns, gap_from_ns, gap_to_ns; /* the sum of all gaps; the last gap */
	struct fr_counters counters;
	uint64_t lost[_FR_LOSS_MAX];	       /* so far, by all instances */
	uint64_t directory_dev, directory_ino; /* where the auxiliary file is */
	/* The events, the side-band event last, and TRACING_DATA; no other section. */
	struct fr_session session;
	struct fr_buf config; /* the last one that was in force as a whole (config/saved.h) */
};

/* Append the payload. 0, -ENOMEM, or -E2BIG where no slot would hold it. */
int fr_state_encode(const struct fr_state *s, struct fr_buf *ret);
/* Decode bytes that may be anything. 0; -EBADMSG and RET is untouched; -ENOMEM. */
int fr_state_decode(const void *data, size_t len, struct fr_state *ret);
void fr_state_deinit(struct fr_state *s);
#define _cleanup_state_ _cleanup_(fr_state_deinit)

struct fr_state_file {
	int fd;
	uint64_t generation; /* of the newest slot; 0: none yet */
};

/* An empty file. 0 or a negative errno with D. */
int fr_state_file_new(struct fr_state_file *ret, struct fr_diag *d);
/* Adopt FD, which is consumed on success. *RET_STATE is the newest whole slot. 0; -EBADMSG with D: no slot is
   whole, or it is of another version; a negative errno with D. */
int fr_state_file_adopt(int fd, struct fr_state_file *ret, struct fr_state *ret_state, struct fr_diag *d);
/* Write S into the older slot. The newer slot stays valid until the last byte is written. 0 or a negative
   errno. */
int fr_state_file_write(struct fr_state_file *f, const struct fr_state *s);
