/* SPDX-License-Identifier: GPL-2.0-or-later */

/* A library for LD_PRELOAD. The environment variable FRTEST_HOLD names a file. While this file exists, the
   recorder's thread fr-tracker waits at the start of a scan of /proc. FRTEST_HOLD_START names another file.
   While that file exists, fr-tracker waits at its own start: side-band is recorded already, and the start
   of the recorder waits for fr-tracker. */

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
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
