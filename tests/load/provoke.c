// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Provokes an anomaly that a trigger can see. Usage: frtest-provoke ANOMALY [ARGUMENT]
 *
 *     run-queue [MS]    wake while a real-time thread keeps the CPU for MS
 *     blocked [MS]      wait uninterruptibly, as the parent of a vfork()
 *     nanosleep [MS]    call nanosleep()
 *     softirq           send datagrams to itself over the loopback
 *     interrupt, disk   write to a file in the working directory without the page cache
 *     hung DIRECTORY    let a child wait for a FUSE file system that does not answer, until there is input
 *     oom, reclaim      use too much memory, or read too much of a file, in a cgroup of 32 MiB
 *     fault             map a file of the working directory, of which no page is in memory, and read it
 *     segv, abort, bus  let a child be killed by the signal with this name
 *     retransmit        in a network namespace, send on eight connections whose other ends drop all packets
 *     getppid [N]       call getppid() N times
 *     storm N           call getppid() N times, at even intervals: 16,667 a second, or a million a minute
 *     application NAME  call flightrec_trigger() of <flightrec/trigger.h>, and wait for input
 *     spin MS           run two processes on one CPU
 *     lockup OBJECT     set watchdog_thresh to 1, and run a BPF object that holds the CPU for 3.5 s
 *     exec              do nothing: the exec of this program is the anomaly
 *
 * Prints {"pid", "from_ns", "to_ns"}: the process that has the anomaly, and CLOCK_MONOTONIC before and after
 * the anomaly. If this machine cannot provoke the anomaly, prints the reason and ends with exit code 77.
 */

#include "anomaly.h"

#include <flightrec/trigger.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define MS 1000000ULL

/* The process that has the anomaly. */
static pid_t victim;

static uint64_t number_or(const char *arg, uint64_t otherwise)
{
	return arg ? fr_load_count(arg) : otherwise;
}

/* Fork a child that is killed when this process ends. */
static pid_t fork_child(void)
{
	const pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		err(EXIT_FAILURE, "fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
	}
	return pid;
}

/* --- scheduler and system calls --- */

static void run_queue(const char *arg)
{
	struct fr_anomaly_hog hog = {0, fr_load_now_ns() + 50 * MS, number_or(arg, 150) * MS};
	pthread_t t;

	fr_anomaly_be_realtime(0);
	if (pthread_create(&t, NULL, fr_anomaly_hog, &hog) != 0)
		errx(EXIT_FAILURE, "no thread");
	fr_load_sleep_until(hog.from_ns + 10 * MS);
	pthread_join(t, NULL);
}

static void blocked(const char *arg)
{
	fr_anomaly_block(fr_load_now_ns() + number_or(arg, 100) * MS);
}

static void sleep_by_nanosleep(const char *arg)
{
	const struct timespec t = {.tv_nsec = (long)(number_or(arg, 100) * MS)};

	syscall(SYS_nanosleep, &t, NULL);
}

static void call_getppid(const char *arg)
{
	for (uint64_t n = number_or(arg, 1); n; n--)
		syscall(SYS_getppid);
}

static void storm(const char *arg)
{
	const uint64_t n = number_or(arg, 1), begin = fr_load_now_ns();

	for (uint64_t i = 0; i < n; i++) {
		/* Wait by reading the clock, because a sleep cannot be as short as 60 µs. */
		while (fr_load_now_ns() < begin + i * 60000)
			;
		syscall(SYS_getppid);
	}
}

static void spin(const char *arg)
{
	const uint64_t until = fr_load_now_ns() + number_or(arg, 1000) * MS;
	pid_t pid;

	fr_load_pin(0);
	pid = fork_child();
	while (fr_load_now_ns() < until)
		;
	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
}

/* --- interrupts, disks and memory --- */

static void softirq(const char *arg)
{
	fr_anomaly_send_to_itself();
}

static void write_through(const char *arg)
{
	fr_anomaly_write_through();
}

static void fault(const char *arg)
{
	fr_anomaly_fault(fr_anomaly_open(0));
}

/* Let a child call RUN with a new cgroup. Returns the exit status of the child in the format of waitpid(). */
static int run_in_group(void (*run)(const char *group))
{
	char group[128];
	int status;

	if (!fr_anomaly_group_new(group, sizeof(group)))
		fr_anomaly_skip("no memory controller of cgroups, of version 1 or 2, is to be had here");
	victim = fork_child();
	if (victim == 0) {
		run(group);
		_exit(EXIT_SUCCESS);
	}
	if (waitpid(victim, &status, 0) != victim)
		err(EXIT_FAILURE, "waitpid");
	fr_anomaly_group_free(group);
	return status;
}

static void oom(const char *arg)
{
	const int status = run_in_group(fr_anomaly_exhaust);

	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		errx(EXIT_FAILURE, "the child was not killed: status %#x", status);
}

static void reclaim(const char *arg)
{
	const int status = run_in_group(fr_anomaly_reclaim);

	if (status != 0)
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE);
}

/* --- signals, network --- */

static void die(const char *how)
{
	int status;

	victim = fork_child();
	if (victim == 0) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
		fr_anomaly_die(how);
		_exit(EXIT_FAILURE);
	}
	if (waitpid(victim, &status, 0) != victim || !WIFSIGNALED(status))
		errx(EXIT_FAILURE, "the child did not die");
}

static void retransmit(const char *arg)
{
	fr_anomaly_retransmit(AF_INET, false);
}

/* --- hung task --- */

/* Makes a child hang, prints its pid, and waits for input. */
static void hang(const char *directory)
{
	int go[2], fuse;
	struct stat st;
	char byte;

	if (!directory || pipe(go) < 0)
		errx(2, "hung DIRECTORY");
	/* Fork before the mount, so that the child does not inherit the descriptor of the file system. If the
	   child had it, the file system would outlive this process. */
	victim = fork_child();
	if (victim == 0) {
		close(go[1]);
		if (read(go[0], &byte, 1) == 1)
			stat(directory, &st);
		_exit(0);
	}
	fuse = fr_anomaly_mount_mute(directory);
	if (fuse < 0)
		fr_anomaly_skip("no FUSE to make a task hang: %s", strerror(errno));
	if (write(go[1], "", 1) != 1 || !fr_anomaly_hang(fuse, victim))
		errx(EXIT_FAILURE, "no request came");
	printf("{\"pid\":%d}\n", (int)victim);
	fflush(stdout);
	(void)!read(STDIN_FILENO, &byte, 1);
	close(fuse); /* this ends all requests */
	waitpid(victim, NULL, 0);
	umount2(directory, MNT_DETACH);
}

/* --- soft lockup --- */

#define SYSCTL "/proc/sys/kernel"
#define THRESH SYSCTL "/watchdog_thresh"

static void set_thresh(const char *text)
{
	if (!fr_anomaly_put(SYSCTL, "watchdog_thresh", text))
		fr_anomaly_skip("no " THRESH ": %s", strerror(errno));
}

static void check_panic(void)
{
	FILE *f = fopen(SYSCTL "/softlockup_panic", "re");
	const int panic = f ? fgetc(f) : EOF;

	if (f)
		fclose(f);
	if (panic != '0')
		fr_anomaly_skip("%s", panic == EOF ? "this kernel does not look for soft lockups"
						   : "a soft lockup would make this kernel panic");
}

static void lockup(const char *path)
{
	struct bpf_object *o = path ? bpf_object__open_file(path, NULL) : NULL;
	char before[16] = "";
	FILE *f = fopen(THRESH, "re");
	struct bpf_link *link;
	struct bpf_map *map;
	const uint32_t tid = (uint32_t)gettid();

	check_panic();
	if (!o || !f || !fgets(before, sizeof(before), f))
		fr_anomaly_skip("no " THRESH ", or no object %s", path ? path : "");
	fclose(f);
	map = bpf_object__find_map_by_name(o, ".rodata");
	if (!map || bpf_map__set_initial_value(map, &tid, sizeof(tid)) != 0 || bpf_object__load(o) != 0)
		fr_anomaly_skip("cannot load %s: bpf_loop() came with Linux 5.17", path);
	set_thresh("1");
	link = bpf_program__attach(bpf_object__next_program(o, NULL));
	if (link)
		syscall(SYS_getppid);
	bpf_link__destroy(link);
	set_thresh(before);
	bpf_object__close(o);
}

/* --- all --- */

static void application(const char *name)
{
	char byte;

	flightrec_trigger(name, "slow answer", 312, 250);
	/* Wait for the end of the input, so that the recorder can read this process in /proc. */
	(void)!read(STDIN_FILENO, &byte, 1);
}

static void nothing(const char *arg)
{
}

static const struct {
	const char *name;
	void (*run)(const char *arg);
	const char *arg; /* if not NULL, is used instead of the argument of the command line */
} anomalies[] = {
	{"run-queue", run_queue, NULL},
	{"blocked", blocked, NULL},
	{"nanosleep", sleep_by_nanosleep, NULL},
	{"softirq", softirq, NULL},
	{"interrupt", write_through, NULL},
	{"disk", write_through, NULL},
	{"hung", hang, NULL},
	{"oom", oom, NULL},
	{"reclaim", reclaim, NULL},
	{"fault", fault, NULL},
	{"segv", die, "segv"},
	{"abort", die, "abort"},
	{"bus", die, "bus"},
	{"retransmit", retransmit, NULL},
	{"getppid", call_getppid, NULL},
	{"storm", storm, NULL},
	{"application", application, NULL},
	{"spin", spin, NULL},
	{"lockup", lockup, NULL},
	{"exec", nothing, NULL},
};

int main(int argc, char *argv[])
{
	uint64_t from_ns;

	victim = getpid();
	for (size_t i = 0; argc > 1 && i < sizeof(anomalies) / sizeof(anomalies[0]); i++) {
		if (strcmp(argv[1], anomalies[i].name) != 0)
			continue;
		from_ns = fr_load_now_ns();
		anomalies[i].run(anomalies[i].arg ? anomalies[i].arg : argv[2]);
		printf("{\"pid\":%d,\"from_ns\":%" PRIu64 ",\"to_ns\":%" PRIu64 "}\n", (int)victim, from_ns,
			fr_load_now_ns());
		return 0;
	}
	errx(2, "usage: frtest-provoke ANOMALY [ARGUMENT]; provoke.c lists them");
}
