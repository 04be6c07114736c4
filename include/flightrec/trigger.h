/* SPDX-License-Identifier: MIT */
#ifndef FLIGHTREC_TRIGGER_H
#define FLIGHTREC_TRIGGER_H

/*
 * With this header, a program that has seen an anomaly makes flightrecd dump what led up to the anomaly:
 *
 *     #include <flightrec/trigger.h>
 *     …
 *     flightrec_trigger("checkout", "slow answer", elapsed_ms, 250);
 *
 * "checkout" names the section [Trigger checkout] of flightrecd.conf(5). The section has the policy:
 *
 *     [Trigger checkout]
 *     Application=yes
 *     Cooldown=5min
 *
 * A call sends one datagram to a unix socket. It needs no library, starts no thread, allocates no memory and
 * keeps no state. It never blocks, can be called from any thread and from a signal handler, and does not
 * change errno. If flightrecd does not run, a call does nothing. C99 with GNU extensions (-std=gnu99 and
 * later), or C++11 and later.
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

/* The socket of flightrecd ([Triggers] Socket=). If the environment variable FLIGHTREC_TRIGGER_SOCKET is set,
   its value is used instead. */
#define FLIGHTREC_TRIGGER_SOCKET_DEFAULT "/run/flightrec/trigger"
/* The largest datagram, in bytes. A datagram has at least one line KEY=VALUE, as in sd_notify(3). The keys
   are TRIGGER, REASON, VALUE, THRESHOLD, UNIT (ns, count, bytes or percent), TID, TIME (CLOCK_MONOTONIC in
   ns). */
#define FLIGHTREC_DATAGRAM_MAX 1024

struct flightrec_datagram {
	char text[FLIGHTREC_DATAGRAM_MAX];
	size_t len;
};

/* Appends a line: KEY (with its "=") and at most MAX bytes of TEXT. Replaces control characters by spaces. */
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

/* The same as flightrec_trigger(), with two more arguments. UNIT is the unit of VALUE and THRESHOLD: "ns",
   "count", "bytes", "percent", or NULL for none. TIME_NS is the time of the anomaly (CLOCK_MONOTONIC), at
   most a minute ago; 0 means now. */
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
   [Trigger TRIGGER]; without a measurement, pass 0 for both. If TRIGGER is NULL, "" or an unknown name, the
   section is [Trigger application]. The policy of flightrecd decides whether to dump. flightrecd asks the
   kernel which process has called. Returns 0 if the value is below the threshold or was sent. Otherwise
   returns a negative errno, which the caller can ignore: -ENOENT or -ECONNREFUSED if flightrecd does not run,
   -EACCES without permission, -EAGAIN if the queue of flightrecd is full. */
static inline int flightrec_trigger(
	const char *trigger, const char *reason, unsigned long long value, unsigned long long threshold)
{
	return flightrec_trigger_at(trigger, reason, NULL, 0, value, threshold);
}

#ifdef __cplusplus
}
#endif

#endif
