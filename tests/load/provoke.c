// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Provokes one anomaly, which a trigger is armed for. Usage: frtest-provoke ANOMALY [ARGUMENT]
 *
 *     run-queue [MS]    wake while a real-time thread has the CPU for so long
 *     blocked [MS]      wait uninterruptibly, as the parent of a vfork()
 *     nanosleep [MS]    call nanosleep()
 *     softirq           send datagrams to itself over the loopback
 *     interrupt, disk   write past all caches, in the working directory
 *     hung DIRECTORY    start a child that asks a FUSE file system which does not answer, until a line comes
 *     oom, reclaim      use too much memory, or read too much of a file, in a cgroup of 32 MiB
 *     fault             map a file of the working directory, of which no page is in memory, and read it
 *     segv, abort, bus  die of this signal
 *     retransmit        send on eight connections whose other ends drop everything, in a network namespace
 *     getppid [N]       call getppid() N times
 *     storm N           call it N times, evenly, 16,667 times in a second: a million in a minute
 *     application NAME  call flightrec_trigger() of <flightrec/trigger.h>, and live until the input ends
 *     spin MS           run two processes on one CPU
 *     lockup OBJECT     set watchdog_thresh to 1, and run a BPF object that holds the CPU for 3.5 s
 *     exec              do nothing: the program runs
 *
 * Prints {"pid", "from_ns", "to_ns"}: the process that has the anomaly, and CLOCK_MONOTONIC before and after
 * it. Exit code 77, with a reason: this machine cannot do it.
 */

#include "load.h"

#include <flightrec/trigger.h>

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/fuse.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define EXIT_SKIP 77
#define MS 1000000ULL
#define MIB (1u << 20)

/* The process that has the anomaly. */
static pid_t victim;

__attribute__((noreturn, format(printf, 1, 2))) static void skip(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	exit(EXIT_SKIP);
}

static uint64_t number_or(const char *arg, uint64_t otherwise)
{
	return arg ? fr_load_count(arg) : otherwise;
}

/* Returns 0, or -1 with errno. */
static int write_file(const char *path, const char *text)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC);
	const int r = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;

	if (fd >= 0)
		close(fd);
	return r;
}

/* Fork a child that dies with this process. */
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

struct hog {
	uint64_t from_ns, ns;
};

static void *hog(void *arg)
{
	const struct sched_param p = {.sched_priority = 1};
	const struct hog *h = arg;
	uint64_t until_ns;

	if (sched_setscheduler(0, SCHED_FIFO, &p) < 0)
		skip("SCHED_FIFO is not permitted: %s", strerror(errno));
	fr_load_pin(0);
	fr_load_sleep_until(h->from_ns);
	until_ns = fr_load_now_ns() + h->ns;
	while (fr_load_now_ns() < until_ns)
		;
	return NULL;
}

static void run_queue(const char *arg)
{
	const uint64_t begin = fr_load_now_ns() + 50 * MS;
	struct hog h = {begin, number_or(arg, 150) * MS};
	pthread_t t;

	fr_load_pin(0);
	if (pthread_create(&t, NULL, hog, &h) != 0)
		errx(EXIT_FAILURE, "no thread");
	fr_load_sleep_until(begin + 10 * MS);
	pthread_join(t, NULL);
}

static void blocked(const char *arg)
{
	const uint64_t until = fr_load_now_ns() + number_or(arg, 100) * MS;
	const pid_t pid = vfork();

	if (pid == 0) {
		fr_load_sleep_until(until); /* NOLINT(clang-analyzer-unix.Vfork): it changes no memory */
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		err(EXIT_FAILURE, "vfork");
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
		/* A sleep cannot be as short as 60 µs. */
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

/* --- interrupts and disks --- */

static void send_to_itself(const char *arg)
{
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(a);

	if (bind(fd, (void *)&a, length) < 0 || getsockname(fd, (void *)&a, &length) < 0)
		skip("no loopback: %s", strerror(errno));
	for (int i = 0; i < 500; i++)
		if (sendto(fd, "x", 1, 0, (void *)&a, length) != 1)
			err(EXIT_FAILURE, "sendto");
	close(fd);
}

static void need_disk(int fd)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || major(st.st_dev) == 0)
		skip("the working directory is not on a disk that can do this");
}

static void write_through(const char *arg)
{
	const int fd = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC | O_DIRECT, 0600);
	void *block = NULL;

	need_disk(fd);
	if (posix_memalign(&block, 4096, 65536) != 0)
		errx(EXIT_FAILURE, "no memory");
	memset(block, 1, 65536);
	if (pwrite(fd, block, 65536, 0) != 65536 || fsync(fd) < 0)
		err(EXIT_FAILURE, "pwrite");
	free(block);
	close(fd);
}

static void fault(const char *arg)
{
	const int fd = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	static char block[MIB];
	volatile char *p;

	need_disk(fd);
	if (write(fd, block, MIB) != MIB || fsync(fd) < 0 ||
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
		err(EXIT_FAILURE, "write");
	p = mmap(NULL, MIB, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED || madvise((void *)p, MIB, MADV_RANDOM) < 0)
		err(EXIT_FAILURE, "mmap");
	for (size_t i = 0; i < MIB; i += 65536)
		(void)p[i];
	close(fd);
}

/* --- memory --- */

#define LIMIT "33554432"

static char group[128];

static int group_write(const char *file, const char *text)
{
	char path[192];

	snprintf(path, sizeof(path), "%s/%s", group, file);
	return write_file(path, text);
}

static void group_free(void)
{
	/* The kernel needs a moment to remove a process that died there. */
	for (int i = 0; rmdir(group) < 0 && errno == EBUSY && i < 6000; i++)
		usleep(10000);
}

/* Make a cgroup with so much memory and without swap. Returns false if it cannot be made below DIRECTORY. */
static bool group_new_in(
	const char *directory, const char *limit_file, const char *limit, const char *swap_file)
{
	snprintf(group, sizeof(group), "%s/frtest-provoke-%d", directory, (int)getpid());
	if (mkdir(group, 0700) < 0)
		return false;
	if (group_write(limit_file, limit) == 0) {
		(void)group_write(swap_file, "0");
		return true;
	}
	group_free();
	return false;
}

/* Let a child in such a cgroup do RUN. Returns its status. */
static int run_in_group(void (*run)(void))
{
	int status;

	if (!group_new_in("/sys/fs/cgroup/memory", "memory.limit_in_bytes", LIMIT, "memory.swappiness") &&
		!group_new_in("/sys/fs/cgroup", "memory.max", LIMIT, "memory.swap.max"))
		skip("no memory controller of cgroups, of version 1 or 2, is to be had here");
	victim = fork_child();
	if (victim == 0) {
		if (group_write("cgroup.procs", "0") < 0)
			_exit(EXIT_FAILURE);
		run();
		_exit(EXIT_SUCCESS);
	}
	if (waitpid(victim, &status, 0) != victim)
		err(EXIT_FAILURE, "waitpid");
	group_free();
	return status;
}

static void exhaust(void)
{
	char *p = mmap(NULL, 256 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (size_t i = 0; p != MAP_FAILED && i < 256 * MIB; i += 4096)
		p[i] = 1;
}

static void oom(const char *arg)
{
	const int status = run_in_group(exhaust);

	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		errx(EXIT_FAILURE, "the child was not killed: status %#x", status);
}

static int hole = -1;

static void read_hole(void)
{
	static char block[65536];

	for (off_t at = 0; at < 128 * (off_t)MIB; at += sizeof(block))
		if (pread(hole, block, sizeof(block), at) != sizeof(block))
			_exit(EXIT_FAILURE);
}

/* The pages of a hole are like other pages, and no disk is needed to read them. */
static void reclaim(const char *arg)
{
	hole = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	need_disk(hole);
	if (ftruncate(hole, 128 * (off_t)MIB) < 0 || run_in_group(read_hole) != 0)
		errx(EXIT_FAILURE, "cannot read past the limit of a cgroup");
	close(hole);
}

/* --- signals --- */

static void die(const char *how)
{
	const int fd = memfd_create("empty", MFD_CLOEXEC);
	int status;

	victim = fork_child();
	if (victim == 0) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
		if (!strcmp(how, "abort"))
			abort();
		(void)*(volatile char *)mmap(
			NULL, 4096, strcmp(how, "bus") ? PROT_NONE : PROT_READ, MAP_SHARED, fd, 0);
		_exit(EXIT_FAILURE);
	}
	if (waitpid(victim, &status, 0) != victim || !WIFSIGNALED(status))
		errx(EXIT_FAILURE, "the child did not die");
}

/* --- network --- */

#define CONNECTIONS 8

static void loopback_up(void)
{
	struct ifreq ifr = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (ioctl(fd, SIOCSIFFLAGS, &ifr) < 0)
		err(EXIT_FAILURE, "lo");
	close(fd);
}

/* Drop everything that arrives at FD, so that it is never acknowledged. */
static void drop_all_input(int fd)
{
	struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog program = {1, &drop};

	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0)
		err(EXIT_FAILURE, "SO_ATTACH_FILTER");
}

static unsigned retransmitted(int fd)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
		err(EXIT_FAILURE, "TCP_INFO");
	return info.tcpi_total_retrans;
}

static void retransmit(const char *arg)
{
	const struct sockaddr_in a = {
		.sin_family = AF_INET, .sin_port = htons(7007), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener, clients[CONNECTIONS];

	if (unshare(CLONE_NEWNET) < 0)
		skip("no network namespace: %s", strerror(errno));
	loopback_up();
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(listener, (const void *)&a, sizeof(a)) < 0 || listen(listener, CONNECTIONS) < 0)
		err(EXIT_FAILURE, "listen");
	for (int i = 0; i < CONNECTIONS; i++) {
		clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (connect(clients[i], (const void *)&a, sizeof(a)) < 0)
			err(EXIT_FAILURE, "connect");
		drop_all_input(accept(listener, NULL, NULL));
	}
	for (int i = 0; i < CONNECTIONS; i++)
		if (send(clients[i], "anybody?", 8, 0) != 8)
			err(EXIT_FAILURE, "send");
	for (int i = 0; i < CONNECTIONS; i += retransmitted(clients[i]) >= 2)
		usleep(1000);
}

/* --- hung task --- */

/* Mount a FUSE file system on DIRECTORY that answers only the first request. Returns its fd. */
static int mount_mute(const char *directory)
{
	struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = 4096};
	struct fuse_out_header out = {.len = sizeof(out) + sizeof(init)};
	struct iovec iov[2] = {{&out, sizeof(out)}, {&init, sizeof(init)}};
	const int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	static uint8_t request[1 << 16];
	char options[64];

	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	if (fd < 0 || mount("frtest-provoke", directory, "fuse", MS_NOSUID | MS_NODEV, options) < 0)
		skip("no FUSE to make a task hang: %s", strerror(errno));
	if (read(fd, request, sizeof(request)) < (ssize_t)sizeof(struct fuse_in_header))
		err(EXIT_FAILURE, "fuse");
	out.unique = ((struct fuse_in_header *)request)->unique;
	if (writev(fd, iov, 2) < 0)
		err(EXIT_FAILURE, "fuse");
	return fd;
}

/* A request that the file system has read cannot be taken back. So a process that is killed waits
   uninterruptibly for its answer. Prints the process that hangs, and waits for a line. */
static void hang(const char *directory)
{
	static uint8_t request[1 << 16];
	struct pollfd p = {.events = POLLIN};
	int go[2];
	struct stat st;
	char byte;

	if (!directory || pipe(go) < 0)
		errx(2, "hung DIRECTORY");
	/* Fork before the mount: the child must not have the fd, or the file system would outlive this
	   process. */
	victim = fork_child();
	if (victim == 0) {
		close(go[1]);
		if (read(go[0], &byte, 1) == 1)
			stat(directory, &st);
		_exit(0);
	}
	p.fd = mount_mute(directory);
	if (write(go[1], "", 1) != 1 || poll(&p, 1, 60000) != 1 || read(p.fd, request, sizeof(request)) < 0)
		errx(EXIT_FAILURE, "no request came");
	kill(victim, SIGKILL);
	printf("{\"pid\":%d}\n", (int)victim);
	fflush(stdout);
	(void)!read(STDIN_FILENO, &byte, 1);
	close(p.fd); /* this ends all requests */
	waitpid(victim, NULL, 0);
	umount2(directory, MNT_DETACH);
}

/* --- soft lockup --- */

#define THRESH "/proc/sys/kernel/watchdog_thresh"
#define PANIC "/proc/sys/kernel/softlockup_panic"

static void set_thresh(const char *text)
{
	if (write_file(THRESH, text) < 0)
		skip("no " THRESH ": %s", strerror(errno));
}

static void check_panic(void)
{
	FILE *f = fopen(PANIC, "re");
	const int panic = f ? fgetc(f) : EOF;

	if (f)
		fclose(f);
	if (panic != '0')
		skip("%s", panic == EOF ? "this kernel does not look for soft lockups"
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
		skip("no " THRESH ", or no object %s", path ? path : "");
	fclose(f);
	map = bpf_object__find_map_by_name(o, ".rodata");
	if (!map || bpf_map__set_initial_value(map, &tid, sizeof(tid)) != 0 || bpf_object__load(o) != 0)
		skip("cannot load %s: bpf_loop() came with Linux 5.17", path);
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
	/* The recorder can read this process in /proc until the input ends. */
	(void)!read(STDIN_FILENO, &byte, 1);
}

static void nothing(const char *arg)
{
}

static const struct {
	const char *name;
	void (*run)(const char *arg);
	const char *arg; /* instead of the command line's */
} anomalies[] = {
	{"run-queue", run_queue, NULL},
	{"blocked", blocked, NULL},
	{"nanosleep", sleep_by_nanosleep, NULL},
	{"softirq", send_to_itself, NULL},
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
