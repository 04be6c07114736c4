// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/bundle.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "objects/vdso.h"
#include "report/elf.h"
#include "sideband/hash.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define BLOCK (1u << 20)
#define NAME_BYTES_MAX 1024u
/* Of all object files and debug files together. Any user can make files that seem to be very large. */
#define OBJECTS_BYTES_MAX (4ull << 30)
#define MISSING_BYTES 256 /* of the paths in a message */

struct member {
	UT_hash_handle hh;
	char *name;
	const void *bytes; /* borrowed; NULL: the content is that of `fd` */
	int fd;
	uint64_t size;
};

struct fr_bundle_plan {
	const struct fr_profile_config *config;
	const struct fr_frames *frames;
	struct member *members; /* in the order in which they were added */
	struct fr_buf kallsyms;
	time_t mtime;
	uint64_t bytes;
	uint64_t objects_bytes;
	size_t n_missing, n_left_out;
	char missing[MISSING_BYTES], left_out[MISSING_BYTES];
	/* While it is written: */
	struct archive *archive;
	uint8_t *block;
	uint64_t done;
	bool (*progress)(uint64_t done, uint64_t total);
};

/* --- what is in the bundle --- */

static void free_member(struct member *m)
{
	fr_closep(&m->fd);
	free(m->name);
	free(m);
}

struct fr_bundle_plan *fr_bundle_plan_free(struct fr_bundle_plan *plan)
{
	if (!plan)
		return NULL;
	FR_HASH_CLEAR(plan->members, free_member);
	fr_buf_deinit(&plan->kallsyms);
	free(plan);
	return NULL;
}

void fr_bundle_plan_stats(const struct fr_bundle_plan *plan, struct fr_bundle_stats *ret)
{
	*ret = (struct fr_bundle_stats){.n_members = HASH_COUNT(plan->members),
		.bytes = plan->bytes,
		.n_missing = plan->n_missing,
		.missing = plan->missing,
		.n_left_out = plan->n_left_out,
		.left_out = plan->left_out};
}

/* Adds a member, unless there is one with this name: several objects can have the same build-id. */
static int add(struct fr_bundle_plan *plan, const char *name, const void *bytes, int fd, uint64_t size)
{
	struct member *m;

	HASH_FIND(hh, plan->members, name, strlen(name), m);
	if (m)
		return 0;
	m = calloc(1, sizeof(*m));
	if (m)
		*m = (struct member){.name = strdup(name), .bytes = bytes, .fd = -1, .size = size};
	if (m && m->name)
		HASH_ADD_KEYPTR(hh, plan->members, m->name, strlen(m->name), m);
	if (!m || !m->hh.tbl) {
		if (m)
			free_member(m);
		return -ENOMEM;
	}
	plan->bytes += size;
	m->fd = bytes ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return bytes || m->fd >= 0 ? 0 : -errno;
}

/* Appends PATH to a list in a message, if there is room. */
static void list_path(char list[static MISSING_BYTES], const char *path)
{
	const size_t len = strlen(list);

	if (len + strlen(path) + 2 < MISSING_BYTES)
		snprintf(list + len, MISSING_BYTES - len, "%s%s", len ? ", " : "", path);
}

/* Adds a file of the object O, if the limit of all objects permits it. */
static int add_limited(struct fr_bundle_plan *plan, const struct fr_code_object *o, const char *name,
	const void *bytes, int fd, uint64_t size)
{
	const uint64_t before = plan->bytes;
	int r;

	if (size > OBJECTS_BYTES_MAX - plan->objects_bytes ||
		HASH_COUNT(plan->members) >= FR_BUNDLE_MEMBERS_MAX - 1) {
		plan->n_left_out++;
		list_path(plan->left_out, o->path);
		return 0;
	}
	r = add(plan, name, bytes, fd, size);
	plan->objects_bytes += plan->bytes - before;
	return r;
}

/* Adds the file whose path is that of the dump, followed by SUFFIX. Returns 0 or a negative errno. */
static int add_beside(struct fr_bundle_plan *plan, const char *suffix)
{
	const char *path = plan->config->path, *slash = strrchr(path, '/');
	char full[PATH_MAX];
	struct stat st;
	_cleanup_close_ int fd = -1;

	if ((size_t)snprintf(full, sizeof(full), "%s%s", path, suffix) >= sizeof(full))
		return -ENAMETOOLONG;
	fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	return fstat(fd, &st) < 0
		       ? -errno
		       : add(plan, full + (slash ? slash + 1 - path : 0), NULL, fd, (uint64_t)st.st_size);
}

static int add_dump(struct fr_bundle_plan *plan, struct fr_diag *d)
{
	struct stat st;
	int r = add_beside(plan, "");

	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot pack %s", plan->config->path);
	if (!plan->members || fstat(plan->members->fd, &st) < 0 || !S_ISREG(st.st_mode))
		return fr_fail(d, -EINVAL, "save it to a file first", "%s is not a regular file",
			plan->config->path);
	plan->mtime = st.st_mtime;
	r = add_beside(plan, ".json");
	if (r == 0 || r == -ENOENT)
		r = add_beside(plan, ".kallsyms");
	return r == -ENOENT ? 0 : r;
}

/* Adds the symbols of the kernel and of its modules. */
static int add_kallsyms(struct fr_bundle_plan *plan, const struct fr_code_object *kernel)
{
	char path[FR_OBJECT_PATH_SIZE], name[FR_OBJECT_PATH_SIZE + 8];

	if (kernel->build_id_len == 0 || fr_object_find_kallsyms(&plan->config->places, kernel->build_id,
						 kernel->build_id_len, &plan->kallsyms) < 0)
		return 0;
	fr_object_format_path(kernel->build_id, kernel->build_id_len, "kallsyms", path);
	snprintf(name, sizeof(name), "debug/%s", path);
	return add(plan, name, plan->kallsyms.data, -1, plan->kallsyms.len);
}

const char *fr_bundle_name_fault(const char *name)
{
	if (name[0] == '/' || strlen(name) >= NAME_BYTES_MAX)
		return "has an absolute or a long name";
	for (const char *part = name; part; part = strchr(part, '/')) {
		part += *part == '/';
		if (part[0] == '.' && (part[1] == '/' || part[1] == '\0' ||
					      (part[1] == '.' && (part[2] == '/' || part[2] == '\0'))))
			return "has '.' or '..' in its name";
		if (*part == '/' || *part == '\0')
			return "has an empty part in its name";
	}
	return NULL;
}

/* Writes the name in the bundle for a file of an object that has no build-id. Returns false if its path
   cannot be one. */
static bool format_name(const struct fr_code_object *o, const char *link, char ret[static PATH_MAX])
{
	const char *beside = fr_object_beside(o->path), *path = beside ? beside : o->path,
		   *slash = strrchr(path, '/');
	int n;

	if (!slash || (!beside && path[0] != '/'))
		return false;
	n = link ? snprintf(ret, PATH_MAX, "%s%.*s/.debug/%s", beside ? "" : "files", (int)(slash - path),
			   path, link)
		 : snprintf(ret, PATH_MAX, "%s%s", beside ? "" : "files", path);
	return n < PATH_MAX && !fr_bundle_name_fault(ret);
}

/* Adds a debug file of O. libdw finds it by its build-id, or by its name beside the object. */
static int add_debug(
	struct fr_bundle_plan *plan, const struct fr_code_object *o, const struct fr_elf_debug *debug)
{
	char name[PATH_MAX] = "debug/";
	struct stat st;

	if (fstat(debug->fd, &st) < 0)
		return -errno;
	if (debug->build_id_len > 0)
		fr_object_format_path(debug->build_id, debug->build_id_len, "debug", name + strlen(name));
	else if (!debug->link[0] || !format_name(o, debug->link, name))
		return 0;
	return add_limited(plan, o, name, NULL, debug->fd, (uint64_t)st.st_size);
}

static int add_object(struct fr_bundle_plan *plan, const struct fr_code_object *o, const struct fr_elf *elf)
{
	char name[PATH_MAX] = "debug/";
	const void *bytes;
	size_t size;
	int r;

	if (o->build_id_len > 0)
		fr_object_format_path(o->build_id, o->build_id_len,
			strcmp(o->path, FR_VDSO_NAME) == 0 ? "vdso" : "elf", name + strlen(name));
	else if (!format_name(o, NULL, name))
		return 0;
	if (!fr_elf_bytes(elf, &bytes, &size))
		return 0;
	r = add_limited(plan, o, name, bytes, -1, size);
	for (enum fr_elf_debug_kind kind = 0; r == 0 && kind < FR_ELF_N_DEBUG; kind++)
		if (fr_elf_debug(elf, kind))
			r = add_debug(plan, o, fr_elf_debug(elf, kind));
	return r;
}

/* Notes an object that was not found, if it is a file: not "[heap]" or memory of a device. */
static void note_missing(struct fr_bundle_plan *plan, const struct fr_code_object *o)
{
	if (o->path[0] != '/' || !strncmp(o->path, "//", 2) || !strncmp(o->path, "/dev/", 5) ||
		!strncmp(o->path, "/memfd:", 7))
		return;
	plan->n_missing++;
	list_path(plan->missing, o->path);
}

static int add_objects(struct fr_bundle_plan *plan)
{
	bool has_kernel = false;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < fr_frames_n_objects(plan->frames); i++) {
		const struct fr_code_object *o = fr_frames_object(plan->frames, i);
		const struct fr_elf *elf = fr_frames_elf(plan->frames, i);

		if (elf)
			r = add_object(plan, o, elf);
		else if (o->kind == FR_OBJECT_FILE && o->n_frames > 0)
			note_missing(plan, o);
		has_kernel |= (o->kind == FR_OBJECT_KERNEL || o->kind == FR_OBJECT_MODULE) && o->found;
	}
	for (uint32_t i = 0; r == 0 && has_kernel && i < fr_frames_n_objects(plan->frames); i++)
		if (fr_frames_object(plan->frames, i)->kind == FR_OBJECT_KERNEL)
			r = add_kallsyms(plan, fr_frames_object(plan->frames, i));
	return r;
}

static int ignore_sample(void *ctx, const struct fr_profile *p, const struct fr_profile_sample *s)
{
	return 0;
}

int fr_bundle_plan(struct fr_profile *p, const struct fr_profile_config *config, struct fr_bundle_plan **ret,
	struct fr_diag *d)
{
	static const struct fr_view view = {.sample = ignore_sample}; /* the profile finds the names itself */
	struct fr_bundle_plan *plan = calloc(1, sizeof(*plan));
	int r;

	if (!plan)
		return -ENOMEM;
	plan->config = config;
	plan->frames = fr_profile_frames(p);
	r = add_dump(plan, d);
	if (r == 0)
		r = fr_profile_read(p, &view, d);
	if (r == 0)
		r = add_objects(plan);
	if (r < 0) {
		fr_bundle_plan_free(plan);
		return fr_fail_errno(d, r, NULL, "cannot find what %s needs", config->path);
	}
	*ret = plan;
	return 0;
}

/* --- the archive --- */

static int fail_archive(const struct fr_bundle_plan *plan, struct fr_diag *d)
{
	const char *why = archive_error_string(plan->archive);
	const int code = archive_errno(plan->archive);

	return fr_fail(d, code > 0 ? -code : -EIO, "is there enough room? name another file by -o",
		"cannot write the bundle: %s", why ? why : "unknown");
}

static int write_head(const struct fr_bundle_plan *plan, const struct member *m, struct fr_diag *d)
{
	struct archive_entry *entry = archive_entry_new();
	int r;

	if (!entry)
		return -ENOMEM;
	archive_entry_set_pathname(entry, m->name);
	archive_entry_set_filetype(entry, AE_IFREG);
	archive_entry_set_perm(entry, 0600);
	archive_entry_set_size(entry, (la_int64_t)m->size);
	archive_entry_set_mtime(entry, plan->mtime, 0);
	r = archive_write_header(plan->archive, entry);
	archive_entry_free(entry);
	return r == ARCHIVE_OK || r == ARCHIVE_WARN ? 0 : fail_archive(plan, d);
}

/* Gets the next block of a member. Returns 0 or a negative errno. */
static int get_block(
	const struct fr_bundle_plan *plan, const struct member *m, uint64_t at, size_t n, const void **ret)
{
	ssize_t got;

	if (m->bytes) {
		*ret = (const uint8_t *)m->bytes + at;
		return 0;
	}
	*ret = plan->block;
	got = fr_pread_all(m->fd, plan->block, n, (off_t)at);
	return got < 0 ? (int)got : (size_t)got == n ? 0 : -ESTALE;
}

static int write_content(struct fr_bundle_plan *plan, const struct member *m, struct fr_diag *d)
{
	for (uint64_t at = 0; at < m->size;) {
		const size_t n = FR_MIN(m->size - at, (uint64_t)BLOCK);
		const void *block;
		const int r = get_block(plan, m, at, n, &block);

		if (r < 0)
			return fr_fail_errno(d, r, "try again", "cannot read %s", m->name);
		if (archive_write_data(plan->archive, block, n) != (la_ssize_t)n)
			return fail_archive(plan, d);
		at += n;
		plan->done += n;
		if (plan->progress && !plan->progress(plan->done, plan->bytes))
			return -EINTR;
	}
	return 0;
}

static int write_members(struct fr_bundle_plan *plan, int fd, struct fr_diag *d)
{
	struct member *m, *next;
	int r = 0;

	if (archive_write_add_filter_zstd(plan->archive) != ARCHIVE_OK ||
		archive_write_set_format_pax_restricted(plan->archive) != ARCHIVE_OK ||
		archive_write_set_bytes_in_last_block(plan->archive, 1) != ARCHIVE_OK ||
		archive_write_open_fd(plan->archive, fd) != ARCHIVE_OK)
		return fail_archive(plan, d);
	HASH_ITER (hh, plan->members, m, next) {
		r = write_head(plan, m, d);
		if (r == 0)
			r = write_content(plan, m, d);
		if (r < 0)
			return r;
	}
	return archive_write_close(plan->archive) == ARCHIVE_OK ? 0 : fail_archive(plan, d);
}

int fr_bundle_write(struct fr_bundle_plan *plan, int fd, bool (*progress)(uint64_t done, uint64_t total),
	struct fr_diag *d)
{
	int r = -ENOMEM;

	plan->archive = archive_write_new();
	plan->block = malloc(BLOCK);
	plan->progress = progress;
	plan->done = 0;
	if (plan->archive && plan->block)
		r = write_members(plan, fd, d);
	/* A failed archive must not be completed when it is freed. */
	if (r < 0 && plan->archive)
		(void)archive_write_fail(plan->archive);
	archive_write_free(plan->archive);
	free(plan->block);
	plan->archive = NULL;
	plan->block = NULL;
	return r;
}
