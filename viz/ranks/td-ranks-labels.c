/*
 * What the program itself calls the iterations that findings name: the label that it gave them,
 * or the step that it reported in them. The tape counts from 0 on, whatever the program does.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-ranks-private.h"

static const char *const step_keys[] = { "step", "global_step", "iteration", NULL };

/* Owner: the caller. NULL: it has none, or the tape's number. */
static char *
dup_label (TdTapeReader *reader, guint32 label, gint64 number)
{
  g_autofree char *own = g_strdup_printf ("%" G_GINT64_FORMAT, number);
  g_autofree char *text = label & TD_TAPE_LABEL_NUMBER
                              ? g_strdup_printf ("%u", label & (TD_TAPE_LABEL_NUMBER - 1))
                              : g_strdup (td_tape_reader_string (reader, label));

  return *text && !g_str_equal (text, own)
             ? g_strdup_printf ("%s%s%s", label & TD_TAPE_LABEL_NUMBER ? "" : "'", text,
                                label & TD_TAPE_LABEL_NUMBER ? "" : "'")
             : NULL;
}

/* Of its summary; of one that never ended, of what is there of it. */
static char *
dup_given (TdTapeReader *reader, gint64 number)
{
  TdTapeSummaries all = td_tape_reader_summaries (reader);
  const TdTapeIteration *live;
  char *label = NULL;

  for (guint32 i = 0; i < all.n; i++)
    if ((gint64)all.rows[i].number == number)
      return dup_label (reader, all.rows[i].label, number);
  live = td_tape_reader_live (reader);
  if (live && (gint64)live->number == number)
    label = dup_label (reader, live->label, number);
  td_tape_iteration_free (live);
  return label;
}

/* As the summary has it; "": there is none. Owner: the caller. */
static char *
dup_own (TdTapeReader *reader, gint64 number)
{
  TdTapeSummaries all = td_tape_reader_summaries (reader);

  for (guint32 i = 0; i < all.n; i++)
    if ((gint64)all.rows[i].number == number)
      return all.rows[i].label & TD_TAPE_LABEL_NUMBER
                 ? g_strdup_printf ("%u", all.rows[i].label & (TD_TAPE_LABEL_NUMBER - 1))
                 : g_strdup (td_tape_reader_string (reader, all.rows[i].label));
  return g_strdup ("");
}

gboolean
td__ranks_have_one_label (const TdRanks *self, guint a, guint b, gint64 number)
{
  g_autofree char *x = dup_own (self->tapes[a].reader, number),
                  *y = dup_own (self->tapes[b].reader, number);

  return *x && g_str_equal (x, y);
}

/* "step 1205". */
static char *
dup_reported (TdTapeReader *reader, gint64 number)
{
  guint64 n;
  const TdTapeReport *reports = td_tape_reader_reports (reader, &n);
  char text[TD_FORMAT_SIZE];

  for (guint64 i = 0; i < n; i++)
    {
      const char *key = td_tape_reader_string (reader, reports[i].key);

      if ((gint64)reports[i].iteration == number && reports[i].value != (double)number
          && g_strv_contains (step_keys, key))
        return g_strdup_printf ("%s %s", key, td_format_digits (text, reports[i].value, 9));
    }
  return NULL;
}

/* The first of these ranks that has a name for it. Owner: the caller. NULL: none has. */
static char *
dup_name (const TdRanks *self, const TdRanksFinding *f, gint64 number)
{
  char *name = NULL;

  for (guint i = 0; i < self->n && !name; i++)
    {
      gboolean is_of = f->n_ranks == 0;

      for (guint k = 0; k < f->n_ranks; k++)
        is_of = is_of || f->ranks[k] == self->tapes[i].open.rank;
      if (!is_of)
        continue;
      name = dup_given (self->tapes[i].reader, number);
      if (!name)
        name = dup_reported (self->tapes[i].reader, number);
    }
  return name;
}

/* Behind the first time that a sentence says "iteration 5". */
static void
name_in_sentence (const TdRanks *self, TdRanksFinding *f)
{
  static const char word[] = "iteration ";
  g_autoptr (GHashTable) said
      = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  GString *out = g_string_new (NULL);
  const char *at = f->sentence;

  for (const char *next; (next = strstr (at, word)) != NULL;)
    {
      const char *digits = next + strlen (word);
      const gsize n = strspn (digits, "0123456789");
      const gint64 number = g_ascii_strtoll (digits, NULL, 10);
      g_autofree char *name
          = n > 0 && !g_hash_table_contains (said, &number) ? dup_name (self, f, number) : NULL;

      g_string_append_len (out, at, digits + n - at);
      if (name)
        g_string_append_printf (out, " (the program's %s)", name);
      if (n > 0)
        g_hash_table_add (said, g_memdup2 (&number, sizeof number));
      at = digits + n;
    }
  g_string_append (out, at);
  g_free (f->sentence);
  f->sentence = g_string_free (out, FALSE);
}

void
td__ranks_name_iterations (TdRanks *self)
{
  for (guint i = 0; i < self->findings->len; i++)
    {
      TdRanksFinding *f = &g_array_index (self->findings, TdRanksFinding, i);

      f->label = f->iteration >= 0 ? dup_name (self, f, f->iteration) : NULL;
      name_in_sentence (self, f);
    }
}
