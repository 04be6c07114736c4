// SPDX-License-Identifier: GPL-2.0-or-later

/* Not a load: a command line over src/store, for the tests.
 *
 *   frtest-store -e ENDPOINT -b BUCKET -k KEYS [-p PROFILE] [-r REGION] [-c CA] [-l BYTES] [-s STALL_S] [-x
 * CANCEL_MS] VERB ARGUMENT...
 *
 * Several verbs can follow each other, with "," between them: they use one handle. Prints what the store
 * answered. An error is printed as "ENAME: what: hint" on standard error, with exit code 1.
 * FILE gets /proc/self/status at the end, which has the peak of memory. */

#include "base/cleanup.h"
#include "base/file.h"
#include "store/s3.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static atomic_bool cancel;
static uint64_t moved;

static void *cancel_later(void *ms)
{
	usleep((useconds_t)(uintptr_t)ms * 1000);
	atomic_store(&cancel, true);
	return NULL;
}

static void on_progress(void *ctx, uint64_t bytes)
{
	moved += bytes;
}

static uint64_t number(const char *text)
{
	return strtoull(text, NULL, 0);
}

static int open_file(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);

	if (fd < 0) {
		perror(path);
		exit(2);
	}
	return fd;
}

static int put(struct fr_store *s, char **a, struct fr_diag *d)
{
	return fr_store_put(s, a[0], a[1], strlen(a[1]), a[2][0] ? a[2] : NULL, d);
}

static int head(struct fr_store *s, char **a, struct fr_diag *d)
{
	struct fr_store_object o;
	int r = fr_store_head(s, a[0], &o, d);

	if (r == 0)
		printf("%llu %s %s\n", (unsigned long long)o.bytes, o.etag, o.sha256);
	return r;
}

static int get(struct fr_store *s, char **a, struct fr_diag *d) /* KEY FILE OFFSET MAX */
{
	_cleanup_close_ int fd = open_file(a[1], O_WRONLY | O_CREAT | O_APPEND);

	return fr_store_get(s, a[0], fd, number(a[2]), number(a[3]), d);
}

static int small(struct fr_store *s, char **a, struct fr_diag *d)
{
	_cleanup_free_ char *text = NULL;
	size_t n = 0;
	int r = fr_store_get_small(s, a[0], number(a[1]), &text, &n, d);

	if (r == 0)
		printf("%zu %s\n", n, text);
	return r;
}

static int do_remove(struct fr_store *s, char **a, struct fr_diag *d)
{
	return fr_store_remove(s, a[0], d);
}

static bool print_object(void *ctx, const char *key, uint64_t bytes)
{
	unsigned *left = ctx;

	printf("%llu %s\n", (unsigned long long)bytes, key);
	return --*left > 0;
}

static int list(struct fr_store *s, char **a, struct fr_diag *d) /* PREFIX MOST */
{
	unsigned left = (unsigned)number(a[1]);

	return fr_store_list(s, a[0], print_object, &left, d);
}

static int begin(struct fr_store *s, char **a, struct fr_diag *d)
{
	char upload[FR_STORE_UPLOAD_SIZE];
	int r = fr_store_upload_begin(s, a[0], a[1][0] ? a[1] : NULL, upload, d);

	if (r == 0)
		puts(upload);
	return r;
}

static int part(struct fr_store *s, char **a, struct fr_diag *d) /* KEY UPLOAD NUMBER FILE OFFSET BYTES */
{
	_cleanup_close_ int fd = open_file(a[3], O_RDONLY);
	char etag[FR_STORE_ETAG_SIZE];
	int r = fr_store_upload_part(
		s, a[0], a[1], (unsigned)number(a[2]), fd, number(a[4]), number(a[5]), etag, d);

	if (r == 0)
		printf("%s:%s\n", a[2], etag);
	return r;
}

static int parts(struct fr_store *s, char **a, struct fr_diag *d) /* KEY UPLOAD MOST */
{
	const size_t max = number(a[2]);
	_cleanup_free_ struct fr_store_part *list = calloc(max, sizeof(*list));
	size_t n = 0;
	int r = fr_store_upload_parts(s, a[0], a[1], list, max, &n, d);

	for (size_t i = 0; i < n; i++)
		printf("%u %llu %s\n", list[i].number, (unsigned long long)list[i].bytes, list[i].etag);
	return r;
}

static int finish(struct fr_store *s, char **a, struct fr_diag *d) /* KEY UPLOAD "NUMBER:ETAG NUMBER:ETAG" */
{
	struct fr_store_part list[64] = {0};
	char *rest = NULL;
	size_t n = 0;

	for (char *p = strtok_r(a[2], " ", &rest); p && n < FR_ARRAY_SIZE(list);
		p = strtok_r(NULL, " ", &rest))
		if (sscanf(p, "%u:%127s", &list[n].number, list[n].etag) == 2)
			n++;
	return fr_store_upload_finish(s, a[0], a[1], list, n, d);
}

static int do_abort(struct fr_store *s, char **a, struct fr_diag *d)
{
	return fr_store_upload_abort(s, a[0], a[1], d);
}

static int expire(struct fr_store *s, char **a, struct fr_diag *d)
{
	return fr_store_expire(s, a[0], (unsigned)number(a[1]), d);
}

static int sha256(struct fr_store *s, char **a, struct fr_diag *d) /* FILE BYTES */
{
	_cleanup_close_ int fd = open_file(a[0], O_RDONLY);
	char hash[65];
	int r = fr_store_sha256(fd, number(a[1]), &cancel, hash, d);

	if (r == 0)
		puts(hash);
	return r;
}

static int moved_bytes(struct fr_store *s, char **a, struct fr_diag *d)
{
	printf("%llu\n", (unsigned long long)moved);
	return 0;
}

/* Waits for a byte of standard input. */
static int wait_for_byte(struct fr_store *s, char **a, struct fr_diag *d)
{
	fflush(stdout);
	return getchar() == EOF ? -EPIPE : 0;
}

static const struct {
	const char *name;
	int n;
	int (*run)(struct fr_store *s, char **a, struct fr_diag *d);
} verbs[] = {{"put", 3, put}, {"head", 1, head}, {"get", 4, get}, {"small", 2, small},
	{"remove", 1, do_remove}, {"list", 2, list}, {"begin", 2, begin}, {"part", 6, part},
	{"parts", 3, parts}, {"finish", 3, finish}, {"abort", 2, do_abort}, {"expire", 2, expire},
	{"sha256", 2, sha256}, {"moved", 0, moved_bytes}, {"wait", 0, wait_for_byte}};

static int report(int r, const struct fr_diag *d)
{
	if (r == 0)
		return 0;
	fprintf(stderr, "%s: %s: %s\n", strerrorname_np(-r), d->what, d->hint);
	return 1;
}

static int run(struct fr_store *s, int argc, char **argv)
{
	while (argc > 0) {
		struct fr_diag d = {0};
		size_t i = 0;

		while (i < FR_ARRAY_SIZE(verbs) && strcmp(verbs[i].name, argv[0]) != 0)
			i++;
		if (i == FR_ARRAY_SIZE(verbs) || argc < 1 + verbs[i].n)
			return fprintf(stderr, "frtest-store: %s is no verb\n", argv[0]), 2;
		if (report(verbs[i].run(s, argv + 1, &d), &d))
			return 1;
		argc -= 1 + verbs[i].n;
		argv += 1 + verbs[i].n;
		if (argc > 0 && strcmp(argv[0], ",") == 0) {
			argc--;
			argv++;
		}
	}
	return 0;
}

struct options {
	struct fr_store_config config;
	const char *keys, *profile;
	uintptr_t cancel_ms;
	const char *status; /* -m */
};

static void take_option(struct options *o, int option)
{
	struct fr_store_config *c = &o->config;

	switch (option) {
	case 'e':
		c->endpoint = optarg;
		break;
	case 'b':
		c->bucket = optarg;
		break;
	case 'k':
		o->keys = optarg;
		break;
	case 'p':
		o->profile = optarg;
		break;
	case 'r':
		c->region = optarg;
		break;
	case 'c':
		c->ca = optarg;
		break;
	case 'l':
		c->limit_bytes = number(optarg);
		break;
	case 's':
		c->stall_s = (unsigned)number(optarg);
		break;
	case 'm':
		o->status = optarg;
		break;
	case 'x':
		o->cancel_ms = number(optarg);
		break;
	default:
		exit(2);
	}
}

static void save_status(const char *path)
{
	_cleanup_buf_ struct fr_buf text = {0};
	_cleanup_close_ int fd = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);

	if (fr_read_file(AT_FDCWD, "/proc/self/status", 1 << 16, &text) < 0 ||
		fr_write_all(fd, text.data, text.len) < 0)
		exit(2);
}

int main(int argc, char **argv)
{
	struct options o = {.config = {.cancel = &cancel, .on_progress = on_progress}};
	_cleanup_(fr_store_keys_deinit) struct fr_store_keys keys = {0};
	struct fr_store *s = NULL;
	struct fr_diag d = {0};
	pthread_t thread;
	int option, r;

	while ((option = getopt(argc, argv, "+e:b:k:p:r:c:l:s:x:m:")) != -1)
		take_option(&o, option);
	r = fr_store_keys_read(o.keys ? o.keys : "/dev/null", o.profile, &keys, &d);
	o.config.access_key = keys.access_key;
	o.config.secret_key = keys.secret_key;
	o.config.session_token = keys.session_token;
	if (r == 0)
		r = fr_store_new(&o.config, &s, &d);
	if (report(r, &d))
		return 1;
	if (o.cancel_ms && pthread_create(&thread, NULL, cancel_later, (void *)o.cancel_ms) == 0)
		pthread_detach(thread);
	r = run(s, argc - optind, argv + optind);
	fr_store_free(s);
	if (o.status)
		save_status(o.status);
	return r;
}
