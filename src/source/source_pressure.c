// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Pressure=: fires if tasks stalled for Threshold= within Interval=, because they waited for a CPU, memory or
 * a device (Documentation/accounting/psi.rst). The kernel watches windows of the length Interval=, and wakes
 * the source at most once in a window. The kernel does not report the length of the stall. So the source
 * reads the total stall time in the file twice in a window:
 *
 *      before[0]        before[1]          wake-up, or get_stats()
 *   ──────┴────────────────┴───────────────────┴────►
 *
 * The value of the cause is the total at the wake-up minus before[0]. So the value covers the last half
 * window to one whole window.
 */
#include "source/source.h"
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
/* Without CAP_SYS_RESOURCE, the kernel accepts only multiples of its averaging period of 2 s. */
#define INTERVAL_UNPRIVILEGED_NS (2 * FR_NSEC_PER_SEC)

/* The parsed configuration. */
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
	bool is_privileged; /* this thread had CAP_SYS_RESOURCE at the open of the file */
	sd_event_source *io, *timer;
	uint64_t armed_ns;     /* the file's total when the kernel began to watch */
	uint64_t before_ns[2]; /* the last two totals that were read; the older total first */
};

static int parse_subject(const struct fr_trigger_config *config, struct subject *ret, struct fr_diag *d)
{
	char resource[8], share[8], rest;

	if (!config->subject || sscanf(config->subject, "%7s %7s %c", resource, share, &rest) != 2 ||
		(strcmp(resource, "cpu") != 0 && strcmp(resource, "memory") != 0 &&
			strcmp(resource, "io") != 0) ||
		(strcmp(share, "some") != 0 && strcmp(share, "full") != 0))
		return fr_fail(d, -EINVAL, "write cpu, memory or io, and then some or full",
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
		return fr_fail(d, -EINVAL, "set Interval= to 500ms to 10s",
			"the trigger %s: Interval= is out of its range", config->name);
	ret->threshold_ns = ret->interval_ns / 2;
	if (config->threshold && fr_threshold_parse(config->threshold, FR_CAUSE_NS, &ret->threshold_ns) < 0)
		return fr_fail(d, -EINVAL, "write the time of the stall, for example Threshold=500ms",
			"the trigger %s: Threshold=%s is not a duration", config->name, config->threshold);
	if (ret->threshold_ns < FR_NSEC_PER_USEC || ret->threshold_ns > ret->interval_ns)
		return fr_fail(d, -EINVAL, "make Threshold= at most as long as Interval= (default 2s)",
			"the trigger %s: Threshold= is out of its range", config->name);
	if (config->pid || config->comm)
		return fr_fail(d, -EINVAL, "use CGroup= to watch a service",
			"the trigger %s: pressure belongs to no process, so Pid= and Comm= have no effect",
			config->name);
	return 0;
}

static int pressure_check(const struct fr_trigger_config *config, struct fr_diag *d)
{
	struct subject s;

	return parse_config(config, &s, d);
}

/* Finds the file RESOURCE.pressure of CGROUP in any mount of cgroup2. RET gets its path. Returns 0 or
   -ENOENT. */
static int find_cgroup_file(const char *cgroup, const char *resource, char *ret, size_t size)
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
	if (find_cgroup_file(cgroup, p->subject.resource, p->path, sizeof(p->path)) == 0)
		return 0;
	return fr_fail(d, -ENOENT,
		"give a path below the mount of cgroup2, and boot with psi=1; if the service has not started "
		"yet, start it, and the trigger is armed",
		"the cgroup %s has no %s.pressure", cgroup, p->subject.resource);
}

/* Reads the total stall time in ns. Returns 0 or a negative errno. */
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

/* Opens the file, and asks the kernel to watch the pressure. Returns 0; or a negative errno, and then the
   caller has to close the file. */
static int open_watch(struct pressure *p)
{
	char text[64];
	int n, r;

	p->is_privileged = fr_has_capability(CAP_SYS_RESOURCE);
	p->fd = open(p->path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (p->fd < 0)
		return -errno;
	/* Read the total before the kernel's first window begins, so that the total does not include a stall
	   of that window. */
	r = read_total(p, &p->armed_ns);
	if (r < 0)
		return r;
	n = snprintf(text, sizeof(text), "%s %llu %llu", p->subject.share,
		p->subject.threshold_ns / FR_NSEC_PER_USEC, p->subject.interval_ns / FR_NSEC_PER_USEC);
	/* The kernel also needs the NUL. */
	return write(p->fd, text, (size_t)n + 1) < 0 ? -errno : 0;
}

static int explain_open(const struct pressure *p, int code, struct fr_diag *d)
{
	const char *name = p->source.config->name;

	if (code == -ENOENT || code == -EOPNOTSUPP)
		return fr_fail(d, -EOPNOTSUPP,
			"use a kernel with CONFIG_PSI; boot with psi=1 if PSI is off by default",
			"the trigger %s: this kernel has no %s", name, p->path);
	if (code == -EINVAL && p->subject.interval_ns % INTERVAL_UNPRIVILEGED_NS != 0)
		return fr_fail(d, -EPERM,
			"set Interval=2s (or 4s, 6s, 8s, 10s), or grant CAP_SYS_RESOURCE "
			"(AmbientCapabilities=CAP_SYS_RESOURCE)",
			"the trigger %s: without CAP_SYS_RESOURCE, the kernel watches pressure only over "
			"multiples of 2 s",
			name);
	if (code == -EACCES || code == -EPERM)
		return fr_fail_errno(d, code,
			p->source.config->cgroup
				? "run as the owner of the cgroup, or grant CAP_DAC_OVERRIDE"
				: "grant CAP_SYS_RESOURCE, which kernels before 6.4 require for this",
			"the trigger %s: not permitted to watch %s", name, p->path);
	return fr_fail_errno(d, code, NULL, "the trigger %s: cannot watch %s", name, p->path);
}

/* Measures the stall since before[0], and sets the stats. Returns false if the file could not be read. */
static bool measure(struct pressure *p)
{
	uint64_t total = 0;

	if (p->fd < 0 || read_total(p, &total) < 0)
		return false;
	p->source.stats.last = total > p->before_ns[0] ? total - p->before_ns[0] : 0;
	p->source.stats.last_ns = fr_monotonic_ns();
	return true;
}

static void close_watch(struct pressure *p)
{
	p->io = sd_event_source_disable_unref(p->io);
	if (p->fd >= 0)
		close(TAKE_FD(p->fd));
}

static int on_pressure(sd_event_source *e, int fd, uint32_t revents, void *userdata)
{
	struct pressure *p = userdata;
	struct fr_cause cause = {.time_ns = fr_monotonic_ns(),
		.threshold = p->subject.threshold_ns,
		.unit = FR_CAUSE_NS,
		.cpu = -1};

	/* Check for errors first: for a removed cgroup, the kernel reports EPOLLPRI
	   together with EPOLLERR. */
	if (revents & (EPOLLERR | EPOLLHUP)) {
		close_watch(p);
		p->source.stats.gone = "its cgroup is gone";
		return 0;
	}
	/* Without CAP_SYS_RESOURCE, the kernel sometimes reports a stall from before the watch began (seen:
	   6.18). So ignore the wake-up unless the total has grown by the threshold since the watch began
	   (docs/design/71). */
	if (measure(p) && !p->is_privileged &&
		p->before_ns[0] + p->source.stats.last + FR_NSEC_PER_USEC <
			p->armed_ns + p->subject.threshold_ns)
		return 0;
	/* The stall reached the threshold in the kernel's window. But the time of this measurement can be
	   shorter than that window, so the measured value can be below the threshold. */
	cause.value = FR_MAX(p->source.stats.last, cause.threshold);
	p->source.stats.fired++;
	snprintf(cause.reason, sizeof(cause.reason), "%s pressure", p->subject.resource);
	snprintf(cause.detail, sizeof(cause.detail), "%s %s", p->subject.resource, p->subject.share);
	if (p->source.config->cgroup)
		snprintf(cause.cgroup, sizeof(cause.cgroup), "/%s",
			p->source.config->cgroup + strspn(p->source.config->cgroup, "/"));
	fr_source_fire(&p->source, &cause);
	return 0;
}

static int start_watch(struct pressure *p)
{
	int r = open_watch(p);

	p->before_ns[0] = p->before_ns[1] = p->armed_ns;
	if (r == 0)
		r = sd_event_add_io(p->source.env->event, &p->io, p->fd, EPOLLPRI, on_pressure, p);
	if (r < 0)
		close_watch(p);
	return r;
}

static int on_time(sd_event_source *e, uint64_t usec, void *userdata)
{
	struct pressure *p = userdata;
	uint64_t total;
	int r;

	/* After a restart, a service has a new cgroup of the same name, so try to open its file again. */
	if (p->fd < 0 && start_watch(p) == 0)
		p->source.stats.gone = NULL;
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

	close_watch(p);
	sd_event_source_disable_unref(p->timer);
}

static int pressure_open(struct fr_source *s, struct fr_diag *d)
{
	struct pressure *p = (struct pressure *)s;
	uint64_t half_usec;
	int r;

	p->fd = -1;
	r = parse_config(s->config, &p->subject, d);
	if (r == 0)
		r = find_file(p, d);
	if (r < 0)
		return r;
	s->stats.unit = FR_CAUSE_NS;
	s->stats.threshold = p->subject.threshold_ns;
	half_usec = p->subject.interval_ns / 2 / FR_NSEC_PER_USEC;
	r = start_watch(p);
	if (r >= 0)
		r = sd_event_add_time_relative(
			s->env->event, &p->timer, CLOCK_MONOTONIC, half_usec, half_usec / 8, on_time, p);
	return r < 0 ? explain_open(p, r, d) : 0;
}

static void pressure_get_stats(struct fr_source *s, struct fr_source_stats *ret)
{
	(void)measure((struct pressure *)s);
	*ret = s->stats;
}

const struct fr_source_class fr_source_pressure = {.name = "pressure",
	.size = sizeof(struct pressure),
	.open = pressure_open,
	.close = pressure_close,
	.get_stats = pressure_get_stats,
	.check = pressure_check};
