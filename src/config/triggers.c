// SPDX-License-Identifier: GPL-2.0-or-later
/* Creates and checks the sections [Trigger NAME]. Each section has one source (the code that sees the
   anomalies). If several files have a section of the same name, all its lines together are one section. */
#include "config/config_private.h"
#include "base/cleanup.h"
#include "source/probes.h"

#include <errno.h>
#include <string.h>

#define TRIGGERS_MAX 256

/* Returns the kind of source of the built-in trigger NAME; or FR_TRIGGER_KINDS if NAME is not built in. */
static enum fr_trigger_kind kind_of_name(const char *name)
{
	if (!strcmp(name, "signal"))
		return FR_TRIGGER_SIGNAL;
	if (!strcmp(name, "control"))
		return FR_TRIGGER_CONTROL;
	if (!strcmp(name, "fleet"))
		return FR_TRIGGER_FLEET;
	if (!strcmp(name, "application"))
		return FR_TRIGGER_APPLICATION;
	return fr_probe_find(name) ? FR_TRIGGER_PROBE : FR_TRIGGER_KINDS;
}

static bool is_built_in(const struct fr_trigger_config *t)
{
	return kind_of_name(t->name) != FR_TRIGGER_KINDS;
}

/* Returns the key that sets the kind of source of T, or NULL if there is no such key. */
static const struct fr_config_key *find_source_key(const struct fr_trigger_config *t)
{
	for (const struct fr_config_key *k = fr_config_keys; k->name; k++)
		if (k->source && k->source == t->kind)
			return k;
	return NULL;
}

int fr_config_claim_source(
	struct fr_trigger_config *t, const struct fr_config_key *key, const char *subject, struct fr_diag *d)
{
	const struct fr_config_key *other = find_source_key(t);

	if (is_built_in(t) && (t->kind != key->source || (t->subject && strcmp(t->subject, subject) != 0)))
		return fr_fail(d, -EINVAL, "give the section another name",
			"[Trigger %s] is a built-in trigger: %s= cannot be its source", t->name, key->name);
	if (other && other != key)
		return fr_fail(d, -EINVAL, "make two sections, or clear the other key first",
			"%s= and %s= are in one section, but a trigger has one source", other->name,
			key->name);
	t->kind = key->source;
	return 0;
}

int fr_config_release_source(struct fr_trigger_config *t, const struct fr_config_key *key)
{
	if (t->kind != key->source || is_built_in(t))
		return 0;
	t->every_ns = 0;
	t->kind = FR_TRIGGER_KINDS;
	return fr_string_replace(&t->subject, NULL);
}

const char *fr_config_name_in_section(const char *section, const char *kind)
{
	const size_t len = strlen(kind);

	if (strncmp(section, kind, len) != 0 || (section[len] && !strchr(" \t", section[len])))
		return NULL;
	return section + len + strspn(section + len, " \t");
}

const char *fr_config_trigger_name(const char *section)
{
	return fr_config_name_in_section(section, "Trigger");
}

static int check_name(const char *name, struct fr_diag *d)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

	if (!*name)
		return fr_fail(d, -EINVAL, "write [Trigger NAME]; keys for all triggers are in [Triggers]",
			"the section [Trigger] has no name");
	if (strlen(name) >= FR_TRIGGER_NAME_SIZE || name[strspn(name, allowed)])
		return fr_fail(d, -EINVAL, "give up to 63 letters, digits, '-', '_' and '.'",
			"'%s' cannot be the name of a trigger", name);
	return 0;
}

const struct fr_trigger_config *fr_config_find_trigger(const struct fr_config *c, const char *name)
{
	for (size_t i = 0; i < c->n_trigger; i++)
		if (!strcmp(c->trigger[i].name, name))
			return &c->trigger[i];
	return NULL;
}

static void init_trigger(struct fr_trigger_config *t)
{
	*t = (struct fr_trigger_config){
		.kind = FR_TRIGGER_KINDS,
		.interval_ns = FR_TRIGGER_UNSET,
		.enabled = true,
		.cooldown_ns = FR_TRIGGER_UNSET,
		.min_fill_ns = FR_TRIGGER_UNSET,
		.window_ns = FR_TRIGGER_UNSET,
		.post_ns = FR_TRIGGER_UNSET,
	};
}

static int append_trigger(struct fr_config *c, const char *name, const char *origin)
{
	struct fr_trigger_config *all = reallocarray(c->trigger, c->n_trigger + 1, sizeof(*all)), *t;

	if (!all)
		return -ENOMEM;
	c->trigger = all;
	t = &all[c->n_trigger];
	init_trigger(t);
	t->kind = kind_of_name(name);
	if (fr_string_replace(&t->name, name) < 0 || fr_string_replace(&t->origin, origin) < 0 ||
		(t->kind == FR_TRIGGER_PROBE && fr_string_replace(&t->subject, name) < 0)) {
		fr_trigger_config_deinit(t);
		return -ENOMEM;
	}
	c->n_trigger++;
	return 0;
}

int fr_config_add_trigger(struct fr_config *c, const char *name, const char *origin,
	struct fr_trigger_config **ret, struct fr_diag *d)
{
	struct fr_trigger_config *t = (struct fr_trigger_config *)fr_config_find_trigger(c, name);
	int r = 0;

	if (!t && c->n_trigger == TRIGGERS_MAX)
		return fr_fail(d, -EINVAL, "remove some sections [Trigger NAME]",
			"there are more than %d triggers", TRIGGERS_MAX);
	if (!t)
		r = check_name(name, d);
	if (!t && r == 0)
		r = append_trigger(c, name, origin);
	if (r == 0)
		*ret = t ? t : &c->trigger[c->n_trigger - 1];
	return r;
}

void fr_config_clear_triggers(struct fr_config *c)
{
	for (size_t i = 0; i < c->n_trigger; i++)
		fr_trigger_config_deinit(&c->trigger[i]);
	free(c->trigger);
	c->trigger = NULL;
	c->n_trigger = 0;
}

static int fail_without_effect(
	const struct fr_trigger_config *t, const struct fr_config_key *key, struct fr_diag *d)
{
	const struct fr_config_key *source = find_source_key(t);

	if (source)
		return fr_fail(
			d, -EINVAL, "leave it out", "%s= has no effect beside %s=", key->name, source->name);
	return fr_fail(d, -EINVAL, "leave it out", "%s= has no effect in [Trigger %s]", key->name, t->name);
}

/* Checks that each key that is set in T has an effect on a trigger of this kind. */
static int check_keys(const struct fr_trigger_config *t, struct fr_diag *d)
{
	struct fr_trigger_config unset;

	init_trigger(&unset);
	for (const struct fr_config_key *k = fr_config_keys; k->name; k++)
		if (k->kinds && !(k->kinds & 1u << t->kind) && !fr_config_has_same_value(k, t, &unset))
			return fail_without_effect(t, k, d);
	if (t->kind == FR_TRIGGER_PROBE && t->syscalls && strcmp(t->subject, "syscall-latency") != 0)
		return fr_fail(
			d, -EINVAL, "leave it out", "Syscall= has no effect on the probe %s", t->subject);
	return 0;
}

static int fail_without_source(const struct fr_trigger_config *t, struct fr_diag *d)
{
	char hint[256] = "give one of Probe=, Program=, Function=, USDT=, Pressure=, Event=, Every= and "
			 "Application=yes, or the name of a built-in probe";
	const char *near = fr_config_nearest_probe(t->name);

	if (near)
		snprintf(hint, sizeof(hint), "did you mean [Trigger %s]?", near);
	return fr_fail(d, -EINVAL, hint, "[Trigger %s] has no source", t->name);
}

int fr_config_check_triggers(const struct fr_config *c, struct fr_diag *d)
{
	for (size_t i = 0; i < c->n_trigger; i++) {
		const struct fr_trigger_config *t = &c->trigger[i];
		int r = t->kind == FR_TRIGGER_KINDS ? fail_without_source(t, d) : check_keys(t, d);

		if (r < 0) {
			fr_diag_prefix(d, "%s", t->origin);
			return r;
		}
	}
	return 0;
}
