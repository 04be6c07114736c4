// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The probes of block I/O, memory, signals and the network. A child causes each anomaly for real, and the
 * tests look only at the causes of that child. Each test runs with the kernel's BTF and without it.
 *
 * "direct reclaim" would need all memory of the machine, so it is not tested; reclaim for a cgroup runs the
 * same code.
 */
#include "heard.h"

#include <arpa/inet.h>
#include <bpf/btf.h>
#include <linux/filter.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#define MIB (1u << 20)

static bool arm(struct heard *h, const char *probe, const char *threshold, pid_t pid, bool classic)
{
	heard_init(h, FR_TRIGGER_PROBE);
	h->env.bpf_classic = classic;
	h->config.subject = (char *)probe;
	h->config.threshold = (char *)threshold;
	h->config.pid = pid;
	h->config.cooldown_ns = 0;
	if (heard_try_arm(h))
		return true;
	heard_deinit(h);
	return false;
}

/* Arms PROBE for the child C alone, and lets C run to its end. False: it cannot be armed. */
static bool play(struct heard *h, const char *probe, const char *threshold, struct child *c, bool classic)
{
	bool armed = arm(h, probe, threshold, c->pid, classic);

	child_end(c, armed);
	if (armed)
		heard_run(h, 100, 0);
	return armed;
}

static void check_duration(const struct fr_cause *cause, const struct child *c, uint64_t threshold_ns)
{
	assert_int_equal(cause->unit, FR_CAUSE_NS);
	assert_int_equal(cause->threshold, threshold_ns);
	assert_in_range(cause->value, threshold_ns, c->ran_ns);
	assert_int_equal(cause->tid, c->pid);
}

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

/* Opens a file without a name on a disk. -1 with a message: the working directory is not on a disk. */
static int file_on_disk(int flags)
{
	int fd = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC | flags, 0600);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || major(st.st_dev) == 0) {
		print_message("skipped: the working directory is not on a suitable disk: %m\n");
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

/* On a busy disk a write may be merged with another process's, and without BTF the subject may be a kworker.
   So one of several writes must be reported correctly. */
#define WRITES 50

static bool test_slow_block_request(bool classic)
{
	_cleanup_close_ int fd = file_on_disk(O_DIRECT);
	const char *detail = classic ? " 65536B" : " write 64K";
	struct fr_source_stats stats = {0};
	struct fr_cause cause = {0};
	struct child c;
	struct heard h;
	unsigned n = 0;

	if (fd < 0)
		return false;
	for (int i = 0; n == 0 && i < WRITES; i++) {
		c = child_new(NULL, write_through, &fd);
		if (!play(&h, "block-io-latency", "1us", &c, classic))
			return false;
		assert_int_equal(c.status, 0);
		n = heard_count(&h, c.pid, "block I/O latency", detail, &cause);
		heard_deinit(&h);
	}
	assert_int_equal(n, 1);
	check_duration(&cause, &c, 1000);

	/* Below the threshold it does not fire, but the value is known. */
	for (int i = 0; stats.last == 0 && i < WRITES; i++) {
		c = child_new(NULL, write_through, &fd);
		assert_true(play(&h, "block-io-latency", "1h", &c, classic));
		assert_int_equal(h.n, 0);
		stats = heard_stats(&h);
		assert_int_equal(stats.fired, 0);
		heard_deinit(&h);
	}
	assert_in_range(stats.last, 1, c.ran_ns);
	return true;
}

static void remove_group(const char *dir)
{
	/* The kernel needs a moment until a killed process has left the group. */
	for (int i = 0; rmdir(dir) < 0 && errno == EBUSY && i < 6000; i++)
		usleep(10000);
}

/* Makes a cgroup with a limit of memory and without swap, of version 1 or 2. */
static bool make_group(char *ret, size_t size, const char *limit)
{
	static const struct {
		const char *root, *limit, *swap, *no_swap;
	} versions[] = {{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.swappiness", "0"},
		{"/sys/fs/cgroup", "memory.max", "memory.swap.max", "0"}};

	for (size_t i = 0; i < FR_ARRAY_SIZE(versions); i++) {
		snprintf(ret, size, "%s/flightrec-test-%d", versions[i].root, (int)getpid());
		if (mkdir(ret, 0700) < 0)
			continue;
		if (write_file(ret, versions[i].limit, limit)) {
			write_file(ret, versions[i].swap, versions[i].no_swap);
			return true;
		}
		remove_group(ret);
	}
	print_message("skipped: there is no memory controller of cgroups\n");
	return false;
}

static void exhaust(void *ctx)
{
	char *p;

	if (!move_to_cgroup(ctx, getpid()))
		_exit(2);
	p = mmap(NULL, 256 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		_exit(3);
	for (size_t i = 0; i < 256 * MIB; i += 4096)
		p[i] = 1;
}

static bool test_oom_kill(bool classic)
{
	struct fr_cause cause = {0};
	struct child c;
	struct heard h;
	char group[128];

	if (!make_group(group, sizeof(group), "33554432"))
		return false;
	if (!arm(&h, "oom-kill", classic ? NULL : "16M", 0, classic)) {
		remove_group(group);
		return false;
	}
	c = child_new(NULL, exhaust, group);
	child_end(&c, true);
	remove_group(group);
	heard_run(&h, 100, 0);
	assert_true(WIFSIGNALED(c.status) && WTERMSIG(c.status) == SIGKILL);
	assert_int_equal(heard_count(&h, c.pid, "OOM kill", "", &cause), 1);
	assert_int_equal(cause.unit, FR_CAUSE_BYTES);
	if (!classic) {
		assert_int_equal(cause.threshold, 16 * MIB);
		/* This includes the pages that it shares with this process. */
		assert_in_range(cause.value, 16 * MIB, 256 * MIB);
	}
	heard_deinit(&h);
	return true;
}

struct reading {
	char group[128];
	int fd;
};

/* The pages of a hole in a file count, and need no disk. */
static void read_past_limit(void *ctx)
{
	struct reading *r = ctx;
	static char block[65536];

	if (!move_to_cgroup(r->group, getpid()))
		_exit(2);
	for (off_t at = 0; at < 64 * (off_t)MIB; at += sizeof(block))
		if (pread(r->fd, block, sizeof(block), at) != sizeof(block))
			_exit(1);
}

static bool test_reclaim_for_a_cgroup(bool classic)
{
	_cleanup_close_ int fd = file_on_disk(0);
	struct reading r = {.fd = fd};
	struct fr_cause cause = {0};
	struct child c;
	struct heard h;
	bool played;

	if (fd < 0)
		return false;
	assert_int_equal(ftruncate(fd, 64 * (off_t)MIB), 0);
	if (!make_group(r.group, sizeof(r.group), "16777216"))
		return false;
	c = child_new(NULL, read_past_limit, &r);
	played = play(&h, "memory-stall", "1us", &c, classic);
	remove_group(r.group);
	if (!played)
		return false;
	assert_int_equal(c.status, 0);
	assert_true(heard_count(&h, c.pid, "cgroup reclaim", "", &cause) > 0);
	check_duration(&cause, &c, 1000);
	heard_deinit(&h);
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

static bool has_tracepoint(const char *typedef_of_btf)
{
	struct btf *btf = btf__load_vmlinux_btf();
	bool has = btf && btf__find_by_name_kind(btf, typedef_of_btf, BTF_KIND_TYPEDEF) > 0;

	btf__free(btf);
	return has;
}

static bool test_page_fault_on_a_file(bool classic)
{
	static char block[MIB];
	struct faulting f = {.path = "flightrec-fault-XXXXXX"};
	struct fr_cause cause = {0};
	struct stat st;
	struct child c;
	struct heard h;
	bool played;
	unsigned n;

	if (classic || !has_tracepoint("btf_trace_mm_filemap_fault"))
		return heard_cannot("it needs BTF and the tracepoint mm_filemap_fault (Linux 6.12)");
	/* The pages are on the disk and not in memory. */
	f.fd = mkostemp(f.path, O_CLOEXEC);
	assert_true(f.fd >= 0);
	assert_int_equal(write(f.fd, block, MIB), MIB);
	assert_int_equal(fsync(f.fd), 0);
	assert_int_equal(posix_fadvise(f.fd, 0, 0, POSIX_FADV_DONTNEED), 0);
	f.majflt = mmap(NULL, sizeof(*f.majflt), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(f.majflt != MAP_FAILED);
	played = fstat(f.fd, &st) == 0 && major(st.st_dev) != 0;
	if (!played)
		print_message("skipped: the working directory is not on a disk\n");
	if (played) {
		c = child_new(NULL, fault, &f);
		played = play(&h, "memory-stall", "1us", &c, classic);
	}
	close(f.fd);
	unlink(f.path);
	if (played) {
		assert_int_equal(c.status, 0);
		n = heard_count(&h, c.pid, "page fault stall", f.path, &cause);
		/* A fault that was made three times is reported twice. */
		if (*f.majflt < 2 || n < *f.majflt)
			fail_msg("%ld major faults, %u reported", *f.majflt, n);
		check_duration(&cause, &c, 1000);
		heard_deinit(&h);
	}
	munmap(f.majflt, sizeof(*f.majflt));
	return played;
}

static void compact(void *ctx)
{
	if (!write_file("/proc/sys/vm", "compact_memory", "1"))
		_exit(1);
}

static bool test_compaction(bool classic)
{
	struct fr_cause cause = {0};
	struct child c;
	struct heard h;

	if (access("/proc/sys/vm/compact_memory", W_OK) < 0)
		return heard_cannot("/proc/sys/vm/compact_memory cannot be written");
	c = child_new(NULL, compact, NULL);
	if (!play(&h, "memory-stall", "1us", &c, classic))
		return false;
	assert_int_equal(c.status, 0);
	assert_true(heard_count(&h, c.pid, "memory compaction", "", &cause) > 0);
	check_duration(&cause, &c, 1000);
	heard_deinit(&h);
	return true;
}

static void nothing(int sig)
{
}

/* Ways to get a signal; the last ones are not fatal, or not in the default set. */
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

static bool test_fatal_signals_fire_and_others_do_not(bool classic)
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
	struct heard h;

	if (!arm(&h, "fatal-signal", NULL, 0, classic))
		return false;
	for (enum way i = 0; i < WAYS; i++) {
		c[i] = child_new(NULL, die, &i);
		child_end(&c[i], true);
	}
	heard_run(&h, 100, 0);
	for (enum way i = 0; i < WAYS; i++) {
		const char *detail = classic ? expected[i].classic : expected[i].btf;
		struct fr_cause cause = {0};

		assert_int_equal(c[i].status & 0x7f, expected[i].sig);
		assert_int_equal(heard_count(&h, c[i].pid, "fatal signal", "", &cause), detail ? 1 : 0);
		if (!detail)
			continue;
		assert_non_null(strstr(cause.detail, detail));
		assert_int_equal(cause.value, expected[i].sig);
		assert_true(cause.comm[0] != '\0');
	}
	heard_deinit(&h);
	return true;
}

static bool test_fatal_signal_names_its_sender(bool classic)
{
	struct child c = child_new(NULL, die, NULL);
	struct fr_cause cause = {0};
	char detail[64];
	struct heard h;
	bool armed = arm(&h, "fatal-signal", NULL, c.pid, classic);

	if (armed)
		kill(c.pid, SIGSYS);
	child_end(&c, false);
	if (!armed)
		return false;
	heard_run(&h, 100, 0);
	assert_int_equal(c.status & 0x7f, SIGSYS);
	snprintf(detail, sizeof(detail), classic ? "SIGSYS" : "SIGSYS from pid %d", (int)getpid());
	assert_int_equal(heard_count(&h, c.pid, "fatal signal", detail, &cause), 1);
	heard_deinit(&h);
	return true;
}

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

/* Drops all that arrives at FD, so that it is never acknowledged. */
static void drop_all(int fd)
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

/* Starts a process that connects and drops all. It writes a byte when it is ready, and ends when OVER has no
   writer. */
static void connect_without_answer(int family, int ready, const int over[2])
{
	pid_t pid = fork();
	char byte;

	if (pid < 0)
		_exit(1);
	if (pid)
		return;
	close(over[1]);
	drop_all(listen_or_connect(family, false));
	_exit(write(ready, "", 1) == 1 && read(over[0], &byte, 1) == 0 ? 0 : 1);
}

/* Runs in its own network namespace, which goes with it. */
static void send_without_answer(void *ctx)
{
	const struct sending *how = ctx;
	int senders[CONNECTIONS], listener, ready[2], over[2];
	char byte;

	if (unshare(CLONE_NEWNET) < 0)
		_exit(77);
	loopback_up();
	listener = listen_or_connect(how->family, true);
	if (pipe(ready) < 0 || pipe(over) < 0)
		_exit(1);
	for (int i = 0; i < CONNECTIONS; i++) {
		if (how->accepted) {
			connect_without_answer(how->family, ready[1], over);
			senders[i] = accept(listener, NULL, NULL);
			if (read(ready[0], &byte, 1) != 1)
				_exit(1);
		} else {
			senders[i] = listen_or_connect(how->family, false);
			drop_all(accept(listener, NULL, NULL));
		}
	}
	for (int i = 0; i < CONNECTIONS; i++)
		if (send(senders[i], "anybody?", 8, 0) != 8)
			_exit(1);
	/* Wait for two retransmissions of each. */
	for (int i = 0, ms = 0; i < CONNECTIONS; i += retransmitted(senders[i]) >= 2) {
		if (ms++ > HEARD_LIMIT_MS)
			_exit(3);
		usleep(1000);
	}
	close(over[1]);
	while (wait(NULL) > 0)
		;
}

static bool is_retransmission_reported(const struct sending *how, const char *detail, bool classic)
{
	struct fr_cause cause = {0};
	struct child c;
	struct heard h;

	if (!arm(&h, "tcp-retransmits", "8", 0, classic))
		return false;
	c = child_new(NULL, send_without_answer, (void *)how);
	child_end(&c, true);
	heard_run(&h, 100, 0);
	if (c.status == 77 << 8) {
		print_message("skipped: no network namespace can be made\n");
		heard_deinit(&h);
		return false;
	}
	assert_int_equal(c.status, 0);
	assert_true(heard_count(&h, classic ? 0 : c.pid, "TCP retransmits", detail, &cause) > 0);
	assert_int_equal(cause.unit, FR_CAUSE_COUNT);
	assert_int_equal(cause.threshold, 8);
	assert_true(cause.value >= 8);
	assert_int_equal(heard_stats(&h).threshold, 8);
	heard_deinit(&h);
	return true;
}

static bool test_tcp_retransmissions(bool classic)
{
	static const struct sending ipv4 = {AF_INET, false}, accepted = {AF_INET, true},
				    ipv6 = {AF_INET6, false};

	if (classic)
		return is_retransmission_reported(&ipv4, "port 7007", true);
	return is_retransmission_reported(&ipv4, "127.0.0.1:7007", false) &&
	       is_retransmission_reported(&accepted, "127.0.0.1:", false) &&
	       (access("/proc/net/if_inet6", F_OK) < 0 ||
		       is_retransmission_reported(
			       &ipv6, "[0000:0000:0000:0000:0000:0000:0000:0001]:7007", false));
}

static bool test_few_retransmissions_do_not_fire(bool classic)
{
	struct sending how = {AF_INET, false};
	struct child c = child_new(NULL, send_without_answer, &how);
	struct heard h;

	if (!play(&h, "tcp-retransmits", "1000", &c, classic))
		return false;
	assert_int_equal(h.n, 0);
	if (c.status == 0 && !classic)
		assert_in_range(heard_stats(&h).last, CONNECTIONS, 999);
	heard_deinit(&h);
	return true;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(test_slow_block_request),
		BOTH(test_oom_kill),
		BOTH(test_reclaim_for_a_cgroup),
		BOTH(test_page_fault_on_a_file),
		BOTH(test_compaction),
		BOTH(test_fatal_signals_fire_and_others_do_not),
		BOTH(test_fatal_signal_names_its_sender),
		BOTH(test_tcp_retransmissions),
		BOTH(test_few_retransmissions_do_not_fire),
	};

	(void)mount_tracefs();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
