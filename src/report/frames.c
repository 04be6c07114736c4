// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/frames.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "perfdata/record.h"
#include "report/demangle.h"
#include "report/elf.h"
#include "report/symbols.h"
#include "sideband/blob.h"

#include <errno.h>
#include <string.h>

#define STRINGS_MAX (512u << 20)
#define FRAMES_MAX (1u << 24)
#define NO_FRAME UINT32_MAX
#define KERNEL "[kernel.kallsyms]"

/* An address that was looked up, and the place of its frames in `chains`. */
struct slot {
	uint64_t addr;
	uint32_t first, n; /* n 0: free */
};

/* An inlined function. Equal functions of one file have one name, in the memory of libdw. */
struct by_name {
	UT_hash_handle hh;
	const char *name;
	uint32_t frame;
};

struct object {
	struct fr_code_object o;
	uint32_t number;
	uint32_t pid; /* a process that mapped it */
	struct fr_symbols symbols;
	struct fr_elf *elf; /* NULL: it is no ELF file, or was not found */
	uint32_t *frame_of; /* of each symbol; NO_FRAME: has none yet */
	struct by_name *inlined;
	uint32_t unknown;   /* the frame of addresses without a symbol */
	struct slot *slots; /* a hash table with open addressing */
	size_t n_slots, slots_cap;
};

/* Maps of one file, and kernel modules, share an object. The blob is unique for them as long as it is referenced. */
struct by_file {
	UT_hash_handle hh;
	struct fr_blob *file;
	struct object *object;
};

/* Finds frames with the same names, which are one text in memory. */
struct same {
	UT_hash_handle hh;
	struct same_key {
		const char *name, *object;
	} key;
	uint32_t frame;
};

struct fr_frames {
	const struct fr_object_places *places;
	struct same *same;
	struct fr_blob_pool strings;
	struct by_file *by_file;
	struct object **objects;
	size_t n_objects;
	struct fr_frame *frames;
	size_t n_frames, frames_cap;
	struct fr_buf chains; /* uint32_t: frames of addresses */
	struct object *kernel, *nowhere;
	struct fr_buf kallsyms;
	bool has_read_kallsyms;
	/* What must be added to a recorded address of the kernel, to find it in kallsyms: not 0 if kallsyms is of
	   another boot. */
	uint64_t kernel_shift;
};

/* Returns a copy of TEXT that can be printed on any terminal, because files and processes choose these names. */
static const char *intern(struct fr_frames *f, const char *text, size_t len)
{
	_cleanup_free_ char *copy = strndup(text, len);
	const struct fr_blob *b;

	if (!copy)
		return NULL;
	fr_utf8_sanitize(copy);
	b = fr_blob_get(&f->strings, copy, strlen(copy) + 1);
	return b ? (const char *)b->data : NULL;
}

static int add_frame(struct fr_frames *f, const struct fr_frame *frame, uint32_t *ret)
{
	const struct same_key key = {frame->name, f->objects[frame->object]->o.short_name};
	struct same *same = FR_HASH_FIND(f->same, key, key);

	if (f->n_frames == f->frames_cap) {
		const size_t cap = f->frames_cap ? 2 * f->frames_cap : 1024;
		struct fr_frame *v = cap <= FRAMES_MAX ? reallocarray(f->frames, cap, sizeof(*v)) : NULL;

		if (!v)
			return -ENOMEM;
		f->frames = v;
		f->frames_cap = cap;
	}
	if (!same) {
		same = FR_HASH_NEW(f->same, key, key);
		if (!same)
			return -ENOMEM;
		same->frame = (uint32_t)f->n_frames;
	}
	*ret = (uint32_t)f->n_frames;
	f->frames[f->n_frames] = *frame;
	f->frames[f->n_frames++].same = same->frame;
	f->objects[frame->object]->o.n_frames++;
	return 0;
}

static struct object *add_object(
	struct fr_frames *f, enum fr_object_kind kind, const char *path, size_t len, const char *short_name)
{
	struct object **v = reallocarray(f->objects, f->n_objects + 1, sizeof(struct object *));
	struct object *o = v ? calloc(1, sizeof(*o)) : NULL;

	if (v)
		f->objects = v;
	if (!o)
		return NULL;
	o->o.kind = kind;
	o->o.path = intern(f, path, len);
	o->o.short_name = o->o.path && short_name ? intern(f, short_name, strlen(short_name)) : o->o.path;
	o->unknown = NO_FRAME;
	o->number = (uint32_t)f->n_objects;
	if (!o->o.short_name) {
		free(o);
		return NULL;
	}
	f->objects[f->n_objects++] = o;
	return o;
}

/* Copies the build-id of the kernel from the section BUILD_ID. */
static void find_kernel_id(const struct fr_session *session, struct fr_code_object *kernel)
{
	const struct fr_buf *section = &session->features[FR_FEATURE_BUILD_ID];
	struct fr_record_iter it = fr_record_iter(section->data, section->len);
	const struct fr_record_build_id *b;

	while ((b = fr_record_next_build_id(&it)))
		if (strcmp(b->filename, KERNEL) == 0) {
			kernel->build_id_len = FR_MIN((size_t)b->size, sizeof(kernel->build_id));
			memcpy(kernel->build_id, b->id, kernel->build_id_len);
		}
}

int fr_frames_new(
	const struct fr_object_places *places, const struct fr_session *session, struct fr_frames **ret)
{
	struct fr_frames *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->places = places;
	f->strings.bytes_max = STRINGS_MAX;
	f->kernel = add_object(f, FR_OBJECT_KERNEL, KERNEL, strlen(KERNEL), NULL);
	f->nowhere = add_object(f, FR_OBJECT_NONE, "[unknown]", 9, NULL);
	if (!f->kernel || !f->nowhere) {
		fr_frames_free(f);
		return -ENOMEM;
	}
	f->nowhere->o.is_loaded = true;
	find_kernel_id(session, &f->kernel->o);
	*ret = f;
	return 0;
}

struct fr_frames *fr_frames_free(struct fr_frames *f)
{
	if (!f)
		return NULL;
	FR_HASH_CLEAR(f->by_file, free);
	FR_HASH_CLEAR(f->same, free);
	for (size_t i = 0; i < f->n_objects; i++) {
		fr_symbols_deinit(&f->objects[i]->symbols);
		fr_elf_free(f->objects[i]->elf);
		FR_HASH_CLEAR(f->objects[i]->inlined, free);
		free(f->objects[i]->frame_of);
		free(f->objects[i]->slots);
		free(f->objects[i]);
	}
	while (f->strings.all)
		fr_blob_unref(&f->strings, f->strings.all);
	free(f->objects);
	free(f->frames);
	fr_buf_deinit(&f->chains);
	fr_buf_deinit(&f->kallsyms);
	free(f);
	return NULL;
}

/* --- loading symbols --- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static int load_file(struct fr_frames *f, struct object *o)
{
	const struct fr_wanted_object wanted = {o->o.path, o->o.build_id, o->o.build_id_len, o->pid};
	_cleanup_free_ char *path = NULL;
	int fd = fr_object_find_elf(f->places, &wanted, &path), r;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	r = fr_elf_open(fd, path, &o->elf);
	if (r < 0)
		return r == -ENOMEM ? r : 0; /* a damaged file has no symbols */
	r = fr_elf_add_symbols(o->elf, &o->symbols);
	o->o.found = intern(f, path, strlen(path));
	return r;
}

static void load_kallsyms(struct fr_frames *f, const struct fr_model *model)
{
	struct fr_model_map map;
	char symbol[64];
	uint64_t now;

	f->has_read_kallsyms = true;
	if (fr_object_find_kallsyms(f->places, f->kernel->o.build_id, f->kernel->o.build_id_len, &f->kallsyms) < 0 ||
		!fr_model_find_kernel_text(model, KERNEL, &map))
		return;
	/* The name of the map ends with the name of a symbol, whose address was PGOFF. */
	snprintf(symbol, sizeof(symbol), "%.*s", (int)(map.file->len - strlen(KERNEL)),
		(const char *)map.file->data + strlen(KERNEL));
	now = fr_kallsyms_find((const char *)f->kallsyms.data, f->kallsyms.len, symbol);
	f->kernel_shift = now && map.pgoff ? now - map.pgoff : 0;
}

static int load_kernel(struct fr_frames *f, struct object *o)
{
	_cleanup_free_ char *module = NULL;
	int r;

	/* The modules of another boot were at other addresses. */
	if (f->kallsyms.len == 0 || (o->o.kind == FR_OBJECT_MODULE && f->kernel_shift))
		return 0;
	/* The short name of a module is "[name]". */
	module = o->o.kind == FR_OBJECT_KERNEL ? strdup("")
					       : strndup(o->o.short_name + 1, strlen(o->o.short_name) - 2);
	if (!module)
		return -ENOMEM;
	r = fr_symbols_add_kallsyms(&o->symbols, (const char *)f->kallsyms.data, f->kallsyms.len, module);
	o->o.found = "kallsyms";
	return r;
}

/* Reads the symbols of O, once. Returns 0 or -ENOMEM. */
static int load(struct fr_frames *f, struct object *o)
{
	int r = 0;

	if (o->o.is_loaded)
		return 0;
	o->o.is_loaded = true;
	if (o->o.kind == FR_OBJECT_FILE)
		r = load_file(f, o);
	else if (o->o.kind == FR_OBJECT_KERNEL || o->o.kind == FR_OBJECT_MODULE)
		r = load_kernel(f, o);
	fr_symbols_finish(&o->symbols, o->o.kind != FR_OBJECT_FILE);
	o->frame_of = r < 0 ? NULL : malloc((o->symbols.n + 1) * sizeof(*o->frame_of));
	if (!o->frame_of)
		return -ENOMEM;
	memset(o->frame_of, 0xff, (o->symbols.n + 1) * sizeof(*o->frame_of));
	return 0;
}

/* --- from an address to its object --- */

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

static struct object *new_file(struct fr_frames *f, const struct fr_blob *blob, uint32_t pid)
{
	struct fr_model_file file;
	_cleanup_free_ char *path = NULL;
	struct object *o;

	fr_model_describe_file(blob, &file);
	path = strndup(file.path, file.path_len);
	o = path ? add_object(f, FR_OBJECT_FILE, path, strlen(path), base_name(path)) : NULL;
	if (o) {
		o->pid = pid;
		o->o.build_id_len = file.build_id_len;
		memcpy(o->o.build_id, file.build_id ? file.build_id : (const uint8_t *)"", file.build_id_len);
	}
	return o;
}

static struct object *new_module(struct fr_frames *f, const struct fr_blob *blob)
{
	_cleanup_free_ char *path = strndup((const char *)blob->data, blob->len), *name = NULL;

	if (!path)
		return NULL;
	name = module_name(path);
	return add_object(f, FR_OBJECT_MODULE, path, strlen(path), name);
}

/* Returns the object of a map, or NULL if there is no memory. PID 0: a map of the kernel. */
static struct object *find_object(struct fr_frames *f, const struct fr_model_map *map, uint32_t pid)
{
	struct by_file *b = FR_HASH_FIND(f->by_file, file, map->file);

	if (b)
		return b->object;
	b = FR_HASH_NEW(f->by_file, file, fr_blob_ref(map->file));
	if (!b)
		return NULL;
	if (pid)
		b->object = new_file(f, map->file, pid);
	else if (map->file->len >= strlen(KERNEL) && memcmp(map->file->data, KERNEL, strlen(KERNEL)) == 0)
		b->object = f->kernel;
	else
		b->object = new_module(f, map->file);
	return b->object;
}

/* Returns the object of a BPF program in kernel memory: it is its own symbol. */
static struct object *find_bpf(struct fr_frames *f, const struct fr_blob *name, uint64_t start)
{
	const struct fr_model_map map = {.start = start, .file = (struct fr_blob *)name};
	struct by_file *b = FR_HASH_FIND(f->by_file, file, map.file);

	if (b)
		return b->object;
	b = FR_HASH_NEW(f->by_file, file, fr_blob_ref(map.file));
	if (b)
		b->object = add_object(f, FR_OBJECT_BPF, (const char *)name->data, name->len, NULL);
	if (b && b->object)
		(void)fr_symbols_add(
			&b->object->symbols, 0, UINT32_MAX, false, true, (const char *)name->data, name->len);
	return b ? b->object : NULL;
}

/* Finds the object that has ADDR. *ADDR becomes the address by which the symbols of the object are found. Returns
   NULL if there is no memory. */
static struct object *locate(
	struct fr_frames *f, const struct fr_model *model, uint32_t pid, uint16_t mode, uint64_t *addr)
{
	const struct fr_blob *ksymbol;
	struct fr_model_map map;
	uint64_t start;
	struct object *o;

	if (mode == PERF_RECORD_MISC_USER) {
		if (!fr_model_find_map(model, pid, *addr, &map))
			return f->nowhere;
		*addr = *addr - map.start + map.pgoff;
		return find_object(f, &map, pid);
	}
	if (mode != PERF_RECORD_MISC_KERNEL)
		return f->nowhere;
	if (!fr_model_find_kernel_map(model, *addr, &map)) {
		ksymbol = fr_model_find_ksymbol(model, *addr, &start);
		if (!ksymbol)
			return f->nowhere;
		*addr -= start;
		return find_bpf(f, ksymbol, start);
	}
	if (!f->has_read_kallsyms)
		load_kallsyms(f, model);
	o = find_object(f, &map, 0);
	if (o == f->kernel)
		*addr += f->kernel_shift;
	return o;
}

/* --- from an address in an object to its frames --- */

static size_t find_slot(const struct object *o, uint64_t addr)
{
	size_t i = (size_t)((addr * 0x9e3779b97f4a7c15ULL) >> 24) & (o->slots_cap - 1);

	while (o->slots[i].n && o->slots[i].addr != addr)
		i = (i + 1) & (o->slots_cap - 1);
	return i;
}

static int grow_slots(struct object *o)
{
	struct object old = *o;

	o->slots_cap = old.slots_cap ? 2 * old.slots_cap : 64;
	o->slots = calloc(o->slots_cap, sizeof(*o->slots));
	if (!o->slots) {
		*o = old;
		return -ENOMEM;
	}
	for (size_t i = 0; i < old.slots_cap; i++)
		if (old.slots[i].n)
			o->slots[find_slot(o, old.slots[i].addr)] = old.slots[i];
	free(old.slots);
	return 0;
}

/* Returns the frame of addresses of O that have no symbol. */
static int get_unknown(struct fr_frames *f, struct object *o, uint32_t *ret)
{
	struct fr_frame frame = {.object = o->number};
	_cleanup_free_ char *name = NULL;
	int r;

	if (o->unknown == NO_FRAME) {
		if (o->o.short_name[0] != '[' && asprintf(&name, "[%s]", o->o.short_name) < 0)
			return -ENOMEM;
		frame.name = name ? intern(f, name, strlen(name)) : o->o.short_name;
		r = frame.name ? add_frame(f, &frame, &o->unknown) : -ENOMEM;
		if (r < 0)
			return r;
	}
	*ret = o->unknown;
	return 0;
}

/* Adds a frame with the function NAME of O. */
static int add_function(struct fr_frames *f, const struct object *o, const char *name, bool is_inlined, uint32_t *ret)
{
	_cleanup_free_ char *plain = fr_demangle(name);
	struct fr_frame frame = {.object = o->number, .is_known = true, .is_inlined = is_inlined};

	frame.name = plain ? intern(f, plain, strlen(plain)) : intern(f, name, strlen(name));
	return frame.name ? add_frame(f, &frame, ret) : -ENOMEM;
}

/* Returns the frame of an inlined function, which is looked up by its name. */
static int get_inlined_frame(struct fr_frames *f, struct object *o, const char *name, uint32_t *ret)
{
	struct by_name *n = FR_HASH_FIND(o->inlined, name, name);
	int r;

	if (!n) {
		n = FR_HASH_NEW(o->inlined, name, name);
		r = n ? add_function(f, o, name, true, &n->frame) : -ENOMEM;
		if (r < 0)
			return r;
	}
	*ret = n->frame;
	return 0;
}

/* Appends a frame to `chains`, for FOUND. */
static int append(struct fr_frames *f, struct slot *found, uint32_t frame)
{
	found->n++;
	return fr_buf_append_u32(&f->chains, frame);
}

static int append_inlined(struct fr_frames *f, struct object *o, uint64_t addr, struct slot *found)
{
	const char *names[FR_FRAMES_AT_ONE_ADDRESS - 1];
	const int n = o->elf && !f->places->no_inlines ? fr_elf_find_inlined(o->elf, addr, names, FR_ARRAY_SIZE(names)) : 0;
	uint32_t frame;
	int r = FR_MIN(n, 0);

	for (int i = 0; i < n && r == 0; i++) {
		r = get_inlined_frame(f, o, names[i], &frame);
		if (r == 0)
			r = append(f, found, frame);
	}
	return r;
}

/* Finds the frames at ADDR of O, and notes them in `chains`. */
static int look_up(struct fr_frames *f, struct object *o, uint64_t addr, struct slot *ret)
{
	const struct fr_symbol *symbol;
	uint32_t frame, *known;
	int r = load(f, o);

	if (r < 0)
		return r;
	*ret = (struct slot){addr, (uint32_t)(f->chains.len / sizeof(frame)), 0};
	symbol = fr_symbols_find(&o->symbols, addr);
	if (!symbol) {
		r = get_unknown(f, o, &frame);
		return r < 0 ? r : append(f, ret, frame);
	}
	known = &o->frame_of[symbol - o->symbols.v];
	if (*known == NO_FRAME)
		r = add_function(f, o, fr_symbols_name(&o->symbols, symbol), false, known);
	if (r == 0)
		r = append(f, ret, *known);
	return r < 0 ? r : append_inlined(f, o, addr, ret);
}

int fr_frames_find(struct fr_frames *f, const struct fr_model *model, uint32_t pid, uint64_t addr, uint16_t mode,
	uint32_t ret[static FR_FRAMES_AT_ONE_ADDRESS])
{
	struct object *o = locate(f, model, pid, mode, &addr);
	struct slot found;
	size_t i;
	int r;

	if (!o || (o->n_slots * 2 >= o->slots_cap && grow_slots(o) < 0))
		return -ENOMEM;
	if (o == f->nowhere)
		addr = 0;
	i = find_slot(o, addr);
	if (!o->slots[i].n) {
		r = look_up(f, o, addr, &found);
		if (r < 0)
			return r;
		o->slots[i] = found;
		o->n_slots++;
	}
	memcpy(ret, f->chains.data + o->slots[i].first * sizeof(*ret), o->slots[i].n * sizeof(*ret));
	return (int)o->slots[i].n;
}

size_t fr_frames_n(const struct fr_frames *f)
{
	return f->n_frames;
}

const struct fr_frame *fr_frames_get(const struct fr_frames *f, uint32_t frame)
{
	return &f->frames[frame];
}

size_t fr_frames_n_objects(const struct fr_frames *f)
{
	return f->n_objects;
}

const struct fr_code_object *fr_frames_object(const struct fr_frames *f, uint32_t object)
{
	return &f->objects[object]->o;
}
