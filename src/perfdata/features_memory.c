// SPDX-License-Identifier: GPL-2.0-or-later

/* Gathers NUMA_TOPOLOGY and MEM_TOPOLOGY, which describe the memory of each node. */

#include "perfdata/features_private.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <fcntl.h>

#define NODE_DIR "/sys/devices/system/node"
#define NODES_MAX 1024u
#define BLOCK_MAX (1u << 24)
#define TEXT_MAX 65536u

static uint32_t count_possible_nodes(void)
{
	return FR_MIN(fr_feature_read_last_number(NODE_DIR "/possible") + 1, NODES_MAX);
}

/* Returns the number after KEY in a node's meminfo, which has lines like "Node 0 MemTotal: 123 kB". Returns 0
   if there is no such line. */
static uint64_t find_memory_kb(const struct fr_buf *meminfo, const char *key)
{
	const char *p = strstr((const char *)meminfo->data, key);

	return p ? strtoull(p + strlen(key), NULL, 10) : 0;
}

/* Returns false if the node is not online. */
static bool put_node(struct builder *b, uint32_t node)
{
	_cleanup_buf_ struct fr_buf meminfo = {0};
	char path[128], cpus[4096];

	snprintf(path, sizeof(path), NODE_DIR "/node%u/meminfo", node);
	if (fr_read_file(AT_FDCWD, path, TEXT_MAX, &meminfo) < 0 ||
		fr_feature_read_line(cpus, sizeof(cpus), NODE_DIR "/node%u/cpulist", node) < 0)
		return false;
	put_u32(b, node);
	put_u64(b, find_memory_kb(&meminfo, "MemTotal:"));
	put_u64(b, find_memory_kb(&meminfo, "MemFree:"));
	fr_feature_put_string(b, cpus);
	return true;
}

int fr_features_gather_numa(struct fr_session *s)
{
	const uint32_t nodes = count_possible_nodes();
	struct builder b = {0};
	uint32_t n = 0;

	put_u32(&b, n);
	for (uint32_t node = 0; node < nodes; node++)
		n += put_node(&b, node);
	return fr_feature_finish_list(&b, n, &s->features[FR_FEATURE_NUMA_TOPOLOGY]);
}

/* Appends the node, the size of its bitmap in bits (twice), and the bitmap with the numbers of its memory
   blocks. Returns false if the node is not online. */
static bool put_blocks(struct builder *b, uint32_t node)
{
	_cleanup_closedir_ DIR *dir = NULL;
	struct builder bitmap = {0};
	const struct dirent *e;
	uint64_t bits = 1;
	unsigned block;
	char path[128];

	snprintf(path, sizeof(path), NODE_DIR "/node%u", node);
	dir = opendir(path);
	if (!dir)
		return false;
	put_u64(&bitmap, 0);
	while ((e = readdir(dir))) {
		if (sscanf(e->d_name, "memory%u", &block) != 1 || block >= BLOCK_MAX)
			continue;
		bits = FR_MAX(bits, block + 1ull);
		while (bitmap.buf.len * 8 < bits && !bitmap.failed)
			put_u64(&bitmap, 0);
		if (!bitmap.failed)
			bitmap.buf.data[block / 8] |= (uint8_t)(1u << block % 8);
	}
	put_u64(b, node);
	put_u64(b, bits);
	put_u64(b, bits);
	put_bytes(b, bitmap.buf.data, bitmap.buf.len);
	b->failed |= bitmap.failed;
	fr_buf_deinit(&bitmap.buf);
	return true;
}

int fr_features_gather_memory(struct fr_session *s)
{
	const uint32_t nodes = count_possible_nodes();
	uint64_t head[3] = {1 /* version */, 0 /* block size */, 0 /* nodes */};
	struct builder b = {0};
	char text[64];

	if (fr_feature_read_line(text, sizeof(text), "/sys/devices/system/memory/block_size_bytes") < 0)
		return 0;
	head[1] = strtoull(text, NULL, 16);
	put_bytes(&b, head, sizeof(head));
	for (uint32_t node = 0; node < nodes; node++)
		head[2] += put_blocks(&b, node);
	set_bytes(&b, 0, head, sizeof(head));
	if (head[2] > 0)
		return finish_section(&b, &s->features[FR_FEATURE_MEM_TOPOLOGY]);
	fr_buf_deinit(&b.buf);
	return 0;
}
