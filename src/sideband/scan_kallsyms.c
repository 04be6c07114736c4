// SPDX-License-Identifier: GPL-2.0-or-later
/* The kernel's map and the compiled BPF programs, from /proc/kallsyms. */
#include "sideband/scan_internal.h"
#include "base/cleanup.h"

#include <bpf/bpf.h>
#include <stdlib.h>
#include <string.h>

#define KSYMBOLS_MAX 65536u
#define TEXTS_MAX 65536u
#define FUNCTIONS_MAX 1024u   /* functions of one BPF program */
#define BPF_PACK (2ULL << 20) /* the kernel puts compiled programs into packs of this size and alignment */
#define BPF_IMAGE_MAX (64ULL << 10)
#define BPF_TRAMPOLINE_MAX 4096ULL /* a page */

struct ksymbol {
	uint64_t addr;
	char name[64];
};

struct kallsyms {
	uint64_t text, stext, edata, etext;
	struct fr_buf bpf; /* struct ksymbol */
};

/* One function of a BPF program. /proc/kallsyms does not have its length. */
struct bpf_text {
	uint64_t addr;
	uint32_t len;
};

/* Compares two struct ksymbol or two struct bpf_text. Each struct begins with its address. */
static int by_address(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Appends the functions of the program FD, if the kernel shows their addresses. Returns 0 or -ENOMEM. */
static int add_program(struct fr_buf *texts, int fd)
{
	uint64_t addrs[FUNCTIONS_MAX];
	uint32_t lens[FUNCTIONS_MAX], n;
	struct bpf_prog_info info = {.jited_ksyms = (uintptr_t)addrs,
		.jited_func_lens = (uintptr_t)lens,
		.nr_jited_ksyms = FUNCTIONS_MAX,
		.nr_jited_func_lens = FUNCTIONS_MAX};
	uint32_t size = sizeof(info);
	int r = 0;

	if (bpf_obj_get_info_by_fd(fd, &info, &size) < 0)
		return 0;
	n = FR_MIN(info.nr_jited_ksyms, info.nr_jited_func_lens);
	for (uint32_t i = 0; i < FR_MIN(n, FUNCTIONS_MAX) && r == 0; i++)
		if (addrs[i] && lens[i])
			r = fr_buf_append(
				texts, &(struct bpf_text){addrs[i], lens[i]}, sizeof(struct bpf_text));
	return r;
}

/* Appends every function of every loaded program, sorted by address. Returns 0, also if we are not permitted
   to see the programs; or -ENOMEM. */
static int collect_bpf_texts(struct fr_buf *texts)
{
	uint32_t id = 0;
	int r = 0;

	while (r == 0 && texts->len < TEXTS_MAX * sizeof(struct bpf_text) &&
		bpf_prog_get_next_id(id, &id) == 0) {
		_cleanup_close_ int fd = bpf_prog_get_fd_by_id(id);

		if (fd >= 0)
			r = add_program(texts, fd);
	}
	if (texts->len)
		qsort(texts->data, texts->len / sizeof(struct bpf_text), sizeof(struct bpf_text), by_address);
	return r;
}

static int add_ksymbol(struct kallsyms *k, uint64_t addr, const char *name)
{
	struct ksymbol s = {.addr = addr};

	if (k->bpf.len >= KSYMBOLS_MAX * sizeof(s))
		return 0;
	snprintf(s.name, sizeof(s.name), "%s", name);
	return fr_buf_append(&k->bpf, &s, sizeof(s));
}

/* "ffffffff81000000 T _text", "ffffffffc0000000 t bpf_prog_6deef7357e7b4530<TAB>[bpf]" */
static int parse_symbol(struct kallsyms *k, char *line)
{
	char *name, *module, *end;
	uint64_t addr = strtoull(line, &end, 16);

	if (end == line || addr == 0 || end[0] != ' ' || !end[1] || end[2] != ' ')
		return 0;
	name = end + 3;
	name[strcspn(name, "\n")] = '\0';
	module = strchr(name, '\t');
	if (module) {
		*module++ = '\0';
		return strcmp(module, "[bpf]") == 0 ? add_ksymbol(k, addr, name) : 0;
	}
	if (name[0] != '_')
		return 0;
	if (!strcmp(name, "_text"))
		k->text = addr;
	else if (!strcmp(name, "_stext"))
		k->stext = addr;
	else if (!strcmp(name, "_edata"))
		k->edata = addr;
	else if (!strcmp(name, "_etext"))
		k->etext = addr;
	return 0;
}

/* The name of the map ends with the name of a symbol, and the map begins at the address of this symbol. From
   name and address, a reader computes how far the kernel was relocated. */
static int put_kernel_map(struct scan *s, const struct kallsyms *k)
{
	const char *name = k->text ? "[kernel.kallsyms]_text" : "[kernel.kallsyms]_stext";
	uint64_t start = k->text ? k->text : k->stext;
	uint64_t end = k->edata ? k->edata : k->etext;
	struct fr_map_range r = {.addr = start, .len = end - start, .pgoff = start};

	if (!start)
		return 0;
	if (end <= start)
		r.len = UINT64_MAX - start;
	return scan_put(s, fr_emit_kernel_mmap(&s->emit, &r, name, strlen(name)));
}

/* Guesses the length of the symbol B, because the kernel does not show it. NEXT is the next symbol (NULL: B
   is the last symbol). A symbol ends before the next symbol and inside its pack (BPF_PACK). The guess must
   not be too long: if another program is loaded after B in memory, a reader would take the samples of that
   program for samples of B. */
static uint32_t guess_length(const struct ksymbol *b, const struct ksymbol *next)
{
	const uint64_t most = strncmp(b->name, "bpf_prog_", 9) ? BPF_TRAMPOLINE_MAX : BPF_IMAGE_MAX;
	uint64_t end = FR_ALIGN_UP(b->addr + 1, BPF_PACK);

	if (next && next->addr > b->addr)
		end = FR_MIN(end, next->addr);
	return (uint32_t)FR_MIN(end - b->addr, most);
}

static int put_ksymbols(struct scan *s, struct kallsyms *k)
{
	const size_t n = k->bpf.len / sizeof(struct ksymbol);
	struct ksymbol *v = (struct ksymbol *)k->bpf.data;
	_cleanup_buf_ struct fr_buf texts = {0};
	int r;

	if (n == 0)
		return 0;
	qsort(v, n, sizeof(*v), by_address);
	r = collect_bpf_texts(&texts);
	for (size_t i = 0; i < n && r == 0; i++) {
		const struct bpf_text *t = texts.len ? bsearch(&v[i].addr, texts.data, texts.len / sizeof(*t),
							       sizeof(*t), by_address)
						     : NULL;
		uint32_t len = t ? t->len : guess_length(&v[i], i + 1 < n ? &v[i + 1] : NULL);

		r = scan_put(s, fr_emit_ksymbol(&s->emit, v[i].addr, len, PERF_RECORD_KSYMBOL_TYPE_BPF, 0,
					v[i].name, strlen(v[i].name)));
	}
	return r;
}

int scan_kallsyms(struct scan *s, FILE *f)
{
	struct kallsyms k = {0};
	char line[1024];
	int r = 0;

	while (r == 0 && fgets(line, sizeof(line), f))
		r = parse_symbol(&k, line);
	if (r == 0)
		r = put_kernel_map(s, &k);
	if (r == 0)
		r = put_ksymbols(s, &k);
	fr_buf_deinit(&k.bpf);
	if (r < 0)
		return r;
	return k.text || k.stext ? 0 : 1;
}
