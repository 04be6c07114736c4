// SPDX-License-Identifier: GPL-2.0-or-later

/* Encodes and decodes feature sections. Formats: tools/perf/Documentation/perf.data-file-format.txt. */

#include "perfdata/features_private.h"
#include "perfdata/record.h"
#include "base/cleanup.h"

#include <elf.h>
#include <limits.h>

#define STRING_ALIGN 64u
#define COMPRESSED_VERSION 1u
#define COMPRESSED_ZSTD 1u

void fr_feature_put_string(struct builder *b, const char *text)
{
	size_t len = strlen(text) + 1, padded = FR_ALIGN_UP(len, STRING_ALIGN);

	put_u32(b, (uint32_t)padded);
	put_bytes(b, text, len);
	put_zeros(b, padded - len);
}

int fr_feature_finish_list(struct builder *b, uint32_t n, struct fr_buf *section)
{
	set_bytes(b, 0, &n, sizeof(n));
	if (n > 0)
		return finish_section(b, section);
	fr_buf_deinit(&b->buf);
	return 0;
}

int fr_feature_set_string(struct fr_session *s, enum fr_feature f, const char *text)
{
	struct builder b = {0};

	fr_feature_put_string(&b, text);
	return finish_section(&b, &s->features[f]);
}

const char *fr_feature_get_string(const struct fr_session *s, enum fr_feature f)
{
	const struct fr_buf *b = &s->features[f];
	uint32_t len;

	if (b->len < sizeof(len))
		return NULL;
	memcpy(&len, b->data, sizeof(len));
	if (len > b->len - sizeof(len) || !memchr(b->data + sizeof(len), '\0', len))
		return NULL;
	return (const char *)b->data + sizeof(len);
}

int fr_feature_set_event_desc(struct fr_session *s)
{
	struct builder b = {0};

	put_u32(&b, (uint32_t)s->n_events);
	put_u32(&b, sizeof(struct perf_event_attr));
	for (size_t i = 0; i < s->n_events; i++) {
		const struct fr_event_desc *e = &s->events[i];

		put_bytes(&b, &e->attr, sizeof(e->attr));
		put_u32(&b, (uint32_t)e->n_ids);
		fr_feature_put_string(&b, e->name);
		put_bytes(&b, e->ids, e->n_ids * sizeof(*e->ids));
	}
	return finish_section(&b, &s->features[FR_FEATURE_EVENT_DESC]);
}

int fr_feature_set_sample_time(struct fr_session *s, uint64_t first_ns, uint64_t last_ns)
{
	struct builder b = {0};

	put_u64(&b, first_ns);
	put_u64(&b, last_ns);
	return finish_section(&b, &s->features[FR_FEATURE_SAMPLE_TIME]);
}

int fr_feature_set_compressed(struct fr_session *s, int level, uint32_t ratio, uint32_t mmap_len)
{
	const uint32_t body[] = {COMPRESSED_VERSION, COMPRESSED_ZSTD, (uint32_t)level, ratio, mmap_len};
	struct builder b = {0};

	put_bytes(&b, body, sizeof(body));
	return finish_section(&b, &s->features[FR_FEATURE_COMPRESSED]);
}

int fr_feature_add_build_id(
	struct fr_session *s, uint16_t cpumode, int32_t pid, const uint8_t *id, size_t size, const char *path)
{
	struct fr_record_build_id record = {.pid = pid, .size = (uint8_t)size};
	/* 36 bytes are before the name: 4 more bytes make the record a multiple of 8. */
	size_t len = strlen(path) + 1, padded = FR_ALIGN_UP(len, STRING_ALIGN) + 4;
	struct fr_buf *b = &s->features[FR_FEATURE_BUILD_ID];

	if (size == 0 || size > sizeof(record.id))
		return -EINVAL;
	/* perf reads the padded name into a buffer of PATH_MAX bytes without checking the length. */
	if (padded > PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(record.id, id, size);
	record.header.type = FR_RECORD_HEADER_BUILD_ID;
	record.header.misc = (uint16_t)(cpumode | FR_MISC_BUILD_ID_SIZE);
	record.header.size = (uint16_t)(sizeof(record) + padded);
	if (fr_buf_reserve(b, record.header.size) < 0)
		return -ENOMEM;
	(void)fr_buf_append(b, &record, sizeof(record));
	(void)fr_buf_append(b, path, len - 1);
	return fr_buf_append_zero(b, padded - len + 1);
}

int fr_build_id_from_notes(const void *notes, size_t len, size_t align, uint8_t ret[static 20])
{
	const uint8_t *bytes = notes;
	size_t at = 0;

	while (at < len && len - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr n; /* Elf32_Nhdr has the same layout */
		size_t name, desc;

		memcpy(&n, bytes + at, sizeof(n));
		name = at + sizeof(n);
		if (n.n_namesz > len || n.n_descsz > len)
			return -ENOENT;
		desc = FR_ALIGN_UP(name + n.n_namesz, align);
		if (desc > len || n.n_descsz > len - desc)
			return -ENOENT;
		if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == sizeof("GNU") &&
			!memcmp(bytes + name, "GNU", sizeof("GNU")) && n.n_descsz > 0) {
			size_t size = FR_MIN((size_t)n.n_descsz, (size_t)20);

			memcpy(ret, bytes + desc, size);
			return (int)size;
		}
		at = FR_ALIGN_UP(desc + n.n_descsz, align);
	}
	return -ENOENT;
}
