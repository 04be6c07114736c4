// SPDX-License-Identifier: GPL-2.0-or-later
/* The kernel's modules, from /proc/modules, and their files, from modules.dep. */
#include "sideband/hash.h"
#include "sideband/scan_internal.h"
#include "base/cleanup.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/utsname.h>

#define PROC_MODULES "/proc/modules"

struct module_path {
	UT_hash_handle hh;
	char name[64];
	char path[];
};

/* In "kernel/fs/fuse/cuse.ko.xz: …", the part before the colon is the file of the module cuse. A file name
   can have - where the name of the module has _. */
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
	_cleanup_free_ char *line = NULL;
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
	return all;
}

/* "fuse 184320 3 cuse, Live 0xffffffffc0a00000 (OE)" */
static int put_module(struct scan *s, const char *line, struct module_path *paths, const char *lib)
{
	char name[64], path[PATH_MAX];
	unsigned long long size, addr;
	struct module_path *m;
	int n;

	if (sscanf(line, "%63s %llu %*s %*s %*s 0x%llx", name, &size, &addr) != 3 || !addr || !size)
		return 0;
	HASH_FIND_STR(paths, name, m);
	n = m ? snprintf(path, sizeof(path), "%s/%s", lib, m->path)
	      : snprintf(path, sizeof(path), "[%s]", name);
	if (n < 0 || (size_t)n >= sizeof(path))
		return 0;
	return scan_put(s, fr_emit_kernel_mmap(&s->emit, &(struct fr_map_range){.addr = addr, .len = size},
				   path, (size_t)n));
}

int scan_modules(struct scan *s, FILE *modules, FILE *modules_dep, const char *lib)
{
	struct module_path *paths = read_deps(modules_dep);
	_cleanup_free_ char *line = NULL;
	size_t cap = 0;
	int r = 0;

	while (r == 0 && getline(&line, &cap, modules) > 0)
		r = put_module(s, line, paths, lib);
	FR_HASH_CLEAR(paths, free);
	return r;
}

int fr_scan_modules(const struct fr_scan_config *config, const char *modules_path, fr_scan_put put, void *ctx)
{
	_cleanup_fclose_ FILE *modules = fopen(modules_path ? modules_path : PROC_MODULES, "re");
	_cleanup_fclose_ FILE *deps = NULL;
	struct scan s = {.put = put, .ctx = ctx};
	char lib[128], path[160];
	struct utsname u;
	int r;

	if (!modules)
		return 0; /* a kernel without modules */
	s.emit = (struct fr_emit){.to = &s.record, .time_ns = config->time_ns, .id = config->id};
	uname(&u);
	snprintf(lib, sizeof(lib), "/lib/modules/%s", u.release);
	snprintf(path, sizeof(path), "%s/modules.dep", lib);
	deps = fopen(path, "re");
	r = scan_modules(&s, modules, deps, lib);
	fr_buf_deinit(&s.record);
	return r;
}

/* FNV-1a. */
static uint64_t add_to_digest(uint64_t digest, const char *s)
{
	for (; *s; s++)
		digest = (digest ^ (uint8_t)*s) * 0x100000001b3ULL;
	return digest;
}

int fr_modules_digest(const char *path, uint64_t *ret)
{
	_cleanup_fclose_ FILE *f = fopen(path ? path : PROC_MODULES, "re");
	_cleanup_free_ char *line = NULL;
	uint64_t digest = 0xcbf29ce484222325ULL;
	char name[64], size[24], addr[24];
	size_t cap = 0;

	if (!f)
		return -errno;
	/* The digest leaves out the number and the names of the users of a module, because they change
	   often. */
	while (getline(&line, &cap, f) > 0)
		if (sscanf(line, "%63s %23s %*s %*s %*s %23s", name, size, addr) == 3)
			digest = add_to_digest(add_to_digest(add_to_digest(digest, name), size), addr);
	*ret = digest;
	return 0;
}
