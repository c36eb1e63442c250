/* What each page shows, and the keys that only it has; those of the whole window are in
 * td-keys.c. SPDX-License-Identifier: MIT */
#include "settings/td-help.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "settings/td-keys.h"

typedef struct
{
  const char *keys, *words; /* keys as GtkShortcutsShortcut has them */
} HelpRow;

/* A page is known by its perspective, by the name or type of a widget around what is focused,
 * or by STACK/PICTURE. */
typedef struct
{
  const char *page, *title, *about;
  const char *action; /* that shows it; NULL: it is a view of the dock, or always there */
  const char *topic;  /* of the manual */
  HelpRow rows[8];
} HelpPage;

#define ROWS                                                                                   \
  { "Up Down", "To the row above or below" },                                                  \
  {                                                                                            \
    "Page_Up Page_Down", "Eight rows on"                                                       \
  }
#define STRIP                                                                                  \
  { "plus minus", "Zoom at the playhead, as the wheel does at the pointer" },                  \
      { "Left Right", "Move what is zoomed by a quarter of it" },                              \
  {                                                                                            \
    "BackSpace", "Show all of it again, as a double click does"                                \
  }

// clang-format off
static const HelpPage pages[] = {
  { "start", N_ ("Start Page"), N_ ("lessons, examples, recent recordings"), NULL, "first-minute",
    { { "Tab <Shift>Tab", N_ ("To the next card, or the one before") }, { "Return", N_ ("Open it") } } },
  { "debug", N_ ("Debug"), N_ ("the graph, what is selected in it, and the dock"), "win.show-page::debug", "first-minute",
    { { "Tab <Shift>Tab", N_ ("To the next part of the window, or the one before") } } },
  { "TdGraphView", N_ ("Graph"), N_ ("what ran: forward, backward, update"), NULL, "stepping",
    { { "Up Down Left Right", N_ ("Along edges, and to what stands beside") },
      { "<Shift>Up <Shift>Down <Shift>Left <Shift>Right", N_ ("Move the picture") },
      { "Return", N_ ("Open or close the layer, or go to the operation") } } },
  { "TdOutlinePage", N_ ("Outline"), N_ ("layers and operations as a list"), "win.toggle-outline", "stepping",
    { { "Up Down", N_ ("To the row above or below") } } },
  { "TdIterationsPage", N_ ("Iterations"), N_ ("what was found in each, its memory and time"), NULL, "stepping",
    { { "Up Down", N_ ("To the iteration above or below") } } },
  { "TdInspector", N_ ("Inspector"), N_ ("values, gradient and life of what is selected"), "win.toggle-inspector", "values",
    { { "Tab <Shift>Tab", N_ ("To the next field, or the one before") } } },
  { "numbers", N_ ("Table of Numbers"), N_ ("the elements of a tensor"), NULL, "values",
    { { "Up Down Left Right", N_ ("To the element beside") },
      { "<Control>Up <Control>Down <Control>Left <Control>Right", N_ ("To the edge") },
      { "Page_Up Page_Down", N_ ("A page up or down") },
      { "Home End", N_ ("To the first or last of the row") } } },
  { "memory", N_ ("Memory"), N_ ("what is in use, what grows, and who keeps it"), "win.show-page::memory", "memory",
    { { "Tab <Shift>Tab", N_ ("To the next picture, or the one before") } } },
  { "growth", N_ ("Growth"), N_ ("what grows over the iterations"), NULL, "memory",
    { ROWS, { "Return", N_ ("Go to the operation that made it") } } },
  { "holders", N_ ("Holders"), N_ ("who keeps what is there after the iteration"), NULL, "memory",
    { ROWS, { "Return", N_ ("Go to the operation that made it") } } },
  { "gradients", N_ ("Gradients"), N_ ("norms of parameters, and those that do not learn"), NULL, "learning",
    { { "Tab <Shift>Tab", N_ ("To the next picture, or the one before") } } },
  { "schedule", N_ ("Schedule"), N_ ("order, static functions, times, advice, buffers"), NULL, "static",
    { ROWS, { "Return", N_ ("Go to what the row stands for") } } },
  { "schedule/flame", N_ ("Flame Graph"), N_ ("what layers cost, in time and in bytes"), "win.flame::time", "static",
    { { "Left Right", N_ ("To the box beside") }, { "Up Down", N_ ("To what it is in, or what is in it") },
      { "Home End", N_ ("To the first or last box as deep") },
      { "Return", N_ ("Zoom into a layer, or go to the operation") },
      { "BackSpace Escape", N_ ("Zoom out") } } },
  { "schedule/explain", N_ ("Explain"), N_ ("why static functions ran their code"), "win.explain", "static",
    { ROWS, { "Return", N_ ("Go to the line or the operation") } } },
  { "curves", N_ ("Curves"), N_ ("what the program reported, over the iterations"), NULL, "learning",
    { { "", N_ ("Shift and a drag: these iterations only") } } },
  { "ranks", N_ ("Ranks"), N_ ("where the ranks of one run part, and who waits for whom"), NULL, "ranks",
    { { "Tab <Shift>Tab", N_ ("To the next picture, or the one before") } } },
  { "compare", N_ ("Compare"), N_ ("two iterations, or two recordings, call by call"), "win.show-page::compare", "static",
    { { "Tab <Shift>Tab", N_ ("To the next part, or the one before") } } },
  { "iterations-strip", N_ ("Strip of Iterations"), N_ ("loss and memory over the run"), NULL, "stepping",
    { STRIP, { "", N_ ("Shift and a drag: these iterations only") } } },
  { "events-strip", N_ ("Strip of Events"), N_ ("the iteration at the playhead"), NULL, "stepping", { STRIP } },
};
// clang-format on

static const HelpPage *
find_entry (const char *name)
{
  for (guint i = 0; i < G_N_ELEMENTS (pages); i++)
    if (strcmp (pages[i].page, name) == 0)
      return &pages[i];
  return NULL;
}

const char *
td_help_find_page (GtkWidget *widget, const char *fallback)
{
  const HelpPage *found = NULL;
  for (; widget && !found; widget = gtk_widget_get_parent (widget))
    {
      const char *name = gtk_widget_get_name (widget);
      const char *picture = GTK_IS_STACK (widget)
                                ? gtk_stack_get_visible_child_name (GTK_STACK (widget))
                                : NULL;
      g_autofree char *both = g_strdup_printf ("%s/%s", name, picture ? picture : "");
      found = find_entry (both);
      if (!found)
        found = find_entry (name);
    }
  if (!found)
    found = find_entry (fallback);
  return found ? found->page : pages[0].page;
}

const char *
td_help_find_topic (const char *page)
{
  const HelpPage *entry = find_entry (page);
  return entry ? entry->topic : pages[0].topic;
}

/* ---- the window ---- */

/* What is done without keys has no accelerator: a gesture, for GTK, and without a picture. */
static void
append_row (GString *xml, const char *keys, const char *words)
{
  g_autofree char *row = g_markup_printf_escaped (
      "<child><object class='GtkShortcutsShortcut'>"
      "<property name='title'>%s</property>"
      "<property name='%s'>%s</property>"
      "</object></child>",
      words, *keys ? "accelerator" : "shortcut-type", *keys ? keys : "gesture");
  g_string_append (xml, row);
}

/* view: the page that it is shown for; "": for all. */
static void
begin_group (GString *xml, const char *title, const char *view)
{
  g_autofree char *start = g_markup_printf_escaped ("<child><object class='GtkShortcutsGroup'>"
                                                    "<property name='title'>%s</property>",
                                                    title);
  g_string_append (xml, start);
  if (*view)
    g_string_append_printf (xml, "<property name='view'>%s</property>", view);
}

static void
end_group (GString *xml)
{
  g_string_append (xml, "</object></child>");
}

static void
begin_section (GString *xml, const char *name, const char *title, int max_height)
{
  g_string_append_printf (xml,
                          "<child><object class='GtkShortcutsSection'>"
                          "<property name='section-name'>%s</property>"
                          "<property name='title'>%s</property>"
                          "<property name='max-height'>%d</property>",
                          name, title, max_height);
}

static char *
first_word (const char *keys)
{
  return g_strndup (keys, strcspn (keys, " "));
}

/* The window shows the first accelerator and the first single key, not the twins. */
static char *
dup_shown (const TdKey *key)
{
  g_autofree char *accel = first_word (key->accels), *single = first_word (key->single);
  return g_strjoin (*accel && *single ? " " : "", accel, single, NULL);
}

/* Rows of a group follow one another in the table. */
static void
append_keys (GString *xml)
{
  guint n;
  const TdKey *keys = td_keys_table (&n);
  begin_section (xml, "shortcuts", _ ("Keys"), 16);
  for (guint i = 0; i < n; i++)
    {
      g_autofree char *shown = dup_shown (&keys[i]);
      if (i == 0 || strcmp (keys[i].group, keys[i - 1].group) != 0)
        begin_group (xml, _ (keys[i].group), "");
      if (keys[i].title)
        append_row (xml, shown, _ (keys[i].title));
      if (i + 1 == n || strcmp (keys[i].group, keys[i + 1].group) != 0)
        end_group (xml);
    }
  g_string_append (xml, "</object></child>");
}

static char *
dup_accel (const char *action)
{
  guint n;
  const TdKey *keys = td_keys_table (&n);
  for (guint i = 0; i < n && action; i++)
    if (strcmp (keys[i].action, action) == 0)
      return first_word (keys[i].accels);
  return g_strdup ("");
}

static void
append_pages (GString *xml)
{
  begin_section (xml, "page", _ ("This Page"), 60);
  for (guint i = 0; i < G_N_ELEMENTS (pages); i++)
    {
      begin_group (xml, _ (pages[i].title), pages[i].page);
      for (const HelpRow *row = pages[i].rows; row->words; row++)
        append_row (xml, row->keys, _ (row->words));
      end_group (xml);
    }
  begin_group (xml, _ ("Pages"), "");
  for (guint i = 0; i < G_N_ELEMENTS (pages); i++)
    {
      g_autofree char *accel = dup_accel (pages[i].action);
      g_autofree char *words
          = g_strdup_printf ("%s: %s", _ (pages[i].title), _ (pages[i].about));
      append_row (xml, accel, words);
    }
  end_group (xml);
  g_string_append (xml, "</object></child>");
}

GtkShortcutsWindow *
td_help_new_window (const char *page)
{
  g_autoptr (GString) xml
      = g_string_new ("<interface><object class='GtkShortcutsWindow' id='window'>"
                      "<property name='modal'>1</property>");
  append_keys (xml);
  append_pages (xml);
  g_string_append (xml, "</object></interface>");
  g_autoptr (GtkBuilder) builder = gtk_builder_new_from_string (xml->str, (gssize)xml->len);
  GtkShortcutsWindow *window
      = g_object_ref (GTK_SHORTCUTS_WINDOW (gtk_builder_get_object (builder, "window")));
  g_object_set (window, "section-name", page ? "page" : "shortcuts", "view-name", page, NULL);
  return window;
}
