/*
 * What the views of tapedeck show share.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "memory/td-growth.h"
#include "schedule/td-flame.h"
#include "scene/td-panel.h"
#include "scene/td-sink.h"
#include "td-session.h"

typedef struct
{
  const char *tape, *view, *format, *out, *theme, *node, *function, *rules, *recompute,
      *against;
  gint64 iteration;
  gint event, fold, width, height, fit, schedule, newest;
  double scale;
  gboolean fold_given, iteration_given, discarded;
  TdRange range; /* of iterations, of views over the run; empty: all */
  TdHoldersBy by;
  TdFlameSize flame_by;
  TdFlameKind flame_kind;
  const char *by_given; /* NULL: nothing was */
  TdSession *session;
  TdTapeReader *reader;
  TdIteration *it; /* NULL for views over the whole run */
  guint64 key;     /* of --node; 0: none */
  TdPanelView panel;
} Show;

/** The view of what was reported, and those of memory. Owner: the caller. */
char *td__show_curves_print (Show *s, GError **error);
TdScene *td__show_curves_draw (Show *s, GError **error);
gboolean td__show_memory_write (Show *s, TdSink *sink, GError **error);
TdScene *td__show_memory_draw (Show *s, GError **error);
gboolean td__show_blocks_write (Show *s, TdSink *sink, GError **error);
/** Find the node whose block --node names by an address in it. FALSE: it names none. */
gboolean td__show_find_address (Show *s);
TdScene *td__show_blocks_draw (Show *s, GError **error);
char *td__show_holders_print (Show *s, GError **error);
TdScene *td__show_holders_draw (Show *s, GError **error);
char *td__show_what_if_print (Show *s, GError **error);
TdScene *td__show_what_if_draw (Show *s, GError **error);
char *td__show_retained_print (Show *s, GError **error);
TdScene *td__show_retained_draw (Show *s, GError **error);

/** The views of gradients. Owner: the caller. */
char *td__show_gradients_print (Show *s, GError **error);
TdScene *td__show_gradients_draw (Show *s, GError **error);
char *td__show_findings_print (Show *s, GError **error);
TdScene *td__show_findings_draw (Show *s, GError **error);
char *td__show_ridge_print (Show *s, GError **error);
TdScene *td__show_ridge_draw (Show *s, GError **error);

/** The views graph and backward, and origin, which is drawn in the graph. Owner: the caller. */
gboolean td__show_graph_write (Show *s, TdSink *sink, GError **error);
TdScene *td__show_graph_draw (Show *s, GError **error);
char *td__show_origin_print (Show *s, GError **error);
TdScene *td__show_origin_draw (Show *s, GError **error);

/** The views schedule, timeline, which has events only, and explain. Owner: the caller. */
gboolean td__show_schedule_write (Show *s, TdSink *sink, GError **error);
TdScene *td__show_schedule_draw (Show *s, GError **error);
TdScene *td__show_timeline_draw (Show *s, GError **error);
char *td__show_explain_print (Show *s, GError **error);
TdScene *td__show_explain_draw (Show *s, GError **error);

/** Set an error of one line. Returns FALSE. */
gboolean td__show_trouble (GError **error, const char *text);

/** The view flame. Owner: the caller. */
gboolean td__show_flame_write (Show *s, TdSink *sink, GError **error);
TdScene *td__show_flame_draw (Show *s, GError **error);
/** Set what --by names for it. FALSE: nothing is called so. */
gboolean td__show_flame_by (Show *s, const char *name);
/** Say whether the view knows what --by names, if it was given. */
gboolean td__show_by_fits (const Show *s);
