// SPDX-License-Identifier: GPL-2.0-or-later
#include "handover/state.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/crc32c.h"
#include "perfdata/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define SLOT_MAGIC 0x4554415453525246ULL /* "FRRSTATE" */
#define SLOT_VERSION 3u
/* Room for 1,000 events on 1,000 CPUs. Pages without data take no memory. */
#define SLOT_BYTES (16ULL << 20)
#define EVENT_NAME_MAX 4096u
#define SEALS (F_SEAL_GROW | F_SEAL_SHRINK)

struct slot_header {
	uint64_t magic;
	uint32_t version;
	uint32_t crc; /* crc32c of generation, length and payload */
	uint64_t generation;
	uint64_t length;
};

/* Pointers to the numbers of the state, in their order in the payload. */
#define NUMBERS(s)                                                                                           \
	{                                                                                                    \
		&(s)->first_started_ns, &(s)->restarts, &(s)->gap_ns, &(s)->gap_from_ns, &(s)->gap_to_ns,    \
			&(s)->counters.next_job_id, &(s)->counters.dumps_done, &(s)->counters.dumps_joined,  \
			&(s)->counters.dumps_failed, &(s)->counters.dumps_suppressed,                        \
			&(s)->counters.dumps_canceled, &(s)->counters.dumps_rescued,                         \
			&(s)->counters.dumps_given_up, &(s)->counters.dumps_removed,                         \
			&(s)->counters.dumps_not_durable, &(s)->directory_dev, &(s)->directory_ino,          \
			&(s)->clock.monotonic_ns, &(s)->clock.realtime_ns, &(s)->period_ns,                  \
	}

static void encode_event(const struct fr_event_desc *e, struct builder *b)
{
	const size_t name = strlen(e->name) + 1;

	put_u32(b, sizeof(e->attr));
	put_bytes(b, &e->attr, sizeof(e->attr));
	put_u64(b, e->until_ns);
	put_u32(b, (uint32_t)name);
	put_bytes(b, e->name, name);
	put_u32(b, (uint32_t)e->n_ids);
	put_bytes(b, e->ids, e->n_ids * sizeof(*e->ids));
}

static void encode_buf(const struct fr_buf *from, struct builder *b)
{
	put_u32(b, (uint32_t)from->len);
	put_bytes(b, from->data, from->len);
}

/* Each section has its number in front of it. The number 0, which no section has, ends the list. */
static void encode_features(const struct fr_session *s, struct builder *b)
{
	for (uint32_t i = 1; i < _FR_FEATURE_MAX; i++)
		if (s->features[i].len) {
			put_u32(b, i);
			encode_buf(&s->features[i], b);
		}
	put_u32(b, 0);
}

/* A state without parts ends before them, as one of an older version. */
static void encode_parts(const struct fr_state *s, struct builder *b)
{
	if (s->n_parts)
		put_u32(b, s->n_parts);
	for (uint32_t i = 0; i < s->n_parts; i++) {
		put_bytes(b, s->parts[i].ring, sizeof(s->parts[i].ring));
		put_u32(b, s->parts[i].number);
	}
}

int fr_state_encode(const struct fr_state *s, struct fr_buf *ret)
{
	const uint64_t *const numbers[] = NUMBERS(s);
	struct builder b = {.buf = *ret};
	const size_t start = ret->len;

	put_bytes(&b, s->boot_id, sizeof(s->boot_id));
	put_bytes(&b, s->ring, sizeof(s->ring));
	put_bytes(&b, s->memory, sizeof(s->memory));
	for (size_t i = 0; i < FR_ARRAY_SIZE(numbers); i++)
		put_u64(&b, *numbers[i]);
	put_u32(&b, _FR_LOSS_MAX);
	put_bytes(&b, s->lost, sizeof(s->lost));
	put_u32(&b, (uint32_t)s->session.n_events);
	for (size_t i = 0; i < s->session.n_events; i++)
		encode_event(&s->session.events[i], &b);
	encode_features(&s->session, &b);
	encode_buf(&s->config, &b);
	encode_parts(s, &b);
	*ret = b.buf;
	if (!b.failed && ret->len - start <= SLOT_BYTES - sizeof(struct slot_header))
		return 0;
	ret->len = start;
	return b.failed ? -ENOMEM : -E2BIG;
}

static void take_into(struct byte_reader *r, void *to, size_t len)
{
	const void *p = read_bytes(r, len);

	if (p)
		memcpy(to, p, len);
}

/* Reads a string from a field of SIZE bytes. The string must end within the field. */
static void take_text(struct byte_reader *r, char *to, size_t size)
{
	take_into(r, to, size);
	r->failed |= !memchr(to, '\0', size);
}

static int decode_event(struct byte_reader *r, struct fr_session *s)
{
	struct perf_event_attr attr = {0};
	_cleanup_free_ uint64_t *ids = NULL;
	uint32_t size = read_u32(r), name_size, n_ids;
	struct fr_event_desc *added;
	uint64_t until_ns;
	const char *name;
	int code;

	/* If another version wrote a smaller attr, the members that are missing at the end of
	   the attr are 0. */
	if (size < PERF_ATTR_SIZE_VER0 || size > sizeof(attr))
		return -EBADMSG;
	take_into(r, &attr, size);
	until_ns = read_u64(r);
	name_size = read_u32(r);
	name = read_bytes(r, name_size);
	n_ids = read_u32(r);
	if (r->failed || name_size == 0 || name_size > EVENT_NAME_MAX ||
		memchr(name, '\0', name_size) != name + name_size - 1 || n_ids > r->left / sizeof(*ids))
		return -EBADMSG;
	ids = malloc(FR_MAX(n_ids, 1u) * sizeof(*ids));
	if (!ids)
		return -ENOMEM;
	take_into(r, ids, n_ids * sizeof(*ids)); /* the ids can be unaligned, because they follow a name */
	code = fr_session_add_event(s, &attr, name, ids, n_ids, &added);
	if (code == 0)
		added->until_ns = until_ns;
	return code;
}

/* Reads a length, and a buffer of this length. The content of the buffer is not checked here: the code that
   uses it has to check it. */
static int decode_buf(struct byte_reader *r, struct fr_buf *ret)
{
	const uint32_t len = read_u32(r);
	const void *data = read_bytes(r, len);

	return r->failed ? -EBADMSG : fr_buf_append(ret, data, len);
}

static int decode_features(struct byte_reader *r, struct fr_session *s)
{
	int code = 0;
	uint32_t i;

	while (code == 0 && (i = read_u32(r)) != 0)
		code = i < _FR_FEATURE_MAX && !s->features[i].len ? decode_buf(r, &s->features[i]) : -EBADMSG;
	return code;
}

static int decode_parts(struct byte_reader *r, struct fr_state *s)
{
	if (!r->left)
		return 0;
	s->n_parts = read_u32(r);
	if (r->failed || s->n_parts > FR_STATE_PARTS_MAX) {
		s->n_parts = 0;
		return -EBADMSG;
	}
	for (uint32_t i = 0; i < s->n_parts; i++) {
		take_text(r, s->parts[i].ring, sizeof(s->parts[i].ring));
		s->parts[i].number = read_u32(r);
	}
	return r->failed ? -EBADMSG : 0;
}

static int decode(struct byte_reader *r, struct fr_state *s)
{
	uint64_t *const numbers[] = NUMBERS(s);
	uint32_t n_lost, n_events;
	int code = 0;

	take_text(r, s->boot_id, sizeof(s->boot_id));
	take_text(r, s->ring, sizeof(s->ring));
	take_text(r, s->memory, sizeof(s->memory));
	for (size_t i = 0; i < FR_ARRAY_SIZE(numbers); i++)
		*numbers[i] = read_u64(r);
	n_lost = read_u32(r);
	/* An older version may have written fewer causes of loss. The causes that the older version did not
	   know are at the end of the array, and stay 0. */
	if (n_lost > _FR_LOSS_MAX)
		return -EBADMSG;
	take_into(r, s->lost, n_lost * sizeof(*s->lost));
	n_events = read_u32(r);
	if (r->failed || n_events == 0 || n_events > r->left / sizeof(uint64_t))
		return -EBADMSG;
	for (uint32_t i = 0; code == 0 && i < n_events; i++)
		code = decode_event(r, &s->session);
	if (code == 0)
		code = decode_features(r, &s->session);
	if (code == 0)
		code = decode_buf(r, &s->config);
	if (code == 0)
		code = decode_parts(r, s);
	return code == 0 && r->left ? -EBADMSG : code;
}

int fr_state_decode(const void *data, size_t len, struct fr_state *ret)
{
	struct byte_reader reader = {.p = data, .left = len};
	struct fr_state s = {0};
	int r = decode(&reader, &s);

	if (r < 0)
		fr_state_deinit(&s);
	else
		*ret = s;
	return r;
}

void fr_state_deinit(struct fr_state *s)
{
	fr_session_deinit(&s->session);
	fr_buf_deinit(&s->config);
	*s = (struct fr_state){0};
}

int fr_state_file_new(struct fr_state_file *ret, struct fr_diag *d)
{
	_cleanup_close_ int fd = memfd_create("flightrec-state", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, 2 * SLOT_BYTES) < 0 || fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL) < 0)
		return fr_fail_errno(
			d, -errno, NULL, "cannot make the memory for the state that survives a restart");
	*ret = (struct fr_state_file){.fd = TAKE_FD(fd)};
	return 0;
}

static uint32_t slot_crc(const struct slot_header *h, const void *payload)
{
	uint32_t crc = fr_crc32c(0, &h->generation, sizeof(h->generation));

	crc = fr_crc32c(crc, &h->length, sizeof(h->length));
	return fr_crc32c(crc, payload, h->length);
}

/* Reads the header of SLOT into H, and the payload of SLOT into RET. Returns 0; -EBADMSG if the slot is not
   whole, or is of another version; or another negative errno. */
static int read_slot(int fd, unsigned slot, struct slot_header *h, struct fr_buf *ret)
{
	const off_t at = (off_t)(slot * SLOT_BYTES);
	ssize_t n = fr_pread_all(fd, h, sizeof(*h), at);
	int r;

	if (n < 0)
		return (int)n;
	if ((size_t)n < sizeof(*h) || h->magic != SLOT_MAGIC || h->version != SLOT_VERSION ||
		h->length > SLOT_BYTES - sizeof(*h))
		return -EBADMSG;
	ret->len = 0;
	r = fr_buf_reserve(ret, h->length);
	if (r < 0)
		return r;
	n = fr_pread_all(fd, ret->data, h->length, at + (off_t)sizeof(*h));
	if (n < 0)
		return (int)n;
	ret->len = (size_t)n;
	return ret->len == h->length && slot_crc(h, ret->data) == h->crc ? 0 : -EBADMSG;
}

int fr_state_file_adopt(int fd, struct fr_state_file *ret, struct fr_state *ret_state, struct fr_diag *d)
{
	_cleanup_buf_ struct fr_buf best = {0};
	uint64_t generation = 0;
	struct stat st;
	int r = -EBADMSG;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size != (off_t)(2 * SLOT_BYTES))
		return fr_fail(d, -EBADMSG, NULL, "the state of the previous instance is of another version");
	for (unsigned slot = 0; slot < 2; slot++) {
		_cleanup_buf_ struct fr_buf payload = {0};
		struct slot_header h;
		struct fr_buf swap;

		if (read_slot(fd, slot, &h, &payload) < 0 || h.generation <= generation)
			continue;
		generation = h.generation;
		swap = best;
		best = payload;
		payload = swap;
	}
	if (generation)
		r = fr_state_decode(best.data, best.len, ret_state);
	if (r < 0)
		return fr_fail_errno(
			d, r, NULL, "the state of the previous instance is damaged, or of another version");
	*ret = (struct fr_state_file){fd, generation};
	return 0;
}

int fr_state_file_write(struct fr_state_file *f, const struct fr_state *s)
{
	struct slot_header h = {
		.magic = SLOT_MAGIC, .version = SLOT_VERSION, .generation = f->generation + 1};
	const off_t at = (off_t)(h.generation % 2 * SLOT_BYTES);
	_cleanup_buf_ struct fr_buf payload = {0};
	int r = fr_state_encode(s, &payload);

	if (r < 0)
		return r;
	h.length = payload.len;
	h.crc = slot_crc(&h, payload.data);
	r = fr_pwrite_all(f->fd, payload.data, payload.len, at + (off_t)sizeof(h));
	if (r == 0)
		r = fr_pwrite_all(f->fd, &h, sizeof(h), at);
	if (r == 0)
		f->generation = h.generation;
	return r;
}
