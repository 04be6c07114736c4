/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Makes jobs of the dumper from requests. Passes the outcome of each job to the log, the counters and the
   callers. Main thread. */

#include "flightrecd/daemon.h"

struct fr_dump_request {	      /* all borrowed for the call */
	const struct fr_cause *cause; /* its time is the time of the trigger */
	uid_t uid;		      /* the user who asked; (uid_t)-1: a source or the daemon itself asked */
	struct fr_dump_asked asked;
	bool automatic;	      /* a source asked for it: other causes can be coalesced while the dump waits */
	bool no_compression;  /* do not compress, even if Compression=yes */
	struct fr_call *call; /* answered with the outcome, when it is known; or NULL */
};
/* Make a dump, without asking the policy. RET_ID may be NULL. Returns 0 with the number of the new dump; 1 if
   the request joined a dump that waits, with the number of that dump; -EAGAIN if the queue is full; -EDQUOT
   if this user, or all users together, already have as many places in the queue as they may have; or -ENOMEM.
   If the dump could not be added to the queue, it is counted as suppressed. */
int fr_daemon_dump(struct fr_daemon *daemon, const struct fr_dump_request *request, uint64_t *ret_id);
/* Add JOB (consumed), which is not a dump, to the queue. CALL is answered when JOB is done, or at once if JOB
   could not be added. */
void fr_daemon_submit(struct fr_daemon *daemon, struct fr_call *call, struct fr_dump_job *job);
/* Cancel the waiting dump ID for the client of CALL, and answer the calls that wait for the dump. Does not
   answer CALL. Returns what fr_dumper_cancel() returns. */
int fr_daemon_cancel(struct fr_daemon *daemon, struct fr_call *call, uint64_t id, struct fr_diag *d);
/* Returns the window of the trigger NAME: from its section, or from [Dump] if the section sets none. */
struct fr_dump_asked fr_daemon_asked(const struct fr_daemon *daemon, const char *name);
/* Returns a window of WINDOW_NS before and POST_NS after the trigger. For each of the two, FR_TRIGGER_UNSET
   stands for the value of [Dump]. */
struct fr_dump_asked fr_daemon_asked_window(
	const struct fr_daemon *daemon, uint64_t window_ns, uint64_t post_ns);
/* Take the finished jobs from the dumper. Log and count the outcome of each job, and answer the calls that
   wait for it. */
void fr_daemon_reap(struct fr_daemon *daemon);
