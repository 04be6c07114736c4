/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Macros that release a resource at the end of a scope, or pass the ownership of a resource out of the scope.
   Other small macros are at the end of this file. */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(fn) __attribute__((cleanup(fn)))

/* TAKE_PTR() returns the value of a pointer, and sets the variable to NULL. TAKE_FD() returns the value of a
   descriptor, and sets the variable to -1. */
#define TAKE_PTR(p)                                                                                          \
	({                                                                                                   \
		__typeof__(p) _p = (p);                                                                      \
		(p) = NULL;                                                                                  \
		_p;                                                                                          \
	})
#define TAKE_FD(fd)                                                                                          \
	({                                                                                                   \
		int _fd = (fd);                                                                              \
		(fd) = -1;                                                                                   \
		_fd;                                                                                         \
	})

static inline void fr_freep(void *p)
{
	free(*(void **)p);
}

static inline void fr_closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void fr_fclosep(FILE **f)
{
	if (*f)
		fclose(*f);
}

static inline void fr_closedirp(DIR **d)
{
	if (*d)
		closedir(*d);
}

#define _cleanup_free_ _cleanup_(fr_freep)
#define _cleanup_close_ _cleanup_(fr_closep)
#define _cleanup_fclose_ _cleanup_(fr_fclosep)
#define _cleanup_closedir_ _cleanup_(fr_closedirp)

#define FR_ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define FR_MIN(a, b) ((a) < (b) ? (a) : (b))
#define FR_MAX(a, b) ((a) > (b) ? (a) : (b))
#define FR_ALIGN_UP(x, to) (((x) + ((__typeof__(x))(to)-1)) & ~((__typeof__(x))(to)-1))
