// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Uses the input as data of a BPF object that somebody else has written. The first byte says what the other
 * bytes are: an event in the object's ring buffer (the same bytes are also used as a log of the verifier),
 * the head of the object's file, an assignment of Set=, or changes of the object's file.
 *
 * Only files that only root can write reach libbpf, because fr_bpf_file_read() reads no other file. But such
 * a file can be damaged. libbpf 1.1 crashes on some damaged BTF, so fr_bpf_btf_check() refuses it before.
 */

#include "fuzz.h"
#include "source/bpf_event.h"
#include "source/bpf_log.h"
#include "source/bpf_object.h"
#include "source/probes.h"

#include <linux/types.h>

#include <flightrec/trigger.bpf.h>

static void try_event(const uint8_t *data, size_t size)
{
	struct fr_cause c;
	uint64_t cgroup_id;

	if (fr_bpf_event_parse(data, size, 1000, &c, &cgroup_id) < 0)
		return;
	check_text(c.comm, sizeof(c.comm));
	check_text(c.reason, sizeof(c.reason));
	check_text(c.detail, sizeof(c.detail));
	check(c.time_ns && c.time_ns <= 1000 && c.pid >= 0 && c.tid >= 0 && c.cpu >= -1 &&
		(unsigned)c.unit <= FLIGHTREC_UNIT_PERCENT);
}

static void try_log(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);
	struct fr_bpf_log_summary v;

	check(text);
	fr_bpf_log_summarize(text, &v);
	check(!strchr(v.reason, '\n') && !strchr(v.source, '\n') && !strchr(v.program, '\n'));
	free(text);
}

static void try_file_head(const uint8_t *data, size_t size)
{
	struct fr_diag d = {0};
	int r = fr_bpf_elf_check(data, size, "fuzz", &d);

	check(r == d.code && (r == 0 ? size >= 64 : d.what[0]));
}

/* The built-in probe off-cpu is opened only once, because an assignment does not change the outcome of the
   next assignment. */
static void try_assignment(const uint8_t *data, size_t size)
{
	static struct fr_bpf_object *o;
	struct fr_diag d = {0};
	char *text;
	size_t n;

	if (!o) {
		const void *bytes = fr_probe_find("off-cpu")->object(&n);

		check(fr_bpf_object_open(bytes, n, "fuzz", true, &o, &d) >= 0);
	}
	text = strndup((const char *)data, size);
	check(text && fr_bpf_object_assign(o, text, &d) == d.code);
	free(text);
}

/* Opens a copy of the built-in probe off-cpu. Each 4 bytes of DATA change one byte of the copy: its position,
   counted from the start of .BTF (24 bits, the highest first), and the new value. */
static void try_changes(const uint8_t *data, size_t size)
{
	struct fr_bpf_object *o = NULL;
	struct fr_diag d = {0};
	const void *good, *btf;
	uint8_t *bytes;
	size_t begin, n;
	int r;

	good = fr_probe_find("off-cpu")->object(&n);
	btf = memmem(good, n, "\x9f\xeb\x01", 3); /* the head of .BTF */
	check(btf);
	begin = (size_t)((const uint8_t *)btf - (const uint8_t *)good);
	bytes = malloc(n);
	check(bytes);
	memcpy(bytes, good, n);
	for (; size >= 4; data += 4, size -= 4)
		bytes[(begin + ((size_t)data[0] << 16 | (size_t)data[1] << 8 | data[2])) % n] = data[3];
	r = fr_bpf_object_open(bytes, n, "fuzz", true, &o, &d);
	check(r == d.code && (r == 0 ? o != NULL : d.what[0] && !o));
	fr_bpf_object_free(o);
	free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	switch (data[0] % 4) {
	case 0:
		try_event(data + 1, size - 1);
		try_log(data + 1, size - 1);
		break;
	case 1:
		try_file_head(data + 1, size - 1);
		break;
	case 2:
		try_assignment(data + 1, size - 1);
		break;
	default:
		try_changes(data + 1, size - 1);
	}
	return 0;
}
