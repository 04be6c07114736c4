// SPDX-License-Identifier: GPL-2.0-or-later

/* Uses the input as the state of the previous instance. If it can be decoded, the decoded state does not
   change when it is encoded and decoded again. */

#include "handover/state.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fr_state s = {0}, again = {0};
	struct fr_buf b = {0}, c = {0};

	if (fr_state_decode(data, size, &s) < 0)
		return 0;
	check(fr_state_encode(&s, &b) >= 0 && fr_state_decode(b.data, b.len, &again) >= 0);
	check(fr_state_encode(&again, &c) >= 0 && b.len == c.len && memcmp(b.data, c.data, b.len) == 0);
	fr_buf_deinit(&b);
	fr_buf_deinit(&c);
	fr_state_deinit(&s);
	fr_state_deinit(&again);
	return 0;
}
