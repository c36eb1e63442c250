/* What operations, backward and links ask of the hooks: the program's own functions that want
 * to hear of them.  Whoever keeps the hooks fills the table.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tapedeck-op.h"
#include "tapedeck-hooks.h"

struct TdOp;
struct TdPath;

typedef enum
{
  TD_MOMENT_FORWARD_PRE,
  TD_MOMENT_FORWARD_POST,
  TD_MOMENT_BACKWARD_PRE,
  TD_MOMENT_BACKWARD_POST,
  TD_MOMENT_N
} TdMoment;

typedef struct TdLinkWalk TdLinkWalk; /* the hooked link calls that a backward passes through */

/** TdEngine.hooks; who calls it twice keeps the pointer: the first hook may take all away. */
typedef struct TdHookTable
{
  void (*function) (TdMoment moment, TdFunctionCall *call);
  /** Say whether a hook wants to see every operation, whatever its name. */
  bool (*sees_steps) (void);
  TdLinkWalk *(*backward_begin) (void); /**< NULL: there are none */
  /** Backward comes to op, whose outputs' gradients are complete; those of touched nodes are
   * where they collect. */
  void (*backward_reach) (TdLinkWalk *walk, const struct TdOp *op, void *const *touched,
                          size_t n_touched);
  /** Backward of op made these gradients of its inputs. */
  void (*backward_made) (TdLinkWalk *walk, const struct TdOp *op, TdVar *const *gx);
  void (*backward_end) (TdLinkWalk *walk, TdStatus status);
  /** Say whether a call of this link is anybody's business. */
  bool (*link_wanted) (uint64_t link_id);
  /** Call a hook's function of a link at one moment; those of everything and of this link. */
  void (*link) (TdMoment moment, uint64_t link_id, TdLinkCall *call);
  /** Remember a link call's operations first .. last for backward, if a hook wants it. */
  void (*link_record) (uint64_t link_id, const struct TdPath *path, const TdSite *site,
                       uint64_t first, TdVar *const *in, int n_in, TdVar *const *out,
                       int n_out);
} TdHookTable;
