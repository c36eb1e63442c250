/*
 * What ranks have in common in a step: arrays by ranks, equal ones with one letter.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "td-ranks-step.h"

#define MARGIN 12.0
#define HEAD 44.0
#define ROW 20.0
#define NAME 230.0
#define CELL 56.0
#define MOST_ROWS 40 /* of a kind, in a picture: those that differ first */

static const struct
{
  const char *title;
  gboolean must; /* be equal on all ranks */
} kinds[TD_TAPE_N_SUMS] = {
  [TD_TAPE_SUM_NUMBER] = { "Numbers of the optimizer", TRUE },
  [TD_TAPE_SUM_GRADIENT] = { "Gradients before the mean", FALSE },
  [TD_TAPE_SUM_MEAN] = { "Means of gradients", TRUE },
  [TD_TAPE_SUM_STATE] = { "States of the optimizer", TRUE },
  [TD_TAPE_SUM_PARAMETER] = { "Parameters after the update", TRUE },
  [TD_TAPE_SUM_PERSISTENT] = { "Persistents", FALSE },
};
/* In the order in which an update makes them. */
static const guint8 order[TD_TAPE_N_SUMS]
    = { TD_TAPE_SUM_NUMBER, TD_TAPE_SUM_GRADIENT,  TD_TAPE_SUM_MEAN,
        TD_TAPE_SUM_STATE,  TD_TAPE_SUM_PARAMETER, TD_TAPE_SUM_PERSISTENT };

/* A row: an array, or the sum of those that are left out. */
typedef struct
{
  guint key;
  guint n_classes;
  guint *classes;
  gboolean *odd;
  gboolean bad; /* must be equal, and is not */
} Row;

static void
clear_row (gpointer data)
{
  Row *row = data;

  g_free (row->classes);
  g_free (row->odd);
}

static const TdSumKey *
key_of (const TdRanksStep *step, guint key)
{
  return &g_array_index (step->table->keys, TdSumKey, key);
}

/* Arrays of a kind. Owner: the caller. */
static GArray *
list_rows (const TdRanksStep *step, guint8 kind)
{
  GArray *rows = g_array_new (FALSE, TRUE, sizeof (Row));

  g_array_set_clear_func (rows, clear_row);
  for (guint key = 0; key < step->table->n; key++)
    {
      Row row = { .key = key };
      TdRankVote vote;

      if (key_of (step, key)->kind != kind)
        continue;
      row.classes = g_new (guint, step->ranks->n);
      row.n_classes = td__sum_table_classes (step->table, key, row.classes);
      td__rank_vote_init (&vote, row.classes, step->ranks->n);
      row.odd = g_steal_pointer (&vote.odd);
      row.bad = kinds[kind].must && row.n_classes > 1;
      td__rank_vote_clear (&vote);
      g_array_append_val (rows, row);
    }
  return rows;
}

/* "A", "B"; "-" where there is none, "none" for a gradient that is not there. */
static void
name_cell (const TdRanksStep *step, const Row *row, guint place, char out[8])
{
  const TdTapeRankSum *s = td__sum_table_get (step->table, row->key, place);

  if (!s)
    strcpy (out, "–");
  else if (row->classes[place] == TD_RANKS_NO_CLASS)
    strcpy (out, "none");
  else
    g_snprintf (out, 8, "%c%s", 'A' + (char)(row->classes[place] % 26),
                s->n_not_finite > 0 ? "×" : "");
}

/* ---- the picture ---- */

typedef struct
{
  TdSceneBuilder *b;
  const TdRanksStep *step;
  double y;
} Matrix;

static double
x_of (guint place)
{
  return MARGIN + NAME + CELL * place;
}

static void
add_cell (const Matrix *m, const Row *row, guint place)
{
  const TdTapeRankSum *s = td__sum_table_get (m->step->table, row->key, place);
  gboolean odd = row->bad && row->odd[place], nan = s && s->n_not_finite > 0;
  gboolean there = s && row->classes[place] != TD_RANKS_NO_CLASS;
  TdStyle style = { .fill = there ? TD_ROLE_COMMUNICATION : TD_ROLE_NONE,
                    .fill_alpha = row->classes[place] % 2 ? 0.34 : 0.2,
                    .stroke = there ? TD_ROLE_NONE : TD_ROLE_BORDER,
                    .dash = there ? TD_DASH_NONE : TD_DASH_DASHED };
  TdTextStyle text = { .role = odd || nan ? TD_ROLE_ERROR
                               : there    ? TD_ROLE_TEXT
                                          : TD_ROLE_DIM,
                       .size = TD_TEXT_CAPTION,
                       .align = 0.5,
                       .bold = odd || nan };
  TdSceneRect box = { x_of (place) + 2, m->y + 2, CELL - 4, ROW - 4 };
  char name[8];
  g_autofree char *tip = NULL;

  if (odd)
    {
      style.fill = style.stroke = TD_ROLE_ERROR;
      style.fill_alpha = 0.18;
      style.stroke_width = 1.5;
    }
  name_cell (m->step, row, place, name);
  tip = g_strdup_printf ("%s on rank %u: %s", key_of (m->step, row->key)->path,
                         m->step->ranks->tapes[place].open.rank,
                         !there                ? "not there"
                         : odd                 ? "differs"
                         : nan                 ? "not finite"
                         : row->bad            ? "as most ranks have it"
                         : row->n_classes == 1 ? "the same on all ranks"
                                               : "of this rank");
  td_scene_mark (m->b, TD_TAG_ROW, 0, row->key, tip);
  td_scene_add_shape (m->b, TD_PRIM_ROUND, box, 3, &style);
  td_scene_add_text (m->b, box.x + box.width / 2, m->y + ROW / 2, name, &text);
  td_scene_unmark (m->b);
}

static void
add_row (Matrix *m, const Row *row)
{
  const TdSumKey *key = key_of (m->step, row->key);
  TdTextStyle name = { .role = row->bad ? TD_ROLE_ERROR : TD_ROLE_TEXT,
                       .size = TD_TEXT_CAPTION,
                       .bold = row->bad,
                       .middle = TRUE,
                       .max_width = NAME - 16 };
  g_autofree char *text = key->turn > 0 ? g_strdup_printf ("%s (%u)", key->path, key->turn + 1)
                                        : g_strdup (key->path);

  td_scene_add_text (m->b, MARGIN + 8, m->y + ROW / 2, text, &name);
  for (guint i = 0; i < m->step->ranks->n; i++)
    add_cell (m, row, i);
  m->y += ROW;
}

static void
add_line (Matrix *m, const char *text, gboolean bold)
{
  TdTextStyle style = { .role = TD_ROLE_DIM, .size = TD_TEXT_CAPTION, .bold = bold };

  td_scene_add_text (m->b, MARGIN + (bold ? 0 : 8), m->y + ROW / 2, text, &style);
  m->y += ROW;
}

static void
add_kind (Matrix *m, guint8 kind)
{
  g_autoptr (GArray) rows = list_rows (m->step, kind);
  guint left = rows->len > MOST_ROWS ? MOST_ROWS : rows->len, n_bad = 0, n_out = 0;

  if (rows->len == 0)
    return;
  for (guint i = 0; i < rows->len; i++)
    n_bad += g_array_index (rows, Row, i).bad;
  add_line (m, kinds[kind].title, TRUE);
  for (guint i = 0; i < rows->len; i++)
    {
      const Row *row = &g_array_index (rows, Row, i);

      /* what does not fit is what is well */
      if (left == 0 || (!row->bad && n_bad >= left))
        {
          n_out++;
          continue;
        }
      n_bad -= row->bad;
      left--;
      add_row (m, row);
    }
  if (n_out > 0)
    {
      g_autofree char *text = g_strdup_printf ("and %u more", n_out);

      add_line (m, text, FALSE);
    }
}

TdScene *
td_ranks_matrix_scene (TdRanksStep *step, const TdPanelView *view)
{
  double width = MAX (view->width, 2 * MARGIN + NAME + CELL * step->ranks->n);
  g_autofree char *where = td__ranks_step_dup_title (step),
                  *title = g_strconcat ("What ranks have in common: ", where, NULL);
  TdTextStyle head = { .role = TD_ROLE_DIM, .size = TD_TEXT_CAPTION, .max_width = width - 24 };
  TdTextStyle name
      = { .role = TD_ROLE_TEXT, .size = TD_TEXT_CAPTION, .align = 0.5, .bold = TRUE };
  Matrix m = { .step = step, .y = HEAD };

  if (step->table->n == 0)
    return td_panel_message (view, "Nothing to compare in this iteration",
                             "A multi-node optimizer records what ranks have in common in "
                             "each update.");
  m.b = td_scene_builder_new (width, HEAD);
  td_scene_set_background (m.b, TD_ROLE_VIEW);
  td_scene_add_text (m.b, MARGIN, 12, title, &head);
  for (guint i = 0; i < step->ranks->n; i++)
    {
      g_autofree char *text = g_strdup_printf ("Rank %u", step->ranks->tapes[i].open.rank);

      td_scene_add_text (m.b, x_of (i) + CELL / 2, HEAD - 12, text, &name);
    }
  for (guint k = 0; k < TD_TAPE_N_SUMS; k++)
    add_kind (&m, order[k]);
  td_scene_set_size (m.b, width, MAX (view->height, m.y + MARGIN));
  return td_scene_builder_end (m.b);
}

/* ---- text and JSON ---- */

static void
print_kind (const TdRanksStep *step, guint8 kind, GString *out)
{
  g_autoptr (GArray) rows = list_rows (step, kind);

  if (rows->len == 0)
    return;
  g_string_append_printf (out, "%s\n", kinds[kind].title);
  for (guint i = 0; i < rows->len; i++)
    {
      const Row *row = &g_array_index (rows, Row, i);

      g_string_append_printf (out, "%s %-32s", row->bad ? "!" : " ",
                              key_of (step, row->key)->path);
      for (guint k = 0; k < step->ranks->n; k++)
        {
          char name[8];

          name_cell (step, row, k, name);
          g_string_append_printf (out, " %s%s", name, row->bad && row->odd[k] ? "!" : "");
        }
      g_string_append_c (out, '\n');
    }
}

/* A column for each rank, with the letter of what it has. */
static void
print_csv (const TdRanksStep *step, GString *out)
{
  g_string_append (out, "kind,path,turn,odd");
  for (guint k = 0; k < step->ranks->n; k++)
    g_string_append_printf (out, ",rank %d", step->ranks->tapes[k].open.rank);
  g_string_append_c (out, '\n');
  for (guint at = 0; at < TD_TAPE_N_SUMS; at++)
    {
      g_autoptr (GArray) rows = list_rows (step, order[at]);

      for (guint i = 0; i < rows->len; i++)
        {
          const Row *row = &g_array_index (rows, Row, i);
          char name[8];

          g_string_append_printf (out, "%s,", td_tape_rank_sum_name (order[at]));
          td_csv_append (out, key_of (step, row->key)->path);
          g_string_append_printf (out, ",%u,%d", (guint)key_of (step, row->key)->turn,
                                  row->bad);
          for (guint k = 0; k < step->ranks->n; k++)
            {
              name_cell (step, row, k, name);
              g_string_append_c (out, ',');
              td_csv_append (out, g_strstrip (name));
            }
          g_string_append_c (out, '\n');
        }
    }
}

static void
json_row (TdJson *j, const TdRanksStep *step, guint8 kind, const Row *row)
{
  td_json_begin_object (j);
  td_json_member_string (j, "kind", td_tape_rank_sum_name (kind));
  td_json_member_string (j, "path", key_of (step, row->key)->path);
  td_json_member_int (j, "turn", key_of (step, row->key)->turn);
  td_json_key (j, "classes");
  td_json_begin_array (j);
  for (guint i = 0; i < step->ranks->n; i++)
    if (row->classes[i] == TD_RANKS_NO_CLASS)
      td_json_null (j);
    else
      td_json_int (j, row->classes[i]);
  td_json_end_array (j);
  td_json_key (j, "not_finite");
  td_json_begin_array (j);
  for (guint i = 0; i < step->ranks->n; i++)
    {
      const TdTapeRankSum *s = td__sum_table_get (step->table, row->key, i);

      td_json_int (j, s ? (gint64)s->n_not_finite : 0);
    }
  td_json_end_array (j);
  td_json_key (j, "odd");
  td_json_begin_array (j);
  for (guint i = 0; row->bad && i < step->ranks->n; i++)
    if (row->odd[i])
      td_json_int (j, step->ranks->tapes[i].open.rank);
  td_json_end_array (j);
  td_json_end_object (j);
}

char *
td_ranks_matrix_print (TdRanksStep *step, const char *format)
{
  GString *out = g_string_new (NULL);
  TdJson j;

  if (g_str_equal (format, "csv"))
    {
      print_csv (step, out);
      return g_string_free (out, FALSE);
    }
  if (!g_str_equal (format, "json"))
    {
      g_autofree char *title = td__ranks_step_dup_title (step);

      g_string_append_printf (out, "%s; equal arrays have one letter, ! is odd, × not finite\n",
                              title);
      for (guint k = 0; k < TD_TAPE_N_SUMS; k++)
        print_kind (step, order[k], out);
      return g_string_free (out, FALSE);
    }
  td__ranks_step_begin_json (step, &j, out);
  td_json_key (&j, "arrays");
  td_json_begin_array (&j);
  for (guint k = 0; k < TD_TAPE_N_SUMS; k++)
    {
      g_autoptr (GArray) rows = list_rows (step, order[k]);

      for (guint i = 0; i < rows->len; i++)
        json_row (&j, step, order[k], &g_array_index (rows, Row, i));
    }
  td_json_end_array (&j);
  td_json_end_object (&j);
  return g_string_free (out, FALSE);
}
