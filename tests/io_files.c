/* SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700

#include "io_files.h"

#include "support/expect.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[64];

static io_bytes allocate(size_t size)
{
    io_bytes bytes;
    bytes.data = guarded_create(&bytes.memory, size, 1);
    bytes.size = (int64_t)size;
    return bytes;
}

io_bytes io_bytes_of(const void *data, size_t size)
{
    io_bytes bytes = allocate(size);
    if (size > 0) {
        memcpy(bytes.memory.data, data, size);
    }
    return bytes;
}

io_bytes io_safetensors_lying(uint64_t length, const char *header, const void *data, size_t size)
{
    size_t header_bytes = strlen(header);
    io_bytes bytes = allocate(8 + header_bytes + size);
    unsigned char *to = bytes.memory.data;
    for (int i = 0; i < 8; i++) {
        to[i] = (unsigned char)(length >> 8 * i & 0xff);
    }
    memcpy(to + 8, header, header_bytes);
    if (size > 0) {
        memcpy(to + 8 + header_bytes, data, size);
    }
    return bytes;
}

io_bytes io_safetensors_of(const char *header, const void *data, size_t size)
{
    return io_safetensors_lying(strlen(header), header, data, size);
}

io_bytes io_npy_of(int version, const char *header, const void *data, size_t size)
{
    size_t header_bytes = strlen(header);
    size_t length_bytes = version == 1 ? 2 : 4;
    io_bytes bytes = allocate(8 + length_bytes + header_bytes + size);
    unsigned char *to = bytes.memory.data;
    memcpy(to, "\x93NUMPY", 6);
    to[6] = (unsigned char)version;
    to[7] = 0;
    for (size_t i = 0; i < length_bytes; i++) {
        to[8 + i] = (unsigned char)(header_bytes >> 8 * i & 0xff);
    }
    memcpy(to + 8 + length_bytes, header, header_bytes);
    if (size > 0) {
        memcpy(to + 8 + length_bytes + header_bytes, data, size);
    }
    return bytes;
}

void io_bytes_free(io_bytes *bytes)
{
    guarded_destroy(&bytes->memory);
}

mha_io_safetensors *io_open(const io_bytes *bytes)
{
    mha_io_safetensors *file = NULL;
    SUCCEEDS(mha_io_safetensors_open_memory(bytes->data, bytes->size, &file, err));
    assert_non_null(file);
    return file;
}

int64_t io_index(const mha_io_safetensors *file, const char *name)
{
    for (int64_t i = 0; i < mha_io_safetensors_count(file); i++) {
        int64_t length = -1;
        const char *found = mha_io_safetensors_name(file, i, &length);
        if ((size_t)length == strlen(name) && memcmp(found, name, (size_t)length) == 0) {
            return i;
        }
    }
    return -1;
}

int io_directory_create(void **state)
{
    (void)state;
    const char *root = getenv("TMPDIR");
    if (!root || !root[0] || strlen(root) > sizeof directory - 20) {
        root = "/tmp";
    }
    snprintf(directory, sizeof directory, "%s/mha-io-XXXXXX", root);
    return mkdtemp(directory) ? 0 : -1;
}

/* Calls act, unless it is NULL, for each file; returns how many there are. */
static int for_each_file(int (*act)(const char *path))
{
    int count = 0;
    DIR *stream = opendir(directory);
    if (!stream) {
        return -1;
    }
    for (struct dirent *entry = readdir(stream); entry; entry = readdir(stream)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            char path[sizeof directory + sizeof entry->d_name + 2];
            snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
            count++;
            if (act) {
                act(path);
            }
        }
    }
    closedir(stream);
    return count;
}

int io_directory_count(void)
{
    return for_each_file(NULL);
}

int io_directory_remove(void **state)
{
    (void)state;
    for_each_file(remove);
    return rmdir(directory);
}

const char *io_path(const char *name)
{
    static char paths[8][512];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

void io_write_file(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_true(size == 0 || fwrite(data, 1, size, file) == size);
    assert_int_equal(fclose(file), 0);
}
