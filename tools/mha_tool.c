/* SPDX-License-Identifier: Apache-2.0 */
#include "mha_tool.h"

#include <stdarg.h>
#include <stdlib.h>

int mha__tool_fail(const char *command, const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "mha %s: ", command);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return MHA_TOOL_FAILED;
}

int mha__tool_usage(const char *command, const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "mha %s: ", command);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\nTry 'mha %s --help'.\n", command);
    return MHA_TOOL_USAGE;
}

int mha__tool_error(const char *command, int32_t status, const mha_error *err)
{
    char sentence[512];
    if (mha_error_message(err, sentence, sizeof sentence) > 0) {
        return mha__tool_fail(command, "%s", sentence);
    }
    return mha__tool_fail(command, "%s", mha_status_string(status));
}

char *mha__tool_text(int64_t (*get)(char *buf, int64_t cap))
{
    const int64_t length = get(NULL, 0);
    if (length < 0) {
        return NULL;
    }
    char *text = malloc((size_t)length + 1);
    if (text != NULL) {
        get(text, length + 1);
    }
    return text;
}

int mha__tool_print_json(const char *command, json_t *object)
{
    if (object == NULL) {
        return mha__tool_fail(command, "out of memory while writing JSON");
    }
    const int refused = json_dumpf(object, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    json_decref(object);
    if (refused != 0 || putchar('\n') == EOF || fflush(stdout) != 0) {
        return mha__tool_fail(command, "cannot write to the standard output");
    }
    return MHA_TOOL_OK;
}
