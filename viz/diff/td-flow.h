/*
 * Where a C program may go one way or another: if, else, ?:, switch and loops of a source,
 * found by reading it. No compiler: macros are not expanded, and what cannot be read is left
 * out.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef enum
{
  TD_FLOW_IF,     /* also ?: */
  TD_FLOW_SWITCH, /* each case is a part */
  TD_FLOW_LOOP,
} TdFlowKind;

/** A half-open range of bytes of the text. */
typedef struct
{
  guint from, to;
} TdFlowRange;

typedef struct
{
  TdFlowKind kind;
  TdFlowRange all, condition;
  guint first_part, n_parts; /* IF: then, else; LOOP: the body; SWITCH: the cases */
  gboolean jumps;            /* IF: the then part ends in return, break, continue or goto, and
                                what comes after it in its block is the else part */
  gboolean leaves_loop;      /* jumps, by break or return */
  guint rest;                /* where the block that it stands in ends */
} TdFlowNode;

typedef struct
{
  TdFlowRange name, body;
  GArray *calls; /* guint: where its name stands elsewhere */
} TdFlowFunction;

typedef struct
{
  char *text; /* comments, texts and directives are blanks */
  guint n;
  GArray *lines;     /* guint: where each line begins, and the end */
  GArray *nodes;     /* TdFlowNode */
  GArray *parts;     /* TdFlowRange */
  GArray *functions; /* TdFlowFunction */
} TdFlow;

/** Read a source. Owner: the caller. */
TdFlow *td__flow_new (const char *text, gsize n);
void td__flow_free (TdFlow *flow);
/** Return the line of a byte. Units: lines from 1. */
guint td__flow_line (const TdFlow *flow, guint at);
/** Return the bytes of a line; an empty range beyond the end. */
TdFlowRange td__flow_line_range (const TdFlow *flow, guint line);
/** Copy a range of the original text as one line of at most `max` bytes. Owner: the caller. */
char *td__flow_dup_text (const char *text, TdFlowRange range, guint max);
/** Return the function whose body holds a byte, -1: none. */
gint td__flow_function_at (const TdFlow *flow, guint at);
/** List where a function is called, but by itself. Owner: borrowed. */
const guint *td__flow_calls (const TdFlow *flow, guint function, guint *n);
/** Find `word` as a whole identifier within a range, from `from` on. Return -1: none. */
gint td__flow_find_word (const TdFlow *flow, TdFlowRange range, const char *word);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (TdFlow, td__flow_free)

G_END_DECLS
