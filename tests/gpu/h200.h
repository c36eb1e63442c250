/* The card that plans are made for where there is none.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

/** Its properties as cuDNN reads them. */
extern const char td_h200[];
