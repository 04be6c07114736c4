// SPDX-License-Identifier: GPL-2.0-or-later
/* The rings beside that of [Recorder]: [Ring NAME], and that of the side-band. */
#include "handover/handover_private.h"
#include "base/cleanup.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

uint64_t handover_inode(int fd)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 ? st.st_ino : 0;
}

bool handover_is_part(const struct fr_state *s, const char *name)
{
	char taken[FR_STATE_NAME_MAX];

	for (uint32_t i = 0; i < s->n_parts; i++) {
		fr_fd_store_name_part(taken, s->parts[i].number);
		if (!strcmp(name, taken))
			return true;
	}
	return false;
}

void handover_receive_parts(struct fr_handover *h)
{
	char name[FR_STATE_NAME_MAX];

	for (uint32_t i = 0; i < h->state.n_parts; i++) {
		fr_fd_store_name_part(name, h->state.parts[i].number);
		h->part_fds[i] = fr_fd_store_dup(name);
		h->part_inodes[i] = handover_inode(h->part_fds[i]);
		h->part_number = FR_MAX(h->part_number, h->state.parts[i].number);
	}
}

void handover_drop_parts(struct fr_handover *h)
{
	for (uint32_t i = 0; i < h->state.n_parts; i++) {
		if (h->part_fds[i] < 0)
			continue;
		if (h->adopted)
			fr_log(LOG_NOTICE,
				"the ring %s of the previous instance has no section any more, and is "
				"dropped",
				h->state.parts[i].ring);
		close(h->part_fds[i]);
		h->part_fds[i] = -1;
	}
}

/* Returns the index of the ring RING in the state of the previous instance that is not
   taken yet; -1 if there is none. */
static int find_part(const struct fr_handover *h, const char *ring)
{
	for (uint32_t i = 0; h->adopted && i < h->state.n_parts; i++)
		if (!strcmp(h->state.parts[i].ring, ring) && h->part_fds[i] >= 0)
			return (int)i;
	return -1;
}

bool fr_handover_has_part(const struct fr_handover *h, const char *ring)
{
	return find_part(h, ring) >= 0;
}

int fr_handover_take_part(struct fr_handover *h, const char *ring)
{
	const int i = find_part(h, ring);

	return i < 0 ? -1 : TAKE_FD(h->part_fds[i]);
}

void handover_fill_parts(struct fr_handover *h, const struct fr_handover_facts *f)
{
	struct fr_state_part parts[FR_STATE_PARTS_MAX] = {0};
	uint64_t inodes[FR_STATE_PARTS_MAX];

	for (unsigned i = 0; i < f->n_parts; i++) {
		snprintf(parts[i].ring, sizeof(parts[i].ring), "%s", f->parts[i].ring);
		inodes[i] = handover_inode(fr_history_fd(f->parts[i].history));
		for (uint32_t k = 0; k < h->state.n_parts; k++)
			if (h->part_inodes[k] == inodes[i])
				parts[i].number = h->state.parts[k].number;
		if (!parts[i].number)
			parts[i].number = ++h->part_number;
	}
	memcpy(h->state.parts, parts, sizeof(parts));
	memcpy(h->part_inodes, inodes, f->n_parts * sizeof(inodes[0]));
	h->state.n_parts = f->n_parts;
}
