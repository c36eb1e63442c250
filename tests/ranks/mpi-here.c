/* Is there an mpirun?  See mpi-here.h.  SPDX-License-Identifier: MIT */
#include "mpi-here.h"

#include <stdio.h>
#include <stdlib.h>

/* Ranks on one machine need no network, and containers allow no reading of each other's
 * memory. */
static const char *const settings[][2] = {
  { "HWLOC_COMPONENTS", "-gl" }, /* no display is needed */
  { "OMPI_MCA_btl", "self,vader" }, { "OMPI_MCA_btl_vader_single_copy_mechanism", "none" },
  { "OMPI_MCA_plm", "isolated" },   { "OMPI_MCA_plm_rsh_agent", "false" },
};

bool
mpi_here (void)
{
  for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
    setenv (settings[i][0], settings[i][1], 1);
  if (system ("command -v mpirun >/dev/null 2>&1") == 0)
    return true;
  puts ("skipped: no mpirun here (openmpi-bin)");
  return false;
}
