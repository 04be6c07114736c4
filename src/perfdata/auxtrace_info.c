// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Makes the record AUXTRACE_INFO: the words that the decoders of perf read (tools/perf/util: auxtrace.h,
 * intel-pt.h, intel-bts.h, cs-etm.h, arm-spe.h). The kernel describes most of them below
 * /sys/bus/event_source/devices/PMU.
 */

#include "base/cleanup.h"
#include "perfdata/auxtrace.h"
#include "perfdata/features_private.h"
#include "perfdata/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define RECORD_MAX 65528u /* the largest size that is a multiple of 8 */

/* The decoders: perf's enum auxtrace_type. */
enum decoder { INTEL_PT = 1, INTEL_BTS = 2, CS_ETM = 3, ARM_SPE = 4 };

/* The directory of the PMU, and the event. */
struct source {
	const char *sysfs, *pmu;
	const struct perf_event_attr *attr;
	const struct fr_auxtrace_setup *setup;
};

/* Reads a file of the PMU. Returns its number, with the given BASE, or 0 if there is no such file. */
static uint64_t read_number(const struct source *s, const char *file, int base)
{
	char text[64];

	if (fr_feature_read_line(
		    text, sizeof(text), "%s/bus/event_source/devices/%s/%s", s->sysfs, s->pmu, file) < 0)
		return 0;
	return strtoull(text, NULL, base);
}

/* Returns the bits of attr.config that the option NAME sets: its format is "config:10" or "config:14-17".
   Returns 0 if the PMU does not have this option. */
static uint64_t read_config_bits(const struct source *s, const char *name)
{
	unsigned low, high;
	char text[64];
	int n;

	if (fr_feature_read_line(text, sizeof(text), "%s/bus/event_source/devices/%s/format/%s", s->sysfs,
		    s->pmu, name) < 0)
		return 0;
	n = sscanf(text, "config:%u-%u", &low, &high);
	if (n == 1)
		high = low;
	if (n < 1 || low > high || high > 63)
		return 0;
	return (UINT64_MAX >> (63 - (high - low))) << low;
}

/* How to convert a value of the CPU's time stamp counter to a time of perf events. */
struct conversion {
	uint64_t shift, mult, zero, cycles, mask; /* as in TIME_CONV */
	uint8_t is_known, is_short;
	uint8_t reserved[6];
};

/* Reads the conversion from the first page of a ring. The kernel makes the member `lock` odd while it
   changes the conversion, so the function reads again if `lock` is odd or has changed. */
static struct conversion read_conversion(const struct perf_event_mmap_page *page)
{
	/* Each load is an acquire, so that the loads stay in this order. */
	for (int tries = 0; page && tries < 1000; tries++) {
		const uint32_t before = __atomic_load_n(&page->lock, __ATOMIC_ACQUIRE);
		struct conversion c = {
			.shift = __atomic_load_n(&page->time_shift, __ATOMIC_ACQUIRE),
			.mult = __atomic_load_n(&page->time_mult, __ATOMIC_ACQUIRE),
			.zero = __atomic_load_n(&page->time_zero, __ATOMIC_ACQUIRE),
			.is_short = page->cap_user_time_short, /* the kernel does not change it */
		};

		c.is_known = page->cap_user_time_zero && c.mult;
		if (c.is_short) {
			c.cycles = __atomic_load_n(&page->time_cycles, __ATOMIC_ACQUIRE);
			c.mask = __atomic_load_n(&page->time_mask, __ATOMIC_ACQUIRE);
		}
		if (__atomic_load_n(&page->lock, __ATOMIC_ACQUIRE) == before && !(before & 1))
			return c.is_known ? c : (struct conversion){0};
	}
	return (struct conversion){0};
}

int fr_time_conv(struct fr_buf *ret, const struct perf_event_mmap_page *page)
{
	struct {
		struct perf_event_header header;
		struct conversion c;
	} record = {{FR_RECORD_TIME_CONV, 0, sizeof(record)}, read_conversion(page)};

	_Static_assert(sizeof(record) == 56, "the size of TIME_CONV");
	return record.c.is_known ? fr_buf_append(ret, &record, sizeof(record)) : 0;
}

static void put_head(struct builder *b, const struct source *s)
{
	const struct conversion c = read_conversion(s->setup->page);

	put_u64(b, s->attr->type);
	put_u64(b, c.shift);
	put_u64(b, c.is_known ? c.mult : 1); /* perf divides by it, also if the conversion is not known */
	put_u64(b, c.zero);
	put_u64(b, c.is_known);
}

static void put_intel_bts(struct builder *b, const struct source *s)
{
	put_head(b, s);
	put_u64(b, 1); /* snapshot mode */
}

/* The time stamp counter runs N/D times as fast as the clock of the trace (CPUID leaf 0x15). */
static void put_clock_ratio(struct builder *b, const struct source *s)
{
	unsigned n = 0, d = 0;
	char text[64];

	if (fr_feature_read_line(text, sizeof(text), "%s/bus/event_source/devices/%s/tsc_art_ratio", s->sysfs,
		    s->pmu) < 0 ||
		sscanf(text, "%u:%u", &n, &d) != 2)
		n = d = 0;
	put_u64(b, n);
	put_u64(b, d);
}

static void put_intel_pt(struct builder *b, const struct source *s)
{
	const size_t filter = s->setup->filter ? strlen(s->setup->filter) : 0;

	put_head(b, s);
	put_u64(b, read_config_bits(s, "tsc"));
	put_u64(b, read_config_bits(s, "noretcomp"));
	put_u64(b, s->setup->sched_switch);
	put_u64(b, 1); /* snapshot mode */
	put_u64(b, s->setup->per_cpu);
	put_u64(b, read_config_bits(s, "mtc"));
	put_u64(b, read_config_bits(s, "mtc_period"));
	put_clock_ratio(b, s);
	put_u64(b, read_config_bits(s, "cyc"));
	put_u64(b, read_number(s, "max_nonturbo_ratio", 10));
	put_u64(b, filter);
	if (filter) { /* with at least one NUL */
		put_bytes(b, s->setup->filter, filter);
		put_zeros(b, FR_ALIGN_UP(filter + 1, 8) - filter);
	}
	put_u64(b, read_number(s, "caps/event_trace", 10));
}

static void put_arm_spe(struct builder *b, const struct source *s)
{
	put_u64(b, s->attr->type);
	put_u64(b, s->setup->per_cpu);
}

/* Returns the value of the register TRCCONFIGR of an ETMv4 for the options in attr.config. */
static uint64_t make_trcconfigr(const struct source *s)
{
	static const struct {
		const char *option;
		uint64_t bits;
	} options[] = {
		{"branch_broadcast", 1u << 3},
		{"cycacc", 1u << 4},
		{"contextid1", 1u << 6},
		{"contextid2", 1u << 7 | 1u << 15},
		{"timestamp", 1u << 11},
		{"retstack", 1u << 12},
	};
	uint64_t v = 0;

	for (size_t i = 0; i < FR_ARRAY_SIZE(options); i++)
		if (s->attr->config & read_config_bits(s, options[i].option))
			v |= options[i].bits;
	return v;
}

static uint64_t read_register(const struct source *s, int cpu, const char *name)
{
	char file[64];

	snprintf(file, sizeof(file), "cpu%d/%s", cpu, name);
	return read_number(s, file, 16);
}

/* Appends the registers of the trace unit of one CPU. Returns false if it is older than ETMv4. */
static bool put_trace_unit(struct builder *b, const struct source *s, int cpu, uint64_t trcconfigr)
{
	const uint64_t idr0 = read_register(s, cpu, "trcidr/trcidr0");
	const uint64_t devarch = read_register(s, cpu, "mgmt/trcdevarch");
	const bool is_ete = (devarch & 0xffff) == 0x5a13; /* version 5, trace unit */

	if (idr0 == 0)
		return false;
	put_u64(b, is_ete ? 0x5050505050505050ull : 0x4040404040404040ull);
	put_u64(b, (uint64_t)cpu);
	put_u64(b, is_ete ? 8 : 7); /* the number of words that follow */
	put_u64(b, trcconfigr);
	/* The trace id that the kernel gives to the CPU, if it does not say another id by a record
	   AUX_OUTPUT_HW_ID. Valid ids are below 0x70. */
	put_u64(b, 0x10 + 2 * ((uint64_t)cpu % 48));
	put_u64(b, idr0);
	put_u64(b, read_register(s, cpu, "trcidr/trcidr1"));
	put_u64(b, read_register(s, cpu, "trcidr/trcidr2"));
	put_u64(b, read_register(s, cpu, "trcidr/trcidr8"));
	put_u64(b, read_register(s, cpu, "mgmt/trcauthstatus"));
	if (is_ete)
		put_u64(b, devarch);
	return true;
}

static void put_cs_etm(struct builder *b, const struct source *s)
{
	const uint64_t trcconfigr = make_trcconfigr(s);
	uint64_t n = 0, pmu_and_cpus;
	size_t at;

	put_u64(b, 1); /* the version of this format: the newest that all versions of perf read */
	at = b->buf.len;
	put_u64(b, 0);
	put_u64(b, 1); /* snapshot mode */
	for (size_t i = 0; i < s->setup->n_cpus; i++)
		n += put_trace_unit(b, s, s->setup->cpus[i], trcconfigr);
	pmu_and_cpus = (uint64_t)s->attr->type << 32 | n;
	set_bytes(b, at, &pmu_and_cpus, sizeof(pmu_and_cpus));
}

int fr_auxtrace_info(struct fr_buf *ret, const struct perf_event_attr *attr, const char *pmu_name,
	const struct fr_auxtrace_setup *setup)
{
	static const struct {
		const char *pmu;
		size_t compared; /* bytes of the name */
		enum decoder decoder;
		void (*put)(struct builder *b, const struct source *s);
	} decoders[] = {
		{"intel_pt", sizeof("intel_pt"), INTEL_PT, put_intel_pt},
		{"intel_bts", sizeof("intel_bts"), INTEL_BTS, put_intel_bts},
		{"cs_etm", sizeof("cs_etm"), CS_ETM, put_cs_etm},
		{"arm_spe_", sizeof("arm_spe_") - 1, ARM_SPE, put_arm_spe},
	};
	const struct source s = {setup->sysfs ? setup->sysfs : "/sys", pmu_name, attr, setup};
	struct fr_record_auxtrace_info head = {.header.type = FR_RECORD_AUXTRACE_INFO};
	struct builder b = {0};
	size_t i = 0;
	int r;

	while (i < FR_ARRAY_SIZE(decoders) && strncmp(pmu_name, decoders[i].pmu, decoders[i].compared) != 0)
		i++;
	if (i == FR_ARRAY_SIZE(decoders))
		return 0;
	head.type = decoders[i].decoder;
	put_bytes(&b, &head, sizeof(head));
	decoders[i].put(&b, &s);
	head.header.size = (uint16_t)b.buf.len;
	set_bytes(&b, 0, &head, sizeof(head));
	r = b.failed ? -ENOMEM : b.buf.len > RECORD_MAX ? -E2BIG : fr_buf_append(ret, b.buf.data, b.buf.len);
	fr_buf_deinit(&b.buf);
	return r;
}
