/* The MPI module: found beside the engine, opened when a program asks for a communicator.  A
 * machine without MPI lacks nothing until then; why there is none is kept for the message.
 *
 * SPDX-License-Identifier: MIT */
#include "halves.h"

#include "compute/core/core.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define MODULE "tapedeck-mpi.so"
#ifndef TD_LIB_FROM_BIN
#define TD_LIB_FROM_BIN "../lib"
#endif

/* From the folder of the engine's own object: installed beside it, installed from a program
 * that holds the engine, in the build tree. */
static const char *const places[] = { "", TD_LIB_FROM_BIN "/", "ranks/mpi/",
                                      "../engine/ranks/mpi/", "../../engine/ranks/mpi/" };

static struct
{
  bool tried;
  const TdTransport *transport;
  char why[400];
} mpi;

static void
open_module (const char *path)
{
  /* Stays open: what MPI starts does not like to be unloaded. */
  void *handle = dlopen (path, RTLD_NOW | RTLD_LOCAL);
  TdTransportEntry entry = NULL;
  const TdTransport *t;

  if (handle == NULL)
    {
      snprintf (mpi.why, sizeof mpi.why, "%s", dlerror ());
      return;
    }
  *(void **)&entry = dlsym (handle, TD_TRANSPORT_ENTRY);
  t = entry != NULL ? entry (&td__wire_adds) : NULL;
  if (t != NULL && t->abi == TD_TRANSPORT_ABI && t->bytes == sizeof *t)
    mpi.transport = t;
  else
    snprintf (mpi.why, sizeof mpi.why, "%.300s was built for another engine", path);
}

const TdTransport *
td__transport_mpi (const char **why)
{
  char path[4400];

  if (!mpi.tried
      && !td__module_find (MODULE, getenv ("TAPEDECK_MPI_MODULE"), places,
                           TD_ARRAY_LENGTH (places), path, sizeof path))
    snprintf (mpi.why, sizeof mpi.why, "this build has no " MODULE);
  else if (!mpi.tried)
    open_module (path);
  mpi.tried = true;
  *why = mpi.why;
  return mpi.transport;
}
