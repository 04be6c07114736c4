// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Pressure stall information (Documentation/accounting/psi.rst): tasks that could have run, and stood still
 * for want of a CPU, of memory or of a device, for Threshold= within Interval=. The kernel watches, and wakes
 * us at most once in a window; it does not say how much it was. So the file's total is read twice in a
 * window:
 *
 *      before[0]        before[1]        the kernel's word, or stats()
 *   ──────┴────────────────┴───────────────────┴────►   value: total − before[0], of half a window to a whole
 */
#include "trigger/source.h"
#include "base/capability.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#define INTERVAL_MIN_NS (500 * FR_NSEC_PER_MSEC)
#define INTERVAL_MAX_NS (10 * FR_NSEC_PER_SEC)
/* What the kernel takes from everybody, as its averages are computed so often anyway. */
#define INTERVAL_UNPRIVILEGED_NS (2 * FR_NSEC_PER_SEC)

struct subject {
	char resource[8]; /* "cpu", "memory", "io" */
	char share[8];	  /* "some", "full" */
	uint64_t interval_ns, threshold_ns;
};

struct pressure {
	struct fr_source source;
	struct subject subject;
	char path[PATH_MAX];
	int fd;
	bool is_privileged; /* the kernel asks for CAP_SYS_RESOURCE when the file is opened */
	sd_event_source *io, *timer;
	uint64_t armed_ns;     /* the total when it was armed */
	uint64_t before_ns[2]; /* totals, the older one first */
	struct fr_source_stats stats;
};

static int parse_subject(const struct fr_trigger_config *config, struct subject *ret, struct fr_diag *d)
{
	char resource[8], share[8], rest;

	if (!config->subject || sscanf(config->subject, "%7s %7s %c", resource, share, &rest) != 2 ||
		(strcmp(resource, "cpu") != 0 && strcmp(resource, "memory") != 0 &&
			strcmp(resource, "io") != 0) ||
		(strcmp(share, "some") != 0 && strcmp(share, "full") != 0))
		return fr_fail(d, -EINVAL, "it is cpu, memory or io, and then some or full",
			"the trigger %s: there is no Pressure=%s", config->name,
			config->subject ? config->subject : "");
	strcpy(ret->resource, resource);
	strcpy(ret->share, share);
	return 0;
}

static int parse_config(const struct fr_trigger_config *config, struct subject *ret, struct fr_diag *d)
{
	int r = parse_subject(config, ret, d);

	if (r < 0)
		return r;
	ret->interval_ns =
		config->interval_ns == FR_TRIGGER_UNSET ? INTERVAL_UNPRIVILEGED_NS : config->interval_ns;
	if (ret->interval_ns < INTERVAL_MIN_NS || ret->interval_ns > INTERVAL_MAX_NS)
		return fr_fail(d, -EINVAL, "the kernel takes 500ms to 10s",
			"the trigger %s: Interval= is out of its range", config->name);
	ret->threshold_ns = ret->interval_ns / 2;
	if (config->threshold && fr_threshold_parse(config->threshold, FR_CAUSE_NS, &ret->threshold_ns) < 0)
		return fr_fail(d, -EINVAL, "it is the time that tasks stood still, like Threshold=500ms",
			"the trigger %s: \"%s\" is no threshold of a pressure", config->name,
			config->threshold);
	if (ret->threshold_ns < FR_NSEC_PER_USEC || ret->threshold_ns > ret->interval_ns)
		return fr_fail(d, -EINVAL, "make it no longer than Interval= (2s where there is none)",
			"the trigger %s: Threshold= is out of its range", config->name);
	if (config->pid || config->comm)
		return fr_fail(d, -EINVAL, "use CGroup= to watch a service",
			"the trigger %s: pressure is of no process, so Pid= and Comm= mean nothing",
			config->name);
	return 0;
}

static int check(const struct fr_trigger_config *config, struct fr_diag *d)
{
	struct subject s;

	return parse_config(config, &s, d);
}

/* The file of a cgroup of version 2, below wherever that is mounted. */
static int cgroup_file(const char *cgroup, const char *resource, char *ret, size_t size)
{
	_cleanup_free_ char *buffer = malloc(2 * PATH_MAX);
	FILE *f = setmntent("/proc/self/mounts", "re");
	struct mntent m;
	int r = -ENOENT;

	while (f && buffer && r < 0 && getmntent_r(f, &m, buffer, 2 * PATH_MAX))
		if (strcmp(m.mnt_type, "cgroup2") == 0 &&
			snprintf(ret, size, "%s/%s/%s.pressure", m.mnt_dir, cgroup, resource) < (int)size &&
			access(ret, F_OK) == 0)
			r = 0;
	if (f)
		endmntent(f);
	return r;
}

static int find_file(struct pressure *p, struct fr_diag *d)
{
	const char *cgroup = p->source.config->cgroup;

	if (!cgroup) {
		snprintf(p->path, sizeof(p->path), "/proc/pressure/%s", p->subject.resource);
		return 0;
	}
	if (cgroup_file(cgroup, p->subject.resource, p->path, sizeof(p->path)) == 0)
		return 0;
	return fr_fail(d, -ENOENT,
		"its path is one below the mount of cgroup2; where its service is not started yet, it is "
		"armed "
		"then; and the kernel needs PSI (psi=1)",
		"the cgroup %s has no %s.pressure", cgroup, p->subject.resource);
}

/* The whole stall so far, in ns. 0 or a negative errno. */
static int read_total(const struct pressure *p, uint64_t *ret)
{
	char text[512], *line;
	ssize_t n = fr_pread_all(p->fd, text, sizeof(text) - 1, 0);
	uint64_t usec;

	if (n < 0)
		return (int)n;
	text[n] = '\0';
	line = strstr(text, p->subject.share);
	line = line ? strstr(line, "total=") : NULL;
	if (!line || sscanf(line, "total=%" SCNu64, &usec) != 1)
		return -EBADMSG;
	*ret = usec * FR_NSEC_PER_USEC;
	return 0;
}

/* Opens the file and has the kernel watch it. 0 or a negative errno: then forget() closes the file. */
static int arm(struct pressure *p)
{
	char text[64];
	int n, r;

	p->is_privileged = fr_has_capability(CAP_SYS_RESOURCE);
	p->fd = open(p->path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (p->fd < 0)
		return -errno;
	/* Before the kernel's first window, so that it counts no stall that we do not. */
	r = read_total(p, &p->armed_ns);
	if (r < 0)
		return r;
	n = snprintf(text, sizeof(text), "%s %llu %llu", p->subject.share,
		p->subject.threshold_ns / FR_NSEC_PER_USEC, p->subject.interval_ns / FR_NSEC_PER_USEC);
	/* With the NUL, which the kernel cuts off. */
	return write(p->fd, text, (size_t)n + 1) < 0 ? -errno : 0;
}

static int explain(const struct pressure *p, int code, struct fr_diag *d)
{
	const char *name = p->source.config->name;

	if (code == -ENOENT || code == -EOPNOTSUPP)
		return fr_fail(d, -EOPNOTSUPP, "it needs CONFIG_PSI, and psi=1 where it is off by default",
			"the trigger %s: this kernel has no %s", name, p->path);
	if (code == -EINVAL && p->subject.interval_ns % INTERVAL_UNPRIVILEGED_NS != 0)
		return fr_fail(d, -EPERM,
			"give Interval=2s (4s, 6s, 8s, 10s), or CAP_SYS_RESOURCE "
			"(AmbientCapabilities=CAP_SYS_RESOURCE)",
			"the trigger %s: without CAP_SYS_RESOURCE, the kernel watches pressure only over "
			"multiples of 2 s",
			name);
	if (code == -EACCES || code == -EPERM)
		return fr_fail_errno(d, code,
			p->source.config->cgroup ? "it is the cgroup's owner who may, or CAP_DAC_OVERRIDE"
						 : "before Linux 6.4, it takes CAP_SYS_RESOURCE",
			"the trigger %s: not permitted to watch %s", name, p->path);
	return fr_fail_errno(d, code, NULL, "the trigger %s: cannot watch %s", name, p->path);
}

/* The stall of now in the stats; false where it cannot be read. */
static bool look(struct pressure *p)
{
	uint64_t total = 0;

	if (p->fd < 0 || read_total(p, &total) < 0)
		return false;
	p->stats.last = total > p->before_ns[0] ? total - p->before_ns[0] : 0;
	p->stats.last_ns = fr_monotonic_ns();
	return true;
}

static void forget(struct pressure *p)
{
	p->io = sd_event_source_disable_unref(p->io);
	if (p->fd >= 0)
		close(TAKE_FD(p->fd));
}

static int on_pressure(sd_event_source *e, int fd, uint32_t revents, void *userdata)
{
	struct pressure *p = userdata;
	const struct fr_source_env *env = p->source.env;
	struct fr_cause cause = {.time_ns = fr_monotonic_ns(),
		.threshold = p->subject.threshold_ns,
		.unit = FR_CAUSE_NS,
		.cpu = -1};

	/* A cgroup's file that is no more says so with this, along with all else. */
	if (revents & (EPOLLERR | EPOLLHUP)) {
		forget(p);
		p->stats.gone = "its cgroup is gone";
		return 0;
	}
	/* Without CAP_SYS_RESOURCE, kernels (seen: 6.18) begin the first window at the total of privileged
	   watches, which may be minutes old, and wake us at the next stall, however short it is. The file's
	   total, which is cut to microseconds, is what they count with then; a privileged watch counts with
	   another. */
	if (look(p) && !p->is_privileged &&
		p->before_ns[0] + p->stats.last + FR_NSEC_PER_USEC < p->armed_ns + p->subject.threshold_ns)
		return 0;
	/* What we measure spans less than the kernel's window, which is known to have reached it. */
	cause.value = FR_MAX(p->stats.last, cause.threshold);
	p->stats.fired++;
	snprintf(cause.reason, sizeof(cause.reason), "%s pressure", p->subject.resource);
	snprintf(cause.detail, sizeof(cause.detail), "%s %s", p->subject.resource, p->subject.share);
	if (p->source.config->cgroup)
		snprintf(cause.cgroup, sizeof(cause.cgroup), "/%s",
			p->source.config->cgroup + strspn(p->source.config->cgroup, "/"));
	env->fire(env->ctx, p->source.trigger, &cause);
	return 0;
}

static int start(struct pressure *p)
{
	int r = arm(p);

	p->before_ns[0] = p->before_ns[1] = p->armed_ns;
	if (r == 0)
		r = sd_event_add_io(p->source.env->event, &p->io, p->fd, EPOLLPRI, on_pressure, p);
	if (r < 0)
		forget(p);
	return r;
}

static int on_time(sd_event_source *e, uint64_t usec, void *userdata)
{
	struct pressure *p = userdata;
	uint64_t total;
	int r;

	/* A service that was started anew has a cgroup of the same name. */
	if (p->fd < 0 && start(p) == 0)
		p->stats.gone = NULL;
	else if (p->fd >= 0 && read_total(p, &total) == 0) {
		p->before_ns[0] = p->before_ns[1];
		p->before_ns[1] = total;
	}
	r = sd_event_source_set_time_relative(e, p->subject.interval_ns / 2 / FR_NSEC_PER_USEC);
	return r < 0 ? r : sd_event_source_set_enabled(e, SD_EVENT_ONESHOT);
}

static void pressure_close(struct fr_source *s)
{
	struct pressure *p = (struct pressure *)s;

	forget(p);
	sd_event_source_disable_unref(p->timer);
	free(p);
}

static int start_first(struct pressure *p, struct fr_diag *d)
{
	uint64_t half_usec = p->subject.interval_ns / 2 / FR_NSEC_PER_USEC;
	int r = find_file(p, d);

	if (r < 0)
		return r;
	r = start(p);
	if (r < 0)
		return explain(p, r, d);
	r = sd_event_add_time_relative(
		p->source.env->event, &p->timer, CLOCK_MONOTONIC, half_usec, half_usec / 8, on_time, p);
	return r < 0 ? explain(p, r, d) : 0;
}

static int pressure_open(const struct fr_source_env *env, const struct fr_trigger_config *config,
	void *trigger, struct fr_source **ret, struct fr_diag *d)
{
	struct pressure *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->source = (struct fr_source){&fr_source_pressure, env, config, trigger};
	p->fd = -1;
	r = parse_config(config, &p->subject, d);
	if (r == 0)
		r = start_first(p, d);
	if (r < 0) {
		pressure_close(&p->source);
		return r;
	}
	p->stats.unit = FR_CAUSE_NS;
	p->stats.threshold = p->subject.threshold_ns;
	*ret = &p->source;
	return 0;
}

static void pressure_stats(struct fr_source *s, struct fr_source_stats *ret)
{
	struct pressure *p = (struct pressure *)s;

	(void)look(p);
	*ret = p->stats;
}

const struct fr_source_class fr_source_pressure = {.name = "pressure",
	.open = pressure_open,
	.close = pressure_close,
	.stats = pressure_stats,
	.check = check};
