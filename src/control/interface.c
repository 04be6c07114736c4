// SPDX-License-Identifier: GPL-2.0-or-later
#include "control/interface.h"
#include "base/units.h"

#include <errno.h>
#include <string.h>

const char fr_interface_description[] =
#include "interface_description.inc"
	;

static const cJSON *param(const cJSON *parameters, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(parameters, name);

	return cJSON_IsNull(item) ? NULL : item;
}

cJSON_bool fr_param_is_u64(const cJSON *item)
{
	return cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble <= 0x1p53 &&
	       (double)(uint64_t)item->valuedouble == item->valuedouble;
}

int fr_param_u64(const cJSON *parameters, const char *name, uint64_t *ret)
{
	const cJSON *item = param(parameters, name);

	if (!item)
		return 0;
	if (!fr_param_is_u64(item))
		return -EINVAL;
	*ret = (uint64_t)item->valuedouble;
	return 1;
}

static int read_time(const cJSON *item, uint64_t *ret)
{
	if (cJSON_IsNumber(item)) {
		if (!(item->valuedouble >= 0 && item->valuedouble <= 0x1p62) ||
			(double)(uint64_t)item->valuedouble != item->valuedouble)
			return -EINVAL;
		*ret = (uint64_t)item->valuedouble;
		return 0;
	}
	if (!cJSON_IsString(item) || fr_u64_parse(item->valuestring, ret) < 0)
		return -EINVAL;
	return *ret > 1ULL << 62 ? -EINVAL : 0;
}

cJSON_bool fr_param_is_time(const cJSON *item)
{
	uint64_t ns;

	return read_time(item, &ns) == 0;
}

int fr_param_time(const cJSON *parameters, const char *name, uint64_t *ret)
{
	const cJSON *item = param(parameters, name);
	uint64_t ns;

	if (!item)
		return 0;
	if (read_time(item, &ns) < 0)
		return -EINVAL;
	*ret = ns;
	return 1;
}

int fr_param_string(const cJSON *parameters, const char *name, const char **ret)
{
	const cJSON *item = param(parameters, name);

	if (!item)
		return 0;
	if (!cJSON_IsString(item))
		return -EINVAL;
	*ret = item->valuestring;
	return 1;
}

int fr_param_bool(const cJSON *parameters, const char *name, bool *ret)
{
	const cJSON *item = param(parameters, name);

	if (!item)
		return 0;
	if (!cJSON_IsBool(item))
		return -EINVAL;
	*ret = cJSON_IsTrue(item);
	return 1;
}

const char *fr_param_check(const cJSON *parameters, const struct fr_param *known)
{
	const cJSON *item;

	cJSON_ArrayForEach (item, parameters) {
		const struct fr_param *p = known;

		while (p->name && strcmp(p->name, item->string))
			p++;
		if (!p->name)
			return item->string;
	}
	for (; known->name; known++) {
		item = param(parameters, known->name);
		if (item ? !known->is_valid(item) : known->required)
			return known->name;
	}
	return NULL;
}
