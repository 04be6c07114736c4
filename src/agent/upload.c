// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The steps of one upload. Each step looks whether it is done already, so that a try after a crash goes on:
 *
 *   open ─► hash ─► parts ─► head ─► .json .kallsyms .manifest.json
 */
#include "agent/agent_private.h"
#include "agent/parts.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define PART_BYTES (8u << 20)
#define BESIDE_MAX (64u << 20) /* bytes of a file beside the dump */
#define TELL_NS (2 * FR_NSEC_PER_SEC)

/* Returns the size of the parts: all but the last have it. */
static uint64_t part_bytes(uint64_t bytes)
{
	uint64_t part = PART_BYTES;

	while (bytes / part >= FR_STORE_PARTS_MAX)
		part *= 2;
	return part;
}

static int open_file(struct fr_upload *u, struct fr_diag *d)
{
	const struct fr_job *j = u->job;
	struct stat st;

	u->fd = open(j->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (u->fd < 0 && errno == ENOENT)
		return fr_fail(d, -ESTALE, NULL, "%s was removed before it was uploaded", j->path);
	if (u->fd < 0)
		return fr_fail_errno(d, -errno, "the user of the agent must be in the group of the recorder",
			"cannot open %s", j->path);
	if (fstat(u->fd, &st) < 0)
		return fr_fail_errno(d, -errno, NULL, "cannot look at %s", j->path);
	if (!S_ISREG(st.st_mode) || st.st_size <= 0)
		return fr_fail(d, -ESTALE, NULL, "%s is not a file with content any more", j->path);
	u->bytes = (uint64_t)st.st_size;
	return 0;
}

/* Forgets an upload to another place, after the configuration has changed. */
static int set_location(struct fr_upload *u, struct fr_diag *d)
{
	struct fr_agent *a = u->agent;
	struct fr_job *j = u->job;
	char location[sizeof(j->location)];
	int r;

	snprintf(location, sizeof(location), "%s %s", a->fleet->upload, a->fleet->upload_endpoint);
	if (!strcmp(location, j->location) && j->manifest.object[0])
		return 0;
	r = fr_fleet_key(&a->location, j->command.id, a->name, j->manifest.file, j->manifest.object,
		sizeof(j->manifest.object));
	if (r < 0)
		return fr_fail(d, -ESTALE,
			"choose a shorter prefix in Upload=", "the key of the object is too long");
	strcpy(j->location, location);
	j->upload[0] = '\0';
	return 0;
}

static int hash(struct fr_upload *u, struct fr_diag *d)
{
	struct fr_job *j = u->job;
	int r;

	if (j->manifest.sha256[0] && j->manifest.bytes == u->bytes)
		return 0;
	r = fr_store_sha256(u->fd, u->bytes, &u->agent->stop, j->manifest.sha256, d);
	if (r < 0) {
		j->manifest.sha256[0] = '\0';
		return r;
	}
	j->manifest.bytes = u->bytes;
	return 0;
}

/* Returns whether the store has the object whole: 1, 0, or a negative errno. */
static int is_stored(struct fr_upload *u, struct fr_diag *d)
{
	const struct fr_fleet_manifest *m = &u->job->manifest;
	struct fr_store_object o = {0};
	struct fr_diag here = {0};
	int r = fr_store_head(u->store, m->object, &o, &here);

	if (r == -ENOENT)
		return 0;
	if (r < 0) {
		if (d)
			*d = here;
		return r;
	}
	return o.bytes == u->bytes && !strcmp(o.sha256, m->sha256);
}

static void tell_progress(struct fr_upload *u, uint64_t bytes)
{
	struct fr_agent *a = u->agent;
	const uint64_t now_ns = fr_monotonic_ns();

	atomic_store(&a->upload_beat_ns, now_ns);
	if (now_ns - u->told_ns < TELL_NS)
		return;
	u->told_ns = now_ns;
	fr_lock(&a->lock);
	u->job->answer.uploaded_bytes = bytes;
	fr_job_answer(u->job, FR_FLEET_DONE, "");
	fr_cond_broadcast(&a->cond);
	fr_unlock(&a->lock);
}

/* Gets the parts that the store has. A store that cannot list them has those that this agent has sent. */
static int list_parts(
	struct fr_upload *u, struct fr_store_part *ret, size_t max, size_t *ret_n, struct fr_diag *d)
{
	const struct fr_job *j = u->job;
	struct fr_diag here = {0};
	char name[FR_TABLE_NAME_SIZE];
	int r = fr_store_upload_parts(u->store, j->manifest.object, j->upload, ret, max, ret_n, &here);

	if (r == -EOPNOTSUPP) {
		fr_table_parts_name(j, name);
		return fr_parts_read(u->agent->jobs_fd, name, j->upload, ret, max, ret_n);
	}
	if (r < 0 && r != -ENOENT)
		*d = here;
	return r;
}

/* Gets the id of the upload. RET gets the N parts that the store has. */
static int begin_parts(
	struct fr_upload *u, struct fr_store_part *ret, size_t max, size_t *ret_n, struct fr_diag *d)
{
	struct fr_job *j = u->job;
	int r = -ENOENT;

	*ret_n = 0;
	if (j->upload[0])
		r = list_parts(u, ret, max, ret_n, d);
	if (r != -ENOENT)
		return r;
	*ret_n = 0;
	j->upload[0] = '\0';
	r = fr_store_upload_begin(u->store, j->manifest.object, j->manifest.sha256, j->upload, d);
	if (r < 0) {
		j->upload[0] = '\0';
		return r;
	}
	(void)fr_table_save(u->agent, j);
	return 0;
}

/* Returns the part NUMBER of the N PARTS if the store has it with BYTES, or NULL. */
static const struct fr_store_part *find_part(
	const struct fr_store_part *parts, size_t n, unsigned number, uint64_t bytes)
{
	for (size_t i = 0; i < n; i++)
		if (parts[i].number == number && parts[i].bytes == bytes)
			return &parts[i];
	return NULL;
}

/* Sends a part, and notes that the store has it. */
static int send_part(struct fr_upload *u, struct fr_store_part *p, uint64_t at, struct fr_diag *d)
{
	const struct fr_job *j = u->job;
	char name[FR_TABLE_NAME_SIZE];
	int r = fr_store_upload_part(
		u->store, j->manifest.object, j->upload, p->number, u->fd, at, p->bytes, p->etag, d);

	if (r < 0)
		return r;
	fr_table_parts_name(j, name);
	(void)fr_parts_add(u->agent->jobs_fd, name, j->upload, p);
	return 0;
}

/* Sends the parts that the store lacks. HAVE are the N_HAVE parts that it has; ALL gets all parts. */
static int send_parts(struct fr_upload *u, const struct fr_store_part *have, size_t n_have,
	struct fr_store_part *all, size_t n, struct fr_diag *d)
{
	const uint64_t part = part_bytes(u->bytes);

	for (size_t i = 0; i < n; i++) {
		const uint64_t at = i * part, bytes = FR_MIN(part, u->bytes - at);
		const struct fr_store_part *there = find_part(have, n_have, (unsigned)i + 1, bytes);
		int r = 0;

		all[i] = (struct fr_store_part){.number = (unsigned)i + 1, .bytes = bytes};
		if (there)
			all[i] = *there;
		else
			r = send_part(u, &all[i], at, d);
		if (r < 0)
			return r;
		tell_progress(u, at + bytes);
	}
	return 0;
}

static int send_dump(struct fr_upload *u, struct fr_diag *d)
{
	const uint64_t part = part_bytes(u->bytes);
	const size_t n = (size_t)((u->bytes + part - 1) / part);
	_cleanup_free_ struct fr_store_part *have = calloc(FR_STORE_PARTS_MAX, sizeof(*have));
	_cleanup_free_ struct fr_store_part *all = calloc(n, sizeof(*all));
	size_t n_have;
	int r;

	if (!have || !all)
		return -ENOMEM;
	r = begin_parts(u, have, FR_STORE_PARTS_MAX, &n_have, d);
	if (r == 0)
		r = send_parts(u, have, n_have, all, n, d);
	if (r == 0)
		r = fr_store_upload_finish(u->store, u->job->manifest.object, u->job->upload, all, n, d);
	/* The next try makes a new upload, unless the end of this one was only not seen. */
	if (r == -ENOENT || r == -EINVAL || r == -EBADMSG) {
		u->job->upload[0] = '\0';
		(void)fr_table_save(u->agent, u->job);
	}
	return r;
}

/* Sends the file that has the name of the dump and SUFFIX. A file that is not there is no error. */
static int send_beside(struct fr_upload *u, const char *suffix, struct fr_diag *d)
{
	const struct fr_job *j = u->job;
	_cleanup_buf_ struct fr_buf text = {0};
	char path[sizeof(j->path) + 32], key[sizeof(j->manifest.object) + 32];
	int r;

	snprintf(path, sizeof(path), "%s%s", j->path, suffix);
	snprintf(key, sizeof(key), "%s%s", j->manifest.object, suffix);
	r = fr_read_file(AT_FDCWD, path, BESIDE_MAX, &text);
	if (r == -ENOENT || r == -EFBIG)
		return 0;
	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot read %s", path);
	return fr_store_put(u->store, key, text.data, text.len, NULL, d);
}

static int send_manifest(struct fr_upload *u, struct fr_diag *d)
{
	const struct fr_job *j = u->job;
	char key[sizeof(j->manifest.object) + 32];
	_cleanup_free_ char *text = fr_fleet_manifest_json(&j->manifest);

	if (!text)
		return -ENOMEM;
	snprintf(key, sizeof(key), "%s.manifest.json", j->manifest.object);
	return fr_store_put(u->store, key, text, strlen(text), NULL, d);
}

/* Makes sure that the store has the dump, whole. */
static int store_dump(struct fr_upload *u, struct fr_diag *d)
{
	struct fr_job *j = u->job;
	/* An upload that has begun may have ended without that the agent has seen it. */
	int r = j->upload[0] ? is_stored(u, d) : 0;

	if (r != 0)
		return r < 0 ? r : 0;
	r = send_dump(u, d);
	if (r < 0)
		return r;
	r = is_stored(u, d);
	if (r > 0)
		return 0;
	j->upload[0] = '\0';
	(void)fr_table_save(u->agent, j);
	return r < 0 ? r
		     : fr_fail(d, -EBADMSG, NULL, "the store has another content under %s than was sent",
			       j->manifest.object);
}

int fr_upload_run(struct fr_upload *u, struct fr_diag *d)
{
	int r = open_file(u, d);

	if (r == 0)
		r = hash(u, d);
	if (r < 0 || !u->agent->has_location)
		return r;
	r = set_location(u, d);
	if (r == 0)
		(void)fr_table_save(u->agent, u->job);
	if (r == 0)
		r = store_dump(u, d);
	if (r == 0)
		r = send_beside(u, ".json", d);
	if (r == 0)
		r = send_beside(u, ".kallsyms", d);
	return r == 0 ? send_manifest(u, d) : r;
}
