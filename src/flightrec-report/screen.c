// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrec-report/screen.h"
#include "base/clock.h"
#include "base/progress.h"
#include "base/terminal.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define USUAL_WIDTH 120
#define SHORT_NS (FR_NSEC_PER_SEC / 2) /* work that is shorter has no progress */

static struct {
	bool has_bar, wants_pager, has_pager, colours;
	unsigned width;
	uint64_t begin_ns;
} screen;

/* The pager is started when the recording has been read, because both it and the bar use the terminal. */
static void show_progress(void *ctx, uint64_t done, uint64_t total)
{
	if (done < total) {
		if (screen.has_bar && fr_monotonic_ns() - screen.begin_ns > SHORT_NS)
			fr_progress_draw(NULL, done, total);
		return;
	}
	fr_progress_end();
	if (screen.wants_pager && !screen.has_pager) {
		screen.has_pager = true;
		fr_pager_open();
	}
}

static bool is_paged(const struct report_command *c, const FILE *out)
{
	return out == stdout && !c->no_pager && !c->html && c->verb != VERB_EXPORT && isatty(STDOUT_FILENO);
}

void screen_begin(struct report_command *c, FILE *out)
{
	struct winsize size;

	screen.begin_ns = fr_monotonic_ns();
	screen.has_bar = !c->quiet && isatty(STDERR_FILENO);
	screen.wants_pager = is_paged(c, out);
	screen.colours = c->color == COLOR_ALWAYS ||
			 (c->color == COLOR_AUTO && out == stdout && fr_terminal_has_colours());
	screen.width =
		ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : USUAL_WIDTH;
	if (screen.wants_pager) /* a user can leave the pager early */
		signal(SIGPIPE, SIG_IGN);
	if (screen.has_bar || screen.wants_pager)
		c->config.progress = show_progress;
}

bool screen_has_colours(void)
{
	return screen.colours;
}

unsigned screen_width(void)
{
	return screen.width;
}

bool screen_has_pager(void)
{
	return screen.has_pager;
}

void screen_end(void)
{
	fr_progress_end();
	if (screen.has_pager)
		fr_pager_close();
	screen.has_pager = false;
}
