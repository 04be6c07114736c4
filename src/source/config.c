// SPDX-License-Identifier: GPL-2.0-or-later
#include "source/config.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "fleet/labels.h"
#include "source/cause.h"

#include <argz.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define TEXT(member) offsetof(struct fr_trigger_config, member)
/* The members that are strings. fr_trigger_config_same_source() compares all of them, except the first: two
   configurations that differ only in the origin have the same source. */
static const size_t texts[] = {TEXT(origin), TEXT(name), TEXT(subject), TEXT(threshold), TEXT(filter),
	TEXT(syscalls), TEXT(comm), TEXT(cgroup)};

static char **text_at(const struct fr_trigger_config *c, size_t i)
{
	return (char **)((char *)c + texts[i]);
}

static bool is_same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

bool fr_trigger_config_same_source(const struct fr_trigger_config *a, const struct fr_trigger_config *b)
{
	for (size_t i = 1; i < FR_ARRAY_SIZE(texts); i++)
		if (!is_same_text(*text_at(a, i), *text_at(b, i)))
			return false;
	return a->kind == b->kind && a->every_ns == b->every_ns && a->interval_ns == b->interval_ns &&
	       a->pid == b->pid && a->set_len == b->set_len &&
	       (!a->set_len || memcmp(a->set, b->set, a->set_len) == 0) &&
	       FR_MIN(a->cooldown_ns, FR_SOURCE_COOLDOWN_MAX_NS) ==
		       FR_MIN(b->cooldown_ns, FR_SOURCE_COOLDOWN_MAX_NS);
}

static int copy_text(char **ret, const char *text)
{
	*ret = text ? strdup(text) : NULL;
	return text && !*ret ? -ENOMEM : 0;
}

int fr_trigger_config_copy(struct fr_trigger_config *ret, const struct fr_trigger_config *c)
{
	int r = 0;

	*ret = *c;
	/* Copy all strings even after a failure, so that RET has no pointer of C when
	   fr_trigger_config_deinit() frees RET's strings. */
	ret->set = NULL;
	ret->set_len = 0;
	ret->actions = NULL;
	ret->actions_len = 0;
	if (c->set)
		r = argz_append(&ret->set, &ret->set_len, c->set, c->set_len);
	if (c->actions)
		r |= argz_append(&ret->actions, &ret->actions_len, c->actions, c->actions_len);
	for (size_t i = 0; i < FR_ARRAY_SIZE(texts); i++)
		r |= copy_text(text_at(ret, i), *text_at(c, i));
	if (!r)
		return 0;
	fr_trigger_config_deinit(ret);
	return -ENOMEM;
}

void fr_trigger_config_deinit(struct fr_trigger_config *c)
{
	for (size_t i = 0; i < FR_ARRAY_SIZE(texts); i++)
		free(*text_at(c, i));
	free(c->set);
	free(c->actions);
	*c = (struct fr_trigger_config){0};
}

bool fr_trigger_config_dumps(const struct fr_trigger_config *c)
{
	for (char *line = c->actions; line; line = argz_next(c->actions, c->actions_len, line))
		if (!strcmp(line, "dump"))
			return true;
	return !c->actions;
}

bool fr_trigger_config_switches(const struct fr_trigger_config *c)
{
	struct fr_trigger_action a;

	for (char *line = c->actions; line; line = argz_next(c->actions, c->actions_len, line))
		if (fr_trigger_action_parse(line, &a) == 0 && !a.is_dump && !a.fleet)
			return true;
	return false;
}

size_t fr_trigger_config_fleet(const struct fr_trigger_config *c, char ret[static FR_TRIGGER_FLEET_SIZE])
{
	struct fr_trigger_action a;
	size_t len = 0;

	for (char *line = c->actions; line; line = argz_next(c->actions, c->actions_len, line)) {
		const size_t n = fr_trigger_action_parse(line, &a) == 0 && a.fleet ? strlen(a.fleet) + 1 : 0;

		if (!n || n > FR_TRIGGER_FLEET_SIZE - len)
			continue;
		memcpy(ret + len, a.fleet, n);
		len += n;
	}
	return len;
}

/* Parses the text after "fleet". */
static int parse_fleet(const char *text, struct fr_trigger_action *ret)
{
	text += strspn(text, " \t");
	ret->fleet = text;
	return *text && strlen(text) < FR_TRIGGER_FLEET_SIZE ? fr_selector_check(text, NULL) : -EINVAL;
}

/* Parses the words after NAME: "to RATE" and "for TIME". */
static int parse_options(char **save, struct fr_trigger_action *ret)
{
	char *word, *value;

	while ((word = strtok_r(NULL, " \t", save))) {
		value = strtok_r(NULL, " \t", save);
		if (!value)
			return -EINVAL;
		if (!strcmp(word, "for") && !ret->for_ns) {
			if (fr_duration_parse(value, &ret->for_ns) < 0 || !ret->for_ns)
				return -EINVAL;
		} else if (!strcmp(word, "to") && !ret->rate && ret->action == FR_SWITCH_RAISE) {
			if (fr_u64_parse(value, &ret->rate) < 0 || !ret->rate)
				return -EINVAL;
		} else {
			return -EINVAL;
		}
	}
	return 0;
}

int fr_trigger_action_parse(const char *text, struct fr_trigger_action *ret)
{
	static const struct {
		const char *word;
		enum fr_switch_action action;
	} words[] = {{"enable", FR_SWITCH_ON}, {"disable", FR_SWITCH_OFF}, {"raise", FR_SWITCH_RAISE}};
	char copy[256], *save = NULL, *word, *name;

	*ret = (struct fr_trigger_action){.is_dump = !strcmp(text, "dump")};
	if (ret->is_dump)
		return 0;
	if (!strncmp(text, "fleet", 5) && (text[5] == ' ' || text[5] == '\t'))
		return parse_fleet(text + 5, ret);
	if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy))
		return -EINVAL;
	word = strtok_r(copy, " \t", &save);
	name = word ? strtok_r(NULL, " \t", &save) : NULL;
	if (!name || strlen(name) >= sizeof(ret->event))
		return -EINVAL;
	strcpy(ret->event, name);
	for (size_t i = 0; i < FR_ARRAY_SIZE(words); i++)
		if (!strcmp(word, words[i].word)) {
			ret->action = words[i].action;
			return parse_options(&save, ret);
		}
	return -EINVAL;
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
	static int (*const parsers[])(const char *, uint64_t *) = {
		[FR_CAUSE_NONE] = parse_any,
		[FR_CAUSE_NS] = fr_duration_parse,
		[FR_CAUSE_COUNT] = fr_u64_parse,
		[FR_CAUSE_BYTES] = fr_size_parse,
		[FR_CAUSE_PERCENT] = parse_percent,
	};
	uint64_t value;

	if (unit < 0 || unit >= (int)FR_ARRAY_SIZE(parsers) || parsers[unit](text, &value) < 0)
		return -EINVAL;
	*ret = value;
	return 0;
}
