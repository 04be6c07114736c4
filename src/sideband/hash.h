/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Hash tables (uthash). Each element has a field `UT_hash_handle hh`. Include this header instead of
 * <uthash.h>. If there is no memory for a new element, <uthash.h> alone would end the program. With this
 * header the element is not added, and the program goes on.
 */

#include <stdlib.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* Returns the element of TABLE whose field KEY is VALUE, or NULL. */
#define FR_HASH_FIND(table, key, value)                                                                      \
	({                                                                                                   \
		__typeof__((table) + 0) _found;                                                              \
		__typeof__(_found->key) _value = (value);                                                    \
		HASH_FIND(hh, table, &_value, sizeof(_value), _found);                                       \
		_found;                                                                                      \
	})

/* Adds ELEMENT to TABLE by its field KEY. Returns false if there is no memory. In this case, the caller still
   owns ELEMENT. */
#define FR_HASH_ADD(table, key, element)                                                                     \
	({                                                                                                   \
		HASH_ADD(hh, table, key, sizeof((element)->key), element);                                   \
		(element)->hh.tbl != NULL;                                                                   \
	})

/* Adds a new element to TABLE. Its field KEY is VALUE; its other fields are zero. Returns NULL if there is no
   memory. */
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

/* Removes every element from TABLE and calls FREE_ELEMENT for it. */
#define FR_HASH_CLEAR(table, free_element)                                                                   \
	do {                                                                                                 \
		__typeof__((table) + 0) _element, _next;                                                     \
		HASH_ITER (hh, table, _element, _next) {                                                     \
			HASH_DEL(table, _element);                                                           \
			free_element(_element);                                                              \
		}                                                                                            \
	} while (0)
