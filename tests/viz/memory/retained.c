/* Retained bytes against their definition, through a tape: what a group of handles retains is
 * what can no longer be reached once they are given up.
 *
 * SPDX-License-Identifier: MIT */
#include <string.h>

#include "memory/td-growth.h"
#include "td-tape-writer.h"
#include "td-test.h"

#define MAX_OBJECTS 60
#define SOURCE                                                                                 \
  "int main (void)\n{\n  total_loss = td_retain (loss);\n  td_retain (self->h);\n"             \
  "  losses[n++] =\n    td_retain (loss);\n  if (kept == td_retain (x))\n"                     \
  "  TdVar *best = td_retain (loss);\n}\n"

typedef struct
{
  guint n, n_to;
  TdTapeObject objects[MAX_OBJECTS];
  guint32 to[8 * MAX_OBJECTS];
} World;

static void
write_tape (const char *path, World *worlds, guint n)
{
  char error[256];
  TdTapeWriterOptions options = { .size = sizeof options, .path = path };
  TdTapeWriter *w = td_tape_writer_new (&options, error, sizeof error);

  if (!w)
    fail_msg ("%s", error);
  td_tape_writer_source (w, "/src/model.c", SOURCE, strlen (SOURCE));
  for (guint line = 1; line <= 9; line++)
    assert_int_equal (td_tape_writer_site (w, "/src/model.c", line, "main"), line);
  for (guint i = 0; i < n; i++)
    {
      TdTapeIteration it = { .size = sizeof it,
                             .number = i,
                             .label = TD_TAPE_LABEL_NUMBER | i,
                             .flags = TD_TAPE_ITERATION_OBJECTS,
                             .objects = worlds[i].objects,
                             .n_objects = worlds[i].n,
                             .references = worlds[i].to,
                             .n_references = worlds[i].n_to };
      td_tape_writer_whole (w, &it);
    }
  td_tape_writer_free (w);
}

static TdTapeReader *
open_tape (const char *path)
{
  char error[256];
  TdTapeReader *r = td_tape_reader_open (path, error, sizeof error);

  if (!r)
    fail_msg ("%s", error);
  return r;
}

static gboolean
is_root (const World *w, guint i)
{
  return (w->objects[i].flags & TD_TAPE_OBJECT_ROOT) != 0;
}

static guint
end_of (const World *w, guint i)
{
  return i + 1 < w->n ? w->objects[i + 1].first_reference : w->n_to;
}

/* Bytes of arrays that are reached from the roots that are not of `site`. */
static guint64
reach (const World *w, guint32 site, gboolean reached[MAX_OBJECTS])
{
  guint work[MAX_OBJECTS], n = 0;
  guint64 bytes = 0;

  memset (reached, 0, MAX_OBJECTS * sizeof *reached);
  for (guint i = 0; i < w->n; i++)
    if (is_root (w, i) && w->objects[i].site != site)
      {
        reached[i] = TRUE;
        work[n++] = i;
      }
  while (n > 0)
    {
      guint i = work[--n];

      bytes += w->objects[i].flags & TD_TAPE_OBJECT_ELSEWHERE ? 0 : w->objects[i].bytes;
      for (guint e = w->objects[i].first_reference; e < end_of (w, i); e++)
        if (!reached[w->to[e]])
          {
            reached[w->to[e]] = TRUE;
            work[n++] = w->to[e];
          }
    }
  return bytes;
}

static void
make_world (GRand *rand, World *w)
{
  guint n_roots = (guint)g_rand_int_range (rand, 1, 9);

  w->n_to = 0;
  w->n = n_roots + (guint)g_rand_int_range (rand, 1, MAX_OBJECTS - 9);
  for (guint i = 0; i < w->n; i++)
    {
      TdTapeObject *o = &w->objects[i];
      gint n;

      *o = (TdTapeObject){ .id = i + 1, .first_reference = w->n_to };
      o->kind = i < n_roots                         ? TD_TAPE_OBJECT_HANDLE
                : g_rand_int_range (rand, 0, 3) > 0 ? TD_TAPE_OBJECT_OPERATION
                                                    : TD_TAPE_OBJECT_ARRAY;
      o->site = (guint32)g_rand_int_range (rand, 1, i < n_roots ? 5 : 10);
      o->flags = i < n_roots ? TD_TAPE_OBJECT_ROOT : 0;
      if (o->kind == TD_TAPE_OBJECT_ARRAY)
        {
          o->bytes = 1ull << g_rand_int_range (rand, 0, 20);
          o->flags = g_rand_int_range (rand, 0, 10) == 0 ? TD_TAPE_OBJECT_ELSEWHERE : 0;
          continue;
        }
      n = g_rand_int_range (rand, 0, 5);
      for (gint k = 0; k < n && i + 1 < w->n; k++)
        w->to[w->n_to++]
            = (guint32)g_rand_int_range (rand, (gint)MAX (i + 1, n_roots - 1), (gint)w->n);
    }
}

static void
compare (const World *w, const TdRetained *r)
{
  gboolean reached[MAX_OBJECTS];
  guint64 all = reach (w, 0, reached), sum = 0;

  for (guint i = 0; i < r->n_rows; i++)
    {
      const TdRetainedRow *row = &r->rows[i];
      guint32 site = w->objects[row->first].site;

      sum += row->retained;
      assert_true (i == 0 || row->retained <= r->rows[i - 1].retained);
      if (!row->shared)
        assert_int_equal (row->retained, all - reach (w, site, reached));
      else if (row->n_sharers > 0)
        assert_true (row->n_sharers >= 2);
    }
  assert_int_equal (sum, all);
}

static void
retained__is_what_is_no_longer_reached_in_500_random_graphs (void **state)
{
  static World worlds[500];
  g_autoptr (GRand) rand = g_rand_new_with_seed (7);
  const char *path = td_test_tmp ("random.tdtape");
  TdTapeReader *reader;
  guint n_shared = 0;

  for (guint i = 0; i < 500; i++)
    make_world (rand, &worlds[i]);
  write_tape (path, worlds, 500);
  reader = open_tape (path);
  for (guint i = 0; i < 500; i++)
    {
      g_autoptr (TdRetained) r = td_retained_new (reader, i);

      assert_non_null (r);
      assert_int_equal (r->iteration, i);
      compare (&worlds[i], r);
      for (guint k = 0; k < r->n_rows; k++)
        n_shared += r->rows[k].shared;
    }
  assert_true (n_shared > 500); /* or most graphs would be trees */
  td_tape_reader_free (reader);
}

/* total_loss keeps the graphs of three iterations, best the newest of them as well. */
static World
leak (void)
{
  World w = { .n = 9, .n_to = 9 };
  const TdTapeObject objects[] = {
    { .id = 30,
      .site = 2,
      .holder_site = 3,
      .kind = TD_TAPE_OBJECT_HANDLE,
      .iteration = 2,
      .flags = TD_TAPE_OBJECT_ROOT },
    { .id = 31,
      .site = 2,
      .holder_site = 8,
      .kind = TD_TAPE_OBJECT_HANDLE,
      .iteration = 2,
      .first_reference = 2,
      .flags = TD_TAPE_OBJECT_ROOT },
    { .id = 30,
      .kind = TD_TAPE_OBJECT_ARRAY,
      .bytes = 4,
      .iteration = 2,
      .first_reference = 3 },
    { .id = 30, .kind = TD_TAPE_OBJECT_OPERATION, .iteration = 2, .first_reference = 3 },
    { .id = 21, .kind = TD_TAPE_OBJECT_OPERATION, .iteration = 2, .first_reference = 5 },
    { .id = 20, .kind = TD_TAPE_OBJECT_OPERATION, .iteration = 1, .first_reference = 6 },
    { .id = 21,
      .kind = TD_TAPE_OBJECT_ARRAY,
      .bytes = 100,
      .iteration = 2,
      .first_reference = 8,
      .site = 9 },
    { .id = 20,
      .kind = TD_TAPE_OBJECT_ARRAY,
      .bytes = 1000,
      .iteration = 1,
      .first_reference = 8,
      .site = 9 },
    { .id = 10, .kind = TD_TAPE_OBJECT_OPERATION, .iteration = 0, .first_reference = 8 },
  };
  const guint32 to[] = { 2, 3, 4, 4, 5, 6, 7, 8, 7 };

  memcpy (w.objects, objects, sizeof objects);
  memcpy (w.to, to, sizeof to);
  return w;
}

static void
retained__says_who_by_what_way_and_what_is_shared (void **state)
{
  World w = leak ();
  const char *path = td_test_tmp ("leak.tdtape");
  TdTapeReader *reader;

  write_tape (path, &w, 1);
  reader = open_tape (path);
  g_autoptr (TdRetained) r = td_retained_new (reader, -1);
  g_autofree char *sentence = td_retained_sentence (r, 0);
  g_autofree char *way = td_retained_way (r, 7);
  g_autofree char *text = td_retained_print (r, "text");

  assert_int_equal (r->n_rows, 2);
  assert_false (r->rows[0].shared);
  assert_int_equal (r->rows[0].retained, 4 + 1000);
  assert_int_equal (r->rows[0].own, 4);
  assert_int_equal (r->rows[0].n_nodes, 3);
  assert_int_equal (r->rows[0].n_iterations, 2);
  assert_true (r->rows[1].shared);
  assert_int_equal (r->rows[1].retained, 100);
  assert_int_equal (r->rows[1].n_sharers, 2);
  assert_string_equal (
      sentence, "variable of iteration 2 (model.c:2) held by handle `total_loss` "
                "(model.c:3) retains 1.00 kB through 3 graph nodes of 2 iterations; take "
                "the number (td_item), or cut the graph off (td_unchain, "
                "td_unchain_backward)");
  assert_string_equal (way, "handle `total_loss` (model.c:3) → operation → operation → "
                            "1.00 kB of other (model.c:9)");
  assert_contains (text, "shared by 2");
  td_tape_reader_free (reader);
}

/* The line's left side, the argument where there is none, no comparison. */
static void
handle__is_called_as_the_source_calls_it (void **state)
{
  static const struct
  {
    guint line;
    const char *name;
  } lines[] = { { 3, "total_loss" }, { 4, "self->h" }, { 6, "loss" },
                { 7, "x" },          { 8, "best" },    { 1, NULL } };
  static World worlds[G_N_ELEMENTS (lines)];
  const char *path = td_test_tmp ("names.tdtape");
  TdTapeReader *reader;

  for (guint i = 0; i < G_N_ELEMENTS (lines); i++)
    {
      worlds[i] = leak ();
      worlds[i].objects[0].holder_site = lines[i].line;
    }
  write_tape (path, worlds, G_N_ELEMENTS (lines));
  reader = open_tape (path);
  for (guint i = 0; i < G_N_ELEMENTS (lines); i++)
    {
      g_autoptr (TdRetained) r = td_retained_new (reader, i);
      g_autofree char *name = td_retained_dup_handle (r, 0);

      if (g_strcmp0 (name, lines[i].name) != 0)
        fail_msg ("line %u: %s", lines[i].line, name ? name : "no name");
    }
  td_tape_reader_free (reader);
}

static void
retained__scene_opens_the_row_with_the_cursor (void **state)
{
  World w = leak ();
  const char *path = td_test_tmp ("scene.tdtape");
  TdTapeReader *reader;
  TdPanelView view = { .width = 700, .height = 240 };

  write_tape (path, &w, 1);
  reader = open_tape (path);
  g_autoptr (TdRetained) r = td_retained_new (reader, -1);
  g_autoptr (TdScene) first = td_retained_scene (r, &view);
  view.cursor = TD_RETAINED_LINE (1, 1) + 1;
  g_autoptr (TdScene) second = td_retained_scene (r, &view);
  g_autofree char *a = td_scene_dump (first), *b = td_scene_dump (second);

  assert_int_equal (td_retained_count_subs (r, 0), 2);
  assert_int_equal (td_retained_line_object (r, TD_RETAINED_LINE (0, 1)), 7);
  assert_contains (a, "1 × other (model.c:9)");
  assert_contains (a, "1.00 kB");
  assert_null (strstr (a, "100 B of other"));
  assert_contains (b, "handle `best` (model.c:8) → operation → 100 B of other (model.c:9)");
  td_tape_reader_free (reader);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (retained__is_what_is_no_longer_reached_in_500_random_graphs),
    td_test (retained__says_who_by_what_way_and_what_is_shared),
    td_test (handle__is_called_as_the_source_calls_it),
    td_test (retained__scene_opens_the_row_with_the_cursor),
  };

  return cmocka_run_group_tests (tests, NULL, NULL);
}
