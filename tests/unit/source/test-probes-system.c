// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The probes of block I/O, memory, signals and the network, each provoked for real, by a child: what is heard
 * of that child, and how much. The machine may do what it likes meanwhile. All with the kernel's BTF and,
 * where tracefs is there, without.
 *
 * Not provoked is reclaim for the whole machine ("direct reclaim"), which would take all of its memory;
 * reclaim for a cgroup runs the same code.
 */
#include "both.h"
#include "heard.h"
#include "base/cleanup.h"

#include <arpa/inet.h>
#include <bpf/btf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#define MIB (1u << 20)
#define KEPT 4096

/* A probe that is armed, and what it told. */
struct scene {
	struct heard h;
	struct fr_trigger_config config;
	struct fr_source *source;
	struct fr_cause *causes;
	size_t n;
};

static void keep(void *ctx, void *trigger, const struct fr_cause *cause)
{
	struct scene *s = ctx;

	if (s->n < KEPT)
		s->causes[s->n++] = *cause;
}

/* Why a probe cannot be armed here; NULL: it can. */
static const char *arm(struct scene *s, const char *probe, const char *threshold, pid_t pid, bool classic)
{
	static char why[sizeof(((struct fr_diag *)0)->what)];
	struct fr_diag d = {0};
	int r;

	*s = (struct scene){.config = heard_config(FR_TRIGGER_PROBE)};
	heard_init(&s->h);
	s->h.env.fire = keep;
	s->h.env.ctx = s;
	s->h.env.bpf_classic = classic;
	s->causes = calloc(KEPT, sizeof(*s->causes));
	assert_non_null(s->causes);
	s->config.subject = (char *)probe;
	s->config.threshold = (char *)threshold;
	s->config.pid = pid;
	s->config.cooldown_ns = 0;
	r = heard_open(&fr_source_bpf, &s->h.env, &s->config, NULL, &s->source, &d);
	if (r == 0)
		return NULL;
	if (r != -EOPNOTSUPP && r != -EPERM)
		fail_msg("%s: %s", probe, d.what);
	snprintf(why, sizeof(why), "%s", d.what);
	return why;
}

static void disarm(struct scene *s)
{
	if (s->source)
		fr_source_close(s->source);
	free(s->causes);
	heard_deinit(&s->h);
}

/* How many causes are of PID, with this REASON and with DETAIL in theirs; the last into *RET. */
static unsigned count(
	const struct scene *s, pid_t pid, const char *reason, const char *detail, struct fr_cause *ret)
{
	unsigned n = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct fr_cause *c = &s->causes[i];

		if (c->pid != pid || strcmp(c->reason, reason) != 0 || !strstr(c->detail, detail))
			continue;
		*ret = *c;
		n++;
	}
	return n;
}

/* A child that waits until it is let go. */
struct child {
	pid_t pid;
	int go;
	uint64_t ran_ns; /* from let_go() to its end */
	int status;
};

static void child_run(int fd, void (*run)(void *ctx), void *ctx)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGSYS};
	char byte = 0;

	/* cmocka and sanitizers handle them. */
	for (size_t i = 0; i < FR_ARRAY_SIZE(signals); i++)
		signal(signals[i], SIG_DFL);
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	if (write(fd, &byte, 1) == 1 && read(fd, &byte, 1) == 1)
		run(ctx);
	_exit(0);
}

static struct child child_new(void (*run)(void *ctx), void *ctx)
{
	struct child c = {0};
	int fds[2];
	char ready;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	c.pid = fork();
	assert_true(c.pid >= 0);
	if (c.pid == 0) {
		close(fds[1]);
		child_run(fds[0], run, ctx);
	}
	close(fds[0]);
	c.go = fds[1];
	assert_int_equal(read(c.go, &ready, 1), 1);
	await_sleep(c.pid);
	return c;
}

static void child_end(struct child *c, bool let_go)
{
	uint64_t began_ns = fr_monotonic_ns();

	if (let_go)
		assert_int_equal(write(c->go, "", 1), 1);
	close(c->go);
	while (waitpid(c->pid, &c->status, 0) < 0)
		assert_int_equal(errno, EINTR);
	c->ran_ns = fr_monotonic_ns() - began_ns;
}

/* PROBE is armed for child C alone, C does its thing, and what came is heard. False: it cannot be armed. */
static bool play(struct scene *s, const char *probe, const char *threshold, struct child *c, bool classic)
{
	const char *why = arm(s, probe, threshold, c->pid, classic);

	child_end(c, !why);
	if (why) {
		print_message("%s%s: %s\n", probe, classic ? " without BTF" : "", why);
		disarm(s);
		return false;
	}
	heard_run(&s->h, 100, 0);
	return true;
}

/* Of one anomaly of C in time. */
static void check_duration(const struct fr_cause *cause, const struct child *c, uint64_t threshold_ns)
{
	assert_int_equal(cause->unit, FR_CAUSE_NS);
	assert_int_equal(cause->threshold, threshold_ns);
	assert_true(cause->value >= threshold_ns);
	assert_true(cause->value <= c->ran_ns);
	assert_int_equal(cause->tid, c->pid);
}

/* --- block I/O ---------------------------------------------------------------------------------------------
 */

static void write_through(void *ctx)
{
	int fd = *(int *)ctx;
	void *block = NULL;

	if (posix_memalign(&block, 4096, 65536) != 0)
		_exit(1);
	memset(block, 1, 65536);
	if (pwrite(fd, block, 65536, 0) != 65536 || fsync(fd) < 0)
		_exit(1);
}

/* A file without a name on a disk, or -1 with a word. */
static int file_on_disk(int flags)
{
	int fd = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC | flags, 0600);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || major(st.st_dev) == 0) {
		print_message("the working directory is on no disk that can do this: %m\n");
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

/* On a busy disk a write may be merged with another process's. Without BTF the subject is who issues the
   request, which may be a kworker. So one of so many writes is to be seen as what it is. */
#define WRITES 50

static bool block_io(bool classic)
{
	_cleanup_close_ int fd = file_on_disk(O_DIRECT);
	const char *detail = classic ? " 65536B" : " write 64K";
	struct fr_source_stats stats;
	struct fr_cause cause = {0};
	unsigned n = 0, left = WRITES;
	struct scene s;
	struct child c;

	if (fd < 0)
		return false;
	while (n == 0 && left-- > 0) {
		c = child_new(write_through, &fd);
		if (!play(&s, "block-io-latency", "1us", &c, classic))
			return false;
		assert_int_equal(c.status, 0);
		n = count(&s, c.pid, "block I/O latency", detail, &cause);
		disarm(&s);
	}
	assert_int_equal(n, 1);
	check_duration(&cause, &c, 1000);

	/* Quiet below the threshold, and yet the value is known. */
	stats.last = 0;
	left = WRITES;
	while (stats.last == 0 && left-- > 0) {
		c = child_new(write_through, &fd);
		assert_true(play(&s, "block-io-latency", "1h", &c, classic));
		assert_int_equal(s.n, 0);
		fr_source_get_stats(s.source, &stats);
		assert_int_equal(stats.fired, 0);
		disarm(&s);
	}
	if (stats.last == 0 || stats.last > c.ran_ns)
		fail_msg("a value of %llu ns, a run of %llu ns", (unsigned long long)stats.last,
			(unsigned long long)c.ran_ns);
	return true;
}

/* --- memory ------------------------------------------------------------------------------------------------
 */

struct group {
	char path[128];
};

static bool group_write(const struct group *g, const char *file, const char *text)
{
	char path[192];
	int fd;
	bool done;

	snprintf(path, sizeof(path), "%s/%s", g->path, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	if (fd >= 0)
		close(fd);
	return done;
}

static void group_free(struct group *g)
{
	/* The kernel needs a moment to be rid of who died there. */
	for (int i = 0; rmdir(g->path) < 0 && errno == EBUSY && i < 6000; i++)
		usleep(10000);
}

/* A cgroup with so much memory and no swap, of version 1 or 2. */
static bool group_new(struct group *g, const char *limit)
{
	snprintf(g->path, sizeof(g->path), "/sys/fs/cgroup/memory/flightrec-test-%d", (int)getpid());
	if (mkdir(g->path, 0700) == 0) {
		if (group_write(g, "memory.limit_in_bytes", limit) &&
			group_write(g, "memory.swappiness", "0"))
			return true;
		group_free(g);
	}
	snprintf(g->path, sizeof(g->path), "/sys/fs/cgroup/flightrec-test-%d", (int)getpid());
	if (mkdir(g->path, 0700) == 0) {
		if (group_write(g, "memory.max", limit)) {
			group_write(g, "memory.swap.max", "0");
			return true;
		}
		group_free(g);
	}
	print_message("no memory controller of cgroups, of version 1 or 2, is to be had here\n");
	return false;
}

static void enter(const struct group *g)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	if (!group_write(g, "cgroup.procs", pid))
		_exit(2);
}

static void exhaust(void *ctx)
{
	char *p;

	enter(ctx);
	p = mmap(NULL, 256 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		_exit(3);
	for (size_t i = 0; i < 256 * MIB; i += 4096)
		p[i] = 1;
}

static bool oom_kill(bool classic)
{
	struct fr_cause cause = {0};
	struct group g;
	struct scene s;
	struct child c;
	const char *why = arm(&s, "oom-kill", classic ? NULL : "16M", 0, classic);
	bool can = !why && group_new(&g, "33554432");

	if (why)
		print_message("oom-kill: %s\n", why);
	if (!can) {
		disarm(&s);
		return false;
	}
	c = child_new(exhaust, &g);
	child_end(&c, true);
	group_free(&g);
	heard_run(&s.h, 100, 0);
	assert_true(WIFSIGNALED(c.status) && WTERMSIG(c.status) == SIGKILL);
	assert_int_equal(count(&s, c.pid, "OOM kill", "", &cause), 1);
	assert_int_equal(cause.unit, FR_CAUSE_BYTES);
	if (!classic) {
		assert_int_equal(cause.threshold, 16 * MIB);
		/* Its memory, and the pages that it shares with us. */
		assert_true(cause.value >= 16 * MIB && cause.value <= 256 * MIB);
	}
	disarm(&s);
	return true;
}

struct reading {
	struct group group;
	int fd;
};

/* Pages of a hole are pages as any other, and need no disk. */
static void read_past_limit(void *ctx)
{
	struct reading *r = ctx;
	static char block[65536];

	enter(&r->group);
	for (off_t at = 0; at < 64 * (off_t)MIB; at += sizeof(block))
		if (pread(r->fd, block, sizeof(block), at) != sizeof(block))
			_exit(1);
}

static bool reclaim(bool classic)
{
	struct reading r = {.fd = file_on_disk(0)};
	struct fr_cause cause = {0};
	struct scene s;
	struct child c;
	bool can;

	if (r.fd < 0)
		return false;
	assert_int_equal(ftruncate(r.fd, 64 * (off_t)MIB), 0);
	can = group_new(&r.group, "16777216");
	if (can) {
		c = child_new(read_past_limit, &r);
		can = play(&s, "memory-stall", "1us", &c, classic);
		close(r.fd);
		group_free(&r.group);
	}
	if (!can)
		return false;
	assert_int_equal(c.status, 0);
	assert_true(count(&s, c.pid, "cgroup reclaim", "", &cause) > 0);
	check_duration(&cause, &c, 1000);
	disarm(&s);
	return true;
}

struct faulting {
	char path[32];
	int fd;
	long *majflt; /* shared with the child */
};

static void fault(void *ctx)
{
	struct faulting *f = ctx;
	volatile char *p = mmap(NULL, MIB, PROT_READ, MAP_SHARED, f->fd, 0);
	struct rusage before, after;

	if (p == MAP_FAILED || madvise((void *)p, MIB, MADV_RANDOM) < 0)
		_exit(1);
	getrusage(RUSAGE_SELF, &before);
	for (size_t i = 0; i < MIB; i += 65536)
		(void)p[i];
	getrusage(RUSAGE_SELF, &after);
	*f->majflt = after.ru_majflt - before.ru_majflt;
}

/* A file on a disk with all of its pages there and none in memory. */
static bool faulting_new(struct faulting *f)
{
	static char block[MIB];
	struct stat st;

	*f = (struct faulting){.path = "flightrec-fault-XXXXXX"};
	f->fd = mkostemp(f->path, O_CLOEXEC);
	assert_true(f->fd >= 0);
	assert_int_equal(write(f->fd, block, MIB), MIB);
	assert_int_equal(fsync(f->fd), 0);
	assert_int_equal(posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	f->majflt = mmap(NULL, sizeof(*f->majflt), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(f->majflt != MAP_FAILED);
	return fstat(f->fd, &st) == 0 && major(st.st_dev) != 0;
}

static void faulting_free(struct faulting *f)
{
	munmap(f->majflt, sizeof(*f->majflt));
	close(f->fd);
	unlink(f->path);
}

static bool have_tracepoint(const char *typedef_of_btf)
{
	struct btf *btf = btf__load_vmlinux_btf();
	bool have = btf && btf__find_by_name_kind(btf, typedef_of_btf, BTF_KIND_TYPEDEF) > 0;

	btf__free(btf);
	return have;
}

static bool page_fault(bool classic)
{
	struct fr_cause cause = {0};
	struct faulting f;
	struct scene s;
	struct child c;
	unsigned n;
	bool can;

	if (classic || !have_tracepoint("btf_trace_mm_filemap_fault")) {
		print_message(
			"page faults: the tracepoint mm_filemap_fault (Linux 6.12) and BTF are needed\n");
		return false;
	}
	can = faulting_new(&f);
	if (!can)
		print_message("the working directory is on no disk\n");
	if (can) {
		c = child_new(fault, &f);
		can = play(&s, "memory-stall", "1us", &c, classic);
	}
	if (!can) {
		faulting_free(&f);
		return false;
	}
	assert_int_equal(c.status, 0);
	n = count(&s, c.pid, "page fault stall", f.path, &cause);
	/* Each, and one that was made three times is heard twice. */
	if (*f.majflt < 2 || n < *f.majflt)
		fail_msg("%ld major faults, %u heard", *f.majflt, n);
	check_duration(&cause, &c, 1000);
	faulting_free(&f);
	disarm(&s);
	return true;
}

static void compact(void *ctx)
{
	int fd = open("/proc/sys/vm/compact_memory", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "1", 1) != 1)
		_exit(1);
}

static bool compaction(bool classic)
{
	struct fr_cause cause = {0};
	struct scene s;
	struct child c;

	if (access("/proc/sys/vm/compact_memory", W_OK) < 0) {
		print_message("/proc/sys/vm/compact_memory cannot be written\n");
		return false;
	}
	c = child_new(compact, NULL);
	if (!play(&s, "memory-stall", "1us", &c, classic))
		return false;
	assert_int_equal(c.status, 0);
	assert_true(count(&s, c.pid, "memory compaction", "", &cause) > 0);
	check_duration(&cause, &c, 1000);
	disarm(&s);
	return true;
}

/* --- signals -----------------------------------------------------------------------------------------------
 */

static void nothing(int sig)
{
}

/* The way to die; what it takes to see that nobody else is meant. */
enum way { FAULT, ABORT, BEYOND_EOF, TERMINATED, HANDLED, IGNORED, WAYS };

static void die(void *ctx)
{
	enum way way = *(enum way *)ctx;
	struct sigaction handle = {.sa_handler = nothing};
	volatile char *p;

	switch (way) {
	case FAULT:
		p = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		(void)*p;
		break;
	case ABORT:
		abort();
	case BEYOND_EOF:
		p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, memfd_create("empty", MFD_CLOEXEC), 0);
		(void)*p;
		break;
	case TERMINATED:
		raise(SIGTERM);
		break;
	case HANDLED:
		sigaction(SIGSEGV, &handle, NULL);
		raise(SIGSEGV);
		break;
	case IGNORED:
		signal(SIGBUS, SIG_IGN);
		raise(SIGBUS);
		break;
	case WAYS:
		break;
	}
}

static bool fatal_signal(bool classic)
{
	static const struct {
		int sig;
		const char *btf, *classic; /* detail; NULL: it does not fire */
	} expected[WAYS] = {
		[FAULT] = {SIGSEGV, "SIGSEGV at 0x", "SIGSEGV"},
		[ABORT] = {SIGABRT, "SIGABRT", "SIGABRT"},
		[BEYOND_EOF] = {SIGBUS, "SIGBUS at 0x", "SIGBUS"},
		[TERMINATED] = {SIGTERM, NULL, NULL},
	};
	struct child c[WAYS];
	struct scene s;
	const char *why = arm(&s, "fatal-signal", NULL, 0, classic);

	if (why) {
		print_message("fatal-signal: %s\n", why);
		disarm(&s);
		return false;
	}
	for (enum way i = 0; i < WAYS; i++) {
		c[i] = child_new(die, &i);
		child_end(&c[i], true);
	}
	heard_run(&s.h, 100, 0);
	for (enum way i = 0; i < WAYS; i++) {
		const char *detail = classic ? expected[i].classic : expected[i].btf;
		struct fr_cause cause = {0};

		assert_int_equal(c[i].status & 0x7f, expected[i].sig);
		assert_int_equal(count(&s, c[i].pid, "fatal signal", "", &cause), detail ? 1 : 0);
		if (!detail)
			continue;
		assert_int_equal(count(&s, c[i].pid, "fatal signal", detail, &cause), 1);
		assert_int_equal(cause.value, expected[i].sig);
		assert_true(cause.comm[0] != '\0');
	}
	disarm(&s);
	return true;
}

/* Who sends the signal, where it is not the process itself. */
static bool signal_of_another(bool classic)
{
	char detail[64];
	struct fr_cause cause = {0};
	struct scene s;
	struct child c = child_new(die, NULL);
	const char *why = arm(&s, "fatal-signal", NULL, c.pid, classic);

	if (!why)
		kill(c.pid, SIGSYS);
	child_end(&c, false);
	if (why) {
		print_message("fatal-signal: %s\n", why);
		disarm(&s);
		return false;
	}
	heard_run(&s.h, 100, 0);
	assert_int_equal(c.status & 0x7f, SIGSYS);
	snprintf(detail, sizeof(detail), classic ? "SIGSYS" : "SIGSYS from pid %d", (int)getpid());
	assert_int_equal(count(&s, c.pid, "fatal signal", detail, &cause), 1);
	disarm(&s);
	return true;
}

/* --- network -----------------------------------------------------------------------------------------------
 */

#define PORT 7007
#define CONNECTIONS 8

struct sending {
	int family;
	bool accepted; /* the accepting side sends; the connecting one is another process */
};

static void loopback_up(void)
{
	struct ifreq ifr = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (ioctl(fd, SIOCSIFFLAGS, &ifr) < 0)
		_exit(1);
	close(fd);
}

/* Nothing that arrives at FD is let in: it is never acknowledged. */
static void turn_deaf(int fd)
{
	struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = {1, &drop};

	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0)
		_exit(1);
}

static int listen_or_connect(int family, bool listening)
{
	struct sockaddr_in a4 = {
		.sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in6 a6 = {
		.sin6_family = AF_INET6, .sin6_port = htons(PORT), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	const struct sockaddr *a = family == AF_INET ? (struct sockaddr *)&a4 : (struct sockaddr *)&a6;
	socklen_t len = family == AF_INET ? sizeof(a4) : sizeof(a6);
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (listening ? bind(fd, a, len) < 0 || listen(fd, CONNECTIONS) < 0 : connect(fd, a, len) < 0)
		_exit(1);
	return fd;
}

static unsigned retransmitted(int fd)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
		_exit(1);
	return info.tcpi_total_retrans;
}

/* Another process that connects, is deaf and says so with a byte, and stays until OVER has no writer. */
static void connect_deaf(int family, int deaf, const int over[2])
{
	pid_t pid = fork();
	char byte;

	if (pid < 0)
		_exit(1);
	if (pid)
		return;
	close(over[1]);
	turn_deaf(listen_or_connect(family, false));
	_exit(write(deaf, "", 1) == 1 && read(over[0], &byte, 1) == 0 ? 0 : 1);
}

/* In a network of its own, which takes its sockets with it. */
static void send_to_the_deaf(void *ctx)
{
	const struct sending *how = ctx;
	int senders[CONNECTIONS], listener, deaf[2], over[2];
	char byte;

	if (unshare(CLONE_NEWNET) < 0)
		_exit(77);
	loopback_up();
	listener = listen_or_connect(how->family, true);
	if (pipe(deaf) < 0 || pipe(over) < 0)
		_exit(1);
	for (int i = 0; i < CONNECTIONS; i++) {
		if (how->accepted) {
			connect_deaf(how->family, deaf[1], over);
			senders[i] = accept(listener, NULL, NULL);
			if (read(deaf[0], &byte, 1) != 1)
				_exit(1);
		} else {
			senders[i] = listen_or_connect(how->family, false);
			turn_deaf(accept(listener, NULL, NULL));
		}
	}
	for (int i = 0; i < CONNECTIONS; i++)
		if (send(senders[i], "anybody?", 8, 0) != 8)
			_exit(1);
	/* All together, as they began together. */
	for (int i = 0, ms = 0; i < CONNECTIONS; i += retransmitted(senders[i]) >= 2) {
		if (ms++ > HEARD_LIMIT_MS)
			_exit(3);
		usleep(1000);
	}
	close(over[1]);
	while (wait(NULL) > 0)
		;
}

static bool retransmits_of(const struct sending *how, const char *detail, bool classic)
{
	struct fr_source_stats stats;
	struct fr_cause cause = {0};
	struct scene s;
	struct child c;
	const char *why = arm(&s, "tcp-retransmits", "8", 0, classic);
	unsigned n;

	if (why) {
		print_message("tcp-retransmits: %s\n", why);
		disarm(&s);
		return false;
	}
	c = child_new(send_to_the_deaf, (void *)how);
	child_end(&c, true);
	heard_run(&s.h, 100, 0);
	if (WEXITSTATUS(c.status) == 77) {
		print_message("tcp-retransmits: no network namespace\n");
		disarm(&s);
		return false;
	}
	assert_int_equal(c.status, 0);
	n = count(&s, classic ? 0 : c.pid, "TCP retransmits", detail, &cause);
	assert_true(n > 0);
	assert_int_equal(cause.unit, FR_CAUSE_COUNT);
	assert_int_equal(cause.threshold, 8);
	assert_true(cause.value >= 8);
	fr_source_get_stats(s.source, &stats);
	assert_int_equal(stats.threshold, 8);
	disarm(&s);
	return true;
}

static bool retransmits(bool classic)
{
	static const struct sending ipv4 = {AF_INET, false}, accepted = {AF_INET, true},
				    ipv6 = {AF_INET6, false};

	if (classic)
		return retransmits_of(&ipv4, "port 7007", true);
	return retransmits_of(&ipv4, "127.0.0.1:7007", false) &&
	       retransmits_of(&accepted, "127.0.0.1:", false) &&
	       (access("/proc/net/if_inet6", F_OK) < 0 ||
		       retransmits_of(&ipv6, "[0000:0000:0000:0000:0000:0000:0000:0001]:7007", false));
}

/* Fewer than the threshold within the interval are none, and nor are those of others. */
static bool few_retransmits(bool classic)
{
	struct sending how = {AF_INET, false};
	struct fr_source_stats stats;
	struct scene s;
	struct child c = child_new(send_to_the_deaf, &how);

	if (!play(&s, "tcp-retransmits", "1000", &c, classic))
		return false;
	assert_int_equal(s.n, 0);
	fr_source_get_stats(s.source, &stats);
	if (c.status == 0 && !classic)
		assert_true(stats.last >= CONNECTIONS && stats.last < 1000);
	disarm(&s);
	return true;
}

/* --- all ---------------------------------------------------------------------------------------------------
 */

int main(void)
{
	const struct CMUnitTest tests[] = {BOTH(block_io), BOTH(oom_kill), BOTH(reclaim), BOTH(page_fault),
		BOTH(compaction), BOTH(fatal_signal), BOTH(signal_of_another), BOTH(retransmits),
		BOTH(few_retransmits)};

	(void)own_mounts();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
