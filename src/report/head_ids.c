// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/head_ids.h"
#include "perfdata/record.h"
#include "sideband/hash.h"

#include <errno.h>
#include <string.h>

struct by_path {
	UT_hash_handle hh;
	const struct fr_record_build_id *record;
};

struct fr_head_ids {
	struct by_path *by_path;
};

/* If a path is there several times, the last record counts, as for perf. */
static int add(struct fr_head_ids *ids, const struct fr_record_build_id *record)
{
	const size_t len = strlen(record->filename);
	struct by_path *p;

	HASH_FIND(hh, ids->by_path, record->filename, len, p);
	if (p) {
		p->record = record; /* the key stays in the section, with the same text */
		return 0;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->record = record;
	HASH_ADD_KEYPTR(hh, ids->by_path, record->filename, len, p);
	if (!p->hh.tbl) {
		free(p);
		return -ENOMEM;
	}
	return 0;
}

int fr_head_ids_new(const struct fr_session *session, struct fr_head_ids **ret)
{
	const struct fr_buf *section = &session->features[FR_FEATURE_BUILD_ID];
	struct fr_record_iter it = fr_record_iter(section->data, section->len);
	const struct fr_record_build_id *record;
	struct fr_head_ids *ids = calloc(1, sizeof(*ids));
	int r = ids ? 0 : -ENOMEM;

	while (r == 0 && (record = fr_record_next_build_id(&it)))
		r = add(ids, record);
	if (r < 0)
		ids = fr_head_ids_free(ids);
	*ret = ids;
	return r;
}

struct fr_head_ids *fr_head_ids_free(struct fr_head_ids *ids)
{
	if (ids)
		FR_HASH_CLEAR(ids->by_path, free);
	free(ids);
	return NULL;
}

size_t fr_head_ids_find(const struct fr_head_ids *ids, const char *path, size_t len, uint8_t ret[static 20])
{
	const struct by_path *p;

	HASH_FIND(hh, ids->by_path, path, len, p);
	if (!p)
		return 0;
	memcpy(ret, p->record->id, p->record->size);
	return p->record->size;
}
