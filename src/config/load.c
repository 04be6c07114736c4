// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which files there are, in which order, and one of them line by line. The parser of the lines is inih; what
 * it does not tell (the line's number, a line that did not fit) the reader below it knows.
 */
#include "config/config_private.h"
#include "base/cleanup.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_FILES 256
#define BYTES_MAX (1u << 20) /* of all files */

struct parse {
	struct fr_config *config;
	FILE *f;
	const char *name;
	unsigned line;
	off_t bytes;
	char *section; /* all of its name: the parser cuts a long one off */
	int code;      /* of the first bad line, which ends it all */
	struct fr_diag *d;
};

static int bad_line(struct parse *p, const char *hint, const char *what)
{
	p->code = fr_fail(p->d, -EINVAL, hint, "%s:%u: %s", p->name, p->line, what);
	return p->code;
}

/* "[SECTION]" or "NAME=VALUE": a file that says the same, but for comments. */
static int keep_line(struct parse *p, const char *a, const char *b, const char *c, const char *end)
{
	const char *const parts[] = {a, b, c, end};
	int r = 0;

	for (size_t i = 0; r == 0 && i < FR_ARRAY_SIZE(parts); i++)
		r = fr_buf_append(&p->config->text, parts[i], strlen(parts[i]));
	return r;
}

/* A section that is unknown is told of where it begins, and not at its first key, which may be far or
 * missing. */
static int begin_section(struct parse *p, const char *s, const char *end)
{
	char origin[512];

	free(p->section);
	p->section = strndup(s + 1, (size_t)(end - s) - 2);
	if (!p->section)
		return p->code = -ENOMEM;
	snprintf(origin, sizeof(origin), "%s:%u", p->name, p->line);
	p->code = fr_config_begin_section(p->config, p->section, origin, p->d);
	if (p->code == 0)
		p->code = keep_line(p, "[", p->section, "]", "\n");
	return p->code;
}

/* What the parser would pass over without a word. S has no blanks in front. */
static int check_line(struct parse *p, const char *s)
{
	const char *end = s + strlen(s);

	while (end > s && isspace((unsigned char)end[-1]))
		end--;
	if (end == s || *s == '#' || *s == ';')
		return 0;
	if (*s == '[')
		return end[-1] == ']' ? begin_section(p, s, end)
				      : bad_line(p, "write [Recorder] or [Dump]", "the section does not end");
	if (!strchr(s, '='))
		return bad_line(p, "write NAME=VALUE; a comment begins with #", "no assignment");
	return 0;
}

/* inih's fgets(). Blanks in front go: they would make a line the continuation of the one before. */
static char *read_line(char *s, int size, void *stream)
{
	struct parse *p = stream;
	size_t blanks;

	if (p->code < 0 || !fgets(s, size, p->f))
		return NULL;
	p->line++;
	p->bytes += (off_t)strlen(s);
	p->config->bytes_read += strlen(s);
	if (p->config->bytes_read > BYTES_MAX) {
		bad_line(p, "leave out what is not needed", "the configuration is larger than 1 MiB");
		return NULL;
	}
	if (!strchr(s, '\n') && (!feof(p->f) || ftello(p->f) > p->bytes)) {
		/* Either too long, or a NUL byte hides the rest: a power cut may leave a file of zeros. */
		bad_line(p, "give several Events= lines; there are no NUL bytes in a configuration",
			"the line is too long or no text");
		return NULL;
	}
	blanks = strspn(s, " \t\r\f\v");
	memmove(s, s + blanks, strlen(s + blanks) + 1);
	return check_line(p, s) < 0 ? NULL : s;
}

static int assign(void *user, const char *cut_section, const char *name, const char *value)
{
	struct parse *p = user;
	const char *section = p->section ? p->section : "";
	char origin[512];

	if (p->code < 0)
		return 1;
	snprintf(origin, sizeof(origin), "%s:%u", p->name, p->line);
	p->code = fr_config_set(p->config, section, name, value ? value : "", origin, p->d);
	if (p->code == 0)
		p->code = keep_line(p, name, "=", value ? value : "", "\n");
	return p->code == 0;
}

int fr_config_read(struct fr_config *c, FILE *f, const char *name, struct fr_diag *d)
{
	struct parse p = {.config = c, .f = f, .name = name, .d = d};
	int r = ini_parse_stream(read_line, &p, assign, &p);

	free(p.section);
	if (p.code < 0)
		return p.code;
	if (ferror(f))
		return fr_fail_errno(d, -EIO, NULL, "cannot read %s", name);
	if (r > 0)
		return fr_fail(
			d, -EINVAL, "write NAME=VALUE or [SECTION]", "%s:%d: cannot be understood", name, r);
	return r < 0 ? -ENOMEM : 0;
}

static int read_file(struct fr_config *c, const char *path, struct fr_diag *d)
{
	/* A FIFO nobody writes to must not hold up a start, and still less a reload. */
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	_cleanup_fclose_ FILE *f = NULL;
	struct stat st;

	if (fd < 0)
		return fr_fail_errno(d, -errno,
			"name a file that is there and may be read; flightrecd --help-config prints one",
			"cannot open %s", path);
	if (fstat(fd, &st) < 0 || S_ISDIR(st.st_mode))
		return fr_fail_errno(
			d, -EISDIR, "name a file; drop-ins stand in FILE.d", "cannot read %s", path);
	if (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode)) /* /dev/null is a configuration, too */
		return fr_fail(
			d, -EINVAL, "name a regular file", "cannot read %s: it is no regular file", path);
	f = fdopen(fd, "re");
	if (!f)
		return -errno;
	TAKE_FD(fd);
	return fr_config_read(c, f, path, d);
}

/* Paths, sorted by the last component. */
struct files {
	char **paths; /* room for MAX_FILES and the NULL */
	size_t n;
};

static void files_free(char **paths)
{
	for (size_t i = 0; paths && paths[i]; i++)
		free(paths[i]);
	free(paths);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(base_name(*(char *const *)a), base_name(*(char *const *)b));
}

static bool has_name(const struct files *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strcmp(base_name(l->paths[i]), name))
			return true;
	return false;
}

/* Add DIRECTORY's *.conf that no earlier directory has. */
static int add_directory(struct files *l, const char *directory, struct fr_diag *d)
{
	_cleanup_closedir_ DIR *dir = opendir(directory);
	const struct dirent *e;

	if (!dir)
		return errno == ENOENT || errno == ENOTDIR
			       ? 0
			       : fr_fail_errno(d, -errno, NULL, "cannot read %s", directory);
	while ((e = readdir(dir))) {
		size_t len = strlen(e->d_name);

		if (e->d_name[0] == '.' || len <= 5 || strcmp(e->d_name + len - 5, ".conf") ||
			has_name(l, e->d_name))
			continue;
		if (l->n == MAX_FILES)
			return fr_fail(
				d, -E2BIG, "join some", "more than %d files in %s", MAX_FILES, directory);
		if (asprintf(&l->paths[l->n], "%s/%s", directory, e->d_name) < 0) {
			l->paths[l->n] = NULL;
			return -ENOMEM;
		}
		l->n++;
	}
	return 0;
}

/* A link to /dev/null says that a file of that name, in a directory after it, is not wanted. */
static bool is_mask(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISCHR(st.st_mode);
}

static void drop_masks(struct files *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++)
		if (is_mask(l->paths[i]))
			free(l->paths[i]);
		else
			l->paths[n++] = l->paths[i];
	l->n = n;
	l->paths[n] = NULL;
}

static int add_drop_ins(struct files *l, const char *root, const char *path, struct fr_diag *d)
{
	static const char *const system[] = {"/etc", "/run", "/usr/lib"};
	int r = 0;

	for (size_t i = 0; r == 0 && i < (path ? 1 : FR_ARRAY_SIZE(system)); i++) {
		_cleanup_free_ char *directory = NULL;

		if (path)
			r = asprintf(&directory, "%s.d", path);
		else
			r = asprintf(&directory, "%s%s/flightrec/flightrecd.conf.d", root, system[i]);
		if (r < 0) {
			directory = NULL;
			return -ENOMEM;
		}
		r = add_directory(l, directory, d);
	}
	return r;
}

/* The main file in front of the list. */
static int add_main(struct files *l, const char *root, const char *path)
{
	_cleanup_free_ char *main_file = NULL;

	if (path ? !(main_file = strdup(path))
		 : asprintf(&main_file, "%s/etc/flightrec/flightrecd.conf", root) < 0) {
		main_file = NULL;
		return -ENOMEM;
	}
	/* One that was named has to be there: reading it says that it is not. */
	if (!path && access(main_file, F_OK) < 0)
		return 0;
	memmove(l->paths + 1, l->paths, l->n * sizeof(*l->paths));
	l->paths[0] = TAKE_PTR(main_file);
	l->n++;
	return 0;
}

int fr_config_files_at(const char *root, const char *path, char ***ret, struct fr_diag *d)
{
	struct files l = {calloc(MAX_FILES + 2, sizeof(char *)), 0};
	int r;

	if (!l.paths)
		return -ENOMEM;
	r = add_drop_ins(&l, root, path, d);
	if (r == 0) {
		drop_masks(&l);
		qsort(l.paths, l.n, sizeof(*l.paths), by_name);
		r = add_main(&l, root, path);
	}
	if (r < 0) {
		files_free(l.paths);
		return r;
	}
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
	int r = fr_config_files(path, &paths, d);

	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && paths[i]; i++)
		r = read_file(c, paths[i], d);
	files_free(paths);
	return r;
}
