/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * One command that this machine obeys, from its arrival until the operator has the last answer. The state
 * directory has a file ID.json for each job, which is replaced before and after each step that another party
 * sees. So the agent can be killed at any point, and goes on where it was.
 *
 *   CHECK ─► DUMP ─► UPLOAD ─► INDEX ─► STORED ─► RELEASE ─► END
 *    bus    dump     upload     bus      bus      upload     bus     the thread that owns a job in the phase
 *
 * A job that fails or is refused goes to RELEASE, if the recorder holds its dump, or else to END.
 */

#include "base/diag.h"
#include "fleet/message.h"

#include <cjson/cJSON.h>

#define FR_JOB_UPLOAD_SIZE 512u	  /* FR_STORE_UPLOAD_SIZE */
#define FR_JOB_LOCATION_SIZE 768u /* Upload= and UploadEndpoint= */
#define FR_JOB_FILE_MAX (64u << 10)

enum fr_job_phase {
	FR_JOB_CHECK,	/* is it answered already? and what time is it? */
	FR_JOB_DUMP,	/* the recorder is asked */
	FR_JOB_UPLOAD,	/* the file is on the disk */
	FR_JOB_INDEX,	/* the store has all */
	FR_JOB_STORED,	/* the index has it, too: the answer is missing */
	FR_JOB_RELEASE, /* the recorder still holds the file */
	FR_JOB_END,	/* only the last answer may be missing */
	FR_JOB_PHASES
};
const char *fr_job_phase_name(enum fr_job_phase phase);

struct fr_job {
	struct fr_fleet_command command;
	uint64_t stored_ns; /* when the broker stored the command, fleet time */
	enum fr_job_phase phase;
	struct fr_fleet_answer answer;	   /* the newest one */
	struct fr_fleet_manifest manifest; /* valid from UPLOAD on; sha256 is "" until it is known */
	char path[512];			   /* of the dump */
	char location[FR_JOB_LOCATION_SIZE], upload[FR_JOB_UPLOAD_SIZE]; /* "": not begun */
	bool is_held; /* the recorder holds the file for us */

	/* Not in the file */
	struct fr_fleet_clock clock; /* at the command */
	uint64_t from_ns, to_ns;     /* the window, monotonic; from_ns 0: from the oldest sample on */
	uint64_t since_ns;	     /* monotonic, when this process got the job */
	uint64_t due_ns, pause_ns;   /* monotonic: the next try, and the pause after it */
	unsigned answer_version, sent_version; /* equal: the broker has the answer */
	bool is_taken;			       /* a thread works on it */
	bool is_adopted;		       /* read from its file: a dump may exist already */
};

/* Returns the text of the file, which the caller frees; or NULL if there is no memory. */
char *fr_job_json(const struct fr_job *j);
/* Reads the N bytes of the file of the job ID of the machine NAME. Checks all members, since the file can be
   damaged. Returns 0; or -EBADMSG with a message in D. */
int fr_job_read(
	const char *data, size_t n, const char *id, const char *name, struct fr_job *ret, struct fr_diag *d);

/* Sets the answer. WHY is the reason, or "". */
void fr_job_answer(struct fr_job *j, enum fr_fleet_state state, const char *why);
/* Sets the window from the command and j->clock. The window is never empty: if it would be, it has 1 ns. */
void fr_job_set_window(struct fr_job *j);
/* Returns the time to wait after a failed try: twice the last one, from 1 s to 60 s, with a random part of
   up to a quarter. RANDOM is any number. */
uint64_t fr_job_pause(struct fr_job *j, uint32_t random);

/* Sets path, answer and manifest from META, the reply of the recorder to Dump. It has been asked for the
   window of the job. Returns 0; or -EBADMSG with a message in D. */
int fr_job_set_dump(struct fr_job *j, const cJSON *meta, struct fr_diag *d);
/* Returns whether the item META of the recorder's list is the dump of the job. */
bool fr_job_is_dump(const struct fr_job *j, const cJSON *meta);
