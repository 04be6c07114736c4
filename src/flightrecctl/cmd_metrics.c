// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecctl/ctl.h"
#include "control/interface.h"

#include <stdio.h>

/* Prints the text as it is, because a program reads it. */
static void print_text(const cJSON *reply)
{
	fputs(ctl_string(reply, "text"), stdout);
}

static int run(void)
{
	return ctl_call_and_print(FR_METHOD(Metrics), NULL, "", print_text);
}

CTL_VERB(metrics, CTL_RECORDER, "metrics", NULL,
	"the numbers of status in the format of OpenMetrics, for a collector", .run = run);
