// SPDX-License-Identifier: GPL-2.0-or-later
#include "crashmem/record.h"
#include "base/cleanup.h"
#include "base/crc32c.h"
#include "base/json.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOG_LINES_MAX 200
#define LINE_MAX_BYTES 1024

/* The names of the kernel's struct pt_regs, in its order. */
static const char *const x86_64_registers[] = {"r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9",
	"r8", "rax", "rcx", "rdx", "rsi", "rdi", "orig_rax", "rip", "cs", "eflags", "rsp", "ss"};

static void end_text(char *text, size_t size)
{
	text[size - 1] = '\0';
	fr_utf8_sanitize(text);
}

static bool is_valid(const struct flightrec_crash_record *r)
{
	return (r->kind == FLIGHTREC_CRASH_PANIC || r->kind == FLIGHTREC_CRASH_OOPS) &&
	       r->n_stack <= FR_ARRAY_SIZE(r->stack) && r->n_registers <= FR_ARRAY_SIZE(r->registers);
}

int fr_crash_record_read(const void *area, size_t bytes, struct fr_crash_record *ret)
{
	const size_t from = offsetof(struct flightrec_crash_record, kind);
	struct fr_crash_record record;
	uint32_t crc;

	if (bytes < sizeof(record.r))
		return -ENOENT;
	memcpy(&record.r, area, sizeof(record.r)); /* a copy does not change between check and use */
	if (record.r.magic != FLIGHTREC_CRASH_RECORD_MAGIC)
		return -ENOENT;
	if (record.r.version != FLIGHTREC_CRASH_RECORD_VERSION ||
		record.r.log_bytes > bytes - sizeof(record.r))
		return -EBADMSG;
	record.log = malloc(record.r.log_bytes + 1);
	if (!record.log)
		return -ENOMEM;
	memcpy(record.log, (const uint8_t *)area + sizeof(record.r), record.r.log_bytes);
	record.log[record.r.log_bytes] = '\0';
	crc = fr_crc32c(0, (const uint8_t *)&record.r + from, sizeof(record.r) - from);
	if (fr_crc32c(crc, record.log, record.r.log_bytes) != record.r.crc || !is_valid(&record.r)) {
		free(record.log);
		return -EBADMSG;
	}
	end_text(record.r.reason, sizeof(record.r.reason));
	end_text(record.r.comm, sizeof(record.r.comm));
	end_text(record.r.release, sizeof(record.r.release));
	*ret = record;
	return 0;
}

void fr_crash_record_deinit(struct fr_crash_record *r)
{
	free(r->log);
	r->log = NULL;
}

const char *fr_crash_record_kind(const struct fr_crash_record *r)
{
	return r->r.kind == FLIGHTREC_CRASH_OOPS ? "oops" : "panic";
}

static void add_hex(cJSON *object, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, value);
	if (cJSON_IsArray(object))
		cJSON_AddItemToArray(object, cJSON_CreateString(text));
	else
		cJSON_AddStringToObject(object, name, text);
}

static void add_registers(const struct flightrec_crash_record *r, cJSON *to)
{
	const bool is_x86 = r->n_registers == FR_ARRAY_SIZE(x86_64_registers);
	cJSON *of = cJSON_AddObjectToObject(
		to, r->registers_of == FLIGHTREC_CRASH_REGISTERS_USER ? "user_registers" : "registers");
	char name[16];

	for (uint32_t i = 0; of && i < r->n_registers; i++) {
		snprintf(name, sizeof(name), "r%u", i);
		add_hex(of, is_x86 ? x86_64_registers[i] : name, r->registers[i]);
	}
}

/* Adds the newest lines of LOG, oldest first. */
static void add_log(const char *log, cJSON *to)
{
	cJSON *lines = cJSON_AddArrayToObject(to, "log");
	const char *at = log + strlen(log);
	char line[LINE_MAX_BYTES];
	size_t n = 0;

	while (at > log && n < LOG_LINES_MAX)
		n += *--at == '\n';
	while (lines && *at) {
		size_t len = strcspn(at, "\n"), part = FR_MIN(len, sizeof(line) - 1);

		memcpy(line, at, part);
		line[part] = '\0';
		fr_utf8_sanitize(line);
		if (len)
			cJSON_AddItemToArray(lines, cJSON_CreateString(line));
		at += len + (at[len] == '\n');
	}
}

cJSON *fr_crash_record_to_json(const struct fr_crash_record *record)
{
	const struct flightrec_crash_record *r = &record->r;
	cJSON *json = cJSON_CreateObject(), *stack;

	if (!json)
		return NULL;
	cJSON_AddStringToObject(json, "kind", fr_crash_record_kind(record));
	cJSON_AddStringToObject(json, "reason", r->reason);
	fr_json_add_time(json, "time", r->realtime_ns);
	fr_json_add_u64(json, "monotonic_ns", r->monotonic_ns);
	cJSON_AddNumberToObject(json, "cpu", r->cpu);
	cJSON_AddNumberToObject(json, "pid", r->pid);
	cJSON_AddNumberToObject(json, "tid", r->tid);
	cJSON_AddStringToObject(json, "comm", r->comm);
	cJSON_AddStringToObject(json, "release", r->release);
	if (r->n_registers)
		add_registers(r, json);
	stack = cJSON_AddArrayToObject(json, "stack");
	for (uint32_t i = 0; stack && i < r->n_stack; i++)
		add_hex(stack, NULL, r->stack[i]);
	add_log(record->log, json);
	return json;
}
