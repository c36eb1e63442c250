/* The range of iterations that every panel over the run is narrowed to.
 * SPDX-License-Identifier: MIT */
#include "window/td-window-private.h"

#include <glib/gi18n-lib.h>

void
td__run_range (TdWindow *self, const char *parameter)
{
  TdRange range;
  if (td_range_parse (parameter, &range))
    td_session_set_range (self->session, range);
  else
    td__window_toast (self, _ ("A range is two numbers of iterations, as in 10..40."));
}

/* The end that is not said stays where it was, or is that of the run. */
void
td__run_range_from_here (TdWindow *self, const char *parameter)
{
  gint64 here = td_session_get_moment (self->session).iteration;
  TdRange range = td_session_get_range (self->session);
  range.end = here < range.end ? range.end : G_MAXINT64;
  range.first = here;
  td_session_set_range (self->session, range);
}

void
td__run_range_to_here (TdWindow *self, const char *parameter)
{
  gint64 here = td_session_get_moment (self->session).iteration;
  TdRange range = td_session_get_range (self->session);
  range.first = here >= range.first ? range.first : 0;
  range.end = here + 1;
  td_session_set_range (self->session, range);
}

void
td__run_clear_range (TdWindow *self, const char *parameter)
{
  td_session_set_range (self->session, (TdRange){ 0, 0 });
}
