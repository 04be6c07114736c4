/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the files of frtest-culprit share. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

extern volatile uint64_t culprit_sink; /* results that nobody needs */
extern char *culprit_file;
extern pid_t culprit_cause; /* the thread that is the cause */

bool culprit_is_over(void);
void culprit_hog(void);

/* Kinds of culprit_more.c; culprit.c describes them. They return at the end of the time. */
void culprit_spinning(void);
void culprit_fifo(void);
void culprit_child(void);
void culprit_pipe(void);
void culprit_peer(void);
void culprit_contention(void);
void culprit_cold_file(void);
void culprit_calls(void);
void culprit_switches(void);
void culprit_packets(void);
void culprit_restarts(void);
void culprit_files(void);
void culprit_stuck(void);
