/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The numbers of the agent for a collector. */

#include "agent/agent.h"
#include "base/buf.h"

/* Appends the text to RET, which is empty. AGENT is a struct fr_agent. Returns 0 or a negative errno. Does
   not wait: a function of metrics/http.h. */
int agent_metrics(void *agent, struct fr_buf *ret);
