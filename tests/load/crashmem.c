/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Not a load: it changes a crash memory, and prints as JSON what is in it. Usage: frtest-crashmem COMMAND
 * PATH. `format` also fills the ring with numbers. `clear` makes the header invalid, `close` ends the use of
 * the memory, and `show` changes nothing. The JSON says how many of the numbers are right.
 */

#include "crashmem/crashmem.h"
#include "crashmem/record.h"
#include "base/clock.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fill(struct fr_crashmem *m)
{
	uint64_t bytes, *at = (uint64_t *)fr_crashmem_area(m, FLIGHTREC_CRASHMEM_AREA_RING, &bytes);

	for (uint64_t i = 0; i < bytes / 8; i++)
		at[i] = i * 0x9e3779b97f4a7c15;
}

/* Makes the header invalid. */
static void clear(struct fr_crashmem *m)
{
	uint64_t bytes;

	(void)fr_crashmem_look(m, "");
	memset(fr_crashmem_area(m, FLIGHTREC_CRASHMEM_AREA_RECORD, &bytes) - FLIGHTREC_CRASHMEM_RECORD, 0,
		FLIGHTREC_CRASHMEM_RECORD);
}

static double count(struct fr_crashmem *m)
{
	uint64_t bytes, right = 0,
			*at = (uint64_t *)fr_crashmem_area(m, FLIGHTREC_CRASHMEM_AREA_RING, &bytes);

	for (uint64_t i = 0; i < bytes / 8; i++)
		right += at[i] == i * 0x9e3779b97f4a7c15;
	return bytes ? (double)right / (double)(bytes / 8) : 0;
}

static cJSON *describe(struct fr_crashmem *m, const char *boot_id)
{
	static const char *const contents[] = {"empty", "damaged", "closed", "same-boot", "other-boot"};
	enum fr_crashmem_content content = fr_crashmem_look(m, boot_id);
	cJSON *json = cJSON_CreateObject();
	struct fr_crash_record record;
	uint64_t bytes;
	uint8_t *area;
	int r;

	cJSON_AddStringToObject(json, "content", contents[content]);
	cJSON_AddNumberToObject(json, "right", count(m));
	area = fr_crashmem_area(m, FLIGHTREC_CRASHMEM_AREA_RECORD, &bytes);
	r = fr_crash_record_read(area, bytes, &record);
	cJSON_AddNumberToObject(json, "result", r);
	if (r < 0)
		return json;
	cJSON_AddItemToObject(json, "record", fr_crash_record_to_json(&record));
	fr_crash_record_deinit(&record);
	return json;
}

int main(int argc, char *argv[])
{
	char boot_id[FR_BOOT_ID_SIZE];
	struct fr_crashmem *m;
	struct fr_diag d = {0};
	cJSON *json;
	char *text;

	if (argc != 3)
		errx(2, "usage: frtest-crashmem format|clear|close|show PATH");
	if (fr_boot_id_read(boot_id) < 0)
		errx(1, "no boot id");
	if (fr_crashmem_open(argv[2], 0, &m, &d) < 0)
		errx(1, "%s", d.what);
	if (!strcmp(argv[1], "format")) {
		fr_crashmem_format(m, boot_id);
		fr_crashmem_begin(m);
		fill(m);
	} else if (!strcmp(argv[1], "clear")) {
		clear(m);
	} else if (!strcmp(argv[1], "close") && fr_crashmem_look(m, boot_id) == FR_CRASHMEM_SAME_BOOT) {
		fr_crashmem_close(m);
	}
	json = describe(m, boot_id);
	text = cJSON_PrintUnformatted(json);
	puts(text);
	free(text);
	cJSON_Delete(json);
	fr_crashmem_free(m);
	return 0;
}
