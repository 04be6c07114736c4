// SPDX-License-Identifier: GPL-2.0-or-later
#include "handover/state.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "history/crc32c.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define SLOT_MAGIC 0x4554415453525246ULL /* "FRRSTATE" */
#define SLOT_VERSION 2u
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
	}

static int encode_event(const struct fr_event_desc *e, struct fr_buf *ret)
{
	const size_t name = strlen(e->name) + 1;
	int r = fr_buf_append_u32(ret, sizeof(e->attr));

	if (r == 0)
		r = fr_buf_append(ret, &e->attr, sizeof(e->attr));
	if (r == 0)
		r = fr_buf_append_u64(ret, e->until_ns);
	if (r == 0)
		r = fr_buf_append_u32(ret, (uint32_t)name);
	if (r == 0)
		r = fr_buf_append(ret, e->name, name);
	if (r == 0)
		r = fr_buf_append_u32(ret, (uint32_t)e->n_ids);
	return r == 0 ? fr_buf_append(ret, e->ids, e->n_ids * sizeof(*e->ids)) : r;
}

static int encode_buf(const struct fr_buf *b, struct fr_buf *ret)
{
	int r = fr_buf_append_u32(ret, (uint32_t)b->len);

	return r == 0 ? fr_buf_append(ret, b->data, b->len) : r;
}

int fr_state_encode(const struct fr_state *s, struct fr_buf *ret)
{
	const uint64_t *const numbers[] = NUMBERS(s);
	const struct fr_buf *tracing = &s->session.features[FR_FEATURE_TRACING_DATA];
	const size_t start = ret->len;
	int r = fr_buf_append(ret, s->boot_id, sizeof(s->boot_id));

	if (r == 0)
		r = fr_buf_append(ret, s->ring, sizeof(s->ring));
	for (size_t i = 0; r == 0 && i < FR_ARRAY_SIZE(numbers); i++)
		r = fr_buf_append_u64(ret, *numbers[i]);
	if (r == 0)
		r = fr_buf_append_u32(ret, _FR_LOSS_MAX);
	if (r == 0)
		r = fr_buf_append(ret, s->lost, sizeof(s->lost));
	if (r == 0)
		r = fr_buf_append_u32(ret, (uint32_t)s->session.n_events);
	for (size_t i = 0; r == 0 && i < s->session.n_events; i++)
		r = encode_event(&s->session.events[i], ret);
	if (r == 0)
		r = encode_buf(tracing, ret);
	if (r == 0)
		r = encode_buf(&s->config, ret);
	if (r == 0 && ret->len - start > SLOT_BYTES - sizeof(struct slot_header))
		r = -E2BIG;
	if (r < 0)
		ret->len = start;
	return r;
}

struct cursor {
	const uint8_t *p;
	size_t left;
};

static const void *take(struct cursor *c, size_t len)
{
	const uint8_t *p = c->p;

	if (len > c->left)
		return NULL;
	c->p += len;
	c->left -= len;
	return p;
}

static int take_into(struct cursor *c, void *to, size_t len)
{
	const void *p = take(c, len);

	if (!p)
		return -EBADMSG;
	memcpy(to, p, len);
	return 0;
}

/* Take a field of SIZE bytes with a string. The string must end within the field. */
static int take_text(struct cursor *c, char *to, size_t size)
{
	int r = take_into(c, to, size);

	return r == 0 && !memchr(to, '\0', size) ? -EBADMSG : r;
}

static int decode_event(struct cursor *c, struct fr_session *s)
{
	struct perf_event_attr attr = {0};
	_cleanup_free_ uint64_t *ids = NULL;
	uint32_t size, name_size, n_ids;
	struct fr_event_desc *added;
	uint64_t until_ns;
	const char *name;
	const void *p;
	int r = take_into(c, &size, sizeof(size));

	/* Another version of flightrecd may have written a smaller struct. The members that are missing in it
	   are 0. */
	if (r < 0 || size < PERF_ATTR_SIZE_VER0 || size > sizeof(attr) || take_into(c, &attr, size) < 0 ||
		take_into(c, &until_ns, sizeof(until_ns)) < 0)
		return -EBADMSG;
	if (take_into(c, &name_size, sizeof(name_size)) < 0 || name_size == 0 || name_size > EVENT_NAME_MAX ||
		!(name = take(c, name_size)) || memchr(name, '\0', name_size) != name + name_size - 1)
		return -EBADMSG;
	if (take_into(c, &n_ids, sizeof(n_ids)) < 0 || n_ids > c->left / sizeof(*ids))
		return -EBADMSG;
	p = take(c, n_ids * sizeof(*ids));
	ids = malloc(FR_MAX(n_ids, 1u) * sizeof(*ids));
	if (!ids)
		return -ENOMEM;
	memcpy(ids, p, n_ids * sizeof(*ids)); /* the name before the ids may leave them unaligned */
	r = fr_session_add_event(s, &attr, name, ids, n_ids, &added);
	if (r == 0)
		added->until_ns = until_ns;
	return r;
}

/* Take a buffer. Its content is not checked here: its users check it. */
static int decode_buf(struct cursor *c, struct fr_buf *ret)
{
	uint32_t len;
	int r = take_into(c, &len, sizeof(len));

	if (r < 0 || len > c->left)
		return -EBADMSG;
	return fr_buf_append(ret, take(c, len), len);
}

static int decode(struct cursor *c, struct fr_state *s)
{
	uint64_t *const numbers[] = NUMBERS(s);
	uint32_t n_lost, n_events;
	int r = take_text(c, s->boot_id, sizeof(s->boot_id));

	if (r == 0)
		r = take_text(c, s->ring, sizeof(s->ring));
	for (size_t i = 0; r == 0 && i < FR_ARRAY_SIZE(numbers); i++)
		r = take_into(c, numbers[i], sizeof(*numbers[i]));
	if (r == 0)
		r = take_into(c, &n_lost, sizeof(n_lost));
	/* Another version may have fewer causes of loss. Later versions add causes at the end. */
	if (r < 0 || n_lost > _FR_LOSS_MAX || take_into(c, s->lost, n_lost * sizeof(*s->lost)) < 0 ||
		take_into(c, &n_events, sizeof(n_events)) < 0 || n_events == 0 ||
		n_events > c->left / sizeof(uint64_t))
		return -EBADMSG;
	for (uint32_t i = 0; r == 0 && i < n_events; i++)
		r = decode_event(c, &s->session);
	if (r == 0)
		r = decode_buf(c, &s->session.features[FR_FEATURE_TRACING_DATA]);
	if (r == 0)
		r = decode_buf(c, &s->config);
	return r == 0 && c->left ? -EBADMSG : r;
}

int fr_state_decode(const void *data, size_t len, struct fr_state *ret)
{
	struct cursor c = {data, len};
	struct fr_state s = {0};
	int r = decode(&c, &s);

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
		return fr_fail_errno(d, -errno, NULL, "cannot make the memory for what outlives a restart");
	*ret = (struct fr_state_file){.fd = TAKE_FD(fd)};
	return 0;
}

static uint32_t slot_crc(const struct slot_header *h, const void *payload)
{
	uint32_t crc = fr_crc32c(0, &h->generation, sizeof(h->generation));

	crc = fr_crc32c(crc, &h->length, sizeof(h->length));
	return fr_crc32c(crc, payload, h->length);
}

/* Read the header of SLOT into H, and its payload into RET. Returns 0; -EBADMSG if the slot is not whole; or
   another negative errno. */
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
