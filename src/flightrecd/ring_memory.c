// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/ring_memory.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/units.h"
#include "config/memory.h"
#include "crashmem/crashmem.h"
#include "rescue/rescue.h"
#include "rescue/symbols.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static void log_rescued(struct fr_daemon *m, const struct fr_rescued *r)
{
	char bytes[FR_UNIT_SIZE];
	const struct fr_log_field fields[] = {
		{"FLIGHTREC_FILE", r->dump.name},
		{"FLIGHTREC_TRIGGER", r->cause.trigger},
		{"FLIGHTREC_REASON", r->cause.reason},
	};

	fr_log_struct(LOG_NOTICE, FR_MSG_RESCUED, fields, FR_ARRAY_SIZE(fields),
		"wrote %s/%s of %s, %llu samples, from the ring that %s: %s", m->config->directory,
		r->dump.name, fr_size_format(r->dump.bytes, bytes), (unsigned long long)r->dump.samples,
		strcmp(r->cause.trigger, FR_RESCUE_TRIGGER) == 0 ? "has survived a crash of the machine"
								 : "a killed recorder has left",
		r->cause.reason);
	if (r->symbols_error < 0)
		fr_log(LOG_WARNING, "the symbols of the kernel of %s could not be written: %s", r->dump.name,
			strerror(-r->symbols_error));
}

/* Logs the dump, and counts it for fr_daemon_count_rescued(). */
static void take_rescued(struct fr_daemon *m, const struct fr_rescued *r)
{
	char bytes[FR_UNIT_SIZE];

	log_rescued(m, r);
	m->rescued.dumps_done++;
	m->rescued.dumps_removed += r->vacuum.n_removed;
	m->rescued.dumps_not_durable += r->dump.not_durable != 0;
	if (r->vacuum.n_removed)
		fr_log(LOG_INFO, "removed %zu dumps, %s, from %s on", r->vacuum.n_removed,
			fr_size_format(r->vacuum.freed_bytes, bytes), r->vacuum.removed[0]);
}

void fr_daemon_count_rescued(struct fr_daemon *m)
{
	m->counters.dumps_done += m->rescued.dumps_done;
	m->counters.dumps_removed += m->rescued.dumps_removed;
	m->counters.dumps_not_durable += m->rescued.dumps_not_durable;
	m->rescued = (struct fr_counters){0};
}

/* Makes a dump of what is in MEMORY. Returns 0, or 1 if nothing in it can be read: MEMORY can be used again.
   Returns a negative errno if the dump could not be written, with a message in D. */
static int rescue(struct fr_daemon *m, struct fr_crashmem *memory, const char *path, struct fr_diag *d)
{
	const struct fr_rescue_config config = {
		.dirfd = m->dirfd,
		.gid = m->gid,
		.limits = &m->config->retention,
		.boot_id = m->boot_id,
		.path = path,
		.compress = m->config->dump_compress,
		.level = m->config->compression_level,
		.writer = {.block_bytes = m->config->block_bytes, .depth = m->config->queue_depth},
	};
	_cleanup_(fr_rescued_deinit) struct fr_rescued rescued = {0};
	int r = fr_rescue(memory, &config, &rescued, d);

	if (r == 0)
		take_rescued(m, &rescued);
	if (r > 0 && d->code)
		fr_log(LOG_WARNING, "the history of a crash is lost: %s", d->what);
	if (r >= 0)
		*d = (struct fr_diag){0};
	return r;
}

/* The previous instance of this service had its ring in a memory that the configuration no longer names. */
static void rescue_previous(struct fr_daemon *m)
{
	_cleanup_crashmem_ struct fr_crashmem *memory = NULL;
	const char *path = m->handover.state.memory;
	struct fr_diag d = {0};
	int r;

	if (!m->handover.in_memory || strcmp(path, m->config->ring_memory) == 0)
		return;
	r = fr_crashmem_open(path, 0, &memory, &d);
	if (r == 0 && fr_crashmem_look(memory, m->boot_id) != FR_CRASHMEM_SAME_BOOT)
		r = fr_fail(&d, -EBADMSG, NULL, "its memory %s has another content now", path);
	else if (r == 0)
		r = rescue(m, memory, path, &d);
	if (r < 0) {
		fr_handover_refuse(&m->handover, d.what);
		return;
	}
	fr_crashmem_close(memory);
	m->handover.in_memory = false;
}

/* Returns whether MEMORY has the ring of the previous instance of this service, and not that of another
   recorder that has used the same memory since. */
static bool has_ring_of_previous(const struct fr_daemon *m, const struct fr_crashmem *memory)
{
	_cleanup_(fr_state_deinit) struct fr_state state = {0};

	return m->handover.in_memory && fr_handover_read_memory(memory, &state) == 0 &&
	       state.first_started_ns == m->handover.state.first_started_ns;
}

/* Returns 0 if MEMORY can be used: it has the ring of the previous instance, or it is formatted. */
static int prepare(struct fr_daemon *m, struct fr_crashmem *memory, fr_progress progress, struct fr_diag *d)
{
	const enum fr_crashmem_content content = fr_crashmem_look(memory, m->boot_id);
	struct fr_diag why = {0};

	if (content == FR_CRASHMEM_SAME_BOOT && has_ring_of_previous(m, memory))
		return 0;
	if (content == FR_CRASHMEM_DAMAGED)
		fr_log(LOG_WARNING,
			"%s has the ring of another version, or is damaged, and is formatted again",
			m->config->ring_memory);
	if (content == FR_CRASHMEM_SAME_BOOT || content == FR_CRASHMEM_OTHER_BOOT) {
		progress(m, "writes the ring that survived a crash to a dump");
		if (rescue(m, memory, m->config->ring_memory, &why) < 0)
			return fr_fail(d, why.code, "make room or correct the cause, then restart flightrecd",
				"%s still has the samples from before the crash, because their dump "
				"cannot be written: %s",
				m->config->ring_memory, why.what);
	}
	/* A closed memory has no history that could be lost: it is in a dump. */
	if (m->handover.in_memory && content != FR_CRASHMEM_CLOSED)
		fr_handover_refuse(&m->handover, "its memory has another content now");
	m->handover.in_memory = false;
	fr_crashmem_format(memory, m->boot_id);
	return 0;
}

/* A file on tmpfs that does not exist yet takes memory of the machine, as a memfd does. */
static int check_memory(const struct fr_config *c, struct fr_diag *d)
{
	if (access(c->ring_memory, F_OK) == 0)
		return 0;
	return fr_memory_check_ring_here(0, 0, c->ring_bytes, c->ring_origin, d);
}

static void store_symbols(struct fr_daemon *m)
{
	struct fr_diag d = {0};

	if (fr_rescue_symbols_store(m->memory, NULL, &d) != FR_RESCUE_STORED_ALL)
		fr_log_diag(LOG_NOTICE, &d, d.code);
}

void fr_daemon_modules_changed(struct fr_daemon *m)
{
	/* If it fails, the older symbols stay. What cannot be stored was logged at the start. */
	if (m->memory)
		(void)fr_rescue_symbols_store(m->memory, NULL, NULL);
}

static int open_memory(struct fr_daemon *m, fr_progress progress, struct fr_crashmem **ret, struct fr_diag *d)
{
	_cleanup_crashmem_ struct fr_crashmem *memory = NULL;
	int r = check_memory(m->config, d);

	if (r == 0)
		r = fr_crashmem_open(m->config->ring_memory, m->config->ring_bytes, &memory, d);
	if (r == 0)
		r = prepare(m, memory, progress, d);
	if (r < 0)
		return d->code ? r : fr_fail_errno(d, r, NULL, "cannot use %s", m->config->ring_memory);
	*ret = TAKE_PTR(memory);
	return 0;
}

void fr_daemon_open_memory(struct fr_daemon *m, fr_progress progress)
{
	struct fr_diag why = {0};

	m->no_memory = (struct fr_diag){0};
	rescue_previous(m);
	if (!*m->config->ring_memory)
		return;
	progress(m, "opens the memory of the ring");
	if (open_memory(m, progress, &m->memory, &why) < 0) {
		if (m->handover.in_memory)
			fr_handover_refuse(&m->handover, why.what);
		m->no_memory = why;
		fr_log_struct(LOG_WARNING, FR_MSG_DEGRADED, NULL, 0,
			"RingMemory= is not used, the ring is in ordinary memory: %s%s%s", why.what,
			why.hint[0] ? "\n  " : "", why.hint);
		return;
	}
	fr_handover_use_memory(&m->handover, m->memory);
	progress(m, "stores the symbols of the kernel");
	store_symbols(m);
}

struct fr_history_memory fr_daemon_ring_memory(const struct fr_daemon *m)
{
	struct fr_history_memory ret = {0};

	if (!m->memory)
		return ret;
	ret.at = fr_crashmem_area(m->memory, FLIGHTREC_CRASHMEM_AREA_RING, &ret.bytes);
	ret.write_back = fr_crashmem_write_back;
	return ret;
}

int fr_daemon_open_tail(struct fr_daemon *m, struct fr_diag *d)
{
	int r = -EBADMSG;

	if (!m->memory)
		return 0;
	if (m->handover.adopted && m->handover.history.in_place)
		r = fr_tail_adopt(m->memory, fr_history_oldest_seq(m->rings.ring[0]) - 1, &m->tail);
	if (r == -EBADMSG)
		r = fr_tail_new(m->memory, &m->tail);
	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot keep the processes in %s", m->config->ring_memory)
		     : 0;
}

void fr_daemon_begin_memory(struct fr_daemon *m)
{
	if (m->memory)
		fr_crashmem_begin(m->memory);
}

void fr_daemon_end_memory(struct fr_daemon *m)
{
	const bool continues = m->stop == FR_STOP_CLEAN && m->handover.on;

	if (m->memory && !continues)
		fr_crashmem_close(m->memory);
}

void fr_daemon_close_memory(struct fr_daemon *m)
{
	m->tail = fr_tail_free(m->tail);
	m->memory = fr_crashmem_free(m->memory);
}
