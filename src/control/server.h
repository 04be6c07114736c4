/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The server of the control socket, on an sd-event loop. It speaks Varlink (https://varlink.org): calls are
 * JSON objects with "method", "parameters", "more" and "oneway". Replies have "parameters", "error" and
 * "continues". The server has the interface io.flightrec.Recorder, and the interface org.varlink.service for
 * generic tools. Only the main thread uses the server, and the server never blocks.
 *
 * The server has limits for the size and the depth of a message; for the connections of each user and of all
 * users (some connections are reserved for root); for the messages of each user in a second; for the unsent
 * bytes of a client; and for the time that a client has to send a message or to read a reply.
 */

#include "base/diag.h"
#include "control/interface.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

struct fr_server;
struct fr_call; /* one call of a method; exists until its last reply */

/* The process that called connect(), with its ids at that time. The member `comm` is read after connect(). It
   is empty if the process has exited before this read. */
struct fr_peer {
	pid_t pid;
	uid_t uid;
	gid_t gid;
	char comm[16];
};

/* The users that may call a method. The mode of the socket file decides in addition who can connect. */
enum fr_access {
	FR_ACCESS_ANYONE, /* all users that can connect */
	FR_ACCESS_GROUP,  /* members of the group, and root: methods that read or make dumps */
	FR_ACCESS_ROOT,	  /* root and the user of the server: methods that change something */
};

struct fr_method {
	const char *name; /* "io.flightrec.Recorder.Dump" */
	enum fr_access access;
	/* Handles a call, on the loop. It replies now, or it keeps CALL and replies later. PARAMETERS is
	   never NULL, and is borrowed until the handler returns. */
	void (*handle)(void *ctx, struct fr_call *call, const cJSON *parameters);
	/* The known parameters: see fr_param_check(). The server refuses a call with other parameters. NULL:
	   the server does not check the parameters. */
	const struct fr_param *parameters;
};

struct fr_server_config {
	/* All pointers are borrowed while the server lives. */
	const char *path; /* the socket, which is created with mode 0660 for GROUP */
	int fd;		  /* > 0: a listening socket, which the server takes over; `path` is not used */
	/* If this group does not exist, only root and the user of the server have access, and
	   fr_server_notice() returns a text about it. */
	const char *group;
	/* Tables of methods. NULL ends the array, and a method without a name ends each table. */
	const struct fr_method *const *methods;
	/* NULL, or a function that is called before each of `methods`. If it returns true, it has taken over
	   CALL and replies now or later, and the method is not called. */
	bool (*gate)(
		void *ctx, struct fr_call *call, const struct fr_method *method, const cJSON *parameters);
	const char *description; /* the text for GetInterfaceDescription */
	void *ctx;
};

/* Takes the control socket that the service manager has opened: sd_listen_fds_with_names(3). Returns the
   descriptor with FileDescriptorName=control, which the caller owns; 0 if there is no such descriptor; or a
   negative errno, with a message in D: -EINVAL if the descriptor is not a listening socket. Call this
   function once. */
int fr_activated_control(struct fr_diag *d);
/* Makes the server. Returns 0; or a negative errno, with a message in D: -EADDRINUSE if another program
   listens at the path, -EEXIST if the file at the path is not a socket. */
int fr_server_new(
	sd_event *event, const struct fr_server_config *config, struct fr_server **ret, struct fr_diag *d);
/* Frees the server. Clients that wait for a reply get FR_ERROR_FAILED. The calls still belong to the
   handlers, and each handler still has to end its call. S may be NULL. Returns NULL. */
struct fr_server *fr_server_free(struct fr_server *s);
/* Returns a notice about the socket for an administrator, or NULL. S owns the text. */
const char *fr_server_notice(const struct fr_server *s);

const struct fr_peer *fr_call_peer(const struct fr_call *c);
/* Returns whether the client has disconnected. If it has, replies have no effect, and the handler should end
   the call. */
bool fr_call_is_abandoned(const struct fr_call *c);
/* Returns how many bytes of replies are not sent yet. */
size_t fr_call_backlog(const struct fr_call *c);
/* Returns whether the client called with "more". */
bool fr_call_wants_more(const struct fr_call *c);
/* fr_call_reply() and fr_call_reply_more() send a reply, if the client is still connected. They consume
   PARAMETERS; NULL means {}. fr_call_reply() also ends the call and frees it. After fr_call_reply_more(), the
   call goes on, and another reply has to follow. */
void fr_call_reply(struct fr_call *c, cJSON *parameters);
void fr_call_reply_more(struct fr_call *c, cJSON *parameters);

/* The errors of io.flightrec.Recorder. Their parameters are {"what": …, "hint": …}. */
#define FR_ERROR_PERMISSION "io.flightrec.Recorder.PermissionDenied"
#define FR_ERROR_SUPPRESSED "io.flightrec.Recorder.Suppressed"
#define FR_ERROR_NO_SPACE "io.flightrec.Recorder.NoSpace"
#define FR_ERROR_FAILED "io.flightrec.Recorder.Failed"
/* Ends and frees the call, with the error for CODE: PERMISSION for -EPERM and -EACCES, SUPPRESSED for
   -EAGAIN, NO_SPACE for -ENOSPC and -EDQUOT, otherwise FAILED (each with FR_ERROR_ before the name). The text
   comes from D, or is strerror(-CODE) if D is NULL or empty. */
void fr_call_fail(struct fr_call *c, const struct fr_diag *d, int code);
/* Ends and frees the call, with the error org.varlink.service.InvalidParameter for the parameter NAME. */
void fr_call_invalid_parameter(struct fr_call *c, const char *name);
