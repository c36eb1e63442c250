/* Every page of the window on a program of real size, in six looks: light, dark, text twice as
 * large, 900 x 600, the narrowest with three panels, and (where the environment asks for it,
 * for it cannot be changed later) high contrast. Each is a picture among the artifacts; what a
 * program can say of one is tested: nothing lies outside of the window, no panel is cut by its
 * neighbour, and no page is empty.
 *
 *     test-looks PROGRAM [NAME=VALUE ...]
 *
 * SPDX-License-Identifier: MIT */
#include "ui-test.h"

#include <stdlib.h>
#include <string.h>

#define USUAL_DPI 96
#define LEAST_COLOURS 6
#define LEAST_OF_THREE 1200 /* the narrowest window that shows three panels */

typedef struct
{
  const char *name;
  int width, height, dpi;
  gboolean dark;
} Look;

static const Look looks[] = {
  { "light", 1440, 900, USUAL_DPI, FALSE },           { "dark", 1440, 900, USUAL_DPI, TRUE },
  { "text-200", 1440, 900, 2 * USUAL_DPI, FALSE },    { "small", 900, 600, USUAL_DPI, FALSE },
  { "tight", LEAST_OF_THREE, 900, USUAL_DPI, FALSE },
};
static const Look contrast = { "contrast", 1440, 900, USUAL_DPI, FALSE };

/* A page of the window, and which of its pictures; NULL: it has one. */
static const struct
{
  const char *page, *picture;
} pages[] = {
  { "debug", NULL },
  { "outline", NULL },
  { "iterations", NULL },
  { "value", NULL },
  { "gradient", NULL },
  { "memory", NULL },
  { "gradients", "heatmap" },
  { "gradients", "newest" },
  { "gradients", "findings" },
  { "gradients", "ridge" },
  { "gradients", "missing" },
  { "schedule", "order" },
  { "schedule", "timeline" },
  { "schedule", "flame" },
  { "schedule", "advice" },
  { "schedule", "buffers" },
  { "schedule", "explain" },
  { "source", NULL },
  { "log", NULL },
  { "breakpoints", NULL },
  { "filter", NULL },
  { "notes", NULL },
  { "watches", NULL },
  { "curves", NULL },
  { "compare", NULL },
};

static char **arguments; /* program, its arguments */
static char *tape;       /* recorded once */

static gboolean
in_contrast (void)
{
  return g_getenv ("ADW_DEBUG_HIGH_CONTRAST") != NULL;
}

static void
record_program (void)
{
  if (tape)
    return;
  /* two of these run beside each other */
  g_autofree char *file
      = g_strdup_printf ("looks-%s-%d.tdtape", arguments[0], in_contrast () ? 1 : 0);
  g_autofree char *folder = g_strdup (td_test_build ("tests/ui/pictures"));
  static const char *const options[] = { "--level", "values", "--values-budget", "16M", NULL },
                           *const of_script[] = { "--level", "values", NULL };

  g_mkdir_with_parents (folder, 0755);
  tape = g_build_filename (folder, file, NULL);
  ui_test_record_life (tape, arguments,
                       g_str_has_prefix (arguments[0], "torch-") ? of_script : options);
}

/* What scrolls may hold more than is seen. */
static gboolean
is_scrolled (GtkWidget *widget)
{
  return gtk_widget_get_ancestor (widget, GTK_TYPE_SCROLLED_WINDOW)
         || gtk_widget_get_ancestor (widget, GTK_TYPE_VIEWPORT)
         || gtk_widget_get_ancestor (widget, GTK_TYPE_REVEALER);
}

/* A label whose text is not all in the window: what it says; NULL: there is none. */
static const char *
find_outside (GtkWidget *widget, GtkWidget *top)
{
  graphene_rect_t at;
  if (!gtk_widget_get_mapped (widget))
    return NULL;
  if (GTK_IS_LABEL (widget) && !is_scrolled (widget)
      && gtk_widget_compute_bounds (widget, top, &at)
      && (at.origin.x < -1 || at.origin.y < -1
          || at.origin.x + at.size.width > (float)gtk_widget_get_width (top) + 1
          || at.origin.y + at.size.height > (float)gtk_widget_get_height (top) + 1))
    return gtk_label_get_text (GTK_LABEL (widget));
  for (GtkWidget *child = gtk_widget_get_first_child (widget); child;
       child = gtk_widget_get_next_sibling (child))
    {
      const char *found = find_outside (child, top);
      if (found)
        return found;
    }
  return NULL;
}

/* Where a child of a pane that lies may be; both places are all of it while one is hidden. A
 * pane that stands gives its lower half the room in a low window, on purpose. */
static gboolean
is_within_place (GtkWidget *widget, GtkPaned *pane, const graphene_rect_t *at)
{
  GtkWidget *start = gtk_paned_get_start_child (pane), *end = gtk_paned_get_end_child (pane);
  gboolean shared
      = start && end && gtk_widget_get_visible (start) && gtk_widget_get_visible (end);
  float place = (float)gtk_paned_get_position (pane),
        whole = (float)gtk_widget_get_width (GTK_WIDGET (pane));
  float from = shared && widget == end ? place : 0,
        to = shared && widget == start ? place : whole;
  return at->origin.x >= from - 1 && at->origin.x + at->size.width <= to + 1;
}

/* A child of a pane that is wider than its place: its name; NULL: there is none. */
static const char *
find_cut (GtkWidget *widget)
{
  GtkWidget *parent = gtk_widget_get_parent (widget);
  graphene_rect_t at;
  if (!gtk_widget_get_mapped (widget))
    return NULL;
  if (GTK_IS_PANED (parent)
      && gtk_orientable_get_orientation (GTK_ORIENTABLE (parent)) == GTK_ORIENTATION_HORIZONTAL
      && gtk_widget_compute_bounds (widget, parent, &at)
      && !is_within_place (widget, GTK_PANED (parent), &at))
    return gtk_widget_get_name (widget);
  for (GtkWidget *child = gtk_widget_get_first_child (widget); child;
       child = gtk_widget_get_next_sibling (child))
    {
      const char *found = find_cut (child);
      if (found)
        return found;
    }
  return NULL;
}

/* The innermost widget that cannot be as narrow as the window is to be, and the first in it. */
static char *
dup_wide (GtkWidget *widget, int width)
{
  GtkWidget *first = gtk_widget_get_first_child (widget);
  for (GtkWidget *child = gtk_widget_get_first_child (widget); child;
       child = gtk_widget_get_next_sibling (child))
    {
      int minimum = 0;
      if (gtk_widget_get_visible (child))
        gtk_widget_measure (child, GTK_ORIENTATION_HORIZONTAL, -1, &minimum, NULL, NULL, NULL);
      if (minimum > width)
        return dup_wide (child, width);
    }
  return g_strdup_printf ("%s of %s", gtk_widget_get_name (widget),
                          first ? gtk_widget_get_name (first) : "nothing");
}

static void
set_dpi (int dpi)
{
  g_object_set (gtk_settings_get_default (), "gtk-xft-dpi", dpi * 1024, NULL);
  ui_test_settle ();
}

/* What is wrong with the picture is added to `faults`, so that every picture is there to see.
 */
static void
judge (const Look *look, const char *page, const char *picture, GString *faults)
{
  GtkWidget *top = GTK_WIDGET (ui_test_window ());
  g_autofree char *name = g_strdup_printf ("%s-%s-%s%s%s.png", arguments[0], look->name, page,
                                           picture ? "-" : "", picture ? picture : "");
  ui_test_save_picture (name);
  const char *outside = find_outside (top, top);
  if (outside)
    g_string_append_printf (faults, "\n%s: outside of the window: %s", name, outside);
  const char *cut = find_cut (top);
  if (cut)
    g_string_append_printf (faults, "\n%s: cut by its pane: %s", name, cut);
  if (gtk_widget_get_width (top) > look->width || gtk_widget_get_height (top) > look->height)
    {
      g_autofree char *wide = dup_wide (top, look->width);
      g_string_append_printf (faults, "\n%s: needs %d x %d, the widest is a %s", name,
                              gtk_widget_get_width (top), gtk_widget_get_height (top), wide);
    }
  if (!ui_test_has_many_colours (LEAST_COLOURS))
    g_string_append_printf (faults, "\n%s: nothing to see", name);
}

static void
look_at_page (const Look *look, const char *page, const char *picture, GString *faults)
{
  ui_test_do ("show-page", "debug");
  ui_test_do ("show-page", page);
  if (picture)
    ui_test_panel_page (page, picture);
  if (strcmp (page, "compare") == 0)
    ui_test_do ("compare", NULL);
  ui_test_settle ();
  judge (look, page, picture, faults);
}

static void
look_at_pages (const Look *look)
{
  g_autoptr (GString) faults = g_string_new (NULL);

  record_program ();
  set_dpi (look->dpi);
  ui_test_set_dark (look->dark);
  ui_test_resize (look->width, look->height);
  judge (look, "start", NULL, faults);
  ui_test_open (tape);
  ui_test_wait_for_layout ();
  for (guint i = 0; i < G_N_ELEMENTS (pages); i++)
    look_at_page (look, pages[i].page, pages[i].picture, faults);
  ui_test_set_dark (FALSE);
  set_dpi (USUAL_DPI);
  if (faults->len)
    fail_msg ("%s", faults->str);
}

#define LOOK(name, look)                                                                       \
  static void looks__every_page_fits_##name (void **state)                                     \
  {                                                                                            \
    look_at_pages (look);                                                                      \
    (void)state;                                                                               \
  }

LOOK (in_light, &looks[0])
LOOK (in_dark, &looks[1])
LOOK (with_text_twice_as_large, &looks[2])
LOOK (in_a_small_window, &looks[3])
LOOK (where_three_panels_just_have_room, &looks[4])
LOOK (in_high_contrast, &contrast)

int
main (int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
    ui_test (looks__every_page_fits_in_light),
    ui_test (looks__every_page_fits_in_dark),
    ui_test (looks__every_page_fits_with_text_twice_as_large),
    ui_test (looks__every_page_fits_in_a_small_window),
    ui_test (looks__every_page_fits_where_three_panels_just_have_room),
  };
  const struct CMUnitTest contrast_tests[]
      = { ui_test (looks__every_page_fits_in_high_contrast) };

  ui_test_init (&argc, &argv);
  if (argc < 2)
    {
      fprintf (stderr, "usage: test-looks PROGRAM [NAME=VALUE ...]\n");
      return 2;
    }
  arguments = argv + 1;
  if (in_contrast ())
    return cmocka_run_group_tests (contrast_tests, NULL, NULL);
  return cmocka_run_group_tests (tests, NULL, NULL);
}
