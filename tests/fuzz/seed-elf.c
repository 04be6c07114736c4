// SPDX-License-Identifier: GPL-2.0-or-later

/* A small library with inlined functions, whose file is a seed of fuzz-elf. It needs no C library. */

struct seed_list {
	struct seed_list *next;
	int values[4];
};

static inline __attribute__((always_inline)) int seed_sum(const struct seed_list *list)
{
	int sum = 0;

	for (int i = 0; i < 4; i++)
		sum += list->values[i];
	return sum;
}

static inline __attribute__((always_inline)) int seed_walk(const struct seed_list *list)
{
	int sum = 0;

	for (; list; list = list->next)
		sum += seed_sum(list);
	return sum;
}

int seed_outer(const struct seed_list *list);
int seed_imported(int n);

__attribute__((noinline)) static int seed_cold(const struct seed_list *list, int n)
{
	return n > 100 ? seed_imported(seed_walk(list)) : n;
}

int seed_outer(const struct seed_list *list)
{
	return seed_cold(list, seed_walk(list)) + seed_cold(list->next, 7);
}
