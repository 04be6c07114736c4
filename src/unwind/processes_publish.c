// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/processes_private.h"

#include <errno.h>
#include <utlist.h>

/* A slot with a retired space whose process is unknown: after this time, its FORK must have been lost. */
#define ORPHAN_NS (5 * 1000000000ULL)

/* Publishes S. For maps, every table may be evicted. Returns 0 or -ENOSPC. */
static int publish_space(struct fr_unwind_processes *p, struct fr_unwind_space *s, uint64_t now_ns)
{
	int r;

	if (s->at)
		return 0;
	r = fr_unwind_space_publish(p->memory, s);
	if (r < 0 && fr_unwind_processes_has_garbage(p)) {
		fr_unwind_processes_reclaim(p, now_ns);
		r = fr_unwind_space_publish(p->memory, s);
	}
	while (r < 0 && fr_unwind_objects_evict(p->objects, UINT64_MAX)) {
		if (fr_unwind_memory_wait(p->memory) == 0)
			r = fr_unwind_space_publish(p->memory, s);
	}
	return r;
}

/* After a scan, most processes have the maps that they had before. */
static void keep_if_equal(struct fr_unwind_processes *p, struct unwind_process *process)
{
	struct fr_unwind_space *s = process->space;

	if (!process->shown || s == process->shown || s->at || !fr_unwind_space_is_equal(s, process->shown) ||
		fr_unwind_memory_is_excess(p->memory, process->shown->at))
		return;
	process->space = process->shown;
	process->shown->refs++;
	unwind_unref_space(p, s);
}

/* Brings process->space to the slot. If a BPF program has changed the slot, then either a new process has
   this pid, and the EXIT of this process is under way; or a late copy from the parent has come. After the
   round that has all records until now, the latter is true, and the slot is overwritten. */
static enum fr_unwind_slot_result show(
	struct fr_unwind_processes *p, struct unwind_process *process, uint64_t since_ns, uint64_t now_ns)
{
	const bool may_overwrite = process->conflict_ns && since_ns > process->conflict_ns;
	const fr_unwind_at old = process->shown && !may_overwrite ? process->shown->at : 0;
	enum fr_unwind_slot_result r;

	r = fr_unwind_slot_set(p->shared, process->pid, old, process->space->at);
	if (r == FR_UNWIND_SLOT_DIFFERS && !process->conflict_ns)
		process->conflict_ns = now_ns;
	if (r != FR_UNWIND_SLOT_SET)
		return r;
	process->conflict_ns = 0;
	process->space->refs++;
	p->n_shown += !process->shown;
	unwind_unref_space(p, process->shown);
	process->shown = process->space;
	return r;
}

/* Returns whether PROCESS is done. */
static bool publish(
	struct fr_unwind_processes *p, struct unwind_process *process, uint64_t since_ns, uint64_t now_ns)
{
	enum fr_unwind_slot_result r = FR_UNWIND_SLOT_SET;

	if (process->space && process->space->n) {
		keep_if_equal(p, process);
		if (publish_space(p, process->space, now_ns) < 0)
			r = FR_UNWIND_SLOT_FULL;
		else if (process->space != process->shown || process->conflict_ns)
			r = show(p, process, since_ns, now_ns);
		if (r != FR_UNWIND_SLOT_FULL)
			return r == FR_UNWIND_SLOT_SET;
		unwind_drop(p, process);
	}
	unwind_hide(p, process);
	return true;
}

void fr_unwind_processes_publish(struct fr_unwind_processes *p, uint64_t since_ns, uint64_t now_ns)
{
	struct unwind_process *process, *next;

	DL_FOREACH_SAFE(p->dirty, process, next)
	{
		if (!publish(p, process, since_ns, now_ns))
			continue;
		process->is_dirty = false;
		DL_DELETE(p->dirty, process);
	}
}

bool fr_unwind_processes_has_garbage(const struct fr_unwind_processes *p)
{
	return p->retired || fr_unwind_memory_waiting(p->memory);
}

/* The slot SLOT has the retired space S. If its process is known, the space is published again, because a BPF
   program has written the slot after this program. If not, a BPF program has made the slot at a fork, and the
   record of the fork is under way. Returns whether the slot stays as it is. */
static bool keep_slot(struct fr_unwind_processes *p, const struct fr_unwind_slot *slot, uint64_t now_ns)
{
	struct unwind_process *process = FR_HASH_FIND(p->processes, pid, slot->pid);

	if (process) {
		if (!process->conflict_ns)
			process->conflict_ns = now_ns;
		unwind_mark_dirty(p, process);
		return true;
	}
	if (!p->orphans_ns)
		p->orphans_ns = now_ns;
	if (now_ns - p->orphans_ns < ORPHAN_NS)
		return true;
	return fr_unwind_slot_set(p->shared, slot->pid, slot->process, 0) != FR_UNWIND_SLOT_SET;
}

/* Gives the retired spaces that are in slots one reference each. */
static void mark_used(struct fr_unwind_processes *p, uint64_t now_ns)
{
	for (size_t i = 0; i < FR_UNWIND_SLOTS; i++) {
		const uint64_t value = __atomic_load_n((uint64_t *)&p->shared->slots[i], __ATOMIC_ACQUIRE);
		const struct fr_unwind_slot slot = {(uint32_t)value, (fr_unwind_at)(value >> 32)};
		struct fr_unwind_space *s = value ? FR_HASH_FIND(p->retired, at, slot.process) : NULL;

		/* If the slot is freed now, the space waits for the next barrier. */
		if (s) {
			keep_slot(p, &slot, now_ns);
			s->refs = 1;
		}
	}
}

void fr_unwind_processes_reclaim(struct fr_unwind_processes *p, uint64_t now_ns)
{
	struct fr_unwind_space *s, *next;
	bool any_used = false;

	if (fr_unwind_memory_wait(p->memory) < 0)
		return;
	if (p->retired)
		mark_used(p, now_ns);
	HASH_ITER (hh, p->retired, s, next) {
		if (s->refs) {
			s->refs = 0;
			any_used = true;
			continue;
		}
		HASH_DEL(p->retired, s);
		fr_unwind_space_free(p->objects, s);
	}
	if (!any_used)
		p->orphans_ns = 0;
}

void fr_unwind_processes_leave_excess(struct fr_unwind_processes *p)
{
	for (struct unwind_process *i = p->processes; i; i = i->hh.next) {
		struct fr_unwind_space *copy;

		if (!i->space || !i->space->at || !fr_unwind_memory_is_excess(p->memory, i->space->at))
			continue;
		copy = fr_unwind_space_copy(p->objects, i->space);
		if (!copy)
			continue;
		unwind_unref_space(p, i->space);
		i->space = copy;
		unwind_mark_dirty(p, i);
	}
}
