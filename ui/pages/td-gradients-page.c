/* The table of gradients, loaded around the playhead when it is looked at.
 * SPDX-License-Identifier: MIT */
#include "pages/td-gradients-page.h"

#include <glib/gi18n-lib.h>

#include "gradient/td-gradient-ridge.h"
#include "gradient/td-gradient-rules.h"
#include "settings/td-settings.h"

/* The zoom: so many iterations up to the playhead. */
#define NEWEST 40

struct _TdGradientsPage
{
  TdPage parent;
  TdGradientTable *table;
  guint going_on; /* the source that loads more of it, 0: none */
};

G_DEFINE_FINAL_TYPE (TdGradientsPage, td_gradients_page, TD_TYPE_PAGE)

/* So long may a frame wait for iterations that are read; the others come with the next ones. */
#define LOAD_US 30000

static gboolean
go_on (gpointer data)
{
  TdGradientsPage *self = data;
  self->going_on = 0;
  td_page_invalidate (TD_PAGE (self));
  return G_SOURCE_REMOVE;
}

/* The table with what columns of a range show; `newest`: 0 for the whole run. */
static TdGradientTable *
get_table (TdPage *page, guint newest, const TdPanelView *view, TdGradientRange *range)
{
  TdGradientsPage *self = TD_GRADIENTS_PAGE (page);
  TdTapeReader *reader = td_page_get_reader (page);
  TdIteration *iteration = td_page_get_iteration (page);
  if (!reader || td_session_is_snapshot (td_page_get_session (page)))
    return NULL;
  gint64 at = view->iteration;
  if (!self->table)
    self->table = td_gradient_table_new (reader);
  *range = newest > 0 ? td_gradient_range_newest (reader, at, newest)
                      : td_gradient_range_run (reader, at);
  *range = td_gradient_range_narrow (*range, view->range);
  if (!td_gradient_table_load_until (self->table, reader, range, at,
                                     g_get_monotonic_time () + LOAD_US)
      && !self->going_on)
    self->going_on = g_idle_add (go_on, self);
  if (iteration && !td_iteration_is_complete (iteration))
    td_gradient_table_add (self->table, iteration);
  return self->table;
}

static TdScene *
make_map (TdPage *page, guint newest, const TdPanelView *view)
{
  TdGradientRange range;
  TdGradientTable *table = get_table (page, newest, view, &range);
  return table ? td_gradient_scene (table, td_page_get_iteration (page), &range, view) : NULL;
}

static TdScene *
make_heatmap (TdPage *page, const TdPanelView *view)
{
  return make_map (page, 0, view);
}

static TdScene *
make_newest (TdPage *page, const TdPanelView *view)
{
  return make_map (page, NEWEST, view);
}

static TdScene *
make_missing (TdPage *page, const TdPanelView *view)
{
  TdGradientRange range;
  TdGradientTable *table = get_table (page, 1, view, &range);
  return table ? td_gradient_scene_missing (table, view) : NULL;
}

/* What the preferences say; what cannot be read there (another program may write it) is as if
 * nothing did. */
static void
get_rules (TdGradientRules *rules)
{
  GSettings *settings = td_settings_get ();
  g_autofree char *text
      = settings ? g_settings_get_string (settings, "gradient-rules") : g_strdup ("");
  if (!td_gradient_rules_parse (text, rules, NULL))
    td_gradient_rules_parse ("", rules, NULL);
}

static TdScene *
make_findings (TdPage *page, const TdPanelView *view)
{
  TdGradientRange range;
  TdGradientRules rules;
  TdGradientTable *table = get_table (page, 0, view, &range);
  get_rules (&rules);
  return table ? td_gradient_scene_findings (table, &range, &rules, view) : NULL;
}

static TdScene *
make_ridge (TdPage *page, const TdPanelView *view)
{
  TdGradientRange range;
  TdGradientTable *table = get_table (page, 0, view, &range);
  return table ? td_gradient_scene_ridge (table, &range, view) : NULL;
}

/* A cell is a parameter in the iteration that its column shows: it selects the one and goes to
 * the other. */
static TdPress
press_heatmap (TdPage *page, const char *name, const TdSceneHit *hit, GtkWidget *view)
{
  if (!hit || hit->tag != TD_TAG_CELL || hit->row < 0)
    return TD_PRESS_FOLLOW;
  if (hit->key)
    td_session_select (td_page_get_session (page), hit->key);
  return TD_PRESS_AXIS;
}

static guint64
key_of_cell (TdPage *page, const TdSceneHit *hit)
{
  TdGradientTable *table = TD_GRADIENTS_PAGE (page)->table;
  gint64 row = hit->data + hit->row; /* the first on show, and which of those */
  return hit->tag == TD_TAG_CELL && hit->row >= 0 && table
                 && row < td_gradient_table_n_rows (table)
             ? td_gradient_table_key (table, (guint)row)
             : 0;
}

static const TdPicture pictures[] = {
  { "heatmap", N_ ("Heatmap"), N_ ("Gradient norms of parameters by iteration"), make_heatmap,
    press_heatmap },
  { "newest", N_ ("Newest"), N_ ("Gradient norms of the newest iterations up to the playhead"),
    make_newest, press_heatmap },
  { "findings", N_ ("Findings"), N_ ("Parameters that do not learn, by the rules"),
    make_findings },
  { "ridge", N_ ("Ridge"),
    N_ ("How the selected parameter and its gradient are spread, by iteration"), make_ridge },
  { "missing", N_ ("Missing"), N_ ("Parameters without a gradient"), make_missing },
};

/* ---- as a table ---- */

/* All of it, however long it takes to read. */
static TdGradientTable *
get_whole_table (TdPage *page, guint newest, TdGradientRange *range)
{
  TdSession *session = td_page_get_session (page);
  TdTapeReader *reader = td_page_get_reader (page);
  const TdPanelView view
      = { .iteration = session ? td_session_get_moment (session).iteration : -1,
          .range = session ? td_session_get_range (session) : (TdRange){ 0 } };
  TdGradientTable *table = session ? get_table (page, newest, &view, range) : NULL;
  while (table
         && !td_gradient_table_load_until (table, reader, range, view.iteration,
                                           g_get_monotonic_time () + LOAD_US))
    ;
  return table;
}

/* The row of the parameter that is selected, else the first. */
static guint
selected_row (TdPage *page, const TdGradientTable *table)
{
  guint n;
  const guint64 *keys = td_session_get_selection (td_page_get_session (page), &n);
  for (guint row = 0; n && row < td_gradient_table_n_rows (table); row++)
    if (td_gradient_table_key (table, row) == keys[0])
      return row;
  return 0;
}

static char *
dup_csv (TdPage *page, const char *name)
{
  gboolean missing = g_str_equal (name, "missing");
  guint newest = g_str_equal (name, "newest") ? NEWEST : missing ? 1 : 0;
  TdGradientRange range;
  TdGradientRules rules;
  TdGradientTable *table = get_whole_table (page, newest, &range);
  if (!table || td_gradient_table_n_rows (table) == 0)
    return NULL;
  get_rules (&rules);
  if (g_str_equal (name, "findings"))
    return td_gradient_print_findings (table, &range, &rules, "csv");
  if (g_str_equal (name, "ridge"))
    return td_gradient_print_ridge (table, &range, selected_row (page, table), "csv");
  return td_gradient_print (
      table, &range, td_session_get_moment (td_page_get_session (page)).iteration, "csv");
}

static void
forget_session (TdPage *page)
{
  TdGradientsPage *self = TD_GRADIENTS_PAGE (page);
  g_clear_pointer (&self->table, td_gradient_table_free);
  g_clear_handle_id (&self->going_on, g_source_remove);
}

static void
td_gradients_page_class_init (TdGradientsPageClass *klass)
{
  TdPageClass *class = TD_PAGE_CLASS (klass);
  class->name = "gradients";
  class->title = N_ ("Gradients");
  class->dup_csv = dup_csv;
  class->pictures = pictures;
  class->n_pictures = G_N_ELEMENTS (pictures);
  class->forget_session = forget_session;
  class->key_of = key_of_cell;
}

static void
td_gradients_page_init (TdGradientsPage *self)
{
  if (td_settings_get ())
    g_signal_connect_object (td_settings_get (), "changed::gradient-rules",
                             G_CALLBACK (td_page_invalidate), self, G_CONNECT_SWAPPED);
}

TdPage *
td_gradients_page_new (void)
{
  return g_object_new (TD_TYPE_GRADIENTS_PAGE, NULL);
}
