/* SPDX-License-Identifier: Apache-2.0 */
#include "tool_run.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_ARGUMENTS = 40 };

static char directory[64];
static char *printed[2]; /* stdout, stderr of the last run */

static void clean_up(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    if (system(command) != 0) {
        fprintf(stderr, "%s stays\n", directory);
    }
    free(printed[0]);
    free(printed[1]);
}

const char *tool_run_directory(void)
{
    if (directory[0] == '\0') {
        strcpy(directory, "/tmp/mha-tool-XXXXXX");
        assert_non_null(mkdtemp(directory));
        atexit(clean_up);
    }
    return directory;
}

const char *tool_run_file(const char *name)
{
    enum { MOST_FILES = 16 };
    static char paths[MOST_FILES][256];
    char path[256];
    snprintf(path, sizeof path, "%s/%s", tool_run_directory(), name);
    for (int i = 0; i < MOST_FILES; i++) {
        if (paths[i][0] == '\0') {
            strcpy(paths[i], path);
        }
        if (strcmp(paths[i], path) == 0) {
            return paths[i];
        }
    }
    fail_msg("more than %d files", MOST_FILES);
    return NULL;
}

char *tool_run_read(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fail_msg("%s cannot be read", path);
        return NULL;
    }
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    rewind(file);
    assert_true(size >= 0);
    char *text = malloc((size_t)size + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)size, file), size);
    text[size] = '\0';
    fclose(file);
    return text;
}

void tool_run_write(const char *path, const char *text, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

int tool_run(const char *first, ...)
{
    char *arguments[MOST_ARGUMENTS] = {(char *)"mha"};
    int count = 1;
    va_list list;
    va_start(list, first);
    for (const char *a = first; a != NULL; a = va_arg(list, const char *)) {
        assert_true(count < MOST_ARGUMENTS - 1);
        arguments[count++] = (char *)a;
    }
    va_end(list);

    char out[256];
    char err[256];
    snprintf(out, sizeof out, "%s", tool_run_file("stdout"));
    snprintf(err, sizeof err, "%s", tool_run_file("stderr"));
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const int to_out = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        const int to_err = open(err, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (dup2(to_out, 1) == 1 && dup2(to_err, 2) == 2) {
            execv(MHA_TOOL_PATH, arguments);
        }
        _exit(127);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    free(printed[0]);
    free(printed[1]);
    printed[0] = tool_run_read(out);
    printed[1] = tool_run_read(err);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

const char *tool_run_stdout(void)
{
    return printed[0];
}

const char *tool_run_stderr(void)
{
    return printed[1];
}

json_t *tool_run_json(void)
{
    json_error_t error;
    json_t *object = json_loads(printed[0], JSON_REJECT_DUPLICATES, &error);
    if (object == NULL) {
        fail_msg("not JSON (%s): %s", error.text, printed[0]);
    }
    return object;
}
