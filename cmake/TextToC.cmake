# SPDX-License-Identifier: GPL-2.0-or-later

# Writes the style, the program and the HTML of the page, which are in the folder FROM, as arrays of char into the header TO.
# Arrays of numbers have no limit of length, as strings have in C. The program is the files SCRIPTS, in this order. Of the style
# and the program, the header also has the SHA-256, for the policy of the page.
function(add name file)
	file(READ ${file} bytes HEX)
	string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
	file(SHA256 ${file} hash)
	string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hash "${hash}")
	file(APPEND ${TO} "static const char page_${name}[] = {${bytes}0};\n")
	if(NOT name STREQUAL html)
		file(APPEND ${TO} "static const unsigned char page_${name}_sha256[] = {${hash}};\n")
	endif()
endfunction()

file(WRITE ${TO} "/* Made by TextToC.cmake. */\n")
file(WRITE ${TO}.js "")
foreach(script ${SCRIPTS})
	file(READ ${FROM}/${script} text)
	file(APPEND ${TO}.js "${text}")
endforeach()
add(css ${FROM}/page.css)
add(js ${TO}.js)
add(html ${FROM}/page.html)
