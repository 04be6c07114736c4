// SPDX-License-Identifier: GPL-2.0-or-later
#include "anomaly.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/fuse.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define MIB (1u << 20)

void fr_anomaly_skip(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
	_exit(FR_ANOMALY_SKIP);
}

bool fr_anomaly_put(const char *directory, const char *name, const char *text)
{
	char path[512];
	bool written;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	if (fd >= 0)
		close(fd);
	return written;
}

void fr_anomaly_be_realtime(int cpu)
{
	const struct sched_param p = {.sched_priority = 1};

	fr_load_pin(cpu);
	if (sched_setscheduler(0, SCHED_FIFO, &p) < 0)
		fr_anomaly_skip("SCHED_FIFO is not permitted: %s", strerror(errno));
}

void *fr_anomaly_hog(void *arg)
{
	const struct fr_anomaly_hog *h = arg;
	uint64_t until_ns;

	fr_anomaly_be_realtime(h->cpu);
	fr_load_sleep_until(h->from_ns);
	until_ns = fr_load_now_ns() + h->ns;
	while (fr_load_now_ns() < until_ns)
		;
	return NULL;
}

/* Calls clone() directly, because sanitizers replace vfork() by fork(). */
void fr_anomaly_block(uint64_t until_ns)
{
	const pid_t pid = (pid_t)syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0) {
		fr_load_sleep_until(until_ns);
		_exit(0);
	}
	if (pid < 0)
		err(EXIT_FAILURE, "vfork");
}

void fr_anomaly_send_to_itself(void)
{
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(a);

	if (bind(fd, (void *)&a, length) < 0 || getsockname(fd, (void *)&a, &length) < 0)
		fr_anomaly_skip("no loopback: %s", strerror(errno));
	for (int i = 0; i < 500; i++)
		if (sendto(fd, "x", 1, 0, (void *)&a, length) != 1)
			err(EXIT_FAILURE, "sendto");
	close(fd);
}

int fr_anomaly_open(int flags)
{
	const int fd = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC | flags, 0600);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || major(st.st_dev) == 0)
		fr_anomaly_skip("the working directory is not on a disk that can do this");
	return fd;
}

void fr_anomaly_write_through(void)
{
	const int fd = fr_anomaly_open(O_DIRECT);
	void *block = NULL;

	if (posix_memalign(&block, 4096, 65536) != 0)
		errx(EXIT_FAILURE, "no memory");
	memset(block, 1, 65536);
	if (pwrite(fd, block, 65536, 0) != 65536 || fsync(fd) < 0)
		err(EXIT_FAILURE, "pwrite");
	free(block);
	close(fd);
}

void fr_anomaly_fault(int fd)
{
	static char block[MIB];
	volatile char *p;

	if (write(fd, block, MIB) != MIB || fsync(fd) < 0 ||
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) != 0)
		err(EXIT_FAILURE, "write");
	p = mmap(NULL, MIB, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED || madvise((void *)p, MIB, MADV_RANDOM) < 0)
		err(EXIT_FAILURE, "mmap");
	for (size_t i = 0; i < MIB; i += 65536)
		(void)p[i];
}

bool fr_anomaly_group_new(char *ret, size_t size)
{
	static const struct {
		const char *root, *limit, *swap;
	} versions[] = {{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.swappiness"},
		{"/sys/fs/cgroup", "memory.max", "memory.swap.max"}};

	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		snprintf(ret, size, "%s/frtest-anomaly-%d", versions[i].root, (int)getpid());
		if (mkdir(ret, 0700) < 0)
			continue;
		if (fr_anomaly_put(ret, versions[i].limit, "33554432")) {
			(void)fr_anomaly_put(ret, versions[i].swap, "0");
			return true;
		}
		fr_anomaly_group_free(ret);
	}
	return false;
}

void fr_anomaly_group_free(const char *group)
{
	/* Tries again, because a killed process needs some time to leave the group. */
	for (int i = 0; rmdir(group) < 0 && errno == EBUSY && i < 6000; i++)
		usleep(10000);
}

static void enter(const char *group)
{
	if (!fr_anomaly_put(group, "cgroup.procs", "0"))
		err(EXIT_FAILURE, "%s", group);
}

void fr_anomaly_exhaust(const char *group)
{
	char *p;

	enter(group);
	p = mmap(NULL, 256 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (size_t i = 0; p != MAP_FAILED && i < 256 * MIB; i += 4096)
		p[i] = 1;
}

/* Reads a hole of a file. The pages of a hole need memory like other pages, but no reads from the disk. */
void fr_anomaly_reclaim(const char *group)
{
	const int hole = fr_anomaly_open(0);
	static char block[65536];

	enter(group);
	if (ftruncate(hole, 128 * (off_t)MIB) < 0)
		err(EXIT_FAILURE, "ftruncate");
	for (off_t at = 0; at < 128 * (off_t)MIB; at += sizeof(block))
		if (pread(hole, block, sizeof(block), at) != sizeof(block))
			err(EXIT_FAILURE, "pread");
	close(hole);
}

void fr_anomaly_die(const char *how)
{
	const int fd = memfd_create("empty", MFD_CLOEXEC);

	if (!strcmp(how, "abort"))
		abort();
	(void)*(volatile char *)mmap(
		NULL, 4096, strcmp(how, "bus") ? PROT_NONE : PROT_READ, MAP_SHARED, fd, 0);
}

#define CONNECTIONS 8

static void loopback_up(void)
{
	struct ifreq ifr = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (ioctl(fd, SIOCSIFFLAGS, &ifr) < 0)
		err(EXIT_FAILURE, "lo");
	close(fd);
}

/* Drop all packets that arrive at the socket FD, so that none of them is acknowledged. */
static void drop_all(int fd)
{
	struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog program = {1, &drop};

	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0)
		err(EXIT_FAILURE, "SO_ATTACH_FILTER");
}

static int listen_or_connect(int family, bool listening)
{
	const struct sockaddr_in a4 = {
		.sin_family = AF_INET, .sin_port = htons(7007), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct sockaddr_in6 a6 = {
		.sin6_family = AF_INET6, .sin6_port = htons(7007), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	const struct sockaddr *a = family == AF_INET ? (const void *)&a4 : (const void *)&a6;
	const socklen_t len = family == AF_INET ? sizeof(a4) : sizeof(a6);
	const int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (listening ? bind(fd, a, len) < 0 || listen(fd, CONNECTIONS) < 0 : connect(fd, a, len) < 0)
		err(EXIT_FAILURE, "connection");
	return fd;
}

static unsigned retransmitted(int fd)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
		err(EXIT_FAILURE, "TCP_INFO");
	return info.tcpi_total_retrans;
}

/* Start a process that connects and then drops all packets that arrive. When it has connected, it writes a
   byte to READY. It ends when all writers of the pipe OVER have closed it. */
static void connect_without_answer(int family, int ready, const int over[2])
{
	const pid_t pid = fork();
	char byte;

	if (pid < 0)
		err(EXIT_FAILURE, "fork");
	if (pid)
		return;
	close(over[1]);
	drop_all(listen_or_connect(family, false));
	_exit(write(ready, "", 1) == 1 && read(over[0], &byte, 1) == 0 ? 0 : 1);
}

void fr_anomaly_retransmit(int family, bool accepted)
{
	int senders[CONNECTIONS], listener, ready[2], over[2];
	char byte;

	if (unshare(CLONE_NEWNET) < 0)
		fr_anomaly_skip("no network namespace: %s", strerror(errno));
	loopback_up();
	listener = listen_or_connect(family, true);
	if (pipe(ready) < 0 || pipe(over) < 0)
		err(EXIT_FAILURE, "pipe");
	for (int i = 0; i < CONNECTIONS; i++) {
		if (accepted) {
			connect_without_answer(family, ready[1], over);
			senders[i] = accept(listener, NULL, NULL);
			if (read(ready[0], &byte, 1) != 1)
				err(EXIT_FAILURE, "no connection");
		} else {
			senders[i] = listen_or_connect(family, false);
			drop_all(accept(listener, NULL, NULL));
		}
	}
	for (int i = 0; i < CONNECTIONS; i++)
		if (send(senders[i], "anybody?", 8, 0) != 8)
			err(EXIT_FAILURE, "send");
	for (int i = 0, ms = 0; i < CONNECTIONS; i += retransmitted(senders[i]) >= 2) {
		if (ms++ > 60000)
			errx(EXIT_FAILURE, "nothing is retransmitted");
		usleep(1000);
	}
	close(over[1]);
	while (wait(NULL) > 0)
		;
}

int fr_anomaly_mount_mute(const char *directory)
{
	struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = 4096};
	struct fuse_out_header out = {.len = sizeof(out) + sizeof(init)};
	const struct iovec iov[2] = {{&out, sizeof(out)}, {&init, sizeof(init)}};
	const int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	static uint8_t request[1 << 16];
	char options[64];

	if (fd < 0)
		return -1;
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	if (mount("frtest-mute", directory, "fuse", MS_NOSUID | MS_NODEV, options) == 0 &&
		read(fd, request, sizeof(request)) >= (ssize_t)sizeof(struct fuse_in_header)) {
		out.unique = ((struct fuse_in_header *)request)->unique;
		if (writev(fd, iov, 2) > 0)
			return fd;
	}
	close(fd);
	return -1;
}

bool fr_anomaly_hang(int fuse, pid_t victim)
{
	struct pollfd p = {.fd = fuse, .events = POLLIN};
	static uint8_t request[1 << 16];

	return poll(&p, 1, 60000) == 1 && read(fuse, request, sizeof(request)) > 0 &&
	       kill(victim, SIGKILL) == 0;
}
