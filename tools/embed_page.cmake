# SPDX-License-Identifier: Apache-2.0
# Puts style and script into the page and the page into a C array:
#   cmake -DSOURCE=tools -DOUT=mha_page_template.c -P embed_page.cmake
file(READ "${SOURCE}/mha_page.html" page)
file(READ "${SOURCE}/mha_page.css" style)
file(READ "${SOURCE}/mha_page.js" script)
string(REPLACE "{{STYLE}}" "${style}" page "${page}")
string(REPLACE "{{SCRIPT}}" "${script}" page "${page}")
file(WRITE "${OUT}.html" "${page}")
file(READ "${OUT}.html" bytes HEX)
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${bytes}")
file(WRITE "${OUT}" "/* Made by embed_page.cmake from mha_page.html, .css and .js. */
extern const char mha__page_template[];
const char mha__page_template[] = {
${bytes}
'\\0'};
")
