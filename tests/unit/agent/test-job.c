// SPDX-License-Identifier: GPL-2.0-or-later
#include "agent/job.h"
#include "../unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID "20261128T205726Z-1f3a5c7e"
#define OTHER_ID "20261128T205726Z-1f3a5c7f"
#define FILE_NAME "perf.data.sample.20261128T205726.123456Z"
#define S 1000000000ULL
#define STORED (1800000000 * S)
#define OFFSET (1799999000 * S) /* so that the broker stored the command at 1000 s of the monotonic clock */

static const char meta_text[] =
	"{\"file\":\"" FILE_NAME "\",\"path\":\"/var/lib/flightrec/" FILE_NAME
	"\",\"bytes\":4096,\"samples\":17,"
	"\"boot_id\":\"00112233\",\"window\":{\"from_ns\":900000000000,\"to_ns\":999000000000},"
	"\"losses\":[{\"cause\":\"ring\",\"count\":3},{\"cause\":\"x\",\"count\":4}],"
	"\"cause\":{\"trigger\":\"fleet\",\"fleet\":\"" ID "\"}}";

static struct fr_job job(void)
{
	struct fr_job j = {.stored_ns = STORED, .clock = {.offset_ns = (int64_t)OFFSET, .error_ns = 1000}};

	strcpy(j.command.id, ID);
	strcpy(j.command.selector, "*");
	strcpy(j.command.reason, "slow");
	strcpy(j.command.by, "me@here");
	strcpy(j.answer.id, ID);
	strcpy(j.answer.machine, "db-1");
	return j;
}

static struct fr_job dumped(void)
{
	struct fr_job j = job();
	cJSON *meta = cJSON_Parse(meta_text);
	struct fr_diag d = {0};

	assert_non_null(meta);
	j.command.last_ns = 2 * S;
	fr_job_set_window(&j);
	assert_int_equal(fr_job_set_dump(&j, meta, &d), 0);
	fr_job_answer(&j, FR_FLEET_DONE, "");
	j.phase = FR_JOB_UPLOAD;
	cJSON_Delete(meta);
	return j;
}

TEST(the_window_is_exact)
{
	struct fr_job j = job();

	j.command.last_ns = 2 * S;
	fr_job_set_window(&j);
	assert_int_equal(j.from_ns, 998 * S);
	assert_int_equal(j.to_ns, 1000 * S);
	j.command.post_ns = S;
	fr_job_set_window(&j);
	assert_int_equal(j.to_ns, 1001 * S);
	j.command.last_ns = 0;
	fr_job_set_window(&j);
	assert_int_equal(j.from_ns, 0);
	j.command.from_ns = STORED - 5 * S;
	j.command.to_ns = STORED - 4 * S;
	fr_job_set_window(&j);
	assert_int_equal(j.from_ns, 995 * S);
	assert_int_equal(j.to_ns, 996 * S);
}

/* A window before the boot must not become "the whole ring up to now". */
TEST(the_window_is_before_the_boot)
{
	struct fr_job j = job();

	j.command.from_ns = S;
	j.command.to_ns = 2 * S;
	fr_job_set_window(&j);
	assert_int_equal(j.from_ns, 0);
	assert_int_equal(j.to_ns, 1);
}

TEST(hostile_windows_do_not_overflow)
{
	struct fr_job j = job();

	j.command.post_ns = UINT64_MAX;
	j.command.last_ns = UINT64_MAX;
	fr_job_set_window(&j);
	assert_int_equal(j.from_ns, 0);
	assert_true(j.to_ns > 1000 * S);
}

TEST(the_dump_of_the_recorder)
{
	struct fr_job j = dumped();

	assert_string_equal(j.path, "/var/lib/flightrec/" FILE_NAME);
	assert_string_equal(j.answer.path, j.path);
	assert_string_equal(j.manifest.file, FILE_NAME);
	assert_string_equal(j.manifest.trigger, "fleet");
	assert_string_equal(j.manifest.cause, "slow");
	assert_int_equal(j.manifest.bytes, 4096);
	assert_int_equal(j.manifest.samples, 17);
	assert_int_equal(j.manifest.lost, 7);
	assert_int_equal(j.manifest.to_ns, STORED);
	assert_int_equal(j.manifest.to_ns - j.manifest.from_ns, 2 * S);
	assert_int_equal(j.manifest.at_ns, STORED);
}

TEST(the_recorder_says_nonsense)
{
	static const char *const texts[] = {
		"{}",
		"{\"file\":\"x\",\"path\":\"/x\",\"bytes\":1}",
		"{\"file\":\"" FILE_NAME "\",\"path\":\"/v/other\",\"bytes\":1}",
		"{\"file\":\"" FILE_NAME "\",\"path\":\"v/" FILE_NAME "\",\"bytes\":1}",
		"{\"file\":\"perf.data.sample./../x\",\"path\":\"/perf.data.sample./../x\",\"bytes\":1}",
		"{\"file\":\"" FILE_NAME "\",\"path\":\"/v/" FILE_NAME "\",\"bytes\":-1}",
		"{\"file\":7,\"path\":[]}",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct fr_job j = job();
		struct fr_diag d = {0};
		cJSON *meta = cJSON_Parse(texts[i]);

		assert_non_null(meta);
		assert_int_equal(fr_job_set_dump(&j, meta, &d), -EBADMSG);
		assert_true(d.what[0]);
		cJSON_Delete(meta);
	}
}

TEST(a_dump_is_known_by_its_cause)
{
	const struct fr_job j = job();
	cJSON *mine = cJSON_Parse(meta_text);
	cJSON *second = cJSON_Parse("{\"cause\":{\"fleet\":\"x\"},\"causes\":[{},{\"fleet\":\"" ID "\"}]}");
	cJSON *other =
		cJSON_Parse("{\"cause\":{\"trigger\":\"fleet\"},\"causes\":[{\"fleet\":\"" OTHER_ID "\"}]}");

	assert_true(fr_job_is_dump(&j, mine));
	assert_true(fr_job_is_dump(&j, second));
	assert_false(fr_job_is_dump(&j, other));
	cJSON_Delete(mine);
	cJSON_Delete(second);
	cJSON_Delete(other);
}

TEST(the_file_has_all)
{
	struct fr_job j = dumped(), copy;
	struct fr_diag d = {0};
	char *text;

	strcpy(j.location, "s3://b/p http://s");
	strcpy(j.upload, "upload-7");
	strcpy(j.manifest.object, "p/" ID "/db-1/" FILE_NAME);
	memset(j.manifest.sha256, 'a', 64);
	j.is_held = true;
	text = fr_job_json(&j);
	assert_non_null(text);
	assert_int_equal(fr_job_read(text, strlen(text), ID, "db-1", &copy, &d), 0);
	assert_int_equal(copy.phase, FR_JOB_UPLOAD);
	assert_int_equal(copy.stored_ns, STORED);
	assert_string_equal(copy.command.reason, "slow");
	assert_string_equal(copy.location, j.location);
	assert_string_equal(copy.upload, "upload-7");
	assert_string_equal(copy.path, j.path);
	assert_string_equal(copy.manifest.object, j.manifest.object);
	assert_string_equal(copy.manifest.sha256, j.manifest.sha256);
	assert_int_equal(copy.manifest.from_ns, j.manifest.from_ns);
	assert_int_equal(copy.manifest.clock.offset_ns, j.manifest.clock.offset_ns);
	assert_int_equal(copy.answer.state, FR_FLEET_DONE);
	assert_string_equal(copy.answer.path, j.path);
	assert_true(copy.is_held);
	assert_true(copy.is_adopted);
	/* The broker gets the answer again. */
	assert_true(copy.answer_version != copy.sent_version);
	free(text);
}

TEST(a_job_without_a_dump)
{
	struct fr_job j = job(), copy;
	struct fr_diag d = {0};
	char *text;

	fr_job_answer(&j, FR_FLEET_REFUSED, "no");
	j.phase = FR_JOB_END;
	text = fr_job_json(&j);
	assert_int_equal(fr_job_read(text, strlen(text), ID, "db-1", &copy, &d), 0);
	assert_string_equal(copy.answer.why, "no");
	free(text);
	j.phase = FR_JOB_UPLOAD;
	text = fr_job_json(&j);
	assert_int_equal(fr_job_read(text, strlen(text), ID, "db-1", &copy, &d), -EBADMSG);
	free(text);
}

TEST(the_file_is_about_another)
{
	struct fr_job j = dumped(), copy;
	struct fr_diag d = {0};
	char *text = fr_job_json(&j);

	assert_int_equal(fr_job_read(text, strlen(text), OTHER_ID, "db-1", &copy, &d), -EBADMSG);
	assert_int_equal(fr_job_read(text, strlen(text), ID, "db-2", &copy, NULL), -EBADMSG);
	free(text);
}

/* A file that was cut is refused. A file with a damaged byte is refused or read, and nothing else happens. */
TEST(a_damaged_file)
{
	struct fr_job j = dumped(), copy;
	char *text = fr_job_json(&j);
	const size_t n = strlen(text);

	for (size_t i = 0; i < n; i++) {
		char byte = text[i];

		assert_int_equal(fr_job_read(text, i, ID, "db-1", &copy, NULL), -EBADMSG);
		text[i] = (char)(byte ^ 1);
		(void)fr_job_read(text, n, ID, "db-1", &copy, NULL);
		text[i] = byte;
	}
	assert_int_equal(fr_job_read(text, n, ID, "db-1", &copy, NULL), 0);
	free(text);
}

TEST(the_pauses_grow)
{
	struct fr_job j = {0};
	uint64_t before = 0;

	for (int i = 0; i < 7; i++) {
		const uint64_t pause = fr_job_pause(&j, 0);

		assert_true(pause > before);
		assert_true(pause <= 60 * S);
		before = pause;
	}
	assert_int_equal(before, 60 * S);
	assert_true(fr_job_pause(&j, UINT32_MAX) > 60 * S);
	assert_true(fr_job_pause(&j, UINT32_MAX) <= 75 * S);
}
