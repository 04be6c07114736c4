// SPDX-License-Identifier: GPL-2.0-or-later
/* The kernel's own text: its map, its modules, and what BPF has compiled. */
#include "sideband/blob.h"
#include "sideband/scan_bpf.h"
#include "sideband/scan_internal.h"
#include "base/cleanup.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#define KSYMBOLS_MAX 65536u
#define BPF_PACK (2ULL << 20) /* compiled programs stand in packs of this size and alignment */
#define BPF_IMAGE_MAX (64ULL << 10)
#define BPF_TRAMPOLINE_MAX 4096ULL /* a page */

struct ksymbol {
	uint64_t addr;
	char name[64];
};

struct kallsyms {
	uint64_t text, stext, edata, etext;
	struct ksymbol *bpf;
	size_t n_bpf, cap_bpf;
};

static int add_bpf(struct kallsyms *k, uint64_t addr, const char *name)
{
	struct ksymbol *grown;

	if (k->n_bpf == KSYMBOLS_MAX)
		return 0;
	if (k->n_bpf == k->cap_bpf) {
		k->cap_bpf = k->cap_bpf ? 2 * k->cap_bpf : 64;
		grown = realloc(k->bpf, k->cap_bpf * sizeof(*k->bpf));
		if (!grown)
			return -ENOMEM;
		k->bpf = grown;
	}
	k->bpf[k->n_bpf].addr = addr;
	snprintf(k->bpf[k->n_bpf].name, sizeof(k->bpf->name), "%s", name);
	k->n_bpf++;
	return 0;
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
		return strcmp(module, "[bpf]") == 0 ? add_bpf(k, addr, name) : 0;
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

/* The one whose name the map carries is the one that a reader finds the relocation of the kernel by. */
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

static int by_address(const void *a, const void *b)
{
	const struct ksymbol *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* kallsyms has no lengths. Where nobody tells, a program ends in front of the next one and inside its pack;
   what is between two is filled with traps, so nothing is ever sampled there. But a program that comes to
   stand there later is one that a reader finds a map for already, and names wrongly: so no longer than it may
   well be. */
static uint32_t guess_length(const struct kallsyms *k, size_t i)
{
	const struct ksymbol *b = &k->bpf[i];
	const uint64_t most = strncmp(b->name, "bpf_prog_", 9) ? BPF_TRAMPOLINE_MAX : BPF_IMAGE_MAX;
	uint64_t end = FR_ALIGN_UP(b->addr + 1, BPF_PACK);

	if (i + 1 < k->n_bpf && b[1].addr > b->addr)
		end = FR_MIN(end, b[1].addr);
	return (uint32_t)FR_MIN(end - b->addr, most);
}

static int put_ksymbols(struct scan *s, struct kallsyms *k)
{
	struct bpf_texts texts = {0};
	int r = 0;

	if (k->n_bpf) {
		qsort(k->bpf, k->n_bpf, sizeof(*k->bpf), by_address);
		r = bpf_texts_gather(&texts);
	}
	for (size_t i = 0; i < k->n_bpf && r == 0; i++) {
		const struct ksymbol *b = &k->bpf[i];
		uint32_t len = bpf_texts_length(&texts, b->addr);

		r = scan_put(s, fr_emit_ksymbol(&s->emit, b->addr, len ? len : guess_length(k, i),
					PERF_RECORD_KSYMBOL_TYPE_BPF, 0, b->name, strlen(b->name)));
	}
	bpf_texts_deinit(&texts);
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
	free(k.bpf);
	if (r < 0)
		return r;
	return k.text || k.stext ? 0 : 1;
}

struct module_path {
	UT_hash_handle hh;
	char name[64];
	char path[];
};

/* "kernel/fs/fuse/cuse.ko.xz: …": the module of that file is called cuse, with - for _ in file names. */
static struct module_path *parse_dep(char *line)
{
	char *colon = strchr(line, ':'), *base;
	struct module_path *m;
	size_t n;

	if (!colon)
		return NULL;
	*colon = '\0';
	base = strrchr(line, '/');
	base = base ? base + 1 : line;
	n = strcspn(base, ".");
	m = calloc(1, sizeof(*m) + strlen(line) + 1);
	if (!m || n >= sizeof(m->name)) {
		free(m);
		return NULL;
	}
	for (size_t i = 0; i < n; i++)
		m->name[i] = base[i] == '-' ? '_' : base[i];
	strcpy(m->path, line);
	return m;
}

static struct module_path *read_deps(FILE *f)
{
	struct module_path *all = NULL, *m, *old;
	char *line = NULL;
	size_t cap = 0;

	while (f && getline(&line, &cap, f) > 0) {
		m = parse_dep(line);
		if (!m)
			continue;
		HASH_FIND_STR(all, m->name, old);
		if (!old)
			HASH_ADD_STR(all, name, m);
		if (!m->hh.tbl)
			free(m);
	}
	free(line);
	return all;
}

static int put_module(struct scan *s, const char *line, struct module_path *paths, const char *lib)
{
	char name[64], path[PATH_MAX];
	struct fr_map_range r = {0};
	struct module_path *m;
	unsigned long long size, addr;
	int n;

	/* "fuse 184320 3 cuse, Live 0xffffffffc0a00000 (OE)" */
	if (sscanf(line, "%63s %llu %*s %*s %*s 0x%llx", name, &size, &addr) != 3 || !addr || !size)
		return 0;
	HASH_FIND_STR(paths, name, m);
	n = m ? snprintf(path, sizeof(path), "%s/%s", lib, m->path)
	      : snprintf(path, sizeof(path), "[%s]", name);
	if (n < 0 || (size_t)n >= sizeof(path))
		return 0;
	r.addr = addr;
	r.len = size;
	return scan_put(s, fr_emit_kernel_mmap(&s->emit, &r, path, (size_t)n));
}

/* FNV-1a. */
static uint64_t digest(uint64_t so_far, const char *s)
{
	for (; *s; s++)
		so_far = (so_far ^ (uint8_t)*s) * 0x100000001b3ULL;
	return so_far;
}

int fr_modules_digest(const char *path, uint64_t *ret)
{
	_cleanup_fclose_ FILE *f = fopen(path ? path : "/proc/modules", "re");
	uint64_t d = 0xcbf29ce484222325ULL;
	char name[64], size[24], addr[24];
	char *line = NULL;
	size_t cap = 0;

	if (!f)
		return -errno;
	/* Not the rest of a line: who uses a module changes all the time. */
	while (getline(&line, &cap, f) > 0)
		if (sscanf(line, "%63s %23s %*s %*s %*s %23s", name, size, addr) == 3)
			d = digest(digest(digest(d, name), size), addr);
	free(line);
	*ret = d;
	return 0;
}

int scan_modules(struct scan *s, FILE *modules, FILE *modules_dep, const char *lib)
{
	struct module_path *paths = read_deps(modules_dep), *m, *next;
	char *line = NULL;
	size_t cap = 0;
	int r = 0;

	while (r == 0 && getline(&line, &cap, modules) > 0)
		r = put_module(s, line, paths, lib);
	free(line);
	HASH_ITER (hh, paths, m, next) {
		HASH_DEL(paths, m);
		free(m);
	}
	return r;
}
