/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Asks systemd for the job of the service of this process. A job is what systemd is about to do with a unit,
   for example a stop. */

enum fr_service_job {
	FR_SERVICE_NO_JOB, /* no stop or start was requested; if the service has ended, it ended itself */
	FR_SERVICE_STOP,
	FR_SERVICE_RESTART, /* a stop, then a start */
	FR_SERVICE_OTHER,
};

/* Asks PID 1 over the system bus. Any thread may call this function. It waits for a few seconds at most.
   Returns 0 with *RET; or a negative errno if there is no bus or no systemd, or if this process belongs to no
   unit. */
int fr_service_get_job(enum fr_service_job *ret);
