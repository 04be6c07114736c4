/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The control socket's server on an sd-event loop: Varlink's wire format (https://varlink.org: NUL-terminated
 * JSON objects with `method`, `parameters`, `more`, `oneway`; replies with `parameters`, `error`,
 * `continues`), interface io.flightrec.Recorder, and org.varlink.service so that generic tools can introspect
 * it. Main thread only, never blocks.
 *
 * Bounded: message size, JSON depth, connections (of all, and of each user, with some that only root gets),
 * messages a second of each user, bytes waiting to be sent to a client, idle time before a first call.
 */

#include "base/diag.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

struct fr_server;
struct fr_call; /* one method call, until its last reply */

/* Who calls: SO_PEERCRED at accept. comm is read from /proc, empty where it is gone. */
struct fr_peer {
	pid_t pid;
	uid_t uid;
	gid_t gid;
	char comm[16];
};

/* Whom a method is for, whatever the socket's mode; each has what those before it have. */
enum fr_access {
	FR_ACCESS_ANYONE, /* who may connect: the group by default, more where the socket's mode was opened */
	FR_ACCESS_GROUP,  /* members of the group: reads, and makes dumps */
	FR_ACCESS_ROOT,	  /* root, and the server's own user: changes what the recorder does or has */
};

struct fr_method {
	const char *name; /* "io.flightrec.Recorder.Dump" */
	enum fr_access access;
	/* Runs in the loop. Replies now, or keeps CALL and replies later. PARAMETERS (never NULL) is borrowed
	 * for the call. */
	void (*handle)(void *ctx, struct fr_call *call, const cJSON *parameters);
	/* The parameters that it knows, ended by NULL: another one is refused, as it is a mistake that would
	 * change what is done. NULL: any. */
	const char *const *parameters;
};

struct fr_server_config {
	/* All pointers are borrowed for the server's life. */
	const char *path;  /* of the socket; made 0660 root:GROUP. A stale one is replaced, a live one is
			      -EADDRINUSE */
	int fd;		   /* > 0: listens already (socket activation); owned by the server from then on */
	const char *group; /* may be unknown to the system: then root alone, said in fr_server_notice() */
	const struct fr_method *methods;
	size_t n_methods;
	/* NULL, or asked before each method. True: it has replied, or keeps CALL and runs METHOD later. */
	bool (*gate)(
		void *ctx, struct fr_call *call, const struct fr_method *method, const cJSON *parameters);
	const char *description; /* the interface in Varlink's IDL, for GetInterfaceDescription */
	void *ctx;
};

int fr_server_new(
	sd_event *event, const struct fr_server_config *config, struct fr_server **ret, struct fr_diag *d);
/* Clients of calls that are open get FR_ERROR_FAILED; the calls themselves stay with who holds them, who ends
 * them as ever. */
struct fr_server *fr_server_free(struct fr_server *s);
const char *fr_server_notice(const struct fr_server *s); /* or NULL */

const struct fr_peer *fr_call_peer(const struct fr_call *c);
/* The client has gone: replies go nowhere, and the call should be ended. */
bool fr_call_is_abandoned(const struct fr_call *c);
/* Bytes of replies that the client has not taken yet. */
size_t fr_call_backlog(const struct fr_call *c);
bool fr_call_wants_more(const struct fr_call *c);
/* Each consumes PARAMETERS (may be NULL: {}). reply() and error() end the call and free it; reply_more() goes
   on. A client that has gone meanwhile is no error. */
void fr_call_reply(struct fr_call *c, cJSON *parameters);
void fr_call_reply_more(struct fr_call *c, cJSON *parameters);
void fr_call_error(struct fr_call *c, const char *error, cJSON *parameters);

/* Errors of io.flightrec.Recorder; parameters {"what": …, "hint": …}. The client makes exit codes of them. */
#define FR_ERROR_PERMISSION "io.flightrec.Recorder.PermissionDenied"
#define FR_ERROR_SUPPRESSED "io.flightrec.Recorder.Suppressed"
#define FR_ERROR_NO_SPACE "io.flightrec.Recorder.NoSpace"
#define FR_ERROR_FAILED "io.flightrec.Recorder.Failed"
/* D's code or CODE decides which: -EPERM/-EACCES, -EAGAIN, -ENOSPC/-EDQUOT, others. Ends the call. */
void fr_call_fail(struct fr_call *c, const struct fr_diag *d, int code);
/* "The parameter NAME is not what the interface says": org.varlink.service.InvalidParameter. Ends the call.
 */
void fr_call_invalid_parameter(struct fr_call *c, const char *name);
