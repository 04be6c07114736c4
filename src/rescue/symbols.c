// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The area SYMBOLS has two slots. The data of a slot is
 *
 *     struct stored │ one zstd frame: the build-id records, then the lines of kallsyms
 */
#include "rescue/symbols.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/thread.h"
#include "base/units.h"
#include "dump/names.h"
#include "perfdata/features.h"
#include "perfdata/record.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <zstd.h>

#define VERSION 1
#define KALLSYMS_MAX (64u << 20)
#define BUILD_IDS_MAX (4u << 20)
#define NOTES_MAX (1u << 20)
#define LEVEL 3
#define LEVEL_SMALL 12 /* needs ten times as long */
#define KERNEL "[kernel.kallsyms]"
#define ADDRESS_DIGITS 16

struct stored {
	uint32_t version, reserved;
	uint64_t build_ids_bytes, kallsyms_bytes;
};

void fr_rescue_symbols_deinit(struct fr_rescue_symbols *s)
{
	fr_buf_deinit(&s->kallsyms);
	fr_buf_deinit(&s->build_ids);
}

/* Adds the build-id in the notes DIRFD/PATH. Notes that cannot be read are left out. Returns 0 or -ENOMEM. */
static int add_build_id(struct fr_session *s, int dirfd, const char *path, const char *name)
{
	_cleanup_buf_ struct fr_buf notes = {0};
	uint8_t id[20];
	int size, r = fr_read_file(dirfd, path, NOTES_MAX, &notes);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	size = fr_build_id_from_notes(notes.data, notes.len, 4, id);
	if (size <= 0)
		return 0;
	r = fr_feature_add_build_id(s, PERF_RECORD_MISC_KERNEL, -1, id, (size_t)size, name);
	return r == -ENOMEM ? r : 0;
}

/* Appends the build-ids of the running kernel and of its modules. */
static int collect_build_ids(struct fr_buf *ret)
{
	_cleanup_closedir_ DIR *modules = fr_opendir_at(AT_FDCWD, "/sys/module");
	_cleanup_session_ struct fr_session s = {0};
	struct fr_buf *section = &s.features[FR_FEATURE_BUILD_ID];
	int r = add_build_id(&s, AT_FDCWD, "/sys/kernel/notes", KERNEL);
	const struct dirent *e;

	while (r == 0 && modules && (e = readdir(modules)) && section->len < BUILD_IDS_MAX / 2) {
		char path[NAME_MAX + 64], name[NAME_MAX + 3];

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/notes/.note.gnu.build-id", e->d_name);
		snprintf(name, sizeof(name), "[%s]", e->d_name);
		r = add_build_id(&s, dirfd(modules), path, name);
	}
	return r < 0 ? r : fr_buf_append(ret, section->data, section->len);
}

/* Returns the line at *AT, without its newline, and moves *AT to the next line. *AT is not at the end. */
static const char *next_line(const struct fr_buf *b, size_t *at, size_t *ret_len)
{
	const char *line = (const char *)b->data + *at, *end = memchr(line, '\n', b->len - *at);

	*ret_len = end ? (size_t)(end - line) : b->len - *at;
	*at += *ret_len + (end != NULL);
	return line;
}

/* "ffffffff81000000 T _stext" */
static bool is_symbol(const char *line, size_t len)
{
	if (len < ADDRESS_DIGITS + 4 || line[ADDRESS_DIGITS] != ' ' || line[ADDRESS_DIGITS + 2] != ' ')
		return false;
	for (size_t i = 0; i < len; i++) {
		const unsigned char c = (unsigned char)line[i];

		if (i < ADDRESS_DIGITS ? !strchr("0123456789abcdef", c) || !c
				       : (c < ' ' && c != '\t') || c >= 127)
			return false;
	}
	return true;
}

static bool has_address(const char *line)
{
	return strspn(line, "0") < ADDRESS_DIGITS;
}

static bool is_text(const char *line)
{
	return strchr("tTwW", line[ADDRESS_DIGITS + 1]);
}

/* Without CAP_SYSLOG, or with kernel.kptr_restrict=2, all addresses are 0. */
static bool is_hidden(const struct fr_buf *kallsyms)
{
	size_t at = 0, len;

	while (at < kallsyms->len) {
		if (has_address(next_line(kallsyms, &at, &len)))
			return false;
	}
	return true;
}

/* Keeps, in place, the lines that are symbols, or only those that are symbols of functions. */
static void keep_symbols(struct fr_buf *kallsyms, bool text_only)
{
	size_t at = 0, kept = 0, len;

	while (at < kallsyms->len) {
		const char *line = next_line(kallsyms, &at, &len);

		if (!is_symbol(line, len) || line[len] != '\n' || (text_only && !is_text(line)))
			continue;
		memmove(kallsyms->data + kept, line, len);
		kallsyms->data[kept + len] = '\n';
		kept += len + 1;
	}
	kallsyms->len = kept;
}

/* Stores build-ids and symbols. Returns 0; -E2BIG if they do not fit into a slot; or -ENOMEM. */
static int put(struct fr_crashmem *m, const struct fr_rescue_symbols *s, int level)
{
	const struct stored head = {VERSION, 0, s->build_ids.len, s->kallsyms.len};
	_cleanup_buf_ struct fr_buf raw = {0}, packed = {0};
	size_t n;
	int r = fr_buf_append(&raw, s->build_ids.data, s->build_ids.len);

	if (r == 0)
		r = fr_buf_append(&raw, s->kallsyms.data, s->kallsyms.len);
	if (r == 0)
		r = fr_buf_append(&packed, &head, sizeof(head));
	if (r == 0)
		r = fr_buf_reserve(&packed, ZSTD_compressBound(raw.len));
	if (r < 0)
		return r;
	n = ZSTD_compress(packed.data + packed.len, packed.cap - packed.len, raw.data, raw.len, level);
	if (ZSTD_isError(n))
		return -ENOMEM;
	return fr_crashmem_put(m, FLIGHTREC_CRASHMEM_AREA_SYMBOLS, packed.data, packed.len + n);
}

/* Reads the symbols. Returns FR_RESCUE_STORED_ALL; FR_RESCUE_STORED_BUILD_IDS, with a message in D, if there
   are none to store; or -ENOMEM. */
static int read_kallsyms(const char *path, struct fr_buf *ret, struct fr_diag *d)
{
	int r = fr_read_file(AT_FDCWD, path, KALLSYMS_MAX, ret);

	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		ret->len = 0;
		fr_fail_errno(
			d, r, "see `man 5 proc`", "cannot read the symbols of the kernel from %s", path);
		return FR_RESCUE_STORED_BUILD_IDS;
	}
	keep_symbols(ret, false);
	if (!is_hidden(ret))
		return FR_RESCUE_STORED_ALL;
	ret->len = 0;
	fr_fail(d, -EACCES, "give the recorder CAP_SYSLOG, and set the sysctl kernel.kptr_restrict to 0 or 1",
		"the kernel hides the addresses of its symbols in %s", path);
	return FR_RESCUE_STORED_BUILD_IDS;
}

static bool has_room_for_symbols(const struct fr_crashmem *m, const struct fr_buf *kallsyms)
{
	uint64_t bytes;

	(void)fr_crashmem_area(m, FLIGHTREC_CRASHMEM_AREA_SYMBOLS, &bytes);
	/* No compressor makes a 64th of symbols. */
	return bytes / 2 >= kallsyms->len / 64;
}

/* Stores S, and leaves out more and more of it until it fits. Returns a value of enum fr_rescue_stored;
   -E2BIG; or -ENOMEM. */
static int put_what_fits(struct fr_crashmem *m, struct fr_rescue_symbols *s)
{
	int r = -E2BIG;

	if (s->kallsyms.len && has_room_for_symbols(m, &s->kallsyms)) {
		r = put(m, s, LEVEL);
		if (r == -E2BIG)
			r = put(m, s, LEVEL_SMALL);
		if (r != -E2BIG)
			return r < 0 ? r : FR_RESCUE_STORED_ALL;
		keep_symbols(&s->kallsyms, true);
		r = put(m, s, LEVEL_SMALL);
		if (r != -E2BIG)
			return r < 0 ? r : FR_RESCUE_STORED_TEXT;
	}
	s->kallsyms.len = 0;
	r = put(m, s, LEVEL);
	return r < 0 ? r : FR_RESCUE_STORED_BUILD_IDS;
}

static void explain(struct fr_diag *d, const struct fr_crashmem *m, int stored)
{
	char size[FR_UNIT_SIZE];

	fr_size_format(fr_crashmem_bytes(m), size);
	if (stored == FR_RESCUE_STORED_TEXT)
		fr_fail(d, -E2BIG, NULL,
			"the crash memory has no room for all symbols of the kernel: it has those of "
			"functions only");
	if (stored == FR_RESCUE_STORED_BUILD_IDS)
		fr_fail(d, -E2BIG, "give a memory of 32M or more, or keep the vmlinux of each kernel",
			"the crash memory of %s has no room for the symbols of the kernel, only for its "
			"build-id",
			size);
}

int fr_rescue_symbols_store(struct fr_crashmem *m, const char *kallsyms_path, struct fr_diag *d)
{
	_cleanup_(fr_rescue_symbols_deinit) struct fr_rescue_symbols s = {0};
	int stored = 0, r = collect_build_ids(&s.build_ids);

	fr_thread_assert_may_wait();
	if (r == 0)
		r = stored = read_kallsyms(kallsyms_path ? kallsyms_path : "/proc/kallsyms", &s.kallsyms, d);
	if (r >= 0)
		r = put_what_fits(m, &s);
	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot keep the symbols of the kernel in the crash memory");
	if (stored == FR_RESCUE_STORED_ALL)
		explain(d, m, r);
	return r;
}

/* Returns whether the build-id records are whole, and name the kernel or modules. */
static bool are_build_ids(const struct fr_buf *b)
{
	struct fr_record_iter it = fr_record_iter(b->data, b->len);
	const struct fr_record_build_id *record;

	while ((record = fr_record_next_build_id(&it)))
		if (record->filename[0] != '[')
			return false;
	return it.at == it.end;
}

static bool are_symbols(const struct fr_buf *b)
{
	size_t at = 0, len;

	while (at < b->len) {
		const char *line = next_line(b, &at, &len);

		if (!is_symbol(line, len))
			return false;
	}
	return b->len == 0 || b->data[b->len - 1] == '\n';
}

/* Decompresses the data of a slot, and checks it. */
static int unpack(const void *data, size_t len, struct fr_rescue_symbols *ret)
{
	_cleanup_buf_ struct fr_buf raw = {0};
	struct stored head;
	int r;

	if (len < sizeof(head))
		return -EBADMSG;
	memcpy(&head, data, sizeof(head));
	if (head.version != VERSION || head.build_ids_bytes > BUILD_IDS_MAX ||
		head.kallsyms_bytes > KALLSYMS_MAX)
		return -EBADMSG;
	r = fr_buf_reserve(&raw, head.build_ids_bytes + head.kallsyms_bytes + 1);
	if (r < 0)
		return r;
	raw.len =
		ZSTD_decompress(raw.data, raw.cap, (const uint8_t *)data + sizeof(head), len - sizeof(head));
	if (ZSTD_isError(raw.len) || raw.len != head.build_ids_bytes + head.kallsyms_bytes)
		return -EBADMSG;
	r = fr_buf_append(&ret->build_ids, raw.data, head.build_ids_bytes);
	if (r == 0)
		r = fr_buf_append(&ret->kallsyms, raw.data + head.build_ids_bytes, head.kallsyms_bytes);
	if (r == 0 && (!are_build_ids(&ret->build_ids) || !are_symbols(&ret->kallsyms)))
		r = -EBADMSG;
	return r;
}

int fr_rescue_symbols_read(const struct fr_crashmem *m, struct fr_rescue_symbols *ret)
{
	_cleanup_(fr_rescue_symbols_deinit) struct fr_rescue_symbols s = {0};
	_cleanup_free_ void *data = NULL;
	ssize_t n = fr_crashmem_get(m, FLIGHTREC_CRASHMEM_AREA_SYMBOLS, &data);
	int r = n < 0 ? (int)n : unpack(data, (size_t)n, &s);

	if (r < 0)
		return r;
	*ret = s;
	s = (struct fr_rescue_symbols){0};
	return 0;
}

int fr_rescue_symbols_write(int dirfd, const char *dump_name, gid_t gid, const struct fr_rescue_symbols *s)
{
	char name[NAME_MAX + 1];
	int r;

	if (s->kallsyms.len == 0)
		return 0;
	snprintf(name, sizeof(name), "%s" FR_DUMP_KALLSYMS, dump_name);
	r = fr_file_replace(dirfd, name, 0640, gid, s->kallsyms.data, s->kallsyms.len);
	/* A positive value does not count, as for the sidecar: the file is complete. */
	return FR_MIN(r, 0);
}
