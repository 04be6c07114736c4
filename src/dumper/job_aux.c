// SPDX-License-Identifier: GPL-2.0-or-later
#include "dumper/job_aux.h"
#include "base/cleanup.h"
#include "base/json.h"

#include <errno.h>
#include <stdlib.h>

int fr_job_aux_take(struct fr_aux_areas *areas, uint64_t since_ns, uint64_t until_ns, struct fr_job_aux **ret)
{
	struct fr_job_aux *a = NULL;
	int r = 0;

	if (areas->n > 0) {
		a = calloc(1, sizeof(*a));
		r = a ? fr_aux_snapshot_take(areas, since_ns, until_ns, &a->snapshot) : -ENOMEM;
	}
	fr_aux_areas_deinit(areas);
	if (r < 0)
		a = fr_job_aux_free(a);
	*ret = a;
	return r;
}

static void add_copy(cJSON *array, const struct fr_aux_copy *c)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddStringToObject(o, "event", c->event);
	cJSON_AddNumberToObject(o, "cpu", c->t.cpu);
	FR_JSON_ADD_NUMBERS(o, {"queue", c->t.idx}, {"offset", c->t.offset}, {"bytes", c->t.len},
		{"gap_ns", c->gap_ns}, {"time_ns", c->t.reference});
	cJSON_AddItemToArray(array, o);
}

int fr_job_aux_finish(struct fr_job_aux *a, cJSON *meta)
{
	cJSON *array;
	int r;

	if (!a)
		return 0;
	r = fr_aux_snapshot_describe(&a->snapshot, &a->data);
	if (r < 0)
		return r;
	array = cJSON_AddArrayToObject(meta, "aux");
	for (size_t i = 0; array && i < a->snapshot.n; i++)
		add_copy(array, &a->snapshot.copies[i]);
	/* A kept dump can wait for hours, and a reload can remove the events meanwhile. */
	fr_aux_areas_deinit(&a->snapshot.areas);
	if (a->snapshot.n_failed)
		cJSON_AddNumberToObject(meta, "aux_left_out", (double)a->snapshot.n_failed);
	return 0;
}

struct fr_job_aux *fr_job_aux_free(struct fr_job_aux *a)
{
	if (!a)
		return NULL;
	fr_aux_data_deinit(&a->data);
	fr_aux_snapshot_deinit(&a->snapshot);
	free(a);
	return NULL;
}
