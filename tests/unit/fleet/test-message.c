// SPDX-License-Identifier: GPL-2.0-or-later
#include "../unit.h"
#include "base/cleanup.h"
#include "fleet/manifest_scan.h"
#include "fleet/message.h"
#include "random.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID "20261128T205726Z-1f3a5c7e"
#define SHA "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define CLOCK "\"clock\":{\"offset_ns\":\"-5\",\"error_ns\":\"7\"}"
#define MANIFEST_HEAD "{\"id\":\"" ID "\",\"machine\":\"a\",\"labels\":{},"
#define MANIFEST                                                                                             \
	MANIFEST_HEAD CLOCK ",\"from_ns\":\"1\",\"to_ns\":\"2\",\"at_ns\":\"2\",\"bytes\":3,"                \
			    "\"file\":\"perf.data.sample.1\"}"

#define COPY(to, ...) snprintf(to, sizeof(to), __VA_ARGS__)

static int read_command(const char *text, struct fr_fleet_command *ret)
{
	struct fr_diag d = {0};
	const int r = fr_fleet_command_read(text, strlen(text), ret, &d);

	assert_int_equal(d.code, r);
	return r;
}

TEST(each_command_comes_back)
{
	for (int i = 0; i < 1000; i++) {
		struct fr_fleet_command c = {.to_ns = random_magnitude(),
			.last_ns = random_up_to(86400ULL * 1000000000),
			.post_ns = random_up_to(3600ULL * 1000000000),
			.limit_ns = random_up_to(3600ULL * 1000000000)};
		struct fr_fleet_command back = {0};
		_cleanup_free_ char *json = NULL;

		if (c.to_ns > 0)
			c.from_ns = 1 + random_up_to(c.to_ns - 1);
		COPY(c.id, ID);
		COPY(c.selector, "role=db,name!=web-*");
		COPY(c.trigger, "slow-io");
		random_text(c.reason, random_up_to(sizeof(c.reason) - 1), "ab \"\\{}<>'");
		random_text(c.by, random_up_to(sizeof(c.by) - 1), "user@host");
		json = fr_fleet_command_json(&c);
		assert_non_null(json);
		assert_int_equal(read_command(json, &back), 0);
		assert_memory_equal(&back, &c, sizeof(c));
	}
}

TEST(each_answer_comes_back)
{
	for (int i = 0; i < 1000; i++) {
		struct fr_fleet_answer a = {.state = (enum fr_fleet_state)random_up_to(FR_FLEET_STATES - 1),
			.bytes = random_magnitude(),
			.uploaded_bytes = random_magnitude()};
		struct fr_fleet_answer back = {0};
		_cleanup_free_ char *json = NULL;

		COPY(a.id, ID);
		random_text(a.machine, 1 + random_up_to(63), "ab.=*>\"\\");
		random_text(a.why, random_up_to(511), "why \"not\"");
		random_text(a.path, random_up_to(511), "/path of a file");
		random_text(a.object, random_up_to(511), "/=._-az");
		json = fr_fleet_answer_json(&a);
		assert_int_equal(fr_fleet_answer_read(json, strlen(json), &back, NULL), 0);
		assert_memory_equal(&back, &a, sizeof(a));
	}
}

static void fill_clock(struct fr_fleet_clock *c)
{
	c->offset_ns = (int64_t)random_u64();
	c->error_ns = random_up_to(3) ? random_magnitude() : UINT64_MAX;
	c->wall_offset_ns = random_up_to(3) ? (int64_t)random_u64() : INT64_MIN;
	c->measured_ns = random_magnitude();
}

TEST(each_presence_comes_back)
{
	for (int i = 0; i < 1000; i++) {
		struct fr_fleet_presence p = {.uploads = random_magnitude(),
			.uploads_bytes = random_magnitude(),
			.leaving = random_up_to(1)};
		struct fr_fleet_presence back = {0};
		_cleanup_free_ char *json = NULL;

		COPY(p.machine, "db-%d.example.com", i);
		assert_int_equal(fr_labels_parse(i % 2 ? "" : "role=db,zone=a", &p.labels, NULL), 0);
		random_text(p.boot_id, 32, "0123456789abcdef");
		random_text(p.version, random_up_to(31), "0.1~");
		random_text(p.recorder, random_up_to(255), "no connection");
		random_text(p.store, random_up_to(255), "refused ");
		fill_clock(&p.clock);
		json = fr_fleet_presence_json(&p);
		assert_int_equal(fr_fleet_presence_read(json, strlen(json), &back, NULL), 0);
		assert_memory_equal(&back, &p, sizeof(p));
	}
}

/* The fast look sees the same. */
static void check_scan(const char *json, const struct fr_fleet_manifest *m)
{
	char text[FR_FLEET_TEXT_SIZE];
	struct fr_manifest_scan scan = {0};

	assert_int_equal(fr_manifest_scan(json, strlen(json), &scan), 0);
	assert_int_equal(scan.bytes, m->bytes);
	fr_json_slice_text(scan.trigger, text, sizeof(text));
	assert_string_equal(text, m->trigger);
	fr_json_slice_text(scan.cause, text, sizeof(text));
	assert_string_equal(text, m->cause);
	fr_json_slice_text(scan.by, text, sizeof(text));
	assert_string_equal(text, m->by);
}

TEST(a_fast_look_at_what_is_no_manifest)
{
	static const char *const bad[] = {"", "{", "{}", "[]", "{\"bytes\":1", "{\"bytes\":1,}",
		"{\"bytes\":-1}", "{\"bytes\":1}x", "{\"bytes\":1,\"cause\":2}",
		"{\"bytes\":99999999999999999999}", "{\"cause\":\"x\"}", "{\"bytes\":1,\"x\":[}",
		"{\"bytes\":1,\"x\":\"\\\"}", "{\"x\":{\"bytes\":1}}"};
	static const char good[] = "{\"x\":[{\"a\":\"}\\\"\"}], \"bytes\":\"7\"}";
	struct fr_manifest_scan scan;

	for (size_t i = 0; i < FR_ARRAY_SIZE(bad); i++)
		if (fr_manifest_scan(bad[i], strlen(bad[i]), &scan) != -EBADMSG)
			fail_msg("%s", bad[i]);
	assert_int_equal(fr_manifest_scan(good, strlen(good), &scan), 0);
	assert_int_equal(scan.bytes, 7);
}

TEST(each_manifest_comes_back)
{
	for (int i = 0; i < 1000; i++) {
		struct fr_fleet_manifest m = {.to_ns = random_magnitude(),
			.at_ns = random_magnitude(),
			.bytes = random_magnitude(),
			.samples = random_magnitude(),
			.lost = random_magnitude()};
		struct fr_fleet_manifest back = {0};
		_cleanup_free_ char *json = NULL;

		m.from_ns = random_up_to(m.to_ns);
		COPY(m.id, ID);
		COPY(m.machine, "db-%d", i);
		COPY(m.file, "perf.data.sample.20261128T205726.000001Z");
		if (i % 2)
			COPY(m.object, "p/" ID "/db-%d/%s", i, m.file);
		random_text(m.sha256, 64, "0123456789abcdef");
		COPY(m.trigger, "fleet");
		random_text(m.cause, random_up_to(255), "a \"cause\"\\ \xc3\xa4");
		random_text(m.by, random_up_to(255), "ann@desk\\\"");
		fr_labels_parse("role=db", &m.labels, NULL);
		fill_clock(&m.clock);
		json = fr_fleet_manifest_json(&m);
		assert_int_equal(fr_fleet_manifest_read(json, strlen(json), &back, NULL), 0);
		check_scan(json, &back);
		/* Some bytes of the cause can be no UTF-8. */
		memcpy(m.cause, back.cause, sizeof(m.cause));
		assert_memory_equal(&back, &m, sizeof(m));
	}
}

TEST(large_times_are_strings)
{
	struct fr_fleet_command c = {.id = ID, .from_ns = 1795899446123456789, .to_ns = UINT64_MAX};
	_cleanup_free_ char *json = fr_fleet_command_json(&c);

	assert_non_null(strstr(json, "\"from_ns\":\"1795899446123456789\""));
	assert_non_null(strstr(json, "\"to_ns\":\"18446744073709551615\""));
}

TEST(long_texts_are_cut_at_a_character)
{
	struct fr_fleet_command c = {0};
	char text[2048] = "{\"id\":\"" ID "\",\"selector\":\"*\",\"reason\":\"a";

	for (int i = 0; i < 200; i++)
		strcat(text, "\xc3\xa4");
	strcat(text, "\"}");
	assert_int_equal(read_command(text, &c), 0);
	assert_int_equal(strlen(c.reason), FR_FLEET_TEXT_SIZE - 1);
	assert_int_equal(memcmp(c.reason, "a\xc3\xa4", 3), 0);
	assert_int_equal(memcmp(c.reason + FR_FLEET_TEXT_SIZE - 3, "\xc3\xa4", 3), 0);
	strcpy(text, "{\"id\":\"" ID "\",\"selector\":\"*\",\"reason\":\"");
	for (int i = 0; i < 200; i++)
		strcat(text, "\xc3\xa4");
	strcat(text, "\"}");
	assert_int_equal(read_command(text, &c), 0);
	assert_int_equal(strlen(c.reason), FR_FLEET_TEXT_SIZE - 2);
}

TEST(control_characters_do_not_get_through)
{
	struct fr_fleet_command c = {0};
	struct fr_fleet_answer a = {0};
	static const char answer[] =
		"{\"id\":\"" ID "\",\"machine\":\"a\",\"state\":\"done\",\"path\":\"/a\\u001bb\"}";

	assert_int_equal(
		read_command("{\"id\":\"" ID "\",\"selector\":\"*\",\"reason\":\"a\\u001b[31mb\\nc\","
			     "\"by\":\"\xff\"}",
			&c),
		0);
	assert_string_equal(c.reason, "a?[31mb c");
	assert_string_equal(c.by, "?");
	assert_int_equal(fr_fleet_answer_read(answer, strlen(answer), &a, NULL), -EBADMSG);
}

TEST(commands_that_are_not_valid)
{
	static const char *const bad[] = {"", "x", "[]", "{}", "null", "{\"id\":\"" ID "\"}",
		"{\"id\":1,\"selector\":\"*\"}", "{\"id\":\"x\",\"selector\":\"*\"}",
		"{\"id\":\"" ID "\",\"selector\":\"role\"}", "{\"id\":\"" ID "\",\"selector\":[]}",
		"{\"id\":\"" ID "\",\"selector\":\"*\"", "{\"id\":\"" ID "\",\"selector\":\"*\"}x",
		"{\"id\":\"" ID "\",\"selector\":\"*\",\"from_ns\":\"2\",\"to_ns\":\"1\"}",
		"{\"id\":\"" ID "\",\"selector\":\"*\",\"to_ns\":\"1\"}",
		"{\"id\":\"" ID "\",\"selector\":\"*\",\"from_ns\":\"1\"}",
		"{\"id\":\"" ID "\",\"selector\":\"*\",\"last_ns\":-1}",
		"{\"id\":\"" ID "\",\"selector\":\"*\",\"last_ns\":1.5}",
		"{\"id\":\"" ID "\",\"selector\":\"*\",\"last_ns\":1e300}",
		"{\"id\":\"" ID "\",\"selector\":\"*\",\"last_ns\":\"-1\"}",
		"{\"id\":\"" ID "\",\"selector\":\"*\",\"last_ns\":\"1 \"}",
		"{\"id\":\"" ID "\",\"selector\":\"*\",\"last_ns\":\"99999999999999999999\"}",
		"{\"id\":\"" ID "\",\"selector\":\"*\",\"last_ns\":true}",
		"{\"id\":\"" ID "\",\"selector\":\"*\",\"post_ns\":3600000000001}",
		"{\"id\":\"" ID "\",\"selector\":\"*\",\"limit_ns\":3600000000001}",
		"{\"id\":\"" ID "\",\"selector\":\"*\",\"trigger\":\"a b\"}"};

	for (size_t i = 0; i < FR_ARRAY_SIZE(bad); i++) {
		struct fr_fleet_command c = {0};
		static const struct fr_fleet_command none;

		if (read_command(bad[i], &c) != -EBADMSG)
			fail_msg("%s", bad[i]);
		assert_memory_equal(&c, &none, sizeof(c));
	}
}

TEST(manifests_that_are_not_valid)
{
	static const char *const bad[] = {
		MANIFEST_HEAD "\"clock\":{}}",
		MANIFEST_HEAD CLOCK ",\"from_ns\":\"3\",\"to_ns\":\"2\",\"at_ns\":\"2\",\"bytes\":3,"
				    "\"file\":\"perf.data.sample.1\"}",
		MANIFEST_HEAD CLOCK ",\"from_ns\":\"1\",\"to_ns\":\"2\",\"at_ns\":\"2\",\"bytes\":3,"
				    "\"file\":\"../perf.data.sample.1\"}",
		MANIFEST_HEAD CLOCK ",\"from_ns\":\"1\",\"to_ns\":\"2\",\"at_ns\":\"2\",\"bytes\":3,"
				    "\"file\":\"perf.data.sample./x\"}",
		MANIFEST_HEAD CLOCK ",\"from_ns\":\"1\",\"to_ns\":\"2\",\"at_ns\":\"2\",\"bytes\":3,"
				    "\"file\":\"perf.data.sample.1\",\"object\":\"a/perf.data.sample.1\"}",
		MANIFEST_HEAD CLOCK
		",\"from_ns\":\"1\",\"to_ns\":\"2\",\"at_ns\":\"2\",\"bytes\":3,\"sha256\":\"" SHA
		"\",\"file\":\"perf.data.sample.1\",\"object\":\"a/perf.data.sample.2\"}",
		MANIFEST_HEAD CLOCK ",\"from_ns\":\"1\",\"to_ns\":\"2\",\"at_ns\":\"2\",\"bytes\":3,"
				    "\"sha256\":\"0\",\"file\":\"perf.data.sample.1\"}",
	};
	struct fr_fleet_manifest m = {0};

	assert_int_equal(fr_fleet_manifest_read(MANIFEST, strlen(MANIFEST), &m, NULL), 0);
	assert_int_equal(m.clock.offset_ns, -5);
	for (size_t i = 0; i < FR_ARRAY_SIZE(bad); i++)
		if (fr_fleet_manifest_read(bad[i], strlen(bad[i]), &m, NULL) != -EBADMSG)
			fail_msg("%s", bad[i]);
}

TEST(unknown_members_are_ignored)
{
	struct fr_fleet_command c = {0};

	assert_int_equal(
		read_command("{\"later\":[{}],\"id\":\"" ID "\",\"selector\":\"\",\"x\":null}", &c), 0);
}

TEST(a_message_has_a_limit)
{
	const size_t n = FR_FLEET_MESSAGE_MAX + 1;
	_cleanup_free_ char *text = malloc(n);
	struct fr_fleet_command c = {0};
	static const char command[] = "{\"id\":\"" ID "\",\"selector\":\"*\"}";

	assert_non_null(text);
	memset(text, ' ', n);
	memcpy(text, command, sizeof(command) - 1);
	assert_int_equal(fr_fleet_command_read(text, n - 1, &c, NULL), 0);
	assert_int_equal(fr_fleet_command_read(text, n, &c, NULL), -EBADMSG);
	memset(text, '[', n);
	assert_int_equal(fr_fleet_command_read(text, n - 1, &c, NULL), -EBADMSG);
}

/* The data has no NUL behind it: the sanitizers see a read of one byte too many. */
TEST(each_part_of_a_message_is_refused)
{
	for (size_t n = 0; n < strlen(MANIFEST); n++) {
		char *part = malloc(n ? n : 1);
		struct fr_fleet_manifest m = {0};

		assert_non_null(part);
		memcpy(part, MANIFEST, n);
		assert_int_equal(fr_fleet_manifest_read(part, n, &m, NULL), -EBADMSG);
		free(part);
	}
}

TEST(names_of_states)
{
	assert_string_equal(fr_fleet_state_name(FR_FLEET_RECORDING), "recording");
	assert_string_equal(fr_fleet_state_name(FR_FLEET_FAILED), "failed");
	assert_string_equal(fr_fleet_state_name(FR_FLEET_STATES), "unknown");
}
