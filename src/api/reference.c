/* SPDX-License-Identifier: Apache-2.0 */
#include "api/run.h"
#include "platform/fpenv.h"
#include "reference/reference_forward.h"

#include <mha/reference.h>

int32_t
mha_reference_forward(const mha_layer *layer, const mha_mask *mask, mha_call *call, mha_error *err)
{
    MHA_CHECK_HANDLE(err, layer, MHA__MAGIC_LAYER);
    MHA_CHECK_HANDLE(err, call, MHA__MAGIC_CALL);
    struct mha__problem problem;
    MHA_TRY(mha__run_describe(layer, mask, call, &problem, err));
    if (problem.B == 0 || problem.T == 0) {
        return mha__error_clear(err);
    }
    struct mha__fpenv host;
    mha__fpenv_enter(&host);
    const int32_t status = mha__reference_forward(&problem, err);
    mha__fpenv_leave(&host);
    MHA_TRY(status);
    return mha__error_clear(err);
}
