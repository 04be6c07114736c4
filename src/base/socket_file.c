// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * The socket is first bound to a temporary name with mode 0600. Next, the socket gets its group and its mode.
 * Last, it gets its final name, in place of an older socket. So the path of an older socket is never missing,
 * and no user can connect before the socket has its final group and mode.
 */

#include "base/socket_file.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

#define HINT_SIZE 128

static const char *format_hint(
	char buf[static HINT_SIZE], const char *advice, const struct fr_socket_file_config *c)
{
	snprintf(buf, HINT_SIZE, "%s %s", advice, c->key);
	return buf;
}

static int make_address(
	const struct fr_socket_file_config *c, const char *path, struct sockaddr_un *ret, struct fr_diag *d)
{
	char buf[HINT_SIZE];

	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(ret->sun_path))
		return fr_fail(d, -ENAMETOOLONG, format_hint(buf, "give a shorter", c),
			"the path of the %s is longer than %zu bytes: %s", c->what, sizeof(ret->sun_path) - 1,
			path);
	strcpy(ret->sun_path, path);
	return 0;
}

/* Returns 0 if there is no file at the path, or only a socket that nobody listens on. */
static int check_stale(const struct fr_socket_file_config *c, struct fr_diag *d)
{
	_cleanup_close_ int fd = -1;
	struct sockaddr_un sa;
	char buf[HINT_SIZE];
	struct stat st;
	int r;

	if (lstat(c->path, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0
							   : fr_fail_errno(d, -errno, NULL, "%s", c->path);
	if (!S_ISSOCK(st.st_mode))
		return fr_fail(d, -EEXIST, format_hint(buf, "remove it, or give another", c),
			"%s is in the way: it is not a socket", c->path);
	r = make_address(c, c->path, &sa, d);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, c->type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fr_fail_errno(d, -errno, NULL, "cannot make a socket");
	/* EAGAIN: a program listens, but its queue is full. EPROTOTYPE: a program listens on a socket of the
	   other type. */
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 || errno == EAGAIN || errno == EPROTOTYPE)
		return fr_fail(d, -EADDRINUSE,
			format_hint(buf, "stop that program, or give this program another", c),
			"another program listens on %s", c->path);
	if (errno != ECONNREFUSED && errno != ENOENT)
		return fr_fail_errno(d, -errno, NULL, "cannot tell whether a program listens on %s", c->path);
	return 0;
}

/* Makes the directory of the socket, but not the directories above it. */
static int make_parent(const struct fr_socket_file_config *c, struct fr_diag *d)
{
	const char *slash = strrchr(c->path, '/');
	_cleanup_free_ char *parent =
		slash && slash != c->path ? strndup(c->path, (size_t)(slash - c->path)) : NULL;
	char buf[HINT_SIZE];

	if (!parent || mkdir(parent, 0755) == 0 || errno == EEXIST)
		return 0;
	return fr_fail_errno(d, -errno, format_hint(buf, "make the directory, or give another", c),
		"cannot make %s for the %s", parent, c->what);
}

static int give_to_group(struct fr_socket_file *s, const char *tmp, gid_t gid, struct fr_diag *d)
{
	if (gid == (gid_t)-1)
		return 0;
	if (lchown(tmp, (uid_t)-1, gid) < 0) {
		if (errno != EPERM)
			return fr_fail_errno(d, -errno, NULL, "cannot change the group of %s", tmp);
		/* A recorder without privileges cannot set the group, so only root and the recorder's own
		   user can connect. */
		s->is_private = true;
		return 0;
	}
	return chmod(tmp, 0660) < 0 ? fr_fail_errno(d, -errno, NULL, "cannot change the mode of %s", tmp) : 0;
}

/* Sets the mode of the file, and makes the kernel add the sender to each datagram. Both settings must be made
   before the first client connects. */
static int prepare(int fd, int type)
{
	const int on = 1;

	if (fchmod(fd, 0600) < 0)
		return -errno;
	if (type == SOCK_DGRAM && setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
		return -errno;
	return 0;
}

static int bind_at(
	struct fr_socket_file *s, const struct fr_socket_file_config *c, const char *tmp, struct fr_diag *d)
{
	struct sockaddr_un sa;
	char buf[HINT_SIZE];
	int r = make_address(c, tmp, &sa, d);

	if (r < 0)
		return r;
	r = prepare(s->fd, c->type);
	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot set up the %s", c->what);
	if (bind(s->fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		return fr_fail_errno(d, -errno, format_hint(buf, "give another", c), "cannot make the %s %s",
			c->what, c->path);
	r = give_to_group(s, tmp, c->gid, d);
	if (r == 0 && c->type == SOCK_STREAM && listen(s->fd, SOMAXCONN) < 0)
		r = fr_fail_errno(d, -errno, NULL, "cannot listen on %s", c->path);
	if (r == 0 && (lstat(tmp, &s->st) < 0 || rename(tmp, c->path) < 0))
		r = fr_fail_errno(d, -errno, NULL, "cannot put the %s at %s", c->what, c->path);
	if (r < 0)
		(void)unlink(tmp);
	return r;
}

int fr_socket_file_open(const struct fr_socket_file_config *c, struct fr_socket_file *ret, struct fr_diag *d)
{
	_cleanup_free_ char *tmp = NULL, *path = strdup(c->path);
	struct fr_socket_file s = {.fd = -1};
	uint16_t x = 0;
	int r = make_parent(c, d);

	if (r == 0)
		r = check_stale(c, d);
	if (r < 0)
		return r;
	(void)!getrandom(&x, sizeof(x), 0);
	if (!path || asprintf(&tmp, "%s.%04x", path, x) < 0)
		return -ENOMEM;
	s.fd = socket(AF_UNIX, c->type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s.fd < 0)
		return fr_fail_errno(d, -errno, NULL, "cannot make a socket");
	r = bind_at(&s, c, tmp, d);
	if (r < 0) {
		close(s.fd);
		return r;
	}
	s.path = TAKE_PTR(path);
	*ret = s;
	return 0;
}

void fr_socket_file_close(struct fr_socket_file *s)
{
	struct stat st;

	if (s->path && lstat(s->path, &st) == 0 && st.st_dev == s->st.st_dev && st.st_ino == s->st.st_ino)
		(void)unlink(s->path);
	s->path = (free(s->path), NULL);
	if (s->fd >= 0)
		close(TAKE_FD(s->fd));
}
