/*
 * Which weights are transposed, where shapes do not tell it, or tell it one way here and the
 * other way there: layers of one file are written by one program, so that what some need and
 * others do not is a sign that they are paired wrongly.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-weights-private.h"

static const TdWeightsArray *
first_source (const TdWeights *self, const TdWeightsRow *row)
{
  return row->n_theirs > 0 ? &self->arrays[TD_THEIRS][row->theirs[0]] : NULL;
}

/* Does the shape of what it is made of say whether it is transposed? */
static gboolean
is_told (const TdWeights *self, const TdWeightsRow *row)
{
  const TdWeightsArray *a = first_source (self, row);

  return a && !row->gates && a->ndim == 2 && a->dims[0] != a->dims[1]
         && self->arrays[TD_OURS][row->ours].ndim == 2;
}

/* Where others are transposed, a square is, or is not: its shape does not say. */
static void
doubt_squares (TdWeights *self)
{
  for (guint i = 0; i < self->n_arrays[TD_OURS]; i++)
    {
      TdWeightsRow *row = &self->of_ours[i];
      const TdWeightsArray *a = first_source (self, row);

      if (!a || a->ndim != 2 || a->dims[0] != a->dims[1] || row->transpose || row->gates
          || g_str_equal (row->how, "by the table"))
        continue; /* an array's own line, not its layer's */
      row->transpose = TRUE;
      td__weights_doubt (row,
                         g_strdup ("others are transposed, and of a square nothing shows it"));
    }
}

/* Is there another of these sizes, whichever way round, that is turned the other way? */
static gboolean
has_opposite (const TdWeights *self, const TdWeightsRow *row)
{
  const TdWeightsArray *a = first_source (self, row);

  for (guint i = 0; i < self->n_arrays[TD_OURS]; i++)
    {
      const TdWeightsRow *other = &self->of_ours[i];
      const TdWeightsArray *b = first_source (self, other);

      if (is_told (self, other) && !other->transpose == !!row->transpose
          && MIN (a->dims[0], a->dims[1]) == MIN (b->dims[0], b->dims[1])
          && MAX (a->dims[0], a->dims[1]) == MAX (b->dims[0], b->dims[1]))
        return TRUE;
    }
  return FALSE;
}

/* Some are, some are not: the fewer ones are asked for, and those that could be each other,
 * unless their names say that they belong together. */
static void
doubt_mixed (TdWeights *self, const guint *n)
{
  const gboolean fewer = n[TRUE] <= n[FALSE];

  for (guint i = 0; i < self->n_arrays[TD_OURS]; i++)
    {
      TdWeightsRow *row = &self->of_ours[i];

      if (!is_told (self, row) || g_str_has_prefix (row->how, "by the table"))
        continue;
      if (!g_str_has_prefix (row->how, "by name") && has_opposite (self, row))
        td__weights_doubt (row, g_strdup ("of layers of these sizes some need to be transposed "
                                          "and others do not: they may be paired wrongly"));
      else if (row->transpose == fewer || n[TRUE] == n[FALSE])
        td__weights_doubt (
            row, g_strdup (row->transpose ? "it needs to be transposed, and others do not"
                                          : "others need to be transposed, and it does not"));
    }
}

void
td__weights_doubt_turned (TdWeights *self)
{
  guint n[2] = { 0, 0 };
  gboolean any = FALSE;

  for (guint i = 0; i < self->n_arrays[TD_OURS]; i++)
    {
      const TdWeightsRow *row = &self->of_ours[i];

      any = any || row->transpose;
      if (is_told (self, row))
        n[!!row->transpose]++;
    }
  if (any)
    doubt_squares (self);
  if (n[FALSE] > 0 && n[TRUE] > 0)
    doubt_mixed (self, n);
}
