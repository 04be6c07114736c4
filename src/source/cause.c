// SPDX-License-Identifier: GPL-2.0-or-later
#include "source/cause.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/units.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CGROUP_FILE_MAX (64u << 10)

static const char *const unit_names[] = {[FR_CAUSE_NONE] = "",
	[FR_CAUSE_NS] = "ns",
	[FR_CAUSE_COUNT] = "count",
	[FR_CAUSE_BYTES] = "bytes",
	[FR_CAUSE_PERCENT] = "percent"};

const char *fr_cause_unit_name(enum fr_unit_of_cause unit)
{
	return (size_t)unit < FR_ARRAY_SIZE(unit_names) ? unit_names[unit] : "";
}

enum fr_unit_of_cause fr_cause_unit_parse(const char *name)
{
	for (size_t i = 0; i < FR_ARRAY_SIZE(unit_names); i++)
		if (!strcmp(name, unit_names[i]))
			return (enum fr_unit_of_cause)i;
	return FR_CAUSE_NONE;
}

void fr_cause_format_value(enum fr_unit_of_cause unit, uint64_t value, char ret[static FR_CAUSE_VALUE_SIZE])
{
	char text[FR_UNIT_SIZE];

	switch (unit) {
	case FR_CAUSE_NS:
		snprintf(ret, FR_CAUSE_VALUE_SIZE, "%s", fr_duration_format(value, text));
		break;
	case FR_CAUSE_BYTES:
		snprintf(ret, FR_CAUSE_VALUE_SIZE, "%s", fr_size_format(value, text));
		break;
	case FR_CAUSE_PERCENT:
		snprintf(ret, FR_CAUSE_VALUE_SIZE, "%" PRIu64 " %%", value);
		break;
	case FR_CAUSE_NONE:
	case FR_CAUSE_COUNT:
		snprintf(ret, FR_CAUSE_VALUE_SIZE, "%" PRIu64, value);
		break;
	}
}

int fr_cgroup_of_process(pid_t pid, char ret[static FR_CAUSE_CGROUP_SIZE])
{
	_cleanup_buf_ struct fr_buf text = {0};
	const char *line;
	char path[64];
	int r;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	r = fr_read_file(AT_FDCWD, path, CGROUP_FILE_MAX, &text);
	if (r < 0)
		return r;
	/* The line of cgroup2 begins with "0::". */
	line = strstr((const char *)text.data, "0::");
	while (line && line != (const char *)text.data && line[-1] != '\n')
		line = strstr(line + 1, "0::");
	if (!line)
		return -ENOENT;
	snprintf(ret, FR_CAUSE_CGROUP_SIZE, "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
	return 0;
}

/* Reads the name of the thread. If the thread has gone, reads the name of its process. */
static void read_comm(struct fr_cause *c)
{
	const pid_t from[] = {c->tid, c->pid};
	char path[64];

	for (size_t i = 0; i < FR_ARRAY_SIZE(from) && !c->comm[0]; i++) {
		snprintf(path, sizeof(path), "/proc/%d/comm", (int)from[i]);
		if (from[i] > 0 && fr_read_line(path, c->comm, sizeof(c->comm)) < 0)
			c->comm[0] = '\0';
	}
}

void fr_cause_fill_from_proc(struct fr_cause *c)
{
	if (c->pid > 0 && !c->comm[0])
		read_comm(c);
	if (c->pid > 0 && !c->cgroup[0])
		(void)fr_cgroup_of_process(c->pid, c->cgroup);
	fr_utf8_sanitize(c->reason);
	fr_utf8_sanitize(c->detail);
	fr_utf8_sanitize(c->comm);
	fr_utf8_sanitize(c->cgroup);
	fr_utf8_sanitize(c->by);
}
