// SPDX-License-Identifier: GPL-2.0-or-later
#include "config/config_private.h"
#include "base/cleanup.h"

#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>

#include <cmocka.h>

static int read_text(struct fr_config *c, const char *text, size_t len, struct fr_diag *d)
{
	FILE *f = fmemopen((void *)text, len, "r");
	int r = fr_config_read(c, f, "x.conf", d);

	fclose(f);
	return r;
}

static void test_all_keys(void **state)
{
	static const char text[] = "# a comment\n; another\n\n[Recorder]\n"
				   "Events=sched:sched_switch, cycles:k\n"
				   "  Filter = prev_pid != 0\n"
				   "Events=cpu/event=0x3c,umask=1/\n"
				   "Frequency=199\nCallGraph=dwarf,16384\nCPUs=0-3,8\nCGroup=system.slice\n"
				   "RingSize=128M\nKernelBuffer=3M\nSidebandBuffer=100K\nCompressionLevel=3\n"
				   "Directory=/tmp/x\nControlSocket=/tmp/y\nGroup=adm\nLogLevel=debug\n"
				   "[Dump]\nCompression=no\nWindow=5min 20s\nBlockSize=2M\nQueueDepth=16\n";
	struct fr_config c;
	struct fr_diag d = {0};

	fr_config_init(&c);
	if (read_text(&c, text, strlen(text), &d) < 0)
		fail_msg("%s", d.what);
	assert_int_equal(c.n_events, 2);
	assert_string_equal(c.events[0].spec, "sched:sched_switch, cycles:k");
	assert_string_equal(c.events[0].filter, "prev_pid != 0");
	assert_string_equal(c.events[0].origin, "x.conf:5");
	assert_string_equal(c.events[1].spec, "cpu/event=0x3c,umask=1/");
	assert_null(c.events[1].filter);
	assert_int_equal(c.defaults.frequency_hz, 199);
	assert_int_equal(c.defaults.call_graph, FR_CALL_GRAPH_DWARF);
	assert_string_equal(c.cpus, "0-3,8");
	assert_string_equal(c.cgroup, "system.slice");
	assert_int_equal(c.ring_bytes, 128 << 20);
	assert_int_equal(c.kernel_buffer_bytes, 4 << 20); /* a power of two of pages */
	assert_int_equal(c.sideband_buffer_bytes, 128 << 10);
	assert_int_equal(c.compression_level, 3);
	assert_string_equal(c.directory, "/tmp/x");
	assert_string_equal(c.socket, "/tmp/y");
	assert_string_equal(c.group, "adm");
	assert_int_equal(c.log_level, LOG_DEBUG);
	assert_false(c.dump_compress);
	assert_int_equal(c.window_ns, 320000000000);
	assert_int_equal(c.block_bytes, 2 << 20);
	assert_int_equal(c.queue_depth, 16);
	assert_int_equal(fr_config_check(&c, &d), 0);
	fr_config_deinit(&c);
}

static void test_zeros_are_no_configuration(void **state)
{
	static const char texts[][32] = {"\0\0", "[Recorder]\nRingSize=8M\0lots", "\n\0[Dump]\n"};

	for (size_t i = 0; i < FR_ARRAY_SIZE(texts); i++) {
		struct fr_diag d = {0};
		struct fr_config c;

		fr_config_init(&c);
		assert_int_equal(read_text(&c, texts[i], sizeof(texts[i]), &d), -EINVAL);
		assert_non_null(strstr(d.hint, "no NUL bytes"));
		fr_config_deinit(&c);
	}
}

static void test_empty_resets(void **state)
{
	static const char text[] = "[Recorder]\nEvents=a\nEvents=\nEvents=b\nRingSize=1G\nRingSize=\n"
				   "Period=5\nPeriod=\nCallGraph=fp\nCallGraph=\nCPUs=1\nCPUs=\n";
	struct fr_config c;

	fr_config_init(&c);
	assert_int_equal(read_text(&c, text, strlen(text), NULL), 0);
	assert_int_equal(c.n_events, 1);
	assert_string_equal(c.events[0].spec, "b");
	assert_int_equal(c.ring_bytes, 64 << 20);
	assert_int_equal(c.defaults.period, 0);
	assert_int_equal(c.defaults.call_graph, FR_CALL_GRAPH_UNSET);
	assert_null(c.cpus);
	fr_config_deinit(&c);
}

static void test_errors_say_where(void **state)
{
	static char wide[600] = "[Recorder]\n\nEvents=";
	static const struct {
		const char *text, *what, *hint;
	} cases[] = {
		{"[Recorder]\n\nRingSzie=1M\n", "x.conf:3: unknown key 'RingSzie'", "RingSize="},
		{"[Recorder]\nWindow=3s\n", "x.conf:2: unknown key 'Window'", "of [Dump]"},
		{"[Recoder]\nRingSize=1M\n", "x.conf:1: unknown section [Recoder]", "[Recorder]"},
		{"RingSize=1M\n", "x.conf:1: RingSize= stands before the first section", ""},
		{"[Recorder]\nRingSize=lots\n", "x.conf:2: RingSize= is not a size: 'lots'", "64M"},
		{"[Recorder]\nFrequency=0\n", "x.conf:2: Frequency= is not a whole number", ""},
		{"[Recorder]\nFilter=x\n", "x.conf:2: there is no event before the filter", ""},
		{"[Recorder]\nEvents=a\nFilter=x\nFilter=y\n", "x.conf:4: there is a second filter", ""},
		{"[Recorder]\nCPUs=a\n", "x.conf:2: CPUs= is not a list", ""},
		{"[Recorder]\nDirectory=var\n", "x.conf:2: Directory= is not an absolute path", ""},
		{"[Recorder]\nLogLevel=loud\n", "x.conf:2: LogLevel=", ""},
		{"[Recorder]\nKernelBuffer=2T\n", "x.conf:2: KernelBuffer= is not a size from one page", ""},
		{"[Dump]\nCompression=maybe\n", "x.conf:2: Compression=", ""},
		{"[Dump]\nQueueDepth=65\n", "x.conf:2: QueueDepth= is not a whole number from 1 to 64", ""},
		{"[Dump]\n\n\nWindow=soon\nNonsense=1\n", "x.conf:4: Window=", ""},
		{"[Recorder]\n# ok\nRingSize\n", "x.conf:3: no assignment", ""},
		{"[Recorder\n", "x.conf:1: the section does not end", ""},
		{wide, "x.conf:3: the line is too long", "several Events="},
	};

	memset(wide + strlen(wide), 'x', 500);
	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		struct fr_config c;
		struct fr_diag d = {0};

		fr_config_init(&c);
		assert_int_equal(read_text(&c, cases[i].text, strlen(cases[i].text), &d), -EINVAL);
		if (strncmp(d.what, cases[i].what, strlen(cases[i].what)) || !strstr(d.hint, cases[i].hint))
			fail_msg("%s\n  %s\nand not: %s", d.what, d.hint, cases[i].what);
		fr_config_deinit(&c);
	}
}

static void test_nul_byte(void **state)
{
	static const char text[] = "[Recorder]\nEvents=a\0b\nRingSize=1M\n";
	struct fr_config c;
	struct fr_diag d = {0};

	fr_config_init(&c);
	assert_int_equal(read_text(&c, text, sizeof(text) - 1, &d), -EINVAL);
	assert_non_null(strstr(d.what, "x.conf:2"));
	fr_config_deinit(&c);
}

static void test_check(void **state)
{
	static const struct {
		const char *section, *key, *value, *what;
	} cases[] = {
		{"Recorder", "RingSize", "512K", "the ring of 512K is too small: the minimum is 1M"},
		{"Recorder", "RingSize", "17G", "the ring of 17G is too large: the maximum is 16G"},
		{"Recorder", "RingSize", "1M", NULL},
		{"Recorder", "RingSize", "16G", NULL},
		{"Dump", "BlockSize", "3M", "the block size 3145728 is not a power of two"},
		{"Dump", "BlockSize", "4K", "the block of 4K is too small: the minimum is 64K"},
		{"Dump", "BlockSize", "64K", NULL},
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		struct fr_config c;
		struct fr_diag d = {0};

		fr_config_init(&c);
		assert_int_equal(
			fr_config_set(&c, cases[i].section, cases[i].key, cases[i].value, "t", &d), 0);
		assert_int_equal(fr_config_check(&c, &d), cases[i].what ? -EINVAL : 0);
		if (cases[i].what)
			assert_string_equal(d.what, cases[i].what);
		fr_config_deinit(&c);
	}
}

static char root[64];

static void put(const char *path, const char *text)
{
	char full[256], *slash;
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(full, 0755);
		*slash = '/';
	}
	f = fopen(full, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static int make_root(void **state)
{
	strcpy(root, "/tmp/flightrec-config-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void expect_files(const char *path, const char *const *want)
{
	struct fr_diag d = {0};
	char **files;
	size_t n = 0;

	if (fr_config_files_at(root, path, &files, &d) < 0)
		fail_msg("%s", d.what);
	for (; files[n]; n++) {
		assert_non_null(want[n]);
		assert_string_equal(files[n] + strlen(root), want[n]);
		free(files[n]);
	}
	assert_null(want[n]);
	free(files);
}

static void test_drop_in_order(void **state)
{
	char path[128], link[160];

	expect_files(NULL, (const char *[]){NULL});
	put("/etc/flightrec/flightrecd.conf", "");
	put("/usr/lib/flightrec/flightrecd.conf.d/10-a.conf", "");
	put("/usr/lib/flightrec/flightrecd.conf.d/30-c.conf", "");
	put("/usr/lib/flightrec/flightrecd.conf.d/40-masked.conf", "");
	put("/run/flightrec/flightrecd.conf.d/20-b.conf", "");
	put("/run/flightrec/flightrecd.conf.d/30-c.conf", "");
	put("/etc/flightrec/flightrecd.conf.d/10-a.conf", "");
	put("/etc/flightrec/flightrecd.conf.d/README", "");
	put("/etc/flightrec/flightrecd.conf.d/.hidden.conf", "");
	snprintf(link, sizeof(link), "%s/etc/flightrec/flightrecd.conf.d/40-masked.conf", root);
	assert_int_equal(symlink("/dev/null", link), 0);
	expect_files(NULL, (const char *[]){"/etc/flightrec/flightrecd.conf",
				   "/etc/flightrec/flightrecd.conf.d/10-a.conf",
				   "/run/flightrec/flightrecd.conf.d/20-b.conf",
				   "/run/flightrec/flightrecd.conf.d/30-c.conf", NULL});
	/* A file that is named has drop-ins of its own, and those alone. */
	put("/my.conf", "");
	put("/my.conf.d/x.conf", "");
	snprintf(path, sizeof(path), "%s/my.conf", root);
	expect_files(path, (const char *[]){"/my.conf", "/my.conf.d/x.conf", NULL});
}

static void test_load(void **state)
{
	struct fr_config c;
	struct fr_diag d = {0};
	char path[128];

	put("/my.conf", "[Recorder]\nRingSize=2M\nEvents=a\n");
	put("/my.conf.d/1.conf", "[Recorder]\nRingSize=4M\nEvents=b\n");
	put("/my.conf.d/2.conf", "[Recorder]\nRingSize=8M\n");
	snprintf(path, sizeof(path), "%s/my.conf", root);
	fr_config_init(&c);
	assert_int_equal(fr_config_load(&c, path, &d), 0);
	assert_int_equal(c.ring_bytes, 8 << 20);
	assert_int_equal(c.n_events, 2);
	put("/my.conf.d/3.conf", "[Dump]\n\nWindow=x\n");
	assert_int_equal(fr_config_load(&c, path, &d), -EINVAL);
	assert_non_null(strstr(d.what, "/my.conf.d/3.conf:3: "));
	fr_config_deinit(&c);
	fr_config_init(&c);
	d = (struct fr_diag){0};
	assert_int_equal(fr_config_load(&c, "/no/such.conf", &d), -ENOENT);
	assert_non_null(strstr(d.what, "/no/such.conf"));
	fr_config_deinit(&c);
}

static void test_table_is_sound(void **state)
{
	size_t n;
	const struct fr_config_key *keys = fr_config_keys(&n);

	for (size_t i = 0; i < n; i++) {
		struct fr_config c;
		struct fr_diag d = {0};

		fr_config_init(&c);
		fr_config_add_event(&c, "x", "t", NULL);
		if (fr_config_set(&c, keys[i].section, keys[i].name, keys[i].value, "t", &d) < 0)
			fail_msg("the value shown for %s= is refused: %s", keys[i].name, d.what);
		assert_int_equal(fr_config_set(&c, keys[i].section, keys[i].name, "", "t", &d), 0);
		if (keys[i].default_value)
			assert_string_equal(keys[i].value, keys[i].default_value);
		fr_config_deinit(&c);
	}
}

static void test_budget(void **state)
{
	static const struct {
		const char *text;
		uint64_t ppm; /* 1: refused */
	} cases[] = {{"1%", 10000}, {"0.5%", 5000}, {"0.01%", 100}, {"12.3456%", 123456},
		{"10000%", 100000000}, {"no", 0}, {"", 0}, {"0%", 1}, {"0.001%", 1}, {"1", 1}, {"%", 1},
		{".5%", 1}, {"1.23456%", 1}, {"1e2%", 1}, {"-1%", 1}, {"10001%", 1}, {"999999%", 1},
		{"yes", 1}, {"1%%", 1}, {"1 %", 1}};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		struct fr_diag d = {0};
		struct fr_config c;
		int r;

		fr_config_init(&c);
		r = fr_config_set(&c, "Recorder", "CPUBudget", cases[i].text, "x.conf:1", &d);
		if (cases[i].ppm == 1)
			assert_int_equal(r, -EINVAL);
		else
			assert_int_equal(r, 0);
		assert_int_equal(c.cpu_budget_ppm, cases[i].ppm == 1 ? 0 : cases[i].ppm);
		fr_config_deinit(&c);
	}
}

static void test_metrics_address(void **state)
{
	static const struct {
		const char *text;
		bool valid, loopback;
	} cases[] = {{"", true, true}, {"127.0.0.1:9752", true, true}, {"127.1.2.3:1", true, true},
		{"[::1]:65535", true, true}, {"0.0.0.0:9752", true, false}, {"[::]:9752", true, false},
		{"192.0.2.1:80", true, false}, {"[::ffff:127.0.0.1]:80", true, false}, {"9752", false, false},
		{":9752", false, false}, {"127.0.0.1", false, false}, {"127.0.0.1:0", false, false},
		{"127.0.0.1:65536", false, false}, {"localhost:9752", false, false},
		{"::1:9752", false, false}, {"[::1:9752", false, false}, {"[]:1", false, false},
		{"[:1", false, false}, {"127.0.0.1:", false, false}, {"127.0.0.1:+1", false, false}};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		struct fr_diag d = {0};
		struct fr_config c;

		fr_config_init(&c);
		assert_int_equal(
			fr_config_set(&c, "Recorder", "MetricsListen", cases[i].text, "x.conf:1", &d),
			cases[i].valid ? 0 : -EINVAL);
		if (cases[i].valid)
			assert_int_equal(fr_config_check(&c, &d), cases[i].loopback ? 0 : -EINVAL);
		assert_int_equal(fr_config_set(&c, "Recorder", "MetricsPublic", "yes", "x.conf:2", NULL), 0);
		assert_int_equal(fr_config_check(&c, NULL), 0);
		fr_config_deinit(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_keys),
		cmocka_unit_test(test_zeros_are_no_configuration),
		cmocka_unit_test(test_empty_resets),
		cmocka_unit_test(test_errors_say_where),
		cmocka_unit_test(test_nul_byte),
		cmocka_unit_test(test_check),
		cmocka_unit_test_setup_teardown(test_drop_in_order, make_root, remove_root),
		cmocka_unit_test_setup_teardown(test_load, make_root, remove_root),
		cmocka_unit_test(test_table_is_sound),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_metrics_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
