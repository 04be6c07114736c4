// SPDX-License-Identifier: GPL-2.0-or-later
/* The upload thread: brings one dump after the other to the store, and lets the recorder release it. A dump
   that fails waits, and does not delay the others. */
#include "agent/agent_private.h"
#include "base/cleanup.h"
#include "base/thread.h"
#include "control/interface.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define GIVE_UP_NS (7 * 86400 * FR_NSEC_PER_SEC)
#define HELD_NS (86400 * FR_NSEC_PER_SEC) /* then the recorder releases the dump by itself */
#define FULL_PAUSE_NS (60 * FR_NSEC_PER_SEC)
#define CALL_TIMEOUT_NS (30 * FR_NSEC_PER_SEC)
#define WAIT_MAX_NS (5 * FR_NSEC_PER_SEC)

static void on_progress(void *ctx, uint64_t bytes)
{
	struct fr_agent *a = ctx;

	atomic_store(&a->upload_beat_ns, fr_monotonic_ns());
	fr_lock(&a->lock);
	a->stats.uploaded_bytes += bytes;
	fr_unlock(&a->lock);
}

static const char *or_null(const char *text)
{
	return text && *text ? text : NULL;
}

/* Reads the keys: of UploadCredentials=, or else of the environment. */
static int read_keys(struct fr_agent *a, struct fr_store_keys *ret, struct fr_diag *d)
{
	const char *access = getenv("AWS_ACCESS_KEY_ID"), *secret = getenv("AWS_SECRET_ACCESS_KEY");
	const char *token = getenv("AWS_SESSION_TOKEN");

	if (*a->fleet->upload_credentials)
		return fr_store_keys_read(a->fleet->upload_credentials, NULL, ret, d);
	if (!or_null(access) || !or_null(secret))
		return fr_fail(
			d, -ENOKEY, "set UploadCredentials= in [Fleet]", "there are no keys for the store");
	ret->access_key = strdup(access);
	ret->secret_key = strdup(secret);
	ret->session_token = or_null(token) ? strdup(token) : NULL;
	return ret->access_key && ret->secret_key && (ret->session_token || !or_null(token)) ? 0 : -ENOMEM;
}

static int open_store(struct fr_agent *a, struct fr_store **ret, struct fr_diag *d)
{
	const struct fr_fleet_config *f = a->fleet;
	struct fr_store_keys keys = {0};
	int r = read_keys(a, &keys, d);

	if (r == 0) {
		const struct fr_store_config config = {.endpoint = or_null(f->upload_endpoint),
			.region = or_null(f->upload_region),
			.bucket = a->location.bucket,
			.access_key = keys.access_key,
			.secret_key = keys.secret_key,
			.session_token = keys.session_token,
			.ca = or_null(f->ca),
			.limit_bytes = f->upload_limit,
			.cancel = &a->stop,
			.on_progress = on_progress,
			.ctx = a};

		r = fr_store_new(&config, ret, d);
	}
	fr_store_keys_deinit(&keys);
	return r;
}

static bool is_mine(const struct fr_job *j)
{
	return j->phase == FR_JOB_UPLOAD || j->phase == FR_JOB_RELEASE;
}

/* Waits for the job that is due next. Returns NULL when the agent stops. */
static struct fr_job *take(struct fr_agent *a)
{
	struct fr_job *due = NULL;

	fr_lock(&a->lock);
	while (!due && !atomic_load(&a->stop)) {
		const uint64_t now_ns = fr_monotonic_ns();
		uint64_t until_ns = now_ns + WAIT_MAX_NS;

		atomic_store(&a->upload_beat_ns, now_ns);
		for (size_t i = 0; i < a->n_jobs; i++) {
			struct fr_job *j = a->jobs[i];

			if (!is_mine(j))
				continue;
			if (j->due_ns > now_ns)
				until_ns = FR_MIN(until_ns, j->due_ns);
			else if (!due || j->due_ns < due->due_ns)
				due = j;
		}
		if (!due)
			fr_agent_wait(a, until_ns);
	}
	fr_unlock(&a->lock);
	return due;
}

/* Makes the job wait. */
static void postpone(struct fr_agent *a, struct fr_job *j, int code)
{
	uint64_t pause_ns = fr_job_pause(j, fr_agent_random());

	if (code == -ENOSPC)
		pause_ns = FULL_PAUSE_NS;
	fr_lock(&a->lock);
	j->due_ns = fr_monotonic_ns() + pause_ns;
	fr_unlock(&a->lock);
}

static uint64_t age_ns(struct fr_agent *a, const struct fr_job *j)
{
	const uint64_t now_ns = fr_agent_now_fleet(a);

	return now_ns > j->stored_ns ? now_ns - j->stored_ns : 0;
}

/* Tells the recorder that the store has the dump, or that the agent gives it up. */
static void release(struct fr_agent *a, struct fr_job *j)
{
	cJSON *parameters = cJSON_CreateObject();
	struct fr_diag d = {0};
	int r;

	cJSON_AddStringToObject(parameters, "file", j->manifest.file);
	r = fr_recorder_call(a, FR_METHOD(Uploaded), parameters, CALL_TIMEOUT_NS, NULL, &d);
	if (r == -ECANCELED)
		return;
	if (r < 0 && fr_recorder_is_away(r) && age_ns(a, j) < HELD_NS) {
		postpone(a, j, r);
		return;
	}
	if (r < 0)
		fr_log(LOG_NOTICE, "%s is still held: %s", j->manifest.file, d.what);
	fr_table_pass(a, j, FR_JOB_END);
}

/* Ends the try to upload the job with the error R. */
static void failed(struct fr_agent *a, struct fr_job *j, const struct fr_diag *d, int r)
{
	const char *why = d->what[0] ? d->what : strerror(-r);
	char text[sizeof(j->answer.why)];

	/* No other try can help. */
	if (r == -ESTALE || r == -ENOKEY) {
		fr_table_end(a, j, FR_FLEET_FAILED, why);
		return;
	}
	fr_lock(&a->lock);
	a->stats.store_errors++;
	fr_unlock(&a->lock);
	if (fr_agent_set_text(a, a->stats.store, why))
		fr_log_struct(LOG_WARNING, FR_MSG_FLEET_STORE_FAILED, NULL, 0, "upload of %s: %s%s%s",
			j->path, why, d->hint[0] ? "\n  " : "", d->hint);
	if (age_ns(a, j) > GIVE_UP_NS) {
		snprintf(text, sizeof(text), "given up after 7 days: %.400s", why);
		fr_table_end(a, j, FR_FLEET_FAILED, text);
		return;
	}
	postpone(a, j, r);
}

static void upload(struct fr_agent *a, struct fr_job *j, struct fr_store **store)
{
	struct fr_upload u = {.agent = a, .job = j, .fd = -1};
	struct fr_diag d = {0};
	int r = 0;

	if (a->has_location && !*store)
		r = open_store(a, store, &d);
	u.store = *store;
	if (r == 0)
		r = fr_upload_run(&u, &d);
	if (u.fd >= 0)
		close(u.fd);
	/* The keys can have changed. */
	if (r == -EACCES || r == -EKEYREJECTED)
		*store = fr_store_free(*store);
	if (r == -ECANCELED || (r < 0 && atomic_load(&a->stop)))
		return;
	if (r < 0) {
		failed(a, j, &d, r);
		return;
	}
	if (fr_agent_set_text(a, a->stats.store, ""))
		fr_log(LOG_INFO, "the store answers");
	fr_table_pass(a, j, FR_JOB_INDEX);
}

void *fr_agent_upload_main(void *agent)
{
	struct fr_agent *a = agent;
	struct fr_store *store = NULL;
	struct fr_job *j;

	fr_thread_begin(FR_THREAD_UPLOAD);
	while ((j = take(a))) {
		if (j->phase == FR_JOB_RELEASE)
			release(a, j);
		else
			upload(a, j, &store);
	}
	fr_store_free(store);
	return NULL;
}
