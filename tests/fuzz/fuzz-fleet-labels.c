// SPDX-License-Identifier: GPL-2.0-or-later

/* The first line of the input is a list of labels. The rest is a selector, a location and a token. What is
   accepted is the same after it was written and read again. */

#include "fuzz.h"
#include "fleet/fleet.h"
#include "fleet/labels.h"
#include "fleet/location.h"

static void try_labels(const char *text, struct fr_labels *l)
{
	struct fr_labels again = {0}, from_json = {0};
	char copy[8192];
	cJSON *json;

	if (fr_labels_parse(text, l, NULL) < 0)
		return;
	check(l->n <= FR_LABELS_MAX);
	fr_labels_text(l, copy, sizeof(copy));
	check(fr_labels_parse(copy, &again, NULL) == 0 && memcmp(&again, l, sizeof(again)) == 0);
	json = fr_labels_json(l);
	check(json && fr_labels_from_json(json, &from_json) == 0);
	check(memcmp(&from_json, l, sizeof(from_json)) == 0);
	cJSON_Delete(json);
}

static void try_selector(const char *text, const struct fr_labels *l)
{
	char form[FR_SELECTOR_SIZE], again[FR_SELECTOR_SIZE];

	if (fr_selector_check(text, NULL) < 0)
		return;
	fr_selector_normalize(text, form);
	check(fr_selector_check(form, NULL) == 0);
	fr_selector_normalize(form, again);
	check(strcmp(form, again) == 0);
	check(fr_selector_matches(text, "web-1", l) == fr_selector_matches(form, "web-1", l));
}

static void try_location(const char *text)
{
	static const char id[] = "20261128T205726Z-1f3a5c7e";
	struct fr_fleet_location l = {0};
	char key[1024];

	if (fr_fleet_location_parse(text, &l, NULL) == 0) {
		check_text(l.bucket, sizeof(l.bucket));
		check_text(l.prefix, sizeof(l.prefix));
		check(fr_fleet_key(&l, id, "a.b", "perf.data.sample.1", key, sizeof(key)) == 0);
		check(fr_fleet_key_is_valid(&l, id, "a.b", key));
	}
	l = (struct fr_fleet_location){0};
	check(!fr_fleet_key_is_valid(&l, id, "a", text) || (!strstr(text, "/../") && strlen(text) < 512));
}

static void try_names(const char *text)
{
	char name[FR_FLEET_NAME_SIZE], token[FR_FLEET_TOKEN_SIZE], id[FR_FLEET_ID_SIZE];
	uint64_t ns;

	if (fr_fleet_token_decode(text, strlen(text), name) == 0) {
		check(fr_fleet_name_is_valid(name));
		fr_fleet_token(name, token);
		check(strcmp(token, text) == 0);
	}
	check(fr_fleet_id_is_valid(text) == (fr_fleet_id_time(text, &ns) == 0));
	(void)fr_fleet_subject_parse(text, FR_SUBJECT_INDEX, id, name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);
	struct fr_labels l = {0};
	char *rest;

	check(text);
	rest = strchr(text, '\n');
	if (rest)
		*rest++ = '\0';
	else
		rest = text;
	try_labels(text, &l);
	try_selector(rest, &l);
	try_location(rest);
	try_names(rest);
	free(text);
	return 0;
}
