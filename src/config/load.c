// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lists the files of the configuration in order, and reads them. The library inih parses the lines. inih does
 * not pass the number of the line to assign(), and does not report a line that is too long. So inih gets each
 * line from the function read_line(), which counts and checks the lines.
 */
#include "config/config_private.h"
#include "base/cleanup.h"
#include "base/thread.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILES_MAX 256
#define BYTES_MAX (1u << 20) /* the largest size of all files together */

struct reader {
	struct fr_config *config;
	FILE *f;
	const char *name;
	unsigned line;
	char origin[512]; /* "NAME:LINE" */
	off_t bytes;
	char *section; /* the current section; not taken from inih, because inih truncates a long name */
	int code;      /* the error of the first bad line, after which nothing is read; or 0 */
	struct fr_diag *d;
};

static int fail_line(struct reader *r, const char *hint, const char *text)
{
	return r->code = fr_fail(r->d, -EINVAL, hint, "%s: %s", r->origin, text);
}

/* Keeps a line for the next instance of flightrecd: "[SECTION]" or "NAME=VALUE". A, B and C are the parts of
   the line. */
static int keep_line(struct reader *r, const char *a, const char *b, const char *c)
{
	const char *const parts[] = {a, b, c, "\n"};
	int code = 0;

	for (size_t i = 0; code == 0 && i < FR_ARRAY_SIZE(parts); i++)
		code = fr_buf_append(&r->config->text, parts[i], strlen(parts[i]));
	return code;
}

/* Begins the section in the line from S to END. An unknown section is an error at this line, and not only at
   the first key of the section: the first key can be many lines below or missing. */
static int begin_section(struct reader *r, const char *s, const char *end)
{
	free(r->section);
	r->section = strndup(s + 1, (size_t)(end - s) - 2);
	if (!r->section)
		return r->code = -ENOMEM;
	r->code = fr_config_begin_section(r->config, r->section, r->origin, r->d);
	if (r->code == 0)
		r->code = keep_line(r, "[", r->section, "]");
	return r->code;
}

/* Checks the line S, which has no leading blanks, for errors that inih ignores. */
static int check_line(struct reader *r, const char *s)
{
	const char *end = s + strlen(s);

	while (end > s && isspace((unsigned char)end[-1]))
		end--;
	if (end == s || *s == '#' || *s == ';')
		return 0;
	if (*s == '[')
		return end[-1] == ']' ? begin_section(r, s, end)
				      : fail_line(r, "write it as [Recorder]", "the section has no ]");
	if (!strchr(s, '='))
		return fail_line(r, "write NAME=VALUE; a comment begins with #", "the line has no =");
	return 0;
}

/* inih calls this function instead of fgets(). The function removes leading blanks, because inih would take a
   line with leading blanks as a part of the previous line. */
static char *read_line(char *s, int size, void *stream)
{
	struct reader *r = stream;
	size_t blanks;

	if (r->code < 0 || !fgets(s, size, r->f))
		return NULL;
	snprintf(r->origin, sizeof(r->origin), "%s:%u", r->name, ++r->line);
	r->bytes += (off_t)strlen(s);
	r->config->bytes_read += strlen(s);
	if (r->config->bytes_read > BYTES_MAX)
		fail_line(r, "remove some of the lines", "the configuration is larger than 1 MiB");
	else if (!strchr(s, '\n') && (!feof(r->f) || ftello(r->f) > r->bytes))
		/* The line does not end with a newline: it is too long, or a NUL byte hides the rest of the
		   line. A power cut can leave a file of zeros. */
		fail_line(r, "write several Events= lines, and remove NUL bytes",
			"the line is too long, or is not text");
	if (r->code < 0)
		return NULL;
	blanks = strspn(s, " \t\r\f\v");
	memmove(s, s + blanks, strlen(s + blanks) + 1);
	return check_line(r, s) < 0 ? NULL : s;
}

/* inih calls this function for each assignment. Returns what inih expects: 1, or 0 if the assignment is
   wrong. */
static int assign(void *user, const char *truncated_section, const char *name, const char *value)
{
	struct reader *r = user;

	if (r->code < 0)
		return 1;
	value = value ? value : "";
	r->code = fr_config_set(r->config, r->section ? r->section : "", name, value, r->origin, r->d);
	if (r->code == 0)
		r->code = keep_line(r, name, "=", value);
	return r->code == 0;
}

int fr_config_read(struct fr_config *c, FILE *f, const char *name, struct fr_diag *d)
{
	struct reader r = {.config = c, .f = f, .name = name, .d = d};
	int line = ini_parse_stream(read_line, &r, assign, &r);

	free(r.section);
	if (r.code < 0)
		return r.code;
	if (ferror(f))
		return fr_fail_errno(d, -EIO, NULL, "cannot read %s", name);
	if (line > 0)
		return fr_fail(d, -EINVAL, "write NAME=VALUE or [SECTION]",
			"%s:%d: the line cannot be parsed", name, line);
	return line < 0 ? -ENOMEM : 0;
}

static int read_file(struct fr_config *c, const char *path, struct fr_diag *d)
{
	/* With O_NONBLOCK, a start or a reload does not wait if the file is a FIFO without a writer. */
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	_cleanup_fclose_ FILE *f = NULL;
	struct stat st;

	if (fd < 0)
		return fr_fail_errno(d, -errno,
			"name a file that exists and can be read; `flightrecd --help-config` prints an "
			"example",
			"cannot open %s", path);
	if (fstat(fd, &st) < 0 || S_ISDIR(st.st_mode))
		return fr_fail_errno(d, -EISDIR, "name a file; put its drop-ins into the directory FILE.d",
			"cannot read %s", path);
	if (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode)) /* /dev/null is valid */
		return fr_fail(
			d, -EINVAL, "name a regular file", "cannot read %s: it is not a regular file", path);
	f = fdopen(fd, "re");
	if (!f)
		return -errno;
	TAKE_FD(fd);
	return fr_config_read(c, f, path, d);
}

struct file_list {
	char **paths;	   /* ended by NULL; there is room for the main file and FILES_MAX drop-ins */
	size_t n, n_mains; /* n: number of files; n_mains: 1 if the first file is the main file, else 0 */
};

static void free_paths(char **paths)
{
	for (size_t i = 0; paths && paths[i]; i++)
		free(paths[i]);
	free(paths);
}

static int append_path(struct file_list *l, const char *directory, const char *name)
{
	if (asprintf(&l->paths[l->n], "%s%s", directory, name) < 0) {
		l->paths[l->n] = NULL;
		return -ENOMEM;
	}
	l->n++;
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(basename(*(char *const *)a), basename(*(char *const *)b));
}

static bool has_drop_in(const struct file_list *l, const char *name)
{
	for (size_t i = l->n_mains; i < l->n; i++)
		if (!strcmp(basename(l->paths[i]), name))
			return true;
	return false;
}

/* Appends the drop-ins in DIRECTORY. Leaves out a file if a directory that was read before has a file of the
   same name. */
static int append_drop_ins(struct file_list *l, const char *directory, struct fr_diag *d)
{
	_cleanup_closedir_ DIR *dir = opendir(directory);
	const struct dirent *e;
	int r = 0;

	if (!dir)
		return errno == ENOENT || errno == ENOTDIR
			       ? 0
			       : fr_fail_errno(d, -errno, NULL, "cannot read %s", directory);
	while (r == 0 && (e = readdir(dir))) {
		const char *suffix = strrchr(e->d_name, '.');

		if (e->d_name[0] == '.' || !suffix || strcmp(suffix, ".conf") || has_drop_in(l, e->d_name))
			continue;
		if (l->n - l->n_mains == FILES_MAX)
			return fr_fail(d, -E2BIG, "join some of the files",
				"there are more than %d files in %s", FILES_MAX, directory);
		r = append_path(l, directory, e->d_name);
	}
	return r;
}

/* Removes links to /dev/null from the list, and sorts the drop-ins. A person makes such a link in one
   directory so that a file of the same name in another directory is not read. */
static void finish_drop_ins(struct file_list *l)
{
	size_t n = l->n_mains;
	struct stat st;

	for (size_t i = n; i < l->n; i++)
		if (stat(l->paths[i], &st) == 0 && S_ISCHR(st.st_mode))
			free(l->paths[i]);
		else
			l->paths[n++] = l->paths[i];
	l->n = n;
	l->paths[n] = NULL;
	qsort(l->paths + l->n_mains, n - l->n_mains, sizeof(*l->paths), compare_names);
}

/* Appends the main file. If the default file is missing, leaves it out. PATH is never left out: if PATH is
   missing, the later read of PATH has to fail. */
static int append_main(struct file_list *l, const char *root, const char *path)
{
	int r = path ? append_path(l, "", path) : append_path(l, root, "/etc/flightrec/flightrecd.conf");

	if (r == 0 && !path && access(l->paths[0], F_OK) < 0) {
		free(l->paths[0]);
		l->paths[--l->n] = NULL;
	}
	l->n_mains = l->n;
	return r;
}

int fr_config_files_at(const char *root, const char *path, char ***ret, struct fr_diag *d)
{
	static const char *const system[] = {"/etc", "/run", "/usr/lib"};
	struct file_list l = {.paths = calloc(FILES_MAX + 2, sizeof(char *))};
	int r = l.paths ? append_main(&l, root, path) : -ENOMEM;

	for (size_t i = 0; r == 0 && i < (path ? 1 : FR_ARRAY_SIZE(system)); i++) {
		_cleanup_free_ char *directory = NULL;
		const int len =
			path ? asprintf(&directory, "%s.d/", path)
			     : asprintf(&directory, "%s%s/flightrec/flightrecd.conf.d/", root, system[i]);

		if (len < 0)
			directory = NULL;
		r = directory ? append_drop_ins(&l, directory, d) : -ENOMEM;
	}
	if (r < 0) {
		free_paths(l.paths);
		return r;
	}
	finish_drop_ins(&l);
	*ret = l.paths;
	return 0;
}

int fr_config_files(const char *path, char ***ret, struct fr_diag *d)
{
	return fr_config_files_at("", path, ret, d);
}

int fr_config_load(struct fr_config *c, const char *path, struct fr_diag *d)
{
	char **paths;
	int r;

	fr_thread_assert_may_wait();
	r = fr_config_files(path, &paths, d);
	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && paths[i]; i++)
		r = read_file(c, paths[i], d);
	free_paths(paths);
	return r;
}
