// SPDX-License-Identifier: GPL-2.0-or-later
/* Probe= and Program=: BPF objects whose programs are attached by their sections. */
#include "base/cleanup.h"
#include "base/foreign.h"
#include "base/thread.h"
#include "source/bpf_source.h"
#include "source/probes.h"
#include "source/syscalls.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

static int set_syscalls(struct fr_bpf_source *s, const char *names, struct fr_diag *d)
{
	uint8_t watched[FR_SYSCALLS];
	int r = fr_syscalls_parse(names, watched, d);

	if (r < 0)
		return r;
	if (fr_bpf_object_set(s->object, "syscalls", watched, sizeof(watched)) < 0)
		return fr_fail(d, -EINVAL, "leave Syscall= out; only the probe syscall-latency has it",
			"Syscall= has no effect on this trigger");
	return 0;
}

/* Sets the globals that only built-in probes have. It is not an error if a probe has no `page_size`. */
static int set_probe_globals(struct fr_bpf_source *s, const struct fr_probe *probe, struct fr_diag *d)
{
	(void)fr_bpf_object_set_number(s->object, "page_size", (uint64_t)sysconf(_SC_PAGESIZE));
	if (probe->interval_ns && s->source.config->interval_ns == FR_TRIGGER_UNSET &&
		fr_bpf_object_set_number(s->object, "interval_ns", probe->interval_ns) < 0)
		return fr_fail(d, -EINVAL, NULL, "the probe %s has no global interval_ns", probe->name);
	return 0;
}

static int prepare_probe(struct fr_bpf_source *s, struct fr_diag *d)
{
	const struct fr_probe *probe = fr_probe_find(s->source.config->subject);
	struct fr_bpf_source_object object = {0};
	char label[64];
	int r;

	if (!probe)
		return fr_fail(d, -EINVAL, "use one of the probes that flightrecd.conf(5) lists",
			"there is no probe '%s'", s->source.config->subject);
	snprintf(label, sizeof(label), "the probe %s", probe->name);
	object = (struct fr_bpf_source_object){
		.label = label, .unit = probe->unit, .threshold = probe->threshold};
	object.bytes = probe->object(&object.n);
	r = fr_bpf_source_init(s, &object, d);
	return r < 0 ? r : set_probe_globals(s, probe, d);
}

static int prepare_program(struct fr_bpf_source *s, struct fr_diag *d)
{
	const char *path = s->source.config->subject;
	_cleanup_buf_ struct fr_buf file = {0};
	int r;

	/* Call stat() before the file is read. If the file is replaced between these two steps, s->file
	   describes the old file. Then the next reload finds another file at the path, and opens it again. */
	(void)stat(path, &s->file);
	r = fr_bpf_file_read(path, &file, d);
	if (r < 0)
		return r;
	return fr_bpf_source_init(
		s, &(struct fr_bpf_source_object){.bytes = file.data, .n = file.len, .label = path}, d);
}

/* Opens the object and sets its globals. */
static int prepare(struct fr_bpf_source *s, struct fr_diag *d)
{
	const struct fr_trigger_config *config = s->source.config;
	int r = config->kind == FR_TRIGGER_PROGRAM ? prepare_program(s, d) : prepare_probe(s, d);

	return r == 0 && config->syscalls ? set_syscalls(s, config->syscalls, d) : r;
}

static int bpf_open(struct fr_source *source, struct fr_diag *d)
{
	struct fr_bpf_source *s = (struct fr_bpf_source *)source;
	int r = prepare(s, d);

	if (r == 0)
		r = fr_bpf_source_load(s, d);
	return r == 0 ? fr_bpf_object_attach(s->object, d) : r;
}

static int bpf_check(const struct fr_trigger_config *config, struct fr_diag *d)
{
	struct fr_bpf_source s = {.source.config = config};
	int r = prepare(&s, d);

	fr_bpf_source_close(&s.source);
	return r;
}

/* Also returns true if an event that the programs switch is gone, or if the file system may hang (-EAGAIN).
   If this function returns true, the arming thread reads the file again. */
static bool bpf_is_stale(const struct fr_source *source)
{
	const struct fr_bpf_source *s = (const struct fr_bpf_source *)source;
	struct stat now;
	int r;

	if (fr_bpf_source_misses_switch(s))
		return true;
	r = s->file.st_ino ? fr_foreign_stat_cached(0, source->config->subject, &now) : -ENOENT;

	return r == -EAGAIN || (r == 0 && fr_bpf_source_is_other_file(s, &now));
}

const struct fr_source_class fr_source_bpf = {
	.name = "bpf",
	.size = sizeof(struct fr_bpf_source),
	.open = bpf_open,
	.listen = fr_bpf_source_listen,
	.close = fr_bpf_source_close,
	.get_stats = fr_bpf_source_get_stats,
	.is_stale = bpf_is_stale,
	.check = bpf_check,
};
