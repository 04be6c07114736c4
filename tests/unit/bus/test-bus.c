// SPDX-License-Identifier: GPL-2.0-or-later
/* The bus with a real nats-server, which each test starts. tests/integration/test_bus.py has more. */
#include "../unit.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "bus/bus.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define WAIT_NS (60 * FR_NSEC_PER_SEC) /* a limit for slow machines; nothing takes that long */

static struct {
	char directory[64], url[64];
	int port;
	pid_t pid;
	struct fr_bus *bus;
	struct fr_diag d;
} t;

static int free_port(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(a);
	_cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &size), 0);
	return ntohs(a.sin_port);
}

static void start_server(void)
{
	char port[16];

	snprintf(port, sizeof(port), "%d", t.port);
	t.pid = fork();
	if (t.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execlp("nats-server", "nats-server", "-a", "127.0.0.1", "-p", port, "-js", "-sd", t.directory,
			"-l", "/dev/null", NULL);
		_exit(127);
	}
	assert_true(t.pid > 0);
}

static void stop_server(void)
{
	if (t.pid > 0) {
		kill(t.pid, SIGTERM);
		waitpid(t.pid, NULL, 0);
	}
	t.pid = 0;
}

static bool is_up(void)
{
	return fr_bus_is_up(t.bus);
}

static bool is_down(void)
{
	return !fr_bus_is_up(t.bus);
}

static void until(bool (*condition)(void))
{
	uint64_t limit_ns = fr_monotonic_ns() + WAIT_NS;

	while (!condition() && fr_monotonic_ns() < limit_ns)
		usleep(1000);
	assert_true(condition());
}

static int setup(void **state)
{
	const struct fr_bus_stream stream = {"S", "s.>", "of a test", 0, 0, 1};
	struct fr_bus_config config = {.servers = t.url, .name = "test"};

	memset(&t, 0, sizeof(t));
	if (unit_shell("command -v nats-server >/dev/null") != 0)
		unit_skip("nats-server is not installed");
	strcpy(t.directory, "/tmp/test-bus-XXXXXX");
	assert_non_null(mkdtemp(t.directory));
	t.port = free_port();
	snprintf(t.url, sizeof(t.url), "nats://127.0.0.1:%d", t.port);
	start_server();
	assert_int_equal(fr_bus_new(&config, true, 0, &t.bus, &t.d), 0);
	until(is_up);
	assert_int_equal(fr_bus_stream_ensure(t.bus, &stream, WAIT_NS, NULL, &t.d), 0);
	return 0;
}

static int teardown(void **state)
{
	t.bus = fr_bus_free(t.bus);
	stop_server();
	if (*t.directory)
		unit_shell("rm -rf %s", t.directory);
	return 0;
}

FIXTURE(setup, teardown)

static int store(const char *subject, const char *text, uint64_t expected, uint64_t *ret)
{
	return fr_bus_store(t.bus, "S", subject, text, strlen(text), expected, WAIT_NS, ret, &t.d);
}

TEST(last_message_of_a_subject_is_read)
{
	_cleanup_(fr_bus_message_deinit) struct fr_bus_message m = {0};
	uint64_t sequence = 0, before_ns = fr_now_ns(CLOCK_REALTIME);

	assert_int_equal(store("s.a", "one", FR_BUS_ANY, NULL), 0);
	assert_int_equal(store("s.a", "two", FR_BUS_ANY, &sequence), 0);
	assert_int_equal(fr_bus_last(t.bus, "S", "s.a", WAIT_NS, &m, &t.d), 0);
	assert_string_equal(m.data, "two");
	assert_int_equal(m.n, 3);
	assert_string_equal(m.subject, "s.a");
	assert_int_equal(m.sequence, sequence);
	assert_in_range(m.time_ns, before_ns, fr_now_ns(CLOCK_REALTIME));
	assert_int_equal(fr_bus_last(t.bus, "S", "s.b", WAIT_NS, &m, &t.d), 1);
}

TEST(messages_have_any_bytes_up_to_the_limit)
{
	_cleanup_(fr_bus_message_deinit) struct fr_bus_message m = {0};
	_cleanup_free_ char *data = malloc(FR_BUS_MESSAGE_MAX + 1);

	for (size_t i = 0; i <= FR_BUS_MESSAGE_MAX; i++)
		data[i] = (char)(i * 7);
	assert_int_equal(
		fr_bus_store(t.bus, "S", "s.a", data, FR_BUS_MESSAGE_MAX, FR_BUS_ANY, WAIT_NS, NULL, &t.d),
		0);
	assert_int_equal(fr_bus_last(t.bus, "S", "s.a", WAIT_NS, &m, &t.d), 0);
	assert_int_equal(m.n, FR_BUS_MESSAGE_MAX);
	assert_memory_equal(m.data, data, m.n);
	assert_int_equal(fr_bus_store(t.bus, "S", "s.a", data, FR_BUS_MESSAGE_MAX + 1, FR_BUS_ANY, WAIT_NS,
				 NULL, &t.d),
		-EMSGSIZE);
}

TEST(conditional_store_has_one_winner)
{
	uint64_t sequence;

	assert_int_equal(store("s.a", "one", 0, &sequence), 0);
	assert_int_equal(store("s.a", "two", 0, NULL), 1);
	assert_int_equal(store("s.b", "other", FR_BUS_ANY, NULL), 0);
	assert_int_equal(store("s.a", "two", sequence, NULL), 0);
	assert_int_equal(store("s.a", "three", sequence, NULL), 1);
}

struct seen {
	unsigned n;
	uint64_t last;
	char subjects[8][16];
	unsigned stop_after;
};

static bool note(void *ctx, const struct fr_bus_message *m)
{
	struct seen *s = ctx;

	assert_true(m->sequence > s->last);
	s->last = m->sequence;
	if (s->n < FR_ARRAY_SIZE(s->subjects))
		snprintf(s->subjects[s->n], sizeof(s->subjects[0]), "%.15s", m->subject);
	return ++s->n != s->stop_after;
}

static struct seen read_stream(const char *subject, uint64_t newest, unsigned stop_after)
{
	const struct fr_bus_read what = {"S", subject, 0, newest, WAIT_NS};
	struct seen s = {.stop_after = stop_after};

	assert_int_equal(fr_bus_read(t.bus, &what, note, &s, &t.d), 0);
	return s;
}

TEST(read_passes_the_newest_message_of_each_subject)
{
	struct seen s;

	assert_int_equal(read_stream("s.>", 0, 0).n, 0);
	assert_int_equal(store("s.a", "old", FR_BUS_ANY, NULL), 0);
	assert_int_equal(store("s.b", "b", FR_BUS_ANY, NULL), 0);
	assert_int_equal(store("s.c.d", "c", FR_BUS_ANY, NULL), 0);
	assert_int_equal(store("s.a", "new", FR_BUS_ANY, NULL), 0);
	s = read_stream("s.>", 0, 0);
	assert_int_equal(s.n, 3);
	assert_string_equal(s.subjects[0], "s.b");
	assert_string_equal(s.subjects[2], "s.a");
	assert_int_equal(read_stream("s.*", 0, 0).n, 2);
	assert_int_equal(read_stream("s.b", 0, 0).n, 1);
	assert_int_equal(read_stream("s.>", 2, 0).n, 2);
	assert_int_equal(read_stream("s.>", 0, 1).n, 1);
}

TEST(many_messages_are_read_in_order)
{
	char subject[32];

	for (int i = 0; i < 3000; i++) {
		snprintf(subject, sizeof(subject), "s.%d", i);
		assert_int_equal(store(subject, "x", FR_BUS_ANY, NULL), 0);
	}
	assert_int_equal(read_stream("s.>", 0, 0).n, 3000);
	assert_int_equal(fr_bus_purge(t.bus, "S", "s.7", WAIT_NS, &t.d), 0);
	assert_int_equal(read_stream("s.>", 0, 0).n, 2999);
	assert_int_equal(fr_bus_purge(t.bus, "S", "s.*", WAIT_NS, &t.d), 0);
	assert_int_equal(read_stream("s.>", 0, 0).n, 0);
}

TEST(streams_are_made_and_changed)
{
	struct fr_bus_stream s = {"T", "t.>", "x", 3600 * FR_NSEC_PER_SEC, 1 << 20, 1};
	struct fr_bus_stream_info info;
	const char *done = NULL;

	assert_int_equal(fr_bus_stream_info(t.bus, "T", WAIT_NS, &info, &t.d), -ENOENT);
	assert_int_equal(fr_bus_stream_ensure(t.bus, &s, WAIT_NS, &done, &t.d), 0);
	assert_string_equal(done, "created");
	assert_int_equal(fr_bus_stream_ensure(t.bus, &s, WAIT_NS, &done, &t.d), 0);
	assert_string_equal(done, "unchanged");
	s.max_age_ns *= 24 * 365;
	s.max_bytes = 0;
	assert_int_equal(fr_bus_stream_ensure(t.bus, &s, WAIT_NS, &done, &t.d), 0);
	assert_string_equal(done, "changed");
	assert_int_equal(fr_bus_stream_info(t.bus, "T", WAIT_NS, &info, &t.d), 0);
	assert_int_equal(info.max_age_ns, s.max_age_ns);
	assert_int_equal(info.max_bytes, 0);
}

static atomic_uint bells;

static void on_bell(void *ctx, const char *subject)
{
	assert_string_equal(subject, ctx);
	atomic_fetch_add(&bells, 1);
}

static bool has_rung(void)
{
	return atomic_load(&bells) > 0;
}

TEST(subscriptions_survive_a_new_link)
{
	struct fr_bus_stats stats;
	char why[256];

	assert_int_equal(fr_bus_subscribe(t.bus, "s.*", on_bell, (void *)"s.a", &t.d), 0);
	assert_int_equal(store("s.a", "x", FR_BUS_ANY, NULL), 0);
	until(has_rung);
	stop_server();
	until(is_down);
	assert_int_equal(store("s.a", "x", FR_BUS_ANY, NULL), -ENOTCONN);
	fr_bus_why_down(t.bus, why, sizeof(why));
	assert_non_null(strstr(why, "127.0.0.1"));
	start_server();
	until(is_up);
	atomic_store(&bells, 0);
	assert_int_equal(store("s.a", "y", FR_BUS_ANY, NULL), 0);
	until(has_rung);
	fr_bus_stats(t.bus, &stats);
	assert_true(stats.links >= 2 && stats.stored == 2);
	fr_bus_why_down(t.bus, why, sizeof(why));
	assert_string_equal(why, "");
}

TEST(a_round_trip_takes_time)
{
	uint64_t ns = 0;

	assert_int_equal(fr_bus_round_trip(t.bus, WAIT_NS, &ns, &t.d), 0);
	assert_in_range(ns, 1, WAIT_NS);
}

TEST(no_broker_is_an_error_without_retry)
{
	char url[64];
	struct fr_bus_config config = {.servers = url};
	struct fr_diag d = {0};
	struct fr_bus *b = NULL;

	snprintf(url, sizeof(url), "nats://127.0.0.1:%d", free_port());
	assert_int_equal(fr_bus_new(&config, false, WAIT_NS, &b, &d), -ECONNREFUSED);
	assert_null(b);
	assert_non_null(strstr(d.what, "127.0.0.1"));
	assert_int_equal(fr_bus_new(&config, true, 0, &b, &d), 0);
	assert_false(fr_bus_is_up(b));
	fr_bus_free(b);
}
