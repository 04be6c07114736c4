// SPDX-License-Identifier: GPL-2.0-or-later

/* The main() of a fuzz target without libFuzzer. Each argument is a file or a directory. main() runs the
   target with each of these files and with each file in these directories. It fails if there is no file. The
   test also fails if the target crashes, if a sanitizer reports an error, or if it takes longer than its time
   limit. */

#include "fuzz.h"
#include "base/buf.h"
#include "base/file.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>

static size_t n_inputs;

static int replay(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	struct fr_buf b = {0};
	uint8_t *exact;
	int r;

	if (type != FTW_F || path[ftw->base] == '.')
		return 0;
	r = fr_read_file(AT_FDCWD, path, 64u << 20, &b);
	if (r < 0) {
		fprintf(stderr, "%s: %s\n", path, strerror(-r));
		return -1;
	}
	/* Memory of exactly the size of the input, so that ASan finds a read after its end. */
	exact = malloc(b.len ? b.len : 1);
	check(exact);
	memcpy(exact, b.data, b.len);
	LLVMFuzzerTestOneInput(exact, b.len);
	n_inputs++;
	free(exact);
	fr_buf_deinit(&b);
	return 0;
}

int main(int argc, char *argv[])
{
	for (int i = 1; i < argc; i++)
		if (nftw(argv[i], replay, 8, 0) != 0) {
			perror(argv[i]);
			return 1;
		}
	printf("%zu inputs replayed\n", n_inputs);
	return n_inputs ? 0 : 1;
}
