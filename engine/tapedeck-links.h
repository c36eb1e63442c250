/* Links, optimizers, data and reports: what a training program is written with.  Included by
 * tapedeck.h.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#ifdef __cplusplus
extern "C"
{
#endif

#ifdef __cplusplus
}
#endif
