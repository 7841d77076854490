/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__CONFIG_SCORES_H
#define MHA__CONFIG_SCORES_H

#include "api/objects.h"

/* The base of rotary positions unless another is set (RoFormer, section 3.2.2). */
#define MHA__ROTARY_BASE 10000.0

#endif
