/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Spins at the end of a known chain of calls, in code without frame pointers. Usage:
 *
 *     frtest-chain [-t SECONDS] VARIANT
 *
 * Prints the process and the thread, for how long the chain stands (CLOCK_MONOTONIC), and a regular
 * expression that all stacks of that time must match (chain.h). The variants "thread", "fork" and "exec" have
 * the chain in a thread, in a child without an exec, and in a process whose executable file has been
 * replaced.
 */

#include "chain.h"
#include "load.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define REPLACED "replaced" /* the argument after the exec */
#define STRING2(x) #x
#define STRING(x) STRING2(x)

typedef uint64_t chain_variant(uint64_t x);
static uint64_t chain_exec(uint64_t x);
static uint64_t chain_plain(uint64_t x);
static uint64_t chain_thread(uint64_t x);
static uint64_t chain_fork(uint64_t x);

static const struct variant {
	const char *name;
	chain_variant *run;
	const char *expected;
} variants[] = {
#ifdef CHAIN_STATIC
	{"call", chain_call, CHAIN_CALL_STATIC_EXPECTED},
#else
	{"call", chain_call, CHAIN_CALL_EXPECTED},
#endif
	{"altstack", chain_altstack,
		CHAIN_SPIN "chain_handler;" CHAIN_ANY "chain_interrupted;chain_altstack;" CHAIN_MAIN},
	{"lazy", chain_lazy,
		CHAIN_ANY "(?:chain_plugin_nothing(?:@plt)?;)?" CHAIN_ANY "(?:chain_plugin_lazy;)?" CHAIN_ANY
			  "chain_lazy;" CHAIN_MAIN},
	{"deep", chain_deep, CHAIN_SPIN "(?:chain_recurse;){" STRING(CHAIN_DEPTH) "}chain_deep;" CHAIN_MAIN},
	{"vdso", chain_vdso, CHAIN_ANY "chain_vdso;" CHAIN_MAIN},
	{"system", chain_system, CHAIN_ANY "chain_system;" CHAIN_MAIN},
	{"jit", chain_jit, CHAIN_SPIN "[^;]*;chain_jit_back;[^;]*;chain_jit;" CHAIN_MAIN},
	{"alloca", chain_alloca, CHAIN_SPIN "chain_variable;chain_alloca;" CHAIN_MAIN},
	{"realign", chain_realign, CHAIN_SPIN "chain_aligned;chain_realign;" CHAIN_MAIN},
	{"jump", chain_jump, CHAIN_SPIN "chain_jump;" CHAIN_MAIN},
	{"hop", chain_hop,
		"(?:chain_hop_c;)?(?:chain_hop_b;)?(?:chain_hop_a;)?" CHAIN_ANY "chain_hop;" CHAIN_MAIN},
	{"thread", chain_thread, CHAIN_SPIN "chain_plain;chain_run;chain_start;" CHAIN_ANY},
	{"fork", chain_fork,
		CHAIN_SPIN "chain_plain;chain_run;chain_forked;chain_fork;main;" CHAIN_ANY "_start;"},
	{"exec", chain_exec, CHAIN_SPIN "chain_plain;" CHAIN_MAIN},
	{REPLACED, chain_plain, CHAIN_SPIN "chain_plain;" CHAIN_MAIN},
};
static const struct variant *variant;
static uint64_t for_ns = 1000000000ULL;
uint64_t chain_from_ns;

static void *keep_time(void *arg)
{
	fr_load_sleep_until(fr_load_now_ns() + for_ns);
	chain_stop = 1;
	return arg;
}

/* Creates the thread that ends the chain. It gets no signals: they are for the thread with the chain. */
static void run_keeper(void)
{
	sigset_t all, before;
	pthread_t t;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&t, NULL, keep_time, NULL))
		errx(EXIT_FAILURE, "no thread");
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

CHAIN_FRAME static uint64_t chain_plain(uint64_t x)
{
	return chain_spin(x) + 1;
}

CHAIN_FRAME static uint64_t chain_run(chain_variant *run, uint64_t x)
{
	const uint64_t end = fr_load_now_ns() + for_ns;

	run_keeper();
	chain_from_ns = fr_load_now_ns();
	x = run(x);
	printf("{\"variant\":\"%s\",\"pid\":%d,\"tid\":%d,\"from_ns\":%" PRIu64 ",\"to_ns\":%" PRIu64
	       ",\"number\":%" PRIu64 ",\"expected\":\"%s\"}\n",
		variant->name, getpid(), gettid(), chain_from_ns, end, x, variant->expected);
	fflush(stdout);
	return x;
}

CHAIN_FRAME static void *chain_start(void *arg)
{
	*(uint64_t *)arg = chain_run(chain_plain, *(uint64_t *)arg);
	return arg;
}

CHAIN_FRAME static uint64_t chain_thread(uint64_t x)
{
	pthread_t t;

	if (pthread_create(&t, NULL, chain_start, &x) || pthread_join(t, NULL))
		errx(EXIT_FAILURE, "no thread");
	return x;
}

CHAIN_FRAME static uint64_t chain_forked(uint64_t x)
{
	return chain_run(chain_plain, x) + 1;
}

CHAIN_FRAME static uint64_t chain_fork(uint64_t x)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		err(EXIT_FAILURE, "fork");
	if (pid == 0)
		_exit(chain_forked(x) ? EXIT_SUCCESS : EXIT_FAILURE);
	if (waitpid(pid, &status, 0) < 0 || status)
		errx(EXIT_FAILURE, "the child failed");
	return x;
}

/* Copies the file FROM to TO, as a new file. */
static void copy(const char *from, const char *to)
{
	const int in = open(from, O_RDONLY | O_CLOEXEC),
		  out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	struct stat s;

	if (in < 0 || out < 0 || fstat(in, &s) < 0 || sendfile(out, in, NULL, (size_t)s.st_size) != s.st_size)
		err(EXIT_FAILURE, "cannot copy %s to %s", from, to);
	close(in);
	close(out);
}

/* Runs a copy of this program, in the current directory. */
static uint64_t chain_exec(uint64_t x)
{
	const char *name = "./frtest-chain-copy";
	char seconds[32];

	snprintf(seconds, sizeof(seconds), "%.9f", (double)for_ns / 1e9);
	copy("/proc/self/exe", name);
	execl(name, name, "-t", seconds, REPLACED, (char *)NULL);
	err(EXIT_FAILURE, "cannot run %s, %" PRIu64, name, x);
}

static void replace(const char *name)
{
	if (unlink(name) < 0)
		err(EXIT_FAILURE, "cannot remove %s", name);
	copy("/bin/true", name);
}

int main(int argc, char *argv[])
{
	uint64_t x = (uint64_t)argc;

	fr_load_options(argc, argv, "frtest-chain [-t SECONDS] VARIANT",
		(struct fr_load_option[]){{'t', .ns = &for_ns}, {0}});
	for (const struct variant *v = variants; v < variants + sizeof(variants) / sizeof(*variants); v++)
		if (argv[optind] && !strcmp(v->name, argv[optind]))
			variant = v;
	if (!variant)
		errx(2, "usage: frtest-chain [-t SECONDS] VARIANT");
	if (!strcmp(variant->name, REPLACED))
		replace(argv[0]);
	if (variant->run == chain_thread || variant->run == chain_fork || variant->run == chain_exec)
		x = variant->run(x);
	else
		x = chain_run(variant->run, x);
	return x == 0;
}
