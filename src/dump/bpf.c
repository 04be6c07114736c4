// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * The sections BPF_PROG_INFO and BPF_BTF begin with a u32, the number of entries; the entries follow
 * (tools/perf/util/header.c, bpf-utils.h):
 *
 *   BPF_PROG_INFO: { u32 info_len, data_len; u64 arrays; struct bpf_prog_info; u8 data[data_len] }
 *   BPF_BTF: { u32 id, size; u8 data[size] }
 *
 * The info points to arrays. `arrays` has a bit for each of them. If the bit of an array is set, `data` has
 * the array, and the pointer in the info is an offset in `data`.
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
#define SECTION_MAX (16u << 20) /* bytes of each section */
/* The length of struct bpf_prog_info in the section. A reader refuses an info that is longer than its own
   struct bpf_prog_info. If the info is shorter, the reader adds zeros. All readers know the members up to
   this length. */
#define INFO_LEN offsetof(struct bpf_prog_info, recursion_misses)

struct array {
	unsigned bit;	       /* enum perf_bpil_array_types */
	size_t pointer, count; /* offsets of members of the info */
	size_t rec_size;       /* offset of the member with the size of an element; 0: see `element` */
	size_t element;	       /* the size of an element in bytes, if rec_size is 0 */
};

#define MEMBER(m) offsetof(struct bpf_prog_info, m)

/* The arrays that describe machine code. The arrays of the bits 1 and 2 (translated instructions, map ids) do
   not describe machine code, so they are left out. */
static const struct array arrays[] = {
	{0, MEMBER(jited_prog_insns), MEMBER(jited_prog_len), 0, 1},
	{3, MEMBER(jited_ksyms), MEMBER(nr_jited_ksyms), 0, sizeof(uint64_t)},
	{4, MEMBER(jited_func_lens), MEMBER(nr_jited_func_lens), 0, sizeof(uint32_t)},
	{5, MEMBER(func_info), MEMBER(nr_func_info), MEMBER(func_info_rec_size), 0},
	{6, MEMBER(line_info), MEMBER(nr_line_info), MEMBER(line_info_rec_size), 0},
	{7, MEMBER(jited_line_info), MEMBER(nr_jited_line_info), MEMBER(jited_line_info_rec_size), 0},
	{8, MEMBER(prog_tags), MEMBER(nr_prog_tags), 0, BPF_TAG_SIZE},
};

struct section {
	struct fr_buf entries;
	uint32_t n;
};

static uint32_t get_u32(const struct bpf_prog_info *info, size_t at)
{
	uint32_t v;

	memcpy(&v, (const char *)info + at, sizeof(v));
	return v;
}

static void set_u32(struct bpf_prog_info *info, size_t at, uint32_t v)
{
	memcpy((char *)info + at, &v, sizeof(v));
}

static void set_u64(struct bpf_prog_info *info, size_t at, uint64_t v)
{
	memcpy((char *)info + at, &v, sizeof(v));
}

static size_t element_size(const struct bpf_prog_info *info, const struct array *a)
{
	return a->rec_size ? get_u32(info, a->rec_size) : a->element;
}

/* COUNTS has the sizes of the arrays. Makes room in DATA for the arrays, except those that are larger than
   ARRAY_MAX. Sets AT to the offsets of the arrays in DATA, and makes INFO a request to the kernel for these
   arrays. Returns 0 and sets *RET_BITS to the bits of the arrays; or -ENOMEM. */
static int request_arrays(const struct bpf_prog_info *counts, struct bpf_prog_info *info, struct fr_buf *data,
	size_t at[static FR_ARRAY_SIZE(arrays)], uint64_t *ret_bits)
{
	uint64_t bits = 0;

	*info = (struct bpf_prog_info){0};
	for (size_t i = 0; i < FR_ARRAY_SIZE(arrays); i++) {
		const struct array *a = &arrays[i];
		const uint32_t count = get_u32(counts, a->count);
		const uint64_t bytes = (uint64_t)count * element_size(counts, a);

		if (bytes == 0 || bytes > ARRAY_MAX)
			continue;
		at[i] = data->len;
		if (fr_buf_append_zero(data, FR_ALIGN_UP(bytes, 8)) < 0)
			return -ENOMEM;
		set_u32(info, a->count, count);
		if (a->rec_size)
			set_u32(info, a->rec_size, get_u32(counts, a->rec_size));
		bits |= 1ULL << a->bit;
	}
	for (size_t i = 0; i < FR_ARRAY_SIZE(arrays); i++)
		if (bits & 1ULL << arrays[i].bit)
			set_u64(info, arrays[i].pointer, (uintptr_t)(data->data + at[i]));
	*ret_bits = bits;
	return 0;
}

/* add_program() asks the kernel twice: first for COUNTS, then for INFO. Returns whether the program stayed
   the same between the two calls: no array of INFO has more elements than COUNTS says, or elements of another
   size. */
static bool is_unchanged(const struct bpf_prog_info *counts, const struct bpf_prog_info *info, uint64_t bits)
{
	for (size_t i = 0; i < FR_ARRAY_SIZE(arrays); i++)
		if (bits & 1ULL << arrays[i].bit &&
			(get_u32(info, arrays[i].count) > get_u32(counts, arrays[i].count) ||
				element_size(info, &arrays[i]) != element_size(counts, &arrays[i])))
			return false;
	return true;
}

/* Appends an entry with the three parts HEAD, INFO and DATA, and counts it. If the entry would make S too
   large, leaves the entry out. Returns 0 or -ENOMEM. */
static int append_entry(struct section *s, const void *head, size_t head_len, const void *info,
	size_t info_len, const struct fr_buf *data)
{
	struct fr_buf *b = &s->entries;

	if (b->len + head_len + info_len + data->len > SECTION_MAX)
		return 0;
	if (fr_buf_reserve(b, head_len + info_len + data->len) < 0)
		return -ENOMEM;
	s->n++;
	(void)fr_buf_append(b, head, head_len);
	(void)fr_buf_append(b, info, info_len);
	return fr_buf_append(b, data->data, data->len);
}

/* Appends the program FD. A program that cannot be read is left out. If the program was appended, *RET_BTF is
   the id of its BTF object, or 0 if it has none. Returns 0 or -ENOMEM. */
static int add_program(int fd, struct section *programs, uint32_t *ret_btf)
{
	struct bpf_prog_info counts = {0}, info;
	_cleanup_buf_ struct fr_buf data = {0};
	size_t at[FR_ARRAY_SIZE(arrays)] = {0};
	uint32_t len = sizeof(counts);
	uint64_t bits;

	if (bpf_obj_get_info_by_fd(fd, &counts, &len) < 0)
		return 0;
	if (request_arrays(&counts, &info, &data, at, &bits) < 0)
		return -ENOMEM;
	len = sizeof(info);
	if (bpf_obj_get_info_by_fd(fd, &info, &len) < 0 || !is_unchanged(&counts, &info, bits))
		return 0;
	for (size_t i = 0; i < FR_ARRAY_SIZE(arrays); i++)
		set_u64(&info, arrays[i].pointer, bits & 1ULL << arrays[i].bit ? at[i] : 0);

	const struct {
		uint32_t info_len, data_len;
		uint64_t arrays;
	} head = {INFO_LEN, (uint32_t)data.len, bits};

	const uint32_t before = programs->n;
	int r = append_entry(programs, &head, sizeof(head), &info, INFO_LEN, &data);

	*ret_btf = programs->n > before ? info.btf_id : 0;
	return r;
}

/* Appends the BTF object ID. An object that cannot be read is left out. Returns 0 or -ENOMEM. */
static int add_btf(uint32_t id, struct section *btfs)
{
	_cleanup_close_ int fd = bpf_btf_get_fd_by_id(id);
	_cleanup_buf_ struct fr_buf data = {0};
	struct bpf_btf_info info = {0};
	uint32_t len = sizeof(info), size;

	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len) < 0 || info.btf_size == 0 ||
		info.btf_size > ARRAY_MAX)
		return 0;
	size = info.btf_size;
	if (fr_buf_append_zero(&data, size) < 0)
		return -ENOMEM;
	info = (struct bpf_btf_info){.btf = (uintptr_t)data.data, .btf_size = size};
	len = sizeof(info);
	if (bpf_obj_get_info_by_fd(fd, &info, &len) < 0 || info.btf_size != size)
		return 0;

	const uint32_t head[] = {id, size};

	return append_entry(btfs, head, sizeof(head), NULL, 0, &data);
}

static bool is_known(const uint32_t *ids, size_t n, uint32_t id)
{
	for (size_t i = 0; i < n; i++)
		if (ids[i] == id)
			return true;
	return false;
}

/* Appends all loaded programs (at most PROGRAMS_MAX), and each of their BTF objects once. Returns 0 or
   -ENOMEM. */
static int collect(struct section *programs, struct section *btfs)
{
	_cleanup_free_ uint32_t *ids = calloc(PROGRAMS_MAX, sizeof(*ids)); /* ids of BTF objects */
	size_t n_ids = 0;
	uint32_t id = 0;
	int r = ids ? 0 : -ENOMEM;

	for (unsigned i = 0; i < PROGRAMS_MAX && r == 0 && bpf_prog_get_next_id(id, &id) == 0; i++) {
		_cleanup_close_ int fd = bpf_prog_get_fd_by_id(id);
		uint32_t btf = 0;

		if (fd >= 0)
			r = add_program(fd, programs, &btf);
		if (r == 0 && btf && !is_known(ids, n_ids, btf)) {
			ids[n_ids++] = btf;
			r = add_btf(btf, btfs);
		}
	}
	return r;
}

static int set_feature(struct fr_session *s, enum fr_feature f, const struct section *section)
{
	struct fr_buf *to = &s->features[f];
	int r;

	if (section->n == 0)
		return 0;
	fr_buf_deinit(to);
	r = fr_buf_append_u32(to, section->n);
	return r < 0 ? r : fr_buf_append(to, section->entries.data, section->entries.len);
}

int fr_dump_add_bpf(struct fr_session *s)
{
	struct section programs = {0}, btfs = {0};
	int r = collect(&programs, &btfs);

	if (r == 0)
		r = set_feature(s, FR_FEATURE_BPF_PROG_INFO, &programs);
	if (r == 0)
		r = set_feature(s, FR_FEATURE_BPF_BTF, &btfs);
	fr_buf_deinit(&programs.entries);
	fr_buf_deinit(&btfs.entries);
	return r;
}
