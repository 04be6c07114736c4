// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests which files make up the configuration, and in which order they are read. */
#include "../files.h"
#include "config/config_private.h"

/* Checks that the configuration consists of the files WANT, in this order: paths below the root, each
   followed by a blank. */
static void expect_files(const char *path, const char *want)
{
	char names[1024] = "", **files;

	assert_int_equal(fr_config_files_at(root, path, &files, NULL), 0);
	for (size_t i = 0; files[i]; i++) {
		strcat(strcat(names, files[i] + strlen(root)), " ");
		free(files[i]);
	}
	free(files);
	assert_string_equal(names, want);
}

FIXTURE(make_root, remove_root)

TEST(etc_masks_run_and_run_masks_usr)
{
	static const char *const files[] = {"etc/flightrec/flightrecd.conf",
		"usr/lib/flightrec/flightrecd.conf.d/10-a.conf",
		"usr/lib/flightrec/flightrecd.conf.d/30-c.conf",
		"usr/lib/flightrec/flightrecd.conf.d/40-masked.conf",
		"run/flightrec/flightrecd.conf.d/20-b.conf", "run/flightrec/flightrecd.conf.d/30-c.conf",
		"etc/flightrec/flightrecd.conf.d/10-a.conf", "etc/flightrec/flightrecd.conf.d/README",
		"etc/flightrec/flightrecd.conf.d/.hidden.conf"};
	char link[160];

	expect_files(NULL, "");
	for (size_t i = 0; i < FR_ARRAY_SIZE(files); i++)
		write_file(files[i], "");
	snprintf(link, sizeof(link), "%s/etc/flightrec/flightrecd.conf.d/40-masked.conf", root);
	assert_int_equal(symlink("/dev/null", link), 0);
	expect_files(NULL, "/etc/flightrec/flightrecd.conf "
			   "/etc/flightrec/flightrecd.conf.d/10-a.conf "
			   "/run/flightrec/flightrecd.conf.d/20-b.conf "
			   "/run/flightrec/flightrecd.conf.d/30-c.conf ");
}

TEST(a_named_file_has_only_its_own_drop_ins)
{
	write_file("etc/flightrec/flightrecd.conf.d/10-a.conf", "");
	write_file("my.conf.d/x.conf", "");
	expect_files(write_file("my.conf", ""), "/my.conf /my.conf.d/x.conf ");
}

TEST(a_later_file_wins_and_lists_add_up)
{
	_cleanup_(fr_config_deinit) struct fr_config c = {0};
	struct fr_diag d = {0};
	const char *path;

	write_file("my.conf.d/2.conf", "[Recorder]\nRingSize=8M\n");
	write_file("my.conf.d/1.conf", "[Recorder]\nRingSize=4M\nEvents=b\n");
	path = write_file("my.conf", "[Recorder]\nRingSize=2M\nEvents=a\n");
	fr_config_init(&c);
	assert_int_equal(fr_config_load(&c, path, &d), 0);
	assert_int_equal(c.ring_bytes, 8 << 20);
	assert_int_equal(c.n_events, 2);
	write_file("my.conf.d/3.conf", "[Dump]\n\nWindow=x\n");
	fr_config_deinit(&c);
	fr_config_init(&c);
	assert_int_equal(fr_config_load(&c, write_file("my.conf", ""), &d), -EINVAL);
	assert_non_null(strstr(d.what, "/my.conf.d/3.conf:3: "));
}
