// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Uses the input as what a crash has left in the crash memory: the process model at the ring's tail, and the
 * symbols of the kernel. The first byte of the input says what the other bytes are:
 *
 *     bits 0, 1 = 0   patches of the area of an undamaged tail: { u32 offset; u8 len; u8 bytes[len] } …
 *     bits 0, 1 = 1   the records of a checkpoint
 *     bits 0, 1 = 2   the records of a section
 *     bits 0, 1 = 3   the data of a slot with symbols, before compression: the header and the content
 *     bit 2           the crcs of all headers are corrected, so that the headers are accepted
 *
 * The target checks that the model consists of whole records, and that a recorder can continue with the
 * memory.
 */

#include "fuzz.h"
#include "crashmem/tail_internal.h"
#include "perfdata/record.h"
#include "rescue/model.h"
#include "rescue/symbols.h"
#include "sideband/emit.h"

#include <errno.h>
#include <stdio.h>
#include <zstd.h>

#define SECTIONS 40u
#define LOW_WATERMARK_NS 5000u

static struct fr_crashmem *m;
static uint8_t *area, *whole;
static uint64_t area_bytes;

static void append(struct fr_tail *t, uint64_t seq, const void *records, size_t len)
{
	const size_t room = ZSTD_compressBound(len);
	uint8_t *zstd = malloc(room);
	size_t n;

	check(zstd);
	n = ZSTD_compress(zstd, room, records, len, 1);
	check(!ZSTD_isError(n));
	fr_tail_append(t, seq, 100 * seq, zstd, n);
	free(zstd);
}

static void make_records(struct fr_buf *ret, uint64_t seq)
{
	struct fr_emit e = {.to = ret, .time_ns = 100 * seq, .id = 1};
	const pid_t pid = (pid_t)(1 + seq % 10);

	ret->len = 0;
	check(fr_emit_task(&e, pid, pid, 1, 1) == 0);
	check(fr_emit_comm(&e, pid, pid, "name", 4) == 0);
	if (seq % 3 == 0)
		check(fr_emit_exit(&e, pid, pid) == 0);
}

static void fill(struct fr_tail *t)
{
	struct fr_buf b = {0};

	check(fr_tail_checkpoint(t, 0, 0, NULL, 0) == 0);
	for (uint64_t seq = 1; seq <= SECTIONS; seq++) {
		make_records(&b, seq);
		append(t, seq, b.data, b.len);
		if (seq == SECTIONS / 2)
			check(fr_tail_checkpoint(t, seq, 100 * seq + 1, b.data, b.len) == 0);
	}
	fr_buf_deinit(&b);
}

/* Makes the memory, and keeps a copy of the area with an undamaged tail. */
static void make_memory(void)
{
	struct fr_tail *t;
	char path[64];

	snprintf(path, sizeof(path), "/dev/shm/flightrec-fuzz.%d", getpid());
	unlink(path);
	check(fr_crashmem_open(path, FR_CRASHMEM_BYTES_MIN, &m, NULL) == 0);
	unlink(path);
	fr_crashmem_format(m, "0123456789abcdef0123456789abcdef");
	area = fr_crashmem_area(m, FLIGHTREC_CRASHMEM_AREA_TAIL, &area_bytes);
	check(fr_tail_new(m, &t) == 0);
	fill(t);
	fr_tail_free(t);
	whole = malloc(area_bytes);
	check(whole);
	memcpy(whole, area, area_bytes);
}

static void apply_patches(const uint8_t *data, size_t size)
{
	while (size > 5) {
		uint32_t at;
		size_t len = data[4] < size - 5 ? data[4] : size - 5;

		memcpy(&at, data, 4);
		at %= (uint32_t)area_bytes;
		len = len < area_bytes - at ? len : area_bytes - at;
		memcpy(area + at, data + 5, len);
		data += 5 + len;
		size -= 5 + len;
	}
}

static void correct_crcs(void)
{
	struct tail_space s;

	check(tail_space_init(&s, m));
	s.head->crc = tail_head_crc(s.head);
	for (int i = 0; i < 2; i++)
		if (s.slots[i]->bytes <= s.slot_max)
			s.slots[i]->crc = tail_slot_crc(s.slots[i], s.slots[i]->data);
	for (uint64_t at = 0; at < s.log_bytes; at += TAIL_LINE) {
		struct tail_entry *e = (struct tail_entry *)(s.log + at);

		if (e->magic == TAIL_ENTRY_MAGIC && tail_entry_size(&s, e->bytes) &&
			e->position % s.log_bytes == at)
			e->crc = tail_entry_crc(&s, e);
	}
}

static void check_records(const struct fr_buf *b)
{
	struct fr_record_iter it = fr_record_iter(b->data, b->len);
	const struct perf_event_header *h;

	while ((h = fr_record_next(&it)))
		check(h->type < FR_RECORD_USER_START && h->type != PERF_RECORD_SAMPLE);
	check(it.at == it.end);
}

static void rescue(uint64_t before_seq)
{
	struct fr_buf state = {0}, since = {0};
	bool is_whole = false;
	int r = fr_rescue_model(
		m, before_seq, LOW_WATERMARK_NS, LOW_WATERMARK_NS - 1, 1, &state, &since, &is_whole);

	check(r == 0 || (r == -ENOENT && state.len + since.len == 0));
	check_records(&state);
	check_records(&since);
	fr_buf_deinit(&state);
	fr_buf_deinit(&since);
}

/* A recorder continues with the tail, or begins a new one. The new sections are read again. */
static void go_on(void)
{
	struct fr_buf b = {0};
	struct fr_tail *t;

	if (fr_tail_adopt(m, SECTIONS, &t) < 0)
		check(fr_tail_new(m, &t) == 0);
	for (uint64_t seq = SECTIONS + 1; seq < SECTIONS + 20; seq++) {
		make_records(&b, seq);
		append(t, seq, b.data, b.len);
	}
	fr_tail_free(t);
	fr_buf_deinit(&b);
	rescue(SECTIONS + 20);
}

static void append_input(const uint8_t *data, size_t size, bool is_checkpoint)
{
	struct fr_tail *t;
	int r = fr_tail_new(m, &t);

	check(r == 0);
	if (is_checkpoint)
		r = fr_tail_checkpoint(t, 0, LOW_WATERMARK_NS, data, size);
	else
		append(t, 1, data, size);
	check(r == 0 || r == -E2BIG);
	fr_tail_free(t);
}

/* The header has three numbers of 8 bytes: see symbols.c. The rest of the slot is compressed. */
static void read_symbols(const uint8_t *data, size_t size)
{
	const size_t head = 24, room = head + ZSTD_compressBound(size);
	struct fr_rescue_symbols s;
	uint8_t *slot = malloc(room);
	size_t n;

	check(slot);
	if (size >= head) {
		memcpy(slot, data, head);
		n = ZSTD_compress(slot + head, room - head, data + head, size - head, 1);
		check(!ZSTD_isError(n));
		(void)fr_crashmem_put(m, FLIGHTREC_CRASHMEM_AREA_SYMBOLS, slot, head + n);
		if (fr_rescue_symbols_read(m, &s) == 0) {
			check(s.kallsyms.len == 0 || s.kallsyms.data[s.kallsyms.len - 1] == '\n');
			fr_rescue_symbols_deinit(&s);
		}
	}
	free(slot);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	if (!m)
		make_memory();
	memcpy(area, whole, area_bytes);
	switch (data[0] & 3) {
	case 0:
		apply_patches(data + 1, size - 1);
		break;
	case 3:
		read_symbols(data + 1, size - 1);
		return 0;
	default:
		append_input(data + 1, size - 1, (data[0] & 3) == 1);
	}
	if (data[0] & 4)
		correct_crcs();
	rescue(2);
	rescue(SECTIONS + 1);
	go_on();
	return 0;
}
