# SPDX-License-Identifier: GPL-2.0-or-later
# Installs everything except the programs, which their own folders install.
#
# systemd reads lib/systemd/system, sysusers.d and tmpfiles.d under both /usr and /usr/local.
# The programs read their configuration from /etc with any prefix.
#
# What belongs to the package flightrec-agent has the component "agent". Everything else has the component "recorder",
# which is the default.

if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
	pkg_get_variable(SYSTEMD_SYSTEM_UNIT_DIR systemd systemdsystemunitdir)
endif()
if(NOT SYSTEMD_SYSTEM_UNIT_DIR)
	set(SYSTEMD_SYSTEM_UNIT_DIR lib/systemd/system)
endif()

configure_file(units/flightrecd.service.in units/flightrecd.service @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/units/flightrecd.service units/flightrecd.socket
	DESTINATION ${SYSTEMD_SYSTEM_UNIT_DIR})
configure_file(units/flightrec-agent.service.in units/flightrec-agent.service @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/units/flightrec-agent.service DESTINATION ${SYSTEMD_SYSTEM_UNIT_DIR} COMPONENT agent)
install(FILES units/flightrec-agent.sysusers DESTINATION lib/sysusers.d RENAME flightrec-agent.conf COMPONENT agent)
install(FILES units/flightrec.sysusers DESTINATION lib/sysusers.d RENAME flightrec.conf)
install(FILES units/flightrec.tmpfiles DESTINATION lib/tmpfiles.d RENAME flightrec.conf)
# The name of the file sorts early, so that a file of an administrator overrides its value.
install(FILES units/flightrec.sysctl DESTINATION lib/sysctl.d RENAME 10-flightrec.conf)
install(FILES conf/flightrec.catalog DESTINATION lib/systemd/catalog)
# Does not overwrite an existing file: it may have changes of an administrator. In the package, the file is a conffile.
install(CODE "
	if(NOT EXISTS \"\$ENV{DESTDIR}/etc/flightrec/flightrecd.conf\")
		file(INSTALL DESTINATION /etc/flightrec TYPE FILE FILES \"${CMAKE_SOURCE_DIR}/conf/flightrecd.conf\")
	endif()")
install(DIRECTORY DESTINATION /etc/flightrec/flightrecd.conf.d)
# The profiles that `flightrecctl profile` offers.
install(DIRECTORY conf/profiles DESTINATION lib/flightrec)

# Installs the files to a destination: those of the agent and of flightrec-fleet as the component "agent".
function(install_by_program destination)
	foreach(file ${ARGN})
		set(component recorder)
		if(file MATCHES "/_?flightrec-(agent|fleet)[^/]*$")
			set(component agent)
		endif()
		install(FILES ${file} DESTINATION ${destination} COMPONENT ${component})
	endforeach()
endfunction()

foreach(section 1 5 7 8)
	file(GLOB pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/man/*.${section})
	install_by_program(${CMAKE_INSTALL_MANDIR}/man${section} ${pages})
endforeach()
file(GLOB bash CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/conf/completion/bash/*)
install_by_program(${CMAKE_INSTALL_DATADIR}/bash-completion/completions ${bash})
file(GLOB zsh CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/conf/completion/zsh/_*)
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
	set(zsh_dir ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
else()
	set(zsh_dir ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
endif()
install_by_program(${zsh_dir} ${zsh})
install(DIRECTORY include/flightrec DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
file(GLOB documents CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/*.md)
install(FILES README.md CHANGELOG.md ${documents} DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/adr docs/design docs/examples docs/images DESTINATION ${CMAKE_INSTALL_DOCDIR}
	PATTERN nats-server.conf EXCLUDE)
install(FILES docs/examples/nats-server.conf DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/flightrec-agent/examples
	COMPONENT agent OPTIONAL)
