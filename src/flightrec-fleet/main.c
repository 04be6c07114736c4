// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/cleanup.h"
#include "base/utf8.h"
#include "flightrec-fleet/fleet_program.h"
#include "flightrec-fleet/print.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>

#define HEAP_STEP (32 << 20)
#define HEAP_KEPT (256 << 20)

static int run(struct fleet *f, struct fr_diag *d)
{
	static int (*const verbs[])(struct fleet * f, struct fr_diag * d) = {
		[FLEET_DUMP] = fleet_dump,
		[FLEET_LIST] = fleet_list,
		[FLEET_STATUS] = fleet_status,
		[FLEET_GET] = fleet_get,
		[FLEET_EXPLAIN] = fleet_explain,
		[FLEET_WATCH] = fleet_watch,
		[FLEET_SETUP] = fleet_setup,
		[FLEET_PRUNE] = fleet_prune,
		[FLEET_FORGET] = fleet_forget,
	};
	int r = fleet_open_config(f, d);

	return r < 0 ? r : verbs[f->command->verb](f, d);
}

static int exit_code(int r)
{
	switch (r) {
	case -EINVAL:
		return FR_EXIT_USAGE;
	case -ECONNREFUSED:
	case -ECONNRESET:
	case -EHOSTUNREACH:
	case -ENETUNREACH:
	case -ENOTCONN:
	case -ETIMEDOUT:
		return FR_EXIT_UNREACHABLE;
	default:
		return r < 0 ? fr_exit_code(r) : r;
	}
}

int main(int argc, char *argv[])
{
	struct fleet_command command;
	struct fleet f = {.command = &command};
	struct fr_diag d = {0};
	int r = fleet_command_parse(&command, argc, argv, &d);

	if (r > 0)
		return FR_EXIT_OK;
	/* A user can leave the pager early, and a broker can close a connection. */
	signal(SIGPIPE, SIG_IGN);
	/* libnats allocates each message on one thread, and another thread frees it. Without this, the heap
	   grows and shrinks all the time, which takes a third of the time to read a long index. */
	mallopt(M_TOP_PAD, HEAP_STEP);
	mallopt(M_TRIM_THRESHOLD, HEAP_KEPT);
	if (r == 0) {
		r = run(&f, &d);
		print_end();
		print_ignored(&f);
		fleet_close(&f);
	}
	if (r < 0) {
		/* A broker or a store can have written a part of the message. */
		fr_utf8_sanitize(d.what);
		fr_utf8_sanitize(d.hint);
		fr_diag_print(FLEET_PROGRAM, &d, r);
	}
	return exit_code(r);
}
