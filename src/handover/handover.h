/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Passes the ring from one instance (process of flightrecd) to the next instance, through systemd's
 * descriptor store. The store has the memfd of the ring, and the memfd of the state (state.h), which the next
 * instance needs to read the ring. An instance that finds ring and state in the store adopts them: it
 * continues with the same ring. This is possible even if the previous instance was killed.
 *
 * With RingMemory=, the ring is in the crash memory (crashmem/) and not in the store. Then the crash memory
 * also gets the state, for the time after a crash of the machine (rescue/).
 *
 *   receive ─► unite_session ─► open_history ─► announce_sideband ─► store ─► update … ─► (the next instance)
 *
 * If the ring or the state of the previous instance is damaged, the log has the reason, and recording begins
 * with an empty ring. There is no store if this process is not a service of systemd, or if it runs as
 * "flightrecd -- COMMAND". Without a store and a crash memory, these functions do nothing, and open_history()
 * makes an empty ring. Until the first store() has returned, call these functions on the thread that starts
 * the recording. After that, call them on the main thread.
 */

#include "base/buf.h"
#include "base/diag.h"
#include "handover/bpf_store.h"
#include "handover/state.h"
#include "history/rings.h"

#include <stdbool.h>

struct fr_crashmem;

struct fr_handover {
	bool on;		   /* true: there is a store */
	struct fr_state_file file; /* the memfd of the state; fd -1: the memfd is not created yet */
	struct fr_state state;	   /* first the state of the previous instance, later the newest state */
	int ring_fd;		   /* the ring of the previous instance; -1: none, or owned by history/ */
	int next_fd;		   /* the new ring of an interrupted resize; -1: none, or owned by history/ */
	bool in_memory;		   /* the ring of the previous instance is in the crash memory */
	struct fr_crashmem *memory; /* the crash memory that this instance uses; borrowed; NULL: none */
	int memory_error;	    /* 0: the crash memory has the state; or a negative errno */
	bool adopted;		    /* this instance uses the ring of the previous instance */
	bool same_directory;	    /* the auxiliary file of the previous instance is in the same directory */
	int part_fds[FR_STATE_PARTS_MAX]; /* of state.parts of the previous instance; -1: none, or taken */
	uint64_t part_inodes[FR_STATE_PARTS_MAX]; /* of the memfds that the store has for state.parts */
	uint32_t part_number;			  /* the largest number of a part so far */
	unsigned ring_number;			  /* the number in the name of the ring in the store */
	bool settled, written; /* settled: store() has been called; written: update() has written the
				  configuration of the last set_config() */
	struct fr_history_adopted history;
	struct fr_buf first_sideband; /* the first side-band record in the ring; empty: there is none */
	struct fr_buf newest_samples; /* only if there are BPF programs to adopt: see struct fr_adoption */
	struct fr_bpf_store bpf;
	/* Which events of the previous instance have no gap, because BPF programs make their samples, and
	   their rings are adopted. */
	enum fr_continued { FR_CONTINUED_NONE, FR_CONTINUED_SOME, FR_CONTINUED_ALL } continued;
	uint64_t sideband_ns; /* the time since when this instance records side-band; 0: not yet */
	char refused[256];    /* why the ring was not adopted; empty: the ring was adopted, or
				 there was no ring */
};

/* The facts that update() and store() write into the state. All pointers are borrowed for the call. */
struct fr_handover_facts {
	int dirfd;
	const char *boot_id;
	uint64_t started_ns; /* monotonic */
	const struct fr_counters *counters;
	const struct fr_session *session;
	const struct fr_history *history; /* the ring of [Recorder] */
	struct {
		const char *ring; /* as for fr_handover_take_part() */
		const struct fr_history *history;
	} parts[FR_STATE_PARTS_MAX];
	unsigned n_parts;
	const uint64_t *lost; /* _FR_LOSS_MAX losses; NULL: the losses in the state do not change */
	const char *memory;   /* RingMemory= */
	uint64_t period_ns;   /* the longest time between two rounds */
};

/* If the parameter `wanted` is true, looks in the store for the state and the ring of the previous instance.
   The descriptors that the store has passed to this process stay open until open_history() makes an empty
   ring, or until store(). Until then, this function can be called again. */
void fr_handover_receive(struct fr_handover *h, bool wanted, const char *boot_id);
/* Call this function before fr_handover_unite_session() if the ring shall be in the crash memory M
   (borrowed), which is formatted, or has the ring of the previous instance (H->in_memory is true). */
void fr_handover_use_memory(struct fr_handover *h, struct fr_crashmem *m);
/* The ring of the previous instance is in a crash memory, and will not be adopted because of WHY. */
void fr_handover_refuse(struct fr_handover *h, const char *why);
/* Reads the state in the crash memory M, which is not trusted. Returns 0, and the caller calls
   fr_state_deinit(); -ENOENT if there is none; -EBADMSG if it is damaged; or -ENOMEM. */
int fr_handover_read_memory(const struct fr_crashmem *m, struct fr_state *ret);
/* If there is a ring to adopt, adds the events of the previous instance to SESSION, and sets COUNTERS and
   LOST to the values of the previous instance. If the tracepoint formats of the previous instance are
   damaged, its ring will not be adopted, but the function returns 0. If BPF programs of the previous instance
   may still make samples, its events stay open in SESSION: the caller closes them
   (fr_session_close_events()). Returns 0 or -ENOMEM. */
int fr_handover_unite_session(struct fr_handover *h, struct fr_session *session, struct fr_counters *counters,
	uint64_t lost[static _FR_LOSS_MAX]);
/* The settings for the ring in the configuration that is in force. */
struct fr_handover_ring {
	uint64_t bytes;	    /* RingSize= */
	const char *origin; /* where RingSize= is set, for messages; or NULL */
	uint64_t later;	    /* bytes that the recorder will take later, beside the ring */
	int dirfd;	    /* the directory of the auxiliary file */
	/* The configuration in force is already the configuration of the previous instance, so there is no
	   other configuration to try. */
	bool last_try;
};
/* Sets *RET to the ring of the previous instance, or to an empty ring. CONFIG has the area of the crash
   memory, if there is one. Returns 0; or a negative
   errno, with a message in D. If the ring of the previous instance is intact, but cannot be adopted
   with this configuration: if `last_try` is false, the function fails; if `last_try` is true, it
   makes an empty ring. */
int fr_handover_open_history(struct fr_handover *h, const struct fr_history_config *config,
	const struct fr_handover_ring *ring, struct fr_history **ret, struct fr_diag *d);
/* Returns the descriptor of the ring RING of the previous instance, which then belongs to the caller: the
   name of a [Ring NAME], or FR_STATE_SIDEBAND; -1 if there is none, or if the ring of [Recorder] was not
   adopted. If the previous instance was killed while it gave this ring another size, the second call returns
   the new ring. */
int fr_handover_take_part(struct fr_handover *h, const char *ring);
/* Finishes this resize: moves the remaining frames of *H to the ring NEXT_FD, which the function takes.
   Returns 0, and sets *H and *RET; or a negative errno, and *H does not change. */
int fr_handover_finish_resize(int next_fd, const struct fr_history_config *config, struct fr_history **h,
	struct fr_history_adopted *ret);
/* Returns whether take_part() would return a descriptor. */
bool fr_handover_has_part(const struct fr_handover *h, const char *ring);
/* Reads what the tracker and the capture need of the adopted rings. Call this function when all rings are
   open. Returns 0; or a negative errno, with a message in D. */
int fr_handover_read_rings(struct fr_handover *h, const struct fr_rings *rings, struct fr_diag *d);
/* Puts FD into the store. FD is a new ring, to which a resize moves the frames of the current ring. The
   current ring and the new ring are in the store until the next store(). */
void fr_handover_add_ring(struct fr_handover *h, int fd);
/* The same for the ring RING (see take_part()). SESSION is borrowed, as for store(). */
void fr_handover_add_part(struct fr_handover *h, const char *ring, int fd, const struct fr_session *session);
/* Adds the new opening of the side-band event in SESSION to the state of the previous instance, if its ring
   was adopted; and the begin of the gap, if there is one. Side-band flows into this ring long before store().
   If this instance is killed in between, the next instance needs the ids of these records. Call this function
   before side-band is enabled. Returns 0 or -ENOMEM. */
int fr_handover_announce_sideband(struct fr_handover *h, const struct fr_session *session);
/* Puts the ring and the state into the store. Call this function before the samples are enabled. Call it
   again when another ring has replaced the current ring, and when the session has other events. */
void fr_handover_store(struct fr_handover *h, const struct fr_handover_facts *facts);
/* Sets RET (NULL is allowed) to the configuration of the previous instance, in the format of config/saved.h.
   Returns 0; or -ENOENT or another negative errno if there is no history to adopt. */
int fr_handover_config(struct fr_buf *ret);
/* Keeps CONFIG as the last good configuration. CONFIG is in the format of config/saved.h; the function takes
   its memory. The next store() or update() writes CONFIG into the state. */
void fr_handover_set_config(struct fr_handover *h, struct fr_buf *config);
/* Returns whether the previous instance was killed during its start, before it ended its gap. */
bool fr_handover_is_in_gap(const struct fr_handover *h);
/* Call this function when samples are recorded from NOW_NS on. If a ring was adopted, counts a restart, and
   the gap since the previous instance if there is an event that has it. Returns whether there was a gap. */
bool fr_handover_end_gap(struct fr_handover *h, uint64_t now_ns);
/* Writes the state if it differs from the state that was written last. Only the main thread calls
   this function. */
void fr_handover_update(struct fr_handover *h, const struct fr_handover_facts *facts);
/* Removes the ring and the state from the store. Call this function when the content of the ring has been
   written to a file, so that no other instance adopts the ring. */
void fr_handover_forget(struct fr_handover *h);
void fr_handover_close(struct fr_handover *h);
