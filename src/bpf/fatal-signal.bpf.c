// SPDX-License-Identifier: GPL-2.0-or-later
/* Fires when one of `signals` kills a process that neither handles nor ignores that signal. */
#include <linux/bpf.h>
#include <stdbool.h>

#include <flightrec/trigger.bpf.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

enum { ILL = 4, TRAP = 5, ABRT = 6, BUS = 7, FPE = 8, SEGV = 11, SYS = 31 };
#define BIT_OF(sig) (1ULL << ((sig)-1))

/* Bit N-1 is signal N, as in a sigset_t. */
const volatile __u64 signals =
	BIT_OF(ILL) | BIT_OF(TRAP) | BIT_OF(ABRT) | BIT_OF(BUS) | BIT_OF(FPE) | BIT_OF(SEGV) | BIT_OF(SYS);
/* The signals whose siginfo has an address if the kernel sent the signal. */
#define HAVE_ADDRESS (BIT_OF(ILL) | BIT_OF(TRAP) | BIT_OF(BUS) | BIT_OF(FPE) | BIT_OF(SEGV))

union __sifields {
	struct {
		int _pid;
	} _kill;
	struct {
		void *_addr;
	} _sigfault;
} __attribute__((preserve_access_index));

struct kernel_siginfo {
	int si_code;
	union __sifields _sifields;
} __attribute__((preserve_access_index));

struct sigaction {
	void *sa_handler;
} __attribute__((preserve_access_index));

struct k_sigaction {
	struct sigaction sa;
} __attribute__((preserve_access_index));

/* The classic tracepoint. Its format has been the same since 2.6. */
struct signal_deliver {
	__u64 common;
	int sig, error, code;
	unsigned long sa_handler, sa_flags;
};

static __always_inline bool kills(int sig, const void *handler)
{
	return !handler && sig >= 1 && sig <= 64 && signals & BIT_OF(sig);
}

static __always_inline const char *name_of(int sig)
{
	static const char names[32][8] = {"signal", "SIGHUP", "SIGINT",
		"SIGQUIT", [ILL] = "SIGILL", [TRAP] = "SIGTRAP", [ABRT] = "SIGABRT", [BUS] = "SIGBUS",
		[FPE] = "SIGFPE", [SEGV] = "SIGSEGV", [13] = "SIGPIPE", [15] = "SIGTERM", [SYS] = "SIGSYS"};

	return names[sig > 0 && sig < 32 && names[sig & 31][0] ? sig & 31 : 0];
}

/* The value is the signal's number. There is no threshold. */
static __always_inline void fire(struct flightrec_subject *who, const char *detail, int sig)
{
	flightrec_trigger_for(who, "fatal signal", detail, FLIGHTREC_UNIT, bpf_ktime_get_ns(), sig, 0);
}

SEC("tp_btf/signal_deliver")
int BPF_PROG(fatal_signal_btf, int sig, struct kernel_siginfo *info, struct k_sigaction *action)
{
	struct flightrec_subject who;
	char detail[FLIGHTREC_DETAIL_SIZE];
	const char *name;
	__u32 sender;
	int code;

	if (!kills(sig, action->sa.sa_handler))
		return 0;
	flightrec_current(&who);
	name = name_of(sig);
	code = BPF_CORE_READ(info, si_code);
	sender = BPF_CORE_READ(info, _sifields._kill._pid);
	/* If the code is above 0, the kernel sent the signal. If it is not, a process sent the signal, with
	   kill(), abort() or sigqueue(). */
	if (code > 0 && BIT_OF(sig) & HAVE_ADDRESS)
		BPF_SNPRINTF(detail, sizeof(detail), "%s at 0x%llx", name,
			(__u64)BPF_CORE_READ(info, _sifields._sigfault._addr));
	else if (code <= 0 && sender && sender != who.pid)
		BPF_SNPRINTF(detail, sizeof(detail), "%s from pid %u", name, sender);
	else
		BPF_SNPRINTF(detail, sizeof(detail), "%s", name);
	fire(&who, detail, sig);
	return 0;
}

SEC("tp/signal/signal_deliver")
int fatal_signal_classic(struct signal_deliver *ctx)
{
	struct flightrec_subject who;

	if (!kills(ctx->sig, (void *)ctx->sa_handler))
		return 1;
	flightrec_current(&who);
	fire(&who, name_of(ctx->sig), ctx->sig);
	return 1;
}
