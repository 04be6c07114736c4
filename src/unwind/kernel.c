// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/kernel.h"
#include "base/capability.h"
#include "base/cleanup.h"
#include "base/pidns.h"
#include "unwind-maps.skel.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/mman.h>

#define BTF_PATH "/sys/kernel/btf/vmlinux"

/* Returns whether the kernel can run a BPF program at the end of perf_event_mmap(). This needs
   CONFIG_FUNCTION_TRACER, and an architecture and a policy that permit it. libbpf would print a message if it
   could not load the program. */
static bool can_note_changes(void)
{
	const struct bpf_insn nothing[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_FEXIT);
	struct btf *btf = btf__load_vmlinux_btf();
	const int id = btf ? btf__find_by_name_kind(btf, "perf_event_mmap", BTF_KIND_FUNC) : -ENOENT;
	_cleanup_close_ int fd = -1;

	btf__free(btf);
	if (id <= 0)
		return false;
	opts.attach_btf_id = (uint32_t)id;
	fd = bpf_prog_load(
		BPF_PROG_TYPE_TRACING, "fr_unwind_probe", "GPL", nothing, FR_ARRAY_SIZE(nothing), &opts);
	return fd >= 0;
}

static bool is_capable(void)
{
	return fr_has_capability(CAP_SYS_ADMIN) ||
	       (fr_has_capability(CAP_BPF) && fr_has_capability(CAP_PERFMON));
}

static int explain(int r, const char *doing, struct fr_diag *d)
{
	if (r != -EPERM && r != -EACCES)
		return fr_fail_errno(d, r, NULL, "cannot %s the BPF programs of the unwinder", doing);
	if (!is_capable())
		return fr_fail(d, r,
			"grant CAP_BPF and CAP_PERFMON to the service with AmbientCapabilities= in its unit "
			"file",
			"not permitted to %s the BPF programs of the unwinder", doing);
	return fr_fail(d, r,
		"check the kernel's lockdown, security modules, and seccomp filters (SystemCallFilter=)",
		"not permitted to %s the BPF programs of the unwinder, although no capability is missing",
		doing);
}

static int load(struct fr_unwind_kernel *k, struct fr_diag *d)
{
	int r;

	if (!is_capable())
		return explain(-EPERM, "load", d); /* libbpf would print a message */
	/* Side-band has other pids here than BPF programs see. */
	if (fr_own_pidns())
		return fr_fail(d, -EOPNOTSUPP,
			"run flightrecd in the first pid namespace, or use frame pointers",
			"in a pid namespace, BPF programs see other pids than the recorder");
	if (access(BTF_PATH, R_OK) < 0)
		return fr_fail(d, -EOPNOTSUPP, "use a kernel with CONFIG_DEBUG_INFO_BTF, or frame pointers",
			"this kernel has no " BTF_PATH);
	k->skeleton = unwind_maps__open();
	if (!k->skeleton)
		return fr_fail_errno(d, -errno, NULL, "cannot open the BPF programs of the unwinder");
	k->notes_changes = can_note_changes();
	bpf_program__set_autoload(k->skeleton->progs.note_map, k->notes_changes);
	bpf_program__set_autoattach(k->skeleton->progs.ask_file, false);
	r = unwind_maps__load(k->skeleton);
	return r < 0 ? explain(r, "load", d) : 0;
}

int fr_unwind_kernel_open(struct fr_unwind_kernel *k, struct fr_diag *d)
{
	void *shared;
	int r;

	*k = (struct fr_unwind_kernel){.chunks_fd = -1, .files_fd = -1, .ask_fd = -1};
	r = load(k, d);
	if (r < 0)
		return r;
	k->chunks_fd = bpf_map__fd(k->skeleton->maps.fr_unwind_chunks);
	k->files_fd = bpf_map__fd(k->skeleton->maps.fr_unwind_files);
	k->ask_fd = bpf_program__fd(k->skeleton->progs.ask_file);
	shared = mmap(NULL, sizeof(*k->shared), PROT_READ | PROT_WRITE, MAP_SHARED,
		bpf_map__fd(k->skeleton->maps.fr_unwind_shared), 0);
	if (shared == MAP_FAILED)
		return fr_fail_errno(d, -errno, NULL, "cannot map the memory of the unwinder");
	k->shared = shared;
	return 0;
}

int fr_unwind_kernel_attach(struct fr_unwind_kernel *k, struct fr_diag *d)
{
	int r = unwind_maps__attach(k->skeleton);

	return r < 0 ? explain(r, "attach", d) : 0;
}

size_t fr_unwind_kernel_links(const struct fr_unwind_kernel *k, int ret[static FR_UNWIND_KERNEL_LINKS_MAX])
{
	struct bpf_link *const links[] = {k->skeleton->links.note_map, k->skeleton->links.note_exec,
		k->skeleton->links.copy_maps, k->skeleton->links.free_young};
	size_t n = 0;

	for (size_t i = 0; i < FR_ARRAY_SIZE(links); i++)
		if (links[i])
			ret[n++] = bpf_link__fd(links[i]);
	return n;
}

void fr_unwind_kernel_close(struct fr_unwind_kernel *k)
{
	if (k->shared)
		munmap(k->shared, sizeof(*k->shared));
	k->shared = NULL;
	unwind_maps__destroy(k->skeleton);
	k->skeleton = NULL;
}

int fr_unwind_kernel_share(const struct fr_unwind_kernel *k, struct bpf_object *object)
{
	const struct bpf_map *map;
	int r = 0;

	bpf_object__for_each_map(map, k->skeleton->obj)
	{
		struct bpf_map *other = bpf_object__find_map_by_name(object, bpf_map__name(map));

		if (r == 0 && other)
			r = bpf_map__reuse_fd(other, bpf_map__fd(map));
	}
	return r;
}

int fr_unwind_kernel_ask_file(
	const struct fr_unwind_kernel *k, const void *address, struct fr_unwind_file *ret)
{
	uint64_t args[1] = {(uintptr_t)address};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = args, .ctx_size_in = sizeof(args));
	int r = bpf_prog_test_run_opts(k->ask_fd, &opts);

	if (r < 0)
		return r;
	if (!k->shared->asked.ino)
		return -ENOENT;
	*ret = k->shared->asked;
	return 0;
}

int fr_unwind_kernel_add_file(const struct fr_unwind_kernel *k, const struct fr_unwind_file *file,
	const struct fr_unwind_file_object *object)
{
	return bpf_map_update_elem(k->files_fd, file, object, BPF_ANY);
}

static void add(struct fr_unwind_counters *sum, const struct fr_unwind_counters *c)
{
	for (int i = 0; i < _FR_UNWIND_RESULTS; i++)
		sum->walks[i] += c->walks[i];
	sum->frames += c->frames;
}

void fr_unwind_kernel_count(const struct fr_unwind_kernel *k, struct fr_unwind_counters *ret)
{
	const int n = libbpf_num_possible_cpus();
	struct fr_unwind_counters *c = n > 0 ? calloc((size_t)n, sizeof(*c)) : NULL;
	const uint32_t zero = 0;

	*ret = (struct fr_unwind_counters){0};
	if (c && bpf_map_lookup_elem(bpf_map__fd(k->skeleton->maps.fr_unwind_counters), &zero, c) == 0)
		for (int i = 0; i < n; i++)
			add(ret, &c[i]);
	free(c);
}
