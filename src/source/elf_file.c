// SPDX-License-Identifier: GPL-2.0-or-later
/* Opens an ELF file. Checks the header before libelf reads the file, and limits the sections and segments. */
#include "source/elf_symbol_private.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/foreign.h"
#include "base/thread.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#define SEGMENTS_MAX 1024

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#define MACHINE_NAME "x86-64"
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#define MACHINE_NAME "AArch64"
#else
#define MACHINE EM_NONE
#define MACHINE_NAME "an unsupported machine"
#endif

/* libelf allocates memory for each section, so check the number of sections first. A number in e_shnum is
   small enough, because e_shnum has 16 bits. If e_shnum is 0, the number is in the first section header. */
static int check_section_count(int fd, const Elf64_Ehdr *h, const char *path, struct fr_diag *d)
{
	Elf64_Shdr first;

	if (h->e_shoff == 0 || h->e_shnum > 0)
		return 0;
	if (h->e_shoff > INT64_MAX ||
		fr_pread_all(fd, &first, sizeof(first), (off_t)h->e_shoff) != (ssize_t)sizeof(first) ||
		first.sh_size > ELF_SECTIONS_MAX)
		return fr_fail(d, -EBADMSG, NULL, "%s is damaged: it has too many sections", path);
	return 0;
}

static int check_header(int fd, const char *path, struct fr_diag *d)
{
	Elf64_Ehdr h = {0};
	ssize_t n = fr_pread_all(fd, &h, sizeof(h), 0);

	if (n < 0)
		return fr_fail_errno(d, (int)n, NULL, "cannot read %s", path);
	if (n < EI_NIDENT || memcmp(h.e_ident, ELFMAG, SELFMAG))
		return fr_fail(d, -ENOEXEC, "name the program or library itself, not a script",
			"%s is not an ELF file", path);
	if (h.e_ident[EI_CLASS] == ELFCLASS32)
		return fr_fail(d, -ENOEXEC, "watch it with Event= instead",
			"%s is a 32-bit program, but probes need one for " MACHINE_NAME, path);
	if (h.e_ident[EI_CLASS] != ELFCLASS64 ||
		h.e_ident[EI_DATA] !=
			(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB) ||
		n < (ssize_t)sizeof(h) || h.e_machine != MACHINE)
		return fr_fail(d, -ENOEXEC, "name a file for " MACHINE_NAME,
			"%s is for another architecture (ELF machine %u)", path, h.e_machine);
	if (h.e_type != ET_EXEC && h.e_type != ET_DYN)
		return fr_fail(d, -ENOEXEC, "name a program or library, not an object file or a core file",
			"%s is not a program and not a shared library", path);
	if (h.e_phnum > SEGMENTS_MAX)
		return fr_fail(d, -EBADMSG, NULL, "%s is damaged: %u segments", path, h.e_phnum);
	return check_section_count(fd, &h, path, d);
}

Elf *elf_begin_checked(int fd, const char *path, struct fr_diag *d)
{
	Elf *elf;

	if (check_header(fd, path, d) < 0)
		return NULL;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf || elf_kind(elf) != ELF_K_ELF) {
		fr_fail(d, -EBADMSG, NULL, "%s is damaged: %s", path, elf ? "not ELF" : elf_errmsg(-1));
		elf_end(elf);
		return NULL;
	}
	return elf;
}

const char *elf_string(const struct elf_strings *s, size_t at)
{
	return at < s->size ? s->data + at : NULL;
}

Elf_Data *elf_section_data(Elf_Scn *section, size_t max)
{
	GElf_Shdr h;
	Elf_Data *data;

	if (!section || !gelf_getshdr(section, &h) || h.sh_type == SHT_NOBITS || h.sh_size == 0 ||
		h.sh_size > max || (h.sh_flags & SHF_COMPRESSED))
		return NULL;
	data = elf_getdata(section, NULL);
	return data && data->d_buf && data->d_size > 0 ? data : NULL;
}

bool elf_read_strings(Elf *elf, size_t section, struct elf_strings *ret)
{
	const Elf_Data *data = elf_section_data(elf_getscn(elf, section), ELF_TABLE_MAX);
	const char *last = data ? memrchr(data->d_buf, '\0', data->d_size) : NULL;

	if (!last)
		return false;
	ret->data = data->d_buf;
	ret->size = (size_t)(last - ret->data) + 1;
	return true;
}

Elf_Scn *elf_section_find(Elf *elf, uint32_t type, const char *name, GElf_Shdr *ret)
{
	struct elf_strings names = {0};
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t index;

	ret = ret ? ret : &header;
	if (name && (elf_getshdrstrndx(elf, &index) < 0 || !elf_read_strings(elf, index, &names)))
		return NULL;
	while ((section = elf_nextscn(elf, section))) {
		const char *have;

		if (!gelf_getshdr(section, ret) || (type != SHT_NULL && ret->sh_type != type))
			continue;
		have = name ? elf_string(&names, ret->sh_name) : NULL;
		if (!name || (have && !strcmp(have, name)))
			return section;
	}
	return NULL;
}

bool elf_file_offset(Elf *elf, uint64_t address, uint32_t flags, uint64_t *ret)
{
	size_t n;

	if (elf_getphdrnum(elf, &n) < 0)
		return false;
	for (size_t i = 0; i < n && i < SEGMENTS_MAX; i++) {
		GElf_Phdr p;

		if (!gelf_getphdr(elf, (int)i, &p) || p.p_type != PT_LOAD || (p.p_flags & flags) != flags)
			continue;
		if (address < p.p_vaddr || address - p.p_vaddr >= p.p_filesz)
			continue;
		if (__builtin_add_overflow(address - p.p_vaddr, p.p_offset, ret) || *ret > INT64_MAX)
			continue;
		return true;
	}
	return false;
}

int fr_elf_open_fd(
	int fd, const char *path, pid_t pid, const char *debug_root, struct fr_elf **ret, struct fr_diag *d)
{
	struct fr_elf *e = calloc(1, sizeof(*e));

	fr_thread_assert_may_wait();
	if (!e || !(e->path = strdup(path))) {
		free(e);
		close(fd);
		return fr_fail(d, -ENOMEM, NULL, "no memory to read %s", path);
	}
	e->fd = fd;
	e->debug_fd = -1;
	e->pid = pid;
	e->debug_root = debug_root;
	e->elf = elf_begin_checked(fd, path, d);
	if (!e->elf) {
		fr_elf_free(e);
		return d && d->code ? d->code : -ENOEXEC;
	}
	*ret = e;
	return 0;
}

static int explain_open(const char *path, pid_t pid, int code, struct fr_diag *d)
{
	char where[64] = "";

	if (pid)
		snprintf(where, sizeof(where), " in the root of process %d", (int)pid);
	if (pid && kill(pid, 0) < 0 && errno == ESRCH)
		return fr_fail(d, -ESRCH,
			"select a running process with Pid= or CGroup=", "there is no process %d", (int)pid);
	switch (code) {
	case -ENOENT:
	case -ENOTDIR:
		return fr_fail(d, -ENOENT,
			pid ? "give the path as that process sees it"
			    : "for a file in a container, set Pid= or CGroup= to select a process in it",
			"no such file: %s%s", path, where);
	case -ENOEXEC:
		return fr_fail(d, code, "name the program or library itself", "%s%s is not a regular file",
			path, where);
	case -EACCES:
	case -EPERM:
		return fr_fail(d, code,
			pid ? "grant CAP_SYS_PTRACE, which opens the root of another process"
			    : "grant CAP_DAC_READ_SEARCH",
			"not permitted to read %s%s", path, where);
	default:
		return fr_fail_errno(d, code, NULL, "cannot open %s%s", path, where);
	}
}

int fr_elf_open(const char *path, pid_t pid, const char *debug_root, struct fr_elf **ret, struct fr_diag *d)
{
	int fd;

	if (path[0] != '/')
		return fr_fail(
			d, -EINVAL, "write a path that begins with /", "not an absolute path: %s", path);
	fd = fr_foreign_open_linked(pid, path, NULL);
	return fd < 0 ? explain_open(path, pid, fd, d) : fr_elf_open_fd(fd, path, pid, debug_root, ret, d);
}

struct fr_elf *fr_elf_free(struct fr_elf *e)
{
	if (!e)
		return NULL;
	elf_end(e->elf);
	elf_end(e->debug);
	fr_closep(&e->fd);
	fr_closep(&e->debug_fd);
	free(e->debug_path);
	free(e->path);
	free(e);
	return NULL;
}

int fr_elf_fd(const struct fr_elf *e)
{
	return e->fd;
}

bool fr_elf_is_go(const struct fr_elf *e)
{
	return elf_section_find(e->elf, SHT_NULL, ".go.buildinfo", NULL) ||
	       elf_section_find(e->elf, SHT_NULL, ".gopclntab", NULL) ||
	       elf_section_find(e->elf, SHT_NULL, ".note.go.buildid", NULL);
}
