// SPDX-License-Identifier: GPL-2.0-or-later
#include "../unit.h"
#include "base/cleanup.h"
#include "base/trusted.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[64];

static int set_up(void **state)
{
	strcpy(directory, "/tmp/test-trusted.XXXXXX");
	assert_non_null(mkdtemp(directory));
	assert_int_equal(unit_shell("cd %s && mkdir one two top && echo x > one/file && chmod 644 one/file",
				 directory),
		0);
	return 0;
}

static int tear_down(void **state)
{
	assert_int_equal(unit_shell("rm -r %s", directory), 0);
	return 0;
}
FIXTURE(set_up, tear_down)

static int open_file(pid_t pid, const char *name)
{
	char path[128];
	int fd;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/root%s/%s", pid, directory, name);
	else
		snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static bool is_trusted(const char *name)
{
	_cleanup_close_ int fd = open_file(0, name);

	return fr_is_trusted_file(0, fd);
}

static void need_roots_files(void)
{
	if (geteuid() != 0)
		unit_skip("needs root, to make files of several users");
	if (!is_trusted("one/file"))
		unit_skip("/tmp is nosuid");
}

TEST(a_file_that_others_can_write_is_not_trusted)
{
	char path[128];

	need_roots_files();
	snprintf(path, sizeof(path), "%s/one/file", directory);
	assert_int_equal(chmod(path, 0664), 0);
	assert_false(is_trusted("one/file"));
	assert_int_equal(chmod(path, 0646), 0);
	assert_false(is_trusted("one/file"));
	assert_int_equal(chmod(path, 0644), 0);
	assert_true(is_trusted("one/file"));
	assert_int_equal(chown(path, 65534, 65534), 0);
	assert_false(is_trusted("one/file"));
}

/* Returns a child in name spaces of its own, which has mounted the file system TYPE on top. */
static pid_t mount_in_child(int name_spaces, const char *type, unsigned long flags, const char *options)
{
	int ready[2];
	char result = 0;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		const bool ok = chdir(directory) == 0 && unshare(name_spaces) == 0 &&
				mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
				mount("none", "top", type, flags, options) == 0;

		(void)!write(ready[1], ok ? "y" : "n", 1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &result, 1), 1);
	close(ready[0]);
	close(ready[1]);
	if (result == 'y')
		return pid;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	unit_skip("cannot mount a file system of type %s", type);
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

TEST(an_overlay_is_trusted_only_if_root_has_mounted_it)
{
	static const int name_spaces[] = {CLONE_NEWNS, CLONE_NEWNS | CLONE_NEWUSER};

	need_roots_files();
	for (size_t i = 0; i < 2; i++) {
		const pid_t pid = mount_in_child(name_spaces[i], "overlay", 0, "lowerdir=one:two");
		_cleanup_close_ int fd = open_file(pid, "top/file");
		struct stat st;

		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(st.st_uid, 0);
		assert_int_equal(fr_is_trusted_file(pid, fd), i == 0);
		/* A process in root's name space can open it, too. It has not mounted it. */
		assert_false(fr_is_trusted_file(0, fd));
		end_child(pid);
	}
}

TEST(a_file_system_without_suid_is_not_trusted)
{
	pid_t pid;
	char path[128];

	need_roots_files();
	for (unsigned long flags = 0; flags <= MS_NOSUID; flags += MS_NOSUID) {
		_cleanup_close_ int fd = -1;

		pid = mount_in_child(CLONE_NEWNS, "tmpfs", flags, NULL);
		snprintf(path, sizeof(path), "/proc/%d/root%s/top/file", pid, directory);
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
		assert_true(fd >= 0);
		assert_int_equal(fr_is_trusted_file(pid, fd), flags == 0);
		end_child(pid);
	}
}
