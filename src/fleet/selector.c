// SPDX-License-Identifier: GPL-2.0-or-later
#include "fleet/fleet.h"
#include "fleet/labels.h"
#include "fleet/label_text.h"
#include "fleet/labels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r\n"
#define HINT "write it as role=db,zone!=b,name=web-*; \"*\" chooses all machines"
/* Each condition has at least "a=b" and a comma. */
#define CONDITIONS_MAX (FR_SELECTOR_SIZE / 4)

struct condition {
	struct fr_label_part name, value;
	bool differs; /* != */
};

static int read_condition(struct fr_label_part p, struct condition *ret)
{
	const char *equal = memchr(p.s, '=', p.n);
	size_t n;

	if (!equal)
		return -EINVAL;
	n = (size_t)(equal - p.s);
	ret->value = fr_label_part_strip((struct fr_label_part){equal + 1, p.n - n - 1});
	ret->differs = n > 0 && p.s[n - 1] == '!';
	ret->name = fr_label_part_strip((struct fr_label_part){p.s, n - ret->differs});
	return fr_label_part_is_valid(ret->name, FR_LABEL_SIZE - 1, "") &&
			       fr_label_part_is_valid(ret->value, FR_FLEET_NAME_SIZE - 1, "*?")
		       ? 0
		       : -EINVAL;
}

/* Returns whether SELECTOR is "" or "*", with or without blanks. */
static bool chooses_all(const char *selector)
{
	const struct fr_label_part p =
		fr_label_part_strip((struct fr_label_part){selector, strlen(selector)});

	return p.n == 0 || (p.n == 1 && *p.s == '*');
}

int fr_selector_check(const char *selector, struct fr_diag *d)
{
	struct fr_label_part p;
	struct condition c;

	if (strnlen(selector, FR_SELECTOR_SIZE) == FR_SELECTOR_SIZE)
		return fr_fail(d, -EINVAL, HINT, "the selector has more than %u bytes", FR_SELECTOR_SIZE - 1);
	if (chooses_all(selector))
		return 0;
	for (size_t i = 1; fr_label_part_next(&selector, &p); i++)
		if (read_condition(p, &c) < 0)
			return fr_fail(d, -EINVAL, HINT,
				"condition %zu of the selector is not NAME=PATTERN or NAME!=PATTERN", i);
	return 0;
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Writes the conditions, each with a NUL, into TEXT, and pointers to them into V. Returns their number. */
static size_t write_conditions(const char *selector, char *text, const char *v[CONDITIONS_MAX])
{
	struct fr_label_part p;
	struct condition c;
	size_t n = 0;

	while (n < CONDITIONS_MAX && fr_label_part_next(&selector, &p)) {
		if (read_condition(p, &c) < 0)
			continue;
		v[n++] = text;
		memcpy(text, c.name.s, c.name.n);
		text += c.name.n;
		if (c.differs)
			*text++ = '!';
		*text++ = '=';
		memcpy(text, c.value.s, c.value.n);
		text += c.value.n;
		*text++ = '\0';
	}
	return n;
}

void fr_selector_normalize(const char *selector, char ret[FR_SELECTOR_SIZE])
{
	char text[FR_SELECTOR_SIZE + 1], *to = ret;
	const char *v[CONDITIONS_MAX];
	size_t n = 0;

	if (chooses_all(selector) || fr_selector_check(selector, NULL) < 0) {
		strcpy(ret, "*");
		return;
	}
	n = write_conditions(selector, text, v);
	qsort(v, n, sizeof(v[0]), compare_texts);
	for (size_t i = 0; i < n; i++) {
		if (i > 0 && strcmp(v[i], v[i - 1]) == 0)
			continue;
		if (to != ret)
			*to++ = ',';
		to = stpcpy(to, v[i]);
	}
}

/* fnmatch(3) can take exponential time for a pattern with many stars. */
static bool matches_pattern(struct fr_label_part p, const char *text)
{
	size_t i = 0, star = SIZE_MAX;
	const char *retry = NULL;

	while (*text) {
		if (i < p.n && p.s[i] == '*') {
			star = i++;
			retry = text;
		} else if (i < p.n && (p.s[i] == '?' || p.s[i] == *text)) {
			i++;
			text++;
		} else if (retry) {
			i = star + 1;
			text = ++retry;
		} else {
			return false;
		}
	}
	while (i < p.n && p.s[i] == '*')
		i++;
	return i == p.n;
}

static const char *find_value(struct fr_label_part label, const char *machine, const struct fr_labels *l)
{
	if (label.n == 4 && memcmp(label.s, "name", 4) == 0)
		return machine;
	for (size_t i = 0; i < l->n; i++)
		if (strlen(l->v[i].name) == label.n && memcmp(l->v[i].name, label.s, label.n) == 0)
			return l->v[i].value;
	return NULL;
}

bool fr_selector_matches(const char *selector, const char *name, const struct fr_labels *l)
{
	struct fr_label_part p;
	struct condition c;

	if (chooses_all(selector))
		return true;
	while (fr_label_part_next(&selector, &p)) {
		const char *value;

		if (read_condition(p, &c) < 0)
			return false;
		value = find_value(c.name, name, l);
		if ((value && matches_pattern(c.value, value)) == c.differs)
			return false;
	}
	return true;
}
