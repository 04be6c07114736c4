// SPDX-License-Identifier: GPL-2.0-or-later

/* Gathers CPU_TOPOLOGY and CACHE: the CPUs that share a package, a die, a core, or a cache. */

#include "perfdata/features_private.h"
#include "base/cleanup.h"

#define CPU_DIR "/sys/devices/system/cpu/cpu%u/"
#define CACHE_LEVELS 10u
#define CPULIST_MAX 4096u

static void put_texts(struct builder *b, const struct byte_set *texts)
{
	put_u32(b, texts->n);
	for (uint32_t i = 0; i < texts->n; i++)
		fr_feature_put_string(b, (const char *)texts->items[i].data);
}

/* Adds the content of one file for each online CPU: a list of CPUs. The file is NAME, or OLDER on an older
   kernel. */
static int add_cpu_lists(struct byte_set *texts, uint32_t cpus, const char *name, const char *older)
{
	char text[CPULIST_MAX];
	int r = 0;

	for (uint32_t cpu = 0; cpu < cpus && r == 0; cpu++)
		if (fr_feature_read_line(text, sizeof(text), CPU_DIR "topology/%s", cpu, name) == 0 ||
			fr_feature_read_line(text, sizeof(text), CPU_DIR "topology/%s", cpu, older) == 0)
			r = byte_set_add(texts, text, strlen(text) + 1);
	return r;
}

/* Appends an id. If the id is missing, appends -1, as perf does. */
static void put_id(struct builder *b, uint32_t cpu, const char *name)
{
	char text[32] = "-1";

	(void)fr_feature_read_line(text, sizeof(text), CPU_DIR "topology/%s", cpu, name);
	put_u32(b, (uint32_t)strtol(text, NULL, 10));
}

int fr_features_gather_cpus(struct fr_session *s, uint32_t cpus)
{
	_cleanup_(byte_set_deinit) struct byte_set packages = {0}, dies = {0}, cores = {0};
	struct builder b = {0};
	int r = add_cpu_lists(&packages, cpus, "package_cpus_list", "core_siblings_list");

	if (r == 0)
		r = add_cpu_lists(&cores, cpus, "core_cpus_list", "thread_siblings_list");
	if (r == 0)
		r = add_cpu_lists(&dies, cpus, "die_cpus_list", "die_cpus_list");
	if (r < 0 || packages.n == 0 || cores.n == 0)
		return r;
	put_texts(&b, &packages);
	put_texts(&b, &cores);
	for (uint32_t cpu = 0; cpu < cpus; cpu++) {
		put_id(&b, cpu, "core_id");
		put_id(&b, cpu, "physical_package_id");
	}
	if (dies.n > 0) {
		put_texts(&b, &dies);
		for (uint32_t cpu = 0; cpu < cpus; cpu++)
			put_id(&b, cpu, "die_id");
	}
	return finish_section(&b, &s->features[FR_FEATURE_CPU_TOPOLOGY]);
}

/* Appends one cache in the format of the section CACHE, which begins with the level. Returns false if the CPU
   has no such cache. */
static bool put_cache(struct builder *b, uint32_t cpu, uint32_t index)
{
	static const char *const numbers[] = {
		"level", "coherency_line_size", "number_of_sets", "ways_of_associativity"};
	static const char *const words[] = {"type", "size", "shared_cpu_list"};
	char text[CPULIST_MAX];

	for (size_t i = 0; i < FR_ARRAY_SIZE(numbers); i++) {
		int r = fr_feature_read_line(
			text, sizeof(text), CPU_DIR "cache/index%u/%s", cpu, index, numbers[i]);

		if (r < 0 && i == 0)
			return false;
		/* Virtual machines can leave out the other numbers. */
		put_u32(b, r < 0 ? 0 : (uint32_t)strtoul(text, NULL, 10));
	}
	for (size_t i = 0; i < FR_ARRAY_SIZE(words); i++) {
		if (fr_feature_read_line(
			    text, sizeof(text), CPU_DIR "cache/index%u/%s", cpu, index, words[i]) < 0)
			return false;
		fr_feature_put_string(b, text);
	}
	return true;
}

/* Adds the descriptions of a CPU's caches. Each CPU that shares a cache has the same description of it, and
   CACHES keeps this description once. */
static int add_caches_of_cpu(struct byte_set *caches, uint32_t cpu)
{
	bool has_more = true;
	int r = 0;

	for (uint32_t index = 0; index < CACHE_LEVELS && r == 0 && has_more; index++) {
		struct builder cache = {0};

		has_more = put_cache(&cache, cpu, index);
		if (has_more)
			r = cache.failed ? -ENOMEM : byte_set_add(caches, cache.buf.data, cache.buf.len);
		fr_buf_deinit(&cache.buf);
	}
	return r;
}

static uint32_t read_level(const struct fr_buf *cache)
{
	uint32_t level;

	memcpy(&level, cache->data, sizeof(level));
	return FR_MIN(level, CACHE_LEVELS);
}

int fr_features_gather_caches(struct fr_session *s, uint32_t cpus)
{
	_cleanup_(byte_set_deinit) struct byte_set caches = {0};
	struct builder b = {0};
	int r = 0;

	for (uint32_t cpu = 0; cpu < cpus && r == 0; cpu++)
		r = add_caches_of_cpu(&caches, cpu);
	if (r < 0 || caches.n == 0)
		return r;
	put_u32(&b, 1); /* version */
	put_u32(&b, caches.n);
	/* perf sorts the caches by level. */
	for (uint32_t level = 0; level <= CACHE_LEVELS; level++)
		for (uint32_t i = 0; i < caches.n; i++)
			if (read_level(&caches.items[i]) == level)
				put_bytes(&b, caches.items[i].data, caches.items[i].len);
	return finish_section(&b, &s->features[FR_FEATURE_CACHE]);
}
