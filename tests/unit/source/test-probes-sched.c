// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The probes of the scheduler, of system calls and of interrupts, each provoked for real, by a child, and
 * armed for that child where the probe knows whose the time was. With the kernel's BTF and, where tracefs is
 * there, without.
 *
 * Not here is a real soft lockup, which stops a CPU of the machine for seconds: test_trigger_sources.py makes
 * one where that is allowed. Here is what only looks like one.
 */
#include "both.h"
#include "heard.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#define MS FR_NSEC_PER_MSEC
#define KEPT 1024

/* What a child found out itself, to hold against what is heard of it. */
struct seen {
	int tid;
	uint64_t most_ns;  /* by the clock: whatever came between is in it */
	uint64_t least_ns; /* the same, without what the scheduler says was something else */
};

static struct seen *seen; /* shared with the child */

/* A probe that is armed, a child that waits for its go, and what was heard. */
struct scene {
	struct heard h;
	struct fr_trigger_config config;
	struct fr_source *source;
	struct fr_cause causes[KEPT];
	size_t n;
	pid_t pid;
	int go;
	int status;
	uint64_t ran_ns; /* from its go to its end */
};

static void keep(void *ctx, void *trigger, const struct fr_cause *cause)
{
	struct scene *s = ctx;

	if (s->n < KEPT)
		s->causes[s->n++] = *cause;
}

static struct scene *scene_new(const char *probe, const char *threshold, void (*run)(void))
{
	struct scene *s = calloc(1, sizeof(*s));
	int fds[2];
	char byte;

	assert_non_null(s);
	heard_init(&s->h);
	s->h.env.fire = keep;
	s->h.env.ctx = s;
	s->config = heard_config(FR_TRIGGER_PROBE);
	s->config.subject = (char *)probe;
	s->config.threshold = (char *)threshold;
	s->config.cooldown_ns = 0;
	memset(seen, 0, sizeof(*seen));
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	s->pid = fork();
	assert_true(s->pid >= 0);
	if (s->pid == 0) {
		close(fds[1]);
		if (read(fds[0], &byte, 1) == 1)
			run();
		_exit(0);
	}
	close(fds[0]);
	s->go = fds[1];
	s->config.pid = s->pid;
	/* What it did before is none of the probe's business. */
	await_sleep(s->pid);
	return s;
}

static void scene_free(struct scene *s)
{
	if (s->source)
		fr_source_close(s->source);
	heard_deinit(&s->h);
	free(s);
}

/* False, with a word, where it cannot be armed here. */
static bool arm(struct scene *s, bool classic)
{
	struct fr_diag d = {0};
	int r;

	s->h.env.bpf_classic = classic;
	r = heard_open(&fr_source_bpf, &s->h.env, &s->config, NULL, &s->source, &d);
	if (r == 0)
		return true;
	if (r != -EOPNOTSUPP && r != -EPERM)
		fail_msg("%s: %s", s->config.subject, d.what);
	print_message("%s%s: %s\n", s->config.subject, classic ? " without BTF" : "", d.what);
	return false;
}

static void child_end(struct scene *s, bool let_go)
{
	uint64_t began_ns = fr_monotonic_ns();

	if (let_go)
		assert_int_equal(write(s->go, "", 1), 1);
	close(s->go);
	while (waitpid(s->pid, &s->status, 0) < 0)
		assert_int_equal(errno, EINTR);
	s->ran_ns = fr_monotonic_ns() - began_ns;
}

static bool can_be_fifo(const struct scene *s)
{
	if (!WIFEXITED(s->status) || WEXITSTATUS(s->status) != 77)
		return true;
	print_message("SCHED_FIFO is not permitted\n");
	return false;
}

/* All of it. False: it cannot be armed, or the child may not do what it is to do; S is gone. */
static bool play(struct scene *s, bool classic)
{
	bool armed = arm(s, classic);

	child_end(s, armed);
	if (!armed || !can_be_fifo(s)) {
		scene_free(s);
		return false;
	}
	heard_run(&s->h, 100, 0);
	assert_true(WIFEXITED(s->status));
	assert_int_equal(WEXITSTATUS(s->status), 0);
	return true;
}

/* One that the child saw itself: of its thread, and as long, to the 10 ms between the one clock and the
 * other.
 */
static bool is_heard(const struct scene *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->causes[i].tid == seen->tid && s->causes[i].value <= seen->most_ns &&
			s->causes[i].value + 10 * MS >= seen->least_ns)
			return true;
	return false;
}

/*
 * The kernel does not run a program on a classic tracepoint while another BPF program, or a call on a map,
 * has that CPU (bpf_prog_active in trace_call_bpf()): one switch in many is not seen, whoever watches.
 * Programs on raw and BTF tracepoints are not held back. So without BTF one that was missed is provoked anew;
 * and so is, however it is watched, what the machine's other work has kept from happening, or has made of
 * another length: what a hypervisor took of the CPU stands in no account of the thread.
 */
#define TRIES 8

/* A played scene in which RUN did what PROBE is to see, or NULL, with a word. */
static struct scene *play_until_heard(
	const char *probe, const char *threshold, char **set, void (*run)(void), bool classic)
{
	uint64_t threshold_ns;

	assert_int_equal(fr_threshold_parse(threshold, FR_CAUSE_NS, &threshold_ns), 0);
	for (int i = 1;; i++) {
		struct scene *s = scene_new(probe, threshold, run);
		bool happened;

		s->config.set = set;
		if (!play(s, classic))
			return NULL;
		happened = seen->least_ns >= threshold_ns + 10 * MS;
		if (happened && (i == TRIES || (s->n > 0 ? is_heard(s) : !classic)))
			return s;
		scene_free(s);
		if (i == TRIES) {
			print_message("%s could not be provoked\n", probe);
			return NULL;
		}
	}
}

/* All that was heard is of the child, above the threshold, and no longer than the child ran. */
static void check_all(const struct scene *s, const char *reason)
{
	uint64_t threshold;

	assert_int_equal(fr_threshold_parse(s->config.threshold, FR_CAUSE_NS, &threshold), 0);
	for (size_t i = 0; i < s->n; i++) {
		const struct fr_cause *c = &s->causes[i];

		assert_string_equal(c->reason, reason);
		assert_int_equal(c->pid, s->pid);
		assert_int_equal(c->unit, FR_CAUSE_NS);
		assert_int_equal(c->threshold, threshold);
		assert_true(c->value >= threshold);
		assert_true(c->value <= s->ran_ns);
	}
}

static void check_heard(const struct scene *s)
{
	if (is_heard(s))
		return;
	for (size_t i = 0; i < s->n; i++)
		print_error("heard: thread %d, %llu us\n", (int)s->causes[i].tid,
			(unsigned long long)(s->causes[i].value / FR_NSEC_PER_USEC));
	fail_msg("not heard: thread %d, %llu to %llu us", seen->tid,
		(unsigned long long)(seen->least_ns / FR_NSEC_PER_USEC),
		(unsigned long long)(seen->most_ns / FR_NSEC_PER_USEC));
}

/* What the scheduler says of the calling thread. */
struct account {
	uint64_t at_ns, cpu_ns, queued_ns, runs; /* runs 0: this kernel does not tell */
};

static struct account account(void)
{
	struct account a = {0};
	FILE *f = fopen("/proc/thread-self/schedstat", "re");

	if (f && fscanf(f, "%*u %" SCNu64 " %" SCNu64, &a.queued_ns, &a.runs) != 2)
		a.runs = 0;
	if (f)
		fclose(f);
	a.cpu_ns = fr_now_ns(CLOCK_THREAD_CPUTIME_ID);
	a.at_ns = fr_monotonic_ns();
	return a;
}

/* Since BEFORE, which was just now, the thread has been blocked. */
static void saw_blocked(const struct account *before)
{
	const uint64_t now_ns = fr_monotonic_ns();
	const struct account a = account();
	uint64_t other_ns = a.cpu_ns - before->cpu_ns + a.queued_ns - before->queued_ns;

	seen->tid = gettid();
	seen->most_ns = now_ns - before->at_ns;
	seen->least_ns = seen->most_ns > other_ns ? seen->most_ns - other_ns : 0;
}

/* Since DUE_NS, which came after BEFORE, it has waited for its CPU; where that was more than once, the
   longest wait is no shorter than the mean. */
static void saw_queued(const struct account *before, uint64_t due_ns)
{
	const uint64_t now_ns = fr_monotonic_ns();
	const struct account a = account();

	seen->tid = gettid();
	seen->most_ns = now_ns - due_ns;
	if (!a.runs)
		seen->least_ns = seen->most_ns;
	else if (a.runs > before->runs)
		seen->least_ns = (a.queued_ns - before->queued_ns) / (a.runs - before->runs);
	else /* it was late, and has not even slept */
		seen->least_ns = 0;
}

/* --- run queue ---------------------------------------------------------------------------------------------
 */

#define READY_MS 200 /* until all threads are where they are to be */
#define BUSY_MS 120  /* that the CPU is not to be had */

static uint64_t busy_from_ns;
static int busy_cpu, other_cpu = -1; /* that we may have; -1: there is none */

static void sleep_until(uint64_t ns)
{
	struct timespec t = {.tv_sec = ns / FR_NSEC_PER_SEC, .tv_nsec = ns % FR_NSEC_PER_SEC};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

static void pin(pid_t tid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(tid, sizeof(set), &set) < 0)
		_exit(2);
}

static void *keep_busy(void *arg)
{
	struct sched_param p = {.sched_priority = 1};
	uint64_t until_ns;

	pin(0, busy_cpu);
	if (sched_setscheduler(0, SCHED_FIFO, &p) < 0)
		_exit(77);
	sleep_until(busy_from_ns);
	until_ns = fr_monotonic_ns() + BUSY_MS * MS;
	while (fr_monotonic_ns() < until_ns)
		;
	return NULL;
}

/* Wakes 20 ms after the CPU is taken, and tells when it runs. */
static void wake_late(void)
{
	struct account before;
	uint64_t due_ns;
	pthread_t hog;

	busy_from_ns = fr_monotonic_ns() + READY_MS * MS;
	due_ns = busy_from_ns + 20 * MS;
	if (pthread_create(&hog, NULL, keep_busy, NULL) != 0)
		_exit(2);
	pin(0, busy_cpu);
	before = account();
	sleep_until(due_ns);
	saw_queued(&before, due_ns);
	pthread_join(hog, NULL);
}

static bool run_queue(bool classic)
{
	struct scene *s = play_until_heard("run-queue-latency", "50ms", NULL, wake_late, classic);
	struct fr_source_stats stats;

	if (!s)
		return false;
	check_all(s, "run-queue latency");
	check_heard(s);
	assert_string_equal(s->causes[0].comm, "test-source-pro");
	fr_source_get_stats(s->source, &stats);
	assert_int_equal(stats.fired, s->n);
	scene_free(s);
	return true;
}

/* The same, but its patience ends: after 80 ms it is moved to the other CPU, where it runs at once. It has
   waited all the same. */
static void *move_away(void *arg)
{
	pin(0, other_cpu);
	sleep_until(busy_from_ns + 100 * MS);
	pin(seen->tid, other_cpu);
	return NULL;
}

static void wake_and_move(void)
{
	struct account before;
	uint64_t due_ns;
	pthread_t hog, mover;

	busy_from_ns = fr_monotonic_ns() + READY_MS * MS;
	due_ns = busy_from_ns + 20 * MS;
	seen->tid = gettid();
	if (pthread_create(&hog, NULL, keep_busy, NULL) != 0 ||
		pthread_create(&mover, NULL, move_away, NULL) != 0)
		_exit(2);
	pin(0, busy_cpu);
	before = account();
	sleep_until(due_ns);
	saw_queued(&before, due_ns);
	pthread_join(hog, NULL);
	pthread_join(mover, NULL);
}

static bool run_queue_moved(bool classic)
{
	struct scene *s;

	if (other_cpu < 0) {
		print_message("there is no second CPU\n");
		return false;
	}
	s = play_until_heard("run-queue-latency", "50ms", NULL, wake_and_move, classic);
	if (!s)
		return false;
	check_all(s, "run-queue latency");
	check_heard(s);
	scene_free(s);
	return true;
}

/* --- blocked -----------------------------------------------------------------------------------------------
 */

/* The parent of a vfork() waits uninterruptibly until its child has gone. */
static void vfork_slowly(void)
{
	const struct account before = account();
	pid_t pid = vfork();

	if (pid == 0) {
		struct timespec t = {.tv_nsec = 80 * MS};

		clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
		_exit(0);
	}
	saw_blocked(&before);
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		_exit(2);
}

static void sleep_a_while(void)
{
	const struct account before = account();

	sleep_until(before.at_ns + 80 * MS);
	saw_blocked(&before);
}

static bool off_cpu(bool classic)
{
	struct scene *s = play_until_heard("off-cpu", "60ms", NULL, vfork_slowly, classic);

	if (!s)
		return false;
	check_all(s, "blocked off CPU");
	check_heard(s);
	scene_free(s);

	/* A task that sleeps is no anomaly … */
	s = scene_new("off-cpu", "60ms", sleep_a_while);
	assert_true(play(s, classic));
	assert_int_equal(s->n, 0);
	scene_free(s);
	return true;
}

/* … unless one wants it to be. */
static bool off_cpu_interruptible(bool classic)
{
	static char any[] = "interruptible=1", *set[] = {any, NULL};
	struct scene *s = play_until_heard("off-cpu", "60ms", set, sleep_a_while, classic);

	if (!s)
		return false;
	check_all(s, "blocked off CPU");
	check_heard(s);
	scene_free(s);
	return true;
}

/* --- system calls ------------------------------------------------------------------------------------------
 */

static void nanosleep_a_while(void)
{
	struct timespec t = {.tv_nsec = 80 * MS};
	const struct account before = account();

	syscall(SYS_nanosleep, &t, NULL);
	saw_blocked(&before);
}

static bool system_call(bool classic)
{
	struct scene *s = scene_new("syscall-latency", "60ms", nanosleep_a_while);

	/* Named, it counts … */
	s->config.syscalls = (char *)"fsync nanosleep";
	if (!play(s, classic))
		return false;
	check_all(s, "slow system call");
	assert_int_equal(s->n, 1);
	assert_string_equal(s->causes[0].detail, "nanosleep");
	check_heard(s);
	scene_free(s);

	/* … and else it is one that waits by design. */
	s = scene_new("syscall-latency", "60ms", nanosleep_a_while);
	assert_true(play(s, classic));
	assert_int_equal(s->n, 0);
	scene_free(s);

	s = scene_new("syscall-latency", "60ms", vfork_slowly);
	assert_true(play(s, classic));
	check_all(s, "slow system call");
	assert_int_equal(s->n, 1);
	assert_true(strcmp(s->causes[0].detail, "vfork") == 0 || strcmp(s->causes[0].detail, "clone") == 0);
	check_heard(s);
	scene_free(s);
	return true;
}

/* --- interrupts --------------------------------------------------------------------------------------------
 */

/* Past all caches, to a disk that answers with an interrupt. */
static void write_through(void)
{
	_cleanup_close_ int fd = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC | O_DIRECT, 0600);
	void *block = NULL;

	if (fd < 0)
		return; /* the machine has others */
	if (posix_memalign(&block, 4096, 65536) != 0)
		_exit(2);
	memset(block, 1, 65536);
	for (int i = 0; i < 16; i++)
		if (pwrite(fd, block, 65536, 0) != 65536 || fdatasync(fd) < 0)
			_exit(2);
	free(block);
}

/* /proc/interrupts has a line that begins with NUMBER or ends with NAME. */
static bool is_interrupt(const char *number, const char *name)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/interrupts", "re");
	_cleanup_free_ char *line = NULL;
	size_t size = 0;
	bool found = false;

	assert_non_null(f);
	while (!found && getline(&line, &size, f) > 0)
		found = name ? strstr(line, name) != NULL
			     : strtoul(line, NULL, 10) == strtoul(number, NULL, 10);
	return found;
}

static bool irq_time(bool classic)
{
	struct scene *s = scene_new("irq-time", "1us", write_through);
	const uint64_t began_ns = fr_monotonic_ns();

	s->config.pid = 0; /* whoever was interrupted */
	if (!play(s, classic))
		return false;
	if (s->n == 0) {
		print_message("no device of this machine has interrupted it meanwhile\n");
		scene_free(s);
		return false;
	}
	for (size_t i = 0; i < s->n; i++) {
		const struct fr_cause *c = &s->causes[i];

		assert_string_equal(c->reason, "interrupt handler");
		assert_true(c->value >= 1000 && c->value <= fr_monotonic_ns() - began_ns);
		assert_true(c->cpu >= 0 && c->cpu < sysconf(_SC_NPROCESSORS_CONF));
		if (classic)
			assert_true(strncmp(c->detail, "irq ", 4) == 0 && is_interrupt(c->detail + 4, NULL));
		else
			assert_true(c->detail[0] && is_interrupt(NULL, c->detail));
	}
	scene_free(s);
	return true;
}

/* What is sent to oneself arrives by a softirq, at once. */
static void send_to_oneself(void)
{
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(a);

	if (bind(fd, (void *)&a, length) < 0 || getsockname(fd, (void *)&a, &length) < 0)
		_exit(2);
	for (int i = 0; i < 500; i++)
		if (sendto(fd, "x", 1, 0, (void *)&a, length) != 1)
			_exit(2);
}

static bool softirq_time(bool classic)
{
	struct scene *s = scene_new("softirq-time", "1us", send_to_oneself);
	size_t net = 0;

	if (!play(s, classic))
		return false;
	check_all(s, "softirq handler");
	for (size_t i = 0; i < s->n; i++)
		net += strcmp(s->causes[i].detail, "net_rx") == 0;
	assert_true(net > 0);
	scene_free(s);
	return true;
}

/* --- exec --------------------------------------------------------------------------------------------------
 */

static void exec_twice(void)
{
	execl("/bin/sh", "sh", "-c", "exec sleep 0", NULL);
}

static bool exec(bool classic)
{
	struct scene *s = scene_new("exec", NULL, exec_twice);

	s->config.comm = (char *)"sleep";
	if (!play(s, classic))
		return false;
	assert_int_equal(s->n, 1);
	assert_string_equal(s->causes[0].reason, "exec");
	assert_string_equal(s->causes[0].comm, "sleep");
	assert_int_equal(s->causes[0].pid, s->pid);
	scene_free(s);
	return true;
}

/* --- hung task ---------------------------------------------------------------------------------------------
 */

#define SYSCTL "/proc/sys/kernel/"

static char directory[] = "/tmp/fr-test-probes.XXXXXX";

static bool sysctl_write(const char *path, const char *value)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, value, strlen(value)) == (ssize_t)strlen(value);
}

/* A FUSE file system of our own that answers nothing but the first question. -1: none to be had. */
static int mount_deaf(void)
{
	struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = 4096};
	struct fuse_out_header out = {.len = sizeof(out) + sizeof(init)};
	struct iovec iov[2] = {{&out, sizeof(out)}, {&init, sizeof(init)}};
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	static uint8_t question[1 << 16];
	char options[64];

	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	if (fd < 0)
		return -1;
	if (mount("flightrec-test", directory, "fuse", MS_NOSUID | MS_NODEV, options) < 0 ||
		read(fd, question, sizeof(question)) < (ssize_t)sizeof(struct fuse_in_header)) {
		close(fd);
		return -1;
	}
	out.unique = ((struct fuse_in_header *)question)->unique;
	if (writev(fd, iov, 2) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static void ask_the_deaf(void)
{
	struct stat st;

	stat(directory, &st);
}

/* A question that is asked, and not answered, cannot be taken back: who asked is uninterruptible, once he is
 * to die. */
static void hang(struct scene *s, int deaf)
{
	struct pollfd p = {.fd = deaf, .events = POLLIN};
	static uint8_t question[1 << 16];

	assert_int_equal(write(s->go, "", 1), 1);
	assert_int_equal(poll(&p, 1, HEARD_LIMIT_MS), 1);
	assert_true(read(deaf, question, sizeof(question)) > 0);
	assert_int_equal(kill(s->pid, SIGKILL), 0);
}

/* Of the child, as others may hang, too. */
static const struct fr_cause *hung(const struct scene *s, bool classic)
{
	for (size_t i = 0; i < s->n; i++)
		if (classic ? s->causes[i].pid == 0 : s->causes[i].pid == s->pid)
			return &s->causes[i];
	return NULL;
}

/* With the kernel's patience at one second, and no word of it in its log; for one test at a time. */
static void hear_of_hung(struct scene *s, bool classic)
{
	_cleanup_close_ int lock = open(SYSCTL "hung_task_timeout_secs", O_RDONLY | O_CLOEXEC);
	char timeout[32], warnings[32];

	assert_int_equal(flock(lock, LOCK_EX), 0);
	assert_true(fr_read_line(SYSCTL "hung_task_timeout_secs", timeout, sizeof(timeout)) >= 0);
	assert_true(fr_read_line(SYSCTL "hung_task_warnings", warnings, sizeof(warnings)) >= 0);
	sysctl_write(SYSCTL "hung_task_warnings", "0");
	sysctl_write(SYSCTL "hung_task_timeout_secs", "1");
	for (int ms = 0; ms < HEARD_LIMIT_MS && !hung(s, classic); ms += 100)
		heard_run(&s->h, 100, 0);
	sysctl_write(SYSCTL "hung_task_timeout_secs", timeout);
	sysctl_write(SYSCTL "hung_task_warnings", warnings);
}

static const char *no_hung_task(void)
{
	char panic[16];

	if (access(SYSCTL "hung_task_timeout_secs", W_OK) < 0 ||
		access(SYSCTL "hung_task_warnings", W_OK) < 0)
		return "the kernel does not look for hung tasks, or we may not say when";
	if (fr_read_line(SYSCTL "hung_task_panic", panic, sizeof(panic)) < 0 || strcmp(panic, "0") != 0)
		return "a hung task would make this kernel panic";
	return NULL;
}

static bool hung_task(bool classic)
{
	const char *why = no_hung_task();
	const struct fr_cause *c;
	uint64_t began_ns;
	struct scene *s;
	int deaf = -1;

	if (why) {
		print_message("hung-task: %s\n", why);
		return false;
	}
	assert_non_null(mkdtemp(directory));
	/* The child comes first: held by it, too, the file system would outlive us. */
	s = scene_new("hung-task", NULL, ask_the_deaf);
	s->config.pid = 0;
	began_ns = fr_monotonic_ns();
	deaf = mount_deaf();
	if (deaf < 0)
		print_message("hung-task: no FUSE to make a task hang\n");
	else if (arm(s, classic)) {
		hang(s, deaf);
		hear_of_hung(s, classic);
	}
	if (deaf >= 0)
		close(deaf); /* answers all */
	child_end(s, false);
	umount2(directory, MNT_DETACH);
	rmdir(directory);
	strcpy(directory + strlen(directory) - 6, "XXXXXX");
	if (!s->source) {
		scene_free(s);
		return false;
	}
	c = hung(s, classic);
	assert_non_null(c);
	assert_string_equal(c->reason, "hung task");
	if (!classic) {
		assert_int_equal(c->tid, s->pid);
		assert_int_equal(c->unit, FR_CAUSE_NS);
		assert_true(c->value >= FR_NSEC_PER_SEC && c->value <= fr_monotonic_ns() - began_ns);
		assert_string_equal(c->comm, "test-source-pro");
	}
	scene_free(s);
	return true;
}

/* --- soft lockup -------------------------------------------------------------------------------------------
 */

static void print(const char *line)
{
	_cleanup_close_ int fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		_exit(77);
	if (write(fd, line, strlen(line)) < 0)
		_exit(2);
}

/* A line that is made as the kernel's, but does not alarm who reads the log. */
static void print_lockup(void)
{
	print("<7>a test of flightrec: nothing is wrong: CPU#12 stuck for 23s! [test:1]");
}

/* The words that count, of somebody who has not held a CPU for so long: the line is seen, and does not fire.
 */
static bool soft_lockup(bool classic)
{
	static char *set[] = {(char *)"words=nothing is wrong: CPU#", NULL};
	struct scene *s = scene_new("soft-lockup", NULL, print_lockup);
	struct fr_source_stats stats;
	bool armed;

	s->config.set = set;
	armed = arm(s, classic);

	child_end(s, armed);
	if (!armed || s->status != 0) {
		print_message("soft-lockup: %s\n", armed ? "no /dev/kmsg" : "not armed");
		scene_free(s);
		return false;
	}
	/* Who has the console prints it, which need not be the child. */
	HEARD_UNTIL(&s->h, (fr_source_get_stats(s->source, &stats), stats.last_ns));
	heard_run(&s->h, 100, 0);
	assert_int_equal(s->n, 0);
	assert_int_equal(stats.fired, 0);
	assert_true(stats.last < 23 * FR_NSEC_PER_SEC / 2);
	scene_free(s);
	return true;
}

/* --- all ---------------------------------------------------------------------------------------------------
 */

int main(void)
{
	const struct CMUnitTest tests[] = {BOTH(run_queue), BOTH(run_queue_moved), BOTH(off_cpu),
		BOTH(off_cpu_interruptible), BOTH(system_call), BOTH(irq_time), BOTH(softirq_time),
		BOTH(exec), BOTH(hung_task), BOTH(soft_lockup)};

	cpu_set_t cpus;

	(void)own_mounts();
	if (sched_getaffinity(0, sizeof(cpus), &cpus) < 0)
		return 1;
	while (!CPU_ISSET(busy_cpu, &cpus))
		busy_cpu++;
	for (int i = busy_cpu + 1; i < CPU_SETSIZE && other_cpu < 0; i++)
		if (CPU_ISSET(i, &cpus))
			other_cpu = i;
	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (seen == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
