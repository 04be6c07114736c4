// SPDX-License-Identifier: GPL-2.0
/*
 * Lets the kernel crash, for tests in a virtual machine:
 *
 *   insmod flightrec_crash.ko kind=oops        a bad pointer in a task
 *                             kind=interrupt   a bad pointer in an interrupt
 *                             kind=softlockup  a task that never gives its CPU back
 */
#include <linux/irq_work.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/processor.h>
#include <linux/string.h>

static char *kind = "";
module_param(kind, charp, 0444);

static int *bad_pointer;

static noinline void flightrec_crash_here(struct irq_work *work)
{
	WRITE_ONCE(*READ_ONCE(bad_pointer), 1);
}

static noinline void flightrec_crash_loop(void)
{
	preempt_disable();
	for (;;)
		cpu_relax();
}

static int __init flightrec_crash_init(void)
{
	static struct irq_work work;

	if (!strcmp(kind, "oops"))
		flightrec_crash_here(NULL);
	if (!strcmp(kind, "softlockup"))
		flightrec_crash_loop();
	if (!strcmp(kind, "interrupt")) {
		init_irq_work(&work, flightrec_crash_here);
		irq_work_queue(&work);
		irq_work_sync(&work);
	}
	return -EINVAL;
}

module_init(flightrec_crash_init);
MODULE_DESCRIPTION("crashes for the tests of flightrec");
MODULE_LICENSE("GPL");
