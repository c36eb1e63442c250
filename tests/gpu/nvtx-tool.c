/* A tool as NVTX looks for one: it writes each range that begins or ends to the file that
 * NVTX_TOOL_OUT names, "+ category name payload" and "-".
 *
 * SPDX-License-Identifier: MIT */
#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *out;

static int
push (nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a)
{
  fprintf (out, "+ %u %s %llu\n", a->category, (const char *)a->message.registered,
           (unsigned long long)a->payload.ullValue);
  return 0;
}

static int
pop (nvtxDomainHandle_t domain)
{
  fprintf (out, "-\n");
  fflush (out);
  return 0;
}

static nvtxDomainHandle_t
create (const char *name)
{
  fprintf (out, "domain %s\n", name);
  return (nvtxDomainHandle_t)(void *)out; /* any address */
}

/* The name itself is the handle: it stays, also when the module that asked is gone. */
typedef struct Name
{
  struct Name *next;
  char text[];
} Name;

static Name *names;

static nvtxStringHandle_t
register_string (nvtxDomainHandle_t domain, const char *string)
{
  Name *name = malloc (sizeof *name + strlen (string) + 1);

  if (name == NULL)
    abort ();
  strcpy (name->text, string);
  name->next = names;
  names = name;
  return (nvtxStringHandle_t)(uintptr_t)name->text;
}

__attribute__ ((visibility ("default"))) int
InitializeInjectionNvtx2 (NvtxGetExportTableFunc_t get_table);

int
InitializeInjectionNvtx2 (NvtxGetExportTableFunc_t get_table)
{
  const NvtxExportTableCallbacks *callbacks = get_table (NVTX_ETID_CALLBACKS);
  NvtxFunctionTable table;
  unsigned n;
  const char *path = getenv ("NVTX_TOOL_OUT");

  out = fopen (path != NULL ? path : "/dev/null", "w");
  if (callbacks == NULL || out == NULL
      || !callbacks->GetModuleFunctionTable (NVTX_CB_MODULE_CORE2, &table, &n)
      || n <= NVTX_CBID_CORE2_DomainRegisterStringA)
    return 0;
  *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push;
  *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)pop;
  *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create;
  *table[NVTX_CBID_CORE2_DomainRegisterStringA] = (NvtxFunctionPointer)register_string;
  return 1;
}
