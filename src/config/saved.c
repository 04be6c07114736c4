// SPDX-License-Identifier: GPL-2.0-or-later
#include "config/saved.h"
#include "base/cleanup.h"
#include "config/config_private.h"

#include <errno.h>
#include <string.h>

#define ARGS_MAX 4096u

int fr_config_save(const struct fr_config *c, int argc, char *const argv[], struct fr_buf *ret)
{
	int r = fr_buf_append_u32(ret, (uint32_t)argc);

	for (int i = 0; r == 0 && i < argc; i++)
		r = fr_buf_append(ret, argv[i], strlen(argv[i]) + 1);
	return r == 0 ? fr_buf_append(ret, c->text.data, c->text.len) : r;
}

/* Set ARGV to the N arguments at the begin of TEXT. Returns their length in bytes; or 0 if TEXT has fewer
   arguments. */
static size_t split_arguments(char *text, size_t len, uint32_t n, char *argv[])
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

int fr_config_restore(struct fr_config *c, const struct fr_buf *saved, struct fr_diag *d)
{
	_cleanup_free_ char **argv = NULL, *copy = NULL;
	size_t args, len;
	uint32_t n;
	int r;

	if (saved->len < sizeof(n))
		return -EBADMSG;
	memcpy(&n, saved->data, sizeof(n));
	len = saved->len - sizeof(n);
	if (n < 1 || n > ARGS_MAX)
		return -EBADMSG;
	argv = calloc(n + 1, sizeof(*argv));
	copy = malloc(len + 1);
	if (!argv || !copy)
		return -ENOMEM;
	memcpy(copy, saved->data + sizeof(n), len);
	copy[len] = '\0';
	args = split_arguments(copy, len, n, argv);
	if (!args)
		return -EBADMSG;
	r = fr_options_parse_text(c, copy + args, (int)n, argv, d);
	c->command = NULL; /* the command is not run again */
	return r > 0 ? -EBADMSG : r;
}
