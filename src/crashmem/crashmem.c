// SPDX-License-Identifier: GPL-2.0-or-later
#include "crashmem/crashmem.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifdef __x86_64__
#include <cpuid.h>
#endif

#define PAGE 4096ULL
#define STATE_MAX (2ULL << 20)
#define SYMBOLS_BYTES (6ULL << 20)
/* The largest ring that history/ makes. */
#define RING_MAX (16ULL << 30)
/* A memory of this size or more has room for the symbols of the kernel. In a smaller memory, the area has
   room for the build-ids. */
#define SYMBOLS_FROM (32ULL << 20)

#define SLOT_MAGIC 0x544f4c53u /* "SLOT" */

struct slot {
	uint32_t magic;
	uint32_t crc; /* crc32c of `generation`, `bytes` and the data */
	uint64_t generation;
	uint64_t bytes;
	uint8_t data[];
};

struct span {
	uint64_t offset, bytes;
};

struct fr_crashmem {
	int fd;
	uint8_t *map;
	uint64_t bytes;
	bool valid; /* `spans` and `boot_id` are from a valid header */
	struct span spans[FLIGHTREC_CRASHMEM_AREAS];
	char boot_id[FLIGHTREC_CRASHMEM_BOOT_ID];
};

static struct flightrec_crashmem_header *header_of(const struct fr_crashmem *m)
{
	return (struct flightrec_crashmem_header *)m->map;
}

static uint32_t header_crc(const struct flightrec_crashmem_header *h)
{
	const size_t from = offsetof(struct flightrec_crashmem_header, bytes),
		     to = offsetof(struct flightrec_crashmem_header, use);

	return fr_crc32c(0, (const uint8_t *)h + from, to - from);
}

#ifdef __x86_64__
static void __attribute__((target("clwb"))) clwb(const uint8_t *p, const uint8_t *end)
{
	for (; p < end; p += 64)
		__builtin_ia32_clwb((void *)p);
}

static void __attribute__((target("clflushopt"))) clflushopt(const uint8_t *p, const uint8_t *end)
{
	for (; p < end; p += 64)
		__builtin_ia32_clflushopt((void *)p);
}

static void clflush(const uint8_t *p, const uint8_t *end)
{
	for (; p < end; p += 64)
		__builtin_ia32_clflush(p);
}

/* Returns the register ebx of CPUID leaf 7: bit 24 is clwb, which keeps the line in the cache; bit 23 is
   clflushopt. CPUID is slow in a virtual machine, so the value is kept. */
static unsigned features(void)
{
	static _Atomic unsigned kept;
	unsigned a, b = atomic_load_explicit(&kept, memory_order_relaxed), c, d;

	if (b == 0) {
		__get_cpuid_count(7, 0, &a, &b, &c, &d);
		atomic_store_explicit(&kept, b, memory_order_relaxed);
	}
	return b;
}

void fr_crashmem_write_back(const void *p, size_t len)
{
	const uint8_t *from = (const uint8_t *)((uintptr_t)p & ~63UL), *end = (const uint8_t *)p + len;
	const unsigned b = features();

	if (b & 1u << 24)
		clwb(from, end);
	else if (b & 1u << 23)
		clflushopt(from, end);
	else
		clflush(from, end);
	__builtin_ia32_sfence();
}
#elif defined(__aarch64__)
void fr_crashmem_write_back(const void *p, size_t len)
{
	const uint8_t *at, *end = (const uint8_t *)p + len;
	uint64_t ctr;
	size_t line;

	/* Linux lets user space clean the caches. DminLine: log2 of the words in the smallest line. */
	__asm__ volatile("mrs %0, ctr_el0" : "=r"(ctr));
	line = 4UL << (ctr >> 16 & 15);
	for (at = (const uint8_t *)((uintptr_t)p & ~(line - 1)); at < end; at += line)
		__asm__ volatile("dc cvac, %0" ::"r"(at) : "memory");
	__asm__ volatile("dsb sy" ::: "memory");
}
#else
void fr_crashmem_write_back(const void *p, size_t len)
{
	atomic_thread_fence(memory_order_seq_cst);
}
#endif

static const char *const hint =
	"give /dev/flightrec_mem, a /dev/dax device, or a file on tmpfs, on hugetlbfs, or on a file "
	"system that is mounted with the option dax";

static int size_of_dax(const struct stat *st, uint64_t *ret)
{
	char path[PATH_MAX], text[32] = "";
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/sys/dev/char/%u:%u/size", major(st->st_rdev), minor(st->st_rdev));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	*ret = n > 0 ? strtoull(text, NULL, 0) : 0;
	return *ret ? 0 : -EINVAL;
}

/* Makes the size of a file that was just created BYTES bytes, rounded up to the pages of its file system. */
static int give_size(int fd, uint64_t bytes)
{
	struct statfs fs;
	uint64_t page;

	if (fstatfs(fd, &fs) < 0)
		return -errno;
	page = FR_MAX((uint64_t)fs.f_bsize, PAGE);
	return ftruncate(fd, (off_t)((bytes + page - 1) / page * page)) < 0 ? -errno : 0;
}

/* Returns whether the pages of a file are persistent memory, without a copy in the page cache. */
static bool is_dax(int fd)
{
	struct statx st;

	return statx(fd, "", AT_EMPTY_PATH, 0, &st) == 0 && st.stx_attributes & STATX_ATTR_DAX;
}

static int find_size(int fd, const char *path, bool created, uint64_t bytes, uint64_t *ret, struct fr_diag *d)
{
	struct statfs fs;
	struct stat st;
	off_t end;
	int r;

	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
		return fr_fail_errno(d, -errno, NULL, "cannot read the size of %s", path);
	if (S_ISREG(st.st_mode) && fs.f_type != TMPFS_MAGIC && fs.f_type != HUGETLBFS_MAGIC && !is_dax(fd))
		return fr_fail(d, -ENOTSUP, hint,
			"%s is on a disk: the kernel would write the ring to the disk all the time", path);
	if (S_ISBLK(st.st_mode))
		return fr_fail(d, -ENOTSUP, hint,
			"%s is a block device: the kernel would keep the ring in its cache, which a crash "
			"loses",
			path);
	if (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode))
		return fr_fail(d, -ENOTSUP, hint, "%s is neither a file nor a memory device", path);
	/* The content is that of the machine, and another user could truncate the file: this would be a
	 * SIGBUS. */
	if (S_ISREG(st.st_mode) && ((st.st_uid != 0 && st.st_uid != geteuid()) || st.st_mode & 077))
		return fr_fail(d, -EPERM, "chown it to the user of flightrecd, and chmod 600",
			"%s belongs to another user, or others can read or write it", path);
	r = created ? give_size(fd, bytes) : 0;
	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot set the size of %s", path);
	end = lseek(fd, 0, SEEK_END);
	if (end > 0)
		*ret = (uint64_t)end / PAGE * PAGE;
	else if (S_ISCHR(st.st_mode))
		r = size_of_dax(&st, ret);
	else
		*ret = 0;
	return r < 0 ? fr_fail(d, r, hint, "%s is no memory: it has no size", path) : 0;
}

/* Takes the memory of a file that can have holes. Otherwise, a store into a hole of a full file system would
   end the process by SIGBUS. */
static int take_pages(const struct fr_crashmem *m, const char *path, struct fr_diag *d)
{
	char size[FR_UNIT_SIZE];
	struct stat st;

	if (fstat(m->fd, &st) < 0 || !S_ISREG(st.st_mode) || fallocate(m->fd, 0, 0, (off_t)m->bytes) == 0)
		return 0;
	return fr_fail_errno(d, -errno, "choose a smaller ring, or make room on its file system",
		"there is no room for the %s of %s", fr_size_format(m->bytes, size), path);
}

/* Maps the file. A file of a DAX file system must also be there after a crash: MAP_SYNC makes the kernel
   write the metadata of a page before the first write to the page. Returns MAP_FAILED with errno, as mmap().
 */
static void *map_whole(const struct fr_crashmem *m)
{
	const int flags = is_dax(m->fd) ? MAP_SHARED_VALIDATE | MAP_SYNC : MAP_SHARED;

	return mmap(NULL, m->bytes, PROT_READ | PROT_WRITE, flags, m->fd, 0);
}

/* Returns whether a file may be made in the directory of PATH: its content is only in memory. /dev is also
   such a directory, but a file there would take the name of a device whose module is not loaded yet. */
static bool is_in_memory(const char *path)
{
	char directory[PATH_MAX];
	struct statfs fs;
	char *slash;

	snprintf(directory, sizeof(directory), "%s", path);
	slash = strrchr(directory, '/');
	if (!slash)
		return false;
	slash[slash == directory] = '\0';
	if (strcmp(directory, "/dev") == 0)
		return false;
	return statfs(directory, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == HUGETLBFS_MAGIC);
}

static const char *hint_of(const char *path, int code)
{
	if (code == ENOENT && strcmp(path, FLIGHTREC_CRASHMEM_DEVICE) == 0)
		return "load the module flightrec_mem (flightrec-dkms); dmesg says why it failed";
	if (code == ELOOP)
		return "it is a symbolic link; give the path of the file itself";
	if (code == EACCES)
		return "let the user of flightrecd read and write it";
	return hint;
}

static int open_file(const char *path, bool *ret_created, struct fr_diag *d)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0 && errno == ENOENT && is_in_memory(path)) {
		fd = open(path, O_RDWR | O_CLOEXEC | O_CREAT | O_EXCL, 0600);
		*ret_created = fd >= 0;
	}
	if (fd < 0)
		return fr_fail_errno(d, -errno, hint_of(path, errno), "cannot open %s", path);
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	fr_fail_errno(d, errno == EWOULDBLOCK ? -EBUSY : -errno, "one recorder at a time can use it",
		"cannot lock %s", path);
	close(fd);
	return d ? d->code : -EBUSY;
}

/* Finds the size of the open file, takes its memory, and maps it. */
static int map_file(struct fr_crashmem *m, const char *path, bool created, uint64_t bytes, struct fr_diag *d)
{
	char size[FR_UNIT_SIZE], least[FR_UNIT_SIZE];
	void *map;
	int r = find_size(m->fd, path, created, bytes, &m->bytes, d);

	if (r < 0)
		return r;
	if (m->bytes < FR_CRASHMEM_BYTES_MIN)
		return fr_fail(d, -EMSGSIZE, "give a larger memory", "%s has %s, and at least %s are needed",
			path, fr_size_format(m->bytes, size), fr_size_format(FR_CRASHMEM_BYTES_MIN, least));
	r = take_pages(m, path, d);
	if (r < 0)
		return r;
	map = map_whole(m);
	if (map == MAP_FAILED)
		return fr_fail_errno(d, -errno, NULL, "cannot map %s", path);
	m->map = map;
	madvise(map, m->bytes, MADV_DONTDUMP);
	return 0;
}

int fr_crashmem_open(const char *path, uint64_t bytes, struct fr_crashmem **ret, struct fr_diag *d)
{
	_cleanup_crashmem_ struct fr_crashmem *m = calloc(1, sizeof(*m));
	bool created = false;
	int r;

	if (!m)
		return -ENOMEM;
	m->fd = open_file(path, &created, d);
	if (m->fd < 0)
		return m->fd;
	r = map_file(m, path, created, bytes, d);
	if (r < 0 && created)
		(void)unlink(path);
	if (r < 0)
		return r;
	*ret = m;
	m = NULL;
	return 0;
}

struct fr_crashmem *fr_crashmem_free(struct fr_crashmem *m)
{
	if (!m)
		return NULL;
	if (m->map)
		munmap(m->map, m->bytes);
	if (m->fd >= 0)
		close(m->fd);
	free(m);
	return NULL;
}

/* Returns whether each area is where format() could have put it: whole pages within the memory, in order. */
static bool has_possible_areas(const struct flightrec_crashmem_header *h, uint64_t bytes)
{
	uint64_t end = FLIGHTREC_CRASHMEM_RECORD;

	for (int i = 0; i < FLIGHTREC_CRASHMEM_AREAS; i++) {
		const uint64_t offset = h->areas[i].offset, len = h->areas[i].bytes;

		if (len == 0)
			continue;
		if (offset < end || offset % PAGE || len % PAGE || offset > bytes || len > bytes - offset)
			return false;
		end = offset + len;
	}
	return h->areas[FLIGHTREC_CRASHMEM_AREA_RECORD].offset == FLIGHTREC_CRASHMEM_RECORD &&
	       h->areas[FLIGHTREC_CRASHMEM_AREA_RECORD].bytes == FLIGHTREC_CRASHMEM_RECORD_BYTES;
}

static bool has_possible_boot_id(const struct flightrec_crashmem_header *h)
{
	return strnlen(h->boot_id, sizeof(h->boot_id)) == FR_BOOT_ID_SIZE - 1 &&
	       strspn(h->boot_id, "0123456789abcdef") == FR_BOOT_ID_SIZE - 1;
}

static void take_header(struct fr_crashmem *m, const struct flightrec_crashmem_header *h)
{
	for (int i = 0; i < FLIGHTREC_CRASHMEM_AREAS; i++)
		m->spans[i] = (struct span){h->areas[i].offset, h->areas[i].bytes};
	memcpy(m->boot_id, h->boot_id, sizeof(m->boot_id));
	m->valid = true;
}

enum fr_crashmem_content fr_crashmem_look(struct fr_crashmem *m, const char *boot_id)
{
	struct flightrec_crashmem_header h;

	m->valid = false;
	memcpy(&h, m->map, sizeof(h)); /* a copy does not change between check and use */
	if (h.magic != FLIGHTREC_CRASHMEM_MAGIC)
		return FR_CRASHMEM_EMPTY;
	if (h.version != FLIGHTREC_CRASHMEM_VERSION || h.crc != header_crc(&h) || h.bytes != m->bytes ||
		!has_possible_boot_id(&h) || !has_possible_areas(&h, m->bytes))
		return FR_CRASHMEM_DAMAGED;
	if (h.use != FLIGHTREC_CRASHMEM_IN_USE && h.use != FLIGHTREC_CRASHMEM_CLOSED)
		return FR_CRASHMEM_DAMAGED;
	take_header(m, &h);
	if (h.use == FLIGHTREC_CRASHMEM_CLOSED)
		return FR_CRASHMEM_CLOSED;
	return strcmp(h.boot_id, boot_id) == 0 ? FR_CRASHMEM_SAME_BOOT : FR_CRASHMEM_OTHER_BOOT;
}

static uint64_t whole_pages(uint64_t bytes)
{
	return bytes / PAGE * PAGE;
}

static void lay_out(struct flightrec_crashmem_header *h, uint64_t bytes)
{
	const uint64_t sizes[FLIGHTREC_CRASHMEM_AREA_RING] = {
		[FLIGHTREC_CRASHMEM_AREA_RECORD] = FLIGHTREC_CRASHMEM_RECORD_BYTES,
		[FLIGHTREC_CRASHMEM_AREA_STATE] = whole_pages(FR_MIN(bytes / 8, STATE_MAX)),
		[FLIGHTREC_CRASHMEM_AREA_SYMBOLS] =
			bytes >= SYMBOLS_FROM ? SYMBOLS_BYTES : whole_pages(bytes / 32),
		[FLIGHTREC_CRASHMEM_AREA_TAIL] = whole_pages(bytes / 8),
	};
	uint64_t at = FLIGHTREC_CRASHMEM_RECORD;

	for (int i = 0; i < FLIGHTREC_CRASHMEM_AREA_RING; i++) {
		h->areas[i].offset = at;
		h->areas[i].bytes = sizes[i];
		at += sizes[i];
	}
	h->areas[FLIGHTREC_CRASHMEM_AREA_RING].offset = at;
	h->areas[FLIGHTREC_CRASHMEM_AREA_RING].bytes = FR_MIN(bytes - at, RING_MAX);
}

static void write_magic(struct fr_crashmem *m, uint64_t magic)
{
	struct flightrec_crashmem_header *h = header_of(m);

	fr_crashmem_write_back(h, sizeof(*h));
	__atomic_store_n(&h->magic, magic, __ATOMIC_RELEASE);
	fr_crashmem_write_back(h, sizeof(*h));
}

void fr_crashmem_format(struct fr_crashmem *m, const char *boot_id)
{
	struct flightrec_crashmem_header h = {
		.version = FLIGHTREC_CRASHMEM_VERSION,
		.bytes = m->bytes,
		.use = FLIGHTREC_CRASHMEM_CLOSED,
	};

	write_magic(m, 0);
	lay_out(&h, m->bytes);
	memccpy(h.boot_id, boot_id, '\0', sizeof(h.boot_id) - 1);
	h.crc = header_crc(&h);
	/* All areas are cleared, because the crcs in them cannot tell an old record, slot or frame from a new
	 * one. */
	memset(m->map + FLIGHTREC_CRASHMEM_RECORD, 0, m->bytes - FLIGHTREC_CRASHMEM_RECORD);
	fr_crashmem_write_back(m->map, m->bytes);
	memcpy(m->map, &h, sizeof(h));
	write_magic(m, FLIGHTREC_CRASHMEM_MAGIC);
	take_header(m, &h);
}

static void write_use(struct fr_crashmem *m, enum flightrec_crashmem_use use)
{
	struct flightrec_crashmem_header *h = header_of(m);

	__atomic_store_n(&h->use, use, __ATOMIC_RELEASE);
	fr_crashmem_write_back(h, sizeof(*h));
}

void fr_crashmem_begin(struct fr_crashmem *m)
{
	write_use(m, FLIGHTREC_CRASHMEM_IN_USE);
}

void fr_crashmem_close(struct fr_crashmem *m)
{
	write_use(m, FLIGHTREC_CRASHMEM_CLOSED);
}

bool fr_crashmem_survives_crash(const struct fr_crashmem *m)
{
	struct stat st;

	return fstat(m->fd, &st) == 0 && (S_ISCHR(st.st_mode) || is_dax(m->fd));
}

uint64_t fr_crashmem_bytes(const struct fr_crashmem *m)
{
	return m->bytes;
}

const char *fr_crashmem_boot_id(const struct fr_crashmem *m)
{
	return m->boot_id;
}

uint8_t *fr_crashmem_area(const struct fr_crashmem *m, enum flightrec_crashmem_area area, uint64_t *ret_bytes)
{
	*ret_bytes = m->valid ? m->spans[area].bytes : 0;
	return m->map + m->spans[area].offset;
}

static struct slot *slot_at(
	const struct fr_crashmem *m, enum flightrec_crashmem_area area, int i, uint64_t *ret_max)
{
	uint64_t bytes, half;
	uint8_t *at = fr_crashmem_area(m, area, &bytes);

	half = bytes / 2 / 64 * 64;
	*ret_max = half > sizeof(struct slot) ? half - sizeof(struct slot) : 0;
	return (struct slot *)(at + i * half);
}

static uint32_t slot_crc(uint64_t generation, const void *data, uint64_t bytes)
{
	const uint64_t head[2] = {generation, bytes};

	return fr_crc32c(fr_crc32c(0, head, sizeof(head)), data, bytes);
}

/* Copies the data of a slot to *RET if the slot is valid. Returns the generation of the slot; 0 if it is not
   valid; or -ENOMEM. */
static int64_t read_slot(const struct slot *s, uint64_t max, void **ret, uint64_t *ret_bytes)
{
	const uint64_t generation = __atomic_load_n(&s->generation, __ATOMIC_RELAXED),
		       bytes = __atomic_load_n(&s->bytes, __ATOMIC_RELAXED);
	void *copy;

	if (!max || s->magic != SLOT_MAGIC || bytes > max || !generation || generation > INT64_MAX)
		return 0;
	copy = malloc(bytes ? bytes : 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, s->data, bytes);
	if (s->crc != slot_crc(generation, copy, bytes)) {
		free(copy);
		return 0;
	}
	*ret = copy;
	*ret_bytes = bytes;
	return (int64_t)generation;
}

/* Finds the newest valid slot. Returns its generation, with a copy of its data in *RET; 0 if no slot is
   valid; or -ENOMEM. *RET_INDEX is the index of the slot. */
static int64_t newest_slot(const struct fr_crashmem *m, enum flightrec_crashmem_area area, int *ret_index,
	void **ret, uint64_t *ret_bytes)
{
	int64_t newest = 0;

	for (int i = 0; i < 2; i++) {
		uint64_t max, bytes = 0;
		void *data = NULL;
		const struct slot *s = slot_at(m, area, i, &max);
		const int64_t generation = read_slot(s, max, &data, &bytes);

		if (generation > newest) {
			free(*ret);
			*ret = data;
			*ret_bytes = bytes;
			*ret_index = i;
			newest = generation;
		} else {
			free(data);
		}
		if (generation < 0) {
			free(*ret);
			*ret = NULL;
			return generation;
		}
	}
	return newest;
}

int fr_crashmem_put(struct fr_crashmem *m, enum flightrec_crashmem_area area, const void *data, size_t len)
{
	_cleanup_free_ void *newest = NULL;
	uint64_t bytes, max;
	int index = 1;
	const int64_t generation = newest_slot(m, area, &index, &newest, &bytes);
	struct slot *s = slot_at(m, area, !index, &max);

	if (generation < 0)
		return (int)generation;
	if (len > max)
		return -E2BIG;
	s->magic = 0;
	fr_crashmem_write_back(s, sizeof(*s));
	s->generation = (uint64_t)generation + 1;
	s->bytes = len;
	memcpy(s->data, data, len);
	s->crc = slot_crc(s->generation, data, len);
	fr_crashmem_write_back(s, sizeof(*s) + len);
	__atomic_store_n(&s->magic, SLOT_MAGIC, __ATOMIC_RELEASE);
	fr_crashmem_write_back(s, sizeof(*s));
	return 0;
}

ssize_t fr_crashmem_get(const struct fr_crashmem *m, enum flightrec_crashmem_area area, void **ret)
{
	uint64_t bytes = 0;
	int index;
	int64_t generation;

	*ret = NULL;
	generation = newest_slot(m, area, &index, ret, &bytes);
	if (generation <= 0)
		return generation < 0 ? (ssize_t)generation : -ENOENT;
	return (ssize_t)bytes;
}
