// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Not a load: a program for tests of src/bus/. It connects, runs commands, and prints a line for each result.
 *
 *   frtest-bus [-s SERVERS] [-c CREDENTIALS] [-a CA] [-C CERTIFICATE -K KEY] [-u USER -p PASSWORD] [-i INBOX]
 *              [-t SECONDS] [-r] COMMAND ARGUMENT... [-- COMMAND ARGUMENT...]...
 *
 * An error is printed as "error NAME: text (hint)", and the exit code is 1 at the end if there was one.
 */
#include "base/clock.h"
#include "base/cleanup.h"
#include "bus/bus.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>

static uint64_t timeout_ns = 5 * FR_NSEC_PER_SEC;

static int fail(int r, const struct fr_diag *d)
{
	printf("error %s: %s (%s)\n", strerrorname_np(-r), d->what, d->hint);
	return r;
}

static int store(struct fr_bus *b, char **a, struct fr_diag *d)
{
	uint64_t expected = a[3] ? strtoull(a[3], NULL, 10) : FR_BUS_ANY, sequence = 0;
	int r = fr_bus_store(b, a[0], a[1], a[2], strlen(a[2]), expected, timeout_ns, &sequence, d);

	if (r >= 0)
		printf(r ? "conflict\n" : "stored %" PRIu64 "\n", sequence);
	return r;
}

static int last(struct fr_bus *b, char **a, struct fr_diag *d)
{
	_cleanup_(fr_bus_message_deinit) struct fr_bus_message m = {0};
	int r = fr_bus_last(b, a[0], a[1], timeout_ns, &m, d);

	if (r == 0)
		printf("message %s %" PRIu64 " %" PRIu64 " %s\n", m.subject, m.sequence, m.time_ns, m.data);
	else if (r > 0)
		printf("none\n");
	return r;
}

static bool print_message(void *ctx, const struct fr_bus_message *m)
{
	printf("message %s %" PRIu64 " %" PRIu64 " %s\n", m->subject, m->sequence, m->time_ns, m->data);
	return true;
}

static bool count_message(void *ctx, const struct fr_bus_message *m)
{
	++*(uint64_t *)ctx;
	return true;
}

static int read_stream(struct fr_bus *b, char **a, bool only_count, struct fr_diag *d)
{
	struct fr_bus_read what = {a[0], a[1], a[2] ? strtoull(a[2], NULL, 10) : 0,
		a[2] && a[3] ? strtoull(a[3], NULL, 10) : 0, timeout_ns};
	uint64_t n = 0, begin_ns = fr_monotonic_ns();
	int r = fr_bus_read(b, &what, only_count ? count_message : print_message, &n, d);

	if (r == 0 && only_count)
		printf("read %" PRIu64 " in %" PRIu64 " ms\n", n,
			(uint64_t)((fr_monotonic_ns() - begin_ns) / FR_NSEC_PER_MSEC));
	else if (r == 0)
		printf("end\n");
	return r;
}

/* fill STREAM PREFIX N: stores N messages, PREFIX.0 and so on. */
static int fill(struct fr_bus *b, char **a, struct fr_diag *d)
{
	int n = atoi(a[2]), r = 0;
	char subject[FR_BUS_SUBJECT_SIZE], text[128];

	for (int i = 0; i < n && r == 0; i++) {
		snprintf(subject, sizeof(subject), "%s.%d", a[1], i);
		snprintf(text, sizeof(text), "message %d", i);
		r = fr_bus_store(b, a[0], subject, text, strlen(text), FR_BUS_ANY, timeout_ns, NULL, d);
	}
	if (r == 0)
		printf("filled\n");
	return r;
}

static int ensure(struct fr_bus *b, char **a, struct fr_diag *d)
{
	struct fr_bus_stream s = {a[0], a[1], "a stream of tests", a[2] ? strtoull(a[2], NULL, 10) : 0,
		a[2] && a[3] ? strtoull(a[3], NULL, 10) : 0, 1};
	const char *done = "";
	int r = fr_bus_stream_ensure(b, &s, timeout_ns, &done, d);

	if (r == 0)
		printf("%s\n", done);
	return r;
}

static int info(struct fr_bus *b, char **a, struct fr_diag *d)
{
	struct fr_bus_stream_info i;
	int r = fr_bus_stream_info(b, a[0], timeout_ns, &i, d);

	if (r == 0)
		printf("info %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", i.messages, i.bytes,
			i.max_age_ns, i.max_bytes);
	return r;
}

static void on_bell(void *ctx, const char *subject)
{
	printf("bell %s\n", subject);
	fflush(stdout);
}

static int wait_up(struct fr_bus *b)
{
	char why[512] = "";
	uint64_t until_ns = fr_monotonic_ns() + timeout_ns;

	while (!fr_bus_is_up(b) && fr_monotonic_ns() < until_ns)
		usleep(10000);
	fr_bus_why_down(b, why, sizeof(why));
	printf(fr_bus_is_up(b) ? "up\n" : "down %s\n", why);
	return 0;
}

static int print_stats(struct fr_bus *b)
{
	struct fr_bus_stats s;
	struct rusage usage;

	fr_bus_stats(b, &s);
	getrusage(RUSAGE_SELF, &usage);
	printf("stats links=%" PRIu64 " stored=%" PRIu64 " bells=%" PRIu64 " refused=%" PRIu64 " kib=%ld\n",
		s.links, s.stored, s.bells, s.refused, usage.ru_maxrss);
	return 0;
}

static int run(struct fr_bus *b, char **a)
{
	struct fr_diag d = {0};
	uint64_t ns = 0;
	int r = 0;

	if (!a[0])
		return 0;
	if (strcmp(a[0], "store") == 0)
		r = store(b, a + 1, &d);
	else if (strcmp(a[0], "last") == 0)
		r = last(b, a + 1, &d);
	else if (strcmp(a[0], "read") == 0 || strcmp(a[0], "count") == 0)
		r = read_stream(b, a + 1, a[0][0] == 'c', &d);
	else if (strcmp(a[0], "fill") == 0)
		r = fill(b, a + 1, &d);
	else if (strcmp(a[0], "ensure") == 0)
		r = ensure(b, a + 1, &d);
	else if (strcmp(a[0], "info") == 0)
		r = info(b, a + 1, &d);
	else if (strcmp(a[0], "purge") == 0)
		r = fr_bus_purge(b, a[1], a[2], timeout_ns, &d);
	else if (strcmp(a[0], "subscribe") == 0)
		r = fr_bus_subscribe(b, a[1], on_bell, NULL, &d);
	else if (strcmp(a[0], "ping") == 0)
		r = fr_bus_round_trip(b, timeout_ns, &ns, &d);
	else if (strcmp(a[0], "sleep") == 0)
		usleep((useconds_t)(atof(a[1]) * 1e6));
	else if (strcmp(a[0], "up") == 0)
		r = wait_up(b);
	else if (strcmp(a[0], "stats") == 0)
		r = print_stats(b);
	else
		printf("unknown command %s\n", a[0]);
	if (r == 0 && strchr("ps", a[0][0]) && strcmp(a[0], "store") != 0 && strcmp(a[0], "stats") != 0)
		printf("ok\n");
	return r < 0 ? fail(r, &d) : 0;
}

static void on_link(void *ctx, bool is_up)
{
	printf("link %s\n", is_up ? "up" : "down");
	fflush(stdout);
}

/* Runs "lines": one command on each line of the input; or the commands of the arguments. */
static int run_all(struct fr_bus *b, char **argv)
{
	int failed = 0;

	while (*argv) {
		char **end = argv;
		bool more;

		while (*end && strcmp(*end, "--") != 0)
			end++;
		more = *end != NULL;
		*end = NULL;
		failed |= run(b, argv) < 0;
		fflush(stdout);
		argv = end + more;
	}
	return failed;
}

static int run_lines(struct fr_bus *b)
{
	char line[4096], *words[16] = {0};
	int failed = 0;

	while (fgets(line, sizeof(line), stdin)) {
		size_t n = 0;

		memset(words, 0, sizeof(words));
		for (char *save, *w = strtok_r(line, " \n", &save); w && n < 15;
			w = strtok_r(NULL, " \n", &save))
			words[n++] = w;
		if (n)
			failed |= run_all(b, words);
	}
	return failed;
}

int main(int argc, char **argv)
{
	struct fr_bus_config config = {
		.servers = "nats://127.0.0.1:4222", .name = "frtest-bus", .on_link = on_link};
	struct fr_diag d = {0};
	struct fr_bus *b = NULL;
	bool retry = false;
	int o, r;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((o = getopt(argc, argv, "+s:c:a:C:K:u:p:i:t:r")) >= 0) {
		switch (o) {
		case 's':
			config.servers = optarg;
			break;
		case 'c':
			config.credentials = optarg;
			break;
		case 'a':
			config.ca = optarg;
			break;
		case 'C':
			config.certificate = optarg;
			break;
		case 'K':
			config.key = optarg;
			break;
		case 'u':
			config.user = optarg;
			break;
		case 'p':
			config.password = optarg;
			break;
		case 'i':
			config.inbox = optarg;
			break;
		case 't':
			timeout_ns = (uint64_t)(atof(optarg) * 1e9);
			break;
		case 'r':
			retry = true;
			break;
		default:
			return 2;
		}
	}
	r = fr_bus_new(&config, retry, timeout_ns, &b, &d);
	if (r < 0) {
		fail(r, &d);
		return 1;
	}
	r = argv[optind] && strcmp(argv[optind], "lines") != 0 ? run_all(b, argv + optind) : run_lines(b);
	fr_bus_free(b);
	return r;
}
