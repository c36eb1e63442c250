/*
 * Weights of another program for a model of ours: see td-weights.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-weights-private.h"

static gboolean
take_side (TdWeights *self, guint whose, const TdWeightsArray *arrays, guint n, GError **error)
{
  self->arrays[whose] = arrays;
  self->n_arrays[whose] = n;
  self->index[whose] = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; i < n; i++)
    if (!g_hash_table_insert (self->index[whose], (gpointer)arrays[i].name,
                              GUINT_TO_POINTER (i + 1)))
      {
        g_set_error (error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "%s is there twice",
                     arrays[i].name);
        return FALSE;
      }
  return TRUE;
}

/* As safetensors' own library writes them, one type of elements after the other. */
static gboolean
are_sorted (const TdWeightsArray *arrays, guint n)
{
  for (guint i = 1; i < n; i++)
    if (arrays[i].dtype == arrays[i - 1].dtype
        && strcmp (arrays[i].name, arrays[i - 1].name) < 0)
      return FALSE;
  return n > 1;
}

TdWeights *
td_weights_new (const TdWeightsArray *ours, guint n_ours, const TdWeightsArray *theirs,
                guint n_theirs, const TdWeightsRules *rules, GError **error)
{
  g_autoptr (TdWeights) self = g_new0 (TdWeights, 1);

  self->rules = *rules;
  self->left_out = g_array_new (FALSE, TRUE, sizeof (TdWeightsRow));
  self->of_ours = g_new0 (TdWeightsRow, n_ours + 1);
  self->used = g_new0 (gboolean, n_theirs + 1);
  if (!take_side (self, TD_OURS, ours, n_ours, error)
      || !take_side (self, TD_THEIRS, theirs, n_theirs, error))
    return NULL;
  self->sorted = are_sorted (theirs, n_theirs);
  for (guint whose = 0; whose < TD_N_WHOSE; whose++)
    td__weights_find_units (self, whose);
  if (rules->table && !td__weights_take_table (self, error))
    return NULL;
  td__weights_match (self);
  for (guint i = 0; i < self->units[TD_OURS]->len; i++)
    if (td__weights_unit (self, TD_OURS, i)->partner >= 0)
      td__weights_settle_pair (self, i, (guint)td__weights_unit (self, TD_OURS, i)->partner);
  td__weights_finish (self);
  return g_steal_pointer (&self);
}

void
td_weights_free (TdWeights *self)
{
  if (!self)
    return;
  for (guint i = 0; self->index[TD_OURS] && i < self->n_arrays[TD_OURS]; i++)
    g_free (self->of_ours[i].question);
  for (guint i = 0; i < self->left_out->len; i++)
    g_free (g_array_index (self->left_out, TdWeightsRow, i).question);
  for (guint whose = 0; whose < TD_N_WHOSE; whose++)
    {
      g_clear_pointer (&self->index[whose], g_hash_table_unref);
      g_clear_pointer (&self->units[whose], g_ptr_array_unref);
    }
  g_array_unref (self->left_out);
  g_free (self->of_ours);
  g_free (self->used);
  g_free (self);
}

guint
td_weights_get_n_rows (const TdWeights *self)
{
  return self->n_arrays[TD_OURS] + self->left_out->len;
}

const TdWeightsRow *
td_weights_get_row (const TdWeights *self, guint i)
{
  return i < self->n_arrays[TD_OURS]
             ? &self->of_ours[i]
             : &g_array_index (self->left_out, TdWeightsRow, i - self->n_arrays[TD_OURS]);
}

guint
td_weights_get_n_questions (const TdWeights *self)
{
  guint n = 0;

  for (guint i = 0; i < td_weights_get_n_rows (self); i++)
    n += td_weights_get_row (self, i)->question != NULL;
  return n;
}
