// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/cleanup.h"
#include "base/file.h"
#include "base/thread.h"
#include "source/bpf_object.h"

#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

static int check_file(const char *path, const struct stat *st, struct fr_diag *d)
{
	if (!S_ISREG(st->st_mode))
		return fr_fail(d, -EINVAL, "name the object file itself", "%s is not a regular file", path);
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return fr_fail(d, -EPERM,
			"the object runs in the kernel: if you trust it, give it to root with chown",
			"%s belongs to the user %u, not to root", path, (unsigned)st->st_uid);
	if (st->st_mode & S_IWOTH)
		return fr_fail(d, -EPERM, "the object runs in the kernel: if you trust it, use chmod go-w",
			"%s can be written by everybody", path);
	if ((st->st_mode & S_IWGRP) && st->st_gid != 0)
		return fr_fail(d, -EPERM, "the object runs in the kernel: if you trust it, use chmod go-w",
			"%s can be written by the group %u", path, (unsigned)st->st_gid);
	if (st->st_size > FR_BPF_FILE_MAX)
		return fr_fail(
			d, -EFBIG, NULL, "%s is too large for a BPF object: at most 16 MiB are read", path);
	return 0;
}

int fr_bpf_file_read(const char *path, struct fr_buf *ret, struct fr_diag *d)
{
	/* With O_NONBLOCK, open() does not wait for the writer of a FIFO. */
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	ssize_t n;
	int r;

	fr_thread_assert_may_wait();
	if (fd < 0 || fstat(fd, &st) < 0)
		return fr_fail_errno(d, -errno,
			errno == ENOENT
				? "compile the object with clang -target bpf (see flightrecd.conf(5)), "
				  "or name another file"
				: "let the recorder's user read the file",
			"cannot open the BPF object %s", path);
	r = check_file(path, &st, d);
	if (r < 0)
		return r;
	r = fr_buf_reserve(ret, (size_t)st.st_size + 1);
	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot read %s", path);
	n = fr_pread_all(fd, ret->data + ret->len, (size_t)st.st_size, 0);
	if (n < 0)
		return fr_fail_errno(d, (int)n, NULL, "cannot read %s", path);
	ret->len += (size_t)n;
	return 0;
}

int fr_bpf_elf_check(const void *bytes, size_t n, const char *label, struct fr_diag *d)
{
	static const char how[] = "compile it with: clang -target bpf -mcpu=v3 -g -O2 -c";
	const unsigned char ours = __BYTE_ORDER == __LITTLE_ENDIAN ? ELFDATA2LSB : ELFDATA2MSB;
	Elf64_Ehdr h;

	if (n < SELFMAG || memcmp(bytes, ELFMAG, SELFMAG) != 0)
		return fr_fail(d, -ENOEXEC, how, "%s is not an ELF file", label);
	if (n < sizeof(h))
		return fr_fail(d, -ENOEXEC, how, "%s is truncated: it has %zu bytes", label, n);
	memcpy(&h, bytes, sizeof(h));
	if (h.e_ident[EI_DATA] != ours)
		return fr_fail(d, -ENOEXEC, how, "%s is for machines with the other byte order", label);
	if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_type != ET_REL || h.e_machine != EM_BPF)
		return fr_fail(d, -ENOEXEC, how, "%s is an ELF file, but not a BPF object", label);
	return 0;
}
