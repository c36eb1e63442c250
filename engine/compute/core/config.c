/* The engine's settings, and their changes as events.
 *
 * SPDX-License-Identifier: MIT */
#include "core.h"

#define FIELD(name)                                                                            \
  {                                                                                            \
    offsetof (TdConfig, name), #name                                                           \
  }
static const struct
{
  size_t offset;
  const char *name;
} fields[] = {
  FIELD (train),
  FIELD (enable_backprop),
  FIELD (debug),
  FIELD (type_check),
  FIELD (dtype),
  FIELD (use_cudnn),
  FIELD (autotune),
  FIELD (cudnn_deterministic),
  FIELD (tf32),
  FIELD (use_static_graph),
  FIELD (keep_graph_on_report),
  FIELD (lazy_grad_sum),
  FIELD (warn_nondeterministic),
  FIELD (stale_retained),
  FIELD (channels_last),
  FIELD (keep_graph),
};

const char *
td__config_name (size_t offset)
{
  for (int i = 0; i < TD_ARRAY_LENGTH (fields); i++)
    if (fields[i].offset == offset)
      return fields[i].name;
  return "?";
}

const TdConfig *
td_config (void)
{
  static const TdConfig none;

  td__ensure_started ();
  return td__stranger ("td_config") ? &none : &td__engine.config;
}

static int *
field_at (size_t offset)
{
  return (int *)(void *)((char *)&td__engine.config + offset);
}

static void
set (size_t offset, int value)
{
  TdEngine *e = &td__engine;

  if (*field_at (offset) == value)
    return;
  *field_at (offset) = value;
  if (e->observer != NULL)
    e->observer->config (e->observer, td__config_name (offset), value);
}

TdConfigSave
td__config_push (size_t offset, int value)
{
  TdConfigSave save = { offset, 0, 1 };

  if (!td__ensure_started () || td__stranger ("td_config_set")
      || offset > sizeof (TdConfig) - sizeof (int) || offset % sizeof (int) != 0)
    return (TdConfigSave){ 0, 0, 0 };
  save.old_value = *field_at (offset);
  set (offset, value);
  return save;
}

/* `armed` is the loop flag of TD_USING; a save that pushed nothing has offset 0 and old train.
 */
void
td__config_pop (TdConfigSave *save)
{
  if (save == NULL)
    return;
  if (save->armed == 1 && !td__stranger ("TD_USING"))
    set (save->offset, save->old_value);
  save->armed = 0;
}
