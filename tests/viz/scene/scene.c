/*
 * Scenes: what a click finds, what is painted, what a hostile label can do, how files come out.
 *
 * SPDX-License-Identifier: MIT
 */
#include <glib.h>
#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scene/td-format.h"
#include "scene/td-json.h"
#include "scene/td-scene.h"
#include "td-test.h"

static const TdStyle NODE_STYLE
    = { .fill = TD_ROLE_NODE, .stroke = TD_ROLE_NODE_STROKE, .flags = TD_PRIM_NODE };

/* A node at (x, y) with a label, as panels draw them. */
static void
add_node (TdSceneBuilder *b, guint64 key, double x, double y, const char *label)
{
  TdTextStyle text = {
    .role = TD_ROLE_NODE_TEXT, .size = TD_TEXT_NODE, .max_width = 150, .flags = TD_PRIM_DETAIL
  };

  td_scene_mark (b, TD_TAG_NODE, key, (gint64)key, label);
  td_scene_add_shape (b, TD_PRIM_ROUND, (TdSceneRect){ x, y, 172, 34 }, 8, &NODE_STYLE);
  td_scene_unmark (b);
  td_scene_add_text (b, x + 12, y + 17, label, &text);
}

/* Paint `scene` on an image of the given size; returns the surface. */
static cairo_surface_t *
paint (const TdScene *scene, const TdSceneRect *visible, double scale, int w, int h,
       const char *theme)
{
  cairo_surface_t *surface = cairo_image_surface_create (CAIRO_FORMAT_ARGB32, w, h);
  cairo_t *cr = cairo_create (surface);

  cairo_set_source_rgb (cr, 1, 1, 1);
  cairo_paint (cr);
  td_scene_paint (scene, cr, visible, scale, td_theme_get (theme));
  assert_int_equal (cairo_status (cr), CAIRO_STATUS_SUCCESS);
  cairo_destroy (cr);
  cairo_surface_flush (surface);
  return surface;
}

static guint32
pixel (cairo_surface_t *surface, int x, int y)
{
  guint8 *data = cairo_image_surface_get_data (surface);

  return ((guint32 *)(data + y * cairo_image_surface_get_stride (surface)))[x] & 0xffffff;
}

static void
hit__finds_the_topmost_and_small_things_from_around (void **state)
{
  TdSceneBuilder *b = td_scene_builder_new (400, 300);
  TdStyle lane = { .fill = TD_ROLE_LANE_FORWARD, .flags = TD_PRIM_TINT };
  TdSceneHit hit;

  td_scene_mark (b, TD_TAG_LANE, 1, 0, NULL);
  td_scene_add_shape (b, TD_PRIM_ROUND, (TdSceneRect){ 0, 0, 400, 300 }, 12, &lane);
  add_node (b, 7, 100, 100, "relu");
  td_scene_mark (b, TD_TAG_STUB, 9, 0, "W (16, 6, 5, 5)");
  td_scene_add_shape (b, TD_PRIM_OCTAGON, (TdSceneRect){ 50, 107, 28, 20 }, 0, &NODE_STYLE);
  g_autoptr (TdScene) scene = td_scene_builder_end (b);

  assert_true (td_scene_hit (scene, 150, 110, 8, &hit));
  assert_int_equal (hit.key, 7);
  assert_int_equal (hit.tag, TD_TAG_NODE);
  assert_true (td_scene_hit (scene, 46, 105, 8, &hit)); /* beside the stub, but near */
  assert_int_equal (hit.key, 9);
  assert_string_equal (hit.tooltip, "W (16, 6, 5, 5)");
  assert_true (td_scene_hit (scene, 30, 30, 8, &hit)); /* nothing but the lane */
  assert_int_equal (hit.tag, TD_TAG_LANE);
  assert_false (td_scene_hit (scene, 600, 600, 8, &hit));
}

static void
hit__takes_a_wire_within_a_few_units (void **state)
{
  TdSceneBuilder *b = td_scene_builder_new (200, 200);
  const TdScenePoint q[] = { { 10, 10 }, { 10, 100 }, { 100, 100 } };
  TdStyle wire = { .stroke = TD_ROLE_EDGE, .stroke_width = 1.4, .flags = TD_PRIM_ARROW_END };
  TdSceneHit hit;

  td_scene_mark (b, TD_TAG_EDGE, 3, 0, NULL);
  td_scene_add_line (b, q, 3, &wire);
  g_autoptr (TdScene) scene = td_scene_builder_end (b);
  assert_true (td_scene_hit (scene, 12, 50, 4, &hit));
  assert_true (td_scene_hit (scene, 60, 102, 4, &hit));
  assert_false (
      td_scene_hit (scene, 60, 50, 4, &hit)); /* inside the bounding box, far from the line */
}

static void
hit__names_the_cell_of_a_heat_map (void **state)
{
  TdSceneBuilder *b = td_scene_builder_new (100, 100);
  const float v[6] = { 0, 1, 2, 3, 4, 5 };
  TdHeat heat = { .rows = 2, .cols = 3, .values = v, .hi = 5 };
  TdSceneHit hit;

  td_scene_mark (b, TD_TAG_CELL, 0, 0, NULL);
  td_scene_add_heat (b, (TdSceneRect){ 10, 10, 60, 40 }, &heat);
  g_autoptr (TdScene) scene = td_scene_builder_end (b);
  assert_true (td_scene_hit (scene, 35, 35, 0, &hit));
  assert_int_equal (hit.row, 1);
  assert_int_equal (hit.col, 1);
}

static TdScene *
many_nodes (int n)
{
  TdSceneBuilder *b = td_scene_builder_new (200.0 * 50, 60.0 * (n / 50 + 1));
  TdStyle wire = { .stroke = TD_ROLE_EDGE, .stroke_width = 1.4, .flags = TD_PRIM_ARROW_END };

  for (int i = 0; i < n; i++)
    {
      double x = 200.0 * (i % 50), y = 60.0 * (i / 50);
      const TdScenePoint q[] = { { x + 86, y + 34 }, { x + 86, y + 60 } };

      td_scene_add_line (b, q, 2, &wire);
      add_node (b, (guint64)i + 1, x, y, "convolution_2d");
    }
  return td_scene_builder_end (b);
}

static void
paint__of_a_part_equals_the_part_of_the_whole (void **state)
{
  g_autoptr (TdScene) scene = many_nodes (1500); /* 4,500 items: the grid is in use */
  TdSceneRect part = { 390, 110, 600, 300 };
  TdSceneRect wide = { 0, 0, 1100, 500 };
  cairo_surface_t *a = paint (scene, &part, 1, 600, 300, "light");
  cairo_surface_t *whole = paint (scene, &wide, 1, 1100, 500, "light");
  int different = 0, drawn = 0;

  for (int y = 0; y < 300; y++)
    for (int x = 0; x < 600; x++)
      {
        different += pixel (a, x, y) != pixel (whole, x + 390, y + 110);
        drawn += pixel (a, x, y) != 0xffffff;
      }
  assert_int_equal (different, 0);
  assert_true (drawn > 5000);
  cairo_surface_destroy (a);
  cairo_surface_destroy (whole);
}

static void
paint__drops_detail_above_400_nodes (void **state)
{
  g_autoptr (TdScene) few = many_nodes (300);
  g_autoptr (TdScene) many = many_nodes (500);
  TdSceneRect seen = { 0, 0, 10000, 600 };
  cairo_surface_t *a = paint (few, &seen, 0.5, 1200, 300, "light");
  cairo_surface_t *b = paint (many, &seen, 0.5, 1200, 300, "light");

  /* (0.2, 8.5): on the left outline of the first node at 50 %; plain rectangles have none */
  assert_int_not_equal (pixel (a, 0, 8), 0xffffff);
  assert_int_equal (pixel (b, 0, 8), 0xffffff);
  cairo_surface_destroy (a);
  cairo_surface_destroy (b);
}

static void
paint__shows_nan_as_a_mark_and_missing_as_nothing_of_the_scale (void **state)
{
  const float v[4] = { NAN, 0, INFINITY, 5 };
  const guint8 cells[4] = { TD_CELL_NAN, TD_CELL_MISSING, TD_CELL_PLUS_INF, TD_CELL_VALUE };
  TdSceneBuilder *b = td_scene_builder_new (400, 100);
  TdHeat heat = { .rows = 1, .cols = 4, .values = v, .cells = cells, .lo = 0, .hi = 5 };

  td_scene_add_heat (b, (TdSceneRect){ 0, 0, 400, 100 }, &heat);
  g_autoptr (TdScene) scene = td_scene_builder_end (b);
  cairo_surface_t *s = paint (scene, NULL, 1, 400, 100, "light");
  assert_int_equal (pixel (s, 50, 50), 0xc01c28);  /* where the two lines of NaN cross */
  assert_int_equal (pixel (s, 120, 20), 0xffffff); /* missing: only its dot is painted */
  assert_int_equal (pixel (s, 250, 60), 0xc01c28); /* the triangle of infinity */
  assert_int_equal (pixel (s, 350, 50), 0xffea46); /* the upper end of cividis */
  cairo_surface_destroy (s);
}

static void
theme__text_keeps_its_contrast (void **state)
{
  static const struct
  {
    TdRole role, ground;
    double least;
  } rules[]
      = { { TD_ROLE_TEXT, TD_ROLE_VIEW, 7 },        { TD_ROLE_DIM, TD_ROLE_CANVAS, 4.5 },
          { TD_ROLE_ACCENT, TD_ROLE_CANVAS, 3 },    { TD_ROLE_ERROR, TD_ROLE_CANVAS, 4.5 },
          { TD_ROLE_WARNING, TD_ROLE_CANVAS, 4.5 }, { TD_ROLE_NODE_TEXT, TD_ROLE_NODE, 6.5 },
          { TD_ROLE_PARAMETER, TD_ROLE_WINDOW, 3 }, { TD_ROLE_GRADIENT, TD_ROLE_WINDOW, 3 },
          { TD_ROLE_OPTIMIZER, TD_ROLE_WINDOW, 3 }, { TD_ROLE_ACTIVATION, TD_ROLE_WINDOW, 3 },
          { TD_ROLE_WORKSPACE, TD_ROLE_WINDOW, 3 }, { TD_ROLE_INPUT, TD_ROLE_WINDOW, 3 },
          { TD_ROLE_STATIC, TD_ROLE_WINDOW, 3 },    { TD_ROLE_CACHED, TD_ROLE_WINDOW, 2.95 } };
  static const char *const names[] = { "light", "dark", "high-contrast", "chainer" };

  for (gsize t = 0; t < G_N_ELEMENTS (names); t++)
    for (gsize i = 0; i < G_N_ELEMENTS (rules); i++)
      {
        const TdTheme *theme = td_theme_get (names[t]);
        TdColor ground = theme->color[rules[i].ground], c = theme->color[rules[i].role];
        TdColor seen = td_color_mix (ground, c, c.a); /* text is black or white with alpha */
        double contrast = td_color_contrast (seen, ground);

        if (contrast < rules[i].least)
          fail_msg ("%s: %s on %s has %.2f", names[t], td_role_name (rules[i].role),
                    td_role_name (rules[i].ground), contrast);
      }
}

static void
colormap__of_magnitudes_grows_lighter_all_the_way (void **state)
{
  TdColor black = { 0, 0, 0, 1 };
  double before = 0;

  for (int i = 0; i <= 100; i++)
    {
      double contrast
          = td_color_contrast (td_colormap_at (TD_COLORMAP_CIVIDIS, i / 100.0), black);

      assert_true (contrast > before);
      before = contrast;
    }
}

static void
label__with_markup_and_newlines_is_only_text (void **state)
{
  g_autofree char *endless = g_strnfill (10000, 'x');
  const char *labels[] = { "<b>&\"'\n</text><script>alert(1)</script>",
                           "\x1b[31mred\x7f\x01",
                           "\xff\xfe broken",
                           "\xe2\x80\xae reversed",
                           endless,
                           "" };

  for (gsize i = 0; i < G_N_ELEMENTS (labels); i++)
    {
      TdSceneBuilder *b = td_scene_builder_new (300, 100);
      add_node (b, 1, 10, 10, labels[i]);
      g_autoptr (TdScene) scene = td_scene_builder_end (b);
      g_autofree char *svg = td_scene_to_svg (scene, 1, td_theme_get ("light"));
      g_autofree char *dump = td_scene_dump (scene);

      assert_true (g_utf8_validate (svg, -1, NULL));
      assert_null (strstr (svg, "<script"));
      assert_null (strstr (svg, "<b>"));
      assert_null (strstr (svg, "\xe2\x80\xae"));
      for (const char *p = svg; *p; p++)
        assert_true ((unsigned char)*p >= 0x20 || *p == '\n');
      assert_true (strlen (dump) < 3000); /* cut, however long it was */
      GMarkupParser none = { 0 };
      GMarkupParseContext *parse = g_markup_parse_context_new (&none, 0, NULL, NULL);
      assert_true (g_markup_parse_context_parse (parse, svg, -1, NULL));
      assert_true (g_markup_parse_context_end_parse (parse, NULL));
      g_markup_parse_context_free (parse);
      cairo_surface_destroy (paint (scene, NULL, 1, 300, 100, "light"));
    }
}

/* Pieces of 2 KB and more: a text that is measured, or was painted some scenes ago. */
static void
text__that_is_gone_is_not_kept (void **state)
{
  const TdTextStyle style = { .role = TD_ROLE_TEXT, .size = TD_TEXT_BODY };
  const TdSceneRect all = { 0, 0, 100, 100 };
  gsize before = 0;

  for (int i = 0; i < 6000; i++)
    {
      g_autofree char *text = g_strdup_printf ("%d", 100000 + i);
      TdSceneBuilder *b = td_scene_builder_new (100, 100);

      if (i == 2000)
        before = mallinfo2 ().uordblks;
      assert_true (td_text_width (text, TD_TEXT_BODY, FALSE) > 10);
      td_scene_add_text (b, 10, 10, text, &style);
      g_autoptr (TdScene) scene = td_scene_builder_end (b);
      cairo_surface_destroy (paint (scene, &all, 1, 10, 10, "light"));
    }
  assert_in_range (mallinfo2 ().uordblks, 0, before + (1 << 20));
}

static void
json__escapes_and_writes_no_bare_nan (void **state)
{
  GString *out = g_string_new (NULL);
  TdJson j;

  td_json_init (&j, out);
  td_json_begin_object (&j);
  td_json_member_string (&j, "label", "a\"b\\c\n\x01\xff");
  td_json_member_double (&j, "nan", NAN);
  td_json_member_double (&j, "inf", -INFINITY);
  td_json_member_double (&j, "tenth", 0.1);
  td_json_end_object (&j);
  assert_string_equal (
      out->str, "{\n  \"label\": \"a\\\"b\\\\c\\n\\u0001\xef\xbf\xbd\",\n  \"nan\": \"nan\",\n"
                "  \"inf\": \"-inf\",\n  \"tenth\": 0.1\n}\n");
  g_string_free (out, TRUE);
}

static void
format__says_bytes_times_and_values_in_three_digits (void **state)
{
  char s[TD_FORMAT_SIZE];

  assert_string_equal (td_format_bytes (s, 64), "64 B");
  assert_string_equal (td_format_bytes (s, 9600), "9.60 kB");
  assert_string_equal (td_format_bytes (s, 301056), "301 kB");
  assert_string_equal (td_format_bytes (s, 999999), "1.00 MB");
  assert_string_equal (td_format_ns (s, 455000), "455 µs");
  assert_string_equal (td_format_ns (s, 3204000), "3.20 ms");
  assert_string_equal (td_format_value (s, -0.00012), "−1.2e−4");
  assert_string_equal (td_format_value (s, 0.2012), "0.201");
  assert_string_equal (td_format_honest (s, 0.5, TD_HONEST_SAMPLED), "≈0.5");
  assert_string_equal (td_format_honest (s, 0.5, TD_HONEST_MISSING), "—");
}

static void
csv__quotes_what_a_spreadsheet_would_misread (void **state)
{
  GString *s = g_string_new (NULL);

  td_csv_append (s, "plain");
  td_csv_append (s, "a,\"b\"\n");
  td_csv_append (s, "=1+1");
  assert_string_equal (s->str, "plain\"a,\"\"b\"\"\n\"\"=1+1\"");
  g_string_free (s, TRUE);
}

static void
export__writes_png_svg_and_pdf_with_text_as_text (void **state)
{
  g_autoptr (TdScene) scene = many_nodes (3);
  GError *error = NULL;
  gsize n;

  for (int i = 0; i < 3; i++)
    {
      const char *formats[] = { "png", "svg", "pdf" };
      const char *magic[] = { "\x89PNG", "<?xml", "%PDF-1" };
      const char *path = td_test_tmp (formats[i]);

      assert_true (td_scene_export (scene, formats[i], path, 1, td_theme_get ("dark"), &error));
      g_autofree char *bytes = NULL;
      assert_true (g_file_get_contents (path, &bytes, &n, NULL));
      assert_true (n > 200 && memcmp (bytes, magic[i], 4) == 0);
      if (i == 1)
        assert_non_null (strstr (bytes, ">convolution_2d</text>"));
      if (i == 2)
        assert_non_null (memmem (bytes, n, "/Font", 5)); /* embedded: not outlines */
    }
  const char *nowhere = td_test_tmp ("none/x.png");
  assert_false (td_scene_export (scene, "png", nowhere, 1, td_theme_get (NULL), &error));
  assert_non_null (strstr (error->message, nowhere));
  g_clear_error (&error);
  assert_false (
      td_scene_export (scene, "png", td_test_tmp ("big"), 100, td_theme_get (NULL), &error));
  assert_non_null (strstr (error->message, "too large"));
  g_clear_error (&error);
}

static void
axes__turn_x_into_values_and_stay_inside (void **state)
{
  TdSceneBuilder *b = td_scene_builder_new (200, 100);
  TdSceneAxes axes = { .box = { 50, 0, 100, 100 }, .x0 = 0, .x1 = 44 };

  td_scene_set_axes (b, &axes);
  g_autoptr (TdScene) scene = td_scene_builder_end (b);
  assert_true (fabs (td_scene_axis_value (scene, 100) - 22) < 1e-9);
  assert_true (td_scene_axis_value (scene, -10) == 0);
  assert_true (td_scene_axis_value (scene, 1000) == 44);
}

static void
axes__have_a_place_for_each_number_up_to_the_next (void **state)
{
  TdSceneBuilder *b = td_scene_builder_new (300, 100);
  TdSceneAxes axes = { .box = { 50, 0, 200, 100 }, .x0 = 10, .x1 = 30 };

  td_scene_set_axes (b, &axes);
  g_autoptr (TdScene) scene = td_scene_builder_end (b);
  for (int i = 0; i < 20; i++)
    for (double part = 0.1; part < 1; part += 0.2)
      assert_int_equal (td_scene_axis_place (scene, 50 + 10 * (i + part)), 10 + i);
  assert_int_equal (td_scene_axis_place (scene, 0), 10);
  assert_int_equal (td_scene_axis_place (scene, 250), 29); /* there is no 30 */
  assert_int_equal (td_scene_axis_place (scene, 300), 29);
}

int
main (void)
{
  const struct CMUnitTest tests[] = {
    td_test (hit__finds_the_topmost_and_small_things_from_around),
    td_test (hit__takes_a_wire_within_a_few_units),
    td_test (hit__names_the_cell_of_a_heat_map),
    td_test (paint__of_a_part_equals_the_part_of_the_whole),
    td_test (paint__drops_detail_above_400_nodes),
    td_test (paint__shows_nan_as_a_mark_and_missing_as_nothing_of_the_scale),
    td_test (theme__text_keeps_its_contrast),
    td_test (colormap__of_magnitudes_grows_lighter_all_the_way),
    td_test (label__with_markup_and_newlines_is_only_text),
    td_test (text__that_is_gone_is_not_kept),
    td_test (json__escapes_and_writes_no_bare_nan),
    td_test (format__says_bytes_times_and_values_in_three_digits),
    td_test (csv__quotes_what_a_spreadsheet_would_misread),
    td_test (export__writes_png_svg_and_pdf_with_text_as_text),
    td_test (axes__turn_x_into_values_and_stay_inside),
    td_test (axes__have_a_place_for_each_number_up_to_the_next),
  };

  return cmocka_run_group_tests_name ("scene", tests, NULL, NULL);
}
