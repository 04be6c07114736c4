# SPDX-License-Identifier: GPL-2.0-or-later

# Writes the files page.css, page.js and page.html of the folder FROM as arrays of char into the header TO. Arrays of numbers
# have no limit of length, as strings have in C.
set(text "/* Made by TextToC.cmake. */\n")
foreach(name css js html)
	file(READ ${FROM}/page.${name} bytes HEX)
	string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
	string(APPEND text "static const char page_${name}[] = {${bytes}0};\n")
endforeach()
file(WRITE ${TO} "${text}")
