/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Continues the samples of BPF programs from one instance (process of flightrecd) to the next without a gap:
 * docs/design/96. The programs of the previous instance go on while nobody runs, because another process has
 * their links. The next instance
 *
 *   adopts their rings, and drains them from its first round on     fr_capture_adopt()
 *   enables its own events, whose rings it does not drain yet       fr_capture_enable()
 *   takes older records from the adopted rings, and younger ones
 *   from its own (src/recorder/)                                    fr_capture_begin()
 *   drops the adopted rings                                         fr_capture_end_adopted()
 */

#include "base/diag.h"
#include "base/loss.h"
#include "capture/bpf_fds.h"

#include <stdbool.h>
#include <stdint.h>

struct fr_capture;

/* Sets RET to the descriptors of C, which stay C's. The caller calls fr_bpf_fds_free(). Returns 0; -ENOENT if
   no BPF program makes samples; or -ENOMEM. */
int fr_capture_bpf_fds(const struct fr_capture *c, struct fr_bpf_fds *ret);

/* Adopts the rings of A->sets, and drains them with the rings of C. Samples count in the events of C with
   the same name and CPU. Call this function before the first drain. Returns 0; -ENOENT if the previous
   instance left no rings; -EBADMSG, with a message in D, if they are not complete or of another version; or
   another negative errno. On an error, C does not change. */
int fr_capture_adopt(struct fr_capture *c, const struct fr_adoption *a, struct fr_diag *d);
bool fr_capture_has_adopted(const struct fr_capture *c);
/* Returns whether the adopted rings have all samples of the event ID. */
bool fr_capture_continues_id(const struct fr_capture *c, uint64_t id);

/* Notes that the samples of C count from SINCE_NS on. If C has adopted rings, only from now on a drain drains
   the BPF rings of C. Any thread if C has no adopted rings, otherwise the recorder thread. */
void fr_capture_begin(struct fr_capture *c, uint64_t since_ns);
/* Drops the adopted rings. Adds the losses of events and CPUs that C does not have to LOST. Recorder
   thread. */
void fr_capture_end_adopted(struct fr_capture *c, uint64_t lost[static _FR_LOSS_MAX]);

/* Tells C whether another process has the descriptors of its BPF programs (bpf_fds.h). */
void fr_capture_set_lives_on(struct fr_capture *c, bool lives_on);
/* Disables the events that do not live on. */
void fr_capture_leave(struct fr_capture *c);
