/*
 * Why two graphs diverge: the if, switch or loop in the recorded source one part of which has
 * what only one side ran. If there is none, the last value that the program read before.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "tape/td-mix.h"
#include "td-diff-private.h"
#include "td-flow.h"
#include "td-tape.h"

#define MAX_PLACES 256 /* of one run of operations in the source */
#define MAX_CALLS 4    /* how deep a site is followed to the callers of its function */
#define MAX_RUN 256    /* operations of a run that are looked at */

/* The first run of consecutive forward operations that differ: events of each side. */
typedef struct
{
  guint events[2][MAX_RUN], n[2];
  gint before[2], after[2]; /* the matched event at each end, -1 */
} Run;

/* Offsets in the source that led to an event, its own line first. */
typedef struct
{
  guint64 key;
  guint n, n_sure;      /* the first n_sure are lines that ran; others may have called them */
  guint at[MAX_PLACES]; /* the table holds no more than n */
} Places;

typedef struct
{
  TdComparison *c;
  const TdTapeSource *source;
  TdFlow *flow;
  GHashTable *places; /* Places, by line, scope and operation */
  Run run;
  guint passes; /* matched calls of the line at which the run begins */
} Search;

/* ---- the first run ---- */

static gboolean
is_structural (const TdDiffPair *p)
{
  return p->cause < 0 && p->kind != TD_DIFF_SAME
         && (p->kind != TD_DIFF_CHANGED || (p->aspects & ~(TD_DIFF_NUMBERS | TD_DIFF_MODE)));
}

static gboolean
is_forward (const TdDiff *d, const TdDiffPair *p)
{
  guint s = p->event[0] >= 0 ? 0 : 1;

  return td_iteration_get_tape (d->side[s])->events[p->event[s]].phase == TD_TAPE_PHASE_FORWARD;
}

/* Whether the sides took another path through the source: sizes and fusion do not count. */
static gboolean
took_another_way (const TdDiffPair *p)
{
  return p->kind == TD_DIFF_REMOVED || p->kind == TD_DIFF_ADDED
         || (p->kind == TD_DIFF_CHANGED
             && (p->aspects
                 & (TD_DIFF_OPERATION | TD_DIFF_LINK | TD_DIFF_ATTRIBUTES | TD_DIFF_INPUTS
                    | TD_DIFF_ORDER)));
}

/* Find the first run, of at most `max` pairs. FALSE: both sides took the same path. */
static gboolean
find_run (const TdDiff *d, guint max, Run *run)
{
  guint i = 0;

  for (; i < d->n_pairs; i++)
    if (is_structural (&d->pairs[i]) && is_forward (d, &d->pairs[i])
        && took_another_way (&d->pairs[i]))
      break;
  if (i == d->n_pairs)
    return FALSE;
  run->n[0] = run->n[1] = 0;
  for (guint s = 0; s < 2; s++)
    {
      run->before[s] = run->after[s] = -1;
      for (guint k = i; k-- > 0 && run->before[s] < 0;)
        run->before[s] = d->pairs[k].event[s];
    }
  for (; max-- > 0 && i < d->n_pairs && is_structural (&d->pairs[i])
         && is_forward (d, &d->pairs[i]) && took_another_way (&d->pairs[i]);
       i++)
    for (guint s = 0; s < 2; s++)
      if (d->pairs[i].event[s] >= 0 && run->n[s] < MAX_RUN)
        run->events[s][run->n[s]++] = (guint)d->pairs[i].event[s];
  for (guint s = 0; s < 2 && i < d->n_pairs; s++)
    if (is_forward (d, &d->pairs[i]))
      run->after[s] = d->pairs[i].event[s];
  return TRUE;
}

/* ---- places of an event in the source ---- */

static void
add_place (Places *places, guint at)
{
  if (places->n < MAX_PLACES)
    places->at[places->n++] = at;
}

/* The offset of the call in its line ("td_relu"), or of the line if that is not found. */
static guint
place_in_line (const Search *s, guint line, const char *op)
{
  TdFlowRange range = td__flow_line_range (s->flow, line);
  g_autofree char *call = g_strconcat ("td_", op, NULL);
  gint at = td__flow_find_word (s->flow, range, call);

  if (at >= 0)
    return (guint)at;
  while (range.from < range.to && g_ascii_isspace (s->flow->text[range.from]))
    range.from++;
  return range.from;
}

/* Add the places that call the function around this one, and their callers: an operation in a
 * helper is also where the helper is called. */
static void
add_callers (const Search *s, Places *places)
{
  guint from = 0;

  for (int level = 0; level < MAX_CALLS; level++)
    {
      guint to = places->n;

      for (; from < to; from++)
        {
          gint function = td__flow_function_at (s->flow, places->at[from]);
          guint n = 0;
          const guint *calls
              = function >= 0 ? td__flow_calls (s->flow, (guint)function, &n) : NULL;

          for (guint i = 0; i < n; i++)
            add_place (places, calls[i]);
        }
    }
}

static void
add_site (const Search *s, Places *places, guint side, guint32 site, const char *op)
{
  guint32 line = 0;
  const char *file = td_iteration_get_site (s->c->d->side[side], site, &line);

  if (site != 0 && g_str_equal (td__base_name (file), td__base_name (s->source->path)))
    add_place (places, place_in_line (s, line, op));
}

/* The places that an event comes from: its own line, the lines of the links and scopes around
 * it, and the callers of their functions. Cached, for events of one line and scope. */
static const Places *
find_places (const Search *s, guint side, guint event)
{
  const TdTapeIteration *t = s->c->t[side];
  const TdTapeEvent *e = &t->events[event];
  guint64 key = td__mix (td__mix (td__mix (side, e->site), e->span), e->opdef);
  Places *known = g_hash_table_lookup (s->places, &key), all = { .key = key };

  if (known)
    return known;
  add_site (s, &all, side, e->site, td_iteration_get_op_name (s->c->d->side[side], event));
  for (guint32 span = e->span, n = 0; span < t->n_spans && n < 32; n++)
    {
      add_site (s, &all, side, t->spans[span].site, "link");
      span = t->spans[span].parent;
    }
  all.n_sure = all.n;
  add_callers (s, &all);
  known = g_memdup2 (&all, G_STRUCT_OFFSET (Places, at) + all.n * sizeof all.at[0]);
  g_hash_table_insert (s->places, &known->key, known);
  return known;
}

/* The part of a node that contains one of the places; -1: none or several. */
static gint
part_of (const Search *s, const TdFlowNode *node, const Places *places)
{
  gint found = -1;

  for (guint i = 0; i < places->n; i++)
    for (guint k = 0; k < node->n_parts; k++)
      {
        TdFlowRange part = g_array_index (s->flow->parts, TdFlowRange, node->first_part + k);

        if (places->at[i] < part.from || places->at[i] >= part.to || found == (gint)k)
          continue;
        if (found >= 0)
          return -1;
        found = (gint)k;
      }
  return found;
}

/* The part that contains all of a side's run; -1: none does; -2: there is no run. */
static gint
part_of_run (const Search *s, const TdFlowNode *node, guint side)
{
  gint part = -2;

  for (guint i = 0; i < s->run.n[side]; i++)
    {
      gint own = part_of (s, node, find_places (s, side, s->run.events[side][i]));

      if (own < 0 || (part >= 0 && own != part))
        return -1;
      part = own;
    }
  return part;
}

/* ---- candidates ---- */

static gboolean
in_one_loop (const Search *s, guint a, guint b)
{
  for (guint i = 0; i < s->flow->nodes->len; i++)
    {
      const TdFlowNode *node = &g_array_index (s->flow->nodes, TdFlowNode, i);

      if (node->kind == TD_FLOW_LOOP && a >= node->all.from && a < node->all.to
          && b >= node->all.from && b < node->all.to)
        return TRUE;
    }
  return FALSE;
}

/* Whether the order in the source agrees: the node is after what ran before the run and before
 * what ran after it. A helper may be called from several nodes. */
static gboolean
is_in_order (const Search *s, const TdFlowNode *node, guint side)
{
  const gint ends[2] = { s->run.before[side], s->run.after[side] };
  gint function = td__flow_function_at (s->flow, node->all.from);

  for (guint i = 0; i < 2; i++)
    {
      const Places *places;
      gboolean known = FALSE, fits = FALSE;

      if (ends[i] < 0)
        continue;
      places = find_places (s, side, (guint)ends[i]);
      for (guint k = 0; k < places->n && !fits; k++)
        if (td__flow_function_at (s->flow, places->at[k]) == function)
          {
            known = TRUE;
            fits = (i == 0 ? places->at[k] < node->all.to : places->at[k] >= node->all.from)
                   || in_one_loop (s, places->at[k], node->all.from);
          }
      if (known && !fits)
        return FALSE;
    }
  return TRUE;
}

/* Whether two operations are of one line: then the line ran, and the difference is within it.
 */
static gboolean
is_beside (const TdTapeEvent *a, const TdTapeEvent *b)
{
  return a->opdef != b->opdef || a->path != b->path;
}

/* Whether operations precede or follow the run in the same pass through the part. */
static gboolean
goes_on (const Search *s, const TdFlowNode *node, gint part, guint side)
{
  const TdTapeEvent *events = s->c->t[side]->events;
  const gint ends[2] = { s->run.before[side], s->run.after[side] };
  const guint own[2] = { s->run.events[side][0], s->run.events[side][s->run.n[side] - 1] };

  for (guint i = 0; i < 2; i++)
    {
      const Places *there, *here;

      if (ends[i] < 0 || events[ends[i]].phase != TD_TAPE_PHASE_FORWARD)
        continue;
      there = find_places (s, side, (guint)ends[i]);
      here = find_places (s, side, own[i]);
      if (there->n == 0 || here->n == 0 || part_of (s, node, there) != part)
        continue;
      /* earlier in the text and earlier in time: one pass; later in the text: another one */
      if (i == 0 ? there->at[0] < here->at[0] : there->at[0] > here->at[0])
        return TRUE;
      if (there->at[0] == here->at[0] && is_beside (&events[ends[i]], &events[own[i]]))
        return TRUE;
    }
  return FALSE;
}

/* Whether the node contains the run only by a call of a function that others call too. */
static gboolean
is_guess (const Search *s, const TdFlowNode *node, guint side)
{
  for (guint i = 0; i < s->run.n[side]; i++)
    {
      const Places *places = find_places (s, side, s->run.events[side][i]);
      guint inside = 0, sure = 0;

      for (guint k = 0; k < places->n; k++)
        if (places->at[k] >= node->all.from && places->at[k] < node->all.to)
          {
            inside++;
            sure += k < places->n_sure;
          }
      if (sure == 0 && inside + places->n_sure < places->n)
        return TRUE;
    }
  return FALSE;
}

/* Whether something next to the run is in the node's own function. */
static gboolean
is_anchored (const Search *s, const TdFlowNode *node, guint side)
{
  const gint ends[2] = { s->run.before[side], s->run.after[side] };
  gint function = td__flow_function_at (s->flow, node->all.from);

  for (guint i = 0; i < 2; i++)
    {
      const Places *places = ends[i] >= 0 ? find_places (s, side, (guint)ends[i]) : NULL;

      for (guint k = 0; places && k < places->n_sure; k++)
        if (td__flow_function_at (s->flow, places->at[k]) == function)
          return TRUE;
    }
  return FALSE;
}

/* Whether control can have passed through the node at the run, as far as is known. */
static gboolean
is_plausible (const Search *s, const TdFlowNode *node, guint side)
{
  return is_in_order (s, node, side)
         && (!is_guess (s, node, side) || is_anchored (s, node, side));
}

static gboolean
is_cause (const Search *s, const TdFlowNode *node, gint part[2])
{
  if (node->kind == TD_FLOW_LOOP || node->n_parts == 0)
    return FALSE;
  part[0] = part_of_run (s, node, 0);
  part[1] = part_of_run (s, node, 1);
  if (part[0] == -1 || part[1] == -1 || part[0] == part[1])
    return FALSE;
  for (guint side = 0; side < 2; side++)
    if (!is_plausible (s, node, side)
        || (part[side] >= 0 && goes_on (s, node, part[side], side)))
      return FALSE;
  return TRUE;
}

/* How many calls of its first line the run contains: passes through a loop. */
static guint
count_passes (const Search *s, guint side)
{
  const TdTapeEvent *events = s->c->t[side]->events;
  guint n = 0;

  for (guint i = 0; i < s->run.n[side]; i++)
    n += events[s->run.events[side][i]].site == events[s->run.events[side][0]].site
         && events[s->run.events[side][i]].opdef == events[s->run.events[side][0]].opdef;
  return n;
}

/* The side that has the run; the one that took the other way has nothing, or something else. */
static guint
side_of_run (const Run *run)
{
  return run->n[0] > 0 ? TD_DIFF_A : TD_DIFF_B;
}

/* How often the first line of the run was called elsewhere, with a counterpart. */
static guint
count_matched (const Search *s)
{
  guint side = side_of_run (&s->run), n = 0;
  const TdTapeEvent *events = s->c->t[side]->events, *first = &events[s->run.events[side][0]];

  for (guint e = 0; e < s->c->t[side]->n_events; e++)
    n += events[e].phase == TD_TAPE_PHASE_FORWARD && s->c->d->partner[side][e] >= 0
         && events[e].site == first->site && events[e].opdef == first->opdef;
  return n;
}

/* Whether the events before and after the run are of its own line, which then ran on both
 * sides. */
static gboolean
happened_within_a_line (const Search *s, guint side)
{
  const TdTapeEvent *events = s->c->t[side]->events;
  const gint ends[2] = { s->run.before[side], s->run.after[side] };
  const guint own[2] = { s->run.events[side][0], s->run.events[side][s->run.n[side] - 1] };

  for (guint i = 0; i < 2; i++)
    if (ends[i] < 0 || events[ends[i]].phase != TD_TAPE_PHASE_FORWARD
        || events[ends[i]].site != events[own[i]].site
        || !is_beside (&events[ends[i]], &events[own[i]]))
      return FALSE;
  return TRUE;
}

/* Whether a loop that one side went through more often is the cause: its line had counterparts
 * in earlier passes, or the other side never ran it. */
static gboolean
is_cause_loop (const Search *s, const TdFlowNode *node)
{
  const TdComparison *c = s->c;
  guint side = side_of_run (&s->run);

  if (node->kind != TD_FLOW_LOOP || s->run.n[1 - side] > 0 || part_of_run (s, node, side) != 0
      || !is_plausible (s, node, side) || happened_within_a_line (s, side))
    return FALSE;
  for (guint e = 0; s->passes == 0 && e < c->t[side]->n_events; e++)
    if (c->t[side]->events[e].phase == TD_TAPE_PHASE_FORWARD && c->d->partner[side][e] >= 0
        && part_of (s, node, find_places (s, side, e)) == 0)
      return FALSE;
  return TRUE;
}

/* ---- the words ---- */

static void
set_cause (TdDiff *d, TdDiffCauseKind kind, const char *file, guint line, char *text)
{
  g_free (d->cause_file);
  g_free (d->cause_text);
  d->cause_file = g_strdup (file);
  d->cause_text = text;
  d->cause = (TdDiffCause){ kind, d->cause_file, line, d->cause_text };
}

static void
say_branch (Search *s, const TdFlowNode *node, const gint part[2])
{
  const char *file = td__base_name (s->source->path);
  guint line = td__flow_line (s->flow, node->condition.from);
  g_autofree char *condition = td__flow_dup_text (s->source->text, node->condition, 60);
  /* B ran nothing of any part: it took the other branch */
  gint b = part[1] >= 0 ? part[1] : node->kind == TD_FLOW_IF ? 1 - part[0] : -1;
  char *text;

  if (node->kind == TD_FLOW_SWITCH && b < 0)
    text = g_strdup_printf ("took another case at %s:%u (switch (%s))", file, line, condition);
  else if (node->kind == TD_FLOW_SWITCH)
    {
      TdFlowRange label
          = g_array_index (s->flow->parts, TdFlowRange, node->first_part + (guint)b);

      while (label.from < label.to && label.to > label.from + 1
             && memchr (s->flow->text + label.from, ':', label.to - label.from - 1))
        label.to--;
      g_autofree char *name
          = td__flow_dup_text (s->source->text, (TdFlowRange){ label.from, label.to - 1 }, 40);
      text = g_strdup_printf ("took %s at %s:%u (switch (%s))", name, file, line, condition);
    }
  else if (b == 0)
    text = g_strdup_printf ("took the branch at %s:%u (%s)", file, line, condition);
  else if (node->n_parts > 1 && !node->jumps)
    text = g_strdup_printf ("took the else branch at %s:%u (%s is false)", file, line,
                            condition);
  else
    text = g_strdup_printf ("did not take the branch at %s:%u (%s is false)", file, line,
                            condition);
  set_cause (s->c->d, TD_DIFF_CAUSE_BRANCH, s->source->path, line, text);
}

/* for (;;), for (int i = 0;; i++), while (1) */
static gboolean
is_endless (const Search *s, const TdFlowNode *loop)
{
  g_autofree char *condition = td__flow_dup_text (s->source->text, loop->condition, G_MAXUINT);
  g_auto (GStrv) parts = g_strsplit (condition, ";", 0);
  const char *when = g_strv_length (parts) == 3 ? g_strstrip (parts[1]) : condition;

  return *when == '\0' || g_str_equal (when, "1") || g_str_equal (when, "true");
}

/* The if that leaves an endless loop, if the run begins after it. */
static const TdFlowNode *
find_exit (const Search *s, const TdFlowNode *loop, guint side)
{
  TdFlowRange body = g_array_index (s->flow->parts, TdFlowRange, loop->first_part);
  const TdFlowNode *only = NULL;
  guint n = 0;
  const Places *places = find_places (s, side, s->run.events[side][0]);

  for (guint i = 0; i < s->flow->nodes->len; i++)
    {
      const TdFlowNode *node = &g_array_index (s->flow->nodes, TdFlowNode, i);

      if (!node->leaves_loop || node->all.from < body.from || node->all.to > body.to)
        continue;
      if (part_of (s, node, places) == 1)
        return node;
      only = node;
      n++;
    }
  return n == 1 && is_endless (s, loop) ? only : NULL;
}

static void
say_loop (Search *s, const TdFlowNode *loop)
{
  const char *file = td__base_name (s->source->path);
  guint side = side_of_run (&s->run), n = count_passes (s, side),
        line = td__flow_line (s->flow, loop->all.from);
  const TdFlowNode *exit = find_exit (s, loop, side);

  if (exit)
    {
      guint at = td__flow_line (s->flow, exit->condition.from);
      g_autofree char *condition = td__flow_dup_text (s->source->text, exit->condition, 60);

      set_cause (s->c->d, TD_DIFF_CAUSE_LOOP, s->source->path, at,
                 g_strdup_printf ("left the loop %s at %s:%u (%s)",
                                  side == 0 ? "earlier" : "later", file, at, condition));
      return;
    }
  set_cause (s->c->d, TD_DIFF_CAUSE_LOOP, s->source->path, line,
             g_strdup_printf ("ran the loop at %s:%u %u time%s %s", file, line, n,
                              n == 1 ? "" : "s", side == 0 ? "fewer" : "more"));
}

/* ---- the search ---- */

static gboolean
is_smaller (const TdFlowNode *a, const TdFlowNode *b)
{
  return !b || a->all.to - a->all.from < b->all.to - b->all.from;
}

/* What differs between ranks of one run depends on the rank. */
static gboolean
names_rank (const Search *s, const TdFlowNode *node)
{
  g_autofree char *condition = td__flow_dup_text (s->source->text, node->condition, G_MAXUINT);

  return strstr (condition, "rank") != NULL;
}

static gboolean
are_ranks (const TdComparison *c)
{
  return c->reader[0] && c->reader[1]
         && td_tape_reader_header (c->reader[0])->rank
                != td_tape_reader_header (c->reader[1])->rank;
}

/* The inner one; of two beside each other, which may both have led there, the smaller, unless
 * only one asks which rank it is. */
static gboolean
is_likelier (const Search *s, const TdFlowNode *node, const TdFlowNode *best)
{
  if (best && are_ranks (s->c)
      && (node->all.to <= best->all.from || best->all.to <= node->all.from)
      && names_rank (s, node) != names_rank (s, best))
    return names_rank (s, node);
  return is_smaller (node, best);
}

static gboolean
search_source (TdComparison *c, const Run *run, const TdTapeSource *source)
{
  g_autoptr (TdFlow) flow = td__flow_new (source->text, source->bytes);
  g_autoptr (GHashTable) places
      = g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, g_free);
  Search s = { .c = c, .source = source, .flow = flow, .places = places, .run = *run };
  const TdFlowNode *branch = NULL, *loop = NULL;
  gint parts[2] = { -1, -1 };

  s.passes = count_matched (&s);
  for (guint i = 0; i < flow->nodes->len; i++)
    {
      const TdFlowNode *node = &g_array_index (flow->nodes, TdFlowNode, i);
      gint part[2];

      if (is_likelier (&s, node, branch) && is_cause (&s, node, part))
        {
          branch = node;
          memcpy (parts, part, sizeof parts);
        }
      else if (is_smaller (node, loop) && is_cause_loop (&s, node))
        loop = node;
    }
  /* a loop that both sides ran, within a branch, is the cause; one that only one side ran is
   * part of the branch */
  if (branch && loop && is_smaller (loop, branch))
    {
      if (s.passes > 0)
        branch = NULL;
      else
        loop = NULL;
    }
  if (branch && (!loop || is_smaller (branch, loop)))
    say_branch (&s, branch, parts);
  else if (loop)
    say_loop (&s, loop);
  return branch || loop;
}

/* The last value that the program read before the sides diverge. */
static void
search_reads (TdComparison *c, const Run *run)
{
  guint side = run->n[1] > 0 ? 1 : 0;
  const TdTapeIteration *t = c->t[side];
  const TdTapeHostRead *last = NULL;
  guint32 line = 0;
  const char *file;

  for (guint i = 0; i < t->n_host_reads; i++)
    if (t->host_reads[i].event <= run->events[side][0])
      last = &t->host_reads[i];
  if (!last || last->site == 0)
    return;
  file = td_iteration_get_site (c->d->side[side], last->site, &line);
  if (*file)
    set_cause (c->d, TD_DIFF_CAUSE_READ, file, line,
               g_strdup_printf ("went another way after the value read at %s:%u",
                                td__base_name (file), line));
}

/* If the sources were edited: a difference on an edited line is no other path through them. */
static gboolean
search_edits (TdComparison *c, const Run *run)
{
  guint side = run->n[1] > 0 ? 1 : 0;
  const TdTapeEvent *e = &c->t[side]->events[run->events[side][0]];
  guint32 line = 0;
  const char *file = td_iteration_get_site (c->d->side[side], e->site, &line);

  for (guint i = 0; i < c->maps->len; i++)
    {
      const TdLineMap *map = g_ptr_array_index (c->maps, i);
      gboolean known = FALSE;

      if (!g_str_equal (map->name, td__base_name (file)))
        continue;
      for (guint k = 0; k < map->n && !known; k++)
        known = side == TD_DIFF_A ? k + 1 == line && map->line_in_b[k] > 0
                                  : map->line_in_b[k] == line;
      if (known)
        continue;
      set_cause (c->d, TD_DIFF_CAUSE_SOURCE, file, line,
                 g_strdup_printf (side == TD_DIFF_A ? "has no line as A's %s:%u"
                                                    : "has another source at %s:%u",
                                  map->name, line));
      return TRUE;
    }
  return FALSE;
}

void
td__diff_find_cause (TdComparison *c)
{
  Run run, first;
  TdTapeReader *reader = c->reader[1] ? c->reader[1] : c->reader[0];

  c->d->cause.file = c->d->cause.text = "";
  if (!find_run (c->d, G_MAXUINT, &run) || search_edits (c, &run))
    return;
  /* a run may contain two decisions: take the first */
  find_run (c->d, 1, &first);
  if (reader && c->d->same_program)
    for (guint i = 0; i < td_tape_reader_n_sources (reader); i++)
      {
        TdTapeSource source = td_tape_reader_source (reader, i);

        if (search_source (c, &run, &source) || search_source (c, &first, &source))
          return;
      }
  search_reads (c, &run);
}
