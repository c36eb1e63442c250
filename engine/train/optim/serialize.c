/* An optimizer's file: t and epoch, and for each parameter its own t and states.
 *
 * Keys are Chainer's ("l1/W/m").  Files that Tapedeck wrote before have in front of each key
 * the links of all parameters before it ("l1/l1/b/m"); they are read too.  Ours alone are the
 * float32 copy of a half precision parameter (fp32_param) and a dynamic loss scale.  States are
 * read before their parameter may have a shape: they wait until it has one.
 *
 * SPDX-License-Identifier: MIT */
#include "optimizer.h"
#include "host-memory.h"

#include <stdlib.h>
#include <string.h>

static const char master_name[] = "fp32_param";

/* --- saving --- */

static void
save_slot (TdOpt *opt, TdOptSlot *slot, TdSerializer *s)
{
  int n = td__opt_n_states (opt);

  td_serializer_enter (s, slot->key);
  td_serialize_int (s, "t", &slot->t);
  for (int i = 0; i < n; i++)
    if (slot->states[i] != NULL)
      td_serialize_var (s, opt->cls->states[i], slot->states[i]);
  if (slot->master != NULL)
    td_serialize_var (s, master_name, slot->master);
  td_serializer_leave (s);
}

/* Of a parameter that waits for its shape: it never was updated. */
static void
save_waiting (TdLink *owner, TdParam *param, const char *key, void *s)
{
  int64_t t = 0;

  (void)owner;
  if (param->kind != TD_PARAM_TRAINED || param->var != NULL)
    return;
  td_serializer_enter (s, key);
  td_serialize_int (s, "t", &t);
  td_serializer_leave (s);
}

/* --- loading --- */

typedef struct
{
  TdOpt *opt;
  TdOptLoaded loaded;
} Staged;

static TdStatus
staged_apply (void *staged)
{
  Staged *st = staged;
  TdOpt *opt = st->opt;
  int i = 0;

  while (i < opt->n_loaded && opt->loaded[i].param_id != st->loaded.param_id)
    i++;
  if (i < opt->n_loaded)
    td__opt_loaded_clear (&opt->loaded[i]);
  else
    {
      opt->loaded
          = td__xrealloc (opt->loaded, (size_t)(opt->n_loaded + 1) * sizeof *opt->loaded);
      opt->n_loaded++;
    }
  opt->loaded[i] = st->loaded;
  memset (&st->loaded, 0, sizeof st->loaded);
  opt->generation = 0; /* looked at again before the next update */
  return TD_OK;
}

static void
staged_drop (void *staged)
{
  Staged *st = staged;

  td__opt_loaded_clear (&st->loaded);
  free (st);
}

/* What a parameter that was updated must have; one that never was has no states yet. */
static void
load_state (TdSerializer *s, const char *name, const TdParam *param, bool wanted, TdDtype dtype,
            TdRecord *value)
{
  if (wanted || td_serializer_has (s, name))
    if (!td__serializer_read_array (
            s, name, dtype, param->var != NULL ? &param->var->node->shape : NULL, value))
      value->data = NULL;
}

static void
load_param (TdOpt *opt, const TdParam *param, const char *key, TdSerializer *s)
{
  static const TdShape scalar = { 0, { 0 } };
  Staged *st = td__xcalloc (1, sizeof *st);
  TdDtype dtype = param->var != NULL ? (TdDtype)param->var->node->dtype : param->dtype;
  int n = td__opt_n_states (opt);
  TdRecord t;

  st->opt = opt;
  st->loaded.param_id = param->id;
  td_serializer_enter (s, key);
  if (td__serializer_read_array (s, "t", TD_I64, &scalar, &t))
    {
      memcpy (&st->loaded.t, t.data, sizeof st->loaded.t);
      free (t.data);
      load_state (s, master_name, param, false, TD_F32, &st->loaded.master);
      if (st->loaded.master.data != NULL)
        dtype = TD_F32;
      for (int i = 0; i < n; i++)
        load_state (s, opt->cls->states[i], param, st->loaded.t > 0, dtype,
                    &st->loaded.states[i]);
      td__serializer_stage (s, staged_apply, staged_drop, st);
    }
  else
    staged_drop (st);
  td_serializer_leave (s);
}

static bool
has_param (TdSerializer *s, const char *key)
{
  bool has;

  td_serializer_enter (s, key);
  has = td_serializer_has (s, "t");
  td_serializer_leave (s);
  return has;
}

typedef struct
{
  TdOpt *opt;
  TdSerializer *s;
  TdVar **seen;
  int n;
  char *left; /* of an old file: what is in front of the next key */
  bool old;
} Visit;

/* The parameter's key in this file: behind what an old file has in front of it, if only that is
 * there.  *Owner*: the caller, free (). */
static char *
key_in_file (Visit *v, const char *key)
{
  size_t n_left = strlen (v->left), n = strlen (key);
  const char *slash = strrchr (key, '/');
  size_t n_links = slash != NULL ? (size_t)(slash - key) + 1 : 0;
  char *old = td__xrealloc (NULL, n_left + n + 3);
  bool there;

  memcpy (old, v->left, n_left);
  memcpy (old + n_left, key, n);
  memcpy (old + n_left + n, "/t", 3);
  there = n_left > 0 && (v->old || !has_param (v->s, key)) && td_serializer_has (v->s, old);
  v->old = v->old || there;
  v->left = td__xrealloc (v->left, n_left + n_links + 1);
  memcpy (v->left + n_left, key, n_links);
  v->left[n_left + n_links] = '\0';
  old[n_left + n] = '\0';
  if (!there)
    memmove (old, key, n + 1);
  return old;
}

/* An array that two links share has one state, under its first key. */
static void
load_one (TdLink *owner, TdParam *param, const char *key, void *user)
{
  Visit *v = user;
  char *in_file;

  (void)owner;
  if (param->kind != TD_PARAM_TRAINED || td__serializer_failed (v->s))
    return;
  for (int i = 0; i < v->n; i++)
    if (param->var != NULL && v->seen[i] == param->var)
      return;
  v->seen = td__xrealloc (v->seen, (size_t)(v->n + 1) * sizeof *v->seen);
  v->seen[v->n++] = param->var;
  in_file = key_in_file (v, key);
  if (param->var != NULL || has_param (v->s, in_file)) /* files once left out what waited */
    load_param (v->opt, param, in_file, v->s);
  free (in_file);
}

void
td__opt_serialize (void *object, TdSerializer *s)
{
  TdOpt *opt = object;
  bool loading = td_serializer_loading (s);

  if (opt->inert || td__opt_look_again (opt, td__serializer_site (s)) != TD_OK)
    {
      td__serializer_fail (s, TD_ERR_STATE, NULL, "the optimizer cannot be used");
      return;
    }
  if (loading)
    td__opt_async_end (opt);
  td__opt_settle (opt, 0);
  td_serialize_int (s, "t", &opt->t);
  td_serialize_int (s, "epoch", &opt->epoch);
  if (opt->dynamic && (!loading || td_serializer_has (s, "loss_scale")))
    {
      td_serialize_double (s, "loss_scale", &opt->scale);
      td_serialize_bool (s, "loss_scale_overflowed", &opt->seen_overflow);
    }
  if (loading)
    {
      Visit v = { opt, s, NULL, 0, td__xcalloc (1, 1), false };

      td__link_visit (opt->target, load_one, &v);
      if (v.old)
        td__serializer_old_levels (s, v.left);
      free (v.left);
      free (v.seen);
    }
  else
    {
      for (int i = 0; i < opt->n_slots; i++)
        save_slot (opt, &opt->slots[i], s);
      td__link_visit (opt->target, save_waiting, s);
    }
}

/* --- the public functions --- */

TdStatus
td_opt_save_npz_at (const char *path, TdOpt *opt, TdSaveOpt options, const TdSite *site)
{
  if (!td__opt_usable (opt, "td_save_npz", site))
    return td__error_status ();
  return td__save_object (path, TD_FILE_NPZ, options.compression, td__opt_serialize, opt,
                          "td_save_npz", site);
}

TdStatus
td_opt_save_safetensors_at (const char *path, TdOpt *opt, TdSaveOpt options, const TdSite *site)
{
  if (!td__opt_usable (opt, "td_save_safetensors", site))
    return td__error_status ();
  return td__save_object (path, TD_FILE_SAFETENSORS, options.compression, td__opt_serialize,
                          opt, "td_save_safetensors", site);
}

static TdStatus
load (const char *path, TdFileFormat format, TdOpt *opt, const TdLoadOpt *options,
      const char *call, const TdSite *site)
{
  TdLoadRule rule = { options->path, options->ignore_names,
                      !options->strict || options->partial, options->partial };

  if (!td__opt_usable (opt, call, site))
    return td__error_status ();
  return td__load_object (path, format, td__opt_serialize, opt, &rule, call, site);
}

TdStatus
td_opt_load_npz_at (const char *path, TdOpt *opt, TdLoadOpt options, const TdSite *site)
{
  return load (path, TD_FILE_NPZ, opt, &options, "td_load_npz", site);
}

TdStatus
td_opt_load_safetensors_at (const char *path, TdOpt *opt, TdLoadOpt options, const TdSite *site)
{
  return load (path, TD_FILE_SAFETENSORS, opt, &options, "td_load_safetensors", site);
}
