// SPDX-License-Identifier: GPL-2.0-or-later
#include "agent/job.h"
#include "base/clock.h"
#include "fleet/clock.h"

#include <stdio.h>
#include <string.h>

#define PAUSE_MIN_NS FR_NSEC_PER_SEC
#define PAUSE_MAX_NS (60 * FR_NSEC_PER_SEC)

const char *fr_job_phase_name(enum fr_job_phase phase)
{
	static const char *const names[FR_JOB_PHASES] = {
		[FR_JOB_CHECK] = "check",
		[FR_JOB_DUMP] = "dump",
		[FR_JOB_UPLOAD] = "upload",
		[FR_JOB_INDEX] = "index",
		[FR_JOB_STORED] = "stored",
		[FR_JOB_RELEASE] = "release",
		[FR_JOB_END] = "end",
	};

	return phase < FR_JOB_PHASES ? names[phase] : "unknown";
}

void fr_job_answer(struct fr_job *j, enum fr_fleet_state state, const char *why)
{
	j->answer.state = state;
	snprintf(j->answer.why, sizeof(j->answer.why), "%s", why);
	j->answer_version++;
}

void fr_job_set_window(struct fr_job *j)
{
	const struct fr_fleet_command *c = &j->command;
	uint64_t from_ns = c->from_ns, to_ns = c->to_ns;

	if (!from_ns) {
		from_ns = c->last_ns && c->last_ns < j->stored_ns ? j->stored_ns - c->last_ns : 0;
		to_ns = c->post_ns < UINT64_MAX - j->stored_ns ? j->stored_ns + c->post_ns : UINT64_MAX;
	}
	j->from_ns = from_ns ? fr_fleet_clock_to_monotonic(&j->clock, from_ns) : 0;
	j->to_ns = fr_fleet_clock_to_monotonic(&j->clock, to_ns);
	/* 0 would mean "up to now". */
	if (!j->to_ns)
		j->to_ns = 1;
}

uint64_t fr_job_pause(struct fr_job *j, uint32_t random)
{
	const uint64_t pause_ns = j->pause_ns ? j->pause_ns : PAUSE_MIN_NS;

	j->pause_ns = 2 * pause_ns < PAUSE_MAX_NS ? 2 * pause_ns : PAUSE_MAX_NS;
	return pause_ns + (pause_ns / 4) * (random % 1024) / 1024;
}
