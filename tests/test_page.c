/* SPDX-License-Identifier: Apache-2.0 */
#include "tool_run.h"

#include <mha/io.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATA MHA_DATA_PATH "/keys_layer5"

/* The page of the demo layer with the tokens in a file. To be freed. */
static char *page_of(const char *tokens)
{
    const char *path = tool_run_file("heads.html");
    assert_int_equal(tool_run("inspect", "--weights", MHA_DATA_PATH "/minilm_layer5.safetensors",
                              "--scheme", "bert", "--prefix", "encoder.layer.5.attention.",
                              "--heads", "12", "--input", DATA "_input.npy", "--tokens", tokens,
                              "--html", path, NULL),
                     0);
    return tool_run_read(path);
}

static json_t *data_of(const char *page)
{
    static const char open[] = "<script type=\"application/json\" id=\"data\">";
    const char *begin = strstr(page, open);
    assert_non_null(begin);
    begin += strlen(open);
    const char *end = strstr(begin, "</script>");
    assert_non_null(end);
    json_t *data = json_loadb(begin, (size_t)(end - begin), 0, NULL);
    assert_non_null(data);
    return data;
}

static int occurrences(const char *text, const char *part)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part)) {
        count++;
    }
    return count;
}

static void page_holds_every_weight_of_every_head(void **state)
{
    (void)state;
    char *page = page_of(MHA_DATA_PATH "/keys_tokens.txt");
    json_t *data = data_of(page);
    mha_io_npy *maps = NULL;
    assert_int_equal(mha_io_npy_read(DATA "_weights.npy", &maps, NULL), MHA_OK);
    const float *stored = mha_io_npy_data(maps);
    const json_t *heads = json_object_get(data, "heads");
    assert_int_equal(json_array_size(heads), 12);
    for (size_t h = 0; h < 12; h++) {
        const json_t *map = json_object_get(json_array_get(heads, h), "map");
        assert_int_equal(json_array_size(map), 17 * 17);
        for (size_t i = 0; i < 17 * 17; i++) {
            /* Half a unit of rounding, and the error of the forward. */
            const double shown = (double)json_integer_value(json_array_get(map, i)) / 1e4;
            assert_true(fabs(shown - (double)stored[h * 17 * 17 + i]) <= 0.5e-4 + 2e-6);
        }
    }
    mha_io_npy_destroy(maps);
    json_decref(data);
    free(page);
}

static void page_needs_nothing_but_itself(void **state)
{
    (void)state;
    char *page = page_of(MHA_DATA_PATH "/keys_tokens.txt");
    static const char *const reaching_out[] = {
        "http:", "https:", "src=",           "<link",   "@import",
        "url(",  "fetch(", "XMLHttpRequest", "import(",
    };
    for (size_t i = 0; i < sizeof reaching_out / sizeof reaching_out[0]; i++) {
        assert_null(strstr(page, reaching_out[i]));
    }
    assert_null(strstr(page, "{{"));
    assert_non_null(strstr(page, "prefers-color-scheme: dark"));
    assert_non_null(strstr(page, "<html lang=\"en\">"));
    assert_int_equal(occurrences(page, "</html>"), 1);
    free(page);
}

static void page_tokens_cannot_become_markup(void **state)
{
    (void)state;
    static const char *const evil[17] = {
        "</script>",
        "<script>alert(1)</script>",
        "<!--",
        "-->",
        "<img",
        "&amp;",
        "\"",
        "'",
        "\\",
        "\\u003c",
        "{{DATA}}",
        "]]>",
        "\xe2\x80\xa8",
        "na\xc3\xafve",
        "\xe6\x97\xa5\xe6\x9c\xac",
        "%s%n",
        "`${1}`",
    };
    char text[512] = "";
    for (int i = 0; i < 17; i++) {
        strcat(text, evil[i]);
        strcat(text, i % 2 == 0 ? "\n" : "\r\n");
    }
    const char *path = tool_run_file("evil.txt");
    tool_run_write(path, text, strlen(text));
    char *page = page_of(path);
    json_t *data = data_of(page);
    const json_t *tokens = json_object_get(data, "tokens");
    for (size_t i = 0; i < 17; i++) {
        assert_string_equal(json_string_value(json_array_get(tokens, i)), evil[i]);
    }
    assert_int_equal(occurrences(page, "</script>"), 2);
    assert_null(strstr(page, "<script>alert"));
    assert_null(strstr(page, "<img"));
    json_decref(data);
    free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(page_holds_every_weight_of_every_head),
        cmocka_unit_test(page_needs_nothing_but_itself),
        cmocka_unit_test(page_tokens_cannot_become_markup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
