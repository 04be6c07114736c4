// SPDX-License-Identifier: GPL-2.0-or-later
#include "source/config.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "source/cause.h"

#include <errno.h>
#include <string.h>

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_set(char *const *a, char *const *b)
{
	for (; a && b && *a && *b; a++, b++)
		if (strcmp(*a, *b) != 0)
			return false;
	return (!a || !*a) && (!b || !*b);
}

bool fr_trigger_config_same_source(const struct fr_trigger_config *a, const struct fr_trigger_config *b)
{
	return a->kind == b->kind && same_text(a->name, b->name) && same_text(a->subject, b->subject) &&
	       a->every_ns == b->every_ns && same_text(a->threshold, b->threshold) &&
	       a->interval_ns == b->interval_ns && same_text(a->filter, b->filter) &&
	       same_text(a->syscalls, b->syscalls) && same_text(a->comm, b->comm) &&
	       same_text(a->cgroup, b->cgroup) && a->pid == b->pid && same_set(a->set, b->set) &&
	       FR_MIN(a->cooldown_ns, FR_SOURCE_COOLDOWN_MAX_NS) ==
		       FR_MIN(b->cooldown_ns, FR_SOURCE_COOLDOWN_MAX_NS);
}

static int copy_text(char **ret, const char *text)
{
	*ret = text ? strdup(text) : NULL;
	return text && !*ret ? -ENOMEM : 0;
}

static int copy_set(char ***ret, char *const *set)
{
	size_t n = 0;

	*ret = NULL;
	if (!set)
		return 0;
	while (set[n])
		n++;
	*ret = calloc(n + 1, sizeof(**ret));
	for (size_t i = 0; *ret && i < n; i++)
		if (copy_text(&(*ret)[i], set[i]) < 0)
			return -ENOMEM;
	return *ret ? 0 : -ENOMEM;
}

int fr_trigger_config_copy(struct fr_trigger_config *ret, const struct fr_trigger_config *c)
{
	int r;

	*ret = *c;
	/* All of them, so that RET has none of C's pointers whatever fails. */
	r = copy_text(&ret->name, c->name);
	r |= copy_text(&ret->origin, c->origin);
	r |= copy_text(&ret->subject, c->subject);
	r |= copy_text(&ret->threshold, c->threshold);
	r |= copy_text(&ret->filter, c->filter);
	r |= copy_text(&ret->syscalls, c->syscalls);
	r |= copy_text(&ret->comm, c->comm);
	r |= copy_text(&ret->cgroup, c->cgroup);
	r |= copy_set(&ret->set, c->set);
	if (!r)
		return 0;
	fr_trigger_config_deinit(ret);
	return -ENOMEM;
}

void fr_trigger_config_deinit(struct fr_trigger_config *c)
{
	free(c->name);
	free(c->origin);
	free(c->subject);
	free(c->threshold);
	free(c->filter);
	free(c->syscalls);
	free(c->comm);
	free(c->cgroup);
	for (char **s = c->set; s && *s; s++)
		free(*s);
	free(c->set);
	*c = (struct fr_trigger_config){0};
}

static int parse_percent(const char *text, uint64_t *ret)
{
	size_t len = strspn(text, "0123456789");
	char number[24];

	if (len == 0 || len >= sizeof(number))
		return -EINVAL;
	memcpy(number, text, len);
	number[len] = '\0';
	text += len;
	text += strspn(text, " \t");
	if (*text == '%')
		text++;
	return *text ? -EINVAL : fr_u64_parse(number, ret);
}

static int parse_any(const char *text, uint64_t *ret)
{
	if (fr_u64_parse(text, ret) == 0)
		return 0;
	return fr_duration_parse(text, ret) == 0 ? 0 : fr_size_parse(text, ret);
}

int fr_threshold_parse(const char *text, int unit, uint64_t *ret)
{
	uint64_t value;
	int r = -EINVAL;

	switch (unit) {
	case FR_CAUSE_NONE:
		r = parse_any(text, &value);
		break;
	case FR_CAUSE_NS:
		r = fr_duration_parse(text, &value);
		break;
	case FR_CAUSE_COUNT:
		r = fr_u64_parse(text, &value);
		break;
	case FR_CAUSE_BYTES:
		r = fr_size_parse(text, &value);
		break;
	case FR_CAUSE_PERCENT:
		r = parse_percent(text, &value);
		break;
	}
	if (r < 0)
		return -EINVAL;
	*ret = value;
	return 0;
}
