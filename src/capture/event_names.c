// SPDX-License-Identifier: GPL-2.0-or-later
/* The events that every kernel has, with their names in perf-list(1): perf_hw_id, perf_sw_ids and the cache
   events of uapi linux/perf_event.h. */
#include "capture/event_internal.h"
#include "base/cleanup.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name, *alias; /* alias may be NULL */
	uint32_t type;
	uint64_t config;
} names[] = {
	{"cycles", "cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
	{"instructions", NULL, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
	{"cache-references", NULL, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
	{"cache-misses", NULL, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
	{"branches", "branch-instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
	{"branch-misses", NULL, PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
	{"bus-cycles", NULL, PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES},
	{"stalled-cycles-frontend", "idle-cycles-frontend", PERF_TYPE_HARDWARE,
		PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
	{"stalled-cycles-backend", "idle-cycles-backend", PERF_TYPE_HARDWARE,
		PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
	{"ref-cycles", NULL, PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES},
	{"cpu-clock", NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
	{"task-clock", NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
	{"page-faults", "faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
	{"context-switches", "cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
	{"cpu-migrations", "migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
	{"minor-faults", NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN},
	{"major-faults", NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
	{"alignment-faults", NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS},
	{"emulation-faults", NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS},
	{"dummy", NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY},
	{"bpf-output", NULL, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_BPF_OUTPUT},
	{"cgroup-switches", NULL, PERF_TYPE_SOFTWARE, 11 /* PERF_COUNT_SW_CGROUP_SWITCHES, 5.13 */},
};

enum {
	READ = 1 << PERF_COUNT_HW_CACHE_OP_READ,
	WRITE = 1 << PERF_COUNT_HW_CACHE_OP_WRITE,
	PREFETCH = 1 << PERF_COUNT_HW_CACHE_OP_PREFETCH
};

/* The caches in the order of perf_hw_cache_id. We print the first spelling. */
static const struct {
	const char *spelling[5];
	unsigned ops;
} caches[] = {
	{{"L1-dcache", "l1-d", "l1d", "L1-data"}, READ | WRITE | PREFETCH},
	{{"L1-icache", "l1-i", "l1i", "L1-instruction"}, READ | PREFETCH},
	{{"LLC", "L2"}, READ | WRITE | PREFETCH},
	{{"dTLB", "d-tlb", "Data-TLB"}, READ | WRITE | PREFETCH},
	{{"iTLB", "i-tlb", "Instruction-TLB"}, READ},
	{{"branch", "branches", "bpu", "btb", "bpc"}, READ},
	{{"node"}, READ | WRITE | PREFETCH},
};

static const struct {
	const char *one, *many, *other;
} cache_ops[] = {
	{"load", "loads", "read"},
	{"store", "stores", "write"},
	{"prefetch", "prefetches", "speculative-read"},
};

static void format_cache_name(unsigned cache, unsigned op, unsigned result, char *ret, size_t size)
{
	if (result == PERF_COUNT_HW_CACHE_RESULT_MISS)
		snprintf(ret, size, "%s-%s-misses", caches[cache].spelling[0], cache_ops[op].one);
	else
		snprintf(ret, size, "%s-%s", caches[cache].spelling[0], cache_ops[op].many);
}

void fr_event_names_foreach(void (*fn)(void *ctx, const char *name), void *ctx)
{
	char cache[64];

	for (size_t i = 0; i < FR_ARRAY_SIZE(names); i++) {
		fn(ctx, names[i].name);
		if (names[i].alias)
			fn(ctx, names[i].alias);
	}
	fn(ctx, "offcpu"); /* event_off_cpu.c */
	for (unsigned c = 0; c < FR_ARRAY_SIZE(caches); c++)
		for (unsigned op = 0; op < FR_ARRAY_SIZE(cache_ops); op++)
			for (unsigned result = 0; caches[c].ops & 1u << op && result < 2; result++) {
				format_cache_name(c, op, result, cache, sizeof(cache));
				fn(ctx, cache);
			}
}

/* If *S begins with WORD, and a '-' or the end of *S follows, moves *S to the text after WORD and the '-'.
   Returns whether *S was moved. */
static bool skip_word(const char **s, const char *word)
{
	size_t n = word ? strlen(word) : 0;

	if (!n || strncasecmp(*s, word, n) != 0 || ((*s)[n] && (*s)[n] != '-'))
		return false;
	*s += n + ((*s)[n] == '-' && (*s)[n + 1]);
	return true;
}

/* Parses the operation (default: loads) and the result (default: accesses) that can follow the name of a
   cache. Returns whether S is valid. */
static bool parse_cache_suffix(const char *s, unsigned *op, unsigned *result)
{
	bool found;

	*op = PERF_COUNT_HW_CACHE_OP_READ;
	*result = PERF_COUNT_HW_CACHE_RESULT_ACCESS;
	for (unsigned i = 0; i < FR_ARRAY_SIZE(cache_ops); i++) {
		found = skip_word(&s, cache_ops[i].many) || skip_word(&s, cache_ops[i].one) ||
			skip_word(&s, cache_ops[i].other);
		if (found) {
			*op = i;
			break;
		}
	}
	if (skip_word(&s, "misses") || skip_word(&s, "miss"))
		*result = PERF_COUNT_HW_CACHE_RESULT_MISS;
	else if (*s)
		(void)(skip_word(&s, "refs") || skip_word(&s, "access") || skip_word(&s, "ops"));
	return !*s;
}

static bool find_cache_event(const char *name, uint64_t *ret_config, char *ret_name, size_t size)
{
	unsigned op, result;
	const char *rest;

	for (unsigned c = 0; c < FR_ARRAY_SIZE(caches); c++)
		for (unsigned i = 0; i < FR_ARRAY_SIZE(caches[c].spelling); i++) {
			rest = name;
			if (!skip_word(&rest, caches[c].spelling[i]) ||
				!parse_cache_suffix(rest, &op, &result) || !(caches[c].ops & 1u << op))
				continue;
			*ret_config = c | op << 8 | result << 16;
			format_cache_name(c, op, result, ret_name, size);
			return true;
		}
	return false;
}

/* A raw event is "r" and up to 16 hexadecimal digits. */
static bool find_raw_event(const char *name, uint64_t *ret_config, char *ret_name, size_t size)
{
	size_t n = name[0] == 'r' ? strspn(name + 1, "0123456789abcdefABCDEF") : 0;

	if (n == 0 || n > 16 || name[n + 1])
		return false;
	*ret_config = strtoull(name + 1, NULL, 16);
	snprintf(ret_name, size, "%s", name);
	return true;
}

bool fr_event_by_name(const char *name, uint32_t *ret_type, uint64_t *ret_config, char *ret_name, size_t size)
{
	for (size_t i = 0; i < FR_ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i].name) || (names[i].alias && !strcmp(name, names[i].alias))) {
			*ret_type = names[i].type;
			*ret_config = names[i].config;
			snprintf(ret_name, size, "%s", names[i].name);
			return true;
		}
	if (find_cache_event(name, ret_config, ret_name, size)) {
		*ret_type = PERF_TYPE_HW_CACHE;
		return true;
	}
	if (find_raw_event(name, ret_config, ret_name, size)) {
		*ret_type = PERF_TYPE_RAW;
		return true;
	}
	return false;
}

bool fr_event_name_is_safe(const char *s)
{
	if (!*s || *s == '.' || strlen(s) > 128)
		return false;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr("_-.", *s))
			return false;
	return true;
}
