// SPDX-License-Identifier: GPL-2.0-or-later

/* The layout is that of PERF_RECORD_SAMPLE in uapi linux/perf_event.h. */

#include "perfdata/sample.h"

#include <string.h>

struct cursor {
	const char *at;
	size_t left;
	fr_sample_address_fn each;
	void *ctx;
};

static bool skip(struct cursor *c, uint64_t n)
{
	if (n > c->left) {
		c->left = 0;
		return false;
	}
	c->at += n;
	c->left -= n;
	return true;
}

static bool u64(struct cursor *c, uint64_t *ret)
{
	if (c->left < sizeof(*ret)) {
		c->left = 0;
		return false;
	}
	memcpy(ret, c->at, sizeof(*ret));
	return skip(c, sizeof(*ret));
}

static uint16_t mode_of(uint64_t context, uint16_t before)
{
	switch (context) {
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
		return before;
	}
}

static bool call_chain(struct cursor *c, uint16_t mode)
{
	uint64_t n, address;

	if (!u64(c, &n))
		return false;
	for (; n > 0; n--) {
		if (!u64(c, &address))
			return false;
		if (address >= (uint64_t)PERF_CONTEXT_MAX)
			mode = mode_of(address, mode);
		else
			c->each(c->ctx, address, mode);
	}
	return true;
}

static bool raw(struct cursor *c)
{
	uint32_t size;

	if (c->left < sizeof(size))
		return false;
	memcpy(&size, c->at, sizeof(size));
	return skip(c, sizeof(size) + (uint64_t)size);
}

static bool branches(struct cursor *c, const struct perf_event_attr *attr)
{
	uint64_t n, from, to;

	if (!u64(c, &n) || (attr->branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX && !skip(c, 8)))
		return false;
	for (; n > 0; n--) {
		if (!u64(c, &from) || !u64(c, &to) || !skip(c, 8))
			return false;
		/* Which side an address is on is not said; the kernel's half is negative. */
		c->each(c->ctx, from, from >> 63 ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER);
		c->each(c->ctx, to, to >> 63 ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER);
	}
	return true;
}

static bool registers(struct cursor *c, const struct perf_event_attr *attr)
{
	uint64_t abi;

	return u64(c, &abi) &&
	       (abi == 0 || skip(c, 8ull * (unsigned)__builtin_popcountll(attr->sample_regs_user)));
}

static void stack(struct cursor *c)
{
	uint64_t size, used, word;
	struct cursor words;

	if (!u64(c, &size) || size == 0 || size > c->left)
		return;
	words = *c;
	if (!skip(c, size) || !u64(c, &used) || used > size)
		return;
	words.left = used;
	while (u64(&words, &word))
		c->each(c->ctx, word, PERF_RECORD_MISC_USER);
}

void fr_sample_for_each_address(const struct perf_event_attr *attr, const struct perf_event_header *sample,
	fr_sample_address_fn each, void *ctx)
{
	struct cursor c = {(const char *)(sample + 1), sample->size - sizeof(*sample), each, ctx};
	const uint16_t mode = sample->misc & PERF_RECORD_MISC_CPUMODE_MASK;
	const uint64_t type = attr->sample_type;
	const uint64_t words = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_ID |
			       PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD;
	uint64_t ip;

	if (type & PERF_SAMPLE_IDENTIFIER && !skip(&c, 8))
		return;
	if (type & PERF_SAMPLE_IP) {
		if (!u64(&c, &ip))
			return;
		each(ctx, ip, mode);
	}
	if (!skip(&c, 8ull * (unsigned)__builtin_popcountll(type & words)) || type & PERF_SAMPLE_READ)
		return;
	if (type & PERF_SAMPLE_CALLCHAIN && !call_chain(&c, mode))
		return;
	if (type & PERF_SAMPLE_RAW && !raw(&c))
		return;
	if (type & PERF_SAMPLE_BRANCH_STACK && !branches(&c, attr))
		return;
	if (type & PERF_SAMPLE_REGS_USER && !registers(&c, attr))
		return;
	if (type & PERF_SAMPLE_STACK_USER)
		stack(&c);
}
