// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Tests of adoption, in which a process continues with the ring of a previous process. The previous process
 * is killed at a random moment. The adopted ring must have exactly the newest of all appended records, in
 * order and undamaged.
 */

#include "ring_process.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "history/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void kill_again_and_again(uint64_t size, unsigned kills, uint64_t *random)
{
	struct progress *p = progress_new();
	struct fr_history *h = test_history(size, on_evicted, p);

	for (unsigned i = 0; i < kills; i++) {
		struct fr_history_adopted adopted;
		struct test_contents c;
		int fd = run_and_kill(h, p, i > 0, random);

		h = adopt(fd, size, p, &adopted);
		assert_true(adopted.in_place);
		assert_int_equal(fr_history_fd(h), fd);
		c = read_all(h);
		expect_described(&c, &adopted, h);
		expect_newest(p, &c, true);
		continue_from(p, &c);
	}
	fr_history_free(h);
	progress_free(p);
}

TEST(a_kill_at_any_moment_loses_no_appended_record)
{
	uint64_t random = 20261121;

	for (unsigned i = 0; i < 14; i++) {
		uint64_t most = i % 10 == 9 ? 16 << 20 : 3 << 20;

		kill_again_and_again(
			i % 4 == 0 ? FR_HISTORY_SIZE_MIN : test_between(&random, 1 << 20, most), 10, &random);
	}
}

TEST(the_newest_frames_that_fit_go_into_another_size)
{
	uint64_t random = 4711;

	for (unsigned i = 0; i < 12; i++) {
		uint64_t most = i % 6 == 5 ? 16 << 20 : 4 << 20;
		uint64_t old_size = test_between(&random, 1 << 20, most);
		uint64_t new_size = test_between(&random, 1 << 20, most);
		struct progress *p = progress_new(), *p2 = progress_new();
		struct fr_history *old = ring_with_records(old_size, 800, p, &random), *h;
		struct fr_history_adopted adopted;
		struct test_contents c;

		if (i % 2)
			fr_history_seal(old);
		h = adopt(test_copy_image(old), new_size, p2, &adopted);
		assert_false(adopted.in_place);
		assert_int_equal(fr_history_size(h), new_size / 4096 * 4096);
		assert_int_equal(p2->evicted[TEST_SAMPLES], 0);
		c = read_all(h);
		expect_described(&c, &adopted, h);
		assert_int_equal(c.next[TEST_SAMPLES], p->done[TEST_SAMPLES]);
		assert_int_equal(c.next[TEST_SIDEBAND], p->done[TEST_SIDEBAND]);
		assert_int_equal(h->low_watermark_ns, old->low_watermark_ns);
		assert_true(new_size >= old_size || adopted.frames_left_out > 0);
		/* At most 3/5 of the ring are free: the reserve (the part of the log that is used only while
		   pinned frames stop eviction, here two frames of the largest size) and room for one
		   frame. */
		if (c.first[TEST_SAMPLES] > p->evicted[TEST_SAMPLES])
			assert_in_range(test_stats(h).used_bytes, new_size * 2 / 5, new_size);
		fr_history_free(old);

		/* Another process appends to the adopted ring, and is killed. */
		continue_from(p2, &c);
		h = adopt(run_and_kill(h, p2, false, &random), new_size, p2, &adopted);
		assert_true(adopted.in_place);
		c = read_all(h);
		expect_newest(p2, &c, true);
		fr_history_free(h);
		progress_free(p);
		progress_free(p2);
	}
}

/* Between the frames of a retained snapshot and the newer frames, some frames are missing. So an adoption
   omits the retained frames. The next adoption does not find the retained frames, even if the first adoption
   is killed. */
TEST(an_adoption_can_be_killed_and_repeated)
{
	struct progress *p = progress_new();
	uint64_t random = 8, adoption_ns;
	struct fr_history *h = ring_with_records(2 << 20, 600, p, &random), *next, *again;
	struct fr_history_adopted adopted;
	struct test_contents first, c;
	struct fr_snapshot *s;

	fr_history_seal(h);
	s = retain(h);
	assert_non_null(s);
	for (unsigned i = 0; i < 600; i++)
		assert_int_equal(append_run(h, p, TEST_SAMPLES, &random), 0);
	adoption_ns = fr_monotonic_ns();
	next = adopt(test_copy_image(h), 2 << 20, p, &adopted);
	adoption_ns = fr_monotonic_ns() - adoption_ns;
	assert_true(adopted.frames_left_out > 0);
	first = read_all(next);
	expect_newest(p, &first, true);

	again = adopt(test_copy_image(next), 2 << 20, p, &adopted);
	assert_int_equal(adopted.frames_left_out, 0);
	c = read_all(again);
	assert_memory_equal(&first, &c, sizeof(first));
	fr_history_free(again);
	fr_history_free(next);

	for (unsigned i = 0; i < 30; i++) {
		int fd = test_copy_image(h);
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0) {
			(void)adopt(fd, 2 << 20, NULL, &adopted);
			pause();
		}
		kill_after(pid, (useconds_t)test_between(&random, 0, adoption_ns / 500));
		next = adopt(fd, 2 << 20, p, &adopted);
		c = read_all(next);
		assert_memory_equal(&first, &c, sizeof(first));
		fr_history_free(next);
	}
	fr_snapshot_free(s);
	fr_history_free(h);
	progress_free(p);
}

/* Check that an adopted ring whose image was damaged works. All its frames are evicted several times,
   snapshots are taken, and the ring is adopted again. */
static void expect_usable(struct fr_history *h, uint64_t *random)
{
	static struct progress p;
	struct fr_history_adopted adopted;
	struct fr_snapshot *retained = NULL;
	struct fr_history *next;

	h->arena.evicted = NULL;
	p = (struct progress){0};
	do
		assert_int_equal(random_step(h, &p, &retained, random), 0);
	while (test_stats(h).frames_evicted < 60 || retained);
	(void)read_all(h);
	next = adopt(test_copy_image(h), fr_history_size(h), NULL, &adopted);
	(void)read_all(next);
	fr_history_free(next);
}

TEST(damage_of_an_image_does_no_harm)
{
	struct progress *p = progress_new();
	uint64_t random = 31, taken = 0, left_out = 0;
	struct fr_history *whole = ring_with_records(1 << 20, 300, p, &random);

	for (unsigned i = 0; i < 300; i++) {
		struct fr_history_config config =
			config_of(i % 4 ? 1 << 20 : test_between(&random, 1 << 20, 3 << 20), NULL);
		struct test_contents c = {.with_gaps = true};
		struct fr_history_adopted adopted;
		struct fr_history *h = NULL;
		struct fr_diag d = {0};
		struct fr_snapshot *s;
		int fd = test_copy_image(whole), r;
		uint8_t *broken = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		assert_ptr_not_equal(broken, MAP_FAILED);
		for (uint64_t flips = test_between(&random, 1, 8); flips; flips--)
			(void)test_flip_bit(&random, whole->map, broken);
		munmap(broken, 1 << 20);
		r = fr_history_adopt(&config, fd, &h, &adopted, &d);
		if (r < 0) {
			assert_int_equal(r, -EBADMSG);
			assert_string_not_equal(d.what, "");
			close(fd);
			continue;
		}
		/* Frames are undamaged and in order. Records of the open chunk can be wrong, because the open
		   chunk has no crc. */
		assert_int_equal(fr_history_snapshot(h, &s), 0);
		test_count_snapshot(&c, s);
		fr_snapshot_free(s);
		taken += adopted.frames;
		left_out += adopted.frames_left_out;
		if (i % 32 == 0) {
			fr_history_seal(h);
			expect_usable(h, &random);
		}
		fr_history_free(h);
	}
	assert_true(taken > 0 && left_out > 0);
	fr_history_free(whole);
	progress_free(p);
}

static void expect_refused(int fd, const char *in_what)
{
	struct fr_history_config config = config_of(1 << 20, NULL);
	struct fr_history_adopted adopted;
	struct fr_diag d = {0};
	struct fr_history *h;

	assert_int_equal(fr_history_adopt(&config, fd, &h, &adopted, &d), -EBADMSG);
	assert_non_null(strstr(d.what, in_what));
	assert_int_equal(close(fd), 0); /* after a failure, the caller still owns the descriptor */
}

static int memfd_of(size_t size, int seals)
{
	int fd = memfd_create("no ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

TEST(other_files_are_refused)
{
	struct fr_history *h = test_history(1 << 20, NULL, NULL), *none;
	struct fr_history_config config = config_of(1, NULL);
	struct fr_history_adopted adopted;
	int fds[2], fd;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	close(fds[1]);
	expect_refused(fds[0], "sealed");
	expect_refused(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "sealed");
	expect_refused(memfd_of(1 << 20, F_SEAL_SHRINK), "sealed");
	expect_refused(memfd_of(0, F_SEAL_SHRINK | F_SEAL_GROW), "size");
	expect_refused(memfd_of(1 << 20, F_SEAL_SHRINK | F_SEAL_GROW), "whole");
	fd = test_copy_image(h);
	assert_int_equal(pwrite(fd, &(uint32_t){FR_IMAGE_VERSION + 1}, 4, 8), 4);
	expect_refused(fd, "version 3, not 2");
	fd = test_copy_image(h);
	assert_int_equal(fr_history_adopt(&config, fd, &none, &adopted, NULL), -EINVAL);
	close(fd);
	fr_history_free(h);
}

TEST(an_empty_ring_can_be_adopted)
{
	struct fr_history *h = test_history(1 << 20, NULL, NULL), *next;
	struct fr_history_adopted a;

	next = adopt(test_copy_image(h), 1 << 20, NULL, &a);
	assert_true(a.in_place);
	assert_int_equal(a.frames + a.samples + a.sideband + a.low_watermark_ns + a.drained_ns, 0);
	assert_int_equal(test_append(next, 0, 1, 64, false), 0);
	fr_history_seal(next);
	assert_int_equal(test_read(next).seq, 1);
	fr_history_free(next);
	fr_history_free(h);
}

TEST(frames_without_an_image_header_are_copied)
{
	static const uint8_t zeros[sizeof(struct fr_image_header)];
	struct progress *p = progress_new();
	uint64_t random = 5;
	struct fr_history *h = ring_with_records(2 << 20, 400, p, &random), *next;
	struct fr_history_adopted adopted;
	struct test_contents c;
	int fd;

	fr_history_seal(h);
	fd = test_copy_image(h);
	assert_int_equal(pwrite(fd, zeros, sizeof(zeros), 0), sizeof(zeros));
	next = adopt(fd, 2 << 20, p, &adopted);
	assert_false(adopted.in_place);
	c = read_all(next);
	expect_newest(p, &c, true);
	assert_int_equal(next->seq, h->seq);
	fr_history_free(next);
	fr_history_free(h);
	progress_free(p);
}

/* Sets the encoding of the first frame in the image FD of H, with a right crc. */
static void set_encoding(int fd, const struct fr_history *h, uint32_t encoding)
{
	const off_t at = (off_t)h->image->log_offset;
	struct fr_frame_header frame;

	assert_int_equal(pread(fd, &frame, sizeof(frame), at), sizeof(frame));
	assert_int_equal(frame.entry.magic, FR_FRAME_MAGIC);
	frame.entry.encoding = encoding;
	frame.entry.header_crc =
		fr_crc32c(0, (const uint8_t *)&frame + FR_CRC_FROM, sizeof(frame) - FR_CRC_FROM);
	assert_int_equal(pwrite(fd, &frame, sizeof(frame), at), sizeof(frame));
}

TEST(a_frame_with_an_unknown_encoding_is_left_out)
{
	struct fr_history *h = test_history(1 << 20, NULL, NULL), *next;
	struct fr_history_adopted a;

	for (uint64_t i = 0; i < 3; i++) {
		test_append(h, i, 1, 64, false);
		fr_history_seal(h);
	}
	for (uint32_t encoding = 0; encoding <= _FR_ENCODING_MAX; encoding++) {
		int fd = test_copy_image(h);

		set_encoding(fd, h, encoding);
		next = adopt(fd, 1 << 20, NULL, &a);
		assert_int_equal(a.frames, encoding < _FR_ENCODING_MAX ? 3 : 2);
		fr_history_free(next);
	}
	fr_history_free(h);
}

/* Makes a ring with three rounds, which begin at the times 1000, 2000 and 3000. Each round has one sample. (A
   round is one pass of the recorder over all kernel rings.) */
static struct fr_history *history_with_rounds(void)
{
	struct fr_history *h = test_history(1 << 20, NULL, NULL);

	for (uint64_t since = 1000; since <= 3000; since += 1000) {
		fr_history_begin_round(h, since);
		test_append(h, since, 1, 64, false);
		fr_history_end_round(h);
	}
	return h;
}

/* Copy the image of H. In the copy, set the time of the last drain of the kernel rings to DRAINED_NS, and the
   low watermark of the open chunk (no later record is older than this time) to LOW_WATERMARK_NS. Returns the
   memfd of the copy. */
static int copy_with_times(const struct fr_history *h, uint64_t drained_ns, uint64_t low_watermark_ns)
{
	int fd = test_copy_image(h);

	assert_int_equal(pwrite(fd, &drained_ns, 8, offsetof(struct fr_image_header, drained_ns)), 8);
	assert_int_equal(
		pwrite(fd, &low_watermark_ns, 8, offsetof(struct fr_image_header, open_low_watermark_ns)), 8);
	return fd;
}

TEST(times_of_the_open_chunk_are_adopted)
{
	const uint64_t future = fr_monotonic_ns() + 3600 * FR_NSEC_PER_SEC;
	struct fr_history *h = history_with_rounds();

	for (uint64_t size = 1 << 20; size <= 2 << 20; size <<= 1) {
		struct fr_history_adopted adopted;
		struct fr_history *next = adopt(copy_with_times(h, 3000, 7), size, NULL, &adopted);

		assert_int_equal(adopted.drained_ns, 3000);
		assert_int_equal(adopted.low_watermark_ns, 7);
		assert_int_equal(next->image->drained_ns, 3000);
		assert_int_equal(next->image->open_low_watermark_ns, 7);
		fr_history_free(next);

		/* A time in the future can only be damage. The adoption treats it as unknown. */
		next = adopt(copy_with_times(h, future, future), size, NULL, &adopted);
		assert_int_equal(adopted.drained_ns, 0);
		assert_int_equal(adopted.low_watermark_ns, 0);
		assert_int_equal(next->image->drained_ns, 0);
		fr_history_free(next);
	}
	fr_history_free(h);
}

TEST(low_watermarks_continue_after_an_adoption)
{
	struct fr_history *h = history_with_rounds();

	fr_history_seal(h);
	test_append(h, 4000, 1, 64, false);
	/* The low watermark of the frame is unknown, and the low watermark of the open chunk is known. */
	for (uint64_t size = 1 << 20; size <= 2 << 20; size <<= 1) {
		struct fr_history_adopted adopted;
		struct fr_history *next = adopt(test_copy_image(h), size, NULL, &adopted);

		assert_int_equal(adopted.frames, 1);
		assert_int_equal(adopted.low_watermark_ns, 0);
		assert_int_equal(adopted.samples, 4);
		assert_int_equal(next->low_watermark_ns, 2000);
		assert_int_equal(next->samples.n, 1);
		assert_int_equal(next->samples.first_ns, 4001);
		/* After two rounds, a new chunk has a newer low watermark. */
		fr_history_begin_round(next, 5000);
		fr_history_end_round(next);
		fr_history_begin_round(next, 6000);
		fr_history_seal(next);
		assert_int_equal(next->low_watermark_ns, 5000);
		fr_history_free(next);
	}
	fr_history_free(h);
}
