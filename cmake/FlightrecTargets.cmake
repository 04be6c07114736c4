# SPDX-License-Identifier: GPL-2.0-or-later

# fr_library(NAME SOURCES a.c b.c LINK other ...): builds one folder of src/ as the static library fr_NAME.
# Headers of a folder are included as "NAME/header.h". Only targets that link the library find them, because each library
# has an include root of its own. This root has only one entry: NAME, a symbolic link to the folder.
function(fr_library name)
	cmake_parse_arguments(A "" "" "SOURCES;LINK" ${ARGN})
	add_library(fr_${name} STATIC ${A_SOURCES})
	set(root ${CMAKE_BINARY_DIR}/include-roots/${name})
	file(MAKE_DIRECTORY ${root})
	file(CREATE_LINK ${CMAKE_SOURCE_DIR}/src/${name} ${root}/${name} SYMBOLIC)
	target_include_directories(fr_${name} PUBLIC ${root} ${CMAKE_SOURCE_DIR}/include)
	target_link_libraries(fr_${name} PUBLIC ${A_LINK})
endfunction()

# fr_unit_test(NAME SOURCES t.c LINK fr_x ...): builds a cmocka program, and adds it to ctest with the label "unit".
# The main() of the program is in the target "unit" (tests/unit/unit.c). It runs the tests of the sources.
function(fr_unit_test name)
	cmake_parse_arguments(A "" "" "SOURCES;LINK" ${ARGN})
	add_executable(test-${name} ${A_SOURCES})
	target_link_libraries(test-${name} PRIVATE ${A_LINK} unit)
	add_test(NAME unit/${name} COMMAND test-${name})
	set_tests_properties(unit/${name} PROPERTIES LABELS unit TIMEOUT 900)
endfunction()
