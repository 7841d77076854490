/* SPDX-License-Identifier: Apache-2.0 */
#include "api/objects.h"
#include "api/text.h"
#include "platform/memory.h"

#include <mha/error.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

mha_error *mha_error_create(void)
{
    mha_error *err = mha__memory_allocate_zeroed(sizeof *err);
    if (err) {
        err->magic = MHA__MAGIC_ERROR;
    }
    return err;
}

void mha_error_destroy(mha_error *err)
{
    if (err) {
        err->magic = 0;
        mha__memory_release(err);
    }
}

int32_t mha_error_code(const mha_error *err)
{
    return err ? err->code : MHA_ERROR_NULL_ARGUMENT;
}

int64_t mha_error_message(const mha_error *err, char *buf, int64_t cap)
{
    return mha__text_copy(err ? err->message : "", buf, cap);
}

int32_t mha_error_set(mha_error *err, int32_t status, const char *message)
{
    return mha__error_format(err, status, "%s", message ? message : mha_status_string(status));
}

int32_t mha__error_format(mha_error *err, int32_t status, const char *format, ...)
{
    if (err) {
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(err->message, sizeof err->message, format, arguments);
        va_end(arguments);
        err->code = status;
    }
    return status;
}

int32_t mha__error_clear(mha_error *err)
{
    if (err) {
        err->code = MHA_OK;
        err->message[0] = '\0';
    }
    return MHA_OK;
}

const char *mha_status_string(int32_t status)
{
    switch (status) {
    case MHA_OK:
        return "MHA_OK: success";
    case MHA_ERROR_NULL_ARGUMENT:
        return "MHA_ERROR_NULL_ARGUMENT: a pointer that is needed is NULL";
    case MHA_ERROR_UNKNOWN_ID:
        return "MHA_ERROR_UNKNOWN_ID: an id, type, flag or name that this version does not know";
    case MHA_ERROR_BAD_HANDLE:
        return "MHA_ERROR_BAD_HANDLE: not a live object of that kind";
    case MHA_ERROR_SHAPE:
        return "MHA_ERROR_SHAPE: a size, rank or stride is negative or does not match";
    case MHA_ERROR_HEAD_COUNT:
        return "MHA_ERROR_HEAD_COUNT: heads that do not divide what they must divide";
    case MHA_ERROR_OVERLAP:
        return "MHA_ERROR_OVERLAP: an output shares memory with another tensor";
    case MHA_ERROR_TOO_LARGE:
        return "MHA_ERROR_TOO_LARGE: a product of sizes is too large, or passes a limit";
    case MHA_ERROR_VALUE:
        return "MHA_ERROR_VALUE: a number outside its range";
    case MHA_ERROR_ALIGNMENT:
        return "MHA_ERROR_ALIGNMENT: a rule by position with T != S and no alignment said";
    case MHA_ERROR_NOT_SET:
        return "MHA_ERROR_NOT_SET: a parameter or tensor is missing";
    case MHA_ERROR_OUT_OF_MEMORY:
        return "MHA_ERROR_OUT_OF_MEMORY: memory is short";
    case MHA_ERROR_BLAS:
        return "MHA_ERROR_BLAS: the BLAS computes wrong products on this CPU";
    case MHA_ERROR_EXECUTOR:
        return "MHA_ERROR_EXECUTOR: the host's executor failed";
    case MHA_ERROR_FILE_ACCESS:
        return "MHA_ERROR_FILE_ACCESS: a file cannot be opened, read or written";
    case MHA_ERROR_FILE_FORMAT:
        return "MHA_ERROR_FILE_FORMAT: a file is not what it should be, or is damaged";
    case MHA_ERROR_FILE_TENSOR:
        return "MHA_ERROR_FILE_TENSOR: a tensor is missing, or two sets contradict";
    default:
        return "unknown status";
    }
}
