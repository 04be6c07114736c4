// SPDX-License-Identifier: GPL-2.0-or-later

/* Gathers the sections that describe this machine, this program and its clock. */

#include "perfdata/features_private.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/thread.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>

#define PROC_FILE_MAX (4u << 20)
#define CLOCK_DATA_VERSION 1u
/* The bits for variant and revision in MIDR_EL1 of an arm64 CPU. perf leaves them out of the CPUID. */
#define ARM64_MIDR_REVISIONS 0xf0000ful

int fr_feature_read_line(char *ret, size_t size, const char *fmt, ...)
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

uint32_t fr_feature_read_last_number(const char *path)
{
	char text[4096];
	size_t at;

	if (fr_read_line(path, text, sizeof(text)) < 0)
		return 0;
	for (at = strlen(text); at > 0 && isdigit((unsigned char)text[at - 1]);)
		at--;
	return (uint32_t)strtoul(text + at, NULL, 10);
}

/* Copies the value of the first line "KEY : value" of TEXT, with one blank for each row of white space.
   Returns false if there is no such line, or it has no value. */
static bool copy_value(const char *text, const char *key, char *ret, size_t size)
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

/* perf annotate gives up unless CPUID has the form that perf writes on this architecture. On an unknown
   architecture the section is left out. Without the section, perf assumes an unknown model. */
static int set_cpuid(struct fr_session *s, const char *cpuinfo)
{
	char vendor[64], family[32], model[32], stepping[32], text[192];
	unsigned long midr;

	if (copy_value(cpuinfo, "vendor_id", vendor, sizeof(vendor)) &&
		copy_value(cpuinfo, "cpu family", family, sizeof(family)) &&
		copy_value(cpuinfo, "model", model, sizeof(model)) &&
		copy_value(cpuinfo, "stepping", stepping, sizeof(stepping)))
		snprintf(text, sizeof(text), "%s,%s,%s,%s", vendor, family, model, stepping);
	else if (fr_feature_read_line(text, sizeof(text),
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
		if (copy_value((char *)b.data, names[i], text, sizeof(text))) {
			r = fr_feature_set_string(s, FR_FEATURE_CPUDESC, text);
			if (r < 0)
				return r;
			break;
		}
	return set_cpuid(s, (char *)b.data);
}

static int set_total_mem(struct fr_session *s)
{
	struct builder b = {0};
	struct sysinfo info;

	if (sysinfo(&info) < 0)
		return 0;
	put_u64(&b, (uint64_t)info.totalram * info.mem_unit / 1024);
	return finish_section(&b, &s->features[FR_FEATURE_TOTAL_MEM]);
}

/* NRCPUS has the highest present CPU + 1, and the number of online CPUs. */
static int set_nrcpus(struct fr_session *s, uint32_t *ret_cpus)
{
	uint32_t online = (uint32_t)FR_MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L);
	uint32_t present = fr_feature_read_last_number("/sys/devices/system/cpu/present") + 1;
	struct builder b = {0};

	*ret_cpus = FR_MAX(present, online);
	put_u32(&b, *ret_cpus);
	put_u32(&b, online);
	return finish_section(&b, &s->features[FR_FEATURE_NRCPUS]);
}

static int set_names(struct fr_session *s)
{
	struct utsname u;
	int r = uname(&u) < 0 ? -errno : 0;

	r = r < 0 ? r : fr_feature_set_string(s, FR_FEATURE_HOSTNAME, u.nodename);
	r = r < 0 ? r : fr_feature_set_string(s, FR_FEATURE_OSRELEASE, u.release);
	r = r < 0 ? r : fr_feature_set_string(s, FR_FEATURE_ARCH, u.machine);
	/* Readers assume that VERSION is the version of perf, and some refuse a version before 3.17. So the
	   text begins with a version of perf that has this format. The version of this program follows. */
	return r < 0 ? r : fr_feature_set_string(s, FR_FEATURE_VERSION, "6.1.flightrec-" FR_VERSION);
}

static int set_cmdline(struct fr_session *s, int argc, char *const argv[])
{
	struct builder b = {0};

	if (argc <= 0)
		return 0;
	put_u32(&b, (uint32_t)argc);
	for (int i = 0; i < argc; i++)
		fr_feature_put_string(&b, argv[i]);
	return finish_section(&b, &s->features[FR_FEATURE_CMDLINE]);
}

static int set_clock(struct fr_session *s, const struct fr_clock_pair *pair)
{
	struct builder id = {0}, data = {0};
	struct timespec resolution;
	int r;

	if (clock_getres(CLOCK_MONOTONIC, &resolution) < 0)
		return -errno;
	put_u64(&id, (uint64_t)resolution.tv_sec * FR_NSEC_PER_SEC + (uint64_t)resolution.tv_nsec);
	r = finish_section(&id, &s->features[FR_FEATURE_CLOCKID]);
	if (r < 0)
		return r;
	put_u32(&data, CLOCK_DATA_VERSION);
	put_u32(&data, CLOCK_MONOTONIC);
	put_u64(&data, pair->realtime_ns);
	put_u64(&data, pair->monotonic_ns);
	return finish_section(&data, &s->features[FR_FEATURE_CLOCK_DATA]);
}

int fr_features_gather(struct fr_session *s, int argc, char *const argv[], const struct fr_clock_pair *pair,
	struct fr_diag *d)
{
	uint32_t cpus = 0;
	int r;

	fr_thread_assert_not(FR_THREAD_RECORDER);
	r = set_names(s);
	r = r < 0 ? r : set_nrcpus(s, &cpus);
	r = r < 0 ? r : set_cpu_text(s);
	r = r < 0 ? r : set_total_mem(s);
	r = r < 0 ? r : set_cmdline(s, argc, argv);
	r = r < 0 ? r : set_clock(s, pair);
	r = r < 0 ? r : fr_feature_set_event_desc(s);
	r = r < 0 ? r : fr_features_gather_cpus(s, cpus);
	r = r < 0 ? r : fr_features_gather_caches(s, cpus);
	r = r < 0 ? r : fr_features_gather_numa(s);
	r = r < 0 ? r : fr_features_gather_memory(s);
	r = r < 0 ? r : fr_features_gather_pmus(s);
	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot describe this machine in the file's head") : 0;
}
