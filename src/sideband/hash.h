/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Tables of uthash whose elements have a `UT_hash_handle hh`. Include this header instead of <uthash.h>: if
 * memory is short, the element is left out of the table and the program goes on.
 */

#include <stdlib.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* The element of TABLE whose field KEY is VALUE, or NULL. */
#define FR_HASH_FIND(table, key, value)                                                                      \
	({                                                                                                   \
		__typeof__((table) + 0) _found;                                                              \
		__typeof__(_found->key) _value = (value);                                                    \
		HASH_FIND(hh, table, &_value, sizeof(_value), _found);                                       \
		_found;                                                                                      \
	})

/* Add ELEMENT to TABLE by its field KEY. False: no memory, and the element is still the caller's. */
#define FR_HASH_ADD(table, key, element)                                                                     \
	({                                                                                                   \
		HASH_ADD(hh, table, key, sizeof((element)->key), element);                                   \
		(element)->hh.tbl != NULL;                                                                   \
	})

/* A new element of TABLE, all zero but the field KEY, which is VALUE. NULL: no memory. */
#define FR_HASH_NEW(table, key, value)                                                                       \
	({                                                                                                   \
		__typeof__((table) + 0) _new = calloc(1, sizeof(*_new));                                     \
		if (_new) {                                                                                  \
			_new->key = (value);                                                                 \
			if (!FR_HASH_ADD(table, key, _new)) {                                                \
				free(_new);                                                                  \
				_new = NULL;                                                                 \
			}                                                                                    \
		}                                                                                            \
		_new;                                                                                        \
	})

/* Take every element out of TABLE and call FREE_ELEMENT for it. */
#define FR_HASH_CLEAR(table, free_element)                                                                   \
	do {                                                                                                 \
		__typeof__((table) + 0) _element, _next;                                                     \
		HASH_ITER (hh, table, _element, _next) {                                                     \
			HASH_DEL(table, _element);                                                           \
			free_element(_element);                                                              \
		}                                                                                            \
	} while (0)
