// SPDX-License-Identifier: GPL-2.0-or-later
/* Finds the valid content of the area TAIL, which is not trusted, and reads it. */
#include "crashmem/tail_internal.h"
#include "base/cleanup.h"
#include "base/crc32c.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

/* Limits for content that somebody has forged: the bytes whose crc is computed, as a multiple of the log, and
   the bytes that are decompressed. */
#define CRC_FACTOR 4
#define RAW_MAX (1ULL << 30)

#define CRC_FROM offsetof(struct tail_entry, key)
_Static_assert(CRC_FROM == offsetof(struct tail_slot, key), "both begin alike");

bool tail_space_init(struct tail_space *s, const struct fr_crashmem *m)
{
	uint64_t bytes, slot;
	uint8_t *area = fr_crashmem_area(m, FLIGHTREC_CRASHMEM_AREA_TAIL, &bytes);

	if (bytes < TAIL_BYTES_MIN)
		return false;
	slot = (bytes - TAIL_HEAD_BYTES) / 4 / TAIL_LINE * TAIL_LINE;
	s->head = (struct tail_head *)area;
	for (size_t i = 0; i < 2; i++)
		s->slots[i] = (struct tail_slot *)(area + TAIL_HEAD_BYTES + i * slot);
	s->slot_max = slot - sizeof(struct tail_slot);
	s->log = area + TAIL_HEAD_BYTES + 2 * slot;
	s->log_bytes = (bytes - TAIL_HEAD_BYTES - 2 * slot) / TAIL_LINE * TAIL_LINE;
	return true;
}

uint32_t tail_head_crc(const struct tail_head *h)
{
	return fr_crc32c(0, &h->key, sizeof(h->key));
}

uint32_t tail_slot_crc(const struct tail_slot *s, const void *data)
{
	return fr_crc32c(fr_crc32c(0, &s->key, sizeof(*s) - CRC_FROM), data, s->bytes);
}

/* Returns how many of LEN bytes from POSITION on are before the end of the log. */
static size_t before_end(const struct tail_space *s, uint64_t position, size_t len)
{
	return FR_MIN((uint64_t)len, s->log_bytes - position % s->log_bytes);
}

uint32_t tail_entry_crc(const struct tail_space *s, const struct tail_entry *e)
{
	const uint64_t at = e->position + sizeof(*e);
	const size_t first = before_end(s, at, e->bytes);
	uint32_t crc = fr_crc32c(0, &e->key, sizeof(*e) - CRC_FROM);

	crc = fr_crc32c(crc, s->log + at % s->log_bytes, first);
	return fr_crc32c(crc, s->log, e->bytes - first);
}

uint64_t tail_entry_size(const struct tail_space *s, uint64_t bytes)
{
	if (bytes > ZSTD_COMPRESSBOUND(FR_TAIL_SECTION_MAX) ||
		bytes + sizeof(struct tail_entry) > s->log_bytes)
		return 0;
	return FR_ALIGN_UP(bytes + sizeof(struct tail_entry), TAIL_LINE);
}

void tail_log_write(const struct tail_space *s, uint64_t position, const void *p, size_t len)
{
	const size_t first = before_end(s, position, len);
	uint8_t *to = s->log + position % s->log_bytes;

	if (len == 0)
		return;
	memcpy(to, p, first);
	memcpy(s->log, (const uint8_t *)p + first, len - first);
	fr_crashmem_write_back(to, first);
	if (len > first)
		fr_crashmem_write_back(s->log, len - first);
}

void tail_log_read(const struct tail_space *s, uint64_t position, void *p, size_t len)
{
	const size_t first = before_end(s, position, len);

	memcpy(p, s->log + position % s->log_bytes, first);
	memcpy((uint8_t *)p + first, s->log, len - first);
}

static bool read_key(struct tail_scan *s)
{
	struct tail_head h;

	memcpy(&h, s->space.head, sizeof(h));
	s->key = h.key;
	return h.magic == TAIL_MAGIC && h.version == TAIL_VERSION && h.crc == tail_head_crc(&h);
}

static void scan_slot(struct tail_scan *s, int i)
{
	struct tail_slot h;

	memcpy(&h, s->space.slots[i], sizeof(h));
	if (h.magic == TAIL_SLOT_MAGIC && h.key == s->key && h.bytes <= s->space.slot_max &&
		h.raw_bytes <= TAIL_CHECKPOINT_MAX && h.crc == tail_slot_crc(&h, s->space.slots[i]->data))
		s->slots[i] = h;
}

/* Copies the header of the entry at the offset AT of the log. Returns the size of the entry, or 0 if there is
   no valid entry. CRC_LEFT is the number of bytes whose crc may still be computed. */
static uint64_t read_entry(const struct tail_scan *s, uint64_t at, struct tail_entry *ret, uint64_t *crc_left)
{
	uint64_t size;

	memcpy(ret, s->space.log + at, sizeof(*ret));
	size = tail_entry_size(&s->space, ret->bytes);
	if (ret->magic != TAIL_ENTRY_MAGIC || ret->key != s->key || !size || size > *crc_left ||
		ret->position % s->space.log_bytes != at || ret->position > INT64_MAX)
		return 0;
	*crc_left -= size;
	return ret->crc == tail_entry_crc(&s->space, ret) ? size : 0;
}

static int by_seq(const void *a, const void *b)
{
	const struct tail_entry *x = a, *y = b;

	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	return x->position < y->position ? -1 : x->position > y->position;
}

/* If a section was appended twice (before and after an adoption), only the newer entry counts. */
static void sort_entries(struct tail_scan *s)
{
	size_t kept = 0;

	if (s->n)
		qsort(s->entries, s->n, sizeof(*s->entries), by_seq);
	for (size_t i = 0; i < s->n; i++)
		if (i + 1 == s->n || s->entries[i].seq != s->entries[i + 1].seq)
			s->entries[kept++] = s->entries[i];
	s->n = kept;
}

/* Looks for entries at each cache line of the log, because there is no header to trust that says where they
   are. The payload of a valid entry is skipped. */
static int scan_log(struct tail_scan *s)
{
	uint64_t crc_left = CRC_FACTOR * s->space.log_bytes, at = 0;
	size_t cap = 0;

	while (at < s->space.log_bytes) {
		struct tail_entry e, *grown;
		const uint64_t size = read_entry(s, at, &e, &crc_left);

		at += size ? size : TAIL_LINE;
		if (!size)
			continue;
		if (s->n == cap) {
			cap = cap ? 2 * cap : 64;
			grown = reallocarray(s->entries, cap, sizeof(*grown));
			if (!grown)
				return -ENOMEM;
			s->entries = grown;
		}
		s->entries[s->n++] = e;
	}
	sort_entries(s);
	return 0;
}

int tail_scan(const struct fr_crashmem *m, struct tail_scan *ret)
{
	struct tail_scan s = {0};
	int r;

	if (!tail_space_init(&s.space, m) || !read_key(&s))
		return -ENOENT;
	for (int i = 0; i < 2; i++)
		scan_slot(&s, i);
	r = scan_log(&s);
	if (r < 0)
		tail_scan_deinit(&s);
	else
		*ret = s;
	return r;
}

void tail_scan_deinit(struct tail_scan *s)
{
	free(s->entries);
	*s = (struct tail_scan){0};
}

bool tail_scan_has_all(const struct tail_scan *s, uint64_t from_seq, uint64_t before_seq)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		n += s->entries[i].seq > from_seq && s->entries[i].seq < before_seq;
	return from_seq + 1 >= before_seq || n == before_seq - from_seq - 1;
}

struct reader {
	struct tail_scan scan;
	uint64_t before_seq;
	int (*apply)(void *ctx, const struct fr_tail_part *part);
	void *ctx;
	ZSTD_DCtx *zstd;
	void *section; /* room for FR_TAIL_SECTION_MAX bytes */
	uint64_t raw_left;
	bool whole;
};

/* Decompresses a copy of a payload to RAW, which has room for RAW_MAX bytes, and calls apply(). Returns 1 if
   the payload is damaged; 0; or a negative errno. */
static int apply_part(struct reader *r, struct fr_tail_part *part, const void *packed, size_t len, void *raw,
	size_t raw_max)
{
	const size_t n =
		ZSTD_decompressDCtx(r->zstd, raw, FR_MIN((uint64_t)raw_max, r->raw_left), packed, len);

	if (ZSTD_isError(n))
		return 1;
	r->raw_left -= n;
	part->records = raw;
	part->len = n;
	return r->apply(r->ctx, part);
}

/* Returns how good the checkpoint in slot I is: 0: there is none; 1: it is later than the oldest frame, so it
   lacks processes that ended meanwhile; 2: sections after it are missing; 3: nothing is missing. */
static int grade_slot(const struct reader *r, int i)
{
	const struct tail_slot *s = &r->scan.slots[i];

	if (!s->generation)
		return 0;
	if (s->seq >= r->before_seq)
		return 1;
	return 2 + tail_scan_has_all(&r->scan, s->seq, r->before_seq);
}

/* Returns the index of the better slot; of two equal slots, that of the newer one. */
static int find_best(const struct reader *r, int *ret_grade)
{
	const int first = grade_slot(r, 0), second = grade_slot(r, 1);
	const bool second_is_newer = r->scan.slots[1].generation > r->scan.slots[0].generation;
	const int best = first == second ? second_is_newer : second > first;

	*ret_grade = FR_MAX(first, second);
	return best;
}

static int apply_slot(struct reader *r, int i)
{
	const struct tail_slot *s = &r->scan.slots[i];
	struct fr_tail_part part = {
		.is_checkpoint = true, .seq = s->seq, .low_watermark_ns = s->low_watermark_ns};
	_cleanup_free_ void *packed = malloc(FR_MAX(s->bytes, (uint64_t)1)),
			    *raw = malloc(FR_MAX(s->raw_bytes, (uint64_t)1));

	if (!packed || !raw)
		return -ENOMEM;
	memcpy(packed, r->scan.space.slots[i]->data, s->bytes);
	return apply_part(r, &part, packed, s->bytes, raw, s->raw_bytes);
}

/* Applies the best checkpoint. RET_SEQ gets its sequence number; 0 if there is none. */
static int apply_checkpoint(struct reader *r, uint64_t *ret_seq)
{
	int grade, i, result;

	*ret_seq = 0;
	while ((i = find_best(r, &grade), grade) > 0) {
		*ret_seq = r->scan.slots[i].seq;
		result = apply_slot(r, i);
		if (result <= 0) {
			r->whole = grade == 3;
			return result;
		}
		r->scan.slots[i].generation = 0; /* its crc is right, but zstd cannot read it */
		*ret_seq = 0;
	}
	return 0;
}

static int apply_section(struct reader *r, const struct tail_entry *e)
{
	struct fr_tail_part part = {.seq = e->seq, .low_watermark_ns = e->low_watermark_ns};
	_cleanup_free_ void *packed = NULL;

	if (e->bytes == 0)
		return 0;
	packed = malloc(e->bytes);
	if (!packed)
		return -ENOMEM;
	tail_log_read(&r->scan.space, e->position + sizeof(*e), packed, e->bytes);
	return apply_part(r, &part, packed, e->bytes, r->section, FR_TAIL_SECTION_MAX);
}

static int apply_all(struct reader *r)
{
	uint64_t seq;
	int result = apply_checkpoint(r, &seq);

	for (size_t i = 0; i < r->scan.n && result == 0; i++) {
		const struct tail_entry *e = &r->scan.entries[i];

		if (e->seq <= seq || e->seq >= r->before_seq)
			continue;
		result = apply_section(r, e);
		if (result > 0) {
			r->whole = false;
			result = 0;
		}
	}
	return result;
}

int fr_tail_read(const struct fr_crashmem *m, uint64_t before_seq,
	int (*apply)(void *ctx, const struct fr_tail_part *part), void *ctx, bool *ret_whole)
{
	struct reader r = {.before_seq = before_seq, .apply = apply, .ctx = ctx, .raw_left = RAW_MAX};
	int result = tail_scan(m, &r.scan);

	if (result < 0)
		return result;
	r.zstd = ZSTD_createDCtx();
	r.section = malloc(FR_TAIL_SECTION_MAX);
	if (!r.zstd || !r.section)
		result = -ENOMEM;
	else if (!r.scan.slots[0].generation && !r.scan.slots[1].generation && r.scan.n == 0)
		result = -ENOENT;
	else
		result = apply_all(&r);
	ZSTD_freeDCtx(r.zstd);
	free(r.section);
	tail_scan_deinit(&r.scan);
	if (result == 0)
		*ret_whole = r.whole;
	return result;
}

uint64_t fr_tail_evicted_seq(const struct fr_crashmem *m)
{
	struct tail_scan s = {0};
	uint64_t seq;

	if (tail_scan(m, &s) < 0)
		return 0;
	seq = s.n ? s.entries[s.n - 1].seq : 0;
	for (int i = 0; i < 2; i++)
		if (s.slots[i].generation)
			seq = FR_MAX(seq, s.slots[i].seq);
	tail_scan_deinit(&s);
	return seq;
}
