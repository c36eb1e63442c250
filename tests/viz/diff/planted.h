/* Random programs, and the same programs with exactly one thing changed. What is made of a seed
 * is known to the program that runs it and to the test that looks for what was planted.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum
{
  PLANTED_BATCH = 4,
  PLANTED_MAX_STEPS = 64,
  PLANTED_RUNS = 4, /* of each program: the last of them replays, where there is a schedule */
  PLANTED_TAIL = 2, /* square and sum, after the steps */
};

typedef enum
{
  PLANTED_NOTHING,
  PLANTED_ADDED,
  PLANTED_REMOVED,
  PLANTED_REPLACED,
  PLANTED_MIDDLE, /* an activation in the middle of like blocks */
  PLANTED_ATTRIBUTE,
  PLANTED_SHAPE,
  PLANTED_LINK,
  PLANTED_INPUT, /* one operation reads something else */
  PLANTED_EDGE,  /* backward goes on where it ended */
  PLANTED_DTYPE,
  PLANTED_FROZEN,
  PLANTED_STATIC,
  PLANTED_N_KINDS
} PlantedKind;

/** Operations; those up to PLANTED_N_PLAIN read one array and have no attributes. */
typedef enum
{
  PLANTED_RELU,
  PLANTED_TANH,
  PLANTED_SIGMOID,
  PLANTED_SIN,
  PLANTED_SQUARE,
  PLANTED_N_PLAIN,
  PLANTED_MUL_SCALAR = PLANTED_N_PLAIN,
  PLANTED_LEAKY_RELU,
  PLANTED_CLIP,
  PLANTED_CAST, /* to `value`: 0 float16, 1 float64; the next step casts back */
  PLANTED_CAST_BACK,
  PLANTED_ADD,
  PLANTED_MUL,
  PLANTED_LINEAR,
  PLANTED_NORM,
  PLANTED_N_OPS
} PlantedOp;

typedef struct
{
  PlantedOp op;
  int line, block; /* where it is called, and in which round of the loop */
  int id, other;   /* of two: the id of the step that it reads besides the one before */
  int width;       /* of its output */
  int link;        /* which; -1: none */
  double value;
  bool no_backprop;
} PlantedStep;

typedef struct
{
  PlantedStep step[PLANTED_MAX_STEPS];
  int n, width, n_links, n_blocks;
  int frozen; /* a link that is not updated, -1 */
  bool is_static, adam;
} PlantedProgram;

/** What was planted: at which step of B (of A, where it was removed); -1: nowhere. */
typedef struct
{
  PlantedKind kind;
  int at;
} Planted;

/** The program of a seed. */
static inline uint32_t
planted_random (uint64_t *state, uint32_t below)
{
  uint64_t x = *state += 0x9e3779b97f4a7c15u;

  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return (uint32_t)((x ^ (x >> 31)) >> 33) % below;
}

/** Make the program of a seed, and change it as the seed says. */
void planted_make (uint64_t seed, PlantedProgram *a, PlantedProgram *b, Planted *planted);
/** Name an operation as recordings do. */
const char *planted_op_name (PlantedOp op);
