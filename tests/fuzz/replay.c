// SPDX-License-Identifier: GPL-2.0-or-later

/* main() of a fuzz target without libFuzzer: runs every file of the directories (or the files) named, and
 * fails where there is none. A crash, a sanitizer's report or the test's time-out is the verdict. */

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(int dirfd, const char *name)
{
	_cleanup_buf_ struct fr_buf b = {0};
	uint8_t *exact;
	int r = fr_read_file(dirfd, name, 64u << 20, &b);

	if (r < 0) {
		fprintf(stderr, "%s: %s\n", name, strerror(-r));
		return r;
	}
	/* A block of exactly this size, so that ASan sees a read past the end. */
	exact = malloc(b.len ? b.len : 1);
	if (!exact)
		return -1;
	if (b.len)
		memcpy(exact, b.data, b.len);
	LLVMFuzzerTestOneInput(exact, b.len);
	free(exact);
	return 0;
}

static int replay_directory(const char *path, size_t *n)
{
	_cleanup_closedir_ DIR *dir = opendir(path);
	const struct dirent *e;

	if (!dir) {
		perror(path);
		return -1;
	}
	while ((e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		if (replay_file(dirfd(dir), e->d_name) < 0)
			return -1;
		(*n)++;
	}
	return 0;
}

int main(int argc, char *argv[])
{
	size_t n = 0;

	for (int i = 1; i < argc; i++) {
		struct stat st;
		int r;

		if (stat(argv[i], &st) < 0) {
			perror(argv[i]);
			return 1;
		}
		r = S_ISDIR(st.st_mode) ? replay_directory(argv[i], &n) : replay_file(AT_FDCWD, argv[i]);
		if (r < 0)
			return 1;
		n += !S_ISDIR(st.st_mode);
	}
	printf("%zu inputs replayed\n", n);
	return n ? 0 : 1;
}
