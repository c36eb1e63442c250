/* The bar above the picture of static functions. SPDX-License-Identifier: MIT */
#pragma once

#include "pages/td-schedule-data.h"

/** Create the bar for the page that `data` is embedded in. Owner: floating. */
GtkWidget *td__static_bar_new (TdScheduleData *data);

/** Show what the moment has, if the bar is on show. */
void td__static_bar_update (GtkWidget *bar);
