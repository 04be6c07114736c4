// SPDX-License-Identifier: GPL-2.0-or-later
/* The server against clients that are slow, many, rude, gone, or nobody. */
#include "harness.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "control/interface.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cmocka.h>

#define CALL(method, parameters) "{\"method\":\"" FR_INTERFACE "." method "\",\"parameters\":" parameters "}"

static const char *text(const cJSON *reply, const char *name)
{
	const cJSON *item =
		cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(reply, "parameters"), name);

	return cJSON_IsString(item) ? item->valuestring : "";
}

static const char *error_of(const cJSON *reply)
{
	const char *s = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(reply, "error"));

	return s ? s : "";
}

static void expect_error(struct harness *h, const char *call, const char *error)
{
	int fd = raw_connect(h);
	cJSON *reply;

	raw_send(fd, call, strlen(call) + 1);
	reply = raw_reply(h, fd);
	assert_non_null(reply);
	assert_string_equal(error_of(reply), error);
	cJSON_Delete(reply);
	close(fd);
}

static void expect_echo(struct harness *h, int fd)
{
	static const char call[] = CALL("Echo", "{\"s\":\"hello\"}");
	cJSON *reply;

	raw_send(fd, call, sizeof(call));
	reply = raw_reply(h, fd);
	assert_string_equal(text(reply, "s"), "hello");
	cJSON_Delete(reply);
}

static void test_pipelined_and_split(void **state)
{
	static const char calls[] = CALL("Echo", "{\"s\":\"a\"}") "\0" CALL(
		"Echo", "{\"s\":\"b\"}") "\0" CALL("Echo", "{\"s\":\"c\"}");
	struct harness *h = *state;
	int fd = raw_connect(h);

	for (size_t i = 0; i < sizeof(calls); i++) {
		raw_send(fd, calls + i, 1);
		if (i % 16 == 0)
			harness_pump(h, 0);
	}
	for (const char *want = "abc"; *want; want++) {
		cJSON *reply = raw_reply(h, fd);

		assert_int_equal(text(reply, "s")[0], *want);
		cJSON_Delete(reply);
	}
	close(fd);
}

static void test_more_and_oneway(void **state)
{
	static const char count[] = "{\"method\":\"" FR_INTERFACE ".Count\",\"more\":true}";
	static const char oneway[] = "{\"method\":\"" FR_INTERFACE ".Echo\",\"oneway\":true}";
	struct harness *h = *state;
	int fd = raw_connect(h);

	raw_send(fd, oneway, sizeof(oneway));
	raw_send(fd, count, sizeof(count));
	for (int i = 0; i < 4; i++) { /* the first reply is of Count already */
		cJSON *reply = raw_reply(h, fd);

		assert_non_null(reply);
		assert_int_equal(cJSON_IsTrue(cJSON_GetObjectItem(reply, "continues")), i < 3);
		cJSON_Delete(reply);
	}
	assert_int_equal(h->handled, 1);
	close(fd);
	/* A one-way call counts also where its sender does not wait to see it taken. */
	fd = raw_connect(h);
	raw_send(fd, oneway, sizeof(oneway));
	close(fd);
	harness_pump(h, 20);
	assert_int_equal(h->handled, 2);
}

static void test_introspection(void **state)
{
	static const char describe[] =
		"{\"method\":\"org.varlink.service.GetInterfaceDescription\",\"parameters\":{\"interface\":"
		"\"" FR_INTERFACE "\"}}";
	static const char info[] = "{\"method\":\"org.varlink.service.GetInfo\"}";
	struct harness *h = *state;
	int fd = raw_connect(h);
	cJSON *reply;

	raw_send(fd, info, sizeof(info));
	reply = raw_reply(h, fd);
	assert_string_equal(text(reply, "version"), FR_VERSION);
	cJSON_Delete(reply);
	raw_send(fd, describe, sizeof(describe));
	reply = raw_reply(h, fd);
	assert_string_equal(text(reply, "description"), fr_interface_description);
	cJSON_Delete(reply);
	close(fd);
	expect_error(h, "{\"method\":\"" FR_INTERFACE ".Nope\"}", "org.varlink.service.MethodNotFound");
	expect_error(h, "{\"method\":\"a.b.c\"}", "org.varlink.service.InterfaceNotFound");
	expect_error(h, "{\"method\":\"nodots\"}", "org.varlink.service.InterfaceNotFound");
	expect_error(h, "{\"method\":\"org.varlink.service.GetInterfaceDescription\"}",
		"org.varlink.service.InvalidParameter");
	expect_error(h, CALL("Strict", "{\"this\":1,\"those\":1}"), "org.varlink.service.InvalidParameter");
	expect_error(h, CALL("Strict", "{\"this\":1,\"that\":1}"), "");
	expect_error(h, CALL("Fail", "{\"errno\":28}"), FR_ERROR_NO_SPACE);
	expect_error(h, CALL("Fail", "{\"errno\":11}"), FR_ERROR_SUPPRESSED);
	expect_error(h, CALL("Fail", "{\"errno\":5}"), FR_ERROR_FAILED);
}

static void test_garbage_closes(void **state)
{
	static const char *const garbage[] = {
		"GET / HTTP/1.1\r\n", "{\"method\":1}", "[[[[[[[[[[[[[[[[[[[[[[", ""};
	struct harness *h = *state;

	for (size_t i = 0; i < FR_ARRAY_SIZE(garbage); i++) {
		int fd = raw_connect(h);
		cJSON *reply;

		raw_send(fd, garbage[i], strlen(garbage[i]) + 1);
		reply = raw_reply(h, fd);
		assert_string_equal(error_of(reply), FR_ERROR_FAILED);
		cJSON_Delete(reply);
		assert_true(raw_closed(h, fd));
		close(fd);
	}
	assert_int_equal(h->handled, 0);
	assert_int_equal(h->server->n_connections, 0);
}

static void test_oversize_closes(void **state)
{
	static char data[FR_WIRE_MAX_CALL + 4096];
	struct harness *h = *state;
	int fd = raw_connect(h);
	size_t sent = 0;

	memset(data, ' ', sizeof(data));
	while (sent < sizeof(data)) {
		ssize_t n = send(fd, data + sent, sizeof(data) - sent, MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN)
			break;
		sent += n > 0 ? (size_t)n : 0;
		harness_pump(h, 0);
	}
	assert_true(raw_closed(h, fd));
	close(fd);
}

static void test_many_connections(void **state)
{
	struct harness *h = *state;
	int fds[100];

	for (size_t i = 0; i < FR_ARRAY_SIZE(fds); i++) {
		fds[i] = raw_connect(h);
		harness_pump(h, 0);
	}
	assert_int_equal(h->server->n_connections, FR_SERVER_MAX_CONNECTIONS);
	for (size_t i = 0; i < FR_ARRAY_SIZE(fds); i++) {
		if (i < FR_SERVER_MAX_CONNECTIONS) {
			expect_echo(h, fds[i]);
		} else {
			cJSON *reply = raw_reply(h, fds[i]);

			assert_string_equal(error_of(reply), FR_ERROR_FAILED);
			cJSON_Delete(reply);
			assert_true(raw_closed(h, fds[i]));
		}
		close(fds[i]);
	}
	harness_pump(h, 20);
	assert_int_equal(h->server->n_connections, 0);
	fds[0] = raw_connect(h);
	expect_echo(h, fds[0]);
	close(fds[0]);
}

static void test_gone_while_pending(void **state)
{
	static const char call[] = CALL("Hold", "{}");
	struct harness *h = *state;
	int gone = raw_connect(h), stays = raw_connect(h);
	cJSON *reply;

	raw_send(gone, call, sizeof(call));
	raw_send(stays, call, sizeof(call));
	harness_pump(h, 20);
	assert_int_equal(h->n_held, 2);
	close(gone);
	harness_pump(h, 20);
	assert_int_equal(h->server->n_connections, 1);
	while (h->n_held)
		fr_call_reply(h->held[--h->n_held], NULL);
	reply = raw_reply(h, stays);
	assert_non_null(reply);
	cJSON_Delete(reply);
	expect_echo(h, stays);
	close(stays);
}

static void test_half_closed_gets_its_reply(void **state)
{
	static const char call[] = CALL("Hold", "{}");
	struct harness *h = *state;
	int fd = raw_connect(h);
	cJSON *reply;

	raw_send(fd, call, sizeof(call));
	shutdown(fd, SHUT_WR);
	harness_pump(h, 20);
	assert_int_equal(h->n_held, 1);
	h->n_held = 0;
	fr_call_reply(h->held[0], NULL);
	reply = raw_reply(h, fd);
	assert_non_null(reply);
	cJSON_Delete(reply);
	assert_true(raw_closed(h, fd));
	close(fd);
}

static void test_server_ends_under_calls(void **state)
{
	static const char call[] = CALL("Hold", "{}");
	struct harness *h = *state;
	int fd = raw_connect(h);
	cJSON *reply;

	raw_send(fd, call, sizeof(call));
	harness_pump(h, 20);
	assert_int_equal(h->n_held, 1);
	h->server = fr_server_free(h->server);
	reply = raw_reply(h, fd);
	assert_string_equal(error_of(reply), FR_ERROR_FAILED);
	cJSON_Delete(reply);
	close(fd); /* the call is ended by the teardown, after its server */
}

static void test_idle_is_closed(void **state)
{
	struct harness *h = *state;
	int silent, half, good;

	/* Its first call may take as long as it likes. */
	good = raw_connect(h);
	expect_echo(h, good);
	h->server->deadline_usec = 50000;
	silent = raw_connect(h);
	half = raw_connect(h);
	raw_send(half, "{\"method\":", 10);
	assert_true(raw_closed(h, silent));
	assert_true(raw_closed(h, half));
	harness_pump(h, 100);
	expect_echo(h, good); /* between calls one may rest */
	close(silent);
	close(half);
	close(good);
}

static void test_slow_reader_is_dropped(void **state)
{
	static const char call[] = CALL("Big", "{\"bytes\":2000000}");
	static const char part[] = CALL("Big", "{\"bytes\":600000}");
	struct harness *h = *state;
	int slow, fd;
	cJSON *reply;

	fd = raw_connect(h);
	expect_echo(h, fd);
	h->server->deadline_usec = 50000;
	slow = raw_connect(h);
	/* Ten calls, nothing read: one reply is made, the others wait. */
	for (int i = 0; i < 10; i++)
		raw_send(slow, call, sizeof(call));
	sd_event_run(h->event, 1000);
	sd_event_run(h->event, 1000);
	assert_int_equal(h->server->n_connections, 2);
	assert_true(LIST_FIRST(&h->server->connections)->out.len < 2100000);
	harness_pump(h, 200);
	assert_int_equal(h->server->n_connections, 1); /* fd alone */
	h->server->deadline_usec = HARNESS_LIMIT_NS / FR_NSEC_PER_USEC;
	raw_send(fd, part, sizeof(part));
	reply = raw_reply(h, fd); /* who reads gets all of it, in parts */
	assert_int_equal(strlen(text(reply, "s")), 600000);
	cJSON_Delete(reply);
	close(slow);
	close(fd);
}

static void test_rate_limit(void **state)
{
	static const char oneway[] = "{\"method\":\"" FR_INTERFACE ".Echo\",\"oneway\":true}";
	struct harness *h = *state;
	uint64_t start = fr_monotonic_ns(), took;
	double tokens, came;
	int fd = raw_connect(h), other = raw_connect(h);

	for (int i = 0; i < FR_SERVER_RATE + 60; i++) {
		raw_send(i % 2 ? fd : other, oneway, sizeof(oneway));
		harness_pump(h, 0);
	}
	while (h->handled < FR_SERVER_RATE + 60 && fr_monotonic_ns() - start < HARNESS_LIMIT_NS)
		sd_event_run(h->event, 10000);
	took = fr_monotonic_ns() - start;
	assert_int_equal(h->handled, FR_SERVER_RATE + 60);
	/* 60 past the burst at 200 a second are 300 ms. */
	assert_true(took >= 250 * FR_NSEC_PER_MSEC);
	close(other);
	close(fd);
	harness_pump(h, 0);
	/* Nor is there a new burst for who connects anew: all that he has came by the second. */
	fd = raw_connect(h);
	expect_echo(h, fd);
	tokens = LIST_FIRST(&h->server->users)->tokens;
	came = (double)(fr_monotonic_ns() - start) * FR_SERVER_RATE / FR_NSEC_PER_SEC;
	assert_true(tokens + 60 < came);
	close(fd);
}

static void test_second_server(void **state)
{
	struct harness *h = *state;
	struct fr_server_config config = h->server->config;
	struct fr_server *second = NULL;
	struct fr_diag d = {0};

	assert_int_equal(fr_server_new(h->event, &config, &second, &d), -EADDRINUSE);
	assert_null(second);
	assert_non_null(strstr(d.what, h->path));
	harness_pump(h, 20);
}

static void test_stale_socket(void **state)
{
	struct harness *h = *state;
	struct fr_server_config config = h->server->config;
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	struct fr_diag d = {0};
	struct stat st;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	h->server = fr_server_free(h->server);
	strcpy(sa.sun_path, h->path);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	close(fd); /* the name stays, nobody listens */
	assert_int_equal(fr_server_new(h->event, &config, &h->server, &d), 0);
	assert_int_equal(stat(h->path, &st), 0);
	assert_int_equal(st.st_mode & 0777, geteuid() == 0 ? 0660 : 0600);
	fd = raw_connect(h);
	expect_echo(h, fd);
	close(fd);
}

static void test_other_file_in_the_way(void **state)
{
	struct harness *h = *state;
	struct fr_server_config config = h->server->config;
	struct fr_diag d = {0};
	FILE *f;

	h->server = fr_server_free(h->server);
	f = fopen(h->path, "w");
	fclose(f);
	assert_int_equal(fr_server_new(h->event, &config, &h->server, &d), -EEXIST);
	assert_int_equal(access(h->path, F_OK), 0);
	unlink(h->path);
}

static void test_unknown_group(void **state)
{
	struct harness *h = *state;
	struct fr_server_config config = h->server->config;
	struct fr_diag d = {0};
	struct stat st;

	h->server = fr_server_free(h->server);
	config.group = "no-such-group-here";
	assert_int_equal(fr_server_new(h->event, &config, &h->server, &d), 0);
	assert_non_null(strstr(fr_server_notice(h->server), "no-such-group-here"));
	assert_int_equal(stat(h->path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

static void test_socket_activation(void **state)
{
	struct harness *h = *state;
	struct fr_server_config config = h->server->config;
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	struct fr_diag d = {0};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	h->server = fr_server_free(h->server);
	strcpy(sa.sun_path, h->path);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(fd, 8), 0);
	config.fd = fd;
	assert_int_equal(fr_server_new(h->event, &config, &h->server, &d), 0);
	fd = raw_connect(h);
	expect_echo(h, fd);
	close(fd);
	h->server = fr_server_free(h->server);
	assert_int_equal(access(h->path, F_OK), 0); /* its maker's to remove */
	unlink(h->path);
}

/* In a child as user UID with its GROUPS: CALL. Exit 0: done; 1: refused with the group's name; 2: refused as
 * root's; 4: turned away; 5: else. */
static pid_t call_as(const struct harness *h, uid_t uid, gid_t gid, gid_t extra, const char *call)
{
	pid_t pid = fork();
	char answer[4096] = "";
	int fd, code = 5;

	if (pid != 0)
		return pid;
	if (setgroups(1, &extra) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		_exit(3);
	fd = raw_connect(h);
	(void)!send(fd, call, strlen(call) + 1, MSG_NOSIGNAL);
	for (int tries = 0; tries < 6000 && read(fd, answer, sizeof(answer) - 1) < 0; tries++)
		usleep(10000);
	if (strstr(answer, FR_ERROR_PERMISSION))
		code = strstr(answer, "for root alone") ? 2 : strstr(answer, "'daemon'") ? 1 : 5;
	else if (strstr(answer, "too many connections"))
		code = 4;
	else if (strstr(answer, "\"parameters\""))
		code = 0;
	_exit(code);
}

static int wait_code(struct harness *h, pid_t pid)
{
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0)
		sd_event_run(h->event, 5000);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define NOBODY 65534

/* As an administrator may open it; else nobody could not even connect. The group "daemon"'s id. */
static gid_t open_to_all(struct harness *h)
{
	const struct group *g = getgrnam("daemon");

	if (geteuid() != 0 || !g) {
		print_message("skipped: needs root, to become nobody, and a group 'daemon'\n");
		skip();
	}
	chmod(h->path, 0666);
	chmod(h->dir, 0755);
	return g->gr_gid;
}

static void test_access(void **state)
{
	static const char look[] = CALL("Look", "{}"), change[] = CALL("Change", "{}"),
			  echo[] = CALL("Echo", "{}");
	struct harness *h = *state;
	const gid_t group = open_to_all(h);
	const struct {
		const char *call;
		uid_t uid;
		gid_t gid, extra;
		int code;
	} cases[] = {
		{echo, NOBODY, NOBODY, NOBODY, 0},
		{look, NOBODY, NOBODY, NOBODY, 1},
		{change, NOBODY, NOBODY, NOBODY, 1},
		{look, NOBODY, group, NOBODY, 0},
		{look, NOBODY, NOBODY, group, 0},
		{change, NOBODY, group, NOBODY, 2},
		{change, NOBODY, NOBODY, group, 2},
		{look, 0, 0, 0, 0},
		{change, 0, 0, 0, 0},
	};
	unsigned handled = 0;

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		assert_int_equal(
			wait_code(h, call_as(h, cases[i].uid, cases[i].gid, cases[i].extra, cases[i].call)),
			cases[i].code);
		handled += cases[i].code == 0;
		assert_int_equal(h->handled, handled);
	}
}

/* Holds N connections as UID until it is killed. All of them are made when this returns. */
static pid_t hold_connections(struct harness *h, uid_t uid, size_t n)
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
		_exit(3);
	for (size_t i = 0; i < n; i++)
		(void)raw_connect(h);
	close(made[1]);
	for (;;)
		pause();
}

/* One user has his part of the connections, all users leave some to root. */
static void test_connections_of_users(void **state)
{
	static const char echo[] = CALL("Echo", "{}");
	struct harness *h = *state;
	const size_t most = FR_SERVER_MAX_CONNECTIONS - FR_SERVER_KEPT_FOR_ROOT;
	pid_t holders[4];

	(void)open_to_all(h);
	for (size_t i = 0; i < FR_ARRAY_SIZE(holders); i++) {
		holders[i] = hold_connections(h, (uid_t)(60000 + i), 20);
		assert_int_equal(h->server->n_connections, FR_MIN((i + 1) * FR_SERVER_MAX_PER_USER, most));
		assert_int_equal(wait_code(h, call_as(h, (uid_t)(60000 + i), NOBODY, NOBODY, echo)), 4);
	}
	assert_int_equal(wait_code(h, call_as(h, 60100, NOBODY, NOBODY, echo)), 4);
	assert_int_equal(wait_code(h, call_as(h, 0, 0, 0, echo)), 0);
	for (size_t i = 0; i < FR_ARRAY_SIZE(holders); i++) {
		kill(holders[i], SIGKILL);
		assert_int_equal(waitpid(holders[i], NULL, 0), holders[i]);
	}
	harness_pump(h, 50);
	assert_int_equal(h->server->n_connections, 0);
	assert_int_equal(wait_code(h, call_as(h, 60100, NOBODY, NOBODY, echo)), 0);
}

/* Where no descriptor is left, who connects waits, and the loop does not spin. */
static void test_no_descriptor_left(void **state)
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
	assert_int_equal(h->server->n_connections, 0);
	assert_in_range(turns, 1, 12);
	expect_echo(h, fd);
	close(fd);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, harness_setup, harness_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_pipelined_and_split),
		TEST(test_more_and_oneway),
		TEST(test_introspection),
		TEST(test_garbage_closes),
		TEST(test_oversize_closes),
		TEST(test_many_connections),
		TEST(test_gone_while_pending),
		TEST(test_half_closed_gets_its_reply),
		TEST(test_server_ends_under_calls),
		TEST(test_idle_is_closed),
		TEST(test_slow_reader_is_dropped),
		TEST(test_rate_limit),
		TEST(test_second_server),
		TEST(test_stale_socket),
		TEST(test_other_file_in_the_way),
		TEST(test_unknown_group),
		TEST(test_socket_activation),
		TEST(test_access),
		TEST(test_connections_of_users),
		TEST(test_no_descriptor_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
