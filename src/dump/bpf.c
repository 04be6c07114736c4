// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Both sections are a u32 count and that many entries (tools/perf/util/header.c, bpf-utils.h):
 *   BPF_PROG_INFO  { u32 info_len, data_len; u64 arrays; struct bpf_prog_info; u8 data[data_len] }, where
 *                  each pointer of the info whose array is in DATA is its offset there, and ARRAYS has a bit
 *                  for it
 *   BPF_BTF        { u32 id, size; u8 data[size] }
 */

#include "dump/bpf.h"
#include "base/buf.h"
#include "base/cleanup.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>

#define PROGRAMS_MAX 1024u
#define ARRAY_MAX (1u << 20)	/* bytes of one array of one program */
#define SECTION_MAX (16u << 20) /* bytes of either section */
/* Readers refuse an info that is longer than the one they were built with; this is as much as the first of
   them know, and they fill the rest with zeros. */
#define INFO_LEN offsetof(struct bpf_prog_info, recursion_misses)

/* perf's order (enum perf_bpil_array_types). Those that tell nothing of the machine code are left out. */
struct array {
	size_t pointer, count; /* members of the info */
	size_t rec_size;       /* member; 0: ELEMENT is the size */
	size_t element;
};

#define MEMBER(m) offsetof(struct bpf_prog_info, m)

static const struct array arrays[] = {
	{MEMBER(jited_prog_insns), MEMBER(jited_prog_len), 0, 1},
	{0, 0, 0, 0}, /* xlated instructions */
	{0, 0, 0, 0}, /* map ids */
	{MEMBER(jited_ksyms), MEMBER(nr_jited_ksyms), 0, sizeof(uint64_t)},
	{MEMBER(jited_func_lens), MEMBER(nr_jited_func_lens), 0, sizeof(uint32_t)},
	{MEMBER(func_info), MEMBER(nr_func_info), MEMBER(func_info_rec_size), 0},
	{MEMBER(line_info), MEMBER(nr_line_info), MEMBER(line_info_rec_size), 0},
	{MEMBER(jited_line_info), MEMBER(nr_jited_line_info), MEMBER(jited_line_info_rec_size), 0},
	{MEMBER(prog_tags), MEMBER(nr_prog_tags), 0, BPF_TAG_SIZE},
};

static uint32_t get_u32(const struct bpf_prog_info *info, size_t at)
{
	uint32_t v;

	memcpy(&v, (const char *)info + at, sizeof(v));
	return v;
}

static void put(struct bpf_prog_info *info, size_t at, const void *v, size_t size)
{
	memcpy((char *)info + at, v, size);
}

static size_t element_of(const struct bpf_prog_info *info, const struct array *a)
{
	return a->rec_size ? get_u32(info, a->rec_size) : a->element;
}

/* Room for the arrays that INFO counts, in DATA; INFO then asks for them. RET_BITS: which. */
static int make_room(const struct bpf_prog_info *counts, struct bpf_prog_info *info, struct fr_buf *data,
	size_t at[static FR_ARRAY_SIZE(arrays)], uint64_t *ret_bits)
{
	uint64_t bits = 0;

	*info = (struct bpf_prog_info){0};
	for (size_t i = 0; i < FR_ARRAY_SIZE(arrays); i++) {
		const struct array *a = &arrays[i];
		uint32_t count = a->pointer ? get_u32(counts, a->count) : 0, rec = 0;
		uint64_t bytes = (uint64_t)count * (a->pointer ? element_of(counts, a) : 0);

		if (bytes == 0 || bytes > ARRAY_MAX)
			continue;
		at[i] = data->len;
		if (fr_buf_append_zero(data, FR_ALIGN_UP(bytes, 8)) < 0)
			return -ENOMEM;
		put(info, a->count, &count, sizeof(count));
		rec = a->rec_size ? get_u32(counts, a->rec_size) : 0;
		if (a->rec_size)
			put(info, a->rec_size, &rec, sizeof(rec));
		bits |= 1ULL << i;
	}
	for (size_t i = 0; i < FR_ARRAY_SIZE(arrays); i++)
		if (bits & 1ULL << i) {
			uint64_t p = (uintptr_t)(data->data + at[i]);

			put(info, arrays[i].pointer, &p, sizeof(p));
		}
	*ret_bits = bits;
	return 0;
}

/* Whether the program is still what it was a moment ago, as far as the arrays go. */
static bool fits(const struct bpf_prog_info *counts, const struct bpf_prog_info *info, uint64_t bits)
{
	for (size_t i = 0; i < FR_ARRAY_SIZE(arrays); i++)
		if (bits & 1ULL << i &&
			(get_u32(info, arrays[i].count) > get_u32(counts, arrays[i].count) ||
				element_of(info, &arrays[i]) != element_of(counts, &arrays[i])))
			return false;
	return true;
}

/* Append the program behind FD; its BTF's id, or 0. 0; 1: left out; -ENOMEM. */
static int add_program(int fd, struct fr_buf *to, uint32_t *ret_btf)
{
	struct bpf_prog_info counts = {0}, info;
	_cleanup_buf_ struct fr_buf data = {0};
	size_t at[FR_ARRAY_SIZE(arrays)] = {0};
	uint32_t len = sizeof(counts);
	uint64_t bits;

	if (bpf_obj_get_info_by_fd(fd, &counts, &len) < 0)
		return 1;
	if (make_room(&counts, &info, &data, at, &bits) < 0)
		return -ENOMEM;
	len = sizeof(info);
	if (bpf_obj_get_info_by_fd(fd, &info, &len) < 0 || !fits(&counts, &info, bits))
		return 1;
	for (size_t i = 0; i < FR_ARRAY_SIZE(arrays); i++) {
		uint64_t offset = bits & 1ULL << i ? at[i] : 0;

		if (arrays[i].pointer)
			put(&info, arrays[i].pointer, &offset, sizeof(offset));
	}
	if (to->len + data.len + sizeof(info) > SECTION_MAX)
		return 1;
	if (fr_buf_reserve(to, 16 + INFO_LEN + data.len) < 0)
		return -ENOMEM;
	(void)fr_buf_append_u32(to, INFO_LEN);
	(void)fr_buf_append_u32(to, (uint32_t)data.len);
	(void)fr_buf_append_u64(to, bits);
	(void)fr_buf_append(to, &info, INFO_LEN);
	(void)fr_buf_append(to, data.data, data.len);
	*ret_btf = info.btf_id;
	return 0;
}

/* Same returns. */
static int add_btf(uint32_t id, struct fr_buf *to)
{
	_cleanup_close_ int fd = bpf_btf_get_fd_by_id(id);
	_cleanup_buf_ struct fr_buf data = {0};
	struct bpf_btf_info info = {0};
	uint32_t len = sizeof(info), size;

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len) < 0 || info.btf_size == 0 ||
		info.btf_size > ARRAY_MAX)
		return 1;
	size = info.btf_size;
	if (fr_buf_append_zero(&data, size) < 0)
		return -ENOMEM;
	info = (struct bpf_btf_info){.btf = (uintptr_t)data.data, .btf_size = size};
	len = sizeof(info);
	if (bpf_obj_get_info_by_fd(fd, &info, &len) < 0 || info.btf_size != size ||
		to->len + size > SECTION_MAX)
		return 1;
	if (fr_buf_reserve(to, 8 + size) < 0)
		return -ENOMEM;
	(void)fr_buf_append_u32(to, id);
	(void)fr_buf_append_u32(to, size);
	return fr_buf_append(to, data.data, size);
}

struct ids {
	uint32_t v[PROGRAMS_MAX];
	size_t n;
};

/* 1: new. */
static bool remember(struct ids *ids, uint32_t id)
{
	for (size_t i = 0; i < ids->n; i++)
		if (ids->v[i] == id)
			return false;
	if (ids->n == PROGRAMS_MAX)
		return false;
	ids->v[ids->n++] = id;
	return true;
}

static int gather(struct fr_buf *programs, struct fr_buf *btfs, uint32_t *ret_programs, uint32_t *ret_btfs)
{
	_cleanup_free_ struct ids *seen = calloc(1, sizeof(*seen));
	uint32_t id = 0;
	int r = seen ? 0 : -ENOMEM;

	*ret_programs = *ret_btfs = 0;
	for (unsigned i = 0; i < PROGRAMS_MAX && r >= 0 && bpf_prog_get_next_id(id, &id) == 0; i++) {
		_cleanup_close_ int fd = bpf_prog_get_fd_by_id(id);
		uint32_t btf = 0;

		r = fd < 0 ? 1 : add_program(fd, programs, &btf);
		*ret_programs += r == 0;
		if (r == 0 && btf && remember(seen, btf)) {
			r = add_btf(btf, btfs);
			*ret_btfs += r == 0;
		}
	}
	return r < 0 ? r : 0;
}

static int set_section(struct fr_session *s, enum fr_feature f, uint32_t n, const struct fr_buf *entries)
{
	struct fr_buf *to = &s->features[f];
	int r;

	if (n == 0)
		return 0;
	fr_buf_deinit(to);
	r = fr_buf_append_u32(to, n);
	return r < 0 ? r : fr_buf_append(to, entries->data, entries->len);
}

int fr_dump_add_bpf(struct fr_session *s)
{
	_cleanup_buf_ struct fr_buf programs = {0}, btfs = {0};
	uint32_t n_programs, n_btfs;
	int r = gather(&programs, &btfs, &n_programs, &n_btfs);

	if (r == 0)
		r = set_section(s, FR_FEATURE_BPF_PROG_INFO, n_programs, &programs);
	return r < 0 ? r : set_section(s, FR_FEATURE_BPF_BTF, n_btfs, &btfs);
}
