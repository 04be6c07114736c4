/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* From a request to a job of the dumper, and from its outcome to the log, the counters and the callers. Main
   thread. */

#include "flightrecd/daemon.h"

struct fr_dump_request {	      /* all borrowed for the call */
	const struct fr_cause *cause; /* its time is the trigger's time */
	uid_t uid;		      /* of the person who asked; (uid_t)-1: no person */
	struct fr_dump_asked asked;
	bool automatic; /* a source asked for it: while it waits, other causes may be coalesced into it */
	bool no_compression;  /* whatever Compression= says */
	struct fr_call *call; /* NULL, or answered with the outcome */
};
/* Make a dump. The policy has been asked already. 0 with the number of the dump (RET_ID may be NULL); 1: it
   has joined that one; -EAGAIN: the queue is full, -EDQUOT: users have all places that they may have (both
   count as suppressed); -ENOMEM. */
int fr_daemon_dump(struct fr_daemon *daemon, const struct fr_dump_request *request, uint64_t *ret_id);
/* JOB (consumed), which is not a dump, answers CALL when it is done. */
void fr_daemon_submit(struct fr_daemon *daemon, struct fr_call *call, struct fr_dump_job *job);
/* Take back the waiting dump ID for the peer of CALL. Its callers are answered. As fr_dumper_cancel(), with
 * D. */
int fr_daemon_cancel(struct fr_daemon *daemon, struct fr_call *call, uint64_t id, struct fr_diag *d);
/* The window of trigger NAME: from its section, or else from [Dump]. */
struct fr_dump_asked fr_daemon_asked(const struct fr_daemon *daemon, const char *name);
/* WINDOW_NS and POST_NS; FR_TRIGGER_UNSET stands for the value of [Dump]. */
struct fr_dump_asked fr_daemon_asked_window(
	const struct fr_daemon *daemon, uint64_t window_ns, uint64_t post_ns);
/* Take the outcomes of finished jobs: to the log, the counters, and the callers. */
void fr_daemon_reap(struct fr_daemon *daemon);
