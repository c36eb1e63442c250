/* A popover that is not hidden by what the user does elsewhere: a lesson is followed with the
 * bubble open. SPDX-License-Identifier: MIT */
#include "widgets/td-tour-bubble.h"

#include <glib/gi18n-lib.h>

#define ARROW 12 /* pixels that the arrow takes beside the bubble */

#define EDGE 6 /* pixels that stay free at the edge of the parent, if they can */

/* Widths of the text in characters, the best first. */
static const int widths[] = { 44, 34, 26 };
/* Where it may stand, the best first. */
static const GtkPositionType sides[]
    = { GTK_POS_BOTTOM, GTK_POS_TOP, GTK_POS_RIGHT, GTK_POS_LEFT };

struct _TdTourBubble
{
  GtkPopover parent;
  GtkLabel *title, *text, *task, *done, *count;
  GtkWidget *done_row, *back, *next;
  gboolean is_last; /* step */
  GtkScrolledWindow *scroller;
  GdkRectangle place; /* pointed at; of no width: nothing is */
  int width, height;  /* of the parent when it was placed */
  int shown_width, shown_height;
};

G_DEFINE_FINAL_TYPE (TdTourBubble, td_tour_bubble, GTK_TYPE_POPOVER)

static GtkLabel *
new_label (const char *style)
{
  GtkLabel *label = GTK_LABEL (gtk_label_new (NULL));
  gtk_label_set_wrap (label, TRUE);
  gtk_label_set_xalign (label, 0);
  gtk_widget_add_css_class (GTK_WIDGET (label), style);
  return label;
}

static GtkWidget *
new_button (const char *label, const char *action)
{
  GtkWidget *button = gtk_button_new_with_mnemonic (label);
  gtk_actionable_set_action_name (GTK_ACTIONABLE (button), action);
  return button;
}

static GtkWidget *
new_words (TdTourBubble *self)
{
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 9);
  self->text = new_label ("body");
  self->task = new_label ("accent");
  gtk_label_set_text (self->task, _ ("Try it yourself: this goes on when you have done it."));
  self->done = new_label ("success");
  self->done_row = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  GtkWidget *mark = gtk_image_new_from_icon_name ("object-select-symbolic");
  gtk_widget_add_css_class (mark, "success");
  gtk_widget_set_valign (mark, GTK_ALIGN_START);
  gtk_box_append (GTK_BOX (self->done_row), mark);
  gtk_box_append (GTK_BOX (self->done_row), GTK_WIDGET (self->done));
  gtk_box_append (GTK_BOX (box), GTK_WIDGET (self->text));
  gtk_box_append (GTK_BOX (box), GTK_WIDGET (self->task));
  gtk_box_append (GTK_BOX (box), self->done_row);
  return box;
}

static GtkWidget *
new_buttons (TdTourBubble *self)
{
  GtkWidget *row = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  self->count = new_label ("dim-label");
  gtk_label_set_wrap (self->count, FALSE);
  gtk_widget_set_hexpand (GTK_WIDGET (self->count), TRUE);
  self->back = new_button ("_Back", "win.lesson-back");
  self->next = new_button ("_Next", "win.lesson-next");
  gtk_box_append (GTK_BOX (row), GTK_WIDGET (self->count));
  gtk_box_append (GTK_BOX (row), self->back);
  gtk_box_append (GTK_BOX (row), self->next);
  return row;
}

/* Keys of the window do what they do elsewhere: of a popover GTK would not hand them on. What
 * moves about in the bubble and presses its buttons stays here. */
static gboolean
key_pressed (GtkEventControllerKey *keys, guint keyval, guint keycode, GdkModifierType state,
             TdTourBubble *self)
{
  gboolean is_function
      = keyval == GDK_KEY_Escape || (keyval >= GDK_KEY_F1 && keyval <= GDK_KEY_F12);
  if (!is_function && !(state & (GDK_CONTROL_MASK | GDK_ALT_MASK)))
    return FALSE;
  return gtk_event_controller_key_forward (
      keys, GTK_WIDGET (gtk_widget_get_root (GTK_WIDGET (self))));
}

static void
listen_to_keys (TdTourBubble *self)
{
  GtkEventController *keys = gtk_event_controller_key_new ();
  gtk_event_controller_set_propagation_phase (keys, GTK_PHASE_CAPTURE);
  g_signal_connect (keys, "key-pressed", G_CALLBACK (key_pressed), self);
  gtk_widget_add_controller (GTK_WIDGET (self), keys);
}

static void
td_tour_bubble_init (TdTourBubble *self)
{
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 9);
  GtkWidget *head = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  GtkWidget *close = new_button ("_Close", "win.lesson-close");
  self->title = new_label ("heading");
  gtk_widget_set_hexpand (GTK_WIDGET (self->title), TRUE);
  gtk_widget_set_valign (close, GTK_ALIGN_START);
  gtk_widget_add_css_class (close, "flat");
  gtk_box_append (GTK_BOX (head), GTK_WIDGET (self->title));
  gtk_box_append (GTK_BOX (head), close);
  self->scroller = GTK_SCROLLED_WINDOW (gtk_scrolled_window_new ());
  gtk_scrolled_window_set_policy (self->scroller, GTK_POLICY_NEVER, GTK_POLICY_AUTOMATIC);
  gtk_scrolled_window_set_propagate_natural_height (self->scroller, TRUE);
  gtk_scrolled_window_set_propagate_natural_width (self->scroller, TRUE);
  gtk_scrolled_window_set_child (self->scroller, new_words (self));
  gtk_box_append (GTK_BOX (box), head);
  gtk_box_append (GTK_BOX (box), GTK_WIDGET (self->scroller));
  gtk_box_append (GTK_BOX (box), new_buttons (self));
  gtk_popover_set_child (GTK_POPOVER (self), box);
  gtk_popover_set_autohide (GTK_POPOVER (self), FALSE);
  listen_to_keys (self);
  gtk_widget_add_css_class (GTK_WIDGET (self), "td-tour");
  gtk_widget_set_name (GTK_WIDGET (self), "tour");
}

static void
td_tour_bubble_class_init (TdTourBubbleClass *klass)
{
  gtk_widget_class_set_accessible_role (GTK_WIDGET_CLASS (klass), GTK_ACCESSIBLE_ROLE_DIALOG);
}

TdTourBubble *
td_tour_bubble_new (GtkWidget *parent)
{
  TdTourBubble *self = g_object_new (TD_TYPE_TOUR_BUBBLE, NULL);
  gtk_widget_set_parent (GTK_WIDGET (self), parent);
  return self;
}

/* ---- what it says ---- */

/* Until the task is done, going on is passing it over. */
static void
show_next (TdTourBubble *self, gboolean is_passing)
{
  gtk_button_set_label (GTK_BUTTON (self->next), is_passing      ? _ ("_Skip")
                                                 : self->is_last ? _ ("_Finish")
                                                                 : _ ("_Next"));
  if (is_passing)
    gtk_widget_remove_css_class (self->next, "suggested-action");
  else
    gtk_widget_add_css_class (self->next, "suggested-action");
}

void
td_tour_bubble_set_words (TdTourBubble *self, const TdTourWords *words)
{
  g_autofree char *count = g_strdup_printf ("%u of %u", words->step + 1, words->n_steps);
  self->is_last = words->step + 1 == words->n_steps;
  gtk_label_set_text (self->title, words->title);
  gtk_label_set_text (self->text, words->text);
  gtk_label_set_text (self->count, count);
  gtk_widget_set_visible (GTK_WIDGET (self->task), words->is_task);
  gtk_widget_set_visible (self->done_row, FALSE);
  show_next (self, words->is_task);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  words->title, GTK_ACCESSIBLE_PROPERTY_DESCRIPTION,
                                  words->text, -1);
  self->width = 0; /* it is of another size now */
}

void
td_tour_bubble_set_done (TdTourBubble *self, const char *text)
{
  gtk_widget_set_visible (GTK_WIDGET (self->task), FALSE);
  gtk_label_set_text (self->done, text);
  gtk_widget_set_visible (self->done_row, TRUE);
  show_next (self, FALSE);
  self->width = 0;
}

void
td_tour_bubble_take_focus (TdTourBubble *self)
{
  gtk_widget_grab_focus (self->next);
}

/* ---- where it stands ---- */

static void
set_width (TdTourBubble *self, int chars)
{
  GtkLabel *const labels[] = { self->text, self->task, self->done };
  for (guint i = 0; i < G_N_ELEMENTS (labels); i++)
    {
      gtk_label_set_max_width_chars (labels[i], chars);
      gtk_label_set_width_chars (labels[i], MIN (chars, 26));
    }
  gtk_label_set_max_width_chars (self->title, chars - 8);
}

static gboolean
is_beside (GtkPositionType side)
{
  return side == GTK_POS_LEFT || side == GTK_POS_RIGHT;
}

/* The pixels between what is pointed at and the edge of the parent. */
static int
find_room (TdTourBubble *self, GtkPositionType side)
{
  const GdkRectangle *at = &self->place;
  const int rooms[] = { [GTK_POS_LEFT] = at->x,
                        [GTK_POS_RIGHT] = self->width - at->x - at->width,
                        [GTK_POS_TOP] = at->y,
                        [GTK_POS_BOTTOM] = self->height - at->y - at->height };
  return rooms[side] - ARROW;
}

static void
measure (TdTourBubble *self, int *width, int *height)
{
  gtk_widget_measure (GTK_WIDGET (self), GTK_ORIENTATION_HORIZONTAL, -1, NULL, width, NULL,
                      NULL);
  gtk_widget_measure (GTK_WIDGET (self), GTK_ORIENTATION_VERTICAL, *width, NULL, height, NULL,
                      NULL);
}

static gboolean
fits (TdTourBubble *self, GtkPositionType side, int width, int height)
{
  int room = find_room (self, side);
  return is_beside (side) ? width <= room && height <= self->height
                          : height <= room && width <= self->width;
}

/* How far a bubble of that length that is centred on a place would stand out of the parent, and
 * so is to be shifted. */
static int
find_shift (int middle, int length, int whole)
{
  int half = length / 2 + EDGE;
  int before = MAX (0, half - middle), after = MAX (0, middle + half - whole);
  return before > 0 ? before : -after;
}

static void
stand_at (TdTourBubble *self, GtkPositionType side, int width, int height)
{
  /* A surface that is to be smaller would move, and keep its size. */
  if (width < self->shown_width || height < self->shown_height)
    gtk_popover_popdown (GTK_POPOVER (self));
  self->shown_width = width;
  self->shown_height = height;
  const GdkRectangle *at = &self->place;
  int x = find_shift (at->x + at->width / 2, width, self->width),
      y = find_shift (at->y + at->height / 2, height, self->height);
  gtk_popover_set_position (GTK_POPOVER (self), side);
  gtk_popover_set_offset (GTK_POPOVER (self), is_beside (side) ? 0 : x,
                          is_beside (side) ? y : 0);
}

/* The widest text that has room somewhere; where none has, the side with most of it, and what
 * is too long is scrolled. */
static void
place (TdTourBubble *self)
{
  int width, height;
  gtk_scrolled_window_set_max_content_height (self->scroller, -1);
  for (guint w = 0; w < G_N_ELEMENTS (widths); w++)
    {
      set_width (self, widths[w]);
      measure (self, &width, &height);
      for (guint s = 0; s < G_N_ELEMENTS (sides); s++)
        if (fits (self, sides[s], width, height))
          {
            stand_at (self, sides[s], width, height);
            return;
          }
    }
  GtkPositionType side = find_room (self, GTK_POS_TOP) > find_room (self, GTK_POS_BOTTOM)
                             ? GTK_POS_TOP
                             : GTK_POS_BOTTOM;
  set_width (self, widths[0]);
  measure (self, &width, &height);
  int text;
  gtk_widget_measure (GTK_WIDGET (self->scroller), GTK_ORIENTATION_VERTICAL, width, NULL, &text,
                      NULL, NULL);
  gtk_scrolled_window_set_max_content_height (
      self->scroller, MAX (48, text - (height - find_room (self, side))));
  measure (self, &width, &height);
  stand_at (self, side, width, height);
}

void
td_tour_bubble_point_at (TdTourBubble *self, const GdkRectangle *at)
{
  GtkWidget *parent = gtk_widget_get_parent (GTK_WIDGET (self));
  int width = gtk_widget_get_width (parent), height = gtk_widget_get_height (parent);
  GdkRectangle middle = { width / 2, height / 2, 1, 1 };
  const GdkRectangle *to = at ? at : &middle;
  int own_width, own_height; /* which its style may change when it is on show first */
  measure (self, &own_width, &own_height);
  if (gdk_rectangle_equal (to, &self->place) && width == self->width && height == self->height
      && own_width == self->shown_width && own_height == self->shown_height
      && gtk_widget_get_visible (GTK_WIDGET (self)))
    return;
  self->place = *to;
  self->width = width;
  self->height = height;
  gtk_popover_set_has_arrow (GTK_POPOVER (self), at != NULL);
  place (self);
  gtk_popover_set_pointing_to (GTK_POPOVER (self), to);
  if (!gtk_widget_get_visible (GTK_WIDGET (self)))
    {
      gtk_popover_popup (GTK_POPOVER (self));
      td_tour_bubble_take_focus (self);
    }
}
