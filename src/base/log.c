// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/log.h"
#include "base/cleanup.h"
#include "base/diag.h"
#include "base/thread.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <systemd/sd-journal.h>

#define MAX_FIELDS 24

static const char *program = "flightrec";
static atomic_int max_level = LOG_INFO;
static bool to_journal;

/* systemd.exec(5): JOURNAL_STREAM has the device and the inode of the journal's stream. */
static void find_journal(void)
{
	const char *e = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	to_journal = e && sscanf(e, "%llu:%llu", &dev, &ino) == 2 && fstat(STDERR_FILENO, &st) == 0 &&
		     st.st_dev == dev && st.st_ino == ino;
}

void fr_log_set_level(int level)
{
	max_level = level;
}

void fr_log_set_program(const char *name)
{
	program = name;
}

static void send_to_journal(
	int level, const char *id, const struct fr_log_field *fields, unsigned n, const char *text)
{
	struct iovec iov[MAX_FIELDS + 4];
	char *strings[MAX_FIELDS + 4];
	int n_iov = 0;

	n = FR_MIN(n, (unsigned)MAX_FIELDS);
	if (asprintf(&strings[n_iov], "MESSAGE=%s", text) >= 0)
		n_iov++;
	if (asprintf(&strings[n_iov], "PRIORITY=%d", level) >= 0)
		n_iov++;
	if (asprintf(&strings[n_iov], "SYSLOG_IDENTIFIER=%s", program) >= 0)
		n_iov++;
	if (id && asprintf(&strings[n_iov], "MESSAGE_ID=%s", id) >= 0)
		n_iov++;
	for (unsigned i = 0; i < n; i++)
		if (asprintf(&strings[n_iov], "%s=%s", fields[i].key, fields[i].value) >= 0)
			n_iov++;
	for (int i = 0; i < n_iov; i++)
		iov[i] = (struct iovec){strings[i], strlen(strings[i])};
	(void)sd_journal_sendv(iov, n_iov);
	for (int i = 0; i < n_iov; i++)
		free(strings[i]);
}

static void log_text(
	int level, const char *id, const struct fr_log_field *fields, unsigned n, const char *text)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_journal);
	if (to_journal)
		send_to_journal(level, id, fields, n, text);
	else
		fprintf(stderr, "%s: %s\n", program, text);
}

void fr_log_struct(int level, const char *message_id, const struct fr_log_field *fields, unsigned n_fields,
	const char *fmt, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;

	fr_thread_assert_not(FR_THREAD_RECORDER);
	if (level > max_level)
		return;
	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	log_text(level, message_id, fields, n_fields, text ? text : fmt);
}

void fr_log_diag(int level, const struct fr_diag *d, int code)
{
	char reason[128];

	if (!d || !d->code)
		fr_log(level, "%s", strerror_r(-code, reason, sizeof(reason)));
	else if (d->hint[0])
		fr_log(level, "%s\n  %s", d->what, d->hint);
	else
		fr_log(level, "%s", d->what);
}
