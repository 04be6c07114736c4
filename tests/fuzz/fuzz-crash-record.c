// SPDX-License-Identifier: GPL-2.0-or-later

/* Uses the input as a crash record with its log, from the field `kind` on. Magic, version and crc are made
   right, so that the input gets behind the check of the crc. */

#include "crashmem/record.h"
#include "base/crc32c.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const size_t from = offsetof(struct flightrec_crash_record, kind);
	size_t bytes = from + size, covered;
	struct fr_crash_record record;
	struct flightrec_crash_record *r;
	cJSON *json;

	if (size > FLIGHTREC_CRASHMEM_RECORD_BYTES)
		return 0;
	r = calloc(1, bytes);
	check(r != NULL);
	memcpy((uint8_t *)r + from, data, size);
	if (bytes >= sizeof(*r)) {
		r->magic = FLIGHTREC_CRASH_RECORD_MAGIC;
		r->version = FLIGHTREC_CRASH_RECORD_VERSION;
		covered = r->log_bytes <= bytes - sizeof(*r) ? sizeof(*r) - from + r->log_bytes : 0;
		r->crc = fr_crc32c(0, (uint8_t *)r + from, covered);
	}
	if (fr_crash_record_read(r, bytes, &record) == 0) {
		json = fr_crash_record_to_json(&record);
		check(json != NULL);
		cJSON_Delete(json);
		fr_crash_record_deinit(&record);
	}
	free(r);
	return 0;
}
