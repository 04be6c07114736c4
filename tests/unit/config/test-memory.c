// SPDX-License-Identifier: GPL-2.0-or-later

/* Tests how much memory a ring can take. Files in a temporary directory replace the files of /proc and of
   cgroups. */

#include "../files.h"
#include "config/memory.h"

#define MIB (1ULL << 20)
#define GIB (1ULL << 30)
#define MACHINE "MemTotal:       24682496 kB\nMemFree:        1 kB\nMemAvailable:   22000000 kB\n"

struct file {
	const char *path, *text;
};

/* Returns the memory of a machine that has these files. */
static struct fr_memory read_memory(const struct file *files, size_t n)
{
	struct fr_memory m;

	assert_int_equal(make_root(NULL), 0);
	for (size_t i = 0; i < n; i++)
		write_file(files[i].path, files[i].text);
	fr_memory_read(root, &m);
	assert_int_equal(remove_root(NULL), 0);
	return m;
}

#define READ_MEMORY(...)                                                                                     \
	read_memory((const struct file[]){__VA_ARGS__}, FR_ARRAY_SIZE(((const struct file[]){__VA_ARGS__})))

TEST(a_ring_fits_into_the_memory_that_is_free)
{
	struct fr_memory m = READ_MEMORY({"proc/meminfo", MACHINE}, {"proc/self/cgroup", "0::/\n"});
	struct fr_diag d = {0};

	assert_int_equal(m.limit, 0);
	assert_int_equal(m.available, 22000000ULL * 1024);
	assert_int_equal(fr_memory_check_ring(&m, 0, 15 * GIB, "-M", &d), 0);
	assert_int_equal(fr_memory_check_ring(&m, 0, fr_memory_largest_ring(&m, 0), "-M", &d), 0);
	m.available = 12 * GIB;
	assert_int_equal(fr_memory_check_ring(&m, 0, 15 * GIB, "-M", &d), -ENOMEM);
	assert_string_equal(
		d.what, "-M: a ring of 15.0G does not fit: 12.0G of 23.5G are free in this machine");
	assert_non_null(strstr(d.hint, "M would fit"));
	assert_null(strstr(d.hint, "MemoryMax"));
	assert_in_range(fr_memory_largest_ring(&m, 0), 10 * GIB, 11 * GIB);
}

TEST(the_control_group_with_the_least_to_spare_decides)
{
	/* The limit of the service is higher than that of its slice. */
	struct fr_memory m = READ_MEMORY({"proc/meminfo", MACHINE},
		{"proc/self/cgroup", "1:name=systemd:/x\n0::/system.slice/flightrecd.service\n"},
		{"sys/fs/cgroup/system.slice/flightrecd.service/memory.max", "536870912\n"},
		{"sys/fs/cgroup/system.slice/flightrecd.service/memory.high", "max\n"},
		{"sys/fs/cgroup/system.slice/flightrecd.service/memory.current", "20971520\n"},
		{"sys/fs/cgroup/system.slice/memory.max", "268435456\n"},
		{"sys/fs/cgroup/system.slice/memory.current", "134217728\n"},
		{"sys/fs/cgroup/system.slice/memory.stat",
			"anon 1\nfile 70000000\ninactive_file 33554432\nactive_file 33554432\n"});
	struct fr_diag d = {0};

	assert_int_equal(m.limit, 256 * MIB);
	assert_int_equal(m.free, 192 * MIB); /* page cache counts as free, because the kernel can drop it */
	assert_int_equal(fr_memory_largest_ring(&m, 0), 144 * MIB);
	assert_int_equal(fr_memory_check_ring(&m, 0, 64 * MIB, NULL, &d), 0);
	assert_int_equal(fr_memory_check_ring(&m, 0, 4 * GIB, "x.conf:3", &d), -ENOMEM);
	assert_non_null(
		strstr(d.what, "x.conf:3: a ring of 4.0G does not fit: 192.0M of 256.0M are free in "));
	assert_non_null(strstr(d.what, "/system.slice"));
	assert_string_equal(d.hint, "144M would fit; for a larger ring, also raise MemoryMax= of the unit");
	/* If there is already a ring of 100 MiB, it can grow, and a smaller ring always fits. */
	assert_int_equal(fr_memory_largest_ring(&m, 100 * MIB), 260 * MIB);
	assert_int_equal(fr_memory_check_ring(&m, 300 * MIB, 299 * MIB, NULL, &d), 0);
}

TEST(memory_high_is_a_limit)
{
	struct fr_memory m = READ_MEMORY({"proc/meminfo", MACHINE}, {"proc/self/cgroup", "0::/a\n"},
		{"sys/fs/cgroup/unified/a/memory.max", "max\n"},
		{"sys/fs/cgroup/unified/a/memory.high", "134217728\n"},
		{"sys/fs/cgroup/unified/a/memory.current", "1048576\n"});

	assert_int_equal(m.limit, 128 * MIB);
}

TEST(cgroups_of_version_1)
{
	/* In a container, the path of the group may be the path outside, which does not exist inside. */
	struct fr_memory m = READ_MEMORY({"proc/meminfo", MACHINE},
		{"proc/self/cgroup", "4:memory:/outside/x\n3:cpuset:/\n0::/\n"},
		{"sys/fs/cgroup/memory/memory.limit_in_bytes", "314572800\n"},
		{"sys/fs/cgroup/memory/memory.usage_in_bytes", "104857600\n"},
		{"sys/fs/cgroup/memory/memory.stat",
			"cache 5\ntotal_inactive_file 52428800\ntotal_active_file 0\n"});
	struct fr_memory none = READ_MEMORY({"proc/meminfo", MACHINE}, {"proc/self/cgroup", "4:memory:/\n"},
		{"sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
		{"sys/fs/cgroup/memory/memory.usage_in_bytes", "1\n"});

	assert_int_equal(m.limit, 300 * MIB);
	assert_int_equal(m.free, 250 * MIB);
	assert_int_equal(none.limit, 0);
}

TEST(unreadable_files_set_no_limit)
{
	static const struct file odd[] = {{"proc/meminfo", "MemTotal: many\n"}, {"proc/meminfo", ""},
		{"proc/self/cgroup", "\n:\n::\n4:memory\n0::\n4:memory:relative\n"}};

	for (size_t i = 0; i < FR_ARRAY_SIZE(odd); i++) {
		struct fr_memory m = read_memory(&odd[i], 1);

		assert_int_equal(fr_memory_check_ring(&m, 0, 16 * GIB, NULL, NULL), 0);
	}
}

TEST(size_of_kernel_buffers)
{
	static const struct {
		uint64_t total, locked_max, bytes;
		unsigned n_cpus;
	} cases[] = {
		{24 * GIB, 0, 16 * MIB, 2},
		{24 * GIB, 0, 16 * MIB, 4},
		{24 * GIB, 0, 8 * MIB, 8},
		{24 * GIB, 0, 4 * MIB, 16},
		{1024 * GIB, 0, 512 << 10, 128},
		{1024 * GIB, 0, 512 << 10, 8192},
		{1 * GIB, 0, 8 * MIB, 2},
		{512 * MIB, 0, 4 * MIB, 2},
		{0, 0, 16 * MIB, 1},
		/* The limit of locked memory (516 KiB a CPU and RLIMIT_MEMLOCK=8M) has to be enough for the
		   ring of side-band, too. */
		{24 * GIB, 2 * (516 << 10) + 8 * MIB, 2 * MIB, 2},
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++)
		assert_int_equal(
			fr_memory_kernel_buffer(cases[i].total, cases[i].n_cpus, cases[i].locked_max),
			cases[i].bytes);
}
