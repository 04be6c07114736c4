/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Makes jobs of the dumper (dumps, and tasks like the removal of old dumps) from requests. Passes the outcome
   of each job to the log, the counters and the callers. Only the main thread calls these functions. */

#include "flightrecd/daemon.h"

struct fr_dump_request {	      /* all pointers are borrowed during the call */
	const struct fr_cause *cause; /* the time of the cause is the time of the trigger */
	uid_t uid;		      /* the user who asked; (uid_t)-1: a trigger or the daemon asked */
	struct fr_dump_asked asked;
	bool automatic;	      /* a trigger asked for the dump: other causes can join it while it waits */
	bool no_compression;  /* do not compress, even if Compression=yes */
	bool hold;	      /* retention keeps the file until it is uploaded (dump/hold.h) */
	struct fr_call *call; /* a call that gets the outcome as its answer; or NULL */
};
/* Makes a dump, without asking the policy of the triggers. RET_ID may be NULL. Returns 0 and sets *RET_ID to
   the number of the new dump; 1 if the request joined a dump that waits, and sets *RET_ID to the number of
   that dump; -EAGAIN if the queue is full; -EDQUOT if this user, or all users together, already have all
   places in the queue that they are allowed to have; or -ENOMEM. If the dump could not be added to the queue,
   the dump is counted as suppressed. */
int fr_daemon_dump(struct fr_daemon *daemon, const struct fr_dump_request *request, uint64_t *ret_id);
/* Consumes JOB, which is not a dump, and adds it to the queue. CALL gets its answer when JOB is done, or at
   once if JOB could not be added. */
void fr_daemon_submit(struct fr_daemon *daemon, struct fr_call *call, struct fr_dump_job *job);
/* Cancels the waiting dump ID for the client of CALL, and answers the calls that wait for the dump. Does not
   answer CALL. Returns the same values as fr_dumper_cancel(). */
int fr_daemon_cancel(struct fr_daemon *daemon, struct fr_call *call, uint64_t id, struct fr_diag *d);
/* Returns the window of the trigger NAME: from its section, or from [Dump] if the section sets no window. */
struct fr_dump_asked fr_daemon_asked(const struct fr_daemon *daemon, const char *name);
/* Returns a window of WINDOW_NS before and POST_NS after the trigger. If WINDOW_NS or POST_NS is
   FR_TRIGGER_UNSET, the value of [Dump] is used instead. */
struct fr_dump_asked fr_daemon_asked_window(
	const struct fr_daemon *daemon, uint64_t window_ns, uint64_t post_ns);
/* Takes the finished jobs from the dumper. Logs and counts the outcome of each job, and answers the calls
   that wait for it. */
void fr_daemon_reap(struct fr_daemon *daemon);
