/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The ELF objects that processes have mapped, each with its number in fr_unwind_shared.objects, and their
 * tables in the memory of BPF programs. An object is known by its build-id, or else by its inode. It stays
 * known, with its table, when no process has it mapped any more, until its number or its memory is needed.
 * Not thread-safe.
 */

#include "perfdata/record.h"
#include "sideband/buildid.h"
#include "sideband/hash.h"
#include "unwind/memory.h"
#include "unwind/table.h"

#include <sys/types.h>

#define FR_UNWIND_OBJECT_BARE 0u   /* memory without a file */
#define FR_UNWIND_OBJECT_FAILED 1u /* stands for all objects for which there is no number */

/* The same bytes are always the same object. */
struct fr_unwind_key {
	uint8_t id[FR_BUILD_ID_MAX];
	uint32_t id_len; /* 0: the object has no build-id, and the next members say which file it is */
	uint32_t maj, min;
	uint64_t ino, generation;
	uint64_t is_vdso;
};

/* How to open an object: a map of it. */
struct fr_unwind_source {
	char *path;
	pid_t pid;
	uint64_t start, end;
};

struct fr_unwind_known {
	UT_hash_handle hh;
	struct fr_unwind_key key;
	uint32_t number;
	uint32_t refs;			/* maps that BPF programs can find */
	struct fr_unwind_source source; /* the map that was seen last */
	struct fr_unwind_source
		missed;	      /* the map that was missed last: perhaps another file with the same bytes */
	uint64_t wanted_hits; /* since the object has no table */
	uint64_t hit_ns;      /* time of the last look that found hits; the order of eviction */
	uint64_t retry_ns;    /* do not try to make the table before this time */
	uint64_t misses;      /* walks of young processes that did not know the object by its file */
	uint64_t learn_ns;    /* do not try to learn the file before this time */
	size_t table_bytes;
	/* The state comes from a file that is not trusted (base/trusted.h): any user can have made one with
	   this build-id. */
	bool is_suspect;
	bool has_new_map;		/* since the last search for a trusted file began */
	uint64_t search_at, search_end; /* the processes where this search goes on; search_at 0: nowhere */
	uint64_t search_ns;		/* of a suspect: when the last search ended */
};

struct fr_unwind_objects {
	struct fr_unwind_shared *shared; /* borrowed */
	struct fr_unwind_memory *memory; /* borrowed */
	struct fr_unwind_known *known;	 /* by key */
	struct fr_unwind_known *by_number[FR_UNWIND_OBJECTS_MAX];
	uint32_t n_numbers; /* all numbers that were used are below */
	uint64_t n_tables, n_evicted;
};

int fr_unwind_objects_new(
	struct fr_unwind_shared *shared, struct fr_unwind_memory *memory, struct fr_unwind_objects **ret);
struct fr_unwind_objects *fr_unwind_objects_free(struct fr_unwind_objects *o);

/* Returns the number of the object that M maps, with a reference. */
uint32_t fr_unwind_objects_get(struct fr_unwind_objects *o, const struct fr_record_mmap2 *m);
void fr_unwind_objects_ref(struct fr_unwind_objects *o, uint32_t number);
/* No BPF program can find the map any more that had this reference. */
void fr_unwind_objects_unref(struct fr_unwind_objects *o, uint32_t number);

/* Reads what BPF programs have counted since the last look. */
void fr_unwind_objects_look(struct fr_unwind_objects *o, uint64_t now_ns);
/* Returns the object without a table that was needed most often; NULL if there is none, or its time to retry
   has not come. */
struct fr_unwind_known *fr_unwind_objects_most_wanted(const struct fr_unwind_objects *o, uint64_t now_ns);

/* Returns the object whose file BPF programs missed most often; NULL if there is none, or its time has not
   come. */
struct fr_unwind_known *fr_unwind_objects_most_missed(const struct fr_unwind_objects *o, uint64_t now_ns);
/* Returns the suspect that was mapped since its last search, or whose search goes on; among several, the one
   whose last search is the oldest. NULL if there is none. */
struct fr_unwind_known *fr_unwind_objects_next_suspect(const struct fr_unwind_objects *o);
/* K is a suspect no more, and wants a new table. */
void fr_unwind_objects_withdraw(struct fr_unwind_objects *o, struct fr_unwind_known *k);
/* Returns how BPF programs know K, as long as its number stands for it. */
struct fr_unwind_file_object fr_unwind_objects_name(
	const struct fr_unwind_objects *o, const struct fr_unwind_known *k);

/* Stores the table T of K, and makes K ready. Returns 0; or -ENOSPC if there is no room. */
int fr_unwind_objects_install(
	struct fr_unwind_objects *o, struct fr_unwind_known *k, const struct fr_unwind_table *t);
/* Gives K, which has no table, a state that says so. */
void fr_unwind_objects_set_state(
	struct fr_unwind_objects *o, const struct fr_unwind_known *k, enum fr_unwind_object_state state);

/* Evicts the table that was not needed for the longest time, if that is before BEFORE_NS. Its memory becomes
   free in the next fr_unwind_memory_wait(). Returns false if there is no such table. */
bool fr_unwind_objects_evict(struct fr_unwind_objects *o, uint64_t before_ns);
/* Evicts the tables that are in excess chunks. */
void fr_unwind_objects_evict_excess(struct fr_unwind_objects *o);
