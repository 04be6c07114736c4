// SPDX-License-Identifier: GPL-2.0-or-later

/* CPU_TOPOLOGY and CACHE: which CPUs share a package, a die, a core, a cache. */

#include "perfdata/features_private.h"
#include "base/cleanup.h"

#include <errno.h>
#include <string.h>

#define CPU_DIR "/sys/devices/system/cpu/cpu%u/"
#define CACHE_LEVELS 10u
#define CPULIST_MAX 4096u

/* Different texts, in the order in which they came. */
struct texts {
	char **items;
	uint32_t n;
};

static void texts_deinit(struct texts *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		free(t->items[i]);
	free(t->items);
}
#define _cleanup_texts_ _cleanup_(texts_deinit)

static int texts_add(struct texts *t, const char *text)
{
	char **items, *copy;

	for (uint32_t i = 0; i < t->n; i++)
		if (strcmp(t->items[i], text) == 0)
			return 0;
	items = reallocarray(t->items, t->n + 1, sizeof(*items));
	if (!items)
		return -ENOMEM;
	t->items = items;
	copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	items[t->n++] = copy;
	return 0;
}

static int texts_append(const struct texts *t, struct fr_buf *b)
{
	int r = fr_buf_append_u32(b, t->n);

	for (uint32_t i = 0; i < t->n && r == 0; i++)
		r = fr_feature_append_string(b, t->items[i]);
	return r;
}

/* The CPU lists of all CPUs under the newer or the older name of the file; none where it is not there. */
static int read_lists(struct texts *t, uint32_t cpus, const char *name, const char *older)
{
	char text[CPULIST_MAX];

	for (uint32_t cpu = 0; cpu < cpus; cpu++) {
		int r;

		if (fr_feature_line(text, sizeof(text), CPU_DIR "topology/%s", cpu, name) < 0 &&
			(!older ||
				fr_feature_line(text, sizeof(text), CPU_DIR "topology/%s", cpu, older) < 0))
			continue; /* not online */
		r = texts_add(t, text);
		if (r < 0)
			return r;
	}
	return 0;
}

static uint32_t read_id(uint32_t cpu, const char *name)
{
	char text[32];

	if (fr_feature_line(text, sizeof(text), CPU_DIR "topology/%s", cpu, name) < 0)
		return UINT32_MAX; /* perf's -1 */
	return (uint32_t)strtol(text, NULL, 10);
}

int fr_features_gather_cpus(struct fr_session *s, uint32_t cpus)
{
	_cleanup_texts_ struct texts packages = {0}, dies = {0}, cores = {0};
	_cleanup_buf_ struct fr_buf b = {0};
	int r = read_lists(&packages, cpus, "package_cpus_list", "core_siblings_list");

	if (r == 0)
		r = read_lists(&cores, cpus, "core_cpus_list", "thread_siblings_list");
	if (r == 0)
		r = read_lists(&dies, cpus, "die_cpus_list", NULL);
	if (r < 0 || packages.n == 0 || cores.n == 0)
		return r;
	r = texts_append(&packages, &b);
	if (r == 0)
		r = texts_append(&cores, &b);
	for (uint32_t cpu = 0; cpu < cpus && r == 0; cpu++) {
		r = fr_buf_append_u32(&b, read_id(cpu, "core_id"));
		if (r == 0)
			r = fr_buf_append_u32(&b, read_id(cpu, "physical_package_id"));
	}
	if (r == 0 && dies.n > 0) {
		r = texts_append(&dies, &b);
		for (uint32_t cpu = 0; cpu < cpus && r == 0; cpu++)
			r = fr_buf_append_u32(&b, read_id(cpu, "die_id"));
	}
	if (r == 0)
		fr_feature_take(s, FR_FEATURE_CPU_TOPOLOGY, &b);
	return r;
}

/* One cache as it stands in the section. 1: appended, 0: there is none, -ENOMEM. */
static int append_cache(struct fr_buf *b, uint32_t cpu, uint32_t index)
{
	static const char *const numbers[] = {
		"level", "coherency_line_size", "number_of_sets", "ways_of_associativity"};
	static const char *const words[] = {"type", "size", "shared_cpu_list"};
	char text[CPULIST_MAX];

	for (size_t i = 0; i < FR_ARRAY_SIZE(numbers); i++) {
		/* A virtual machine may leave one of them out: 0 then. */
		if (fr_feature_line(text, sizeof(text), CPU_DIR "cache/index%u/%s", cpu, index, numbers[i]) <
			0) {
			if (i == 0)
				return 0;
			text[0] = '\0';
		}
		if (fr_buf_append_u32(b, (uint32_t)strtoul(text, NULL, 10)) < 0)
			return -ENOMEM;
	}
	for (size_t i = 0; i < FR_ARRAY_SIZE(words); i++) {
		if (fr_feature_line(text, sizeof(text), CPU_DIR "cache/index%u/%s", cpu, index, words[i]) < 0)
			return 0;
		if (fr_feature_append_string(b, text) < 0)
			return -ENOMEM;
	}
	return 1;
}

/* The same cache is seen from each CPU that shares it. */
static bool holds(const struct fr_buf *all, const size_t *starts, uint32_t n, const struct fr_buf *one)
{
	for (uint32_t i = 0; all->data && i < n; i++) {
		size_t len = (i + 1 < n ? starts[i + 1] : all->len) - starts[i];

		if (len == one->len && memcmp(all->data + starts[i], one->data, len) == 0)
			return true;
	}
	return false;
}

static uint32_t level_of(const struct fr_buf *all, size_t start)
{
	uint32_t level;

	memcpy(&level, all->data + start, sizeof(level));
	return level;
}

/* perf sorts them by level. */
static int append_sorted(struct fr_buf *b, const struct fr_buf *all, const size_t *starts, uint32_t n)
{
	int r = 0;

	for (uint32_t level = 0; level <= CACHE_LEVELS; level++)
		for (uint32_t i = 0; all->data && i < n && r == 0; i++) {
			size_t end = i + 1 < n ? starts[i + 1] : all->len;

			if (FR_MIN(level_of(all, starts[i]), CACHE_LEVELS) == level)
				r = fr_buf_append(b, all->data + starts[i], end - starts[i]);
		}
	return r;
}

int fr_features_gather_caches(struct fr_session *s, uint32_t cpus)
{
	_cleanup_buf_ struct fr_buf all = {0}, starts = {0}, one = {0}, b = {0};
	uint32_t n = 0;
	int r;

	for (uint32_t cpu = 0; cpu < cpus; cpu++)
		for (uint32_t index = 0; index < CACHE_LEVELS; index++) {
			one.len = 0;
			r = append_cache(&one, cpu, index);
			if (r < 0)
				return r;
			if (r == 0)
				break;
			if (holds(&all, (const size_t *)starts.data, n, &one))
				continue;
			r = fr_buf_append(&starts, &all.len, sizeof(all.len));
			if (r == 0)
				r = fr_buf_append(&all, one.data, one.len);
			if (r < 0)
				return r;
			n++;
		}
	if (n == 0)
		return 0;
	r = fr_buf_append_u32(&b, 1); /* version */
	if (r == 0)
		r = fr_buf_append_u32(&b, n);
	if (r == 0)
		r = append_sorted(&b, &all, (const size_t *)starts.data, n);
	if (r == 0)
		fr_feature_take(s, FR_FEATURE_CACHE, &b);
	return r;
}
