/*
 * Whole stacks of an iteration (td-tape-stacks.h): which one an event or a variable has, and
 * its calls, innermost first.
 *
 * SPDX-License-Identifier: MIT
 */
#pragma once

#include "td-iteration.h"

G_BEGIN_DECLS

/** A call of a stack. Owner of the texts: the iteration. */
typedef struct
{
  guint32 call; /* its number in the iteration's tree of calls */
  guint32 site;
  guint32 line;                /* 0: not known, as of most of C++ */
  const char *function, *file; /* "" where not known */
} TdStackFrame;

/** Return the stack in which an event happened, or in which a variable was allocated: the
 * number of its innermost call; 0: it is not known. */
guint32 td_stack_of_event (const TdIteration *iteration, guint event);
guint32 td_stack_of_var (const TdIteration *iteration, guint var);

/** Return the call around one; 0: none. */
guint32 td_stack_outer (const TdIteration *iteration, guint32 call);
/** Say whether the stack goes through this call. */
gboolean td_stack_has (const TdIteration *iteration, guint32 stack, guint32 call);

/** List its calls, innermost first: an array of TdStackFrame. Owner: the caller. */
GArray *td_stack_list (const TdIteration *iteration, guint32 stack);
TdStackFrame td_stack_frame (const TdIteration *iteration, guint32 call);

/** Write where a call is, "/src/train.py:12"; "": not known. Owner: the caller. */
char *td_stack_frame_dup_place (const TdStackFrame *frame);
/** Write "forward (/src/train.py:12)", and for narrow places "forward (train.py:12)". Owner:
 * the caller. */
char *td_stack_frame_dup_text (const TdStackFrame *frame);
char *td_stack_frame_dup_short (const TdStackFrame *frame);
/** Write all frames (an array of TdStackFrame), a line each. Owner: the caller. */
char *td_stack_frames_print (const GArray *frames, const char *indent);

/* Calls that stand beside each other in a stack: one, or several that are folded away. */
typedef struct
{
  guint first, n;
} TdStackFold;

/** Fold frames for who looks at them: runs without a line, and the middle of what is long
 * still. An array of TdStackFold. Owner: the caller. */
GArray *td_stack_fold (const GArray *frames);
/** Say what is folded away: "23 calls without a line", "41 more calls". Owner: the caller. */
char *td_stack_fold_dup_text (const GArray *frames, const TdStackFold *fold);

/** Return what the program said of an allocation (_set_memory_metadata of PyTorch), or all that
 * an annotation says, "device=0 stage=START name=forward"; "": nothing. Owner: the iteration.
 */
const char *td_stack_metadata (const TdIteration *iteration, guint event);

G_END_DECLS
