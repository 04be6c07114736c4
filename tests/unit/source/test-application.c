// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of Application=. The client of include/flightrec/trigger.h and other senders send datagrams to a real
   socket. */
#include "heard.h"
#include "flightrec/trigger.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

static char dir[] = "/tmp/fr-test-application.XXXXXX", path[64];

static int setup(void **state)
{
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/trigger", dir);
	return setenv("FLIGHTREC_TRIGGER_SOCKET", path, 1);
}

static int teardown(void **state)
{
	return rmdir(dir);
}

GROUP_FIXTURE(setup, teardown)

/* The source of the built-in trigger "application", and the source of a trigger "checkout". */
struct scene {
	struct heard h; /* has the source of "checkout" */
	struct fr_trigger_config built_in_config;
	struct fr_source *built_in;
};

static void open_built_in(struct scene *s)
{
	struct fr_diag d = {0};

	if (heard_open(&s->h, &s->built_in_config, &s->built_in, &s->built_in, &d) < 0)
		fail_msg("%s (%s)", d.what, d.hint);
}

static void scene_init(struct scene *s)
{
	heard_init(&s->h, FR_TRIGGER_APPLICATION);
	s->h.env.application_socket = path;
	s->h.config.name = (char *)"checkout";
	s->h.config.cooldown_ns = 0;
	s->built_in_config = s->h.config;
	s->built_in_config.name = (char *)"application";
	open_built_in(s);
	heard_arm(&s->h);
}

static void scene_deinit(struct scene *s)
{
	s->built_in = fr_source_close(s->built_in);
	heard_deinit(&s->h);
}
#define _cleanup_scene_ __attribute__((cleanup(scene_deinit)))

/* Returns the number of malformed datagrams, which the built-in trigger counts. */
static uint64_t count_bad(const struct scene *s)
{
	struct fr_source_stats stats;

	fr_source_get_stats(s->built_in, &stats);
	return stats.bad;
}

static int connect_socket(void)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	strcpy(sa.sun_path, path);
	assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	return fd;
}

/* Sends LEN bytes, and runs the event loop for a short time. */
static void send_bytes(struct scene *s, const void *text, size_t len)
{
	_cleanup_close_ int fd = connect_socket();

	assert_int_equal(send(fd, text, len, 0), len);
	heard_run(&s->h, 30, s->h.n + 1);
}

static void send_text(struct scene *s, const char *text)
{
	send_bytes(s, text, strlen(text));
}

static void *send_from_thread(void *ret_tid)
{
	*(pid_t *)ret_tid = gettid();
	assert_int_equal(flightrec_trigger("checkout", "slow answer", 300, 250), 0);
	return NULL;
}

TEST(client_reports_an_anomaly)
{
	uint64_t before = fr_monotonic_ns();
	struct fr_source_stats stats;
	pthread_t thread;
	_cleanup_scene_ struct scene s = {0};
	struct heard *h = &s.h;
	char comm[16];
	pid_t tid;

	scene_init(&s);
	assert_int_equal(pthread_create(&thread, NULL, send_from_thread, &tid), 0);
	heard_wait(h, 1);
	assert_int_equal(h->n, 1);
	assert_ptr_equal(h->trigger, h);
	assert_int_equal(h->last.value, 300);
	assert_int_equal(h->last.threshold, 250);
	assert_int_equal(h->last.unit, FR_CAUSE_NONE);
	assert_string_equal(h->last.reason, "slow answer");
	assert_string_equal(h->last.detail, "");
	assert_int_equal(h->last.pid, getpid());
	assert_true(h->last.time_ns > before);
	fr_cause_fill_from_proc(&h->last);
	prctl(PR_GET_NAME, comm);
	assert_string_equal(h->last.comm, comm);
	assert_true(h->last.cgroup[0] == '/');
	pthread_join(thread, NULL);
	/* If the thread had ended before the recorder looked for it in /proc, the tid is 0. */
	assert_true(h->last.tid == tid || h->last.tid == 0);
	assert_int_equal(flightrec_trigger_at("checkout", "q", "ns", before, 2000000, 1000000), 0);
	heard_wait(h, 2);
	assert_int_equal(h->n, 2);
	assert_int_equal(h->last.tid, getpid());
	assert_int_equal(h->last.time_ns, before);
	assert_int_equal(h->last.unit, FR_CAUSE_NS);
	stats = heard_stats(h);
	assert_int_equal(stats.fired, 2);
	assert_int_equal(stats.last, 2000000);
	assert_int_equal(stats.threshold, 1000000);
	/* The client does not send a value below the threshold. */
	assert_int_equal(flightrec_trigger("checkout", "slow answer", 249, 250), 0);
	heard_run(h, 30, 3);
	assert_int_equal(h->n, 2);
}

TEST(client_truncates_long_texts)
{
	char name[200], reason[4096];
	_cleanup_scene_ struct scene s = {0};
	struct heard *h = &s.h;

	scene_init(&s);
	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	/* The limit of the length is in the middle of a character of two bytes. A newline in the reason does
	   not begin a new key. */
	for (size_t i = 0; i < sizeof(reason) - 1; i++)
		reason[i] = "\xc3\xa4\nVALUE=9\n"[i % 11];
	reason[sizeof(reason) - 1] = '\0';
	assert_int_equal(flightrec_trigger(name, reason, UINT64_MAX, 1), 0);
	heard_wait(h, 1);
	assert_int_equal(h->n, 1);
	assert_ptr_equal(h->trigger, &s.built_in);
	assert_true(h->last.value == UINT64_MAX);
	assert_int_equal(strlen(h->last.detail), 63);
	assert_true(strlen(h->last.reason) >= 126);
	assert_memory_equal(h->last.reason, "\xc3\xa4 VALUE=9 \xc3\xa4", 13);
	assert_int_equal(flightrec_trigger(NULL, NULL, 0, 0), 0);
	heard_wait(h, 2);
	assert_int_equal(h->n, 2);
	assert_string_equal(h->last.reason, "reported by an application");
	assert_string_equal(h->last.detail, "");
}

static void on_signal(int sig)
{
	(void)flightrec_trigger("checkout", "in a signal handler", 0, 0);
}

TEST(client_works_in_a_signal_handler_and_keeps_errno)
{
	_cleanup_scene_ struct scene s = {0};

	errno = 12345;
	assert_int_equal(flightrec_trigger("checkout", "there is no daemon", 1, 1), -ENOENT);
	assert_int_equal(errno, 12345);
	scene_init(&s);
	signal(SIGUSR1, on_signal);
	errno = 12345;
	raise(SIGUSR1);
	assert_int_equal(errno, 12345);
	signal(SIGUSR1, SIG_DFL);
	heard_wait(&s.h, 1);
	assert_string_equal(s.h.last.reason, "in a signal handler");
}

TEST(client_does_not_wait_for_a_full_queue)
{
	uint64_t begin = fr_now_ns(CLOCK_THREAD_CPUTIME_ID);
	unsigned sent = 0, times = 2000;
	_cleanup_scene_ struct scene s = {0};

	scene_init(&s);
	for (unsigned i = 0; i < times; i++) {
		int r = flightrec_trigger("checkout", "flood", 1, 1);

		assert_true(r == 0 || r == -EAGAIN);
		sent += r == 0;
	}
	print_message("%.2f us of CPU a call; %u of %u were accepted\n",
		(double)(fr_now_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / 1e3 / times, sent, times);
	assert_in_range(sent, 1, times - 1);
	heard_wait(&s.h, sent);
	assert_int_equal(s.h.n, sent);
}

TEST(datagram_reaches_the_trigger_that_it_names)
{
	static const struct {
		const char *text, *detail;
		bool checkout;
	} cases[] = {
		{"TRIGGER=checkout", "", true},
		{"TRIGGER=application", "", false},
		{"TRIGGER=elsewhere\n", "elsewhere", false},
		{"TRIGGER=\n", "", false},
		{"REASON=none is named\n", "", false},
		{"TRIGGER=elsewhere\nTRIGGER=checkout\n", "", true},
		{"FUTURE=of a newer client\nTRIGGER=checkout\n\n", "", true},
	};
	struct scene s;

	scene_init(&s);
	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		send_text(&s, cases[i].text);
		assert_int_equal(s.h.n, i + 1);
		assert_ptr_equal(s.h.trigger, cases[i].checkout ? (void *)&s.h : (void *)&s.built_in);
		assert_string_equal(s.h.last.detail, cases[i].detail);
	}
	assert_int_equal(count_bad(&s), 0);
	/* Without the built-in trigger, datagrams with the names of other triggers are dropped. */
	s.built_in = fr_source_close(s.built_in);
	send_text(&s, "TRIGGER=x");
	assert_int_equal(s.h.n, FR_ARRAY_SIZE(cases));
	send_text(&s, "TRIGGER=checkout");
	assert_int_equal(s.h.n, FR_ARRAY_SIZE(cases) + 1);
	scene_deinit(&s);
	assert_int_equal(access(path, F_OK), -1);
}

TEST(filters_and_cooldown)
{
	struct fr_source_stats before, after;
	_cleanup_scene_ struct scene s = {0};
	struct heard *h = &s.h;
	uint64_t begin;
	unsigned heard;
	char comm[16];

	scene_init(&s);
	h->config.pid = 1;
	send_text(&s, "TRIGGER=checkout");
	h->config.pid = getpid();
	h->config.comm = (char *)"another";
	send_text(&s, "TRIGGER=checkout");
	assert_int_equal(h->n, 0);
	prctl(PR_GET_NAME, comm);
	h->config.comm = comm;
	h->config.cooldown_ns = FR_TRIGGER_UNSET;
	/* Send two datagrams within a second, which is the cool-down of the source itself. */
	for (;;) {
		before = heard_stats(h);
		heard = h->n;
		begin = fr_monotonic_ns();
		send_text(&s, "TRIGGER=checkout");
		send_text(&s, "TRIGGER=checkout");
		if (fr_monotonic_ns() - begin < FR_NSEC_PER_SEC)
			break;
		usleep(1000 * 1000);
	}
	after = heard_stats(h);
	assert_int_equal(after.fired, before.fired + 2);
	assert_int_equal(after.cooled, before.cooled + 1);
	assert_int_equal(h->n, heard + 1);
	send_text(&s, "TRIGGER=application");
	assert_int_equal(h->n, heard + 2);
	usleep(1000 * 1000);
	send_text(&s, "TRIGGER=checkout");
	assert_int_equal(h->n, heard + 3);
}

TEST(claims_of_the_sender_are_checked)
{
	uint64_t now = fr_monotonic_ns();
	struct fr_source_stats stats;
	_cleanup_scene_ struct scene s = {0};
	struct heard *h = &s.h;
	char text[128];

	scene_init(&s);
	/* A thread of another process, and the number 0, are not accepted. */
	send_text(&s, "TID=1");
	assert_int_equal(h->last.pid, getpid());
	assert_int_equal(h->last.tid, 0);
	send_text(&s, "TID=0");
	assert_int_equal(h->last.tid, 0);
	/* A time in the future and a very old time are replaced, and a plausible time is accepted. */
	snprintf(text, sizeof(text), "TIME=%llu", (unsigned long long)now + 3600 * FR_NSEC_PER_SEC);
	send_text(&s, text);
	assert_true(h->last.time_ns >= now);
	send_text(&s, "TIME=1");
	assert_true(h->last.time_ns >= now || now < 60 * FR_NSEC_PER_SEC);
	snprintf(text, sizeof(text), "TIME=%llu", (unsigned long long)now - FR_NSEC_PER_SEC);
	send_text(&s, text);
	assert_int_equal(h->last.time_ns, now - FR_NSEC_PER_SEC);
	/* A value below the threshold of the same datagram is not an anomaly. */
	assert_int_equal(h->n, 5);
	send_text(&s, "VALUE=1\nTHRESHOLD=2");
	assert_int_equal(h->n, 5);
	fr_source_get_stats(s.built_in, &stats);
	assert_int_equal(stats.last, 1);
	send_bytes(&s, "REASON=a\x1b[31m\xff\xc2\x9b\xe2\x82\xac\0b", 21);
	assert_string_equal(h->last.reason, "a?[31m???\xe2\x82\xac?b");
}

static size_t count_open_files(void)
{
	_cleanup_closedir_ DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	while (readdir(d))
		n++;
	return n;
}

static void send_descriptors(void)
{
	enum { N = 100 };
	char control[CMSG_SPACE(N * sizeof(int))] = {0}, text[] = "TRIGGER=checkout";
	struct iovec iov = {text, sizeof(text) - 1};
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	_cleanup_close_ int fd = connect_socket();

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(N * sizeof(int));
	for (size_t i = 0; i < N; i++)
		memcpy(CMSG_DATA(c) + i * sizeof(fd), &fd, sizeof(fd));
	assert_int_equal(sendmsg(fd, &m, 0), sizeof(text) - 1);
}

TEST(malformed_datagrams_are_counted)
{
	static const struct {
		const char *text;
		size_t len;
	} cases[] = {
#define BYTES(s) {s, sizeof(s) - 1}
		BYTES(""),
		BYTES("\n"),
		BYTES("\n\n\n"),
		BYTES("TRIGGER"),
		BYTES("=checkout"),
		BYTES("TRIGGER=checkout\nnothing\n"),
		BYTES("TRIGGER=\0"),
		BYTES("TRIGGER=a\tb"),
		BYTES("TRIGGER=\xc3"),
		BYTES("TRIGGER=\xc0\xaf"),
		BYTES("TRIGGER=\xc2\x9b"),
		BYTES("TRIGGER=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
		BYTES("VALUE="),
		BYTES("VALUE=-1"),
		BYTES("VALUE= 1"),
		BYTES("VALUE=0x10"),
		BYTES("VALUE=18446744073709551616"),
		BYTES("VALUE=000000000000000000000000000000000000000001"),
		BYTES("THRESHOLD=1e9"),
		BYTES("TIME=now"),
		BYTES("TID=4294967297"),
		BYTES("UNIT=parsecs"),
		BYTES("UNIT="),
		BYTES("\0\0\0\0"),
	};
	char large[2000];
	_cleanup_scene_ struct scene s = {0};
	size_t files;

	scene_init(&s);
	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		send_bytes(&s, cases[i].text, cases[i].len);
		if (count_bad(&s) != i + 1)
			fail_msg("\"%s\" was accepted", cases[i].text);
	}
	memset(large, '\n', sizeof(large));
	send_bytes(&s, large, sizeof(large));
	assert_int_equal(count_bad(&s), FR_ARRAY_SIZE(cases) + 1);
	assert_int_equal(s.h.n, 0);
	files = count_open_files();
	send_descriptors();
	heard_wait(&s.h, 1);
	assert_int_equal(s.h.n, 1);
	assert_int_equal(s.h.last.pid, getpid());
	assert_int_equal(count_open_files(), files);
	/* The count of a new built-in source begins at 0, although the socket stays open. */
	s.built_in = fr_source_close(s.built_in);
	open_built_in(&s);
	assert_int_equal(count_bad(&s), 0);
}

/* The counters of a process that sends a flood. The memory is shared with the test. */
struct sent {
	unsigned times, accepted, refused, nonsense; /* times = accepted + refused + nonsense */
	atomic_bool enough;			     /* the process may end */
};

#define FLOOD_MIN 100000u /* the smallest number of datagrams */
#define BEATS 20u
#define FLOOD_LIMIT_NS (60 * FR_NSEC_PER_SEC)

/* Another source of events of the loop: a timer that fires every 10 ms (a beat). */
struct beat {
	uint64_t next_ns, worst_ns;
	unsigned n;
	struct sent *sent;
};

static int on_beat(sd_event_source *e, uint64_t usec, void *userdata)
{
	struct beat *b = userdata;
	uint64_t now = fr_monotonic_ns();

	b->worst_ns = FR_MAX(b->worst_ns, now - b->next_ns);
	b->next_ns = now + 10 * MS;
	b->sent->enough = ++b->n >= BEATS;
	assert_true(sd_event_source_set_time(e, b->next_ns / FR_NSEC_PER_USEC) >= 0);
	return sd_event_source_set_enabled(e, SD_EVENT_ONESHOT);
}

/* Sends datagrams as fast as it can. Every second datagram is malformed. It sends at least FLOOD_MIN
   datagrams, and goes on until the loop has had BEATS beats. If the loop has no time for its other sources,
   there are no beats, and this process fails after FLOOD_LIMIT_NS. */
static void flood(void *ctx)
{
	uint64_t limit_ns = fr_monotonic_ns() + FLOOD_LIMIT_NS;
	struct sent *sent = ctx;
	int fd = connect_socket();

	for (; sent->times < FLOOD_MIN || !sent->enough; sent->times++) {
		bool good = sent->times % 2;
		int r = good ? flightrec_trigger("checkout", "flood", sent->times, 1)
			     : (int)send(fd, "nonsense", 8, MSG_DONTWAIT);

		if (fr_monotonic_ns() > limit_ns)
			_exit(3);
		if (r < 0 && r != -EAGAIN && (good || errno != EAGAIN))
			_exit(2);
		*(r < 0 ? &sent->refused : good ? &sent->accepted : &sent->nonsense) += 1;
	}
}

TEST(flood_does_not_starve_the_loop_and_is_counted)
{
	struct beat beat = {.next_ns = fr_monotonic_ns()};
	uint64_t begin, cpu, took;
	struct fr_source_stats stats;
	sd_event_source *timer;
	struct sent *sent =
		mmap(NULL, sizeof(*sent), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct child c;
	_cleanup_scene_ struct scene s = {0};
	int status;

	assert_true(sent != MAP_FAILED);
	scene_init(&s);
	s.h.config.cooldown_ns = FR_TRIGGER_UNSET;
	c = child_new(NULL, flood, sent);
	assert_true(sd_event_add_time(s.h.env.event, &timer, CLOCK_MONOTONIC, 0, 1, on_beat, &beat) >= 0);
	beat.sent = sent;
	begin = fr_monotonic_ns();
	cpu = fr_now_ns(CLOCK_PROCESS_CPUTIME_ID);
	assert_int_equal(write(c.go, "", 1), 1);
	while (waitpid(c.pid, &status, WNOHANG) == 0)
		heard_run(&s.h, 100, 0);
	close(c.go);
	assert_int_equal(status, 0);
	HEARD_UNTIL(&s.h, heard_stats(&s.h).fired + count_bad(&s) >= sent->accepted + sent->nonsense);
	took = fr_monotonic_ns() - begin;
	cpu = fr_now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	stats = heard_stats(&s.h);
	print_message(
		"%u in %.1f s, %u accepted: %.1f %% of a CPU, %u causes, worst delay of the loop %.1f ms\n",
		sent->times, (double)took / 1e9, sent->accepted + sent->nonsense,
		100.0 * (double)cpu / (double)took, s.h.n, (double)beat.worst_ns / 1e6);
	assert_int_equal(sent->accepted + sent->nonsense + sent->refused, sent->times);
	assert_int_equal(stats.fired, sent->accepted);
	assert_int_equal(count_bad(&s), sent->nonsense);
	assert_int_equal(stats.cooled + s.h.n, stats.fired);
	assert_in_range(s.h.n, 1, took / FR_NSEC_PER_SEC + 1);
	munmap(sent, sizeof(*sent));
	sd_event_source_disable_unref(timer);
}

TEST(socket_file_is_made_and_protected)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	struct heard h, other;
	struct stat st;
	int fd;

	heard_init(&h, FR_TRIGGER_APPLICATION);
	heard_refused(&h, -EINVAL, "Socket=");
	h.env.application_socket = path;
	h.config.threshold = (char *)"5";
	heard_refused(&h, -EINVAL, "Threshold=");
	h.config.threshold = NULL;
	/* A file that is not a socket has the path. */
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	heard_refused(&h, -EEXIST, "not a socket");
	assert_int_equal(unlink(path), 0);
	/* Another program listens on the path. After its end, its socket is replaced. */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	strcpy(sa.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	heard_refused(&h, -EADDRINUSE, "another program");
	close(fd);
	heard_arm(&h);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode, S_IFSOCK | 0600);
	/* A second daemon does not take the path from the first. */
	heard_init(&other, FR_TRIGGER_APPLICATION);
	other.env.application_socket = path;
	heard_refused(&other, -EADDRINUSE, "another program");
	heard_deinit(&other);
	assert_int_equal(flightrec_trigger("test", "still received", 0, 0), 0);
	heard_wait(&h, 1);
	assert_int_equal(h.n, 1);
	heard_disarm(&h);
	h.env.gid = getegid();
	heard_arm(&h);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode, S_IFSOCK | 0660);
	assert_int_equal(st.st_gid, getegid());
	heard_deinit(&h);
	assert_int_equal(access(path, F_OK), -1);
}

static void compile_header(const char *command, const char *language)
{
	int r = unit_shell("printf '#include <flightrec/trigger.h>\\nint main(void)\\n{\\n\\treturn "
			   "flightrec_trigger(\"a\", \"b\", 1, 2);\\n}\\n' | %s -I" FR_TEST_INCLUDE
			   " -Wall -Wextra -Werror "
			   "-Wconversion -Wshadow -pedantic -x %s -fsyntax-only -",
		command, language);

	if (r != 0)
		fail_msg("%s does not compile the header as %s", command, language);
}

TEST(header_compiles_as_c_and_cxx)
{
	if (system("command -v cc >/dev/null && command -v c++ >/dev/null") != 0)
		unit_skip("there is no compiler");
	compile_header("cc -std=gnu99", "c");
	compile_header("cc -std=gnu17 -m64", "c");
	compile_header("c++ -std=c++11 -Wold-style-cast", "c++");
	compile_header("c++ -std=c++20 -Wold-style-cast", "c++");
}
