// SPDX-License-Identifier: GPL-2.0-or-later
/* Probe= and Program=: BPF objects that attach themselves by their sections. */
#include "base/cleanup.h"
#include "base/foreign.h"
#include "trigger/bpf_source.h"
#include "trigger/probes.h"
#include "trigger/syscalls.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>

/* What CONFIG names, and FILE (which holds the bytes of a Program=). */
static int find_object(const struct fr_trigger_config *config, struct fr_buf *file, char *label, size_t size,
	struct fr_bpf_source_object *ret, const struct fr_probe **ret_probe, struct fr_diag *d)
{
	const struct fr_probe *probe = NULL;
	int r;

	*ret_probe = NULL;
	if (config->kind == FR_TRIGGER_PROGRAM) {
		snprintf(label, size, "%s", config->subject);
		r = fr_bpf_file_read(config->subject, file, d);
		*ret = (struct fr_bpf_source_object){file->data, file->len, label, FR_CAUSE_NONE, NULL};
		return r;
	}
	probe = fr_probe_find(config->subject);
	if (!probe)
		return fr_fail(d, -EINVAL, "flightrecd.conf(5) lists the probes", "there is no probe '%s'",
			config->subject);
	snprintf(label, size, "the probe %s", probe->name);
	*ret = (struct fr_bpf_source_object){
		.label = label, .unit = probe->unit, .threshold = probe->threshold};
	ret->bytes = probe->object(&ret->n);
	*ret_probe = probe;
	return 0;
}

static int set_syscalls(struct fr_bpf_source *s, const char *names, struct fr_diag *d)
{
	uint8_t watched[FR_SYSCALLS];
	int r = fr_syscalls_parse(names, watched, d);

	if (r < 0)
		return r;
	if (fr_bpf_object_set(s->object, "syscalls", watched, sizeof(watched)) < 0)
		return fr_fail(d, -EINVAL, "it is for the probe syscall-latency",
			"Syscall= means nothing to this trigger");
	return 0;
}

/* What only built-in probes have. Whether they have the global is what makes it theirs. */
static int set_probe(struct fr_bpf_source *s, const struct fr_probe *probe, struct fr_diag *d)
{
	const struct fr_trigger_config *c = s->source.config;

	(void)fr_bpf_object_set_number(s->object, "page_size", (uint64_t)sysconf(_SC_PAGESIZE));
	if (probe->counts && c->interval_ns == FR_TRIGGER_UNSET &&
		fr_bpf_object_set_number(s->object, "interval_ns", probe->interval_ns) < 0)
		return fr_fail(d, -EINVAL, NULL, "the probe %s has no global interval_ns", probe->name);
	return 0;
}

static int prepare(struct fr_bpf_source *s, const struct fr_source_env *env,
	const struct fr_trigger_config *config, void *trigger, struct fr_diag *d)
{
	_cleanup_buf_ struct fr_buf file = {0};
	struct fr_bpf_source_object object;
	const struct fr_probe *probe;
	char label[PATH_MAX];
	int r;

	/* Before it is read: what is replaced meanwhile is seen at the next reload. */
	if (config->kind == FR_TRIGGER_PROGRAM)
		(void)stat(config->subject, &s->file);
	r = find_object(config, &file, label, sizeof(label), &object, &probe, d);
	if (r == 0)
		r = fr_bpf_source_init(s, &fr_source_bpf, env, config, trigger, &object, d);
	if (r < 0)
		return r;
	if (probe)
		r = set_probe(s, probe, d);
	if (r == 0 && config->syscalls)
		r = set_syscalls(s, config->syscalls, d);
	if (r < 0)
		fr_bpf_source_deinit(s);
	return r;
}

static int bpf_open(const struct fr_source_env *env, const struct fr_trigger_config *config, void *trigger,
	struct fr_source **ret, struct fr_diag *d)
{
	struct fr_bpf_source *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return fr_fail_errno(d, -ENOMEM, NULL, "cannot arm a BPF object");
	r = prepare(s, env, config, trigger, d);
	if (r < 0) {
		free(s);
		return r;
	}
	r = fr_bpf_source_load(s, d);
	if (r == 0)
		r = fr_bpf_object_attach(s->object, d);
	if (r < 0) {
		fr_bpf_source_deinit(s);
		free(s);
		return r;
	}
	*ret = &s->source;
	return 0;
}

static void bpf_close(struct fr_source *source)
{
	struct fr_bpf_source *s = (struct fr_bpf_source *)source;

	fr_bpf_source_deinit(s);
	free(s);
}

static int bpf_check(const struct fr_trigger_config *config, struct fr_diag *d)
{
	struct fr_bpf_source s = {0};
	int r = prepare(&s, NULL, config, NULL, d);

	if (r == 0)
		fr_bpf_source_deinit(&s);
	return r;
}

/* A file that cannot be looked at without waiting for its file system may be another one: to open it is
   another thread's to try. */
static bool bpf_is_stale(const struct fr_source *source)
{
	const struct fr_bpf_source *s = (const struct fr_bpf_source *)source;
	struct stat now;
	int r = s->file.st_ino ? fr_foreign_stat_cached(0, source->config->subject, &now) : -ENOENT;

	return r == -EAGAIN || (r == 0 && fr_bpf_source_file_changed(s, &now));
}

const struct fr_source_class fr_source_bpf = {
	.name = "bpf",
	.open = bpf_open,
	.listen = fr_bpf_source_listen,
	.close = bpf_close,
	.stats = fr_bpf_source_stats,
	.is_stale = bpf_is_stale,
	.check = bpf_check,
};
