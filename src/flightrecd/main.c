// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/cleanup.h"
#include "base/log.h"
#include "base/owner.h"
#include "base/units.h"
#include "base/utf8.h"
#include "flightrecd/config_kept.h"
#include "flightrecd/daemon.h"
#include "merge/merge.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include <systemd/sd-daemon.h>

/* Every thread inherits this mask; the main loop takes the signals from a descriptor. */
static void block_signals(void)
{
	static const int signals[] = {SIGUSR1, SIGUSR2, SIGTERM, SIGINT, SIGHUP, SIGCHLD};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < FR_ARRAY_SIZE(signals); i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static void warn_of_merge(void *ctx, const char *text)
{
	fr_log(LOG_WARNING, "merge: %s", text);
}

/* One perf.data of what is in the directory; the recorder has closed all its files. */
static int merge_directory(const char *directory)
{
	const struct fr_merge_options options = {.directory = directory, .warn = warn_of_merge};
	struct fr_merge_report report = {0};
	struct fr_diag diag = {0};
	char bytes[FR_UNIT_SIZE];
	int r = fr_merge(&options, &report, &diag);

	if (r < 0) {
		fr_diag_prefix(&diag, "cannot merge %s", directory);
		fr_log_diag(LOG_ERR, &diag, r);
		return fr_exit_code(r);
	}
	if (report.kept_older[0])
		fr_log(LOG_INFO, "the older one is now %s", report.kept_older);
	fr_log_struct(LOG_INFO, FR_MSG_MERGED, NULL, 0,
		"%s: %llu samples of %zu files, %s; perf report -i %s", report.output,
		(unsigned long long)report.samples, report.n_inputs, fr_size_format(report.bytes_out, bytes),
		report.output);
	return r > 0 ? FR_EXIT_SALVAGED : FR_EXIT_OK;
}

/* What systemctl status shows of a service that has not come. */
static void say_why_not(const struct fr_diag *d, int code)
{
	char text[sizeof(d->what)];

	fr_log_diag(LOG_ERR, d, code);
	snprintf(text, sizeof(text), "%s", d->what);
	fr_utf8_tidy(text);
	sd_notifyf(0, "STATUS=cannot start: %s", text);
}

static int configure(struct fr_config *config, int argc, char *argv[], struct fr_diag *d)
{
	int r = fr_options_parse(config, argc, argv, d);

	return r == 0 ? fr_config_check(config, d) : r;
}

/* The configuration of the instance before, in the place of one that is of no use. */
static int go_back(struct fr_config *config, const struct fr_buf *kept, struct fr_diag *d)
{
	int r;

	fr_config_deinit(config);
	fr_config_init(config);
	r = fr_config_restore(config, kept, d);
	return r == 0 ? fr_config_check(config, d) : r;
}

/* With what the files say; where that cannot be used and there is a history to lose, with what the instance
   before went by. 1: something was printed, and that was all. Returns an exit code in CODE where it fails. */
static int open_daemon(
	struct fr_daemon *daemon, struct fr_config *config, int argc, char *argv[], int *ret_code)
{
	_cleanup_buf_ struct fr_buf kept = {0};
	const bool inherited = fr_handover_config(&kept) == 0;
	struct fr_diag why = {0}, diag = {0};
	int r = configure(config, argc, argv, &why);

	if (r > 0)
		return r;
	*ret_code = FR_EXIT_USAGE;
	if (r == 0) {
		fr_log_set_level(config->log_level);
		r = fr_daemon_open(daemon, config, NULL, argc, argv, &why);
		*ret_code = inherited ? FR_EXIT_AGAIN : fr_exit_code(r);
	}
	if (r == 0)
		return 0;
	if (!why.code)
		fr_fail_errno(&why, r, NULL, "cannot start");
	if (!inherited || go_back(config, &kept, &diag) < 0) {
		say_why_not(&why, r);
		return r;
	}
	fr_daemon_refuse_config(&why, &why);
	fr_log_set_level(config->log_level);
	r = fr_daemon_open(daemon, config, &why, argc, argv, &diag);
	if (r < 0) {
		*ret_code = FR_EXIT_AGAIN;
		say_why_not(&diag, r);
	}
	return r;
}

static int record(struct fr_config *config, int argc, char *argv[])
{
	struct fr_daemon daemon;
	enum fr_stop stop;
	int code, merged, r = open_daemon(&daemon, config, argc, argv, &code);

	if (r != 0)
		return r > 0 ? FR_EXIT_OK : code;
	code = fr_daemon_run(&daemon);
	stop = daemon.stop;
	/* All that the ring has is in the last dump. */
	if (stop == FR_STOP_MERGE && code == FR_EXIT_OK)
		fr_handover_forget(&daemon);
	fr_daemon_close(&daemon);
	/* A last dump that could not be written is said by the exit code; the files before it are merged. */
	if (stop == FR_STOP_MERGE) {
		merged = merge_directory(config->directory);
		code = code == FR_EXIT_OK ? merged : code;
	}
	return code == FR_EXIT_OK ? daemon.command_exit : code;
}

int main(int argc, char *argv[])
{
	struct fr_config config;
	int code;

	fr_log_set_program("flightrecd");
	block_signals();
	(void)fr_owner_init();
	fr_config_init(&config);
	code = record(&config, argc, argv);
	fr_config_deinit(&config);
	return code;
}
