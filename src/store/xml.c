// SPDX-License-Identifier: GPL-2.0-or-later
#include "store/xml.h"

#include "base/cleanup.h"

#include <errno.h>
#include <expat.h>
#include <limits.h>
#include <string.h>

struct reader {
	XML_Parser parser;
	int (*on_end)(void *ctx, const struct fr_xml_element *e);
	void *ctx;
	int code;	 /* negative errno of the reader or of on_end */
	const char *why; /* the reader's own reason; NULL: on_end has given one */
	char path[FR_XML_PATH_SIZE];
	size_t path_len;
	unsigned depth;
	size_t begins[FR_XML_DEPTH];
	char text[FR_XML_TEXT_MAX + 1];
	size_t text_len;
};

static void stop(struct reader *r, int code, const char *why)
{
	if (r->code == 0) {
		r->code = code;
		r->why = why;
	}
	XML_StopParser(r->parser, XML_FALSE);
}

static const char *local_name(const char *name)
{
	const char *colon = strrchr(name, ':');

	return colon ? colon + 1 : name;
}

static void XMLCALL on_start(void *data, const XML_Char *name, const XML_Char **attributes)
{
	struct reader *r = data;
	const char *local = local_name(name);
	const size_t n = strlen(local);

	if (r->depth == FR_XML_DEPTH)
		return stop(r, -EBADMSG, "its elements are too deep");
	if (n + 2 > sizeof(r->path) - r->path_len)
		return stop(r, -EBADMSG, "its names are too long");
	r->begins[r->depth++] = (size_t)XML_GetCurrentByteIndex(r->parser);
	r->path[r->path_len++] = '/';
	memcpy(r->path + r->path_len, local, n + 1);
	r->path_len += n;
	r->text_len = 0;
}

static void XMLCALL on_text(void *data, const XML_Char *text, int n)
{
	struct reader *r = data;

	if (r->code < 0)
		return;
	if ((size_t)n > FR_XML_TEXT_MAX - r->text_len)
		return stop(r, -EBADMSG, "a text in it is too long");
	memcpy(r->text + r->text_len, text, (size_t)n);
	r->text_len += (size_t)n;
}

static void XMLCALL on_close(void *data, const XML_Char *name)
{
	struct reader *r = data;
	struct fr_xml_element e = {.path = r->path, .text = r->text};
	int code;

	if (r->code < 0) /* libexpat ends an empty element also after a stop at its start */
		return;
	r->text[r->text_len] = '\0';
	e.begin = r->begins[--r->depth];
	e.close = (size_t)XML_GetCurrentByteIndex(r->parser);
	e.end = e.close + (size_t)XML_GetCurrentByteCount(r->parser);
	code = r->on_end(r->ctx, &e);
	if (code < 0)
		return stop(r, code, NULL);
	r->path_len -= strlen(local_name(name)) + 1;
	r->path[r->path_len] = '\0';
	r->text_len = 0;
}

static void XMLCALL on_doctype(
	void *data, const XML_Char *name, const XML_Char *system, const XML_Char *public, int internal)
{
	stop(data, -EBADMSG, "it has a document type, which no store needs");
}

static void parser_freep(XML_Parser *p)
{
	XML_ParserFree(*p);
}

int fr_xml_read(const void *data, size_t n, int (*on_end)(void *ctx, const struct fr_xml_element *e),
	void *ctx, struct fr_diag *d)
{
	_cleanup_(parser_freep) XML_Parser parser = XML_ParserCreate("UTF-8");
	_cleanup_free_ struct reader *r = calloc(1, sizeof(*r));

	if (!parser || !r)
		return fr_fail_errno(d, -ENOMEM, NULL, "cannot read XML");
	if (n > INT_MAX)
		return fr_fail(d, -EBADMSG, NULL, "the XML of the store is too long");
	if (n > 0 && memchr(data, '\0', n)) /* libexpat reads UTF-16 in spite of its parameter */
		return fr_fail(d, -EBADMSG, NULL, "the XML of the store is not UTF-8");
	*r = (struct reader){.parser = parser, .on_end = on_end, .ctx = ctx};
	XML_SetUserData(parser, r);
	XML_SetElementHandler(parser, on_start, on_close);
	XML_SetCharacterDataHandler(parser, on_text);
	XML_SetStartDoctypeDeclHandler(parser, on_doctype);
	if (XML_Parse(parser, data, (int)n, XML_TRUE) == XML_STATUS_OK && r->code == 0)
		return 0;
	if (r->code < 0)
		return r->why ? fr_fail(d, r->code, NULL, "the XML of the store is refused: %s", r->why)
			      : r->code;
	if (XML_GetErrorCode(parser) == XML_ERROR_NO_MEMORY)
		return fr_fail_errno(d, -ENOMEM, NULL, "cannot read XML");
	return fr_fail(d, -EBADMSG, NULL, "the XML of the store is broken: %s in line %lu",
		XML_ErrorString(XML_GetErrorCode(parser)), XML_GetCurrentLineNumber(parser));
}

int fr_xml_append(struct fr_buf *b, const char *text)
{
	return fr_buf_append(b, text, strlen(text));
}

static const char *entity(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&apos;";
	default:
		return NULL;
	}
}

int fr_xml_escape(struct fr_buf *b, const char *text)
{
	int r = 0;

	for (; *text && r == 0; text++) {
		const char *as = entity(*text);

		r = as ? fr_xml_append(b, as) : fr_buf_append(b, text, 1);
	}
	return r;
}
