// SPDX-License-Identifier: GPL-2.0-or-later
/* The client against a real server, and against what is no server. */
#include "harness.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "control/client.h"
#include "control/interface.h"

#include <errno.h>
#include <grp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cmocka.h>

static int call(struct harness *h, const char *method, const char *parameters, cJSON **ret, struct fr_diag *d)
{
	struct fr_client *c;
	int r;

	assert_int_equal(fr_client_connect(h->path, &c, d), 0);
	r = fr_client_call(c, method, cJSON_Parse(parameters), HARNESS_LIMIT_NS, ret, d);
	fr_client_free(c);
	return r;
}

static void test_calls(void **state)
{
	struct harness *h = *state;
	cJSON *reply;
	const char *s = NULL;

	harness_serve(h);
	assert_int_equal(call(h, FR_INTERFACE ".Echo", "{\"s\":\"x\"}", &reply, NULL), 0);
	assert_int_equal(fr_param_string(reply, "s", &s), 1);
	assert_string_equal(s, "x");
	cJSON_Delete(reply);
	assert_int_equal(call(h, FR_INTERFACE ".Big", "{\"bytes\":3000000}", &reply, NULL), 0);
	assert_int_equal(fr_param_string(reply, "s", &s), 1);
	assert_int_equal(strlen(s), 3000000);
	cJSON_Delete(reply);
	assert_int_equal(call(h, FR_INTERFACE ".Echo", NULL, NULL, NULL), 0);
	harness_unserve(h);
}

static void test_errors(void **state)
{
	static const struct {
		int code, want;
	} codes[] = {{EPERM, -EPERM}, {EACCES, -EPERM}, {EAGAIN, -EAGAIN}, {ENOSPC, -ENOSPC},
		{EDQUOT, -ENOSPC}, {EIO, -EREMOTEIO}};
	struct harness *h = *state;

	harness_serve(h);
	for (size_t i = 0; i < FR_ARRAY_SIZE(codes); i++) {
		cJSON *reply = (cJSON *)state;
		struct fr_diag d = {0};
		char parameters[64];

		snprintf(parameters, sizeof(parameters), "{\"errno\":%d}", codes[i].code);
		assert_int_equal(call(h, FR_INTERFACE ".Fail", parameters, &reply, &d), codes[i].want);
		assert_string_equal(d.what, "a reason");
		assert_string_equal(d.hint, "a hint");
		assert_ptr_equal(reply, state); /* untouched */
	}
	assert_int_equal(call(h, FR_INTERFACE ".Nope", "{}", NULL, NULL), -EREMOTEIO);
	harness_unserve(h);
}

struct counted {
	double sum;
	unsigned n, enough;
};

static bool count_reply(void *ctx, const cJSON *parameters)
{
	struct counted *c = ctx;
	uint64_t i = 0;

	(void)fr_param_u64(parameters, "i", &i);
	c->sum += (double)i;
	return ++c->n < c->enough;
}

static int stream(struct harness *h, const char *method, struct counted *counted)
{
	struct fr_client *c;
	int r;

	assert_int_equal(fr_client_connect(h->path, &c, NULL), 0);
	r = fr_client_stream(c, method, NULL, count_reply, counted, NULL);
	fr_client_free(c);
	return r;
}

static void test_stream(void **state)
{
	struct counted all = {.enough = 100}, two = {.enough = 2}, none = {.enough = 100};
	struct harness *h = *state;

	harness_serve(h);
	assert_int_equal(stream(h, FR_INTERFACE ".Count", &all), 0);
	assert_int_equal(all.n, 4); /* the last one says that there are no more */
	assert_true(all.sum == 0 + 1 + 2);
	assert_int_equal(stream(h, FR_INTERFACE ".Count", &two), 0);
	assert_int_equal(two.n, 2);
	assert_int_equal(stream(h, FR_INTERFACE ".Nope", &none), -EREMOTEIO);
	assert_int_equal(none.n, 0);
	harness_unserve(h);
}

static void test_nobody_there(void **state)
{
	struct harness *h = *state;
	struct fr_client *c = NULL;
	struct fr_diag d = {0};
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd;

	assert_int_equal(fr_client_connect("/tmp/no/such/socket", &c, &d), -ENOENT);
	assert_string_equal(d.what, "flightrecd is not running (no socket at /tmp/no/such/socket)");
	assert_string_equal(d.hint, "run 'systemctl start flightrecd', or give the --socket of one that runs");
	h->server = fr_server_free(h->server);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	strcpy(sa.sun_path, h->path);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	close(fd);
	assert_int_equal(fr_client_connect(h->path, &c, NULL), -ECONNREFUSED);
	assert_null(c);
	unlink(h->path);
}

static void test_not_permitted(void **state)
{
	struct harness *h = *state;
	pid_t pid;
	int status;

	if (geteuid() != 0) {
		print_message("skipped: needs root, to become nobody\n");
		skip();
	}
	chmod(h->dir, 0755);
	pid = fork();
	if (pid == 0) {
		struct fr_client *c;
		struct fr_diag d = {0};

		if (setgroups(0, NULL) < 0 || setresgid(65534, 65534, 65534) < 0 ||
			setresuid(65534, 65534, 65534) < 0)
			_exit(3);
		_exit(fr_client_connect(h->path, &c, &d) == -EACCES && strstr(d.hint, "'daemon'") ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void count_tick(void *ctx)
{
	++*(int *)ctx;
}

static void test_time_out(void **state)
{
	struct harness *h = *state;
	struct fr_client *c;
	int ticks = 0;

	harness_serve(h);
	assert_int_equal(fr_client_connect(h->path, &c, NULL), 0);
	fr_client_on_wait(c, count_tick, &ticks);
	assert_int_equal(fr_client_call(c, FR_INTERFACE ".Hold", NULL, 1200 * FR_NSEC_PER_MSEC, NULL, NULL),
		-ETIMEDOUT);
	assert_true(ticks >= 1);
	fr_client_free(c);
	harness_unserve(h);
}

/* A peer that answers with BYTES, whatever it is asked, and closes. */
static int answer_of(const void *bytes, size_t len)
{
	char path[] = "/tmp/flightrec-client-XXXXXX";
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	struct fr_client *c;
	int r, fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), peer;

	close(mkstemp(path));
	unlink(path);
	strcpy(sa.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(fr_client_connect(path, &c, NULL), 0);
	peer = accept(fd, NULL, NULL);
	(void)!write(peer, bytes, len);
	close(peer);
	r = fr_client_call(c, "a.b", NULL, HARNESS_LIMIT_NS, NULL, NULL);
	fr_client_free(c);
	close(fd);
	unlink(path);
	return r;
}

static void test_bad_servers(void **state)
{
	assert_int_equal(answer_of("{}", 3), 0);
	assert_int_equal(answer_of("", 0), -ECONNRESET);
	assert_int_equal(answer_of("{\"parameters\":{}", 16), -ECONNRESET);
	assert_int_equal(answer_of("hello", 6), -EBADMSG);
	assert_int_equal(answer_of("{\"parameters\":1}", 17), -EBADMSG);
	assert_int_equal(answer_of("{\"error\":7}", 12), -EBADMSG);
	assert_int_equal(answer_of("{\"error\":\"x\"}", 14), -EREMOTEIO);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, harness_setup, harness_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_calls),
		TEST(test_errors),
		TEST(test_stream),
		TEST(test_nobody_there),
		TEST(test_not_permitted),
		TEST(test_time_out),
		cmocka_unit_test(test_bad_servers),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
