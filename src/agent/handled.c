// SPDX-License-Identifier: GPL-2.0-or-later
#include "agent/handled.h"
#include "base/cleanup.h"
#include "base/units.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

void fr_handled_deinit(struct fr_handled *h)
{
	free(h->v);
	*h = (struct fr_handled){0};
}

bool fr_handled_has(const struct fr_handled *h, const char *key)
{
	for (size_t i = h->n; i-- > 0;)
		if (!strcmp(h->v[i].key, key))
			return true;
	return false;
}

static bool is_key(const char *key)
{
	const size_t n = strlen(key);

	for (size_t i = 0; i < n; i++)
		if (key[i] <= ' ' || key[i] > '~')
			return false;
	return n > 0 && n < FR_HANDLED_KEY_SIZE;
}

/* Forgets what is too old at NOW_NS, and the oldest key if there is no room. */
static void forget(struct fr_handled *h, uint64_t now_ns)
{
	size_t kept = 0, skip = h->n >= FR_HANDLED_MAX ? h->n - FR_HANDLED_MAX + 1 : 0;

	for (size_t i = skip; i < h->n; i++)
		if (h->v[i].time_ns >= now_ns || now_ns - h->v[i].time_ns <= FR_HANDLED_AGE_NS)
			h->v[kept++] = h->v[i];
	h->n = kept;
}

int fr_handled_add(struct fr_handled *h, const char *key, uint64_t time_ns)
{
	if (!is_key(key))
		return -EINVAL;
	if (fr_handled_has(h, key))
		return 0;
	forget(h, time_ns);
	if (h->n == h->size) {
		const size_t size = h->size ? 2 * h->size : 64;
		void *v = reallocarray(h->v, size, sizeof(*h->v));

		if (!v)
			return -ENOMEM;
		h->v = v;
		h->size = size;
	}
	h->v[h->n].time_ns = time_ns;
	strcpy(h->v[h->n].key, key);
	h->n++;
	return 0;
}

/* Adds the key of LINE. Returns 0 or a negative errno. */
static int add_line(struct fr_handled *h, char *line)
{
	char *blank = strchr(line, ' ');
	uint64_t time_ns;

	if (!blank)
		return -EINVAL;
	*blank = '\0';
	return fr_u64_parse(line, &time_ns) < 0 ? -EINVAL : fr_handled_add(h, blank + 1, time_ns);
}

int fr_handled_parse(struct fr_handled *h, const char *text, size_t n)
{
	_cleanup_free_ char *copy = malloc(n + 1);
	char *save = NULL;
	int bad = 0;

	if (!copy)
		return -ENOMEM;
	memcpy(copy, text, n);
	copy[n] = '\0';
	if (strlen(copy) != n)
		bad++;
	for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		int r = add_line(h, line);

		if (r == -ENOMEM)
			return r;
		bad += r < 0;
	}
	return bad;
}

char *fr_handled_text(const struct fr_handled *h, size_t *ret_n)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	bool ok;

	if (!f)
		return NULL;
	for (size_t i = 0; i < h->n; i++)
		fprintf(f, "%" PRIu64 " %s\n", h->v[i].time_ns, h->v[i].key);
	ok = !ferror(f);
	if (fclose(f) != 0 || !ok) {
		free(text);
		return NULL;
	}
	*ret_n = size;
	return text;
}
