// SPDX-License-Identifier: GPL-2.0-or-later

/* uapi linux/perf_event.h describes the layout, at PERF_RECORD_SAMPLE. */

#include "perfdata/sample.h"
#include "perfdata/bytes.h"

struct walk {
	struct byte_reader in;
	fr_sample_address_fn each;
	void *ctx;
};

static void give_address(const struct walk *w, uint64_t address, uint16_t mode)
{
	if (!w->in.failed)
		w->each(w->ctx, address, mode);
}

static void skip_words(struct walk *w, unsigned n)
{
	(void)read_bytes(&w->in, 8ull * n);
}

/* A marker in a call chain (PERF_CONTEXT_…) gives the mode of the addresses after it. Returns this mode, or
   MODE if the marker is unknown. */
static uint16_t mode_after(uint64_t marker, uint16_t mode)
{
	switch (marker) {
	case PERF_CONTEXT_HV:
		return PERF_RECORD_MISC_HYPERVISOR;
	case PERF_CONTEXT_KERNEL:
		return PERF_RECORD_MISC_KERNEL;
	case PERF_CONTEXT_USER:
		return PERF_RECORD_MISC_USER;
	case PERF_CONTEXT_GUEST_KERNEL:
		return PERF_RECORD_MISC_GUEST_KERNEL;
	case PERF_CONTEXT_GUEST_USER:
		return PERF_RECORD_MISC_GUEST_USER;
	default:
		return mode;
	}
}

static void give_call_chain(struct walk *w, uint16_t mode)
{
	for (uint64_t n = read_u64(&w->in); n > 0 && !w->in.failed; n--) {
		uint64_t address = read_u64(&w->in);

		if (address >= (uint64_t)PERF_CONTEXT_MAX)
			mode = mode_after(address, mode);
		else
			give_address(w, address, mode);
	}
}

static void give_branch_end(struct walk *w)
{
	uint64_t address = read_u64(&w->in);

	/* A branch record has no mode, but in addresses of the kernel the top bit is set. */
	give_address(w, address, address >> 63 ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER);
}

static void give_branches(struct walk *w, bool has_hw_index)
{
	uint64_t n = read_u64(&w->in);

	skip_words(w, has_hw_index);
	for (; n > 0 && w->in.left >= 24; n--) {
		give_branch_end(w);
		give_branch_end(w);
		skip_words(w, 1);
	}
	w->in.failed |= n > 0;
}

static void give_stack(struct walk *w)
{
	uint64_t size = read_u64(&w->in), used;
	struct walk stack = *w;

	if (size == 0)
		return;
	(void)read_bytes(&w->in, size);
	used = read_u64(&w->in);
	if (w->in.failed || used > size)
		return;
	for (stack.in.left = used; stack.in.left >= sizeof(uint64_t);)
		give_address(&stack, read_u64(&stack.in), PERF_RECORD_MISC_USER);
}

void fr_sample_for_each_address(const struct perf_event_attr *attr, const struct perf_event_header *sample,
	fr_sample_address_fn each, void *ctx)
{
	struct walk w = {{(const uint8_t *)(sample + 1), sample->size - sizeof(*sample), false}, each, ctx};
	const uint16_t mode = sample->misc & PERF_RECORD_MISC_CPUMODE_MASK;
	const uint64_t type = attr->sample_type;
	const uint64_t words = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
			       PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD;

	if (type & PERF_SAMPLE_IDENTIFIER)
		skip_words(&w, 1);
	if (type & PERF_SAMPLE_IP)
		give_address(&w, read_u64(&w.in), mode);
	skip_words(&w, (unsigned)__builtin_popcountll(type & words));
	if (type & PERF_SAMPLE_READ)
		return;
	if (type & PERF_SAMPLE_CALLCHAIN)
		give_call_chain(&w, mode);
	if (type & PERF_SAMPLE_RAW)
		(void)read_bytes(&w.in, read_u32(&w.in));
	if (type & PERF_SAMPLE_BRANCH_STACK)
		give_branches(&w, attr->branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX);
	if (type & PERF_SAMPLE_REGS_USER && read_u64(&w.in) != 0) /* the ABI; 0: no registers */
		skip_words(&w, (unsigned)__builtin_popcountll(attr->sample_regs_user));
	if (type & PERF_SAMPLE_STACK_USER)
		give_stack(&w);
}
