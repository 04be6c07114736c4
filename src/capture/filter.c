// SPDX-License-Identifier: GPL-2.0-or-later
/* Sets tracepoint filters, which the kernel evaluates (Documentation/trace/events.rst). */
#include "capture/capture_internal.h"
#include "capture/event_internal.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

int fr_filter_text(const char *user, const pid_t *tids, size_t n, char **ret)
{
	_cleanup_free_ char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return -ENOMEM;
	if (user)
		fprintf(f, n ? "(%s)" : "%s", user);
	for (size_t i = 0; i < n; i++)
		fprintf(f, "%scommon_pid != %d", user || i ? " && " : "", tids[i]);
	if (fclose(f) != 0)
		return -ENOMEM;
	*ret = TAKE_PTR(text);
	return 0;
}

static int explain_bad_filter(struct fr_diag *d, int code, const struct fr_event *e, const char *text)
{
	char fields[400], hint[512];

	if (code != -EINVAL || !e->filter)
		return fr_fail_errno(d, code, NULL, "cannot set the filter of %s", e->tracepoint);
	fr_tracepoint_fields(&fr_event_env_machine, e->tracepoint, fields, sizeof(fields));
	snprintf(hint, sizeof(hint), "fields of %s: %s; and common_pid, CPU, comm, COMM", e->tracepoint,
		fields);
	return fr_fail(d, code, hint, "the kernel does not accept the filter \"%s\" of the event %s",
		e->filter, e->tracepoint);
}

int fr_filter_set(int fd, const struct fr_event *e, const char *text, struct fr_diag *d)
{
	return ioctl(fd, PERF_EVENT_IOC_SET_FILTER, text) < 0 ? explain_bad_filter(d, -errno, e, text) : 0;
}

static int set_event_filter(
	struct fr_capture *c, uint32_t event, const pid_t *tids, size_t n, struct fr_diag *d)
{
	_cleanup_free_ char *text = NULL;
	const struct fr_event *e = &c->events[event];
	int r = fr_filter_text(e->filter, tids, n, &text);

	for (size_t i = 0; r == 0 && *text && i < c->n_open; i++)
		if (c->open[i].event == event)
			r = fr_filter_set(c->open[i].fd, e, text, d);
	return r;
}

int fr_filters_check(const struct fr_capture *c, struct fr_diag *d)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->n_events; i++) {
		const struct fr_event *e = &c->events[i];
		_cleanup_close_ int fd = -1;

		if (!e->filter)
			continue;
		fd = fr_perf_open(&e->attr, 0, -1, 0);
		if (fd < 0)
			return fr_explain_origin(d, fr_explain_open(d, fd, e, c->cpus[0], 0), e);
		r = fr_explain_origin(d, fr_filter_set(fd, e, e->filter, d), e);
	}
	return r;
}

int fr_filters_set(struct fr_capture *c, const pid_t *tids, size_t n, struct fr_diag *d)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->n_events; i++)
		if (c->events[i].tracepoint)
			r = set_event_filter(c, i, tids, n, d);
	c->filters_set = r == 0;
	return r;
}

int fr_capture_exclude_tids(struct fr_capture *c, const pid_t *tids, size_t n, struct fr_diag *d)
{
	if (!c->system_wide)
		return 0;
	if (c->filters_set)
		return fr_fail(d, -EBUSY, NULL, "the filters of the tracepoints are set already");
	if (fr_bpf_tracepoints_exclude(c->tracepoints, tids, n) < 0)
		return fr_fail(d, -E2BIG, NULL, "too many threads to exclude them from tracepoints");
	return fr_filters_set(c, tids, n, d);
}
