/* The slider says how many layers of the list are computed again, those first that give the
 * most bytes for their time. It stays where it is from iteration to iteration.
 * SPDX-License-Identifier: MIT */
#include "pages/td-memory-what-if.h"

#include <glib/gi18n-lib.h>
#include <math.h>

#include "memory/td-what-if.h"
#include "widgets/td-usable.h"

struct _TdMemoryWhatIf
{
  TdPage parent;
  TdWhatIf *what_if; /* NULL: not asked yet, or `trouble` */
  TdIteration *of;   /* the iteration that was asked; NULL: none */
  char *trouble;
  guint n;         /* layers that are chosen */
  GtkWidget *card; /* weak; NULL: nobody shows it, nor what is on it */
  GtkRange *scale;
  GtkLabel *count, *sentence;
  gboolean filling;
};

G_DEFINE_FINAL_TYPE (TdMemoryWhatIf, td_memory_what_if, TD_TYPE_PAGE)

static void
forget (TdMemoryWhatIf *self)
{
  g_clear_pointer (&self->what_if, td_what_if_free);
  g_clear_pointer (&self->of, td_iteration_unref);
  g_clear_pointer (&self->trouble, g_free);
}

/* Of an iteration that goes on nothing is said: its backward is still to come. */
static TdWhatIf *
get_what_if (TdMemoryWhatIf *self)
{
  TdIteration *iteration = td_page_get_iteration (TD_PAGE (self));
  g_autoptr (GError) error = NULL;
  if (iteration == self->of)
    return self->what_if;
  forget (self);
  if (!iteration)
    return NULL;
  self->of = td_iteration_ref (iteration);
  if (td_iteration_is_complete (iteration))
    self->what_if = td_what_if_new (iteration, &error);
  if (self->what_if)
    td_what_if_choose_first (self->what_if, self->n);
  else
    self->trouble = g_strdup (error ? error->message : _ ("This iteration has not ended."));
  return self->what_if;
}

static TdScene *
make_picture (TdPage *page, const TdPanelView *view)
{
  TdWhatIf *what_if = get_what_if (TD_MEMORY_WHAT_IF (page));
  return what_if ? td_what_if_scene (what_if, NULL, view) : NULL;
}

static const TdPicture pictures[] = {
  { "what-if", N_ ("What If"), N_ ("Memory if layers were computed again in backward"),
    make_picture, .axis = TD_AXIS_EVENTS, .named = TRUE },
};

static char *
dup_csv (TdPage *page, const char *name)
{
  TdWhatIf *what_if = get_what_if (TD_MEMORY_WHAT_IF (page));
  return what_if ? td_what_if_print (what_if, NULL, "csv") : NULL;
}

/* ---- the head ---- */

static void
fill (TdMemoryWhatIf *self, TdWhatIf *what_if)
{
  guint n = what_if ? what_if->n_layers : 0;
  g_autofree char *count
      = g_strdup_printf ("%u of %u %s", MIN (self->n, n), n, td_plural (n, "layer", "layers"));
  g_autofree char *text = what_if ? td_what_if_sentence (what_if) : g_strdup (self->trouble);
  self->filling = TRUE;
  gtk_range_set_range (self->scale, 0, MAX (n, 1));
  gtk_range_set_increments (self->scale, 1, MAX (n / 10, 1));
  gtk_range_set_value (self->scale, MIN (self->n, n));
  self->filling = FALSE;
  td_widget_set_usable (GTK_WIDGET (self->scale), n > 0);
  gtk_label_set_text (self->count, count);
  gtk_label_set_text (self->sentence, text ? text : "");
}

void
td_memory_what_if_look (TdMemoryWhatIf *self)
{
  if (self->card && gtk_widget_get_mapped (self->card))
    {
      TdWhatIf *what_if = get_what_if (self);
      fill (self, what_if);
    }
}

static void
moved (GtkRange *scale, TdMemoryWhatIf *self)
{
  TdWhatIf *what_if = self->filling ? NULL : get_what_if (self);
  guint n = (guint)round (gtk_range_get_value (scale));
  if (!what_if || n == self->n)
    return;
  self->n = n;
  td_what_if_choose_first (what_if, n);
  fill (self, what_if);
  td_page_invalidate (TD_PAGE (self));
}

static void
copy_clicked (GtkWidget *button, TdMemoryWhatIf *self)
{
  TdWhatIf *what_if = get_what_if (self);
  g_autofree char *text = what_if ? td_what_if_print (what_if, NULL, "text") : NULL;
  if (text)
    gdk_clipboard_set_text (gtk_widget_get_clipboard (button), text);
}

void
td_memory_what_if_build (TdMemoryWhatIf *self, GtkBuilder *builder)
{
  self->scale = GTK_RANGE (gtk_builder_get_object (builder, "what-if-scale"));
  self->count = GTK_LABEL (gtk_builder_get_object (builder, "what-if-count"));
  self->sentence = GTK_LABEL (gtk_builder_get_object (builder, "what-if-sentence"));
  g_signal_connect_object (self->scale, "value-changed", G_CALLBACK (moved), self, 0);
  g_signal_connect_object (gtk_builder_get_object (builder, "what-if-copy"), "clicked",
                           G_CALLBACK (copy_clicked), self, 0);
  g_set_weak_pointer (&self->card, GTK_WIDGET (gtk_builder_get_object (builder, "what-if")));
}

/* ---- life ---- */

static void
forget_session (TdPage *page)
{
  forget (TD_MEMORY_WHAT_IF (page));
}

static void
moment_shown (TdPage *page)
{
  td_memory_what_if_look (TD_MEMORY_WHAT_IF (page));
}

static void
td_memory_what_if_finalize (GObject *object)
{
  TdMemoryWhatIf *self = TD_MEMORY_WHAT_IF (object);
  forget (self);
  g_clear_weak_pointer (&self->card);
  G_OBJECT_CLASS (td_memory_what_if_parent_class)->finalize (object);
}

static void
td_memory_what_if_class_init (TdMemoryWhatIfClass *klass)
{
  TdPageClass *class = TD_PAGE_CLASS (klass);
  G_OBJECT_CLASS (klass)->finalize = td_memory_what_if_finalize;
  class->name = "what-if";
  class->title = N_ ("What If");
  class->dup_csv = dup_csv;
  class->pictures = pictures;
  class->n_pictures = G_N_ELEMENTS (pictures);
  class->forget_session = forget_session;
  class->moment_shown = moment_shown;
}

static void
td_memory_what_if_init (TdMemoryWhatIf *self)
{
}

TdMemoryWhatIf *
td_memory_what_if_new (void)
{
  return g_object_new (TD_TYPE_MEMORY_WHAT_IF, NULL);
}
