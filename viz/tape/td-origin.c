/* The search for what made a NaN or an infinity: newest first, one iteration after the other.
 *
 * An item is an array in one version of it, with the elements of it that what was asked for is
 * computed from, where elements are recorded. Items of an iteration are taken in the order of
 * their writers, newest first, so that an item has heard of all its readers before its writer
 * is looked at. An operation with a bad element that no bad element of its inputs reaches made
 * it; what comes from before the iteration goes on in the one before.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "tape/td-navigate.h"
#include "tape/td-origin-private.h"

/* Iterations that are read for one answer, and for whether one input was clean. */
#define MOST_ITERATIONS 20000
#define MOST_BEFORE 256

typedef struct
{
  guint var;
  TdVersion v;
  guint8 *mask; /* NULL: the array as a whole */
  guint64 n;
  gboolean exact; /* all that is marked reaches what was asked for */
  gint next;      /* item that was computed from it; -1: none */
  gint64 iteration;
  guint64 id; /* of the engine, by which other iterations know the variable */
} Item;

typedef struct
{
  TdOriginKind kind;
  guint item;
  gboolean has_element;
  guint64 element;
  char *missing; /* of a lost trail */
} Root;

typedef struct
{
  TdSession *session;
  TdBad bad;
  TdIteration *it;
  GPtrArray *items; /* Item, all that there were */
  GArray *waiting;  /* guint: items of this iteration */
  GArray *older;    /* guint: items that are from before it */
  GArray *roots;    /* Root */
} Search;

static void
item_free (gpointer data)
{
  Item *item = data;

  g_free (item->mask);
  g_free (item);
}

static void
root_clear (gpointer data)
{
  g_free (((Root *)data)->missing);
}

static Item *
item_at (const Search *s, guint i)
{
  return g_ptr_array_index (s->items, i);
}

/* Adds what is bad in `var` to what is to be looked at. Takes the mask. */
static void
want (Search *s, guint var, TdVersion v, guint8 *mask, guint64 n, gboolean exact, gint next)
{
  Item *item;

  for (guint i = 0; i < s->waiting->len; i++)
    {
      item = item_at (s, g_array_index (s->waiting, guint, i));
      if (item->var != var || item->v.stats != v.stats || item->v.writer != v.writer)
        continue;
      item->exact = item->exact && exact;
      for (guint64 k = 0; mask && item->mask && k < n && k < item->n; k++)
        item->mask[k] |= mask[k];
      if (!mask)
        g_clear_pointer (&item->mask, g_free);
      g_free (mask);
      return;
    }
  guint index = s->items->len;

  item = g_new (Item, 1);
  *item = (Item){ var,
                  v,
                  mask,
                  n,
                  exact,
                  next,
                  td_iteration_get_number (s->it),
                  td_tape_var_id (td_iteration_get_tape (s->it), var) };
  g_ptr_array_add (s->items, item);
  g_array_append_val (s->waiting, index);
}

static void
add_root (Search *s, TdOriginKind kind, guint item, const guint8 *left, char *missing)
{
  Root root = { kind, item, FALSE, 0, missing };
  const Item *i = item_at (s, item);

  for (guint64 k = 0; left && k < i->n && !root.has_element; k++)
    if (left[k])
      {
        root.has_element = TRUE;
        root.element = k;
      }
  g_array_append_val (s->roots, root);
}

/* ---- what comes from before the iteration ---- */

static gint
find_var (const TdIteration *it, guint64 id)
{
  const TdTapeIteration *t = td_iteration_get_tape (it);

  for (guint v = 0; id != 0 && v < t->n_vars; v++)
    if (td_tape_var_id (t, v) == id)
      return (gint)v;
  return -1;
}

/* What a variable is at the end of the last iteration before `it` that knows. */
static TdState
state_before (Search *s, guint var)
{
  gint64 number = td_iteration_get_number (s->it);
  TdState state = TD_STATE_UNKNOWN;

  for (gint64 k = number - 1; k >= 0 && k >= number - MOST_BEFORE; k--)
    {
      g_autoptr (TdIteration) other = td_session_load_iteration (s->session, k, NULL);
      gint same
          = other ? find_var (other, td_tape_var_id (td_iteration_get_tape (s->it), var)) : -1;
      TdVersion v;

      if (!other)
        break;
      if (same < 0)
        continue;
      v = td__origin_version (other, (guint)same, (gint)td_iteration_get_n_events (other));
      state = td__origin_state (v.stats, s->bad);
      if (v.stats || v.writer >= 0)
        break;
    }
  return state;
}

/* An item that no event of its iteration wrote, looked for in an earlier one, which is s->it.
 * Returns FALSE while that does not know the variable. */
static gboolean
go_on (Search *s, guint index)
{
  Item *item = item_at (s, index);
  gint var = find_var (s->it, item->id);
  guint64 n = item->n;
  guint8 *mask = item->mask ? g_memdup2 (item->mask, n) : NULL;

  if (var < 0)
    {
      g_free (mask);
      return FALSE;
    }
  TdVersion v = td__origin_version (s->it, (guint)var, (gint)td_iteration_get_n_events (s->it));
  TdState state = td__origin_state (v.stats, s->bad);

  if (state == TD_STATE_UNKNOWN && v.writer >= 0)
    add_root (s, TD_ORIGIN_LOST, index, mask,
              g_strdup_printf ("the statistics of iteration %" G_GINT64_FORMAT
                               " are not recorded",
                               td_iteration_get_number (s->it)));
  else if (item->v.given || state == TD_STATE_CLEAN)
    add_root (s, TD_ORIGIN_CAME, index, mask, NULL);
  else
    {
      if (v.stats && !mask)
        mask = td__origin_bad_elements (s->session, s->it, v.stats, s->bad, &n);
      want (s, (guint)var, v, g_steal_pointer (&mask), n, item->exact, (gint)index);
    }
  g_free (mask);
  return TRUE;
}

/* What is left of an iteration is older: of before it, or written by the program. */
static void
put_off (Search *s)
{
  for (guint i = 0; i < s->waiting->len; i++)
    {
      guint index = g_array_index (s->waiting, guint, i);
      Item *item = item_at (s, index);
      gboolean is_older
          = td_iteration_get_tape (s->it)->vars[item->var].flags & TD_TAPE_VAR_EXTERNAL;

      if (item->v.given && (item->v.writer >= 0 || !is_older || item->id == 0))
        add_root (s, TD_ORIGIN_CAME, index, item->mask, NULL);
      else
        g_array_append_val (s->older, index);
    }
  g_array_set_size (s->waiting, 0);
}

/* There is no iteration before: the trail ends. */
static void
give_up (Search *s, gint64 number)
{
  for (guint i = 0; i < s->older->len; i++)
    {
      guint index = g_array_index (s->older, guint, i);
      const Item *item = item_at (s, index);

      if (item->v.given)
        add_root (s, TD_ORIGIN_CAME, index, item->mask, NULL);
      else
        add_root (
            s, TD_ORIGIN_LOST, index, item->mask,
            number >= 0
                ? g_strdup_printf ("iteration %" G_GINT64_FORMAT " is not on the tape", number)
                : g_strdup ("nothing is recorded from before the first iteration"));
    }
  g_array_set_size (s->older, 0);
}

/* ---- one operation ---- */

typedef struct
{
  guint item, event;
  guint8 *covered; /* elements of the item that come from a bad element of an input */
  gboolean passed, unknown;
  gboolean is_group, maybe; /* maybe: it may have made what it seems to pass on */
  GString *missing;
  guint n_missing;
} Step;

/* Notes an input that is not recorded. */
static void
note_missing (Search *s, Step *step, guint var)
{
  const char *name = td_iteration_get_var_name (s->it, var);

  step->unknown = TRUE;
  step->n_missing++;
  if (!step->missing)
    step->missing = g_string_new (NULL);
  g_string_append_printf (step->missing, "%s%s", step->missing->len ? " and " : "",
                          *name ? name : "an input");
}

/* One input of the operation that wrote the item: is what is bad in the item from there? */
static void
follow (Search *s, Step *step, guint var, gint k)
{
  Item *item = item_at (s, step->item);
  const char *op = td_iteration_get_op_name (s->it, step->event);
  guint shown = td__origin_behind (s->it, var, (gint)step->event);
  TdVersion v = td__origin_version (s->it, shown, (gint)step->event);
  TdState state = td__origin_state (v.stats, s->bad);
  const TdTapeEvent *e = &td_iteration_get_tape (s->it)->events[step->event];
  gboolean is_state = e->phase == TD_TAPE_PHASE_UPDATE && e->n_out == 0;
  gboolean exact = item->exact;
  TdOriginWay way = { TRUE, k < 0 || td__origin_passes_on (op, s->bad == TD_BAD_INF), FALSE };
  guint64 n = 0;

  if (step->is_group && k >= 0)
    way = td__origin_group_way (s->session, s->it, step->event, item->var, (guint)k, s->bad);
  if (!way.is_read)
    return;
  if (state == TD_STATE_UNKNOWN && v.writer < 0)
    state = state_before (s, var);
  if (state == TD_STATE_UNKNOWN && k >= 0
      && td__origin_is_filled (s->session, s->it, step->event, (guint)k))
    return;
  /* the state of a rule would have spoilt its parameter before */
  if (state == TD_STATE_UNKNOWN && !(is_state && k > 1))
    note_missing (s, step, var);
  if (state != TD_STATE_BAD)
    return;
  guint8 *bad
      = v.stats ? td__origin_bad_elements (s->session, s->it, v.stats, s->bad, &n) : NULL;

  if (item->mask && bad && k < 0 && n == item->n)
    {
      /* what was there before it was added to */
      for (guint64 i = 0; i < n; i++)
        step->covered[i] |= bad[i] &= item->mask[i];
      if (!memchr (bad, 1, n))
        {
          g_free (bad);
          return;
        }
    }
  else if (item->mask && bad && k >= 0)
    {
      guint8 *in = g_malloc0 (n + 1);
      TdReach reach = !step->is_group
                          ? td__origin_reach (s->it, step->event, item->var, (guint)k,
                                              item->mask, bad, in, step->covered)
                      : way.by_element
                          ? td__origin_reach_elements (s->it, step->event, item->var, (guint)k,
                                                       item->mask, bad, in, step->covered)
                          : TD_REACH_UNKNOWN;
      gboolean is_reached = reach == TD_REACH_UNKNOWN || memchr (in, 1, n) != NULL;

      if (reach == TD_REACH_KNOWN)
        {
          g_free (bad);
          bad = in;
        }
      else
        {
          g_free (in);
          exact = exact && step->is_group;
          memset (step->covered, 1, item->n);
        }
      if (!is_reached)
        {
          g_free (bad);
          return;
        }
      exact = exact && (!step->is_group || way.passes);
    }
  else
    {
      if (item->mask)
        memset (step->covered, 1, item->n);
      exact = exact && way.passes;
    }
  step->passed = TRUE;
  step->maybe = step->maybe || (step->is_group && !way.passes);
  want (s, shown, v, bad, n, exact, (gint)step->item);
}

/* The choice of where () is known where its condition is. */
static gboolean
is_chosen (Search *s, guint event, guint k, const Item *item)
{
  const TdTapeIteration *t = td_iteration_get_tape (s->it);
  const TdTapeEvent *e = &t->events[event];
  double condition;
  guint64 at = 0;

  if (k == 0 || e->n_in != 3 || !item->mask
      || strcmp (td_iteration_get_op_name (s->it, event), "where") != 0)
    return TRUE;
  guint var = t->ins[e->first_in];
  TdVersion v = td__origin_version (s->it, var, (gint)event);

  if (!v.stats || v.stats->n != item->n)
    return TRUE;
  for (; at < item->n; at++)
    if (item->mask[at]
        && (!td__origin_element (s->session, s->it, v.stats, at, &condition)
            || (condition != 0) == (k == 1)))
      return TRUE;
  return FALSE;
}

/* "W and b of it are not recorded: iteration 56 is not on the tape"; NULL: all are. */
static char *
dup_missing (Search *s, const Step *step)
{
  gint64 before = td_iteration_get_number (s->it) - 1;
  g_autoptr (TdIteration) it
      = before >= 0 ? td_session_load_iteration (s->session, before, NULL) : NULL;
  g_autofree char *thinned
      = before >= 0 && !it
            ? g_strdup_printf (": iteration %" G_GINT64_FORMAT " is not on the tape", before)
            : g_strdup ("");

  return step->missing ? g_strdup_printf ("%s of it %s not recorded%s", step->missing->str,
                                          step->n_missing > 1 ? "are" : "is", thinned)
                       : NULL;
}

static void
look_at (Search *s, guint index)
{
  const TdTapeIteration *t = td_iteration_get_tape (s->it);
  Item *item = item_at (s, index);
  const TdTapeEvent *e = &t->events[item->v.writer];
  Step step = { .item = index,
                .event = (guint)item->v.writer,
                .is_group = td__origin_is_group (s->it, (guint)item->v.writer) };
  gboolean is_left = FALSE;

  step.covered = g_malloc0 (item->n + 1);
  for (guint k = 0; k < e->n_in; k++)
    if (is_chosen (s, step.event, k, item) && !td__origin_fills (s->it, step.event, k))
      follow (s, &step, t->ins[e->first_in + k], (gint)k);
  if (item->v.added)
    follow (s, &step, item->var, -1);
  for (guint64 i = 0; item->mask && i < item->n; i++)
    {
      item->mask[i] = item->mask[i] && !step.covered[i];
      is_left = is_left || item->mask[i];
    }
  if (item->mask ? is_left : !step.passed)
    add_root (s, step.unknown ? TD_ORIGIN_LOST : TD_ORIGIN_MADE, index, item->mask,
              dup_missing (s, &step));
  else if (step.maybe)
    add_root (s, TD_ORIGIN_MADE, index, NULL, NULL);
  if (step.missing)
    g_string_free (step.missing, TRUE);
  g_free (step.covered);
}

/* ---- the search ---- */

/* Takes the item with the newest writer; -1: what is left has none here. */
static gint
take_newest (Search *s)
{
  gint best = -1, at = -1;

  for (guint i = 0; i < s->waiting->len; i++)
    {
      Item *item = item_at (s, g_array_index (s->waiting, guint, i));

      /* what the program wrote after its event did is not that event's */
      if (!item->v.given && item->v.writer > best)
        {
          best = item->v.writer;
          at = (gint)i;
        }
    }
  if (at < 0)
    return -1;
  guint index = g_array_index (s->waiting, guint, (guint)at);
  g_array_remove_index_fast (s->waiting, (guint)at);
  return (gint)index;
}

/* Looks through iterations, newest first, while there is anything to follow. */
static void
search (Search *s, TdIteration *it)
{
  gint64 last = td_iteration_get_number (it), number = last;

  s->it = td_iteration_ref (it);
  for (;;)
    {
      for (gint index; (index = take_newest (s)) >= 0;)
        look_at (s, (guint)index);
      put_off (s);
      if (s->older->len == 0)
        break;
      number--;
      TdIteration *earlier = number >= 0 && number > last - MOST_ITERATIONS
                                 ? td_session_load_iteration (s->session, number, NULL)
                                 : NULL;
      if (!earlier)
        {
          give_up (s, number);
          break;
        }
      td_iteration_unref (s->it);
      s->it = earlier;
      for (guint i = 0; i < s->older->len;)
        if (go_on (s, g_array_index (s->older, guint, i)))
          g_array_remove_index (s->older, i);
        else if (item_at (s, g_array_index (s->older, guint, i))->v.given)
          {
            add_root (s, TD_ORIGIN_CAME, g_array_index (s->older, guint, i), NULL, NULL);
            g_array_remove_index (s->older, i);
          }
        else
          i++;
    }
  g_clear_pointer (&s->it, td_iteration_unref);
}

static Search *
search_new (TdSession *session, TdBad bad)
{
  Search *s = g_new0 (Search, 1);

  s->session = session;
  s->bad = bad;
  s->items = g_ptr_array_new_with_free_func (item_free);
  s->waiting = g_array_new (FALSE, FALSE, sizeof (guint));
  s->older = g_array_new (FALSE, FALSE, sizeof (guint));
  s->roots = g_array_new (FALSE, FALSE, sizeof (Root));
  g_array_set_clear_func (s->roots, root_clear);
  return s;
}

static void
search_free (Search *s)
{
  g_ptr_array_unref (s->items);
  g_array_unref (s->waiting);
  g_array_unref (s->older);
  g_array_unref (s->roots);
  g_free (s);
}

/* ---- the answer ---- */

static TdOriginStep
step_of (TdSession *session, const Item *item)
{
  g_autoptr (TdIteration) it = td_session_load_iteration (session, item->iteration, NULL);
  const TdTapeIteration *t = it ? td_iteration_get_tape (it) : NULL;
  gint event = item->v.given ? -1 : item->v.writer;
  TdOriginStep step = { item->iteration, event, item->var, 0, NULL };

  if (t && event >= 0)
    {
      g_autofree char *name = td__origin_dup_event_name (it, (guint)event);
      g_autofree char *place = td_iteration_dup_site (it, (guint)event);

      step.key = t->events[event].key;
      step.name = g_strdup_printf ("%s%s%s", name, *place ? " at " : "", place);
    }
  else if (t)
    {
      step.key = t->vars[item->var].key;
      step.name = td__origin_dup_var_name (it, item->var);
    }
  return step;
}

static void
step_clear (gpointer data)
{
  g_free (((TdOriginStep *)data)->name);
}

static gboolean
is_earlier (const Search *s, const Root *a, const Root *b)
{
  const Item *x = item_at (s, a->item), *y = item_at (s, b->item);
  gint u = x->v.given ? -1 : x->v.writer, v = y->v.given ? -1 : y->v.writer;

  return x->iteration != y->iteration ? x->iteration < y->iteration : u < v;
}

static const Root *
earliest (const Search *s)
{
  const Root *best = NULL;

  for (guint i = 0; i < s->roots->len; i++)
    {
      const Root *r = &g_array_index (s->roots, Root, i);

      if (!best || is_earlier (s, r, best))
        best = r;
    }
  return best;
}

/* The elements that the origin's element was made of, and its place as indices. */
static void
fill_element (TdOrigin *o, Search *s, TdIteration *it, const Item *item, guint64 element)
{
  const TdTapeIteration *t = td_iteration_get_tape (it);
  const TdTapeVar *v = &t->vars[item->var];

  o->has_element = TRUE;
  o->ndim = MIN (v->ndim, TD_TAPE_MAX_NDIM);
  for (guint k = o->ndim; k-- > 0; element /= (guint64)t->dims[v->first_dim + k])
    o->element[k] = (gint64)(element % (guint64)t->dims[v->first_dim + k]);
}

static void
fill_inputs (TdOrigin *o, Search *s, TdIteration *it, const Item *item, guint64 element)
{
  const TdTapeIteration *t = td_iteration_get_tape (it);
  const TdTapeEvent *e = &t->events[o->at.event];
  gboolean is_update = e->phase == TD_TAPE_PHASE_UPDATE && e->n_out == 0;

  if (!is_update
      && !td__origin_is_elementwise (td_iteration_get_op_name (it, (guint)o->at.event)))
    return;
  g_autofree guint8 *out = g_malloc0 (item->n + 1), *covered = g_malloc0 (item->n + 1);
  out[element] = 1;
  for (guint k = 0; k < MIN (e->n_in, TD_ORIGIN_MOST_INPUTS); k++)
    {
      guint var = t->ins[e->first_in + k];
      TdVersion v = td__origin_version (it, var, o->at.event);
      guint64 n = v.stats ? v.stats->n : 0;
      g_autofree guint8 *all = g_malloc (n + 1), *in = g_malloc0 (n + 1);
      const guint8 *found;

      memset (all, 1, n);
      if (n == 0
          || td__origin_reach (it, (guint)o->at.event, item->var, k, out, all, in, covered)
                 == TD_REACH_UNKNOWN
          || !(found = memchr (in, 1, n))
          || !td__origin_element (s->session, it, v.stats, (guint64)(found - in),
                                  &o->inputs[o->n_inputs]))
        break;
      o->n_inputs++;
    }
}

/* A NaN is made of numbers, or of infinities: then theirs is the question that follows. */
static TdOrigin *find_cause (TdOrigin *o, Search *s, TdIteration *it, const Item *item,
                             guint64 element);

static TdOrigin *
answer (Search *s)
{
  TdOrigin *o = g_new0 (TdOrigin, 1);
  const Root *root = earliest (s);

  o->bad = s->bad;
  o->steps = g_array_new (FALSE, TRUE, sizeof (TdOriginStep));
  o->candidates = g_array_new (FALSE, TRUE, sizeof (TdOriginStep));
  g_array_set_clear_func (o->steps, step_clear);
  g_array_set_clear_func (o->candidates, step_clear);
  if (!root)
    return o;
  const Item *item = item_at (s, root->item);
  g_autoptr (TdIteration) it = td_session_load_iteration (s->session, item->iteration, NULL);

  o->kind = root->kind;
  o->at = step_of (s->session, item);
  o->sure = root->kind != TD_ORIGIN_LOST && (item->exact || s->roots->len == 1)
            && !(it && root->kind == TD_ORIGIN_MADE && o->at.event >= 0
                 && td__origin_is_group (it, (guint)o->at.event));
  for (gint i = (gint)root->item; i >= 0; i = item_at (s, (guint)i)->next)
    {
      TdOriginStep step = step_of (s->session, item_at (s, (guint)i));
      g_array_prepend_val (o->steps, step);
    }
  for (guint i = 0; !o->sure && i < s->roots->len; i++)
    {
      TdOriginStep step
          = step_of (s->session, item_at (s, g_array_index (s->roots, Root, i).item));
      g_array_append_val (o->candidates, step);
    }
  guint64 n = 0, element = root->element;
  gboolean has_element = root->has_element;
  g_autofree guint8 *mask
      = !has_element && it && item->v.stats
            ? td__origin_bad_elements (s->session, it, item->v.stats, s->bad, &n)
            : NULL;
  if (mask)
    {
      element = (guint64)((guint8 *)memchr (mask, 1, n) - mask);
      has_element = TRUE;
    }
  if (it && has_element)
    fill_element (o, s, it, item, element);
  if (it && has_element && o->at.event >= 0 && item->n > element)
    fill_inputs (o, s, it, item, element);
  if (it && o->kind == TD_ORIGIN_MADE && s->bad == TD_BAD_NAN)
    o->cause = find_cause (o, s, it, item, has_element ? element : G_MAXUINT64);
  if (it)
    td__origin_describe (o, s->session, it, root->missing);
  return o;
}

static TdOrigin *
find_cause (TdOrigin *o, Search *of, TdIteration *it, const Item *item, guint64 element)
{
  Search *s = search_new (of->session, TD_BAD_INF);
  TdOrigin *cause = NULL;
  Item *made;
  guint8 *mask = NULL;

  s->it = it;
  if (element < item->n)
    {
      mask = g_malloc0 (item->n + 1);
      mask[element] = 1;
    }
  want (s, item->var, item->v, mask, item->n, item->exact, -1);
  made = item_at (s, 0);
  g_array_set_size (s->waiting, 0);
  look_at (s, 0);
  /* the NaN itself is no infinity: only what its inputs had counts */
  made->v.given = FALSE;
  g_array_set_size (s->roots, 0);
  if (s->waiting->len > 0)
    {
      search (s, it);
      cause = answer (s);
    }
  search_free (s);
  return cause;
}

/* The variable that a key stands for: itself, or the worst output of an event. */
static gint
find_asked (const TdIteration *it, guint64 key, gint end, TdVersion *v)
{
  const TdTapeIteration *t = td_iteration_get_tape (it);
  gint event = td_iteration_find_event (it, key), best = -1;

  if (event < 0)
    {
      best = td_iteration_find_var (it, key);
      if (best >= 0)
        *v = td__origin_version (it, (guint)best, end);
      return best;
    }
  const TdTapeEvent *e = &t->events[event];
  gboolean in_place = e->n_out == 0 && e->n_in > 0;

  for (guint k = 0; k < (in_place ? 1u : e->n_out); k++)
    {
      guint var = in_place ? t->ins[e->first_in] : t->outs[e->first_out + k];
      TdVersion found = td__origin_version (it, var, event + 1);

      if (best < 0 || td__origin_state (found.stats, TD_BAD_NAN) == TD_STATE_BAD
          || (td__origin_state (found.stats, TD_BAD_INF) == TD_STATE_BAD
              && td__origin_state (v->stats, TD_BAD_NAN) != TD_STATE_BAD))
        {
          best = (gint)var;
          *v = found;
        }
    }
  return best;
}

TdOrigin *
td_origin_new (TdSession *session, TdIteration *it, guint64 key, gint event)
{
  TdVersion v = { -1, NULL, FALSE, FALSE };
  gint end = event >= 0 ? event + 1 : (gint)td_iteration_get_n_events (it);
  gint var = find_asked (it, key, end, &v);
  gboolean is_nan = td__origin_state (v.stats, TD_BAD_NAN) == TD_STATE_BAD;
  Search *s = search_new (session, is_nan ? TD_BAD_NAN : TD_BAD_INF);
  TdOrigin *o;
  guint64 n = 0;

  if (var >= 0 && td__origin_state (v.stats, s->bad) == TD_STATE_BAD)
    {
      guint8 *mask = td__origin_bad_elements (session, it, v.stats, s->bad, &n);

      s->it = it;
      want (s, (guint)var, v, mask, n, TRUE, -1);
      search (s, it);
      o = answer (s);
    }
  else
    {
      o = answer (s);
      o->kind = v.stats ? TD_ORIGIN_CLEAN : TD_ORIGIN_UNKNOWN;
      o->at = (TdOriginStep){ td_iteration_get_number (it), v.given ? -1 : v.writer,
                              var >= 0 ? (guint)var : 0, key, NULL };
      td__origin_describe (o, session, it, NULL);
    }
  search_free (s);
  return o;
}

void
td_origin_free (TdOrigin *o)
{
  if (!o)
    return;
  td_origin_free (o->cause);
  g_array_unref (o->steps);
  g_array_unref (o->candidates);
  g_free (o->at.name);
  g_free (o->name);
  g_free (o->place);
  g_free (o->note);
  g_free (o->sentence);
  g_free (o);
}

static gboolean
is_bad (const TdIteration *it, guint event)
{
  return td_iteration_is_anomaly (it, event) && !td__origin_made_nothing (it, event);
}

guint64
td_origin_find (const TdIteration *it)
{
  const TdTapeIteration *t = td_iteration_get_tape (it);
  gint loss = td_navigate_loss (it);

  if (loss >= 0 && is_bad (it, (guint)loss))
    return t->events[loss].key;
  for (guint e = t->n_events; e-- > 0;)
    if (is_bad (it, e))
      return t->events[e].key;
  return 0;
}
