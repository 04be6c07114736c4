// SPDX-License-Identifier: GPL-2.0-or-later

/* BPF objects on the running kernel: a built-in probe, users' objects good and bad, and a storm. */

#include "both.h"
#include "heard.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "source/bpf_event.h"
#include "source/bpf_log.h"
#include "source/bpf_object.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <linux/types.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <flightrec/trigger.bpf.h>

#define OBJECT(name) FR_TEST_BPF "/" name ".bpf.o"

static bool have_tracefs;

/* Of processes that these tests look at: others on the machine do the same things. */
static char unique[16];

/* Skips the test where BPF cannot be had at all. */
static void need_bpf(void)
{
	if (geteuid() != 0) {
		print_message("BPF programs want root\n");
		skip();
	}
	if (access("/sys/kernel/btf/vmlinux", R_OK) < 0) {
		print_message("this kernel has no BTF\n");
		skip();
	}
}

static struct fr_trigger_config program(const char *path)
{
	struct fr_trigger_config c = heard_config(FR_TRIGGER_PROGRAM);

	c.subject = (char *)path;
	c.cooldown_ns = 0;
	return c;
}

static struct fr_source *armed(struct heard *h, const struct fr_trigger_config *c)
{
	struct fr_source *s = NULL;
	struct fr_diag d = {0};

	if (heard_open(&fr_source_bpf, &h->env, c, &h->n, &s, &d) < 0)
		fail_msg("%s\n%s", d.what, d.hint);
	assert_ptr_equal(s->class, &fr_source_bpf);
	return s;
}

static struct fr_source_stats stats_of(struct fr_source *s)
{
	struct fr_source_stats st;

	fr_source_get_stats(s, &st);
	return st;
}

/* A process called NAME that asks TIMES for its parent, once a byte comes through RET_GO. */
static pid_t caller(const char *name, unsigned times, int *ret_go)
{
	int go[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(go), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, name);
		if (read(go[0], &c, 1) != 1)
			_exit(1);
		for (unsigned i = 0; i < times; i++)
			syscall(SYS_getppid);
		_exit(0);
	}
	close(go[0]);
	*ret_go = go[1];
	return pid;
}

static void let_go(int go)
{
	assert_int_equal(write(go, "", 1), 1);
	close(go);
}

static void reap(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* As caller(), at once and to its end. */
static pid_t call(const char *name, unsigned times)
{
	int go;
	pid_t pid = caller(name, times, &go);

	let_go(go);
	reap(pid);
	return pid;
}

static void read_own_cgroup(char *ret, size_t size)
{
	struct fr_cause c = {.pid = getpid()};

	fr_cause_fill_from_proc(&c);
	snprintf(ret, size, "%s", c.cgroup);
}

/* /bin/sh under the name of its own, in RET. */
static void link_shell(char *ret, size_t size)
{
	snprintf(ret, size, "/tmp/%s", unique);
	unlink(ret);
	assert_int_equal(symlink("/bin/sh", ret), 0);
}

static pid_t execs(const char *path)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		execl(path, path, "-c", "exit 0", NULL);
		_exit(127);
	}
	reap(pid);
	return pid;
}

/* The probe that is built in, with a filter: the right process of two, and all that is told of it. */
static void test_probe(void **state)
{
	struct fr_trigger_config c = heard_config(FR_TRIGGER_PROBE);
	char cgroup[FR_CAUSE_CGROUP_SIZE], shell[64];
	struct fr_source_stats st;
	struct fr_source *s;
	uint64_t before;
	struct heard h;
	pid_t pid;

	need_bpf();
	heard_init(&h);
	c.subject = (char *)"exec";
	c.comm = unique;
	link_shell(shell, sizeof(shell));
	s = armed(&h, &c);
	read_own_cgroup(cgroup, sizeof(cgroup));
	before = fr_monotonic_ns();
	execs("/bin/true");
	pid = execs(shell);
	heard_wait(&h, 1);
	assert_int_equal(h.n, 1);
	assert_ptr_equal(h.trigger, &h.n);
	assert_string_equal(h.last.source, "bpf");
	assert_string_equal(h.last.reason, "exec");
	assert_string_equal(h.last.comm, unique);
	assert_int_equal(h.last.pid, pid);
	assert_int_equal(h.last.tid, pid);
	assert_true(h.last.time_ns > before);
	assert_true(h.last.cpu >= 0);
	if (cgroup[0]) /* a unified hierarchy is mounted */
		assert_string_equal(h.last.cgroup, cgroup);
	st = stats_of(s);
	assert_int_equal(st.fired, 1);
	assert_int_equal(st.cooled + st.lost + st.bad, 0);
	assert_true(st.last_ns >= h.last.time_ns);
	fr_source_close(s);
	/* Closed is disarmed. */
	execs(shell);
	unlink(shell);
	heard_run(&h, 20, 0);
	assert_int_equal(h.n, 1);
	heard_deinit(&h);
}

/* Threshold=, Set=, the newest value, and the recorder's own process. */
static void test_threshold(void **state)
{
	char *set[] = {(char *)"size=41", (char *)"word=largest", NULL};
	struct fr_trigger_config c = program(OBJECT("getppid"));
	struct fr_source_stats st;
	struct fr_source *s;
	struct heard h;
	pid_t pid;

	need_bpf();
	heard_init(&h);
	c.threshold = (char *)"42";
	c.set = set;
	s = armed(&h, &c);
	call("below", 10);
	heard_run(&h, 50, 0);
	st = stats_of(s);
	assert_int_equal(h.n, 0);
	assert_int_equal(st.fired, 0);
	assert_int_equal(st.last, 41);
	assert_int_equal(st.threshold, 42);
	assert_int_equal(st.unit, FR_CAUSE_COUNT);
	fr_source_close(s);

	set[0] = (char *)"size=0x2a";
	c.comm = unique;
	s = armed(&h, &c);
	prctl(PR_SET_NAME, unique);
	for (int i = 0; i < 5; i++)
		syscall(SYS_getppid);
	prctl(PR_SET_NAME, "test-bpf");
	heard_run(&h, 50, 0);
	assert_int_equal(h.n, 0); /* our own */
	pid = call(unique, 3);
	heard_wait(&h, 3);
	assert_int_equal(h.n, 3);
	assert_int_equal(h.last.pid, pid);
	assert_int_equal(h.last.value, 42);
	assert_int_equal(h.last.threshold, 42);
	assert_int_equal(h.last.unit, FR_CAUSE_COUNT);
	assert_string_equal(h.last.comm, unique);
	assert_string_equal(h.last.reason, "largest");
	fr_source_close(s);
	heard_deinit(&h);
}

/* Pid=, alone of two processes that do the same. */
static void test_pid(void **state)
{
	struct fr_trigger_config c = program(OBJECT("getppid"));
	struct fr_source *s;
	struct heard h;
	int go;

	need_bpf();
	heard_init(&h);
	c.pid = caller("wanted", 2, &go);
	s = armed(&h, &c);
	call("other", 10);
	let_go(go);
	reap(c.pid);
	heard_wait(&h, 2);
	heard_run(&h, 50, 0);
	assert_int_equal(h.n, 2);
	assert_int_equal(h.last.pid, c.pid);
	assert_int_equal(stats_of(s).fired, 2);
	fr_source_close(s);
	heard_deinit(&h);
}

/* The two ways of one purpose; the absent tracepoint takes its twin along. */
static void test_twins(void **state)
{
	struct fr_trigger_config c = program(OBJECT("twins"));
	struct fr_source *s;
	struct heard h;
	pid_t pid;

	need_bpf();
	heard_init(&h);
	c.comm = unique;
	s = armed(&h, &c);
	pid = call(unique, 1);
	heard_wait(&h, 1);
	heard_run(&h, 20, 0);
	assert_int_equal(h.n, 1);
	assert_string_equal(h.last.reason, "by BTF");
	assert_string_equal(h.last.detail, "the detail");
	assert_string_equal(h.last.comm, unique);
	assert_int_equal(h.last.pid, pid);
	assert_int_equal(h.last.tid, pid);
	assert_int_equal(h.last.unit, FR_CAUSE_BYTES);
	fr_source_close(s);

	h.env.bpf_classic = true;
	s = armed(&h, &c);
	pid = call(unique, 1);
	heard_wait(&h, 2);
	heard_run(&h, 20, 0);
	assert_int_equal(h.n, 2);
	assert_string_equal(h.last.reason, "classic");
	assert_int_equal(h.last.pid, pid);
	fr_source_close(s);
	heard_deinit(&h);
}

/* What a program writes past the helper is made harmless, or is no event. */
static void test_garbage(void **state)
{
	struct fr_trigger_config c = program(OBJECT("garbage"));
	struct fr_source *s;
	struct heard h;
	int go;

	need_bpf();
	heard_init(&h);
	c.pid = caller("garbage", 1, &go);
	s = armed(&h, &c);
	let_go(go);
	reap(c.pid);
	heard_wait(&h, 1);
	heard_run(&h, 50, 0);
	assert_int_equal(h.n, 1);
	assert_int_equal(stats_of(s).bad, 3);
	assert_int_equal(strlen(h.last.comm), FLIGHTREC_COMM_SIZE - 1);
	assert_int_equal(strspn(h.last.reason, "?"), FLIGHTREC_REASON_SIZE - 1);
	assert_int_equal(h.last.unit, FR_CAUSE_NONE);
	assert_int_equal(h.last.cpu, -1);
	fr_source_close(s);
	heard_deinit(&h);
}

/* A counter of perf on the tracepoint NAME in PID; -1: none can be had. */
static int count_tracepoint(const char *name, pid_t pid)
{
	struct perf_event_attr a = {.type = PERF_TYPE_TRACEPOINT, .size = sizeof(a)};
	char path[128], id[32];

	snprintf(path, sizeof(path), "/sys/kernel/tracing/events/%s/id", name);
	if (fr_read_line(path, id, sizeof(id)) < 0)
		return -1;
	a.config = strtoull(id, NULL, 10);
	return (int)syscall(SYS_perf_event_open, &a, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* What a program on a classic tracepoint returns keeps no event from others, and what its functions return is
   as they say. */
static void test_returns(void **state)
{
	struct fr_trigger_config c = program(OBJECT("returns"));
	struct fr_source *s;
	uint64_t counted = 0;
	struct heard h;
	int go, fd;

	need_bpf();
	if (!have_tracefs) {
		print_message("tracefs cannot be mounted\n");
		skip();
	}
	c.pid = caller("returns", 100, &go);
	fd = count_tracepoint("syscalls/sys_enter_getppid", c.pid);
	if (fd < 0) {
		let_go(go);
		reap(c.pid);
		print_message("perf cannot count a system call's tracepoint\n");
		skip();
	}
	heard_init(&h);
	s = armed(&h, &c);
	let_go(go);
	reap(c.pid);
	assert_int_equal(stats_of(s).fired, 50);
	fr_source_close(s);
	assert_int_equal(read(fd, &counted, sizeof(counted)), sizeof(counted));
	close(fd);
	assert_int_equal(counted, 100);
	heard_deinit(&h);
}

static void copy_object(const char *from, const char *to)
{
	_cleanup_buf_ struct fr_buf bytes = {0};
	char tmp[64];
	int fd;

	assert_int_equal(fr_bpf_file_read(from, &bytes, NULL), 0);
	snprintf(tmp, sizeof(tmp), "%s.new", to);
	fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fr_write_all(fd, bytes.data, bytes.len), 0);
	close(fd);
	assert_int_equal(rename(tmp, to), 0);
}

/* A file that was replaced is told from one that is the same, or that is not there for now. */
static void test_replaced(void **state)
{
	char dir[] = "/tmp/flightrec-test.XXXXXX", path[48];
	struct fr_trigger_config c = program(path);
	struct fr_trigger_config probe = heard_config(FR_TRIGGER_PROBE);
	struct fr_source *s;
	bool same, missing, replaced;
	struct heard h;

	need_bpf();
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/x.bpf.o", dir);
	copy_object(OBJECT("getppid"), path);
	heard_init(&h);
	s = armed(&h, &c);
	same = fr_source_bpf.is_stale(s);
	copy_object(OBJECT("getppid"), path);
	replaced = fr_source_bpf.is_stale(s);
	unlink(path);
	missing = fr_source_bpf.is_stale(s);
	fr_source_close(s);
	rmdir(dir);
	assert_false(same);
	assert_true(replaced);
	assert_false(missing);
	probe.subject = (char *)"exec";
	s = armed(&h, &probe);
	assert_false(fr_source_bpf.is_stale(s));
	fr_source_close(s);
	heard_deinit(&h);
}

/* The example of flightrec(7), as it is documented: a file that opens slowly, and no other. */
static void test_example(void **state)
{
	struct fr_trigger_config c = program(OBJECT("slow-open"));
	char *set[] = {(char *)"only_reading=yes", NULL};
	char path[] = "/tmp/flightrec-test-fifo.XXXXXX", go;
	struct fr_source *s;
	uint64_t begin_ns, took_ns;
	struct heard h;
	int fd, ready[2];
	pid_t pid;

	need_bpf();
	if (!have_tracefs) {
		print_message("tracefs cannot be mounted\n");
		skip();
	}
	heard_init(&h);
	c.threshold = (char *)"50ms";
	c.comm = unique;
	c.set = set;
	s = armed(&h, &c);
	assert_true(mkdtemp(path));
	rmdir(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(pipe(ready), 0);
	begin_ns = fr_monotonic_ns();
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_NAME, unique);
		close(open("/dev/null", O_RDONLY));
		if (write(ready[1], "", 1) != 1)
			_exit(1);
		/* Waits for who writes. */
		_exit(open(path, O_RDONLY) < 0);
	}
	assert_int_equal(read(ready[0], &go, 1), 1);
	close(ready[0]);
	close(ready[1]);
	await_sleep(pid);
	usleep(200 * 1000);
	fd = open(path, O_WRONLY);
	reap(pid);
	took_ns = fr_monotonic_ns() - begin_ns;
	close(fd);
	unlink(path);
	heard_wait(&h, 1);
	heard_run(&h, 50, 0);
	assert_int_equal(h.n, 1);
	assert_int_equal(h.last.pid, pid);
	assert_string_equal(h.last.comm, unique);
	assert_string_equal(h.last.reason, "slow open");
	assert_int_equal(h.last.threshold, 50 * FR_NSEC_PER_MSEC);
	assert_in_range(h.last.value, 200 * FR_NSEC_PER_MSEC, took_ns);
	assert_int_equal(h.last.unit, FR_CAUSE_NS);
	fr_source_close(s);
	heard_deinit(&h);
}

/* CGroup=: in it and below it, and in no other. */
static void in_cgroup(const char *parent, const char *child)
{
	struct fr_trigger_config c = program(OBJECT("getppid"));
	char procs[PATH_MAX], text[16];
	struct fr_source *s;
	struct heard h;
	pid_t pid;
	int go, fd;

	heard_init(&h);
	c.cgroup = strstr((char *)parent, "/flightrec-test");
	s = armed(&h, &c);
	pid = caller("below", 1, &go);
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", child);
	snprintf(text, sizeof(text), "%d", (int)pid);
	fd = open(procs, O_WRONLY | O_CLOEXEC);
	fr_write_all(fd, text, strlen(text));
	close(fd);
	call("other", 3);
	let_go(go);
	reap(pid);
	heard_wait(&h, 1);
	heard_run(&h, 50, 0);
	/* Kept for the asserts until all is cleaned up. */
	fr_source_close(s);
	heard_deinit(&h);
	rmdir(child);
	rmdir(parent);
	assert_int_equal(h.n, 1);
	assert_int_equal(h.last.pid, pid);
	assert_string_equal(h.last.cgroup, strstr(child, "/flightrec-test"));
}

static void test_cgroup(void **state)
{
	const char *root = access("/sys/fs/cgroup/cgroup.procs", F_OK) == 0 ? "/sys/fs/cgroup"
									    : "/sys/fs/cgroup/unified";
	char parent[128], child[160];

	need_bpf();
	snprintf(parent, sizeof(parent), "%s/flightrec-test-%d", root, (int)getpid());
	snprintf(child, sizeof(child), "%s/below", parent);
	if (mkdir(parent, 0755) < 0 || mkdir(child, 0755) < 0) {
		rmdir(parent);
		print_message("no control group of version 2 can be made\n");
		skip();
	}
	in_cgroup(parent, child);
}

/* In a pid namespace, on a kernel that does not tell of it: no number is better than that of somebody else.
 */
static const char *without_btf(struct heard *h, struct fr_trigger_config *c)
{
	struct fr_source *s = NULL;
	struct fr_diag d = {0};

	h->env.bpf_classic = true;
	if (heard_open(&fr_source_bpf, &h->env, c, NULL, &s, &d) != -EOPNOTSUPP)
		return "Pid= is taken without BTF";
	c->pid = 0;
	d.code = 0;
	if (heard_open(&fr_source_bpf, &h->env, c, NULL, &s, &d) < 0)
		return "cannot be armed without BTF";
	h->n = 0;
	call(unique, 1);
	heard_wait(h, 1);
	if (h->n != 1 || h->last.pid != 0 || h->last.tid != 0)
		return "a number without BTF";
	fr_source_close(s);
	heard_deinit(h);
	return NULL;
}

/* A recorder in a pid namespace of its own: its own numbers, and 0 for who it cannot see. Runs as its first
   process; returns a line that says what is wrong. */
static const char *inside(int outsider_go)
{
	struct fr_trigger_config c = program(OBJECT("getppid"));
	struct fr_source *s = NULL;
	struct fr_diag d = {0};
	struct heard h;
	struct stat st;
	pid_t pid;
	int go;

	heard_init(&h);
	if (stat("/proc/self/ns/pid", &st) < 0)
		return "no namespace";
	h.env.self = getpid(); /* 1 */
	c.comm = unique;
	prctl(PR_SET_NAME, unique);
	h.env.pidns = (uint32_t)st.st_ino;
	if (heard_open(&fr_source_bpf, &h.env, &c, NULL, &s, &d) < 0)
		return d.what[0] ? "cannot be armed" : "cannot be armed, and says nothing";
	syscall(SYS_getppid); /* the recorder itself: never */
	pid = call(unique, 1);
	heard_wait(&h, 1);
	if (h.n != 1 || h.last.pid != pid || h.last.tid != pid || pid > 100)
		return "an insider is not known by its number";
	let_go(outsider_go);
	heard_wait(&h, 2);
	if (h.n != 2 || h.last.pid != 0 || h.last.tid != 0)
		return "an outsider has a number";
	fr_source_close(s);

	c.pid = caller(unique, 1, &go);
	if (heard_open(&fr_source_bpf, &h.env, &c, NULL, &s, &d) < 0)
		return "Pid= cannot be armed";
	call(unique, 1);
	let_go(go);
	reap(c.pid);
	heard_wait(&h, 3);
	heard_run(&h, 50, 0);
	if (h.n != 3 || h.last.pid != c.pid)
		return "Pid= is not of the namespace";
	fr_source_close(s);
	s = NULL;
	return without_btf(&h, &c);
}

static void test_pid_namespace(void **state)
{
	pid_t outsider, pid;
	int go, status;

	need_bpf();
	outsider = caller(unique, 1, &go);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		const char *wrong;
		pid_t first;

		/* /proc must be the new namespace's for /proc/self. */
		if (unshare(CLONE_NEWPID | CLONE_NEWNS) < 0)
			_exit(77);
		first = fork();
		if (first == 0) {
			if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
				mount("proc", "/proc", "proc", 0, NULL) < 0)
				_exit(77);
			wrong = inside(go);
			if (wrong)
				fprintf(stderr, "in a pid namespace: %s\n", wrong);
			_exit(wrong != NULL);
		}
		waitpid(first, &status, 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 2);
	}
	close(go);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	kill(outsider, SIGKILL); /* it may wait still */
	waitpid(outsider, NULL, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		print_message("no pid namespace can be made\n");
		skip();
	}
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static double cpu_seconds(int who)
{
	struct rusage u;

	getrusage(who, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* A million anomalies. COOLDOWN_NS 0: as fast as they come. */
static void storm(uint64_t cooldown_ns, struct heard *h, struct fr_source_stats *ret, double *ret_seconds,
	double *ret_cpu)
{
	struct fr_trigger_config c = program(OBJECT("getppid"));
	struct fr_source *s;
	uint64_t begin;
	int go, status;

	c.cooldown_ns = cooldown_ns;
	c.pid = caller("storm", 1000000, &go);
	s = armed(h, &c);
	*ret_cpu = cpu_seconds(RUSAGE_SELF);
	begin = fr_monotonic_ns();
	let_go(go);
	while (waitpid(c.pid, &status, WNOHANG) == 0)
		heard_run(h, 50, 0);
	heard_run(h, 20, 0);
	*ret_seconds = (double)(fr_monotonic_ns() - begin) / 1e9;
	*ret_cpu = cpu_seconds(RUSAGE_SELF) - *ret_cpu;
	*ret = stats_of(s);
	fr_source_close(s);
	print_message("cool-down %llu ms: %.2f s, %u told, %llu cooled, %llu lost, %.1f ms of CPU\n",
		(unsigned long long)(cooldown_ns / FR_NSEC_PER_MSEC), *ret_seconds, h->n,
		(unsigned long long)ret->cooled, (unsigned long long)ret->lost, *ret_cpu * 1e3);
}

static void test_storm(void **state)
{
	struct fr_source_stats st;
	double seconds, cpu;
	struct heard h;

	need_bpf();
	heard_init(&h);
	storm(100 * FR_NSEC_PER_MSEC, &h, &st, &seconds, &cpu);
	assert_int_equal(st.fired, 1000000);
	assert_int_equal(st.cooled + h.n, 1000000);
	assert_int_equal(st.lost, 0);
	assert_in_range(h.n, 1, (unsigned)(seconds * 10) + 1);
	/* 5 % of a core; a short storm on a fast machine has the loop's own cost in it. */
	assert_true(cpu < seconds * 0.05 + 0.02);
	heard_deinit(&h);
}

/* On several CPUs at once: still each anomaly in one counter, and one told in a cool-down. */
static void test_two_at_once(void **state)
{
	struct fr_trigger_config c = program(OBJECT("getppid"));
	struct fr_source_stats st;
	struct fr_source *s;
	uint64_t begin, took;
	struct heard h;
	pid_t pid[2];
	int go[2];

	need_bpf();
	heard_init(&h);
	c.comm = unique;
	c.cooldown_ns = 5 * FR_NSEC_PER_MSEC;
	for (int i = 0; i < 2; i++)
		pid[i] = caller(unique, 200000, &go[i]);
	s = armed(&h, &c);
	begin = fr_monotonic_ns();
	let_go(go[0]);
	let_go(go[1]);
	reap(pid[0]);
	reap(pid[1]);
	took = fr_monotonic_ns() - begin;
	heard_run(&h, 50, 0);
	st = stats_of(s);
	fr_source_close(s);
	heard_deinit(&h);
	assert_int_equal(st.fired, 400000);
	assert_int_equal(st.cooled + st.lost + h.n, 400000);
	assert_in_range(h.n, 1, took / c.cooldown_ns + 1);
}

/* Without a cool-down the ring fills up, and what it cannot take is counted. */
static void test_flood(void **state)
{
	struct fr_source_stats st;
	double seconds, cpu;
	struct heard h;

	need_bpf();
	heard_init(&h);
	storm(0, &h, &st, &seconds, &cpu);
	assert_int_equal(st.fired, 1000000);
	assert_int_equal(st.cooled, 0);
	assert_int_equal(h.n + st.lost, 1000000);
	heard_deinit(&h);
}

static char *verifier_log;

static void take_log(void *ctx, const char *text)
{
	free(verifier_log);
	verifier_log = strdup(text);
}

/* Standard error until RESTORE stays in a file: what libraries print there. */
static int capture_stderr(int *ret_saved)
{
	int fd = memfd_create("stderr", MFD_CLOEXEC);

	fflush(stderr);
	*ret_saved = dup(STDERR_FILENO);
	dup2(fd, STDERR_FILENO);
	return fd;
}

static off_t restore_stderr(int fd, int saved)
{
	off_t n;

	fflush(stderr);
	n = lseek(fd, 0, SEEK_END);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(fd);
	return n;
}

static void test_bad_objects(void **state)
{
	static const struct {
		const char *path;
		int code;
		const char *what;
	} bad[] = {
		{OBJECT("bad-verifier"), -EINVAL,
			"verifier rejects the program 'reads_anywhere' of " OBJECT("bad-verifier") ": R"},
		{OBJECT("bad-verifier"), -EINVAL, "at `"},
		{OBJECT("bad-huge-map"), -E2BIG, "with 'everybody' of 2147483648 entries"},
		{OBJECT("bad-version"), -ENOEXEC, "version 99 of the trigger ABI, but this is version 1"},
		{OBJECT("bad-map"), -ENOEXEC, "has no map 'flightrec_counters'"},
		{OBJECT("bad-map-type"), -ENOEXEC, "the map 'flightrec_events' of"},
		{OBJECT("bad-stranger"), -ENOEXEC, "it has no global 'flightrec_abi'"},
		{OBJECT("bad-no-program"), -ENOEXEC, "has no program"},
		{OBJECT("bad-section"), -EINVAL, "SEC(\"whatever\")"},
		{OBJECT("bad-attach"), -EINVAL, "cannot be attached by its section SEC(\"perf_event\")"},
		{OBJECT("bad-tracepoint"), -EOPNOTSUPP,
			"this kernel has no tracepoint 'flightrec_no_such_tracepoint', which the program "
			"'program' of"},
		{OBJECT("bad-classic-tracepoint"), -EOPNOTSUPP, "tracepoint 'flightrec:no_such_tracepoint'"},
		{OBJECT("bad-endian"), -ENOEXEC, "has the other byte order"},
		{"/proc/self/exe", -ENOEXEC, "is an ELF file, but not a BPF object"},
		{"/etc/passwd", -ENOEXEC, "is not an ELF file"},
		{"/nonexistent/x.bpf.o", -ENOENT, "/nonexistent/x.bpf.o: No such file"},
		{"/tmp", -EINVAL, "is not a regular file"},
		{"/dev/null", -EINVAL, "is not a regular file"},
	};
	struct heard h;
	int saved, fd;

	need_bpf();
	heard_init(&h);
	h.env.log = take_log;
	for (size_t i = 0; i < FR_ARRAY_SIZE(bad); i++) {
		struct fr_trigger_config c = program(bad[i].path);

		fd = capture_stderr(&saved);
		heard_refused(&h, &fr_source_bpf, &c, bad[i].code, bad[i].what);
		assert_int_equal(restore_stderr(fd, saved), 0);
	}
	assert_non_null(verifier_log);
	assert_non_null(strstr(verifier_log, "BEGIN PROG LOAD LOG"));
	free(verifier_log);
	heard_deinit(&h);
}

/* Cut anywhere, and with any byte another one: refused, or opened, and nothing else. Loading is for the
   verifier. */
static void test_damaged_objects(void **state)
{
	_cleanup_buf_ struct fr_buf good = {0};
	unsigned opened = 0, refused = 0;
	uint32_t random = 1;

	need_bpf();
	assert_int_equal(fr_read_file(AT_FDCWD, OBJECT("getppid"), FR_BPF_FILE_MAX, &good), 0);
	for (int i = 0; i < 600; i++) {
		_cleanup_free_ uint8_t *bytes = malloc(good.len);
		struct fr_bpf_object *o = NULL;
		struct fr_diag d = {0};
		size_t n = good.len;
		int r;

		memcpy(bytes, good.data, n);
		random = random * 1664525 + 1013904223;
		if (i % 3 == 0)
			n = random % n;
		else if (i % 3 == 1)
			bytes[random % n] ^= (uint8_t)(1u << i % 8);
		else /* the tables that all else is found by */
			memset(bytes + n - 1 - random % FR_MIN(n, (size_t)1024), i, 1);
		r = fr_bpf_object_open(bytes, n, "damaged.bpf.o", false, &o, &d);
		assert_true(r == 0 || (r < 0 && d.what[0] && !o));
		opened += r == 0;
		refused += r < 0;
		fr_bpf_object_free(o);
	}
	assert_true(opened > 0 && refused > 200);
}

/* A file whose owner, mode or size speaks against it. */
static void test_bad_files(void **state)
{
	char path[] = "/tmp/flightrec-test-object.XXXXXX";
	struct fr_trigger_config c = program(path);
	_cleanup_buf_ struct fr_buf b = {0};
	struct heard h;
	int fd;

	need_bpf();
	heard_init(&h);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(fr_read_file(AT_FDCWD, OBJECT("getppid"), FR_BPF_FILE_MAX, &b), 0);
	assert_int_equal(fr_write_all(fd, b.data, b.len), 0);
	fchmod(fd, 0644);
	fr_source_close(armed(&h, &c));
	fchmod(fd, 0646);
	heard_refused(&h, &fr_source_bpf, &c, -EPERM, "can be written by everybody");
	fchmod(fd, 0664);
	assert_int_equal(fchown(fd, 0, 65534), 0);
	heard_refused(&h, &fr_source_bpf, &c, -EPERM, "can be written by the group 65534");
	fchmod(fd, 0644);
	assert_int_equal(fchown(fd, 65534, 0), 0);
	heard_refused(&h, &fr_source_bpf, &c, -EPERM, "belongs to the user 65534, not to root");
	assert_int_equal(fchown(fd, 0, 0), 0);
	assert_int_equal(ftruncate(fd, FR_BPF_FILE_MAX + 1), 0);
	heard_refused(&h, &fr_source_bpf, &c, -EFBIG, "is too large for a BPF object");
	assert_int_equal(ftruncate(fd, 40), 0);
	heard_refused(&h, &fr_source_bpf, &c, -ENOEXEC, "is truncated: it has 40 bytes");
	assert_int_equal(ftruncate(fd, 4000), 0);
	heard_refused(&h, &fr_source_bpf, &c, -ENOEXEC, "is not a BPF object that can be read");
	close(fd);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	heard_refused(&h, &fr_source_bpf, &c, -EINVAL, "is not a regular file");
	unlink(path);
	heard_deinit(&h);
}

/* Without the capabilities: which ones, in words. */
static void test_not_permitted(void **state)
{
	int status;
	pid_t pid;

	need_bpf();
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct fr_trigger_config c = program(OBJECT("getppid"));
		struct fr_source *s = NULL;
		struct fr_diag d = {0};
		struct heard h;

		heard_init(&h);
		if (setresuid(65534, 65534, 65534) < 0)
			_exit(2);
		if (heard_open(&fr_source_bpf, &h.env, &c, NULL, &s, &d) != -EPERM)
			_exit(3);
		_exit(strstr(d.what, "CAP_BPF and CAP_PERFMON is missing") ? 0 : 4);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* What the configuration gets wrong. */
static void test_bad_settings(void **state)
{
	static const struct {
		const char *set, *what;
	} bad[] = {
		{"sizes=1", "did you mean size?"},
		{"nothing_like_it=1", "it has: "},
		{"size", "does not name a global and its value"},
		{"=1", "does not name a global and its value"},
		{"size=", "is not a number for 'size', 32 bits"},
		{"size=1x", "is not a number"},
		{"size=-1", "does not fit into 'size', 32 bits"},
		{"size=4294967296", "does not fit"},
		{"tiny=128", "does not fit into 'tiny', signed 8 bits"},
		{"tiny=-129", "does not fit"},
		{"flag=2", "yes or no"},
		{"word=12345678", "takes 7 characters"},
		{"several=1", "neither a number nor a string"},
		{"flightrec_threshold=1", "Set= cannot set"},
	};
	struct fr_trigger_config c = program(OBJECT("getppid"));
	struct heard h;

	need_bpf();
	heard_init(&h);
	for (size_t i = 0; i < FR_ARRAY_SIZE(bad); i++) {
		char *set[] = {(char *)bad[i].set, NULL};

		c.set = set;
		heard_refused(&h, &fr_source_bpf, &c, -EINVAL, bad[i].what);
	}
	c.set = NULL;
	c.threshold = (char *)"much";
	heard_refused(&h, &fr_source_bpf, &c, -EINVAL, "Threshold=much");
	c.threshold = NULL;
	c.cgroup = (char *)"/no/such.slice";
	heard_refused(&h, &fr_source_bpf, &c, -ENOENT, "cannot find the control group /no/such.slice");
	c.cgroup = NULL;
	c.syscalls = (char *)"openat";
	heard_refused(&h, &fr_source_bpf, &c, -EINVAL, "Syscall= has no effect");
	c.syscalls = NULL;
	c.subject = (char *)OBJECT("twins");
	c.interval_ns = 1;
	heard_refused(&h, &fr_source_bpf, &c, -EINVAL, "Interval= has no effect");
	heard_deinit(&h);
}

/* What is assigned is what the program's memory has. */
static void test_assign(void **state)
{
	_cleanup_buf_ struct fr_buf b = {0};
	struct fr_bpf_object *o;
	struct fr_diag d = {0};
	int8_t tiny;
	int16_t shorter;
	int32_t number;
	int64_t huge;
	uint32_t colour;
	uint8_t flag;
	char word[8];

	assert_int_equal(fr_bpf_file_read(OBJECT("getppid"), &b, &d), 0);
	assert_int_equal(fr_bpf_object_open(b.data, b.len, "x", false, &o, &d), 0);
	assert_int_equal(fr_bpf_object_assign(o, "tiny=-128", &d), 0);
	assert_int_equal(fr_bpf_object_assign(o, "shorter=32767", &d), 0);
	assert_int_equal(fr_bpf_object_assign(o, "number=-0x80000000", &d), 0);
	assert_int_equal(fr_bpf_object_assign(o, "huge=-9223372036854775808", &d), 0);
	assert_int_equal(fr_bpf_object_assign(o, "colour=1", &d), 0);
	assert_int_equal(fr_bpf_object_assign(o, "flag=yes", &d), 0);
	assert_int_equal(fr_bpf_object_assign(o, "word=a=b c", &d), 0);
	assert_int_equal(fr_bpf_object_get(o, "tiny", &tiny, 1), 0);
	assert_int_equal(fr_bpf_object_get(o, "shorter", &shorter, 2), 0);
	assert_int_equal(fr_bpf_object_get(o, "number", &number, 4), 0);
	assert_int_equal(fr_bpf_object_get(o, "huge", &huge, 8), 0);
	assert_int_equal(fr_bpf_object_get(o, "colour", &colour, 4), 0);
	assert_int_equal(fr_bpf_object_get(o, "flag", &flag, 1), 0);
	assert_int_equal(fr_bpf_object_get(o, "word", word, 8), 0);
	assert_int_equal(fr_bpf_object_get(o, "word", word, 4), -EINVAL);
	assert_int_equal(tiny, -128);
	assert_int_equal(shorter, 32767);
	assert_int_equal(number, INT32_MIN);
	assert_true(huge == INT64_MIN);
	assert_int_equal(colour, 1);
	assert_int_equal(flag, 1);
	assert_string_equal(word, "a=b c");
	fr_bpf_object_free(o);
}

/* verify-config looks without arming, and as anybody. */
static void test_check(void **state)
{
	struct fr_trigger_config c = program(OBJECT("getppid"));
	struct fr_diag d = {0};

	assert_int_equal(fr_source_bpf.check(&c, &d), 0);
	c.subject = (char *)OBJECT("bad-tracepoint"); /* this machine is not asked */
	assert_int_equal(fr_source_bpf.check(&c, &d), 0);
	c.subject = (char *)OBJECT("bad-version");
	assert_int_equal(fr_source_bpf.check(&c, &d), -ENOEXEC);
	d.code = 0;
	c = heard_config(FR_TRIGGER_PROBE);
	c.subject = (char *)"no-such-probe";
	assert_int_equal(fr_source_bpf.check(&c, &d), -EINVAL);
	assert_non_null(strstr(d.what, "no-such-probe"));
}

static void test_verdict(void **state)
{
	static const char log[] = "libbpf: prog 'x': BPF program load failed: Permission denied\n"
				  "libbpf: prog 'x': -- BEGIN PROG LOAD LOG --\n"
				  "0: R1=ctx() R10=fp0\n"
				  "; int x(void *ctx) @ x.bpf.c:3\n"
				  "0: (79) r1 = *(u64 *)(r1 +0)\n"
				  "; return *p; @ x.bpf.c:5\n"
				  "1: (61) r0 = *(u32 *)(r1 +0)\n"
				  ";  @ x.bpf.c:0\n"
				  "R1 invalid mem access 'scalar'\n"
				  "processed 2 insns (limit 1000000) max_states_per_insn 0\n"
				  "-- END PROG LOAD LOG --\n"
				  "libbpf: prog 'x': failed to load: -13\n"
				  "libbpf: failed to load object 'flightrec'\n";
	struct fr_bpf_log_summary v;

	fr_bpf_log_summarize(log, &v);
	assert_string_equal(v.program, "x");
	assert_string_equal(v.reason, "R1 invalid mem access 'scalar'");
	assert_string_equal(v.source, "return *p; @ x.bpf.c:5");
	fr_bpf_log_summarize("libbpf: one\nlibbpf: map 'y': failed\n\n", &v);
	assert_string_equal(v.program, "");
	assert_string_equal(v.reason, "map 'y': failed");
	fr_bpf_log_summarize(NULL, &v);
	assert_string_equal(v.reason, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verdict),
		cmocka_unit_test(test_assign),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_probe),
		cmocka_unit_test(test_threshold),
		cmocka_unit_test(test_pid),
		cmocka_unit_test(test_twins),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_returns),
		cmocka_unit_test(test_replaced),
		cmocka_unit_test(test_example),
		cmocka_unit_test(test_cgroup),
		cmocka_unit_test(test_pid_namespace),
		cmocka_unit_test(test_bad_objects),
		cmocka_unit_test(test_damaged_objects),
		cmocka_unit_test(test_bad_files),
		cmocka_unit_test(test_not_permitted),
		cmocka_unit_test(test_bad_settings),
		cmocka_unit_test(test_storm),
		cmocka_unit_test(test_two_at_once),
		cmocka_unit_test(test_flood),
	};

	snprintf(unique, sizeof(unique), "frt%d", (int)getpid());
	have_tracefs = geteuid() == 0 && own_mounts();
	return cmocka_run_group_tests_name("trigger/bpf", tests, NULL, NULL);
}
