/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__IO_NPY_H
#define MHA__IO_NPY_H

/*
 * A .npy file (NEP 1):
 *
 *   "\x93NUMPY" major minor | header length, LE16 (version 1) or LE32 (2, 3) | header | data
 *
 * The header is a Python dict of exactly three keys, padded with spaces, closed by a newline:
 *   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
 */
#include "io/io_convert.h"
#include "io/io_error.h"

#define MHA__IO_NPY_RANK 32

struct mha__io_npy_header {
    enum mha__io_type type;
    bool big_endian;
    bool fortran_order;
    int32_t rank;
    int64_t shape[MHA__IO_NPY_RANK];
    int64_t count; /* the product of shape */
};

/* Reads the text of a header, its newline included. FILE_FORMAT for anything else. */
int32_t mha__io_npy_header_parse(const char *text,
                                 int64_t length,
                                 const char *label,
                                 struct mha__io_npy_header *header,
                                 mha_error *err);

#endif
