// SPDX-License-Identifier: GPL-2.0-or-later

/* Tests of the server with clients that are slow, too many, malicious, not permitted, or disconnected. */

#include "harness.h"
#include "base/cleanup.h"
#include "control/server_private.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

FIXTURE(harness_setup, harness_teardown)

TEST(connection_past_the_limit_is_turned_away)
{
	struct harness *h = *state;
	int fds[100];

	for (size_t i = 0; i < FR_ARRAY_SIZE(fds); i++) {
		fds[i] = raw_connect(h);
		harness_pump(h, 0);
	}
	for (size_t i = 0; i < FR_ARRAY_SIZE(fds); i++) {
		if (i < FR_SERVER_MAX_CONNECTIONS) {
			assert_true(raw_works(h, fds[i]));
		} else {
			assert_true(reply_is(raw_reply(h, fds[i]), NULL, FR_ERROR_FAILED));
			assert_true(raw_is_closed(h, fds[i]));
		}
		close(fds[i]);
	}
	harness_pump(h, 20);
	assert_true(new_connection_works(h));
}

/* Connects N clients, and calls Wait for each. */
static void start_calls(struct harness *h, int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		fds[i] = raw_connect(h);
		raw_send(fds[i], CALL("Wait", "{}"), sizeof(CALL("Wait", "{}")));
	}
	harness_pump(h, 20);
	assert_int_equal(h->n_open, n);
}

TEST(handler_may_reply_after_its_client_has_gone)
{
	struct harness *h = *state;
	int fds[2];

	start_calls(h, fds, 2);
	close(fds[0]);
	harness_pump(h, 20);
	assert_int_equal(fr_call_is_abandoned(h->open[0]) + fr_call_is_abandoned(h->open[1]), 1);
	while (h->n_open)
		fr_call_reply(h->open[--h->n_open], NULL);
	assert_true(reply_is(raw_reply(h, fds[1]), NULL, ""));
	assert_true(raw_works(h, fds[1]));
	close(fds[1]);
}

TEST(client_that_sends_no_more_gets_its_reply)
{
	struct harness *h = *state;
	int fd;

	start_calls(h, &fd, 1);
	shutdown(fd, SHUT_WR);
	harness_pump(h, 20);
	h->n_open = 0;
	fr_call_reply(h->open[0], NULL);
	assert_true(reply_is(raw_reply(h, fd), NULL, ""));
	assert_true(raw_is_closed(h, fd));
	close(fd);
}

/* The teardown frees the server first, and then ends the call. */
TEST(open_call_fails_when_the_server_stops)
{
	struct harness *h = *state;
	int fd;

	start_calls(h, &fd, 1);
	h->server = fr_server_free(h->server);
	assert_true(reply_is(raw_reply(h, fd), NULL, FR_ERROR_FAILED));
	close(fd);
}

TEST(client_that_sends_no_whole_message_is_closed)
{
	struct harness *h = *state;
	int silent, half, good = raw_connect(h);

	assert_true(raw_works(h, good));
	h->server->deadline_usec = 50000;
	silent = raw_connect(h);
	half = raw_connect(h);
	raw_send(half, "{\"method\":", 10);
	assert_true(raw_is_closed(h, silent));
	assert_true(raw_is_closed(h, half));
	harness_pump(h, 100);
	assert_true(raw_works(h, good)); /* a client may wait for any time between its calls */
	close(silent);
	close(half);
	close(good);
}

TEST(client_that_does_not_read_is_closed)
{
	static const char call[] = CALL("Big", "{\"bytes\":2000000}");
	struct harness *h = *state;
	int slow, good = raw_connect(h);
	cJSON *reply;

	assert_true(raw_works(h, good));
	h->server->deadline_usec = 50000;
	slow = raw_connect(h);
	/* The server answers the first of ten calls. The others wait until the client reads. */
	for (int i = 0; i < 10; i++)
		raw_send(slow, call, sizeof(call));
	sd_event_run(h->event, 1000);
	sd_event_run(h->event, 1000);
	assert_true(LIST_FIRST(&h->server->connections)->out.len < 2100000);
	harness_pump(h, 200);
	assert_int_equal(h->server->n_connections, 1); /* the connection `good` */
	h->server->deadline_usec = HARNESS_LIMIT_NS / FR_NSEC_PER_USEC;
	reply = raw_call(h, good, CALL("Big", "{\"bytes\":600000}"));
	assert_int_equal(
		strlen(cJSON_GetObjectItem(cJSON_GetObjectItem(reply, "parameters"), "s")->valuestring),
		600000);
	cJSON_Delete(reply);
	close(slow);
	close(good);
}

TEST(messages_past_the_rate_wait)
{
	struct harness *h = *state;
	uint64_t start = fr_monotonic_ns();
	double tokens, came;
	int fd = raw_connect(h), other = raw_connect(h);

	for (int i = 0; i < FR_SERVER_RATE + 60; i++) {
		raw_send(i % 2 ? fd : other, ONEWAY, sizeof(ONEWAY));
		harness_pump(h, 0);
	}
	while (h->handled < FR_SERVER_RATE + 60 && fr_monotonic_ns() - start < HARNESS_LIMIT_NS)
		sd_event_run(h->event, 10000);
	assert_int_equal(h->handled, FR_SERVER_RATE + 60);
	/* The 60 messages after the burst take 300 ms, because the server handles 200 a second. */
	assert_true(fr_monotonic_ns() - start >= 250 * FR_NSEC_PER_MSEC);
	close(other);
	close(fd);
	harness_pump(h, 0);
	/* With a new connection a user does not get a new burst, but has only the tokens that came since. */
	assert_true(new_connection_works(h));
	tokens = LIST_FIRST(&h->server->users)->tokens;
	came = (double)(fr_monotonic_ns() - start) * FR_SERVER_RATE / FR_NSEC_PER_SEC;
	assert_true(tokens + 60 < came);
}

TEST(live_socket_is_not_replaced)
{
	struct harness *h = *state;
	struct fr_server *second = NULL;
	struct fr_diag d = {0};

	assert_int_equal(fr_server_new(h->event, &h->config, &second, &d), -EADDRINUSE);
	assert_null(second);
	assert_non_null(strstr(d.what, h->path));
	assert_true(new_connection_works(h));
}

TEST(stale_socket_is_replaced)
{
	struct harness *h = *state;
	struct stat st;

	h->server = fr_server_free(h->server);
	close(raw_bind(h->path)); /* the name remains in the directory */
	assert_int_equal(fr_server_new(h->event, &h->config, &h->server, NULL), 0);
	assert_int_equal(stat(h->path, &st), 0);
	assert_int_equal(st.st_mode & 0777, geteuid() == 0 ? 0660 : 0600);
	assert_true(new_connection_works(h));
}

TEST(other_file_is_not_replaced)
{
	struct harness *h = *state;

	h->server = fr_server_free(h->server);
	fclose(fopen(h->path, "w"));
	assert_int_equal(fr_server_new(h->event, &h->config, &h->server, NULL), -EEXIST);
	assert_int_equal(unlink(h->path), 0);
}

TEST(socket_of_unknown_group_is_private)
{
	struct harness *h = *state;
	struct stat st;

	h->server = fr_server_free(h->server);
	h->config.group = "no-such-group-here";
	assert_int_equal(fr_server_new(h->event, &h->config, &h->server, NULL), 0);
	assert_non_null(strstr(fr_server_notice(h->server), "no-such-group-here"));
	assert_int_equal(stat(h->path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

TEST(activated_socket_is_used_and_not_removed)
{
	struct harness *h = *state;

	h->server = fr_server_free(h->server);
	h->config.fd = raw_bind(h->path);
	assert_int_equal(listen(h->config.fd, 8), 0);
	assert_int_equal(fr_server_new(h->event, &h->config, &h->server, NULL), 0);
	assert_true(new_connection_works(h));
	h->server = fr_server_free(h->server);
	assert_int_equal(unlink(h->path), 0);
}

enum outcome { DONE, NOT_IN_GROUP, NOT_ROOT, TURNED_AWAY, OTHER };

/* Starts a child with these ids. The child sends CALL and exits with an enum outcome. Returns its pid. */
static pid_t start_call_as(const struct harness *h, uid_t uid, gid_t gid, gid_t extra, const char *call)
{
	pid_t pid = fork();
	char answer[4096] = "";
	int fd, code = OTHER;

	if (pid != 0)
		return pid;
	if (setgroups(1, &extra) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		_exit(OTHER);
	fd = raw_connect(h);
	(void)!send(fd, call, strlen(call) + 1, MSG_NOSIGNAL);
	for (int tries = 0; tries < 6000 && read(fd, answer, sizeof(answer) - 1) < 0; tries++)
		usleep(10000);
	if (strstr(answer, FR_ERROR_PERMISSION))
		code = strstr(answer, "for root alone") ? NOT_ROOT
		       : strstr(answer, "'daemon'")	? NOT_IN_GROUP
							: OTHER;
	else if (strstr(answer, "too many connections"))
		code = TURNED_AWAY;
	else if (strstr(answer, "\"parameters\""))
		code = DONE;
	_exit(code);
}

static int call_as(struct harness *h, uid_t uid, gid_t gid, gid_t extra, const char *call)
{
	pid_t pid = start_call_as(h, uid, gid, extra, call);
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0)
		sd_event_run(h->event, 5000);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define NOBODY 65534

/* Lets all users connect, as an administrator may do. Returns the id of the group "daemon". */
static gid_t open_to_all(struct harness *h)
{
	const struct group *g = getgrnam("daemon");

	if (geteuid() != 0 || !g)
		unit_skip("it needs root and a group 'daemon'");
	chmod(h->path, 0666);
	chmod(h->dir, 0755);
	return g ? g->gr_gid : 0;
}

TEST(user_may_call_what_its_groups_allow)
{
	static const char look[] = CALL("Look", "{}"), change[] = CALL("Change", "{}"),
			  echo[] = CALL("Echo", "{}");
	struct harness *h = *state;
	const gid_t group = open_to_all(h);
	const struct {
		const char *call;
		uid_t uid;
		gid_t gid, extra;
		int outcome;
	} cases[] = {
		{echo, NOBODY, NOBODY, NOBODY, DONE},
		{look, NOBODY, NOBODY, NOBODY, NOT_IN_GROUP},
		{change, NOBODY, NOBODY, NOBODY, NOT_IN_GROUP},
		{look, NOBODY, group, NOBODY, DONE},
		{look, NOBODY, NOBODY, group, DONE},
		{change, NOBODY, group, NOBODY, NOT_ROOT},
		{change, NOBODY, NOBODY, group, NOT_ROOT},
		{look, 0, 0, 0, DONE},
		{change, 0, 0, 0, DONE},
	};
	unsigned handled = 0;

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		assert_int_equal(call_as(h, cases[i].uid, cases[i].gid, cases[i].extra, cases[i].call),
			cases[i].outcome);
		handled += cases[i].outcome == DONE;
		assert_int_equal(h->handled, handled);
	}
}

/* Starts a child that makes N connections as the user UID, and keeps them until it is killed. Returns its
 * pid. */
static pid_t keep_connections(struct harness *h, uid_t uid, size_t n)
{
	int made[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe2(made, O_CLOEXEC | O_NONBLOCK), 0);
	pid = fork();
	if (pid != 0) {
		close(made[1]);
		while (read(made[0], &byte, 1) < 0)
			sd_event_run(h->event, 1000);
		close(made[0]);
		harness_pump(h, 0);
		return pid;
	}
	if (setresuid(uid, uid, uid) < 0)
		_exit(OTHER);
	for (size_t i = 0; i < n; i++)
		(void)raw_connect(h);
	close(made[1]);
	for (;;)
		pause();
}

TEST(users_share_the_connections_and_leave_some_to_root)
{
	static const char echo[] = CALL("Echo", "{}");
	struct harness *h = *state;
	const size_t most = FR_SERVER_MAX_CONNECTIONS - FR_SERVER_RESERVED_FOR_ROOT;
	pid_t keepers[4];

	(void)open_to_all(h);
	for (size_t i = 0; i < FR_ARRAY_SIZE(keepers); i++) {
		const uid_t uid = (uid_t)(60000 + i);

		keepers[i] = keep_connections(h, uid, 20);
		assert_int_equal(h->server->n_connections, FR_MIN((i + 1) * FR_SERVER_MAX_PER_USER, most));
		assert_int_equal(call_as(h, uid, NOBODY, NOBODY, echo), TURNED_AWAY);
	}
	assert_int_equal(call_as(h, 60100, NOBODY, NOBODY, echo), TURNED_AWAY);
	assert_int_equal(call_as(h, 0, 0, 0, echo), DONE);
	for (size_t i = 0; i < FR_ARRAY_SIZE(keepers); i++) {
		kill(keepers[i], SIGKILL);
		assert_int_equal(waitpid(keepers[i], NULL, 0), keepers[i]);
	}
	harness_pump(h, 50);
	assert_int_equal(call_as(h, 60100, NOBODY, NOBODY, echo), DONE);
}

TEST(client_waits_while_no_descriptor_is_left)
{
	struct harness *h = *state;
	struct rlimit was, none;
	unsigned turns = 0;
	uint64_t until;
	int fd = raw_connect(h);

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = (struct rlimit){(rlim_t)fd + 1, was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	until = fr_monotonic_ns() + 300 * FR_NSEC_PER_MSEC;
	do
		turns += sd_event_run(h->event, 10000) > 0;
	while (fr_monotonic_ns() < until);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_in_range(turns, 1, 12); /* few turns: the event loop does not use CPU time in a loop */
	assert_true(raw_works(h, fd));
	close(fd);
}
