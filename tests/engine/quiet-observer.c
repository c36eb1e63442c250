/* What an observer has to answer to, and an answer that does nothing, for each.
 *
 * SPDX-License-Identifier: MIT */
#include "quiet-observer.h"

/* clang-format off */
static void no_op (TdObserver *o, const TdEvent *e) { (void)o; (void)e; }
static void no_buffer (TdObserver *o, const struct TdBuffer *b) { (void)o; (void)b; }
static void no_scope (TdObserver *o, bool open, const TdScope *s) { (void)o; (void)open; (void)s; }
static void no_link (TdObserver *o, bool e, const TdPath *p, const TdSite *s) { (void)o; (void)e; (void)p; (void)s; }
static void no_iteration (TdObserver *o, bool b, int64_t n, int64_t l, const TdSite *s) { (void)o; (void)b; (void)n; (void)l; (void)s; }
static void no_backward (TdObserver *o, bool b, const TdSite *s) { (void)o; (void)b; (void)s; }
static void no_gradient (TdObserver *o, struct TdNode *a, struct TdNode *b) { (void)o; (void)a; (void)b; }
static void no_report (TdObserver *o, const char *key, double value) { (void)o; (void)key; (void)value; }
static void no_node (TdObserver *o, struct TdNode *n, const TdSite *s) { (void)o; (void)n; (void)s; }
static void no_name (TdObserver *o, struct TdNode *n, const char *name) { (void)o; (void)n; (void)name; }
static void no_error (TdObserver *o, const TdError *e) { (void)o; (void)e; }
static void no_config (TdObserver *o, const char *f, int v) { (void)o; (void)f; (void)v; }
static void no_param (TdObserver *o, const TdPath *p, const TdVar *v, bool l) { (void)l; (void)o; (void)p; (void)v; }
static void no_finish (TdObserver *o, int s) { (void)o; (void)s; }
/* clang-format on */

const TdObserver quiet_observer = { .before_op = no_op,
                                    .after_op = no_op,
                                    .buffer_new = no_buffer,
                                    .buffer_free = no_buffer,
                                    .scope = no_scope,
                                    .link = no_link,
                                    .iteration = no_iteration,
                                    .backward = no_backward,
                                    .gradient = no_gradient,
                                    .report = no_report,
                                    .host_read = no_node,
                                    .write = no_node,
                                    .unchain = no_node,
                                    .name = no_name,
                                    .error = no_error,
                                    .config = no_config,
                                    .param = no_param,
                                    .finish = no_finish };
