// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/objects.h"
#include "base/cleanup.h"

#include <errno.h>
#include <string.h>

#define FIRST_NUMBER 2u

static struct fr_unwind_object *shared_of(const struct fr_unwind_objects *o, uint32_t number)
{
	return &o->shared->objects[number];
}

static enum fr_unwind_object_state state_of(const struct fr_unwind_objects *o, uint32_t number)
{
	return (enum fr_unwind_object_state)shared_of(o, number)->state;
}

static void store_state(struct fr_unwind_object *s, enum fr_unwind_object_state state)
{
	__atomic_store_n(&s->state, (uint32_t)state, __ATOMIC_RELEASE);
}

int fr_unwind_objects_new(
	struct fr_unwind_shared *shared, struct fr_unwind_memory *memory, struct fr_unwind_objects **ret)
{
	struct fr_unwind_objects *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	o->shared = shared;
	o->memory = memory;
	o->n_numbers = FIRST_NUMBER;
	store_state(shared_of(o, FR_UNWIND_OBJECT_BARE), FR_UNWIND_BARE);
	store_state(shared_of(o, FR_UNWIND_OBJECT_FAILED), FR_UNWIND_FAILED);
	*ret = o;
	return 0;
}

static void free_known(struct fr_unwind_known *k)
{
	free(k->source.path);
	free(k->missed.path);
	free(k);
}

struct fr_unwind_objects *fr_unwind_objects_free(struct fr_unwind_objects *o)
{
	if (!o)
		return NULL;
	FR_HASH_CLEAR(o->known, free_known);
	free(o);
	return NULL;
}

static size_t rows_bytes(uint32_t n)
{
	return (size_t)n * sizeof(struct fr_unwind_row);
}

/* Gives back the memory of a table. */
static void give_table(struct fr_unwind_objects *o, const struct fr_unwind_object *s)
{
	const struct fr_unwind_page *pages = fr_unwind_memory_address(o->memory, s->pages);

	for (uint32_t i = 0; s->pages && i < s->n_pages; i++)
		fr_unwind_memory_give_later(o->memory, pages[i].rows, rows_bytes(pages[i].n));
	fr_unwind_memory_give_later(o->memory, s->pages, s->n_pages * sizeof(*pages));
	fr_unwind_memory_give_later(o->memory, s->rules, s->n_rules * sizeof(struct fr_unwind_rule));
}

static void remove_table(struct fr_unwind_objects *o, struct fr_unwind_known *k)
{
	struct fr_unwind_object *s = shared_of(o, k->number);
	/* without the hits, which BPF programs change */
	const struct fr_unwind_object old = {
		.n_pages = s->n_pages, .pages = s->pages, .rules = s->rules, .n_rules = s->n_rules};

	store_state(s, FR_UNWIND_WANTED);
	s->n_pages = 0;
	s->pages = s->rules = 0;
	s->n_rules = 0;
	give_table(o, &old);
	k->wanted_hits = 0;
	o->n_tables--;
}

static void forget(struct fr_unwind_objects *o, struct fr_unwind_known *k)
{
	/* Young processes can still have the number. */
	__atomic_fetch_add(&shared_of(o, k->number)->stamp, 1, __ATOMIC_SEQ_CST);
	if (state_of(o, k->number) == FR_UNWIND_READY)
		remove_table(o, k);
	store_state(shared_of(o, k->number), FR_UNWIND_FREE);
	o->by_number[k->number] = NULL;
	HASH_DEL(o->known, k);
	free_known(k);
}

/* Returns a free number; 0 if there is none. When no number is free, forgets the object that is not mapped
   and that was not needed for the longest time. */
static uint32_t take_number(struct fr_unwind_objects *o)
{
	struct fr_unwind_known *oldest = NULL;
	uint32_t number;

	if (o->n_numbers < FR_UNWIND_OBJECTS_MAX)
		return o->n_numbers++;
	for (uint32_t i = FIRST_NUMBER; i < FR_UNWIND_OBJECTS_MAX; i++) {
		struct fr_unwind_known *k = o->by_number[i];

		if (!k)
			return i;
		if (!k->refs && (!oldest || k->hit_ns < oldest->hit_ns))
			oldest = k;
	}
	if (!oldest)
		return 0;
	number = oldest->number;
	forget(o, oldest);
	return number;
}

static bool has_prefix(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* Returns whether NAME is the name of a file, and not of memory or a device. Run-time code can be in a memfd,
   but an ELF object can be, too; the kernel then gives its build-id. */
static bool is_file(const char *name)
{
	return name[0] == '/' && !has_prefix(name, "//") && !has_prefix(name, "/memfd:") &&
	       !has_prefix(name, "/dev/") && !has_prefix(name, "/SYSV") &&
	       !has_prefix(name, "/anon_hugepage");
}

/* Sets RET to the object of M. Returns false if M has none. A file whose record has no build-id is known by
   its inode. */
static bool make_key(const struct fr_record_mmap2 *m, struct fr_unwind_key *ret)
{
	int n = -ENOENT;

	*ret = (struct fr_unwind_key){0};
	if (strcmp(m->filename, "[vdso]") == 0) {
		ret->is_vdso = 1;
		return true;
	}
	if (m->header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		n = (int)FR_MIN(m->build_id_size, sizeof(m->build_id));
		memcpy(ret->id, m->build_id, (size_t)n);
	}
	if (n > 0) {
		ret->id_len = (uint32_t)n;
		return true;
	}
	if (!is_file(m->filename) || m->header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID || !m->ino)
		return false;
	memset(ret->id, 0, sizeof(ret->id));
	ret->maj = m->maj;
	ret->min = m->min;
	ret->ino = m->ino;
	ret->generation = m->ino_generation;
	return true;
}

static struct fr_unwind_known *add(struct fr_unwind_objects *o, const struct fr_unwind_key *key)
{
	const uint32_t number = take_number(o);
	struct fr_unwind_known *k = number ? FR_HASH_NEW(o->known, key, *key) : NULL;

	if (!k)
		return NULL;
	k->number = number;
	o->by_number[number] = k;
	*shared_of(o, number) =
		(struct fr_unwind_object){.state = FR_UNWIND_WANTED, .stamp = shared_of(o, number)->stamp};
	return k;
}

static void store_source(struct fr_unwind_source *s, const struct fr_record_mmap2 *m)
{
	if (!s->path || strcmp(s->path, m->filename) != 0) {
		free(s->path);
		s->path = strdup(m->filename);
	}
	s->pid = (pid_t)m->pid;
	s->start = m->addr;
	s->end = m->addr + m->len;
}

/* A file that could not be opened can perhaps be opened by a new map. */
static void set_source(
	struct fr_unwind_objects *o, struct fr_unwind_known *k, const struct fr_record_mmap2 *m)
{
	const uint64_t time_ns = fr_record_time(&m->header);

	store_source(&k->source, m);
	k->has_new_map = true;
	if (state_of(o, k->number) == FR_UNWIND_FAILED && k->retry_ns && time_ns > k->retry_ns)
		store_state(shared_of(o, k->number), FR_UNWIND_WANTED);
}

/* Takes what BPF programs have counted for the map M, because they did not know its file. */
static void take_misses(
	struct fr_unwind_objects *o, struct fr_unwind_known *k, const struct fr_record_mmap2 *m)
{
	const uint64_t map = fr_unwind_miss_map(m->pid, m->addr);
	struct fr_unwind_miss *miss = &o->shared->misses[fr_unwind_miss_hash(map)];

	if (__atomic_load_n(&miss->map, __ATOMIC_RELAXED) != map)
		return;
	store_source(&k->missed, m);
	k->misses += miss->hits;
	k->wanted_hits += miss->hits;
	__atomic_store_n(&miss->map, 0, __ATOMIC_RELAXED);
}

uint32_t fr_unwind_objects_get(struct fr_unwind_objects *o, const struct fr_record_mmap2 *m)
{
	struct fr_unwind_known *k;
	struct fr_unwind_key key;

	if (!make_key(m, &key))
		return FR_UNWIND_OBJECT_BARE;
	k = FR_HASH_FIND(o->known, key, key);
	if (!k)
		k = add(o, &key);
	if (!k)
		return FR_UNWIND_OBJECT_FAILED;
	set_source(o, k, m);
	take_misses(o, k, m);
	k->refs++;
	return k->number;
}

static bool is_known(uint32_t number)
{
	return number >= FIRST_NUMBER && number < FR_UNWIND_OBJECTS_MAX;
}

void fr_unwind_objects_ref(struct fr_unwind_objects *o, uint32_t number)
{
	if (is_known(number))
		o->by_number[number]->refs++;
}

void fr_unwind_objects_unref(struct fr_unwind_objects *o, uint32_t number)
{
	if (is_known(number))
		o->by_number[number]->refs--;
}

void fr_unwind_objects_look(struct fr_unwind_objects *o, uint64_t now_ns)
{
	for (uint32_t i = FIRST_NUMBER; i < o->n_numbers; i++) {
		struct fr_unwind_known *k = o->by_number[i];
		uint64_t *hits = &shared_of(o, i)->hits;

		if (!k || !__atomic_load_n(hits, __ATOMIC_RELAXED))
			continue;
		k->wanted_hits += __atomic_exchange_n(hits, 0, __ATOMIC_RELAXED);
		k->hit_ns = now_ns;
	}
}

struct fr_unwind_known *fr_unwind_objects_most_wanted(const struct fr_unwind_objects *o, uint64_t now_ns)
{
	struct fr_unwind_known *best = NULL;

	for (uint32_t i = FIRST_NUMBER; i < o->n_numbers; i++) {
		struct fr_unwind_known *k = o->by_number[i];

		if (k && state_of(o, i) == FR_UNWIND_WANTED && k->wanted_hits && now_ns >= k->retry_ns &&
			(!best || k->wanted_hits > best->wanted_hits))
			best = k;
	}
	return best;
}

struct fr_unwind_known *fr_unwind_objects_most_missed(const struct fr_unwind_objects *o, uint64_t now_ns)
{
	struct fr_unwind_known *best = NULL;

	for (uint32_t i = FIRST_NUMBER; i < o->n_numbers; i++) {
		struct fr_unwind_known *k = o->by_number[i];

		if (k && k->misses && now_ns >= k->learn_ns && (!best || k->misses > best->misses))
			best = k;
	}
	return best;
}

struct fr_unwind_known *fr_unwind_objects_next_suspect(const struct fr_unwind_objects *o)
{
	struct fr_unwind_known *next = NULL;

	for (uint32_t i = FIRST_NUMBER; i < o->n_numbers; i++) {
		struct fr_unwind_known *k = o->by_number[i];

		if (k && k->is_suspect && (k->has_new_map || k->search_at) &&
			(!next || k->search_ns < next->search_ns))
			next = k;
	}
	return next;
}

void fr_unwind_objects_withdraw(struct fr_unwind_objects *o, struct fr_unwind_known *k)
{
	if (state_of(o, k->number) == FR_UNWIND_READY)
		remove_table(o, k);
	store_state(shared_of(o, k->number), FR_UNWIND_WANTED);
	/* A walk must not use a part of the old table and a part of the next one. */
	(void)fr_unwind_memory_wait(o->memory);
	k->is_suspect = false;
	k->wanted_hits = 1;
	k->retry_ns = 0;
}

struct fr_unwind_file_object fr_unwind_objects_name(
	const struct fr_unwind_objects *o, const struct fr_unwind_known *k)
{
	return (struct fr_unwind_file_object){k->number, shared_of(o, k->number)->stamp};
}

/* Stores the rows of all pages. Returns false if there is no room. */
static bool store_rows(
	struct fr_unwind_objects *o, struct fr_unwind_object *s, const struct fr_unwind_table *t)
{
	struct fr_unwind_page *pages = fr_unwind_memory_address(o->memory, s->pages);

	memset(pages, 0, t->n_pages * sizeof(*pages));
	for (uint32_t i = 0; i < t->n_pages; i++) {
		const struct fr_unwind_span *from = &t->pages[i];

		if (!from->n_rows)
			continue;
		pages[i].rows = fr_unwind_memory_take(o->memory, rows_bytes(from->n_rows));
		if (!pages[i].rows)
			return false;
		pages[i].n = from->n_rows;
		memcpy(fr_unwind_memory_address(o->memory, pages[i].rows), &t->rows[from->first_row],
			rows_bytes(from->n_rows));
	}
	return true;
}

static bool store_table(
	struct fr_unwind_objects *o, struct fr_unwind_object *s, const struct fr_unwind_table *t)
{
	const size_t rules = t->n_rules * sizeof(*t->rules);

	s->rules = fr_unwind_memory_take(o->memory, rules);
	if (!s->rules)
		return false;
	s->n_rules = t->n_rules;
	memcpy(fr_unwind_memory_address(o->memory, s->rules), t->rules, rules);
	s->pages = fr_unwind_memory_take(o->memory, t->n_pages * sizeof(struct fr_unwind_page));
	if (!s->pages)
		return false;
	s->n_pages = t->n_pages;
	s->first_page = t->first_page;
	return store_rows(o, s, t);
}

int fr_unwind_objects_install(
	struct fr_unwind_objects *o, struct fr_unwind_known *k, const struct fr_unwind_table *t)
{
	struct fr_unwind_object *s = shared_of(o, k->number), new = {0};

	if (t->n_rules > FR_UNWIND_RULES_MAX ||
		t->n_pages > FR_UNWIND_CHUNK_BYTES / sizeof(struct fr_unwind_page))
		return -ENOSPC;
	if (!store_table(o, &new, t)) {
		give_table(o, &new);
		return -ENOSPC;
	}
	s->first_page = new.first_page;
	s->pages = new.pages;
	s->rules = new.rules;
	s->n_rules = new.n_rules;
	s->n_pages = new.n_pages;
	store_state(s, FR_UNWIND_READY);
	o->n_tables++;
	return 0;
}

void fr_unwind_objects_set_state(
	struct fr_unwind_objects *o, const struct fr_unwind_known *k, enum fr_unwind_object_state state)
{
	store_state(shared_of(o, k->number), state);
}

bool fr_unwind_objects_evict(struct fr_unwind_objects *o, uint64_t before_ns)
{
	struct fr_unwind_known *oldest = NULL;

	for (uint32_t i = FIRST_NUMBER; i < o->n_numbers; i++) {
		struct fr_unwind_known *k = o->by_number[i];

		if (k && state_of(o, i) == FR_UNWIND_READY && k->hit_ns < before_ns &&
			(!oldest || k->hit_ns < oldest->hit_ns))
			oldest = k;
	}
	if (!oldest)
		return false;
	remove_table(o, oldest);
	o->n_evicted++;
	return true;
}

/* Returns whether any part of the table is in an excess chunk. */
static bool is_excess(const struct fr_unwind_objects *o, const struct fr_unwind_object *s)
{
	const struct fr_unwind_page *pages = fr_unwind_memory_address(o->memory, s->pages);

	if (fr_unwind_memory_is_excess(o->memory, s->pages) ||
		fr_unwind_memory_is_excess(o->memory, s->rules))
		return true;
	for (uint32_t i = 0; i < s->n_pages; i++)
		if (fr_unwind_memory_is_excess(o->memory, pages[i].rows))
			return true;
	return false;
}

void fr_unwind_objects_evict_excess(struct fr_unwind_objects *o)
{
	for (uint32_t i = FIRST_NUMBER; i < o->n_numbers; i++) {
		struct fr_unwind_known *k = o->by_number[i];

		if (!k || state_of(o, i) != FR_UNWIND_READY || !is_excess(o, shared_of(o, i)))
			continue;
		remove_table(o, k);
		o->n_evicted++;
	}
}
