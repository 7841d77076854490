/* SPDX-License-Identifier: Apache-2.0 */
#include "mha_inspect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* tools/mha_heads.html, made into C by the build. */
extern const char mha__page_template[];

/* Where the data stand in the template, inside <script type="application/json">. */
static const char marker[] = "{{DATA}}";

/* JSON has '<', '>' and '&' in strings only, so as \u003c they mean the same and no token can close
 * the script element or open a comment. */
static int write_escaped(const char *json, FILE *file)
{
    for (; *json != '\0'; json++) {
        const unsigned char c = (unsigned char)*json;
        const int bad = c == '<' || c == '>' || c == '&' ? fprintf(file, "\\u%04x", (unsigned)c) < 0
                                                         : fputc(c, file) == EOF;
        if (bad) {
            return -1;
        }
    }
    return 0;
}

static int write_page(const char *json, FILE *file)
{
    const char *gap = strstr(mha__page_template, marker);
    const size_t head = (size_t)(gap - mha__page_template);
    if (fwrite(mha__page_template, 1, head, file) != head || write_escaped(json, file) != 0) {
        return -1;
    }
    return fputs(gap + strlen(marker), file) == EOF ? -1 : 0;
}

int mha__page_write(const struct mha__inspect_options *options,
                    const struct mha__inspect_result *result)
{
    json_t *object = mha__inspect_json(options, result, true);
    char *json = object != NULL ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(6)) : NULL;
    json_decref(object);
    if (json == NULL) {
        return mha__tool_fail("inspect", "out of memory while writing %s", options->html);
    }
    int status = MHA_TOOL_OK;
    FILE *file = fopen(options->html, "w");
    if (file == NULL) {
        status = mha__tool_fail("inspect", "%s: %s", options->html, strerror(errno));
    } else {
        const int failed = write_page(json, file);
        if (fclose(file) != 0 || failed != 0) {
            status = mha__tool_fail("inspect", "%s: cannot be written", options->html);
        }
    }
    free(json);
    return status;
}
