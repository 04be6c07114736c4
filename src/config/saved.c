// SPDX-License-Identifier: GPL-2.0-or-later
#include "config/saved.h"
#include "base/cleanup.h"
#include "config/config_private.h"
#include "perfdata/bytes.h"

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

int fr_config_restore(struct fr_config *c, const struct fr_buf *saved, struct fr_diag *d)
{
	struct byte_reader in = {.p = saved->data, .left = saved->len};
	_cleanup_free_ char *text = NULL;
	_cleanup_free_ char **argv = NULL;
	const uint32_t n = read_u32(&in);
	int r;

	if (n < 1 || n > ARGS_MAX)
		return -EBADMSG;
	argv = calloc(n + 1, sizeof(*argv));
	if (!argv)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		argv[i] = (char *)read_string(&in);
	if (in.failed)
		return -EBADMSG;
	text = strndup((const char *)in.p, in.left);
	if (!text)
		return -ENOMEM;
	r = fr_options_parse_text(c, text, (int)n, argv, d);
	c->command = NULL; /* the previous instance has run the command */
	return r > 0 ? -EBADMSG : r;
}
