# SPDX-License-Identifier: GPL-2.0-or-later
# Makes the .deb: `./dev package`, or cpack in a build with CMAKE_INSTALL_PREFIX=/usr.

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME flightrec)
set(CPACK_PACKAGE_CONTACT "flightrec developers <flightrec@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "flight recorder of performance events")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
	"Samples a production machine with perf events and keeps the last minutes in a bounded ring in memory.
When something went wrong, what led up to it is written to a file that perf report and perf script read,
while recording goes on.")
set(CPACK_STRIP_FILES ON)
# The paths of /etc and of the units are absolute, so cpack must install by DESTDIR instead of a prefix.
set(CPACK_SET_DESTDIR ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "systemd (>= 252), passwd, procps")
# At a stop, flightrec-merge asks systemd over the bus whether the recorder is about to be started again.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "dbus, linux-perf")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
	${CMAKE_SOURCE_DIR}/cmake/deb/conffiles
	${CMAKE_SOURCE_DIR}/cmake/deb/postinst
	${CMAKE_SOURCE_DIR}/cmake/deb/prerm
	${CMAKE_SOURCE_DIR}/cmake/deb/postrm)
install(FILES cmake/deb/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})
include(CPack)
