// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/utf8.h"
#include "perfdata/features.h"
#include "report/fleet_folder_private.h"
#include "report/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#define DUMP "perf.data.sample."
#define MANIFEST ".manifest.json"
#define FILES_MAX 64 /* in the folder of a machine; there are about four */
/* A window is near the time of its id: a command can name a window in the past, or one hour in the future. */
#define NEAR_NS (7 * 24 * 3600 * FR_NSEC_PER_SEC)

static bool is_dump(const char *name)
{
	const size_t n = strlen(DUMP);

	return strncmp(name, DUMP, n) == 0 && strlen(name) > n && strlen(name) < 64 &&
	       strspn(name + n, "0123456789TZ.-") == strlen(name + n);
}

/* Checks all files of the folder, because the dump's name leads to others, such as its symbols. Sets RET to
   the name of the dump. */
static int check_file(int folder, const char *name, char ret[static NAME_MAX + 1], struct fr_diag *d)
{
	char shown[NAME_MAX + 1];
	struct stat st;

	snprintf(shown, sizeof(shown), "%s", name);
	fr_utf8_sanitize(shown);
	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return fr_fail_errno(d, -errno, NULL, "cannot read %s", shown);
	if (S_ISLNK(st.st_mode))
		return fr_fail(d, -ELOOP, NULL, "%s is a symbolic link", shown);
	if (!S_ISREG(st.st_mode))
		return fr_fail(d, -EINVAL, NULL, "%s is not a file", shown);
	if (!is_dump(name))
		return 0;
	if (*ret)
		return fr_fail(d, -EINVAL, NULL, "it has two dumps: %s and %s", ret, shown);
	strcpy(ret, name);
	return 0;
}

static int find_dump(int folder, char ret[static NAME_MAX + 1], struct fr_diag *d)
{
	_cleanup_closedir_ DIR *dir = fr_opendir_at(folder, ".");
	const struct dirent *e;
	size_t n = 0;
	int r = 0;

	*ret = '\0';
	if (!dir)
		return fr_fail_errno(d, -errno, NULL, "cannot list its folder");
	while (r == 0 && (e = readdir(dir))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		r = ++n > FILES_MAX ? fr_fail(d, -E2BIG, NULL, "its folder has more than %d files", FILES_MAX)
				    : check_file(folder, e->d_name, ret, d);
	}
	if (r == 0 && !*ret)
		r = fr_fail(d, -ENOENT, NULL, "its folder has no dump");
	return r;
}

/* Returns 0; -ENOENT without a message if there is no manifest; or another negative errno. */
static int read_manifest(const char *dump, struct fr_fleet_manifest *ret, struct fr_diag *d)
{
	_cleanup_buf_ struct fr_buf b = {0};
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s" MANIFEST, dump);
	int r = n < 0 || (size_t)n >= sizeof(path) ? -ENAMETOOLONG
						   : fr_read_file(AT_FDCWD, path, FR_FLEET_MESSAGE_MAX, &b);

	if (r == -ENOENT)
		return r;
	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot read its manifest");
	r = fr_fleet_manifest_read((const char *)b.data, b.len, ret, d);
	if (r < 0)
		fr_diag_prefix(d, "its manifest is damaged");
	return r;
}

/* Adds OFFSET to TIME. Returns false if the result is not a time. */
static bool shift(uint64_t time, int64_t offset, uint64_t *ret)
{
	return !__builtin_add_overflow(time, offset, ret) && *ret <= INT64_MAX;
}

static int check_window(const struct fr_fleet_machine *m, const char *id, struct fr_diag *d)
{
	uint64_t made;

	if (!*id || fr_fleet_id_time(id, &made) < 0)
		return 0;
	if (m->to_ns + NEAR_NS < made || m->from_ns > made + NEAR_NS)
		return fr_fail(d, -ERANGE, NULL,
			"the offset of its clock cannot be right: its samples would be %.0f days away from "
			"the "
			"time of the id",
			(double)(m->to_ns < made ? made - m->to_ns : m->from_ns - made) /
				(24 * 3600 * (double)FR_NSEC_PER_SEC));
	return 0;
}

/* Sets the window from the head of the dump. */
static int read_window(
	struct fr_fleet_machine *m, const struct fr_recording *r, const char *id, struct fr_diag *d)
{
	uint64_t from, to;
	int x = fr_recording_window(r, &from, &to, d);

	if (x < 0)
		return x;
	if (!shift(from, m->clock.offset_ns, &m->from_ns) || !shift(to, m->clock.offset_ns, &m->to_ns) ||
		m->to_ns < m->from_ns)
		return fr_fail(d, -ERANGE, NULL, "the offset of its clock cannot be right: %lld ns",
			(long long)m->clock.offset_ns);
	return check_window(m, id, d);
}

/* Without a manifest, the machine is that of the head, and the fleet time its wall time. */
static int use_head(struct fr_fleet_machine *m, const struct fr_recording *r, struct fr_diag *d)
{
	const char *host = fr_feature_get_string(fr_recording_session(r), FR_FEATURE_HOSTNAME);

	if (!host || !fr_fleet_name_is_valid(host))
		return fr_fail(d, -EINVAL, "the manifest that is beside a dump of the fleet names it",
			"the dump does not say which machine it is of");
	strcpy(m->name, host);
	m->clock.offset_ns = fr_recording_wall_offset(r);
	m->clock.error_ns = UINT64_MAX;
	return 0;
}

static int use_manifest(struct fr_fleet_machine *m, const struct fr_fleet_manifest *manifest,
	char id[FR_FLEET_ID_SIZE], struct fr_diag *d)
{
	if (*m->name && strcmp(m->name, manifest->machine) != 0)
		return fr_fail(
			d, -EBADMSG, NULL, "its manifest is of another machine, %s", manifest->machine);
	if (*id && strcmp(id, manifest->id) != 0)
		return fr_fail(d, -EBADMSG, NULL, "its manifest is of another id, %s", manifest->id);
	strcpy(m->name, manifest->machine);
	strcpy(id, manifest->id);
	m->clock = manifest->clock;
	return 0;
}

static int read_dump(
	struct fr_fleet_machine *m, char id[FR_FLEET_ID_SIZE], bool needs_manifest, struct fr_diag *d)
{
	struct fr_fleet_manifest manifest;
	struct fr_recording *recording = NULL;
	int r = read_manifest(m->path, &manifest, d);
	const bool has_manifest = r == 0;

	if (r == -ENOENT && !needs_manifest)
		r = 0;
	if (r == -ENOENT)
		r = fr_fail(d, r, NULL, "its manifest is missing");
	if (r == 0 && has_manifest)
		r = use_manifest(m, &manifest, id, d);
	if (r == 0)
		r = fr_recording_open(m->path, &recording, d);
	if (r == 0 && !has_manifest)
		r = use_head(m, recording, d);
	if (r == 0)
		r = read_window(m, recording, id, d);
	fr_recording_free(recording);
	return r;
}

int fr_fleet_machine_read(struct fr_fleet_machine *m, char id[FR_FLEET_ID_SIZE], int folder, const char *path,
	struct fr_diag *d)
{
	char token[FR_FLEET_TOKEN_SIZE], name[NAME_MAX + 1];
	_cleanup_close_ int fd = -1;
	int r;

	fr_fleet_token(m->name, token);
	fd = openat(folder, token, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return fr_fail(d, -errno, NULL,
			errno == ENOTDIR || errno == ELOOP ? "its folder is a symbolic link, or no folder"
							   : "its folder cannot be opened");
	r = find_dump(fd, name, d);
	if (r < 0)
		return r;
	if (asprintf(&m->path, "%s/%s/%s", path, token, name) < 0) {
		m->path = NULL;
		return -ENOMEM;
	}
	return read_dump(m, id, true, d);
}

int fr_fleet_machine_read_dump(
	struct fr_fleet_machine *m, char id[FR_FLEET_ID_SIZE], const char *path, struct fr_diag *d)
{
	int r;

	m->path = strdup(path);
	r = m->path ? read_dump(m, id, false, d) : -ENOMEM;
	if (r < 0)
		fr_diag_prefix(d, "%s", path);
	return r;
}
