// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of a forged build-id: root has trusted.so, and another user has spoiled.so with the same build-id and
   without call frame information, so that it makes the object BARE. */
#include "../unit.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/trusted.h"
#include "live.h"
#include "unwind/slots.h"
#include "unwind/unwinder_private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ADDRESS 0x200000000000
#define SIZE 4096
#define CHILDREN_MAX 100

static struct fr_unwinder *u;
static struct live *live;
static char directory[64];
static pid_t children[CHILDREN_MAX];
static size_t n_children;

static int set_up(void **state)
{
	strcpy(directory, "/tmp/test-trust.XXXXXX");
	assert_non_null(mkdtemp(directory));
	return unit_shell(
		"cd %s && chmod 755 . && cp " FR_TEST_OBJECTS "/trusted.so " FR_TEST_OBJECTS
		"/spoiled.so . && chmod 755 *.so && { [ $(id -u) != 0 ] || chown 65534 spoiled.so; }",
		directory);
}

static int tear_down(void **state)
{
	while (n_children) {
		kill(children[--n_children], SIGKILL);
		assert_int_equal(waitpid(children[n_children], NULL, 0), children[n_children]);
	}
	live = live_free(live);
	u = fr_unwinder_stop(u);
	return unit_shell("rm -r %s", directory);
}
FIXTURE(set_up, tear_down)

static void start(void)
{
	const struct fr_unwinder_config c = {0};
	struct fr_diag d = {0};
	char path[128];
	int r = fr_unwinder_start(&c, &u, &d);
	bool is_trusted;

	if (r == -EPERM || r == -EOPNOTSUPP)
		unit_skip("%s", d.what);
	assert_int_equal(r, 0);
	snprintf(path, sizeof(path), "%s/trusted.so", directory);
	r = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(r >= 0);
	is_trusted = fr_is_trusted_file(0, r);
	close(r);
	if (!is_trusted)
		unit_skip("/tmp is nosuid");
	live = live_new(u, true);
}

/* With a lease, open() of the file fails with EAGAIN for all others. */
static void take_lease(int fd)
{
	if (signal(SIGIO, SIG_IGN) == SIG_ERR || fcntl(fd, F_SETLEASE, F_WRLCK) < 0)
		_exit(1);
}

/* Lets a child map the file NAME as code, and take a lease of it if WITH_LEASE is true. Returns its object
   after a round. */
static struct fr_unwind_known *map_with(const char *name, bool with_lease)
{
	const fr_unwind_at parent = fr_unwind_slot_find(u->kernel.shared, (uint32_t)getpid());
	const struct fr_unwind_process *p;
	char path[128];
	int ready[2];
	ssize_t r;
	pid_t pid;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		const int fd = open(path, O_RDONLY | O_CLOEXEC);

		mmap((void *)ADDRESS, SIZE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0);
		if (with_lease)
			take_lease(fd);
		(void)!write(ready[1], "y", 1);
		pause();
		_exit(0);
	}
	children[n_children++] = pid;
	close(ready[1]);
	r = read(ready[0], path, 1);
	close(ready[0]);
	if (r == 0)
		unit_skip("the file system has no leases");
	live_round(live);
	assert_int_not_equal(fr_unwind_slot_find(u->kernel.shared, (uint32_t)pid), parent);
	p = fr_unwind_memory_address(u->memory, fr_unwind_slot_find(u->kernel.shared, (uint32_t)pid));
	for (uint32_t i = 0; i < p->n; i++)
		if (p->maps[i].start == ADDRESS)
			return u->objects->by_number[p->maps[i].object];
	fail();
	return NULL;
}

static struct fr_unwind_known *map_in_child(const char *name)
{
	return map_with(name, false);
}

static struct fr_unwind_object *object_of(const struct fr_unwind_known *k)
{
	return &u->kernel.shared->objects[k->number];
}

static void wait_for_state(const struct fr_unwind_known *k, enum fr_unwind_object_state state)
{
	const uint64_t until_ns = fr_monotonic_ns() + 30 * FR_NSEC_PER_SEC;

	while (__atomic_load_n(&object_of(k)->state, __ATOMIC_ACQUIRE) != state) {
		assert_true(fr_monotonic_ns() < until_ns);
		usleep(1000);
	}
}

/* Counts as a BPF program does. */
static void hit(const struct fr_unwind_known *k)
{
	__atomic_fetch_add(&object_of(k)->hits, 1, __ATOMIC_RELAXED);
}

/* N processes map the file of another user, then one that of root, and then one that of the other user. */
static void the_file_of_root_is_found_behind(size_t n)
{
	struct fr_unwind_known *k;

	start();
	k = map_in_child("spoiled.so");
	while (n_children < n)
		assert_ptr_equal(map_in_child("spoiled.so"), k);
	assert_ptr_equal(map_in_child("trusted.so"), k);
	assert_ptr_equal(map_in_child("spoiled.so"), k);
	hit(k);
	wait_for_state(k, FR_UNWIND_READY);
}

TEST(the_table_is_made_from_the_file_of_root)
{
	the_file_of_root_is_found_behind(1);
}

TEST(the_file_of_root_is_found_behind_many_others)
{
	the_file_of_root_is_found_behind(CHILDREN_MAX - 2);
}

TEST(a_table_of_another_user_is_replaced)
{
	struct fr_unwind_known *k;

	start();
	k = map_in_child("spoiled.so");
	hit(k);
	wait_for_state(k, FR_UNWIND_BARE);
	assert_ptr_equal(map_in_child("trusted.so"), k);
	assert_ptr_equal(map_in_child("spoiled.so"), k);
	wait_for_state(k, FR_UNWIND_READY);
	/* and stays */
	assert_ptr_equal(map_in_child("spoiled.so"), k);
	usleep(2500000);
	assert_int_equal(object_of(k)->state, FR_UNWIND_READY);
}

TEST(a_file_with_a_lease_does_not_hold_up_the_others)
{
	struct fr_unwind_known *k;

	start();
	k = map_with("spoiled.so", true);
	hit(k);
	wait_for_state(k, FR_UNWIND_FAILED);
}
