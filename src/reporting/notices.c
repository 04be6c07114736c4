// SPDX-License-Identifier: GPL-2.0-or-later
/* Makes the notices of `status`: texts about what is not as configured, or not as good as it can be, while
   the recorder goes on. */
#include "base/json.h"
#include "reporting/view.h"

#include <string.h>

static void add_refused(const struct fr_diag *refused, cJSON *status, cJSON *notices)
{
	cJSON *o;

	if (!refused->code)
		return;
	o = cJSON_AddObjectToObject(status, "config_error");
	cJSON_AddStringToObject(o, "what", refused->what);
	cJSON_AddStringToObject(o, "hint", refused->hint);
	fr_json_add_line(notices,
		"the configuration cannot be used, the previous one is in force: %s%s%s; correct it, then "
		"`flightrecctl reload`",
		refused->what, refused->hint[0] ? ": " : "", refused->hint);
}

static void add_sideband(const struct fr_tracker_stats *s, cJSON *notices)
{
	if (s->is_late)
		fr_json_add_line(notices,
			"the processes of this machine are still being read: some have no names yet");
	if (s->kernel_is_hidden)
		fr_json_add_line(notices,
			"the kernel's addresses are hidden, its functions will have no names: CAP_SYSLOG, or "
			"kernel.kptr_restrict=0");
	if (s->processes_are_hidden)
		fr_json_add_line(notices,
			"/proc hides processes (hidepid=): those that ran before the recorder have no names: "
			"CAP_SYS_PTRACE, or the group of its option gid=");
	if (s->maps_hidden)
		fr_json_add_line(notices,
			"the maps of %llu processes cannot be read, their functions have no names: "
			"CAP_SYS_PTRACE",
			(unsigned long long)s->maps_hidden);
	if (s->compaction_errno)
		fr_json_add_line(notices, "perf.data.auxiliary grows, because it cannot be compacted: %s",
			strerror(s->compaction_errno));
}

void fr_status_add_notices(const struct fr_view *v, cJSON *status)
{
	cJSON *notices = cJSON_AddArrayToObject(status, "notices");

	add_refused(v->refused, status, notices);
	if (v->ring_kept->code)
		fr_json_add_line(notices, "RingSize= is not what was asked for: %s%s%s", v->ring_kept->what,
			v->ring_kept->hint[0] ? ": " : "", v->ring_kept->hint);
	if (v->no_memory->code)
		fr_json_add_line(notices, "RingMemory= is not used, the ring is in ordinary memory: %s%s%s",
			v->no_memory->what, v->no_memory->hint[0] ? ": " : "", v->no_memory->hint);
	if (v->tail.checkpoints_failed || v->tail.sections_lost)
		fr_json_add_line(notices,
			"the processes of this machine do not fit into RingMemory=: after a crash, some have "
			"no names; give a larger memory");
	add_sideband(&v->sideband, notices);
	if (v->handover->refused[0])
		fr_json_add_line(
			notices, "the history of the previous instance is lost: %s", v->handover->refused);
	if (v->no_collector->code)
		fr_json_add_line(notices, "no copies of object files are kept: %s (%s)",
			v->no_collector->what, v->no_collector->hint);
	if (v->no_unwinder.code)
		fr_json_add_line(notices, "%s%s%s", v->no_unwinder.what, v->no_unwinder.hint[0] ? ": " : "",
			v->no_unwinder.hint);
	for (size_t i = 0; i < FR_VIEW_NOTICES; i++)
		if (v->notices[i])
			cJSON_AddItemToArray(notices, cJSON_CreateString(v->notices[i]));
}
