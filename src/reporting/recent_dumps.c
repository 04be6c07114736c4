// SPDX-License-Identifier: GPL-2.0-or-later
#include "reporting/recent_dumps.h"
#include "base/cleanup.h"
#include "base/json.h"

#include <stdio.h>
#include <string.h>

/* How many dumps are remembered. Older dumps stay in the directory, but are not in the list. */
#define DUMPS_REMEMBERED 256
/* The limit of the list in bytes. A list of this size, with the commas between the dumps, fits into a reply.
   Without a limit, a list would not always fit, because each dump of a large machine can have thousands of
   losses. */
#define LIST_BYTES (3u << 20)

void fr_recent_dumps_add(struct fr_recent_dumps *r, const struct fr_dump_job *job)
{
	cJSON *o = job->meta ? cJSON_Duplicate(job->meta, true) : cJSON_CreateObject();

	cJSON_AddNumberToObject(o, "id", (double)job->id);
	if (job->code < 0)
		cJSON_AddStringToObject(o, "error", job->diag.code ? job->diag.what : strerror(-job->code));
	cJSON_Delete(r->last);
	r->last = o;
	if (job->code < 0)
		return;
	snprintf(r->writer, sizeof(r->writer), "%s", job->result.how);
	if (!r->files)
		r->files = cJSON_CreateArray();
	cJSON_AddItemToArray(r->files, cJSON_Duplicate(o, true));
	if (cJSON_GetArraySize(r->files) > DUMPS_REMEMBERED)
		cJSON_DeleteItemFromArray(r->files, 0);
}

void fr_recent_dumps_forget(struct fr_recent_dumps *r, const char *name)
{
	int n = cJSON_GetArraySize(r->files);

	for (int i = 0; i < n; i++)
		if (!strcmp(fr_json_text(cJSON_GetArrayItem(r->files, i), "file"), name)) {
			cJSON_DeleteItemFromArray(r->files, i);
			return;
		}
}

cJSON *fr_recent_dumps_list(const struct fr_recent_dumps *r)
{
	cJSON *ret = cJSON_CreateArray();
	size_t room = LIST_BYTES;

	for (int i = cJSON_GetArraySize(r->files); i-- > 0;) {
		char *text = cJSON_PrintUnformatted(cJSON_GetArrayItem(r->files, i));
		size_t len = text ? strlen(text) : SIZE_MAX;

		if (len > room) {
			cJSON_free(text);
			break;
		}
		room -= len;
		cJSON_InsertItemInArray(ret, 0, cJSON_CreateRaw(text));
		cJSON_free(text);
	}
	return ret;
}

void fr_recent_dumps_deinit(struct fr_recent_dumps *r)
{
	cJSON_Delete(r->files);
	cJSON_Delete(r->last);
	*r = (struct fr_recent_dumps){0};
}
