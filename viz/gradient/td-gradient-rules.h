/*
 * Rules for gradients: which parameters do not learn, or learn too wildly, and what says so.
 *
 * They look at gradients as backward left them, before hooks of an optimizer: clipping would
 * hide what explodes, and decay what is dead.
 *
 * Rules are one line of text that a user can edit, "vanishing 1e-4, exploding 100, dead 5,
 * missing on, not-updated on", each a name with its limit or "off"; what is not named keeps its
 * usual limit.
 *
 *   vanishing X   gradient an element (L2 norm divided by the square root of the number of
 *                 elements) below X times the largest of the same iteration that does not
 *                 explode, in more than half of the iterations that it is known of
 *   exploding X   norm above X times the median of the parameter's norms in the iterations
 *                 before (three at least), or a NaN or an infinity in it
 *   dead N        the gradient was 0, but for what rounding leaves of a sum, in each of the
 * last N iterations that it is known of missing on    an optimizer updates it, and no gradient
 * ever reached it not-updated on  optimizers update others, and never this one
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "td-gradient.h"

G_BEGIN_DECLS

typedef enum
{
  TD_RULE_VANISHING,
  TD_RULE_EXPLODING,
  TD_RULE_DEAD,
  TD_RULE_MISSING,
  TD_RULE_NOT_UPDATED,
  TD_N_RULES
} TdGradientRule;

/** Limits by rule; 0: the rule is off. */
typedef struct
{
  double limit[TD_N_RULES];
} TdGradientRules;

typedef struct
{
  TdGradientRule rule;
  guint row;             /* of the table */
  guint n, n_known;      /* iterations in which it held, of those in which that is known */
  gint64 iteration;      /* where it is seen best: the first, for what vanishes the worst */
  double value, measure; /* there: of the parameter, and what it is held against */
  gint other;            /* the row that `measure` is of; -1: its own */
  gboolean is_infinite;  /* NaN or infinite there */
  gboolean is_over;      /* and a number again in the last iteration that is known */
  gboolean is_rounding;  /* 0 but for rounding there */
} TdGradientFinding;

/** Return "vanishing", ... */
const char *td_gradient_rule_name (TdGradientRule rule);
/** Read rules; "" is the usual ones. FALSE: `error` says what is wrong and where. */
gboolean td_gradient_rules_parse (const char *text, TdGradientRules *rules, GError **error);

/** Apply the rules to the iterations that columns of this range show: by rule, and in a rule
 * the worst first. Owner: the caller; of TdGradientFinding. */
GArray *td_gradient_find (const TdGradientTable *table, const TdGradientRange *range,
                          const TdGradientRules *rules);
/** Return what is found, in a sentence without the parameter's name. Owner: the caller. */
char *td_gradient_finding_text (const TdGradientTable *table, const TdGradientFinding *finding);

/** Draw the list of findings under the rules' names; a press selects a parameter. */
TdScene *td_gradient_scene_findings (const TdGradientTable *table, const TdGradientRange *range,
                                     const TdGradientRules *rules, const TdPanelView *view);
/** Print it. format: "text", "csv" or "json". Owner: the caller. */
char *td_gradient_print_findings (const TdGradientTable *table, const TdGradientRange *range,
                                  const TdGradientRules *rules, const char *format);

G_END_DECLS
