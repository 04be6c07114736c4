// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A process of its own makes each request, because nothing else keeps the limits: libdebuginfod looks at the
 * time about once a second, waits for the resolver of names as long as that takes, and does not see how large
 * a compressed answer becomes. This process kills the other one at the end of the time.
 */
#include "report/debuginfod.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/units.h"
#include "base/utf8.h"
#include "sideband/buildid.h"

#include <elfutils/debuginfod.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* At most this long before the end of the time, libdebuginfod is told to stop, so that it can remove a part
   of a file. */
#define GRACE_NS (1500 * FR_NSEC_PER_MSEC)

static struct {
	char *urls;	      /* $DEBUGINFOD_URLS; NULL: no requests */
	uint64_t limit_ns;    /* of all requests together */
	uint64_t left_ns;     /* of the limit */
	uint64_t bytes_max;   /* of a file */
	uint64_t deadline_ns; /* of the request that runs */
	struct fr_diag problem;
} servers;

/* In the process that makes a request. */
static struct {
	int to; /* a socket to the process that wants the file */
	char build_id[2 * FR_BUILD_ID_MAX + 1];
	volatile sig_atomic_t is_too_large; /* a file would have become too large */
} own;

void fr_debuginfod_disable(void)
{
	(void)unsetenv(DEBUGINFOD_URLS_ENV_VAR);
	free(servers.urls);
	servers.urls = NULL;
}

void fr_debuginfod_enable(uint64_t time_max_ns, uint64_t bytes_max)
{
	const char *urls = getenv(DEBUGINFOD_URLS_ENV_VAR), *size = getenv(DEBUGINFOD_MAXSIZE_ENV_VAR);
	char text[24];
	uint64_t n;

	servers.urls = urls && *urls ? strdup(urls) : NULL;
	servers.limit_ns = servers.left_ns = time_max_ns;
	servers.bytes_max = size && fr_u64_parse(size, &n) == 0 && n > 0 ? n : bytes_max;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)servers.bytes_max);
	(void)setenv(DEBUGINFOD_MAXSIZE_ENV_VAR, text, 1);
	if (!servers.urls)
		(void)fr_fail(&servers.problem, -EINVAL,
			"set it to the address of a server, as https://debuginfod.debian.net",
			"debuginfod: $" DEBUGINFOD_URLS_ENV_VAR " is not set");
	(void)unsetenv(DEBUGINFOD_URLS_ENV_VAR);
}

/* Returns the server of the request, or all servers, which are asked at the same time, if none has
   answered. */
static const char *find_server(debuginfod_client *client)
{
	const char *url = client ? debuginfod_get_url(client) : NULL;

	return url ? url : servers.urls;
}

static void fail_time(debuginfod_client *client)
{
	char text[FR_UNIT_SIZE];

	(void)fr_fail(&servers.problem, -ETIME,
		"functions of these files have no names; give more time by --debuginfod-time, or leave out "
		"--debuginfod",
		"debuginfod: no more requests, because the answers took %s; the last server was %s",
		fr_duration_format(servers.limit_ns, text), find_server(client));
}

static void fail_size(debuginfod_client *client)
{
	char text[FR_UNIT_SIZE];

	(void)fr_fail(&servers.problem, -EFBIG,
		"functions of this file have no names; raise $DEBUGINFOD_MAXSIZE if the server is right",
		"debuginfod: %s sends more than %s for one file", find_server(client),
		fr_size_format(servers.bytes_max, text));
}

/* --- the process that makes a request --- */

/* Sends the problem, and the descriptor of the file if it has one. */
static void send_answer(int fd)
{
	struct iovec data = {&servers.problem, sizeof(servers.problem)};
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct msghdr m = {.msg_iov = &data, .msg_iovlen = 1};

	if (fd >= 0) {
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		*CMSG_FIRSTHDR(&m) = (struct cmsghdr){
			.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), &fd, sizeof(fd));
	}
	(void)sendmsg(own.to, &m, MSG_NOSIGNAL);
}

/* Returns whether PATH is a file of the cache that is not whole yet: ".../BUILD-ID/debuginfo.XXXXXX". */
static bool is_part(const char *path)
{
	const char *name = strrchr(path, '/'), *dot = name ? strrchr(name, '.') : NULL;
	const size_t len = strlen(own.build_id);

	return dot && strlen(dot) == 7 && (size_t)(name - path) > len && name[-1 - (ptrdiff_t)len] == '/' &&
	       memcmp(name - len, own.build_id, len) == 0 &&
	       (strncmp(name, "/debuginfo.", 11) == 0 || strncmp(name, "/executable.", 12) == 0);
}

/* Removes the part of a file that libdebuginfod has open in its cache. */
static void remove_part(void)
{
	_cleanup_closedir_ DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;
	char path[PATH_MAX];
	ssize_t n;

	while (dir && (entry = readdir(dir))) {
		n = readlinkat(dirfd(dir), entry->d_name, path, sizeof(path) - 1);
		path[FR_MAX(n, (ssize_t)0)] = '\0';
		if (is_part(path))
			(void)unlink(path);
	}
}

/* Ends the request and this process. If libdebuginfod ended the request itself, it would note in its cache
   that there is no such file, and would not ask again for ten minutes. */
static _Noreturn void stop(void)
{
	remove_part();
	send_answer(-1);
	_exit(0);
}

/* libdebuginfod calls this about once a second, and when data come. TOTAL is not 0 if a server has said how
   long the file is. */
static int check_limits(debuginfod_client *client, long done, long total)
{
	if (fr_monotonic_ns() >= servers.deadline_ns) {
		fail_time(client);
		stop();
	}
	if (done < 0 || total < 0 || FR_MAX((uint64_t)done, (uint64_t)total) > servers.bytes_max) {
		fail_size(client);
		stop();
	}
	return 0;
}

/* Returns FD if it has the build-id. Else closes it, and removes PATH, its name in the cache: a better answer
   can come another time. */
static int check_answer(
	debuginfod_client *client, int fd, const char *path, const uint8_t *build_id, size_t len)
{
	uint8_t id[FR_BUILD_ID_MAX];
	const int n = fr_build_id_read(fd, id);

	if (n > 0 && (size_t)n == len && memcmp(id, build_id, len) == 0)
		return fd;
	(void)fr_fail(&servers.problem, -EBADMSG,
		"the file is not used; remove this server from $DEBUGINFOD_URLS, or tell its administrator",
		"debuginfod: %s sent another file than it was asked for", find_server(client));
	if (path)
		(void)unlink(path);
	close(fd);
	return -ENOENT;
}

static void report_error(debuginfod_client *client, int code)
{
	if (own.is_too_large || code == -EFBIG)
		fail_size(client);
	else if (code != -ENOENT && code != -ENOSYS)
		(void)fr_fail_errno(&servers.problem, code,
			"check $DEBUGINFOD_URLS, or leave out --debuginfod",
			"debuginfod: cannot get a file from %s", find_server(client));
}

static int request(
	debuginfod_client *client, enum fr_debuginfod_kind kind, const uint8_t *build_id, size_t len)
{
	_cleanup_free_ char *path = NULL;
	int fd;

	debuginfod_set_progressfn(client, check_limits);
	fd = kind == FR_DEBUGINFOD_OBJECT ? debuginfod_find_executable(client, build_id, (int)len, &path)
					  : debuginfod_find_debuginfo(client, build_id, (int)len, &path);
	if (fd >= 0)
		return check_answer(client, fd, path, build_id, len);
	report_error(client, fd);
	return -ENOENT;
}

static void note_too_large(int signal_number)
{
	own.is_too_large = 1;
}

static _Noreturn void run_request(
	enum fr_debuginfod_kind kind, const uint8_t *build_id, size_t len, int to, pid_t parent)
{
	const struct rlimit size = {servers.bytes_max, servers.bytes_max};
	debuginfod_client *client;

	own.to = to;
	for (size_t i = 0; i < FR_MIN(len, (size_t)FR_BUILD_ID_MAX); i++)
		snprintf(own.build_id + 2 * i, 3, "%02x", build_id[i]);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	servers.problem.code = 0;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, note_too_large);
	(void)setrlimit(RLIMIT_FSIZE, &size);
	(void)setenv(DEBUGINFOD_URLS_ENV_VAR, servers.urls, 1);
	client = debuginfod_begin();
	send_answer(client ? request(client, kind, build_id, len) : -ENOMEM);
	_exit(0);
}

/* --- the process that wants a file --- */

/* Returns the descriptor that the other process sends, or -ENOENT. */
static int receive_answer(int from)
{
	struct fr_diag problem;
	struct iovec data = {&problem, sizeof(problem)};
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr m = {.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};
	int fd = -ENOENT;

	if (recvmsg(from, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != sizeof(problem))
		return -ENOENT;
	if (CMSG_FIRSTHDR(&m) && CMSG_FIRSTHDR(&m)->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	if (problem.code && !servers.problem.code)
		servers.problem = problem;
	if (problem.code == -ETIME)
		servers.left_ns = 0;
	return fd;
}

/* Waits for the answer, up to the end of the time. */
static int wait_for_answer(int from, uint64_t end_ns)
{
	struct pollfd p = {.fd = from, .events = POLLIN};
	uint64_t now_ns;
	int r;

	while ((now_ns = fr_monotonic_ns()) < end_ns) {
		r = poll(&p, 1, (int)FR_MIN((end_ns - now_ns) / FR_NSEC_PER_MSEC + 1, (uint64_t)INT32_MAX));
		if (r > 0)
			return receive_answer(from);
		if (r < 0 && errno != EINTR)
			return -ENOENT;
	}
	fail_time(NULL);
	servers.left_ns = 0;
	return -ENOENT;
}

static int start_request(enum fr_debuginfod_kind kind, const uint8_t *build_id, size_t len, int *ret_from)
{
	const pid_t parent = getpid();
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		run_request(kind, build_id, len, ends[1], parent);
	close(ends[1]);
	if (pid < 0)
		close(ends[0]);
	else
		*ret_from = ends[0];
	return pid;
}

int fr_debuginfod_find(enum fr_debuginfod_kind kind, const uint8_t *build_id, size_t len)
{
	const uint64_t begin_ns = fr_monotonic_ns(), end_ns = begin_ns + servers.left_ns;
	_cleanup_close_ int from = -1;
	uint64_t took_ns;
	pid_t pid;
	int fd;

	if (!servers.urls || servers.left_ns == 0 || len == 0)
		return -ENOENT;
	servers.deadline_ns = end_ns - FR_MIN(GRACE_NS, servers.left_ns / 2);
	pid = start_request(kind, build_id, len, &from);
	if (pid < 0)
		return -ENOENT;
	fd = wait_for_answer(from, end_ns);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	took_ns = fr_monotonic_ns() - begin_ns;
	servers.left_ns -= FR_MIN(took_ns, servers.left_ns);
	return fd;
}

const struct fr_diag *fr_debuginfod_problem(void)
{
	fr_utf8_sanitize(servers.problem.what); /* a server can choose the URL of its answer */
	return servers.problem.code ? &servers.problem : NULL;
}
