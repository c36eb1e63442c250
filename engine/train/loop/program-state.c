/* What a training loop of the program's own keeps: links, optimizers, iterators, the state of
 * the random numbers and fields of its own, in one file that a Trainer could not do better.
 *
 * SPDX-License-Identifier: MIT */
#include "../links/link.h"
#include "trainer.h"
#include "../optim/optimizer.h"
#include "compute/core/core.h"
#include "../serial/serializer.h"

#include <string.h>

static TdFileFormat
format_of (const char *path)
{
  const char *dot = path != NULL ? strrchr (path, '.') : NULL;

  return dot != NULL && strcmp (dot, ".safetensors") == 0 ? TD_FILE_SAFETENSORS : TD_FILE_NPZ;
}

TdStatus
td_save_object_at (const char *path, TdSerializeFn serialize, void *object, const TdSite *site)
{
  if (td__stranger ("td_save_object"))
    return TD_ERR_STATE;
  if (serialize == NULL)
    return td__fail (TD_ERR_ARG, "td_save_object", site, "the function is NULL");
  return td__save_object (path, format_of (path), true, serialize, object, "td_save_object",
                          site);
}

TdStatus (td_save_object) (const char *path, TdSerializeFn serialize, void *object)
{
  return td_save_object_at (path, serialize, object, NULL);
}

TdStatus
td_load_object_at (const char *path, TdSerializeFn serialize, void *object, const TdSite *site)
{
  if (td__stranger ("td_load_object"))
    return TD_ERR_STATE;
  if (serialize == NULL)
    return td__fail (TD_ERR_ARG, "td_load_object", site, "the function is NULL");
  return td__load_object (path, format_of (path), serialize, object, NULL, "td_load_object",
                          site);
}

TdStatus (td_load_object) (const char *path, TdSerializeFn serialize, void *object)
{
  return td_load_object_at (path, serialize, object, NULL);
}

void
td_serialize_link (TdSerializer *s, const char *name, TdLink *link)
{
  if (!td__serializer_there (s, "td_serialize_link"))
    return;
  if (!td__link_usable (link, "td_serialize_link", td__serializer_site (s)))
    {
      td__serializer_fail (s, TD_ERR_ARG, name, "the link cannot be used");
      return;
    }
  td_serializer_enter (s, name);
  td__link_serialize (link, s);
  td_serializer_leave (s);
}

void
td_serialize_opt (TdSerializer *s, const char *name, TdOpt *opt)
{
  if (!td__serializer_there (s, "td_serialize_opt"))
    return;
  if (!td__opt_usable (opt, "td_serialize_opt", td__serializer_site (s)))
    {
      td__serializer_fail (s, TD_ERR_ARG, name, "the optimizer cannot be used");
      return;
    }
  td_serializer_enter (s, name);
  td__opt_serialize (opt, s);
  td_serializer_leave (s);
}

void
td_serialize_iter (TdSerializer *s, const char *name, TdIter *iter)
{
  if (!td__serializer_there (s, "td_serialize_iter"))
    return;
  if (iter == NULL || iter->inert)
    {
      td__serializer_fail (s, TD_ERR_ARG, name, "the iterator cannot be used");
      return;
    }
  td_serializer_enter (s, name);
  td__iter_serialize (iter, s);
  td_serializer_leave (s);
}

void
td_serialize_random (TdSerializer *s)
{
  if (!td__serializer_there (s, "td_serialize_random"))
    return;
  td_serialize_int (s, "tapedeck_rng_seed", (int64_t *)&td__engine.rng_seed);
  td_serialize_int (s, "tapedeck_rng_offset", (int64_t *)&td__engine.rng_offset);
}
