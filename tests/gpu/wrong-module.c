/* A module of another build: its structs have other sizes.
 *
 * SPDX-License-Identifier: MIT */
#include "device.h"

__attribute__ ((visibility ("default"))) const TdModule *td_device_module (void);

const TdModule *
td_device_module (void)
{
  static const TdModule module = { .abi = TD_DEVICE_ABI,
                                   .module_bytes = sizeof (TdModule),
                                   .host_bytes = sizeof (TdModuleHost),
                                   .ops_bytes = sizeof (TdDeviceOps) + 8,
                                   .device_bytes = sizeof (TdDevice),
                                   .provider_bytes = sizeof (TdSegmentProvider) };

  return &module;
}
