/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What libbpf has to say, and the verifier through it, kept from standard error and made readable. */

#include <stddef.h>

#define FR_BPF_LOG_SIZE (64 * 1024) /* the end of a log is what tells */

struct fr_bpf_log {
	char *text; /* NUL-terminated; NULL: nothing was said */
	size_t len;
	struct fr_bpf_log *outer;
};

/* From now until fr_bpf_log_end(), what libbpf warns of on this thread goes to LOG (zero-initialised); at any
   other time, and on others, it is dropped. They nest. LOG's text is freed by fr_bpf_log_deinit(). */
void fr_bpf_log_begin(struct fr_bpf_log *log);
void fr_bpf_log_end(struct fr_bpf_log *log);
void fr_bpf_log_deinit(struct fr_bpf_log *log);

/* What a log says in the end. Pure, for any TEXT (may be NULL). */
struct fr_bpf_log_summary {
	char program[64]; /* that the verifier rejected; empty: it was not the verifier */
	char reason[256]; /* "R1 invalid mem access 'scalar'"; or libbpf's last words; may be empty */
	char source[160]; /* the line of the source that it is about; may be empty */
};
void fr_bpf_log_summarize(const char *text, struct fr_bpf_log_summary *ret);
