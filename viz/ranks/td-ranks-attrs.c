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
#define MOST_LOOKS                                                                             \
  64 /* steps that are loaded whole, as one rank does more beside the training */

/* Steps that were compared. */
typedef struct
{
  guint n_steps, n_differ;
  gboolean first_differs;
  gint64 after, last, number; /* of the first step that differs */
  gint64 *from, *to; /* iterations of two that differ, the second and the last, by place; -1:
                      * none. The first of a run is often of its own kind */
} Compared;

struct TdRanksAttrs
{
  Compared alike; /* whose operations and shapes are all the same */
  Compared all;   /* these, and those of which what trains is the same */
  guint n_looks;
};

static void
begin (Compared *c, guint n)
{
  c->after = c->last = -1;
  c->from = g_new0 (gint64, n);
  c->to = g_new0 (gint64, n);
}

TdRanksAttrs *
td__ranks_attrs_new (const TdRanks *self)
{
  TdRanksAttrs *a = g_new0 (TdRanksAttrs, 1);

  begin (&a->alike, self->n);
  begin (&a->all, self->n);
  return a;
}

static void
attrs_free (TdRanksAttrs *a)
{
  g_free (a->alike.from);
  g_free (a->alike.to);
  g_free (a->all.from);
  g_free (a->all.to);
  g_free (a);
}

/* ---- texts ---- */

/* Which rank it is, where the random stream stands, and how the processor computes it. */
static gboolean
has_prefix_of (const char *word, const char *const *prefixes)
{
  for (; *prefixes; prefixes++)
    if (g_str_has_prefix (word, *prefixes))
      return TRUE;
  return FALSE;
}

static gboolean
is_own (const char *op, const char *word)
{
  static const char *const names[] = { "offset=", "seed=", "key=", "algorithm=", NULL };
  /* which part of an array a rank takes, in PyTorch */
  static const char *const parts[]
      = { "slice", "select", "narrow", "as_strided", "slice_scatter", "select_scatter", NULL };
  static const char *const places[] = { "start=", "end=", "index=", "storage_offset=", NULL };

  return has_prefix_of (word, names)
         || (g_str_has_prefix (word, "rank=") && td_diff_is_call_of_ranks (op))
         || (g_strv_contains (parts, op) && has_prefix_of (word, places));
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

/* ---- what is compared ---- */

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

/* The operations of an iteration that gradients come from, in order, whatever else is between
 * them. Owner: the caller. NULL: it is not there. */
static GArray *
list_trained (const TdIteration *it)
{
  g_autofree gboolean *trained = it ? td__ranks_mark_trained (it) : NULL;
  GArray *events = it ? g_array_new (FALSE, FALSE, sizeof (guint)) : NULL;

  for (guint e = 0; it && e < td_iteration_get_n_events (it); e++)
    if (leads_to_gradient (it, trained, e))
      g_array_append_val (events, e);
  return events;
}

static gboolean
have_one_shape (const TdTapeIteration *x, const TdTapeIteration *y, guint32 a, guint32 b)
{
  const TdTapeVar *u = &x->vars[a], *v = &y->vars[b];

  return u->ndim == v->ndim
         && memcmp (&x->dims[u->first_dim], &y->dims[v->first_dim], u->ndim * sizeof *x->dims)
                == 0;
}

/* One operation on arrays of one shape? */
static gboolean
are_counterparts (const TdIteration *x, const TdIteration *y, guint a, guint b)
{
  const TdTapeIteration *t = td_iteration_get_tape (x), *u = td_iteration_get_tape (y);
  const TdTapeEvent *e = &t->events[a], *f = &u->events[b];

  if (!g_str_equal (td_iteration_get_op_name (x, a), td_iteration_get_op_name (y, b))
      || e->n_in != f->n_in || e->n_out != f->n_out)
    return FALSE;
  for (guint k = 0; k < e->n_in; k++)
    if (!have_one_shape (t, u, t->ins[e->first_in + k], u->ins[f->first_in + k]))
      return FALSE;
  for (guint k = 0; k < e->n_out; k++)
    if (!have_one_shape (t, u, t->outs[e->first_out + k], u->outs[f->first_out + k]))
      return FALSE;
  return TRUE;
}

static gboolean
train_alike (TdRanks *self, guint one, gint64 number, guint other, gint64 its_number)
{
  g_autoptr (TdIteration) x = td__ranks_load (self, one, number),
                          y = td__ranks_load (self, other, its_number);
  g_autoptr (GArray) a = list_trained (x), b = list_trained (y);

  if (!a || !b || a->len != b->len)
    return FALSE;
  for (guint i = 0; i < a->len; i++)
    if (!are_counterparts (x, y, g_array_index (a, guint, i), g_array_index (b, guint, i)))
      return FALSE;
  return TRUE;
}

/* ---- a step ---- */

/* Attributes of other sizes follow from these: then nothing is said. */
static gboolean
are_alike (const TdRankIteration *x, const TdRankIteration *y)
{
  return x->fingerprint == y->fingerprint && x->fingerprint_dims == y->fingerprint_dims;
}

/* What one rank does beside the training, a print, makes no other sizes of it: with what they
 * train alike, however, are ranks whose attributes are the same, or not. Returns whether some
 * are. */
static gboolean
add_alike (TdRanksAttrs *a, TdRanks *self, const TdRankRow *row, guint first,
           const gboolean *together, gboolean have_same, gboolean *of_it)
{
  const TdRankIteration *one = row->of[first];
  gboolean any = FALSE;

  for (guint i = first + 1; i < self->n; i++)
    if (together[i] && !of_it[i] && (row->of[i]->attrs == one->attrs) == have_same
        && a->n_looks++ < MOST_LOOKS
        && train_alike (self, first, one->number, i, row->of[i]->number))
      of_it[first] = of_it[i] = any = TRUE;
  return any;
}

static void
compare (Compared *c, const TdRanks *self, const TdRankRow *row, guint first,
         const gboolean *of_it)
{
  gboolean differ = FALSE;

  if (of_it[first])
    {
      for (guint i = first + 1; i < self->n; i++)
        differ = differ || (of_it[i] && row->of[i]->attrs != row->of[first]->attrs);
      if (c->n_steps++ == 0)
        c->first_differs = differ;
      for (guint i = 0; differ && i < self->n; i++)
        {
          c->to[i] = of_it[i] ? row->of[i]->number : -1;
          if (c->n_differ < 2)
            c->from[i] = c->to[i];
        }
      if (differ && c->n_differ++ == 0)
        {
          c->after = c->last;
          c->number = row->number;
        }
    }
  c->last = row->number;
}

void
td__ranks_attrs_look (TdRanksAttrs *a, TdRanks *self, const TdRankRow *row, guint first,
                      const gboolean *together)
{
  const TdRankIteration *one = row->of[first];
  g_autofree gboolean *of_it = g_new0 (gboolean, self->n);
  gboolean differ = FALSE;

  for (guint i = first + 1; i < self->n; i++)
    if (together[i] && are_alike (row->of[i], one))
      {
        of_it[first] = of_it[i] = TRUE;
        differ = differ || row->of[i]->attrs != one->attrs;
      }
  compare (&a->alike, self, row, first, of_it);
  differ = add_alike (a, self, row, first, together, FALSE, of_it) || differ;
  if (differ)
    add_alike (a, self, row, first, together, TRUE, of_it);
  compare (&a->all, self, row, first, of_it);
}

/* ---- what differs ---- */

static char *
dup_of (const TdIteration *it, guint e)
{
  return dup_common (td_iteration_get_op_name (it, e),
                     td_iteration_get_string (it, td_iteration_get_tape (it)->events[e].attrs));
}

static gboolean
has_same (const TdIteration *x, const TdIteration *y, guint a, guint b)
{
  g_autofree char *p = dup_of (x, a), *q = dup_of (y, b);

  return g_str_equal (td_iteration_get_op_name (x, a), td_iteration_get_op_name (y, b))
         && g_str_equal (p, q);
}

/* Of those that gradients come from, the first that differs between two ranks, and on each is
 * the same in both steps; -1: none. */
static gint
find_event (const Compared *a, TdRanks *self, guint one, guint other)
{
  g_autoptr (TdIteration) x = td__ranks_load (self, one, a->from[one]),
                          x_to = td__ranks_load (self, one, a->to[one]),
                          y = td__ranks_load (self, other, a->from[other]),
                          y_to = td__ranks_load (self, other, a->to[other]);
  g_autoptr (GArray) of_x = list_trained (x), of_x_to = list_trained (x_to),
                     of_y = list_trained (y), of_y_to = list_trained (y_to);

  if (!of_x || !of_x_to || !of_y || !of_y_to || of_x_to->len != of_x->len
      || of_y->len != of_x->len || of_y_to->len != of_x->len)
    return -1;
  for (guint i = 0; i < of_x->len; i++)
    {
      const guint e = g_array_index (of_x, guint, i), f = g_array_index (of_y, guint, i);

      if (!has_same (x, y, e, f) && has_same (x, x_to, e, g_array_index (of_x_to, guint, i))
          && has_same (y, y_to, f, g_array_index (of_y_to, guint, i)))
        return (gint)i;
    }
  return -1;
}

/* Ranks by the attributes of one operation. */
static void
classify (const Compared *a, TdRanks *self, guint event, guint *classes)
{
  g_autoptr (GPtrArray) texts = g_ptr_array_new_with_free_func (g_free);

  for (guint i = 0; i < self->n; i++)
    {
      g_autoptr (TdIteration) it
          = a->from[i] >= 0 ? td__ranks_load (self, i, a->from[i]) : NULL;
      g_autoptr (GArray) events = list_trained (it);
      char *text;
      guint at;

      classes[i] = TD_RANKS_NO_CLASS;
      if (!events || event >= events->len)
        continue;
      text = dup_of (it, g_array_index (events, guint, event));
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
  GString *out = g_string_new (NULL);

  if (g_strv_length (x) != g_strv_length (y))
    {
      g_string_append_printf (out, "%s→ %s", *a ? a : "none ", *b ? b : "none ");
      g_string_truncate (out, out->len - 1);
    }
  else
    for (guint i = 0; x[i]; i++)
      if (!g_str_equal (x[i], y[i]))
        g_string_append_printf (out, "%s%s → %s", out->len ? ", " : "", x[i], y[i]);
  return g_string_free (out, FALSE);
}

/* "mul_scalar at zoo.c:58 differs (value=1 → value=2)". */
static char *
dup_difference (const Compared *a, TdRanks *self, guint one, guint other, guint event,
                char **site)
{
  g_autoptr (TdIteration) x = td__ranks_load (self, one, a->from[one]),
                          y = td__ranks_load (self, other, a->from[other]);
  g_autoptr (GArray) of_x = list_trained (x), of_y = list_trained (y);
  const guint e = g_array_index (of_x, guint, event), f = g_array_index (of_y, guint, event);
  g_autofree char *x_text = dup_of (x, e), *y_text = dup_of (y, f),
                  *change = dup_change (x_text, y_text), *at = td_iteration_dup_site (y, f);
  const char *layer = td_iteration_get_link_path (x, e);

  *site = *at ? g_path_get_basename (at) : NULL;
  return g_strdup_printf ("%s%s%s%s%s%s differs (%s)", td_iteration_get_op_name (x, e),
                          *layer ? " (" : "", layer, *layer ? ")" : "", *site ? " at " : "",
                          *site ? *site : "", change);
}

static void
say_attrs (const Compared *a, TdRanks *self, guint event)
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
  when = td__ranks_dup_when (a->number, a->after);
  f = td__ranks_add (self, TD_RANKS_GRAPHS, TD_RANKS_WARNING, a->number, vote.odd);
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
td__ranks_attrs_end (TdRanksAttrs *attrs, TdRanks *self)
{
  const Compared *a = attrs->alike.n_steps >= LEAST_STEPS ? &attrs->alike : &attrs->all;
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
  attrs_free (attrs);
}
