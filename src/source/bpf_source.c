// SPDX-License-Identifier: GPL-2.0-or-later
#include "source/bpf_source.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "capture/switches.h"
#include "source/bpf_event.h"

#include <argz.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/types.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include <flightrec/trigger.bpf.h>

/* The largest number of events that a source handles in one iteration of the event loop. This limit keeps a
   flood of events from delaying the other sources. */
#define EVENTS_PER_ITERATION 64

static int set_threshold(struct fr_bpf_source *s, const char *text, struct fr_diag *d)
{
	static const char *const examples[] = {"20ms, 1000 or 64M", "20ms", "1000", "64M", "12%"};
	struct fr_source_stats *stats = &s->source.stats;
	char hint[64];

	if (!text) {
		(void)fr_bpf_object_get(
			s->object, "flightrec_threshold", &stats->threshold, sizeof(stats->threshold));
		return 0;
	}
	if (fr_threshold_parse(text, (int)stats->unit, &stats->threshold) == 0)
		return fr_bpf_object_set_number(s->object, "flightrec_threshold", stats->threshold);
	snprintf(hint, sizeof(hint), "write for example Threshold=%s", examples[stats->unit]);
	return fr_fail(d, -EINVAL, hint, "Threshold=%s is not in the unit of this trigger", text);
}

static int set_comm(struct fr_bpf_source *s, const char *comm)
{
	char value[FLIGHTREC_COMM_SIZE] = "";

	/* The kernel truncates the names of threads in the same way. */
	snprintf(value, sizeof(value), "%.*s", (int)sizeof(value) - 1, comm);
	return fr_bpf_object_set(s->object, "flightrec_comm", value, sizeof(value));
}

static int set_cgroup(struct fr_bpf_source *s, const char *path, struct fr_diag *d)
{
	uint64_t id;
	int r;

	path += strspn(path, "/");
	if (!*path) /* the root group contains all processes */
		return 0;
	r = fr_cgroup_id(path, &id);
	if (r < 0)
		return fr_fail_errno(d, r, "set CGroup= to a path below the root of the unified hierarchy",
			"cannot find the control group /%s", path);
	return fr_bpf_object_set_number(s->object, "flightrec_cgroup", id);
}

static int set_interval(struct fr_bpf_source *s, uint64_t interval_ns, struct fr_diag *d)
{
	if (interval_ns == FR_TRIGGER_UNSET)
		return 0;
	if (fr_bpf_object_set_number(s->object, "interval_ns", interval_ns) < 0)
		return fr_fail(d, -EINVAL,
			s->source.config->kind == FR_TRIGGER_PROGRAM
				? "leave Interval= out, or give the object a global: const volatile __u64 "
				  "interval_ns"
				: "leave Interval= out",
			"Interval= has no effect on this trigger, which does not count over a time");
	return 0;
}

static uint64_t cooldown_ns(const struct fr_bpf_source *s)
{
	const uint64_t least_ns = s->source.env ? s->source.env->bpf_quiet_ns : 0;

	return FR_MAX(fr_source_cooldown_ns(s->source.config), least_ns);
}

/* Sets the globals that do not depend on this machine. */
static int set_config_globals(
	struct fr_bpf_source *s, const struct fr_bpf_source_object *object, struct fr_diag *d)
{
	const struct fr_trigger_config *c = s->source.config;
	int r = set_threshold(s, c->threshold ? c->threshold : object->threshold, d);

	if (r == 0)
		r = fr_bpf_object_set_number(s->object, "flightrec_cooldown_ns", cooldown_ns(s));
	if (r == 0 && c->pid > 0)
		r = fr_bpf_object_set_number(s->object, "flightrec_pid", (uint64_t)c->pid);
	if (r == 0 && c->comm)
		r = set_comm(s, c->comm);
	if (r == 0)
		r = set_interval(s, c->interval_ns, d);
	for (char *set = c->set; r == 0 && set; set = argz_next(c->set, c->set_len, set))
		r = fr_bpf_object_assign(s->object, set, d);
	return r;
}

static int set_machine_globals(struct fr_bpf_source *s, struct fr_diag *d)
{
	const struct fr_source_env *env = s->source.env;
	const char *cgroup = s->source.config->cgroup;
	int r;

	if (env->pidns && s->source.config->pid > 0 && fr_bpf_object_is_classic(s->object))
		return fr_fail(d, -EOPNOTSUPP,
			"use Comm= or CGroup=, or run flightrecd in the first pid namespace",
			"Pid= in a pid namespace needs the kernel's BTF, and this kernel has none");
	r = fr_bpf_object_set_number(s->object, "flightrec_self", (uint64_t)env->self);

	if (r == 0)
		r = fr_bpf_object_set_number(s->object, "flightrec_pidns", env->pidns);
	return r == 0 && cgroup ? set_cgroup(s, cgroup, d) : r;
}

static void set_unit(struct fr_bpf_source *s, enum fr_unit_of_cause unit)
{
	uint32_t own = FLIGHTREC_UNIT_NONE;

	if (unit == FR_CAUSE_NONE)
		(void)fr_bpf_object_get(s->object, "flightrec_unit", &own, sizeof(own));
	s->source.stats.unit = own && own <= FLIGHTREC_UNIT_PERCENT ? (enum fr_unit_of_cause)own : unit;
}

int fr_bpf_source_init(struct fr_bpf_source *s, const struct fr_bpf_source_object *object, struct fr_diag *d)
{
	const struct fr_source_env *env = s->source.env;
	int r = fr_bpf_object_open(
		object->bytes, object->n, object->label, env && env->bpf_classic, &s->object, d);

	if (r < 0)
		return r;
	set_unit(s, object->unit);
	r = set_config_globals(s, object, d);
	if (r == 0 && env)
		r = set_machine_globals(s, d);
	if (r == 0 && env)
		r = fr_bpf_source_find_switches(s, d);
	if (r == 0 && env)
		r = fr_bpf_object_choose(s->object, d);
	if (r == 0)
		return 0;
	/* If D is filled already, fr_fail() does not change it. If D is empty, a global of the ABI is missing
	   or has another size. */
	return fr_fail(d, r, "compile it again with this version's flightrec/trigger.bpf.h",
		"%s does not have the globals of the trigger ABI", object->label);
}

static void handle_event(struct fr_bpf_source *s, const void *data, size_t n)
{
	struct fr_switch_record record;
	struct fr_cause cause;
	uint64_t cgroup_id;
	const char *cgroup;

	if (s->source.env->switched && fr_bpf_switch_parse(data, n, fr_monotonic_ns(), &record) == 0) {
		s->source.env->switched(s->source.env->ctx, s->source.trigger, &record);
		return;
	}
	if (fr_bpf_event_parse(data, n, fr_monotonic_ns(), &cause, &cgroup_id) < 0) {
		s->source.stats.bad++;
		return;
	}
	if (cause.unit == FR_CAUSE_NONE)
		cause.unit = s->source.stats.unit;
	if (!cause.detail[0])
		memcpy(cause.detail, s->detail, sizeof(cause.detail));
	cgroup = fr_cgroup_path(&s->cgroups, cgroup_id);
	if (cgroup)
		snprintf(cause.cgroup, sizeof(cause.cgroup), "%s", cgroup);
	cause.source = s->source.class->name;
	fr_source_fire(&s->source, &cause);
}

/* libbpf calls this function for each event in the ring buffer, until the function returns an error. */
static int on_event(void *ctx, void *data, size_t n)
{
	struct fr_bpf_source *s = ctx;

	handle_event(s, data, n);
	return ++s->handled < EVENTS_PER_ITERATION ? 0 : -EAGAIN;
}

static int on_readable(sd_event_source *io, int fd, uint32_t events, void *ctx)
{
	struct fr_bpf_source *s = ctx;

	s->handled = 0;
	/* If events remain, the descriptor stays readable, and the loop calls this function again. */
	(void)ring_buffer__consume(s->ring);
	return 0;
}

int fr_bpf_source_load(struct fr_bpf_source *s, struct fr_diag *d)
{
	int fd, r = fr_bpf_object_load(s->object, s->source.env->log, s->source.env->ctx, d);

	if (r < 0)
		return r;
	fd = bpf_object__find_map_fd_by_name(fr_bpf_object_libbpf(s->object), "flightrec_events");
	s->ring = fd < 0 ? NULL : ring_buffer__new(fd, on_event, s, NULL);
	return s->ring ? 0
		       : fr_fail_errno(
				 d, fd < 0 ? fd : -errno, NULL, "cannot read the events of a BPF object");
}

int fr_bpf_source_listen(struct fr_source *source, struct fr_diag *d)
{
	struct fr_bpf_source *s = (struct fr_bpf_source *)source;
	int r = sd_event_add_io(
		s->source.env->event, &s->io, ring_buffer__epoll_fd(s->ring), EPOLLIN, on_readable, s);

	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot listen to the events of a BPF object") : 0;
}

void fr_bpf_source_close(struct fr_source *source)
{
	struct fr_bpf_source *s = (struct fr_bpf_source *)source;

	s->io = sd_event_source_disable_unref(s->io);
	/* Detach the programs before the ring buffer is freed. */
	s->object = fr_bpf_object_free(s->object);
	ring_buffer__free(s->ring);
}

static void add_cpu(const struct flightrec_counters *c, struct fr_source_stats *ret)
{
	ret->cooled += c->cooled;
	ret->lost += c->lost;
	ret->fired += c->sent + c->cooled + c->lost;
	if (c->last_ns > ret->last_ns) {
		ret->last = c->last;
		ret->last_ns = c->last_ns;
	}
}

void fr_bpf_source_get_stats(struct fr_source *source, struct fr_source_stats *ret)
{
	struct fr_bpf_source *s = (struct fr_bpf_source *)source;
	const struct bpf_map *map =
		bpf_object__find_map_by_name(fr_bpf_object_libbpf(s->object), "flightrec_counters");
	int n = libbpf_num_possible_cpus();
	_cleanup_free_ struct flightrec_counters *cpus = n > 0 ? calloc((size_t)n, sizeof(*cpus)) : NULL;
	const uint32_t zero = 0;

	if (!cpus || bpf_map__lookup_elem(map, &zero, sizeof(zero), cpus, (size_t)n * sizeof(*cpus), 0) < 0)
		return;
	for (int i = 0; i < n; i++)
		add_cpu(&cpus[i], ret);
}

bool fr_bpf_source_is_other_file(const struct fr_bpf_source *s, const struct stat *now)
{
	const struct stat *old = &s->file;

	return old->st_dev != now->st_dev || old->st_ino != now->st_ino || old->st_size != now->st_size ||
	       old->st_mtim.tv_sec != now->st_mtim.tv_sec || old->st_mtim.tv_nsec != now->st_mtim.tv_nsec;
}
