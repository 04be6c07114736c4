// SPDX-License-Identifier: GPL-2.0-or-later

/* Uses the input, in pieces, as what a client sends to the control socket. If a message can be parsed, it can
   be printed and parsed again, and its parameters are in their ranges. */

#include "base/cleanup.h"
#include "control/interface.h"
#include "control/wire.h"
#include "fuzz.h"

static void try_parameters(const cJSON *p)
{
	static const char *const names[] = {"last_ns", "reason", "wait", "merge", NULL};
	static const struct fr_param known[] = {{"last_ns", fr_param_is_u64, false},
		{"reason", cJSON_IsString, false}, {"wait", cJSON_IsBool, true}, {0}};
	const char *string = NULL;
	uint64_t number = 0;
	bool boolean = false;

	for (size_t i = 0; names[i]; i++) {
		check(fr_param_u64(p, names[i], &number) != 1 || number <= 1ULL << 53);
		check(fr_param_string(p, names[i], &string) != 1 || string);
		(void)fr_param_bool(p, names[i], &boolean);
	}
	(void)fr_param_check(p, known);
}

static void try_message(const char *text, size_t len)
{
	_cleanup_buf_ struct fr_buf out = {0};
	struct fr_wire_reply reply;
	struct fr_wire_call call;
	struct fr_diag d = {0};
	cJSON *json, *again;

	if (fr_wire_parse(text, len, &json, &d) < 0)
		return;
	if (fr_wire_decode_call(json, &call, &d) == 0)
		try_parameters(call.parameters);
	if (fr_wire_decode_reply(json, &reply, &d) == 0)
		try_parameters(reply.parameters);
	if (fr_wire_encode(json, FR_WIRE_MAX_REPLY, &out) == 0) {
		check(fr_wire_parse((char *)out.data, out.len - 1, &again, NULL) >= 0);
		cJSON_Delete(again);
	}
	cJSON_Delete(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fr_wire_reader r = {.max = 4096};
	size_t piece = size ? 1 + data[0] % 64 : 1;

	for (size_t at = 0; at < size; at += piece) {
		char *text;
		size_t len;
		int n;

		if (fr_wire_feed(&r, data + at, FR_MIN(piece, size - at)) < 0)
			break;
		while ((n = fr_wire_next(&r, &text, &len)) == 1) {
			check(len <= r.max && text[len] == '\0' && !memchr(text, '\0', len));
			try_message(text, len);
			free(text);
		}
		if (n < 0)
			break;
	}
	fr_wire_reader_deinit(&r);
	return 0;
}
