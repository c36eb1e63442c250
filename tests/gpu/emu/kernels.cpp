/* One file of kernels for the host; the build says which.
 *
 * SPDX-License-Identifier: MIT */
#include "emu.h"
#include TD_KERNEL_FILE
