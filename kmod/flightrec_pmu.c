// SPDX-License-Identifier: GPL-2.0
/*
 * A synthetic PMU with an AUX area, for the tests of flightrec. It needs no
 * hardware. While an event is on a CPU, the PMU makes `rate` records a
 * millisecond, so equal work makes equally many bytes. Each record tells its
 * CPU, sequence number, time and thread, and has a check word.
 *
 * config says how the PMU behaves:
 *   mode=0  as Intel PT: records go to the AUX area at once
 *   mode=1  as CoreSight: records go to a sink of the device, and move to the
 *	     AUX area when the event stops
 *   head=0  as CoreSight: aux_head counts all bytes in snapshot mode
 *   head=1  as Intel PT: aux_head is a position in the AUX area in snapshot mode
 *   rate=N  records a millisecond; 0: 10
 */
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/perf_event.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/vmalloc.h>

static char *name = "flightrec_pmu";
module_param(name, charp, 0444);
MODULE_PARM_DESC(name, "name of the PMU; stock perf records the AUX data only of PMUs it knows: intel_bts");

#define CONFIG_MODE_SINK	BIT(0)
#define CONFIG_HEAD_POSITION	BIT(1)
#define CONFIG_RATE(config)	(((config) >> 8 & 0xffff) ?: 10)
#define TICK_NS			NSEC_PER_MSEC

struct record {
	u64 check;	/* CHECK(seq, time_ns, cpu, tid) */
	u64 time_ns;	/* CLOCK_MONOTONIC */
	u64 seq;	/* of this CPU; no number comes twice */
	u32 cpu;
	u32 tid;
};

/* 4096 is a multiple of the size of a record, so a record is never in two pages. */
static_assert(sizeof(struct record) == 32);

static u64 check_of(const struct record *r)
{
	u64 x = r->time_ns ^ (r->seq * 0x9e3779b97f4a7c15ULL) ^ ((u64)r->cpu << 32 | r->tid);

	return (x ^ x >> 29) * 0xbf58476d1ce4e5b9ULL;
}

/* The AUX area of an event. */
struct area {
	void **pages;
	size_t bytes;
	bool snapshot;
	u8 *sink;	/* as large as the AUX area; NULL: mode=0 */
};

struct cpu_state {
	struct hrtimer timer;
	struct perf_output_handle handle;
	struct perf_event *event;	/* the event that is on this CPU; NULL: none */
	struct area *area;		/* NULL: the AUX area has no room */
	u64 start;	/* position of the handle's begin */
	u64 written;	/* bytes since then */
	u64 last_ns;	/* the records up to this time are written */
	u64 seq;
};

static DEFINE_PER_CPU(struct cpu_state, states);
static struct pmu pmu;

static u8 *place(struct area *a, u64 position)
{
	const size_t at = position & (a->bytes - 1);

	return (u8 *)a->pages[at >> PAGE_SHIFT] + offset_in_page(at);
}

static void put(struct cpu_state *c, u64 time_ns)
{
	struct area *a = c->area;
	struct record r = {
		.time_ns = time_ns,
		.seq = c->seq++,
		.cpu = smp_processor_id(),
		.tid = current->pid,
	};

	if (!a)
		return;
	if (!a->snapshot && c->handle.size - c->written < sizeof(r)) {
		perf_aux_output_flag(&c->handle, PERF_AUX_FLAG_TRUNCATED);
		return;
	}
	r.check = check_of(&r);
	if (a->sink)
		memcpy(a->sink + (c->written & (a->bytes - 1)), &r, sizeof(r));
	else
		memcpy(place(a, c->start + c->written), &r, sizeof(r));
	c->written += sizeof(r);
}

/* Writes the records that are due. */
static void advance(struct cpu_state *c)
{
	const u64 period = NSEC_PER_MSEC / CONFIG_RATE(c->event->attr.config);
	const u64 now = ktime_get_mono_fast_ns();

	while (now - c->last_ns >= period) {
		c->last_ns += period;
		put(c, c->last_ns);
	}
}

static void begin(struct cpu_state *c)
{
	c->area = perf_aux_output_begin(&c->handle, c->event);
	c->written = 0;
	c->start = c->handle.head;
}

/* Moves the newest bytes of the sink to the AUX area. */
static void empty_sink(struct cpu_state *c)
{
	struct area *a = c->area;
	u64 at = c->written > a->bytes ? c->written - a->bytes : 0;

	for (; at < c->written; at += sizeof(struct record))
		memcpy(place(a, c->start + at), a->sink + (at & (a->bytes - 1)),
		       sizeof(struct record));
}

static void end(struct cpu_state *c)
{
	struct area *a = c->area;
	u64 size = c->written;

	if (!a)
		return;
	if (a->sink)
		empty_sink(c);
	if (a->snapshot) {
		c->handle.head = c->start + c->written;
		size = min_t(u64, size, a->bytes);
		if (c->event->attr.config & CONFIG_HEAD_POSITION) {
			c->handle.head &= a->bytes - 1;
			size = a->bytes;
		}
	}
	perf_aux_output_end(&c->handle, size);
	c->area = NULL;
}

static enum hrtimer_restart on_tick(struct hrtimer *timer)
{
	struct cpu_state *c = container_of(timer, struct cpu_state, timer);

	if (!c->event)
		return HRTIMER_NORESTART;
	advance(c);
	if (!c->area || !c->area->snapshot) {
		end(c);
		begin(c);
	}
	hrtimer_forward_now(timer, ns_to_ktime(TICK_NS));
	return HRTIMER_RESTART;
}

static void event_start(struct perf_event *event, int flags)
{
	struct cpu_state *c = this_cpu_ptr(&states);

	c->event = event;
	begin(c);
	if (!c->area) {
		c->event = NULL;
		event->hw.state = PERF_HES_STOPPED;
		return;
	}
	event->hw.state = 0;
	/* The rest of a period counts for the next run: equal work makes equally many records. */
	c->last_ns = ktime_get_mono_fast_ns() - event->hw.last_period;
	hrtimer_start(&c->timer, ns_to_ktime(TICK_NS), HRTIMER_MODE_REL_PINNED_HARD);
}

static void event_stop(struct perf_event *event, int flags)
{
	struct cpu_state *c = this_cpu_ptr(&states);

	if (event->hw.state & PERF_HES_STOPPED)
		return;
	hrtimer_cancel(&c->timer);
	advance(c);
	event->hw.last_period = ktime_get_mono_fast_ns() - c->last_ns;
	end(c);
	c->event = NULL;
	event->hw.state |= PERF_HES_STOPPED;
}

static int event_add(struct perf_event *event, int flags)
{
	event->hw.state = PERF_HES_STOPPED;
	if (flags & PERF_EF_START) {
		event_start(event, 0);
		if (event->hw.state & PERF_HES_STOPPED)
			return -EINVAL;
	}
	return 0;
}

static void event_del(struct perf_event *event, int flags)
{
	event_stop(event, PERF_EF_UPDATE);
}

static void event_read(struct perf_event *event)
{
}

static int event_init(struct perf_event *event)
{
	if (event->attr.type != pmu.type)
		return -ENOENT;
	event->hw.last_period = 0;
	return 0;
}

static void *setup_aux(struct perf_event *event, void **pages, int n_pages, bool snapshot)
{
	struct area *a = kzalloc(sizeof(*a), GFP_KERNEL);

	if (!a)
		return NULL;
	a->pages = pages;
	a->bytes = (size_t)n_pages << PAGE_SHIFT;
	a->snapshot = snapshot;
	if (event->attr.config & CONFIG_MODE_SINK) {
		a->sink = vzalloc(a->bytes);
		if (!a->sink) {
			kfree(a);
			return NULL;
		}
	}
	return a;
}

static void free_aux(void *aux)
{
	struct area *a = aux;

	vfree(a->sink);
	kfree(a);
}

PMU_FORMAT_ATTR(mode, "config:0");
PMU_FORMAT_ATTR(head, "config:1");
PMU_FORMAT_ATTR(rate, "config:8-23");

static struct attribute *format_attrs[] = {
	&format_attr_mode.attr,
	&format_attr_head.attr,
	&format_attr_rate.attr,
	NULL,
};

static const struct attribute_group format_group = {
	.name = "format",
	.attrs = format_attrs,
};

static const struct attribute_group *groups[] = {
	&format_group,
	NULL,
};

static struct pmu pmu = {
	.module = THIS_MODULE,
	.task_ctx_nr = perf_sw_context,
	.capabilities = PERF_PMU_CAP_EXCLUSIVE | PERF_PMU_CAP_ITRACE,
	.attr_groups = groups,
	.event_init = event_init,
	.add = event_add,
	.del = event_del,
	.start = event_start,
	.stop = event_stop,
	.read = event_read,
	.setup_aux = setup_aux,
	.free_aux = free_aux,
};

static int __init flightrec_pmu_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct cpu_state *c = per_cpu_ptr(&states, cpu);

		hrtimer_init(&c->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
		c->timer.function = on_tick;
	}
	return perf_pmu_register(&pmu, name, -1);
}

static void __exit flightrec_pmu_exit(void)
{
	perf_pmu_unregister(&pmu);
}

module_init(flightrec_pmu_init);
module_exit(flightrec_pmu_exit);
MODULE_DESCRIPTION("synthetic PMU with an AUX area, for the tests of flightrec");
MODULE_LICENSE("GPL");
