// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Opens a bundle. libarchive only decodes the archive; this file itself makes the folders and files, below a
 * new folder in which nobody else can make links. It makes nothing but folders and regular files, and
 * replaces no file, so no name of a member can lead out of the folder.
 */
#include "report/bundle.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/units.h"
#include "base/utf8.h"
#include "report/temporary.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define TEXT_MAX 128u /* of a name or a text in a message; the rest is left out */
#define BLOCK (1u << 20)
/* A bundle can become this many times as large when it is unpacked. Object files become about 4 times as
 * large. */
#define RATIO_MAX 256u
#define BYTES_LEAST (64u << 20)

struct fr_bundle {
	struct fr_temporary *temporary;
	char *dump, *files;
	/* While it is unpacked: */
	const char *path; /* of the bundle */
	struct archive *archive;
	int folder;
	uint8_t *block;
	uint64_t bytes, bytes_max; /* of the members */
};

static void archive_freep(struct archive **a)
{
	archive_read_free(*a);
}

/* Returns a copy of TEXT that can be printed; only for messages. */
static const char *printable(const char *text, char ret[static TEXT_MAX])
{
	snprintf(ret, TEXT_MAX, "%s", text);
	fr_utf8_sanitize(ret);
	return ret;
}

static int fail_hostile(const struct fr_bundle *b, const char *name, const char *why, struct fr_diag *d)
{
	char text[TEXT_MAX];

	return fr_fail(d, -EBADMSG, "flightrec did not make this file like this: do not use it",
		"%s: the member '%s' %s", b->path, printable(name, text), why);
}

static int fail_damaged(const struct fr_bundle *b, struct fr_diag *d)
{
	const char *why = archive_error_string(b->archive);
	char text[TEXT_MAX];

	return fr_fail(d, -EBADMSG, "copy the bundle again from where it was made, or make a new one",
		"%s is damaged or is no bundle: %s", b->path, printable(why ? why : "unknown", text));
}

/* Returns why the member is not unpacked, or NULL. */
static const char *find_fault(struct archive_entry *entry, const char *name)
{
	if (archive_entry_hardlink(entry) || archive_entry_symlink(entry))
		return "is a link";
	if (archive_entry_filetype(entry) != AE_IFREG)
		return "is not a regular file";
	return fr_bundle_name_fault(name);
}

/* Creates the file NAME and the folders above it. Returns a descriptor or a negative errno. */
static int create(const struct fr_bundle *b, const char *name)
{
	_cleanup_free_ char *copy = strdup(name);
	_cleanup_close_ int at = fcntl(b->folder, F_DUPFD_CLOEXEC, 0);
	char *part = copy, *slash;
	int fd;

	if (!copy || at < 0)
		return copy ? -errno : -ENOMEM;
	for (; (slash = strchr(part, '/')); part = slash + 1) {
		*slash = '\0';
		if (mkdirat(at, part, 0700) < 0 && errno != EEXIST)
			return -errno;
		fd = openat(at, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		close(at);
		at = fd;
	}
	fd = openat(at, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

/* Copies the content of the member. It can be larger than the head of the member says. */
static int copy_content(struct fr_bundle *b, int to, struct fr_diag *d)
{
	char limit[FR_UNIT_SIZE];
	la_ssize_t n;
	int r;

	while ((n = archive_read_data(b->archive, b->block, BLOCK)) > 0) {
		b->bytes += (uint64_t)n;
		if (b->bytes > b->bytes_max)
			return fr_fail(d, -EFBIG,
				"if you trust it, unpack it by `tar --zstd -xf`, or set TMPDIR to a larger "
				"disk",
				"%s needs more than %s when it is unpacked", b->path,
				fr_size_format(b->bytes_max, limit));
		r = fr_write_all(to, b->block, (size_t)n);
		if (r < 0)
			return fr_fail_errno(d, r, "set TMPDIR to a folder on a disk with enough room",
				"cannot unpack %s into %s", b->path, fr_temporary_path(b->temporary));
	}
	return n < 0 ? fail_damaged(b, d) : 0;
}

static int unpack_member(struct fr_bundle *b, struct archive_entry *entry, struct fr_diag *d)
{
	const char *name = archive_entry_pathname(entry);
	const char *fault = name ? find_fault(entry, name) : "has a name that cannot be read";
	_cleanup_close_ int fd = -1;

	if (fault)
		return fail_hostile(b, name ? name : "", fault, d);
	if (!b->dump) {
		if (strchr(name, '/'))
			return fail_hostile(b, name, "is the first one, but is no dump", d);
		if (asprintf(&b->dump, "%s/%s", fr_temporary_path(b->temporary), name) < 0)
			return -ENOMEM;
	}
	fd = create(b, name);
	if (fd == -EEXIST || fd == -EISDIR || fd == -ENOTDIR)
		return fail_hostile(b, name, "is there twice", d);
	if (fd < 0)
		return fr_fail_errno(d, fd, "set TMPDIR to a folder on a disk with enough room",
			"cannot unpack %s into %s", b->path, fr_temporary_path(b->temporary));
	return copy_content(b, fd, d);
}

static int unpack_all(struct fr_bundle *b, struct fr_diag *d)
{
	struct archive_entry *entry;
	int r = 0, x;

	for (unsigned n = 0; r == 0; n++) {
		x = archive_read_next_header(b->archive, &entry);
		if (x == ARCHIVE_EOF)
			return b->dump ? 0
				       : fr_fail(d, -EBADMSG, NULL, "%s is an archive without members",
						 b->path);
		if (x != ARCHIVE_OK && x != ARCHIVE_WARN)
			return fail_damaged(b, d);
		r = n < FR_BUNDLE_MEMBERS_MAX ? unpack_member(b, entry, d)
					      : fr_fail(d, -EBADMSG, "it is no bundle of flightrec",
							"%s has too many members", b->path);
	}
	return r;
}

/* A bundle with a few bytes can become very large. So its size after unpacking has limits, and a half of the
   disk stays free. */
static uint64_t find_limit(const struct fr_bundle *b, uint64_t archive_bytes)
{
	uint64_t limit = archive_bytes < UINT64_MAX / RATIO_MAX ? archive_bytes * RATIO_MAX : UINT64_MAX;
	struct statvfs st;

	limit = FR_MAX(limit, (uint64_t)BYTES_LEAST);
	if (fstatvfs(b->folder, &st) == 0)
		limit = FR_MIN(limit, (uint64_t)st.f_bavail * st.f_frsize / 2);
	return limit;
}

static int unpack(struct fr_bundle *b, int fd, uint64_t bytes, struct fr_diag *d)
{
	_cleanup_(archive_freep) struct archive *archive = archive_read_new();
	_cleanup_close_ int folder =
		open(fr_temporary_path(b->temporary), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_free_ uint8_t *block = malloc(BLOCK);

	if (!archive || folder < 0 || !block)
		return archive && block ? -errno : -ENOMEM;
	b->archive = archive;
	b->folder = folder;
	b->block = block;
	b->bytes_max = find_limit(b, bytes);
	if (asprintf(&b->files, "%s/files", fr_temporary_path(b->temporary)) < 0)
		return -ENOMEM;
	if (archive_read_support_filter_zstd(archive) != ARCHIVE_OK ||
		archive_read_support_format_tar(archive) != ARCHIVE_OK ||
		archive_read_open_fd(archive, fd, BLOCK) != ARCHIVE_OK)
		return fail_damaged(b, d);
	return unpack_all(b, d);
}

int fr_bundle_open(const char *path, struct fr_bundle **ret, struct fr_diag *d)
{
	static const uint8_t zstd[] = {0x28, 0xb5, 0x2f, 0xfd};
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	uint8_t begin[sizeof(zstd)];
	struct fr_bundle *b;
	struct stat st;
	int r;

	*ret = NULL;
	/* The reader of dumps says what is wrong with a file that cannot be read. */
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
		fr_pread_all(fd, begin, sizeof(begin), 0) != sizeof(begin) ||
		memcmp(begin, zstd, sizeof(zstd)) != 0)
		return 0;
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	b->path = path;
	r = fr_temporary_new(&b->temporary, d);
	if (r == 0)
		r = unpack(b, fd, (uint64_t)st.st_size, d);
	if (r < 0) {
		fr_bundle_free(b);
		return fr_fail_errno(d, r, NULL, "cannot open %s", path);
	}
	*ret = b;
	return 0;
}

struct fr_bundle *fr_bundle_free(struct fr_bundle *b)
{
	if (!b)
		return NULL;
	fr_temporary_free(b->temporary);
	free(b->dump);
	free(b->files);
	free(b);
	return NULL;
}

const char *fr_bundle_dump(const struct fr_bundle *b)
{
	return b->dump;
}

const char *fr_bundle_files(const struct fr_bundle *b)
{
	return b->files;
}
