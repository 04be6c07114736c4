/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A BPF object of the trigger ABI (include/flightrec/trigger.bpf.h): a built-in probe, or a user's object.
 *
 *   open: check the ABI ─► set globals ─► choose: what this kernel can run ─► load: verify ─► attach
 *
 * The functions return 0, or a negative errno with D. They print nothing. One thread at a time. After a
 * failed step the object can only be freed.
 */

#include "base/buf.h"
#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FR_BPF_FILE_MAX (16u << 20)    /* bytes of an object */
#define FR_BPF_MAPS_MAX (256ULL << 20) /* bytes of kernel memory for all maps of an object */

struct bpf_link;
struct bpf_object;
struct fr_bpf_object;

/* Reads the file PATH into RET. Its programs will run in the kernel, so -EPERM if anybody but root and this
   user could have written it. -EFBIG: larger than FR_BPF_FILE_MAX; -EINVAL: not a regular file. */
int fr_bpf_file_read(const char *path, struct fr_buf *ret, struct fr_diag *d);

/* -ENOEXEC: BYTES are not an ELF file of BPF code in this machine's byte order. */
int fr_bpf_elf_check(const void *bytes, size_t n, const char *label, struct fr_diag *d);

/* Opens an object without asking this machine's kernel. BYTES are not needed afterwards. LABEL names the
   object in errors: "the probe exec", "/etc/flightrec/x.bpf.o". CLASSIC: act as if the kernel had no BTF.
   -ENOEXEC: it is not a BPF object, or not of this ABI. */
int fr_bpf_object_open(const void *bytes, size_t n, const char *label, bool classic,
	struct fr_bpf_object **ret, struct fr_diag *d);
/* Detaches and frees. NULL is allowed; returns NULL. */
struct fr_bpf_object *fr_bpf_object_free(struct fr_bpf_object *o);

/* True: programs cannot read the kernel's structures, as there is no BTF, or CLASSIC was given. */
bool fr_bpf_object_is_classic(const struct fr_bpf_object *o);

/* Globals, between open and load. Get and set a global of SIZE bytes: -ENOENT or -EINVAL, without words. */
int fr_bpf_object_get(const struct fr_bpf_object *o, const char *name, void *ret, size_t size);
int fr_bpf_object_set(struct fr_bpf_object *o, const char *name, const void *value, size_t size);
/* Sets an integer of any size; -EINVAL if VALUE does not fit. */
int fr_bpf_object_set_number(struct fr_bpf_object *o, const char *name, uint64_t value);
/* Sets what a person wrote, "NAME=VALUE": an integer (decimal, 0x…; yes/no for a bool) or char[]. -EINVAL. */
int fr_bpf_object_assign(struct fr_bpf_object *o, const char *assignment, struct fr_diag *d);

/* Chooses the programs to load, by the convention of the ABI's header. -EOPNOTSUPP: the kernel lacks a
   tracepoint that a program needs. A caller may choose by itself instead, with
   bpf_program__set_autoload(). */
int fr_bpf_object_choose(struct fr_bpf_object *o, struct fr_diag *d);

/* Loads the chosen programs. Waits for the verifier. If it fails, LOG (NULL is allowed) gets all that the
   verifier and libbpf printed. */
typedef void (*fr_bpf_log_fn)(void *ctx, const char *text);
int fr_bpf_object_load(struct fr_bpf_object *o, fr_bpf_log_fn log, void *ctx, struct fr_diag *d);
/* Attaches each loaded program by its SEC(). */
int fr_bpf_object_attach(struct fr_bpf_object *o, struct fr_diag *d);

/* libbpf's object, borrowed: for callers that attach programs themselves or read a map. */
struct bpf_object *fr_bpf_object_libbpf(struct fr_bpf_object *o);
/* Makes LINK part of the object, which destroys it when it is freed. -E2BIG: too many; LINK is destroyed. */
int fr_bpf_object_keep(struct fr_bpf_object *o, struct bpf_link *link);
