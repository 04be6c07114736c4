/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>

/* Returns the first index I below N for which IS_BEHIND is true; N if there is none. IS_BEHIND is an
   expression with I; it is false for all smaller indexes, and true for all greater ones. */
#define UNWIND_BISECT(i, n, is_behind)                                                                       \
	({                                                                                                   \
		size_t _low = 0, _high = (n);                                                                \
		while (_low < _high) {                                                                       \
			const size_t i = _low + (_high - _low) / 2;                                          \
			if (is_behind)                                                                       \
				_high = i;                                                                   \
			else                                                                                 \
				_low = i + 1;                                                                \
		}                                                                                            \
		_low;                                                                                        \
	})
