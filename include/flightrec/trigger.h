/* SPDX-License-Identifier: MIT */
#ifndef FLIGHTREC_TRIGGER_H
#define FLIGHTREC_TRIGGER_H

/*
 * A program that has seen an anomaly can make flightrecd dump the records from before the anomaly:
 *
 *     #include <flightrec/trigger.h>
 *     …
 *     flightrec_trigger("checkout", "slow answer", elapsed_ms, 250);
 *
 * "checkout" is the name of a section of flightrecd.conf(5). The section sets the policy:
 *
 *     [Trigger checkout]
 *     Application=yes
 *     Cooldown=5min
 *
 * A call sends one datagram to a unix socket. The function needs no library, starts no thread, allocates no
 * memory and keeps no state. It never blocks, can be called from any thread and from a signal handler, and
 * does not change errno. If flightrecd does not run, the function only returns an error. The header needs C99
 * with GNU extensions (-std=gnu99 or later), or C++11 or later.
 */

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The path of the socket (Socket= in [Triggers] of flightrecd.conf(5)). If the environment variable
   FLIGHTREC_TRIGGER_SOCKET is set and not empty, its value is the path instead. */
#define FLIGHTREC_TRIGGER_SOCKET_DEFAULT "/run/flightrec/trigger"
/* The size of the largest datagram. A datagram has one or more lines KEY=VALUE, as in sd_notify(3). The keys
   are TRIGGER, REASON, VALUE, THRESHOLD, UNIT (ns, count, bytes or percent), TID and TIME (CLOCK_MONOTONIC,
   in ns). */
#define FLIGHTREC_DATAGRAM_MAX 1024

struct flightrec_datagram {
	char text[FLIGHTREC_DATAGRAM_MAX];
	size_t len;
};

/* Appends a line: KEY (with its "=") and at most MAX bytes of TEXT, with a blank in place of each control
   character. Does not cut a character of UTF-8 into two. */
static inline void flightrec_add(struct flightrec_datagram *d, const char *key, const char *text, size_t max)
{
	size_t n = strlen(key), i;

	memcpy(d->text + d->len, key, n);
	d->len += n;
	for (n = 0; n <= max && text[n];)
		n++;
	if (n > max)
		for (n = max; n > 0 && (text[n] & 0xc0) == 0x80;)
			n--;
	for (i = 0; i < n; i++) {
		int c = text[i] & 0xff;

		d->text[d->len++] = c < ' ' || c == 0x7f ? ' ' : text[i];
	}
	d->text[d->len++] = '\n';
}

static inline void flightrec_add_number(
	struct flightrec_datagram *d, const char *key, unsigned long long value)
{
	char text[24];
	size_t at = sizeof(text) - 1;

	text[at] = '\0';
	do {
		text[--at] = "0123456789"[value % 10];
		value /= 10;
	} while (value);
	flightrec_add(d, key, text + at, sizeof(text));
}

static inline int flightrec_send(const struct flightrec_datagram *d)
{
	const char *path = getenv("FLIGHTREC_TRIGGER_SOCKET");
	union {
		struct sockaddr any;
		struct sockaddr_un un;
	} address;
	size_t len;
	int fd, r = 0;

	if (!path || !*path)
		path = FLIGHTREC_TRIGGER_SOCKET_DEFAULT;
	len = strlen(path);
	if (len >= sizeof(address.un.sun_path))
		return -ENAMETOOLONG;
	memset(&address, 0, sizeof(address));
	address.un.sun_family = AF_UNIX;
	memcpy(address.un.sun_path, path, len);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (sendto(fd, d->text, d->len, MSG_DONTWAIT | MSG_NOSIGNAL, &address.any, sizeof(address.un)) < 0)
		r = -errno;
	close(fd);
	return r;
}

/* Does the same as flightrec_trigger(), with two more parameters. UNIT is the unit of VALUE and THRESHOLD:
   "ns", "count", "bytes", "percent", or NULL for no unit. TIME_NS is the time of the anomaly
   (CLOCK_MONOTONIC), and must be within the last minute; 0 means now. */
static inline int flightrec_trigger_at(const char *trigger, const char *reason, const char *unit,
	unsigned long long time_ns, unsigned long long value, unsigned long long threshold)
{
	struct flightrec_datagram d;
	struct timespec now;
	long tid;
	int saved = errno, r;

	if (value < threshold)
		return 0;
	if (!time_ns && clock_gettime(CLOCK_MONOTONIC, &now) == 0)
		time_ns = (unsigned long long)now.tv_sec * 1000000000ULL + (unsigned long long)now.tv_nsec;
	d.len = 0;
	flightrec_add(&d, "TRIGGER=", trigger ? trigger : "", 63);
	flightrec_add(&d, "REASON=", reason ? reason : "", 127);
	flightrec_add_number(&d, "VALUE=", value);
	flightrec_add_number(&d, "THRESHOLD=", threshold);
	if (unit)
		flightrec_add(&d, "UNIT=", unit, 15);
	tid = syscall(SYS_gettid);
	if (tid > 0)
		flightrec_add_number(&d, "TID=", (unsigned long long)tid);
	if (time_ns)
		flightrec_add_number(&d, "TIME=", time_ns);
	r = flightrec_send(&d);
	errno = saved;
	return r;
}

/* Reports VALUE with the text REASON. If VALUE reaches THRESHOLD, flightrecd gets an anomaly for the section
   [Trigger TRIGGER]. If TRIGGER is NULL, "" or an unknown name, the section is [Trigger application]. The
   policy of flightrecd decides whether the anomaly makes a dump. If there is no measurement, pass 0 for VALUE
   and THRESHOLD. The kernel tells flightrecd which process has sent the anomaly. Returns 0 if VALUE is below
   THRESHOLD, or if VALUE was sent. Otherwise returns a negative errno, which the caller may ignore: -ENOENT
   or -ECONNREFUSED if flightrecd does not run, -EACCES if the user of this process is not allowed to send,
   -EAGAIN if the queue of the socket is full. */
static inline int flightrec_trigger(
	const char *trigger, const char *reason, unsigned long long value, unsigned long long threshold)
{
	return flightrec_trigger_at(trigger, reason, NULL, 0, value, threshold);
}

#ifdef __cplusplus
}
#endif

#endif
