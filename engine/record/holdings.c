/* What keeps memory alive: at the end of an iteration, the arrays that have outlived the
 * iteration that made them, in groups by who keeps them.
 *
 * Roots are variables with a holder.  The graph behind each root is walked, and a saved array
 * is counted for the root that reaches it first.  A walk at the end of every iteration would
 * make programs that leak quadratic; so a walk, which costs about what it visits, waits until
 * as many events have run as the one before it has visited.
 *
 * SPDX-License-Identifier: MIT */
#include "holdings.h"
#include "compute/core/op-held.h"
#include "bytes-text.h"
#include "host-memory.h"
#include "made-in.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  MAX_GROUPS = 512,       /* further groups are counted as one */
  MAX_ITERATIONS = 65536, /* so many are remembered by their first id */
  SAME_MARKS = 64         /* of so many equal marks a few are written */
};

/** What makes two objects of one group. Names do not: a program may give each array that it
 * keeps one of its own. */
typedef struct
{
  const TdSite *site, *holder_site, *held_site;
  const TdOpClass *cls, *held_cls;
  uint8_t category, holder, in_graph;
} Key;

typedef struct
{
  Key key;
  uint64_t bytes, oldest, n_objects;
  uint64_t asked_bytes, n_asked; /* of those that the iteration made which is asked about */
  const char *name;              /* of all its handles; NULL: they have several, or none */
  TdMadeIn made_in;
} Group;

/** What the handles of one place kept at the last look. */
typedef struct
{
  const TdSite *site;
  uint64_t bytes;
} Kept;

/** A variable with a holder, and its place among these. */
typedef struct
{
  const TdVar *var;
  int rank;
  uint64_t kept; /* at the last look, by handles of its place */
} Root;

struct TdHoldings
{
  Group groups[MAX_GROUPS + 1]; /* the last one: all others */
  uint16_t slots[4 * MAX_GROUPS];
  uint32_t n;
  uint64_t *first_ids; /* of nodes: the first of each iteration */
  uint64_t first_iteration, very_first_id;
  uint64_t second_id; /* the first of the second iteration; UINT64_MAX: not there yet */
  uint32_t n_iterations;
  uint64_t credit, cost, visits;
  uint64_t asked;                        /* an iteration, for td__holdings_outlived */
  uint64_t marked_bytes, marked_objects; /* at the last mark that was written */
  uint32_t n_same;                       /* equal marks since then */
  TdOp **work;
  size_t n_work, work_capacity;
  Kept kept[MAX_GROUPS]; /* by site */
  size_t n_kept;
  Root *roots;
  size_t n_roots, root_capacity;
  TdObjects *objects;
  const TdBuffer **met; /* a set of buffers: 2^k slots */
  size_t n_met, met_capacity;
};

static void *
room (void *items, size_t n, size_t *capacity, size_t size)
{
  if (n < *capacity)
    return items;
  *capacity = *capacity == 0 ? 256 : 2 * *capacity;
  items = td__xrealloc (items, *capacity * size);
  return items;
}

TdHoldings *
td__holdings_new (void)
{
  TdHoldings *h = td__xcalloc (1, sizeof *h);

  h->objects = td__objects_new ();
  h->asked = UINT64_MAX;
  return h;
}

void
td__holdings_free (TdHoldings *h)
{
  if (h == NULL)
    return;
  td__objects_free (h->objects);
  free (h->first_ids);
  free (h->work);
  free (h->roots);
  free (h->met);
  free (h);
}

void
td__holdings_begin (TdHoldings *h, uint64_t iteration, uint64_t first_id)
{
  if (h->first_ids == NULL)
    h->first_ids = td__xmalloc (MAX_ITERATIONS * sizeof first_id);
  if (h->n_iterations == 0)
    {
      h->first_iteration = iteration;
      h->very_first_id = first_id;
      h->second_id = UINT64_MAX;
    }
  else if (h->second_id == UINT64_MAX)
    h->second_id = first_id;
  if (h->n_iterations == MAX_ITERATIONS) /* the older half is forgotten: "or before" */
    {
      h->n_iterations /= 2;
      h->first_iteration += h->n_iterations;
      memmove (h->first_ids, h->first_ids + h->n_iterations, h->n_iterations * sizeof first_id);
    }
  h->first_ids[h->n_iterations++] = first_id;
}

bool
td__holdings_iteration_of (const TdHoldings *h, uint64_t id, uint64_t *iteration)
{
  uint32_t lo = 0, hi = h->n_iterations;

  while (lo < hi)
    {
      const uint32_t mid = lo + (hi - lo) / 2;

      if (h->first_ids[mid] <= id)
        lo = mid + 1;
      else
        hi = mid;
    }
  *iteration = h->first_iteration + (lo > 0 ? lo - 1 : 0);
  return id >= h->very_first_id;
}

bool
td__holdings_is_told (const TdHoldings *h, const TdBuffer *b, uint64_t id, uint64_t *iteration)
{
  if (b == NULL || !td__holdings_iteration_of (h, id, iteration))
    return false;
  return (b->category != TD_MEM_PARAMETER && b->category != TD_MEM_OPTIMIZER)
         || id >= h->second_id;
}

/* ------------------------------------------------------------------------ accounts */

static Group *
group_of (TdHoldings *h, const Key *key)
{
  const uint64_t mixed = ((uintptr_t)key->site * 31 + (uintptr_t)key->holder_site) * 31
                         + (uintptr_t)key->held_site * 7 + (uintptr_t)key->cls
                         + key->category * 64u + key->holder * 8u + key->in_graph;
  const uint32_t n_slots = TD_ARRAY_LENGTH (h->slots);

  for (uint32_t at = (uint32_t)((mixed * 0x9e3779b97f4a7c15u) >> 40) % n_slots;;
       at = (at + 1) % n_slots)
    {
      if (h->slots[at] == 0)
        {
          if (h->n == MAX_GROUPS)
            return &h->groups[MAX_GROUPS];
          h->groups[h->n] = (Group){ .key = *key };
          h->slots[at] = (uint16_t)++h->n;
          return &h->groups[h->n - 1];
        }
      if (memcmp (&h->groups[h->slots[at] - 1].key, key, sizeof *key) == 0)
        return &h->groups[h->slots[at] - 1];
    }
}

/* Mark buffer b as visited.  Returns whether this is the first time. */
static bool
meet (TdHoldings *h, const TdBuffer *b)
{
  size_t at;

  if (2 * h->n_met >= h->met_capacity)
    {
      const size_t old = h->met_capacity;
      const TdBuffer **items = h->met;

      h->met_capacity = old == 0 ? 1024 : 2 * old;
      h->met = td__xcalloc (h->met_capacity, sizeof *h->met);
      h->n_met = 0;
      for (size_t i = 0; i < old; i++)
        if (items[i] != NULL)
          meet (h, items[i]);
      free (items);
    }
  at = ((uintptr_t)b * 0x9e3779b97f4a7c15u >> 20) & (h->met_capacity - 1);
  while (h->met[at] != NULL && h->met[at] != b)
    at = (at + 1) & (h->met_capacity - 1);
  if (h->met[at] == b)
    return false;
  h->met[at] = b;
  h->n_met++;
  return true;
}

/* Count an array of node n for the root that `key` is of and that has this name. */
static void
count (TdHoldings *h, Key key, const char *name, const TdNode *n, const TdBuffer *b,
       const TdSite *site)
{
  uint64_t iteration = 0;
  Group *g;

  if (!td__holdings_is_told (h, b, n->id, &iteration) || !meet (h, b))
    return;
  key.cls = n->creator != NULL ? n->creator->cls : NULL;
  key.site = n->creator != NULL && n->creator->site != NULL ? n->creator->site : site;
  key.category = b->category;
  g = group_of (h, &key);
  if (g->n_objects == 0 || iteration < g->oldest)
    g->oldest = iteration;
  if (g->n_objects == 0)
    g->name = name;
  else if (g->name != name)
    g->name = NULL;
  g->n_objects++;
  g->bytes += b->bytes;
  if (iteration == h->asked)
    {
      g->n_asked++;
      g->asked_bytes += b->bytes;
    }
  td__made_in_add (&g->made_in, iteration);
}

/* ---------------------------------------------------------------------------- roots */

static const uint8_t on_tape[TD_HOLD_N] = {
  [TD_HOLD_SCOPE] = TD_TAPE_HOLDER_SCOPE,         [TD_HOLD_USER] = TD_TAPE_HOLDER_HANDLE,
  [TD_HOLD_LINK] = TD_TAPE_HOLDER_LINK,           [TD_HOLD_GRADIENT] = TD_TAPE_HOLDER_GRADIENT,
  [TD_HOLD_OPTIMIZER] = TD_TAPE_HOLDER_OPTIMIZER, [TD_HOLD_ENGINE] = TD_TAPE_HOLDER_REPORTER,
};

static void
push (TdHoldings *h, TdNode *n)
{
  TdOp *op = n->creator;

  if (op == NULL || op->mark == td__engine.mark)
    return;
  op->mark = td__engine.mark;
  h->work = room (h->work, h->n_work, &h->work_capacity, sizeof *h->work);
  h->work[h->n_work++] = op;
}

/* Count the array that an operation saved of node n, unless a live variable has it too. */
static void
saved (TdHoldings *h, const Key *key, const char *name, const TdNode *n)
{
  if (n->retained != NULL && (n->var == NULL || n->var->buffer != n->retained))
    count (h, *key, name, n, n->retained, n->var != NULL ? n->var->site : NULL);
}

typedef struct
{
  TdHoldings *h;
  const Key *key;
  const char *name;
} Account;

/* The same of an array that the operation keeps itself. */
static void
count_kept (void *user, const TdNode *n, const TdBuffer *b)
{
  const Account *a = user;

  if (n->var == NULL || n->var->buffer != b)
    count (a->h, *a->key, a->name, n, b, n->var != NULL ? n->var->site : NULL);
}

static void
walk (TdHoldings *h, const TdVar *v, TdHold hold)
{
  const TdOp *made_by = v->node->creator;
  Key key;

  memset (&key, 0, sizeof key); /* keys are compared with their padding */
  key.holder = on_tape[hold];
  key.holder_site = td__holdings_holder_site (v);
  key.held_site = v->site;
  key.held_cls = made_by != NULL ? made_by->cls : NULL;
  count (h, key, v->name, v->node, v->buffer, v->site);
  key.in_graph = 1;
  push (h, v->node);
  while (h->n_work > 0)
    {
      TdOp *op = h->work[--h->n_work];

      h->visits += 1 + (uint64_t)op->n_in;
      for (int i = 0; i < op->n_in; i++)
        {
          saved (h, &key, v->name, op->in[i]);
          push (h, op->in[i]);
        }
      for (int i = 0; i < op->n_out; i++)
        if (op->out[i] != NULL)
          saved (h, &key, v->name, op->out[i]);
      if (TD_UNLIKELY (td__op_held != NULL) && (op->cls->flags & TD_OP_CAPTURES))
        td__op_held (op, count_kept, &(Account){ h, &key, v->name });
    }
}

/* Direct holds of the program first, then indirect ones. */
static const TdHold order[] = { TD_HOLD_LINK,     TD_HOLD_USER,      TD_HOLD_ENGINE,
                                TD_HOLD_GRADIENT, TD_HOLD_OPTIMIZER, TD_HOLD_SCOPE };

static int
rank_of (const TdVar *v)
{
  int rank = v->holds[TD_HOLD_USER] > 0 ? 1 : 0; /* a handle that a link has as well */

  while (rank + 1 < TD_ARRAY_LENGTH (order) && v->holds[order[rank]] == 0)
    rank++;
  return rank;
}

static TdHold
hold_of (const TdVar *v)
{
  return order[rank_of (v)];
}

uint8_t
td__holdings_holder (const TdVar *v)
{
  return on_tape[hold_of (v)];
}

const TdSite *
td__holdings_holder_site (const TdVar *v)
{
  static const bool is_placed[TD_HOLD_N]
      = { [TD_HOLD_USER] = true, [TD_HOLD_LINK] = true, [TD_HOLD_OPTIMIZER] = true };

  return is_placed[hold_of (v)] ? v->retained_site : NULL;
}

static int
by_site (const void *a, const void *b)
{
  const uintptr_t x = (uintptr_t)((const Kept *)a)->site,
                  y = (uintptr_t)((const Kept *)b)->site;

  return (x > y) - (x < y);
}

/* Remember how much the handles of each place keep. */
static void
remember (TdHoldings *h)
{
  size_t n = 0;

  for (uint32_t i = 0; i < h->n; i++)
    h->kept[i] = (Kept){ h->groups[i].key.holder_site, h->groups[i].bytes };
  if (h->n > 1)
    qsort (h->kept, h->n, sizeof *h->kept, by_site);
  for (uint32_t i = 0; i < h->n; i++)
    if (n > 0 && h->kept[n - 1].site == h->kept[i].site)
      h->kept[n - 1].bytes += h->kept[i].bytes;
    else
      h->kept[n++] = h->kept[i];
  h->n_kept = n;
}

static uint64_t
kept_before (const TdHoldings *h, const TdVar *v)
{
  const Kept key = { td__holdings_holder_site (v), 0 };
  const Kept *found = key.site != NULL && h->n_kept > 0
                          ? bsearch (&key, h->kept, h->n_kept, sizeof key, by_site)
                          : NULL;

  return found != NULL ? found->bytes : 0;
}

/* Links before handles; of these, those of the place that kept most at the last look, then what
 * is older: so a graph that several keep is on the account of the same one at every look, and
 * of a leak rather than of something beside it. */
static int
by_rank (const void *a, const void *b)
{
  const Root *x = a, *y = b;

  if (x->rank != y->rank)
    return x->rank - y->rank;
  if (x->kept != y->kept)
    return x->kept < y->kept ? 1 : -1;
  return (x->var->node->id > y->var->node->id) - (x->var->node->id < y->var->node->id);
}

static void
walk_roots (TdHoldings *h)
{
  const TdSlab *slab = &td__engine.vars;

  h->n_roots = 0;
  for (size_t c = 0; c < slab->n_chunks; c++)
    for (size_t i = 0; i < TD_SLAB_ITEMS; i++)
      {
        const TdVar *v = (TdVar *)(void *)((char *)slab->chunks[c] + i * slab->item_bytes);

        if (v->state != TD_VAR_LIVE)
          continue;
        h->roots = room (h->roots, h->n_roots, &h->root_capacity, sizeof *h->roots);
        h->roots[h->n_roots++] = (Root){ v, rank_of (v), kept_before (h, v) };
      }
  if (h->n_roots > 1)
    qsort (h->roots, h->n_roots, sizeof *h->roots, by_rank);
  h->visits += h->n_roots;
  for (size_t i = 0; i < h->n_roots; i++)
    walk (h, h->roots[i].var, order[h->roots[i].rank]);
}

/* ------------------------------------------------------------------------- the mark */

static int
larger_first (const void *a, const void *b)
{
  const Group *x = a, *y = b;

  return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static void
put (TdRecorder *r, const Group *g, unsigned flags)
{
  TdTapeHeld held
      = { .bytes = g->bytes,
          .oldest = g->oldest,
          .n_objects = g->n_objects < UINT32_MAX ? (uint32_t)g->n_objects : UINT32_MAX,
          .n_iterations = g->made_in.n,
          .category = td__tape_category[g->key.category],
          .holder = g->key.holder,
          .flags = (uint8_t)(flags | (g->key.in_graph ? TD_TAPE_HELD_IN_GRAPH : 0)) };
  TdRawHeld *raw;

  if (!(flags & TD_TAPE_HELD_OTHERS))
    {
      held.site = td__recorder_site (r, g->key.site);
      held.holder_site = td__recorder_site (r, g->key.holder_site);
      held.held_site = td__recorder_site (r, g->key.held_site);
      held.opdef = g->key.cls != NULL ? td__recorder_class (r, g->key.cls) : 0;
      held.held_opdef = g->key.held_cls != NULL ? td__recorder_class (r, g->key.held_cls) : 0;
      held.name = td__recorder_string (r, g->name);
    }
  raw = td_ring_reserve (r->ring, TD_RAW_PADDED (sizeof *raw));
  raw->head = (TdRawHead){ TD_RAW_PADDED (sizeof *raw), TD_RAW_HELD, 0 };
  raw->held = held;
  td_ring_publish (r->ring, raw->head.size);
}

/* Whether to write a mark: if it differs from the last one, and of those that do not the 1st,
 * 2nd, 4th, 8th and so on: that nothing changes any more is seen soon. */
static bool
is_due (TdHoldings *h)
{
  uint64_t bytes = 0, objects = 0;
  uint32_t at;
  bool same;

  bytes += h->groups[MAX_GROUPS].bytes;
  objects += h->groups[MAX_GROUPS].n_objects;
  for (uint32_t i = 0; i < h->n; i++)
    {
      bytes += h->groups[i].bytes;
      objects += h->groups[i].n_objects;
    }
  same = bytes == h->marked_bytes && objects == h->marked_objects;
  h->marked_bytes = bytes;
  h->marked_objects = objects;
  h->n_same = same ? h->n_same + 1 : 0;
  at = h->n_same % SAME_MARKS;
  return (at & (at - 1)) == 0; /* 0, or a power of 2 */
}

static void
put_all (TdHoldings *h, TdRecorder *r)
{
  Group others = h->groups[MAX_GROUPS];
  uint32_t n_put = h->n < TD_TAPE_MAX_HELD ? h->n : TD_TAPE_MAX_HELD;

  if (h->n > 0)
    qsort (h->groups, h->n, sizeof *h->groups, larger_first);
  for (uint32_t i = 0; i < n_put; i++)
    put (r, &h->groups[i], 0);
  for (uint32_t i = n_put; i < h->n; i++)
    {
      others.bytes += h->groups[i].bytes;
      others.n_objects += h->groups[i].n_objects;
      td__made_in_join (&others.made_in, &h->groups[i].made_in);
    }
  others.key = (Key){ 0 };
  others.oldest = 0;
  /* always written, and last: it shows that this iteration has a mark */
  put (r, &others, TD_TAPE_HELD_OTHERS);
}

/* Put all that is held into groups. */
static void
look (TdHoldings *h)
{
  h->n = 0;
  h->visits = 0;
  h->n_met = 0;
  memset (h->slots, 0, sizeof h->slots);
  memset (&h->groups[MAX_GROUPS], 0, sizeof h->groups[0]);
  if (h->met != NULL)
    memset (h->met, 0, h->met_capacity * sizeof *h->met);
  td__engine.mark += 4; /* a backward uses a few numbers after its own */
  walk_roots (h);
  remember (h);
}

void
td__holdings_mark (TdHoldings *h, TdRecorder *r, uint64_t n_events)
{
  const TdSlab *slab = &td__engine.vars;

  for (const TdScope *s = td__engine.scope; s != NULL; s = s->outer)
    if (s->is_iteration) /* the program ends within an iteration: its scope is open */
      return;
  h->credit += 128 + 2 * n_events;
  td__objects_count (h->objects, n_events);
  if (h->credit < h->cost)
    return;
  h->credit = 0;
  look (h);
  if (is_due (h))
    {
      put_all (h, r);
      h->visits += td__objects_mark (h->objects, h, r, h->visits);
    }
  h->cost = slab->n_chunks * (TD_SLAB_ITEMS / 8) + h->visits;
}

/* ------------------------------------------------------------- for breakpoints */

static const char *const holders[] = {
  [TD_TAPE_HOLDER_SCOPE] = "an open scope",
  [TD_TAPE_HOLDER_HANDLE] = "a handle of the program",
  [TD_TAPE_HOLDER_LINK] = "a link",
  [TD_TAPE_HOLDER_GRADIENT] = "a gradient",
  [TD_TAPE_HOLDER_OPTIMIZER] = "the optimizer",
  [TD_TAPE_HOLDER_REPORTER] = "the engine",
};

/* Parameters and what belongs to them are meant to stay, and so is a schedule's memory. */
static bool
is_meant_to_stay (const Key *key)
{
  return key->category == TD_MEM_PARAMETER || key->category == TD_MEM_OPTIMIZER
         || key->category == TD_MEM_STATIC
         || (key->holder == TD_TAPE_HOLDER_GRADIENT && !key->in_graph);
}

/* " at mlp.c:31"; "": not known. */
static const char *
place_text (const char *word, const TdSite *site, char *text, size_t size)
{
  const char *slash = site != NULL ? strrchr (site->file, '/') : NULL;

  if (site == NULL)
    return "";
  snprintf (text, size, " %s %.80s:%d", word, slash != NULL ? slash + 1 : site->file,
            site->line);
  return text;
}

static void
describe (const Group *g, uint64_t iteration, TdOutlived *out)
{
  char bytes[32], made[120], taken[120];
  const uint8_t holder = g->key.holder;

  snprintf (out->what, sizeof out->what,
            "%s of iteration %lu are still there, most of them made by %.60s%s and kept by "
            "%s%s%s",
            td__bytes_text (out->bytes, bytes), (unsigned long)iteration,
            g->key.cls != NULL ? g->key.cls->name : "the program",
            place_text ("at", g->key.site, made, sizeof made),
            g->key.in_graph ? "the graph of " : "",
            holder < TD_ARRAY_LENGTH (holders) && holders[holder] != NULL ? holders[holder]
                                                                          : "others",
            place_text ("taken at", g->key.holder_site, taken, sizeof taken));
}

bool
td__holdings_outlived (TdHoldings *h, uint64_t iteration, TdOutlived *out)
{
  const Group *most = NULL;

  out->bytes = out->n_arrays = 0;
  h->asked = iteration;
  look (h);
  h->asked = UINT64_MAX;
  for (uint32_t i = 0; i < h->n; i++)
    {
      const Group *g = &h->groups[i];

      if (g->n_asked == 0 || is_meant_to_stay (&g->key))
        continue;
      out->bytes += g->asked_bytes;
      out->n_arrays += g->n_asked;
      most = most == NULL || g->asked_bytes > most->asked_bytes ? g : most;
    }
  if (most != NULL)
    describe (most, iteration, out);
  return most != NULL;
}
