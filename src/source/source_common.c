// SPDX-License-Identifier: GPL-2.0-or-later
#include "source/source.h"
#include "base/cleanup.h"

#include <string.h>

uint64_t fr_source_cooldown_ns(const struct fr_trigger_config *config)
{
	/* What is unset is larger than all: [Triggers] has a cool-down of its own, and the policy knows it.
	 */
	return FR_MIN(config->cooldown_ns, FR_SOURCE_COOLDOWN_MAX_NS);
}

static const char *without_slashes(const char *path)
{
	return path + strspn(path, "/");
}

/* PATH is DIR, or below it. */
static bool is_below(const char *path, const char *dir)
{
	size_t len;

	path = without_slashes(path);
	dir = without_slashes(dir);
	len = strlen(dir);
	while (len && dir[len - 1] == '/')
		len--;
	return strncmp(path, dir, len) == 0 && (!len || path[len] == '\0' || path[len] == '/');
}

bool fr_source_wants(const struct fr_trigger_config *config, struct fr_cause *cause)
{
	if (config->pid && cause->pid != config->pid)
		return false;
	/* Only a filter needs it here: it reads /proc, and a storm asks for each anomaly. */
	if (config->comm || config->cgroup)
		fr_cause_fill_from_proc(cause);
	/* The kernel keeps 15 characters of a name. */
	if (config->comm && strncmp(cause->comm, config->comm, sizeof(cause->comm) - 1) != 0)
		return false;
	return !config->cgroup || (cause->cgroup[0] && is_below(cause->cgroup, config->cgroup));
}
