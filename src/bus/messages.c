// SPDX-License-Identifier: GPL-2.0-or-later
#include "bus/bus_private.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define WRONG_LAST_SEQUENCE 10071 /* JetStream's error */

void fr_bus_message_deinit(struct fr_bus_message *m)
{
	free(m->data);
	*m = (struct fr_bus_message){0};
}

static int check(const char *stream, const char *subject, struct fr_diag *d)
{
	if (!bus_name_is_valid(stream) || !bus_subject_is_valid(subject, false))
		return fr_fail(d, -EINVAL, NULL, "\"%.60s\" is no stream, or \"%.100s\" is no subject",
			stream, subject);
	return 0;
}

static int bad_acknowledgement(struct fr_bus *b, const char *subject, const char *why, struct fr_diag *d)
{
	atomic_fetch_add(&b->refused, 1);
	return fr_fail(d, -EBADMSG, "Look at the streams of the broker: nats stream ls.",
		"the acknowledgement for %s makes no sense: %s", subject, why);
}

static int check_acknowledgement(struct fr_bus *b, const cJSON *ack, const char *stream, const char *subject,
	uint64_t *ret_sequence, struct fr_diag *d)
{
	const char *from = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(ack, "stream"));
	const cJSON *error = cJSON_GetObjectItemCaseSensitive(ack, "error");
	bool ok = true;
	uint64_t sequence;

	if (!cJSON_IsObject(ack))
		return bad_acknowledgement(b, subject, "it is not a JSON object", d);
	if (error)
		return bus_api_error_code(error) == WRONG_LAST_SEQUENCE ? 1 : bus_fail_api(d, error, subject);
	if (!from || strcmp(from, stream) != 0)
		return bad_acknowledgement(b, subject, "it is from another stream", d);
	sequence = bus_json_u64(ack, "seq", &ok);
	if (!ok || !sequence)
		return bad_acknowledgement(b, subject, "it has no sequence", d);
	if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(ack, "duplicate")))
		return bad_acknowledgement(b, subject, "the message is a duplicate, but it has no id", d);
	atomic_fetch_add(&b->stored, 1);
	if (ret_sequence)
		*ret_sequence = sequence;
	return 0;
}

int fr_bus_store(struct fr_bus *b, const char *stream, const char *subject, const void *data, size_t n,
	uint64_t expected, uint64_t timeout_ns, uint64_t *ret_sequence, struct fr_diag *d)
{
	struct bus_header headers[3] = {{"Nats-Expected-Stream", stream}};
	natsMsg *reply = NULL;
	char number[24];
	cJSON *ack;
	int r = check(stream, subject, d), size;

	if (r < 0)
		return r;
	if (n > FR_BUS_MESSAGE_MAX)
		return fr_fail(d, -EMSGSIZE, NULL, "the message for %s has %zu bytes; the limit is %u",
			subject, n, FR_BUS_MESSAGE_MAX);
	if (expected != FR_BUS_ANY) {
		snprintf(number, sizeof(number), "%" PRIu64, expected);
		headers[1] = (struct bus_header){"Nats-Expected-Last-Subject-Sequence", number};
	}
	r = bus_request(b, subject, headers, data, n, timeout_ns, &reply, d);
	if (r < 0)
		return r;
	size = natsMsg_GetDataLength(reply);
	ack = size > 0 && size < (64 << 10) ? cJSON_ParseWithLength(natsMsg_GetData(reply), (size_t)size)
					    : NULL;
	r = check_acknowledgement(b, ack, stream, subject, ret_sequence, d);
	cJSON_Delete(ack);
	natsMsg_Destroy(reply);
	return r;
}

/* Only a reply of the stream to this question has these headers. */
static const char *check_origin(
	natsMsg *reply, const char *stream, const char *subject, struct fr_bus_message *ret)
{
	const char *of_stream = bus_header(reply, "Nats-Stream"),
		   *of_subject = bus_header(reply, "Nats-Subject");

	if (!of_stream || strcmp(of_stream, stream) != 0)
		return "it is from another stream";
	if (!of_subject || strcmp(of_subject, subject) != 0)
		return "it has another subject";
	if (bus_parse_number(bus_header(reply, "Nats-Sequence"), &ret->sequence) < 0 || !ret->sequence)
		return "it has no sequence";
	if (!bus_header(reply, "Nats-Time-Stamp") ||
		bus_parse_time(bus_header(reply, "Nats-Time-Stamp"), &ret->time_ns) < 0)
		return "it has no time";
	if (natsMsg_GetDataLength(reply) < 0 || natsMsg_GetDataLength(reply) > (int)FR_BUS_MESSAGE_MAX)
		return "it is too large";
	return NULL;
}

static int take_reply(struct fr_bus *b, natsMsg *reply, const char *stream, const char *subject,
	struct fr_bus_message *ret, struct fr_diag *d)
{
	struct fr_bus_message m = {0};
	const char *why;
	int status = bus_status(reply);

	if (status == 404)
		return 1;
	why = bus_header(reply, "Status") ? "it has an unknown status"
					  : check_origin(reply, stream, subject, &m);
	if (why) {
		atomic_fetch_add(&b->refused, 1);
		return fr_fail(d, -EBADMSG,
			"Another client may forge replies: look at who may publish to inboxes.",
			"the reply to the question for %s is not accepted: %s", subject, why);
	}
	m.n = (size_t)natsMsg_GetDataLength(reply);
	m.data = malloc(m.n + 1);
	if (!m.data)
		return fr_fail_errno(d, -ENOMEM, NULL, "cannot read %s", subject);
	if (m.n)
		memcpy(m.data, natsMsg_GetData(reply), m.n);
	m.data[m.n] = '\0';
	snprintf(m.subject, sizeof(m.subject), "%s", subject);
	*ret = m;
	return 0;
}

int fr_bus_last(struct fr_bus *b, const char *stream, const char *subject, uint64_t timeout_ns,
	struct fr_bus_message *ret, struct fr_diag *d)
{
	char question[FR_BUS_SUBJECT_SIZE + 96];
	natsMsg *reply = NULL;
	int r = check(stream, subject, d);

	if (r < 0)
		return r;
	snprintf(question, sizeof(question), "$JS.API.DIRECT.GET.%s.%s", stream, subject);
	r = bus_request(b, question, NULL, NULL, 0, timeout_ns, &reply, d);
	if (r == -ETIMEDOUT && d &&
		d->code == r) /* the broker does not answer a question for a stream that it has not */
		snprintf(d->hint, sizeof(d->hint),
			"Is there a stream %s? flightrecctl fleet setup makes it. Else look at the broker's "
			"log.",
			stream);
	if (r == 0)
		r = take_reply(b, reply, stream, subject, ret, d);
	natsMsg_Destroy(reply);
	return r;
}
