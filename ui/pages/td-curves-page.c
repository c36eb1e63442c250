/* One picture; the curves are the session's. SPDX-License-Identifier: MIT */
#include "pages/td-curves-page.h"

#include <glib/gi18n-lib.h>

#include "schedule/td-curve.h"

struct _TdCurvesPage
{
  TdPage parent;
};

G_DEFINE_FINAL_TYPE (TdCurvesPage, td_curves_page, TD_TYPE_PAGE)

static TdScene *
make_curves (TdPage *page, const TdPanelView *view)
{
  return td_curves_scene (td_session_get_curves (td_page_get_session (page)), view);
}

static const TdPicture pictures[]
    = { { "curves", N_ ("Curves"), N_ ("Reported values over the iterations"), make_curves,
          .spans = TRUE } };

static char *
dup_csv (TdPage *page, const char *name)
{
  TdSession *session = td_page_get_session (page);
  TdCurves *curves = session ? td_session_get_curves (session) : NULL;
  return curves ? td_curves_print (curves, td_session_get_range (session), "csv") : NULL;
}

static void
td_curves_page_class_init (TdCurvesPageClass *klass)
{
  TdPageClass *class = TD_PAGE_CLASS (klass);
  class->name = "curves";
  class->title = N_ ("Curves");
  class->dup_csv = dup_csv;
  class->pictures = pictures;
  class->n_pictures = G_N_ELEMENTS (pictures);
}

static void
td_curves_page_init (TdCurvesPage *self)
{
}

TdPage *
td_curves_page_new (void)
{
  return g_object_new (TD_TYPE_CURVES_PAGE, NULL);
}
