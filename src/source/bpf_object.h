/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A BPF object of the trigger ABI (include/flightrec/trigger.bpf.h): a built-in probe, or a user's object.
 *
 *   open: check the ABI ─► set globals ─► choose the programs for this kernel ─► load: verify ─► attach
 *
 * A function that returns an int returns 0; or a negative errno, with a message in D if the function has a
 * parameter D. The functions print nothing. Only one thread at a time is allowed to use an object. If a step
 * fails, the caller can only free the object.
 */

#include "base/buf.h"
#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FR_BPF_FILE_MAX (16u << 20)    /* the largest size of an object file, in bytes */
#define FR_BPF_MAPS_MAX (256ULL << 20) /* the most kernel memory of all maps of an object, in bytes */

struct bpf_link;
struct bpf_object;
struct fr_bpf_object;

/* Appends the content of the file PATH to RET. The programs in the file run in the kernel. So the function
   returns -EPERM if the file belongs to another user than root and the user of this process, or if other
   users (except the group root) have the permission to write it. Returns -EFBIG if the file has more than
   FR_BPF_FILE_MAX bytes; -EINVAL if PATH is not a regular file; or another negative errno. */
int fr_bpf_file_read(const char *path, struct fr_buf *ret, struct fr_diag *d);

/* Returns -ENOEXEC if BYTES are not an ELF file of BPF code in this machine's byte order. */
int fr_bpf_elf_check(const void *bytes, size_t n, const char *label, struct fr_diag *d);

/* Opens an object, even if this kernel cannot run the object's programs. BYTES are not used after the call.
   LABEL (copied) names the object in messages: "the probe exec", "/etc/flightrec/x.bpf.o". If `classic` is
   true, acts as if the kernel had no BTF. Returns -ENOEXEC if BYTES are damaged, or are not a BPF object of
   this ABI; -EINVAL if a program has an unknown SEC(); -E2BIG if the maps need more than FR_BPF_MAPS_MAX. */
int fr_bpf_object_open(const void *bytes, size_t n, const char *label, bool classic,
	struct fr_bpf_object **ret, struct fr_diag *d);
/* Detaches and frees. NULL is allowed; returns NULL. */
struct fr_bpf_object *fr_bpf_object_free(struct fr_bpf_object *o);

/* Returns true if O's programs cannot read the kernel's structures, because the kernel has no BTF, or because
   `classic` was true in fr_bpf_object_open(). */
bool fr_bpf_object_is_classic(const struct fr_bpf_object *o);

/* Call the next four functions only between open and load. fr_bpf_object_get() and fr_bpf_object_set() get
   and set a global of SIZE bytes. They return 0; -ENOENT if there is no global NAME; -EINVAL if the size of
   the global is not SIZE. */
int fr_bpf_object_get(const struct fr_bpf_object *o, const char *name, void *ret, size_t size);
int fr_bpf_object_set(struct fr_bpf_object *o, const char *name, const void *value, size_t size);
/* Sets a global that is an integer of any size. Returns 0; -ENOENT if there is no global NAME; -EINVAL if the
   global is not an integer, or if VALUE does not fit into it. */
int fr_bpf_object_set_number(struct fr_bpf_object *o, const char *name, uint64_t value);
/* Carries out ASSIGNMENT, the text "NAME=VALUE" that a person wrote for Set=. The global must be an integer
   (VALUE is decimal or 0x…), a bool (yes or no) or a char[]. Returns 0; or -EINVAL, with a message in D. */
int fr_bpf_object_assign(struct fr_bpf_object *o, const char *assignment, struct fr_diag *d);

/* Chooses the programs to load, by the rules about the names of programs in the ABI's header. Returns
   -EOPNOTSUPP if the kernel does not have the tracepoint of a program that is not optional, or if no program
   is left. Instead of this function, a caller can use bpf_program__set_autoload() to choose the programs. */
int fr_bpf_object_choose(struct fr_bpf_object *o, struct fr_diag *d);

/* Loads the chosen programs, and waits for the verifier. If the load fails, calls LOG (NULL is allowed) with
   the last FR_BPF_LOG_SIZE bytes of the output of libbpf and the verifier (bpf_log.h). */
typedef void (*fr_bpf_log_fn)(void *ctx, const char *text);
int fr_bpf_object_load(struct fr_bpf_object *o, fr_bpf_log_fn log, void *ctx, struct fr_diag *d);
/* Attaches each loaded program by its SEC(). */
int fr_bpf_object_attach(struct fr_bpf_object *o, struct fr_diag *d);

/* Returns libbpf's object, which O owns, for callers that attach programs themselves or read a map. */
struct bpf_object *fr_bpf_object_libbpf(struct fr_bpf_object *o);
/* Makes O the owner of LINK: fr_bpf_object_free() destroys LINK. Returns 0; or, if O already has the largest
   number of links, destroys LINK at once and returns -E2BIG. */
int fr_bpf_object_keep(struct fr_bpf_object *o, struct bpf_link *link);
