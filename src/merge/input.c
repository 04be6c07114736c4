// SPDX-License-Identifier: GPL-2.0-or-later
#include "merge/input.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

/* The largest numbers of bytes that are read ahead: for all inputs together, and for one input. */
#define AHEAD_ALL (16u << 20)
#define AHEAD_ONE (2u << 20)

#define AUXILIARY "perf.data.auxiliary"
#define SAMPLE "perf.data.sample."

void fr_merge_warn(const struct fr_merge_options *o, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	if (!o->warn)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	o->warn(o->ctx, text);
}

static int add_path(struct fr_inputs *in, char *path)
{
	struct fr_input *v = path ? reallocarray(in->v, in->n + 1, sizeof(*v)) : NULL;

	if (!v) {
		free(path);
		return -ENOMEM;
	}
	in->v = v;
	in->v[in->n++] = (struct fr_input){.path = path};
	return 0;
}

static bool starts_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* Returns whether the file NAME is to be merged. A name that ends with ".json" is a sidecar, a name that ends
   with ".jit" is a directory of objects, and a name that ends with ".kallsyms" has the symbols of a kernel.
 */
static bool is_input(const char *name)
{
	const char *dot = strrchr(name, '.');

	if (dot && (strcmp(dot, ".json") == 0 || strcmp(dot, ".jit") == 0 ||
			   strcmp(dot, FR_INPUT_KALLSYMS) == 0))
		return false;
	return starts_with(name, AUXILIARY) || starts_with(name, SAMPLE);
}

static int scan_directory(const char *path, struct fr_inputs *in, struct fr_diag *d)
{
	_cleanup_closedir_ DIR *dir = opendir(path);
	const struct dirent *e;

	if (!dir)
		return fr_fail_errno(d, -errno, NULL, "cannot open the directory %s", path);
	while ((e = readdir(dir))) {
		char *file;
		int r;

		if (!is_input(e->d_name))
			continue;
		if (asprintf(&file, "%s/%s", path, e->d_name) < 0)
			return -ENOMEM;
		r = add_path(in, file);
		if (r < 0)
			return r;
		in->v[in->n - 1].found = true;
	}
	return 0;
}

/* Puts auxiliary files before the other files, and sorts each of the two groups by name. */
static int compare_inputs(const void *a, const void *b)
{
	const struct fr_input *x = a, *y = b;
	const char *name_x = basename(x->path), *name_y = basename(y->path);
	bool sample_x = !starts_with(name_x, AUXILIARY), sample_y = !starts_with(name_y, AUXILIARY);

	return sample_x != sample_y ? sample_x - sample_y : strcmp(name_x, name_y);
}

/* Reads a whole file in pipe format, to get all parts of its head, and the time that it covers without a gap.
   (The merge leaves out the initial state of another file if this file covers the time of the initial state:
   see fr_cursor_new().) Then opens the file again for the merge. The file is opened by its open descriptor,
   not by its path, because flightrecd can replace perf.data.auxiliary by a shorter file at any time. */
static int examine_pipe(struct fr_input *in, struct fr_diag *d)
{
	struct fr_reader *first = in->reader;
	const struct perf_event_header *h;
	char same[32];
	int r;

	while ((r = fr_reader_next(first, &h, NULL)) == 1) {
		uint64_t t = fr_reader_time(first, h);

		if (!t || fr_reader_damage(first)->damaged)
			continue;
		if (!in->known_from || t < in->known_from)
			in->known_from = t;
		in->known_to = FR_MAX(in->known_to, t);
	}
	if (r == 0)
		r = fr_session_copy(fr_reader_session(first), &in->head);
	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot read %s", in->path);
	snprintf(same, sizeof(same), "/proc/self/fd/%d", fr_reader_fd(first));
	in->reader = NULL;
	r = fr_reader_open(same, &in->reader, d);
	fr_reader_free(first);
	if (r < 0)
		fr_diag_prefix(d, "%s", in->path);
	return r;
}

/* Returns whether a reader can find the event of each record: an event has an id, or there is only one event
   and its records have no ids. */
static bool has_ids(const struct fr_session *s)
{
	struct fr_layout l;

	for (size_t e = 0; e < s->n_events; e++)
		for (size_t i = 0; i < s->events[e].n_ids; i++)
			if (s->events[e].ids[i])
				return true;
	fr_layout_from_attr(&s->events[0].attr, &l);
	return s->n_events == 1 && !l.sample_id;
}

static int examine(struct fr_input *in, struct fr_diag *d)
{
	struct stat st;
	int r;

	if (fstat(fr_reader_fd(in->reader), &st) < 0)
		return -errno;
	in->dev = st.st_dev;
	in->ino = st.st_ino;
	in->size = (uint64_t)st.st_size;
	in->gid = st.st_gid;
	if (fr_reader_is_pipe(in->reader))
		r = examine_pipe(in, d);
	else
		r = fr_session_copy(fr_reader_session(in->reader), &in->head);
	if (r < 0)
		return r;
	if (in->head.n_events == 0)
		return fr_fail(d, -EBADMSG, NULL, "%s: it has no events", in->path);
	if (!has_ids(&in->head))
		return fr_fail(d, -EBADMSG, NULL, "%s: the ids of its events are lost", in->path);
	/* A flightrecd that writes to the file has a lock on it. */
	in->live = flock(fr_reader_fd(in->reader), LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
	if (!in->live)
		(void)flock(fr_reader_fd(in->reader), LOCK_UN);
	in->meta = fr_sidecar_read(in->path);
	fr_input_read_boot(in);
	return 0;
}

void fr_input_deinit(struct fr_input *in)
{
	fr_reader_free(in->reader);
	fr_session_deinit(&in->head);
	cJSON_Delete(in->meta);
	free(in->path);
	*in = (struct fr_input){0};
}

/* Returns whether input N is the same file as an earlier input. */
static bool is_repeated(const struct fr_inputs *in, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (in->v[i].dev == in->v[n].dev && in->v[i].ino == in->v[n].ino)
			return true;
	return false;
}

/* Opens and examines input I. Returns 1 if the input is used; 0 if it is left out; or a negative errno, with
   a message in D. */
static int open_input(const struct fr_merge_options *o, struct fr_inputs *in, size_t i, struct fr_diag *d)
{
	struct fr_input *one = &in->v[i];
	struct fr_diag why = {0};
	int r = fr_reader_open(one->path, &one->reader, &why);

	if (r == 0)
		r = examine(one, &why);
	if (r == -EBADMSG) {
		fr_merge_warn(o, "%s. The file is not merged, and not removed", why.what);
		in->n_unusable++;
		return 0;
	}
	if (r == -ENOENT && one->found) /* it was removed after scan_directory() had found it */
		return 0;
	if (r < 0 && why.code)
		return fr_fail(d, r, why.hint[0] ? why.hint : "run 'flightrecctl list' to see the files",
			"%s", why.what);
	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot open the inputs");
	return !is_repeated(in, i);
}

/* Opens all inputs in their order. Removes from the list the inputs that are left out. */
static int open_all(const struct fr_merge_options *o, struct fr_inputs *in, struct fr_diag *d)
{
	size_t all = in->n, kept = 0;
	int r = 0;

	for (size_t i = 0; i < all && r >= 0; i++) {
		struct fr_input one = in->v[i];

		in->v[i] = (struct fr_input){0};
		in->v[kept] = one;
		r = open_input(o, in, kept, d);
		if (r == 0) {
			fr_input_deinit(&in->v[kept]);
		} else {
			in->bytes += in->v[kept].size;
			kept++;
		}
	}
	if (r >= 0)
		in->n = kept;
	return FR_MIN(r, 0);
}

int fr_inputs_open(const struct fr_merge_options *o, struct fr_inputs *ret, struct fr_diag *d)
{
	int r = o->directory ? scan_directory(o->directory, ret, d) : 0;

	for (size_t i = 0; i < o->n_files && r >= 0; i++)
		r = add_path(ret, strdup(o->files[i]));
	if (r < 0)
		return r;
	if (ret->n == 0)
		return fr_fail(d, -ENOENT, "make a dump first: flightrecctl dump",
			"nothing to merge: no perf.data.auxiliary and no perf.data.sample.* in %s",
			o->directory ? o->directory : "the list");
	qsort(ret->v, ret->n, sizeof(*ret->v), compare_inputs);
	r = open_all(o, ret, d);
	if (r >= 0 && ret->n == 0)
		return fr_fail(d, -EBADMSG, "name dumps of flightrecd, or files of perf record",
			"nothing to merge: no input is a perf.data");
	return r;
}

void fr_inputs_read_ahead(struct fr_inputs *in)
{
	for (size_t i = 0; i < in->n; i++)
		fr_reader_set_read_ahead(in->v[i].reader, FR_MIN(AHEAD_ALL / in->n, (size_t)AHEAD_ONE));
}

void fr_inputs_deinit(struct fr_inputs *in)
{
	for (size_t i = 0; i < in->n; i++)
		fr_input_deinit(&in->v[i]);
	free(in->v);
	*in = (struct fr_inputs){0};
}
