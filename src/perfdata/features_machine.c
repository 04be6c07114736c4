// SPDX-License-Identifier: GPL-2.0-or-later

/* The sections that tell of this machine, of this program and of its clock. */

#include "perfdata/features.h"
#include "perfdata/features_private.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#define PROC_FILE_MAX (4u << 20)
#define CLOCK_DATA_VERSION 1u
/* Variant and revision of an arm64 CPU, which perf leaves out. */
#define ARM64_MIDR_REVISIONS 0xf0000ful

int fr_feature_line(char *ret, size_t size, const char *fmt, ...)
{
	char path[512];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	return fr_read_line(path, ret, size);
}

/* The value of the first "KEY : value" of TEXT, runs of white space made one blank. */
static bool find_value(const char *text, const char *key, char *ret, size_t size)
{
	size_t key_len = strlen(key), n = 0;

	for (const char *line = text; line; line = strchr(line, '\n')) {
		const char *p;

		line += *line == '\n';
		if (strncmp(line, key, key_len) != 0)
			continue;
		p = line + key_len + strspn(line + key_len, " \t");
		if (*p != ':')
			continue;
		for (p++; *p && *p != '\n' && n + 2 < size; p++) {
			bool blank = isspace((unsigned char)*p);

			if (!blank || (n > 0 && ret[n - 1] != ' '))
				ret[n++] = blank ? ' ' : *p;
		}
		while (n > 0 && ret[n - 1] == ' ')
			n--;
		ret[n] = '\0';
		return n > 0;
	}
	return false;
}

/* As perf writes it for this architecture: perf annotate gives up at another form. Where none is known there
   is no section, which it takes for an unknown model. */
static int set_cpuid(struct fr_session *s, const char *cpuinfo)
{
	char vendor[64], family[32], model[32], stepping[32], text[192];
	unsigned long midr;

	if (find_value(cpuinfo, "vendor_id", vendor, sizeof(vendor)) &&
		find_value(cpuinfo, "cpu family", family, sizeof(family)) &&
		find_value(cpuinfo, "model", model, sizeof(model)) &&
		find_value(cpuinfo, "stepping", stepping, sizeof(stepping)))
		snprintf(text, sizeof(text), "%s,%s,%s,%s", vendor, family, model, stepping);
	else if (fr_feature_line(text, sizeof(text),
			 "/sys/devices/system/cpu/cpu0/regs/identification/midr_el1") == 0 &&
		 (midr = strtoul(text, NULL, 16)) != 0)
		snprintf(text, sizeof(text), "0x%016lx", midr & ~ARM64_MIDR_REVISIONS);
	else
		return 0;
	return fr_feature_set_string(s, FR_FEATURE_CPUID, text);
}

static int set_cpu_text(struct fr_session *s)
{
	static const char *const names[] = {"model name", "Processor", "Model Name", "cpu model", "cpu"};
	_cleanup_buf_ struct fr_buf b = {0};
	char text[256];
	int r;

	if (fr_read_file(AT_FDCWD, "/proc/cpuinfo", PROC_FILE_MAX, &b) < 0)
		return 0;
	for (size_t i = 0; i < FR_ARRAY_SIZE(names); i++)
		if (find_value((char *)b.data, names[i], text, sizeof(text))) {
			r = fr_feature_set_string(s, FR_FEATURE_CPUDESC, text);
			if (r < 0)
				return r;
			break;
		}
	return set_cpuid(s, (char *)b.data);
}

static int set_total_mem(struct fr_session *s)
{
	_cleanup_buf_ struct fr_buf b = {0}, section = {0};
	char text[64];
	uint64_t kb;
	int r;

	if (fr_read_file(AT_FDCWD, "/proc/meminfo", PROC_FILE_MAX, &b) < 0 ||
		!find_value((char *)b.data, "MemTotal", text, sizeof(text)) ||
		sscanf(text, "%" SCNu64, &kb) != 1)
		return 0;
	r = fr_buf_append_u64(&section, kb);
	if (r == 0)
		fr_feature_take(s, FR_FEATURE_TOTAL_MEM, &section);
	return r;
}

/* perf's NRCPUS has the highest present CPU + 1, and how many are online. */
static int set_nrcpus(struct fr_session *s, uint32_t *ret_cpus)
{
	_cleanup_buf_ struct fr_buf b = {0};
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	uint32_t cpus = 0;
	char text[4096];
	int r;

	if (fr_feature_line(text, sizeof(text), "/sys/devices/system/cpu/present") == 0) {
		const char *p = strrchr(text, ',');
		const char *dash;

		p = p ? p + 1 : text;
		dash = strchr(p, '-');
		cpus = (uint32_t)strtoul(dash ? dash + 1 : p, NULL, 10) + 1;
	}
	if (online < 1)
		online = 1;
	if (cpus < (uint32_t)online)
		cpus = (uint32_t)online;
	r = fr_buf_append_u32(&b, cpus);
	if (r == 0)
		r = fr_buf_append_u32(&b, (uint32_t)online);
	if (r < 0)
		return r;
	fr_feature_take(s, FR_FEATURE_NRCPUS, &b);
	*ret_cpus = cpus;
	return 0;
}

static int set_names(struct fr_session *s)
{
	struct utsname u;
	int r;

	if (uname(&u) < 0)
		return -errno;
	r = fr_feature_set_string(s, FR_FEATURE_HOSTNAME, u.nodename);
	if (r == 0)
		r = fr_feature_set_string(s, FR_FEATURE_OSRELEASE, u.release);
	if (r == 0)
		r = fr_feature_set_string(s, FR_FEATURE_ARCH, u.machine);
	/* Readers take this for perf's version and enable by it what they expect in the file (some want
	   ≥ 3.17): it says which perf's format this is, then who wrote it. */
	if (r == 0)
		r = fr_feature_set_string(s, FR_FEATURE_VERSION, "6.1.flightrec-" FR_VERSION);
	return r;
}

static int set_cmdline(struct fr_session *s, int argc, char *const argv[])
{
	_cleanup_buf_ struct fr_buf b = {0};
	int r;

	if (argc <= 0)
		return 0;
	r = fr_buf_append_u32(&b, (uint32_t)argc);
	for (int i = 0; i < argc && r == 0; i++)
		r = fr_feature_append_string(&b, argv[i]);
	if (r == 0)
		fr_feature_take(s, FR_FEATURE_CMDLINE, &b);
	return r;
}

static int set_clock(struct fr_session *s, const struct fr_clock_pair *pair)
{
	_cleanup_buf_ struct fr_buf id = {0}, data = {0};
	struct timespec resolution;
	int r;

	if (clock_getres(CLOCK_MONOTONIC, &resolution) < 0)
		return -errno;
	r = fr_buf_append_u64(
		&id, (uint64_t)resolution.tv_sec * FR_NSEC_PER_SEC + (uint64_t)resolution.tv_nsec);
	if (r == 0)
		r = fr_buf_append_u32(&data, CLOCK_DATA_VERSION);
	if (r == 0)
		r = fr_buf_append_u32(&data, CLOCK_MONOTONIC);
	if (r == 0)
		r = fr_buf_append_u64(&data, pair->realtime_ns);
	if (r == 0)
		r = fr_buf_append_u64(&data, pair->monotonic_ns);
	if (r < 0)
		return r;
	fr_feature_take(s, FR_FEATURE_CLOCKID, &id);
	fr_feature_take(s, FR_FEATURE_CLOCK_DATA, &data);
	return 0;
}

int fr_features_gather(struct fr_session *s, int argc, char *const argv[], const struct fr_clock_pair *pair,
	struct fr_diag *d)
{
	uint32_t cpus = 0;
	int r = set_names(s);

	if (r == 0)
		r = set_nrcpus(s, &cpus);
	if (r == 0)
		r = set_cpu_text(s);
	if (r == 0)
		r = set_total_mem(s);
	if (r == 0)
		r = set_cmdline(s, argc, argv);
	if (r == 0)
		r = set_clock(s, pair);
	if (r == 0)
		r = fr_feature_set_event_desc(s);
	if (r == 0)
		r = fr_features_gather_cpus(s, cpus);
	if (r == 0)
		r = fr_features_gather_caches(s, cpus);
	if (r == 0)
		r = fr_features_gather_numa(s);
	if (r == 0)
		r = fr_features_gather_memory(s);
	if (r == 0)
		r = fr_features_gather_pmus(s);
	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot describe this machine in the file's head") : 0;
}
