// SPDX-License-Identifier: GPL-2.0-or-later

/* Dumps of a real ring: what is in them, and that stock perf reads them. */

#include "synthetic.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "dump/dump.h"
#include "history/history.h"
#include "perfdata/record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <cmocka.h>

#define RUN 500u /* samples at once */
#define RUNS 120u
#define RUN_NS (RUN * 1000ULL)
#define TRIGGER_NS (SYNTHETIC_START_NS + RUNS * RUN_NS)

struct fixture {
	char dir[64];
	int dirfd;
	struct fr_session session;
	struct fr_history *history;
	uint64_t model_ns;
	struct fr_dump_params params;
};

/* The state before the ring's oldest record: the process that all samples are of. */
static int model(
	void *ctx, uint64_t low_watermark_ns, uint64_t time_ns, struct fr_buf *ret, struct fr_buf *ret_since)
{
	struct fixture *f = ctx;

	f->model_ns = time_ns;
	synthetic_state(ret, time_ns);
	return 0;
}

static void append_all(struct fr_history *h)
{
	_cleanup_buf_ struct fr_buf b = {0};

	for (unsigned i = 0; i < RUNS; i++) {
		uint64_t time = SYNTHETIC_START_NS + i * RUN_NS;

		b.len = 0;
		synthetic_samples(&b, time, RUN, 64, i % 3 == 0);
		fr_history_begin_round(h, 0);
		assert_int_equal(fr_history_append(h, b.data, b.len, RUN, time, time + (RUN - 1) * 1000), 0);
		b.len = 0;
		synthetic_state(&b, time + 1);
		assert_int_equal(fr_history_append_sideband(h, b.data, b.len, 2, time + 1, time + 1), 0);
		fr_history_end_round(h);
	}
	assert_int_equal(fr_history_seal(h), 0);
}

static int setup(void **state)
{
	static const struct fr_history_config config = {.size_bytes = 64u << 20, .level = 1};
	struct fixture *f = calloc(1, sizeof(*f));

	strcpy(f->dir, "/var/tmp/flightrec-dump.XXXXXX");
	if (!mkdtemp(f->dir))
		return -1;
	f->dirfd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!synthetic_session(&f->session, false) || fr_history_new(&config, &f->history, NULL) < 0)
		return -1;
	append_all(f->history);
	f->params = (struct fr_dump_params){
		.dirfd = f->dirfd,
		.session = &f->session,
		.clock = {SYNTHETIC_START_NS, SYNTHETIC_WALL_NS},
		.trigger_ns = TRIGGER_NS,
		.to_ns = UINT64_MAX,
		.compress = true,
		.level = 1,
		.section_max = fr_history_section_max(f->history),
		.model = model,
		.ctx = f,
		.gid = (gid_t)-1,
	};
	*state = f;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	close(f->dirfd);
	nftw(f->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	fr_session_deinit(&f->session);
	fr_history_free(f->history);
	free(f);
	return 0;
}

static int dump(struct fixture *f, cJSON *meta, struct fr_dump_result *ret, struct fr_diag *d)
{
	struct fr_snapshot *s;
	int r;

	assert_int_equal(fr_history_snapshot(f->history, &s), 0);
	r = fr_dump_write(s, &f->params, meta, ret, d);
	fr_snapshot_free(s);
	return r;
}

static void dump_ok(struct fixture *f, struct fr_dump_result *ret)
{
	cJSON *meta = cJSON_CreateObject();
	struct fr_diag d = {0};
	int r;

	cJSON_AddStringToObject(meta, "cause", "a test");
	r = dump(f, meta, ret, &d);
	cJSON_Delete(meta);
	if (r < 0)
		fail_msg("%s", d.what);
	assert_int_equal(ret->sidecar_error, 0);
	assert_int_equal(ret->damaged, 0);
}

static void script(struct fixture *f, const char *name, struct fr_buf *ret)
{
	_cleanup_buf_ struct fr_buf err = {0};
	char command[256];

	snprintf(command, sizeof(command), "perf script -i %s/%s -F comm,pid,tid,cpu,time,event,ip", f->dir,
		name);
	assert_int_equal(synthetic_run(command, ret, &err), 0);
	if (err.len)
		print_message("%s", (char *)err.data);
	assert_int_equal(err.len, 0);
}

static unsigned lines(const struct fr_buf *b)
{
	unsigned n = 0;

	for (size_t i = 0; i < b->len; i++)
		n += b->data[i] == '\n';
	return n;
}

static unsigned entries(struct fixture *f)
{
	_cleanup_closedir_ DIR *dir = opendir(f->dir);
	const struct dirent *e;
	unsigned n = 0;

	while ((e = readdir(dir)))
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	return n;
}

static void test_all_of_it(void **state)
{
	struct fixture *f = *state;
	struct fr_dump_result packed, plain, stripped;
	_cleanup_buf_ struct fr_buf a = {0}, b = {0}, c = {0};

	dump_ok(f, &packed);
	assert_int_equal(packed.samples, RUN * RUNS);
	assert_int_equal(packed.sideband, 2 * RUNS);
	assert_int_equal(packed.from_ns, SYNTHETIC_START_NS);
	assert_int_equal(packed.to_ns, TRIGGER_NS - 1000);
	assert_int_equal(f->model_ns, SYNTHETIC_START_NS - 1);
	f->params.compress = false;
	dump_ok(f, &plain);
	f->params.strip_rounds = true;
	dump_ok(f, &stripped);
	assert_true(plain.bytes > packed.bytes);
	script(f, packed.name, &a);
	script(f, plain.name, &b);
	script(f, stripped.name, &c);
	assert_int_equal(lines(&a), RUN * RUNS);
	assert_int_equal(a.len, b.len);
	assert_memory_equal(a.data, b.data, a.len);
	assert_int_equal(a.len, c.len);
	assert_null(strstr((char *)a.data, ":4711"));
}

/* A name that is taken gets the next microsecond. */
static void test_names(void **state)
{
	struct fixture *f = *state;
	struct fr_dump_result r;

	dump_ok(f, &r);
	assert_string_equal(r.name, "perf.data.sample.20231114T221320.060000Z");
	dump_ok(f, &r);
	assert_string_equal(r.name, "perf.data.sample.20231114T221320.060001Z");
	assert_int_equal(entries(f), 4);
}

/* Exact to the record, with the state from before the window. */
static void window(struct fixture *f, uint64_t from, uint64_t to, unsigned expected)
{
	struct fr_dump_result r;
	_cleanup_buf_ struct fr_buf out = {0};

	f->params.from_ns = from;
	f->params.to_ns = to;
	dump_ok(f, &r);
	assert_int_equal(r.samples, expected);
	assert_int_equal(r.sideband, 2 * ((FR_MIN(to, TRIGGER_NS) - SYNTHETIC_START_NS - 1) / RUN_NS + 1));
	assert_int_equal(f->model_ns, SYNTHETIC_START_NS);
	if (expected) {
		assert_int_equal(r.from_ns, from);
		assert_int_equal(r.to_ns, from + (expected - 1) * 1000);
	}
	script(f, r.name, &out);
	assert_int_equal(lines(&out), expected);
}

static void test_windows(void **state)
{
	struct fixture *f = *state;

	for (int compress = 0; compress < 2; compress++) {
		f->params.compress = compress;
		window(f, SYNTHETIC_START_NS + 17777 * 1000, SYNTHETIC_START_NS + 33333 * 1000,
			33333 - 17777 + 1);
		window(f, SYNTHETIC_START_NS + 59999 * 1000, UINT64_MAX - 1, 1);
		window(f, SYNTHETIC_START_NS + 5000 * 1000 + 1, SYNTHETIC_START_NS + 5000 * 1000 + 2, 0);
	}
}

static void test_build_ids(void **state)
{
	struct fixture *f = *state;
	struct fr_dump_result r;
	_cleanup_buf_ struct fr_buf out = {0}, err = {0};
	char command[256];

	dump_ok(f, &r);
	snprintf(command, sizeof(command), "perf buildid-list -i %s/%s", f->dir, r.name);
	assert_int_equal(synthetic_run(command, &out, &err), 0);
	assert_string_equal((char *)out.data, "abababababababababababababababababababab /bin/true\n");
}

static void test_sidecar(void **state)
{
	struct fixture *f = *state;
	struct fr_dump_result r;
	_cleanup_buf_ struct fr_buf b = {0};
	char name[128];
	cJSON *o, *w;

	dump_ok(f, &r);
	snprintf(name, sizeof(name), "%s.json", r.name);
	assert_int_equal(fr_read_file(f->dirfd, name, 1u << 20, &b), 0);
	o = cJSON_Parse((char *)b.data);
	assert_non_null(o);
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(o, "cause")), "a test");
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(o, "file")), r.name);
	assert_string_equal(
		cJSON_GetStringValue(cJSON_GetObjectItem(o, "time")), "2023-11-14T22:13:20.060000Z");
	assert_int_equal(strlen(cJSON_GetStringValue(cJSON_GetObjectItem(o, "boot_id"))), 32);
	assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItem(o, "samples")), RUN * RUNS);
	assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItem(o, "bytes")), r.bytes);
	assert_true(cJSON_IsTrue(cJSON_GetObjectItem(o, "compressed")));
	w = cJSON_GetObjectItem(o, "window");
	assert_string_equal(
		cJSON_GetStringValue(cJSON_GetObjectItem(w, "from")), "2023-11-14T22:13:20.000000Z");
	assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItem(w, "to_ns")), TRIGGER_NS - 1000);
	assert_non_null(strstr((char *)b.data, "5000000000"));
	cJSON_Delete(o);
}

static int dump_to_full(struct fixture *f)
{
	struct fr_dump_result r;
	struct fr_diag d = {0};
	cJSON *meta = cJSON_CreateObject();

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("flightrec-test", f->dir, "tmpfs", 0, "size=256K") < 0)
		return 77;
	f->params.compress = false;
	f->params.dirfd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dump(f, meta, &r, &d) != -ENOSPC)
		return 1;
	if (entries(f) != 0)
		return 2;
	if (!strstr(d.what, f->dir) || !strstr(d.what, "tmpfs flightrec-test on ") ||
		!strstr(d.what, "256.0K free") || !d.hint[0]) {
		print_message("%s\n", d.what);
		return 3;
	}
	return 0;
}

/* Nothing is left behind, and the person is told which file system wants how much. */
static void test_full_file_system(void **state)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(dump_to_full(*state));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		print_message("no mount namespace for a small tmpfs: skipped\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int failing_model(
	void *ctx, uint64_t low_watermark_ns, uint64_t time_ns, struct fr_buf *ret, struct fr_buf *ret_since)
{
	return -ETIMEDOUT;
}

static void test_failing_model_leaves_nothing(void **state)
{
	struct fixture *f = *state;
	struct fr_dump_result r;
	struct fr_diag d = {0};
	struct fr_history_stats stats;

	f->params.model = failing_model;
	assert_int_equal(dump(f, NULL, &r, &d), -ETIMEDOUT);
	assert_true(d.what[0]);
	assert_int_equal(entries(f), 0);
	fr_history_stats(f->history, &stats);
	assert_int_equal(stats.pinned_bytes, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_all_of_it),
		TEST(test_names),
		TEST(test_windows),
		TEST(test_build_ids),
		TEST(test_sidecar),
		TEST(test_full_file_system),
		TEST(test_failing_model_leaves_nothing),
	};

	if (!synthetic_have_perf()) {
		print_message("perf is not installed: skipped\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
