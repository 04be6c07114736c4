// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/config_kept.h"
#include "base/cleanup.h"
#include "flightrecd/config_private.h"

#include <errno.h>
#include <string.h>

#define ARGS_MAX 4096u

int fr_config_keep(const struct fr_config *c, int argc, char *const argv[], struct fr_buf *ret)
{
	int r = fr_buf_append_u32(ret, (uint32_t)argc);

	for (int i = 0; r == 0 && i < argc; i++)
		r = fr_buf_append(ret, argv[i], strlen(argv[i]) + 1);
	return r == 0 ? fr_buf_append(ret, c->text.data, c->text.len) : r;
}

/* The N arguments at the begin of TEXT, as getopt takes them. The bytes that they took, or 0: there are not
   so many. */
static size_t split(char *text, size_t len, uint32_t n, char *argv[])
{
	size_t at = 0;

	for (uint32_t i = 0; i < n; i++) {
		const size_t size = strnlen(text + at, len - at) + 1;

		if (size > len - at)
			return 0;
		argv[i] = text + at;
		at += size;
	}
	return at;
}

int fr_config_restore(struct fr_config *c, const struct fr_buf *kept, struct fr_diag *d)
{
	_cleanup_free_ char **argv = NULL, *copy = NULL;
	size_t args, len;
	uint32_t n;
	int r;

	if (kept->len < sizeof(n))
		return -EBADMSG;
	memcpy(&n, kept->data, sizeof(n));
	len = kept->len - sizeof(n);
	if (n < 1 || n > ARGS_MAX)
		return -EBADMSG;
	argv = calloc(n + 1, sizeof(*argv));
	copy = malloc(len + 1);
	if (!argv || !copy)
		return -ENOMEM;
	memcpy(copy, kept->data + sizeof(n), len);
	copy[len] = '\0';
	args = split(copy, len, n, argv);
	if (!args)
		return -EBADMSG;
	r = fr_options_parse_text(c, copy + args, (int)n, argv, d);
	c->command = NULL; /* a command is not gone on with */
	return r > 0 ? -EBADMSG : r;
}
