// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The events that the programs of an object switch (flightrec_event_enable() of the ABI's header). Each use
 * in the source code is an element of a section with the name of an event, which gets the slot of this event
 * before the load.
 */
#include "base/cleanup.h"
#include "base/utf8.h"
#include "capture/switches.h"
#include "source/bpf_object_private.h"
#include "source/bpf_source.h"

#include <errno.h>
#include <linux/types.h>
#include <string.h>

#include <flightrec/trigger.bpf.h>

#define SECTION ".rodata.flightrec.events"
#define MAP "flightrec_switches"

/* Returns the names and slots, which are in memory of libbpf, and which are read-only after the load; NULL:
   there are none. */
static struct flightrec_event_ref *find_refs(const struct fr_bpf_object *o, size_t *ret_n)
{
	struct bpf_map *map = bpf_object__find_map_by_name(o->libbpf, SECTION);
	size_t bytes = 0;
	void *refs = map ? (void *)bpf_map__initial_value(map, &bytes) : NULL;

	*ret_n = refs ? bytes / sizeof(struct flightrec_event_ref) : 0;
	return *ret_n ? refs : NULL;
}

int fr_bpf_check_switches(const struct fr_bpf_object *o, struct fr_diag *d)
{
	struct bpf_map *map = bpf_object__find_map_by_name(o->libbpf, MAP);
	const struct flightrec_event_ref *refs;
	size_t n;

	refs = find_refs(o, &n);
	if (!refs)
		return map && bpf_map__set_autocreate(map, false) < 0 ? -EINVAL : 0;
	if (!map || bpf_map__type(map) != BPF_MAP_TYPE_ARRAY ||
		bpf_map__value_size(map) != sizeof(struct flightrec_switch))
		return fr_fail(d, -ENOEXEC, "leave the maps to flightrec/trigger.bpf.h",
			"the map '%s' of %s differs from the trigger ABI", MAP, o->label);
	for (size_t i = 0; i < n; i++)
		if (!refs[i].name[0] || !memchr(refs[i].name, 0, sizeof(refs[i].name)))
			return fr_fail(d, -ENOEXEC, "give the name of an event, with up to 63 characters",
				"%s switches an event without a valid name", o->label);
	return 0;
}

int fr_bpf_source_find_switches(struct fr_bpf_source *s, struct fr_diag *d)
{
	const struct fr_source_env *env = s->source.env;
	struct flightrec_event_ref *refs;
	size_t n;
	int r = 0;

	refs = find_refs(s->object, &n);
	if (!refs)
		return 0;
	if (!env->find_switch)
		return fr_fail(d, -EOPNOTSUPP, NULL, "events cannot be switched here");
	for (size_t i = 0; r == 0 && i < n; i++)
		r = env->find_switch(env->ctx, refs[i].name, &refs[i].slot, d);
	if (r == 0)
		r = bpf_map__reuse_fd(bpf_object__find_map_by_name(s->object->libbpf, MAP), env->switches_fd);
	if (r < 0) {
		fr_fail_errno(d, r, NULL, "cannot share the map of the switches");
		fr_diag_prefix(d, "%s switches an event", s->object->label);
	}
	return r;
}

bool fr_bpf_source_misses_switch(const struct fr_bpf_source *s)
{
	const struct fr_source_env *env = s->source.env;
	const struct flightrec_event_ref *refs;
	struct fr_diag ignored = {0};
	uint32_t slot;
	size_t n;

	refs = find_refs(s->object, &n);
	for (size_t i = 0; refs && i < n; i++)
		if (env->find_switch(env->ctx, refs[i].name, &slot, &ignored) < 0 || slot != refs[i].slot)
			return true;
	return false;
}

int fr_bpf_switch_parse(const void *data, size_t n, uint64_t now_ns, struct fr_switch_record *ret)
{
	struct flightrec_switch_record r;

	if (n < sizeof(r))
		return -EBADMSG;
	memcpy(&r, data, sizeof(r));
	if (r.abi != FLIGHTREC_SWITCH_ABI || r.size < sizeof(r) || r.size > n)
		return -EBADMSG;
	*ret = (struct fr_switch_record){
		.time_ns = !r.time_ns || r.time_ns > now_ns ? now_ns : r.time_ns,
		.for_ns = r.for_ns,
		.slot = r.slot,
		.is_off = r.is_off,
		.pid = (pid_t)(r.pid & INT32_MAX),
		.tid = (pid_t)(r.tid & INT32_MAX),
		.cpu = r.cpu > INT32_MAX ? -1 : (int)r.cpu,
	};
	_Static_assert(sizeof(ret->comm) == sizeof(r.comm), "the name fits");
	memcpy(ret->comm, r.comm, sizeof(ret->comm));
	ret->comm[sizeof(ret->comm) - 1] = '\0';
	fr_utf8_sanitize(ret->comm);
	return 0;
}
