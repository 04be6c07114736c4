/* SPDX-License-Identifier: GPL-2.0-or-later */

/* A library for LD_PRELOAD. The environment variable FRTEST_HOLD names a file. While this file exists, the
   recorder's thread fr-tracker waits at the start of a scan of /proc. FRTEST_HOLD_START names another file.
   While that file exists, fr-tracker waits at its own start: side-band is recorded already, and the start
   of the recorder waits for fr-tracker. FRTEST_KILL names a third file. While it exists, the process kills
   itself before it sends its message number FRTEST_KILL_MESSAGE about the descriptor store, or when it calls
   usleep(FRTEST_KILL_USLEEP). */

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define TRACKER "fr-tracker"

static void hold(const char *variable)
{
	const char *file = getenv(variable);

	while (file && access(file, F_OK) == 0)
		usleep(10000);
}

DIR *opendir(const char *path)
{
	DIR *(*real)(const char *) = (DIR * (*)(const char *)) dlsym(RTLD_NEXT, "opendir");
	char name[16] = "";

	prctl(PR_GET_NAME, name);
	if (!strcmp(path, "/proc") && !strcmp(name, TRACKER))
		hold("FRTEST_HOLD");
	return real(path);
}

int pthread_setname_np(pthread_t thread, const char *name)
{
	int (*real)(pthread_t, const char *) =
		(int (*)(pthread_t, const char *))dlsym(RTLD_NEXT, "pthread_setname_np");

	if (!strcmp(name, TRACKER))
		hold("FRTEST_HOLD_START");
	return real(thread, name);
}

static void die_if_equal(const char *variable, unsigned n)
{
	const char *file = getenv("FRTEST_KILL"), *wanted = getenv(variable);

	if (file && wanted && strtoul(wanted, NULL, 10) == n && access(file, F_OK) == 0)
		raise(SIGKILL);
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	ssize_t (*real)(int, const struct msghdr *, int) =
		(ssize_t(*)(int, const struct msghdr *, int))dlsym(RTLD_NEXT, "sendmsg");
	static unsigned n; /* only the main thread sends such messages */
	const char *file = getenv("FRTEST_KILL");

	if (file && m->msg_iovlen && m->msg_iov->iov_len > 7 && !memcmp(m->msg_iov->iov_base, "FDSTORE", 7) &&
		access(file, F_OK) == 0)
		die_if_equal("FRTEST_KILL_MESSAGE", ++n);
	return real(fd, m, flags);
}

int usleep(useconds_t us)
{
	int (*real)(useconds_t) = (int (*)(useconds_t))dlsym(RTLD_NEXT, "usleep");

	die_if_equal("FRTEST_KILL_USLEEP", us);
	return real(us);
}
