// SPDX-License-Identifier: GPL-2.0-or-later
#include "store/s3.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define FILE_MAX (64u << 10)
#define HINT                                                                                                 \
	"The file has the format of ~/.aws/credentials: a line [default], and below it aws_access_key_id "   \
	"and "                                                                                               \
	"aws_secret_access_key."

void fr_store_keys_deinit(struct fr_store_keys *k)
{
	char *const secrets[] = {k->access_key, k->secret_key, k->session_token};

	for (size_t i = 0; i < FR_ARRAY_SIZE(secrets); i++) {
		if (secrets[i])
			explicit_bzero(secrets[i], strlen(secrets[i]));
		free(secrets[i]);
	}
	*k = (struct fr_store_keys){0};
}

/* Removes white space from both ends of TEXT. */
static char *trim(char *text)
{
	size_t n;

	text += strspn(text, " \t\r");
	n = strlen(text);
	while (n > 0 && strchr(" \t\r", text[n - 1]))
		text[--n] = '\0';
	return text;
}

/* Sets the member of K that the line names. The last of equal keys counts. */
static int take_line(struct fr_store_keys *k, char *line)
{
	char *value = strchr(line, '='), **member = NULL;
	const char *name;

	if (!value)
		return -EINVAL;
	*value++ = '\0';
	name = trim(line);
	value = trim(value);
	if (strcasecmp(name, "aws_access_key_id") == 0)
		member = &k->access_key;
	else if (strcasecmp(name, "aws_secret_access_key") == 0)
		member = &k->secret_key;
	else if (strcasecmp(name, "aws_session_token") == 0)
		member = &k->session_token;
	if (!member || value[0] == '\0')
		return 0;
	if (*member)
		explicit_bzero(*member, strlen(*member));
	free(*member);
	*member = strdup(value);
	return *member ? 0 : -ENOMEM;
}

/* Returns whether LINE, which begins with '[', is the head of PROFILE. */
static bool is_profile(char *line, const char *profile)
{
	char *end = strchr(line, ']');

	if (!end)
		return false;
	*end = '\0';
	return strcmp(trim(line + 1), profile) == 0;
}

static int parse(
	char *text, const char *path, const char *profile, struct fr_store_keys *k, struct fr_diag *d)
{
	bool is_in = false;
	unsigned number = 0;
	int r = 0;

	for (char *line = text, *next; line && r == 0; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		number++;
		/* An indented line belongs to a key with several values, and none of the three keys has
		 * these. */
		if (line[0] == ' ' || line[0] == '\t' || strchr("#;\r", line[0]))
			continue;
		if (line[0] == '[')
			is_in = is_profile(line, profile);
		else if (is_in)
			r = take_line(k, line);
	}
	if (r == -EINVAL)
		return fr_fail(d, r, HINT, "line %u of %.200s has no '='", number, path);
	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot read %.200s", path) : 0;
}

int fr_store_keys_read(const char *path, const char *profile, struct fr_store_keys *ret, struct fr_diag *d)
{
	_cleanup_(fr_store_keys_deinit) struct fr_store_keys keys = {0};
	struct fr_buf text = {0};
	int r = fr_read_file(AT_FDCWD, path, FILE_MAX, &text);

	if (!profile)
		profile = "default";
	if (r < 0)
		fr_fail_errno(d, r, HINT, "cannot read the keys of the store in %.200s", path);
	else if (strlen((char *)text.data) != text.len)
		r = fr_fail(d, -EINVAL, HINT, "the file %.200s is not a text", path);
	else
		r = parse((char *)text.data, path, profile, &keys, d);
	if (text.data)
		explicit_bzero(text.data, text.cap);
	fr_buf_deinit(&text);
	if (r < 0)
		return r;
	if (!keys.access_key || !keys.secret_key)
		return fr_fail(
			d, -EINVAL, HINT, "the file %.200s has no keys of the profile %.100s", path, profile);
	*ret = keys;
	keys = (struct fr_store_keys){0};
	return 0;
}
