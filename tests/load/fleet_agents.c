/* SPDX-License-Identifier: GPL-2.0-or-later */

/* A bell comes on a thread of the bus, which must not wait. So it puts a job into a queue, and worker threads
   do what an agent does: they read the stored command, store the presence, and store the answers and the
   entry of the index. */

#include "fleet.h"
#include "load.h"

#include <pthread.h>

struct agent {
	char name[FR_FLEET_NAME_SIZE];
	struct fr_labels labels;
	struct fr_bus *bus;
};

struct job {
	struct agent *agent;
	char subject[FR_FLEET_SUBJECT_SIZE]; /* of the command; "": only the presence */
	/* The second half of a command. An upload takes seconds, so it begins behind the answers of other
	 * machines. */
	bool is_upload;
	char id[FR_FLEET_ID_SIZE];
	uint64_t stored_ns, bell_ns;
};

static struct sim {
	const struct sim_options *o;
	struct agent *agents;
	pthread_mutex_t lock;
	pthread_cond_t there;
	struct job *jobs; /* a ring of SIZE elements */
	size_t size, first, n;
	uint64_t dropped;
	/* about the command that is being answered */
	char id[FR_FLEET_ID_SIZE];
	uint64_t first_ns, answers;
} sim = {.lock = PTHREAD_MUTEX_INITIALIZER, .there = PTHREAD_COND_INITIALIZER};

static void put(const struct job *job)
{
	pthread_mutex_lock(&sim.lock);
	if (sim.n == sim.size) {
		sim.dropped++;
	} else {
		sim.jobs[(sim.first + sim.n++) % sim.size] = *job;
		pthread_cond_signal(&sim.there);
	}
	pthread_mutex_unlock(&sim.lock);
}

static void put_job(struct agent *a, const char *subject)
{
	struct job job = {.agent = a};

	snprintf(job.subject, sizeof(job.subject), "%s", subject);
	put(&job);
}

static void take_job(struct job *ret)
{
	pthread_mutex_lock(&sim.lock);
	while (!sim.n)
		pthread_cond_wait(&sim.there, &sim.lock);
	*ret = sim.jobs[sim.first];
	sim.first = (sim.first + 1) % sim.size;
	sim.n--;
	pthread_mutex_unlock(&sim.lock);
}

static void on_bell(void *ctx, const char *subject)
{
	put_job(ctx, subject);
}

static void store_presence(struct agent *a)
{
	struct fr_fleet_presence p = {.labels = a->labels, .version = "frtest"};

	snprintf(p.machine, sizeof(p.machine), "%s", a->name);
	snprintf(p.boot_id, sizeof(p.boot_id), "00000000-0000-4000-8000-000000000000");
	sim_clock(&p.clock);
	sim_store(a->bus, FR_STREAM_PRESENCE, FR_SUBJECT_PRESENCE, NULL, a->name, fr_fleet_presence_json(&p));
}

static void store_answer(
	struct agent *a, const char *id, enum fr_fleet_state state, const struct fr_fleet_manifest *m)
{
	struct fr_fleet_answer answer = {.state = state};

	snprintf(answer.id, sizeof(answer.id), "%s", id);
	snprintf(answer.machine, sizeof(answer.machine), "%s", a->name);
	if (state != FR_FLEET_RECORDING) {
		snprintf(answer.path, sizeof(answer.path), "/var/lib/flightrec/%s", m->file);
		answer.bytes = m->bytes;
	}
	if (state == FR_FLEET_STORED)
		snprintf(answer.object, sizeof(answer.object), "%s", m->object);
	sim_store(a->bus, FR_STREAM_ANSWERS, FR_SUBJECT_ANSWER, id, a->name, fr_fleet_answer_json(&answer));
}

/* Prints a line when the last machine has answered. */
static void count_answer(const char *id, uint64_t bell_ns)
{
	pthread_mutex_lock(&sim.lock);
	if (strcmp(sim.id, id)) {
		snprintf(sim.id, sizeof(sim.id), "%s", id);
		sim.answers = 0;
		sim.first_ns = bell_ns;
	}
	sim.first_ns = bell_ns < sim.first_ns ? bell_ns : sim.first_ns;
	if (++sim.answers == sim.o->n) {
		printf("{\"id\":\"%s\",\"answers\":%" PRIu64 ",\"ns\":%" PRIu64 ",\"dropped\":%" PRIu64 "}\n",
			id, sim.answers, fr_load_now_ns() - sim.first_ns, sim.dropped);
		fflush(stdout);
	}
	pthread_mutex_unlock(&sim.lock);
}

/* What an agent does to measure the clock: it stores its presence, and reads when the broker stored it. */
static void measure(struct agent *a)
{
	char subject[FR_FLEET_SUBJECT_SIZE];
	struct fr_bus_message m = {0};
	struct fr_diag d = {0};

	store_presence(a);
	fr_fleet_subject(FR_SUBJECT_PRESENCE, NULL, a->name, subject);
	if (fr_bus_last(a->bus, FR_STREAM_PRESENCE, subject, SIM_TIMEOUT_NS, &m, &d) < 0)
		errx(EXIT_FAILURE, "%s: %s: %s", a->name, subject, d.what);
	fr_bus_message_deinit(&m);
}

static void answer(struct agent *a, const struct fr_fleet_command *c, uint64_t stored_ns)
{
	struct fr_fleet_manifest m;

	measure(a);
	store_answer(a, c->id, FR_FLEET_RECORDING, NULL);
	if (sim.o->dump_ms)
		fr_load_sleep_ms(sim.o->dump_ms);
	sim_manifest(&m, c->id, a->name, &a->labels, stored_ns);
	store_answer(a, c->id, FR_FLEET_DONE, &m);
}

static void upload(const struct job *job)
{
	struct agent *a = job->agent;
	struct fr_fleet_manifest m;

	sim_manifest(&m, job->id, a->name, &a->labels, job->stored_ns);
	sim_store(a->bus, FR_STREAM_INDEX, FR_SUBJECT_INDEX, job->id, a->name, fr_fleet_manifest_json(&m));
	store_answer(a, job->id, FR_FLEET_STORED, &m);
	count_answer(job->id, job->bell_ns);
}

static void obey(struct agent *a, const char *subject)
{
	uint64_t bell_ns = fr_load_now_ns();
	struct fr_fleet_command c = {0};
	struct fr_bus_message m = {0};
	struct fr_diag d = {0};
	int r = fr_bus_last(a->bus, FR_STREAM_COMMANDS, subject, SIM_TIMEOUT_NS, &m, &d);

	if (r < 0)
		errx(EXIT_FAILURE, "%s: %s: %s", a->name, subject, d.what);
	if (r > 0)
		return;
	if (fr_fleet_command_read(m.data, m.n, &c, &d) < 0)
		errx(EXIT_FAILURE, "%s: %s", subject, d.what);
	if (fr_selector_matches(c.selector, a->name, &a->labels)) {
		struct job job = {.agent = a, .is_upload = true, .stored_ns = m.time_ns, .bell_ns = bell_ns};

		snprintf(job.id, sizeof(job.id), "%s", c.id);
		answer(a, &c, m.time_ns);
		put(&job);
	}
	fr_bus_message_deinit(&m);
}

static void *work(void *unused)
{
	struct job job;

	for (;;) {
		take_job(&job);
		if (job.is_upload)
			upload(&job);
		else if (*job.subject)
			obey(job.agent, job.subject);
		else
			store_presence(job.agent);
	}
	return unused;
}

static void start_agent(struct agent *a, uint64_t i)
{
	char client[FR_FLEET_NAME_SIZE + 20];
	struct fr_diag d = {0};

	sim_machine(i, a->name, &a->labels);
	snprintf(client, sizeof(client), "flightrec-agent %s", a->name);
	a->bus = sim_connect(sim.o, client);
	if (fr_bus_subscribe(a->bus, FR_SUBJECT_COMMAND ".*", on_bell, a, &d) < 0)
		errx(EXIT_FAILURE, "%s: %s", a->name, d.what);
	store_presence(a);
}

static void start_workers(void)
{
	pthread_t thread;

	for (uint64_t i = 0; i < sim.o->threads; i++)
		if (pthread_create(&thread, NULL, work, NULL) != 0 || pthread_detach(thread) != 0)
			errx(EXIT_FAILURE, "cannot start a thread");
}

int sim_agents(const struct sim_options *o)
{
	uint64_t begin = fr_load_now_ns(), next;

	fr_load_count_terms();
	sim.o = o;
	sim.size = o->n * 8;
	sim.agents = calloc(o->n, sizeof(*sim.agents));
	sim.jobs = calloc(sim.size, sizeof(*sim.jobs));
	if (!sim.agents || !sim.jobs)
		errx(EXIT_FAILURE, "no memory");
	start_workers();
	for (uint64_t i = 0; i < o->n && !fr_load_terms; i++)
		start_agent(&sim.agents[i], i);
	printf("{\"agents\":%" PRIu64 ",\"ns\":%" PRIu64 "}\n", o->n, fr_load_now_ns() - begin);
	fflush(stdout);
	next = fr_load_now_ns() + FR_PRESENCE_INTERVAL_NS;
	for (uint64_t i = 0; !fr_load_terms; fr_load_sleep_ms(20))
		/* The agents do not all store their presence at one instant, since they did not start at one.
		 */
		for (; fr_load_now_ns() > next; next += FR_PRESENCE_INTERVAL_NS / o->n, i++)
			put_job(&sim.agents[i % o->n], "");
	_exit(0); /* the workers hold the connections */
}
