// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/debuginfod.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <elfutils/debuginfod.h>
#include <errno.h>

static uint64_t deadline_ns; /* 0: no requests */
static bool is_slow;

void fr_debuginfod_disable(void)
{
	(void)unsetenv(DEBUGINFOD_URLS_ENV_VAR);
	deadline_ns = 0;
}

void fr_debuginfod_enable(uint64_t time_max_ns, uint64_t bytes_max)
{
	const char *urls = getenv(DEBUGINFOD_URLS_ENV_VAR);
	char text[24];

	if (!urls || !*urls)
		return;
	snprintf(text, sizeof(text), "%llu", (unsigned long long)bytes_max);
	(void)setenv(DEBUGINFOD_MAXSIZE_ENV_VAR, text, 1);
	deadline_ns = fr_monotonic_ns() + time_max_ns;
}

/* libdebuginfod calls this several times a second. A value other than 0 ends the request. */
static int check_time(debuginfod_client *client, long done, long total)
{
	if (deadline_ns && fr_monotonic_ns() < deadline_ns)
		return 0;
	is_slow = deadline_ns != 0;
	fr_debuginfod_disable();
	return 1;
}

void fr_debuginfod_limit(debuginfod_client *client)
{
	if (client)
		debuginfod_set_progressfn(client, check_time);
}

int fr_debuginfod_find(const uint8_t *build_id, size_t len)
{
	debuginfod_client *client = deadline_ns ? debuginfod_begin() : NULL;
	int fd;

	if (!client)
		return -ENOENT;
	fr_debuginfod_limit(client);
	fd = debuginfod_find_executable(client, build_id, (int)len, NULL);
	debuginfod_end(client);
	return fd < 0 ? -ENOENT : fd;
}

bool fr_debuginfod_is_slow(void)
{
	return is_slow;
}
