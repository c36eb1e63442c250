/* The CUDA module over the fake driver, as the far device that tests of the engine ask for: the
 * same programs run on cuda:0.
 *
 * Programs end with a status of 1 if the driver saw what it must not.
 *
 * SPDX-License-Identifier: MIT */
#include "far-cuda.h"

#include "fake-remote.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const FakeCudaControl *driver;

static void
report_violations (void)
{
  if (driver->state->n_violations == 0)
    return;
  fprintf (stderr, "fake CUDA driver: %ld times misused; first: %s\n",
           driver->state->n_violations, driver->state->violation);
  _exit (1);
}

const FakeCudaControl *
far_cuda_driver (void)
{
  void *module;
  FakeCudaControlEntry entry = NULL;

  if (driver != NULL)
    return driver;
  module = dlopen (FAKE_CUDA_MODULE, RTLD_NOW | RTLD_LOCAL);
  if (module != NULL)
    *(void **)&entry = dlsym (module, "fake_cuda_control");
  if (entry == NULL)
    {
      fprintf (stderr, "%s\n", dlerror ());
      return NULL;
    }
  driver = entry ();
  setenv ("TAPEDECK_CUDA_MODULE", FAKE_CUDA_MODULE, 1);
  atexit (report_violations);
  return driver;
}

TdDevice *
fake_remote_start (void)
{
  return far_cuda_driver () != NULL ? td_device_get (FAKE_REMOTE_NAME) : NULL;
}

int
fake_remote_pending (void)
{
  return (int)driver->state->n_pending;
}

long
fake_remote_queued (void)
{
  return driver->state->n_launches + driver->state->n_copies[0] + driver->state->n_copies[2];
}
