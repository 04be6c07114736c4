# SPDX-License-Identifier: GPL-2.0-or-later
# Makes the two packages flightrec and flightrec-agent: `./dev package`, or cpack in a build with
# CMAKE_INSTALL_PREFIX=/usr. Each package is a component of the installation (cmake/Install.cmake).

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME flightrec)
set(CPACK_PACKAGE_CONTACT "flightrec developers <flightrec@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "") # each package has its own
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL recorder agent)
set(CPACK_STRIP_FILES ON)
# The paths of /etc and of the units are absolute, so cpack must install by DESTDIR instead of a prefix.
set(CPACK_SET_DESTDIR ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# cpack can get another version on its command line, so the dependency between the packages is made when it runs.
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_SOURCE_DIR}/cmake/PackageVersion.cmake)

set(CPACK_DEBIAN_RECORDER_PACKAGE_NAME flightrec)
set(CPACK_COMPONENT_RECORDER_DESCRIPTION "flight recorder of performance events
Samples a production machine with perf events and keeps the last minutes in a bounded ring in memory.
When something went wrong, what led up to it is written to a file that perf report and perf script read,
while recording goes on.")
set(CPACK_DEBIAN_RECORDER_PACKAGE_DEPENDS "systemd (>= 252), passwd, procps")
# At a stop, flightrec-merge asks systemd over the bus whether the recorder is about to be started again.
set(CPACK_DEBIAN_RECORDER_PACKAGE_RECOMMENDS "dbus, linux-perf")
set(CPACK_DEBIAN_RECORDER_PACKAGE_SUGGESTS flightrec-agent)

set(CPACK_DEBIAN_AGENT_PACKAGE_NAME flightrec-agent)
set(CPACK_COMPONENT_AGENT_DESCRIPTION "flight recorder of performance events: the fleet
Asks the flight recorders of many machines for the same seconds, with one command. The agent gets the command
from a NATS server, asks the recorder of its machine, and uploads the dump to an S3 store. The program
flightrec-fleet gives the commands, and gets the dumps.")

foreach(part RECORDER:deb AGENT:deb/agent)
	string(REGEX MATCH "^(.*):(.*)$" part ${part})
	set(scripts ${CMAKE_SOURCE_DIR}/cmake/${CMAKE_MATCH_2})
	set(CPACK_DEBIAN_${CMAKE_MATCH_1}_PACKAGE_CONTROL_EXTRA ${scripts}/postinst ${scripts}/prerm ${scripts}/postrm)
endforeach()
list(APPEND CPACK_DEBIAN_RECORDER_PACKAGE_CONTROL_EXTRA ${CMAKE_SOURCE_DIR}/cmake/deb/conffiles)
install(FILES cmake/deb/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES cmake/deb/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/flightrec-agent COMPONENT agent)
include(CPack)
