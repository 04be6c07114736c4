// SPDX-License-Identifier: GPL-2.0-or-later

/* What comes from a BPF object that somebody else wrote, and from who names one. The first byte says which:
   what it wrote into the ring buffer and what the verifier said of it, the head of its file, or Set=.

   The file's rest is libbpf's to parse, which no hostile file should reach: libbpf 1.1 crashes within seconds
   of fuzzing. That only root can have written the file (fr_bpf_file_read()) is what protects us there. */

#include "base/cleanup.h"
#include "base/utf8.h"
#include "source/bpf_event.h"
#include "source/bpf_log.h"
#include "source/bpf_object.h"
#include "source/probes.h"

#include <linux/types.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <flightrec/trigger.bpf.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_be_tidy(const char *text, size_t size)
{
	size_t len = strnlen(text, size), n;

	if (len == size)
		abort();
	for (size_t i = 0; i < len; i += n) {
		const uint8_t *s = (const uint8_t *)text + i;

		n = fr_utf8_sequence(s, len - i);
		if (!n || *s < 0x20 || *s == 0x7f || (*s == 0xc2 && s[1] < 0xa0))
			abort();
	}
}

static void event(const uint8_t *data, size_t size)
{
	struct flightrec_event e;
	struct fr_cause c;

	if (fr_bpf_event_parse(data, size, 1000, &e) < 0)
		return;
	fr_bpf_event_to_cause(&e, &c);
	must_be_tidy(c.comm, sizeof(c.comm));
	must_be_tidy(c.reason, sizeof(c.reason));
	must_be_tidy(c.detail, sizeof(c.detail));
	if (!c.time_ns || c.time_ns > 1000 || c.pid < 0 || c.tid < 0 || c.cpu < -1 ||
		(unsigned)c.unit > FLIGHTREC_UNIT_PERCENT)
		abort();
}

static void log_text(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct fr_bpf_log_summary v;

	if (!text)
		return;
	memcpy(text, data, size);
	text[size] = '\0';
	fr_bpf_log_summarize(text, &v);
	if (strchr(v.reason, '\n') || strchr(v.source, '\n') || strchr(v.program, '\n'))
		abort();
	free(text);
}

static void elf(const uint8_t *data, size_t size)
{
	struct fr_diag d = {0};
	int r = fr_bpf_elf_check(data, size, "fuzz", &d);

	if (r != d.code || (r < 0 && !d.what[0]) || (r == 0 && size < 64))
		abort();
}

/* Set= of a probe: opened once, as nothing that is assigned makes the next assignment another. */
static void assignment(const uint8_t *data, size_t size)
{
	static struct fr_bpf_object *o;
	struct fr_diag d = {0};
	char *text;
	size_t n;

	if (!o) {
		const void *bytes = fr_probe_find("off-cpu")->object(&n);

		if (fr_bpf_object_open(bytes, n, "fuzz", true, &o, &d) < 0)
			abort();
	}
	text = strndup((const char *)data, size);
	if (text && fr_bpf_object_assign(o, text, &d) != d.code)
		abort();
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	switch (data[0] % 3) {
	case 0:
		event(data + 1, size - 1);
		log_text(data + 1, size - 1);
		break;
	case 1:
		elf(data + 1, size - 1);
		break;
	default:
		assignment(data + 1, size - 1);
	}
	return 0;
}
