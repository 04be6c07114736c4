// SPDX-License-Identifier: GPL-2.0-or-later
#include "../unit.h"
#include "base/cleanup.h"
#include "store/xml.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct seen {
	const char *document;
	char text[1000];  /* "PATH=TEXT;" of each element */
	char bytes[1000]; /* the bytes of the last element with the name "cut" */
	int code;
};

static int on_end(void *ctx, const struct fr_xml_element *e)
{
	struct seen *s = ctx;
	const size_t n = strlen(s->text);

	snprintf(s->text + n, sizeof(s->text) - n, "%s=%s;", e->path, e->text);
	if (strstr(e->path, "/cut"))
		snprintf(s->bytes, sizeof(s->bytes), "%.*s|%.*s", (int)(e->end - e->begin),
			s->document + e->begin, (int)(e->end - e->close), s->document + e->close);
	return s->code;
}

static int read_text(const char *document, struct seen *s, struct fr_diag *d)
{
	s->document = document;
	return fr_xml_read(document, strlen(document), on_end, s, d);
}

TEST(elements_have_paths_and_texts)
{
	struct seen s = {0};

	assert_int_equal(
		read_text("<?xml version='1.0'?>\n<a xmlns='x'><b>1&amp;&#50;<![CDATA[<3>]]></b><s:c "
			  "xmlns:s='y'/><b>\xc3\xbc</b></a>",
			&s, NULL),
		0);
	assert_string_equal(s.text, "/a/b=1&2<3>;/a/c=;/a/b=\xc3\xbc;/a=;");
}

TEST(elements_have_their_bytes)
{
	struct seen s = {0};

	assert_int_equal(read_text("<a>\xc3\xbc<cut x='1'>t</cut> </a>", &s, NULL), 0);
	assert_string_equal(s.bytes, "<cut x='1'>t</cut>|</cut>");
	assert_int_equal(read_text("<a><cut x='1' /></a>", &s, NULL), 0);
	assert_string_equal(s.bytes, "<cut x='1' />|");
}

TEST(broken_documents_are_refused)
{
	static const char *const bad[] = {"", " ", "text", "<a>", "<a></b>", "<a/><a/>", "<a>&b;</a>",
		"<a>\xff</a>", "<a>\x01</a>", "<a b=1/>", "<?xml version='1.0' encoding='UTF-16'?><a></b>",
		"<a>&#0;</a>"};

	for (size_t i = 0; i < FR_ARRAY_SIZE(bad); i++) {
		struct seen s = {0};
		struct fr_diag d = {0};

		assert_int_equal(read_text(bad[i], &s, &d), -EBADMSG);
		assert_int_equal(d.code, -EBADMSG);
	}
	assert_int_equal(fr_xml_read("<a/>\0", 5, on_end, &(struct seen){.document = ""}, NULL), -EBADMSG);
}

TEST(a_document_type_is_refused)
{
	struct seen s = {0};
	struct fr_diag d = {0};

	assert_int_equal(read_text("<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", &s, &d), -EBADMSG);
	assert_non_null(strstr(d.what, "document type"));
	assert_string_equal(s.text, "");
}

TEST(depth_and_texts_are_bounded)
{
	static char text[2 * FR_XML_TEXT_MAX];
	struct seen s = {0};
	size_t n = 0;

	memcpy(text, "<a>", 3);
	memset(text + 3, 'x', FR_XML_TEXT_MAX);
	strcpy(text + 3 + FR_XML_TEXT_MAX, "</a>");
	assert_int_equal(read_text(text, &s, NULL), 0);
	strcpy(text + 3 + FR_XML_TEXT_MAX, "x</a>");
	assert_int_equal(read_text(text, &s, NULL), -EBADMSG);

	for (unsigned depth = 0; depth < FR_XML_DEPTH; depth++)
		n += (size_t)sprintf(text + n, "<a>");
	for (unsigned depth = 0; depth < FR_XML_DEPTH; depth++)
		n += (size_t)sprintf(text + n, "</a>");
	assert_int_equal(read_text(text, &s, NULL), 0);
	for (n = 0; n < 3 * (FR_XML_DEPTH + 1);)
		n += (size_t)sprintf(text + n, "<a>");
	assert_int_equal(read_text(text, &s, NULL), -EBADMSG);
}

TEST(the_caller_can_stop)
{
	struct seen s = {.code = -ERANGE};

	assert_int_equal(read_text("<a><b/><c/></a>", &s, NULL), -ERANGE);
	assert_string_equal(s.text, "/a/b=;");
}

TEST(escaped_text_comes_back)
{
	static const char text[] = "<a & 'b' \"c\"> \xc3\xbc";
	_cleanup_buf_ struct fr_buf b = {0};
	struct seen s = {0};

	assert_int_equal(fr_xml_append(&b, "<x>"), 0);
	assert_int_equal(fr_xml_escape(&b, text), 0);
	assert_int_equal(fr_xml_append(&b, "</x>"), 0);
	assert_int_equal(fr_buf_append(&b, "", 1), 0);
	assert_int_equal(read_text((char *)b.data, &s, NULL), 0);
	assert_int_equal(strncmp(s.text, "/x=", 3), 0);
	assert_int_equal(strncmp(s.text + 3, text, sizeof(text) - 1), 0);
}
