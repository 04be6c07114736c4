// SPDX-License-Identifier: GPL-2.0-or-later
#include "source/bpf_event.h"
#include "base/cleanup.h"
#include "base/utf8.h"

#include <errno.h>
#include <limits.h>
#include <linux/types.h>
#include <string.h>

#include <flightrec/trigger.bpf.h>

static void copy_text(char *ret, const char *text, size_t size)
{
	memcpy(ret, text, size);
	ret[size - 1] = '\0';
	fr_utf8_sanitize(ret);
}

int fr_bpf_event_parse(
	const void *data, size_t n, uint64_t now_ns, struct fr_cause *ret, uint64_t *ret_cgroup_id)
{
	struct flightrec_event e;

	_Static_assert(sizeof(ret->reason) >= sizeof(e.reason) && sizeof(ret->detail) >= sizeof(e.detail) &&
			       sizeof(ret->comm) >= sizeof(e.comm),
		"strings fit");
	/* An event of a later version of the ABI's header has more members at the end, which are ignored
	   here. */
	if (n < sizeof(e))
		return -EBADMSG;
	memcpy(&e, data, sizeof(e));
	if (e.abi != FLIGHTREC_TRIGGER_ABI || e.size < sizeof(e) || e.size > n)
		return -EBADMSG;
	if (e.pid > INT_MAX || e.tid > INT_MAX)
		e.pid = e.tid = 0;
	*ret = (struct fr_cause){
		.time_ns = !e.time_ns || e.time_ns > now_ns ? now_ns : e.time_ns,
		.value = e.value,
		.threshold = e.threshold,
		.unit = e.unit > FLIGHTREC_UNIT_PERCENT ? FR_CAUSE_NONE : (enum fr_unit_of_cause)e.unit,
		.pid = (pid_t)e.pid,
		.tid = (pid_t)e.tid,
		.cpu = e.cpu > INT_MAX ? -1 : (int)e.cpu,
	};
	copy_text(ret->comm, e.comm, sizeof(e.comm));
	copy_text(ret->reason, e.reason, sizeof(e.reason));
	copy_text(ret->detail, e.detail, sizeof(e.detail));
	*ret_cgroup_id = e.cgroup_id;
	return 0;
}
