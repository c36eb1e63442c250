/* What kernels made at run time include, as text: the build writes them into fused-texts.c.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

extern const char td_common_cuh[], td_common_h[], td_count_cuh[], td_fused_count_cuh[],
    td_fused_cuh[], td_fused_h[], td_scalar_ops_h[];
