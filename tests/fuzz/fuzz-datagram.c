// SPDX-License-Identifier: GPL-2.0-or-later

/* What applications send: whatever it is, what is taken of it is text, and is taken again as it is. */

#include "base/utf8.h"
#include "source/datagram.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void is_text(const char *s, size_t size)
{
	const uint8_t *p = (const uint8_t *)s, *end = memchr(s, '\0', size);
	size_t n;

	if (!end)
		abort();
	for (; p < end; p += n) {
		n = fr_utf8_sequence(p, (size_t)(end - p));
		if (n == 0 || *p < ' ' || *p == 0x7f || (*p == 0xc2 && p[1] < 0xa0))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const units[] = {
		"", "UNIT=ns\n", "UNIT=count\n", "UNIT=bytes\n", "UNIT=percent\n"};
	struct fr_datagram d, again;
	char text[512];
	int n;

	if (fr_datagram_parse(data, size, &d) < 0)
		return 0;
	is_text(d.trigger, sizeof(d.trigger));
	is_text(d.reason, sizeof(d.reason));
	if (d.tid < 0 || (unsigned)d.unit >= sizeof(units) / sizeof(units[0]))
		abort();
	n = snprintf(text, sizeof(text),
		"TRIGGER=%s\nREASON=%s\nVALUE=%" PRIu64 "\nTHRESHOLD=%" PRIu64 "\n%sTIME=%" PRIu64 "\nTID=%d",
		d.trigger, d.reason, d.value, d.threshold, units[d.unit], d.time_ns, (int)d.tid);
	if (n < 0 || (size_t)n >= sizeof(text) || fr_datagram_parse(text, (size_t)n, &again) < 0)
		abort();
	if (strcmp(d.trigger, again.trigger) != 0 || strcmp(d.reason, again.reason) != 0 ||
		d.value != again.value || d.threshold != again.threshold || d.unit != again.unit ||
		d.time_ns != again.time_ns || d.tid != again.tid)
		abort();
	return 0;
}
