// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/frames.h"
#include "base/cleanup.h"
#include "report/demangle.h"
#include "report/elf.h"
#include "sideband/hash.h"

#include <errno.h>
#include <string.h>

#define FRAMES_MAX (1u << 20)
#define SLOTS_MAX (1u << 20) /* addresses that are known at a time, in all objects */
#define NO_FRAME UINT32_MAX
#define PADDING "__pfx_" /* the name of the padding in front of a function of the kernel begins so */

/* An address that was looked up, and the place of its frames in `chains`. */
struct slot {
	uint64_t key;	   /* see make_key() */
	uint32_t first, n; /* n 0: free */
};

/* An inlined function. Equal functions of one file have one name, in the memory of libdw. */
struct by_name {
	UT_hash_handle hh;
	const char *name;
	uint32_t frame;
};

/* What is known of the addresses of an object. */
struct known {
	struct fr_code_object *object;
	uint32_t *frame_of; /* of each symbol; NO_FRAME: has none yet */
	struct by_name *inlined;
	uint32_t unknown;   /* the frame of addresses without a symbol */
	struct slot *slots; /* a hash table with open addressing */
	size_t n_slots, slots_cap;
};

/* Finds frames with the same names, which are one text in memory. */
struct same {
	UT_hash_handle hh;
	struct same_key {
		uintptr_t name, object; /* the addresses of the texts */
	} key;
	uint32_t frame;
};

struct fr_frames {
	const struct fr_object_places *places;
	struct fr_code_objects *objects;
	struct known *known; /* of each object */
	size_t n_known;
	struct same *same;
	struct fr_frame *frames;
	size_t n_frames, frames_cap;
	struct fr_buf chains; /* uint32_t: frames of addresses */
	size_t n_slots;	      /* in all objects */
};

int fr_frames_new(
	const struct fr_object_places *places, const struct fr_session *session, struct fr_frames **ret)
{
	struct fr_frames *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->places = places;
	if (fr_code_objects_new(places, session, &f->objects) < 0) {
		free(f);
		return -ENOMEM;
	}
	*ret = f;
	return 0;
}

struct fr_frames *fr_frames_free(struct fr_frames *f)
{
	if (!f)
		return NULL;
	FR_HASH_CLEAR(f->same, free);
	for (size_t i = 0; i < f->n_known; i++) {
		FR_HASH_CLEAR(f->known[i].inlined, free);
		free(f->known[i].frame_of);
		free(f->known[i].slots);
	}
	free(f->known);
	free(f->frames);
	fr_buf_deinit(&f->chains);
	fr_code_objects_free(f->objects);
	free(f);
	return NULL;
}

/* Returns what is known of O, or NULL if there is no memory. Valid until the next call. */
static struct known *find_known(struct fr_frames *f, struct fr_code_object *o)
{
	const size_t n = fr_code_objects_n(f->objects);
	struct known *v;

	if (f->n_known < n) {
		v = reallocarray(f->known, n, sizeof(*v));
		if (!v)
			return NULL;
		f->known = v;
		for (; f->n_known < n; f->n_known++)
			v[f->n_known] = (struct known){
				.object = fr_code_objects_get(f->objects, (uint32_t)f->n_known),
				.unknown = NO_FRAME};
	}
	return &f->known[o->number];
}

static int add_frame(struct fr_frames *f, const struct fr_frame *frame, uint32_t *ret)
{
	struct same_key key;
	struct same *same;

	memset(&key, 0, sizeof(key)); /* it is compared as bytes */
	key.name = (uintptr_t)frame->name;
	key.object = (uintptr_t)fr_code_objects_get(f->objects, frame->object)->short_name;
	/* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): all bytes of the key are set */
	same = FR_HASH_FIND(f->same, key, key);
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
	fr_code_objects_get(f->objects, frame->object)->n_frames++;
	return 0;
}

/* The highest bit of an address in an object says nothing: it is set in all addresses of the kernel. */
static uint64_t make_key(uint64_t addr, bool is_return)
{
	return addr << 1 | is_return;
}

static size_t find_slot(const struct known *o, uint64_t key)
{
	size_t i = (size_t)((key * 0x9e3779b97f4a7c15ULL) >> 24) & (o->slots_cap - 1);

	while (o->slots[i].n && o->slots[i].key != key)
		i = (i + 1) & (o->slots_cap - 1);
	return i;
}

static int grow_slots(struct known *o)
{
	struct known old = *o;

	o->slots_cap = old.slots_cap ? 2 * old.slots_cap : 64;
	o->slots = calloc(o->slots_cap, sizeof(*o->slots));
	if (!o->slots) {
		*o = old;
		return -ENOMEM;
	}
	for (size_t i = 0; i < old.slots_cap; i++)
		if (old.slots[i].n)
			o->slots[find_slot(o, old.slots[i].key)] = old.slots[i];
	free(old.slots);
	return 0;
}

/* Forgets all addresses; frames stay. So a file with very many addresses is read in limited memory. */
static void forget_slots(struct fr_frames *f)
{
	for (size_t i = 0; i < f->n_known; i++) {
		struct known *o = &f->known[i];

		free(o->slots);
		o->slots = NULL;
		o->n_slots = o->slots_cap = 0;
	}
	f->n_slots = f->chains.len = 0;
}

/* Returns the frame of addresses of O that have no symbol. */
static int get_unknown(struct fr_frames *f, struct known *o, uint32_t *ret)
{
	const char *object = o->object->short_name;
	struct fr_frame frame = {.object = o->object->number};
	_cleanup_free_ char *name = NULL;
	int r;

	if (o->unknown == NO_FRAME) {
		if (object[0] != '[' && asprintf(&name, "[%s]", object) < 0)
			return -ENOMEM;
		frame.name = name ? fr_code_objects_intern(f->objects, name, strlen(name)) : NULL;
		frame.name = frame.name ? frame.name : object;
		r = add_frame(f, &frame, &o->unknown);
		if (r < 0)
			return r;
	}
	*ret = o->unknown;
	return 0;
}

/* Adds a frame with the function NAME of O. If there are too many functions, RET is the frame of addresses
   without a symbol. */
static int add_function(
	struct fr_frames *f, struct known *o, const char *name, bool is_inlined, uint32_t *ret)
{
	_cleanup_free_ char *plain = NULL;
	struct fr_frame frame = {.object = o->object->number, .is_known = true, .is_inlined = is_inlined};

	if (f->n_frames >= FRAMES_MAX - FR_CODE_OBJECTS_MAX || fr_code_objects_are_names_full(f->objects))
		return get_unknown(f, o, ret);
	plain = fr_demangle(name);
	name = plain ? plain : name;
	frame.name = fr_code_objects_intern(f->objects, name, strlen(name));
	return frame.name ? add_frame(f, &frame, ret) : -ENOMEM;
}

/* Returns the frame of an inlined function, which is looked up by its name. */
static int get_inlined_frame(struct fr_frames *f, struct known *o, const char *name, uint32_t *ret)
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

static int append_inlined(struct fr_frames *f, struct known *o, uint64_t addr, struct slot *found)
{
	const char *names[FR_FRAMES_AT_ONE_ADDRESS - 1];
	struct fr_elf *elf = f->places->no_inlines ? NULL : o->object->elf;
	const int n = elf ? fr_elf_find_inlined(elf, addr, names, FR_ARRAY_SIZE(names)) : 0;
	uint32_t frame;
	int r = FR_MIN(n, 0);

	for (int i = 0; i < n && r == 0; i++) {
		r = get_inlined_frame(f, o, names[i], &frame);
		if (r == 0)
			r = append(f, found, frame);
	}
	return r;
}

/* Reads the symbols of O. */
static int load(struct fr_frames *f, struct known *o)
{
	size_t n;

	if (fr_code_objects_load(f->objects, o->object) < 0)
		return -ENOMEM;
	n = o->object->symbols.n + 1;
	o->frame_of = malloc(n * sizeof(*o->frame_of));
	if (!o->frame_of)
		return -ENOMEM;
	memset(o->frame_of, 0xff, n * sizeof(*o->frame_of));
	return 0;
}

/* Returns the symbol at ADDR, or NULL. IS_RETURN says that a return address was there, and ADDR is one less.
   But if an interrupt or a signal comes at the first instruction of a function, the address in the stack is
   the start of the function, and no call is in front of it: only bytes of no function, or in the kernel the
   padding or the end of another function. */
static const struct fr_symbol *find_symbol(const struct fr_code_object *o, uint64_t addr, bool is_return)
{
	const struct fr_symbol *symbol = fr_symbols_find(&o->symbols, addr), *next;

	if (!is_return || (symbol && o->kind == FR_OBJECT_FILE))
		return symbol;
	next = fr_symbols_find(&o->symbols, addr + 1);
	if (next && next->start == addr + 1 &&
		strncmp(fr_symbols_name(&o->symbols, next), PADDING, strlen(PADDING)) != 0)
		return next;
	return symbol;
}

/* Finds the frames at ADDR of O, and notes them in `chains`. */
static int look_up(struct fr_frames *f, struct known *o, uint64_t addr, bool is_return, struct slot *ret)
{
	const struct fr_symbols *symbols = &o->object->symbols;
	const struct fr_symbol *symbol;
	uint32_t frame, *known;
	int r = o->frame_of ? 0 : load(f, o);

	if (r < 0)
		return r;
	*ret = (struct slot){make_key(addr, is_return), (uint32_t)(f->chains.len / sizeof(frame)), 0};
	symbol = find_symbol(o->object, addr, is_return);
	if (!symbol) {
		r = get_unknown(f, o, &frame);
		return r < 0 ? r : append(f, ret, frame);
	}
	known = &o->frame_of[symbol - symbols->v];
	if (*known == NO_FRAME)
		r = add_function(f, o, fr_symbols_name(symbols, symbol), false, known);
	if (r == 0)
		r = append(f, ret, *known);
	return r < 0 ? r : append_inlined(f, o, addr, ret);
}

int fr_frames_find(struct fr_frames *f, const struct fr_model *model, uint32_t pid, uint64_t addr,
	uint16_t mode, bool is_return, uint32_t ret[static FR_FRAMES_AT_ONE_ADDRESS])
{
	struct fr_code_object *object;
	struct slot found;
	struct known *o;
	size_t i;
	int r;

	/* A return address can be behind the last instruction of the caller, so the call is looked up. */
	addr -= is_return;
	object = fr_code_objects_locate(f->objects, model, pid, mode, &addr);
	o = object ? find_known(f, object) : NULL;
	if (f->n_slots == SLOTS_MAX)
		forget_slots(f);
	if (!o || (o->n_slots * 2 >= o->slots_cap && grow_slots(o) < 0))
		return -ENOMEM;
	if (object->kind == FR_OBJECT_NONE)
		addr = is_return = 0;
	i = find_slot(o, make_key(addr, is_return));
	if (!o->slots[i].n) {
		r = look_up(f, o, addr, is_return, &found);
		if (r < 0)
			return r;
		o->slots[i] = found;
		o->n_slots++;
		f->n_slots++;
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
	return fr_code_objects_n(f->objects);
}

const struct fr_code_object *fr_frames_object(const struct fr_frames *f, uint32_t object)
{
	return fr_code_objects_get(f->objects, object);
}

const struct fr_elf *fr_frames_elf(const struct fr_frames *f, uint32_t object)
{
	return fr_code_objects_get(f->objects, object)->elf;
}
