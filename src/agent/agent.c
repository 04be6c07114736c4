// SPDX-License-Identifier: GPL-2.0-or-later
#include "agent/agent_private.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>

#define JOBS "jobs"
/* A call to the broker has a limit of 10 s; a step of an upload, of 10 minutes. */
#define BUS_SILENT_NS (60 * FR_NSEC_PER_SEC)
#define UPLOAD_SILENT_NS (1200 * FR_NSEC_PER_SEC)

uint32_t fr_agent_random(void)
{
	uint32_t v = 0;

	if (getrandom(&v, sizeof(v), 0) != sizeof(v))
		v = (uint32_t)fr_monotonic_ns();
	return v;
}

bool fr_agent_set_text(struct fr_agent *a, char text[256], const char *why)
{
	bool is_new;

	fr_lock(&a->lock);
	is_new = strncmp(text, why, 255) != 0;
	snprintf(text, 256, "%s", why);
	if (is_new) {
		a->presence_now = true;
		fr_cond_broadcast(&a->cond);
	}
	fr_unlock(&a->lock);
	return is_new;
}

void fr_agent_wait(struct fr_agent *a, uint64_t until_ns)
{
	(void)fr_cond_wait_until(&a->cond, &a->lock, until_ns);
}

uint64_t fr_agent_now_fleet(struct fr_agent *a)
{
	struct fr_fleet_clock clock;

	fr_lock(&a->lock);
	clock = a->clock;
	fr_unlock(&a->lock);
	return clock.error_ns == UINT64_MAX ? fr_now_ns(CLOCK_REALTIME)
					    : fr_fleet_clock_to_fleet(&clock, fr_monotonic_ns());
}

static int set_name(struct fr_agent *a, struct fr_diag *d)
{
	const char *hint = "set Name= in [Fleet] of flightrecd.conf(5)";

	if (*a->fleet->name)
		snprintf(a->name, sizeof(a->name), "%s", a->fleet->name);
	else if (gethostname(a->name, sizeof(a->name) - 1) < 0)
		return fr_fail_errno(d, -errno, hint, "cannot get the name of this machine");
	if (!fr_fleet_name_is_valid(a->name))
		return fr_fail(
			d, -EINVAL, hint, "'%s' cannot be the name of a machine of the fleet", a->name);
	return 0;
}

static int configure(struct fr_agent *a, struct fr_diag *d)
{
	int r = set_name(a, d);

	if (r == 0)
		r = fr_labels_parse(a->fleet->labels, &a->labels, d);
	if (r < 0)
		return r;
	if (!*a->fleet->servers)
		return fr_fail(d, -EINVAL, "set Servers=nats://HOST:4222 in [Fleet] of flightrecd.conf(5)",
			"Enabled=yes in [Fleet] needs the addresses of the broker");
	a->has_location = *a->fleet->upload;
	if (a->has_location)
		r = fr_fleet_location_parse(a->fleet->upload, &a->location, d);
	return r == 0 ? fr_boot_id_read(a->boot_id) : r;
}

static int open_state(struct fr_agent *a, const char *path, struct fr_diag *d)
{
	const char *hint = "give another directory with --state";

	a->state_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (a->state_fd < 0)
		return fr_fail_errno(d, -errno, hint, "cannot open the directory of the state, %s", path);
	a->jobs_fd = fr_directory_make(a->state_fd, JOBS, (gid_t)-1);
	if (a->jobs_fd < 0)
		return fr_fail_errno(d, a->jobs_fd, hint, "cannot make a directory in %s", path);
	if (faccessat(a->jobs_fd, ".", W_OK, 0) < 0)
		return fr_fail_errno(d, -errno, hint, "cannot write to %s/" JOBS, path);
	return fr_table_load(a, d);
}

static const struct {
	void *(*run)(void *agent);
	size_t offset;
} threads[] = {
	{fr_agent_upload_main, offsetof(struct fr_agent, upload_thread)},
	{fr_agent_watch_main, offsetof(struct fr_agent, watch_thread)},
	{fr_agent_bus_main, offsetof(struct fr_agent, bus_thread)},
	{fr_agent_dump_main, offsetof(struct fr_agent, dump_threads)},
	{fr_agent_dump_main, offsetof(struct fr_agent, dump_threads) + sizeof(pthread_t)},
	{fr_agent_dump_main, offsetof(struct fr_agent, dump_threads) + 2 * sizeof(pthread_t)},
	{fr_agent_dump_main, offsetof(struct fr_agent, dump_threads) + 3 * sizeof(pthread_t)},
};
_Static_assert(FR_ARRAY_SIZE(threads) == AGENT_DUMPS + 3, "one entry for each thread");

static pthread_t *thread_at(struct fr_agent *a, size_t i)
{
	return (pthread_t *)((char *)a + threads[i].offset);
}

static int start_threads(struct fr_agent *a, struct fr_diag *d)
{
	atomic_store(&a->bus_beat_ns, fr_monotonic_ns());
	atomic_store(&a->upload_beat_ns, fr_monotonic_ns());
	for (size_t i = 0; i < FR_ARRAY_SIZE(threads); i++) {
		int r = -pthread_create(thread_at(a, i), NULL, threads[i].run, a);

		if (r < 0)
			return fr_fail_errno(d, r, NULL, "cannot start a thread");
		a->n_threads++;
	}
	return 0;
}

int fr_agent_new(const struct fr_agent_config *config, struct fr_agent **ret, struct fr_diag *d)
{
	struct fr_agent *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	fr_lock_init(&a->lock);
	fr_cond_init(&a->cond);
	a->fleet = config->fleet;
	a->socket = config->socket;
	a->state_fd = a->jobs_fd = -1;
	a->clock.error_ns = UINT64_MAX;
	strcpy(a->stats.recorder, "the recorder has not been asked yet");
	r = configure(a, d);
	if (r == 0)
		r = open_state(a, config->state, d);
	if (r == 0)
		r = start_threads(a, d);
	if (r < 0) {
		fr_agent_free(a, false);
		return r;
	}
	*ret = a;
	return 0;
}

struct fr_agent *fr_agent_free(struct fr_agent *a, bool is_leaving)
{
	if (!a)
		return NULL;
	fr_lock(&a->lock);
	a->is_leaving = is_leaving;
	atomic_store(&a->stop, true);
	fr_recorder_break(a);
	fr_cond_broadcast(&a->cond);
	fr_unlock(&a->lock);
	while (a->n_threads > 0)
		pthread_join(*thread_at(a, --a->n_threads), NULL);
	fr_table_deinit(a);
	if (a->jobs_fd >= 0)
		close(a->jobs_fd);
	if (a->state_fd >= 0)
		close(a->state_fd);
	fr_cond_deinit(&a->cond);
	fr_lock_deinit(&a->lock);
	free(a);
	return NULL;
}

bool fr_agent_is_alive(struct fr_agent *a)
{
	const uint64_t now_ns = fr_monotonic_ns();
	const uint64_t bus_ns = atomic_load(&a->bus_beat_ns), upload_ns = atomic_load(&a->upload_beat_ns);

	return (bus_ns > now_ns || now_ns - bus_ns < BUS_SILENT_NS) &&
	       (upload_ns > now_ns || now_ns - upload_ns < UPLOAD_SILENT_NS);
}

void fr_agent_stats(struct fr_agent *a, struct fr_agent_stats *ret)
{
	fr_lock(&a->lock);
	*ret = a->stats;
	ret->name = a->name;
	ret->jobs = a->n_jobs;
	ret->clock_offset_ns = a->clock.offset_ns;
	ret->clock_error_ns = a->clock.error_ns;
	fr_table_uploads(a, &ret->uploads, &ret->uploads_bytes);
	fr_unlock(&a->lock);
}
