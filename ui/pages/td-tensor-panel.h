/* One tensor to look at: which slice of it, as a heat map or a table, and what is under the
 * pointer. The inspector has one for the value, one for the gradient.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <adwaita.h>

#include "gradient/td-tensor.h"
#include "td-session.h"

#define TD_TYPE_TENSOR_PANEL (td_tensor_panel_get_type ())
G_DECLARE_FINAL_TYPE (TdTensorPanel, td_tensor_panel, TD, TENSOR_PANEL, GtkWidget)

/** Create a panel. `label` names its picture; where there is no tensor it says `none`, and
 * below that `why`. Owner: floating. */
GtkWidget *td_tensor_panel_new (const char *label, const char *none, const char *why);

/** Show variable `var` of an iteration (-1: none) after `event` (-1: at the end). It is read
 * when it is first looked at. */
void td_tensor_panel_set_subject (TdTensorPanel *self, TdSession *session,
                                  TdIteration *iteration, gint var, gint event);
/** Show values that were read from the running program instead. Owner: takes `tensor`. */
void td_tensor_panel_take_live (TdTensorPanel *self, TdTensor *tensor);

/** Show how far recomputing is, 0 to 1, below values that are not recorded; below 0: it is not
 * under way, and what it brought is shown. */
void td_tensor_panel_set_recomputing (TdTensorPanel *self, double part);

/** Return all of the tensor; NULL: there is none. Owner: the panel. */
TdTensor *td_tensor_panel_get_tensor (TdTensorPanel *self);
/** Return what is on show of it: a slice, or what that is more than in another iteration.
 * Owner: the panel. */
TdTensor *td_tensor_panel_get_shown (TdTensorPanel *self);
/** Return the picture of it. Owner: the panel. */
GtkWidget *td_tensor_panel_get_picture (TdTensorPanel *self);

/** Take the words in its entry as the slice, as Enter there does. */
void td_tensor_panel_set_slice (TdTensorPanel *self, const char *text);
/** Show the difference to another iteration; -1: the values themselves. */
void td_tensor_panel_set_other (TdTensorPanel *self, gint64 iteration);
/** Return what is wrong with the slice, "": nothing. */
const char *td_tensor_panel_get_mistake (TdTensorPanel *self);
/** Return what is said about the difference and about values that are not there, "": nothing.
 */
const char *td_tensor_panel_get_said (TdTensorPanel *self);
/** Return the place and value that are read out. */
const char *td_tensor_panel_get_read_out (TdTensorPanel *self);
/** Show one of "map", "table", "images". FALSE: there is none such. */
gboolean td_tensor_panel_show_view (TdTensorPanel *self, const char *name);
/** Give the entry of the slice the focus. */
void td_tensor_panel_focus_slice (TdTensorPanel *self);
