// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/code_objects.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "perfdata/record.h"
#include "report/elf.h"
#include "report/head_ids.h"
#include "sideband/blob.h"

#include <errno.h>
#include <string.h>

#define STRINGS_MAX (128u << 20)
#define KERNEL "[kernel.kallsyms]"

/* Maps of one file, and kernel modules, share an object. The blob is unique for them as long as it is
   referenced. */
struct by_file {
	UT_hash_handle hh;
	const void *file; /* a struct fr_blob, which is referenced */
	struct fr_code_object *object;
};

struct fr_code_objects {
	const struct fr_object_places *places;
	struct fr_head_ids *head_ids;
	struct fr_blob_pool strings;
	struct by_file *by_file;
	struct fr_code_object **v;
	size_t n;
	struct fr_code_object *kernel, *nowhere;
	struct fr_buf kallsyms;
	bool has_read_kallsyms;
	/* What must be added to a recorded address of the kernel, to find it in kallsyms: not 0 if kallsyms
	   is of another boot. */
	uint64_t kernel_shift;
};

const char *fr_code_objects_intern(struct fr_code_objects *c, const char *text, size_t len)
{
	_cleanup_free_ char *copy = strndup(text, len);
	const struct fr_blob *b;

	if (!copy)
		return NULL;
	fr_utf8_sanitize(copy);
	b = fr_blob_get(&c->strings, copy, strlen(copy) + 1);
	return b ? (const char *)b->data : NULL;
}

static struct fr_code_object *add_object(struct fr_code_objects *c, enum fr_object_kind kind,
	const char *path, size_t len, const char *short_name)
{
	struct fr_code_object **v = reallocarray(c->v, c->n + 1, sizeof(struct fr_code_object *));
	struct fr_code_object *o = v ? calloc(1, sizeof(*o)) : NULL;

	if (v)
		c->v = v;
	if (!o)
		return NULL;
	o->kind = kind;
	o->path = fr_code_objects_intern(c, path, len);
	o->short_name =
		o->path && short_name ? fr_code_objects_intern(c, short_name, strlen(short_name)) : o->path;
	o->number = (uint32_t)c->n;
	if (!o->short_name) {
		free(o);
		return NULL;
	}
	c->v[c->n++] = o;
	return o;
}

int fr_code_objects_new(
	const struct fr_object_places *places, const struct fr_session *session, struct fr_code_objects **ret)
{
	struct fr_code_objects *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->places = places;
	c->strings.bytes_max = STRINGS_MAX;
	c->kernel = add_object(c, FR_OBJECT_KERNEL, KERNEL, strlen(KERNEL), NULL);
	c->nowhere = add_object(c, FR_OBJECT_NONE, "[unknown]", 9, NULL);
	if (!c->kernel || !c->nowhere || fr_head_ids_new(session, &c->head_ids) < 0) {
		fr_code_objects_free(c);
		return -ENOMEM;
	}
	c->nowhere->is_loaded = true;
	c->kernel->build_id_len = fr_head_ids_find(c->head_ids, KERNEL, strlen(KERNEL), c->kernel->build_id);
	*ret = c;
	return 0;
}

struct fr_code_objects *fr_code_objects_free(struct fr_code_objects *c)
{
	if (!c)
		return NULL;
	FR_HASH_CLEAR(c->by_file, free);
	for (size_t i = 0; i < c->n; i++) {
		fr_symbols_deinit(&c->v[i]->symbols);
		fr_elf_free(c->v[i]->elf);
		free(c->v[i]);
	}
	while (c->strings.all)
		fr_blob_unref(&c->strings, c->strings.all);
	free(c->v);
	fr_head_ids_free(c->head_ids);
	fr_buf_deinit(&c->kallsyms);
	free(c);
	return NULL;
}

/* --- loading symbols --- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static int load_file(struct fr_code_objects *c, struct fr_code_object *o)
{
	const struct fr_wanted_object wanted = {o->path, o->build_id, o->build_id_len, o->pid};
	_cleanup_free_ char *path = NULL;
	int fd = fr_object_find_elf(c->places, &wanted, &path), r;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	r = fr_elf_open(fd, path, o->path, c->places, &o->elf);
	if (r < 0)
		return r == -ENOMEM ? r : 0; /* a damaged file has no symbols */
	r = fr_elf_add_symbols(o->elf, &o->symbols);
	o->found = fr_code_objects_intern(c, path, strlen(path));
	return r;
}

static void load_kallsyms(struct fr_code_objects *c, const struct fr_model *model)
{
	struct fr_model_map map;
	char symbol[64];
	uint64_t now;

	c->has_read_kallsyms = true;
	if (fr_object_find_kallsyms(c->places, c->kernel->build_id, c->kernel->build_id_len, &c->kallsyms) <
			0 ||
		!fr_model_find_kernel_text(model, KERNEL, &map))
		return;
	/* The name of the map ends with the name of a symbol, whose address was PGOFF. */
	snprintf(symbol, sizeof(symbol), "%.*s", (int)(map.file->len - strlen(KERNEL)),
		(const char *)map.file->data + strlen(KERNEL));
	now = fr_kallsyms_find((const char *)c->kallsyms.data, c->kallsyms.len, symbol);
	c->kernel_shift = now && map.pgoff ? now - map.pgoff : 0;
}

static int load_kernel(struct fr_code_objects *c, struct fr_code_object *o)
{
	_cleanup_free_ char *module = NULL;
	int r;

	/* The modules of another boot were at other addresses. */
	if (c->kallsyms.len == 0 || (o->kind == FR_OBJECT_MODULE && c->kernel_shift))
		return 0;
	/* The short name of a module is "[name]". */
	module = o->kind == FR_OBJECT_KERNEL ? strdup("")
					     : strndup(o->short_name + 1, strlen(o->short_name) - 2);
	if (!module)
		return -ENOMEM;
	r = fr_symbols_add_kallsyms(&o->symbols, (const char *)c->kallsyms.data, c->kallsyms.len, module);
	o->found = "kallsyms";
	return r;
}

int fr_code_objects_load(struct fr_code_objects *c, struct fr_code_object *o)
{
	int r = 0;

	if (o->is_loaded)
		return 0;
	o->is_loaded = true;
	if (o->kind == FR_OBJECT_FILE)
		r = load_file(c, o);
	else if (o->kind == FR_OBJECT_KERNEL || o->kind == FR_OBJECT_MODULE)
		r = load_kernel(c, o);
	fr_symbols_finish(&o->symbols, o->kind != FR_OBJECT_FILE);
	return r;
}

/* --- from an address to its object --- */

/* Functions use at most half of the strings (frames.h), so that there is room for the paths of
   objects. */
static bool has_room_for_object(const struct fr_code_objects *c)
{
	return c->n < FR_CODE_OBJECTS_MAX && c->strings.bytes < STRINGS_MAX - FR_RECORD_MAX;
}

/* Makes "[ext4]" of a module's path, or returns NULL for a name that is in brackets already. */
static char *module_name(const char *path)
{
	const char *name = base_name(path);
	char *ret = NULL;

	if (path[0] == '[' || asprintf(&ret, "[%.*s]", (int)strcspn(name, "."), name) < 0)
		return NULL;
	for (char *p = ret; *p; p++)
		if (*p == '-')
			*p = '_';
	return ret;
}

static struct fr_code_object *new_file(struct fr_code_objects *c, const struct fr_blob *blob, uint32_t pid)
{
	struct fr_model_file file;
	_cleanup_free_ char *path = NULL;
	struct fr_code_object *o;

	fr_model_describe_file(blob, &file);
	path = strndup(file.path, file.path_len);
	o = path ? add_object(c, FR_OBJECT_FILE, path, strlen(path), base_name(path)) : NULL;
	if (o) {
		o->pid = pid;
		o->build_id_len = file.build_id_len;
		if (file.build_id)
			memcpy(o->build_id, file.build_id, file.build_id_len);
		else
			o->build_id_len =
				fr_head_ids_find(c->head_ids, file.path, file.path_len, o->build_id);
	}
	return o;
}

static struct fr_code_object *new_module(struct fr_code_objects *c, const struct fr_blob *blob)
{
	_cleanup_free_ char *path = strndup((const char *)blob->data, blob->len), *name = NULL;

	if (!path)
		return NULL;
	name = module_name(path);
	return add_object(c, FR_OBJECT_MODULE, path, strlen(path), name);
}

/* Returns the object of a map, or NULL if there is no memory. PID 0: a map of the kernel. */
static struct fr_code_object *find_object(
	struct fr_code_objects *c, const struct fr_model_map *map, uint32_t pid)
{
	struct by_file *b = FR_HASH_FIND(c->by_file, file, map->file);

	if (b)
		return b->object;
	if (!has_room_for_object(c))
		return c->nowhere;
	b = FR_HASH_NEW(c->by_file, file, fr_blob_ref(map->file));
	if (!b)
		return NULL;
	if (pid)
		b->object = new_file(c, map->file, pid);
	else if (map->file->len >= strlen(KERNEL) && memcmp(map->file->data, KERNEL, strlen(KERNEL)) == 0)
		b->object = c->kernel;
	else
		b->object = new_module(c, map->file);
	return b->object;
}

/* Returns the object of a BPF program in kernel memory: it is its own symbol. */
static struct fr_code_object *find_bpf(struct fr_code_objects *c, const struct fr_blob *name, uint64_t start)
{
	const struct fr_model_map map = {.start = start, .file = (struct fr_blob *)name};
	struct by_file *b = FR_HASH_FIND(c->by_file, file, map.file);

	if (b)
		return b->object;
	if (!has_room_for_object(c))
		return c->nowhere;
	b = FR_HASH_NEW(c->by_file, file, fr_blob_ref(map.file));
	if (b)
		b->object = add_object(c, FR_OBJECT_BPF, (const char *)name->data, name->len, NULL);
	if (b && b->object)
		(void)fr_symbols_add(
			&b->object->symbols, 0, UINT32_MAX, false, true, (const char *)name->data, name->len);
	return b ? b->object : NULL;
}

/* The map of the kernel ends with its text, and the code that it runs only at its start is behind it. */
static struct fr_code_object *locate_in_kernel(struct fr_code_objects *c, uint64_t *addr)
{
	const uint64_t shifted = *addr + c->kernel_shift;

	if (fr_code_objects_load(c, c->kernel) < 0)
		return NULL;
	if (!fr_symbols_find(&c->kernel->symbols, shifted))
		return c->nowhere;
	*addr = shifted;
	return c->kernel;
}

struct fr_code_object *fr_code_objects_locate(
	struct fr_code_objects *c, const struct fr_model *model, uint32_t pid, uint16_t mode, uint64_t *addr)
{
	const struct fr_blob *ksymbol;
	struct fr_model_map map;
	uint64_t start;
	struct fr_code_object *o;

	if (mode == PERF_RECORD_MISC_USER) {
		if (!fr_model_find_map(model, pid, *addr, &map))
			return c->nowhere;
		*addr = *addr - map.start + map.pgoff;
		return find_object(c, &map, pid);
	}
	if (mode != PERF_RECORD_MISC_KERNEL)
		return c->nowhere;
	if (!c->has_read_kallsyms)
		load_kallsyms(c, model);
	if (!fr_model_find_kernel_map(model, *addr, &map)) {
		ksymbol = fr_model_find_ksymbol(model, *addr, &start);
		if (!ksymbol)
			return locate_in_kernel(c, addr);
		*addr -= start;
		return find_bpf(c, ksymbol, start);
	}
	o = find_object(c, &map, 0);
	if (o == c->kernel)
		*addr += c->kernel_shift;
	return o;
}

size_t fr_code_objects_n(const struct fr_code_objects *c)
{
	return c->n;
}

struct fr_code_object *fr_code_objects_get(const struct fr_code_objects *c, uint32_t number)
{
	return c->v[number];
}

bool fr_code_objects_are_names_full(const struct fr_code_objects *c)
{
	return c->strings.bytes >= STRINGS_MAX / 2;
}
