/* Guards: how they are made and checked.
 *
 * SPDX-License-Identifier: MIT */
#include "guard.h"
#include "host-memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool
is_held (const TdVar *v)
{
  return v->holds[TD_HOLD_USER] + v->holds[TD_HOLD_LINK] > 0;
}

TdGuards *
td__guards_new (TdVar *const *in, int n_in)
{
  TdEngine *e = &td__engine;
  TdGuards *g = td__xcalloc (1, sizeof *g);

  g->config = e->config;
  g->recomputing = e->recomputing;
  g->state_generation = e->state_generation;
  g->state_reads = e->state_reads;
  g->arguments = td__xcalloc ((size_t)n_in + 1, sizeof *g->arguments);
  g->n_arguments = (uint32_t)n_in;
  for (int i = 0; i < n_in; i++)
    {
      TdArgumentGuard *a = &g->arguments[i];
      const TdNode *n = in[i]->node;

      *a = (TdArgumentGuard){ .shape = n->shape,
                              .dtype = n->dtype,
                              .layout = n->layout,
                              .requires_grad = n->requires_grad,
                              .device = n->device,
                              .same_buffer = (uint32_t)i,
                              .same_node = (uint32_t)i,
                              .held = is_held (in[i]) ? in[i] : NULL,
                              .node_id = n->id };
      for (int j = i - 1; j >= 0; j--)
        if (in[j]->buffer == in[i]->buffer)
          {
            a->same_buffer = (uint32_t)j;
            if (in[j]->node == n)
              a->same_node = (uint32_t)j;
          }
    }
  return g;
}

void
td__guards_free (TdGuards *g)
{
  if (g == NULL)
    return;
  for (uint32_t i = 0; i < g->n_watches; i++)
    {
      free (g->watches[i].seen);
      free (g->watches[i].after);
      free (g->watches[i].by_effect);
      free (g->watches[i].by_code);
    }
  free (g->watches);
  free (g->arguments);
  free (g);
}

void
td__guards_watch (TdGuards *g, const char *name, const TdSite *site, void *memory, size_t bytes)
{
  TdWatch *w;

  for (uint32_t i = 0; i < g->n_watches; i++)
    if (g->watches[i].memory == memory)
      return;
  g->watches = td__xrealloc (g->watches, (g->n_watches + 1) * sizeof *g->watches);
  w = &g->watches[g->n_watches++];
  *w = (TdWatch){ .name = td__intern (name), .site = site, .memory = memory, .bytes = bytes };
  w->seen = td__xmalloc (bytes);
  w->after = td__xmalloc (bytes);
  memcpy (w->seen, memory, bytes);
  memcpy (w->after, memory, bytes);
}

void
td__guards_note_changes (TdGuards *g, bool by_effect)
{
  for (uint32_t i = 0; i < g->n_watches; i++)
    {
      TdWatch *w = &g->watches[i];
      uint8_t **by = by_effect ? &w->by_effect : &w->by_code;
      const uint8_t *now = w->memory;

      if (memcmp (now, w->after, w->bytes) == 0)
        continue;
      if (*by == NULL)
        *by = td__xcalloc (w->bytes + 1, 1);
      for (size_t k = 0; k < w->bytes; k++)
        (*by)[k] |= (uint8_t)(now[k] != w->after[k]);
      memcpy (w->after, now, w->bytes);
    }
}

static const TdBuffer *
external_buffer (const TdSchedule *s, uint32_t i, TdVar *const *in)
{
  return i < s->n_arguments ? in[i]->buffer : s->externals[i].var->buffer;
}

void
td__guards_settle (TdGuards *g)
{
  g->links_generation = td__links_generation;
  g->reads_state = td__engine.state_reads != g->state_reads;
  td__guards_note_changes (g, false);
  for (uint32_t i = 0; i < g->n_watches; i++)
    {
      TdWatch *w = &g->watches[i];

      for (size_t k = w->bytes; k-- > 0;)
        if (w->after[k] != w->seen[k])
          {
            w->n_changed++;
            w->first_changed = k;
          }
    }
}

void
td__guards_learn (TdGuards *now, const TdGuards *earlier)
{
  for (uint32_t i = 0; i < now->n_arguments; i++)
    {
      TdArgumentGuard *a = &now->arguments[i];

      if (earlier->arguments[i].held == NULL || earlier->arguments[i].node_id != a->node_id)
        a->held = NULL;
    }
}

/* --- checking --- */

static bool
missed (TdMiss *miss, const char *guard, const TdSite *site)
{
  miss->guard = guard;
  miss->site = site;
  return false;
}

#define SAY(miss, ...) snprintf ((miss)->text, sizeof (miss)->text, __VA_ARGS__)

static __attribute__ ((noinline, cold)) bool
argument_missed (const TdArgumentGuard *a, const TdVar *v, int i, TdMiss *miss)
{
  const TdNode *n = v->node;
  char now[120], then[120];

  if (!td_shape_equal (&a->shape, &n->shape))
    SAY (miss, "argument %d has shape %s, %s before", i,
         td_shape_text (&n->shape, now, sizeof now),
         td_shape_text (&a->shape, then, sizeof then));
  else if (a->dtype != n->dtype)
    SAY (miss, "argument %d is %s, %s before", i, td_dtype_name ((TdDtype)n->dtype),
         td_dtype_name ((TdDtype)a->dtype));
  else if (a->layout != n->layout)
    SAY (miss, "argument %d has its elements in another order in memory than before", i);
  else if (a->device != n->device)
    SAY (miss, "argument %d is on %s, %s before", i, n->device->name, a->device->name);
  else if (a->requires_grad != n->requires_grad)
    SAY (miss, "argument %d wants %s gradient, %s before", i, n->requires_grad ? "a" : "no",
         a->requires_grad ? "it did" : "it did not");
  else
    SAY (miss, "argument %d shares its memory with other arguments than before", i);
  return missed (miss, "argument", v->site);
}

static __attribute__ ((noinline, cold)) bool
config_missed (const TdConfig *then, const TdConfig *now, TdMiss *miss)
{
  for (size_t offset = 0; offset < sizeof *then; offset += sizeof (int))
    {
      int a, b;

      memcpy (&a, (const char *)then + offset, sizeof a);
      memcpy (&b, (const char *)now + offset, sizeof b);
      if (a != b)
        {
          SAY (miss, "config.%s is %d, %d before", td__config_name (offset), b, a);
          break;
        }
    }
  return missed (miss, "config", NULL);
}

static inline bool
same_argument (const TdArgumentGuard *a, const TdVar *v, TdVar *const *in, int i)
{
  const TdNode *n = v->node;
  uint32_t same = (uint32_t)i, node = (uint32_t)i;

  if (a->dtype != n->dtype || a->requires_grad != n->requires_grad || a->device != n->device
      || a->layout != n->layout || a->shape.ndim != n->shape.ndim)
    return false;
  for (int d = 0; d < a->shape.ndim; d++)
    if (a->shape.dim[d] != n->shape.dim[d])
      return false;
  for (int j = i - 1; j >= 0; j--)
    if (in[j]->buffer == v->buffer)
      {
        same = (uint32_t)j;
        if (in[j]->node == n)
          node = (uint32_t)j;
      }
  return same == a->same_buffer && node == a->same_node;
}

/* The trace knows by node what the code used: an argument that it could also reach by another
 * way, and that is there still, may be meant where another one comes now. */
static __attribute__ ((noinline, cold)) bool
held_missed (const TdArgumentGuard *a, const TdVar *v, int i, TdMiss *miss)
{
  if (a->held->state != TD_VAR_LIVE || a->held->node->id != a->node_id || !is_held (a->held))
    return true;
  SAY (miss,
       "argument %d is another variable, %s before, which the program holds: its code may use "
       "both",
       i, a->held->name != NULL ? a->held->name : "an unnamed one");
  return missed (miss, "argument identity", v->site);
}

static __attribute__ ((noinline, cold)) bool
watch_missed (const TdWatch *w, const uint8_t *now, size_t at, TdMiss *miss)
{
  size_t word = at & ~(size_t)3;
  float a = 0, b = 0;
  int32_t i = 0, j = 0;

  if (word + 4 <= w->bytes)
    {
      memcpy (&i, w->seen + word, 4);
      memcpy (&j, now + word, 4);
      memcpy (&a, w->seen + word, 4);
      memcpy (&b, now + word, 4);
    }
  SAY (miss, "memory of %s changed at byte %zu: %d, %d before (as float %.9g, %.9g)%s", w->name,
       word, j, i, (double)b, (double)a,
       w->by_code != NULL && w->by_code[at]
           ? ", by the code itself: td_static_code does that in a replay"
           : "");
  return missed (miss, "host memory", w->site);
}

/* A replay does not set what the code set, so that the next call would find the old bytes and
 * their guard would hold: with or without a change, such a trace is of one call only. */
static __attribute__ ((noinline, cold)) bool
written_missed (const TdWatch *w, TdMiss *miss)
{
  size_t k = 0;

  while (!w->by_code[k])
    k++;
  return watch_missed (w, w->after, k, miss);
}

static bool
watches_hold (const TdGuards *g, TdMiss *miss)
{
  for (uint32_t i = 0; i < g->n_watches; i++)
    {
      const TdWatch *w = &g->watches[i];
      const uint8_t *now = w->memory;

      if (w->by_code == NULL && memcmp (now, w->seen, w->bytes) == 0)
        continue;
      for (size_t k = 0; k < w->bytes; k++)
        if (now[k] != w->seen[k] && (w->by_effect == NULL || !w->by_effect[k]))
          return watch_missed (w, now, k, miss);
      if (w->by_code != NULL)
        return written_missed (w, miss);
    }
  return true;
}

static bool
same_kind (const TdSchedule *s, const TdNodeInfo *then, const TdNode *now)
{
  return now->requires_grad == then->requires_grad && now->dtype == then->dtype
         && now->layout == then->layout && now->device == s->device && now->creator == NULL
         && td_shape_equal (&now->shape, &then->shape);
}

static __attribute__ ((noinline, cold)) bool
kind_missed (const TdSchedule *s, const TdNodeInfo *then, const TdVar *v, TdMiss *miss)
{
  const TdNode *now = v->node;
  const char *name = then->name != NULL ? then->name : "a variable that it uses";
  char a[120], b[120];

  if (now->device != s->device)
    SAY (miss, "%s is on %s, %s before", name, now->device->name, s->device->name);
  else if (now->dtype != then->dtype)
    SAY (miss, "%s is %s, %s before", name, td_dtype_name ((TdDtype)now->dtype),
         td_dtype_name ((TdDtype)then->dtype));
  else if (!td_shape_equal (&now->shape, &then->shape))
    SAY (miss, "%s has shape %s, %s before", name, td_shape_text (&now->shape, a, sizeof a),
         td_shape_text (&then->shape, b, sizeof b));
  else if (now->requires_grad != then->requires_grad)
    SAY (miss, "%s wants %s gradient, %s before", name, now->requires_grad ? "a" : "no",
         then->requires_grad ? "it did" : "it did not");
  else
    SAY (miss, "%s is the result of an operation now, it was not before", name);
  return missed (miss, "captured variable", v->site);
}

/* The code's own variable comes as argument too, or did before: in the trace they are one. */
static __attribute__ ((noinline, cold)) bool
shared_missed (const TdNodeInfo *node, const TdVar *v, int i, TdMiss *miss)
{
  SAY (miss,
       "argument %d is %s, or shares its memory, which the code also uses: it did not before",
       i, node->name != NULL ? node->name : "a variable");
  return missed (miss, "argument identity", v->site);
}

static bool
captured_hold (const TdGuards *g, const TdSchedule *s, TdVar *const *in, TdMiss *miss)
{
  for (uint32_t i = s->n_arguments; i < s->n_externals; i++)
    {
      const TdExternal *x = &s->externals[i];
      const TdNodeInfo *node = &s->nodes[x->node];
      const TdVar *v = x->var;
      const TdValue *value = td__node_value (s, x->node);

      if (v->state != TD_VAR_LIVE || v->node->id != x->node_id
          || v->refs == v->holds[TD_HOLD_ENGINE]
          || (x->retained && v->holds[TD_HOLD_USER] == 0))
        {
          SAY (miss, "a variable that it used is gone: %s",
               node->name ? node->name : "unnamed");
          return missed (miss, "captured variable", v->site);
        }
      if (TD_UNLIKELY (!same_kind (s, node, v->node)))
        return kind_missed (s, node, v, miss);
      if (value->index != i && external_buffer (s, value->index, in) != v->buffer)
        {
          SAY (miss, "a variable that it uses shares its memory no more: %s",
               node->name ? node->name : "unnamed");
          return missed (miss, "captured variable", v->site);
        }
      for (uint32_t k = 0; k < s->n_arguments && value->index == i; k++)
        if (TD_UNLIKELY (in[k]->buffer == v->buffer))
          return shared_missed (node, v, (int)k, miss);
    }
  (void)g;
  return true;
}

bool
td__guards_hold (const TdGuards *g, const TdSchedule *s, TdVar *const *in, int n_in,
                 TdMiss *miss)
{
  const TdEngine *e = &td__engine;

  if ((uint32_t)n_in != g->n_arguments)
    {
      SAY (miss, "%d arguments, %u before", n_in, g->n_arguments);
      return missed (miss, "argument", NULL);
    }
  for (int i = 0; i < n_in; i++)
    if (TD_UNLIKELY (!same_argument (&g->arguments[i], in[i], in, i)))
      return argument_missed (&g->arguments[i], in[i], i, miss);
    else if (TD_UNLIKELY (g->arguments[i].held != NULL)
             && in[i]->node->id != g->arguments[i].node_id
             && !held_missed (&g->arguments[i], in[i], i, miss))
      return false;
  if (TD_UNLIKELY (memcmp (&g->config, &e->config, sizeof g->config) != 0))
    return config_missed (&g->config, &e->config, miss);
  if (TD_UNLIKELY (g->links_generation != td__links_generation))
    {
      const TdSite *site;

      SAY (miss, "links or parameters were added, replaced or removed, the last at %s",
           td__links_last (&site));
      return missed (miss, "links", site);
    }
  if (TD_UNLIKELY (g->reads_state && g->state_generation != e->state_generation))
    {
      SAY (miss, "the recurrent state of a link was set or dropped");
      return missed (miss, "link state", NULL);
    }
  if (TD_UNLIKELY (g->recomputing != e->recomputing))
    {
      SAY (miss, "it runs inside td_forget's second run, or did before");
      return missed (miss, "config", NULL);
    }
  return watches_hold (g, miss) && captured_hold (g, s, in, miss);
}
