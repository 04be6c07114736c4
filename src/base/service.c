// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/service.h"
#include "base/clock.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>

#define MANAGER "org.freedesktop.systemd1"
#define MANAGER_PATH "/org/freedesktop/systemd1"
#define TIMEOUT_USEC (3 * FR_NSEC_PER_SEC / FR_NSEC_PER_USEC)

static enum fr_service_job parse_job(const char *type)
{
	if (strcmp(type, "stop") == 0)
		return FR_SERVICE_STOP;
	/* systemd turns a try-restart of an active unit into a restart. */
	return strcmp(type, "restart") == 0 ? FR_SERVICE_RESTART : FR_SERVICE_OTHER;
}

/* Reads the job of UNIT. systemd returns the id and the path of a job; an id of 0 means that there is no
   job. */
static int read_job(sd_bus *bus, const char *unit, enum fr_service_job *ret)
{
	sd_bus_message *reply = NULL;
	const char *path;
	char *type = NULL;
	uint32_t id;
	int r = sd_bus_get_property(bus, MANAGER, unit, MANAGER ".Unit", "Job", NULL, &reply, "(uo)");

	if (r >= 0)
		r = sd_bus_message_read(reply, "(uo)", &id, &path);
	if (r >= 0 && id != 0)
		r = sd_bus_get_property_string(bus, MANAGER, path, MANAGER ".Job", "JobType", NULL, &type);
	if (r >= 0)
		*ret = type ? parse_job(type) : FR_SERVICE_NO_JOB;
	free(type);
	sd_bus_message_unref(reply);
	return r < 0 ? r : 0;
}

static int read_own_job(sd_bus *bus, enum fr_service_job *ret)
{
	sd_bus_message *reply = NULL;
	const char *unit;
	/* PID 0 is the caller. */
	int r = sd_bus_call_method(bus, MANAGER, MANAGER_PATH, MANAGER ".Manager", "GetUnitByPID", NULL,
		&reply, "u", UINT32_C(0));

	if (r >= 0)
		r = sd_bus_message_read(reply, "o", &unit);
	if (r >= 0)
		r = read_job(bus, unit, ret);
	sd_bus_message_unref(reply);
	return r;
}

int fr_service_get_job(enum fr_service_job *ret)
{
	sd_bus *bus = NULL;
	int r = sd_bus_open_system(&bus);

	if (r >= 0)
		r = sd_bus_set_method_call_timeout(bus, TIMEOUT_USEC);
	if (r >= 0)
		r = read_own_job(bus, ret);
	sd_bus_close_unref(bus);
	return r;
}
