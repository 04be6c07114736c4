// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/cfi_scan.h"
#include "unwind/bisect.h"
#include "unwind/grow.h"
#include "unwind/machine.h"
#include "base/cleanup.h"

#include <dwarf.h>
#include <errno.h>

/* The largest programs have less than 1 million functions. .debug_frame has a CIE for each source file. The
   limits bound the memory that an object of a hostile user can cost. */
#define FDES_MAX (1u << 20)
#define CIES_MAX (64u << 10)
#define ADDRESS_MAX (1ULL << 47) /* the end of user space */

struct scan {
	const struct cfi_section *section;
	const struct cfi_range *ranges;
	size_t n_ranges;
	struct cfi_entries e;
	size_t cies_cap, fdes_cap;
};

/* An entry without its length and its id. */
struct entry {
	size_t offset;
	uint64_t id; /* of an FDE: the offset of its CIE */
	bool is_cie;
	struct cfi_cursor c;
};

/* Reads an address or a size. The caller has checked the encoding. */
static uint64_t read_pointer(const struct cfi_section *s, struct cfi_cursor *c, uint8_t encoding)
{
	uint64_t base = 0;

	if ((encoding & 0x70) == DW_EH_PE_pcrel)
		base = s->address + (uint64_t)(c->at - s->data);
	switch (encoding & 0x0f) {
	case DW_EH_PE_udata2:
		return base + cfi_read(c, 2);
	case DW_EH_PE_udata4:
		return base + cfi_read(c, 4);
	case DW_EH_PE_sdata2:
		return base + (uint64_t)cfi_read_signed(c, 2);
	case DW_EH_PE_sdata4:
		return base + (uint64_t)cfi_read_signed(c, 4);
	case DW_EH_PE_uleb128:
		return base + cfi_read_uleb128(c);
	case DW_EH_PE_sleb128:
		return base + (uint64_t)cfi_read_sleb128(c);
	default:
		return base + cfi_read(c, 8);
	}
}

static bool is_known_encoding(uint8_t encoding)
{
	static const uint16_t formats = 1 << DW_EH_PE_absptr | 1 << DW_EH_PE_uleb128 | 1 << DW_EH_PE_udata2 |
					1 << DW_EH_PE_udata4 | 1 << DW_EH_PE_udata8 | 1 << DW_EH_PE_sleb128 |
					1 << DW_EH_PE_sdata2 | 1 << DW_EH_PE_sdata4 | 1 << DW_EH_PE_sdata8;
	uint8_t base = encoding & 0xf0;

	return (base == DW_EH_PE_absptr || base == DW_EH_PE_pcrel) && formats >> (encoding & 0x0f) & 1;
}

/* Reads the augmentation data, whose parts the string AUGMENTATION names. Returns whether all are known. */
static bool read_augmentation(
	const struct cfi_section *s, const char *augmentation, struct cfi_cursor *c, struct cfi_cie *cie)
{
	struct cfi_cursor data;
	uint8_t personality;

	if (*augmentation == '\0')
		return true;
	if (*augmentation++ != 'z')
		return false;
	cie->has_size = true;
	data = cfi_take(c, cfi_read_uleb128(c));
	for (; *augmentation; augmentation++)
		switch (*augmentation) {
		case 'L':
			cfi_read_u8(&data);
			break;
		case 'P':
			personality = cfi_read_u8(&data);
			read_pointer(s, &data, personality);
			break;
		case 'R':
			cie->encoding = cfi_read_u8(&data);
			break;
		case 'S':
			cie->is_signal = true;
			break;
		default:
			return false;
		}
	return !data.bad;
}

/* Reads the CIE after its id. Returns whether it is valid and supported. */
static bool read_cie(const struct cfi_section *s, struct cfi_cursor c, struct cfi_cie *cie)
{
	uint8_t version = cfi_read_u8(&c);
	const uint8_t *augmentation = c.at, *nul = memchr(c.at, '\0', cfi_left(&c));

	if (!nul || (version != 1 && version != 3 && (version != 4 || !s->is_debug)))
		return false;
	c.at = nul + 1;
	if (version == 4 && (cfi_read_u8(&c) != sizeof(uint64_t) || cfi_read_u8(&c) != 0))
		return false; /* the size of an address, and of a segment */
	cie->code_align = cfi_read_uleb128(&c);
	cie->data_align = cfi_read_sleb128(&c);
	if ((version == 1 ? cfi_read_u8(&c) : cfi_read_uleb128(&c)) != CFI_RETURN_ADDRESS)
		return false;
	cie->encoding = DW_EH_PE_absptr;
	if (!read_augmentation(s, (const char *)augmentation, &c, cie) || !is_known_encoding(cie->encoding))
		return false;
	return !c.bad && cfi_run_cie(cie, c);
}

static int add_cie(struct scan *s, const struct entry *e)
{
	struct cfi_cie *cie;
	int r = unwind_grow((void **)&s->e.cies, sizeof(*cie), s->e.n_cies, CIES_MAX, &s->cies_cap);

	if (r < 0)
		return r;
	cie = &s->e.cies[s->e.n_cies++];
	*cie = (struct cfi_cie){.offset = e->offset};
	cie->is_supported = read_cie(s->section, e->c, cie);
	return 0;
}

/* Finds the CIE at OFFSET, which is before its FDEs. Returns NULL if it is not there or not supported. */
static const struct cfi_cie *find_cie(const struct cfi_entries *e, uint64_t offset)
{
	const size_t at = UNWIND_BISECT(i, e->n_cies, e->cies[i].offset >= offset);

	return at < e->n_cies && e->cies[at].offset == offset && e->cies[at].is_supported ? &e->cies[at]
											  : NULL;
}

static bool is_in_ranges(const struct scan *s, uint64_t begin, uint64_t end)
{
	for (size_t i = 0; i < s->n_ranges; i++)
		if (begin >= s->ranges[i].begin && end <= s->ranges[i].end)
			return end <= ADDRESS_MAX;
	return false;
}

/* Returns whether the entry is valid. An FDE without code is valid, and has END = BEGIN. */
static bool read_fde(const struct scan *s, const struct entry *e, struct cfi_fde *ret)
{
	const struct cfi_cie *cie = find_cie(&s->e, e->id);
	struct cfi_cursor c = e->c;
	uint64_t size;

	if (!cie)
		return false;
	ret->begin = read_pointer(s->section, &c, cie->encoding);
	size = read_pointer(s->section, &c, cie->encoding & 0x0f);
	if (cie->has_size)
		cfi_take(&c, cfi_read_uleb128(&c));
	if (c.bad || __builtin_add_overflow(ret->begin, size, &ret->end))
		return false;
	ret->program = c.at;
	ret->program_len = (uint32_t)cfi_left(&c); /* a section is smaller than 4 GiB */
	ret->cie = (uint32_t)(cie - s->e.cies);
	return size == 0 || is_in_ranges(s, ret->begin, ret->end);
}

static int add_fde(struct scan *s, const struct entry *e)
{
	struct cfi_fde fde;
	int r;

	if (!read_fde(s, e, &fde)) {
		s->e.skipped++;
		return 0;
	}
	if (fde.begin == fde.end)
		return 0;
	r = unwind_grow((void **)&s->e.fdes, sizeof(fde), s->e.n_fdes, FDES_MAX, &s->fdes_cap);
	if (r == 0)
		s->e.fdes[s->e.n_fdes++] = fde;
	return r;
}

/* Takes the next entry out of the section. Returns whether there is one. */
static bool next_entry(struct scan *s, struct cfi_cursor *c, struct entry *ret)
{
	size_t width = 4;
	uint64_t len;

	do {
		if (cfi_left(c) < 4)
			return false;
		ret->offset = (size_t)(c->at - s->section->data);
		len = cfi_read(c, 4);
	} while (len == 0 && !s->section->is_unbounded);
	if (len == UINT32_MAX) {
		width = 8;
		len = cfi_read(c, 8);
	}
	ret->c = cfi_take(c, len);
	ret->id = (uint64_t)(ret->c.at - s->section->data);
	len = cfi_read(&ret->c, width);
	if (s->section->is_debug) {
		ret->is_cie = len == (width == 8 ? UINT64_MAX : UINT32_MAX);
		ret->id = len;
	} else {
		ret->is_cie = len == 0;
		ret->id -= len;
	}
	if (ret->c.bad)
		s->e.skipped += !s->section->is_unbounded;
	return !ret->c.bad;
}

static int compare_fdes(const void *a, const void *b)
{
	const struct cfi_fde *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	return (x->program < y->program) - (x->program > y->program);
}

/* Ends each FDE where the next begins, and removes those that have no code then. */
static void remove_overlap(struct cfi_entries *e)
{
	size_t n = 0;

	for (size_t i = 0; i < e->n_fdes; i++) {
		struct cfi_fde fde = e->fdes[i];

		if (i + 1 < e->n_fdes)
			fde.end = FR_MIN(fde.end, e->fdes[i + 1].begin);
		if (fde.begin < fde.end)
			e->fdes[n++] = fde;
	}
	e->n_fdes = n;
}

int cfi_scan(const struct cfi_section *section, const struct cfi_range *ranges, size_t n_ranges,
	struct cfi_entries *ret)
{
	struct scan s = {.section = section, .ranges = ranges, .n_ranges = n_ranges};
	struct cfi_cursor c = {section->data, section->data + section->len, false};
	struct entry e;
	int r = 0;

	while (r == 0 && next_entry(&s, &c, &e))
		r = e.is_cie ? add_cie(&s, &e) : add_fde(&s, &e);
	if (r < 0) {
		cfi_entries_deinit(&s.e);
		return r;
	}
	if (s.e.n_fdes > 0)
		qsort(s.e.fdes, s.e.n_fdes, sizeof(*s.e.fdes), compare_fdes);
	remove_overlap(&s.e);
	*ret = s.e;
	return 0;
}

void cfi_entries_deinit(struct cfi_entries *e)
{
	free(e->cies);
	free(e->fdes);
	*e = (struct cfi_entries){0};
}
