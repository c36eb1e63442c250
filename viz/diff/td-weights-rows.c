/*
 * What each array of ours is made of, once it is known which layer is which: arrays are paired
 * by what PyTorch calls them, and steps are those that the shapes ask for.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-weights-private.h"

static const struct
{
  const char *ours, *theirs;
} roles[] = {
  { "W", "weight" },
  { "b", "bias" },
  { "gamma", "weight" },
  { "beta", "bias" },
  { "avg_mean", "running_mean" },
  { "avg_var", "running_var" },
  { "N", "num_batches_tracked" },
};

static const TdWeightsArray *
get_array (const TdWeights *self, guint whose, gint i)
{
  return &self->arrays[whose][i];
}

void
td__weights_settle (TdWeights *self, const TdWeightsRow *row)
{
  for (gint k = 0; k < row->n_theirs; k++)
    self->used[row->theirs[k]] = TRUE;
  if (row->ours < 0)
    g_array_append_val (self->left_out, *row);
  else
    self->of_ours[row->ours] = *row;
}

static gboolean
is_settled (const TdWeights *self, guint ours)
{
  return self->of_ours[ours].how != NULL;
}

/* A row of one array of theirs, or of none. */
static TdWeightsRow
row_of (guint ours, const TdWeightsPart *theirs, const TdWeightsUnit *unit)
{
  return (TdWeightsRow){ .ours = (gint)ours,
                         .n_theirs = theirs ? 1 : 0,
                         .theirs = { theirs ? (gint)theirs->array : 0 },
                         .end = -1,
                         .how = unit->how,
                         .question = g_strdup (unit->question) };
}

/* ---- shapes ---- */

static gboolean
take_source (const TdWeightsArray *a, const TdWeightsRow *row, gint64 *dims, char **why)
{
  memcpy (dims, a->dims, sizeof a->dims);
  if (a->unread)
    *why = g_strdup_printf ("%s cannot be read: %s", a->name, a->unread);
  else if (a->ndim < 0)
    *why = g_strdup_printf ("%s is None: it waited for its shape there, too", a->name);
  else if (row->transpose && a->ndim != 2)
    *why = g_strdup_printf ("%s has not two axes to be transposed", a->name);
  else if (row->transpose)
    {
      dims[0] = a->dims[1];
      dims[1] = a->dims[0];
    }
  if (*why || row->end < 0)
    return !*why;
  if (a->ndim < 1 || row->end > dims[0])
    *why = g_strdup_printf ("%s has no rows %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT, a->name,
                            row->first, row->end);
  dims[0] = row->end - row->first;
  return !*why;
}

gint
td_weights_shape (const TdWeights *self, const TdWeightsRow *row, gint64 *dims, char **why)
{
  const TdWeightsArray *first = get_array (self, TD_THEIRS, row->theirs[0]);
  const gint from = row->join == TD_WEIGHTS_ROWS ? 1 : 0;
  gint64 other[TD_WEIGHTS_MAX_NDIM];

  *why = NULL;
  if (!take_source (first, row, dims, why))
    return -1;
  for (gint k = 1; k < row->n_theirs; k++)
    {
      const TdWeightsArray *a = get_array (self, TD_THEIRS, row->theirs[k]);

      if (!take_source (a, row, other, why))
        return -1;
      if (a->ndim != first->ndim || a->ndim < from
          || (a->ndim > from
              && memcmp (dims + from, other + from, (gsize)(a->ndim - from) * sizeof *dims)
                     != 0))
        {
          *why = g_strdup_printf ("%s and %s do not fit together", first->name, a->name);
          return -1;
        }
      dims[0] += from > 0 ? other[0] : 0;
    }
  return first->ndim;
}

static char *
shape_text (const gint64 *dims, gint ndim)
{
  GString *text = g_string_new ("(");

  for (gint d = 0; d < ndim; d++)
    g_string_append_printf (text, "%s%" G_GINT64_FORMAT, d > 0 ? ", " : "", dims[d]);
  g_string_append (text, ndim == 1 ? ",)" : ")");
  return g_string_free (text, FALSE);
}

static gboolean
equal_shapes (const gint64 *a, gint n_a, const gint64 *b, gint n_b)
{
  return n_a == n_b && (n_a == 0 || memcmp (a, b, (gsize)n_a * sizeof *a) == 0);
}

/* The same but for axes of size 1. */
static gboolean
equal_but_ones (const gint64 *a, gint n_a, const gint64 *b, gint n_b)
{
  gint i = 0, j = 0;

  for (;;)
    {
      for (; i < n_a && a[i] == 1; i++)
        ;
      for (; j < n_b && b[j] == 1; j++)
        ;
      if (i == n_a || j == n_b)
        return i == n_a && j == n_b;
      if (a[i++] != b[j++])
        return FALSE;
    }
}

void
td__weights_doubt (TdWeightsRow *row, char *text)
{
  if (row->question)
    g_free (text);
  else
    row->question = text;
}

void
td__weights_check (const TdWeights *self, TdWeightsRow *row)
{
  const TdWeightsArray *ours;
  gint64 dims[TD_WEIGHTS_MAX_NDIM];
  char *why = NULL;
  gint ndim;

  if (row->ours < 0 || row->n_theirs == 0)
    return;
  ours = get_array (self, TD_OURS, row->ours);
  ndim = td_weights_shape (self, row, dims, &why);
  if (ours->unread && ndim >= 0)
    why = g_strdup_printf ("%s cannot be read: %s", ours->name, ours->unread);
  if (why)
    {
      td__weights_doubt (row, why);
      return;
    }
  if (row->gates && (ndim < 1 || dims[0] % 4 != 0))
    td__weights_doubt (row, g_strdup ("rows of four gates expected"));
  if (ours->ndim < 0
      || (row->reshape ? equal_but_ones : equal_shapes) (ours->dims, ours->ndim, dims, ndim))
    return;
  g_autofree char *a = shape_text (ours->dims, ours->ndim), *b = shape_text (dims, ndim);
  td__weights_doubt (row, g_strdup_printf ("%s expected, got %s", a, b));
}

/* The steps that the shapes ask for. */
static void
find_steps (const TdWeights *self, TdWeightsRow *row)
{
  const TdWeightsArray *ours = get_array (self, TD_OURS, row->ours);
  gint64 dims[TD_WEIGHTS_MAX_NDIM];
  char *why = NULL;
  gint ndim;

  if (row->n_theirs == 0 || ours->ndim < 0)
    return;
  ndim = td_weights_shape (self, row, dims, &why);
  g_free (why);
  if (ndim < 0 || equal_shapes (ours->dims, ours->ndim, dims, ndim))
    return;
  row->transpose
      = ndim == 2 && ours->ndim == 2 && ours->dims[0] == dims[1] && ours->dims[1] == dims[0];
  row->reshape = !row->transpose && equal_but_ones (ours->dims, ours->ndim, dims, ndim);
}

static void
settle_checked (TdWeights *self, TdWeightsRow *row)
{
  find_steps (self, row);
  td__weights_check (self, row);
  td__weights_settle (self, row);
}

/* ---- layers ---- */

/* What is not there of a layer that is: a bias that is all zeros, or nothing that is needed. */
static void
settle_missing (TdWeights *self, guint ours, const char *leaf, const TdWeightsUnit *unit,
                const TdWeightsUnit *other)
{
  TdWeightsRow row = row_of (ours, NULL, unit);

  if (g_str_equal (leaf, "N")) /* of batches seen: PyTorch 0.4 did not count them */
    row.how = "not in FROM, and not needed";
  else if (get_array (self, TD_OURS, (gint)ours)->ndim >= 0
           && (g_str_equal (leaf, "b") || g_str_equal (leaf, "beta")))
    {
      row.zeros = TRUE;
      td__weights_doubt (&row,
                         g_strdup_printf ("%s has no bias", td__weights_unit_said (other)));
    }
  else
    td__weights_doubt (
        &row, g_strdup_printf ("%s has nothing of that name", td__weights_unit_said (other)));
  td__weights_settle (self, &row);
}

static const TdWeightsPart *
part_for (const TdWeightsUnit *theirs, const char *leaf)
{
  const TdWeightsPart *part = td__weights_part (theirs, leaf);

  for (guint i = 0; !part && i < G_N_ELEMENTS (roles); i++)
    if (g_str_equal (roles[i].ours, leaf))
      part = td__weights_part (theirs, roles[i].theirs);
  return part;
}

static void
settle_layer (TdWeights *self, const TdWeightsUnit *a, const TdWeightsUnit *b)
{
  for (guint i = 0; i < a->parts->len; i++)
    {
      const TdWeightsPart *part = &g_array_index (a->parts, TdWeightsPart, i),
                          *other = part_for (b, part->leaf);
      TdWeightsRow row;

      if (is_settled (self, part->array))
        continue;
      if (!other)
        {
          settle_missing (self, part->array, part->leaf, a, b);
          continue;
        }
      row = row_of (part->array, other, a);
      settle_checked (self, &row);
    }
}

/* An LSTM of ours: gates interleaved, and one bias for the two of theirs. */
static void
settle_lstm (TdWeights *self, const TdWeightsUnit *a, const TdWeightsUnit *b)
{
  static const struct
  {
    const char *ours, *theirs, *second;
  } arrays[] = { { "upward.W", "weight_ih", NULL },
                 { "upward.b", "bias_ih", "bias_hh" },
                 { "lateral.W", "weight_hh", NULL } };

  for (guint i = 0; i < G_N_ELEMENTS (arrays); i++)
    {
      const TdWeightsPart *part = td__weights_part (a, arrays[i].ours),
                          *first = td__weights_part (b, arrays[i].theirs),
                          *second
                          = arrays[i].second ? td__weights_part (b, arrays[i].second) : NULL;
      TdWeightsRow row;

      if (!part || is_settled (self, part->array))
        continue;
      row = row_of (part->array, first, a);
      row.gates = first != NULL;
      row.zeros = !first;
      if (first && second)
        row.theirs[row.n_theirs++] = (gint)second->array;
      td__weights_check (self, &row);
      td__weights_settle (self, &row);
    }
}

/* A cell of an n-step layer of ours: an array of each gate, in PyTorch's order. */
static void
settle_cell (TdWeights *self, const TdWeightsUnit *a, const TdWeightsUnit *b)
{
  static const char *const sources[2][2]
      = { { "weight_ih", "weight_hh" }, { "bias_ih", "bias_hh" } };

  for (guint i = 0; i < a->parts->len; i++)
    {
      const TdWeightsPart *part = &g_array_index (a->parts, TdWeightsPart, i);
      const TdWeightsArray *ours = get_array (self, TD_OURS, (gint)part->array);
      const guint j = (guint)g_ascii_strtoull (part->leaf + 1, NULL, 10);
      const gboolean bias = part->leaf[0] == 'b';
      const TdWeightsPart *other;
      TdWeightsRow row;

      if (is_settled (self, part->array) || j >= 2 * a->gates || ours->ndim < 1)
        continue;
      other = td__weights_part (b, sources[bias][j / a->gates]);
      row = row_of (part->array, other, a);
      row.zeros = !other && bias;
      if (!other && !bias)
        td__weights_doubt (
            &row, g_strdup_printf ("%s has nothing of that name", td__weights_unit_said (b)));
      if (a->gates > 1)
        {
          row.first = (gint64)(j % a->gates) * ours->dims[0];
          row.end = row.first + ours->dims[0];
        }
      td__weights_check (self, &row);
      td__weights_settle (self, &row);
    }
}

void
td__weights_settle_pair (TdWeights *self, guint ours, guint theirs)
{
  const TdWeightsUnit *a = td__weights_unit (self, TD_OURS, ours),
                      *b = td__weights_unit (self, TD_THEIRS, theirs);

  if (a->gates == 0)
    settle_layer (self, a, b);
  else if (td__weights_part (a, "upward.W"))
    settle_lstm (self, a, b);
  else
    settle_cell (self, a, b);
}

/* ---- queries, keys and values ---- */

/* Queries, keys and values, one block of rows behind the other: so these names are used. */
static gboolean
are_blocks (const TdWeightsUnit *fused)
{
  static const char *const names[]
      = { "qkv", "in_proj", "c_attn", "Wqkv", "to_qkv", "qkv_proj", "attn_qkv", "in_proj_qkv" };
  const char *dot = strrchr (fused->path, '.'), *last = dot ? dot + 1 : fused->path;

  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (g_ascii_strcasecmp (last, names[i]) == 0)
      return TRUE;
  return FALSE;
}

/* Nothing in the numbers tells one from the other. */
static void
doubt_blocks (TdWeightsRow *row, const TdWeightsUnit *fused)
{
  if (!are_blocks (fused))
    td__weights_doubt (row,
                       g_strdup_printf ("%s may have its rows head by head, as in GPT-NeoX, "
                                        "BLOOM and Falcon, or in three blocks",
                                        td__weights_unit_said (fused)));
}

/* Three of ours: rows of one. */
static void
settle_split (TdWeights *self, guint fused, const guint *three)
{
  TdWeightsUnit *b = td__weights_unit (self, TD_THEIRS, fused);

  for (guint k = 0; k < 3; k++)
    {
      TdWeightsUnit *a = td__weights_unit (self, TD_OURS, three[k]);

      a->how = "by name, of three in one";
      for (guint i = 0; i < a->parts->len; i++)
        {
          const TdWeightsPart *part = &g_array_index (a->parts, TdWeightsPart, i),
                              *other = part_for (b, part->leaf);
          const TdWeightsArray *ours = get_array (self, TD_OURS, (gint)part->array);
          TdWeightsRow row = row_of (part->array, other, a);

          if (is_settled (self, part->array))
            continue;
          if (!other || ours->ndim < 1)
            {
              settle_missing (self, part->array, part->leaf, a, b);
              continue;
            }
          row.first = (gint64)k * ours->dims[0];
          row.end = row.first + ours->dims[0];
          row.transpose
              = get_array (self, TD_THEIRS, (gint)other->array)->ndim == 2
                && get_array (self, TD_THEIRS, (gint)other->array)->dims[0] == ours->dims[0];
          td__weights_check (self, &row);
          doubt_blocks (&row, b);
          td__weights_settle (self, &row);
        }
      a->partner = (gint)fused;
    }
  b->partner = (gint)three[0];
}

/* One of ours: the rows of three. */
static void
settle_joined (TdWeights *self, guint fused, const guint *three)
{
  TdWeightsUnit *a = td__weights_unit (self, TD_OURS, fused);

  a->how = "by name, three in one";
  for (guint i = 0; i < a->parts->len; i++)
    {
      const TdWeightsPart *part = &g_array_index (a->parts, TdWeightsPart, i);
      TdWeightsRow row = row_of (part->array, NULL, a);

      row.join = TD_WEIGHTS_ROWS;
      for (guint k = 0; k < 3; k++)
        {
          const TdWeightsPart *other
              = part_for (td__weights_unit (self, TD_THEIRS, three[k]), part->leaf);

          if (other)
            row.theirs[row.n_theirs++] = (gint)other->array;
        }
      if (is_settled (self, part->array))
        continue;
      if (row.n_theirs == 0)
        {
          settle_missing (self, part->array, part->leaf, a,
                          td__weights_unit (self, TD_THEIRS, three[0]));
          continue;
        }
      td__weights_check (self, &row);
      doubt_blocks (&row, a);
      td__weights_settle (self, &row);
    }
  for (guint k = 0; k < 3; k++)
    td__weights_unit (self, TD_THEIRS, three[k])->partner = (gint)fused;
  a->partner = (gint)three[0];
}

void
td__weights_settle_qkv (TdWeights *self, guint whose, guint fused, const guint *three)
{
  if (whose == TD_OURS)
    settle_split (self, fused, three);
  else
    settle_joined (self, fused, three);
}

/* ---- what is left ---- */

/* An array of theirs, used, that holds what this one holds; -1: there is none. */
static gint
same_as (const TdWeights *self, guint theirs)
{
  const TdWeightsArray *a = get_array (self, TD_THEIRS, (gint)theirs);

  for (guint k = 0; self->rules.same && k < self->n_arrays[TD_THEIRS]; k++)
    {
      const TdWeightsArray *b = get_array (self, TD_THEIRS, (gint)k);

      if (self->used[k] && a->ndim > 1 && equal_shapes (a->dims, a->ndim, b->dims, b->ndim)
          && a->dtype == b->dtype && self->rules.same (theirs, k, self->rules.user))
        return (gint)k;
    }
  return -1;
}

static void
settle_left_over (TdWeights *self, guint theirs)
{
  TdWeightsRow row = {
    .ours = -1, .n_theirs = 1, .theirs = { (gint)theirs }, .end = -1, .how = "left over"
  };

  if (same_as (self, theirs) >= 0)
    row.how = "tied: the same as another";
  else
    row.question = g_strdup ("nothing of ours is made of it");
  g_array_append_val (self->left_out, row);
}

void
td__weights_finish (TdWeights *self)
{
  for (guint i = 0; i < self->n_arrays[TD_OURS]; i++)
    if (!is_settled (self, i))
      self->of_ours[i]
          = (TdWeightsRow){ .ours = (gint)i,
                            .end = -1,
                            .how = "left over",
                            .question = g_strdup ("nothing of theirs is found for it") };
  td__weights_doubt_turned (self);
  for (guint j = 0; j < self->n_arrays[TD_THEIRS]; j++)
    if (!self->used[j])
      settle_left_over (self, j);
}
