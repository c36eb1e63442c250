/* The process that runs Graphviz: started when first needed, killed when it is late.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <gio/gio.h>

typedef struct TdLayoutHelper TdLayoutHelper;

/** Start the helper. Errors: NULL when it is not installed. Owner: the caller. */
TdLayoutHelper *td__layout_helper_new (GError **error);
/** Kill it and wait for its end. */
void td__layout_helper_free (TdLayoutHelper *self);
/** Send `request`, read a whole answer into `reply`. `deadline_us` is on the monotonic clock.
 * Errors: timed out, cancelled, or died; the helper is of no use any more then. */
gboolean td__layout_helper_ask (TdLayoutHelper *self, const char *request, gsize n_request,
                                GString *reply, gint64 deadline_us, GCancellable *cancellable,
                                GError **error);
/** Say where the helper is looked for, first that exists. Owner: the caller; NULL: nowhere. */
char *td__layout_helper_find (void);
