// SPDX-License-Identifier: GPL-2.0-or-later
#include "source/source.h"
#include "base/cleanup.h"

#include <errno.h>
#include <string.h>

const struct fr_source_class *fr_source_class_for_kind(enum fr_trigger_kind kind)
{
	static const struct fr_source_class *const classes[FR_TRIGGER_KINDS] = {
		[FR_TRIGGER_PROBE] = &fr_source_bpf,
		[FR_TRIGGER_PROGRAM] = &fr_source_bpf,
		[FR_TRIGGER_FUNCTION] = &fr_source_function,
		[FR_TRIGGER_USDT] = &fr_source_function,
		[FR_TRIGGER_PRESSURE] = &fr_source_pressure,
		[FR_TRIGGER_EVENT] = &fr_source_event,
		[FR_TRIGGER_TIMER] = &fr_source_timer,
		[FR_TRIGGER_APPLICATION] = &fr_source_application,
	};

	return (unsigned)kind < FR_TRIGGER_KINDS ? classes[kind] : NULL;
}

int fr_source_open(const struct fr_source_class *class, const struct fr_source_env *env,
	const struct fr_trigger_config *config, void *trigger, struct fr_source **ret, struct fr_diag *d)
{
	struct fr_source *s = calloc(1, class->size);
	int r;

	if (!s)
		return fr_fail_errno(d, -ENOMEM, NULL, "cannot open the trigger %s", config->name);
	*s = (struct fr_source){.class = class, .env = env, .config = config, .trigger = trigger};
	r = class->open(s, d);
	if (r < 0) {
		fr_source_close(s);
		return fr_fail_errno(d, r, NULL, "cannot open the trigger %s", config->name);
	}
	*ret = s;
	return 0;
}

struct fr_source *fr_source_close(struct fr_source *s)
{
	if (s)
		s->class->close(s);
	free(s);
	return NULL;
}

void fr_source_get_stats(struct fr_source *s, struct fr_source_stats *ret)
{
	*ret = s->stats;
	if (s->class->get_stats)
		s->class->get_stats(s, ret);
}

void fr_source_fire(const struct fr_source *s, const struct fr_cause *cause)
{
	s->env->fire(s->env->ctx, s->trigger, cause);
}

uint64_t fr_source_cooldown_ns(const struct fr_trigger_config *config)
{
	/* FR_TRIGGER_UNSET is the largest number, so it also becomes the maximum. */
	return FR_MIN(config->cooldown_ns, FR_SOURCE_COOLDOWN_MAX_NS);
}

/* Returns whether PATH is DIR or below DIR. */
static bool is_below(const char *path, const char *dir)
{
	size_t len;

	path += strspn(path, "/");
	dir += strspn(dir, "/");
	len = strlen(dir);
	while (len && dir[len - 1] == '/')
		len--;
	return strncmp(path, dir, len) == 0 && (!len || path[len] == '\0' || path[len] == '/');
}

bool fr_source_matches(const struct fr_trigger_config *config, struct fr_cause *cause)
{
	if (config->pid && cause->pid != config->pid)
		return false;
	if (config->comm || config->cgroup)
		fr_cause_fill_from_proc(cause);
	/* The kernel keeps only 15 characters of a name, so compare only 15. */
	if (config->comm && strncmp(cause->comm, config->comm, sizeof(cause->comm) - 1) != 0)
		return false;
	return !config->cgroup || (cause->cgroup[0] && is_below(cause->cgroup, config->cgroup));
}
