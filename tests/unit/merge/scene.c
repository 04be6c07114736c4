// SPDX-License-Identifier: GPL-2.0-or-later
#include "scene.h"
#include "base/cleanup.h"
#include "perfdata/reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static void remember(void *ctx, const char *text)
{
	struct scene *s = ctx;
	size_t n = strlen(s->warned);

	snprintf(s->warned + n, sizeof(s->warned) - n, "%s\n", text);
}

void scene_init(struct scene *s)
{
	*s = (struct scene){.dir = "/tmp/fr-merge-XXXXXX", .id = SCENE_ID};
	assert_non_null(mkdtemp(s->dir));
	synth_session(&s->session, SCENE_ID, "host", 1700000000ULL * 1000000000);
	s->options = (struct fr_merge_options){.directory = s->dir, .warn = remember, .ctx = s};
}

void scene_deinit(struct scene *s)
{
	DIR *dir = opendir(s->dir);
	const struct dirent *e;

	assert_non_null(dir);
	while ((e = readdir(dir)))
		(void)unlinkat(dirfd(dir), e->d_name, 0);
	closedir(dir);
	assert_int_equal(rmdir(s->dir), 0);
	fr_session_deinit(&s->session);
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

unsigned scene_entries(const struct scene *s)
{
	DIR *dir = opendir(s->dir);
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
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
