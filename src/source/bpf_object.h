/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A BPF object that speaks the trigger ABI (include/flightrec/trigger.bpf.h), a built-in probe's or a user's:
 *
 *   bytes ─► open: ABI checked ─► globals set ─► choose: what this kernel can run ─► load: verified ─► attach
 *
 * Every function returns 0 or a negative errno with D in words. Nothing reaches standard error. One thread
 * at a time. A step that failed leaves an object that can only be freed.
 */

#include "base/buf.h"
#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FR_BPF_FILE_MAX (16u << 20) /* bytes of an object */
/* Of the kernel's memory, by all maps of an object. */
#define FR_BPF_MAPS_MAX (256ULL << 20)

struct bpf_object;
struct fr_bpf_object;

/* The file PATH as a whole into RET. What somebody else than root and us could have written is refused,
   -EPERM: it would run in the kernel. -EFBIG past FR_BPF_FILE_MAX, -EINVAL for what is no regular file. */
int fr_bpf_file_read(const char *path, struct fr_buf *ret, struct fr_diag *d);

/* BYTES are an ELF file of BPF code in this machine's byte order: -ENOEXEC if not. libbpf looks at the rest.
 */
int fr_bpf_elf_check(const void *bytes, size_t n, const char *label, struct fr_diag *d);

/* LABEL names the object in errors: "probe exec", "/etc/flightrec/x.bpf.o". BYTES are not needed afterwards.
   CLASSIC: as if the kernel had no BTF. -ENOEXEC: no BPF object, or not of our ABI. Nothing is asked of this
   machine's kernel. */
int fr_bpf_object_open(const void *bytes, size_t n, const char *label, bool classic,
	struct fr_bpf_object **ret, struct fr_diag *d);
struct fr_bpf_object *fr_bpf_object_free(struct fr_bpf_object *o); /* detaches. NULL */

/* Nothing can be found in the kernel's structures: it has no BTF, or so it was opened. */
bool fr_bpf_object_is_classic(const struct fr_bpf_object *o);

/* Globals, between open and load. One of the ABI, or of a probe, which is known to be there with this SIZE:
   -ENOENT, -EINVAL without words. */
int fr_bpf_object_get(const struct fr_bpf_object *o, const char *name, void *ret, size_t size);
int fr_bpf_object_set(struct fr_bpf_object *o, const char *name, const void *value, size_t size);
/* An integer of whatever size that it fits. */
int fr_bpf_object_set_number(struct fr_bpf_object *o, const char *name, uint64_t value);
/* "NAME=VALUE" of a person: any integer (decimal, 0x…, yes/no for a bool) or char[]. -EINVAL with near
 * misses. */
int fr_bpf_object_assign(struct fr_bpf_object *o, const char *assignment, struct fr_diag *d);

/* Say which of its programs are loaded, by the convention in the ABI's header. -EOPNOTSUPP: the kernel lacks
   a tracepoint that one needs. Left out by who knows better (fr_bpf_object_libbpf(): set_autoload). */
int fr_bpf_object_choose(struct fr_bpf_object *o, struct fr_diag *d);

/* LOG, where not NULL, is told all that the verifier and libbpf said of a failure. */
typedef void (*fr_bpf_log_fn)(void *ctx, const char *text);
int fr_bpf_object_load(struct fr_bpf_object *o, fr_bpf_log_fn log, void *ctx, struct fr_diag *d);
/* Each program that is loaded, by its SEC(). */
int fr_bpf_object_attach(struct fr_bpf_object *o, struct fr_diag *d);

/* For who attaches programs of his own, or wants another map. Borrowed. */
struct bpf_object *fr_bpf_object_libbpf(struct fr_bpf_object *o);
/* A link that is destroyed with the object. Takes LINK, also on failure (-E2BIG: it has too many). */
struct bpf_link;
int fr_bpf_object_keep(struct fr_bpf_object *o, struct bpf_link *link);
