/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A BPF object of the trigger ABI (include/flightrec/trigger.bpf.h): a built-in probe, or a user's object.
 *
 *   open: check the ABI ─► set globals ─► choose the programs for this kernel ─► load: verify ─► attach
 *
 * The functions return 0, or a negative errno with D. They print nothing. Only one thread at a time may use
 * an object. After a failed step, only free the object.
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

/* Reads the file PATH into RET. Returns -EPERM if a user other than root and this one can write the file,
   because its programs run in the kernel; -EFBIG if it is larger than FR_BPF_FILE_MAX; -EINVAL if it is not a
   regular file. */
int fr_bpf_file_read(const char *path, struct fr_buf *ret, struct fr_diag *d);

/* Returns -ENOEXEC if BYTES are not an ELF file of BPF code in this machine's byte order. */
int fr_bpf_elf_check(const void *bytes, size_t n, const char *label, struct fr_diag *d);

/* Opens an object. Does not need a kernel that can run it. BYTES are not used after the call. LABEL names the
   object in messages: "the probe exec", "/etc/flightrec/x.bpf.o". CLASSIC: act as if the kernel had no BTF.
   Returns -ENOEXEC if BYTES are not a BPF object of this ABI. */
int fr_bpf_object_open(const void *bytes, size_t n, const char *label, bool classic,
	struct fr_bpf_object **ret, struct fr_diag *d);
/* Detaches and frees. NULL is allowed; returns NULL. */
struct fr_bpf_object *fr_bpf_object_free(struct fr_bpf_object *o);

/* Returns whether programs cannot read the kernel's structures: there is no BTF, or CLASSIC was given. */
bool fr_bpf_object_is_classic(const struct fr_bpf_object *o);

/* The next four functions are for the time between open and load. These two get and set a global of SIZE
   bytes. They return 0; -ENOENT if there is no such global; -EINVAL if it has another size. */
int fr_bpf_object_get(const struct fr_bpf_object *o, const char *name, void *ret, size_t size);
int fr_bpf_object_set(struct fr_bpf_object *o, const char *name, const void *value, size_t size);
/* Sets an integer of any size. Returns 0; -ENOENT; -EINVAL if VALUE does not fit. */
int fr_bpf_object_set_number(struct fr_bpf_object *o, const char *name, uint64_t value);
/* Carries out the ASSIGNMENT "NAME=VALUE" of a person. The global is an integer (decimal or 0x…), a bool (yes
   or no) or a char[]. Returns 0, or -EINVAL with D. */
int fr_bpf_object_assign(struct fr_bpf_object *o, const char *assignment, struct fr_diag *d);

/* Chooses the programs to load, by the convention of the ABI's header. Returns -EOPNOTSUPP if the kernel
   lacks a tracepoint that a program needs. Instead, a caller may choose with bpf_program__set_autoload(). */
int fr_bpf_object_choose(struct fr_bpf_object *o, struct fr_diag *d);

/* Loads the chosen programs. Waits for the verifier. On failure, LOG (NULL is allowed) gets the complete
   output of the verifier and libbpf. */
typedef void (*fr_bpf_log_fn)(void *ctx, const char *text);
int fr_bpf_object_load(struct fr_bpf_object *o, fr_bpf_log_fn log, void *ctx, struct fr_diag *d);
/* Attaches each loaded program by its SEC(). */
int fr_bpf_object_attach(struct fr_bpf_object *o, struct fr_diag *d);

/* Returns libbpf's object, borrowed, for callers that attach programs themselves or read a map. */
struct bpf_object *fr_bpf_object_libbpf(struct fr_bpf_object *o);
/* Makes LINK part of the object: fr_bpf_object_free() destroys LINK. Returns 0; -E2BIG if the object has too
   many links, after destroying LINK. */
int fr_bpf_object_keep(struct fr_bpf_object *o, struct bpf_link *link);
