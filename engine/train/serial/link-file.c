/* Saving and loading what models are made of: the fields of a link and of an optimizer's file.
 *
 * SPDX-License-Identifier: MIT */
#include "../links/link.h"
#include "host-memory.h"
#include "compute/core/copies.h"
#include "../optim/optimizer.h"
#include "serializer.h"

#include <stdlib.h>

/* A parameter that waited for its shape and finds it in the file. */
typedef struct
{
  TdParam *param;
  TdVar *made;
} Started;

static TdStatus
started_apply (void *staged)
{
  Started *p = staged;

  td__param_adopt (p->param, p->made);
  return TD_OK;
}

static void
started_drop (void *staged)
{
  Started *p = staged;

  td__var_unref (p->made, TD_HOLD_ENGINE);
  free (p);
}

/* Its memory is taken and filled now, so that nothing can fail later. */
static void
start_param (TdSerializer *s, TdParam *param, const char *key)
{
  TdRecord value;
  TdVar *made;

  if (!td__serializer_read_array (s, key, param->dtype, NULL, &value))
    return;
  made = td__param_leaf (param, &value.shape);
  if (made == NULL
      || td__write_for (TD_COPY_LOAD, made, value.data, value.bytes, td__serializer_site (s))
             != TD_OK)
    td__serializer_fail (s, TD_ERR_MEMORY, key, "no memory for it");
  else
    {
      Started *p = td__xcalloc (1, sizeof *p);

      *p = (Started){ param, made };
      td__serializer_stage (s, started_apply, started_drop, p);
      made = NULL;
    }
  if (made != NULL)
    td__var_unref (made, TD_HOLD_ENGINE);
  free (value.data);
}

static void
serialize_param (TdLink *owner, TdParam *param, const char *key, void *user)
{
  static const TdRecord none = { .kind = TD_RECORD_NONE };
  TdSerializer *s = user;

  (void)owner;
  if (param->kind == TD_PARAM_ATTR || td__serializer_failed (s))
    return;
  if (param->var != NULL)
    td_serialize_var (s, key, param->var);
  else if (td_serializer_loading (s))
    start_param (s, param, key);
  else
    td__serializer_write (s, key, &none);
}

void
td__link_serialize (void *link, TdSerializer *s)
{
  td__link_visit (link, serialize_param, s);
}

/* --- the public functions --- */

static TdStatus
save_link (const char *path, TdLink *link, TdFileFormat format, TdSaveOpt options,
           const char *call, const TdSite *site)
{
  if (!td__link_usable (link, call, site))
    return td__error_status ();
  return td__save_object (path, format, options.compression, td__link_serialize, link, call,
                          site);
}

static TdLoadRule
rule_of (const TdLoadOpt *options)
{
  return (TdLoadRule){ options->path, options->ignore_names,
                       !options->strict || options->partial, options->partial };
}

static TdStatus
load_link (const char *path, TdLink *link, TdFileFormat format, TdLoadOpt options,
           const char *call, const TdSite *site)
{
  TdLoadRule rule = rule_of (&options);

  if (!td__link_usable (link, call, site))
    return td__error_status ();
  return td__load_object (path, format, td__link_serialize, link, &rule, call, site);
}

TdStatus
td_save_npz_at (const char *path, TdLink *link, TdSaveOpt options, const TdSite *site)
{
  return save_link (path, link, TD_FILE_NPZ, options, "td_save_npz", site);
}

TdStatus
td_load_npz_at (const char *path, TdLink *link, TdLoadOpt options, const TdSite *site)
{
  return load_link (path, link, TD_FILE_NPZ, options, "td_load_npz", site);
}

TdStatus
td_save_safetensors_at (const char *path, TdLink *link, TdSaveOpt options, const TdSite *site)
{
  return save_link (path, link, TD_FILE_SAFETENSORS, options, "td_save_safetensors", site);
}

TdStatus
td_load_safetensors_at (const char *path, TdLink *link, TdLoadOpt options, const TdSite *site)
{
  return load_link (path, link, TD_FILE_SAFETENSORS, options, "td_load_safetensors", site);
}

TdSaveOpt
td_save_options (void)
{
  return (TdSaveOpt){ TD_SAVE_DEFAULTS };
}

TdLoadOpt
td_load_options (void)
{
  return (TdLoadOpt){ TD_LOAD_DEFAULTS };
}

TdStatus (td_save_npz) (const char *path, TdLink *link)
{
  return td_save_npz_at (path, link, td_save_options (), NULL);
}

TdStatus (td_load_npz) (const char *path, TdLink *link)
{
  return td_load_npz_at (path, link, td_load_options (), NULL);
}

TdStatus (td_save_safetensors) (const char *path, TdLink *link)
{
  return td_save_safetensors_at (path, link, td_save_options (), NULL);
}

TdStatus (td_load_safetensors) (const char *path, TdLink *link)
{
  return td_load_safetensors_at (path, link, td_load_options (), NULL);
}
