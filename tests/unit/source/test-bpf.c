// SPDX-License-Identifier: GPL-2.0-or-later

/* Tests of BPF objects on the running kernel: a built-in probe, objects of users, and a storm of
   anomalies. */

#include "bpf_test.h"
#include "base/file.h"
#include "source/bpf_object.h"

#include <limits.h>
#include <linux/perf_event.h>
#include <linux/types.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include <flightrec/trigger.bpf.h>

static bool has_tracefs;

/* The name of the processes of this test. Other processes of the machine make the same system calls. */
static char unique[16];

static int set_up(void **state)
{
	snprintf(unique, sizeof(unique), "frt%d", (int)getpid());
	has_tracefs = geteuid() == 0 && mount_tracefs();
	return 0;
}

GROUP_FIXTURE(set_up, NULL)

static void need_tracefs(void)
{
	if (!has_tracefs)
		unit_skip("tracefs cannot be mounted");
}

static void call_getppid(void *times)
{
	for (unsigned i = 0; i < *(unsigned *)times; i++)
		syscall(SYS_getppid);
}

/* Lets a child with NAME call getppid() TIMES times, and waits for its end. Returns its pid. */
static pid_t call(const char *name, unsigned times)
{
	struct child c = child_new(name, call_getppid, &times);

	end_well(&c);
	return c.pid;
}

TEST(threshold_and_globals)
{
	char set[] = "size=41\0word=largest", hexadecimal[] = "size=0x2a\0word=largest";
	struct fr_cause own = {.pid = getpid()};
	struct fr_source_stats st;
	_cleanup_heard_ struct heard h = {0};
	uint64_t before;
	pid_t pid;

	need_bpf();
	init_program(&h, OBJECT("getppid"));
	h.config.threshold = (char *)"42";
	h.config.set = set;
	h.config.set_len = sizeof(set);
	heard_arm(&h);
	call("below", 10);
	heard_run(&h, 50, 0);
	st = heard_stats(&h);
	assert_int_equal(h.n, 0);
	assert_int_equal(st.fired, 0);
	assert_int_equal(st.last, 41);
	assert_int_equal(st.threshold, 42);
	assert_int_equal(st.unit, FR_CAUSE_COUNT);
	heard_disarm(&h);

	h.config.set = hexadecimal;
	h.config.set_len = sizeof(hexadecimal);
	h.config.comm = unique;
	heard_arm(&h);
	/* Calls of the recorder's own process are not anomalies. */
	prctl(PR_SET_NAME, unique);
	for (int i = 0; i < 5; i++)
		syscall(SYS_getppid);
	prctl(PR_SET_NAME, "test-bpf");
	heard_run(&h, 50, 0);
	assert_int_equal(h.n, 0);
	fr_cause_fill_from_proc(&own);
	before = fr_monotonic_ns();
	pid = call(unique, 3);
	heard_wait(&h, 3);
	assert_int_equal(h.n, 3);
	assert_int_equal(h.last.pid, pid);
	assert_int_equal(h.last.value, 42);
	assert_int_equal(h.last.threshold, 42);
	assert_int_equal(h.last.unit, FR_CAUSE_COUNT);
	assert_string_equal(h.last.comm, unique);
	assert_string_equal(h.last.reason, "largest");
	assert_string_equal(h.last.source, "bpf");
	assert_ptr_equal(h.trigger, &h);
	assert_int_equal(h.last.tid, pid);
	assert_true(h.last.time_ns > before);
	assert_true(h.last.cpu >= 0);
	if (own.cgroup[0]) /* it is only known if cgroup2 is mounted */
		assert_string_equal(h.last.cgroup, own.cgroup);
	st = heard_stats(&h);
	assert_int_equal(st.fired, 3);
	assert_int_equal(st.cooled + st.lost + st.bad, 0);
	assert_true(st.last_ns >= h.last.time_ns);
	heard_disarm(&h);
	call(unique, 3);
	heard_run(&h, 20, 0);
	assert_int_equal(h.n, 3);
}

/* Only one of the variants NAME_btf and NAME_classic is loaded. If the kernel lacks the tracepoint of a
   variant, neither variant is loaded. */
TEST(one_of_two_variants_is_loaded)
{
	_cleanup_heard_ struct heard h = {0};

	need_bpf();
	init_program(&h, OBJECT("twins"));
	h.config.comm = unique;
	for (unsigned i = 0; i < 2; i++) {
		pid_t pid;

		h.env.bpf_classic = i == 1;
		heard_arm(&h);
		pid = call(unique, 1);
		heard_wait(&h, i + 1);
		heard_run(&h, 20, 0);
		assert_int_equal(h.n, i + 1);
		assert_string_equal(h.last.reason, i ? "classic" : "by BTF");
		assert_string_equal(h.last.detail, i ? "" : "the detail");
		assert_string_equal(h.last.comm, unique);
		assert_int_equal(h.last.pid, pid);
		assert_int_equal(h.last.tid, pid);
		if (i == 0)
			assert_int_equal(h.last.unit, FR_CAUSE_BYTES);
		heard_disarm(&h);
	}
}

TEST(malformed_events_are_counted_or_repaired)
{
	unsigned times = 1;
	struct child c;
	_cleanup_heard_ struct heard h = {0};

	need_bpf();
	c = child_new("garbage", call_getppid, &times);
	init_program(&h, OBJECT("garbage"));
	h.config.pid = c.pid;
	heard_arm(&h);
	call("other", 10); /* these calls do not count: Pid= selects the child */
	end_well(&c);
	heard_wait(&h, 1);
	heard_run(&h, 50, 0);
	assert_int_equal(h.n, 1);
	assert_int_equal(heard_stats(&h).bad, 3);
	assert_int_equal(strlen(h.last.comm), FLIGHTREC_COMM_SIZE - 1);
	assert_int_equal(strspn(h.last.reason, "?"), FLIGHTREC_REASON_SIZE - 1);
	assert_int_equal(h.last.unit, FR_CAUSE_NONE);
	assert_int_equal(h.last.cpu, -1);
}

/* Opens a perf counter for the tracepoint NAME in the process PID. Returns its file descriptor, or -1 if the
 * counter cannot be opened. */
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

/* A program on a classic tracepoint that returns 0 hides no event from others. (Its return value is changed
   when it is loaded.) The results of its subprograms do not change. */
TEST(program_hides_no_event_from_others)
{
	unsigned times = 100;
	uint64_t counted = 0;
	struct child c;
	_cleanup_heard_ struct heard h = {0};
	int fd;

	need_bpf();
	need_tracefs();
	c = child_new("returns", call_getppid, &times);
	fd = count_tracepoint("syscalls/sys_enter_getppid", c.pid);
	if (fd < 0) {
		child_end(&c, false);
		unit_skip("perf cannot count a system call's tracepoint");
	}
	init_program(&h, OBJECT("returns"));
	h.config.pid = c.pid;
	heard_arm(&h);
	end_well(&c);
	assert_int_equal(heard_stats(&h).fired, 50);
	heard_disarm(&h);
	assert_int_equal(read(fd, &counted, sizeof(counted)), sizeof(counted));
	close(fd);
	assert_int_equal(counted, 100);
}

TEST(replaced_file_is_stale_and_missing_one_is_not)
{
	_cleanup_heard_ struct heard h = {0};

	need_bpf();
	init_program(&h, "");
	heard_check_stale(&h, OBJECT("getppid"), "");
	h.config.kind = FR_TRIGGER_PROBE;
	h.config.subject = (char *)"exec";
	heard_arm(&h);
	assert_false(fr_source_bpf.is_stale(h.source));
}

/* Opens a file quickly, and then a FIFO for reading, which waits for a writer. */
static void open_slowly(void *fifo)
{
	close(open("/dev/null", O_RDONLY));
	_exit(open(fifo, O_RDONLY) < 0);
}

/* The example of flightrec(7) reports a file whose open takes long, and no other file. */
TEST(documented_example)
{
	char set[] = "only_reading=yes", path[] = "/tmp/flightrec-test-fifo.XXXXXX";
	uint64_t begin_ns, took_ns;
	struct child c;
	_cleanup_heard_ struct heard h = {0};
	int fd;

	need_bpf();
	need_tracefs();
	init_program(&h, OBJECT("slow-open"));
	h.config.threshold = (char *)"50ms";
	h.config.comm = unique;
	h.config.set = set;
	h.config.set_len = sizeof(set);
	heard_arm(&h);
	assert_true(mkdtemp(path));
	rmdir(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	c = child_new(unique, open_slowly, path);
	begin_ns = fr_monotonic_ns();
	assert_int_equal(write(c.go, "", 1), 1);
	usleep(20 * 1000);
	await_sleep(c.pid);
	usleep(200 * 1000);
	fd = open(path, O_WRONLY);
	child_end(&c, false);
	assert_int_equal(c.status, 0);
	took_ns = fr_monotonic_ns() - begin_ns;
	close(fd);
	unlink(path);
	heard_wait(&h, 1);
	heard_run(&h, 50, 0);
	assert_int_equal(h.n, 1);
	assert_int_equal(h.last.pid, c.pid);
	assert_string_equal(h.last.comm, unique);
	assert_string_equal(h.last.reason, "slow open");
	assert_int_equal(h.last.threshold, 50 * MS);
	assert_in_range(h.last.value, 200 * MS, took_ns);
	assert_int_equal(h.last.unit, FR_CAUSE_NS);
}

TEST(cgroup_includes_those_below_it)
{
	char parent[128], below[160];
	unsigned times = 1;
	const char *name;
	struct child c;
	_cleanup_heard_ struct heard h = {0};
	bool moved;

	need_bpf();
	name = make_cgroup(parent, sizeof(parent));
	snprintf(below, sizeof(below), "%s/below", parent);
	assert_int_equal(mkdir(below, 0755), 0);
	init_program(&h, OBJECT("getppid"));
	h.config.cgroup = (char *)name;
	heard_arm(&h);
	c = child_new("below", call_getppid, &times);
	moved = move_to_cgroup(below, c.pid);
	call("other", 3);
	end_well(&c);
	heard_run(&h, HEARD_LIMIT_MS, 1);
	heard_run(&h, 50, 0);
	heard_disarm(&h);
	rmdir(below);
	rmdir(parent);
	assert_true(moved);
	assert_int_equal(h.n, 1);
	assert_int_equal(h.last.pid, c.pid);
	assert_memory_equal(h.last.cgroup, name, strlen(name));
	assert_string_equal(h.last.cgroup + strlen(name), "/below");
}

/* Runs as the first process of a pid namespace. Returns what is wrong, or NULL. */
static const char *run_in_namespace(struct child *outsider)
{
	unsigned times = 1;
	struct child insider;
	struct fr_diag d = {0};
	_cleanup_heard_ struct heard h = {0};
	struct stat st;
	pid_t pid;

	init_program(&h, OBJECT("getppid"));
	if (stat("/proc/self/ns/pid", &st) < 0)
		return "no namespace";
	h.env.self = getpid(); /* the pid in this namespace, 1 */
	h.env.pidns = (uint32_t)st.st_ino;
	h.config.comm = unique;
	prctl(PR_SET_NAME, unique);
	if (heard_open(&h, &h.config, &h, &h.source, &d) < 0)
		return d.what[0] ? "cannot be armed" : "cannot be armed, without a message";
	syscall(SYS_getppid); /* a call of the recorder itself is not an anomaly */
	pid = call(unique, 1);
	heard_run(&h, HEARD_LIMIT_MS, 1);
	if (h.n != 1 || h.last.pid != pid || h.last.tid != pid || pid > 100)
		return "a process of the namespace does not have its number there";
	if (write(outsider->go, "", 1) != 1)
		return "the outsider has gone";
	heard_run(&h, HEARD_LIMIT_MS, 2);
	if (h.n != 2 || h.last.pid != 0 || h.last.tid != 0)
		return "a process outside of the namespace has a number";
	heard_disarm(&h);

	insider = child_new(unique, call_getppid, &times);
	h.config.pid = insider.pid;
	if (heard_open(&h, &h.config, &h, &h.source, &d) < 0)
		return "Pid= cannot be armed";
	call(unique, 1);
	child_end(&insider, true);
	heard_run(&h, HEARD_LIMIT_MS, 3);
	heard_run(&h, 50, 0);
	if (h.n != 3 || h.last.pid != insider.pid)
		return "Pid= is not a number of the namespace";
	heard_disarm(&h);

	/* Without BTF, the pid in the namespace is unknown. The cause then has 0, which is better than a
	 * wrong pid. */
	h.env.bpf_classic = true;
	if (heard_open(&h, &h.config, &h, &h.source, &d) != -EOPNOTSUPP)
		return "Pid= is accepted without BTF";
	h.config.pid = 0;
	d.code = 0;
	if (heard_open(&h, &h.config, &h, &h.source, &d) < 0)
		return "cannot be armed without BTF";
	call(unique, 1);
	heard_run(&h, HEARD_LIMIT_MS, 4);
	if (h.n != 4 || h.last.pid != 0 || h.last.tid != 0)
		return "a number is reported without BTF";
	return NULL;
}

TEST(pid_namespace)
{
	unsigned times = 1;
	struct child outsider;
	int status;
	pid_t pid;

	need_bpf();
	outsider = child_new(unique, call_getppid, &times);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		pid_t first = unshare(CLONE_NEWPID | CLONE_NEWNS) < 0 ? -1 : fork();

		if (first < 0)
			_exit(77);
		if (first == 0) {
			const char *wrong;

			/* /proc must be that of the new namespace, because the recorder uses /proc/self. */
			if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
				mount("proc", "/proc", "proc", 0, NULL) < 0)
				_exit(77);
			wrong = run_in_namespace(&outsider);
			if (wrong)
				fprintf(stderr, "in a pid namespace: %s\n", wrong);
			_exit(wrong != NULL);
		}
		waitpid(first, &status, 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	kill(outsider.pid, SIGKILL);
	child_end(&outsider, false);
	if (status == 77 << 8)
		unit_skip("no pid namespace can be made");
	assert_int_equal(status, 0);
}

/* Lets N children make TIMES anomalies each, at the same time. Checks that each anomaly is in exactly one
   count. If COOLDOWN_NS is 0, no anomaly is counted as cooled. */
static void check_storm(int n, unsigned times, uint64_t cooldown_ns)
{
	uint64_t begin_ns, took_ns, cpu_ns;
	struct fr_source_stats st;
	_cleanup_heard_ struct heard h = {0};
	struct child c[2];
	int running = n;

	need_bpf();
	init_program(&h, OBJECT("getppid"));
	h.config.comm = unique;
	h.config.cooldown_ns = cooldown_ns;
	for (int i = 0; i < n; i++)
		c[i] = child_new(unique, call_getppid, &times);
	heard_arm(&h);
	cpu_ns = fr_now_ns(CLOCK_PROCESS_CPUTIME_ID);
	begin_ns = fr_monotonic_ns();
	for (int i = 0; i < n; i++)
		assert_int_equal(write(c[i].go, "", 1), 1);
	while (running > 0) {
		int r = waitpid(-1, NULL, WNOHANG);

		assert_true(r >= 0);
		running -= r > 0;
		heard_run(&h, 50, 0);
	}
	took_ns = fr_monotonic_ns() - begin_ns;
	cpu_ns = fr_now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
	st = heard_stats(&h);
	for (int i = 0; i < n; i++)
		close(c[i].go);
	print_message("cool-down %llu ms: %.2f s, %u reported, %llu cooled, %llu lost, %.1f ms of CPU\n",
		(unsigned long long)(cooldown_ns / MS), (double)took_ns / 1e9, h.n,
		(unsigned long long)st.cooled, (unsigned long long)st.lost, (double)cpu_ns / 1e6);
	assert_int_equal(st.fired, (uint64_t)n * times);
	assert_int_equal(st.cooled + st.lost + h.n, st.fired);
	if (!cooldown_ns) {
		assert_int_equal(st.cooled, 0);
		return;
	}
	assert_in_range(h.n, 1, took_ns / cooldown_ns + 1);
	/* At most 5 % of a CPU, and 20 ms for the event loop itself. */
	assert_true(cpu_ns < took_ns / 20 + 20 * MS);
}

TEST(storms_are_counted)
{
	check_storm(1, 1000000, 100 * MS);
	check_storm(2, 200000, 5 * MS);
	check_storm(1, 1000000, 0);
}
