// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tests of the probes of block I/O, memory, signals and the network. The tests look only at the causes that
 * name their child.
 *
 * The reason "direct reclaim" is not tested, because it would need all memory of the machine. Reclaim for a
 * cgroup runs the same code.
 */
#include "probe.h"

#include <bpf/btf.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#define MIB (1u << 20)

static int set_up(void **state)
{
	(void)mount_tracefs();
	return 0;
}

GROUP_FIXTURE(set_up, NULL)

static void check_duration(const struct fr_cause *cause, const struct child *c)
{
	assert_int_equal(cause->unit, FR_CAUSE_NS);
	assert_int_equal(cause->threshold, 1000);
	assert_in_range(cause->value, 1000, c->ran_ns);
	assert_int_equal(cause->tid, c->pid);
}

static void write_through(void *ctx)
{
	fr_anomaly_write_through();
}

/* On a busy disk, the kernel may merge a write with that of another process. Without BTF, the cause may name
   a kworker instead of the child, or the child for a write of another process. So only one of several writes
   must be reported correctly. */
#define WRITES 50

PROBE_TEST(slow_block_request)
{
	const char *detail = classic ? " 65536B" : " write 64K";
	struct fr_source_stats stats = {0};
	unsigned n = 0;

	for (int i = 0; n != 1 && i < WRITES; i++) {
		_cleanup_scene_ struct scene s = {0};
		struct fr_cause cause = {0};

		scene_init(&s, "block-io-latency", "1us", write_through, NULL, classic);
		if (!play(&s))
			return false;
		n = heard_count(&s.h, s.c.pid, "block I/O latency", detail, &cause);
		if (n == 1)
			check_duration(&cause, &s.c);
	}
	assert_int_equal(n, 1);

	/* A value below the threshold does not fire, but the statistics have it. */
	for (int i = 0; stats.last == 0 && i < WRITES; i++) {
		_cleanup_scene_ struct scene s = {0};

		scene_init(&s, "block-io-latency", "1h", write_through, NULL, classic);
		assert_true(play(&s));
		assert_int_equal(s.h.n, 0);
		stats = heard_stats(&s.h);
		assert_int_equal(stats.fired, 0);
		assert_in_range(stats.last, 0, s.c.ran_ns);
	}
	assert_int_not_equal(stats.last, 0);
	return true;
}

static char group[128];

static void exhaust(void *ctx)
{
	fr_anomaly_exhaust(group);
}

static void reclaim(void *ctx)
{
	fr_anomaly_reclaim(group);
}

static bool make_group(void)
{
	return fr_anomaly_group_new(group, sizeof(group)) ||
	       heard_cannot("there is no memory controller of cgroups");
}

static bool play_in_group(struct scene *s)
{
	bool played = play(s);

	fr_anomaly_group_free(group);
	return played;
}

PROBE_TEST(oom_kill)
{
	_cleanup_scene_ struct scene s = {0};
	struct fr_cause cause = {0};

	if (!make_group())
		return false;
	scene_init(&s, "oom-kill", classic ? NULL : "16M", exhaust, NULL, classic);
	s.h.config.pid = 0;
	s.status = SIGKILL;
	if (!play_in_group(&s))
		return false;
	assert_int_equal(heard_count(&s.h, s.c.pid, "OOM kill", "", &cause), 1);
	assert_int_equal(cause.unit, FR_CAUSE_BYTES);
	if (!classic) {
		assert_int_equal(cause.threshold, 16 * MIB);
		/* The value includes the pages that the child shares with this process. */
		assert_in_range(cause.value, 16 * MIB, 256 * MIB);
	}
	return true;
}

PROBE_TEST(reclaim_for_a_cgroup)
{
	_cleanup_scene_ struct scene s = {0};
	struct fr_cause cause = {0};

	if (!make_group())
		return false;
	scene_init(&s, "memory-stall", "1us", reclaim, NULL, classic);
	if (!play_in_group(&s))
		return false;
	assert_true(heard_count(&s.h, s.c.pid, "cgroup reclaim", "", &cause) > 0);
	check_duration(&cause, &s.c);
	return true;
}

struct faulting {
	char path[32];
	int fd;
	long *majflt; /* is in memory that is shared with the child */
};

static void fault(void *ctx)
{
	struct faulting *f = ctx;
	struct rusage before, after;

	getrusage(RUSAGE_SELF, &before);
	fr_anomaly_fault(f->fd);
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

PROBE_TEST(page_fault_on_a_file)
{
	struct faulting f = {.path = "flightrec-fault-XXXXXX"};
	_cleanup_scene_ struct scene s = {0};
	struct fr_cause cause = {0};
	struct stat st;
	bool played;
	unsigned n;

	if (classic || !has_tracepoint("btf_trace_mm_filemap_fault"))
		return heard_cannot("it needs BTF and the tracepoint mm_filemap_fault (Linux 6.12)");
	f.fd = mkostemp(f.path, O_CLOEXEC);
	assert_true(f.fd >= 0);
	f.majflt = mmap(NULL, sizeof(*f.majflt), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(f.majflt != MAP_FAILED);
	scene_init(&s, "memory-stall", "1us", fault, &f, classic);
	played = play(&s);
	fstat(f.fd, &st);
	close(f.fd);
	unlink(f.path);
	if (!played)
		return false;
	if (major(st.st_dev) == 0)
		return heard_cannot("the working directory is not on a disk");
	n = heard_count(&s.h, s.c.pid, "page fault stall", f.path, &cause);
	/* More may be reported than were counted: a fault that was made three times is reported twice. */
	if (*f.majflt < 2 || n < *f.majflt)
		fail_msg("%ld major faults, %u reported", *f.majflt, n);
	check_duration(&cause, &s.c);
	munmap(f.majflt, sizeof(*f.majflt));
	return true;
}

static void compact(void *ctx)
{
	if (!fr_anomaly_put("/proc/sys/vm", "compact_memory", "1"))
		fr_anomaly_skip("/proc/sys/vm/compact_memory cannot be written");
}

PROBE_TEST(compaction)
{
	_cleanup_scene_ struct scene s = {0};
	struct fr_cause cause = {0};

	scene_init(&s, "memory-stall", "1us", compact, NULL, classic);
	if (!play(&s))
		return false;
	assert_true(heard_count(&s.h, s.c.pid, "memory compaction", "", &cause) > 0);
	check_duration(&cause, &s.c);
	return true;
}

static void nothing(int sig)
{
}

static void die(void *how)
{
	struct sigaction handle = {.sa_handler = nothing};

	if (!strcmp(how, "terminated"))
		raise(SIGTERM);
	if (!strcmp(how, "handled")) {
		sigaction(SIGSEGV, &handle, NULL);
		raise(SIGSEGV);
	} else if (!strcmp(how, "ignored")) {
		signal(SIGBUS, SIG_IGN);
		raise(SIGBUS);
	} else {
		fr_anomaly_die(how);
	}
}

/* The last signals of the table are not fatal, or are not in the default set of the probe. */
PROBE_TEST(fatal_signals_fire_and_others_do_not)
{
	static const struct {
		const char *how;
		int sig;
		const char *detail; /* NULL if the probe does not fire */
	} cases[] = {
		{"segv", SIGSEGV, "SIGSEGV at 0x"},
		{"abort", SIGABRT, "SIGABRT"},
		{"bus", SIGBUS, "SIGBUS at 0x"},
		{"terminated", SIGTERM, NULL},
		{"handled", 0, NULL},
		{"ignored", 0, NULL},
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		_cleanup_scene_ struct scene s = {0};

		scene_init(&s, "fatal-signal", NULL, die, (void *)cases[i].how, classic);
		s.status = cases[i].sig;
		if (!play(&s))
			return false;
		assert_int_equal(s.h.n, cases[i].detail ? 1 : 0);
		if (!cases[i].detail)
			continue;
		assert_string_equal(s.h.last.reason, "fatal signal");
		assert_memory_equal(s.h.last.detail, cases[i].detail, classic ? 6 : strlen(cases[i].detail));
		assert_int_equal(s.h.last.pid, s.c.pid);
		assert_int_equal(s.h.last.value, cases[i].sig);
		assert_true(s.h.last.comm[0] != '\0');
	}
	return true;
}

PROBE_TEST(fatal_signal_names_its_sender)
{
	_cleanup_scene_ struct scene s = {0};
	struct fr_cause cause = {0};
	char detail[64];

	scene_init(&s, "fatal-signal", NULL, die, NULL, classic);
	if (heard_try_arm(&s.h))
		kill(s.c.pid, SIGSYS);
	child_end(&s.c, false);
	if (!s.h.source)
		return false;
	heard_run(&s.h, 100, 0);
	assert_int_equal(s.c.status & 0x7f, SIGSYS);
	snprintf(detail, sizeof(detail), classic ? "SIGSYS" : "SIGSYS from pid %d", (int)getpid());
	assert_int_equal(heard_count(&s.h, s.c.pid, "fatal signal", detail, &cause), 1);
	return true;
}

struct sending {
	int family;
	bool accepted;
};

static void retransmit(void *ctx)
{
	const struct sending *how = ctx;

	fr_anomaly_retransmit(how->family, how->accepted);
}

static bool is_retransmission_reported(struct sending how, const char *detail, bool classic)
{
	_cleanup_scene_ struct scene s = {0};
	struct fr_cause cause = {0};

	scene_init(&s, "tcp-retransmits", "8", retransmit, &how, classic);
	s.h.config.pid = 0;
	if (!play(&s))
		return false;
	assert_true(heard_count(&s.h, classic ? 0 : s.c.pid, "TCP retransmits", detail, &cause) > 0);
	assert_int_equal(cause.unit, FR_CAUSE_COUNT);
	assert_int_equal(cause.threshold, 8);
	assert_true(cause.value >= 8);
	assert_int_equal(heard_stats(&s.h).threshold, 8);
	return true;
}

PROBE_TEST(tcp_retransmissions)
{
	const struct sending ipv4 = {AF_INET, false}, accepted = {AF_INET, true}, ipv6 = {AF_INET6, false};

	if (classic)
		return is_retransmission_reported(ipv4, "port 7007", true);
	return is_retransmission_reported(ipv4, "127.0.0.1:7007", false) &&
	       is_retransmission_reported(accepted, "127.0.0.1:", false) &&
	       (access("/proc/net/if_inet6", F_OK) < 0 ||
		       is_retransmission_reported(
			       ipv6, "[0000:0000:0000:0000:0000:0000:0000:0001]:7007", false));
}

PROBE_TEST(few_retransmissions_do_not_fire)
{
	struct sending how = {AF_INET, false};
	_cleanup_scene_ struct scene s = {0};

	scene_init(&s, "tcp-retransmits", "1000", retransmit, &how, classic);
	if (!play(&s))
		return false;
	assert_int_equal(s.h.n, 0);
	if (!classic)
		assert_in_range(heard_stats(&s.h).last, 8, 999);
	return true;
}
