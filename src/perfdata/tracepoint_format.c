// SPDX-License-Identifier: GPL-2.0-or-later
#include "perfdata/tracepoint_format.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BYTES_MAX 65536u /* of a field, and of an offset */

/* Returns the alignment of a field with TYPE ("char", "unsigned long[6]" …); 0 if it is not known. */
static uint32_t find_alignment(const char *declaration, uint32_t bytes)
{
	const char *bracket = strrchr(declaration, '[');
	uint32_t n = 1;

	if (bracket) {
		n = (uint32_t)strtoul(bracket + 1, NULL, 10);
		if (strstr(declaration, "char ") || strstr(declaration, "u8 ") ||
			strstr(declaration, "uint8_t "))
			return 1;
		if (!n || bytes % n)
			return 0;
	}
	bytes /= n;
	return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 ? bytes : 0;
}

static enum fr_field_kind find_kind(const char *declaration, uint32_t bytes)
{
	if (!strncmp(declaration, "__data_loc ", 11))
		return FR_FIELD_DYNAMIC;
	if (strchr(declaration, '['))
		return strstr(declaration, "char ") ? FR_FIELD_TEXT : FR_FIELD_OTHER;
	if (strstr(declaration, "char *") || strstr(declaration, "cpumask"))
		return FR_FIELD_OTHER;
	return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 ? FR_FIELD_NUMBER : FR_FIELD_OTHER;
}

/* Parses the rest of a line "	field:char prev_comm[16];	offset:8;	size:16;	signed:0;". */
static int parse_field(char *declaration, struct fr_field *ret, uint32_t *ret_alignment)
{
	char *end = strchr(declaration, ';'), *name;
	unsigned is_signed;

	if (!end ||
		sscanf(end, "; offset:%u; size:%u; signed:%u;", &ret->offset, &ret->bytes, &is_signed) != 3)
		return -EINVAL;
	if (ret->offset > BYTES_MAX || ret->bytes > BYTES_MAX || !ret->bytes)
		return -EINVAL;
	*end = 0;
	ret->is_signed = is_signed;
	ret->kind = find_kind(declaration, ret->bytes);
	*ret_alignment = ret->kind == FR_FIELD_DYNAMIC ? 4 : find_alignment(declaration, ret->bytes);
	name = strrchr(declaration, ' ');
	if (!name)
		return -EINVAL;
	name[1 + strcspn(name + 1, "[")] = 0;
	snprintf(ret->name, sizeof(ret->name), "%s", name + 1);
	return 0;
}

int fr_tracepoint_format_parse(char *text, struct fr_tracepoint_format *ret)
{
	uint32_t alignment = 4, of_field;
	bool is_known = true;
	char *save = NULL;
	unsigned id;

	*ret = (struct fr_tracepoint_format){.data_bytes = 8};
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		struct fr_field *f = &ret->fields[ret->n_fields];

		if (sscanf(line, "ID: %u", &id) == 1)
			ret->id = (uint16_t)id;
		if (strncmp(line, "\tfield:", 7) != 0)
			continue;
		if (ret->n_fields == FR_FIELDS_MAX)
			return -E2BIG;
		if (parse_field(line + 7, f, &of_field) < 0)
			return -EINVAL;
		if (f->offset < 8)
			continue;
		ret->n_fields++;
		is_known &= of_field != 0;
		alignment = FR_MAX(alignment, of_field);
		ret->data_bytes = FR_MAX(ret->data_bytes, f->offset + f->bytes);
		ret->is_relative |= !strncmp(line + 7, "__rel_loc ", 10);
		if (f->kind == FR_FIELD_DYNAMIC)
			ret->dynamic = f->offset;
	}
	if (!ret->id)
		return -EINVAL;
	ret->entry_bytes = is_known ? FR_ALIGN_UP(ret->data_bytes, alignment) : 0;
	return 0;
}

const struct fr_field *fr_tracepoint_format_find(const struct fr_tracepoint_format *f, const char *name)
{
	for (size_t i = 0; i < f->n_fields; i++)
		if (!strcmp(f->fields[i].name, name))
			return &f->fields[i];
	return NULL;
}
