// SPDX-License-Identifier: GPL-2.0-or-later

/* Reads the input as each file of the state of the agent. A job that is accepted is the same after it was
   written and read again. */

#include "fuzz.h"
#include "agent/handled.h"
#include "agent/job.h"
#include "agent/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#define ID "20261128T220634Z-5bd1ed3e"
#define MACHINE "m1"

static void try_job(const char *data, size_t size)
{
	static struct fr_job j, again;
	struct fr_diag d = {0};
	int r = fr_job_read(data, size, ID, MACHINE, &j, &d);
	char *json;

	check(r == 0 ? d.code == 0 : r == -EBADMSG && d.what[0]);
	if (r < 0)
		return;
	check(!strcmp(j.command.id, ID) && !strcmp(j.answer.machine, MACHINE) && j.phase < FR_JOB_PHASES);
	json = fr_job_json(&j);
	check(json && fr_job_read(json, strlen(json), ID, MACHINE, &again, NULL) == 0);
	check(j.phase == again.phase && j.stored_ns == again.stored_ns && j.is_held == again.is_held);
	check(!strcmp(j.path, again.path) && !strcmp(j.upload, again.upload));
	free(json);
}

static void try_handled(const char *data, size_t size)
{
	struct fr_handled h = {0}, again = {0};
	size_t n = 0;
	char *text;

	check(fr_handled_parse(&h, data, size) >= 0 && h.n <= FR_HANDLED_MAX);
	text = fr_handled_text(&h, &n);
	check(text && fr_handled_parse(&again, text, n) == 0 && again.n <= h.n);
	free(text);
	fr_handled_deinit(&again);
	fr_handled_deinit(&h);
}

static void try_parts(const uint8_t *data, size_t size)
{
	struct fr_store_part parts[8];
	size_t n = 0;
	char path[64];
	int fd = make_memfd(data, size);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	check(fr_parts_read(AT_FDCWD, path, "upload", parts, 8, &n) == 0 && n <= 8);
	for (size_t i = 0; i < n; i++)
		check(parts[i].number > 0 && memchr(parts[i].etag, '\0', sizeof(parts[i].etag)));
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > FR_JOB_FILE_MAX)
		return 0;
	try_job((const char *)data, size);
	try_handled((const char *)data, size);
	try_parts(data, size);
	return 0;
}
