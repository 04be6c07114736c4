// SPDX-License-Identifier: GPL-2.0-or-later
#include "source/bpf_event.h"
#include "base/cleanup.h"
#include "base/utf8.h"

#include <errno.h>
#include <limits.h>
#include <linux/types.h>
#include <string.h>

#include <flightrec/trigger.bpf.h>

static void make_printable(char *text, size_t size)
{
	text[size - 1] = '\0';
	fr_utf8_sanitize(text);
}

int fr_bpf_event_parse(const void *data, size_t n, uint64_t now_ns, struct flightrec_event *ret)
{
	/* An event may be longer than RET: a later version of the ABI's header appends members. */
	if (n < sizeof(*ret))
		return -EBADMSG;
	memcpy(ret, data, sizeof(*ret));
	if (ret->abi != FLIGHTREC_TRIGGER_ABI || ret->size < sizeof(*ret) || ret->size > n)
		return -EBADMSG;
	make_printable(ret->comm, sizeof(ret->comm));
	make_printable(ret->reason, sizeof(ret->reason));
	make_printable(ret->detail, sizeof(ret->detail));
	if (!ret->time_ns || ret->time_ns > now_ns)
		ret->time_ns = now_ns;
	if (ret->unit > FLIGHTREC_UNIT_PERCENT)
		ret->unit = FLIGHTREC_UNIT_NONE;
	if (ret->pid > INT_MAX || ret->tid > INT_MAX)
		ret->pid = ret->tid = 0;
	return 0;
}

void fr_bpf_event_to_cause(const struct flightrec_event *e, struct fr_cause *ret)
{
	_Static_assert(sizeof(ret->reason) >= sizeof(e->reason) && sizeof(ret->detail) >= sizeof(e->detail) &&
			       sizeof(ret->comm) >= sizeof(e->comm),
		"strings fit");
	*ret = (struct fr_cause){
		.time_ns = e->time_ns,
		.value = e->value,
		.threshold = e->threshold,
		.unit = (enum fr_unit_of_cause)e->unit,
		.pid = (pid_t)e->pid,
		.tid = (pid_t)e->tid,
		.cpu = e->cpu > INT_MAX ? -1 : (int)e->cpu,
	};
	memcpy(ret->comm, e->comm, sizeof(e->comm));
	memcpy(ret->reason, e->reason, sizeof(e->reason));
	memcpy(ret->detail, e->detail, sizeof(e->detail));
}
