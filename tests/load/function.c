/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Functions and static markers (USDT) for probes. The program waits for a line on standard input, so that a
 * probe can be armed first. Then it runs the commands in its arguments, one after the other. MS is how long a
 * command sleeps:
 *
 *     call MS         call fr_function_slow(), which sleeps
 *     thread MS       call fr_function_slow() in a new thread
 *     static MS       call a static function of function.c, which sleeps
 *     other MS        call a static function of function_other.c, which has the same name and sleeps
 *     recurse N MS    make N nested calls of fr_function_recursive(), of which the innermost sleeps
 *     leave MS        start a thread that sleeps in fr_function_slow(), and exits before it returns
 *     jump MS         leave 20 calls by longjmp(), sleep, then make a call that returns at once
 *     catch MS        make a call that sleeps; in it, make another call and leave that one by longjmp()
 *     markers MS      pass the marker frtest:begin, sleep, pass the marker frtest:end
 *     lost MS         pass the marker frtest:begin, sleep, then do "markers 0"
 *     bench N         call N times a function that does nothing; print the CPU time of one call in ns
 */

#include "function.h"
#include "load.h"

#include <pthread.h>
#include <setjmp.h>

static jmp_buf outside;
static pid_t last_tid;
enum how { RETURN, LEAVE, JUMP, CATCH };

/* The code that <sys/sdt.h> makes for a marker without arguments:
   https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation */
#define MARKER(name)                                                                                         \
	__asm__ volatile("990: nop\n"                                                                        \
			 ".pushsection .note.stapsdt,\"\",\"note\"\n"                                        \
			 ".balign 4\n.4byte 992f-991f, 994f-993f, 3\n"                                       \
			 "991: .asciz \"stapsdt\"\n992: .balign 4\n"                                         \
			 "993: .8byte 990b, _.stapsdt.base, fr_function_semaphore\n"                         \
			 ".asciz \"frtest\"\n.asciz \"" name "\"\n.asciz \"\"\n994: .balign 4\n"             \
			 ".popsection\n"                                                                     \
			 ".ifndef _.stapsdt.base\n"                                                          \
			 ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"             \
			 ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n"                                    \
			 "_.stapsdt.base: .space 1\n.size _.stapsdt.base, 1\n.popsection\n.endif\n")

__attribute__((section(".probes"), used)) volatile unsigned short fr_function_semaphore;

void fr_function_slow(uint64_t ms, int how);
void fr_function_recursive(uint64_t n, uint64_t ms);
void fr_function_quick(void);

FR_LOAD_FRAME void fr_function_slow(uint64_t ms, int how)
{
	if (ms)
		fr_load_sleep_ms(ms);
	if (how == LEAVE)
		pthread_exit(NULL);
	if (how == JUMP)
		longjmp(outside, 1);
	if (how == CATCH && setjmp(outside) == 0)
		fr_function_slow(0, JUMP);
}

FR_LOAD_FRAME static void fr_function_static(uint64_t ms)
{
	fr_load_sleep_ms(ms);
	__asm__ volatile("");
}

FR_LOAD_FRAME void fr_function_recursive(uint64_t n, uint64_t ms)
{
	if (n > 1)
		fr_function_recursive(n - 1, ms);
	else
		fr_load_sleep_ms(ms);
	__asm__ volatile("");
}

FR_LOAD_FRAME void fr_function_quick(void)
{
	__asm__ volatile("");
}

static uint64_t thread_ms;
static enum how thread_how;

static void *thread(void *arg)
{
	last_tid = gettid();
	fr_function_slow(thread_ms, thread_how);
	return NULL;
}

static void run_thread(uint64_t ms, enum how how)
{
	pthread_t t;

	thread_ms = ms;
	thread_how = how;
	if (pthread_create(&t, NULL, thread, NULL) || pthread_join(t, NULL)) {
		fprintf(stderr, "no thread\n");
		exit(1);
	}
}

static void jump(uint64_t ms)
{
	for (volatile int i = 0; i < 20; i++)
		if (setjmp(outside) == 0)
			fr_function_slow(0, JUMP);
	fr_load_sleep_ms(ms);
	fr_function_slow(0, RETURN);
}

static void markers(uint64_t before_ms, uint64_t within_ms)
{
	if (before_ms) {
		fr_function_mark_begin();
		fr_load_sleep_ms(before_ms);
	}
	fr_function_mark_begin();
	fr_load_sleep_ms(within_ms);
	MARKER("end");
}

FR_LOAD_FRAME void fr_function_mark_begin(void)
{
	MARKER("begin");
}

static void bench(uint64_t n)
{
	uint64_t begin = fr_load_cpu_ns();

	for (uint64_t i = 0; i < n; i++)
		fr_function_quick();
	printf("\"ns\": %.1f, ", (double)(fr_load_cpu_ns() - begin) / (double)n);
}

/* Returns the offset of fr_function_slow() in the file of this program, with the help of /proc/self/maps. */
static uint64_t offset_in_file(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	uint64_t begin, end, offset, at = (uintptr_t)fr_function_slow, found = 0;
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, &begin, &end, &offset) == 3 &&
			at >= begin && at < end)
			found = at - begin + offset;
	if (f)
		fclose(f);
	return found;
}

static uint64_t number(const char *s)
{
	return s ? strtoull(s, NULL, 10) : 0;
}

static int run(char **argv)
{
	for (; *argv; argv++) {
		const char *verb = *argv;
		uint64_t n = number(argv[1]);

		if (!argv[1])
			return 2;
		argv++;
		last_tid = gettid();
		if (!strcmp(verb, "call"))
			fr_function_slow(n, RETURN);
		else if (!strcmp(verb, "thread"))
			run_thread(n, RETURN);
		else if (!strcmp(verb, "static"))
			fr_function_static(n);
		else if (!strcmp(verb, "other"))
			fr_function_other(n);
		else if (!strcmp(verb, "recurse") && argv[1])
			fr_function_recursive(n, number(*++argv));
		else if (!strcmp(verb, "leave"))
			run_thread(n, LEAVE);
		else if (!strcmp(verb, "jump"))
			jump(n);
		else if (!strcmp(verb, "catch"))
			fr_function_slow(n, CATCH);
		else if (!strcmp(verb, "markers"))
			markers(0, n);
		else if (!strcmp(verb, "lost"))
			markers(n, 0);
		else if (!strcmp(verb, "bench"))
			bench(n);
		else
			return 2;
	}
	return 0;
}

int main(int argc, char *argv[])
{
	char line[16];

	if (!fgets(line, sizeof(line), stdin))
		return 1;
	printf("{");
	if (run(argv + 1)) {
		fprintf(stderr, "usage: %s VERB NUMBER ...\n", argv[0]);
		return 2;
	}
	printf("\"pid\": %d, \"tid\": %d, \"semaphore\": %d, \"offset\": %" PRIu64 "}\n", (int)getpid(),
		(int)last_tid, fr_function_semaphore, offset_in_file());
	return 0;
}
