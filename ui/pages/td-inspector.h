/* The inspector: everything that the recording knows of what is selected, or of the operation
 * at the playhead when nothing is. SPDX-License-Identifier: MIT */
#pragma once

#include <adwaita.h>

#include "td-session.h"
#include "gradient/td-tensor.h"
#include "pages/td-inside-page.h"
#include "pages/td-stack-page.h"
#include "pages/td-tensor-panel.h"

#define TD_TYPE_INSPECTOR (td_inspector_get_type ())
G_DECLARE_FINAL_TYPE (TdInspector, td_inspector, TD, INSPECTOR, GtkWidget)

/** Create the inspector. Signal "read" (guint64 id): values of this variable are not recorded
 *  and could be asked of the running program. Owner: floating. */
GtkWidget *td_inspector_new (void);

void td_inspector_set_session (TdInspector *self, TdSession *session);

/** Show one of the pages value, gradient, op, life, links, inside where a fused group is looked
 * at, and stack where the recording has stacks. FALSE: there is none such. */
gboolean td_inspector_show_page (TdInspector *self, const char *name);

/** Show values that were read from the running program, if variable `id` (engine's) is still
 * the one looked at. Owner: takes `tensor`. */
void td_inspector_take_live (TdInspector *self, guint64 id, TdTensor *tensor);

/** Show how far recomputing is (td_tensor_panel_set_recomputing). */
void td_inspector_set_recomputing (TdInspector *self, double part);

/** Return the page about the inside of a fused group. Owner: the inspector. */
TdInsidePage *td_inspector_get_inside (TdInspector *self);

/** Return the page of stacks. Owner: the inspector. */
TdStackPage *td_inspector_get_stack (TdInspector *self);

/** Return the title on show. */
const char *td_inspector_get_title (TdInspector *self);

/** Return the tensor on the Value page, NULL if there is none. Owner: the inspector. */
const TdTensor *td_inspector_get_tensor (TdInspector *self);

/** Return the panel of the page on show, the value's where that is none. Owner: the inspector.
 */
TdTensorPanel *td_inspector_get_panel (TdInspector *self);
/** Return the name of its page. */
const char *td_inspector_get_panel_name (TdInspector *self);

/** Return the fact called `name` of the page on show ("Operation", "Layer"), NULL if it is not
 *  there. */
const char *td_inspector_find_fact (TdInspector *self, const char *name);
