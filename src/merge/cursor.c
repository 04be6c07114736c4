// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * A batch collects copies of records in one block of bytes. When the batch is large enough, the cursor sorts
 * it and releases the records up to the limit: the cursor can now return them. When all released records are
 * returned, the remaining records are copied to the other batch, and the two batches change places. The limit
 * is the newest time of all records that come before the second-last FINISHED_ROUND (docs/design/61).
 *
 *   batch  [ returned │ released │ too young ]
 *                     next       ready       n
 */

#include "merge/cursor.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "merge/aux.h"

#include <errno.h>
#include <string.h>

struct batch {
	struct fr_buf bytes;
	struct fr_cursor_entry *entries;
	size_t n, cap;
	bool sorted;
};

struct fr_cursor {
	struct fr_reader *reader;
	struct fr_aux *aux;
	size_t input; /* for fr_aux_add() */
	uint64_t known_from, known_to;
	/* True: the next records belong to the initial state (cursor.h). Records with a time are skipped. */
	bool in_state;
	bool ended;
	struct batch batch, other; /* sort_batch() uses the entries of OTHER as temporary memory */
	/* The indices of the entry to return next, and of the first entry that is not released. */
	size_t next, ready;
	size_t sort_at; /* sort the batch when it has this many bytes */
	uint64_t order, skipped_state;
	uint64_t last_key, newest, newest_before, limit;
};

int fr_cursor_new(struct fr_reader *reader, struct fr_aux *aux, size_t input, uint64_t known_from,
	uint64_t known_to, struct fr_cursor **ret)
{
	struct fr_cursor *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->reader = reader;
	c->aux = aux;
	c->input = input;
	c->known_from = known_from;
	c->known_to = known_to;
	c->in_state = known_to > 0;
	c->sort_at = FR_CURSOR_BATCH;
	c->batch.sorted = c->other.sorted = true;
	*ret = c;
	return 0;
}

static void batch_deinit(struct batch *b)
{
	fr_buf_deinit(&b->bytes);
	free(b->entries);
}

struct fr_cursor *fr_cursor_free(struct fr_cursor *c)
{
	if (c) {
		batch_deinit(&c->batch);
		batch_deinit(&c->other);
		free(c);
	}
	return NULL;
}

static bool is_before(const struct fr_cursor_entry *a, const struct fr_cursor_entry *b)
{
	return a->key < b->key || (a->key == b->key && a->order < b->order);
}

static int grow_entries(struct batch *b)
{
	size_t cap = b->cap ? b->cap * 2 : 1024;
	struct fr_cursor_entry *p = reallocarray(b->entries, cap, sizeof(*p));

	if (!p)
		return -ENOMEM;
	b->entries = p;
	b->cap = cap;
	return 0;
}

static int batch_add(struct batch *b, uint64_t key, uint64_t order, const void *record, size_t size)
{
	size_t padded = FR_ALIGN_UP(size, 8);
	struct fr_cursor_entry e = {
		.key = key, .order = order, .at = (uint32_t)b->bytes.len, .size = (uint32_t)size};
	int r = b->n == b->cap ? grow_entries(b) : 0;

	if (r == 0 && b->bytes.cap - b->bytes.len < padded)
		r = fr_buf_reserve(&b->bytes, padded);
	if (r < 0)
		return r;
	memcpy(b->bytes.data + b->bytes.len, record, size);
	b->bytes.len += padded;
	if (b->n > 0 && !is_before(&b->entries[b->n - 1], &e))
		b->sorted = false;
	b->entries[b->n++] = e;
	return 0;
}

/* Drops the records that were returned, and begins the other batch with the remaining records. */
static int start_next_batch(struct fr_cursor *c)
{
	struct batch old = c->batch, *to = &c->other;

	to->n = 0;
	to->bytes.len = 0;
	to->sorted = true;
	for (size_t i = c->ready; i < old.n; i++) {
		const struct fr_cursor_entry *e = &old.entries[i];
		int r = batch_add(to, e->key, e->order, old.bytes.data + e->at, e->size);

		if (r < 0)
			return r;
	}
	c->batch = *to;
	c->other = old;
	c->next = c->ready = 0;
	c->sort_at = FR_MAX(FR_CURSOR_BATCH, 2 * c->batch.bytes.len);
	c->sort_at = FR_MIN(c->sort_at, FR_CURSOR_MAX);
	return 0;
}

/* Returns how many of the N entries are in order, beginning with the entry FROM. These entries are called a
   run. */
static size_t measure_run(const struct fr_cursor_entry *e, size_t from, size_t n)
{
	size_t i = from + 1;

	while (i < n && is_before(&e[i - 1], &e[i]))
		i++;
	return i - from;
}

/* Merges two runs into TO. The first run is at FROM and has A entries. The second run follows it and has B
   entries. */
static void merge_runs(struct fr_cursor_entry *to, const struct fr_cursor_entry *from, size_t a, size_t b)
{
	const struct fr_cursor_entry *x = from, *x_end = from + a, *y = x_end, *y_end = y + b;

	while (x < x_end && y < y_end)
		*to++ = is_before(y, x) ? *y++ : *x++;
	memcpy(to, x, (size_t)(x_end - x) * sizeof(*x));
	to += x_end - x;
	memcpy(to, y, (size_t)(y_end - y) * sizeof(*y));
}

/* Merges each pair of runs in FROM into one run in TO. Returns how many runs there were in FROM. */
static size_t merge_pass(struct fr_cursor_entry *to, const struct fr_cursor_entry *from, size_t n)
{
	size_t runs = 0;

	for (size_t i = 0; i < n;) {
		size_t a = measure_run(from, i, n), b = i + a < n ? measure_run(from, i + a, n) : 0;

		merge_runs(to + i, from + i, a, b);
		runs += 1 + (b > 0);
		i += a + b;
	}
	return runs;
}

/* Merges the runs of the batch in pairs until one run is left. The records of each kernel ring are in order,
   so there are far fewer runs than records. */
static int sort_batch(struct fr_cursor *c)
{
	struct batch *b = &c->batch, *spare = &c->other;
	size_t runs;

	while (spare->cap < b->n)
		if (grow_entries(spare) < 0)
			return -ENOMEM;
	do {
		const struct batch old = *b;

		runs = merge_pass(spare->entries, b->entries, b->n);
		b->entries = spare->entries;
		b->cap = spare->cap;
		spare->entries = old.entries;
		spare->cap = old.cap;
	} while (runs > 2);
	return 0;
}

/* Sorts the batch, and releases its records up to the limit. */
static int release_records(struct fr_cursor *c)
{
	struct batch *b = &c->batch;
	size_t low = 0, high = b->n;
	int r = b->sorted ? 0 : sort_batch(c);

	if (r < 0)
		return r;
	b->sorted = true;
	c->next = 0;
	while (low < high && !c->ended) {
		size_t middle = low + (high - low) / 2;

		if (b->entries[middle].key <= c->limit)
			low = middle + 1;
		else
			high = middle;
	}
	c->ready = c->ended ? b->n : low;
	if (c->ready == 0 && b->bytes.len >= FR_CURSOR_MAX)
		c->ready = FR_MAX(b->n / 2, (size_t)1);
	c->sort_at = c->ready ? c->sort_at : FR_MIN(2 * b->bytes.len, FR_CURSOR_MAX);
	return 0;
}

static void finish_round(struct fr_cursor *c)
{
	c->in_state = false;
	c->limit = c->newest_before;
	c->newest_before = c->newest;
}

/* Returns whether records of TYPE still have a meaning when they are copied to another file. */
static bool is_wanted(uint32_t type)
{
	switch (type) {
	case FR_RECORD_THREAD_MAP:
	case FR_RECORD_CPU_MAP:
	case FR_RECORD_TIME_CONV:
		return true;
	default:
		return type < FR_RECORD_USER_START;
	}
}

/* Returns whether H is a kernel record about AUX data. perf.data.auxiliary does not have these records. */
static bool is_about_aux(const struct perf_event_header *h)
{
	return h->type == PERF_RECORD_AUX || h->type == PERF_RECORD_ITRACE_START ||
	       h->type == PERF_RECORD_AUX_OUTPUT_HW_ID;
}

/* AT is the place of H in the file. */
static int add_record(struct fr_cursor *c, const struct perf_event_header *h, uint64_t at)
{
	bool sample = h->type == PERF_RECORD_SAMPLE, in_state = c->in_state && !is_about_aux(h);
	uint64_t key;

	if (h->type == FR_RECORD_FINISHED_ROUND) {
		finish_round(c);
		return 0;
	}
	if (fr_aux_wants(h->type))
		return c->aux ? fr_aux_add(c->aux, c->input, h, at) : 0;
	if (!is_wanted(h->type))
		return 0;
	key = fr_reader_time(c->reader, h);
	if (in_state && (sample || (key && (key < c->known_from || key > c->known_to))))
		c->in_state = in_state = false;
	if (in_state && key) {
		c->skipped_state++;
		return 0;
	}
	if (!key)
		key = c->last_key;
	c->last_key = key;
	c->newest = FR_MAX(c->newest, key);
	return batch_add(&c->batch, key, c->order++ | (sample ? FR_CURSOR_SAMPLE : 0), h, h->size);
}

/* Reads until records are released, or until the file ends. */
static int read_batch(struct fr_cursor *c)
{
	int r = start_next_batch(c);

	while (r >= 0 && !c->ended && c->ready == 0) {
		const struct perf_event_header *h;
		uint64_t at;

		r = fr_reader_next(c->reader, &h, &at);
		if (r == 1)
			r = add_record(c, h, at);
		else if (r == 0)
			c->ended = true;
		if (r >= 0 && (c->ended || c->batch.bytes.len >= c->sort_at))
			r = release_records(c);
	}
	return r;
}

static struct fr_cursor_record get_record(const struct fr_cursor *c, size_t i)
{
	const struct fr_cursor_entry *e = &c->batch.entries[i];

	return (struct fr_cursor_record){
		.key = e->key,
		.record = (const void *)(c->batch.bytes.data + e->at),
		.sample = e->order & FR_CURSOR_SAMPLE,
	};
}

int fr_cursor_next(struct fr_cursor *c, struct fr_cursor_record *ret)
{
	if (c->next == c->ready) {
		int r = c->ended ? 0 : read_batch(c);

		if (r < 0 || c->next == c->ready)
			return r;
	}
	*ret = get_record(c, c->next++);
	return 1;
}

void fr_cursor_take_run(struct fr_cursor *c, uint64_t older_than, struct fr_cursor_run *ret)
{
	const struct fr_cursor_entry *e = c->batch.entries + c->next;
	size_t n = 0, ready = c->ready - c->next;

	while (n < ready && e[n].key < older_than)
		n++;
	*ret = (struct fr_cursor_run){.entries = e, .n = n, .bytes = c->batch.bytes.data};
	c->next += n;
}

static bool is_same_record(const struct fr_cursor *c, size_t i, const struct fr_cursor *other, size_t k)
{
	const struct fr_cursor_entry *a = &c->batch.entries[i], *b = &other->batch.entries[k];

	return a->key == b->key && a->size == b->size &&
	       memcmp(c->batch.bytes.data + a->at, other->batch.bytes.data + b->at, a->size) == 0;
}

size_t fr_cursor_skip_common(struct fr_cursor *c, const struct fr_cursor *other, struct fr_cursor_record *ret)
{
	size_t i = c->next - 1, k = other->next - 1, n = 0;
	size_t max = FR_MIN(c->ready - i, other->ready - k);
	const struct fr_cursor_entry *e = &c->batch.entries[i];
	uint64_t last;

	while (n < max && is_same_record(c, i + n, other, k + n))
		n++;
	if (n == 0)
		return 0;
	/* LAST is the time of the last equal record. Do not skip the records of this time if more records of
	   this time can follow: if the next record of a cursor has this time, or if a cursor has no more
	   released records. */
	last = e[n - 1].key;
	if (n == max || e[n].key == last || other->batch.entries[k + n].key == last)
		while (n > 0 && e[n - 1].key == last)
			n--;
	if (n == 0)
		return 0;
	*ret = get_record(c, i + n);
	c->next = i + n + 1;
	return n;
}

uint64_t fr_cursor_skipped_state(const struct fr_cursor *c)
{
	return c->skipped_state;
}
