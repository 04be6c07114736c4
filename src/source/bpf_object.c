// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/cleanup.h"
#include "base/thread.h"
#include "source/bpf_log.h"
#include "source/bpf_object_private.h"

#include <bpf/btf.h>
#include <errno.h>
#include <linux/types.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <flightrec/trigger.bpf.h>

/* Makes an empty BTF for a kernel without BTF, because libbpf needs some BTF to open an object. With the
   empty BTF, libbpf replaces each access to a kernel structure by an invalid instruction. Such an instruction
   never runs, because the code of the ABI's header checks first whether the kernel's BTF has the structure.
   RET gets the BTF's path. */
static int make_empty_btf(struct fr_bpf_object *o, char *ret, size_t size)
{
	struct btf *btf = btf__new_empty();
	const void *data;
	__u32 n;
	int r = -ENOMEM;

	data = btf ? btf__raw_data(btf, &n) : NULL;
	if (data) {
		o->empty_btf = memfd_create("flightrec-btf", MFD_CLOEXEC);
		r = o->empty_btf < 0 || write(o->empty_btf, data, n) != (ssize_t)n ? -EIO : 0;
	}
	btf__free(btf);
	snprintf(ret, size, "/proc/self/fd/%d", o->empty_btf);
	return r;
}

static int open_libbpf(struct fr_bpf_object *o, const void *bytes, size_t n, struct fr_diag *d)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "flightrec");
	_cleanup_bpf_log_ struct fr_bpf_log log = {0};
	char path[64];
	int r;

	fr_bpf_log_begin(&log);
	/* libbpf accepts the path of a BTF only when it opens an object. */
	if (o->classic) {
		r = make_empty_btf(o, path, sizeof(path));
		if (r < 0)
			return fr_fail_errno(d, r, NULL, "cannot make an empty BTF for %s", o->label);
		opts.btf_custom_path = path;
	}
	o->libbpf = bpf_object__open_mem(bytes, n, &opts);
	return o->libbpf ? 0 : fr_bpf_explain_open(o->label, -errno, log.text, d);
}

static int check_version(const struct fr_bpf_object *o, struct fr_diag *d)
{
	uint32_t abi;

	if (fr_bpf_object_get(o, "flightrec_abi", &abi, sizeof(abi)) < 0)
		return fr_fail(d, -ENOEXEC, "include <flightrec/trigger.bpf.h>, and call flightrec_trigger()",
			"%s does not use flightrec's trigger ABI: it has no global 'flightrec_abi'",
			o->label);
	if (abi != FLIGHTREC_TRIGGER_ABI)
		return fr_fail(d, -ENOEXEC, "compile it again with this version's flightrec/trigger.bpf.h",
			"%s uses version %u of the trigger ABI, but this is version %u", o->label, abi,
			FLIGHTREC_TRIGGER_ABI);
	return 0;
}

static int check_map(const struct fr_bpf_object *o, const char *name, enum bpf_map_type type, uint32_t value,
	struct fr_diag *d)
{
	static const char hint[] = "leave the maps to flightrec/trigger.bpf.h";
	const struct bpf_map *map = bpf_object__find_map_by_name(o->libbpf, name);

	if (!map)
		return fr_fail(d, -ENOEXEC, hint, "%s has no map '%s'", o->label, name);
	if (bpf_map__type(map) != type || bpf_map__value_size(map) != value)
		return fr_fail(
			d, -ENOEXEC, hint, "the map '%s' of %s differs from the trigger ABI", name, o->label);
	return 0;
}

/* Returns the estimated kernel memory of MAP in bytes; or UINT64_MAX on overflow. */
static uint64_t estimate_map_bytes(const struct bpf_map *map)
{
	const enum bpf_map_type type = bpf_map__type(map);
	const bool per_cpu = type == BPF_MAP_TYPE_PERCPU_ARRAY || type == BPF_MAP_TYPE_PERCPU_HASH ||
			     type == BPF_MAP_TYPE_LRU_PERCPU_HASH;
	const int cpus = per_cpu ? libbpf_num_possible_cpus() : 1;
	uint64_t entry = FR_ALIGN_UP((uint64_t)bpf_map__key_size(map), 8), bytes;

	if (type == BPF_MAP_TYPE_RINGBUF)
		return bpf_map__max_entries(map);
	entry += FR_ALIGN_UP((uint64_t)bpf_map__value_size(map), 8) * (uint64_t)FR_MAX(cpus, 1);
	return __builtin_mul_overflow(entry, bpf_map__max_entries(map), &bytes) ? UINT64_MAX : bytes;
}

/* Limits the kernel memory of all maps. The kernel allocates this memory when the object is loaded, and no
   memory limit of the service includes it. */
static int check_maps(const struct fr_bpf_object *o, struct fr_diag *d)
{
	const struct bpf_map *map;
	uint64_t sum = 0;

	bpf_object__for_each_map(map, o->libbpf)
	{
		const uint64_t bytes = estimate_map_bytes(map);

		if (bytes > FR_BPF_MAPS_MAX - sum)
			return fr_fail(d, -E2BIG, "make max_entries of the maps smaller",
				"the maps of %s take more than %u MiB, with '%s' of %u entries", o->label,
				(unsigned)(FR_BPF_MAPS_MAX >> 20), bpf_map__name(map),
				bpf_map__max_entries(map));
		sum += bytes;
	}
	return 0;
}

static int check_abi(const struct fr_bpf_object *o, struct fr_diag *d)
{
	int r = check_version(o, d);

	if (r == 0)
		r = check_map(o, "flightrec_events", BPF_MAP_TYPE_RINGBUF, 0, d);
	if (r == 0)
		r = check_map(o, "flightrec_counters", BPF_MAP_TYPE_PERCPU_ARRAY,
			sizeof(struct flightrec_counters), d);
	return r;
}

static int open_object(struct fr_bpf_object *o, const void *bytes, size_t n, struct fr_diag *d)
{
	int r;

	if (!o->label)
		return fr_fail_errno(d, -ENOMEM, NULL, "cannot open a BPF object");
	r = fr_bpf_elf_check(bytes, n, o->label, d);
	if (r == 0)
		r = fr_bpf_btf_check(bytes, n, o->label, d);
	if (r == 0)
		r = open_libbpf(o, bytes, n, d);
	if (r == 0)
		r = check_abi(o, d);
	if (r == 0)
		r = fr_bpf_check_switches(o, d);
	if (r == 0)
		r = check_maps(o, d);
	return r == 0 ? fr_bpf_check_programs(o, d) : r;
}

int fr_bpf_object_open(const void *bytes, size_t n, const char *label, bool classic,
	struct fr_bpf_object **ret, struct fr_diag *d)
{
	struct fr_bpf_object *o = calloc(1, sizeof(*o));
	int r;

	if (!o)
		return fr_fail_errno(d, -ENOMEM, NULL, "cannot open %s", label);
	o->empty_btf = -1;
	o->classic = classic || access("/sys/kernel/btf/vmlinux", R_OK) < 0;
	o->label = strdup(label);
	r = open_object(o, bytes, n, d);
	if (r < 0)
		o = fr_bpf_object_free(o);
	*ret = o;
	return r;
}

struct fr_bpf_object *fr_bpf_object_free(struct fr_bpf_object *o)
{
	if (!o)
		return NULL;
	for (size_t i = 0; i < o->n_links; i++)
		bpf_link__destroy(o->links[i]);
	bpf_object__close(o->libbpf);
	fr_closep(&o->empty_btf);
	free(o->label);
	free(o);
	return NULL;
}

int fr_bpf_object_load(struct fr_bpf_object *o, fr_bpf_log_fn on_failure, void *ctx, struct fr_diag *d)
{
	_cleanup_bpf_log_ struct fr_bpf_log log = {0};
	int r;

	fr_thread_assert_may_wait();
	fr_bpf_log_begin(&log);
	r = fr_bpf_return_one(o, d);
	if (r < 0)
		return r;
	r = bpf_object__load(o->libbpf);
	if (r < 0 && on_failure && log.text)
		on_failure(ctx, log.text);
	return r < 0 ? fr_bpf_explain_load(o->label, r, log.text, d) : r;
}

int fr_bpf_object_keep(struct fr_bpf_object *o, struct bpf_link *link)
{
	if (o->n_links == FR_BPF_LINKS_MAX) {
		bpf_link__destroy(link);
		return -E2BIG;
	}
	o->links[o->n_links++] = link;
	return 0;
}

static int attach(struct fr_bpf_object *o, const struct bpf_program *p, struct fr_diag *d)
{
	_cleanup_bpf_log_ struct fr_bpf_log log = {0};
	struct bpf_link *link;

	fr_bpf_log_begin(&log);
	link = bpf_program__attach(p);
	if (!link)
		return fr_bpf_explain_attach(o->label, p, -errno, log.text, d);
	if (fr_bpf_object_keep(o, link) < 0)
		return fr_fail(d, -E2BIG, NULL, "%s has more than %d programs", o->label, FR_BPF_LINKS_MAX);
	return 0;
}

int fr_bpf_object_attach(struct fr_bpf_object *o, struct fr_diag *d)
{
	struct bpf_program *p;
	int r = 0;

	for (p = bpf_object__next_program(o->libbpf, NULL); p && r == 0;
		p = bpf_object__next_program(o->libbpf, p))
		if (bpf_program__autoload(p))
			r = attach(o, p, d);
	return r;
}

bool fr_bpf_object_is_classic(const struct fr_bpf_object *o)
{
	return o->classic;
}

struct bpf_object *fr_bpf_object_libbpf(struct fr_bpf_object *o)
{
	return o->libbpf;
}
