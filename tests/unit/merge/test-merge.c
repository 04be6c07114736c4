// SPDX-License-Identifier: GPL-2.0-or-later

/* Tests of fr_merge(): which records it omits, which inputs it refuses, and which files it keeps and
   removes. */

#include "base/cleanup.h"
#include "base/file.h"
#include "perfdata/reader.h"
#include "scene.h"

#include <cjson/cJSON.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define A "perf.data.sample.20260101T000000.000000Z"
#define B "perf.data.sample.20260102T000000.000000Z"
#define C "perf.data.sample.20260103T000000.000000Z"
#define AUX "perf.data.auxiliary"
#define OUT "out"

#define BOOT_1 "11111111-1111-1111-1111-111111111111"
#define BOOT_2 "22222222222222222222222222222222"

/* Writes a sample file: two side-band records that describe processes, with the time FROM; a FINISHED_ROUND;
   samples with the times FROM + 1 … TO; a FINISHED_ROUND. */
static void write_sample(struct scene *s, const char *name, uint64_t from, uint64_t to)
{
	const struct fr_event_desc *events = s->session.events;
	_cleanup_buf_ struct fr_buf b = {0};

	synth_comm(&b, events[1].ids[0], from, 1, "state");
	synth_comm(&b, events[1].ids[0], from, 2, "state");
	synth_round(&b);
	for (uint64_t t = from + 1; t <= to; t++)
		synth_sample(&b, events[0].ids[0], t, 1, t);
	synth_round(&b);
	synth_write_file(scene_path(s, name), &s->session, &b, 0, 0);
}

/* Writes an auxiliary file: two side-band records that describe processes, with the time CHECKPOINT; a
 * FINISHED_ROUND; one record for each time FROM … TO. If CHECKPOINT is 0, the first two records have no time,
 * and no FINISHED_ROUND follows them. */
static void write_aux(struct scene *s, uint64_t checkpoint, uint64_t from, uint64_t to)
{
	const uint64_t id = s->session.events[1].ids[0];
	_cleanup_buf_ struct fr_buf b = {0};

	synth_comm(&b, id, checkpoint, 1, "aux");
	synth_comm(&b, id, checkpoint, 2, "aux");
	if (checkpoint)
		synth_round(&b);
	for (uint64_t t = from; t <= to; t++)
		synth_comm(&b, id, t, 3, "later");
	synth_round(&b);
	synth_write_pipe(scene_path(s, AUX), &s->session, &b);
}

static void write_sidecar(struct scene *s, const char *name, const char *boot, const char *losses)
{
	char text[500], file[100];

	snprintf(text, sizeof(text), "{\"boot_id\":\"%s\",\"causes\":[{\"trigger\":\"%s\"}],\"losses\":[%s]}",
		boot, name, losses);
	snprintf(file, sizeof(file), "%s.json", name);
	scene_write(s, file, text);
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

FIXTURE(scene_setup, scene_teardown)

/* The sample file has process state with the time 100, and samples with the times 101 … 150. */
TEST(state_is_left_out_if_another_file_covers_its_time)
{
	static const struct {
		uint64_t checkpoint, from, to; /* times of the auxiliary file; it does not exist if TO is 0 */
		bool has_window;	       /* the sample file has a sidecar with a window */
		uint64_t left_out;
	} cases[] = {
		{0, 50, 200, false, 2},
		{0, 101, 200, false, 0}, /* the auxiliary file begins too late */
		{0, 20, 99, false, 0},	 /* the auxiliary file ends too early */
		{0, 0, 0, false, 0},
		/* The checkpoint (the first records after a compaction) is within the window of the dump. If
		   the window is known, the checkpoint is left out, because the state of the sample file
		   covers its time. */
		{120, 121, 200, true, 2},
		{120, 121, 200, false, 0},
		/* A compaction after the window: nothing covers the checkpoint. A compaction before the
		   window: the auxiliary file covers the state of the sample file, which is left out. */
		{160, 161, 200, true, 0},
		{90, 91, 200, true, 2},
	};
	struct scene *s = *state;

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		_cleanup_buf_ struct fr_buf out = {0};
		const uint64_t aux = cases[i].to ? 2 + cases[i].to - cases[i].from + 1 : 0;

		scene_clear(s);
		write_sample(s, A, 100, 150);
		if (cases[i].to)
			write_aux(s, cases[i].checkpoint, cases[i].from, cases[i].to);
		if (cases[i].has_window)
			scene_write(s, A ".json", "{\"window\":{\"from_ns\":101,\"to_ns\":150}}");
		assert_int_equal(scene_merge(s), 0);
		assert_int_equal(s->report.state, cases[i].left_out);
		assert_int_equal(s->report.samples, 50);
		assert_int_equal(s->report.records, 50 + 2 + aux - cases[i].left_out);
		assert_int_equal(s->report.first_ns, 101);
		assert_int_equal(s->report.last_ns, 150);
		scene_read(s, "perf.data", &out, NULL);
		if (aux && !cases[i].checkpoint) /* state without a time comes first in the merge */
			assert_int_equal(fr_record_time((const void *)out.data), 0);
	}
}

/* Merges A and B, named by their paths. */
static int merge_named(struct scene *s)
{
	const char *const files[] = {scene_path(s, A), scene_path(s, B)};
	const char *directory = s->options.directory;
	int r;

	s->options.directory = NULL;
	s->options.files = files;
	s->options.n_files = 2;
	s->options.output = scene_path(s, "perf.data");
	r = scene_merge(s);
	s->options.directory = directory;
	s->options.n_files = 0;
	s->options.output = NULL;
	return r;
}

TEST(named_files_of_two_boots_are_refused)
{
	static const char *const words[] = {"11111111111111111111111111111111", BOOT_2, A, B};
	struct scene *s = *state;

	write_sample(s, A, 100, 200);
	write_sidecar(s, A, BOOT_1, "");
	write_sample(s, B, 150, 250);
	write_sidecar(s, B, BOOT_2, "");
	assert_int_equal(merge_named(s), -EXDEV);
	for (size_t i = 0; i < FR_ARRAY_SIZE(words); i++)
		assert_non_null(strstr(s->diag.what, words[i]));
	assert_int_equal(scene_entries(s), 4);

	/* Without a boot id, the merge compares the differences between wall clock and monotonic clock. */
	unlink(scene_path(s, A ".json"));
	assert_int_equal(merge_named(s), 0);
	assert_false(scene_has(s, B ".json"));
	write_sample(s, A, 100, 200);
	scene_use_session(s, SCENE_ID + 10, 1800000000);
	write_sample(s, B, 100, 200);
	assert_int_equal(merge_named(s), -EXDEV);
	assert_non_null(strstr(s->diag.what, "2023-11-14T"));
	assert_non_null(strstr(s->diag.what, "2027-01-15T"));

	/* Files with the same boot id are of one boot. If the clocks differ, somebody has set the wall
	   clock. */
	write_sidecar(s, A, BOOT_1, "");
	write_sidecar(s, B, BOOT_1, "");
	assert_int_equal(merge_named(s), 0);
}

TEST(of_a_directory_only_the_newest_boot_is_merged)
{
	struct scene *s = *state;

	write_sample(s, A, 100, 200);
	write_sidecar(s, A, BOOT_1, "");
	scene_use_session(s, SCENE_ID + 10, 1800000000);
	write_sample(s, B, 100, 150);
	write_sidecar(s, B, BOOT_2, "");
	assert_int_equal(scene_merge(s), 0);
	assert_int_equal(s->report.n_inputs, 1);
	assert_int_equal(s->report.n_unusable, 0);
	assert_int_equal(s->report.samples, 50);
	assert_non_null(strstr(s->warned, A " is of another boot"));
	assert_true(scene_has(s, A) && scene_has(s, A ".json"));
	assert_false(scene_has(s, B));
}

TEST(older_output_is_renamed)
{
	const struct timespec times[2] = {{1600000000, 123456000}, {1600000000, 123456000}};
	_cleanup_buf_ struct fr_buf older = {0};
	struct scene *s = *state;

	scene_write(s, "perf.data", "older");
	assert_int_equal(utimensat(AT_FDCWD, scene_path(s, "perf.data"), times, 0), 0);
	scene_write(s, "perf.data.20200913T122640.123456Z", "taken");
	write_sample(s, A, 100, 200);
	write_sample(s, B, 150, 250);
	assert_int_equal(scene_merge(s), 0);
	assert_string_equal(s->report.kept_older, scene_path(s, "perf.data.20200913T122640.123457Z"));
	assert_int_equal(fr_read_file(AT_FDCWD, s->report.kept_older, 100, &older), 0);
	assert_string_equal((char *)older.data, "older");
	assert_int_equal(scene_entries(s), 3);
	assert_int_equal(s->report.samples, 150);
	assert_int_equal(s->report.duplicates, 50);
}

/* If the directory cannot be synced, a power failure can remove the output. So the inputs must stay. */
TEST(inputs_stay_if_the_directory_is_not_synced)
{
	struct scene *s = *state;

	write_aux(s, 0, 50, 200);
	write_sample(s, A, 100, 150);
	scene_write(s, "perf.data", "older");
	directory_fails = true;
	assert_int_equal(scene_merge(s), 0);
	directory_fails = false;
	assert_int_equal(s->report.not_durable, EIO);
	assert_int_equal(s->report.samples, 50);
	assert_int_equal(s->report.n_removed, 0);
	assert_non_null(strstr(s->warned, "not durable"));
	assert_true(scene_has(s, A) && scene_has(s, AUX) && scene_has(s, "perf.data"));
	assert_non_null(strstr(s->report.kept_older, "perf.data."));
	assert_int_equal(scene_entries(s), 4);
	assert_int_equal(scene_merge(s), 0);
	assert_int_equal(s->report.n_removed, 2);
}

/* There are two dumps of one instance, and one dump of the next instance. The next instance counts losses
   from 0 again. */
TEST(sidecar_sums_up_the_dumps)
{
	static const double counts[] = {10, 1, 2};
	_cleanup_buf_ struct fr_buf text = {0};
	struct scene *s = *state;
	cJSON *json, *losses;

	write_sample(s, A, 100, 200);
	write_sidecar(s, A, BOOT_1,
		"{\"cause\":\"x\",\"event\":\"e\",\"cpu\":1,\"count\":5},{\"cause\":\"y\",\"count\":2}");
	write_sample(s, B, 150, 250);
	write_sidecar(s, B, BOOT_1,
		"{\"cause\":\"x\",\"event\":\"e\",\"cpu\":1,\"count\":7},{\"cause\":\"y\",\"count\":2}");
	write_sample(s, C, 200, 300);
	write_sidecar(s, C, BOOT_1,
		"{\"cause\":\"x\",\"event\":\"e\",\"cpu\":1,\"count\":3},{\"cause\":\"x\",\"event\":\"e\","
		"\"cpu\":2,\"count\":1}");
	assert_int_equal(scene_merge(s), 0);
	assert_int_equal(scene_entries(s), 2); /* the sidecars of the inputs are removed */
	assert_int_equal(fr_read_file(AT_FDCWD, scene_path(s, "perf.data.json"), 10000, &text), 0);
	json = cJSON_ParseWithLength((const char *)text.data, text.len);
	assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItem(json, "samples")), s->report.samples);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "dumps")), 3);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "causes")), 3);
	assert_string_equal(
		cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetObjectItem(json, "cause"), "trigger")), A);
	losses = cJSON_GetObjectItem(json, "losses");
	assert_int_equal(cJSON_GetArraySize(losses), 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(
			cJSON_GetNumberValue(cJSON_GetObjectItem(cJSON_GetArrayItem(losses, i), "count")),
			counts[i]);
	cJSON_Delete(json);
}

/* The merged sidecar has each process once, and the sidecars of the dumps in it have none. */
TEST(a_process_is_in_the_cgroup_of_the_last_dump)
{
	_cleanup_buf_ struct fr_buf text = {0};
	struct scene *s = *state;
	cJSON *json, *cgroups;

	write_sample(s, A, 100, 200);
	scene_write(s, A ".json",
		"{\"boot_id\":\"" BOOT_1 "\",\"cgroups\":{\"/a\":[1,2,3],\"/b\":[4,-1,\"x\",1e99]}}");
	write_sample(s, B, 150, 250);
	scene_write(s, B ".json", "{\"boot_id\":\"" BOOT_1 "\",\"cgroups\":{\"/b\":[2],\"/c\":[5,5]}}");
	assert_int_equal(scene_merge(s), 0);
	assert_int_equal(fr_read_file(AT_FDCWD, scene_path(s, "perf.data.json"), 10000, &text), 0);
	json = cJSON_ParseWithLength((const char *)text.data, text.len);
	cgroups = cJSON_GetObjectItem(json, "cgroups");
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(cgroups, "/a")), 2);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(cgroups, "/b")), 2);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(cgroups, "/c")), 1);
	cJSON_ArrayForEach (cgroups, cJSON_GetObjectItem(json, "dumps"))
		assert_null(cJSON_GetObjectItem(cgroups, "cgroups"));
	cJSON_Delete(json);
}

TEST(locks_of_another_merge_and_of_a_daemon_are_respected)
{
	struct scene *s = *state;
	int fd = open(s->dir, O_RDONLY | O_DIRECTORY);

	write_aux(s, 0, 50, 200);
	write_sample(s, A, 100, 200);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(scene_merge(s), -EBUSY);
	assert_int_equal(scene_entries(s), 2);
	close(fd);

	/* While a daemon writes a record to its auxiliary file, the merge reads and keeps the file, and does
	   not report it as damaged. */
	fd = open(scene_path(s, AUX), O_RDWR | O_APPEND);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(write(fd, "\3\0\0\0\0\0\100\0\1\2\3\4", 12), 12);
	assert_int_equal(scene_merge(s), 0);
	assert_int_equal(s->report.n_removed, 1);
	assert_true(scene_has(s, AUX) && !scene_has(s, A));
	close(fd);
}

TEST(one_id_of_two_events_is_refused)
{
	struct scene *s = *state;

	write_sample(s, A, 100, 200);
	s->session.events[0].attr.config = PERF_COUNT_SW_PAGE_FAULTS;
	write_sample(s, B, 150, 250);
	assert_int_equal(scene_merge(s), -EINVAL);
	assert_non_null(strstr(s->diag.what, "900"));
	assert_int_equal(scene_entries(s), 2);
}

/* Writes a file as another recorder does. It has one event, whose records have no id. */
static void write_event_without_ids(struct scene *s, const char *name, uint64_t config)
{
	struct perf_event_attr attr = s->session.events[0].attr;
	_cleanup_session_ struct fr_session one = {0};
	_cleanup_buf_ struct fr_buf round = {0};

	attr.config = config;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
	assert_int_equal(fr_session_add_event(&one, &attr, "other", NULL, 0, NULL), 0);
	synth_round(&round);
	synth_write_file(scene_path(s, name), &one, &round, 0, 0);
}

TEST(different_events_without_ids_are_refused)
{
	struct scene *s = *state;

	for (int with_ids = 0; with_ids <= 1; with_ids++) {
		scene_clear(s);
		write_event_without_ids(s, A, PERF_COUNT_SW_PAGE_FAULTS);
		if (with_ids)
			write_sample(s, B, 100, 200);
		else
			write_event_without_ids(s, B, PERF_COUNT_SW_CPU_MIGRATIONS);
		assert_int_equal(scene_merge(s), -EINVAL);
		assert_non_null(strstr(s->diag.what, "could not be distinguished"));
		assert_int_equal(scene_entries(s), 2);
	}
	scene_clear(s);
	write_event_without_ids(s, A, PERF_COUNT_SW_PAGE_FAULTS);
	write_event_without_ids(s, B, PERF_COUNT_SW_PAGE_FAULTS);
	assert_int_equal(scene_merge(s), 0);
}

/* The attributes of the side-band event may differ: in dumps of an older recorder it has no call chains. */
TEST(openings_of_an_event_become_one_event)
{
	const struct fr_event_desc *events;
	struct fr_reader *r = NULL;
	struct scene *s = *state;

	write_sample(s, A, 100, 200);
	scene_use_session(s, SCENE_ID + 10, 1700000000);
	s->session.events[1].attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
	write_sample(s, B, 300, 400);
	assert_int_equal(scene_merge(s), 0);
	assert_int_equal(fr_reader_open(scene_path(s, "perf.data"), &r, NULL), 0);
	assert_int_equal(fr_reader_session(r)->n_events, 2);
	events = fr_reader_session(r)->events;
	assert_int_equal(events[0].n_ids, 4);
	assert_int_equal(events[0].ids[2], SCENE_ID + 10);
	assert_string_equal(events[0].name, "cpu-clock");
	assert_false(events[1].attr.sample_type & PERF_SAMPLE_CALLCHAIN);
	fr_reader_free(r);
}

/* Calls RUN in a process that has its own small file system at PATH. RUN returns whether it has succeeded. */
static void run_with_small_file_system(struct scene *s, const char *path, bool (*run)(struct scene *))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
			mount("none", path, "tmpfs", 0, "size=640k") < 0)
			_exit(77);
		_exit(!run(s));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WEXITSTATUS(status) == 77)
		unit_skip("no private mount namespace here");
	assert_int_equal(status, 0);
}

static bool merge_to_another_file_system(struct scene *s)
{
	_cleanup_buf_ struct fr_buf got = {0};
	uint8_t object[100001];

	for (size_t i = 0; i < sizeof(object); i++)
		object[i] = (uint8_t)(i * 7 >> 3);
	write_sample(s, A, 100, 200);
	if (mkdir(scene_path(s, A ".jit"), 0700) < 0)
		return false;
	synth_write(scene_path(s, A ".jit/jitted-1-x.so"), object, sizeof(object));
	s->options.output = scene_path(s, OUT "/perf.data");
	return scene_merge(s) == 0 && !scene_has(s, A) && !scene_has(s, A ".jit") &&
	       fr_read_file(AT_FDCWD, scene_path(s, OUT "/perf.data.jit/jitted-1-x.so"), 1u << 20, &got) ==
		       0 &&
	       got.len == sizeof(object) && memcmp(got.data, object, got.len) == 0;
}

TEST(symbols_of_a_crashed_kernel_stay_with_the_output)
{
	static const char symbols[] = "ffffffff81000000 T _stext\n";
	struct scene *s = *state;
	_cleanup_buf_ struct fr_buf got = {0};
	char older[PATH_MAX + 16];

	write_sample(s, A, 100, 200);
	write_sample(s, B, 150, 250);
	synth_write(scene_path(s, B ".kallsyms"), symbols, strlen(symbols));
	assert_int_equal(scene_merge(s), 0);
	assert_false(scene_has(s, B));
	assert_false(scene_has(s, B ".kallsyms"));
	assert_int_equal(fr_read_file(AT_FDCWD, scene_path(s, "perf.data.kallsyms"), 1000, &got), 0);
	assert_string_equal((char *)got.data, symbols);
	/* The next output has no symbols, and those of the older output get its name. */
	write_sample(s, A, 300, 400);
	assert_int_equal(scene_merge(s), 0);
	assert_false(scene_has(s, "perf.data.kallsyms"));
	snprintf(older, sizeof(older), "%s.kallsyms", s->report.kept_older);
	assert_int_equal(access(older, F_OK), 0);
	/* A link is not followed. */
	write_sample(s, A, 500, 600);
	assert_int_equal(symlink("/etc/passwd", scene_path(s, A ".kallsyms")), 0);
	assert_int_equal(scene_merge(s), 0);
	assert_false(scene_has(s, "perf.data.kallsyms"));
}

TEST(objects_are_copied_to_another_file_system)
{
	struct scene *s = *state;
	const char *out = scene_path(s, OUT);

	assert_int_equal(mkdir(out, 0700), 0);
	run_with_small_file_system(s, out, merge_to_another_file_system);
	assert_int_equal(rmdir(scene_path(s, OUT)), 0);
}
