// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/utf8.h"
#include "flightrec-fleet/machines.h"
#include "flightrec-fleet/print.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define QUEUE 8192u

/* The subjects whose bells rang, and what the link did. Threads of the bus write, and the main thread reads.
 */
static struct {
	struct fr_lock lock;
	struct fr_cond cond;
	char *v[QUEUE];
	size_t first, n;
	uint64_t dropped;
	int link; /* 1: up again; -1: down; 0: nothing new */
} queue;

static void on_bell(void *ctx, const char *subject)
{
	char *copy = strndup(subject, FR_FLEET_SUBJECT_SIZE);

	fr_lock(&queue.lock);
	if (copy && queue.n < QUEUE)
		queue.v[(queue.first + queue.n++) % QUEUE] = TAKE_PTR(copy);
	else
		queue.dropped++;
	fr_cond_broadcast(&queue.cond);
	fr_unlock(&queue.lock);
	free(copy);
}

static void on_link(void *ctx, bool is_up)
{
	fr_lock(&queue.lock);
	queue.link = is_up ? 1 : -1;
	fr_cond_broadcast(&queue.cond);
	fr_unlock(&queue.lock);
}

/* Waits for a bell. Returns its subject, to be freed; or NULL if only the other values are set. */
static char *take(uint64_t *ret_dropped, int *ret_link)
{
	char *subject = NULL;

	fr_lock(&queue.lock);
	while (!queue.n && !queue.dropped && !queue.link)
		fr_cond_wait(&queue.cond, &queue.lock);
	if (queue.n) {
		subject = queue.v[queue.first];
		queue.first = (queue.first + 1) % QUEUE;
		queue.n--;
	}
	*ret_dropped = queue.dropped;
	*ret_link = queue.link;
	queue.dropped = 0;
	queue.link = 0;
	fr_unlock(&queue.lock);
	return subject;
}

/* A line of the output. */
struct line {
	const char *kind; /* "command", "answer", "index" */
	char id[FR_FLEET_ID_SIZE], machine[FR_FLEET_NAME_SIZE];
	char text[2 * FR_FLEET_SUBJECT_SIZE + 1024];
};

static void print_line(const struct fleet *f, const struct fr_bus_message *m, struct line *l)
{
	char time[FR_UNIT_SIZE];
	cJSON *o;

	if (f->command->json != FR_JSON_OFF) {
		o = cJSON_CreateObject();
		fr_json_add_time(o, "time", m->time_ns);
		cJSON_AddStringToObject(o, "kind", l->kind);
		cJSON_AddItemToObject(o, "message", cJSON_ParseWithLength(m->data, m->n + 1));
		(void)print_json(f->command, o);
	} else {
		fr_utf8_sanitize(l->text);
		printf("%s  %-7s  %s  %s\n", print_time(f->command, m->time_ns, time), l->kind, l->id,
			l->text);
	}
	fflush(stdout);
}

static bool read_command(const struct fr_bus_message *m, struct line *l)
{
	struct fr_fleet_command c = {0};

	if (fr_fleet_subject_parse(m->subject, FR_SUBJECT_COMMAND, l->id, NULL) < 0 ||
		fr_fleet_command_read(m->data, m->n, &c, NULL) < 0 || strcmp(c.id, l->id) != 0 ||
		strcmp(c.id, FLEET_CLOCK_ID) == 0)
		return false;
	l->kind = "command";
	snprintf(l->text, sizeof(l->text), "for %s by %s%s%s%s%s", c.selector, c.by,
		*c.trigger ? ", trigger " : "", c.trigger, *c.reason ? ": " : "", c.reason);
	return true;
}

static bool read_answer(const struct fr_bus_message *m, struct line *l)
{
	struct fr_fleet_answer a = {0};

	if (fr_fleet_subject_parse(m->subject, FR_SUBJECT_ANSWER, l->id, l->machine) < 0 ||
		fr_fleet_answer_read(m->data, m->n, &a, NULL) < 0 || strcmp(a.id, l->id) != 0 ||
		strcmp(a.machine, l->machine) != 0)
		return false;
	l->kind = "answer";
	snprintf(l->text, sizeof(l->text), "%s: %s %s", a.machine, fr_fleet_state_name(a.state),
		*a.why ? a.why : a.path);
	return true;
}

static bool read_entry(const struct fr_bus_message *m, struct line *l)
{
	struct fr_fleet_manifest e = {0};
	char size[FR_UNIT_SIZE];

	if (fr_fleet_subject_parse(m->subject, FR_SUBJECT_INDEX, l->id, l->machine) < 0 ||
		fr_fleet_manifest_read(m->data, m->n, &e, NULL) < 0 || strcmp(e.id, l->id) != 0 ||
		strcmp(e.machine, l->machine) != 0)
		return false;
	l->kind = "index";
	snprintf(l->text, sizeof(l->text), "%s: %s, %s", e.machine, fr_size_format(e.bytes, size),
		*e.object ? e.object : e.file);
	return true;
}

static const struct {
	const char *prefix, *stream;
	bool (*read)(const struct fr_bus_message *m, struct line *l);
} kinds[] = {
	{FR_SUBJECT_COMMAND, FR_STREAM_COMMANDS, read_command},
	{FR_SUBJECT_ANSWER, FR_STREAM_ANSWERS, read_answer},
	{FR_SUBJECT_INDEX, FR_STREAM_INDEX, read_entry},
};

static int show(struct fleet *f, const char *subject)
{
	struct fr_bus_message m = {0};
	struct line l = {0};
	size_t i = 0;
	int r;

	while (i < FR_ARRAY_SIZE(kinds) && strncmp(subject, kinds[i].prefix, strlen(kinds[i].prefix)) != 0)
		i++;
	/* A subject that is not one of the fleet's is not worth a question. */
	if (i == FR_ARRAY_SIZE(kinds))
		return 0;
	r = fr_bus_last(f->bus, kinds[i].stream, subject, FLEET_TIMEOUT_NS, &m, NULL);
	if (r == 0 && kinds[i].read(&m, &l))
		print_line(f, &m, &l);
	fr_bus_message_deinit(&m);
	return r;
}

static _Noreturn void watch(struct fleet *f)
{
	for (;;) {
		uint64_t dropped;
		int link;
		_cleanup_free_ char *subject = take(&dropped, &link);

		if (dropped)
			fprintf(stderr,
				FLEET_PROGRAM ": %" PRIu64 " lines are missing, because too many came\n",
				dropped);
		if (link)
			fprintf(stderr, FLEET_PROGRAM ": the broker is %s\n",
				link > 0 ? "there again" : "not reachable; trying again");
		if (subject)
			(void)show(f, subject);
		if (ferror(stdout))
			exit(FR_EXIT_OK); /* the reader of a pipe ended */
	}
}

int fleet_watch(struct fleet *f, struct fr_diag *d)
{
	char subject[FR_FLEET_SUBJECT_SIZE];
	int r;

	fr_lock_init(&queue.lock);
	fr_cond_init(&queue.cond);
	r = fleet_open_bus(f, on_link, d);
	for (size_t i = 0; r == 0 && i < FR_ARRAY_SIZE(kinds); i++) {
		snprintf(subject, sizeof(subject), "%s.>", kinds[i].prefix);
		r = fr_bus_subscribe(f->bus, subject, on_bell, f, d);
	}
	if (r < 0)
		return r;
	fr_lock(&queue.lock);
	queue.link = 0; /* the first link is no news */
	fr_unlock(&queue.lock);
	watch(f);
}
