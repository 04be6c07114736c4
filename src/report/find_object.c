// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/find_object.h"
#include "report/find_private.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/foreign.h"
#include "objects/vdso.h"
#include "perfdata/features.h"
#include "report/debuginfod.h"
#include "report/symbols.h"
#include "sideband/buildid.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define KALLSYMS_MAX (128u << 20)
#define NOTES_MAX (1u << 20)

static void format_id(const uint8_t *id, size_t len, char ret[static 2 * FR_BUILD_ID_MAX + 1])
{
	for (size_t i = 0; i < FR_MIN(len, (size_t)FR_BUILD_ID_MAX); i++)
		snprintf(ret + 2 * i, 3, "%02x", id[i]);
}

int find_open_regular(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)))
		fr_closep(&fd), fd = -1;
	return fd < 0 ? -ENOENT : fd;
}

int find_check_id(int fd, const uint8_t *wanted, size_t len)
{
	uint8_t id[FR_BUILD_ID_MAX];
	int n = fd < 0 ? 0 : fr_build_id_read(fd, id);

	if (fd >= 0 && (len == 0 || (n == (int)len && memcmp(id, wanted, len) == 0)))
		return fd;
	if (fd >= 0)
		close(fd);
	return -ENOENT;
}

static int check_id(int fd, const struct fr_wanted_object *wanted)
{
	return find_check_id(fd, wanted->build_id, wanted->build_id_len);
}

void fr_object_format_path(
	const uint8_t *build_id, size_t len, const char *name, char ret[static FR_OBJECT_PATH_SIZE])
{
	char text[2 * FR_BUILD_ID_MAX + 1] = "";

	format_id(build_id, len, text);
	snprintf(ret, FR_OBJECT_PATH_SIZE, ".build-id/%.2s/%s/%s", text, len > 0 ? text + 2 : "", name);
}

int find_open_in_folder(
	const char *folder, const uint8_t *id, size_t len, const char *name, char ret_path[static PATH_MAX])
{
	char entry[FR_OBJECT_PATH_SIZE];

	fr_object_format_path(id, len, name, entry);
	if ((size_t)snprintf(ret_path, PATH_MAX, "%s/%s", folder, entry) >= PATH_MAX)
		return -ENOENT;
	return find_open_regular(ret_path);
}

static int find_in_folders(const struct fr_object_places *places, const struct fr_wanted_object *wanted,
	char path[static PATH_MAX])
{
	const char *name = strcmp(wanted->path, FR_VDSO_NAME) == 0 ? "vdso" : "elf";
	int fd = -ENOENT;

	for (size_t i = 0; i < places->n_folders && fd < 0; i++)
		fd = check_id(find_open_in_folder(
				      places->folders[i], wanted->build_id, wanted->build_id_len, name, path),
			wanted);
	return fd;
}

/* Copies the vdso of this process into a file in memory. */
static int find_vdso(const struct fr_wanted_object *wanted)
{
	uint8_t id[FR_BUILD_ID_MAX];
	const void *image;
	size_t size;
	const int n = fr_vdso_find(&image, &size, id);
	int fd = n > 0 ? memfd_create("vdso", MFD_CLOEXEC) : -1;

	if (fd >= 0 && fr_write_all(fd, image, size) < 0)
		fr_closep(&fd), fd = -1;
	return check_id(fd, wanted);
}

const char *fr_object_beside(const char *path)
{
	const char *file = strrchr(path, '/'), *folder = file;

	while (folder && folder > path && folder[-1] != '/')
		folder--;
	return file && file - folder >= 4 && strncmp(file - 4, ".jit", 4) == 0 ? folder : NULL;
}

/* The objects of run-time code are in a folder beside the dump, which can have been moved with them. */
static int find_beside(const struct fr_object_places *places, const struct fr_wanted_object *wanted,
	char path[static PATH_MAX])
{
	const char *name = fr_object_beside(wanted->path);

	if (!places->beside || !name ||
		(size_t)snprintf(path, PATH_MAX, "%s/%s", places->beside, name) >= PATH_MAX)
		return -ENOENT;
	return check_id(find_open_regular(path), wanted);
}

/* A bundle has the files without a build-id at their paths. */
static int find_in_bundle(const struct fr_object_places *places, const struct fr_wanted_object *wanted,
	char path[static PATH_MAX])
{
	if (wanted->path[0] != '/' || strstr(wanted->path, "/../") ||
		(size_t)snprintf(path, PATH_MAX, "%s%s", places->files, wanted->path) >= PATH_MAX)
		return -ENOENT;
	return find_open_regular(path);
}

static int find_by_path(const struct fr_wanted_object *wanted, char path[static PATH_MAX])
{
	int fd;

	if (wanted->path[0] != '/')
		return -ENOENT;
	snprintf(path, PATH_MAX, "%s", wanted->path);
	fd = check_id(find_open_regular(path), wanted);
	/* A file without a build-id can be another one by now. Its process shows that it is not. */
	if (fd < 0 && wanted->build_id_len > 0)
		fd = check_id(fr_foreign_open((pid_t)wanted->pid, wanted->path, NULL), wanted);
	return fd;
}

int find_debug_by_id(const uint8_t *build_id, size_t len, char path[static PATH_MAX])
{
	char text[2 * FR_BUILD_ID_MAX + 1] = "";

	if (len == 0)
		return -ENOENT;
	format_id(build_id, len, text);
	snprintf(path, PATH_MAX, FIND_DEBUG_FOLDER "/.build-id/%.2s/%s.debug", text, text + 2);
	return find_check_id(find_open_regular(path), build_id, len);
}

int fr_object_find_elf(
	const struct fr_object_places *places, const struct fr_wanted_object *wanted, char **ret_path)
{
	const bool has_id = wanted->build_id_len > 0;
	char path[PATH_MAX];
	int fd = -ENOENT;

	snprintf(path, sizeof(path), "%s", wanted->path);
	if (has_id)
		fd = find_in_folders(places, wanted, path);
	if (fd < 0)
		fd = find_beside(places, wanted, path);
	if (fd < 0 && !has_id && places->files)
		fd = find_in_bundle(places, wanted, path);
	else if (fd < 0 && !places->only_folders)
		fd = strcmp(wanted->path, FR_VDSO_NAME) == 0 ? find_vdso(wanted) : find_by_path(wanted, path);
	if (fd < 0 && has_id && !places->only_folders)
		fd = find_debug_by_id(wanted->build_id, wanted->build_id_len, path);
	if (fd < 0 && has_id && !places->only_folders && wanted->path[0] == '/')
		fd = fr_debuginfod_find(FR_DEBUGINFOD_OBJECT, wanted->build_id, wanted->build_id_len);
	if (fd < 0)
		return -ENOENT;
	*ret_path = strdup(path);
	if (!*ret_path) {
		close(fd);
		return -ENOMEM;
	}
	return fd;
}

/* Returns whether the kernel that runs has this build-id. */
static bool is_running(const uint8_t *build_id, size_t len)
{
	_cleanup_buf_ struct fr_buf notes = {0};
	uint8_t id[FR_BUILD_ID_MAX];
	int n;

	if (len == 0 || fr_read_file(AT_FDCWD, "/sys/kernel/notes", NOTES_MAX, &notes) < 0)
		return false;
	n = fr_build_id_from_notes(notes.data, notes.len, 4, id);
	return n > 0 && (size_t)n == len && memcmp(id, build_id, len) == 0;
}

int fr_object_find_kallsyms(
	const struct fr_object_places *places, const uint8_t *build_id, size_t len, struct fr_buf *ret)
{
	char path[PATH_MAX];

	if (places->kallsyms && fr_read_file(AT_FDCWD, places->kallsyms, KALLSYMS_MAX, ret) == 0)
		return 0;
	for (size_t i = 0; i < places->n_folders && len > 0; i++) {
		_cleanup_close_ int fd =
			find_open_in_folder(places->folders[i], build_id, len, "kallsyms", path);

		ret->len = 0;
		if (fd >= 0 && fr_read_file(AT_FDCWD, path, KALLSYMS_MAX, ret) == 0)
			return 0;
	}
	ret->len = 0;
	if (places->only_folders || !is_running(build_id, len) ||
		fr_read_file(AT_FDCWD, "/proc/kallsyms", KALLSYMS_MAX, ret) < 0)
		return -ENOENT;
	return fr_kallsyms_find((const char *)ret->data, ret->len, "_text") ? 0 : -ENOENT;
}
