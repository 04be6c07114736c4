// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrec-fleet/download.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define BESIDE_MAX (256ULL << 20) /* bytes of a file beside a dump */
#define PART ".part"

/* A file of the store. */
struct wanted {
	const char *key, *name; /* the name in the folder */
	uint64_t bytes;
	const char *sha256; /* "": not known */
};

static int check_hash(int fd, const struct wanted *w, struct fr_diag *d)
{
	char sha256[65];
	int r;

	if (!*w->sha256)
		return 0;
	r = fr_store_sha256(fd, w->bytes, NULL, sha256, d);
	if (r < 0)
		return r;
	return strcmp(sha256, w->sha256) == 0 ? 0 : -EBADMSG;
}

/* Returns 1 if the folder has the whole file already; 0 if it does not; or a negative errno. */
static int is_there(int dirfd, const struct wanted *w, struct fr_diag *d)
{
	_cleanup_close_ int fd = openat(dirfd, w->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return fr_fail_errno(d, -errno, NULL, "cannot open %s", w->name);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size != w->bytes ||
		check_hash(fd, w, NULL) < 0)
		return fr_fail(d, -EEXIST, "remove it, or give another folder with -o",
			"there is another file %s", w->name);
	return 1;
}

/* Opens the .part file, which has RET_OFFSET bytes of the file already. */
static int open_part(
	int dirfd, const char *part, const struct wanted *w, uint64_t *ret_offset, struct fr_diag *d)
{
	_cleanup_close_ int fd =
		openat(dirfd, part, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0640);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fr_fail_errno(d, -errno, NULL, "cannot open %s", part);
	if (!S_ISREG(st.st_mode))
		return fr_fail(d, -EEXIST, "remove it", "%s is not a file", part);
	*ret_offset = (uint64_t)st.st_size;
	if (*ret_offset > w->bytes) {
		*ret_offset = 0;
		if (ftruncate(fd, 0) < 0)
			return fr_fail_errno(d, -errno, NULL, "cannot write %s", part);
	}
	if (lseek(fd, (off_t)*ret_offset, SEEK_SET) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/* Downloads the rest of the file into its .part file, and checks the whole. */
static int fill_part(struct fleet *f, int fd, uint64_t offset, const struct wanted *w, struct fr_diag *d)
{
	struct stat st;
	int r = 0;

	f->done_bytes += offset;
	if (offset < w->bytes)
		r = fr_store_get(f->store, w->key, fd, offset, w->bytes - offset, d);
	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0 || (uint64_t)st.st_size != w->bytes)
		return fr_fail(
			d, -EBADMSG, NULL, "the store sent another number of bytes than the index says");
	r = check_hash(fd, w, d);
	if (r == -EBADMSG)
		fr_fail(d, r, NULL, "the content has another SHA-256 than the index says");
	return r;
}

static int download_part(
	struct fleet *f, int dirfd, const char *part, const struct wanted *w, struct fr_diag *d)
{
	uint64_t offset = 0;
	_cleanup_close_ int fd = open_part(dirfd, part, w, &offset, d);
	struct fr_diag first = {0};
	int r;

	if (fd < 0)
		return fd;
	r = fill_part(f, fd, offset, w, offset ? &first : d);
	if (r == -EBADMSG && offset) {
		/* The part can be of another try: begin again. */
		f->done_bytes -= FR_MIN(f->done_bytes, w->bytes);
		r = ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0 ? -errno : fill_part(f, fd, 0, w, d);
	} else if (r < 0 && offset && d) {
		*d = first;
	}
	if (r == -EBADMSG)
		unlinkat(dirfd, part, 0);
	if (r == 0 && fsync(fd) < 0)
		r = fr_fail_errno(d, -errno, NULL, "cannot write %s", part);
	return r;
}

static int download(struct fleet *f, int dirfd, const struct wanted *w, struct fr_diag *d)
{
	char part[256];
	int r = is_there(dirfd, w, d);

	if (r > 0)
		f->done_bytes += w->bytes;
	if (r != 0)
		return FR_MIN(r, 0);
	if ((size_t)snprintf(part, sizeof(part), "%s" PART, w->name) >= sizeof(part))
		return -ENAMETOOLONG;
	r = download_part(f, dirfd, part, w, d);
	if (r < 0) {
		fr_diag_prefix(d, "%s", w->key);
		return r;
	}
	r = fr_tmp_publish(dirfd, part, w->name);
	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot rename %s", part) : 0;
}

/* Downloads the file with SUFFIX beside the dump. IS_OPTIONAL: it need not exist. */
static int download_beside(struct fleet *f, const struct fr_fleet_manifest *m, const char *suffix,
	bool is_optional, int dirfd, struct fr_diag *d)
{
	char key[sizeof(m->object) + 32], name[sizeof(m->file) + 32];
	struct wanted w = {.key = key, .name = name};
	struct fr_store_object object;
	struct fr_diag own = {0};
	int r;

	snprintf(key, sizeof(key), "%s%s", m->object, suffix);
	snprintf(name, sizeof(name), "%s%s", m->file, suffix);
	r = fr_store_head(f->store, key, &object, &own);
	if (r == -ENOENT && is_optional)
		return 0;
	if (r < 0) {
		if (d)
			*d = own;
		fr_diag_prefix(d, "%s", key);
		return r;
	}
	if (object.bytes > BESIDE_MAX)
		return fr_fail(d, -EFBIG, NULL, "%s: the store says that it has %ju bytes", key,
			(uintmax_t)object.bytes);
	w.bytes = object.bytes;
	w.sha256 = object.sha256;
	return download(f, dirfd, &w, d);
}

static int write_manifest(const struct fr_fleet_manifest *m, int dirfd, struct fr_diag *d)
{
	_cleanup_free_ char *text = fr_fleet_manifest_json(m);
	char name[sizeof(m->file) + 32];
	int r;

	if (!text)
		return -ENOMEM;
	snprintf(name, sizeof(name), "%s.manifest.json", m->file);
	r = fr_file_replace(dirfd, name, 0640, (gid_t)-1, text, strlen(text));
	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot write %s", name) : 0;
}

int download_machine(struct fleet *f, const struct fr_fleet_manifest *m, int dirfd, struct fr_diag *d)
{
	const struct wanted dump = {m->object, m->file, m->bytes, m->sha256};
	int r;

	if (!fr_fleet_key_is_valid(&f->location, m->id, m->machine, m->object))
		return fr_fail(d, -EBADMSG, "check Upload= of this configuration, and who writes the index",
			"the index names an object that is not of this machine and location: '%s'",
			m->object);
	r = download(f, dirfd, &dump, d);
	if (r == 0)
		r = download_beside(f, m, ".json", false, dirfd, d);
	if (r == 0)
		r = download_beside(f, m, ".kallsyms", true, dirfd, d);
	return r == 0 ? write_manifest(m, dirfd, d) : r;
}
