/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The fixture of the tests of sources (the code that sees the anomalies of a trigger). It has an event loop,
   one source, and the causes (descriptions of anomalies) that the source has fired. */

#include "../unit.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "source/source.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS FR_NSEC_PER_MSEC
/* The limit of a wait for something that must happen. It is longer than a slow machine needs. */
#define HEARD_LIMIT_MS 60000
#define HEARD_KEPT 4096

/* Prints WHY a test cannot run on this machine. Returns false. */
static inline bool heard_cannot(const char *why)
{
	print_message("skipped: %s\n", why);
	return false;
}

struct heard {
	struct fr_source_env env;
	struct fr_trigger_config config;
	struct fr_source *source; /* NULL if it is not armed */
	unsigned n;		  /* number of causes */
	struct fr_cause *causes;  /* the first HEARD_KEPT causes */
	struct fr_cause last;
	void *trigger; /* the trigger that the last cause was for */
};

static inline void heard_fire(void *ctx, void *trigger, const struct fr_cause *cause)
{
	struct heard *h = ctx;

	assert_true(cause->time_ns != 0 && cause->time_ns <= fr_monotonic_ns());
	if (h->n < HEARD_KEPT)
		h->causes[h->n] = *cause;
	h->n++;
	h->last = *cause;
	h->trigger = trigger;
}

/* Returns the configuration of a section that has only the key of its source. */
static inline struct fr_trigger_config heard_config(enum fr_trigger_kind kind)
{
	return (struct fr_trigger_config){.name = (char *)"test",
		.kind = kind,
		.interval_ns = FR_TRIGGER_UNSET,
		.cooldown_ns = FR_TRIGGER_UNSET,
		.min_fill_ns = FR_TRIGGER_UNSET,
		.window_ns = FR_TRIGGER_UNSET,
		.post_ns = FR_TRIGGER_UNSET,
		.enabled = true};
}

static inline void heard_init(struct heard *h, enum fr_trigger_kind kind)
{
	*h = (struct heard){.env = {.self = getpid(),
				    .application_socket = "",
				    .gid = (gid_t)-1,
				    .fire = heard_fire,
				    .ctx = h},
		.config = heard_config(kind),
		.causes = calloc(HEARD_KEPT, sizeof(struct fr_cause))};
	assert_non_null(h->causes);
	assert_true(sd_event_new(&h->env.event) >= 0);
}

static inline void heard_disarm(struct heard *h)
{
	h->source = fr_source_close(h->source);
}

static inline void heard_deinit(struct heard *h)
{
	heard_disarm(h);
	h->env.event = sd_event_unref(h->env.event);
	free(h->causes);
	h->causes = NULL;
}
#define _cleanup_heard_ __attribute__((cleanup(heard_deinit)))

/* Opens a source, and lets it listen on the event loop. Returns 0, or a negative errno, with a message in
   D. */
static inline int heard_open(struct heard *h, const struct fr_trigger_config *config, void *trigger,
	struct fr_source **ret, struct fr_diag *d)
{
	const struct fr_source_class *class = fr_source_class_for_kind(config->kind);
	int r = fr_source_open(class, &h->env, config, trigger, ret, d);

	if (r == 0 && class->listen)
		assert_int_equal(class->listen(*ret, d), 0);
	return r;
}

/* Arms H->config. If this kernel cannot arm it, or arming is not permitted, prints why and returns false.
   Fails the test on other errors. */
static inline bool heard_try_arm(struct heard *h)
{
	struct fr_diag d = {0};
	int r = heard_open(h, &h->config, h, &h->source, &d);

	if (r < 0 && r != -EOPNOTSUPP && r != -EPERM && r != -EACCES && r != -ENOSYS)
		fail_msg("%d: %s (%s)", r, d.what, d.hint);
	if (r < 0)
		print_message("skipped: %s (%s)\n", d.what, d.hint);
	return r == 0;
}

static inline void heard_arm(struct heard *h)
{
	if (heard_try_arm(h))
		return;
	heard_deinit(h);
	skip();
}

static inline struct fr_source_stats heard_stats(const struct heard *h)
{
	struct fr_source_stats stats;

	fr_source_get_stats(h->source, &stats);
	return stats;
}

/* Checks that arming H->config fails with CODE and a message that contains WORDS. */
static inline void heard_refused(struct heard *h, int code, const char *words)
{
	struct fr_diag d = {0};
	int r = fr_source_open(
		fr_source_class_for_kind(h->config.kind), &h->env, &h->config, NULL, &h->source, &d);

	if (r != code)
		fail_msg("%d instead of %d: %s", r, code, d.what);
	assert_int_equal(d.code, code);
	if (!strstr(d.what, words) && !strstr(d.hint, words))
		fail_msg("neither \"%s\" nor \"%s\" says \"%s\"", d.what, d.hint, words);
	assert_null(h->source);
}

/* Runs the event loop for MAX_MS, or until N causes were fired. If N is 0, runs it for the whole time. */
static inline void heard_run(struct heard *h, unsigned max_ms, unsigned n)
{
	uint64_t until = fr_monotonic_ns() + max_ms * MS, now;

	while ((now = fr_monotonic_ns()) < until && (!n || h->n < n))
		assert_true(sd_event_run(h->env.event, (until - now) / FR_NSEC_PER_USEC + 1) >= 0);
	/* Handles events that came while this process did not run. The number is limited, because a flood of
	   events may not end. */
	for (int i = 0; i < 1000 && (!n || h->n < n) && sd_event_run(h->env.event, 0) > 0; i++)
		;
}

/* Runs the event loop until N causes were fired. */
static inline void heard_wait(struct heard *h, unsigned n)
{
	heard_run(h, HEARD_LIMIT_MS, n);
	assert_true(h->n >= n);
}

/* Runs the event loop, one event after the other, until CONDITION is true. */
#define HEARD_UNTIL(h, condition)                                                                            \
	do {                                                                                                 \
		const uint64_t limit_ns = fr_monotonic_ns() + HEARD_LIMIT_MS * MS;                           \
                                                                                                             \
		while (!(condition)) {                                                                       \
			assert_true(fr_monotonic_ns() < limit_ns);                                           \
			assert_true(sd_event_run((h)->env.event, 100000) >= 0);                              \
		}                                                                                            \
	} while (0)

/* Returns the number of causes that have PID and REASON, and DETAIL in their detail. *RET gets the last of
   these causes. */
static inline unsigned heard_count(
	const struct heard *h, pid_t pid, const char *reason, const char *detail, struct fr_cause *ret)
{
	unsigned n = 0;

	for (size_t i = 0; i < FR_MIN(h->n, (unsigned)HEARD_KEPT); i++) {
		const struct fr_cause *c = &h->causes[i];

		if (c->pid != pid || strcmp(c->reason, reason) != 0 || !strstr(c->detail, detail))
			continue;
		*ret = *c;
		n++;
	}
	return n;
}

/* Waits until the process PID sleeps in a system call. */
static inline void await_sleep(pid_t pid)
{
	char path[32], state = '\0';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	for (int ms = 0; state != 'S'; ms++) {
		assert_true(ms < HEARD_LIMIT_MS);
		if (ms)
			usleep(1000);
		f = fopen(path, "re");
		assert_non_null(f);
		if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
			state = '\0';
		fclose(f);
	}
}

/* A child process that waits until the test lets it run. It is killed when the test ends. */
struct child {
	pid_t pid;
	int go;
	int status;
	uint64_t ran_ns; /* the time from the start of child_end() to the end of the child */
};

/* Starts a child, which will call RUN and then exit with 0. Its name becomes NAME, unless NAME is NULL. */
static inline struct child child_new(const char *name, void (*run)(void *ctx), void *ctx)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGSYS};
	struct child c = {0};
	int fds[2];
	char byte;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	c.pid = fork();
	assert_true(c.pid >= 0);
	if (c.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[1]);
		if (name)
			prctl(PR_SET_NAME, name);
		/* cmocka and sanitizers have handlers for these signals. */
		for (size_t i = 0; i < FR_ARRAY_SIZE(signals); i++)
			signal(signals[i], SIG_DFL);
		setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
		if (read(fds[0], &byte, 1) == 1)
			run(ctx);
		_exit(0);
	}
	close(fds[0]);
	c.go = fds[1];
	await_sleep(c.pid);
	return c;
}

/* Lets the child run, unless LET_GO is false, and waits for its end. */
static inline void child_end(struct child *c, bool let_go)
{
	uint64_t began_ns = fr_monotonic_ns();

	if (let_go)
		assert_int_equal(write(c->go, "", 1), 1);
	close(c->go);
	while (waitpid(c->pid, &c->status, 0) < 0)
		assert_int_equal(errno, EINTR);
	c->ran_ns = fr_monotonic_ns() - began_ns;
}

/* Arms H for a copy of FILE. The subject is the path of the copy, followed by PLACE. Checks that the source
   is stale (has to be opened again) when the copy has been replaced, but not when the copy is missing. */
static inline void heard_check_stale(struct heard *h, const char *file, const char *place)
{
	const struct fr_source_class *class = fr_source_class_for_kind(h->config.kind);
	char dir[] = "/tmp/flightrec-test.XXXXXX", path[48], subject[96];
	bool same, replaced, missing;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/x", dir);
	snprintf(subject, sizeof(subject), "%s%s", path, place);
	h->config.subject = subject;
	assert_int_equal(unit_shell("cp %s %s.new && mv %s.new %s", file, path, path, path), 0);
	heard_arm(h);
	same = class->is_stale(h->source);
	assert_int_equal(unit_shell("cp %s %s.new && mv %s.new %s", file, path, path, path), 0);
	replaced = class->is_stale(h->source);
	unlink(path);
	missing = class->is_stale(h->source);
	heard_disarm(h);
	rmdir(dir);
	assert_false(same);
	assert_true(replaced);
	assert_false(missing);
}

static inline bool move_to_cgroup(const char *dir, pid_t pid)
{
	char path[512];
	_cleanup_close_ int fd = -1;

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd >= 0 && dprintf(fd, "%d", (int)pid) > 0;
}

/* Makes a cgroup of version 2, and writes its path into DIR. Skips the test if that is not possible. Returns
   the path below the root of cgroup2, which points into DIR. */
static inline const char *make_cgroup(char *dir, size_t size)
{
	const char *root = access("/sys/fs/cgroup/cgroup.procs", F_OK) == 0 ? "/sys/fs/cgroup"
									    : "/sys/fs/cgroup/unified";

	snprintf(dir, size, "%s/flightrec-test-%d", root, (int)getpid());
	if (mkdir(dir, 0755) < 0)
		unit_skip("no cgroup of version 2 can be made");
	return dir + strlen(root);
}

/* Moves this process into a new mount namespace, with tracefs at its usual place. Returns false if there is
   no tracefs. */
static inline bool mount_tracefs(void)
{
	bool own = unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;

	return access("/sys/kernel/tracing/events", R_OK) == 0 ||
	       (own && mount("nodev", "/sys/kernel/tracing", "tracefs", 0, NULL) == 0);
}
