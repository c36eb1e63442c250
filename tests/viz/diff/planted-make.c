/* Programs of like blocks, as a loop over layers makes them, and what is planted in them.
 *
 * SPDX-License-Identifier: MIT */
#include "planted.h"

#include <string.h>

static const char *const names[PLANTED_N_OPS]
    = { "relu", "tanh", "sigmoid", "sin", "square", "mul_scalar", "leaky_relu",
        "clip", "cast", "cast",    "add", "mul",    "linear",     "layer_normalization" };

const char *
planted_op_name (PlantedOp op)
{
  return names[op];
}

static PlantedStep *
put (PlantedProgram *p, int at, PlantedStep step)
{
  memmove (p->step + at + 1, p->step + at, (size_t)(p->n++ - at) * sizeof *p->step);
  p->step[at] = step;
  return &p->step[at];
}

static bool
is_pair (const PlantedStep *step)
{
  return step->op == PLANTED_ADD || step->op == PLANTED_MUL;
}

static int
width_before (const PlantedProgram *p, int at)
{
  return at > 0 ? p->step[at - 1].width : p->width;
}

/* Which steps of its width a step can read besides the last one: none before the layer that
 * made that width, so that another width there harms nothing. Returns how many. */
static int
list_others (const PlantedProgram *p, int at, int *ids)
{
  int n = 0;

  for (int i = at - 1; i >= 0 && p->step[at - 1].op != PLANTED_LINEAR; i--)
    {
      if (i < at - 1 && p->step[i].op != PLANTED_CAST)
        ids[n++] = p->step[i].id;
      if (p->step[i].op == PLANTED_LINEAR)
        break;
    }
  return n;
}

static void
make_block (uint64_t *r, PlantedStep *block, int n)
{
  for (int i = 0; i < n; i++)
    {
      PlantedOp op = (PlantedOp)planted_random (r, PLANTED_N_OPS);

      if (i == 0)
        op = PLANTED_LINEAR;
      else if (op == PLANTED_CAST_BACK || (op == PLANTED_CAST && i + 1 == n))
        op = PLANTED_TANH;
      block[i]
          = (PlantedStep){ .op = op,
                           .line = 20 + 10 * i,
                           .link = -1,
                           .value = op == PLANTED_CAST ? planted_random (r, 2)
                                                       : 0.1 + 0.1 * planted_random (r, 5) };
      if (op == PLANTED_CAST)
        {
          i++;
          block[i] = (PlantedStep){ .op = PLANTED_CAST_BACK, .line = 20 + 10 * i, .link = -1 };
        }
    }
}

/* Casts back come right after casts, whatever stood there before. */
static void
make_program (uint64_t *r, PlantedProgram *p)
{
  PlantedStep block[8];
  int n = 2 + (int)planted_random (r, 6);

  memset (p, 0, sizeof *p);
  p->frozen = -1;
  p->width = 4 + (int)planted_random (r, 5);
  p->n_blocks = 1 + (int)planted_random (r, 5);
  p->adam = planted_random (r, 2);
  make_block (r, block, n);
  for (int b = 0; b < p->n_blocks; b++)
    for (int i = 0; i < n; i++)
      {
        PlantedStep step = block[i];

        step.block = b;
        step.id = p->n;
        step.width = step.op == PLANTED_LINEAR ? 4 + (int)planted_random (r, 5)
                                               : width_before (p, p->n);
        if (step.op == PLANTED_LINEAR || step.op == PLANTED_NORM)
          step.link = p->n_links++;
        put (p, p->n, step);
        if (is_pair (&step))
          {
            int ids[PLANTED_MAX_STEPS], others = list_others (p, p->n - 1, ids);

            if (others == 0)
              p->step[p->n - 1].op = PLANTED_TANH;
            else
              p->step[p->n - 1].other = ids[planted_random (r, (uint32_t)others)];
          }
      }
}

/* ---- what is planted ---- */

static bool
is_plain (const PlantedProgram *p, int at)
{
  return p->step[at].op < PLANTED_N_PLAIN;
}

static bool
has_number (const PlantedProgram *p, int at)
{
  PlantedOp op = p->step[at].op;

  return op == PLANTED_MUL_SCALAR || op == PLANTED_LEAKY_RELU || op == PLANTED_CLIP;
}

static bool
is_linear (const PlantedProgram *p, int at)
{
  return p->step[at].op == PLANTED_LINEAR;
}

static bool
is_cast (const PlantedProgram *p, int at)
{
  return p->step[at].op == PLANTED_CAST;
}

/* A step with a choice of what else it reads. */
static bool
is_choosing (const PlantedProgram *p, int at)
{
  int ids[PLANTED_MAX_STEPS];

  return is_pair (&p->step[at]) && list_others (p, at, ids) > 1;
}

static bool
is_in_middle (const PlantedProgram *p, int at)
{
  return is_plain (p, at) && p->n_blocks >= 3 && p->step[at].block > 0
         && p->step[at].block < p->n_blocks - 1;
}

static int
choose (uint64_t *r, const PlantedProgram *p, bool (*fits) (const PlantedProgram *p, int at))
{
  int n = 0, wanted;

  for (int i = 0; i < p->n; i++)
    n += fits (p, i);
  if (n == 0)
    return -1;
  wanted = (int)planted_random (r, (uint32_t)n);
  for (int i = 0;; i++)
    if (fits (p, i) && wanted-- == 0)
      return i;
}

static void
set_width (PlantedProgram *p, int at, int width)
{
  p->step[at].width = width;
  for (int i = at + 1; i < p->n && p->step[i].op != PLANTED_LINEAR; i++)
    p->step[i].width = width;
}

static PlantedOp
other_op (uint64_t *r, PlantedOp op)
{
  return (PlantedOp)((op + 1 + planted_random (r, PLANTED_N_PLAIN - 1)) % PLANTED_N_PLAIN);
}

/* Puts a step in behind another one: not between a cast and its way back. */
static int
plant_step (uint64_t *r, PlantedProgram *p, PlantedOp op, int link)
{
  int at = 1 + (int)planted_random (r, (uint32_t)p->n);

  if (p->step[at - 1].op == PLANTED_CAST)
    at++;
  put (p, at,
       (PlantedStep){ .op = op,
                      .line = p->step[at - 1].line + 5,
                      .block = p->step[at - 1].block,
                      .width = width_before (p, at),
                      .id = PLANTED_MAX_STEPS,
                      .link = link });
  return at;
}

/* Takes a step out: who read it reads what it read. */
static void
remove_step (PlantedProgram *p, int at)
{
  int id = p->step[at].id;

  p->n--;
  memmove (p->step + at, p->step + at + 1, (size_t)(p->n - at) * sizeof *p->step);
  for (int i = at; i < p->n; i++)
    if (is_pair (&p->step[i]) && p->step[i].other == id)
      p->step[i].other = p->step[at - 1].id;
}

/* Another of the arrays that it could read. */
static void
choose_other (uint64_t *r, PlantedProgram *p, int at)
{
  int ids[PLANTED_MAX_STEPS], n = list_others (p, at, ids), other;

  do
    other = ids[planted_random (r, (uint32_t)n)];
  while (other == p->step[at].other);
  p->step[at].other = other;
}

static int
plant (uint64_t *r, PlantedKind kind, PlantedProgram *p)
{
  int at = -1;

  switch (kind)
    {
    case PLANTED_ADDED:
      return plant_step (r, p, (PlantedOp)planted_random (r, PLANTED_N_PLAIN), -1);
    case PLANTED_LINK:
      p->n_links++;
      return plant_step (r, p, PLANTED_LINEAR, p->n_links - 1);
    case PLANTED_REMOVED:
      at = choose (r, p, is_plain);
      if (at >= 0)
        remove_step (p, at);
      return at;
    case PLANTED_REPLACED:
    case PLANTED_MIDDLE:
      at = choose (r, p, kind == PLANTED_MIDDLE ? is_in_middle : is_plain);
      if (at >= 0)
        p->step[at].op = other_op (r, p->step[at].op);
      return at;
    case PLANTED_ATTRIBUTE:
      at = choose (r, p, has_number);
      if (at >= 0)
        p->step[at].value += 0.05;
      return at;
    case PLANTED_SHAPE:
      at = choose (r, p, is_linear);
      set_width (p, at, p->step[at].width + 3);
      return at;
    case PLANTED_INPUT:
      at = choose (r, p, is_choosing);
      if (at >= 0)
        choose_other (r, p, at);
      return at;
    case PLANTED_DTYPE:
      at = choose (r, p, is_cast);
      if (at >= 0)
        p->step[at].value = 1 - p->step[at].value;
      return at;
    case PLANTED_FROZEN:
      at = choose (r, p, is_linear);
      p->frozen = p->step[at].link;
      return at;
    case PLANTED_STATIC:
      p->is_static = true;
      return -1;
    case PLANTED_EDGE: /* made in planted_make: it is A that lacks it */
    case PLANTED_NOTHING:
    case PLANTED_N_KINDS:
      return -1;
    }
  return -1;
}

void
planted_make (uint64_t seed, PlantedProgram *a, PlantedProgram *b, Planted *planted)
{
  uint64_t r = seed * 0x632be59bd9b4e019u + 5;
  PlantedKind kind = (PlantedKind)(seed % PLANTED_N_KINDS);

  make_program (&r, a);
  *b = *a;
  planted->kind = kind;
  if (kind == PLANTED_EDGE)
    {
      planted->at = choose (&r, a, is_plain);
      if (planted->at >= 0)
        a->step[planted->at].no_backprop = true;
    }
  else
    planted->at = plant (&r, kind, b);
  if (planted->at < 0 && kind != PLANTED_STATIC)
    planted->kind = PLANTED_NOTHING; /* it has no place for that */
}
