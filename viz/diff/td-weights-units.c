/*
 * Layers of a list of arrays, found by their names: an array is in the layer that its name has
 * in front, but for recurrent layers, which are one of several arrays wherever they lie.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-port-names.h"
#include "td-weights-private.h"

/* A name in two: the layer, and what it calls the array. */
typedef struct
{
  char *path, *leaf;
  gint layer; /* of theirs: weight_ih_l0 has 0, weight_ih (a cell) too; -1: not recurrent */
  gboolean reverse; /* the second direction */
} Name;

static void
name_clear (Name *name)
{
  g_free (name->path);
  g_free (name->leaf);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Name, name_clear)

TdWeightsUnit *
td__weights_unit (const TdWeights *self, guint whose, guint i)
{
  return g_ptr_array_index (self->units[whose], i);
}

const TdWeightsPart *
td__weights_part (const TdWeightsUnit *unit, const char *leaf)
{
  for (guint i = 0; i < unit->parts->len; i++)
    {
      const TdWeightsPart *part = &g_array_index (unit->parts, TdWeightsPart, i);

      if (g_str_equal (part->leaf, leaf))
        return part;
    }
  return NULL;
}

const char *
td__weights_unit_said (const TdWeightsUnit *unit)
{
  return *unit->path ? unit->path : "the outermost layer";
}

static void
part_clear (gpointer data)
{
  g_free (((TdWeightsPart *)data)->leaf);
}

void
td__weights_unit_free (gpointer data)
{
  TdWeightsUnit *unit = data;

  g_free (unit->path);
  g_free (unit->question);
  g_array_unref (unit->parts);
  g_free (unit);
}

char
td__weights_qkv (const char *path)
{
  static const char *const frames[][2] = { { "", "" },  { "", "_proj" }, { "w_", "" },
                                           { "w", "" }, { "to_", "" },   { "", "_lin" } };
  static const char *const words[] = { "query", "key", "value" };
  const char *dot = strrchr (path, '.');
  g_autofree char *last = g_ascii_strdown (dot ? dot + 1 : path, -1);

  for (guint i = 0; i < G_N_ELEMENTS (words); i++)
    for (guint f = 0; f < G_N_ELEMENTS (frames); f++)
      {
        g_autofree char *letter
            = g_strdup_printf ("%s%c%s", frames[f][0], words[i][0], frames[f][1]);
        g_autofree char *word
            = g_strdup_printf ("%s%s%s", frames[f][0], words[i], frames[f][1]);

        if (g_str_equal (last, letter) || g_str_equal (last, word))
          return words[i][0];
      }
  return '\0';
}

/* ---- names ---- */

/* weight_ih_l1_reverse is weight_ih of layer 1, backwards. */
static void
take_recurrent (Name *name)
{
  static const char *const leaves[] = { "weight_ih", "weight_hh", "bias_ih", "bias_hh" };

  name->layer = -1;
  for (guint i = 0; i < G_N_ELEMENTS (leaves); i++)
    if (g_str_has_prefix (name->leaf, leaves[i]))
      {
        const char *rest = name->leaf + strlen (leaves[i]);
        char *end = NULL;
        guint64 layer = 0;

        if (g_str_has_prefix (rest, "_l") && g_ascii_isdigit (rest[2]))
          {
            layer = g_ascii_strtoull (rest + 2, &end, 10);
            name->reverse = g_str_equal (end, "_reverse");
            if ((*end && !name->reverse) || layer > 10000)
              return;
          }
        else if (*rest)
          return;
        name->layer = (gint)layer;
        g_free (name->leaf);
        name->leaf = g_strdup (leaves[i]);
        return;
      }
}

/* in_proj_weight is what a layer in_proj would call weight. */
static void
take_projection (Name *name)
{
  static const char *const ends[] = { "proj_weight", "proj_bias" };

  for (guint i = 0; i < G_N_ELEMENTS (ends); i++)
    if (g_str_has_suffix (name->leaf, ends[i]))
      {
        const gsize stem = strlen (name->leaf) - strlen (ends[i]) + strlen ("proj");
        g_autofree char *leaf = g_strdup (name->leaf + stem + 1), *whole = name->leaf;
        g_autofree char *around = name->path;

        name->path = g_strdup_printf ("%s%s%.*s", around, *around ? "." : "", (int)stem, whole);
        name->leaf = g_steal_pointer (&leaf);
        return;
      }
}

static void
take_theirs (Name *name, const char *text)
{
  g_autofree char *dotted = g_strdelimit (g_strdup (text), "/", '.');
  const char *dot = strrchr (dotted, '.');

  name->path = dot ? g_strndup (dotted, (gsize)(dot - dotted)) : g_strdup ("");
  name->leaf = g_strdup (dot ? dot + 1 : dotted);
  take_recurrent (name);
  take_projection (name);
}

static gboolean
has_ours (const TdWeights *self, const char *around, const char *name)
{
  g_autofree char *key = g_strdup_printf ("%s%s%s", around, *around ? "/" : "", name);

  return g_hash_table_contains (self->index[TD_OURS], key);
}

/* upward/W and lateral/W are an LSTM's, without what a peephole has besides. */
static char *
lstm_around (const TdWeights *self, const char *text)
{
  static const char *const ends[] = { "upward/W", "upward/b", "lateral/W" };

  for (guint i = 0; i < G_N_ELEMENTS (ends); i++)
    if (g_str_equal (text, ends[i])
        || (g_str_has_suffix (text, ends[i])
            && text[strlen (text) - strlen (ends[i]) - 1] == '/'))
      {
        const gsize n = strlen (text) - strlen (ends[i]);
        g_autofree char *around = g_strndup (text, n > 0 ? n - 1 : 0);

        if (has_ours (self, around, "upward/W") && has_ours (self, around, "lateral/W")
            && !has_ours (self, around, "peep_i/W"))
          return g_steal_pointer (&around);
      }
  return NULL;
}

static void
take_ours (const TdWeights *self, Name *name, const char *text)
{
  g_autofree char *around = lstm_around (self, text);
  const char *slash = strrchr (text, '/');

  name->layer = -1;
  if (around)
    {
      name->path = g_strdup_printf ("%s%s0", around, *around ? "/" : "");
      name->leaf = g_strdup (text + strlen (around) + (*around ? 1 : 0));
    }
  else
    {
      name->path = slash ? g_strndup (text, (gsize)(slash - text)) : g_strdup ("");
      name->leaf = g_strdup (slash ? slash + 1 : text);
    }
  g_strdelimit (name->path, "/", '.');
  g_strdelimit (name->leaf, "/", '.');
}

/* ---- layers ---- */

static TdWeightsUnit *
unit_of (TdWeights *self, guint whose, GHashTable *by_path, const char *path)
{
  TdWeightsUnit *unit = g_hash_table_lookup (by_path, path);

  if (!unit)
    {
      unit = g_new0 (TdWeightsUnit, 1);
      unit->path = g_strdup (path);
      unit->partner = -1;
      unit->parts = g_array_new (FALSE, FALSE, sizeof (TdWeightsPart));
      g_array_set_clear_func (unit->parts, part_clear);
      g_ptr_array_add (self->units[whose], unit);
      g_hash_table_insert (by_path, unit->path, unit);
    }
  return unit;
}

static const TdWeightsArray *
array_of (const TdWeights *self, guint whose, const TdWeightsUnit *unit, const char *leaf)
{
  const TdWeightsPart *part = td__weights_part (unit, leaf);

  return part ? &self->arrays[whose][part->array] : NULL;
}

/* Gates, input and state of a recurrent layer; FALSE: it is none. */
static gboolean
recurrent_sizes (const TdWeights *self, guint whose, const TdWeightsUnit *unit, gint64 *sizes)
{
  const struct
  {
    const char *input, *state, *last; /* last: of the cells of an n-step layer, one a gate */
    guint gates;
  } kinds[] = { { "weight_ih", "weight_hh", "weight_hh", 0 },
                { "upward.W", "lateral.W", "lateral.W", 4 },
                { "w0", "w4", "w7", 4 },
                { "w0", "w3", "w5", 3 },
                { "w0", "w1", "w1", 1 } };

  for (guint i = 0; i < G_N_ELEMENTS (kinds); i++)
    {
      const TdWeightsArray *input = array_of (self, whose, unit, kinds[i].input),
                           *state = array_of (self, whose, unit, kinds[i].state);

      if (!input || !state || !array_of (self, whose, unit, kinds[i].last) || state->ndim != 2
          || state->dims[1] <= 0)
        continue;
      sizes[0] = kinds[i].gates ? kinds[i].gates : state->dims[0] / state->dims[1];
      sizes[1] = input->ndim == 2 ? input->dims[1] : TD_WEIGHTS_UNKNOWN;
      sizes[2] = state->dims[1];
      return sizes[0] == 1 || sizes[0] == 3 || sizes[0] == 4;
    }
  return FALSE;
}

static guint64
size_of (const TdWeightsArray *a)
{
  guint64 n = 1;

  for (gint d = 0; d < a->ndim; d++)
    n *= (guint64)a->dims[d];
  return n;
}

/* What layers that could be each other have in common: the sizes of the largest array, and
 * whether there are running statistics. */
static void
find_token (const TdWeights *self, guint whose, TdWeightsUnit *unit)
{
  const TdWeightsArray *largest = NULL;
  gboolean running
      = td__weights_part (unit, "avg_var") || td__weights_part (unit, "running_var");
  gint64 dims[TD_WEIGHTS_MAX_NDIM + 3] = { running };
  guint n = 1;

  if (recurrent_sizes (self, whose, unit, dims + 1))
    {
      unit->gates = (guint)dims[1];
      unit->token = dims[2] < 0 ? 0 : td__names_token (dims, 4);
      return;
    }
  for (guint i = 0; i < unit->parts->len; i++)
    {
      const TdWeightsArray *a
          = &self->arrays[whose][g_array_index (unit->parts, TdWeightsPart, i).array];

      if (a->ndim < 0)
        return; /* with 0 */
      largest = largest && size_of (largest) >= size_of (a) ? largest : a;
    }
  for (gint d = 0; d < largest->ndim; d++)
    if (largest->dims[d] != 1)
      dims[n++] = largest->dims[d];
  unit->token = td__names_token (dims, n);
}

/* Layers and directions of theirs as ours are counted: 0, 1 ... */
static char *
recurrent_path (const Name *name, GHashTable *two_ways)
{
  const gboolean both = g_hash_table_contains (two_ways, name->path);

  return g_strdup_printf ("%s%s%d", name->path, *name->path ? "." : "",
                          name->layer * (both ? 2 : 1) + (name->reverse ? 1 : 0));
}

void
td__weights_find_units (TdWeights *self, guint whose)
{
  g_autoptr (GHashTable) by_path = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GHashTable) two_ways
      = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);

  self->units[whose] = g_ptr_array_new_with_free_func (td__weights_unit_free);
  for (guint i = 0; whose == TD_THEIRS && i < self->n_arrays[whose]; i++)
    {
      g_auto (Name) name = { 0 };

      take_theirs (&name, self->arrays[whose][i].name);
      if (name.reverse)
        g_hash_table_add (two_ways, g_strdup (name.path));
    }
  for (guint i = 0; i < self->n_arrays[whose]; i++)
    {
      g_auto (Name) name = { 0 };
      g_autofree char *path = NULL;
      TdWeightsPart part = { .array = i };

      if (whose == TD_OURS)
        take_ours (self, &name, self->arrays[whose][i].name);
      else
        take_theirs (&name, self->arrays[whose][i].name);
      path = name.layer >= 0 ? recurrent_path (&name, two_ways) : g_strdup (name.path);
      part.leaf = g_strdup (name.leaf);
      g_array_append_val (unit_of (self, whose, by_path, path)->parts, part);
    }
  for (guint i = 0; i < self->units[whose]->len; i++)
    find_token (self, whose, td__weights_unit (self, whose, i));
}
