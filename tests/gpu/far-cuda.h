/* The fake driver that is behind fake_remote_start in the tests of suite gpu.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "fake-cuda/fake-cuda.h"

/** Open the module once; NULL and a message if it is not to be had. */
const FakeCudaControl *far_cuda_driver (void);
