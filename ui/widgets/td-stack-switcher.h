/* The pages of a stack as buttons in a row where there is room for them, else as a menu: a
 * panel is never wider than its place. SPDX-License-Identifier: MIT */
#pragma once

#include <gtk/gtk.h>

#define TD_TYPE_STACK_SWITCHER (td_stack_switcher_get_type ())
G_DECLARE_FINAL_TYPE (TdStackSwitcher, td_stack_switcher, TD, STACK_SWITCHER, GtkWidget)

GtkWidget *td_stack_switcher_new (GtkStack *stack);
