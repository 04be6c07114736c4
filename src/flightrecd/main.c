// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/cleanup.h"
#include "base/log.h"
#include "base/owner.h"
#include "config/read_in_time.h"
#include "flightrecd/loop.h"
#include "flightrecd/reload.h"
#include "flightrecd/ring_memory.h"
#include "flightrecd/stages.h"
#include "flightrecd/start.h"
#include "reporting/merge_report.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include <systemd/sd-daemon.h>

#define READ_TIMEOUT_NS (5 * FR_NSEC_PER_SEC)

/* Blocks the signals. Every thread inherits this mask. The main loop reads the signals from a descriptor. */
static void block(const int *signals, size_t n)
{
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < n; i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

/* Blocks the signals that stop the daemon. Before this call, these signals end the process at once, because
   there is nothing to lose yet. */
static void block_stops(void)
{
	static const int signals[] = {SIGTERM, SIGINT};

	block(signals, FR_ARRAY_SIZE(signals));
}

static void block_others(void)
{
	static const int signals[] = {SIGUSR1, SIGUSR2, SIGHUP, SIGCHLD};

	block(signals, FR_ARRAY_SIZE(signals));
	signal(SIGPIPE, SIG_IGN);
}

/* Reads the configuration. INHERITED is true if the previous instance has left a history and its
   configuration. In this case, the read has a time limit: if the files cannot be read in time, the
   configuration of the previous instance is used. */
static int configure(struct fr_config *config, bool inherited, int argc, char *argv[], struct fr_diag *d)
{
	int r;

	sd_notify(0, "STATUS=starting: reads the configuration");
	if (inherited)
		return fr_config_read_in_time(READ_TIMEOUT_NS, config, argc, argv, d);
	r = fr_options_parse(config, argc, argv, d);

	return r == 0 ? fr_config_check(config, d) : r;
}

static int run(struct fr_daemon *daemon, int argc, char *argv[])
{
	_cleanup_buf_ struct fr_buf saved_config = {0};
	const bool inherited = fr_handover_config(&saved_config) == 0;
	struct fr_diag why = {0};
	int r;

	if (inherited)
		block_stops();
	r = configure(daemon->config, inherited, argc, argv, &why);
	if (r > 0)
		return FR_EXIT_OK;
	if (r < 0 && (!inherited || fr_start_restore_config(daemon, &saved_config, NULL) < 0)) {
		fr_start_report_failure(&why, r);
		return FR_EXIT_USAGE;
	}
	if (r < 0)
		fr_daemon_refuse_config(&daemon->refused, &why);
	block_stops();
	return fr_daemon_run(daemon, &saved_config, inherited);
}

static int record(struct fr_config *config, int argc, char *argv[])
{
	struct fr_daemon daemon;
	enum fr_stop stop;
	int code, merged;

	fr_daemon_init(&daemon, config, argc, argv);
	code = run(&daemon, argc, argv);
	stop = daemon.stop;
	/* The last dump has everything that is in the ring, so the next instance must not adopt the ring.
	   Otherwise, dumps of the next instance would have the same samples a second time. */
	if (stop == FR_STOP_MERGE && code == FR_EXIT_OK) {
		fr_handover_forget(&daemon.handover);
		fr_capture_set_lives_on(daemon.recording.capture, false);
	}
	if (code == FR_EXIT_OK)
		fr_daemon_end_memory(&daemon);
	fr_daemon_close(&daemon);
	/* Merge the files, even if the last dump could not be written. If the last dump could not be written,
	   the exit code is the exit code for this failure. */
	if (stop == FR_STOP_MERGE) {
		merged = fr_merge_directory(config->directory);
		code = code == FR_EXIT_OK ? merged : code;
	}
	return code == FR_EXIT_OK ? daemon.command_exit : code;
}

int main(int argc, char *argv[])
{
	struct fr_config config;
	int code;

	fr_log_set_program("flightrecd");
	block_others();
	(void)fr_owner_init();
	fr_config_init(&config);
	code = record(&config, argc, argv);
	fr_config_deinit(&config);
	return code;
}
