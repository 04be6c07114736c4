// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/flightrec_mem: a range of physical memory that survives a restart of the
 * machine. flightrecd maps the device and keeps its ring there (RingMemory=).
 * When the kernel panics or has an oops, this module adds a crash record:
 * reason, task, registers, stack, and the newest lines of the kernel log.
 *
 * Load it with one of
 *   address=0x100000000 size=64M	memmap=64M$0x100000000 took the range out of
 *					the RAM of the kernel
 *   reserve_name=flightrec		reserve_mem=64M:4096:flightrec (Linux 6.12)
 *
 * The layout of the memory is in flightrec/crashmem.h. The module reads only
 * the header of the memory, and only to see whether flightrecd uses it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/crc32.h>
#include <linux/fs.h>
#include <linux/io.h>
#include <linux/ioport.h>
#include <linux/kdebug.h>
#include <linux/kmsg_dump.h>
#include <linux/libnvdimm.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/panic_notifier.h>
#include <linux/sched/task_stack.h>
#include <linux/stacktrace.h>
#include <linux/timekeeping.h>
#include <linux/utsname.h>
#include <linux/version.h>
#ifdef CONFIG_X86
#include <asm/e820/api.h>
#endif

#include "flightrec/crashmem.h"

#define SIZE_LEAST	(4UL << 20)
#define LOG_MAX		(FLIGHTREC_CRASHMEM_RECORD_BYTES - sizeof(struct flightrec_crash_record))

static char *address;
module_param(address, charp, 0444);
MODULE_PARM_DESC(address, "physical address of the range, which memmap= took out of RAM");
static char *size;
module_param(size, charp, 0444);
MODULE_PARM_DESC(size, "size of the range: 67108864, 64M");
static char *reserve_name;
module_param(reserve_name, charp, 0444);
MODULE_PARM_DESC(reserve_name, "name of a range of reserve_mem= (Linux 6.12)");

static phys_addr_t range_start;
static size_t range_bytes;
static void *range;
static bool has_region;

/* One CPU at a time writes the record. A panic waits for nobody. */
static unsigned long writing;
static bool panicking;
static struct pt_regs fault_regs;
static int fault_cpu = -1;

static u32 crc_of(const void *data, size_t len)
{
	return ~__crc32c_le(~0U, data, len);
}

static struct flightrec_crash_record *record_area(void)
{
	return range + FLIGHTREC_CRASHMEM_RECORD;
}

/* Returns whether flightrecd uses the memory. */
static bool is_used(void)
{
	const struct flightrec_crashmem_header *h = range;
	const size_t from = offsetof(struct flightrec_crashmem_header, bytes);
	const size_t to = offsetof(struct flightrec_crashmem_header, use);

	return h->magic == FLIGHTREC_CRASHMEM_MAGIC &&
	       h->version == FLIGHTREC_CRASHMEM_VERSION && h->bytes <= range_bytes &&
	       h->crc == crc_of((const u8 *)h + from, to - from);
}

static void write_back(void *at, size_t len)
{
#ifdef CONFIG_ARCH_HAS_PMEM_API
	arch_wb_cache_pmem(at, len);
#endif
}

/* Makes the record valid, with LOG_BYTES of log. */
static void finish_record(struct flightrec_crash_record *r, size_t log_bytes)
{
	const size_t from = offsetof(struct flightrec_crash_record, kind);

	r->log_bytes = log_bytes;
	r->version = FLIGHTREC_CRASH_RECORD_VERSION;
	r->crc = crc_of((const u8 *)r + from, sizeof(*r) - from + log_bytes);
	wmb(); /* the magic comes last */
	WRITE_ONCE(r->magic, FLIGHTREC_CRASH_RECORD_MAGIC);
	wmb(); /* and before the caches are written back */
}

static void add_registers(struct flightrec_crash_record *r, const struct pt_regs *regs, u32 of)
{
	const size_t n = min(sizeof(*regs), sizeof(r->registers));

	memcpy(r->registers, regs, n);
	r->n_registers = n / sizeof(r->registers[0]);
	r->registers_of = of;
}

static void add_stack(struct flightrec_crash_record *r)
{
	static unsigned long stack[FLIGHTREC_CRASH_STACK];
	unsigned int n = stack_trace_save(stack, FLIGHTREC_CRASH_STACK, 2);

	for (r->n_stack = 0; r->n_stack < n; r->n_stack++)
		r->stack[r->n_stack] = stack[r->n_stack];
}

static void write_record(u32 kind, const char *reason)
{
	struct flightrec_crash_record *r = record_area();
	const int cpu = raw_smp_processor_id();

	WRITE_ONCE(r->magic, 0);
	wmb(); /* no reader believes the record while it changes */
	memset((u8 *)r + sizeof(r->magic), 0, sizeof(*r) - sizeof(r->magic));
	r->kind = kind;
	r->monotonic_ns = ktime_get_mono_fast_ns();
	r->realtime_ns = ktime_get_real_fast_ns();
	r->cpu = cpu;
	r->pid = current->tgid;
	r->tid = current->pid;
	strscpy(r->reason, reason, sizeof(r->reason));
	strscpy(r->comm, current->comm, sizeof(r->comm));
	strscpy(r->release, init_uts_ns.name.release, sizeof(r->release));
	if (fault_cpu == cpu)
		add_registers(r, &fault_regs, FLIGHTREC_CRASH_REGISTERS_FAULT);
	else if (!(current->flags & PF_KTHREAD))
		add_registers(r, task_pt_regs(current), FLIGHTREC_CRASH_REGISTERS_USER);
	add_stack(r);
	finish_record(r, 0);
	write_back(r, sizeof(*r));
}

static int on_panic(struct notifier_block *nb, unsigned long event, void *reason)
{
	if (!is_used())
		return NOTIFY_DONE;
	panicking = true;
	write_record(FLIGHTREC_CRASH_PANIC, reason ? reason : "");
	return NOTIFY_DONE;
}

/* After an oops the machine may go on, or panic on this CPU. */
static int on_die(struct notifier_block *nb, unsigned long event, void *data)
{
	const struct die_args *args = data;

	if (event != DIE_OOPS || panicking || !is_used() || test_and_set_bit(0, &writing))
		return NOTIFY_DONE;
	if (args->regs) {
		fault_regs = *args->regs;
		fault_cpu = raw_smp_processor_id();
	}
	write_record(FLIGHTREC_CRASH_OOPS, args->str ? args->str : "");
	clear_bit(0, &writing);
	return NOTIFY_DONE;
}

/* The kernel calls this after the notifiers. */
static void add_log(enum kmsg_dump_reason reason)
{
	struct flightrec_crash_record *r = record_area();
	struct kmsg_dump_iter iter;
	size_t len = 0;

	if (reason != KMSG_DUMP_PANIC && (panicking || test_and_set_bit(0, &writing)))
		return;
	if (is_used() && READ_ONCE(r->magic) == FLIGHTREC_CRASH_RECORD_MAGIC) {
		WRITE_ONCE(r->magic, 0);
		wmb(); /* no reader believes the record while it changes */
		kmsg_dump_rewind(&iter);
		if (!kmsg_dump_get_buffer(&iter, false, (char *)(r + 1), LOG_MAX, &len))
			len = 0;
		finish_record(r, len);
		if (reason == KMSG_DUMP_PANIC)
			write_back(range, range_bytes);
		else
			write_back(r, sizeof(*r) + len);
	}
	if (reason != KMSG_DUMP_PANIC)
		clear_bit(0, &writing);
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
static void on_kmsg_dump(struct kmsg_dumper *dumper, struct kmsg_dump_detail *detail)
{
	add_log(detail->reason);
}
#else
static void on_kmsg_dump(struct kmsg_dumper *dumper, enum kmsg_dump_reason reason)
{
	add_log(reason);
}
#endif

static struct notifier_block panic_block = { .notifier_call = on_panic };
static struct notifier_block die_block = { .notifier_call = on_die };
static struct kmsg_dumper dumper = { .dump = on_kmsg_dump, .max_reason = KMSG_DUMP_OOPS };

static loff_t mem_llseek(struct file *file, loff_t offset, int whence)
{
	return fixed_size_llseek(file, offset, whence, range_bytes);
}

static int mem_mmap(struct file *file, struct vm_area_struct *vma)
{
	const unsigned long bytes = vma->vm_end - vma->vm_start;
	const unsigned long pages = range_bytes >> PAGE_SHIFT;

	if (!(vma->vm_flags & VM_SHARED) || vma->vm_pgoff > pages ||
	    bytes >> PAGE_SHIFT > pages - vma->vm_pgoff)
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EPERM;
	return remap_pfn_range(vma, vma->vm_start, PHYS_PFN(range_start) + vma->vm_pgoff, bytes,
			       vma->vm_page_prot);
}

static const struct file_operations mem_fops = {
	.owner = THIS_MODULE,
	.llseek = mem_llseek,
	.mmap = mem_mmap,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "flightrec_mem",
	.fops = &mem_fops,
	.mode = 0600,
};

/* The firmware's map tells RAM from the registers of devices. memmap= does not change this map. */
static bool is_memory(void)
{
#ifdef CONFIG_X86
	static const enum e820_type types[] = {
		E820_TYPE_RAM, E820_TYPE_PRAM, E820_TYPE_PMEM, E820_TYPE_SOFT_RESERVED,
	};
	phys_addr_t at;
	size_t i;

	for (at = range_start; at < range_start + range_bytes; at += PAGE_SIZE) {
		for (i = 0; i < ARRAY_SIZE(types); i++)
			if (e820__mapped_raw_any(at, at + PAGE_SIZE, types[i]))
				break;
		if (i == ARRAY_SIZE(types))
			return false;
	}
	return true;
#else
	return false; /* use reserve_name= */
#endif
}

static int take_named(void)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)
	phys_addr_t start, bytes;

	if (reserve_mem_find_by_name(reserve_name, &start, &bytes)) {
		range_start = start;
		range_bytes = round_down(bytes, PAGE_SIZE);
		return 0;
	}
#endif
	pr_err("no range has the name %s: boot with reserve_mem=SIZE:4096:%s (Linux 6.12)\n",
	       reserve_name, reserve_name);
	return -ENOENT;
}

static int take_address(void)
{
	if (!address || !size) {
		pr_err("give address= and size= of a range of memmap=, or reserve_name=\n");
		return -EINVAL;
	}
	range_start = memparse(address, NULL);
	range_bytes = memparse(size, NULL);
	if (!PAGE_ALIGNED(range_start) || !PAGE_ALIGNED(range_bytes) ||
	    range_start + range_bytes < range_start)
		return -EINVAL;
	if (region_intersects(range_start, range_bytes, IORESOURCE_SYSTEM_RAM,
			      IORES_DESC_NONE) != REGION_DISJOINT) {
		pr_err("the kernel uses this range as RAM: boot with memmap=%s$%s\n",
		       size, address);
		return -EBUSY;
	}
	if (!is_memory()) {
		pr_err("the firmware does not say that there is memory at %s\n", address);
		return -ENXIO;
	}
	if (!request_mem_region(range_start, range_bytes, KBUILD_MODNAME)) {
		pr_err("another driver has this range: see /proc/iomem\n");
		return -EBUSY;
	}
	has_region = true;
	return 0;
}

static void release_range(void)
{
	if (range)
		memunmap(range);
	if (has_region)
		release_mem_region(range_start, range_bytes);
}

static int __init flightrec_mem_init(void)
{
	int r = reserve_name ? take_named() : take_address();

	if (r == 0 && range_bytes < SIZE_LEAST) {
		pr_err("the range has %zu bytes, at least %lu are needed\n",
		       range_bytes, SIZE_LEAST);
		r = -EINVAL;
	}
	if (r == 0) {
		range = memremap(range_start, range_bytes, MEMREMAP_WB);
		r = range ? 0 : -ENOMEM;
	}
	if (r == 0)
		r = misc_register(&device);
	if (r) {
		release_range();
		return r;
	}
	atomic_notifier_chain_register(&panic_notifier_list, &panic_block);
	register_die_notifier(&die_block);
	kmsg_dump_register(&dumper);
	pr_info("%zu KiB at %pa\n", range_bytes >> 10, &range_start);
	return 0;
}

static void __exit flightrec_mem_exit(void)
{
	kmsg_dump_unregister(&dumper);
	unregister_die_notifier(&die_block);
	atomic_notifier_chain_unregister(&panic_notifier_list, &panic_block);
	misc_deregister(&device);
	release_range();
}

module_init(flightrec_mem_init);
module_exit(flightrec_mem_exit);
MODULE_DESCRIPTION("memory that survives a crash of the machine, for flightrecd");
MODULE_LICENSE("GPL");
