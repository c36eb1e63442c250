/*
 * Ranks that run the same operations with other attributes: another scale, no causal mask. Only
 * those say something that stay from step to step and that gradients come from: a crop that
 * each rank draws for itself is data.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "diff/td-diff.h"
#include "tape/td-attributes.h"
#include "td-ranks-private.h"
#include "td-tape-writer.h"

#define LEAST_STEPS 3 /* in which they differ, for it to be the model's */

struct TdRanksAttrs
{
  guint n_steps, n_differ;
  gboolean first_differs;
  gint64 after, last;
  gint64 *from, *to; /* iterations of the first and the last step that differ, by place; -1 */
};

TdRanksAttrs *
td__ranks_attrs_new (const TdRanks *self)
{
  TdRanksAttrs *a = g_new0 (TdRanksAttrs, 1);

  a->after = a->last = -1;
  a->from = g_new0 (gint64, self->n);
  a->to = g_new0 (gint64, self->n);
  return a;
}

static void
attrs_free (TdRanksAttrs *a)
{
  g_free (a->from);
  g_free (a->to);
  g_free (a);
}

/* ---- texts ---- */

/* Which rank it is, where the random stream stands, and how the processor computes it. */
static gboolean
is_own (const char *op, const char *word)
{
  static const char *const names[] = { "offset=", "seed=", "key=", "algorithm=" };

  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (g_str_has_prefix (word, names[i]))
      return TRUE;
  return g_str_has_prefix (word, "rank=") && td_diff_is_call_of_ranks (op);
}

/* The attributes that ranks must have in common. Owner: the caller. */
static char *
dup_common (const char *op, const char *attrs)
{
  g_auto (GStrv) words = td_attributes_split (attrs);
  GString *out = g_string_new (NULL);

  for (guint i = 0; words[i]; i++)
    if (!is_own (op, words[i]))
      g_string_append_printf (out, "%s ", words[i]);
  return g_string_free (out, FALSE);
}

/* A text is read once for each operation that has it. */
typedef struct
{
  guint64 id, hash;
} Known;

static guint64
hash_text (TdRankTape *tape, const TdTapeEvent *e)
{
  const guint64 id = (guint64)e->attrs << 32 | e->opdef;
  Known *known = g_hash_table_lookup (tape->attrs, &id);
  g_autofree char *text = NULL;

  if (known)
    return known->hash;
  text = dup_common (td_tape_reader_op_name (tape->reader, e->opdef),
                     td_tape_reader_string (tape->reader, e->attrs));
  known = g_new (Known, 1);
  *known = (Known){ id, td_tape_hash_bytes (1, text, strlen (text)) };
  g_hash_table_insert (tape->attrs, known, known);
  return known->hash;
}

static gboolean
reads_gradient (const TdTapeIteration *it, const TdTapeEvent *e)
{
  for (guint k = 0; k < e->n_in; k++)
    if (it->vars[it->ins[e->first_in + k]].category == TD_TAPE_CATEGORY_GRADIENT)
      return TRUE;
  return FALSE;
}

/* What was differentiated, or changes a gradient. An optimizer's numbers are compared as such.
 */
guint64
td__ranks_hash_attrs (TdRanks *self, guint place, const TdTapeIteration *it)
{
  g_autofree guint8 *has_twin = g_new0 (guint8, MAX (it->n_events, 1));
  guint64 hash = 0;

  for (guint e = 0; e < it->n_events; e++)
    if (it->events[e].twin >= 0 && (guint)it->events[e].twin < it->n_events)
      has_twin[it->events[e].twin] = 1;
  for (guint e = 0; e < it->n_events; e++)
    if (it->events[e].phase == TD_TAPE_PHASE_FORWARD && it->events[e].attrs != 0
        && (has_twin[e] || reads_gradient (it, &it->events[e])))
      hash = td_tape_hash (hash, hash_text (&self->tapes[place], &it->events[e]));
  return hash;
}

/* ---- a step ---- */

/* Attributes of other sizes follow from these: then nothing is said. */
static gboolean
are_alike (const TdRankIteration *a, const TdRankIteration *b)
{
  return a->fingerprint == b->fingerprint && a->fingerprint_dims == b->fingerprint_dims;
}

void
td__ranks_attrs_look (TdRanksAttrs *a, const TdRanks *self, const TdRankRow *row, guint first,
                      const gboolean *together)
{
  const TdRankIteration *one = row->of[first];
  gboolean differ = FALSE, any = FALSE;

  for (guint i = first + 1; i < self->n; i++)
    if (together[i] && are_alike (row->of[i], one))
      {
        any = TRUE;
        differ = differ || row->of[i]->attrs != one->attrs;
      }
  if (any && a->n_steps++ == 0)
    a->first_differs = differ;
  for (guint i = 0; differ && i < self->n; i++)
    {
      gboolean of_it = together[i] && are_alike (row->of[i], one);

      if (a->n_differ == 0)
        a->from[i] = of_it ? row->of[i]->number : -1;
      a->to[i] = of_it ? row->of[i]->number : -1;
    }
  if (differ && a->n_differ++ == 0)
    a->after = a->last;
  a->last = row->number;
}

/* ---- what differs ---- */

static char *
dup_of (const TdIteration *it, guint e)
{
  return dup_common (td_iteration_get_op_name (it, e),
                     td_iteration_get_string (it, td_iteration_get_tape (it)->events[e].attrs));
}

static gboolean
has_same (const TdIteration *x, const TdIteration *y, guint e)
{
  g_autofree char *a = dup_of (x, e), *b = dup_of (y, e);

  return g_str_equal (td_iteration_get_op_name (x, e), td_iteration_get_op_name (y, e))
         && g_str_equal (a, b);
}

static gboolean
leads_to_gradient (const TdIteration *it, const gboolean *trained, guint e)
{
  const TdTapeIteration *t = td_iteration_get_tape (it);
  const TdTapeEvent *event = &t->events[e];
  guint n_twins;

  if (event->phase != TD_TAPE_PHASE_FORWARD)
    return FALSE;
  td_iteration_get_twins (it, e, &n_twins);
  for (guint k = 0; k < event->n_out && n_twins == 0; k++)
    if (trained[t->outs[event->first_out + k]] && reads_gradient (t, event))
      return TRUE;
  return n_twins > 0;
}

/* The first operation that differs between two ranks, and on each is the same in both steps;
 * -1: none. */
static gint
find_event (const TdRanksAttrs *a, TdRanks *self, guint one, guint other)
{
  g_autoptr (TdIteration) x = td__ranks_load (self, one, a->from[one]),
                          x_to = td__ranks_load (self, one, a->to[one]),
                          y = td__ranks_load (self, other, a->from[other]),
                          y_to = td__ranks_load (self, other, a->to[other]);
  g_autofree gboolean *trained = x ? td__ranks_mark_trained (x) : NULL;
  guint n = x ? td_iteration_get_n_events (x) : 0;

  if (!x || !x_to || !y || !y_to || td_iteration_get_n_events (x_to) != n
      || td_iteration_get_n_events (y) != n || td_iteration_get_n_events (y_to) != n)
    return -1;
  for (guint e = 0; e < n; e++)
    if (leads_to_gradient (x, trained, e) && !has_same (x, y, e) && has_same (x, x_to, e)
        && has_same (y, y_to, e))
      return (gint)e;
  return -1;
}

/* Ranks by the attributes of one operation. */
static void
classify (const TdRanksAttrs *a, TdRanks *self, guint event, guint *classes)
{
  g_autoptr (GPtrArray) texts = g_ptr_array_new_with_free_func (g_free);

  for (guint i = 0; i < self->n; i++)
    {
      g_autoptr (TdIteration) it
          = a->from[i] >= 0 ? td__ranks_load (self, i, a->from[i]) : NULL;
      char *text;
      guint at;

      classes[i] = TD_RANKS_NO_CLASS;
      if (!it || event >= td_iteration_get_n_events (it))
        continue;
      text = dup_of (it, event);
      if (g_ptr_array_find_with_equal_func (texts, text, g_str_equal, &at))
        g_free (text);
      else
        {
          at = texts->len;
          g_ptr_array_add (texts, text);
        }
      classes[i] = at;
    }
}

/* "value=1 → value=2": those that differ, where both have as many. Owner: the caller. */
static char *
dup_change (const char *a, const char *b)
{
  g_auto (GStrv) x = td_attributes_split (a), y = td_attributes_split (b);
  GString *out;

  if (g_strv_length (x) != g_strv_length (y))
    return g_strdup_printf ("%s→ %s", a, b);
  out = g_string_new (NULL);
  for (guint i = 0; x[i]; i++)
    if (!g_str_equal (x[i], y[i]))
      g_string_append_printf (out, "%s%s → %s", out->len ? ", " : "", x[i], y[i]);
  return g_string_free (out, FALSE);
}

/* "mul_scalar at zoo.c:58 differs (value=1 → value=2)". */
static char *
dup_difference (const TdRanksAttrs *a, TdRanks *self, guint one, guint other, guint event,
                char **site)
{
  g_autoptr (TdIteration) x = td__ranks_load (self, one, a->from[one]),
                          y = td__ranks_load (self, other, a->from[other]);
  g_autofree char *x_text = dup_of (x, event), *y_text = dup_of (y, event),
                  *change = dup_change (x_text, y_text), *at = td_iteration_dup_site (y, event);
  const char *layer = td_iteration_get_link_path (x, event);

  *site = *at ? g_path_get_basename (at) : NULL;
  return g_strdup_printf ("%s%s%s%s%s%s differs (%s)", td_iteration_get_op_name (x, event),
                          *layer ? " (" : "", layer, *layer ? ")" : "", *site ? " at " : "",
                          *site ? *site : "", change);
}

static void
say_attrs (const TdRanksAttrs *a, TdRanks *self, guint event)
{
  g_autofree guint *classes = g_new (guint, self->n);
  g_autofree char *names = NULL, *what = NULL, *when = NULL;
  guint one, other;
  TdRanksFinding *f;
  TdRankVote vote;

  classify (a, self, event, classes);
  td__rank_vote_init (&vote, classes, self->n);
  if (!td__rank_vote_choose_pair (&vote, &one, &other))
    {
      td__rank_vote_clear (&vote);
      return;
    }
  names = td__ranks_dup_names_do (self, vote.odd, " runs", " run");
  when = td__ranks_dup_when (a->from[other], a->after);
  f = td__ranks_add (self, TD_RANKS_GRAPHS, TD_RANKS_WARNING, a->from[other], vote.odd);
  f->after = a->after;
  what = dup_difference (a, self, one, other, event, &f->site);
  f->sentence = g_strdup_printf (
      "%s %s%s: between ranks %u and %u %s; so in %u of %u steps of equal shapes", names,
      vote.has_majority ? "another graph than the others " : "different graphs ", when,
      self->tapes[one].open.rank, self->tapes[other].open.rank, what, a->n_differ, a->n_steps);
  f->advice = g_strdup ("All ranks should train the same model: look for if (rank == ...)");
  td__rank_vote_clear (&vote);
}

/* In all steps but perhaps the first. */
void
td__ranks_attrs_end (TdRanksAttrs *a, TdRanks *self)
{
  gboolean always = a->n_differ + (a->first_differs ? 0 : 1) >= a->n_steps;
  gint first = -1, event = -1;

  for (guint i = 0; a->n_differ > 0 && always && i < self->n && event < 0; i++)
    if (a->from[i] >= 0 && a->to[i] >= 0)
      {
        if (first >= 0 && a->n_differ >= LEAST_STEPS)
          event = find_event (a, self, (guint)first, i);
        first = first < 0 ? (gint)i : first;
      }
  if (event >= 0)
    say_attrs (a, self, (guint)event);
  attrs_free (a);
}
