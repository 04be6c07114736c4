// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/switches.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/lock.h"
#include "bpf/capture.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/types.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <flightrec/trigger.bpf.h>

/* The programs that make samples and the programs of triggers name the same memory differently. */
_Static_assert(sizeof(struct fr_switch) == sizeof(struct flightrec_switch) &&
		       offsetof(struct fr_switch, is_off) == offsetof(struct flightrec_switch, is_off) &&
		       offsetof(struct fr_switch, since_ns) == offsetof(struct flightrec_switch, since_ns),
	"one layout");

struct fr_switches {
	struct fr_switch *slots; /* mapped, or on the heap */
	int fd;			 /* -1: `slots` is on the heap */
	struct fr_lock lock;	 /* protects the members below it */
	char *names[FR_SWITCHES_MAX];
	uint32_t n;
};

static size_t map_bytes(void)
{
	return FR_ALIGN_UP(FR_SWITCHES_MAX * sizeof(struct fr_switch), (size_t)sysconf(_SC_PAGESIZE));
}

int fr_switches_new(struct fr_switches **ret)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	struct fr_switches *s = calloc(1, sizeof(*s));
	void *p = MAP_FAILED;

	if (!s)
		return -ENOMEM;
	fr_lock_init(&s->lock);
	s->n = FR_SWITCH_NONE + 1;
	s->fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "fr_switches", sizeof(uint32_t), sizeof(struct fr_switch),
		FR_SWITCHES_MAX, &opts);
	if (s->fd >= 0)
		p = mmap(NULL, map_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);
	if (p == MAP_FAILED) {
		fr_closep(&s->fd);
		s->fd = -1;
		p = calloc(FR_SWITCHES_MAX, sizeof(struct fr_switch));
	}
	s->slots = p;
	if (!p) {
		fr_switches_free(s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

struct fr_switches *fr_switches_free(struct fr_switches *s)
{
	if (!s)
		return NULL;
	if (s->fd >= 0)
		munmap(s->slots, map_bytes());
	else
		free(s->slots);
	fr_closep(&s->fd);
	for (uint32_t i = 0; i < s->n; i++)
		free(s->names[i]);
	fr_lock_deinit(&s->lock);
	free(s);
	return NULL;
}

int fr_switches_fd(const struct fr_switches *s)
{
	return s->fd;
}

static uint32_t find(const struct fr_switches *s, const char *name)
{
	for (uint32_t i = FR_SWITCH_NONE + 1; i < s->n; i++)
		if (!strcmp(s->names[i], name))
			return i;
	return FR_SWITCH_NONE;
}

uint32_t fr_switches_find(struct fr_switches *s, const char *name)
{
	uint32_t slot;

	fr_lock(&s->lock);
	slot = find(s, name);
	fr_unlock(&s->lock);
	return slot;
}

uint32_t fr_switches_add(struct fr_switches *s, const char *name, bool is_off)
{
	uint32_t slot;

	if (strlen(name) >= FLIGHTREC_EVENT_NAME_SIZE)
		return FR_SWITCH_NONE;
	fr_lock(&s->lock);
	slot = find(s, name);
	if (slot == FR_SWITCH_NONE && s->n < FR_SWITCHES_MAX) {
		s->names[s->n] = strdup(name);
		if (s->names[s->n]) {
			slot = s->n++;
			s->slots[slot].is_off = is_off;
		}
	}
	fr_unlock(&s->lock);
	return slot;
}

const char *fr_switches_name(struct fr_switches *s, uint32_t slot)
{
	const char *name;

	fr_lock(&s->lock);
	name = slot < s->n ? s->names[slot] : NULL;
	fr_unlock(&s->lock);
	return name ? name : "";
}

bool fr_switches_is_off(const struct fr_switches *s, uint32_t slot)
{
	return s && slot < FR_SWITCHES_MAX && __atomic_load_n(&s->slots[slot].is_off, __ATOMIC_ACQUIRE);
}

bool fr_switches_set(struct fr_switches *s, uint32_t slot, bool is_off)
{
	if (slot == FR_SWITCH_NONE || slot >= FR_SWITCHES_MAX || fr_switches_is_off(s, slot) == is_off)
		return false;
	/* offcpu reads this time: it does not know the sleeps that have begun before. */
	if (!is_off)
		__atomic_store_n(&s->slots[slot].since_ns, fr_monotonic_ns(), __ATOMIC_RELEASE);
	return __atomic_exchange_n(&s->slots[slot].is_off, is_off, __ATOMIC_ACQ_REL) != is_off;
}

uint32_t fr_switches_changes(const struct fr_switches *s, uint32_t slot)
{
	return slot < FR_SWITCHES_MAX ? __atomic_load_n(&s->slots[slot].changes, __ATOMIC_RELAXED) : 0;
}
