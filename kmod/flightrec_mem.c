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
 * the header of the memory, and only to see whether flightrecd of this boot
 * uses it: what an earlier boot has left there does not change.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cc_platform.h>
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
#include <linux/uuid.h>
#ifdef HAVE_FIRMWARE_MAP
#include <asm/e820/api.h>
#endif

#include "flightrec/crashmem.h"

#define SIZE_LEAST	(4UL << 20)
#define LOG_MAX		(FLIGHTREC_CRASHMEM_RECORD_BYTES - sizeof(struct flightrec_crash_record))
static_assert(sizeof(unsigned long) == sizeof(u64)); /* pt_regs, stack_trace_save() */

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
/* The record is made here, because any program that maps the memory can change it there. */
static struct flightrec_crash_record record;
static char boot_id[FLIGHTREC_CRASHMEM_BOOT_ID];	/* empty: not known */

/* The newest oops. */
static struct {
	const struct task_struct *task;	/* NULL: none */
	u64 task_start;
	struct pt_regs regs;
	char text[64];
} fault;

/* CRC-32C. The kernel's may use the registers of the FPU, and its name changes. */
static u32 crc_add(u32 crc, const void *data, size_t len)
{
	static const u32 table[16] = {
		0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1,
		0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
		0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
		0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
	};
	const u8 *p = data;

	while (len--) {
		crc ^= *p++;
		crc = crc >> 4 ^ table[crc & 15];
		crc = crc >> 4 ^ table[crc & 15];
	}
	return crc;
}

/* Returns whether flightrecd of this boot uses the memory. */
static bool is_used(void)
{
	const struct flightrec_crashmem_header *h = range;
	const size_t crc_bytes = offsetof(typeof(*h), use) - offsetof(typeof(*h), bytes);

	return h->magic == FLIGHTREC_CRASHMEM_MAGIC &&
	       h->version == FLIGHTREC_CRASHMEM_VERSION && h->bytes <= range_bytes &&
	       h->crc == ~crc_add(~0U, &h->bytes, crc_bytes) &&
	       (!boot_id[0] || !strncmp(h->boot_id, boot_id, sizeof(boot_id)));
}

static void write_back(void *at, size_t len)
{
#ifdef CONFIG_ARCH_HAS_PMEM_API
	arch_wb_cache_pmem(at, len);
#endif
	wmb(); /* the caches are written back before what follows */
}

/* Copies the record to the memory. LOG_BYTES of log are there. */
static void publish(size_t log_bytes)
{
	struct flightrec_crash_record *r = range + FLIGHTREC_CRASHMEM_RECORD;
	u32 crc;

	record.version = FLIGHTREC_CRASH_RECORD_VERSION;
	record.log_bytes = log_bytes;
	crc = crc_add(~0U, &record.kind, sizeof(record) - offsetof(typeof(record), kind));
	record.crc = ~crc_add(crc, r + 1, log_bytes);
	record.magic = 0;
	memcpy(r, &record, sizeof(*r));
	wmb(); /* the magic comes last */
	WRITE_ONCE(r->magic, FLIGHTREC_CRASH_RECORD_MAGIC);
	write_back(r, sizeof(*r) + log_bytes);
}

static void add_registers(const struct pt_regs *regs, u32 of)
{
	const size_t n = min(sizeof(*regs), sizeof(record.registers));

	memcpy(record.registers, regs, n);
	record.n_registers = n / sizeof(record.registers[0]);
	record.registers_of = of;
}

static void write_record(u32 kind, const char *reason)
{
	const bool is_fault = fault.task == current && fault.task_start == current->start_time;

	memset(&record, 0, sizeof(record));
	record.kind = kind;
	record.monotonic_ns = ktime_get_mono_fast_ns();
	record.realtime_ns = ktime_get_real_fast_ns();
	record.cpu = raw_smp_processor_id();
	record.pid = current->tgid;
	record.tid = current->pid;
	strscpy(record.reason, reason, sizeof(record.reason));
	if (kind == FLIGHTREC_CRASH_PANIC && is_fault)
		scnprintf(record.reason, sizeof(record.reason), "%s (%s)", reason, fault.text);
	strscpy(record.comm, current->comm, sizeof(record.comm));
	strscpy(record.release, init_uts_ns.name.release, sizeof(record.release));
	if (is_fault)
		add_registers(&fault.regs, FLIGHTREC_CRASH_REGISTERS_FAULT);
	else if (!(current->flags & PF_KTHREAD))
		add_registers(task_pt_regs(current), FLIGHTREC_CRASH_REGISTERS_USER);
	record.n_stack = stack_trace_save((unsigned long *)record.stack, FLIGHTREC_CRASH_STACK, 1);
	publish(0);
}

/* The other CPUs are stopped. */
static int on_panic(struct notifier_block *nb, unsigned long event, void *reason)
{
	if (is_used()) {
		panicking = true;
		write_record(FLIGHTREC_CRASH_PANIC, reason ?: "");
		write_back(range, range_bytes);
	}
	return NOTIFY_DONE;
}

/* After an oops the machine may go on, or panic on this CPU. */
static int on_die(struct notifier_block *nb, unsigned long event, void *data)
{
	const struct die_args *args = data;

	if (event != DIE_OOPS || panicking || !is_used() || test_and_set_bit(0, &writing))
		return NOTIFY_DONE;
	if (args->regs) {
		fault.task = current;
		fault.task_start = current->start_time;
		fault.regs = *args->regs;
		strscpy(fault.text, args->str ?: "", sizeof(fault.text));
	}
	write_record(FLIGHTREC_CRASH_OOPS, args->str ?: "");
	clear_bit_unlock(0, &writing);
	return NOTIFY_DONE;
}

/* The kernel calls this after the notifiers. Until then, the record has no log. */
static void add_log(bool is_panic)
{
	char *log = range + FLIGHTREC_CRASHMEM_RECORD + sizeof(record);
	struct kmsg_dump_iter iter;
	size_t len = 0;

	if (!is_panic && (panicking || test_and_set_bit(0, &writing)))
		return;
	if (record.kind && is_used()) {
		if (record.log_bytes)
			publish(0); /* the new log destroys the old one */
		kmsg_dump_rewind(&iter);
		if (kmsg_dump_get_buffer(&iter, false, log, LOG_MAX, &len))
			publish(len);
	}
	if (!is_panic)
		clear_bit_unlock(0, &writing);
}

#ifdef HAVE_KMSG_DUMP_DETAIL
static void on_kmsg_dump(struct kmsg_dumper *dumper, struct kmsg_dump_detail *detail)
{
	add_log(detail->reason == KMSG_DUMP_PANIC);
}
#else
static void on_kmsg_dump(struct kmsg_dumper *dumper, enum kmsg_dump_reason reason)
{
	add_log(reason == KMSG_DUMP_PANIC);
}
#endif

/* Before the notifiers that wait for hardware. */
static struct notifier_block panic_block = { .notifier_call = on_panic, .priority = 1000 };
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
	if (has_region)
		vma->vm_page_prot = pgprot_decrypted(vma->vm_page_prot);
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

#ifdef HAVE_FIRMWARE_MAP
static bool is_memory_at(phys_addr_t at)
{
	return e820__mapped_raw_any(at, at + 1, E820_TYPE_RAM) ||
	       e820__mapped_raw_any(at, at + 1, E820_TYPE_PRAM) ||
	       e820__mapped_raw_any(at, at + 1, E820_TYPE_PMEM) ||
	       e820__mapped_raw_any(at, at + 1, E820_TYPE_SOFT_RESERVED);
}

/* The firmware's map tells RAM from the registers of devices. memmap= does not change this map. */
static bool is_memory(void)
{
	phys_addr_t at;

	for (at = range_start; at < range_start + range_bytes; at += PAGE_SIZE)
		if (!is_memory_at(at) || !is_memory_at(at + PAGE_SIZE - 1))
			return false;
	return true;
}
#else
/* This kernel does not tell: use reserve_name=. */
static inline bool is_memory(void) { return false; }
#endif

static int take_named(void)
{
#ifdef HAVE_RESERVE_MEM
	phys_addr_t start, bytes;

	if (reserve_mem_find_by_name(reserve_name, &start, &bytes)) {
		range_start = start;
		range_bytes = round_down(bytes, PAGE_SIZE);
		return PAGE_ALIGNED(start) ? 0 : -EINVAL;
	}
#endif
	pr_err("no range has the name %s: boot with reserve_mem=SIZE:4096:%s (Linux 6.12)\n",
	       reserve_name, reserve_name);
	return -ENOENT;
}

static int take_address(void)
{
	char *address_end, *size_end;

	if (!address || !size) {
		pr_err("give address= and size= of a range of memmap=, or reserve_name=\n");
		return -EINVAL;
	}
	range_start = memparse(address, &address_end);
	range_bytes = memparse(size, &size_end);
	if (*address_end || *size_end || !PAGE_ALIGNED(range_start | range_bytes) ||
	    range_start + range_bytes < range_start) {
		pr_err("address=%s size=%s are not whole pages\n", address, size);
		return -EINVAL;
	}
	if (region_intersects(range_start, range_bytes, IORESOURCE_SYSTEM_RAM,
			      IORES_DESC_NONE) != REGION_DISJOINT) {
		pr_err("the kernel uses this range as RAM: boot with memmap=%s$%s\n",
		       size, address);
		return -EBUSY;
	}
	if (!is_memory() || cc_platform_has(CC_ATTR_GUEST_MEM_ENCRYPT)) {
		pr_err("no map of the firmware has memory at %s; or try reserve_name=\n", address);
		return -ENXIO;
	}
	if (!request_mem_region(range_start, range_bytes, KBUILD_MODNAME)) {
		pr_err("another driver has this range: see /proc/iomem\n");
		return -EBUSY;
	}
	has_region = true;
	return 0;
}

/* The boot id as programs write it into the header. */
static void read_boot_id(void)
{
	struct file *file = filp_open("/proc/sys/kernel/random/boot_id", O_RDONLY, 0);
	char text[UUID_STRING_LEN], *to = boot_id;
	loff_t position = 0;
	ssize_t i, n;

	if (IS_ERR(file))
		return;
	n = kernel_read(file, text, sizeof(text), &position);
	filp_close(file, NULL);
	for (i = 0; i < n; i++)
		if (text[i] != '-')
			*to++ = text[i];
}

static void release_range(void)
{
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
		range = memremap(range_start, range_bytes,
				 has_region ? MEMREMAP_WB | MEMREMAP_DEC : MEMREMAP_WB);
		r = range ? 0 : -ENOMEM;
	}
	if (r == 0)
		r = misc_register(&device);
	if (r) {
		release_range();
		return r;
	}
	read_boot_id();
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
