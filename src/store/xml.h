/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Reads the XML of a store by libexpat, as UTF-8. A document type is refused, so there are no entities except
   the five of XML itself. Depth, names and texts are bounded. */

#include "base/buf.h"
#include "base/diag.h"

#define FR_XML_DEPTH 16
#define FR_XML_PATH_SIZE 512
#define FR_XML_TEXT_MAX 4096 /* of one element, without the NUL */

struct fr_xml_element {
	const char *path; /* "/ListBucketResult/Contents/Key", without prefixes of namespaces */
	const char
		*text; /* the characters after its last start tag; for an element with children: undefined */
	size_t begin, end; /* the bytes of the document that are this element */
	size_t close;	   /* where its end tag begins */
};

/* Calls ON_END at the end of each element. If ON_END returns a negative errno, the reading ends with it.
   Returns 0, -EBADMSG with a text in D if this is not such XML, -ENOMEM, or what ON_END returned. */
int fr_xml_read(const void *data, size_t n, int (*on_end)(void *ctx, const struct fr_xml_element *e),
	void *ctx, struct fr_diag *d);

/* Appends TEXT, with the characters replaced that have a meaning in XML. Returns 0 or -ENOMEM. */
int fr_xml_escape(struct fr_buf *b, const char *text);
/* Appends a text as it is. Returns 0 or -ENOMEM. */
int fr_xml_append(struct fr_buf *b, const char *text);
