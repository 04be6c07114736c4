// SPDX-License-Identifier: GPL-2.0-or-later

/* Uses the input as the datagram of an application. If the datagram can be parsed, its strings are printable
   text. A datagram that is made from its fields parses to the same fields. */

#include "fuzz.h"
#include "source/datagram.h"

#include <inttypes.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const units[] = {
		"", "UNIT=ns\n", "UNIT=count\n", "UNIT=bytes\n", "UNIT=percent\n"};
	struct fr_datagram d, again;
	char text[512];
	int n;

	if (fr_datagram_parse(data, size, &d) < 0)
		return 0;
	check_text(d.trigger, sizeof(d.trigger));
	check_text(d.reason, sizeof(d.reason));
	check(d.tid >= 0 && (unsigned)d.unit < sizeof(units) / sizeof(units[0]));
	n = snprintf(text, sizeof(text),
		"TRIGGER=%s\nREASON=%s\nVALUE=%" PRIu64 "\nTHRESHOLD=%" PRIu64 "\n%sTIME=%" PRIu64 "\nTID=%d",
		d.trigger, d.reason, d.value, d.threshold, units[d.unit], d.time_ns, (int)d.tid);
	check(n > 0 && (size_t)n < sizeof(text) && fr_datagram_parse(text, (size_t)n, &again) >= 0);
	check(strcmp(d.trigger, again.trigger) == 0 && strcmp(d.reason, again.reason) == 0 &&
		d.value == again.value && d.threshold == again.threshold && d.unit == again.unit &&
		d.time_ns == again.time_ns && d.tid == again.tid);
	return 0;
}
