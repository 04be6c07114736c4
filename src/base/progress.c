// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/progress.h"
#include "base/clock.h"

#include <stdbool.h>
#include <stdio.h>

#define BAR 40

static bool bar_is_there;

void fr_progress_draw(void *ctx, uint64_t done, uint64_t total)
{
	static uint64_t last_ns;
	uint64_t now = fr_monotonic_ns();
	unsigned percent = total ? (unsigned)((double)done * 100 / (double)total) : 100;
	char bar[BAR + 1];

	if (bar_is_there && now - last_ns < 100 * FR_NSEC_PER_MSEC && done < total)
		return;
	last_ns = now;
	for (unsigned i = 0; i < BAR; i++)
		bar[i] = i < percent * BAR / 100 ? '#' : '.';
	bar[BAR] = '\0';
	fprintf(stderr, "\r[%s] %3u%%", bar, percent);
	fflush(stderr);
	bar_is_there = true;
}

void fr_progress_end(void)
{
	if (bar_is_there)
		fprintf(stderr, "\r%*s\r", BAR + 8, "");
	bar_is_there = false;
}
