/*
 * The graph of an iteration as far as the program decides it. PyTorch runs the operators of
 * backward in an order of its own: which unused parameters DistributedDataParallel looks at
 * first, say, is another one in each process.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-ranks-private.h"
#include "td-tape-writer.h"

static guint64
hash_of_text (guint64 h, const char *text)
{
  return td_tape_hash_bytes (h, text, strlen (text));
}

/* Types and ranks; where `met` is given, with the numbers of those that were met before. */
static guint64
hash_of_vars (guint64 h, const TdTapeIteration *it, const guint32 *vars, guint n, guint32 *met)
{
  for (guint k = 0; k < n; k++)
    {
      const TdTapeVar *v = &it->vars[vars[k]];

      h = td_tape_hash (h, (guint64)v->dtype << 8 | v->ndim);
      if (!met)
        continue;
      if (met[vars[k] + 1] == 0)
        met[vars[k] + 1] = ++met[0];
      h = td_tape_hash (h, met[vars[k] + 1]);
    }
  return h;
}

guint64
td__ranks_hash_order (TdRanks *self, guint place, gint64 number)
{
  g_autoptr (TdIteration) loaded = td__ranks_load (self, place, number);
  const TdTapeIteration *it = loaded ? td_iteration_get_tape (loaded) : NULL;
  g_autofree guint32 *met = it ? g_new0 (guint32, it->n_vars + 1) : NULL;
  guint64 in_order = 1, backward = 0;

  for (guint e = 0; it && e < it->n_events; e++)
    {
      const TdTapeEvent *event = &it->events[e];
      const gboolean is_free = event->phase == TD_TAPE_PHASE_BACKWARD;
      guint64 h = td_tape_hash (event->phase, (guint64)event->n_in << 16 | event->n_out);

      h = hash_of_text (h, td_iteration_get_op_name (loaded, e));
      h = hash_of_text (h, td_iteration_get_link_path (loaded, e));
      h = hash_of_vars (h, it, it->ins + event->first_in, event->n_in, is_free ? NULL : met);
      h = hash_of_vars (h, it, it->outs + event->first_out, event->n_out, is_free ? NULL : met);
      if (is_free)
        backward += h;
      else
        in_order = td_tape_hash (in_order, h);
    }
  return td_tape_hash (in_order, backward);
}
