/*
 * The table of weights as text, written and read: see td-weights.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "dtype.h"
#include "td-port-names.h"
#include "td-weights-private.h"

static const char by_table[] = "by the table", zeros[] = "zeros";

/* ---- writing ---- */

static void
append_name (GString *out, const char *name)
{
  /* A name of one sign that means something else begins with an escape, too. */
  const gboolean all = g_str_equal (name, "-") || g_str_equal (name, zeros) || name[0] == '?';

  if (!*name)
    g_string_append (out, "%00"); /* a word all the same */
  for (const guchar *at = (const guchar *)name; *at; at++)
    if (*at <= ' ' || *at == 0x7f || strchr ("#+,%", *at)
        || (all && at == (const guchar *)name))
      g_string_append_printf (out, "%%%02X", *at);
    else
      g_string_append_c (out, (char)*at);
}

static char *
sources_text (const TdWeights *self, const TdWeightsRow *row)
{
  GString *out = g_string_new (row->n_theirs > 0 ? "" : row->zeros ? zeros : "-");

  for (gint k = 0; k < row->n_theirs; k++)
    {
      if (k > 0)
        g_string_append_c (out, row->join == TD_WEIGHTS_ROWS ? ',' : '+');
      append_name (out, self->arrays[TD_THEIRS][row->theirs[k]].name);
    }
  return g_string_free (out, FALSE);
}

static char *
steps_text (const TdWeightsRow *row)
{
  GString *out = g_string_new (NULL);

  if (row->transpose)
    g_string_append (out, " transpose");
  if (row->end >= 0)
    g_string_append_printf (out, " rows=%" G_GINT64_FORMAT ":%" G_GINT64_FORMAT, row->first,
                            row->end);
  if (row->gates)
    g_string_append (out, " gates");
  if (row->reshape)
    g_string_append (out, " reshape");
  return g_string_free (out, FALSE);
}

static void
append_array (GString *out, const TdWeightsArray *a)
{
  if (a->ndim < 0)
    {
      g_string_append (out, a->unread ? "unread" : "waiting");
      return;
    }
  g_string_append (out, "(");
  for (gint d = 0; d < a->ndim; d++)
    g_string_append_printf (out, "%s%" G_GINT64_FORMAT, d > 0 ? ", " : "", a->dims[d]);
  g_string_append_printf (
      out, ") %s", a->dtype < TD__N_DTYPES ? td__dtype_short_names[a->dtype] : "unknown");
}

static void
append_remark (GString *out, const TdWeights *self, const TdWeightsRow *row)
{
  g_string_append (out, "  # ");
  if (row->ours >= 0)
    append_array (out, &self->arrays[TD_OURS][row->ours]);
  if (row->n_theirs > 0)
    {
      g_string_append (out, row->ours >= 0 ? " of " : "");
      append_array (out, &self->arrays[TD_THEIRS][row->theirs[0]]);
    }
  g_string_append (out, "; ");
  for (const char *at = row->question ? row->question : row->how; *at; at++)
    g_string_append_c (out, (guchar)*at < ' ' ? '?' : *at); /* a name in it may have any */
}

char *
td_weights_print (const TdWeights *self)
{
  GString *out = g_string_new (NULL);
  const guint n = td_weights_get_n_rows (self);
  gsize wide[2] = { 0 };

  for (guint pass = 0; pass < 2; pass++)
    for (guint i = 0; i < n; i++)
      {
        const TdWeightsRow *row = td_weights_get_row (self, i);
        g_autofree char *theirs = sources_text (self, row), *steps = steps_text (row);
        g_autoptr (GString) ours = g_string_new (row->question ? "? " : "");

        if (row->ours < 0)
          g_string_append_c (ours, '-');
        else
          append_name (ours, self->arrays[TD_OURS][row->ours].name);
        if (pass == 0)
          {
            wide[0] = MAX (wide[0], MIN (ours->len, 60));
            wide[1] = MAX (wide[1], MIN (strlen (theirs) + strlen (steps), 60));
            continue;
          }
        g_string_append_printf (out, "%-*s  %s%-*s", (int)wide[0], ours->str, theirs,
                                (int)(wide[1] - MIN (strlen (theirs), wide[1])), steps);
        append_remark (out, self, row);
        g_string_append_c (out, '\n');
      }
  return g_string_free (out, FALSE);
}

/* ---- reading ---- */

/* A line that is read, and what is wrong with it. */
typedef struct
{
  TdWeights *self;
  guint number;
  GError **error;
} Line;

static gboolean G_GNUC_PRINTF (2, 3) refuse (const Line *line, const char *format, ...)
{
  va_list args;

  va_start (args, format);
  g_autofree char *text = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (line->error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "line %u of the table: %s",
               line->number, text);
  return FALSE;
}

/* A name with its bytes in place of %XX. */
static char *
take_name (const char *word)
{
  GString *name = g_string_new (NULL);

  for (const char *at = word; *at; at++)
    if (*at == '%' && g_ascii_isxdigit (at[1]) && g_ascii_isxdigit (at[2]))
      {
        g_string_append_c (
            name, (char)(g_ascii_xdigit_value (at[1]) * 16 + g_ascii_xdigit_value (at[2])));
        at += 2;
      }
    else
      g_string_append_c (name, *at);
  return g_string_free (name, FALSE);
}

/* The array that a word names; -1: none. */
static gint
find_array (const TdWeights *self, guint whose, const char *word)
{
  g_autofree char *name = take_name (word);

  return GPOINTER_TO_INT (g_hash_table_lookup (self->index[whose], name)) - 1;
}

/* The path of a layer or block that a word names. The table of a port check has the model in
 * front, so that there is a second turn without it. NULL: no more turns. */
static const char *
next_path (const char *path, guint turn)
{
  const char *dot = turn == 0 ? NULL : strchr (path, '.');

  return turn == 0 ? path : dot ? dot + 1 : NULL;
}

static char *
take_path (const char *word)
{
  return g_strdelimit (take_name (word), "/", '.');
}

/* The layer that a word names; -1: none. */
static gint
find_layer (const TdWeights *self, guint whose, const char *word)
{
  g_autofree char *name = take_path (word);
  const char *path = name;

  for (guint turn = 0; turn < 2 && (path = next_path (path, turn)); turn++)
    for (guint i = 0; i < self->units[whose]->len; i++)
      {
        const TdWeightsUnit *unit = td__weights_unit (self, whose, i);
        const gsize n = strlen (path);

        if (g_str_equal (unit->path, path)
            || (unit->gates > 0 && strncmp (unit->path, path, n) == 0 /* rnn for rnn.0 */
                && g_str_equal (unit->path + n, ".0")))
          return (gint)i;
      }
  return -1;
}

/* The block that a word names; NULL: no layer is in it. Owner: the caller. */
static char *
find_block (const TdWeights *self, guint whose, const char *word)
{
  g_autofree char *name = take_path (word);
  const char *path = name;

  for (guint turn = 0; turn < 2 && (path = next_path (path, turn)); turn++)
    for (guint i = 0; i < self->units[whose]->len; i++)
      if (td__weights_in_block (td__weights_unit (self, whose, i)->path, path))
        return g_strdup (path);
  return NULL;
}

static gboolean
take_rows (const Line *line, TdWeightsRow *row, const char *word)
{
  char *end;
  const guint64 first = g_ascii_strtoull (word, &end, 10);
  guint64 last;

  if (!g_ascii_isdigit (*word) || *end != ':' || !g_ascii_isdigit (end[1]))
    return refuse (line, "rows=FIRST:END expected, got rows=%s", word);
  last = g_ascii_strtoull (end + 1, &end, 10);
  if (*end || first > last || last > G_MAXINT64)
    return refuse (line, "rows=FIRST:END expected, got rows=%s", word);
  row->first = (gint64)first;
  row->end = (gint64)last;
  return TRUE;
}

static gboolean
take_step (const Line *line, TdWeightsRow *row, const char *word)
{
  if (g_str_equal (word, "transpose"))
    row->transpose = TRUE;
  else if (g_str_equal (word, "gates"))
    row->gates = TRUE;
  else if (g_str_equal (word, "reshape"))
    row->reshape = TRUE;
  else if (g_str_has_prefix (word, "rows="))
    return take_rows (line, row, word + strlen ("rows="));
  else
    return refuse (line, "%s is no step", word);
  return TRUE;
}

static gboolean
take_sources (const Line *line, TdWeightsRow *row, const char *word)
{
  row->zeros = g_str_equal (word, zeros);
  if (row->zeros || g_str_equal (word, "-"))
    return TRUE;
  row->join = strchr (word, ',') ? TD_WEIGHTS_ROWS : TD_WEIGHTS_SUM;
  if (row->join == TD_WEIGHTS_ROWS && strchr (word, '+'))
    return refuse (line, "%s is a sum and rows at once", word);
  g_auto (GStrv) names = g_strsplit_set (word, ",+", -1);
  for (guint i = 0; names[i]; i++)
    {
      const gint found = find_array (line->self, TD_THEIRS, names[i]);

      if (found < 0)
        return refuse (line, "FROM has no array %s", names[i]);
      if (row->n_theirs == TD_WEIGHTS_MOST_SOURCES)
        return refuse (line, "more than %d arrays", TD_WEIGHTS_MOST_SOURCES);
      row->theirs[row->n_theirs++] = found;
    }
  return TRUE;
}

/* All arrays of a layer that has no counterpart. */
static void
leave_out (TdWeights *self, guint whose, guint layer)
{
  const TdWeightsUnit *unit = td__weights_unit (self, whose, layer);

  for (guint i = 0; i < unit->parts->len; i++)
    {
      const gint array = (gint)g_array_index (unit->parts, TdWeightsPart, i).array;
      const gboolean said
          = whose == TD_OURS ? self->of_ours[array].how != NULL : self->used[array];
      const TdWeightsRow row = { .ours = whose == TD_OURS ? array : -1,
                                 .n_theirs = whose == TD_OURS ? 0 : 1,
                                 .theirs = { whose == TD_OURS ? 0 : array },
                                 .end = -1,
                                 .how = by_table };

      if (!said) /* by a line of its own */
        td__weights_settle (self, &row);
    }
}

/* Of a block without a counterpart: all that is in it. */
static void
leave_block_out (TdWeights *self, guint whose, const char *block)
{
  for (guint i = 0; i < self->units[whose]->len; i++)
    if (td__weights_in_block (td__weights_unit (self, whose, i)->path, block))
      leave_out (self, whose, i);
}

static gboolean
take_blocks (const Line *line, const char *const *words, guint n)
{
  TdWeights *self = line->self;
  g_autofree char *ours = find_block (self, TD_OURS, words[TD_OURS]),
                  *theirs = find_block (self, TD_THEIRS, words[TD_THEIRS]);

  if (n > 2)
    return refuse (line, "steps are of arrays, and %s is a block", words[0]);
  if (ours && theirs && !td__weights_pair_blocks (self, ours, theirs))
    return refuse (line, "%s is asked twice for", words[0]);
  if (!ours && theirs)
    leave_block_out (self, TD_THEIRS, theirs);
  else if (ours && !theirs)
    leave_block_out (self, TD_OURS, ours);
  return TRUE;
}

static gboolean
take_layers (const Line *line, const char *const *words, guint n)
{
  TdWeights *self = line->self;
  gint found[TD_N_WHOSE];
  gboolean blocks = TRUE;

  for (guint whose = 0; whose < TD_N_WHOSE; whose++)
    {
      g_autofree char *block = find_block (self, whose, words[whose]);

      found[whose] = find_layer (self, whose, words[whose]);
      if (found[whose] < 0 && !block && !g_str_equal (words[whose], "-"))
        return refuse (line, "%s no array, layer or block %s",
                       whose == TD_OURS ? "the model has" : "FROM has", words[whose]);
      blocks = blocks && found[whose] < 0;
    }
  if (blocks)
    return take_blocks (line, words, n);
  for (guint whose = 0; whose < TD_N_WHOSE; whose++)
    {
      if (found[whose] < 0 && !g_str_equal (words[whose], "-"))
        return refuse (line, "%s is a block, and %s is a layer", words[whose], words[!whose]);
      if (found[whose] >= 0
          && td__weights_unit (self, whose, (guint)found[whose])->partner >= 0)
        return refuse (line, "%s is asked twice for", words[whose]);
    }
  if (n > 2)
    return refuse (line, "steps are of arrays, and %s is a layer", words[0]);
  for (guint whose = 0; whose < TD_N_WHOSE; whose++)
    if (found[!whose] < 0 && found[whose] >= 0)
      leave_out (self, whose, (guint)found[whose]);
  if (found[TD_OURS] < 0 || found[TD_THEIRS] < 0)
    return TRUE;
  TdWeightsUnit *a = td__weights_unit (self, TD_OURS, (guint)found[TD_OURS]),
                *b = td__weights_unit (self, TD_THEIRS, (guint)found[TD_THEIRS]);
  if (a->gates != b->gates)
    return refuse (line, "%s and %s are layers of different kinds", words[0], words[1]);
  a->partner = found[TD_THEIRS];
  b->partner = found[TD_OURS];
  a->how = b->how = "by the table of layers";
  return TRUE;
}

static gboolean
take_line (const Line *line, char *text)
{
  const char *words[8];
  const guint n = td__names_words (text, words, G_N_ELEMENTS (words));
  TdWeightsRow row = { .end = -1, .how = by_table };

  if (n == 0)
    return TRUE;
  if (words[0][0] == '?')
    return refuse (line, "it is still a question");
  if (n < 2 || n > 6)
    return refuse (line, "a name of ours, one of theirs, and steps expected, got %u word%s", n,
                   n == 1 ? "" : "s");
  row.ours = find_array (line->self, TD_OURS, words[0]);
  if (row.ours < 0
      && (!g_str_equal (words[0], "-") || find_array (line->self, TD_THEIRS, words[1]) < 0))
    return take_layers (line, words, n);
  if (row.ours >= 0 && line->self->of_ours[row.ours].how)
    return refuse (line, "%s is asked twice for", words[0]);
  if (!take_sources (line, &row, words[1]))
    return FALSE;
  for (guint i = 2; i < n; i++)
    if (!take_step (line, &row, words[i]))
      return FALSE;
  if (row.zeros && line->self->arrays[TD_OURS][row.ours].ndim < 0)
    return refuse (line, "%s waits for its shape: zeros have none", words[0]);
  td__weights_check (line->self, &row);
  if (row.question)
    {
      refuse (line, "%s: %s", words[0], row.question);
      g_free (row.question);
      return FALSE;
    }
  td__weights_settle (line->self, &row);
  return TRUE;
}

gboolean
td__weights_take_table (TdWeights *self, GError **error)
{
  g_auto (GStrv) lines = g_strsplit (self->rules.table, "\n", -1);

  for (guint i = 0; lines[i]; i++)
    {
      const Line line = { self, i + 1, error };

      if (!take_line (&line, lines[i]))
        return FALSE;
    }
  return TRUE;
}
