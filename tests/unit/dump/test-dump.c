// SPDX-License-Identifier: GPL-2.0-or-later

/* Tests of dumps of a real ring: their content, and whether stock perf reads them. */

#include "dumping.h"
#include "synthetic.h"
#include "base/file.h"
#include "perfdata/features.h"
#include "perfdata/reader.h"
#include "perfdata/record.h"
#include "sideband/emit.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#define RUN 500u /* samples that are appended to the ring at a time */
#define RUNS 120u
#define RUN_NS (RUN * 1000ULL)
#define TRIGGER_NS (SYNTHETIC_START_NS + RUNS * RUN_NS)

static int setup(void **state)
{
	int r = dumping_setup(state, "/var/tmp", RUNS, RUN, true);

	if (r == 0)
		((struct dumping *)*state)->params.compress = true;
	return r;
}

FIXTURE(setup, dumping_teardown)

static void dump(struct dumping *f, struct fr_dump_result *ret)
{
	assert_int_equal(dumping_dump(f, ret, NULL), 0);
	assert_int_equal(ret->sidecar_error, 0);
	assert_int_equal(ret->damaged, 0);
}

static void script(struct dumping *f, const char *name, struct fr_buf *ret)
{
	dumping_perf(f, "script", name, "-F comm,pid,tid,cpu,time,event,ip", ret);
}

static unsigned count_lines(const struct fr_buf *b)
{
	unsigned n = 0;

	for (size_t i = 0; i < b->len; i++)
		n += b->data[i] == '\n';
	return n;
}

static unsigned count_columns(struct dumping *f)
{
	struct fr_snapshot *s;
	struct fr_frame frame;
	unsigned n = 0;

	assert_int_equal(fr_history_snapshot(f->history, &s), 0);
	while (fr_snapshot_next(s, &frame))
		n += frame.samples_encoding == FR_ENCODING_COLUMNS;
	fr_snapshot_free(s);
	return n;
}

TEST(perf_reads_every_sample_whatever_the_encoding)
{
	struct dumping *f = *state;
	struct fr_dump_result packed, plain, stripped;
	_cleanup_buf_ struct fr_buf a = {0}, b = {0}, c = {0};

	assert_true(count_columns(f) > 0); /* the dump compresses the samples of these frames again */
	dump(f, &packed);
	assert_int_equal(packed.samples, RUN * RUNS);
	assert_int_equal(packed.sideband, 2 * RUNS);
	assert_int_equal(packed.from_ns, SYNTHETIC_START_NS);
	assert_int_equal(packed.to_ns, TRIGGER_NS - 1000);
	assert_int_equal(f->model_ns, SYNTHETIC_START_NS - 1);
	f->params.compress = false;
	dump(f, &plain);
	f->params.no_rounds = true;
	dump(f, &stripped);
	assert_true(plain.bytes > packed.bytes);
	script(f, packed.name, &a);
	script(f, plain.name, &b);
	script(f, stripped.name, &c);
	assert_int_equal(count_lines(&a), RUN * RUNS);
	assert_string_equal((char *)a.data, (char *)b.data);
	assert_string_equal((char *)a.data, (char *)c.data);
	/* perf prints ":4711" if it does not know the comm of the process 4711. */
	assert_null(strstr((char *)a.data, ":4711"));
}

TEST(if_a_file_has_the_name_the_dump_gets_the_next_microsecond)
{
	struct dumping *f = *state;
	struct fr_dump_result r;

	dump(f, &r);
	assert_string_equal(r.name, "perf.data.sample.20231114T221320.060000Z");
	dump(f, &r);
	assert_string_equal(r.name, "perf.data.sample.20231114T221320.060001Z");
	assert_int_equal(dumping_count_files(f), 4);
}

TEST(a_window_is_exact_to_the_record)
{
	static const struct {
		uint64_t from, to; /* ns after the first sample */
		unsigned samples;
	} windows[] = {
		{17777 * 1000, 33333 * 1000, 33333 - 17777 + 1},
		{59999 * 1000, UINT64_MAX / 2, 1},
		{5000 * 1000 + 1, 5000 * 1000 + 2, 0},
	};
	struct dumping *f = *state;

	for (size_t i = 0; i < 2 * FR_ARRAY_SIZE(windows); i++) {
		const uint64_t from = windows[i / 2].from, to = windows[i / 2].to;
		const unsigned samples = windows[i / 2].samples;
		_cleanup_buf_ struct fr_buf out = {0};
		struct fr_dump_result r;

		f->params.compress = i % 2;
		f->params.from_ns = SYNTHETIC_START_NS + from;
		f->params.to_ns = SYNTHETIC_START_NS + to;
		dump(f, &r);
		assert_int_equal(r.samples, samples);
		/* Side-band that is older than the window is in the dump, too. */
		assert_int_equal(r.sideband, 2 * ((FR_MIN(to, RUNS * RUN_NS) - 1) / RUN_NS + 1));
		assert_int_equal(f->model_ns, SYNTHETIC_START_NS);
		assert_int_equal(r.from_ns, samples ? f->params.from_ns : 0);
		assert_int_equal(r.to_ns, samples ? f->params.from_ns + (samples - 1) * 1000 : 0);
		script(f, r.name, &out);
		assert_int_equal(count_lines(&out), samples);
	}
}

static void check_string(const cJSON *o, const char *name, const char *expected)
{
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(o, name)), expected);
}

TEST(the_sidecar_describes_the_file)
{
	struct dumping *f = *state;
	struct fr_dump_result r;
	_cleanup_buf_ struct fr_buf b = {0};
	char name[128];
	cJSON *o, *w;

	dump(f, &r);
	snprintf(name, sizeof(name), "%s.json", r.name);
	assert_int_equal(fr_read_file(f->dirfd, name, 1u << 20, &b), 0);
	o = cJSON_Parse((char *)b.data);
	assert_non_null(o);
	check_string(o, "cause", "a test");
	check_string(o, "file", r.name);
	check_string(o, "time", "2023-11-14T22:13:20.060000Z");
	assert_int_equal(strlen(cJSON_GetStringValue(cJSON_GetObjectItem(o, "boot_id"))), 32);
	assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItem(o, "samples")), RUN * RUNS);
	assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItem(o, "bytes")), r.bytes);
	assert_true(cJSON_IsTrue(cJSON_GetObjectItem(o, "compressed")));
	w = cJSON_GetObjectItem(o, "window");
	check_string(w, "from", "2023-11-14T22:13:20.000000Z");
	assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItem(w, "to_ns")), TRIGGER_NS - 1000);
	assert_non_null(strstr((char *)b.data, "5000000000"));
	cJSON_Delete(o);
}

#define KERNEL "[kernel.kallsyms]"
#define MODULE "/lib/modules/6.1.0/kernel/sound/core/snd-pcm.ko.xz"

/* A model with the kernel and a module. */
static int kernel_model(
	void *ctx, uint64_t low_watermark_ns, uint64_t time_ns, struct fr_buf *ret, struct fr_buf *ret_since)
{
	struct fr_emit e = {.to = ret, .time_ns = time_ns, .id = 1};
	const struct fr_map_range kernel = {.addr = 0xffffffff81000000, .len = 0x1000000},
				  module = {.addr = 0xffffffffc0000000, .len = 0x1000};

	assert_int_equal(fr_emit_kernel_mmap(&e, &kernel, KERNEL "_text", strlen(KERNEL "_text")), 0);
	return fr_emit_kernel_mmap(&e, &module, MODULE, strlen(MODULE));
}

/* Copies the build-id of NAME in the dump FILE to RET. Returns its size; 0 if the dump has none. */
static size_t build_id_in(struct dumping *f, const char *file, const char *name, uint8_t ret[static 20])
{
	const struct fr_record_build_id *b;
	struct fr_record_iter it;
	struct fr_reader *r;
	size_t size = 0;
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", f->dir, file);
	assert_int_equal(fr_reader_open(path, &r, NULL), 0);
	it = fr_record_iter(fr_reader_session(r)->features[FR_FEATURE_BUILD_ID].data,
		fr_reader_session(r)->features[FR_FEATURE_BUILD_ID].len);
	while ((b = fr_record_next_build_id(&it)))
		if (strcmp(b->filename, name) == 0) {
			size = b->size;
			memcpy(ret, b->id, 20);
		}
	if (f->params.other_boot)
		assert_int_equal(fr_reader_session(r)->features[FR_FEATURE_BPF_PROG_INFO].len, 0);
	fr_reader_free(r);
	return size;
}

TEST(a_dump_of_another_boot_has_the_build_ids_of_its_kernel)
{
	static const uint8_t kernel_id[20] = "kernel", module_id[16] = "module";
	struct dumping *f = *state;
	struct fr_session ids = {0};
	const struct fr_buf *section = &ids.features[FR_FEATURE_BUILD_ID];
	_cleanup_buf_ struct fr_buf b = {0};
	struct fr_dump_result r;
	char name[128];
	uint8_t id[20];
	cJSON *o;

	f->params.model = kernel_model;
	assert_int_equal(
		fr_feature_add_build_id(&ids, PERF_RECORD_MISC_KERNEL, -1, module_id, 16, "[snd_pcm]"), 0);
	assert_int_equal(
		fr_feature_add_build_id(&ids, PERF_RECORD_MISC_KERNEL, -1, kernel_id, 20, KERNEL), 0);
	dump(f, &r);
	assert_true(build_id_in(f, r.name, KERNEL, id) > 0); /* that of the running kernel */
	assert_int_equal(build_id_in(f, r.name, MODULE, id), 0);
	f->params.other_boot = true;
	f->params.boot_id = "0123456789abcdef0123456789abcdef";
	f->params.kernel_build_ids = section;
	dump(f, &r);
	assert_int_equal(build_id_in(f, r.name, KERNEL, id), 20);
	assert_memory_equal(id, kernel_id, 20);
	assert_int_equal(build_id_in(f, r.name, MODULE, id), 16);
	assert_memory_equal(id, module_id, 16);
	snprintf(name, sizeof(name), "%s.json", r.name);
	assert_int_equal(fr_read_file(f->dirfd, name, 1u << 20, &b), 0);
	o = cJSON_Parse((char *)b.data);
	check_string(o, "boot_id", f->params.boot_id);
	cJSON_Delete(o);
	/* Without its build-ids, it has none: not those of the running kernel. */
	f->params.kernel_build_ids = NULL;
	dump(f, &r);
	assert_int_equal(build_id_in(f, r.name, KERNEL, id), 0);
	fr_session_deinit(&ids);
}

static int dump_to_full_disk(struct dumping *f)
{
	struct fr_dump_result r;
	struct fr_diag d = {0};

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("flightrec-test", f->dir, "tmpfs", 0, "size=256K") < 0)
		return 77;
	f->params.compress = false;
	f->params.dirfd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dumping_dump(f, &r, &d) != -ENOSPC || dumping_count_files(f) != 0)
		return 1;
	print_message("%s\n", d.what);
	return !strstr(d.what, f->dir) || !strstr(d.what, "tmpfs flightrec-test on ") ||
	       !strstr(d.what, "256.0K free") || !d.hint[0];
}

TEST(a_full_disk_leaves_no_file_and_is_named_in_the_message)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(dump_to_full_disk(*state));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		unit_skip("no mount namespace for a small tmpfs");
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int failing_model(
	void *ctx, uint64_t low_watermark_ns, uint64_t time_ns, struct fr_buf *ret, struct fr_buf *ret_since)
{
	return -ETIMEDOUT;
}

TEST(if_there_is_no_process_model_no_file_remains)
{
	struct dumping *f = *state;
	struct fr_dump_result r;

	f->params.model = failing_model;
	assert_int_equal(dumping_dump(f, &r, NULL), -ETIMEDOUT);
	assert_int_equal(dumping_count_files(f), 0);
	dumping_check_ring(f);
}
