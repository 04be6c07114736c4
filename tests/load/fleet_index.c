/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fleet.h"
#include "load.h"

#include <pthread.h>
#include <stdatomic.h>

/* One command a minute, which this number of machines answers. */
#define MACHINES 100u
#define INTERVAL_NS (60 * 1000000000ULL)

static struct fill {
	const struct sim_options *o;
	struct fr_bus **buses;
	atomic_uint_fast64_t next, thread;
	uint64_t end_ns;
} fill;

/* The newest entry has the highest number. */
static void store_entry(struct fr_bus *bus, uint64_t i)
{
	uint64_t commands = (fill.o->n + MACHINES - 1) / MACHINES;
	uint64_t at_ns = fill.end_ns - (commands - i / MACHINES) * INTERVAL_NS;
	char id[FR_FLEET_ID_SIZE], name[FR_FLEET_NAME_SIZE];
	struct fr_fleet_manifest m;
	struct fr_labels labels = {0};

	if (fr_fleet_id_new(at_ns, id) < 0)
		errx(EXIT_FAILURE, "no random number");
	sim_machine(i % MACHINES, name, &labels);
	/* All machines of a command have its id: the random part is the number of the command. */
	snprintf(id + 17, sizeof(id) - 17, "%08x", (unsigned)(i / MACHINES));
	sim_manifest(&m, id, name, &labels, at_ns);
	sim_store(bus, FR_STREAM_INDEX, FR_SUBJECT_INDEX, id, name, fr_fleet_manifest_json(&m));
}

static void *fill_thread(void *unused)
{
	struct fr_bus *bus = fill.buses[atomic_fetch_add(&fill.thread, 1) % fill.o->connections];
	uint64_t i;

	while ((i = atomic_fetch_add(&fill.next, 1)) < fill.o->n)
		store_entry(bus, i);
	return unused;
}

int sim_index(const struct sim_options *o)
{
	pthread_t *threads = calloc(o->threads, sizeof(*threads));
	uint64_t begin = fr_load_now_ns();

	fill.o = o;
	fill.end_ns = sim_wall_ns();
	fill.buses = calloc(o->connections, sizeof(struct fr_bus *));
	if (!threads || !fill.buses)
		errx(EXIT_FAILURE, "no memory");
	for (uint64_t i = 0; i < o->connections; i++)
		fill.buses[i] = sim_connect(o, "frtest-fleet index");
	for (uint64_t i = 0; i < o->threads; i++)
		if (pthread_create(&threads[i], NULL, fill_thread, NULL) != 0)
			errx(EXIT_FAILURE, "cannot start a thread");
	for (uint64_t i = 0; i < o->threads; i++)
		pthread_join(threads[i], NULL);
	for (uint64_t i = 0; i < o->connections; i++)
		fr_bus_free(fill.buses[i]);
	free(fill.buses);
	free(threads);
	printf("{\"entries\":%" PRIu64 ",\"ns\":%" PRIu64 "}\n", o->n, fr_load_now_ns() - begin);
	return 0;
}
