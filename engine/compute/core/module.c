/* The CUDA module: found beside the engine, opened when a program asks for "cuda:N" and the
 * driver's library is there.  A machine without either has no GPU, which is no error until
 * somebody wants one; why there is none is kept for the message.
 *
 * SPDX-License-Identifier: MIT */
#include "core.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MODULE "tapedeck-cuda.so"
#ifndef TD_LIB_FROM_BIN
#define TD_LIB_FROM_BIN "../lib"
#endif

#ifndef TD_MODULES_FOLDER
#define TD_MODULES_FOLDER "" /* the engine is in a library that lies beside them */
#endif

/* From the folder of the engine's own object: installed beside it, installed from a program
 * that holds the engine, in the build tree. */
static const char *const places[] = { "", TD_LIB_FROM_BIN "/", "../gpu/", "../../gpu/" };

static struct
{
  bool tried;
  const TdModule *module; /* NULL: there is no GPU, and why */
  char why[400];
} cuda;

static TdStatus
host_fail (TdStatus status, const char *what, const char *message)
{
  return td__fail (status, what, NULL, "%s", message);
}

static void
host_notice (const char *text)
{
  TdObserver *o = td__engine.observer;

  fprintf (stderr, "tapedeck: %s\n", text);
  if (o != NULL && o->notice != NULL)
    o->notice (o, text);
}

static void *
host_memory_take (TdDevice *d, size_t bytes, TdMemCategory category, TdBlock **block)
{
  *block = td__engine.capturing
               ? td__pool_take_from (d->pool, TD_MEM_POOL_GRAPH, bytes, category)
               : td__pool_take (d->pool, bytes, category);
  if (*block != NULL)
    return (*block)->address;
  td__fail_memory (d, bytes, d->name, td__engine.call_site);
  return NULL;
}

static TdModuleHost host = { .abi = TD_DEVICE_ABI,
                             .host_bytes = sizeof (TdModuleHost),
                             .ops_bytes = sizeof (TdDeviceOps),
                             .device_bytes = sizeof (TdDevice),
                             .provider_bytes = sizeof (TdSegmentProvider),
                             .fail = host_fail,
                             .status_name = td_status_name,
                             .notice = host_notice,
                             .config = td_config,
                             .memory_take = host_memory_take,
                             .memory_release = td__pool_release };

bool
td__module_find (const char *name, const char *given, const char *const *where, int n_where,
                 char *path, size_t size)
{
  Dl_info self;
  char own[4096], *slash;

  if (given != NULL && *given != '\0')
    return (size_t)snprintf (path, size, "%s", given) < size;
  if (dladdr (&host, &self) == 0 || self.dli_fname == NULL)
    return false;
  /* A program's own name is the one it was called by, which may need the search path. */
  if (realpath (strchr (self.dli_fname, '/') != NULL ? self.dli_fname : "/proc/self/exe", own)
      == NULL)
    return false;
  slash = strrchr (own, '/');
  slash[1] = '\0';
  for (int i = 0; i < n_where; i++)
    if ((size_t)snprintf (path, size, "%s%s%s", own, where[i], name) < size
        && access (path, R_OK) == 0)
      return true;
  return *TD_MODULES_FOLDER != '\0'
         && (size_t)snprintf (path, size, TD_MODULES_FOLDER "%s", name) < size
         && access (path, R_OK) == 0;
}

/* Another build's structs would be read wrongly: every size is compared. */
static bool
fits (const TdModule *m)
{
  return m != NULL && m->abi == TD_DEVICE_ABI && m->module_bytes == sizeof (TdModule)
         && m->host_bytes == sizeof (TdModuleHost) && m->ops_bytes == sizeof (TdDeviceOps)
         && m->device_bytes == sizeof (TdDevice)
         && m->provider_bytes == sizeof (TdSegmentProvider);
}

static void
open_module (const char *path)
{
  void *handle = dlopen (path, RTLD_NOW | RTLD_LOCAL);
  TdModuleEntry entry = NULL;
  const TdModule *module;
  const char *why;

  if (handle == NULL)
    {
      snprintf (cuda.why, sizeof cuda.why, "%s", dlerror ());
      return;
    }
  *(void **)&entry = dlsym (handle, TD_MODULE_ENTRY);
  module = entry != NULL ? entry () : NULL;
  if (!fits (module))
    {
      snprintf (cuda.why, sizeof cuda.why,
                "%.300s was built for another engine (interface %u, not %d)", path,
                module != NULL ? module->abi : 0, TD_DEVICE_ABI);
      dlclose (handle);
      return;
    }
  why = module->open (&host);
  if (why != NULL)
    snprintf (cuda.why, sizeof cuda.why, "%s", why);
  else
    cuda.module = module; /* stays open: libraries of the driver do not like to be unloaded */
}

/* Look once; a machine's GPUs do not come and go. */
static const TdModule *
cuda_module (void)
{
  char path[4400];

  if (cuda.tried)
    return cuda.module;
  cuda.tried = true;
  host.cpu = td_device_get ("cpu");
  if (getenv ("TAPEDECK_CUDA_MODULE") == NULL
      && dlopen ("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) == NULL)
    snprintf (cuda.why, sizeof cuda.why, "no driver here (libcuda.so.1 cannot be opened)");
  else if (!td__module_find (MODULE, getenv ("TAPEDECK_CUDA_MODULE"), places,
                             TD_ARRAY_LENGTH (places), path, sizeof path))
    snprintf (cuda.why, sizeof cuda.why, "this build has no " MODULE);
  else
    open_module (path);
  for (char *c = cuda.why; *c != '\0'; c++)
    if (*c == '\n')
      *c = ' ';
  return cuda.module;
}

/* What starts processes says this in their environment. */
void
td__process_number (long *number, long *n)
{
  static const char *const names[][2]
      = { { "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE" }, /* Open MPI */
          { "MPI_LOCALRANKID", "MPI_LOCALNRANKS" },                       /* MPICH, Intel */
          { "LOCAL_RANK", "LOCAL_WORLD_SIZE" } };                         /* torchrun */

  *number = 0;
  *n = 1;
  for (int i = 0; i < TD_ARRAY_LENGTH (names); i++)
    if (getenv (names[i][0]) != NULL && getenv (names[i][1]) != NULL)
      {
        *number = strtol (getenv (names[i][0]), NULL, 10);
        *n = strtol (getenv (names[i][1]), NULL, 10);
        return;
      }
}

/* Has who started this process shown it one GPU, which is to be its own?  Where two see the
 * same one, their communicator says so (ranks/teams.c): an error, or by MPI a line. */
static bool
sees_its_own (const TdModule *m)
{
  const char *visible = getenv ("CUDA_VISIBLE_DEVICES");

  return visible != NULL && visible[0] != '\0' && m->n_devices () == 1;
}

/* "cuda": a GPU for each process of this machine, in their order. */
static TdDevice *
own_device (const TdModule *m)
{
  const char *share = getenv ("TAPEDECK_SHARE_DEVICES");
  char name[32];
  long i, n;

  td__process_number (&i, &n);
  if (m->n_devices () < n && !sees_its_own (m) && (share == NULL || strcmp (share, "1") != 0))
    {
      td__fail (TD_ERR_DEVICE, "td_device_get", NULL,
                "no GPU for each of the %ld ranks of this machine: here are %d: start fewer, "
                "show each its own alone by CUDA_VISIBLE_DEVICES, or let them share by "
                "TAPEDECK_SHARE_DEVICES=1",
                n, m->n_devices ());
      return NULL;
    }
  snprintf (name, sizeof name, "cuda:%ld", i % m->n_devices ());
  return td_device_get (name);
}

TdDevice *
td__cuda_device (const char *name)
{
  const TdModule *m = cuda_module ();
  char *end;
  long i = strncmp (name, "cuda:", 5) == 0 ? strtol (name + 5, &end, 10) : -1;
  TdDevice *d;

  if (m == NULL)
    {
      td__fail (TD_ERR_DEVICE, "td_device_get", NULL, "no GPU for %.40s: %s", name, cuda.why);
      return NULL;
    }
  if (strcmp (name, "cuda") == 0)
    return own_device (m);
  if (i < 0 || end == name + 5 || *end != '\0' || i >= m->n_devices ())
    {
      td__fail (TD_ERR_DEVICE, "td_device_get", NULL, "no GPU %.40s: there are %d, from cuda:0",
                name, m->n_devices ());
      return NULL;
    }
  d = m->device_open ((int)i);
  if (d == NULL)
    return NULL;
  if (td__device_register (d) == TD_OK)
    {
      td__ranges_start (d);
      return d;
    }
  m->device_end (d);
  m->device_close (d);
  return NULL;
}

void
td__cuda_end (TdDevice *d)
{
  if (cuda.module != NULL && strncmp (d->name, "cuda:", 5) == 0)
    cuda.module->device_end (d);
}

void
td__cuda_close (TdDevice *d)
{
  if (cuda.module != NULL && strncmp (d->name, "cuda:", 5) == 0)
    cuda.module->device_close (d);
}

const char *
td_device_backends (void)
{
  static char text[TD_MAX_DEVICES * 512];
  size_t used = (size_t)snprintf (text, sizeof text, "cpu, null");
  const TdModule *m;

  td__ensure_started ();
  if (td__stranger ("td_device_backends"))
    return "";
  m = cuda_module ();
  for (int i = 0; m != NULL && i < m->n_devices () && used < sizeof text; i++)
    used += (size_t)snprintf (text + used, sizeof text - used, ", cuda:%d (%s)", i,
                              m->describe (i));
  if (m == NULL)
    snprintf (text + used, sizeof text - used, "; no GPU: %s", cuda.why);
  return text;
}
