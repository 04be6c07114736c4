// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/classes.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#define KNOWN (1u << 31)

/* The names of functions, as patterns of glob(7). Names of the kernel are those of Linux 5.10 to 6.18.
   Functions that compilers split have a suffix like ".part.0", which is left out before the comparison. */
static const struct {
	const char *pattern;
	bool kernel;
	uint32_t classes;
} table[] = {
	/* Locks of programs: glibc, musl, Go, Java, Rust, C++. */
	{"*pthread_mutex_*lock*", false, FR_CODE_LOCK},
	{"*pthread_rwlock_*lock*", false, FR_CODE_LOCK},
	{"*pthread_spin_lock", false, FR_CODE_LOCK | FR_CODE_SPIN},
	{"*pthread_mutex_cond_lock*", false, FR_CODE_LOCK},
	{"*lll_lock_wait*", false, FR_CODE_LOCK},
	{"__lock", false, FR_CODE_LOCK},
	{"sync.(*Mutex).*ock*", false, FR_CODE_LOCK},
	{"sync.(*RWMutex).*ock", false, FR_CODE_LOCK},
	{"ObjectMonitor::enter*", false, FR_CODE_LOCK},
	{"*futex*Mutex*lock_contended*", false, FR_CODE_LOCK},
	{"*parking_lot*lock_slow*", false, FR_CODE_LOCK},
	{"take_gil", false, FR_CODE_LOCK}, /* Python's other locks are also its queues */
	/* Locks of the kernel. */
	{"*mutex_lock*", true, FR_CODE_LOCK},
	{"rt_mutex_*lock*", true, FR_CODE_LOCK},
	{"rwsem_down_*", true, FR_CODE_LOCK},
	{"down_read*", true, FR_CODE_LOCK},
	{"down_write*", true, FR_CODE_LOCK},
	{"__down*", true, FR_CODE_LOCK},
	{"percpu_rwsem_wait", true, FR_CODE_LOCK},
	{"futex_lock_pi*", true, FR_CODE_LOCK},
	{"flock_lock_inode_wait", true, FR_CODE_LOCK},
	{"locks_lock_inode_wait", true, FR_CODE_LOCK},
	{"posix_lock_inode_wait", true, FR_CODE_LOCK},
	{"fcntl_setlk*", true, FR_CODE_LOCK},
	{"native_queued_spin_lock_slowpath", true, FR_CODE_SPIN},
	{"queued_*_lock_slowpath", true, FR_CODE_SPIN},
	{"*pv_queued_spin_lock_slowpath", true, FR_CODE_SPIN},
	{"osq_lock", true, FR_CODE_SPIN},
	/* Disks. */
	{"io_schedule*", true, FR_CODE_DISK},
	{"folio_wait_bit*", true, FR_CODE_DISK},
	{"wait_on_page_bit*", true, FR_CODE_DISK},
	{"folio_wait_writeback*", true, FR_CODE_DISK},
	{"submit_bio_wait", true, FR_CODE_DISK},
	{"blk_mq_get_tag", true, FR_CODE_DISK},
	{"rq_qos_wait", true, FR_CODE_DISK},
	{"__wait_on_buffer", true, FR_CODE_DISK},
	{"jbd2_log_wait_commit", true, FR_CODE_DISK},
	{"jbd2_journal_commit_transaction", true, FR_CODE_DISK},
	{"*wait_transaction_locked", true, FR_CODE_DISK},
	{"xlog_wait*", true, FR_CODE_DISK},
	{"xfs_log_force*", true, FR_CODE_DISK},
	{"btrfs_wait_*", true, FR_CODE_DISK},
	{"balance_dirty_pages*", true, FR_CODE_DISK},
	{"blkdev_issue_flush", true, FR_CODE_DISK},
	{"wait_for_completion_io*", true, FR_CODE_DISK},
	{"__iomap_dio_rw", true, FR_CODE_DISK},
	{"*blkdev_direct_IO*", true, FR_CODE_DISK},
	/* File systems that are a server. */
	{"request_wait_answer", true, FR_CODE_SERVER},
	{"fuse_*", true, FR_CODE_SERVER},
	{"rpc_wait_bit_killable", true, FR_CODE_SERVER},
	{"nfs_*", true, FR_CODE_SERVER},
	{"nfs4_*", true, FR_CODE_SERVER},
	{"cifs_*", true, FR_CODE_SERVER},
	{"wait_for_response", true, FR_CODE_SERVER},
	{"p9_client_rpc", true, FR_CODE_SERVER},
	/* Memory. */
	{"try_to_free_pages", true, FR_CODE_RECLAIM},
	{"try_to_free_mem_cgroup_pages", true, FR_CODE_RECLAIM | FR_CODE_CGROUP_RECLAIM},
	{"*mem_cgroup_handle_over_high", true, FR_CODE_RECLAIM | FR_CODE_CGROUP_RECLAIM},
	{"reclaim_high*", true, FR_CODE_RECLAIM | FR_CODE_CGROUP_RECLAIM},
	{"mem_cgroup_out_of_memory", true, FR_CODE_RECLAIM | FR_CODE_CGROUP_RECLAIM},
	{"do_try_to_free_pages", true, FR_CODE_RECLAIM},
	{"shrink_node*", true, FR_CODE_RECLAIM},
	{"balance_pgdat", true, FR_CODE_RECLAIM},
	{"throttle_direct_reclaim", true, FR_CODE_RECLAIM},
	{"reclaim_throttle", true, FR_CODE_RECLAIM},
	{"*compact_zone*", true, FR_CODE_RECLAIM},
	{"do_swap_page", true, FR_CODE_SWAP},
	{"swap_read*", true, FR_CODE_SWAP},
	{"*exc_page_fault", true, FR_CODE_FAULT},
	{"do_user_addr_fault", true, FR_CODE_FAULT},
	{"handle_mm_fault", true, FR_CODE_FAULT},
	{"el0_da", true, FR_CODE_FAULT},
	/* Timers and signals. */
	{"*sys_timer_settime", true, FR_CODE_TIMER},
	{"*sys_timerfd_settime", true, FR_CODE_TIMER},
	{"*sys_setitimer", true, FR_CODE_TIMER},
	{"timerfd_read*", true, FR_CODE_TIMER},
	{"hrtimer_*", true, FR_CODE_TIMER},
	{"__hrtimer_*", true, FR_CODE_TIMER},
	{"posix_timer_*", true, FR_CODE_TIMER},
	{"posixtimer_*", true, FR_CODE_TIMER},
	{"it_real_fn", true, FR_CODE_TIMER},
	{"call_timer_fn", true, FR_CODE_TIMER},
	{"run_timer_softirq", true, FR_CODE_TIMER},
	{"timers_dead_cpu", true, FR_CODE_TIMER},
	{"*sysvec_apic_timer_interrupt", true, FR_CODE_TIMER | FR_CODE_INTERRUPT},
	{"do_nanosleep", true, FR_CODE_TIMER | FR_CODE_SLEEP},
	{"hrtimer_nanosleep", true, FR_CODE_TIMER | FR_CODE_SLEEP},
	{"*sys_clock_nanosleep*", true, FR_CODE_TIMER | FR_CODE_SLEEP},
	{"*sys_nanosleep*", true, FR_CODE_TIMER | FR_CODE_SLEEP},
	{"msleep*", true, FR_CODE_SLEEP},
	{"usleep_range*", true, FR_CODE_SLEEP},
	{"schedule_timeout_*", true, FR_CODE_SLEEP},
	{"get_signal", true, FR_CODE_SIGNAL},
	{"arch_do_signal_or_restart", true, FR_CODE_SIGNAL},
	{"*sys_rt_sigreturn", true, FR_CODE_SIGNAL},
	{"*sys_tgkill", true, FR_CODE_SIGNAL},
	{"*sys_kill", true, FR_CODE_SIGNAL},
	/* Processes. */
	{"kernel_clone", true, FR_CODE_FORK},
	{"copy_process", true, FR_CODE_FORK},
	{"ret_from_fork*", true, 0},
	{"schedule_tail", true, FR_CODE_FORK},
	{"do_execveat_common*", true, FR_CODE_FORK},
	{"bprm_execve", true, FR_CODE_FORK},
	{"do_exit", true, FR_CODE_FORK},
	{"do_group_exit", true, FR_CODE_FORK},
	{"exit_mmap", true, FR_CODE_FORK},
	{"release_task", true, FR_CODE_FORK},
	/* Networks. */
	{"tcp_*", true, FR_CODE_NETWORK},
	{"__tcp_*", true, FR_CODE_NETWORK},
	{"udp_*", true, FR_CODE_NETWORK},
	{"sk_wait_data", true, FR_CODE_NETWORK},
	{"inet_*", true, FR_CODE_NETWORK},
	{"net_rx_action", true, FR_CODE_NETWORK},
	{"net_tx_action", true, FR_CODE_NETWORK},
	{"ip_*", true, FR_CODE_NETWORK},
	{"ip6_*", true, FR_CODE_NETWORK},
	{"__netif_receive_skb*", true, FR_CODE_NETWORK},
	/* A full pipe or socket. */
	{"*pipe_write", true, FR_CODE_PEER},
	{"sk_stream_wait_memory", true, FR_CODE_PEER},
	{"sock_alloc_send_pskb", true, FR_CODE_PEER},
	{"unix_wait_for_peer", true, FR_CODE_PEER},
	/* Waiting for work, or for what the stack does not say. */
	{"futex_wait*", true, FR_CODE_FUTEX},
	{"__futex_wait*", true, FR_CODE_FUTEX},
	{"wait_for_vfork_done", true, FR_CODE_CHILD},
	{"do_epoll_wait", true, FR_CODE_IDLE},
	{"ep_poll", true, FR_CODE_IDLE},
	{"poll_schedule_timeout*", true, FR_CODE_IDLE},
	{"do_wait", true, FR_CODE_IDLE | FR_CODE_CHILD},
	{"*pipe_read", true, FR_CODE_IDLE},
	{"*sys_pause", true, FR_CODE_IDLE | FR_CODE_SIGNAL},
	{"*sigsuspend*", true, FR_CODE_IDLE | FR_CODE_SIGNAL},
	{"do_sigtimedwait*", true, FR_CODE_IDLE | FR_CODE_SIGNAL},
	{"signalfd_read*", true, FR_CODE_IDLE | FR_CODE_SIGNAL},
	{"worker_thread", true, FR_CODE_IDLE},
	{"smpboot_thread_fn", true, FR_CODE_IDLE},
	{"kthread_worker_fn", true, FR_CODE_IDLE},
	{"n_tty_read", true, FR_CODE_IDLE},
	{"*accept*", true, FR_CODE_IDLE},
	/* Entries of the kernel. */
	{"kthread", true, FR_CODE_KERNEL},
	{"entry_SYSCALL_64*", true, FR_CODE_SYSCALL},
	{"el0_svc", true, FR_CODE_SYSCALL},
	{"do_syscall_64", true, FR_CODE_SYSCALL},
	{"*irqentry_exit*", true, FR_CODE_INTERRUPT},
	{"*sysvec_*", true, FR_CODE_INTERRUPT},
	{"*common_interrupt", true, FR_CODE_INTERRUPT},
	{"__do_softirq", true, FR_CODE_INTERRUPT},
	{"handle_softirqs", true, FR_CODE_INTERRUPT},
};

static uint32_t classify(const struct fr_frames *frames, uint32_t frame)
{
	const struct fr_frame *f = fr_frames_get(frames, frame);
	const enum fr_object_kind kind = fr_frames_object(frames, f->object)->kind;
	const bool kernel = kind == FR_OBJECT_KERNEL || kind == FR_OBJECT_MODULE;
	_cleanup_free_ char *name = NULL;
	uint32_t classes = 0;

	if (!f->is_known)
		return 0;
	/* C++ names contain dots only in "...", which no pattern needs. */
	name = strndup(f->name, kernel ? strcspn(f->name, ".") : strlen(f->name));
	for (size_t i = 0; name && i < FR_ARRAY_SIZE(table); i++)
		if (table[i].kernel == kernel && fnmatch(table[i].pattern, name, 0) == 0)
			classes |= table[i].classes;
	return classes;
}

/* Makes room for N numbers of 4 bytes; the new ones are 0. */
static int make_room(struct fr_buf *b, size_t n)
{
	return n * sizeof(uint32_t) > b->len ? fr_buf_append_zero(b, n * sizeof(uint32_t) - b->len) : 0;
}

static uint32_t *find_of_frame(struct fr_classes *c, const struct fr_profile *p, uint32_t frame)
{
	uint32_t *known;

	if (make_room(&c->of_frame, fr_frames_n(fr_profile_frames(p))) < 0)
		return NULL;
	known = (uint32_t *)c->of_frame.data + frame;
	if (!*known)
		*known = KNOWN | classify(fr_profile_frames(p), frame);
	return known;
}

int fr_classes_of_stack(struct fr_classes *c, const struct fr_profile *p, uint32_t stack, uint32_t *ret)
{
	const struct fr_stacks *stacks = fr_profile_stacks(p);
	uint32_t sum = 0, *of_stack, *of_frame;

	*ret = 0;
	if (stack == FR_STACK_NONE)
		return 0;
	if (make_room(&c->of_stack, stacks->n) < 0)
		return -ENOMEM;
	of_stack = (uint32_t *)c->of_stack.data;
	for (uint32_t i = stack; i != FR_STACK_NONE; i = stacks->nodes[i].parent) {
		if (of_stack[i]) {
			sum |= of_stack[i];
			break;
		}
		of_frame = find_of_frame(c, p, stacks->nodes[i].frame);
		if (!of_frame)
			return -ENOMEM;
		sum |= *of_frame;
	}
	of_stack[stack] = sum | KNOWN;
	*ret = sum & ~KNOWN;
	return 0;
}

void fr_classes_deinit(struct fr_classes *c)
{
	fr_buf_deinit(&c->of_frame);
	fr_buf_deinit(&c->of_stack);
}
