// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define OUTPUT_MAX 4096u
#define INPUT_MAX 16384u

struct output {
	jmp_buf full;
	size_t len;
	char text[OUTPUT_MAX];
};

/* A short name can stand for a text that is too long for any memory, and the library cannot be stopped by a
   return value. It has allocated nothing when it calls this function, so it can be left by a jump. */
static void take(const char *piece, size_t len, void *ctx)
{
	struct output *o = ctx;

	if (len >= sizeof(o->text) - o->len)
		longjmp(o->full, 1);
	memcpy(o->text + o->len, piece, len);
	o->len += len;
}

static bool demangle(const char *name, struct output *o)
{
	if (setjmp(o->full))
		return false;
	/* The names of old Rust compilers look like those of C++, so Rust is tried first. */
	if (rust_demangle_callback(name, DMGL_NO_OPTS, take, o))
		return true;
	o->len = 0;
	return cplus_demangle_v3_callback(name, DMGL_NO_OPTS, take, o);
}

char *fr_demangle(const char *name)
{
	struct output *o;
	char *text = NULL;

	if (name[0] != '_' || (name[1] != 'Z' && name[1] != 'R') || strnlen(name, INPUT_MAX) == INPUT_MAX)
		return NULL;
	o = malloc(sizeof(*o));
	if (!o)
		return NULL;
	o->len = 0;
	if (demangle(name, o))
		text = strndup(o->text, o->len);
	free(o);
	return text;
}
