// SPDX-License-Identifier: GPL-2.0-or-later
/* The other files of the directory: sample files, and auxiliary files of earlier recordings. */
#include "sideband/auxfile_internal.h"
#include "base/clock.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <string.h>

#define SAMPLE_PREFIX "perf.data.sample."
#define OLD_PREFIX FR_AUXFILE_NAME "."

/* The time of a sample file can be later than the last change of its auxiliary file, by at most this much: an
   idle machine can make no side-band for some time before a dump. */
#define LATER_NS (600 * FR_NSEC_PER_SEC)

bool fr_auxfile_is_needed_by(uint64_t dump_ns, uint64_t previous_ns, uint64_t auxiliary_ns)
{
	return dump_ns > previous_ns && dump_ns <= auxiliary_ns + LATER_NS;
}

/* If NAME is PREFIX and a stamp, returns the time of the stamp. Otherwise returns 0. */
static uint64_t stamp_of(const char *name, const char *prefix)
{
	size_t n = strlen(prefix);
	uint64_t ns;

	return strncmp(name, prefix, n) == 0 && fr_stamp_parse(name + n, &ns) == 0 ? ns : 0;
}

static int is_sample(const struct dirent *e)
{
	return stamp_of(e->d_name, SAMPLE_PREFIX) > 0;
}

static int is_old(const struct dirent *e)
{
	return stamp_of(e->d_name, OLD_PREFIX) > 0;
}

static void free_list(struct dirent **list, int n)
{
	for (int i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

int auxfile_has_samples(int dirfd)
{
	struct dirent **samples = NULL;
	int n = scandirat(dirfd, ".", &samples, is_sample, NULL);

	if (n < 0)
		return -errno;
	free_list(samples, n);
	return n > 0;
}

/* Returns whether one of the N files SAMPLES belongs to the recording that ended at END_NS. The previous
   recording ended at FROM_NS. */
static bool has_dump_of_recording(struct dirent **samples, int n, uint64_t from_ns, uint64_t end_ns)
{
	for (int i = 0; i < n; i++)
		if (fr_auxfile_is_needed_by(stamp_of(samples[i]->d_name, SAMPLE_PREFIX), from_ns, end_ns))
			return true;
	return false;
}

void fr_auxfile_remove_old(int dirfd)
{
	struct dirent **old = NULL, **samples = NULL;
	/* alphasort() sorts by name, which here is the order of time. */
	int n_old = scandirat(dirfd, ".", &old, is_old, alphasort);
	int n_samples = n_old > 0 ? scandirat(dirfd, ".", &samples, is_sample, NULL) : -1;
	uint64_t from_ns = 0;

	for (int i = 0; i < n_old && n_samples >= 0; i++) {
		uint64_t end_ns = stamp_of(old[i]->d_name, OLD_PREFIX);

		if (!has_dump_of_recording(samples, n_samples, from_ns, end_ns))
			(void)unlinkat(dirfd, old[i]->d_name, 0);
		from_ns = end_ns;
	}
	free_list(old, n_old);
	free_list(samples, n_samples);
}
