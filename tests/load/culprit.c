/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Known causes of trouble, for explain. Usage:
 *
 *     frtest-culprit [-t SECONDS] [-f FILE] KIND
 *
 *     hog      one thread computes in culprit_compute()
 *     library  one thread computes in culprit_library_loop(), a function of frtest-culprit-library.so
 *     lock     "holder" has the inner mutex for 300 ms in culprit_hold(), once in a second. "middle" has the
 * outer one and waits for the inner one in culprit_middle(). "victim" waits for the outer one in
 * culprit_serve(). disk     one thread writes to FILE, past the page cache, and syncs it, in culprit_write():
 * run it with a slow disk forks    one thread makes processes that end at once, in culprit_fork() faults one
 * thread maps, touches and unmaps memory, in culprit_touch() timers   a timer fires each 20 µs, and its
 * signal is handled in culprit_tick() memory   one thread fills 64 MiB again and again, and reads FILE, in
 * culprit_fill(): run it with a limit of memory quota    one thread computes in culprit_compute(), in a
 * cgroup with a CPU quota that the caller made quiet    sleeps
 *
 * Kinds without a rule of their own:
 *
 *     spin        two threads wait for each other by a busy loop, in culprit_spin()
 *     fifo        one thread computes on CPU 0 with the priority of real time
 *     child       the program waits for a child that computes; the child is the cause
 *     pipe, peer  the program writes to a pipe, or to a TCP socket, that a child reads slowly; the child is
 * the cause contention  eight threads want one mutex, for 10 ms each cold        one thread reads a mapping
 * of FILE that is not in memory, in culprit_cold(): run it with a slow disk calls       one thread makes
 * system calls that do nothing switches    two processes wake each other packets     one thread sends packets
 * to a socket that nobody reads restarts    a supervisor starts a program that fails, again and again files
 * one thread looks at each file below /usr stuck       a thread waits for a lock, from the start to the end
 *
 * Each prints a line of JSON with its kind, pid and the thread that is the cause.
 */

#include "culprit.h"
#include "load.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#define MEMORY (64u << 20)
#define HOLD_NS 300000000ULL

static uint64_t seconds_ns = 5000000000ULL, end_ns;
static char default_file[] = "frtest-culprit.data";
char *culprit_file = default_file;
volatile uint64_t culprit_sink;
static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER;
pid_t culprit_cause;

bool culprit_is_over(void)
{
	return fr_load_now_ns() >= end_ns;
}

FR_LOAD_FRAME static void culprit_compute(void)
{
	for (unsigned i = 0; i < 1000000; i++)
		culprit_sink += i * culprit_sink;
}

void culprit_hog(void)
{
	while (!culprit_is_over())
		culprit_compute();
}

static void library(void)
{
	char path[4096];
	const ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 32);
	void (*loop)(unsigned n);
	void *handle;

	if (n < 0)
		err(EXIT_FAILURE, "readlink");
	strcpy(path + n, "-library.so");
	handle = dlopen(path, RTLD_NOW);
	loop = handle ? (void (*)(unsigned))dlsym(handle, "culprit_library_loop") : NULL;
	if (!loop)
		errx(EXIT_FAILURE, "%s", dlerror());
	while (!culprit_is_over())
		loop(1000000);
}

/* Sleeps until MS ms after second N of the program. Each thread begins at these times, so all wait in
   each * second. */
static void sleep_until_turn(uint64_t n, uint64_t ms)
{
	fr_load_sleep_until(end_ns - seconds_ns + n * 1000000000ULL + ms * 1000000ULL);
}

FR_LOAD_FRAME static void culprit_hold(void)
{
	pthread_mutex_lock(&inner);
	fr_load_sleep_ms(HOLD_NS / 1000000);
	pthread_mutex_unlock(&inner);
}

FR_LOAD_FRAME static void culprit_middle(void)
{
	pthread_mutex_lock(&outer);
	pthread_mutex_lock(&inner);
	pthread_mutex_unlock(&inner);
	pthread_mutex_unlock(&outer);
}

FR_LOAD_FRAME static void culprit_serve(void)
{
	pthread_mutex_lock(&outer);
	pthread_mutex_unlock(&outer);
}

static void *run_middle(void *ctx)
{
	prctl(PR_SET_NAME, "middle");
	for (uint64_t n = 0; !culprit_is_over(); n++) {
		sleep_until_turn(n, 10);
		culprit_middle();
	}
	return NULL;
}

static void *run_victim(void *ctx)
{
	prctl(PR_SET_NAME, "victim");
	for (uint64_t n = 0; !culprit_is_over(); n++) {
		sleep_until_turn(n, 20);
		culprit_serve();
	}
	return NULL;
}

static void *run_holder(void *ctx)
{
	prctl(PR_SET_NAME, "holder");
	culprit_cause = (pid_t)syscall(SYS_gettid);
	for (uint64_t n = 0; !culprit_is_over(); n++) {
		sleep_until_turn(n, 0);
		culprit_hold();
	}
	return NULL;
}

static void lock(void)
{
	void *(*const runs[])(void *) = {run_holder, run_middle, run_victim};
	pthread_t threads[3];

	for (unsigned i = 0; i < 3; i++)
		if (pthread_create(&threads[i], NULL, runs[i], NULL))
			errx(EXIT_FAILURE, "no thread");
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

FR_LOAD_FRAME static void culprit_write(int fd, const void *data, size_t len)
{
	if (pwrite(fd, data, len, 0) != (ssize_t)len || fsync(fd) < 0)
		err(EXIT_FAILURE, "%s", culprit_file);
}

static void disk(void)
{
	static char data[1 << 16] __attribute__((aligned(4096)));
	const int fd = open(culprit_file, O_RDWR | O_CREAT | O_CLOEXEC | O_DIRECT, 0600);

	if (fd < 0)
		err(EXIT_FAILURE, "%s", culprit_file);
	for (unsigned i = 0; !culprit_is_over(); i++) {
		data[0] = (char)i;
		culprit_write(fd, data, sizeof(data));
	}
	unlink(culprit_file);
}

FR_LOAD_FRAME static void culprit_fork(void)
{
	const pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		err(EXIT_FAILURE, "fork");
}

static void forks(void)
{
	while (!culprit_is_over())
		culprit_fork();
}

FR_LOAD_FRAME static void culprit_touch(void)
{
	char *p = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || madvise(p, MEMORY, MADV_NOHUGEPAGE) < 0)
		err(EXIT_FAILURE, "mmap");
	for (size_t i = 0; i < MEMORY; i += 4096)
		p[i] = 1;
	munmap(p, MEMORY);
}

static void faults(void)
{
	while (!culprit_is_over())
		culprit_touch();
}

static void culprit_tick(int signal)
{
	culprit_sink++;
}

static void timers(void)
{
	const struct itimerspec each = {{0, 20000}, {0, 20000}};
	timer_t timer;

	if (signal(SIGALRM, culprit_tick) == SIG_ERR || timer_create(CLOCK_MONOTONIC, NULL, &timer) < 0 ||
		timer_settime(timer, 0, &each, NULL) < 0)
		err(EXIT_FAILURE, "timer");
	while (!culprit_is_over())
		pause();
}

FR_LOAD_FRAME static void culprit_fill(char *p)
{
	for (size_t i = 0; i < MEMORY; i += 4096)
		p[i]++;
}

static void memory(void)
{
	char *p = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *q;
	const int fd = open(culprit_file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (p == MAP_FAILED || fd < 0 || ftruncate(fd, MEMORY) < 0)
		err(EXIT_FAILURE, "memory");
	q = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (q == MAP_FAILED)
		err(EXIT_FAILURE, "mmap");
	while (!culprit_is_over())
		culprit_fill(q);
	unlink(culprit_file);
}

static void quiet(void)
{
	fr_load_sleep_until(end_ns);
}

static const struct {
	const char *name;
	void (*run)(void);
} kinds[] = {{"hog", culprit_hog}, {"library", library}, {"lock", lock}, {"disk", disk}, {"forks", forks},
	{"faults", faults}, {"timers", timers}, {"memory", memory}, {"quota", culprit_hog}, {"quiet", quiet},
	{"spin", culprit_spinning}, {"fifo", culprit_fifo}, {"child", culprit_child}, {"pipe", culprit_pipe},
	{"peer", culprit_peer}, {"contention", culprit_contention}, {"cold", culprit_cold_file},
	{"calls", culprit_calls}, {"switches", culprit_switches}, {"packets", culprit_packets},
	{"restarts", culprit_restarts}, {"files", culprit_files}, {"stuck", culprit_stuck}};

int main(int argc, char *argv[])
{
	static const char usage[] = "frtest-culprit [-t SECONDS] [-f FILE] KIND";
	const struct fr_load_option options[] = {{'t', .ns = &seconds_ns}, {'f', .text = &culprit_file}, {0}};

	fr_load_options(argc - 1, argv, usage, options);
	end_ns = fr_load_now_ns() + seconds_ns;
	culprit_cause = getpid();
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(argv[argc - 1], kinds[i].name)) {
			kinds[i].run();
			printf("{\"kind\":\"%s\",\"pid\":%d,\"tid\":%d}\n", kinds[i].name, getpid(),
				culprit_cause);
			return 0;
		}
	errx(2, "usage: %s", usage);
}
