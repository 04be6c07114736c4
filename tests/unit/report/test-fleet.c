// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of the report of many machines: the folder, the joined explanation, and the page. The recordings are
   made, and are read by the real reader. */
#include "../files.h"
#include "report/fleet_page.h"
#include "scene.h"

#include <stdio.h>
#include <stdlib.h>

#define ID "20261128T205726Z-1f3a5c7e"
#define ID_NS (1795899446ULL * FR_NSEC_PER_SEC)
#define DUMP "perf.data.sample.20261128T205726.000000Z"
#define LINES_MAX 30

/* Machines by name, all of them with one window. */
struct machines {
	struct fr_fleet_folder folder;
	struct fr_fleet_explanation x;
	struct fr_fleet_page page;
};

static void begin(struct machines *m, const char *const *names, size_t n)
{
	memset(m, 0, sizeof(*m));
	m->folder.v = calloc(n, sizeof(*m->folder.v));
	assert_non_null(m->folder.v);
	m->folder.n = m->folder.n_dumps = n;
	m->folder.from_ns = ID_NS;
	m->folder.to_ns = ID_NS + TO_NS - FROM_NS;
	strcpy(m->folder.id, ID);
	for (size_t i = 0; i < n; i++) {
		struct fr_fleet_machine *v = &m->folder.v[i];

		strcpy(v->name, names[i]);
		v->path = strdup("x");
		v->clock.offset_ns = (int64_t)(ID_NS - FROM_NS);
		v->from_ns = m->folder.from_ns;
		v->to_ns = m->folder.to_ns;
	}
	assert_int_equal(fr_fleet_explanation_init(&m->x, &m->folder, "ID", true), 0);
	assert_int_equal(fr_fleet_page_init(&m->page, &m->folder), 0);
}

/* Adds a machine on which HOG has N samples more than before. */
static void add(struct machines *m, size_t machine, unsigned n)
{
	struct scene s;

	scene_begin(&s, root);
	scene_run(&s, HOG, FROM_NS + SAMPLE_NS, 5);
	scene_run(&s, HOG, INCIDENT_NS, n);
	scene_explain(&s, root);
	assert_int_equal(fr_fleet_explanation_add(&m->x, machine, &s.e), 0);
	assert_int_equal(fr_fleet_page_add(&m->page, machine, &s.e), 0);
	scene_finish(&s);
}

static char *print(struct machines *m)
{
	char *text = NULL;
	size_t size, lines = 0;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(fr_fleet_explanation_print(&m->x, out), 0);
	fclose(out);
	for (const char *p = text; *p; p++)
		lines += *p == '\n';
	assert_true(lines <= LINES_MAX);
	return text;
}

static void end(struct machines *m)
{
	fr_fleet_page_deinit(&m->page);
	fr_fleet_explanation_deinit(&m->x);
	fr_fleet_folder_deinit(&m->folder);
}

TEST(the_machine_with_the_cause_is_first)
{
	static const char *const names[] = {"a", "b", "c"};
	struct machines m;
	struct fr_fleet_difference d;
	char *text;

	begin(&m, names, 3);
	add(&m, 0, 5);
	add(&m, 1, 900);
	add(&m, 2, 5);
	text = print(&m);
	assert_non_null(strstr(text, "\n1. cpu-hog on b: hog (pid 77)"));
	assert_non_null(strstr(text, "Nothing unusual on a, c\n"));
	assert_non_null(strstr(text, "--machine=b ID\n"));
	assert_true(fr_fleet_difference(&m.x, &d));
	assert_int_equal(d.machine, 1);
	assert_true(d.cpus > 0.85 && d.cpus < 0.95 && d.others_cpus < 0.01);
	free(text);
	end(&m);
}

TEST(one_cause_on_many_machines_is_one_finding)
{
	static const char *const names[] = {"a", "b", "c"};
	struct machines m;
	struct fr_fleet_difference d;
	struct fr_fleet_group *v;
	size_t n;
	char *text;

	begin(&m, names, 3);
	add(&m, 0, 800);
	add(&m, 1, 900);
	add(&m, 2, 850);
	assert_int_equal(fr_fleet_groups(&m.x, &v, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(v[0].n, 3);
	assert_int_equal(v[0].machines[0], 1);
	fr_fleet_groups_free(v, n);
	text = print(&m);
	assert_non_null(strstr(text, "1. cpu-hog on b: "));
	assert_non_null(strstr(text, "; also on c, a\n"));
	assert_null(strstr(text, "2. "));
	assert_false(fr_fleet_difference(&m.x, &d));
	free(text);
	end(&m);
}

TEST(the_text_is_short_with_many_machines)
{
	static char buffer[200][16];
	const char *names[200];
	struct machines m;
	char *text;

	for (int i = 0; i < 200; i++) {
		snprintf(buffer[i], sizeof(buffer[i]), "m-%03d", i);
		names[i] = buffer[i];
	}
	begin(&m, names, 200);
	for (size_t i = 0; i < 200; i++) {
		struct fr_diag why = {.code = -ENODATA};

		snprintf(why.what, sizeof(why.what), "no dump\x1b[31m of %zu", i);
		m.folder.v[i].clock.error_ns = i % 3 ? UINT64_MAX : FR_NSEC_PER_SEC;
		if (i % 4 == 0)
			fr_fleet_folder_drop(&m.folder, &m.folder.v[i], &why);
		else if (i < 20)
			add(&m, i, 900);
	}
	assert_int_equal(m.folder.n_dumps, 150);
	text = print(&m);
	assert_non_null(strstr(text, "Machines: 150 with a dump (m-001, "));
	assert_non_null(strstr(text, " and 142 more), 50 without\n"));
	assert_non_null(strstr(text, "missing: m-000, no dump?[31m of 0\n"));
	assert_non_null(strstr(text, "missing: 46 more, see --json\n"));
	assert_null(strchr(text, '\x1b'));
	free(text);
	end(&m);
}

TEST(json_has_all_machines)
{
	static const char *const names[] = {"a", "b"};
	const struct fr_diag why = {.code = -ENODATA, .what = "lost"};
	struct machines m;
	const cJSON *machines, *b;
	cJSON *j;

	begin(&m, names, 2);
	add(&m, 0, 900);
	fr_fleet_folder_drop(&m.folder, &m.folder.v[1], &why);
	j = fr_fleet_explanation_json(&m.x);
	assert_non_null(j);
	machines = cJSON_GetObjectItem(j, "machines");
	assert_int_equal(cJSON_GetArraySize(machines), 2);
	assert_non_null(cJSON_GetObjectItem(cJSON_GetArrayItem(machines, 0), "explanation"));
	b = cJSON_GetArrayItem(machines, 1);
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(b, "why")), "lost");
	assert_null(cJSON_GetObjectItem(b, "explanation"));
	cJSON_Delete(j);
	end(&m);
}

/* The clock of "b" is 7 s behind that of "a", so the same event has other times there. */
TEST(waits_of_all_machines_are_on_one_clock)
{
	static const char *const names[] = {"a", "b"};
	const uint64_t event_ns = 15 * FR_NSEC_PER_SEC, behind_ns = 7 * FR_NSEC_PER_SEC;
	struct machines m;

	begin(&m, names, 2);
	m.folder.v[1].clock.offset_ns += (int64_t)behind_ns;
	for (size_t i = 0; i < 2; i++) {
		struct scene s;

		scene_begin(&s, root);
		scene_wait_in(&s,
			&(struct wait){HOG, 0, FROM_NS + event_ns - i * behind_ns, FR_NSEC_PER_SEC, 0, 'D'},
			SCENE_DISK, false);
		scene_explain(&s, root);
		assert_int_equal(fr_fleet_page_add(&m.page, i, &s.e), 0);
		scene_finish(&s);
	}
	for (uint32_t i = 0; i < m.page.n_buckets; i++) {
		const uint64_t at = i * m.page.bucket_ns;

		assert_int_equal(m.page.lanes[0].waiting_ns[i], m.page.lanes[1].waiting_ns[i]);
		if (at > event_ns - FR_NSEC_PER_SEC && at + m.page.bucket_ns < event_ns)
			assert_int_equal(m.page.lanes[0].waiting_ns[i], m.page.bucket_ns);
		if (at > event_ns || at + m.page.bucket_ns < event_ns - FR_NSEC_PER_SEC)
			assert_int_equal(m.page.lanes[0].waiting_ns[i], 0);
	}
	end(&m);
}

/* Puts a recording of the machine NAME into the folder, with a manifest. */
static void put_dump(const char *name, const char *manifest_name, int64_t offset)
{
	char path[160], text[1024];
	struct scene s;

	scene_begin(&s, root);
	scene_run(&s, HOG, FROM_NS, 5);
	scene_explain(&s, root);
	snprintf(path, sizeof(path), ID "/%s/" DUMP, name);
	assert_int_equal(rename(s.path, write_file(path, "")), 0);
	snprintf(path, sizeof(path), ID "/%s/" DUMP ".manifest.json", name);
	snprintf(text, sizeof(text),
		"{\"id\":\"" ID
		"\",\"machine\":\"%s\",\"labels\":{},\"clock\":{\"offset_ns\":\"%lld\",\"error_ns\":\"5\"},"
		"\"from_ns\":\"1\",\"to_ns\":\"2\",\"at_ns\":\"2\",\"file\":\"" DUMP "\",\"bytes\":1}",
		manifest_name, (long long)offset);
	write_file(path, text);
	scene_finish(&s);
}

static int read_folder(struct fr_fleet_folder *ret, struct fr_diag *d)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/" ID, root);
	*d = (struct fr_diag){0};
	return fr_fleet_folder_read(path, ret, d);
}

TEST(a_folder_and_its_clock)
{
	const int64_t offset = (int64_t)(ID_NS - FROM_NS);
	struct fr_fleet_folder f;
	struct fr_diag d;

	put_dump("b", "b", offset + 5);
	put_dump("a", "a", offset);
	assert_int_equal(read_folder(&f, &d), 0);
	assert_string_equal(f.id, ID);
	assert_int_equal(f.n, 2);
	assert_int_equal(f.n_dumps, 2);
	assert_string_equal(f.v[0].name, "a");
	assert_int_equal(f.v[0].from_ns, ID_NS);
	assert_int_equal(f.v[1].from_ns, ID_NS + 5);
	assert_int_equal(f.from_ns, ID_NS);
	assert_int_equal(f.to_ns, ID_NS + TO_NS - FROM_NS + 5);
	assert_ptr_equal(fr_fleet_folder_find(&f, "b"), &f.v[1]);
	assert_null(fr_fleet_folder_find(&f, "c"));
	assert_null(fr_fleet_folder_find(&f, "../a"));
	fr_fleet_folder_deinit(&f);
}

TEST(machines_that_contradict_themselves_are_missing)
{
	static const struct {
		const char *manifest_name;
		int64_t offset;
		const char *why;
	} cases[] = {{"c", 0, "another machine"}, {"b", 0, "cannot be right"},
		{"b", INT64_MAX, "cannot be right"}, {"b", INT64_MIN, "cannot be right"}};

	put_dump("a", "a", (int64_t)(ID_NS - FROM_NS));
	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		struct fr_fleet_folder f;
		struct fr_diag d;

		put_dump("b", cases[i].manifest_name, cases[i].offset);
		assert_int_equal(read_folder(&f, &d), 0);
		assert_int_equal(f.n_dumps, 1);
		assert_null(f.v[1].path);
		assert_non_null(strstr(f.v[1].why, cases[i].why));
		fr_fleet_folder_deinit(&f);
	}
}

TEST(a_list_names_the_missing)
{
	struct fr_fleet_folder f;
	struct fr_diag d;

	put_dump("a", "a", (int64_t)(ID_NS - FROM_NS));
	write_file(ID "/fleet.json",
		"{\"id\":\"" ID "\",\"machines\":[{\"machine\":\"z\",\"why\":\"not reachable\"},"
		"{\"machine\":\"a\",\"state\":\"stored\"},{\"machine\":\"y\"}]}");
	assert_int_equal(read_folder(&f, &d), 0);
	assert_int_equal(f.n, 3);
	assert_int_equal(f.n_dumps, 1);
	assert_string_equal(f.v[1].why, "it has no dump");
	assert_string_equal(f.v[2].why, "not reachable");
	fr_fleet_folder_deinit(&f);
	write_file(ID "/fleet.json",
		"{\"id\":\"" ID "\",\"machines\":[{\"machine\":\"a\"},{\"machine\":\"a\"}]}");
	assert_int_equal(read_folder(&f, &d), -EBADMSG);
	assert_non_null(strstr(d.what, "a is there twice"));
	fr_fleet_folder_deinit(&f);
	write_file(ID "/fleet.json", "{\"id\":\"" ID "\",\"machines\":[{\"machine\":\"../a\"}]}");
	assert_int_equal(read_folder(&f, &d), -EBADMSG);
	fr_fleet_folder_deinit(&f);
}

FIXTURE(make_root, remove_root)
