/* Facts of an operation, read from the iteration's arrays; links are buttons that select.
 * SPDX-License-Identifier: MIT */
#include "pages/td-inspector-facts.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "scene/td-format.h"
#include "scene/td-panel.h"
#include "tape/td-devices.h"
#include "tape/td-frees.h"
#include "widgets/td-hover-row.h"

#define MAX_LINKS 60

struct TdFacts
{
  TdFactsPage page;
  GtkWidget *scroller;
  GtkGrid *grid;
  int n_rows;
  TdSession *session; /* while it is shown */
};

static const struct
{
  const char *name, *title;
} pages[TD_N_FACT_PAGES]
    = { { "op", N_ ("Op") }, { "life", N_ ("Life") }, { "links", N_ ("Links") } };

static const char *const phase_names[] = { "forward", "backward", "accumulation", "update" };

const char *
td_facts_get_name (TdFactsPage page)
{
  return pages[page].name;
}

const char *
td_facts_get_title (TdFactsPage page)
{
  return _ (pages[page].title);
}

GtkWidget *
td_facts_get_widget (TdFacts *self)
{
  return self->scroller;
}

/* ---- lines ---- */

static GtkWidget *
new_text (const char *text, gboolean dim)
{
  g_autofree char *valid = g_utf8_make_valid (text ? text : "", -1);
  GtkWidget *label = gtk_label_new (valid);
  gtk_label_set_xalign (GTK_LABEL (label), 0);
  gtk_label_set_yalign (GTK_LABEL (label), 0);
  gtk_label_set_wrap (GTK_LABEL (label), !dim);
  gtk_label_set_wrap_mode (GTK_LABEL (label), PANGO_WRAP_WORD_CHAR);
  gtk_label_set_selectable (GTK_LABEL (label), !dim);
  gtk_widget_add_css_class (label, "caption");
  gtk_widget_add_css_class (label, "numeric");
  if (dim)
    gtk_widget_add_css_class (label, "dim-label");
  gtk_widget_set_hexpand (label, !dim);
  return label;
}

static void
add_fact (TdFacts *self, const char *name, const char *value)
{
  if (!value || !*value)
    return;
  gtk_grid_attach (self->grid, new_text (name, TRUE), 0, self->n_rows, 1, 1);
  gtk_grid_attach (self->grid, new_text (value, FALSE), 1, self->n_rows, 1, 1);
  self->n_rows++;
}

G_GNUC_PRINTF (3, 4)
static void
add_factf (TdFacts *self, const char *name, const char *format, ...)
{
  va_list args;
  va_start (args, format);
  g_autofree char *value = g_strdup_vprintf (format, args);
  va_end (args);
  add_fact (self, name, value);
}

static void
link_clicked (GtkButton *button, TdFacts *self)
{
  guint64 *key = g_object_get_data (G_OBJECT (button), "key");
  if (self->session)
    td_session_select (self->session, *key);
}

static void
add_link (TdFacts *self, const char *name, const char *value, guint64 key)
{
  g_autofree char *valid = g_utf8_make_valid (value, -1);
  GtkWidget *button = gtk_button_new_with_label (valid);
  GtkWidget *label = gtk_button_get_child (GTK_BUTTON (button));
  gtk_label_set_xalign (GTK_LABEL (label), 0);
  gtk_label_set_ellipsize (GTK_LABEL (label), PANGO_ELLIPSIZE_END);
  gtk_widget_add_css_class (button, "flat");
  gtk_widget_add_css_class (button, "td-link");
  gtk_widget_set_hexpand (button, TRUE);
  g_object_set_data_full (G_OBJECT (button), "key", g_memdup2 (&key, sizeof key), g_free);
  g_signal_connect (button, "clicked", G_CALLBACK (link_clicked), self);
  td_hover_row_set (button, self->session, key, button);
  GtkWidget *title = new_text (name, TRUE);
  gtk_widget_set_valign (title, GTK_ALIGN_CENTER);
  gtk_grid_attach (self->grid, title, 0, self->n_rows, 1, 1);
  gtk_grid_attach (self->grid, button, 1, self->n_rows, 1, 1);
  self->n_rows++;
}

/* ---- texts ---- */

static char *
dup_var (TdIteration *iteration, guint var)
{
  const TdTapeVar *v = &td_iteration_get_tape (iteration)->vars[var];
  const char *name = td_iteration_get_var_name (iteration, var);
  g_autofree char *shape = td_iteration_dup_shape (iteration, var, TRUE);
  const char *layer = v->path ? td_iteration_get_path_name (iteration, v->path) : "";
  if (!*name && v->producer >= 0)
    name = td_iteration_get_op_name (iteration, (guint)v->producer);
  gboolean has_layer = *layer && !g_str_has_prefix (name, layer);
  return g_strdup_printf ("%s%s%s  %s", has_layer ? layer : "", has_layer ? "/" : "", name,
                          shape);
}

/* "conv2/W.grad" for what the optimizer took as the gradient of lenet/block2/conv2/W. */
static char *
dup_gradient_name (TdIteration *iteration, gint var)
{
  const TdTapeIteration *tape = td_iteration_get_tape (iteration);
  for (guint32 i = 0; var >= 0 && i < tape->n_grads; i++)
    {
      if (tape->grads[i].gradient != (guint32)var)
        continue;
      const char *path = td_iteration_get_string (iteration, tape->grads[i].path);
      const char *cut = strrchr (path, '/');
      while (cut && cut > path && cut[-1] != '/')
        cut--;
      return g_strdup_printf ("%s.grad", cut ? cut : path);
    }
  return NULL;
}

char *
td_facts_dup_title (TdIteration *iteration, gint event, gint var)
{
  g_autofree char *gradient = dup_gradient_name (iteration, var);
  if (gradient)
    return g_utf8_make_valid (gradient, -1);
  const char *name = var >= 0 ? td_iteration_get_var_name (iteration, (guint)var) : "";
  if (!*name && event >= 0)
    name = td_iteration_get_op_name (iteration, (guint)event);
  return g_utf8_make_valid (name, -1);
}

char *
td_facts_dup_subtitle (TdIteration *iteration, gint event, gint var)
{
  const TdTapeIteration *tape = td_iteration_get_tape (iteration);
  GString *text = g_string_new (NULL);
  if (event >= 0)
    g_string_append (text, td_iteration_get_op_name (iteration, (guint)event));
  if (var >= 0)
    {
      char bytes[TD_FORMAT_SIZE];
      g_autofree char *shape = td_iteration_dup_shape (iteration, (guint)var, TRUE);
      g_string_append_printf (text, "%s%s · %s", text->len ? " · " : "", shape,
                              td_format_bytes (bytes, tape->vars[var].bytes));
    }
  g_autofree char *valid = g_utf8_make_valid (text->str, -1);
  g_string_free (text, TRUE);
  return g_steal_pointer (&valid);
}

/* ---- pages ---- */

/* Of what runs on a device the host's time is that of issuing it. */
static void
add_times (TdFacts *self, const TdFactsSubject *s)
{
  const TdTapeIteration *tape = td_iteration_get_tape (s->iteration);
  const guint event = (guint)s->event, device = td_devices_of_event (s->iteration, event);
  g_autofree char *cost = td_devices_dup_cost (s->iteration, event);
  char text[TD_FORMAT_SIZE];
  if (!td_devices_is_work (s->iteration, event))
    {
      add_fact (self, _ ("Time"), cost);
      return;
    }
  g_autofree char *name = td_devices_dup_name (s->iteration, device);
  if (td_devices_time (s->iteration, event))
    add_factf (self, "Time", "%s on %s", cost, name);
  else
    add_factf (self, "Time", "not timed on %s", name);
  if (tape->event_duration_ns && !(tape->events[event].flags & TD_TAPE_EVENT_CAPTURED))
    add_fact (self, _ ("Issued in"), td_format_ns (text, tape->event_duration_ns[event]));
}

static void
show_op (TdFacts *self, const TdFactsSubject *s)
{
  const TdTapeIteration *tape = td_iteration_get_tape (s->iteration);
  const TdTapeEvent *event = &tape->events[s->event];
  g_autofree char *site = td_iteration_dup_site (s->iteration, (guint)s->event);
  add_fact (self, _ ("Operation"), td_iteration_get_op_name (s->iteration, (guint)s->event));
  add_fact (self, _ ("Layer"), td_iteration_get_link_path (s->iteration, (guint)s->event));
  add_fact (self, _ ("Phase"), phase_names[MIN (event->phase, 3)]);
  add_factf (self, "Event", "%d of %u", s->event, tape->n_events);
  add_fact (self, _ ("Attributes"), td_iteration_get_string (s->iteration, event->attrs));
  add_fact (self, _ ("Called at"), site);
  add_times (self, s);
  add_factf (self, "Started", _ ("%.3f ms into the iteration"),
             (double)tape->event_start_ns[s->event] / 1e6);
  for (guint i = 0; i < event->n_in; i++)
    {
      g_autofree char *var = dup_var (s->iteration, tape->ins[event->first_in + i]);
      gboolean kept = event->retained_in & (1u << MIN (i, 31));
      add_factf (self, i ? "" : "Inputs", "%s%s", var, kept ? "  (kept for backward)" : "");
    }
  for (guint i = 0; i < event->n_out; i++)
    {
      g_autofree char *var = dup_var (s->iteration, tape->outs[event->first_out + i]);
      add_fact (self, i ? "" : _ ("Outputs"), var);
    }
  g_autofree char *fault = td_iteration_dup_fault (s->iteration, (guint)s->event);
  if (fault)
    add_fact (self, _ ("Result"), fault);
  else if (event->flags & TD_TAPE_EVENT_FAILED)
    add_fact (self, _ ("Result"), _ ("failed: its outputs are poisoned"));
  if (event->flags & TD_TAPE_EVENT_ACCUMULATED)
    add_fact (self, _ ("Result"), _ ("added into the earlier content of its output"));
  if (event->flags & TD_TAPE_EVENT_REPLAYED)
    add_fact (self, _ ("Run from"), _ ("a static schedule"));
  if (event->flags & TD_TAPE_EVENT_CAPTURED)
    add_fact (self, _ ("Time"), _ ("not measured: it ran inside a CUDA graph"));
}

static void
show_life (TdFacts *self, const TdFactsSubject *s)
{
  const TdTapeIteration *tape = td_iteration_get_tape (s->iteration);
  const TdTapeVar *var = &tape->vars[s->var];
  char text[TD_FORMAT_SIZE];
  add_fact (self, _ ("Bytes"), td_format_bytes (text, var->bytes));
  add_fact (self, _ ("Category"), td_category_label (var->category));
  if (var->flags & TD_TAPE_VAR_CHANNELS_LAST)
    add_fact (self, _ ("Layout"), _ ("channels last: axis 1 runs fastest in memory"));
  if (var->producer >= 0)
    add_factf (self, "Written", "event %d, %s", var->producer,
               td_iteration_get_op_name (s->iteration, (guint)var->producer));
  else
    add_fact (self, _ ("Written"), _ ("before this iteration, or by the program"));
  guint n;
  const gint32 *readers = td_iteration_get_consumers (s->iteration, (guint)s->var, &n);
  TdMoment moment = td_session_get_moment (s->session);
  gint next = -1;
  for (guint i = 0; i < n && next < 0; i++)
    if (readers[i] > moment.event)
      next = readers[i];
  add_factf (self, _ ("Read by"), "%u operation%s", n, n == 1 ? "" : "s");
  if (next >= 0)
    add_factf (self, _ ("Next use"), "event %d, %s", next,
               td_iteration_get_op_name (s->iteration, (guint)next));
  if (n)
    add_factf (self, _ ("Last use"), "event %d, %s", readers[n - 1],
               td_iteration_get_op_name (s->iteration, (guint)readers[n - 1]));
  for (guint32 i = 0; i < tape->n_memory; i++)
    if (tape->memory[i].kind == TD_TAPE_MEMORY_ALLOC && tape->memory[i].var == (guint32)s->var)
      add_factf (self, "Allocated", "before event %u, at %#" G_GINT64_MODIFIER "x",
                 tape->memory[i].event, tape->memory[i].address);
  g_autofree guint32 *frees = td_frees_new (s->iteration);
  if (frees && frees[s->var] < tape->n_events)
    add_factf (self, "Freed", "before event %u", frees[s->var]);
  else if (frees && frees[s->var] != TD_TAPE_NONE)
    add_fact (self, _ ("Freed"), _ ("after the last event"));
  else
    add_fact (self, _ ("Freed"), _ ("not in this iteration"));
  if (var->flags & TD_TAPE_VAR_RETAINED)
    add_fact (self, _ ("Held by"), _ ("its operation, for backward"));
  if (var->flags & TD_TAPE_VAR_UNCHAINED)
    add_fact (self, _ ("Graph"), _ ("cut from its creator in this iteration"));
}

static void
show_links (TdFacts *self, const TdFactsSubject *s)
{
  const TdTapeIteration *tape = td_iteration_get_tape (s->iteration);
  const TdTapeEvent *event = &tape->events[s->event];
  for (guint i = 0; i < event->n_in && i < MAX_LINKS; i++)
    {
      guint32 v = tape->ins[event->first_in + i];
      g_autofree char *text = dup_var (s->iteration, v);
      gint32 producer = tape->vars[v].producer;
      add_link (self, i ? "" : _ ("In"), text,
                producer >= 0 ? tape->events[producer].key : tape->vars[v].key);
    }
  for (guint i = 0; i < event->n_out && i < MAX_LINKS; i++)
    {
      guint32 v = tape->outs[event->first_out + i];
      guint n;
      const gint32 *readers = td_iteration_get_consumers (s->iteration, v, &n);
      for (guint k = 0; k < n && k < MAX_LINKS; k++)
        {
          g_autofree char *text = g_strdup_printf (
              "%s  event %d", td_iteration_get_op_name (s->iteration, (guint)readers[k]),
              readers[k]);
          add_link (self, i || k ? "" : _ ("Read by"), text, tape->events[readers[k]].key);
        }
    }
  guint n_twins;
  const gint32 *twins = td_iteration_get_twins (s->iteration, (guint)s->event, &n_twins);
  for (guint k = 0; k < n_twins && k < MAX_LINKS; k++)
    add_link (self, k ? "" : _ ("Backward"),
              td_iteration_get_op_name (s->iteration, (guint)twins[k]),
              tape->events[twins[k]].key);
  if (event->twin >= 0 && (guint32)event->twin < tape->n_events)
    add_link (self, _ ("Forward"), td_iteration_get_op_name (s->iteration, (guint)event->twin),
              tape->events[event->twin].key);
}

static const struct
{
  void (*show) (TdFacts *self, const TdFactsSubject *subject);
  gboolean needs_event, needs_var;
} fillers[TD_N_FACT_PAGES]
    = { { show_op, TRUE, FALSE }, { show_life, FALSE, TRUE }, { show_links, TRUE, FALSE } };

void
td_facts_show (TdFacts *self, const TdFactsSubject *subject)
{
  GtkWidget *child;
  while ((child = gtk_widget_get_first_child (GTK_WIDGET (self->grid))))
    gtk_grid_remove (self->grid, child);
  self->n_rows = 0;
  self->session = subject->session;
  if (!subject->iteration || (fillers[self->page].needs_event && subject->event < 0)
      || (fillers[self->page].needs_var && subject->var < 0))
    return;
  fillers[self->page].show (self, subject);
}

const char *
td_facts_find (TdFacts *self, const char *name)
{
  for (int i = 0; i < self->n_rows; i++)
    {
      GtkWidget *title = gtk_grid_get_child_at (self->grid, 0, i);
      GtkWidget *value = gtk_grid_get_child_at (self->grid, 1, i);
      if (title && value && strcmp (gtk_label_get_text (GTK_LABEL (title)), name) == 0)
        return GTK_IS_LABEL (value) ? gtk_label_get_text (GTK_LABEL (value))
                                    : gtk_button_get_label (GTK_BUTTON (value));
    }
  return NULL;
}

TdFacts *
td_facts_new (TdFactsPage page)
{
  TdFacts *self = g_new0 (TdFacts, 1);
  self->page = page;
  self->grid = GTK_GRID (gtk_grid_new ());
  gtk_grid_set_column_spacing (self->grid, 12);
  gtk_grid_set_row_spacing (self->grid, 6);
  gtk_widget_set_valign (GTK_WIDGET (self->grid), GTK_ALIGN_START);
  self->scroller = gtk_scrolled_window_new ();
  gtk_scrolled_window_set_policy (GTK_SCROLLED_WINDOW (self->scroller), GTK_POLICY_NEVER,
                                  GTK_POLICY_AUTOMATIC);
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (self->scroller), GTK_WIDGET (self->grid));
  return self;
}

void
td_facts_free (TdFacts *self)
{
  g_free (self);
}
