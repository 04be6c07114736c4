// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Finds debug files. libdw has a function for this, too. But that one opens whatever is at a path that a
 * hostile object file chooses, and would wait for a pipe there for ever.
 */
#include "report/find_object.h"
#include "report/find_private.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "report/debuginfod.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

#define BLOCK (64u << 10)
#define CHECKED_MAX (2ull << 30) /* bytes of a file whose checksum is made */

static bool has_checksum(int fd, uint32_t wanted)
{
	_cleanup_free_ uint8_t *block = malloc(BLOCK);
	uLong sum = crc32(0, NULL, 0);
	struct stat st;
	off_t at = 0;
	ssize_t n = -1;

	if (fstat(fd, &st) < 0 || (uint64_t)st.st_size > CHECKED_MAX)
		return false;
	while (block && (n = fr_pread_all(fd, block, BLOCK, at)) > 0) {
		sum = crc32(sum, block, (uInt)n);
		at += n;
	}
	return block && n == 0 && sum == wanted;
}

/* Opens the file at the path PREFIX FOLDER BETWEEN NAME, which RET_PATH gets, if it is the wanted one. FOLDER
   has FOLDER_LEN bytes, and its last one is a slash. */
static int try_path(const struct fr_wanted_debug *w, const char *prefix, const char *folder,
	size_t folder_len, const char *between, const char *name, char ret_path[static PATH_MAX])
{
	int fd;

	if ((size_t)snprintf(ret_path, PATH_MAX, "%s%.*s%s%s", prefix, (int)folder_len, folder, between,
		    name) >= PATH_MAX)
		return -ENOENT;
	fd = find_open_regular(ret_path);
	if (w->build_id_len > 0)
		return find_check_id(fd, w->build_id, w->build_id_len);
	if (fd >= 0 && !has_checksum(fd, w->checksum)) {
		close(fd);
		return -ENOENT;
	}
	return fd;
}

/* Searches the name of a debug link where debuggers do: in the folder of the object, in its folder .debug,
   and in the same folder below /usr/lib/debug. */
static int find_beside_object(
	const struct fr_wanted_debug *w, const char *object, char ret_path[static PATH_MAX])
{
	const char *slash = object ? strrchr(object, '/') : NULL;
	const size_t len = slash ? (size_t)(slash - object) + 1 : 0;
	int fd;

	if (len == 0 || !w->link || !*w->link || strchr(w->link, '/'))
		return -ENOENT;
	fd = try_path(w, "", object, len, ".debug/", w->link, ret_path);
	if (fd < 0)
		fd = try_path(w, "", object, len, "", w->link, ret_path);
	if (fd < 0 && object[0] == '/')
		fd = try_path(w, FIND_DEBUG_FOLDER, object, len, "", w->link, ret_path);
	return fd;
}

/* The link to a shared file is a path, which can be relative to the folder of the file that has the link. */
static int find_shared(const struct fr_wanted_debug *w, char ret_path[static PATH_MAX])
{
	const char *slash = w->object ? strrchr(w->object, '/') : NULL;

	if (!w->link || !*w->link || w->build_id_len == 0)
		return -ENOENT;
	if (w->link[0] == '/')
		return try_path(w, "", "", 0, "", w->link, ret_path);
	return slash ? try_path(w, "", w->object, (size_t)(slash - w->object) + 1, "", w->link, ret_path)
		     : -ENOENT;
}

static int find_by_link(const struct fr_wanted_debug *w, char path[static PATH_MAX])
{
	int fd;

	if (w->is_shared)
		return find_shared(w, path);
	fd = find_beside_object(w, w->object, path);
	return fd < 0 ? find_beside_object(w, w->recorded, path) : fd;
}

int fr_object_find_debug(
	const struct fr_object_places *places, const struct fr_wanted_debug *wanted, char **ret_path)
{
	const bool only_folders = places && places->only_folders;
	const size_t len = wanted->build_id_len;
	char path[PATH_MAX] = "";
	int fd = -ENOENT;

	for (size_t i = 0; places && len > 0 && i < places->n_folders && fd < 0; i++)
		fd = find_check_id(
			find_open_in_folder(places->folders[i], wanted->build_id, len, "debug", path),
			wanted->build_id, len);
	if (fd < 0 && !only_folders)
		fd = find_debug_by_id(wanted->build_id, len, path);
	if (fd < 0 && !only_folders)
		fd = find_by_link(wanted, path);
	if (fd < 0 && !only_folders) {
		path[0] = '\0';
		fd = fr_debuginfod_find(FR_DEBUGINFOD_DEBUG, wanted->build_id, len);
	}
	*ret_path = fd >= 0 && path[0] ? strdup(path) : NULL;
	return fd;
}
