// SPDX-License-Identifier: GPL-2.0-or-later
/* Reads whole and damaged records of the kernel module. */
#include "../unit.h"
#include "crashmem/record.h"
#include "base/crc32c.h"
#include "base/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOG "[1.0] first\n[2.0] \xff second\n[3.0] third\n"

static union {
	struct flightrec_crash_record r;
	uint8_t bytes[FLIGHTREC_CRASHMEM_RECORD_BYTES];
} area;

static void seal(void)
{
	const size_t from = offsetof(struct flightrec_crash_record, kind);

	area.r.magic = FLIGHTREC_CRASH_RECORD_MAGIC;
	area.r.version = FLIGHTREC_CRASH_RECORD_VERSION;
	area.r.crc = fr_crc32c(0, area.bytes + from, sizeof(area.r) - from + area.r.log_bytes);
}

static int make_record(void **state)
{
	memset(&area, 0, sizeof(area));
	area.r.kind = FLIGHTREC_CRASH_PANIC;
	area.r.log_bytes = strlen(LOG);
	area.r.monotonic_ns = 12345;
	area.r.pid = 42;
	area.r.n_stack = 2;
	area.r.stack[1] = 0xffffffff81000000;
	area.r.n_registers = 21;
	area.r.registers[16] = 0xabc;
	area.r.registers_of = FLIGHTREC_CRASH_REGISTERS_FAULT;
	strcpy(area.r.reason, "sysrq triggered crash\n");
	strcpy(area.r.comm, "sh");
	memcpy(&area.r + 1, LOG, strlen(LOG));
	seal();
	return 0;
}

FIXTURE(make_record, NULL)

TEST(a_record_becomes_json)
{
	struct fr_crash_record record;
	cJSON *json;

	assert_int_equal(fr_crash_record_read(&area, sizeof(area), &record), 0);
	json = fr_crash_record_to_json(&record);
	assert_string_equal(fr_json_text(json, "kind"), "panic");
	assert_string_equal(fr_json_text(json, "reason"), "sysrq triggered crash ");
	assert_string_equal(fr_json_text(json, "comm"), "sh");
	assert_string_equal(fr_json_text(cJSON_GetObjectItem(json, "registers"), "rip"), "0xabc");
	assert_string_equal(
		cJSON_GetArrayItem(cJSON_GetObjectItem(json, "stack"), 1)->valuestring, "0xffffffff81000000");
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "log")), 3);
	assert_string_equal(
		cJSON_GetArrayItem(cJSON_GetObjectItem(json, "log"), 1)->valuestring, "[2.0] ? second");
	cJSON_Delete(json);
	fr_crash_record_deinit(&record);
}

TEST(the_newest_lines_of_a_long_log_are_kept)
{
	struct fr_crash_record record;
	char *log = (char *)(&area.r + 1);
	size_t len = 0;
	cJSON *json, *lines;

	for (int i = 0; i < 1000; i++)
		len += (size_t)sprintf(log + len, "line %d\n", i);
	area.r.log_bytes = len;
	seal();
	assert_int_equal(fr_crash_record_read(&area, sizeof(area), &record), 0);
	json = fr_crash_record_to_json(&record);
	lines = cJSON_GetObjectItem(json, "log");
	assert_in_range(cJSON_GetArraySize(lines), 150, 200);
	assert_string_equal(
		cJSON_GetArrayItem(lines, cJSON_GetArraySize(lines) - 1)->valuestring, "line 999");
	cJSON_Delete(json);
	fr_crash_record_deinit(&record);
}

TEST(each_changed_bit_is_found)
{
	struct fr_crash_record record;

	for (size_t bit = 0; bit < 8 * (sizeof(area.r) + strlen(LOG)); bit++) {
		int r;

		area.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		r = fr_crash_record_read(&area, sizeof(area), &record);
		assert_true(r == -EBADMSG || r == -ENOENT);
		area.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

TEST(impossible_numbers_with_a_right_crc_are_refused)
{
	struct fr_crash_record record;

	area.r.n_stack = FLIGHTREC_CRASH_STACK + 1;
	seal();
	assert_int_equal(fr_crash_record_read(&area, sizeof(area), &record), -EBADMSG);
	area.r.n_stack = 0;
	area.r.n_registers = UINT32_MAX;
	seal();
	assert_int_equal(fr_crash_record_read(&area, sizeof(area), &record), -EBADMSG);
	area.r.n_registers = 0;
	area.r.log_bytes = sizeof(area);
	area.r.magic = FLIGHTREC_CRASH_RECORD_MAGIC;
	assert_int_equal(fr_crash_record_read(&area, sizeof(area), &record), -EBADMSG);
	assert_int_equal(fr_crash_record_read(&area, sizeof(area.r) - 1, &record), -ENOENT);
}
