// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads PMUs in sysfs: DIR/PMU/{type, format/TERM, events/NAME, cpus, cpumask}
   (Documentation/ABI/testing/sysfs-bus-event_source-devices-format and -events). */
#include "capture/event_internal.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/units.h"

#include <endian.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static int read_attribute(const struct fr_event_env *env, const char *pmu, const char *below,
	const char *name, char *ret, size_t size)
{
	char path[PATH_MAX];

	if (!fr_event_name_is_safe(pmu) || !fr_event_name_is_safe(name))
		return -ENOENT;
	if (snprintf(path, sizeof(path), "%s/%s%s%s/%s", env->pmu_dir, pmu, *below ? "/" : "", below, name) >=
		(int)sizeof(path))
		return -ENAMETOOLONG;
	return fr_read_line(path, ret, size);
}

bool fr_pmu_exists(const struct fr_event_env *env, const char *pmu)
{
	char type[32];

	return read_attribute(env, pmu, "", "type", type, sizeof(type)) == 0;
}

bool fr_pmu_is_core(const struct fr_event_env *env, const char *pmu)
{
	char cpus[64];

	return !strcmp(pmu, "cpu") || read_attribute(env, pmu, "", "cpus", cpus, sizeof(cpus)) == 0;
}

/* Writes the names in the directory `below` of PMU to RET, for messages. */
static void list_names(
	const struct fr_event_env *env, const char *pmu, const char *below, char *ret, size_t size)
{
	char pattern[PATH_MAX];
	glob_t found = {0};
	size_t len = 0;

	snprintf(ret, size, "none");
	snprintf(pattern, sizeof(pattern), "%s/%s/%s/*", env->pmu_dir, pmu, below);
	(void)glob(pattern, 0, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc && len < size; i++)
		len += (size_t)snprintf(
			ret + len, size - len, "%s%s", len ? ", " : "", strrchr(found.gl_pathv[i], '/') + 1);
	globfree(&found);
}

static int fail_unknown_term(
	const struct fr_event_env *env, const char *pmu, const char *term, struct fr_diag *d)
{
	char formats[160], events[160], hint[512];

	list_names(env, pmu, "format", formats, sizeof(formats));
	list_names(env, pmu, "events", events, sizeof(events));
	snprintf(hint, sizeof(hint), "it has: %s; named events: %s; and every event has: %s", formats, events,
		fr_common_terms);
	return fr_fail(d, -EINVAL, hint, "the PMU %s has no term or event \"%s\"", pmu, term);
}

/* The bits of an attr that hold the value of a term. */
struct field {
	unsigned config; /* the config word that the term is in */
	unsigned width;
	uint64_t bits; /* the bits of the config word that hold the value; the lowest of them holds the lowest
			  bit of the value */
};

/* Parses a format like "config1:0-7,32-35". */
static int parse_format(const char *s, struct field *ret)
{
	static const char *const words[] = {"config:", "config1:", "config2:"};
	uint64_t bits;
	size_t len = 0;
	int n;

	for (ret->config = 0; ret->config < FR_ARRAY_SIZE(words); ret->config++) {
		len = strlen(words[ret->config]);
		if (!strncmp(s, words[ret->config], len))
			break;
	}
	if (ret->config == FR_ARRAY_SIZE(words))
		return -EOPNOTSUPP;
	n = fr_cpulist_parse(s + len, (uint8_t *)&bits, 64); /* bits have the syntax of CPU lists */
	if (n <= 0)
		return -EBADMSG;
	ret->bits = le64toh(bits);
	ret->width = (unsigned)n;
	return 0;
}

/* Spreads VALUE over BITS: the lowest bit of VALUE goes to the lowest bit that is set in BITS, and so on. */
static uint64_t spread_bits(uint64_t value, uint64_t bits)
{
	uint64_t out = 0;

	for (; bits; bits &= bits - 1, value >>= 1)
		if (value & 1)
			out |= bits & -bits;
	return out;
}

static int set_term(const struct fr_event_env *env, const char *pmu, const char *name, const char *value,
	struct perf_event_attr *a, struct fr_diag *d)
{
	struct field f = {0};
	char format[256];
	uint64_t v = 1, max;
	__u64 *word;
	int r = read_attribute(env, pmu, "format", name, format, sizeof(format));

	if (r == 0)
		r = parse_format(format, &f);
	if (r == -ENOENT)
		return fail_unknown_term(env, pmu, name, d);
	if (r < 0)
		return fr_fail(
			d, r, NULL, "cannot read the format of the term \"%s\" of the PMU %s", name, pmu);
	if (value && !fr_term_number(value, 0, UINT64_MAX, &v))
		return fr_fail(d, -EINVAL, "give a decimal number, or a hexadecimal one with 0x",
			"the term %s takes a number, not \"%s\"", name, value);
	max = f.width == 64 ? UINT64_MAX : (1ULL << f.width) - 1;
	if (v > max)
		return fr_fail(d, -EINVAL, "give a smaller number",
			"%s=%s is too large: the term has %u bits (at most 0x%llx)", name,
			value ? value : "1", f.width, (unsigned long long)max);
	word = fr_event_attr_config(a, f.config);
	*word = (*word & ~f.bits) | spread_bits(v, f.bits);
	return 0;
}

/* Sets the terms that perf sets for PMUs of hardware traces, if the PMU has them. Without the times and the
   threads in its data, a decoder cannot assign the data to the other records. */
static int set_trace_defaults(
	const struct fr_event_env *env, const char *pmu, struct perf_event_attr *a, struct fr_diag *d)
{
	static const struct {
		const char *pmu, *term;
	} defaults[] = {{"intel_pt", "pt"}, {"intel_pt", "branch"}, {"intel_pt", "tsc"},
		{"cs_etm", "contextid"}, {"cs_etm", "timestamp"}};
	char format[256];
	int r = 0;

	for (size_t i = 0; r == 0 && i < FR_ARRAY_SIZE(defaults); i++)
		if (!strcmp(pmu, defaults[i].pmu) &&
			read_attribute(env, pmu, "format", defaults[i].term, format, sizeof(format)) == 0)
			r = set_term(env, pmu, defaults[i].term, "1", a, d);
	return r;
}

static bool has_value(const struct fr_terms *terms, const char *name)
{
	for (size_t i = 0; i < terms->n; i++)
		if (terms->items[i].value && !strcmp(terms->items[i].name, name))
			return true;
	return false;
}

/* Sets the terms of a named event. TEXT is the content of events/NAME, like "event=0x3c,umask=0x1". If a
   value in TEXT is "?", the user has to give the value with a term. */
static int set_named_event(const struct fr_event_env *env, const char *pmu, char *text, const char *name,
	const struct fr_terms *user, struct perf_event_attr *a, struct fr_diag *d)
{
	struct fr_terms terms;
	int r = fr_terms_split(text, &terms, d);

	for (size_t i = 0; r == 0 && i < terms.n; i++) {
		const struct fr_term *t = &terms.items[i];

		if (t->value && !strcmp(t->value, "?")) {
			if (!has_value(user, t->name))
				r = fr_fail(d, -EINVAL, "add the value",
					"%s needs a value for \"%s\": %s,%s=…", name, t->name, name, t->name);
			continue;
		}
		r = set_term(env, pmu, t->name, t->value, a, d);
	}
	return r;
}

/* "cpus" lists the CPUs of a PMU on machines with several kinds of cores. "cpumask" lists one CPU of each
   package for a PMU that counts whole packages. */
static int set_cpus(const struct fr_event_env *env, const char *pmu, struct fr_event *e)
{
	static const char *const files[] = {"cpus", "cpumask"};
	char cpus[1024];

	for (size_t i = 0; !e->cpus && i < FR_ARRAY_SIZE(files); i++) {
		if (read_attribute(env, pmu, "", files[i], cpus, sizeof(cpus)) < 0 || !*cpus)
			continue;
		e->cpus = strdup(cpus);
		e->system_wide_only = i == 1;
		if (!e->cpus)
			return -ENOMEM;
	}
	return 0;
}

int fr_pmu_event(const struct fr_event_env *env, const char *pmu, const struct fr_terms *terms,
	struct fr_event *e, struct fr_diag *d)
{
	char line[512];
	uint64_t type;
	int r = read_attribute(env, pmu, "", "type", line, sizeof(line));

	if (r == -ENOENT) {
		char near[400];

		fr_event_suggest(env, pmu, near, sizeof(near));
		return fr_fail(d, r, near, "there is no PMU \"%s\"", pmu);
	}
	if (r < 0 || fr_u64_parse(line, &type) < 0 || type > UINT32_MAX)
		return fr_fail(d, r < 0 ? r : -EBADMSG, NULL, "cannot read the type of the PMU %s", pmu);
	e->attr.type = type;
	e->pmu = strdup(pmu);
	if (!e->pmu)
		return -ENOMEM;
	r = set_trace_defaults(env, pmu, &e->attr, d);
	if (r < 0)
		return r;
	/* Apply the named events first, because other terms of the user override terms of a named event. */
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < terms->n; i++) {
			const struct fr_term *t = &terms->items[i];
			bool named = !t->value &&
				     read_attribute(env, pmu, "events", t->name, line, sizeof(line)) == 0;

			if (named && pass == 0)
				r = set_named_event(env, pmu, line, t->name, terms, &e->attr, d);
			else if (!named && pass == 1)
				r = set_term(env, pmu, t->name, t->value, &e->attr, d);
			if (r < 0)
				return r;
		}
	return set_cpus(env, pmu, e);
}

/* EVENT is the name of a file in events/. Returns true if the file is not an event, but a property (such as
   the unit) of the event that has this name without the suffix. */
static bool has_suffix(const char *event)
{
	static const char *const suffixes[] = {".scale", ".unit", ".per-pkg", ".snapshot"};
	const char *dot = strrchr(event, '.');

	for (size_t i = 0; dot && i < FR_ARRAY_SIZE(suffixes); i++)
		if (!strcmp(dot, suffixes[i]))
			return true;
	return false;
}

int fr_pmu_foreach(const struct fr_event_env *env, fr_pmu_fn fn, void *ctx)
{
	const size_t dir_len = strlen(env->pmu_dir) + 1;
	char pattern[PATH_MAX];
	glob_t found = {0};
	int r = 0;

	snprintf(pattern, sizeof(pattern), "%s/*", env->pmu_dir);
	(void)glob(pattern, 0, NULL, &found);
	snprintf(pattern, sizeof(pattern), "%s/*/events/*", env->pmu_dir);
	(void)glob(pattern, GLOB_APPEND, NULL, &found);
	for (size_t i = 0; r == 0 && i < found.gl_pathc; i++) {
		char *pmu = found.gl_pathv[i] + dir_len, *event = strchr(pmu, '/');

		if (event) {
			*event = 0;
			event = strrchr(event + 1, '/') + 1;
		}
		if (!event || !has_suffix(event))
			r = fn(ctx, pmu, event);
	}
	globfree(&found);
	return r;
}
