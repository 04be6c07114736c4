// SPDX-License-Identifier: GPL-2.0-or-later
/* Triggers of applications: the client of include/flightrec/trigger.h and strangers, on a real socket. */
#include "heard.h"
#include "base/cleanup.h"
#include "flightrec/trigger.h"
#include "source/datagram.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

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

/* The built-in trigger, and one named "checkout". */
struct scene {
	struct heard h;
	struct fr_trigger_config built_in, checkout;
	struct fr_source *sources[2];
};

static void scene_init(struct scene *s)
{
	static char application[] = "application", checkout[] = "checkout";
	struct fr_diag d = {0};

	heard_init(&s->h);
	s->h.env.application_socket = path;
	s->built_in = s->checkout = heard_config(FR_TRIGGER_APPLICATION);
	s->built_in.name = application;
	s->checkout.name = checkout;
	s->built_in.cooldown_ns = s->checkout.cooldown_ns = 0;
	if (fr_source_open(
		    &fr_source_application, &s->h.env, &s->built_in, &s->built_in, &s->sources[0], &d) < 0 ||
		fr_source_open(&fr_source_application, &s->h.env, &s->checkout, &s->checkout, &s->sources[1],
			&d) < 0)
		fail_msg("%s (%s)", d.what, d.hint);
}

static void scene_deinit(struct scene *s)
{
	for (size_t i = 0; i < FR_ARRAY_SIZE(s->sources); i++)
		if (s->sources[i])
			fr_source_close(s->sources[i]);
	heard_deinit(&s->h);
}

static struct fr_source_stats stats_of(struct fr_source *source)
{
	struct fr_source_stats stats;

	fr_source_get_stats(source, &stats);
	return stats;
}

static int connected(void)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	strcpy(sa.sun_path, path);
	assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	return fd;
}

/* TEXT as a stranger sends it, and what came of it. */
static void tell(struct scene *s, const void *text, size_t len)
{
	_cleanup_close_ int fd = connected();

	assert_int_equal(send(fd, text, len, 0), len);
	heard_run(&s->h, 30, s->h.n + 1);
}

static void *tell_from_thread(void *ret_tid)
{
	*(pid_t *)ret_tid = gettid();
	assert_int_equal(flightrec_trigger("checkout", "slow answer", 300, 250), 0);
	return NULL;
}

static void test_client(void **state)
{
	uint64_t before = fr_monotonic_ns();
	struct fr_source_stats stats;
	struct scene s;
	pthread_t thread;
	char comm[16];
	pid_t tid;

	scene_init(&s);
	assert_int_equal(pthread_create(&thread, NULL, tell_from_thread, &tid), 0);
	heard_wait(&s.h, 1);
	assert_int_equal(s.h.n, 1);
	assert_ptr_equal(s.h.trigger, &s.checkout);
	assert_int_equal(s.h.last.value, 300);
	assert_int_equal(s.h.last.threshold, 250);
	assert_int_equal(s.h.last.unit, FR_CAUSE_NONE);
	assert_string_equal(s.h.last.reason, "slow answer");
	assert_string_equal(s.h.last.detail, "");
	assert_int_equal(s.h.last.pid, getpid());
	assert_true(s.h.last.time_ns > before);
	fr_cause_fill_from_proc(&s.h.last); /* as the policy does with what it remembers */
	prctl(PR_GET_NAME, comm);
	assert_string_equal(s.h.last.comm, comm);
	assert_true(s.h.last.cgroup[0] == '/');
	pthread_join(thread, NULL);
	/* The thread may have been gone when it was looked for. */
	assert_true(s.h.last.tid == tid || s.h.last.tid == 0);
	assert_int_equal(flightrec_trigger_at("checkout", "q", "ns", before, 2000000, 1000000), 0);
	heard_wait(&s.h, 2);
	assert_int_equal(s.h.n, 2);
	assert_int_equal(s.h.last.tid, getpid());
	assert_int_equal(s.h.last.time_ns, before);
	assert_int_equal(s.h.last.unit, FR_CAUSE_NS);
	stats = stats_of(s.sources[1]);
	assert_int_equal(stats.fired, 2);
	assert_int_equal(stats.last, 2000000);
	assert_int_equal(stats.threshold, 1000000);
	/* Below the threshold nothing is sent. */
	assert_int_equal(flightrec_trigger("checkout", "slow answer", 249, 250), 0);
	heard_run(&s.h, 30, 3);
	assert_int_equal(s.h.n, 2);
	scene_deinit(&s);
}

static void test_client_is_bounded(void **state)
{
	char name[200], reason[4096];
	struct scene s;

	scene_init(&s);
	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	/* Two bytes each, so that the cut is within one; with line ends, which would be keys. */
	for (size_t i = 0; i < sizeof(reason) - 1; i++)
		reason[i] = "\xc3\xa4\nVALUE=9\n"[i % 11];
	reason[sizeof(reason) - 1] = '\0';
	assert_int_equal(flightrec_trigger(name, reason, UINT64_MAX, 1), 0);
	heard_wait(&s.h, 1);
	assert_int_equal(s.h.n, 1);
	assert_ptr_equal(s.h.trigger, &s.built_in);
	assert_true(s.h.last.value == UINT64_MAX);
	assert_int_equal(strlen(s.h.last.detail), 63);
	assert_true(strlen(s.h.last.reason) >= 126);
	assert_memory_equal(s.h.last.reason, "\xc3\xa4 VALUE=9 \xc3\xa4", 13);
	assert_int_equal(flightrec_trigger(NULL, NULL, 0, 0), 0);
	heard_wait(&s.h, 2);
	assert_int_equal(s.h.n, 2);
	assert_string_equal(s.h.last.reason, "told by an application");
	assert_string_equal(s.h.last.detail, "");
	scene_deinit(&s);
}

static void on_signal(int sig)
{
	(void)flightrec_trigger("checkout", "in a signal handler", 0, 0);
}

static void test_client_leaves_no_trace(void **state)
{
	struct scene s;

	/* Without a daemon, and with one. */
	errno = 12345;
	assert_int_equal(flightrec_trigger("checkout", "nobody is there", 1, 1), -ENOENT);
	assert_int_equal(errno, 12345);
	scene_init(&s);
	signal(SIGUSR1, on_signal);
	errno = 12345;
	raise(SIGUSR1);
	assert_int_equal(errno, 12345);
	signal(SIGUSR1, SIG_DFL);
	heard_wait(&s.h, 1);
	assert_string_equal(s.h.last.reason, "in a signal handler");
	scene_deinit(&s);
}

static void test_client_never_blocks(void **state)
{
	const unsigned times = 2000;
	uint64_t begin, sent = 0, full = 0, worst = 0;
	struct scene s;

	scene_init(&s);
	begin = fr_now_ns(CLOCK_THREAD_CPUTIME_ID);
	/* Nobody reads: the queue has room for a few. */
	for (unsigned i = 0; i < times; i++) {
		uint64_t now = fr_monotonic_ns();
		int r = flightrec_trigger("checkout", "flood", 1, 1);

		worst = FR_MAX(worst, fr_monotonic_ns() - now);
		assert_true(r == 0 || r == -EAGAIN);
		*(r == 0 ? &sent : &full) += 1;
	}
	print_message("%.2f us of CPU a call where the queue is full, %.0f us the worst; %d were taken\n",
		(double)(fr_now_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / 1e3 / times, (double)worst / 1e3,
		(int)sent);
	assert_true(sent > 0 && full > 0);
	heard_wait(&s.h, (unsigned)sent);
	assert_int_equal(s.h.n, sent);
	begin = fr_now_ns(CLOCK_THREAD_CPUTIME_ID);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(flightrec_trigger("checkout", "one", 1, 1), 0);
	print_message("%.2f us of CPU a call that is taken\n",
		(double)(fr_now_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / 1e3 / 8);
	scene_deinit(&s);
	begin = fr_now_ns(CLOCK_THREAD_CPUTIME_ID);
	for (unsigned i = 0; i < times; i++)
		(void)flightrec_trigger("checkout", "nobody", 1, 1);
	print_message("%.2f us of CPU a call without a daemon\n",
		(double)(fr_now_ns(CLOCK_THREAD_CPUTIME_ID) - begin) / 1e3 / times);
}

static void test_dispatch(void **state)
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
		tell(&s, cases[i].text, strlen(cases[i].text));
		assert_int_equal(s.h.n, i + 1);
		assert_ptr_equal(s.h.trigger, cases[i].checkout ? &s.checkout : &s.built_in);
		assert_string_equal(s.h.last.detail, cases[i].detail);
	}
	assert_int_equal(stats_of(s.sources[0]).bad, 0);
	/* With the built-in one disabled, nobody hears what is for nobody. */
	fr_source_close(TAKE_PTR(s.sources[0]));
	tell(&s, "TRIGGER=x", 9);
	assert_int_equal(s.h.n, FR_ARRAY_SIZE(cases));
	tell(&s, "TRIGGER=checkout", 16);
	assert_int_equal(s.h.n, FR_ARRAY_SIZE(cases) + 1);
	scene_deinit(&s);
	assert_int_equal(access(path, F_OK), -1);
}

static void test_filters_and_cooldown(void **state)
{
	struct scene s;
	char comm[16], other[] = "another";
	uint64_t fired, cooled, begin;
	unsigned heard;

	scene_init(&s);
	s.checkout.pid = 1;
	tell(&s, "TRIGGER=checkout", 16);
	assert_int_equal(s.h.n, 0);
	s.checkout.pid = getpid();
	s.checkout.comm = other;
	tell(&s, "TRIGGER=checkout", 16);
	assert_int_equal(s.h.n, 0);
	prctl(PR_GET_NAME, comm);
	s.checkout.comm = comm;
	s.checkout.cooldown_ns = FR_TRIGGER_UNSET;
	/* Two that came within the second that the source is quiet for. */
	for (;;) {
		fired = stats_of(s.sources[1]).fired;
		cooled = stats_of(s.sources[1]).cooled;
		heard = s.h.n;
		begin = fr_monotonic_ns();
		tell(&s, "TRIGGER=checkout", 16);
		tell(&s, "TRIGGER=checkout", 16);
		if (fr_monotonic_ns() - begin < FR_NSEC_PER_SEC)
			break;
		usleep(1000 * 1000);
	}
	assert_int_equal(stats_of(s.sources[1]).fired, fired + 2);
	assert_int_equal(stats_of(s.sources[1]).cooled, cooled + 1);
	assert_int_equal(s.h.n, heard + 1);
	tell(&s, "TRIGGER=application", 19);
	assert_int_equal(s.h.n, heard + 2);
	usleep(1000 * 1000);
	tell(&s, "TRIGGER=checkout", 16);
	assert_int_equal(s.h.n, heard + 3);
	scene_deinit(&s);
}

static void test_what_it_says_of_itself(void **state)
{
	uint64_t now = fr_monotonic_ns();
	char text[128];
	struct scene s;

	scene_init(&s);
	/* Threads of others. */
	tell(&s, "TID=1", 5);
	assert_int_equal(s.h.last.pid, getpid());
	assert_int_equal(s.h.last.tid, 0);
	tell(&s, "TID=0", 5);
	assert_int_equal(s.h.last.tid, 0);
	/* A time of the future, of long ago, and a good one. */
	snprintf(text, sizeof(text), "TIME=%llu", (unsigned long long)now + 3600 * FR_NSEC_PER_SEC);
	tell(&s, text, strlen(text));
	assert_true(s.h.last.time_ns >= now);
	tell(&s, "TIME=1", 6);
	assert_true(s.h.last.time_ns >= now || now < 60 * FR_NSEC_PER_SEC);
	snprintf(text, sizeof(text), "TIME=%llu", (unsigned long long)now - FR_NSEC_PER_SEC);
	tell(&s, text, strlen(text));
	assert_int_equal(s.h.last.time_ns, now - FR_NSEC_PER_SEC);
	/* A value below its own threshold is no anomaly; a client of somebody else may send it. */
	assert_int_equal(s.h.n, 5);
	tell(&s, "VALUE=1\nTHRESHOLD=2", 19);
	assert_int_equal(s.h.n, 5);
	assert_int_equal(stats_of(s.sources[0]).last, 1);
	tell(&s, "REASON=a\x1b[31m\xff\xc2\x9b\xe2\x82\xac\0b", 21);
	assert_string_equal(s.h.last.reason, "a?[31m???\xe2\x82\xac?b");
	scene_deinit(&s);
}

static size_t open_files(void)
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
	_cleanup_close_ int fd = connected();

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(N * sizeof(int));
	for (size_t i = 0; i < N; i++)
		memcpy(CMSG_DATA(c) + i * sizeof(fd), &fd, sizeof(fd));
	assert_int_equal(sendmsg(fd, &m, 0), sizeof(text) - 1);
}

static void test_hostile(void **state)
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
	struct scene s;
	char large[2000];
	size_t files;

	scene_init(&s);
	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		tell(&s, cases[i].text, cases[i].len);
		if (stats_of(s.sources[0]).bad != i + 1)
			fail_msg("\"%s\" was taken", cases[i].text);
	}
	memset(large, '\n', sizeof(large));
	tell(&s, large, sizeof(large));
	assert_int_equal(stats_of(s.sources[0]).bad, FR_ARRAY_SIZE(cases) + 1);
	assert_int_equal(s.h.n, 0);
	files = open_files();
	send_descriptors();
	heard_wait(&s.h, 1);
	assert_int_equal(s.h.n, 1);
	assert_int_equal(s.h.last.pid, getpid());
	assert_int_equal(open_files(), files);
	/* They were told when it was disabled, and are not told again, though another has kept the socket. */
	fr_source_close(s.sources[0]);
	assert_int_equal(fr_source_open(&fr_source_application, &s.h.env, &s.built_in, &s.built_in,
				 &s.sources[0], NULL),
		0);
	assert_int_equal(stats_of(s.sources[0]).bad, 0);
	scene_deinit(&s);
}

/* What a sender was told of its datagrams, shared with it. */
struct sent {
	unsigned times, taken, refused, nonsense; /* nonsense is in neither of the others */
	atomic_bool enough;			  /* it may end */
};

#define FLOOD_MIN 100000u /* datagrams */
#define BEATS 20u
/* A sender gives up after so long; a loop that is starved beats no sooner. */
#define FLOOD_LIMIT_NS (60 * FR_NSEC_PER_SEC)

/* Every 10 ms, as much else of the loop. */
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
	b->next_ns = now + 10 * FR_NSEC_PER_MSEC;
	b->sent->enough = ++b->n >= BEATS;
	assert_true(sd_event_source_set_time(e, b->next_ns / FR_NSEC_PER_USEC) >= 0);
	return sd_event_source_set_enabled(e, SD_EVENT_ONESHOT);
}

/* FLOOD_MIN of them, and on until it is enough, as fast as it goes, and every other one nonsense. */
static pid_t flood(struct sent *sent)
{
	uint64_t limit_ns = fr_monotonic_ns() + FLOOD_LIMIT_NS;
	pid_t parent = getpid(), pid = fork();
	int fd;

	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	fd = connected();
	for (; sent->times < FLOOD_MIN || !sent->enough; sent->times++) {
		bool good = sent->times % 2;
		int r = good ? flightrec_trigger("checkout", "flood", sent->times, 1)
			     : (int)send(fd, "nonsense", 8, MSG_DONTWAIT);

		if (fr_monotonic_ns() > limit_ns)
			_exit(3);
		if (r < 0 && r != -EAGAIN && (good || errno != EAGAIN))
			_exit(2);
		if (r < 0)
			sent->refused++;
		else if (r == 0)
			sent->taken++;
		else
			sent->nonsense++;
	}
	_exit(0);
}

static void test_flood(void **state)
{
	struct beat beat = {.next_ns = fr_monotonic_ns()};
	uint64_t begin = fr_monotonic_ns(), cpu = fr_now_ns(CLOCK_PROCESS_CPUTIME_ID), took;
	struct fr_source_stats stats, built_in;
	sd_event_source *timer;
	int status = 0;
	struct sent *sent =
		mmap(NULL, sizeof(*sent), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct scene s;
	pid_t pid;

	assert_true(sent != MAP_FAILED);
	scene_init(&s);
	s.checkout.cooldown_ns = FR_TRIGGER_UNSET;
	assert_true(sd_event_add_time(s.h.env.event, &timer, CLOCK_MONOTONIC, 0, 1, on_beat, &beat) >= 0);
	beat.sent = sent;
	pid = flood(sent);
	while (waitpid(pid, &status, WNOHANG) == 0)
		heard_run(&s.h, 100, 0);
	assert_true(WIFEXITED(status));
	/* Else the loop was starved. */
	assert_int_equal(WEXITSTATUS(status), 0);
	/* What the socket's queue holds still, which may be hundreds. */
	HEARD_UNTIL(&s.h,
		stats_of(s.sources[1]).fired + stats_of(s.sources[0]).bad >= sent->taken + sent->nonsense);
	took = fr_monotonic_ns() - begin;
	cpu = fr_now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	stats = stats_of(s.sources[1]);
	built_in = stats_of(s.sources[0]);
	print_message("%u in %.1f s, %u of them taken: %.1f %% of a CPU, %u causes, worst delay of the loop "
		      "%.1f ms\n",
		sent->times, (double)took / 1e9, sent->taken + sent->nonsense,
		100.0 * (double)cpu / (double)took, s.h.n, (double)beat.worst_ns / 1e6);
	/* All that the sender was told is sent is accounted for. */
	assert_int_equal(sent->taken + sent->nonsense + sent->refused, sent->times);
	assert_int_equal(stats.fired, sent->taken);
	assert_int_equal(built_in.bad, sent->nonsense);
	assert_int_equal(stats.cooled + s.h.n, stats.fired);
	assert_true(s.h.n >= 1 && s.h.n <= took / FR_NSEC_PER_SEC + 1);
	munmap(sent, sizeof(*sent));
	sd_event_source_disable_unref(timer);
	scene_deinit(&s);
}

static void test_socket_file(void **state)
{
	struct fr_trigger_config config = heard_config(FR_TRIGGER_APPLICATION);
	char threshold[] = "5";
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	struct heard h, other;
	struct fr_source *s;
	struct stat st;
	int fd;

	heard_init(&h);
	heard_refused(&h, &fr_source_application, &config, -EINVAL, "Socket=");
	h.env.application_socket = path;
	config.threshold = threshold;
	heard_refused(&h, &fr_source_application, &config, -EINVAL, "Threshold=");
	config.threshold = NULL;
	/* Something else is there. */
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	heard_refused(&h, &fr_source_application, &config, -EEXIST, "not a socket");
	assert_int_equal(unlink(path), 0);
	/* What a killed daemon left. */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	strcpy(sa.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	heard_refused(&h, &fr_source_application, &config, -EADDRINUSE, "another program");
	close(fd);
	assert_int_equal(fr_source_open(&fr_source_application, &h.env, &config, NULL, &s, NULL), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode, S_IFSOCK | 0600);
	/* Another daemon finds it in use, and does not take it away. */
	heard_init(&other);
	other.env.application_socket = path;
	heard_refused(&other, &fr_source_application, &config, -EADDRINUSE, "another program");
	heard_deinit(&other);
	assert_int_equal(flightrec_trigger("test", "still heard", 0, 0), 0);
	heard_wait(&h, 1);
	assert_int_equal(h.n, 1);
	fr_source_close(s);
	h.env.gid = getegid();
	assert_int_equal(fr_source_open(&fr_source_application, &h.env, &config, NULL, &s, NULL), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode, S_IFSOCK | 0660);
	assert_int_equal(st.st_gid, getegid());
	fr_source_close(s);
	assert_int_equal(access(path, F_OK), -1);
	heard_deinit(&h);
}

static void compile(const char *command, const char *suffix)
{
	char text[1024];

	snprintf(text, sizeof(text),
		"printf '#include <flightrec/trigger.h>\\nint main(void)\\n{\\n\\treturn "
		"flightrec_trigger(\"a\", \"b\", 1, 2);\\n}\\n' | %s -I" FR_TEST_INCLUDE
		" -Wall -Wextra -Werror "
		"-Wconversion -Wshadow -pedantic -x %s -fsyntax-only -",
		command, suffix);
	if (system(text) != 0)
		fail_msg("the header does not compile: %s", text);
}

static void test_header_in_c(void **state)
{
	if (system("command -v cc >/dev/null") != 0) {
		print_message("skipped: there is no C compiler\n");
		skip();
	}
	compile("cc -std=gnu99", "c");
	compile("cc -std=gnu17 -m64", "c");
}

static void test_header_in_cxx(void **state)
{
	if (system("command -v c++ >/dev/null") != 0) {
		print_message("skipped: there is no C++ compiler\n");
		skip();
	}
	compile("c++ -std=c++11 -Wold-style-cast", "c++");
	compile("c++ -std=c++20 -Wold-style-cast", "c++");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_client),
		cmocka_unit_test(test_client_is_bounded),
		cmocka_unit_test(test_client_leaves_no_trace),
		cmocka_unit_test(test_client_never_blocks),
		cmocka_unit_test(test_dispatch),
		cmocka_unit_test(test_filters_and_cooldown),
		cmocka_unit_test(test_what_it_says_of_itself),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_flood),
		cmocka_unit_test(test_socket_file),
		cmocka_unit_test(test_header_in_c),
		cmocka_unit_test(test_header_in_cxx),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
