/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What systemd is about to do with the service that this process is of. */

enum fr_service_job {
	FR_SERVICE_NO_JOB, /* nothing is asked for: it ended by itself, or failed */
	FR_SERVICE_STOP,
	FR_SERVICE_RESTART, /* stops now, to be started again */
	FR_SERVICE_OTHER,
};

/* Asks PID 1 over the system bus, for at most some seconds. 0 with RET; a negative errno where there is no
   bus, no systemd, or this process is of no unit. Any thread, blocks. */
int fr_service_get_job(enum fr_service_job *ret);
