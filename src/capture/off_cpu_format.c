// SPDX-License-Identifier: GPL-2.0-or-later
/* The formats by which readers decode the raw data of our events (src/bpf/sleep.h). */
#include "capture/capture.h"
#include "capture/capture_internal.h"
#include "bpf/sleep.h"
#include "perfdata/features.h"
#include "perfdata/tracing_format.h"

#include <stddef.h>

#define SYSTEM "flightrec"
#define COMMON                                                                                               \
	"format:\n"                                                                                          \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                               \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"                               \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"                       \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"                                           \
	"\n"
#define MS(field) "REC->" field " / 1000000, REC->" field " % 1000000"
#define CONTEXTS                                                                                             \
	"{ 0, \"none\" }, { 1, \"task\" }, { 2, \"softirq\" }, { 3, \"hardirq\" }, { 4, \"nmi\" }, { 5, "    \
	"\"unknown\" }"

/* The offsets in a format do not count the size of the raw data, which is before them. */
#define IS_AT(type, member, offset) (offsetof(struct type, member) == (offset) + sizeof(uint32_t))
_Static_assert(IS_AT(fr_sleep_raw, waker_context, 8) && IS_AT(fr_sleep_raw, duration, 12) &&
		       IS_AT(fr_sleep_raw, waker_pid, 36) && IS_AT(fr_sleep_raw, waker_comm, 44) &&
		       IS_AT(fr_sleep_raw, state, 60) && sizeof(struct fr_sleep_raw) == 72,
	"as the format says");
_Static_assert(FR_SLEEP_TRACEPOINT == 65500 && FR_WAKER_TRACEPOINT == 65501 && FR_WAITING_TRACEPOINT == 65502,
	"as the formats say");
_Static_assert(IS_AT(fr_waker_raw, context, 8) && IS_AT(fr_waker_raw, slept, 12) &&
		       IS_AT(fr_waker_raw, woken_pid, 20) && IS_AT(fr_waker_raw, woken_comm, 28) &&
		       sizeof(struct fr_waker_raw) == 48,
	"as the format says");

/* flightrec:offcpu and flightrec:waiting have these fields. */
#define WAIT_FIELDS                                                                                          \
	COMMON                                                                                               \
	"\tfield:unsigned int waker_context;\toffset:8;\tsize:4;\tsigned:0;\n"                               \
	"\tfield:u64 duration;\toffset:12;\tsize:8;\tsigned:0;\n"                                            \
	"\tfield:u64 blocked;\toffset:20;\tsize:8;\tsigned:0;\n"                                             \
	"\tfield:u64 runqueue;\toffset:28;\tsize:8;\tsigned:0;\n"                                            \
	"\tfield:int waker_pid;\toffset:36;\tsize:4;\tsigned:1;\n"                                           \
	"\tfield:int waker_tid;\toffset:40;\tsize:4;\tsigned:1;\n"                                           \
	"\tfield:char waker_comm[16];\toffset:44;\tsize:16;\tsigned:1;\n"                                    \
	"\tfield:char state[8];\toffset:60;\tsize:8;\tsigned:1;\n"                                           \
	"\n"                                                                                                 \
	"print fmt: \"state=%s duration=%llu.%06llums blocked=%llu.%06llums runqueue=%llu.%06llums "         \
	"waker=%s[%d/%d] waker_context=%s\", REC->state, " MS("duration") ", " MS("blocked") ", " MS(        \
		"runqueue") ", REC->waker_comm, REC->waker_pid, REC->waker_tid, "                            \
			    "__print_symbolic(REC->waker_context, " CONTEXTS ")\n"

static const char sleep_format[] = "name: offcpu\nID: 65500\n" WAIT_FIELDS;
static const char waiting_format[] = "name: waiting\nID: 65502\n" WAIT_FIELDS;

static const char waker_format[] =
	"name: waker\nID: 65501\n" COMMON "\tfield:unsigned int context;\toffset:8;\tsize:4;\tsigned:0;\n"
	"\tfield:u64 slept;\toffset:12;\tsize:8;\tsigned:0;\n"
	"\tfield:int woken_pid;\toffset:20;\tsize:4;\tsigned:1;\n"
	"\tfield:int woken_tid;\toffset:24;\tsize:4;\tsigned:1;\n"
	"\tfield:char woken_comm[16];\toffset:28;\tsize:16;\tsigned:1;\n"
	"\n"
	"print fmt: \"woken=%s[%d/%d] slept=%llu.%06llums context=%s\", REC->woken_comm, "
	"REC->woken_pid, REC->woken_tid, " MS("slept") ", __print_symbolic(REC->context, " CONTEXTS ")\n";

int fr_capture_add_formats(const struct fr_capture *c, struct fr_session *s)
{
	struct fr_buf *section = &s->features[FR_FEATURE_TRACING_DATA];
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->n_events; i++)
		switch (c->events[i].off_cpu) {
		case FR_OFF_CPU_SLEEP:
			r = fr_tracing_data_add_format(
				section, SYSTEM, sleep_format, sizeof(sleep_format) - 1);
			if (r == 0)
				r = fr_tracing_data_add_format(
					section, SYSTEM, waiting_format, sizeof(waiting_format) - 1);
			break;
		case FR_OFF_CPU_WAKER:
			r = fr_tracing_data_add_format(
				section, SYSTEM, waker_format, sizeof(waker_format) - 1);
			break;
		case FR_OFF_CPU_NO:
			break;
		}
	return r;
}
