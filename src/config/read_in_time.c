// SPDX-License-Identifier: GPL-2.0-or-later
#include "config/read_in_time.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"
#include "base/units.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

/* The reading thread and the waiting thread share this struct. The thread that uses the struct last frees
   it. */
struct reading {
	struct fr_lock lock;
	struct fr_cond changed;
	int argc;
	char **argv;
	struct fr_config config;
	struct fr_diag diag;
	int result;
	bool done, abandoned;
};

/* True: a reading thread hangs. Another reading thread would hang, too, so no other thread is started. */
static atomic_bool is_hanging;

static void reading_free(struct reading *r)
{
	fr_config_deinit(&r->config);
	fr_cond_deinit(&r->changed);
	fr_lock_deinit(&r->lock);
	free(r);
}

static void *reader_main(void *arg)
{
	struct reading *r = arg;
	bool abandoned;

	fr_thread_begin(FR_THREAD_CONFIG);
	r->result = fr_options_parse(&r->config, r->argc, r->argv, &r->diag);
	if (r->result == 0)
		r->result = fr_config_check(&r->config, &r->diag);
	fr_lock(&r->lock);
	r->done = true;
	abandoned = r->abandoned;
	fr_cond_broadcast(&r->changed);
	fr_unlock(&r->lock);
	if (abandoned) {
		reading_free(r);
		atomic_store(&is_hanging, false);
	}
	return NULL;
}

static struct reading *reading_new(int argc, char *argv[])
{
	struct reading *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	*r = (struct reading){.argc = argc, .argv = argv};
	fr_lock_init(&r->lock);
	fr_cond_init(&r->changed);
	fr_config_init(&r->config);
	return r;
}

/* Waits until the read is done. Returns true; or false if the read took too long. After false, R belongs to
   the reading thread. */
static bool wait_until_done(struct reading *r, uint64_t limit_ns)
{
	const uint64_t until = fr_monotonic_ns() + limit_ns;
	bool done;

	fr_lock(&r->lock);
	while (!r->done && fr_cond_wait_until(&r->changed, &r->lock, until))
		;
	done = r->done;
	r->abandoned = !done;
	if (!done)
		atomic_store(&is_hanging, true);
	fr_unlock(&r->lock);
	return done;
}

static int fail_busy(struct fr_diag *d, uint64_t limit_ns)
{
	char text[FR_UNIT_SIZE];

	return fr_fail(d, -EBUSY,
		"try again when the file system of the configuration answers; find it with `findmnt -T FILE`",
		"the configuration was not read within %s", fr_duration_format(limit_ns, text));
}

int fr_config_read_in_time(
	uint64_t limit_ns, struct fr_config *ret, int argc, char *argv[], struct fr_diag *d)
{
	struct reading *r = atomic_load(&is_hanging) ? NULL : reading_new(argc, argv);
	pthread_t thread;
	int code;

	if (!r)
		return atomic_load(&is_hanging) ? fail_busy(d, limit_ns) : -ENOMEM;
	code = -pthread_create(&thread, NULL, reader_main, r);
	if (code < 0) {
		reading_free(r);
		return fr_fail_errno(d, code, NULL, "cannot start the thread that reads the configuration");
	}
	if (!wait_until_done(r, limit_ns)) {
		pthread_detach(thread);
		return fail_busy(d, limit_ns);
	}
	pthread_join(thread, NULL);
	fr_config_deinit(ret);
	*ret = r->config;
	r->config = (struct fr_config){0};
	if (r->diag.code && d)
		*d = r->diag;
	code = r->result;
	reading_free(r);
	return code;
}
