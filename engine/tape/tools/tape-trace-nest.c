/* Traces: which slice lies in which, and what of the host's time belongs to which operation.
 *
 * The slices of a thread are gone through in order of their beginnings, with a stack of those
 * that are open.  What a slice has for itself, outside of what lies in it, are its parts: they
 * do not overlap on one thread, and become the operations of the tape.  What lies around them
 * becomes layers.
 * SPDX-License-Identifier: MIT */
#include "tape-sort.h"
#include "tape-trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  MAX_DEPTH = 40,  /* of a path */
  MAX_PIECE = 120, /* bytes of one */
  STEP = 1 << 16   /* slices from one word about progress to the next */
};

static const char EVALUATE[] = "autograd::engine::evaluate_function: ",
                  ACCUMULATE[] = "autograd::engine::evaluate_function: "
                                 "torch::autograd::AccumulateGrad",
                  MODULE[] = "nn.Module: ";

/** A slice that is open: it is on the stack. */
typedef struct
{
  uint32_t slice;
  uint32_t n_parts;
  uint64_t cursor_ns; /* all before that is accounted for */
  bool has_inside;
} Open;

/** Who made a node of autograd. */
typedef struct
{
  uint64_t number;
  uint32_t slice;
} Node;

typedef struct
{
  TapeTrace *t;
  Open *stack;
  uint64_t n_stack, room_stack;
  Node *nodes;
  uint64_t n_nodes;
  uint64_t n_host; /* slices of the host come first */
} Nest;

static bool
no_memory (TapeTrace *t)
{
  snprintf (t->error, t->n_error, "no memory");
  return false;
}

static bool
cancelled (TapeTrace *t)
{
  snprintf (t->error, t->n_error, "cancelled");
  return false;
}

static bool
begins (const char *text, const char *with)
{
  return strncmp (text, with, strlen (with)) == 0;
}

/* ------------------------------------------------------------------------------- order */

static bool
is_wanted (void *user)
{
  const TdTapeImportOptions *watch = ((const TapeTrace *)user)->watch;

  return watch == NULL || watch->cancel == NULL || *watch->cancel == 0;
}

/* While it is sorted, too, it may be cancelled. */
static bool
sort (TapeTrace *t, void *array, uint64_t n, size_t size,
      int (*compare) (const void *a, const void *b))
{
  const TapeSort how = td__tape_sort (array, n, size, compare, is_wanted, t);

  return how == TAPE_SORTED || (how == TAPE_SORT_LEFT ? cancelled (t) : no_memory (t));
}

/* Threads one after the other, each in order, the outer of two first; then devices, by the
 * number of what started them. */
static int
in_order (const void *a, const void *b)
{
  const TapeTraceSlice *x = a, *y = b;
  const bool far = x->kind == TAPE_TRACE_DEVICE;

  if (far != (y->kind == TAPE_TRACE_DEVICE))
    return far ? 1 : -1;
  if (far && x->number != y->number)
    return x->number < y->number ? -1 : 1;
  if (x->track != y->track)
    return x->track < y->track ? -1 : 1;
  if (x->start_ns != y->start_ns)
    return x->start_ns < y->start_ns ? -1 : 1;
  if (x->end_ns != y->end_ns)
    return x->end_ns > y->end_ns ? -1 : 1;
  return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

/* By number; of one node what began last, on the last thread, at the end. */
static int
by_number (const void *a, const void *b)
{
  const Node *x = a, *y = b;

  if (x->number != y->number)
    return x->number < y->number ? -1 : 1;
  return x->slice < y->slice ? -1 : x->slice > y->slice;
}

/* Operations say which node comes next; the last to say so, which is innermost, makes it. */
static bool
find_nodes (Nest *nest)
{
  TapeTrace *t = nest->t;
  uint64_t n = 0, kept = 0;

  for (uint64_t i = 0; i < nest->n_host; i++)
    n += t->slices[i].kind == TAPE_TRACE_OP && t->slices[i].number != 0
         && !(t->slices[i].flags & TAPE_TRACE_BACKWARD);
  nest->nodes = malloc ((n + 1) * sizeof *nest->nodes);
  if (nest->nodes == NULL)
    return no_memory (t);
  for (uint64_t i = 0, k = 0; i < nest->n_host && k < n; i++)
    if (t->slices[i].kind == TAPE_TRACE_OP && t->slices[i].number != 0
        && !(t->slices[i].flags & TAPE_TRACE_BACKWARD))
      nest->nodes[k++] = (Node){ t->slices[i].number, (uint32_t)i };
  if (!sort (t, nest->nodes, n, sizeof *nest->nodes, by_number))
    return false;
  for (uint64_t i = 0; i < n; i++)
    {
      const Node *node = &nest->nodes[i];
      const bool last = i + 1 == n || node[1].number != node->number;
      const bool first = kept == 0 || nest->nodes[kept - 1].number != node->number;

      /* threads count for themselves: which of two it is nobody knows */
      if (!first && nest->nodes[kept - 1].slice != UINT32_MAX
          && t->slices[nest->nodes[kept - 1].slice].track != t->slices[node->slice].track)
        nest->nodes[kept - 1].slice = UINT32_MAX;
      else if (first)
        nest->nodes[kept++] = *node;
      else if (nest->nodes[kept - 1].slice != UINT32_MAX)
        nest->nodes[kept - 1].slice = node->slice;
      if (last && nest->nodes[kept - 1].slice == UINT32_MAX)
        kept--;
    }
  nest->n_nodes = kept;
  for (uint64_t i = 0; i < kept; i++)
    t->slices[nest->nodes[i].slice].flags |= TAPE_TRACE_NODE;
  return true;
}

/* The slice that made a node, + 1; 0: it is not in the trace. */
static uint32_t
maker_of (const Nest *nest, uint64_t number)
{
  uint64_t lo = 0, hi = nest->n_nodes;

  while (lo < hi)
    {
      const uint64_t mid = lo + (hi - lo) / 2;

      if (nest->nodes[mid].number < number)
        lo = mid + 1;
      else
        hi = mid;
    }
  return lo < nest->n_nodes && nest->nodes[lo].number == number ? nest->nodes[lo].slice + 1 : 0;
}

/* -------------------------------------------------------------------- what lies around */

/* "net/model.py(12): forward" */
static bool
find_site (TapeTrace *t, TapeTraceSlice *s)
{
  const char *name = td__tape_trace_text (t, s->name), *bracket = strstr (name, "("), *after;
  char file[512];
  char *end;
  int rank;

  while (bracket != NULL && strstr (bracket + 1, "(") != NULL && strstr (bracket, "):") != NULL
         && strstr (bracket + 1, "(") < strstr (bracket, "):"))
    bracket = strstr (bracket + 1, "(");
  if (bracket == NULL || (size_t)(bracket - name) >= sizeof file)
    return true;
  const unsigned long line = strtoul (bracket + 1, &end, 10);

  if (end == bracket + 1 || line == 0 || line > INT32_MAX || !begins (end, "): "))
    return true;
  after = end + 3;
  snprintf (file, sizeof file, "%.*s", (int)(bracket - name), name);
  rank = td__tape_rank_of_file (file);
  if (rank < s->rank)
    return true;
  s->rank = (uint8_t)rank;
  s->site = td_tape_writer_site (t->w, file, (uint32_t)line, after);
  return true;
}

/* What a layer is called in a path, where '/' stands between two. */
static const char *
piece_of (const TapeTrace *t, const TapeTraceSlice *s, char *out)
{
  const char *name = td__tape_trace_text (t, s->name);
  size_t n = 0;

  if (s->kind == TAPE_TRACE_PYTHON)
    name = begins (name, MODULE) ? name + strlen (MODULE) : "";
  if (begins (name, EVALUATE))
    name = ""; /* the node lies in it under its own name */
  while (name[n] != '\0' && n < MAX_PIECE - 1)
    {
      out[n] = name[n] == '/' ? '.' : name[n];
      n++;
    }
  while (name[n] != '\0' && n > 0 && ((unsigned char)name[n] & 0xc0) == 0x80)
    n--; /* no half of a character */
  out[n] = '\0';
  return out;
}

/* The path of what lies in a slice. */
static bool
find_path (TapeTrace *t, TapeTraceSlice *s)
{
  char piece[MAX_PIECE], path[MAX_DEPTH * MAX_PIECE + 1];
  const char *outer = td__tape_trace_text (t, s->path);
  int n;

  if (*piece_of (t, s, piece) == '\0' || s->depth >= MAX_DEPTH)
    return true;
  n = snprintf (path, sizeof path, "%s%s%s", outer, *outer != '\0' ? "/" : "", piece);
  if (n < 0 || (size_t)n >= sizeof path)
    return true;
  s->depth++;
  return td__tape_trace_name (t, path, (size_t)n, &s->path);
}

/* What a slice has from the one around it, and what it says itself. */
static bool
inherit (Nest *nest, uint32_t i, const TapeTraceSlice *outer)
{
  TapeTrace *t = nest->t;
  TapeTraceSlice *s = &t->slices[i];
  const char *name = td__tape_trace_text (t, s->name);

  if (outer != NULL)
    {
      s->path = outer->path;
      s->depth = outer->depth;
      s->site = outer->site;
      s->rank = outer->rank;
      s->phase = outer->phase;
      s->node = outer->node;
    }
  if (begins (name, ACCUMULATE))
    s->phase = TD_TAPE_PHASE_ACCUMULATE;
  else if (begins (name, "Optimizer.step#"))
    s->phase = TD_TAPE_PHASE_UPDATE;
  else if (s->phase == TD_TAPE_PHASE_FORWARD
           && ((s->flags & TAPE_TRACE_BACKWARD) || begins (name, EVALUATE)))
    s->phase = TD_TAPE_PHASE_BACKWARD;
  if (s->flags & TAPE_TRACE_NODE)
    s->node = i + 1;
  else if (s->flags & TAPE_TRACE_BACKWARD)
    s->node = maker_of (nest, s->number);
  return s->kind != TAPE_TRACE_PYTHON || find_site (t, s);
}

/* ------------------------------------------------------------------------------- parts */

static bool
add_part (TapeTrace *t, const TapeTracePart *part)
{
  if (!td__tape_reserve (&t->parts, &t->room_parts, t->n_parts + 1, sizeof *t->parts))
    return no_memory (t);
  t->parts[t->n_parts++] = *part;
  return true;
}

static bool
add_stretch (Nest *nest, Open *o, uint64_t end_ns, uint32_t device)
{
  return add_part (nest->t, &(TapeTracePart){ .start_ns = o->cursor_ns,
                                              .end_ns = end_ns,
                                              .slice = o->slice,
                                              .device = device,
                                              .nth = o->n_parts++ });
}

/* Whether what a slice does for itself is an operation. */
static bool
is_operation (const TapeTraceSlice *s, bool has_inside)
{
  return s->kind == TAPE_TRACE_OP || s->kind == TAPE_TRACE_CALL
         || (s->kind == TAPE_TRACE_LAYER && !has_inside);
}

/* The first of the slices on devices that this number stands for; n_slices: there is none. */
static uint64_t
first_started (const Nest *nest, uint64_t number)
{
  uint64_t lo = nest->n_host, hi = nest->t->n_slices;

  while (lo < hi)
    {
      const uint64_t mid = lo + (hi - lo) / 2;

      if (nest->t->slices[mid].number < number)
        lo = mid + 1;
      else
        hi = mid;
    }
  return lo;
}

/* A call ends: what it started on devices are operations, the first of which takes its time. */
static bool
end_call (Nest *nest, Open *o, uint64_t end_ns, bool *is_done)
{
  TapeTrace *t = nest->t;
  const uint64_t number = t->slices[o->slice].number;

  if (number == 0)
    return true;
  for (uint64_t i = first_started (nest, number);
       i < t->n_slices && t->slices[i].number == number; i++)
    {
      if (t->slices[i].flags & TAPE_TRACE_ISSUED)
        continue;
      t->slices[i].flags |= TAPE_TRACE_ISSUED;
      if (!add_stretch (nest, o, end_ns, (uint32_t)i + 1))
        return false;
      o->cursor_ns = end_ns;
      *is_done = true;
    }
  return true;
}

static bool
pop (Nest *nest)
{
  Open *o = &nest->stack[--nest->n_stack];
  const TapeTraceSlice *s = &nest->t->slices[o->slice];
  bool is_done = false;

  if (s->kind == TAPE_TRACE_CALL && !end_call (nest, o, s->end_ns, &is_done))
    return false;
  if (!is_done && is_operation (s, o->has_inside)
      && (s->end_ns > o->cursor_ns || !o->has_inside) && !add_stretch (nest, o, s->end_ns, 0))
    return false;
  if (nest->n_stack > 0)
    nest->stack[nest->n_stack - 1].cursor_ns = s->end_ns;
  return true;
}

/* Something begins in a slice. */
static bool
interrupt (Nest *nest, Open *o, uint64_t at_ns)
{
  TapeTraceSlice *s = &nest->t->slices[o->slice];

  if (!o->has_inside && !find_path (nest->t, s))
    return false;
  o->has_inside = true;
  return at_ns <= o->cursor_ns || !is_operation (s, true) || add_stretch (nest, o, at_ns, 0);
}

static bool
push (Nest *nest, uint32_t i)
{
  TapeTrace *t = nest->t;
  TapeTraceSlice *s = &t->slices[i];

  while (nest->n_stack > 0)
    {
      const TapeTraceSlice *top = &t->slices[nest->stack[nest->n_stack - 1].slice];

      if (top->track == s->track && top->end_ns > s->start_ns)
        break;
      if (!pop (nest))
        return false;
    }
  if (nest->n_stack > 0)
    {
      Open *o = &nest->stack[nest->n_stack - 1];

      if (s->end_ns > t->slices[o->slice].end_ns)
        {
          s->end_ns = t->slices[o->slice].end_ns;
          t->n_cut++;
        }
      if (!interrupt (nest, o, s->start_ns))
        return false;
    }
  if (!inherit (nest, i,
                nest->n_stack > 0 ? &t->slices[nest->stack[nest->n_stack - 1].slice] : NULL))
    return false;
  if (!td__tape_reserve (&nest->stack, &nest->room_stack, nest->n_stack + 1,
                         sizeof *nest->stack))
    return no_memory (t);
  nest->stack[nest->n_stack++] = (Open){ .slice = i, .cursor_ns = s->start_ns };
  return true;
}

/* Who looks on is told now and then. */
static bool
goes_on (TapeTrace *t, uint64_t i)
{
  return i % STEP != 0
         || td__tape_import_step (t->watch, TD_TAPE_IMPORT_ARRANGING, i, t->n_slices)
         || cancelled (t);
}

static bool
go_through (Nest *nest)
{
  TapeTrace *t = nest->t;

  for (uint64_t i = 0; i < nest->n_host; i++)
    if (!push (nest, (uint32_t)i) || !goes_on (t, i))
      return false;
  while (nest->n_stack > 0)
    if (!pop (nest))
      return false;
  for (uint64_t i = nest->n_host; i < t->n_slices; i++)
    if (!(t->slices[i].flags & TAPE_TRACE_ISSUED))
      {
        t->n_unissued++;
        if (!add_part (t, &(TapeTracePart){ .start_ns = t->slices[i].start_ns,
                                            .end_ns = t->slices[i].start_ns,
                                            .slice = (uint32_t)i,
                                            .device = (uint32_t)i + 1 }))
          return false;
      }
  return true;
}

/* --------------------------------------------------------------------- all of one time */

static int
by_start (const void *a, const void *b)
{
  const TapeTracePart *x = a, *y = b;

  if (x->start_ns != y->start_ns)
    return x->start_ns < y->start_ns ? -1 : 1;
  if (x->end_ns != y->end_ns)
    return x->end_ns < y->end_ns ? -1 : 1;
  if (x->slice != y->slice)
    return x->slice < y->slice ? -1 : 1;
  return x->nth < y->nth ? -1 : x->nth > y->nth;
}

static uint64_t
length_of (const TapeTrace *t, const TapeTracePart *p)
{
  return p->device != 0 ? t->slices[p->device - 1].end_ns - t->slices[p->device - 1].start_ns
                        : p->end_ns - p->start_ns;
}

/* Of what a node was made by, the longest part is what its backward belongs to. */
static void
find_twins (TapeTrace *t)
{
  for (uint64_t i = 0; i < t->n_slices; i++)
    if (t->slices[i].flags & TAPE_TRACE_NODE)
      t->slices[i].number = 0; /* from here on: its part, + 1 */
  for (uint64_t i = 0; i < t->n_parts; i++)
    {
      const TapeTraceSlice *s = &t->slices[t->parts[i].slice];
      TapeTraceSlice *node = s->node != 0 ? &t->slices[s->node - 1] : NULL;

      if (node == NULL)
        continue;
      if (s->phase != TD_TAPE_PHASE_FORWARD)
        t->parts[i].forward = (uint32_t)node->number;
      else if (node->number == 0
               || length_of (t, &t->parts[i]) > length_of (t, &t->parts[node->number - 1]))
        node->number = i + 1;
    }
}

bool
td__tape_trace_nest (TapeTrace *t)
{
  Nest nest = { .t = t };
  bool whole;

  if (!sort (t, t->slices, t->n_slices, sizeof *t->slices, in_order))
    return false;
  while (nest.n_host < t->n_slices && t->slices[nest.n_host].kind != TAPE_TRACE_DEVICE)
    nest.n_host++;
  whole = find_nodes (&nest) && go_through (&nest);
  free (nest.stack);
  free (nest.nodes);
  if (!whole)
    return false;
  if (t->n_parts == 0)
    return snprintf (t->error, t->n_error, "no trace: nothing in it is an operation"), false;
  if (!sort (t, t->parts, t->n_parts, sizeof *t->parts, by_start))
    return false;
  find_twins (t);
  return true;
}
