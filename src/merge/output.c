// SPDX-License-Identifier: GPL-2.0-or-later
#include "merge/output.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "perfdata/features.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <zstd.h>

static int write_failed(const struct fr_output *out, int r, struct fr_diag *d)
{
	return fr_fail_errno(d, r,
		r == -ENOSPC || r == -EDQUOT
			? "make room, or write to another place with --output; the inputs did not change"
			: NULL,
		"cannot write %s", out->path);
}

int fr_output_open(struct fr_output *out, const struct fr_merge_options *o, struct fr_diag *d)
{
	char copy[PATH_MAX], absolute[PATH_MAX];
	const char *directory;
	struct stat st;
	int n;

	*out = (struct fr_output){.dirfd = -1,
		.fd = -1,
		.gid = (gid_t)-1,
		.compress = o->compress,
		.level = o->level ? o->level : 1,
		.config = o->writer};
	if (o->output)
		n = snprintf(out->path, sizeof(out->path), "%s", o->output);
	else if (o->directory)
		n = snprintf(out->path, sizeof(out->path), "%s/perf.data", o->directory);
	else
		n = snprintf(out->path, sizeof(out->path), "perf.data");
	if (n < 0 || (size_t)n >= sizeof(out->path) || n == 0 || out->path[n - 1] == '/')
		return fr_fail(d, -EINVAL, "give --output the name of a file",
			"the output \"%.200s\" is not a file name", out->path);
	out->name = strrchr(out->path, '/') ? strrchr(out->path, '/') + 1 : out->path;
	strcpy(copy, out->path);
	directory = dirname(copy);
	out->dirfd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (out->dirfd < 0)
		return fr_fail_errno(d, -errno, "create it, or write to another place with --output",
			"cannot open the directory of %s", out->path);
	/* If the output exists, it will be renamed. A device or a directory must not be renamed. */
	if (fstatat(out->dirfd, out->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(st.st_mode))
		return fr_fail(d, -EINVAL, "give --output a new name, or the name of a regular file",
			"the output %s is not a regular file", out->path);
	if (!realpath(directory, absolute))
		return fr_fail_errno(d, -errno, NULL, "cannot find the directory of %s", out->path);
	snprintf(out->jit, sizeof(out->jit), "%s/%s.jit", absolute, out->name);
	if (!o->dry_run && flock(out->dirfd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK
			       ? fr_fail(d, -EBUSY, "wait until it has ended",
					 "another merge works in the directory of %s", out->path)
			       : fr_fail_errno(d, -errno, NULL, "cannot lock the directory of %s", out->path);
	return 0;
}

int fr_output_begin(struct fr_output *out, const struct fr_session *head, struct fr_diag *d)
{
	struct fr_sink sink = {fr_writer_append, NULL};
	int r;

	out->fd = fr_tmp_create(out->dirfd, out->name, 0640, out->tmp, sizeof(out->tmp));
	if (out->fd < 0) {
		r = out->fd;
		out->tmp[0] = '\0';
		return fr_fail_errno(d, r, NULL, "cannot create %s", out->path);
	}
	/* fchown() fails if this user is not a member of the group. In this case the file keeps the group of
	   the user. */
	(void)!fchown(out->fd, (uid_t)-1, out->gid);
	r = fr_writer_new(out->fd, &out->config, &out->file, d);
	if (r < 0)
		return r;
	sink.ctx = out->file;
	r = fr_file_begin(&out->writer, head, &sink);
	return r < 0 ? write_failed(out, r, d) : 0;
}

/* Writes the records of the chunk as one zstd frame. */
static int write_chunk(struct fr_output *out)
{
	size_t n;
	int r;

	if (out->chunk.len == 0)
		return 0;
	out->packed.len = 0;
	r = fr_buf_reserve(&out->packed, ZSTD_compressBound(out->chunk.len));
	if (r < 0)
		return r;
	n = ZSTD_compress(out->packed.data, out->packed.cap, out->chunk.data, out->chunk.len, out->level);
	if (ZSTD_isError(n))
		return -ENOMEM;
	out->raw_bytes += out->chunk.len;
	out->packed_bytes += n;
	out->chunk.len = 0;
	return fr_file_write_frame(&out->writer, out->packed.data, n);
}

static int add_to_chunk(struct fr_output *out, const void *records, size_t len)
{
	int r;

	if (!out->compress)
		return fr_file_write_records(&out->writer, records, len);
	r = out->chunk.len + len > FR_OUTPUT_CHUNK ? write_chunk(out) : 0;
	return r < 0 ? r : fr_buf_append(&out->chunk, records, len);
}

/* Writes whole records, at most FR_OUTPUT_CHUNK bytes. After FR_OUTPUT_ROUND bytes, also writes a
   FINISHED_ROUND. */
static int write_records(struct fr_output *out, const void *records, size_t len)
{
	int r = add_to_chunk(out, records, len);

	out->since_round += len;
	if (r < 0 || out->since_round < FR_OUTPUT_ROUND)
		return r;
	out->since_round = 0;
	return add_to_chunk(out, &fr_finished_round, sizeof(fr_finished_round));
}

int fr_output_write_record(struct fr_output *out, const struct perf_event_header *record, struct fr_diag *d)
{
	int r = write_records(out, record, record->size);

	return r < 0 ? write_failed(out, r, d) : 0;
}

/* Returns how many entries of RUN, beginning with entry I, have records that lie one after the other in
   memory. These records have *RET_LEN bytes in total, at most FR_OUTPUT_CHUNK. */
static size_t count_contiguous(const struct fr_cursor_run *run, size_t i, size_t *ret_len)
{
	const struct fr_cursor_entry *e = run->entries;
	size_t n = 1, len = e[i].size;

	while (i + n < run->n && e[i + n].at == e[i].at + len && len + e[i + n].size <= FR_OUTPUT_CHUNK)
		len += e[i + n++].size;
	*ret_len = len;
	return n;
}

int fr_output_write_run(struct fr_output *out, const struct fr_cursor_run *run, struct fr_diag *d)
{
	size_t i = 0;
	int r = 0;

	while (i < run->n && r == 0) {
		const uint8_t *first = run->bytes + run->entries[i].at;
		size_t len;

		i += count_contiguous(run, i, &len);
		r = write_records(out, first, len);
	}
	return r < 0 ? write_failed(out, r, d) : 0;
}

int fr_output_copy_auxtrace(
	struct fr_output *out, const struct fr_auxtrace *t, int fd, uint64_t at, struct fr_diag *d)
{
	static const uint8_t zeros[8];
	int r = write_chunk(out); /* AUX data cannot be in a COMPRESSED record */

	out->packed.len = 0;
	if (r == 0)
		r = fr_buf_reserve(&out->packed, FR_OUTPUT_CHUNK);
	if (r == 0)
		r = fr_file_write_auxtrace(&out->writer, t);
	for (size_t done = 0, n; done < t->len && r == 0; done += n) {
		ssize_t got;

		n = FR_MIN(t->len - done, (size_t)FR_OUTPUT_CHUNK);
		got = fr_pread_all(fd, out->packed.data, n, (off_t)(at + done));
		if (got < 0 || (size_t)got < n)
			return got < 0 ? (int)got : -EBADMSG;
		r = fr_file_write_records(&out->writer, out->packed.data, n);
	}
	if (r == 0)
		r = fr_file_write_records(&out->writer, zeros, FR_ALIGN_UP(t->len, 8) - t->len);
	return r < 0 ? write_failed(out, r, d) : 0;
}

int fr_output_end(struct fr_output *out, struct fr_session *head, struct fr_diag *d)
{
	uint8_t header[FR_FILE_HEADER_SIZE];
	int r = write_chunk(out);

	if (r == 0 && out->compress)
		r = fr_feature_set_compressed(head, out->level,
			(uint32_t)(out->packed_bytes ? FR_MAX(out->raw_bytes / out->packed_bytes, 1ULL) : 1),
			FR_OUTPUT_CHUNK);
	if (r == 0)
		r = fr_file_end(&out->writer, head, header);
	if (r == 0)
		r = fr_writer_finish(out->file, header, sizeof(header));
	out->bytes = fr_writer_bytes(out->file);
	snprintf(out->how, sizeof(out->how), "%s", fr_writer_describe(out->file));
	out->file = fr_writer_free(out->file);
	return r < 0 ? write_failed(out, r, d) : 0;
}

void fr_output_close(struct fr_output *out)
{
	fr_writer_free(out->file);
	if (out->tmp[0])
		(void)unlinkat(out->dirfd, out->tmp, 0);
	fr_buf_deinit(&out->writer.aux_index);
	fr_buf_deinit(&out->chunk);
	fr_buf_deinit(&out->packed);
	if (out->fd >= 0)
		close(out->fd);
	if (out->dirfd >= 0)
		close(out->dirfd);
}
