// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/progress.h"
#include "base/utf8.h"
#include "flightrec-fleet/fleet_program.h"

#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#define CONNECT_NS (5 * FR_NSEC_PER_SEC)
/* A command that chooses no machine. */
#define CLOCK_SELECTOR "name=clock,name!=clock"

static const char *or_null(const char *text)
{
	return text && *text ? text : NULL;
}

static const char *first_of(const char *a, const char *b)
{
	return or_null(a) ? a : or_null(b);
}

/* Writes "user@host". */
static void find_name(char ret[FR_FLEET_TEXT_SIZE])
{
	const char *user = getenv("SUDO_USER");
	char text[4096];
	struct passwd entry, *p = NULL;
	char host[HOST_NAME_MAX + 1] = "";

	gethostname(host, sizeof(host) - 1);
	if (!user && getpwuid_r(getuid(), &entry, text, sizeof(text), &p) == 0 && p)
		user = p->pw_name;
	snprintf(ret, FR_FLEET_TEXT_SIZE, "%.120s@%s", user ? user : "?", host);
	fr_utf8_sanitize(ret);
}

int fleet_open_config(struct fleet *f, struct fr_diag *d)
{
	const struct fr_fleet_config *c = &f->config.fleet;
	int r;

	find_name(f->name);
	fr_config_init(&f->config);
	r = fr_config_load(&f->config, f->command->config, d);
	if (r < 0)
		return r;
	r = c->upload && *c->upload ? fr_fleet_location_parse(c->upload, &f->location, d) : 0;
	if (r < 0)
		fr_diag_prefix(d, "Upload=%s", c->upload);
	return r;
}

int fleet_open_bus(struct fleet *f, void (*on_link)(void *ctx, bool is_up), struct fr_diag *d)
{
	const struct fleet_command *c = f->command;
	char client[FR_FLEET_TEXT_SIZE + 32];
	const struct fr_bus_config config = {
		.servers = first_of(c->servers, f->config.fleet.servers),
		.credentials = c->credentials,
		.ca = or_null(f->config.fleet.ca),
		.certificate = c->certificate,
		.key = c->key,
		.user = c->user,
		.password = c->password,
		.name = client,
		.on_link = on_link,
		.ctx = f,
	};
	int r;

	if (!config.servers)
		return fr_fail(d, -EINVAL,
			"set Servers= in [Fleet] of the configuration, or give --servers=nats://HOST:4222",
			"there is no address of a broker");
	snprintf(client, sizeof(client), FLEET_PROGRAM " %s", f->name);
	r = fr_bus_new(&config, false, CONNECT_NS, &f->bus, d);
	if (r < 0)
		fr_diag_prefix(d, "the broker");
	return r;
}

static int copy_key(char **to, const char *from)
{
	*to = from ? strdup(from) : NULL;
	return from && !*to ? -ENOMEM : 0;
}

static int keys_of_environment(struct fr_store_keys *ret)
{
	int r = copy_key(&ret->access_key, getenv("AWS_ACCESS_KEY_ID"));

	if (r == 0)
		r = copy_key(&ret->secret_key, getenv("AWS_SECRET_ACCESS_KEY"));
	return r == 0 ? copy_key(&ret->session_token, or_null(getenv("AWS_SESSION_TOKEN"))) : r;
}

/* In the order of the programs of AWS: an option, the environment, files. */
static int find_keys(const struct fleet *f, struct fr_store_keys *ret, struct fr_diag *d)
{
	const char *file = or_null(f->command->store_credentials), *home = getenv("HOME");
	const char *profile = or_null(getenv("AWS_PROFILE"));
	char path[512];

	if (!file && or_null(getenv("AWS_ACCESS_KEY_ID")) && or_null(getenv("AWS_SECRET_ACCESS_KEY")))
		return keys_of_environment(ret);
	if (!file)
		file = or_null(getenv("AWS_SHARED_CREDENTIALS_FILE"));
	snprintf(path, sizeof(path), "%s/.aws/credentials", home ? home : "");
	if (!file && access(path, R_OK) == 0)
		file = path;
	if (!file)
		file = or_null(f->config.fleet.upload_credentials);
	if (!file)
		return fr_fail(d, -EACCES,
			"give --store-credentials=FILE, or set AWS_ACCESS_KEY_ID and so on",
			"there are no keys for the store");
	return fr_store_keys_read(file, profile, ret, d);
}

static void count_progress(void *ctx, uint64_t bytes)
{
	struct fleet *f = ctx;

	f->done_bytes += bytes;
	if (f->total_bytes)
		fr_progress_draw(NULL, FR_MIN(f->done_bytes, f->total_bytes), f->total_bytes);
}

int fleet_open_store(struct fleet *f, struct fr_diag *d)
{
	const struct fr_fleet_config *c = &f->config.fleet;
	struct fr_store_keys keys = {0};
	struct fr_store_config config = {
		.endpoint = or_null(c->upload_endpoint),
		.region = or_null(c->upload_region),
		.bucket = f->location.bucket,
		.ca = or_null(c->ca),
		.on_progress = count_progress,
		.ctx = f,
	};
	int r;

	if (!*f->location.bucket)
		return fr_fail(d, -EINVAL,
			"set Upload= and UploadEndpoint= in [Fleet] of the configuration, as on the machines",
			"there is no address of a store");
	r = find_keys(f, &keys, d);
	if (r == 0) {
		config.access_key = keys.access_key;
		config.secret_key = keys.secret_key;
		config.session_token = keys.session_token;
		r = fr_store_new(&config, &f->store, d);
	}
	fr_store_keys_deinit(&keys);
	return r;
}

void fleet_close(struct fleet *f)
{
	f->bus = fr_bus_free(f->bus);
	f->store = fr_store_free(f->store);
	fr_config_deinit(&f->config);
}

static int store_clock(struct fleet *f, const char *subject, struct fr_diag *d)
{
	const struct fr_fleet_command c = {.id = FLEET_CLOCK_ID, .selector = CLOCK_SELECTOR};
	_cleanup_free_ char *json = fr_fleet_command_json(&c);

	if (!json)
		return -ENOMEM;
	return fr_bus_store(f->bus, FR_STREAM_COMMANDS, subject, json, strlen(json), FR_BUS_ANY,
		FLEET_TIMEOUT_NS, NULL, d);
}

int fleet_measure_clock(struct fleet *f, struct fr_fleet_clock *ret, struct fr_diag *d)
{
	struct fr_fleet_clock_estimator e = {0};
	char subject[FR_FLEET_SUBJECT_SIZE];
	struct fr_bus_message m = {0};
	const uint64_t before_ns = fr_monotonic_ns();
	uint64_t after_ns;
	int r;

	fr_fleet_subject(FR_SUBJECT_COMMAND, FLEET_CLOCK_ID, NULL, subject);
	r = store_clock(f, subject, d);
	after_ns = fr_monotonic_ns();
	if (r == 0)
		r = fr_bus_last(f->bus, FR_STREAM_COMMANDS, subject, FLEET_TIMEOUT_NS, &m, d);
	if (r > 0)
		r = fr_fail(d, -EBADMSG, NULL, "the broker lost the message that measures its clock");
	if (r < 0)
		return r;
	fr_fleet_clock_add(&e, before_ns, after_ns, m.time_ns);
	fr_bus_message_deinit(&m);
	fr_fleet_clock_get(&e, fr_monotonic_ns(), fr_now_ns(CLOCK_REALTIME), ret);
	return 0;
}

uint64_t fleet_now(struct fleet *f, uint64_t newest_ns)
{
	const uint64_t wall_ns = fr_now_ns(CLOCK_REALTIME);
	struct fr_fleet_clock clock;

	/* Each machine stores its presence each 30 s, so the wall clock cannot be far from this. */
	if (wall_ns >= newest_ns && wall_ns - newest_ns < 2 * FR_PRESENCE_INTERVAL_NS)
		return wall_ns;
	if (fleet_measure_clock(f, &clock, NULL) < 0)
		return FR_MAX(wall_ns, newest_ns);
	return fr_fleet_clock_to_fleet(&clock, fr_monotonic_ns());
}
