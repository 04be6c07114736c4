// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/bpf.h>
#include <flightrec/trigger.bpf.h>

char LICENSE[] SEC("license") = "GPL";
