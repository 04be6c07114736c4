/* SPDX-License-Identifier: GPL-2.0-or-later */

/* More kinds of frtest-culprit: those for which explain has no rule of their own, or which can mislead
   its * rules. */

#include "culprit.h"
#include "load.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define MAPPED (16u << 20)

static atomic_int spin;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static pthread_t begin_thread(void *(*run)(void *))
{
	pthread_t t;

	if (pthread_create(&t, NULL, run, NULL))
		errx(EXIT_FAILURE, "no thread");
	return t;
}

/* Forks a process that runs RUN(FD) and ends. */
static pid_t begin_child(void (*run)(int fd), int fd)
{
	const pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run(fd);
		_exit(0);
	}
	if (pid < 0)
		err(EXIT_FAILURE, "fork");
	return pid;
}

FR_LOAD_FRAME static void culprit_spin(void)
{
	while (atomic_exchange(&spin, 1) && !culprit_is_over())
		;
}

static void *run_spin(void *ctx)
{
	while (!culprit_is_over()) {
		culprit_spin();
		fr_load_sleep_ms(200);
		atomic_store(&spin, 0);
	}
	return NULL;
}

void culprit_spinning(void)
{
	const pthread_t other = begin_thread(run_spin);

	run_spin(NULL);
	pthread_join(other, NULL);
}

void culprit_fifo(void)
{
	const struct sched_param p = {.sched_priority = 10};

	fr_load_pin(0);
	if (sched_setscheduler(0, SCHED_FIFO, &p) < 0)
		err(77, "SCHED_FIFO");
	culprit_hog();
}

static void compute(int fd)
{
	prctl(PR_SET_NAME, "culprit-child");
	culprit_hog();
}

void culprit_child(void)
{
	const pid_t pid = begin_child(compute, -1);

	culprit_cause = pid;
	waitpid(pid, NULL, 0);
}

static void read_slowly(int fd)
{
	char data[4096];

	prctl(PR_SET_NAME, "slow-reader");
	while (read(fd, data, sizeof(data)) > 0)
		fr_load_sleep_ms(50);
}

FR_LOAD_FRAME static void culprit_send(int fd)
{
	static const char data[65536];

	while (!culprit_is_over())
		if (write(fd, data, sizeof(data)) < 0)
			err(EXIT_FAILURE, "write");
}

static void send_to(int fds[2])
{
	const pid_t pid = begin_child(read_slowly, fds[0]);

	culprit_cause = pid;
	fcntl(fds[1], F_SETFL, 0);
	culprit_send(fds[1]);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

void culprit_pipe(void)
{
	int fds[2];

	if (pipe(fds) < 0)
		err(EXIT_FAILURE, "pipe");
	send_to(fds);
}

void culprit_peer(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	const int server = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
	int fds[2];

	if (bind(server, (void *)&a, len) < 0 || listen(server, 1) < 0 ||
		getsockname(server, (void *)&a, &len) < 0 || connect(client, (void *)&a, len) < 0 ||
		(fds[0] = accept(server, NULL, NULL)) < 0)
		err(EXIT_FAILURE, "loopback");
	fds[1] = client;
	send_to(fds);
}

FR_LOAD_FRAME static void culprit_contend(void)
{
	pthread_mutex_lock(&mutex);
	fr_load_sleep_ms(10);
	pthread_mutex_unlock(&mutex);
}

static void *run_contend(void *ctx)
{
	while (!culprit_is_over())
		culprit_contend();
	return NULL;
}

void culprit_contention(void)
{
	pthread_t threads[8];

	for (unsigned i = 0; i < 8; i++)
		threads[i] = begin_thread(run_contend);
	for (unsigned i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
}

FR_LOAD_FRAME static void culprit_cold(const volatile char *p)
{
	for (size_t i = 0; i < MAPPED && !culprit_is_over(); i += 4096)
		culprit_sink += (uint64_t)p[i];
}

void culprit_cold_file(void)
{
	const int fd = open(culprit_file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	static const char data[1 << 16] = {1};
	char *p;

	/* A file that was only allocated is not read from the disk. */
	for (off_t at = 0; at < MAPPED; at += sizeof(data))
		if (pwrite(fd, data, sizeof(data), at) != sizeof(data))
			err(EXIT_FAILURE, "%s", culprit_file);
	if (fsync(fd) < 0)
		err(EXIT_FAILURE, "%s", culprit_file);
	while (!culprit_is_over()) {
		posix_fadvise(fd, 0, MAPPED, POSIX_FADV_DONTNEED);
		p = mmap(NULL, MAPPED, PROT_READ, MAP_SHARED, fd, 0);
		if (p == MAP_FAILED || madvise(p, MAPPED, MADV_RANDOM) < 0)
			err(EXIT_FAILURE, "mmap");
		culprit_cold(p);
		munmap(p, MAPPED);
	}
	unlink(culprit_file);
}

FR_LOAD_FRAME static void culprit_call(void)
{
	for (unsigned i = 0; i < 10000; i++)
		syscall(SYS_getppid);
}

void culprit_calls(void)
{
	while (!culprit_is_over())
		culprit_call();
}

static void bounce(int fd)
{
	char c;

	while (read(fd, &c, 1) == 1 && write(fd, &c, 1) == 1)
		;
}

void culprit_switches(void)
{
	int fds[2];
	char c = 0;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) < 0)
		err(EXIT_FAILURE, "socketpair");
	pid = begin_child(bounce, fds[0]);
	while (!culprit_is_over())
		if (write(fds[1], &c, 1) != 1 || read(fds[1], &c, 1) != 1)
			err(EXIT_FAILURE, "socket");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

FR_LOAD_FRAME static void culprit_flood(int fd, const struct sockaddr_in *to)
{
	static const char data[64];

	for (unsigned i = 0; i < 1000; i++)
		(void)!sendto(fd, data, sizeof(data), 0, (const void *)to, sizeof(*to));
}

void culprit_packets(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	const int fd = socket(AF_INET, SOCK_DGRAM, 0), to = socket(AF_INET, SOCK_DGRAM, 0);

	if (bind(to, (void *)&a, len) < 0 || getsockname(to, (void *)&a, &len) < 0)
		err(EXIT_FAILURE, "loopback");
	while (!culprit_is_over())
		culprit_flood(fd, &a);
}

static void fail(int fd)
{
	execl("/nonexistent/program", "program", NULL);
	_exit(127);
}

/* A supervisor that starts a program which fails each time. */
void culprit_restarts(void)
{
	while (!culprit_is_over()) {
		waitpid(begin_child(fail, -1), NULL, 0);
		fr_load_sleep_ms(20);
	}
}

FR_LOAD_FRAME static void culprit_walk(int at, const char *name)
{
	const int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	struct stat st;

	while (d && !culprit_is_over() && (e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
			culprit_walk(fd, e->d_name);
	}
	if (d)
		closedir(d);
}

void culprit_files(void)
{
	while (!culprit_is_over())
		culprit_walk(AT_FDCWD, "/usr");
}

static void *run_stuck(void *ctx)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	return NULL;
}

/* A thread waits for a lock until the end of the program. */
void culprit_stuck(void)
{
	pthread_t t;

	pthread_mutex_lock(&mutex);
	t = begin_thread(run_stuck);
	while (!culprit_is_over())
		fr_load_sleep_ms(100);
	pthread_mutex_unlock(&mutex);
	pthread_join(t, NULL);
}
