// SPDX-License-Identifier: GPL-2.0-or-later
#include "scene.h"
#include "base/cleanup.h"
#include "perfdata/reader.h"

#include <string.h>

unsigned long long scene_seed;

unsigned scene_random(size_t below)
{
	scene_seed = scene_seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned)((scene_seed >> 33) % below);
}

static void note_warning(void *ctx, const char *text)
{
	struct scene *s = ctx;
	size_t n = strlen(s->warned);

	snprintf(s->warned + n, sizeof(s->warned) - n, "%s\n", text);
}

int scene_setup(void **state)
{
	static struct scene s;

	s = (struct scene){.dir = "/tmp/fr-merge-XXXXXX"};
	assert_non_null(mkdtemp(s.dir));
	scene_use_session(&s, SCENE_ID, 1700000000);
	s.options = (struct fr_merge_options){.directory = s.dir, .warn = note_warning, .ctx = &s};
	*state = &s;
	return 0;
}

void scene_use_session(struct scene *s, uint64_t first_id, uint64_t wall_s)
{
	fr_session_deinit(&s->session);
	synth_session(&s->session, first_id, "host", wall_s * 1000000000);
}

/* Counts the files of the directory, and removes them if REMOVE is true. Returns the number of files. */
static unsigned walk_directory(const struct scene *s, bool remove)
{
	_cleanup_closedir_ DIR *dir = opendir(s->dir);
	const struct dirent *e;
	unsigned n = 0;

	assert_non_null(dir);
	while ((e = readdir(dir))) {
		n += e->d_name[0] != '.' || strlen(e->d_name) > 2;
		if (remove)
			(void)unlinkat(dirfd(dir), e->d_name, 0);
	}
	return n;
}

void scene_clear(struct scene *s)
{
	(void)walk_directory(s, true);
}

int scene_teardown(void **state)
{
	struct scene *s = *state;

	scene_clear(s);
	fr_session_deinit(&s->session);
	return rmdir(s->dir);
}

unsigned scene_entries(const struct scene *s)
{
	return walk_directory(s, false);
}

const char *scene_path(const struct scene *s, const char *name)
{
	static char paths[4][256];
	static unsigned next;
	char *p = paths[next++ % 4];

	snprintf(p, sizeof(paths[0]), "%s/%s", s->dir, name);
	return p;
}

bool scene_has(const struct scene *s, const char *name)
{
	return access(scene_path(s, name), F_OK) == 0;
}

void scene_write(const struct scene *s, const char *name, const char *text)
{
	synth_write(scene_path(s, name), text, strlen(text));
}

int scene_merge(struct scene *s)
{
	s->report = (struct fr_merge_report){0};
	s->diag = (struct fr_diag){0};
	s->warned[0] = '\0';
	return fr_merge(&s->options, &s->report, &s->diag);
}

void scene_read(const struct scene *s, const char *name, struct fr_buf *ret, uint64_t *ret_rounds)
{
	const struct perf_event_header *h;
	struct fr_reader *r = NULL;
	struct fr_diag d = {0};
	int x;

	if (fr_reader_open(scene_path(s, name), &r, &d) < 0)
		fail_msg("%s", d.what);
	while ((x = fr_reader_next(r, &h, NULL)) == 1) {
		if (h->type != FR_RECORD_FINISHED_ROUND)
			assert_int_equal(fr_buf_append(ret, h, h->size), 0);
		else if (ret_rounds)
			(*ret_rounds)++;
	}
	assert_int_equal(x, 0);
	if (fr_reader_damage(r)->damaged)
		fail_msg("%s: %s", name, fr_reader_damage(r)->text);
	fr_reader_free(r);
}
