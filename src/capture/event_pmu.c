// SPDX-License-Identifier: GPL-2.0-or-later
/* PMUs as sysfs describes them: DIR/PMU/{type, format/TERM, events/NAME, cpus, cpumask}
   (Documentation/ABI/testing/sysfs-bus-event_source-devices-format and -events). */
#include "capture/event_internal.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/units.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define SUFFIXES_OF_EVENTS ".scale", ".unit", ".per-pkg", ".snapshot"

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

/* The names in DIR, for messages and for the search of bare names. FN returns non-zero to stop. */
static int foreach_entry(const char *path, int (*fn)(void *ctx, const char *name), void *ctx)
{
	_cleanup_closedir_ DIR *dir = opendir(path);
	struct dirent *e;
	int r = 0;

	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	while (r == 0 && (e = readdir(dir)))
		if (e->d_name[0] != '.')
			r = fn(ctx, e->d_name);
	return r;
}

struct names {
	char *text;
	size_t size, len;
};

static int append_name(void *ctx, const char *name)
{
	struct names *n = ctx;
	int w = snprintf(n->text + n->len, n->size - n->len, "%s%s", n->len ? ", " : "", name);

	if (w > 0)
		n->len = FR_MIN(n->len + (size_t)w, n->size - 1);
	return 0;
}

static int bad_term(const struct fr_event_env *env, const char *pmu, const char *term, struct fr_diag *d)
{
	char path[PATH_MAX], formats[160] = "", events[160] = "", hint[512];
	struct names f = {formats, sizeof(formats), 0}, e = {events, sizeof(events), 0};

	snprintf(path, sizeof(path), "%s/%s/format", env->pmu_dir, pmu);
	foreach_entry(path, append_name, &f);
	snprintf(path, sizeof(path), "%s/%s/events", env->pmu_dir, pmu);
	foreach_entry(path, append_name, &e);
	snprintf(hint, sizeof(hint), "it has: %s; named events: %s; and every event has: %s",
		*formats ? formats : "none", *events ? events : "none", fr_common_terms);
	return fr_fail(d, -EINVAL, hint, "the PMU %s has no term or event \"%s\"", pmu, term);
}

struct field {
	unsigned config;
	uint64_t bits; /* of that config word that the term's value fills, from the lowest up */
};

/* "config1:0-7,32-35" */
static int format_parse(const char *s, struct field *ret)
{
	static const char *const words[] = {"config", "config1", "config2"};
	const char *colon = strchr(s, ':');
	unsigned i;

	if (!colon)
		return -EOPNOTSUPP;
	for (i = 0; i < FR_ARRAY_SIZE(words); i++)
		if (strlen(words[i]) == (size_t)(colon - s) && !strncmp(s, words[i], colon - s))
			break;
	if (i == FR_ARRAY_SIZE(words))
		return -EOPNOTSUPP;
	ret->config = i;
	ret->bits = 0;
	for (s = colon + 1; *s;) {
		char *end;
		unsigned long from = strtoul(s, &end, 10), to = from;

		if (end == s)
			return -EBADMSG;
		if (*end == '-') {
			s = end + 1;
			to = strtoul(s, &end, 10);
			if (end == s)
				return -EBADMSG;
		}
		if (from > to || to > 63 || (*end && *end != ','))
			return -EBADMSG;
		ret->bits |= ~0ULL >> (63 - to) & ~0ULL << from;
		s = *end ? end + 1 : end;
	}
	return ret->bits ? 0 : -EBADMSG;
}

/* Spread VALUE over BITS, its lowest bit to the lowest of them. */
static uint64_t deposit(uint64_t value, uint64_t bits)
{
	uint64_t out = 0;

	for (; bits; bits &= bits - 1, value >>= 1)
		if (value & 1)
			out |= bits & -bits;
	return out;
}

static int term_set(const struct fr_event_env *env, const char *pmu, const char *name, const char *value,
	struct perf_event_attr *a, struct fr_diag *d)
{
	struct field f = {0};
	char format[256], *end;
	uint64_t v = 1, max;
	unsigned width;
	int r = read_attribute(env, pmu, "format", name, format, sizeof(format));

	if (r == 0)
		r = format_parse(format, &f);
	if (r == -ENOENT)
		return bad_term(env, pmu, name, d);
	if (r < 0)
		return fr_fail(
			d, r, NULL, "cannot read the format of the term \"%s\" of the PMU %s", name, pmu);
	if (value) {
		errno = 0;
		v = strtoull(value, &end, 0);
		if (errno || *end || *value < '0' || *value > '9')
			return fr_fail(d, -EINVAL, "decimal, or hexadecimal with 0x",
				"the term %s takes a number, not \"%s\"", name, value);
	}
	width = __builtin_popcountll(f.bits);
	max = width == 64 ? UINT64_MAX : (1ULL << width) - 1;
	if (v > max)
		return fr_fail(d, -EINVAL, "give a smaller number",
			"%s=%s is too large: the term has %u bits (at most 0x%llx)", name,
			value ? value : "1", width, (unsigned long long)max);
	v = deposit(v, f.bits);
	if (f.config == 0)
		a->config = (a->config & ~f.bits) | v;
	else if (f.config == 1)
		a->config1 = (a->config1 & ~f.bits) | v;
	else
		a->config2 = (a->config2 & ~f.bits) | v;
	return 0;
}

static bool user_gives(const struct fr_terms *terms, const char *name)
{
	for (size_t i = 0; i < terms->n; i++)
		if (terms->items[i].value && !strcmp(terms->items[i].name, name))
			return true;
	return false;
}

/* events/NAME holds "event=0x3c,umask=0x1"; "?" stands for what the user has to give. */
static int named_event(const struct fr_event_env *env, const char *pmu, char *text, const char *name,
	const struct fr_terms *user, struct perf_event_attr *a, struct fr_diag *d)
{
	struct fr_terms terms;
	int r = fr_terms_split(text, &terms, d);

	for (size_t i = 0; r == 0 && i < terms.n; i++) {
		const struct fr_term *t = &terms.items[i];

		if (t->value && !strcmp(t->value, "?")) {
			if (!user_gives(user, t->name))
				r = fr_fail(d, -EINVAL, "add the value",
					"%s needs a value for \"%s\": %s,%s=…", name, t->name, name, t->name);
			continue;
		}
		r = term_set(env, pmu, t->name, t->value, a, d);
	}
	return r;
}

static int unknown_pmu(const struct fr_event_env *env, const char *pmu, struct fr_diag *d)
{
	char near[400];

	fr_event_suggest(env, pmu, near, sizeof(near));
	return fr_fail(d, -ENOENT, near, "there is no PMU \"%s\"", pmu);
}

/* Where it counts: "cpus" on machines with several kinds of cores, "cpumask" for what a package has once. */
static int set_reach(const struct fr_event_env *env, const char *pmu, struct fr_event *e)
{
	char cpus[1024];

	if (read_attribute(env, pmu, "", "cpus", cpus, sizeof(cpus)) == 0 && *cpus) {
		e->cpus = strdup(cpus);
	} else if (read_attribute(env, pmu, "", "cpumask", cpus, sizeof(cpus)) == 0 && *cpus) {
		e->cpus = strdup(cpus);
		e->system_wide_only = true;
	} else {
		return 0;
	}
	return e->cpus ? 0 : -ENOMEM;
}

int fr_pmu_event(const struct fr_event_env *env, const char *pmu, const struct fr_terms *terms,
	struct fr_event *e, struct fr_diag *d)
{
	char line[512];
	uint64_t type;
	int r = read_attribute(env, pmu, "", "type", line, sizeof(line));

	if (r == -ENOENT)
		return unknown_pmu(env, pmu, d);
	if (r < 0 || fr_u64_parse(line, &type) < 0 || type > UINT32_MAX)
		return fr_fail(d, r < 0 ? r : -EBADMSG, NULL, "cannot read the type of the PMU %s", pmu);
	e->attr.type = type;
	/* Named events first: what the user says beside one refines it. */
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < terms->n; i++) {
			const struct fr_term *t = &terms->items[i];
			bool named = !t->value &&
				     read_attribute(env, pmu, "events", t->name, line, sizeof(line)) == 0;

			if (named && pass == 0)
				r = named_event(env, pmu, line, t->name, terms, &e->attr, d);
			else if (!named && pass == 1)
				r = term_set(env, pmu, t->name, t->value, &e->attr, d);
			if (r < 0)
				return r;
		}
	return set_reach(env, pmu, e);
}

struct foreach {
	const struct fr_event_env *env;
	fr_pmu_fn fn;
	void *ctx;
	const char *pmu;
};

static int foreach_event(void *ctx, const char *event)
{
	static const char *const suffixes[] = {SUFFIXES_OF_EVENTS};
	struct foreach *f = ctx;
	const char *dot = strrchr(event, '.');

	for (size_t i = 0; dot && i < FR_ARRAY_SIZE(suffixes); i++)
		if (!strcmp(dot, suffixes[i]))
			return 0;
	return f->fn(f->ctx, f->pmu, event);
}

static int foreach_pmu(void *ctx, const char *pmu)
{
	struct foreach *f = ctx;
	char path[PATH_MAX];
	int r = f->fn(f->ctx, pmu, NULL);

	f->pmu = pmu;
	snprintf(path, sizeof(path), "%s/%s/events", f->env->pmu_dir, pmu);
	return r ? r : foreach_entry(path, foreach_event, f);
}

int fr_pmu_foreach(const struct fr_event_env *env, fr_pmu_fn fn, void *ctx)
{
	struct foreach f = {env, fn, ctx, NULL};

	return foreach_entry(env->pmu_dir, foreach_pmu, &f);
}
