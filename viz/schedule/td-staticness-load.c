/*
 * Iterations for the advisor: their texts stay in a reader that only its thread uses.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-staticness-private.h"

static const char *
name_string (gpointer data, guint32 id)
{
  return td_tape_reader_string (data, id);
}

static const char *
name_op (gpointer data, guint32 opdef)
{
  return td_tape_reader_op_name (data, opdef);
}

static const char *
name_path (gpointer data, guint32 path)
{
  return td_tape_reader_path_text (data, path);
}

static const char *
name_site (gpointer data, guint32 site, guint32 *line)
{
  const TdTapeSite *s = td_tape_reader_site (data, site);

  if (!s)
    return NULL;
  *line = s->line;
  return td_tape_reader_string (data, s->file);
}

TdIteration *
td__static_load (const TdStaticScan *scan, guint32 row)
{
  static const TdNamesClass names = { name_string, name_op, name_path, name_site };
  TdTapeReader *r = scan->reader;
  const TdTapeSummaries summaries = td_tape_reader_summaries (r);
  char error[160];

  if (row >= summaries.n)
    return NULL;
  if (scan->loaded
      && td_iteration_get_number (scan->loaded) == (gint64)summaries.rows[row].number)
    return td_iteration_ref (scan->loaded);
  const TdTapeIteration *t
      = td_tape_iteration_load_row (r, &summaries.rows[row], error, sizeof error);
  return t ? td_iteration_new (&names, r, NULL, t, td_tape_iteration_free) : NULL;
}
