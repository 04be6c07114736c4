// SPDX-License-Identifier: GPL-2.0-or-later
#include "rescue/rescue.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/units.h"
#include "crashmem/record.h"
#include "crashmem/tail.h"
#include "dumper/job_samples.h"
#include "handover/handover.h"
#include "reporting/cause.h"
#include "reporting/losses.h"
#include "rescue/model.h"
#include "rescue/symbols.h"

#include <errno.h>
#include <string.h>

/* The time up to which the ring has all records is this much earlier than the begin of a round
   (recorder/recorder.c). */
#define IN_FLIGHT_NS (10 * FR_NSEC_PER_MSEC)
#define TEXT_MAX (FR_CAUSE_TEXT_SIZE - 1)

struct rescue {
	const struct fr_rescue_config *config;
	struct fr_crashmem *memory;
	bool other_boot;
	struct fr_state state;
	struct fr_crash_record record;
	bool has_record;
	struct fr_rescue_symbols symbols;
	struct fr_tail *tail; /* NULL: it is not whole */
	struct fr_history *history;
	struct fr_history_adopted adopted;
	struct fr_snapshots snapshots;
	bool has_whole_model;
	cJSON *meta;
	struct fr_rescued *result;
};

static void rescue_deinit(struct rescue *x)
{
	cJSON_Delete(x->meta);
	fr_snapshots_free(&x->snapshots);
	fr_history_free(x->history);
	fr_tail_free(x->tail);
	fr_rescue_symbols_deinit(&x->symbols);
	if (x->has_record)
		fr_crash_record_deinit(&x->record);
	fr_state_deinit(&x->state);
}

static int read_state(struct rescue *x, struct fr_diag *d)
{
	int r = fr_handover_read_memory(x->memory, &x->state);

	if (r == -ENOMEM)
		return fr_fail_errno(d, r, NULL, "cannot read %s", x->config->path);
	if (r < 0 || x->state.session.n_events == 0 ||
		strcmp(x->state.boot_id, fr_crashmem_boot_id(x->memory)) != 0) {
		fr_fail(d, -EBADMSG, NULL, "%s: the description of the events is missing or damaged",
			x->config->path);
		return 1;
	}
	return 0;
}

/* The open chunk needs room, as in a live ring. So the tail gets the side-band of the frames that it evicts.
 */
static void on_evicted(void *ctx, const struct fr_frame *frame)
{
	struct rescue *x = ctx;

	if (x->tail)
		fr_tail_append(
			x->tail, frame->seq, frame->low_watermark_ns, frame->sideband, frame->sideband_len);
}

/* Makes a snapshot that also has the open chunk. */
static int take_snapshot(struct rescue *x)
{
	const int r = fr_tail_adopt(x->memory, fr_history_oldest_seq(x->history) - 1, &x->tail);

	if (r == -ENOMEM)
		return r;
	(void)fr_history_seal(x->history);
	return fr_rings_snapshot(&(struct fr_rings){.ring = {x->history}, .n = 1}, &x->snapshots);
}

static int read_ring(struct rescue *x, struct fr_diag *d)
{
	struct fr_history_config c = {
		.level = x->config->level,
		.memory.write_back = fr_crashmem_write_back,
		.crashed = x->other_boot,
		.rescue = true,
		.min_seq = fr_tail_evicted_seq(x->memory) + 1,
		.evicted = on_evicted,
		.ctx = x,
	};
	int r;

	c.memory.at = fr_crashmem_area(x->memory, FLIGHTREC_CRASHMEM_AREA_RING, &c.memory.bytes);
	r = fr_history_adopt(&c, -1, &x->history, &x->adopted, d);
	if (r < 0)
		return r == -ENOMEM ? r : 1;
	/* After a crash of the machine, the crash record is worth a dump without samples. */
	if (x->adopted.samples == 0 && !x->other_boot)
		return 1;
	return take_snapshot(x);
}

static void read_record(struct rescue *x)
{
	uint64_t bytes;
	const uint8_t *area = fr_crashmem_area(x->memory, FLIGHTREC_CRASHMEM_AREA_RECORD, &bytes);

	x->has_record = x->other_boot && fr_crash_record_read(area, bytes, &x->record) == 0;
}

static bool has_panicked(const struct rescue *x)
{
	return x->has_record && x->record.r.kind == FLIGHTREC_CRASH_PANIC;
}

/* Returns the time of the crash. If it is not known, returns the newest time in the ring. */
static uint64_t crash_ns(const struct rescue *x)
{
	const uint64_t newest = FR_MAX(x->adopted.drained_ns, x->adopted.last_ns);

	return has_panicked(x) ? FR_MAX(newest, x->record.r.monotonic_ns) : FR_MAX(newest, (uint64_t)1);
}

static void describe_cause(struct rescue *x)
{
	struct fr_cause *c = &x->result->cause;

	*c = (struct fr_cause){.source = "crash-memory", .time_ns = crash_ns(x), .cpu = -1};
	snprintf(c->trigger, sizeof(c->trigger), "%s",
		x->other_boot ? FR_RESCUE_TRIGGER : FR_RESCUE_TRIGGER_KILLED);
	if (!x->other_boot) {
		snprintf(c->reason, sizeof(c->reason), "the recorder ended without a last dump");
	} else if (!x->has_record) {
		snprintf(c->reason, sizeof(c->reason), "reset or power loss");
		snprintf(c->detail, sizeof(c->detail), "the kernel has left no crash record");
	} else {
		/* The machine may have gone on after an oops. */
		const bool is_reason = has_panicked(x);

		snprintf(c->reason, sizeof(c->reason), "%.*s", TEXT_MAX,
			is_reason ? x->record.r.reason : "reset or power loss after an oops");
		snprintf(c->detail, sizeof(c->detail), "%.*s", TEXT_MAX, is_reason ? "" : x->record.r.reason);
		c->pid = x->record.r.pid;
		c->tid = x->record.r.tid;
		c->cpu = x->record.r.cpu;
		snprintf(c->comm, sizeof(c->comm), "%s", x->record.r.comm);
	}
}

/* Adds how much is missing before the crash. Without the time of the crash, it is at most the time between
   two rounds. */
static void add_missing(const struct rescue *x, cJSON *crash)
{
	const uint64_t until = x->adopted.drained_ns;

	if (until) {
		fr_json_add_u64(crash, "recorded_until_ns", until);
		fr_json_add_time(crash, "recorded_until", fr_clock_to_realtime(&x->state.clock, until));
	}
	if (has_panicked(x) && until)
		cJSON_AddNumberToObject(crash, "missing_seconds",
			crash_ns(x) > until ? (double)(crash_ns(x) - until) / 1e9 : 0);
	else
		cJSON_AddNumberToObject(
			crash, "missing_seconds_about", (double)(x->state.period_ns + IN_FLIGHT_NS) / 1e9);
	cJSON_AddBoolToObject(crash, "names_are_whole", x->has_whole_model);
	cJSON_AddStringToObject(crash, "memory", x->config->path);
}

static int make_meta(struct rescue *x)
{
	uint64_t lost[_FR_LOSS_MAX];
	cJSON *asked;

	describe_cause(x);
	x->meta = fr_cause_new_meta(&x->result->cause, (uid_t)-1, x->state.boot_id, &x->state.clock);
	if (!x->meta)
		return -ENOMEM;
	memcpy(lost, x->state.lost, sizeof(lost));
	lost[FR_LOSS_MACHINE_CRASH] += x->other_boot;
	fr_losses_add_sums_json(lost, x->state.gap_ns, x->meta);
	asked = cJSON_AddObjectToObject(x->meta, "asked");
	fr_json_add_u64(asked, "from_ns", 0);
	fr_json_add_u64(asked, "to_ns", x->result->cause.time_ns);
	return 0;
}

/* Adds the object "crash". The model has been read. */
static int add_crash(struct rescue *x)
{
	cJSON *crash = x->has_record ? fr_crash_record_to_json(&x->record) : cJSON_CreateObject();

	if (!cJSON_AddItemToObject(x->meta, "crash", crash)) {
		cJSON_Delete(crash);
		return -ENOMEM;
	}
	add_missing(x, crash);
	return 0;
}

/* A function of the type fr_dump_model. */
static int model(void *ctx, uint64_t low_watermark_ns, uint64_t time_ns, struct fr_buf *ret_state,
	struct fr_buf *ret_since)
{
	struct rescue *x = ctx;
	const struct fr_event_desc *sideband = &x->state.session.events[x->state.session.n_events - 1];
	int r = sideband->n_ids == 0
			? -ENOENT
			: fr_rescue_model(x->memory, fr_history_oldest_seq(x->history), low_watermark_ns,
				  time_ns, sideband->ids[0], ret_state, ret_since, &x->has_whole_model);

	/* Without a model, the samples are readable, but processes that began before the ring have no
	   names. */
	if (r == -ENOENT)
		r = 0;
	return r < 0 ? r : add_crash(x);
}

/* Returns the wall time in the name of the dump. */
static uint64_t name_ns(const struct rescue *x)
{
	const uint64_t wall_ns = fr_clock_to_realtime(&x->state.clock, x->result->cause.time_ns);

	return wall_ns / FR_NSEC_PER_USEC * FR_NSEC_PER_USEC;
}

static void make_room(void *ctx, uint64_t bytes)
{
	struct rescue *x = ctx;

	(void)fr_vacuum(x->config->dirfd, x->config->limits, bytes, name_ns(x), &x->result->vacuum, NULL);
}

static bool has_overwritable(const struct fr_session *s)
{
	for (size_t i = 0; i < s->n_events; i++)
		if (s->events[i].attr.write_backward)
			return true;
	return false;
}

static int write_dump(struct rescue *x, struct fr_diag *d)
{
	_cleanup_(fr_job_samples_deinit) struct fr_job_samples samples = {0};
	int r = fr_job_samples_init(&samples, x->meta);
	const struct fr_dump_params params = {
		.dirfd = x->config->dirfd,
		.session = &x->state.session,
		.clock = x->state.clock,
		.trigger_ns = x->result->cause.time_ns,
		.to_ns = UINT64_MAX,
		.compress = x->config->compress,
		.level = x->config->level,
		.section_max = fr_history_section_max(x->history),
		.trigger_samples = samples.v,
		.n_trigger_samples = samples.n,
		.no_rounds = has_overwritable(&x->state.session),
		.other_boot = x->other_boot,
		.boot_id = x->state.boot_id,
		.kernel_build_ids = x->other_boot ? &x->symbols.build_ids : NULL,
		.model = model,
		.make_room = make_room,
		.ctx = x,
		.writer = x->config->writer,
		.gid = x->config->gid,
	};

	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot make the trigger sample of the dump");
	r = fr_dump_write(&x->snapshots, &params, x->meta, &x->result->dump, d);
	if (r < 0)
		return r;
	if (x->other_boot)
		x->result->symbols_error = fr_rescue_symbols_write(
			x->config->dirfd, x->result->dump.name, x->config->gid, &x->symbols);
	(void)fr_vacuum(x->config->dirfd, x->config->limits, 0, name_ns(x), &x->result->vacuum, NULL);
	return 0;
}

int fr_rescue(struct fr_crashmem *m, const struct fr_rescue_config *config, struct fr_rescued *ret,
	struct fr_diag *d)
{
	_cleanup_(rescue_deinit) struct rescue x = {
		.config = config,
		.memory = m,
		.other_boot = strcmp(fr_crashmem_boot_id(m), config->boot_id) != 0,
		.result = ret,
	};
	int r = read_state(&x, d);

	if (r == 0)
		r = read_ring(&x, d);
	if (r == 0) {
		r = fr_rescue_symbols_read(m, &x.symbols);
		r = r == -ENOMEM ? r : 0;
	}
	if (r == 0) {
		read_record(&x);
		r = make_meta(&x);
	}
	if (r == 0)
		r = write_dump(&x, d);
	if (r < 0 && !d->code)
		fr_fail_errno(d, r, NULL, "cannot make a dump of %s", config->path);
	return r;
}

void fr_rescued_deinit(struct fr_rescued *r)
{
	fr_vacuum_report_deinit(&r->vacuum);
}
