/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The messages of the fleet, as JSON. Each function that reads checks every member, since the broker or
 * another machine can be hostile: -EBADMSG, with a message in D, for a message that is too large, is not
 * JSON, lacks a member, or has a member of another type or out of range. Unknown members are ignored, so
 * later versions can add some. All times are nanoseconds; in JSON they are decimal strings if they may exceed
 * 2^53, which is true for wall times. "fleet time" is the clock of the broker, in nanoseconds since the
 * epoch.
 */

#include "fleet/fleet.h"
#include "fleet/labels.h"

#include <cjson/cJSON.h>

#define FR_FLEET_TEXT_SIZE 256u /* a reason, an operator; longer texts are cut, at a whole character */

/* flightrec.command.ID, and the content of flightrec.incident.SELECTOR */
struct fr_fleet_command {
	char id[FR_FLEET_ID_SIZE];
	char selector[FR_SELECTOR_SIZE];
	/* The window, in fleet time. If from_ns is 0, the window is relative to the time at which the broker
	   stored the command: from last_ns before to post_ns after. last_ns 0: the whole ring. */
	uint64_t from_ns, to_ns;
	uint64_t last_ns, post_ns;
	uint64_t limit_ns; /* the operator waits this long for answers */
	char reason[FR_FLEET_TEXT_SIZE];
	char by[FR_FLEET_TEXT_SIZE]; /* "user@host"; or the machine whose trigger asked */
	char trigger[64];	     /* the trigger of Action=fleet; "": a person asked */
};

enum fr_fleet_state {
	FR_FLEET_RECORDING, /* the machine has the command, and writes the dump */
	FR_FLEET_DONE,	    /* the dump is on the disk of the machine */
	FR_FLEET_STORED,    /* the store has it, and the index, too */
	FR_FLEET_REFUSED,   /* the policy of the machine refused the command */
	FR_FLEET_FAILED,    /* the dump, or its upload, failed for good */
	FR_FLEET_STATES
};
const char *fr_fleet_state_name(enum fr_fleet_state s); /* "recording", "done", … */

/* flightrec.answer.ID.MACHINE */
struct fr_fleet_answer {
	char id[FR_FLEET_ID_SIZE], machine[FR_FLEET_NAME_SIZE];
	enum fr_fleet_state state;
	char why[512];		 /* refused, failed: the reason */
	char path[512];		 /* done, stored: the file on the machine */
	char object[512];	 /* stored: the key in the bucket */
	uint64_t bytes;		 /* done, stored */
	uint64_t uploaded_bytes; /* done: progress of the upload */
};

/* The relation between the clocks of a machine. Add offset_ns to a time of CLOCK_MONOTONIC to get fleet
   time; the result is wrong by at most error_ns. */
struct fr_fleet_clock {
	int64_t offset_ns;
	uint64_t error_ns;	/* UINT64_MAX: not measured */
	int64_t wall_offset_ns; /* fleet time minus the wall clock of the machine */
	uint64_t measured_ns;	/* CLOCK_MONOTONIC of the measurement */
};

/* flightrec.presence.MACHINE */
struct fr_fleet_presence {
	char machine[FR_FLEET_NAME_SIZE];
	struct fr_labels labels;
	char boot_id[40], version[32];
	char recorder[256]; /* "": the recorder answers; else why not */
	struct fr_fleet_clock clock;
	uint64_t uploads; /* dumps that wait for the store */
	uint64_t uploads_bytes;
	char store[256]; /* "": no error; else why the last upload failed */
	bool leaving;	 /* the agent stops by command of the administrator */
};

/* flightrec.index.ID.MACHINE, and the object KEY.manifest.json beside the dump */
struct fr_fleet_manifest {
	char id[FR_FLEET_ID_SIZE], machine[FR_FLEET_NAME_SIZE];
	struct fr_labels labels;
	struct fr_fleet_clock clock;
	uint64_t from_ns, to_ns; /* the window of the dump, fleet time */
	uint64_t at_ns;		 /* the trigger, fleet time */
	char boot_id[40];
	char trigger[64]; /* "fleet" if a person asked */
	char cause[FR_FLEET_TEXT_SIZE];
	char by[FR_FLEET_TEXT_SIZE];
	char file[64];	  /* "perf.data.sample.TIME" */
	char object[512]; /* key of the dump in the bucket; its sidecar has the key OBJECT.json */
	char sha256[65];  /* of the dump, in hex */
	uint64_t bytes, samples, lost;
};

/* Each _json function returns text for the bus, which the caller frees; or NULL if there is no memory. */
char *fr_fleet_command_json(const struct fr_fleet_command *c);
char *fr_fleet_answer_json(const struct fr_fleet_answer *a);
char *fr_fleet_presence_json(const struct fr_fleet_presence *p);
char *fr_fleet_manifest_json(const struct fr_fleet_manifest *m);

/* DATA has N bytes, and need not end with NUL. RET is all zeros before; it has no pointers. The caller
   compares id and machine with the subject: fr_fleet_subject_parse(). */
int fr_fleet_command_read(const char *data, size_t n, struct fr_fleet_command *ret, struct fr_diag *d);
int fr_fleet_answer_read(const char *data, size_t n, struct fr_fleet_answer *ret, struct fr_diag *d);
int fr_fleet_presence_read(const char *data, size_t n, struct fr_fleet_presence *ret, struct fr_diag *d);
int fr_fleet_manifest_read(const char *data, size_t n, struct fr_fleet_manifest *ret, struct fr_diag *d);
