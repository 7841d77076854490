/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA_PEAK_CHAINS_H
#define MHA_PEAK_CHAINS_H

/* X(c) for each chain: variables of their own stay in registers, an array may not. */
#define MHA__PEAK_12(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define MHA__PEAK_16(X) MHA__PEAK_12(X) X(12) X(13) X(14) X(15)

#endif
