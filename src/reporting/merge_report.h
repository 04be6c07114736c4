/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Merges the files of DIRECTORY into one perf.data, and logs the result. Call this function only after the
   recorder has closed all its files. Returns an exit code (enum fr_exit). */
int fr_merge_directory(const char *directory);
