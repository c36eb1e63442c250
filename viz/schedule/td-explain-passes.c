/*
 * The passes over a schedule in the order in which they run: how many steps each found and
 * left, and its remarks. All of it is read back from what became of each step.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-explain-private.h"
#include "td-statics-rows.h"

#include <string.h>

typedef enum
{
  PASS_FOLD,
  PASS_CSE,
  PASS_PRUNE,
  PASS_BATCH,
  PASS_PACK,
  PASS_FUSE,
  PASS_MEMORY,
  N_PASSES
} Pass;

static const struct
{
  const char *title, *did;
  guint fate; /* of the steps that it takes out */
} passes[N_PASSES] = {
  [PASS_FOLD] = { "constant folding", "folded", TD_TAPE_FATE_FOLDED },
  [PASS_CSE] = { "common subexpressions", "merged", TD_TAPE_FATE_MERGED },
  [PASS_PRUNE] = { "dead code", "pruned", TD_TAPE_FATE_PRUNED },
  [PASS_BATCH] = { "batching", "batched", TD_TAPE_FATE_BATCHED },
  [PASS_PACK] = { "packing", "packed", TD_TAPE_FATE_RUNS },
  [PASS_FUSE] = { "fusion", "fused", TD_TAPE_FATE_RUNS },
  [PASS_MEMORY] = { "memory plan", "in place", TD_TAPE_FATE_RUNS },
};

/* Links and scopes are no work. */
static gboolean
is_work (const TdTapeStep *t)
{
  return t->kind <= TD_TAPE_STEP_HOST_READ || t->kind == TD_TAPE_STEP_PROPAGATE;
}

static gboolean
writes_over (const TdTapeSchedule *s, const TdTapeStep *t, guint step)
{
  for (guint k = 0; k < t->n_out && t->fate == TD_TAPE_FATE_RUNS; k++)
    for (guint j = 0; j < t->n_in; j++)
      {
        const TdTapeValue *out = &s->values[s->nodes[s->operands[t->first_out + k]].value];
        const TdTapeValue *in = &s->values[s->nodes[s->operands[t->first_in + j]].value];

        if (out != in && out->offset != TD_TAPE_NO_OFFSET && out->offset == in->offset
            && out->first == step && in->last == step)
          return TRUE;
      }
  return FALSE;
}

/* What a pass did to a step, or why it left it; NULL: it had no business with it. *Owner*: the
 * caller. */
static char *
remark (const TdStaticsFunction *c, Pass pass, guint i)
{
  const TdStaticsRow *row = &c->rows[i];
  const TdTapeStep *t = row->tape;
  const char *packed = strstr (row->why, "its matrix is packed");

  if (passes[pass].fate != TD_TAPE_FATE_RUNS && t->fate == passes[pass].fate)
    return g_strdup_printf ("%s%s%s", passes[pass].did, *row->why ? ": " : "", row->why);
  if (t->fate != TD_TAPE_FATE_RUNS)
    return NULL;
  if (pass == PASS_BATCH
      && (g_str_has_prefix (row->why, "batch of")
          || g_str_has_prefix (row->why, "not batched")))
    return g_strndup (row->why, packed && packed > row->why + 2 ? (gsize)(packed - row->why - 2)
                                                                : strlen (row->why));
  if (pass == PASS_PACK && packed)
    return g_strdup (packed);
  if (pass == PASS_FUSE && t->kind == TD_TAPE_STEP_GROUP)
    return g_strdup_printf ("%u steps become one", t->group);
  if (pass == PASS_FUSE && g_str_has_prefix (row->why, "not fused"))
    return g_strndup (row->why, packed && packed > row->why + 2 ? (gsize)(packed - row->why - 2)
                                                                : strlen (row->why));
  if (pass == PASS_MEMORY && t->kind != TD_TAPE_STEP_GROUP && writes_over (c->tape, t, i))
    return g_strdup ("its result takes the place of an input");
  return NULL;
}

static guint64
interior_bytes (const TdTapeSchedule *s)
{
  guint64 bytes = 0;

  for (guint i = 0; i < s->n_values; i++)
    if (s->values[i].offset != TD_TAPE_NO_OFFSET)
      bytes += s->values[i].bytes;
  return bytes;
}

/* What a pass did in all: "3 pruned", "12.5 kB of values in 4.1 kB". */
static char *
summary (const TdStaticsFunction *c, Pass pass, guint n_remarks, guint n_gone)
{
  const TdTapeScheduleHead *h = &c->tape->head;
  char values[TD_FORMAT_SIZE], arena[TD_FORMAT_SIZE];

  if (pass == PASS_FUSE)
    return g_strdup_printf ("%u fused", h->n_fused);
  if (pass == PASS_PACK)
    return g_strdup_printf ("%u %s packed", n_remarks,
                            td_plural (n_remarks, "matrix", "matrices"));
  if (pass == PASS_MEMORY)
    return g_strdup_printf ("%u in place; %s of values in %s", h->n_in_place,
                            td_format_bytes (values, interior_bytes (c->tape)),
                            td_format_bytes (arena, h->arena_bytes));
  return g_strdup_printf ("%u %s", n_gone, passes[pass].did);
}

static void
add_remarks (GArray *rows, const TdStatics *all, guint function, Pass pass)
{
  const TdStaticsFunction *c = &all->functions[function];

  for (guint i = 0; i < c->n_rows; i++)
    {
      char *text = remark (c, pass, i);

      if (!text)
        continue;
      TdExplainRow *row = td__explain_add (rows, all, TD_EXPLAIN_REMARK, function,
                                           c->rows[i].tape->site, text);
      row->guard = passes[pass].title;
      row->title = c->rows[i].op;
      row->pass = (guint)pass + 1;
      row->step = i;
    }
}

/* Work before the passes, and what each of them takes away. */
static guint
count_work (const TdStaticsFunction *c)
{
  guint n = 0;

  for (guint i = 0; i < c->n_rows; i++)
    n += is_work (c->rows[i].tape);
  return n;
}

static guint
count_gone (const TdStaticsFunction *c, Pass pass)
{
  guint n = 0;

  for (guint i = 0; i < c->n_rows; i++)
    {
      const TdTapeStep *t = c->rows[i].tape;

      if (pass == PASS_FUSE)
        n += t->kind == TD_TAPE_STEP_GROUP ? t->group - 1 : 0;
      else if (passes[pass].fate != TD_TAPE_FATE_RUNS)
        n += is_work (t) && t->fate == passes[pass].fate;
    }
  return n;
}

void
td__explain_passes (GArray *rows, const TdStatics *all, guint function)
{
  const TdStaticsFunction *c = &all->functions[function];
  guint before = c->tape ? count_work (c) : 0;

  for (int pass = 0; c->tape && pass < N_PASSES; pass++)
    {
      guint n_gone = count_gone (c, pass), at = rows->len;
      TdExplainRow *row = td__explain_add (rows, all, TD_EXPLAIN_PASS, function, 0, NULL);

      row->guard = row->title = passes[pass].title;
      row->pass = (guint)pass + 1;
      row->before = before;
      row->after = before -= MIN (n_gone, before);
      add_remarks (rows, all, function, (Pass)pass);
      row = &g_array_index (rows, TdExplainRow, at);
      row->n = rows->len - at - 1;
      row->text = summary (c, (Pass)pass, row->n, n_gone);
    }
}
