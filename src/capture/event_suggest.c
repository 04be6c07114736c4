// SPDX-License-Identifier: GPL-2.0-or-later
/* Suggests names of events that are similar to a wrong name. */
#include "capture/event_internal.h"
#include "base/cleanup.h"
#include "base/nearest.h"

#include <stdio.h>
#include <string.h>

#define SUGGESTIONS 5
#define NAME_MAX_LEN 128

struct search {
	const char *wanted;
	unsigned limit;
	struct {
		char name[NAME_MAX_LEN];
		unsigned distance;
	} best[SUGGESTIONS];
	size_t n;
};

/* Adds NAME to the best names if the parameter `compared` (NAME or a part of NAME) is similar to the wanted
   name. */
static void consider(struct search *s, const char *name, const char *compared)
{
	unsigned distance = fr_edit_distance(s->wanted, compared, s->limit);
	size_t at;

	if (distance > s->limit || strlen(name) >= NAME_MAX_LEN)
		return;
	for (at = 0; at < s->n; at++)
		if (!strcmp(s->best[at].name, name))
			return;
	for (at = s->n; at > 0 && s->best[at - 1].distance > distance; at--)
		if (at < SUGGESTIONS)
			s->best[at] = s->best[at - 1];
	if (at == SUGGESTIONS)
		return;
	snprintf(s->best[at].name, sizeof(s->best[at].name), "%s", name);
	s->best[at].distance = distance;
	s->n = FR_MIN(s->n + 1, (size_t)SUGGESTIONS);
}

static void consider_name(void *ctx, const char *name)
{
	consider(ctx, name, name);
}

static int consider_pmu(void *ctx, const char *pmu, const char *event)
{
	struct search *s = ctx;
	char name[2 * NAME_MAX_LEN];

	snprintf(name, sizeof(name), "%s/%s/", pmu, event ? event : "");
	consider(s, name, event ? event : pmu);
	if (event)
		consider(s, name, name);
	return 0;
}

static int consider_tracepoint(void *ctx, const char *system, const char *event, uint64_t id)
{
	struct search *s = ctx;
	char name[2 * NAME_MAX_LEN];

	(void)id;
	snprintf(name, sizeof(name), "%s:%s", system, event);
	consider(s, name, name);
	/* It is possible that the wanted name has no system, or a wrong system. */
	if (!strchr(s->wanted, ':'))
		consider(s, name, event);
	else if (!strcmp(strchr(s->wanted, ':') + 1, event) && *event)
		consider(s, name, s->wanted);
	return 0;
}

void fr_event_suggest(const struct fr_event_env *env, const char *name, char *ret, size_t size)
{
	unsigned name_len = strnlen(name, NAME_MAX_LEN);
	struct search s = {.wanted = name, .limit = name_len < 4 ? 1 : FR_MAX(2u, name_len / 4)};
	size_t len;

	fr_event_names_foreach(consider_name, &s);
	fr_pmu_foreach(env, consider_pmu, &s);
	fr_tracepoint_match(env, "*", "*", consider_tracepoint, &s, NULL);

	ret[0] = 0;
	len = 0;
	for (size_t i = 0; i < s.n && len < size; i++)
		len += snprintf(ret + len, size - len, "%s%s",
			i == 0	       ? "did you mean "
			: i + 1 == s.n ? " or "
				       : ", ",
			s.best[i].name);
	if (s.n && len < size)
		snprintf(ret + len, size - len, "?");
}
