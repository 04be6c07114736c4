// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Counts the TCP retransmissions within Interval=, for the whole machine or for the processes that Pid=,
 * Comm= or CGroup= select. The detail is the peer of the last retransmission.
 *
 * A retransmission happens in a timer or an interrupt, so it is possible that the current task does not own
 * the socket. When a socket connects or listens, the probe stores the socket's owner with the socket.
 * Accepted sockets inherit the owner of the listening socket. The owner of a socket that is older than the
 * probe is not known, so such a socket matches no filter.
 */
#include <linux/bpf.h>
#include <stdbool.h>

#define FLIGHTREC_UNIT FLIGHTREC_UNIT_COUNT
#include <flightrec/trigger.bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

const volatile __u64 interval_ns = 1000000000;

enum { SYN_SENT = 2, LISTEN = 10 };	/* <net/tcp_states.h> */
enum { INET = 2, INET6 = 10, TCP = 6 }; /* families, protocol */

struct in6_addr {
	__u8 bytes[16];
};

struct sock_common {
	__u32 skc_daddr;
	__u16 skc_dport;
	unsigned short skc_family;
	struct in6_addr skc_v6_daddr;
} __attribute__((preserve_access_index));

struct sock {
	struct sock_common __sk_common;
	__u16 sk_protocol;
} __attribute__((preserve_access_index));

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	__type(key, int);
	__type(value, struct flightrec_subject);
} owners SEC(".maps");

/* The interval is divided into SLICES slices. The array has the counts of the last SLICES slices, including
   the current slice, which has not ended. So the sum of the counts covers slightly less than the interval. */
#define SLICES 8
static struct {
	__u64 number; /* number of the slice since boot */
	__u64 count;
} slices[SLICES];

/* Counts a retransmission at NOW_NS. Returns the count of the interval. */
static __always_inline __u64 count_one(__u64 now_ns)
{
	__u64 number = now_ns / (interval_ns / SLICES + 1), sum = 0;
	__u32 at = number % SLICES;
	__u64 old = slices[at].number;

	/* The first CPU in a new slice resets the count. If another CPU counts at the same time, its count
	   can get lost. */
	if (old != number && __sync_val_compare_and_swap(&slices[at].number, old, number) == old)
		slices[at].count = 0;
	__sync_fetch_and_add(&slices[at].count, 1);
	for (int i = 0; i < SLICES; i++)
		if (number - slices[i].number < SLICES)
			sum += slices[i].count;
	return sum;
}

static __always_inline void fire(struct flightrec_subject *owner, const char *detail, __u64 now_ns, __u64 n)
{
	flightrec_trigger_for(
		owner, "TCP retransmits", detail, FLIGHTREC_UNIT, now_ns, n, flightrec_threshold);
}

static __always_inline bool is_mapped_ipv4(const struct in6_addr *a)
{
	for (int i = 0; i < 10; i++)
		if (a->bytes[i])
			return false;
	return a->bytes[10] == 0xff && a->bytes[11] == 0xff;
}

static __always_inline void name_of_peer(char detail[static FLIGHTREC_DETAIL_SIZE], const struct sock *sk)
{
	__u16 port = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
	__u32 ipv4 = BPF_CORE_READ(sk, __sk_common.skc_daddr);
	struct in6_addr a;

	detail[0] = '\0';
	if (BPF_CORE_READ(sk, __sk_common.skc_family) == INET6) {
		BPF_CORE_READ_INTO(&a, sk, __sk_common.skc_v6_daddr);
		if (!is_mapped_ipv4(&a)) {
			BPF_SNPRINTF(detail, FLIGHTREC_DETAIL_SIZE, "[%pI6]:%u", &a, port);
			return;
		}
		__builtin_memcpy(&ipv4, &a.bytes[12], sizeof(ipv4));
	}
	BPF_SNPRINTF(detail, FLIGHTREC_DETAIL_SIZE, "%pI4:%u", &ipv4, port);
}

SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(retransmit_btf, struct sock *sk)
{
	__u64 now_ns = bpf_ktime_get_ns(), n;
	char detail[FLIGHTREC_DETAIL_SIZE];
	struct flightrec_subject *known, owner = {.ours = 1};

	known = bpf_sk_storage_get(&owners, sk, 0, 0);
	if (known)
		owner = *known;
	if (!flightrec_wanted(&owner))
		return 0;
	n = count_one(now_ns);
	detail[0] = '\0';
	if (n >= flightrec_threshold)
		name_of_peer(detail, sk);
	fire(&owner, detail, now_ns, n);
	return 0;
}

/* connect() and listen() change the state in the context of the calling process, so the current process is
   stored as the owner. */
SEC("?tp_btf/inet_sock_set_state")
int BPF_PROG(own, struct sock *sk, int from, int to)
{
	struct flightrec_subject *owner;

	if ((to != SYN_SENT && to != LISTEN) || sk->sk_protocol != TCP)
		return 0;
	owner = bpf_sk_storage_get(&owners, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
	if (!owner)
		return 0;
	flightrec_current(owner);
	flightrec_localize(owner);
	return 0;
}

/* The classic tracepoint: the members that the format has in all kernels. */
struct tcp_retransmit_skb {
	__u64 common;
	const void *skbaddr, *skaddr;
	int state;
	__u16 sport, dport;
};

SEC("tp/tcp/tcp_retransmit_skb")
int retransmit_classic(struct tcp_retransmit_skb *ctx)
{
	struct flightrec_subject nobody = {.ours = 1};
	__u64 now_ns = bpf_ktime_get_ns(), n;
	char detail[FLIGHTREC_DETAIL_SIZE];

	if (!flightrec_wanted(&nobody))
		return 1;
	n = count_one(now_ns);
	detail[0] = '\0';
	if (n >= flightrec_threshold)
		BPF_SNPRINTF(detail, sizeof(detail), "port %u", ctx->dport);
	fire(&nobody, detail, now_ns, n);
	return 1;
}
