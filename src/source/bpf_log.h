/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Collects and summarizes the output of libbpf, which includes the verifier's log. Without this, libbpf
   prints to standard error. */

#include <stddef.h>

#define FR_BPF_LOG_SIZE                                                                                      \
	(64 * 1024) /* of a longer log only the end is kept, because the end has the reason                  \
		     */

struct fr_bpf_log {
	char *text; /* NUL-terminated; NULL: nothing was printed */
	size_t len;
	struct fr_bpf_log *outer;
};

/* From now until fr_bpf_log_end(), the warnings of libbpf on this thread go to LOG (zero-initialised); other
   warnings are dropped. Logs nest. fr_bpf_log_deinit() frees the text. */
void fr_bpf_log_begin(struct fr_bpf_log *log);
void fr_bpf_log_end(struct fr_bpf_log *log);
void fr_bpf_log_deinit(struct fr_bpf_log *log);

struct fr_bpf_log_summary {
	char program[64]; /* the program that the verifier rejected; empty: another failure */
	char reason[256]; /* "R1 invalid mem access 'scalar'", or libbpf's last message; may be empty */
	char source[160]; /* the line of source code that the reason is about; may be empty */
};
/* Summarizes any TEXT; NULL is allowed. */
void fr_bpf_log_summarize(const char *text, struct fr_bpf_log_summary *ret);
