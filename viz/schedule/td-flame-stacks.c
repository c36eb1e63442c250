/*
 * A flame graph of a memory snapshot: the tree of the calls that allocated, with what is there
 * of it at one moment, and how long it was there.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "tape/td-stack.h"
#include "td-flame.h"

/* Bytes times nanoseconds of a large device and a long day are more than 64 bits. */
__extension__ typedef unsigned __int128 Held;

#define NS_PER_MS 1000000

/* A call of the tape's tree; 0 is around all of them, the last one stands for blocks whose
 * stack is not known. */
typedef struct
{
  guint32 outer;
  guint32 first, next; /* inner calls, in any order; 0: none */
  guint64 own_bytes;   /* of blocks whose stack ends here */
  guint32 n_own, n;    /* how many these are, and with what is in it */
  Held own_held;
  guint64 size[TD_N_FLAME_SIZES]; /* with what is in it */
  guint64 own[TD_N_FLAME_SIZES];
} Call;

typedef struct
{
  TdFlame *flame;
  const TdTapeIteration *t;
  Call *calls;
  guint32 n_calls;
  GArray *nodes; /* TdFlameNode */
} Builder;

static guint32
stack_of (const Builder *b, guint32 var)
{
  const guint32 stack = td_stack_of_var (b->flame->iteration, var);

  return stack > 0 ? stack : b->n_calls - 1;
}

static guint64
time_of (const TdTapeIteration *t, guint32 event)
{
  return event < t->n_events && t->event_start_ns ? t->event_start_ns[event] : t->duration_ns;
}

/* After how many records there is most; the first time. */
static guint32
find_peak (const TdTapeIteration *t)
{
  guint64 now = 0, most;
  guint32 at = 0;

  for (guint32 i = 0; i < t->n_blocks; i++)
    now += t->blocks[i].bytes;
  most = now;
  for (guint32 i = 0; i < t->n_memory; i++)
    {
      now += t->memory[i].kind == TD_TAPE_MEMORY_ALLOC  ? t->memory[i].bytes
             : t->memory[i].kind == TD_TAPE_MEMORY_FREE ? -t->memory[i].bytes
                                                        : 0;
      if (now > most)
        {
          most = now;
          at = i + 1;
        }
    }
  return at;
}

/* A block from one record to another; TD_TAPE_NONE for the last: it is there to the end. */
static void
add_life (Builder *b, guint32 var, guint64 bytes, guint32 first, guint32 last, guint32 moment)
{
  const TdTapeIteration *t = b->t;
  guint64 from = first > 0 ? time_of (t, t->memory[first - 1].event) : 0;
  guint64 to = last != TD_TAPE_NONE ? time_of (t, t->memory[last].event) : t->duration_ns;
  Call *call = &b->calls[stack_of (b, var)];

  call->own_held += (Held)bytes * (to > from ? to - from : 0);
  if (first <= moment && (last == TD_TAPE_NONE || last >= moment))
    {
      call->own_bytes += bytes;
      call->n_own++;
    }
}

/* What each variable has since which record; those of the start have it since 0. */
static void
add_lives (Builder *b, guint32 moment)
{
  const TdTapeIteration *t = b->t;
  g_autofree guint64 *bytes = g_new0 (guint64, t->n_vars + 1);
  g_autofree guint32 *since = g_new0 (guint32, t->n_vars + 1);

  for (guint32 v = 0; v < t->n_vars; v++)
    if ((t->vars[v].flags & TD_TAPE_VAR_EXTERNAL) && t->vars[v].id < t->n_blocks
        && t->blocks[t->vars[v].id].key == t->vars[v].key)
      bytes[v] = t->blocks[t->vars[v].id].bytes;
  for (guint32 i = 0; i < t->n_memory; i++)
    {
      const TdTapeMemory *m = &t->memory[i];

      if (m->var >= t->n_vars)
        continue;
      if (m->kind == TD_TAPE_MEMORY_ALLOC)
        {
          bytes[m->var] = m->bytes;
          since[m->var] = i + 1;
        }
      else if (m->kind == TD_TAPE_MEMORY_FREE && bytes[m->var] > 0)
        {
          add_life (b, m->var, bytes[m->var], since[m->var], i, moment);
          bytes[m->var] = 0;
        }
    }
  for (guint32 v = 0; v < t->n_vars; v++)
    if (bytes[v] > 0)
      add_life (b, v, bytes[v], since[v], TD_TAPE_NONE, moment);
}

/* Inner calls have higher numbers than those around them. */
static void
add_up (Builder *b)
{
  for (guint32 i = 1; i < b->n_calls; i++)
    b->calls[i].outer = i <= b->t->n_stack_frames ? b->t->stack_frames[i - 1].outer : 0;
  for (guint32 i = b->n_calls; i-- > 0;)
    {
      Call *call = &b->calls[i], *outer = &b->calls[call->outer];

      call->own[TD_FLAME_BYTES] = call->own_bytes;
      call->own[TD_FLAME_TIME] = (guint64)(call->own_held / NS_PER_MS);
      call->n += call->n_own;
      for (guint s = 0; s < TD_N_FLAME_SIZES; s++)
        call->size[s] += call->own[s];
      if (i == 0)
        continue;
      outer->n += call->n;
      for (guint s = 0; s < TD_N_FLAME_SIZES; s++)
        outer->size[s] += call->size[s];
      if (call->size[TD_FLAME_BYTES] + call->size[TD_FLAME_TIME] == 0)
        continue; /* it only gave back */
      call->next = outer->first;
      outer->first = i;
    }
}

static int
largest_first (gconstpointer x, gconstpointer y, gpointer calls)
{
  guint32 i = *(const guint32 *)x, k = *(const guint32 *)y;
  const Call *a = &((const Call *)calls)[i], *b = &((const Call *)calls)[k];

  for (guint s = TD_N_FLAME_SIZES; s-- > 0;)
    if (a->size[s] != b->size[s])
      return a->size[s] > b->size[s] ? -1 : 1;
  return i < k ? -1 : i > k;
}

/* "forward (model.py:12)"; of C++ there is often the name alone. */
static const char *
name_of (const Builder *b, guint32 call)
{
  const TdStackFrame f = td_stack_frame (b->flame->iteration, call);
  const char *slash = strrchr (f.file, '/');
  g_autofree char *text = NULL;
  g_autofree char *valid = NULL;

  if (f.site == 0)
    return "stack not known";
  if (f.line == 0 || !*f.file)
    text = g_strdup (*f.function ? f.function : *f.file ? f.file : "??");
  else
    text = g_strdup_printf ("%s (%s:%u)", f.function, slash ? slash + 1 : f.file, f.line);
  valid = g_utf8_make_valid (text, -1);
  return g_string_chunk_insert_const (b->flame->strings, valid);
}

static void
add_node (Builder *b, const TdFlameNode *node)
{
  g_array_append_val (b->nodes, *node);
}

static TdFlameNode *
node_at (const Builder *b, gint i)
{
  return &g_array_index (b->nodes, TdFlameNode, i);
}

/* A call whose node is to come. */
typedef struct
{
  guint32 call;
  gint node, parent;
  gint depth;
} Pending;

/* What a click comes back to.  Keys of operations are hashes: hardly ever such a number. */
static guint64
key_of (guint32 call, gboolean itself)
{
  return call > 0 ? (guint64)1 << 63 | (guint64)call << 1 | (itself ? 1 : 0) : 0;
}

/* The largest is taken first. */
static void
push_inner (Builder *b, GArray *pending, const Pending *of)
{
  g_autoptr (GArray) inner = g_array_new (FALSE, FALSE, sizeof (guint32));

  for (guint32 i = b->calls[of->call].first; i > 0; i = b->calls[i].next)
    g_array_append_val (inner, i);
  g_array_sort_with_data (inner, largest_first, b->calls);
  for (guint k = inner->len; k-- > 0;)
    {
      Pending next = { g_array_index (inner, guint32, k), -1, of->node, of->depth + 1 };

      g_array_append_val (pending, next);
    }
}

static void
fill_node (Builder *b, TdFlameNode *node, const Pending *of)
{
  const Call *call = &b->calls[of->call];

  *node = (TdFlameNode){ .parent = of->parent,
                         .depth = of->depth,
                         .lane = TD_FLAME_ALL,
                         .key = key_of (of->call, FALSE),
                         .event = -1,
                         .is_op = call->first == 0 && of->parent >= 0,
                         .n_ops = call->n,
                         .path = "" };
  memcpy (node->size, call->size, sizeof node->size);
  if (of->parent >= 0)
    node->name = name_of (b, of->call);
}

/* What is a call's own, beside its inner ones. */
static void
add_own (Builder *b, const Pending *of)
{
  const Call *call = &b->calls[of->call];
  TdFlameNode own = { .parent = of->node,
                      .depth = of->depth + 1,
                      .lane = TD_FLAME_ALL,
                      .key = key_of (of->call, TRUE),
                      .event = -1,
                      .is_op = TRUE,
                      .n_ops = call->n_own,
                      .name = "itself",
                      .path = "" };

  memcpy (own.size, call->own, sizeof own.size);
  if (call->first > 0 && own.size[TD_FLAME_BYTES] + own.size[TD_FLAME_TIME] > 0)
    add_node (b, &own);
}

/* A stack is thousands of calls deep where a program recurses: no recursion here. */
static void
add_nodes (Builder *b)
{
  g_autoptr (GArray) pending = g_array_new (FALSE, FALSE, sizeof (Pending));
  Pending root = { 0, -1, -1, 0 };

  g_array_append_val (pending, root);
  while (pending->len > 0)
    {
      Pending at = g_array_index (pending, Pending, pending->len - 1);
      TdFlameNode node;

      g_array_set_size (pending, pending->len - 1);
      fill_node (b, &node, &at);
      at.node = (gint)b->nodes->len;
      add_node (b, &node);
      push_inner (b, pending, &at);
      add_own (b, &at);
    }
}

/* Where each begins, and ends: parents come before what is in them. */
static void
place_nodes (Builder *b)
{
  const gint n = (gint)b->nodes->len;
  g_autofree guint64 *next = g_new0 (guint64, (gsize)n * TD_N_FLAME_SIZES);

  for (gint i = 0; i < n; i++)
    {
      TdFlameNode *node = node_at (b, i);

      for (guint s = 0; s < TD_N_FLAME_SIZES; s++)
        {
          guint64 *to
              = node->parent >= 0 ? &next[node->parent * TD_N_FLAME_SIZES + (gint)s] : NULL;

          node->start[s] = to ? *to : 0;
          next[i * TD_N_FLAME_SIZES + (gint)s] = node->start[s];
          if (to)
            *to += node->size[s];
        }
      node->end = i + 1;
    }
  for (gint i = n - 1; i > 0; i--)
    {
      TdFlameNode *parent = node_at (b, node_at (b, i)->parent);

      parent->end = MAX (parent->end, node_at (b, i)->end);
    }
}

TdFlame *
td_flame_stacks_new (TdIteration *iteration, TdFlameKind kind)
{
  const TdTapeIteration *t = td_iteration_get_tape (iteration);
  Builder b = { .t = t, .n_calls = t->n_stack_frames + 2 };

  if (t->n_stack_frames == 0)
    return NULL;
  b.flame = g_new0 (TdFlame, 1);
  b.flame->kind = kind;
  b.flame->iteration = td_iteration_ref (iteration);
  b.flame->strings = g_string_chunk_new (1024);
  b.calls = g_new0 (Call, b.n_calls);
  b.nodes = g_array_new (FALSE, FALSE, sizeof (TdFlameNode));
  add_lives (&b, kind == TD_FLAME_PEAK ? find_peak (t) : t->n_memory);
  add_up (&b);
  add_nodes (&b);
  place_nodes (&b);
  node_at (&b, 0)->name = kind == TD_FLAME_PEAK ? "the peak" : "the end";
  b.flame->n = b.nodes->len;
  b.flame->nodes = (TdFlameNode *)(gpointer)g_array_free (b.nodes, FALSE);
  g_free (b.calls);
  return b.flame;
}
