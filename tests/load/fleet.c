/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Loads for the broker of a fleet.
 *
 * "frtest-fleet agents" simulates many machines in one process, each with a connection, a subscription and
 * messages of its own, as the agents of real machines have them. Only the dump itself is missing. It prints a
 * line when all machines are there, and a line for each command when the last machine has answered.
 * "frtest-fleet index" stores many entries of the index.
 */

#include "fleet.h"
#include "load.h"

#include <sys/resource.h>
#include <time.h>

#define S_NS 1000000000ULL
#define ZONES "abcd"

uint64_t sim_wall_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * S_NS + (uint64_t)t.tv_nsec;
}

struct fr_bus *sim_connect(const struct sim_options *o, const char *name)
{
	struct fr_bus_config config = {
		.servers = o->servers, .user = o->user, .password = o->password, .name = name};
	struct fr_diag d = {0};
	struct fr_bus *bus;

	if (fr_bus_new(&config, false, SIM_TIMEOUT_NS, &bus, &d) < 0)
		errx(EXIT_FAILURE, "%s: %s", name, d.what);
	return bus;
}

void sim_machine(uint64_t i, char name[FR_FLEET_NAME_SIZE], struct fr_labels *labels)
{
	char text[FR_LABEL_SIZE];
	struct fr_diag d = {0};

	snprintf(name, FR_FLEET_NAME_SIZE, "sim-%05" PRIu64, i);
	snprintf(text, sizeof(text), "role=%s,zone=%c", i % 10 ? "web" : "db", ZONES[i % 4]);
	if (fr_labels_parse(text, labels, &d) < 0)
		errx(EXIT_FAILURE, "%s: %s", text, d.what);
}

void sim_clock(struct fr_fleet_clock *ret)
{
	uint64_t now = fr_load_now_ns();

	*ret = (struct fr_fleet_clock){
		.offset_ns = (int64_t)(sim_wall_ns() - now), .error_ns = 100000, .measured_ns = now};
}

void sim_manifest(struct fr_fleet_manifest *ret, const char *id, const char *machine,
	const struct fr_labels *labels, uint64_t to_ns)
{
	struct fr_fleet_manifest m = {.labels = *labels,
		.trigger = "fleet",
		.cause = "a simulated dump",
		.by = "bench@frtest",
		.from_ns = to_ns - 30 * S_NS,
		.to_ns = to_ns,
		.at_ns = to_ns,
		.bytes = 1 << 20,
		.samples = 10000};
	char token[FR_FLEET_TOKEN_SIZE];

	fr_fleet_token(machine, token);
	snprintf(m.id, sizeof(m.id), "%s", id);
	snprintf(m.machine, sizeof(m.machine), "%s", machine);
	snprintf(m.boot_id, sizeof(m.boot_id), "00000000-0000-4000-8000-000000000000");
	/* The id begins with the time, as the name of a file ends with it. */
	snprintf(m.file, sizeof(m.file), "perf.data.sample.%.16s", id);
	snprintf(m.object, sizeof(m.object), "fleet/%s/%s/%s", id, token, m.file);
	memset(m.sha256, 'a', sizeof(m.sha256) - 1);
	sim_clock(&m.clock);
	*ret = m;
}

void sim_store(struct fr_bus *bus, const char *stream, const char *prefix, const char *id,
	const char *machine, char *text)
{
	char subject[FR_FLEET_SUBJECT_SIZE];
	struct fr_diag d = {0};

	if (!text)
		errx(EXIT_FAILURE, "no memory");
	fr_fleet_subject(prefix, id, machine, subject);
	if (fr_bus_store(bus, stream, subject, text, strlen(text), FR_BUS_ANY, SIM_TIMEOUT_NS, NULL, &d) < 0)
		errx(EXIT_FAILURE, "%s: %s", subject, d.what);
	free(text);
}

/* Each connection needs a descriptor. */
static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

int main(int argc, char *argv[])
{
	static const char usage[] =
		"frtest-fleet agents|index [-s SERVERS] [-u USER] [-p PASSWORD] [-n NUMBER] "
		"[-t THREADS] [-c CONNECTIONS] [-d DUMP_MS]";
	char local[] = "nats://127.0.0.1:4222", *servers = local, *user = NULL, *password = NULL;
	struct sim_options o = {.n = 1000, .threads = 64, .connections = 4};

	if (argc < 2)
		errx(2, "usage: %s", usage);
	fr_load_options(argc - 1, argv + 1, usage,
		(struct fr_load_option[]){{'s', .text = &servers}, {'u', .text = &user},
			{'p', .text = &password}, {'n', .count = &o.n}, {'t', .count = &o.threads},
			{'c', .count = &o.connections}, {'d', .count = &o.dump_ms}, {0}});
	o.servers = servers;
	o.user = user;
	o.password = password;
	raise_limit();
	/* Each connection would read the certificates of the system, which takes 40 ms. Here is no TLS. */
	setenv("SSL_CERT_FILE", "/dev/null", 0);
	if (!strcmp(argv[1], "agents"))
		return sim_agents(&o);
	if (!strcmp(argv[1], "index"))
		return sim_index(&o);
	errx(2, "usage: %s", usage);
}
