// SPDX-License-Identifier: GPL-2.0-or-later

/* The merge and the directory around it: what is left out, refused, kept, removed. */

#include "base/cleanup.h"
#include "base/file.h"
#include "perfdata/reader.h"
#include "scene.h"

#include <cjson/cJSON.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <cmocka.h>

#define A "perf.data.sample.20260101T000000.000000Z"
#define B "perf.data.sample.20260102T000000.000000Z"
#define C "perf.data.sample.20260103T000000.000000Z"
#define AUX "perf.data.auxiliary"
#define OUT "out"

/* A sample file: state at FROM, a round, samples FROM + 1 … TO, a round. */
static void write_sample(struct scene *s, const char *name, uint64_t from, uint64_t to)
{
	_cleanup_buf_ struct fr_buf b = {0};

	synth_comm(&b, s->id + 2, from, 1, "state");
	synth_comm(&b, s->id + 2, from, 2, "state");
	synth_round(&b);
	for (uint64_t t = from + 1; t <= to; t++)
		synth_sample(&b, s->id, t, 1, t);
	synth_round(&b);
	synth_write_file(scene_path(s, name), &s->session, &b, 0, 0);
}

/* An auxiliary file: two records of state without time, then one for each time FROM … TO. */
static void write_aux(struct scene *s, uint64_t from, uint64_t to)
{
	_cleanup_buf_ struct fr_buf b = {0};

	synth_comm(&b, s->id + 2, 0, 1, "aux");
	synth_comm(&b, s->id + 2, 0, 2, "aux");
	for (uint64_t t = from; t <= to; t++)
		synth_comm(&b, s->id + 2, t, 3, "fresh");
	synth_round(&b);
	synth_write_pipe(scene_path(s, AUX), &s->session, &b);
}

static bool directory_fails;
int __real_fsync(int fd);
int __wrap_fsync(int fd);

int __wrap_fsync(int fd)
{
	struct stat st;

	if (!directory_fails || fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode))
		return __real_fsync(fd);
	errno = EIO;
	return -1;
}

static void test_state_is_left_out(void **state)
{
	_cleanup_buf_ struct fr_buf out = {0};
	struct scene s;

	scene_init(&s);
	write_aux(&s, 50, 200);
	write_sample(&s, A, 100, 150);
	assert_int_equal(scene_merge(&s), 0);
	assert_int_equal(s.report.state, 2);
	assert_int_equal(s.report.samples, 50);
	assert_int_equal(s.report.records, 50 + 2 + 151);
	assert_int_equal(s.report.first_ns, 101);
	assert_int_equal(s.report.last_ns, 150);
	scene_read(&s, "perf.data", &out, NULL);
	assert_int_equal(fr_record_time((const void *)out.data), 0); /* state without time goes first */
	scene_deinit(&s);
}

static void test_state_is_kept(void **state)
{
	const uint64_t aux[][2] = {{101, 200}, {20, 99}}; /* begins too late, ends too early */

	for (size_t i = 0; i < 3; i++) {
		struct scene s;

		scene_init(&s);
		if (i < 2)
			write_aux(&s, aux[i][0], aux[i][1]);
		write_sample(&s, A, 100, 150);
		assert_int_equal(scene_merge(&s), 0);
		assert_int_equal(s.report.state, 0);
		assert_int_equal(s.report.records, 50 + 2 + (i < 2 ? 2 + aux[i][1] - aux[i][0] + 1 : 0));
		scene_deinit(&s);
	}
}

/* An auxiliary file that was compacted within a sample file's window: a checkpoint, a round, and what came
   since. WITH_JSON: the sample file tells its window. */
static void merge_compacted(bool with_json, uint64_t checkpoint, struct scene *s)
{
	static const char json[] = "{\"window\":{\"from_ns\":101,\"to_ns\":150}}";
	_cleanup_buf_ struct fr_buf b = {0};

	scene_init(s);
	write_sample(s, A, 100, 150);
	if (with_json)
		synth_write(scene_path(s, A ".json"), json, sizeof(json) - 1);
	synth_comm(&b, s->id + 2, checkpoint, 1, "checkpoint");
	synth_comm(&b, s->id + 2, checkpoint, 2, "checkpoint");
	synth_round(&b);
	for (uint64_t t = checkpoint + 1; t <= 200; t++)
		synth_comm(&b, s->id + 2, t, 3, "fresh");
	synth_write_pipe(scene_path(s, AUX), &s->session, &b);
	assert_int_equal(scene_merge(s), 0);
	assert_int_equal(s->report.samples, 50);
}

static void test_compacted_within_a_window(void **state)
{
	struct scene s;

	/* The sample file's own state goes on through the checkpoint. */
	merge_compacted(true, 120, &s);
	assert_int_equal(s.report.state, 2);
	assert_int_equal(s.report.records, 50 + 2 + 80);
	scene_deinit(&s);
	/* Who cannot tell keeps both. */
	merge_compacted(false, 120, &s);
	assert_int_equal(s.report.state, 0);
	assert_int_equal(s.report.records, 50 + 2 + 2 + 80);
	scene_deinit(&s);
	/* After the window the checkpoint is what is known. */
	merge_compacted(true, 160, &s);
	assert_int_equal(s.report.state, 0);
	assert_int_equal(s.report.records, 50 + 2 + 2 + 40);
	scene_deinit(&s);
	/* Before it, it makes the sample file's state needless. */
	merge_compacted(true, 90, &s);
	assert_int_equal(s.report.state, 2);
	assert_int_equal(s.report.records, 50 + 2 + 110);
	scene_deinit(&s);
}

static void test_cut_tail(void **state)
{
	struct stat st;
	struct scene s;

	scene_init(&s);
	write_sample(&s, A, 100, 5000);
	write_sample(&s, B, 4000, 6000);
	assert_int_equal(stat(scene_path(&s, A), &st), 0);
	assert_int_equal(truncate(scene_path(&s, A), st.st_size / 2), 0);
	assert_int_equal(scene_merge(&s), 1);
	assert_int_equal(s.report.n_damaged, 1);
	assert_true(s.report.lost_bytes > 1000);
	assert_true(s.report.samples > 2000 + 2000 && s.report.samples < 6000);
	assert_non_null(strstr(s.warned, A));
	assert_non_null(strstr(s.warned, "bytes lost"));
	assert_true(scene_has(&s, A)); /* what is damaged stays */
	assert_false(scene_has(&s, B));
	assert_true(scene_has(&s, "perf.data"));
	scene_deinit(&s);
}

static void test_no_perf_data(void **state)
{
	struct scene s;

	scene_init(&s);
	synth_write(scene_path(&s, A), "something else, of more than a few bytes", 40);
	assert_int_equal(scene_merge(&s), -EBADMSG);
	assert_int_equal(scene_entries(&s), 1);
	write_sample(&s, B, 100, 200);
	assert_int_equal(scene_merge(&s), 1);
	assert_int_equal(s.report.n_unusable, 1);
	assert_non_null(strstr(s.warned, A));
	assert_true(scene_has(&s, A));
	assert_false(scene_has(&s, B));
	scene_deinit(&s);
}

static void test_nothing(void **state)
{
	struct scene s;

	scene_init(&s);
	assert_int_equal(scene_merge(&s), -ENOENT);
	assert_non_null(strstr(s.diag.what, s.dir));
	assert_int_equal(scene_entries(&s), 0);
	scene_deinit(&s);
}

static void sidecar(struct scene *s, const char *name, const char *boot)
{
	char text[200], file[100];

	snprintf(text, sizeof(text), "{\"boot_id\":\"%s\",\"cause\":\"%s\"}", boot, name);
	snprintf(file, sizeof(file), "%s.json", name);
	synth_write(scene_path(s, file), text, strlen(text));
}

#define BOOT_1 "11111111-1111-1111-1111-111111111111"
#define BOOT_2 "22222222222222222222222222222222"

static void test_boots(void **state)
{
	struct fr_session other;
	struct scene s;

	scene_init(&s);
	write_sample(&s, A, 100, 200);
	sidecar(&s, A, BOOT_1);
	write_sample(&s, B, 150, 250);
	sidecar(&s, B, BOOT_2);
	assert_int_equal(scene_merge(&s), -EXDEV);
	assert_non_null(strstr(s.diag.what, "11111111111111111111111111111111"));
	assert_non_null(strstr(s.diag.what, BOOT_2));
	assert_non_null(strstr(s.diag.what, A));
	assert_non_null(strstr(s.diag.what, B));
	assert_int_equal(scene_entries(&s), 4);

	/* Without ids: the offset of the clocks tells. */
	unlink(scene_path(&s, A ".json"));
	assert_int_equal(scene_merge(&s), 0);
	assert_false(scene_has(&s, B ".json"));
	write_sample(&s, A, 100, 200);
	other = s.session;
	s.id += 10;
	synth_session(&s.session, s.id, "host", 1800000000ULL * 1000000000);
	write_sample(&s, B, 100, 200);
	assert_int_equal(scene_merge(&s), -EXDEV);
	assert_non_null(strstr(s.diag.what, "2023-11-14T"));
	assert_non_null(strstr(s.diag.what, "2027-01-15T"));

	/* The boot id says that it was the clock that was set. */
	sidecar(&s, A, BOOT_1);
	sidecar(&s, B, BOOT_1);
	assert_int_equal(scene_merge(&s), 0);
	fr_session_deinit(&other);
	scene_deinit(&s);
}

static void test_older_output_is_kept(void **state)
{
	const struct timespec times[2] = {{1600000000, 123456000}, {1600000000, 123456000}};
	_cleanup_buf_ struct fr_buf json = {0};
	struct scene s;

	scene_init(&s);
	synth_write(scene_path(&s, "perf.data"), "older", 5);
	assert_int_equal(utimensat(AT_FDCWD, scene_path(&s, "perf.data"), times, 0), 0);
	synth_write(scene_path(&s, "perf.data.20200913T122640.123456Z"), "taken", 5);
	write_sample(&s, A, 100, 200);
	sidecar(&s, A, BOOT_1);
	write_sample(&s, B, 150, 250);
	sidecar(&s, B, BOOT_1);
	assert_int_equal(scene_merge(&s), 0);
	assert_string_equal(s.report.kept_older, scene_path(&s, "perf.data.20200913T122640.123457Z"));
	assert_int_equal(fr_read_file(AT_FDCWD, s.report.kept_older, 100, &json), 0);
	assert_string_equal((char *)json.data, "older");
	json.len = 0;
	assert_int_equal(fr_read_file(AT_FDCWD, scene_path(&s, "perf.data.json"), 10000, &json), 0);
	assert_non_null(strstr((char *)json.data, A));
	assert_non_null(strstr((char *)json.data, B));
	assert_int_equal(scene_entries(&s), 4); /* perf.data, its JSON, the two older */
	assert_int_equal(s.report.samples, 150);
	assert_int_equal(s.report.duplicates, 50);
	scene_deinit(&s);
}

/* The output has its name and nothing is undone, but the inputs stay: after a power cut they may be all that
   there is. */
static void test_directory_not_synced(void **state)
{
	struct scene s;

	scene_init(&s);
	write_aux(&s, 50, 200);
	write_sample(&s, A, 100, 150);
	synth_write(scene_path(&s, "perf.data"), "older", 5);
	directory_fails = true;
	assert_int_equal(scene_merge(&s), 0);
	directory_fails = false;
	assert_int_equal(s.report.not_durable, EIO);
	assert_int_equal(s.report.samples, 50);
	assert_int_equal(s.report.n_removed, 0);
	assert_non_null(strstr(s.warned, "not durable"));
	assert_true(scene_has(&s, A) && scene_has(&s, AUX) && scene_has(&s, "perf.data"));
	assert_non_null(strstr(s.report.kept_older, "perf.data."));
	assert_int_equal(scene_entries(&s), 4); /* and the older one */
	assert_int_equal(scene_merge(&s), 0);
	assert_int_equal(s.report.n_removed, 2);
	scene_deinit(&s);
}

static void losing(struct scene *s, const char *name, const char *losses)
{
	char text[500], file[100];

	snprintf(text, sizeof(text),
		"{\"boot_id\":\"" BOOT_1 "\",\"causes\":[{\"trigger\":\"%s\"}],\"losses\":[%s]}", name,
		losses);
	snprintf(file, sizeof(file), "%s.json", name);
	synth_write(scene_path(s, file), text, strlen(text));
}

/* Two dumps of one run, and one of the next, which counts anew. */
static void test_what_the_json_sums_up(void **state)
{
	_cleanup_buf_ struct fr_buf text = {0};
	struct scene s;
	cJSON *json, *losses;

	scene_init(&s);
	write_sample(&s, A, 100, 200);
	losing(&s, A,
		"{\"cause\":\"x\",\"event\":\"e\",\"cpu\":1,\"count\":5},{\"cause\":\"y\",\"count\":2}");
	write_sample(&s, B, 150, 250);
	losing(&s, B,
		"{\"cause\":\"x\",\"event\":\"e\",\"cpu\":1,\"count\":7},{\"cause\":\"y\",\"count\":2}");
	write_sample(&s, C, 200, 300);
	losing(&s, C,
		"{\"cause\":\"x\",\"event\":\"e\",\"cpu\":1,\"count\":3},{\"cause\":\"x\",\"event\":\"e\","
		"\"cpu\":2,\"count\":1}");
	assert_int_equal(scene_merge(&s), 0);
	assert_int_equal(fr_read_file(AT_FDCWD, scene_path(&s, "perf.data.json"), 10000, &text), 0);
	json = cJSON_ParseWithLength((const char *)text.data, text.len);
	assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItem(json, "samples")), s.report.samples);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "causes")), 3);
	assert_string_equal(
		cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetObjectItem(json, "cause"), "trigger")), A);
	losses = cJSON_GetObjectItem(json, "losses");
	assert_int_equal(cJSON_GetArraySize(losses), 3);
	for (int i = 0; i < 3; i++) {
		static const double counts[] = {10, 1, 2};

		assert_int_equal(
			cJSON_GetNumberValue(cJSON_GetObjectItem(cJSON_GetArrayItem(losses, i), "count")),
			counts[i]);
	}
	cJSON_Delete(json);
	scene_deinit(&s);
}

static void test_keep_and_dry_run(void **state)
{
	struct scene s;

	scene_init(&s);
	write_sample(&s, A, 100, 200);
	s.options.dry_run = true;
	assert_int_equal(scene_merge(&s), 0);
	assert_int_equal(s.report.samples, 100);
	assert_int_equal(scene_entries(&s), 1);
	s.options.dry_run = false;
	s.options.keep = true;
	assert_int_equal(scene_merge(&s), 0);
	assert_true(scene_has(&s, A));
	assert_int_equal(scene_entries(&s), 2);
	scene_deinit(&s);
}

static void test_locks(void **state)
{
	struct scene s;
	int fd;

	scene_init(&s);
	write_aux(&s, 50, 200);
	write_sample(&s, A, 100, 200);
	fd = open(s.dir, O_RDONLY | O_DIRECTORY);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(scene_merge(&s), -EBUSY);
	assert_int_equal(scene_entries(&s), 2);
	close(fd);

	/* A daemon at work: its auxiliary file is read, cut inside a record as it may be, and left. */
	fd = open(scene_path(&s, AUX), O_RDWR | O_APPEND);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(write(fd, "\3\0\0\0\0\0\100\0\1\2\3\4", 12), 12);
	assert_int_equal(scene_merge(&s), 0);
	assert_int_equal(s.report.n_removed, 1);
	assert_true(scene_has(&s, AUX));
	assert_false(scene_has(&s, A));
	close(fd);
	scene_deinit(&s);
}

static void test_other_events(void **state)
{
	struct scene s;

	scene_init(&s);
	write_sample(&s, A, 100, 200);
	s.session.events[0].attr.config = PERF_COUNT_SW_PAGE_FAULTS;
	write_sample(&s, B, 150, 250);
	assert_int_equal(scene_merge(&s), -EINVAL);
	assert_non_null(strstr(s.diag.what, "900"));
	assert_int_equal(scene_entries(&s), 2);
	scene_deinit(&s);
}

/* Another run of the recorder: the same events with other ids become one. */
static void test_ids_are_united(void **state)
{
	struct fr_reader *r = NULL;
	struct scene s;

	scene_init(&s);
	write_sample(&s, A, 100, 200);
	fr_session_deinit(&s.session);
	s.id += 10;
	synth_session(&s.session, s.id, "host", 1700000000ULL * 1000000000);
	write_sample(&s, B, 300, 400);
	assert_int_equal(scene_merge(&s), 0);
	assert_int_equal(fr_reader_open(scene_path(&s, "perf.data"), &r, NULL), 0);
	assert_int_equal(fr_reader_session(r)->n_events, 2);
	assert_int_equal(fr_reader_session(r)->events[0].n_ids, 4);
	assert_int_equal(fr_reader_session(r)->events[0].ids[2], SCENE_ID + 10);
	assert_string_equal(fr_reader_session(r)->events[0].name, "cpu-clock");
	fr_reader_free(r);
	scene_deinit(&s);
}

/* Dumps of an older recorder have a side-band event without: it is the same one, and has what the others
 * have. */
static void test_stacks_of_side_band(void **state)
{
	struct fr_reader *r = NULL;
	struct scene s;

	scene_init(&s);
	write_sample(&s, A, 100, 200);
	s.session.events[1].attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
	write_sample(&s, B, 150, 250);
	assert_int_equal(scene_merge(&s), 0);
	assert_int_equal(fr_reader_open(scene_path(&s, "perf.data"), &r, NULL), 0);
	assert_int_equal(fr_reader_session(r)->n_events, 2);
	assert_false(fr_reader_session(r)->events[1].attr.sample_type & PERF_SAMPLE_CALLCHAIN);
	fr_reader_free(r);
	scene_deinit(&s);
}

/* A small file system at PATH, that nobody but this process sees. */
static bool mount_small(const char *path)
{
	return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("none", path, "tmpfs", 0, "size=640k") == 0;
}

/* What RUN returns in a process of its own: 0, 1, or 77. The scene is gone afterwards. */
static void run_mounted(struct scene *s, int (*run)(struct scene *))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(run(s));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	(void)rmdir(scene_path(s, OUT));
	scene_deinit(s);
	if (WEXITSTATUS(status) == 77) {
		print_message("no private mount namespace here\n");
		skip();
	}
	assert_int_equal(status, 0);
}

/* A file system that is too small for the output. */
static int no_space(struct scene *s)
{
	if (!mount_small(s->dir))
		return 77;
	write_sample(s, A, 100, 8000);
	if (scene_merge(s) != -ENOSPC || !strstr(s->diag.what, "perf.data") || !s->diag.hint[0])
		return 1;
	return scene_entries(s) == 1 && scene_has(s, A) ? 0 : 1;
}

static void test_no_space(void **state)
{
	struct scene s;

	scene_init(&s);
	run_mounted(&s, no_space);
}

/* Where no link can be made to the objects of code that processes made. */
static int to_another_file_system(struct scene *s)
{
	_cleanup_buf_ struct fr_buf got = {0};
	uint8_t object[100001];

	if (mkdir(scene_path(s, OUT), 0700) < 0 || !mount_small(scene_path(s, OUT)))
		return 77;
	for (size_t i = 0; i < sizeof(object); i++)
		object[i] = (uint8_t)(i * 7 >> 3);
	write_sample(s, A, 100, 200);
	if (mkdir(scene_path(s, A ".jit"), 0700) < 0)
		return 1;
	synth_write(scene_path(s, A ".jit/jitted-1-x.so"), object, sizeof(object));
	s->options.output = scene_path(s, OUT "/perf.data");
	if (scene_merge(s) != 0 || scene_has(s, A) || scene_has(s, A ".jit"))
		return 1;
	if (fr_read_file(AT_FDCWD, scene_path(s, OUT "/perf.data.jit/jitted-1-x.so"), 1u << 20, &got) < 0)
		return 1;
	return got.len == sizeof(object) && memcmp(got.data, object, got.len) == 0 ? 0 : 1;
}

static void test_another_file_system(void **state)
{
	struct scene s;

	scene_init(&s);
	run_mounted(&s, to_another_file_system);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_state_is_left_out),
		cmocka_unit_test(test_state_is_kept),
		cmocka_unit_test(test_compacted_within_a_window),
		cmocka_unit_test(test_cut_tail),
		cmocka_unit_test(test_no_perf_data),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_boots),
		cmocka_unit_test(test_older_output_is_kept),
		cmocka_unit_test(test_directory_not_synced),
		cmocka_unit_test(test_what_the_json_sums_up),
		cmocka_unit_test(test_keep_and_dry_run),
		cmocka_unit_test(test_locks),
		cmocka_unit_test(test_other_events),
		cmocka_unit_test(test_ids_are_united),
		cmocka_unit_test(test_stacks_of_side_band),
		cmocka_unit_test(test_no_space),
		cmocka_unit_test(test_another_file_system),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
