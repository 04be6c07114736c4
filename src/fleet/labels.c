// SPDX-License-Identifier: GPL-2.0-or-later
#include "fleet/labels.h"
#include "fleet/label_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define HINT "write it as role=db,zone=a, with letters, digits and -_./"
#define BLANKS " \t\r\n"

/* Inserts a label at its place. */
static int add(struct fr_labels *l, struct fr_label_part name, struct fr_label_part value, struct fr_diag *d)
{
	char text[FR_LABEL_SIZE] = "";
	size_t i = 0;

	if (!fr_label_part_is_valid(name, FR_LABEL_SIZE - 1, "") ||
		!fr_label_part_is_valid(value, FR_LABEL_SIZE - 1, ""))
		return fr_fail(d, -EINVAL, HINT ", at most 63 of them",
			"the name or the value of a label is empty, is too long, or has another character");
	memcpy(text, name.s, name.n);
	if (strcmp(text, "name") == 0)
		return fr_fail(d, -EINVAL, "use another name for the label",
			"the label 'name' is always there: it is the name of the machine");
	while (i < l->n && strcmp(l->v[i].name, text) < 0)
		i++;
	if (i < l->n && strcmp(l->v[i].name, text) == 0)
		return fr_fail(d, -EINVAL, "remove one of them", "the label '%s' is there twice", text);
	if (l->n == FR_LABELS_MAX)
		return fr_fail(d, -EINVAL, NULL, "there are more than %u labels", FR_LABELS_MAX);
	memmove(&l->v[i + 1], &l->v[i], (l->n - i) * sizeof(l->v[0]));
	memset(&l->v[i], 0, sizeof(l->v[i]));
	memcpy(l->v[i].name, name.s, name.n);
	memcpy(l->v[i].value, value.s, value.n);
	l->n++;
	return 0;
}

int fr_labels_parse(const char *text, struct fr_labels *ret, struct fr_diag *d)
{
	struct fr_labels l = {0};
	struct fr_label_part p;
	int r = 0;

	if (text[strspn(text, BLANKS)] == '\0')
		text = NULL;
	while (r == 0 && fr_label_part_next(&text, &p)) {
		const char *equal = memchr(p.s, '=', p.n);
		const size_t n = equal ? (size_t)(equal - p.s) : p.n;

		if (!equal)
			return fr_fail(d, -EINVAL, HINT, "a label has no '='");
		r = add(&l, fr_label_part_strip((struct fr_label_part){p.s, n}),
			fr_label_part_strip((struct fr_label_part){equal + 1, p.n - n - 1}), d);
	}
	if (r == 0)
		*ret = l;
	return r;
}

int fr_labels_from_json(const cJSON *object, struct fr_labels *ret)
{
	struct fr_labels l = {0};
	const cJSON *item;

	if (!cJSON_IsObject(object))
		return -EINVAL;
	cJSON_ArrayForEach (item, object) {
		const char *value = cJSON_GetStringValue(item);

		if (!value || !item->string ||
			add(&l, (struct fr_label_part){item->string, strlen(item->string)},
				(struct fr_label_part){value, strlen(value)}, NULL) < 0)
			return -EINVAL;
	}
	*ret = l;
	return 0;
}

cJSON *fr_labels_json(const struct fr_labels *l)
{
	cJSON *o = cJSON_CreateObject();

	for (size_t i = 0; o && i < l->n; i++)
		if (!cJSON_AddStringToObject(o, l->v[i].name, l->v[i].value)) {
			cJSON_Delete(o);
			return NULL;
		}
	return o;
}

void fr_labels_text(const struct fr_labels *l, char *ret, size_t size)
{
	size_t n = 0;

	if (size == 0)
		return;
	ret[0] = '\0';
	for (size_t i = 0; i < l->n && n < size; i++)
		n += (size_t)snprintf(
			ret + n, size - n, "%s%s=%s", i ? "," : "", l->v[i].name, l->v[i].value);
}
