// SPDX-License-Identifier: GPL-2.0-or-later
#include "control/interface.h"

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

int fr_param_u64(const cJSON *parameters, const char *name, uint64_t *ret)
{
	const cJSON *item = param(parameters, name);

	if (!item)
		return 0;
	if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble <= 0x1p53) ||
		(double)(uint64_t)item->valuedouble != item->valuedouble)
		return -EINVAL;
	*ret = (uint64_t)item->valuedouble;
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

const char *fr_param_unknown(const cJSON *parameters, const char *const *names)
{
	const cJSON *item;

	cJSON_ArrayForEach (item, parameters) {
		size_t i = 0;

		while (names[i] && strcmp(names[i], item->string))
			i++;
		if (!names[i])
			return item->string;
	}
	return NULL;
}
