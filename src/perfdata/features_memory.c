// SPDX-License-Identifier: GPL-2.0-or-later

/* NUMA_TOPOLOGY and MEM_TOPOLOGY: the memory of each node. */

#include "perfdata/features_private.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#define NODE_DIR "/sys/devices/system/node"
#define NODES_MAX 1024u
#define BLOCK_MAX (1u << 24)
#define TEXT_MAX 65536u

/* A bit for each number below LIMIT that an entry "PREFIXnumber" of a directory has.
   How many, or a negative errno. */
static int numbered(const char *path, const char *prefix, uint32_t limit, struct fr_buf *ret_bits)
{
	_cleanup_closedir_ DIR *dir = opendir(path);
	const struct dirent *e;
	int n = 0;

	if (!dir)
		return -errno;
	while ((e = readdir(dir))) {
		size_t len = strlen(prefix);
		char *end;
		unsigned long i;

		if (strncmp(e->d_name, prefix, len) != 0 || e->d_name[len] < '0' || e->d_name[len] > '9')
			continue;
		i = strtoul(e->d_name + len, &end, 10);
		if (*end || i >= limit)
			continue;
		if (ret_bits->len <= i / 8 && fr_buf_append_zero(ret_bits, i / 8 + 1 - ret_bits->len) < 0)
			return -ENOMEM;
		ret_bits->data[i / 8] |= (uint8_t)(1u << i % 8);
		n++;
	}
	return n;
}

static bool has(const struct fr_buf *bits, uint32_t i)
{
	return bits->len > i / 8 && bits->data[i / 8] & 1u << i % 8;
}

/* The "Node 0 MemTotal:  123 kB" of a node's meminfo. */
static uint64_t memory_kb(const char *text, const char *key)
{
	const char *p = strstr(text, key);

	return p ? strtoull(p + strlen(key), NULL, 10) : 0;
}

/* 1: appended, 0: the node cannot be read, -ENOMEM. */
static int append_node(struct fr_buf *b, uint32_t node)
{
	_cleanup_buf_ struct fr_buf text = {0};
	char path[128], cpus[4096];
	int r;

	snprintf(path, sizeof(path), NODE_DIR "/node%u/meminfo", node);
	if (fr_read_file(AT_FDCWD, path, TEXT_MAX, &text) < 0 ||
		fr_feature_line(cpus, sizeof(cpus), NODE_DIR "/node%u/cpulist", node) < 0)
		return 0;
	r = fr_buf_append_u32(b, node);
	if (r == 0)
		r = fr_buf_append_u64(b, memory_kb((char *)text.data, "MemTotal:"));
	if (r == 0)
		r = fr_buf_append_u64(b, memory_kb((char *)text.data, "MemFree:"));
	if (r == 0)
		r = fr_feature_append_string(b, cpus);
	return r < 0 ? r : 1;
}

int fr_features_gather_numa(struct fr_session *s)
{
	_cleanup_buf_ struct fr_buf bits = {0}, b = {0};
	uint32_t n = 0;
	int r = numbered(NODE_DIR, "node", NODES_MAX, &bits);

	if (r <= 0)
		return r == -ENOMEM ? r : 0;
	r = fr_buf_append_u32(&b, 0);
	for (uint32_t node = 0; node < NODES_MAX && r >= 0; node++)
		if (has(&bits, node)) {
			r = append_node(&b, node);
			n += r > 0;
		}
	if (r < 0 || n == 0)
		return r < 0 ? r : 0;
	memcpy(b.data, &n, sizeof(n));
	fr_feature_take(s, FR_FEATURE_NUMA_TOPOLOGY, &b);
	return 0;
}

/* Node, number of bits, and the bitmap of its memory blocks, which has its own number of bits before it. */
static int append_blocks(struct fr_buf *b, uint32_t node)
{
	_cleanup_buf_ struct fr_buf bits = {0};
	uint64_t size = 1;
	char path[128];
	int r;

	snprintf(path, sizeof(path), NODE_DIR "/node%u", node);
	r = numbered(path, "memory", BLOCK_MAX, &bits);
	if (r < 0)
		return r;
	for (uint64_t i = bits.len * 8; i > 1 && size == 1; i--)
		if (has(&bits, (uint32_t)(i - 1)))
			size = i;
	r = fr_buf_append_zero(&bits, FR_ALIGN_UP(FR_MAX(bits.len, (size_t)1), 8) - bits.len);
	if (r == 0)
		r = fr_buf_append_u64(b, node);
	if (r == 0)
		r = fr_buf_append_u64(b, size);
	if (r == 0)
		r = fr_buf_append_u64(b, size);
	for (uint64_t word = 0; word < (size + 63) / 64 && r == 0; word++)
		r = fr_buf_append(b, bits.data + word * 8, 8);
	return r;
}

int fr_features_gather_memory(struct fr_session *s)
{
	_cleanup_buf_ struct fr_buf bits = {0}, b = {0};
	uint64_t head[3] = {1 /* version */};
	char text[64];
	int r = numbered(NODE_DIR, "node", NODES_MAX, &bits);

	if (r <= 0 || fr_feature_line(text, sizeof(text), "/sys/devices/system/memory/block_size_bytes") < 0)
		return r == -ENOMEM ? r : 0;
	head[1] = strtoull(text, NULL, 16);
	head[2] = (uint64_t)r;
	r = fr_buf_append(&b, head, sizeof(head));
	for (uint32_t node = 0; node < NODES_MAX && r == 0; node++)
		if (has(&bits, node))
			r = append_blocks(&b, node);
	if (r == 0)
		fr_feature_take(s, FR_FEATURE_MEM_TOPOLOGY, &b);
	return r == -ENOMEM ? r : 0;
}
