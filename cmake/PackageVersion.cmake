# SPDX-License-Identifier: GPL-2.0-or-later
# Read by cpack: the agent and the recorder of one machine have the same version.
set(CPACK_DEBIAN_AGENT_PACKAGE_DEPENDS "flightrec (= ${CPACK_PACKAGE_VERSION}), passwd")
