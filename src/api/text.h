/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__TEXT_H
#define MHA__TEXT_H

#include <stdint.h>
#include <string.h>

/* Copies text, cut to cap - 1 bytes and NUL-terminated; returns its full length. (NULL, 0) is fine. */
static inline int64_t mha__text_copy(const char *text, char *buf, int64_t cap)
{
    const int64_t length = (int64_t)strlen(text);
    if (buf && cap > 0) {
        const int64_t kept = length < cap ? length : cap - 1;
        memcpy(buf, text, (size_t)kept);
        buf[kept] = '\0';
    }
    return length;
}

#endif
