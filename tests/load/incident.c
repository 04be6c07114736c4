/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Incidents in which a thread does not run, with a truth to compare with. Without frame pointers. Usage:
 *
 *     frtest-incident [-n TIMES] [-m MS] mutex
 *     frtest-incident [-n TIMES] [-m MS] [-f FILE] [-c CPU] sleeps
 *
 * mutex: the thread "holder" works for MS milliseconds in rebuild_index() with a mutex, and unlocks it there.
 * Meanwhile the thread "waiter" waits for the mutex in serve_request().
 *
 * sleeps: the thread "sleeper" sleeps TIMES times in each of the ways of struct sleep_kind.
 *
 * Both print a line of JSON for each time that a thread did not run: its tid, the kind, the function, the
 * time before and after (CLOCK_MONOTONIC), for how long it was on a CPU between them, and the tid of the
 * thread that woke it. For kind "preempted", this is the thread that ran instead; 0 means the kernel.
 */

#include "load.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#define INCIDENT_FRAME __attribute__((noinline, noclone))
#define TIMES_MAX 1000

static uint64_t times = 10, ms = 300;
static int cpu;
static char default_file[] = "frtest-incident.data", *file = default_file;

static void print_sleep(pid_t tid, const char *kind, const char *function, uint64_t from, uint64_t to,
	uint64_t cpu_ns, pid_t waker)
{
	printf("{\"pid\":%d,\"tid\":%d,\"kind\":\"%s\",\"function\":\"%s\",\"from_ns\":%" PRIu64
	       ",\"to_ns\":%" PRIu64 ",\"cpu_ns\":%" PRIu64 ",\"waker_tid\":%d}\n",
		getpid(), tid, kind, function, from, to, cpu_ns, waker);
}

static uint64_t thread_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

static pthread_t run_thread(void *(*f)(void *))
{
	pthread_t t;

	if (pthread_create(&t, NULL, f, NULL))
		errx(EXIT_FAILURE, "no thread");
	return t;
}

/* How often the kernel took the CPU away from this thread, and how often the thread gave it up. */
struct switches {
	long preempted, slept;
};

static struct switches count_switches(void)
{
	struct rusage u;

	getrusage(RUSAGE_THREAD, &u);
	return (struct switches){.preempted = u.ru_nivcsw, .slept = u.ru_nvcsw};
}

/* --- mutex ---------------------------------------------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t is_held, is_served;
static pid_t holder_tid;
static volatile uint64_t served, index_sum;

INCIDENT_FRAME static void rebuild_index(void)
{
	const uint64_t end = fr_load_now_ns() + ms * 1000000;

	while (fr_load_now_ns() < end)
		index_sum += end;
	pthread_mutex_unlock(&mutex);
	index_sum++;
}

INCIDENT_FRAME static void serve_request(void)
{
	const long slept = count_switches().slept;
	const uint64_t from = fr_load_now_ns(), from_cpu = thread_cpu_ns();
	uint64_t to, cpu_ns;

	pthread_mutex_lock(&mutex);
	cpu_ns = thread_cpu_ns() - from_cpu;
	to = fr_load_now_ns();
	if (count_switches().slept > slept) /* on a slow machine, the mutex can be free by now */
		print_sleep(gettid(), "mutex", "serve_request", from, to, cpu_ns, holder_tid);
	served++;
	pthread_mutex_unlock(&mutex);
}

static void *run_holder(void *arg)
{
	prctl(PR_SET_NAME, "holder");
	holder_tid = gettid();
	for (uint64_t i = 0; i < times; i++) {
		pthread_mutex_lock(&mutex);
		sem_post(&is_held);
		rebuild_index();
		sem_wait(&is_served);
	}
	return arg;
}

static void *run_waiter(void *arg)
{
	prctl(PR_SET_NAME, "waiter");
	for (uint64_t i = 0; i < times; i++) {
		sem_wait(&is_held);
		serve_request();
		sem_post(&is_served);
	}
	return arg;
}

static void contend(void)
{
	pthread_t holder, waiter;

	sem_init(&is_held, 0, 0);
	sem_init(&is_served, 0, 0);
	holder = run_thread(run_holder);
	waiter = run_thread(run_waiter);
	pthread_join(holder, NULL);
	pthread_join(waiter, NULL);
}

/* --- sleeps --------------------------------------------------------------------------------------------- */

static struct {
	uint64_t from, to;
} preempted[TIMES_MAX];
static size_t n_preempted;
static uint32_t futex_word;
static int pipe_ends[2], data = -1;
static sem_t request;
static volatile pid_t waker_tid, rival_tid;
static volatile int wakes_futex, is_over;

/* Wakes the sleeper MS milliseconds after a request. */
static void *run_waker(void *arg)
{
	prctl(PR_SET_NAME, "waker");
	waker_tid = gettid();
	while (sem_wait(&request) == 0 && !is_over) {
		fr_load_sleep_ms(ms);
		if (wakes_futex) {
			__atomic_store_n(&futex_word, 1, __ATOMIC_SEQ_CST);
			syscall(SYS_futex, &futex_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
		} else if (write(pipe_ends[1], "", 1) != 1) {
			err(EXIT_FAILURE, "the pipe broke");
		}
	}
	return arg;
}

INCIDENT_FRAME static void sleep_in_futex(void)
{
	__atomic_store_n(&futex_word, 0, __ATOMIC_SEQ_CST);
	wakes_futex = 1;
	sem_post(&request);
	while (__atomic_load_n(&futex_word, __ATOMIC_SEQ_CST) == 0)
		syscall(SYS_futex, &futex_word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

INCIDENT_FRAME static void sleep_in_nanosleep(void)
{
	fr_load_sleep_ms(ms);
	__asm__ volatile("");
}

INCIDENT_FRAME static void sleep_in_poll(void)
{
	struct pollfd p = {.fd = pipe_ends[0], .events = POLLIN};
	char c;

	wakes_futex = 0;
	sem_post(&request);
	while (poll(&p, 1, -1) != 1 || read(pipe_ends[0], &c, 1) != 1)
		;
}

/* The thread is in the state D while it waits for the disk. It can sleep several times in one call. */
INCIDENT_FRAME static void sleep_in_fsync(void)
{
	static char block[1 << 16];

	if (pwrite(data, block, sizeof(block), 0) != sizeof(block) || fsync(data) < 0)
		err(EXIT_FAILURE, "cannot write %s", file);
	__asm__ volatile("");
}

static const struct sleep_kind {
	const char *name, *function;
	void (*sleep)(void);
	volatile pid_t *waker;
} kinds[] = {
	{"futex", "sleep_in_futex", sleep_in_futex, &waker_tid},
	{"nanosleep", "sleep_in_nanosleep", sleep_in_nanosleep, NULL},
	{"poll", "sleep_in_poll", sleep_in_poll, &waker_tid},
	{"fsync", "sleep_in_fsync", sleep_in_fsync, NULL},
};

/* --- preemption ----------------------------------------------------------------------------------------- */

static void *run_rival(void *arg)
{
	prctl(PR_SET_NAME, "rival");
	fr_load_pin(cpu);
	rival_tid = gettid();
	while (!is_over)
		index_sum++;
	return arg;
}

/* Spins, and notes each time that the kernel took the CPU away. */
INCIDENT_FRAME static void spin_with_rival(void)
{
	uint64_t last = fr_load_now_ns(), now;
	long n = count_switches().preempted;

	while (n_preempted < times) {
		now = fr_load_now_ns();
		if (now - last > 500000 && count_switches().preempted == n + 1) {
			preempted[n_preempted].from = last;
			preempted[n_preempted++].to = now;
		}
		if (now - last > 100000)
			n = count_switches().preempted;
		last = fr_load_now_ns();
	}
}

/* Sleeps once, and prints it. On a slow machine, the waker can be there first: then the thread does not
   sleep. Returns whether it slept. */
static int sleep_once(const struct sleep_kind *k)
{
	const long slept = count_switches().slept;
	const uint64_t from = fr_load_now_ns(), from_cpu = thread_cpu_ns();
	uint64_t to, cpu_ns;

	k->sleep();
	cpu_ns = thread_cpu_ns() - from_cpu;
	to = fr_load_now_ns();
	if (k->waker && count_switches().slept == slept)
		return 0;
	print_sleep(gettid(), k->name, k->function, from, to, cpu_ns, k->waker ? *k->waker : 0);
	return 1;
}

static void *run_sleeper(void *arg)
{
	const pid_t tid = gettid();

	prctl(PR_SET_NAME, "sleeper");
	for (uint64_t i = 0; i < times; i++)
		for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
			while (!sleep_once(&kinds[k]))
				;
	fr_load_pin(cpu);
	run_thread(run_rival);
	spin_with_rival();
	is_over = 1;
	sem_post(&request);
	for (size_t i = 0; i < n_preempted; i++)
		print_sleep(tid, "preempted", "spin_with_rival", preempted[i].from, preempted[i].to, 0,
			rival_tid);
	return arg;
}

static void do_sleeps(void)
{
	pthread_t waker;

	data = open(file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (data < 0 || pipe(pipe_ends) < 0)
		err(EXIT_FAILURE, "%s", file);
	unlink(file);
	sem_init(&request, 0, 0);
	waker = run_thread(run_waker);
	pthread_join(run_thread(run_sleeper), NULL);
	pthread_join(waker, NULL);
}

int main(int argc, char *argv[])
{
	static char output[1 << 20]; /* so that no thread writes to standard output before the end */

	fr_load_options(argc, argv, "frtest-incident [-n TIMES] [-m MS] [-f FILE] [-c CPU] mutex|sleeps",
		(struct fr_load_option[]){{'n', .count = &times}, {'m', .count = &ms}, {'f', .text = &file},
			{'c', .number = &cpu}, {0}});
	setvbuf(stdout, output, _IOFBF, sizeof(output));
	if (times > TIMES_MAX)
		errx(2, "at most %d times", TIMES_MAX);
	if (argv[optind] && !strcmp(argv[optind], "mutex"))
		contend();
	else if (argv[optind] && !strcmp(argv[optind], "sleeps"))
		do_sleeps();
	else
		errx(2, "usage: frtest-incident [OPTION...] mutex|sleeps");
	return 0;
}
