// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Commits of a ring in memory that survives a crash of the machine (docs/design/25). After a crash, the
 * memory can lack any cache line that was not written back. So a commit first writes the records back, and
 * then says how many there are, and their crc.
 */
#include "history/internal.h"
#include "base/crc32c.h"

void fr_history_write_back(const struct fr_history *h, const void *p, size_t len)
{
	if (h->config.memory.at)
		h->config.memory.write_back(p, len);
}

static void commit_section(struct fr_history *h, struct fr_open_section *s)
{
	const uint8_t *at = s->data + s->committed;
	const size_t len = s->fill - s->committed;

	if (!len)
		return;
	fr_history_write_back(h, at, len);
	s->committed_crc = fr_crc32c(s->committed_crc, at, len);
	s->committed = s->fill;
}

void fr_history_commit(struct fr_history *h)
{
	struct fr_image_commit *c;

	if (!h->config.memory.at)
		return;
	commit_section(h, &h->sideband);
	commit_section(h, &h->samples);
	h->commits++;
	c = &fr_image_commits(h->image)[h->commits % FR_IMAGE_COMMITS];
	*c = (struct fr_image_commit){
		.generation = h->commits,
		.open_seq = h->seq,
		.low_watermark_ns = h->low_watermark_ns,
		.drained_ns = h->image->drained_ns,
		.sideband_fill = (uint32_t)h->sideband.fill,
		.samples_fill = (uint32_t)h->samples.fill,
		.sideband_crc = h->sideband.committed_crc,
		.samples_crc = h->samples.committed_crc,
	};
	c->crc = fr_crc32c(0, c, offsetof(struct fr_image_commit, crc));
	fr_history_write_back(h, c, sizeof(*c));
}

void fr_history_continue_commits(struct fr_history *h)
{
	const struct fr_image_commit *c = fr_image_commits(h->image);

	for (unsigned i = 0; i < FR_IMAGE_COMMITS; i++)
		if (c[i].generation > h->commits && c[i].generation < UINT64_MAX / 2)
			h->commits = c[i].generation;
}
