// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/slots.h"

#include <stddef.h>

static uint64_t value_of(uint32_t pid, fr_unwind_at at)
{
	return at ? (uint64_t)at << 32 | pid : 0;
}

static uint64_t *slot_at(struct fr_unwind_shared *shared, uint32_t pid, uint32_t probe)
{
	return (uint64_t *)&shared->slots[(fr_unwind_hash(pid) + probe) % FR_UNWIND_SLOTS];
}

static bool exchange(uint64_t *slot, uint64_t old, uint64_t new)
{
	return __atomic_compare_exchange_n(slot, &old, new, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* Returns the slot of PID and its value; NULL if there is none. */
static uint64_t *find_slot(struct fr_unwind_shared *shared, uint32_t pid, uint64_t *ret_value)
{
	for (uint32_t i = 0; i < FR_UNWIND_PROBES; i++) {
		uint64_t *slot = slot_at(shared, pid, i);
		const uint64_t value = __atomic_load_n(slot, __ATOMIC_ACQUIRE);

		if ((uint32_t)value == pid) {
			*ret_value = value;
			return slot;
		}
	}
	return NULL;
}

static enum fr_unwind_slot_result add(struct fr_unwind_shared *shared, uint32_t pid, fr_unwind_at at)
{
	for (uint32_t i = 0; i < FR_UNWIND_PROBES; i++)
		if (exchange(slot_at(shared, pid, i), 0, value_of(pid, at)))
			return FR_UNWIND_SLOT_SET;
	return FR_UNWIND_SLOT_FULL;
}

enum fr_unwind_slot_result fr_unwind_slot_set(
	struct fr_unwind_shared *shared, uint32_t pid, fr_unwind_at old, fr_unwind_at new)
{
	uint64_t value = 0, *slot;

	while ((slot = find_slot(shared, pid, &value))) {
		if (old && value != value_of(pid, old))
			return FR_UNWIND_SLOT_DIFFERS;
		if (exchange(slot, value, value_of(pid, new)))
			return FR_UNWIND_SLOT_SET;
	}
	if (old)
		return FR_UNWIND_SLOT_DIFFERS;
	return new ? add(shared, pid, new) : FR_UNWIND_SLOT_SET;
}

fr_unwind_at fr_unwind_slot_find(struct fr_unwind_shared *shared, uint32_t pid)
{
	uint64_t value = 0;

	return find_slot(shared, pid, &value) ? (fr_unwind_at)(value >> 32) : 0;
}
