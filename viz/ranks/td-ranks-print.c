/*
 * The findings, the ranks and the last calls, as text and as JSON.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-ranks-private.h"

#define MOST_MISSING 16
#define LADDER 8 /* calls before the one that ranks wait in */

/* ---- the ladder's end ---- */

GPtrArray *
td__ranks_list_last (const TdRanks *self)
{
  GPtrArray *rungs = g_ptr_array_new ();
  guint skip = g_queue_get_length (self->done);

  skip = skip > LADDER ? skip - LADDER : 0;
  for (GList *l = self->done->head; l; l = l->next)
    if (skip > 0)
      skip--;
    else
      g_ptr_array_add (rungs, l->data);
  for (GList *l = self->order.head; l; l = l->next)
    {
      const TdRung *rung = l->data;
      gboolean waits = FALSE;

      for (guint i = 0; i < self->n; i++)
        waits = waits || (rung->sides[i].here && !rung->sides[i].left);
      if (waits)
        g_ptr_array_add (rungs, l->data);
    }
  return rungs;
}

const char *
td__rung_call (const TdRanks *self, const TdRung *rung)
{
  const char *shadow = "";

  for (guint i = 0; i < self->n; i++)
    if (rung->sides[i].here && !td__rung_side_is_shadow (&rung->sides[i]))
      return rung->sides[i].call;
    else if (rung->sides[i].here)
      shadow = rung->sides[i].call;
  return shadow;
}

static gboolean
shows_ladder (const TdRanks *self)
{
  return td__ranks_has (self, TD_RANKS_HANG) || td__ranks_has (self, TD_RANKS_MISMATCH);
}

void
td__rung_print (const TdRanks *self, const TdRung *rung, GString *out)
{
  g_autofree gboolean *missing = g_new (gboolean, self->n);

  td__ranks_list_missing (self, rung, missing);
  g_string_append_printf (out, "  %6" G_GUINT64_FORMAT " %-24s", rung->seq,
                          td__rung_call (self, rung));
  for (guint k = 0; k < self->n; k++)
    g_string_append_printf (out, " %u:%s", self->tapes[k].open.rank,
                            rung->sides[k].here ? rung->sides[k].left ? "left" : "waits"
                            : missing[k]        ? "MISSING"
                                                : "-");
  g_string_append_c (out, '\n');
}

/* " sum f32 4096 B, came +0 ns, +3.1 ms": on the first tape's clock, after the first. */
static void
print_came (const TdRanks *self, const TdRung *rung, GString *out)
{
  gint64 first = G_MAXINT64;
  const TdRungSide *side = NULL;
  char text[TD_FORMAT_SIZE];

  for (guint i = 0; i < self->n; i++)
    if (rung->sides[i].here)
      {
        side = side ? side : &rung->sides[i];
        first = MIN (first, (gint64)rung->sides[i].enter_ns + self->tapes[i].open.offset_ns);
      }
  if (!side)
    return;
  g_string_append_printf (out, "  %s%s%s %s; came", td_tape_wait_name (side->wait),
                          side->dtype ? " " : "",
                          side->dtype ? td_tape_dtype_name (side->dtype - 1u) : "",
                          td_format_bytes (text, side->bytes));
  for (guint i = 0; i < self->n; i++)
    if (rung->sides[i].here && self->tapes[i].open.has_offset)
      g_string_append_printf (
          out, " %u:+%s", self->tapes[i].open.rank,
          td_format_ns (text, (guint64)((gint64)rung->sides[i].enter_ns
                                        + self->tapes[i].open.offset_ns - first)));
}

void
td__rung_print_whole (const TdRanks *self, const TdRung *rung, GString *out)
{
  td__rung_print (self, rung, out);
  g_string_truncate (out, out->len - 1);
  print_came (self, rung, out);
  g_string_append_c (out, '\n');
}

static void
print_ladder (const TdRanks *self, GString *out)
{
  g_autoptr (GPtrArray) rungs = td__ranks_list_last (self);

  if (!shows_ladder (self) || rungs->len == 0)
    return;
  g_string_append (out, "\nLast calls:\n");
  for (guint i = 0; i < rungs->len; i++)
    td__rung_print (self, g_ptr_array_index (rungs, i), out);
}

/* ---- ranks ---- */

static char *
dup_clock (const TdRanks *self, guint i)
{
  const TdRank *rank = &self->tapes[i].open;
  char offset[TD_FORMAT_SIZE], error[TD_FORMAT_SIZE];

  if (i == 0)
    return g_strdup ("the first's");
  if (!rank->has_offset)
    return g_strdup ("not known");
  td_format_ns (offset, (guint64)ABS (rank->offset_ns));
  if (rank->one_clock && rank->error_ns == 0)
    return g_strdup_printf ("%s%s, same clock", rank->offset_ns < 0 ? "−" : "+", offset);
  return g_strdup_printf ("%s%s ± %s%s", rank->offset_ns < 0 ? "−" : "+", offset,
                          td_format_ns (error, rank->error_ns),
                          rank->one_clock ? ", same clock" : "");
}

#define COLUMNS 8
static const char *const heads[COLUMNS]
    = { "rank", "host", "pid", "iterations", "updates", "waited", "clock", "end" };

static void
fill_row (const TdRanks *self, guint i, char *cells[COLUMNS])
{
  const TdRank *rank = &self->tapes[i].open;
  char waited[TD_FORMAT_SIZE];

  cells[0] = g_strdup_printf ("%u", rank->rank);
  cells[1] = g_strdup (*rank->host ? rank->host : "?");
  cells[2] = g_strdup_printf ("%d", rank->pid);
  cells[3] = g_strdup_printf ("%" G_GUINT64_FORMAT, rank->n_iterations);
  cells[4]
      = g_strdup_printf ("%s%" G_GUINT64_FORMAT,
                         rank->n_looked_at < rank->n_iterations ? "≥ " : "", rank->n_updating);
  cells[5] = g_strdup (td_format_ns (waited, rank->waited_ns));
  cells[6] = dup_clock (self, i);
  cells[7] = g_strdup (rank->end);
}

static void
print_row (GString *out, char *const *cells, const gsize *widths)
{
  for (guint c = 0; c < COLUMNS; c++)
    {
      gsize n = (gsize)g_utf8_strlen (cells[c], -1);

      g_string_append_printf (out, "%s%s", c ? "  " : "", cells[c]);
      for (; c + 1 < COLUMNS && n < widths[c]; n++)
        g_string_append_c (out, ' ');
    }
  g_string_append_c (out, '\n');
}

static gboolean
is_here (const TdRanks *self, guint rank)
{
  for (guint i = 0; i < self->n; i++)
    if (self->tapes[i].open.rank == rank)
      return TRUE;
  return FALSE;
}

/* The first of them: of a thousand ranks it is clear then. */
static void
print_missing (const TdRanks *self, GString *out)
{
  guint n = 0;

  g_string_append (out, "No tape here of ");
  g_string_append (out, td_plural (self->n_started - self->n, "rank", "ranks"));
  for (guint rank = 0; rank < self->n_started && n < MOST_MISSING; rank++)
    if (!is_here (self, rank))
      g_string_append_printf (out, "%s %u", n++ ? "," : "", rank);
  if (self->n_started - self->n > n)
    g_string_append_printf (out, " and %u more", self->n_started - self->n - n);
  g_string_append_c (out, '\n');
}

static void
print_ranks (const TdRanks *self, GString *out)
{
  g_autofree char **cells = g_new0 (char *, (self->n + 1) * COLUMNS);
  gsize widths[COLUMNS] = { 0 };

  for (guint c = 0; c < COLUMNS; c++)
    cells[c] = g_strdup (heads[c]);
  for (guint i = 0; i < self->n; i++)
    fill_row (self, i, cells + (i + 1) * COLUMNS);
  for (guint i = 0; i < (self->n + 1) * COLUMNS; i++)
    widths[i % COLUMNS] = MAX (widths[i % COLUMNS], (gsize)g_utf8_strlen (cells[i], -1));
  for (guint i = 0; i <= self->n; i++)
    print_row (out, cells + i * COLUMNS, widths);
  for (guint i = 0; i < (self->n + 1) * COLUMNS; i++)
    g_free (cells[i]);
  if (self->n < self->n_started)
    print_missing (self, out);
}

/* What was thinned was not compared, which is not to say that it was equal. */
static void
print_thinned (const TdRanks *self, GString *out)
{
  for (guint i = 0; i < self->n; i++)
    {
      const TdRank *rank = &self->tapes[i].open;

      if (rank->n_looked_at >= rank->n_iterations)
        continue;
      g_string_append_printf (out,
                              "Compared: of rank %u's %" G_GUINT64_FORMAT
                              " iterations the %" G_GUINT64_FORMAT
                              " that are whole on its tape\n",
                              rank->rank, rank->n_iterations, rank->n_looked_at);
      return;
    }
}

/* In what there is to compare; that a tape is damaged is said apart. */
static gboolean
has_found_nothing (const TdRanks *self)
{
  for (guint i = 0; i < self->findings->len; i++)
    {
      const TdRanksFinding *f = td_ranks_get_finding (self, i);

      if (f->level != TD_RANKS_NOTE && f->cause != TD_RANKS_DAMAGE)
        return FALSE;
    }
  return TRUE;
}

static void
print_text (const TdRanks *self, GString *out)
{
  for (guint i = 0; i < self->findings->len; i++)
    {
      const TdRanksFinding *f = td_ranks_get_finding (self, i);

      g_string_append_printf (out, "%s: %s\n", td_ranks_level_name (f->level), f->sentence);
      if (f->advice)
        g_string_append_printf (out, "  %s.\n", f->advice);
    }
  if (self->n_steps == 0 && td__ranks_has (self, TD_RANKS_DAMAGE))
    g_string_append (out, "Nothing was compared.\n");
  else if (has_found_nothing (self) && self->n_steps == 0 && self->n_started > 1)
    g_string_append_printf (
        out,
        "Nothing found%s, and no gradients or weights to compare: nobody averaged "
        "any.\n",
        self->n < self->n_started ? " in the tapes that are here" : "");
  else if (has_found_nothing (self))
    {
      g_autofree char *nothing = td__ranks_dup_nothing (self);

      g_string_append_printf (out, "%s.\n", nothing);
    }
  print_thinned (self, out);
  g_string_append_c (out, '\n');
  print_ranks (self, out);
  print_ladder (self, out);
}

/* ---- JSON ---- */

static void
json_finding (TdJson *j, const TdRanksFinding *f)
{
  td_json_begin_object (j);
  td_json_member_string (j, "level", td_ranks_level_name (f->level));
  td_json_member_string (j, "cause", td_ranks_cause_name (f->cause));
  td_json_key (j, "iteration");
  if (f->iteration >= 0)
    td_json_int (j, f->iteration);
  else
    td_json_null (j);
  if (f->label)
    td_json_member_string (j, "label", f->label);
  td_json_key (j, "last_before");
  if (f->after >= 0)
    td_json_int (j, f->after);
  else
    td_json_null (j);
  td_json_key (j, "ranks");
  td_json_begin_array (j);
  for (guint i = 0; i < f->n_ranks; i++)
    td_json_int (j, f->ranks[i]);
  td_json_end_array (j);
  td_json_member_string (j, "array", f->array);
  td_json_member_string (j, "site", f->site);
  td_json_member_string (j, "sentence", f->sentence);
  td_json_member_string (j, "advice", f->advice);
  td_json_end_object (j);
}

static void
json_rank (TdJson *j, const TdRank *rank)
{
  td_json_begin_object (j);
  td_json_member_int (j, "rank", rank->rank);
  td_json_member_string (j, "tape", rank->path);
  td_json_member_string (j, "host", rank->host);
  td_json_member_string (j, "device", rank->device);
  td_json_member_int (j, "pid", rank->pid);
  td_json_member_int (j, "iterations", (gint64)rank->n_iterations);
  td_json_member_int (j, "compared", (gint64)rank->n_looked_at);
  td_json_member_int (j, "updates", (gint64)rank->n_updating);
  td_json_member_string (j, "end", rank->end);
  td_json_member_bool (j, "failed", rank->has_failed);
  td_json_member_int (j, "waited_ns", (gint64)rank->waited_ns);
  td_json_member_int (j, "waited_for_ns", (gint64)rank->kept_ns);
  td_json_key (j, "clock");
  if (rank->has_offset)
    {
      td_json_begin_object (j);
      td_json_member_int (j, "offset_ns", rank->offset_ns);
      td_json_member_int (j, "error_ns", (gint64)rank->error_ns);
      td_json_member_bool (j, "same", rank->one_clock);
      td_json_end_object (j);
    }
  else
    td_json_null (j);
  td_json_end_object (j);
}

void
td__rung_json (const TdRanks *self, const TdRung *rung, TdJson *j)
{
  g_autofree gboolean *missing = g_new (gboolean, self->n);

  td__ranks_list_missing (self, rung, missing);
  td_json_begin_object (j);
  td_json_key (j, "comm");
  td_json_id (j, rung->comm);
  td_json_member_int (j, "seq", (gint64)rung->seq);
  td_json_member_int (j, "size", rung->size);
  td_json_key (j, "ranks");
  td_json_begin_array (j);
  for (guint i = 0; i < self->n; i++)
    {
      const TdRungSide *side = &rung->sides[i];
      g_autofree char *site = side->here ? td__ranks_dup_site (self, i, side->site) : NULL;

      if (!side->here && !missing[i])
        continue;
      td_json_begin_object (j);
      td_json_member_int (j, "rank", self->tapes[i].open.rank);
      td_json_member_string (j, "state",
                             !side->here  ? "missing"
                             : side->left ? "left"
                                          : "waits");
      if (side->here)
        {
          td_json_member_string (j, "call", side->call);
          td_json_member_string (j, "site", site);
          td_json_member_int (j, "iteration", side->iteration);
          td_json_member_string (j, "wait", td_tape_wait_name (side->wait));
          td_json_member_int (j, "bytes", (gint64)side->bytes);
          if (side->dtype)
            td_json_member_string (j, "dtype", td_tape_dtype_name (side->dtype - 1u));
          if (side->peer >= 0)
            td_json_member_int (j, "peer", side->peer);
          td_json_member_int (j, "entered_ns",
                              (gint64)side->enter_ns + self->tapes[i].open.offset_ns);
          td_json_key (j, "left_ns");
          if (side->left)
            td_json_int (j, (gint64)side->leave_ns + self->tapes[i].open.offset_ns);
          else
            td_json_null (j);
        }
      td_json_end_object (j);
    }
  td_json_end_array (j);
  td_json_end_object (j);
}

static void
print_json (const TdRanks *self, GString *out)
{
  g_autoptr (GPtrArray) rungs = td__ranks_list_last (self);
  TdJson j;

  td_json_init (&j, out);
  td_json_begin_object (&j);
  td_json_member_int (&j, "started", self->n_started);
  td_json_member_int (&j, "steps", self->n_steps);
  td_json_key (&j, "missing");
  td_json_begin_array (&j);
  for (guint rank = 0; rank < self->n_started; rank++)
    if (!is_here (self, rank))
      td_json_int (&j, rank);
  td_json_end_array (&j);
  td_json_key (&j, "findings");
  td_json_begin_array (&j);
  for (guint i = 0; i < self->findings->len; i++)
    json_finding (&j, td_ranks_get_finding (self, i));
  td_json_end_array (&j);
  td_json_key (&j, "ranks");
  td_json_begin_array (&j);
  for (guint i = 0; i < self->n; i++)
    json_rank (&j, &self->tapes[i].open);
  td_json_end_array (&j);
  td_json_key (&j, "last_calls");
  td_json_begin_array (&j);
  for (guint i = 0; shows_ladder (self) && i < rungs->len; i++)
    td__rung_json (self, g_ptr_array_index (rungs, i), &j);
  td_json_end_array (&j);
  td_json_end_object (&j);
}

char *
td_ranks_print (const TdRanks *self, const char *format)
{
  GString *out = g_string_new (NULL);

  if (g_str_equal (format, "json"))
    print_json (self, out);
  else
    print_text (self, out);
  return g_string_free (out, FALSE);
}
