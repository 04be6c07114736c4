/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* flightrec-merge --service, as ExecStopPost= of the recorder's unit: see systemd.exec(5), $SERVICE_RESULT.
 */

/* NULL: the service has stopped for good, and DIRECTORY is nobody's. Else why it is not to be merged, in
   words, static storage. Blocks for some seconds at most. */
const char *service_why_not(const char *directory);
