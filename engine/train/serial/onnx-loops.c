/* Recurrent layers in a schedule: cells are found by what they compute, then put together.
 *
 * SPDX-License-Identifier: MIT */
#include "onnx-loops.h"

#include "../links/object.h"
#include "export.h"

#include <stdlib.h>
#include <string.h>

typedef struct
{
  const TdSchedule *s;
  TdOnnxLoops *loops;
  TdOnnxCell *cells;
  uint32_t n_cells;
  uint32_t *cell_of_h; /* by node: the cell whose h it is */
} Search;

/* --- one step and what it reads --- */

static const TdStep *
step_at (const Search *f, uint32_t i)
{
  return &f->s->forward.steps[i];
}

static uint32_t
in (const Search *f, uint32_t step, uint32_t i)
{
  return td__step_in (f->s, step_at (f, step), i);
}

static uint32_t
out (const Search *f, uint32_t step, uint32_t i)
{
  return td__step_out (f->s, step_at (f, step), i);
}

static const TdShape *
shape_of (const Search *f, uint32_t node)
{
  return &f->s->nodes[node].shape;
}

static bool
is_op (const Search *f, uint32_t step, const char *name)
{
  const TdStep *at = step != TD_ABSENT ? step_at (f, step) : NULL;

  return at != NULL && at->kind == TD_STEP_OP && !at->accumulate
         && strcmp (at->cls->name, name) == 0;
}

/* The operation of that name that makes a node, or TD_ABSENT; it becomes one of the cell's. */
static uint32_t
made_by (const Search *f, TdOnnxCell *cell, uint32_t node, const char *name)
{
  const uint32_t step = node != TD_ABSENT ? f->loops->maker[node] : TD_ABSENT;

  if (!is_op (f, step, name))
    return TD_ABSENT;
  if (cell != NULL)
    {
      for (int i = 0; i < cell->n_steps; i++)
        if (cell->steps[i] == step)
          return step;
      if (cell->n_steps == TD_LOOP_CELL)
        return TD_ABSENT;
      cell->steps[cell->n_steps++] = step;
    }
  return step;
}

/* Input i of the operation of that name that makes a node. */
static uint32_t
under (const Search *f, TdOnnxCell *cell, uint32_t node, const char *name, uint32_t i)
{
  const uint32_t step = made_by (f, cell, node, name);

  return step != TD_ABSENT && i < step_at (f, step)->n_in ? in (f, step, i) : TD_ABSENT;
}

/* --- cells --- */

static bool
is_lstm (const Search *f, uint32_t last, TdOnnxCell *cell)
{
  uint32_t gates;

  if (!is_op (f, last, "lstm"))
    return false;
  gates = in (f, last, 1);
  if (shape_of (f, in (f, last, 0))->dim[0] != shape_of (f, gates)->dim[0])
    return false;
  cell->kind = TD_LOOP_LSTM;
  cell->c = in (f, last, 0);
  cell->c_next = out (f, last, 0);
  cell->h_next = out (f, last, 1);
  cell->gates[0] = under (f, cell, gates, "add", 0);
  cell->gates[1] = under (f, cell, gates, "add", 1);
  if (cell->gates[0] == TD_ABSENT)
    cell->gates[0] = gates;
  return true;
}

/* tanh or relu of a sum. */
static bool
is_plain (const Search *f, uint32_t last, TdOnnxCell *cell)
{
  const bool rectifies = is_op (f, last, "relu");

  if (!rectifies && !is_op (f, last, "tanh"))
    return false;
  cell->kind = rectifies ? TD_LOOP_RELU : TD_LOOP_TANH;
  cell->h_next = out (f, last, 0);
  for (uint32_t i = 0; i < 2; i++)
    cell->gates[i] = under (f, cell, in (f, last, 0), "add", i);
  return cell->gates[1] != TD_ABSENT;
}

/* Part `part` of three, along axis 1, of what the node `of` is: TD_ABSENT where it is none. */
static uint32_t
third (const Search *f, TdOnnxCell *cell, uint32_t node, uint32_t part)
{
  const uint32_t step = made_by (f, cell, node, "split_axis");

  return step != TD_ABSENT && step_at (f, step)->n_out == 3
                 && td__export_number (step_at (f, step), "axis", 0) == 1
                 && out (f, step, part) == node
             ? in (f, step, 0)
             : TD_ABSENT;
}

/* A gate: f of the sum of part `part` of the input's side and of the state's. */
static bool
is_gate (const Search *f, TdOnnxCell *cell, uint32_t node, const char *function, uint32_t part)
{
  const uint32_t sum = under (f, cell, node, function, 0);
  const uint32_t x = third (f, cell, under (f, cell, sum, "add", 0), part),
                 h = third (f, cell, under (f, cell, sum, "add", 1), part);

  return x != TD_ABSENT && x == cell->gates[0] && h == cell->gates[1];
}

/* candidate + z (h - candidate), candidate = tanh (x2 + r h2). */
static bool
is_gru (const Search *f, uint32_t last, TdOnnxCell *cell)
{
  uint32_t candidate, product, sum, reset, x, h;

  if (!is_op (f, last, "add"))
    return false;
  cell->kind = TD_LOOP_GRU;
  cell->h_next = out (f, last, 0);
  candidate = in (f, last, 0);
  product = under (f, cell, in (f, last, 1), "mul", 1);
  if (under (f, cell, product, "sub", 1) != candidate)
    return false;
  h = under (f, cell, product, "sub", 0);
  sum = under (f, cell, candidate, "tanh", 0);
  x = under (f, cell, sum, "add", 0);
  reset = under (f, cell, under (f, cell, sum, "add", 1), "mul", 0);
  cell->gates[0] = third (f, cell, x, 2);
  cell->gates[1]
      = third (f, cell, under (f, cell, under (f, cell, sum, "add", 1), "mul", 1), 2);
  return cell->gates[0] != TD_ABSENT && cell->gates[1] != TD_ABSENT
         && is_gate (f, cell, reset, "sigmoid", 0)
         && is_gate (f, cell, under (f, cell, in (f, last, 1), "mul", 0), "sigmoid", 1)
         && under (f, NULL, cell->gates[1], "linear", 0) == h;
}

static void
find_cells (Search *f)
{
  static bool (*const kinds[]) (const Search *f, uint32_t last, TdOnnxCell *cell)
      = { is_lstm, is_plain, is_gru };

  for (uint32_t i = 0; i < f->s->forward.n; i++)
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
      {
        TdOnnxCell cell = { .steps = { i },
                            .n_steps = 1,
                            .gates = { TD_ABSENT, TD_ABSENT },
                            .c = TD_ABSENT,
                            .c_next = TD_ABSENT,
                            .before = TD_ABSENT,
                            .behind = TD_ABSENT };

        if (step_at (f, i)->kind != TD_STEP_OP || !kinds[k](f, i, &cell))
          continue;
        f->cell_of_h[cell.h_next] = f->n_cells;
        f->cells[f->n_cells++] = cell;
        break;
      }
}

/* --- which cell comes after which --- */

static uint32_t
weight_of (const Search *f, uint32_t linear, uint32_t i)
{
  return i < step_at (f, linear)->n_in ? in (f, linear, i) : TD_ABSENT;
}

/* The side of a cell's sum that is linear in the state h; TD_ABSENT: that of any.  -1: none. */
static int
side_of_state (const Search *f, const TdOnnxCell *cell, uint32_t h, uint32_t hw, uint32_t hb)
{
  for (int i = 1; i >= 0; i--)
    {
      const uint32_t step = cell->gates[i] != TD_ABSENT
                                ? made_by (f, NULL, cell->gates[i], "linear")
                                : TD_ABSENT;

      if (step != TD_ABSENT && (h == TD_ABSENT || in (f, step, 0) == h)
          && (hw == TD_ABSENT || in (f, step, 1) == hw)
          && (hw == TD_ABSENT || weight_of (f, step, 2) == hb))
        return i;
    }
  return -1;
}

/* Each cell whose state is another's goes on with it, by the same weights, unless one before it
 * does. */
static void
chain_cells (Search *f)
{
  for (uint32_t k = 0; k < f->n_cells; k++)
    for (int i = 1; i >= 0; i--)
      {
        TdOnnxCell *cell = &f->cells[k], *before;
        const uint32_t linear = made_by (f, NULL, cell->gates[i], "linear"),
                       h = linear != TD_ABSENT ? in (f, linear, 0) : TD_ABSENT,
                       from = h != TD_ABSENT ? f->cell_of_h[h] : TD_ABSENT;

        if (cell->before != TD_ABSENT || from == TD_ABSENT)
          continue;
        before = &f->cells[from];
        if (before->kind != cell->kind || before->behind != TD_ABSENT
            || before->c_next != cell->c
            || !td_shape_equal (shape_of (f, h), shape_of (f, cell->h_next))
            || (before->gates[1] != TD_ABSENT
                && side_of_state (f, before, TD_ABSENT, in (f, linear, 1),
                                  weight_of (f, linear, 2))
                       < 0))
          continue;
        before->behind = k;
        cell->before = from;
      }
}

/* --- loops --- */

/* The inputs of all cells: parts of one product, in their order or against it, or products of
 * the same weights, each of its own input. */
static bool
find_inputs (const Search *f, TdOnnxLoop *loop, const uint32_t *sides)
{
  const uint32_t split = made_by (f, NULL, sides[0], "split_axis_indices");
  const bool parts = split != TD_ABSENT && (int)step_at (f, split)->n_out == loop->n;
  const uint32_t linear = made_by (f, NULL, parts ? in (f, split, 0) : sides[0], "linear");

  if (linear == TD_ABSENT || shape_of (f, in (f, linear, 0))->ndim != 2)
    return false;
  loop->xw = in (f, linear, 1);
  loop->xb = weight_of (f, linear, 2);
  if (parts)
    {
      if (td__export_number (step_at (f, split), "axis", 0) != 0)
        return false;
      loop->all = in (f, linear, 0);
      loop->backwards = out (f, split, 0) != sides[0];
      for (int t = 0; t < loop->n; t++)
        if (out (f, split, (uint32_t)(loop->backwards ? loop->n - 1 - t : t)) != sides[t])
          return false;
      return true;
    }
  loop->x = td__xcalloc ((size_t)loop->n, sizeof *loop->x);
  for (int t = 0; t < loop->n; t++)
    {
      const uint32_t one = made_by (f, NULL, sides[t], "linear");

      if (one == TD_ABSENT || in (f, one, 1) != loop->xw || weight_of (f, one, 2) != loop->xb
          || !td_shape_equal (shape_of (f, in (f, one, 0)), shape_of (f, in (f, linear, 0))))
        return false;
      loop->x[t] = in (f, one, 0);
    }
  return true;
}

static void
take_step (TdOnnxCell *cell, uint32_t step)
{
  for (int i = 0; i < cell->n_steps; i++)
    if (cell->steps[i] == step)
      return;
  if (cell->n_steps < TD_LOOP_CELL)
    cell->steps[cell->n_steps++] = step;
}

/* The weights of the state, by the last cell, and each cell's two sides. */
static bool
find_sides (const Search *f, TdOnnxLoop *loop, uint32_t *const chain, uint32_t *sides)
{
  for (int t = loop->n - 1; t >= 0; t--)
    {
      TdOnnxCell *cell = &f->cells[chain[t]];
      const uint32_t h = t > 0 ? f->cells[chain[t - 1]].h_next : TD_ABSENT;
      const int side = side_of_state (f, cell, h, loop->hw, loop->hb);
      uint32_t linear;

      if (side < 0)
        {
          /* an LSTM's first step has no state, which is as one of zeros: */
          sides[t] = cell->gates[0];
          if (t > 0 || cell->gates[1] != TD_ABSENT || loop->hb != TD_ABSENT)
            return false;
          continue;
        }
      linear = f->loops->maker[cell->gates[side]];
      take_step (cell, linear);
      loop->hw = in (f, linear, 1);
      loop->hb = weight_of (f, linear, 2);
      sides[t] = cell->gates[1 - side];
      if (t == 0)
        loop->h_first = in (f, linear, 0);
    }
  for (int t = 0; t < loop->n; t++)
    if (shape_of (f, sides[t])->dim[0] != shape_of (f, loop->h[0])->dim[0])
      return false;
  return loop->h_first == TD_ABSENT
         || td_shape_equal (shape_of (f, loop->h_first), shape_of (f, loop->h[0]));
}

/* Does nothing else read what is inside the cells? */
static bool
is_closed (const Search *f, const TdOnnxLoop *loop, const uint32_t *chain)
{
  uint32_t *inside = td__xcalloc (f->s->n_nodes + 1, sizeof *inside);
  bool closed = true;

  for (int t = 0; t < loop->n; t++)
    {
      const TdOnnxCell *cell = &f->cells[chain[t]];

      for (int i = 0; i < cell->n_steps; i++)
        for (uint32_t k = 0; k < step_at (f, cell->steps[i])->n_in; k++)
          inside[in (f, cell->steps[i], k)]++;
    }
  for (int t = 0; t < loop->n && closed; t++)
    {
      const TdOnnxCell *cell = &f->cells[chain[t]];

      for (int i = 0; i < cell->n_steps; i++)
        for (uint32_t k = 0; k < step_at (f, cell->steps[i])->n_out; k++)
          {
            const uint32_t node = out (f, cell->steps[i], k);

            closed = closed && td__node_value (f->s, node)->n_writers <= 1
                     && (node == cell->h_next || (node == cell->c_next && t == loop->n - 1)
                         || f->loops->n_reads[node] == inside[node]);
          }
    }
  free (inside);
  return closed;
}

uint32_t
td__onnx_loop_reads (const TdOnnxLoop *loop, uint32_t *to)
{
  const uint32_t nodes[]
      = { loop->h_first, loop->c_first, loop->xw, loop->xb, loop->hw, loop->hb, loop->all };
  uint32_t n = 0;

  for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
    if (nodes[i] != TD_ABSENT)
      to[n++] = nodes[i];
  for (int t = 0; loop->x != NULL && t < loop->n; t++)
    to[n++] = loop->x[t];
  return n;
}

/* Is what the loop reads there without it?  The other loops are one step each. */
static bool
is_fed (const Search *f, const TdOnnxLoop *loop, const uint32_t *chain)
{
  const TdSchedule *s = f->s;
  bool *seen = td__xcalloc (s->forward.n + 1, sizeof *seen),
       *own = td__xcalloc (s->forward.n + 1, sizeof *own), fed = true;
  uint32_t *queue = td__xcalloc (s->forward.n + 1, sizeof *queue);
  uint32_t *reads = td__xcalloc (s->n_operands + s->forward.n + 8, sizeof *reads);
  uint32_t n = 0, n_reads = td__onnx_loop_reads (loop, reads);

  for (int t = 0; t < loop->n; t++)
    for (int i = 0; i < f->cells[chain[t]].n_steps; i++)
      own[f->cells[chain[t]].steps[i]] = true;
  for (uint32_t at = 0;; at++)
    {
      for (uint32_t i = 0; i < n_reads; i++)
        {
          const uint32_t step = f->loops->maker[reads[i]];

          if (step == TD_ABSENT || seen[step])
            continue;
          fed = fed && !own[step];
          seen[step] = true;
          queue[n++] = step;
        }
      if (at == n || !fed)
        break;
      if (f->loops->role[queue[at]].loop != TD_ABSENT)
        n_reads = td__onnx_loop_reads (&f->loops->loops[f->loops->role[queue[at]].loop], reads);
      else
        for (n_reads = 0; n_reads < step_at (f, queue[at])->n_in; n_reads++)
          reads[n_reads] = in (f, queue[at], n_reads);
    }
  free (seen);
  free (own);
  free (queue);
  free (reads);
  return fed;
}

static void
loop_free (TdOnnxLoop *loop)
{
  free (loop->h);
  free (loop->x);
}

static bool
take_loop (Search *f, uint32_t first)
{
  TdOnnxLoops *all = f->loops;
  TdOnnxLoop loop = { .kind = f->cells[first].kind,
                      .c_last = TD_ABSENT,
                      .h_first = TD_ABSENT,
                      .c_first = f->cells[first].c,
                      .xw = TD_ABSENT,
                      .xb = TD_ABSENT,
                      .hw = TD_ABSENT,
                      .hb = TD_ABSENT,
                      .all = TD_ABSENT };
  uint32_t *chain, *sides;
  bool is;

  for (uint32_t k = first; k != TD_ABSENT; k = f->cells[k].behind)
    loop.n++;
  chain = td__xcalloc (2 * (size_t)loop.n, sizeof *chain);
  sides = chain + loop.n;
  loop.h = td__xcalloc ((size_t)loop.n, sizeof *loop.h);
  for (uint32_t k = first, t = 0; k != TD_ABSENT; k = f->cells[k].behind, t++)
    {
      chain[t] = k;
      loop.h[t] = f->cells[k].h_next;
      loop.c_last = f->cells[k].c_next;
    }
  is = loop.n > 1
       && f->s->nodes[loop.h[0]].dtype == TD_F32 /* others of these, onnxruntime does not run */
       && find_sides (f, &loop, chain, sides) && find_inputs (f, &loop, sides)
       && is_closed (f, &loop, chain) && is_fed (f, &loop, chain);
  if (is)
    {
      for (int t = 0; t < loop.n; t++)
        for (int i = 0; i < f->cells[chain[t]].n_steps; i++)
          all->role[f->cells[chain[t]].steps[i]].loop = all->n;
      for (int t = 0; t < loop.n; t++)
        all->role[all->maker[sides[t]]].feeds = true;
      if (loop.all != TD_ABSENT)
        {
          all->role[all->maker[sides[0]]].splits = true;
          all->role[all->maker[in (f, all->maker[sides[0]], 0)]].feeds = true;
        }
      all->loops = td__xrealloc (all->loops, (all->n + 1) * sizeof *all->loops);
      all->loops[all->n++] = loop;
    }
  else
    loop_free (&loop);
  free (chain);
  return is;
}

/* --- what is needed beside them --- */

static void
count_reads (const TdSchedule *s, TdOnnxLoops *loops)
{
  for (uint32_t i = 0; i < s->forward.n; i++)
    {
      const TdStep *step = &s->forward.steps[i];

      for (uint32_t k = 0; k < step->n_in; k++)
        loops->n_reads[td__step_in (s, step, k)]++;
      for (uint32_t k = 0; k < step->n_out; k++)
        loops->maker[td__step_out (s, step, k)] = i;
    }
  for (uint32_t k = 0; k < s->n_outputs; k++)
    loops->n_reads[s->outputs[k].node]++;
}

/* Products of the inputs, and their parts, that only loops read by their cells. */
static void
skip_inputs (const Search *f)
{
  uint32_t *read = td__xcalloc (f->s->n_nodes + 1, sizeof *read);
  uint32_t *needed = td__xcalloc (f->s->forward.n + 8, sizeof *needed);

  for (uint32_t l = 0; l < f->loops->n; l++) /* one that is an input itself is never all read */
    for (uint32_t n = td__onnx_loop_reads (&f->loops->loops[l], needed); n-- > 0;)
      f->loops->n_reads[needed[n]]++;
  for (uint32_t i = f->s->forward.n; i-- > 0;)
    {
      TdOnnxRole *role = &f->loops->role[i];
      const TdStep *step = step_at (f, i);

      role->skipped = role->feeds;
      for (uint32_t k = 0; k < step->n_out && role->skipped; k++)
        role->skipped = f->loops->n_reads[out (f, i, k)] == read[out (f, i, k)];
      for (uint32_t k = 0; k < step->n_in && (role->skipped || role->loop != TD_ABSENT); k++)
        read[in (f, i, k)]++;
    }
  free (read);
  free (needed);
}

/* Arrays that have the states of a loop below each other, in their order. */
static void
find_joins (const Search *f)
{
  for (uint32_t i = 0; i < f->s->forward.n; i++)
    for (uint32_t l = 0; l < f->loops->n && is_op (f, i, "concat"); l++)
      {
        const TdOnnxLoop *loop = &f->loops->loops[l];
        const TdStep *step = step_at (f, i);
        bool is = (int)step->n_in == loop->n && td__export_number (step, "axis", 1) == 0;

        for (int t = 0; t < loop->n && is; t++)
          is = in (f, i, (uint32_t)(loop->backwards ? loop->n - 1 - t : t)) == loop->h[t];
        if (is)
          f->loops->role[i].join = l;
      }
}

TdOnnxLoops
td__onnx_loops_find (const TdSchedule *s)
{
  TdOnnxLoops loops = { .role = td__xcalloc (s->forward.n + 1, sizeof *loops.role),
                        .maker = td__xcalloc (s->n_nodes + 1, sizeof *loops.maker),
                        .n_reads = td__xcalloc (s->n_nodes + 1, sizeof *loops.n_reads) };
  Search f = { .s = s,
               .loops = &loops,
               .cells = td__xcalloc (s->forward.n + 1, sizeof *f.cells),
               .cell_of_h = td__xcalloc (s->n_nodes + 1, sizeof *f.cell_of_h) };

  for (uint32_t i = 0; i < s->forward.n; i++)
    loops.role[i] = (TdOnnxRole){ .loop = TD_ABSENT, .join = TD_ABSENT };
  for (uint32_t n = 0; n < s->n_nodes; n++)
    loops.maker[n] = f.cell_of_h[n] = TD_ABSENT;
  count_reads (s, &loops);
  find_cells (&f);
  chain_cells (&f);
  for (uint32_t k = 0; k < f.n_cells; k++)
    if (f.cells[k].before == TD_ABSENT)
      take_loop (&f, k);
  skip_inputs (&f);
  find_joins (&f);
  free (f.cells);
  free (f.cell_of_h);
  return loops;
}

void
td__onnx_loops_free (TdOnnxLoops *loops)
{
  for (uint32_t i = 0; i < loops->n; i++)
    loop_free (&loops->loops[i]);
  free (loops->loops);
  free (loops->role);
  free (loops->maker);
  free (loops->n_reads);
  *loops = (TdOnnxLoops){ .n = 0 };
}
