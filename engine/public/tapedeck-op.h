/* For people who write their own operations: the class of an operation and how to call one.
 *
 * An operation is a const TdOpClass: infer checks shapes and dtypes before anything is
 * allocated, forward computes from attributes and inputs alone (randomness is an attribute),
 * backward is written in operations, so that gradients have gradients.  Register nothing: pass
 * the class to td_apply.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdarg.h>

#include "tapedeck.h"

TD_BEGIN_DECLS

/** In which order the elements of an array lie in memory.  Its shape is the same in both. */
typedef enum
{
  TD_ROW_MAJOR,    /**< the last axis fastest */
  TD_CHANNELS_LAST /**< as if axis 1 came last: (n, h, w, c) of a shape (n, c, h, w) */
} TdLayout;

/** What a kernel sees of an array: contiguous, on the call's device; row-major, unless the
 * operation's class says that it takes the other layout. */
typedef struct TdTensor
{
  void *data;
  TdShape *shape;
  int64_t size; /**< elements */
  TdDtype dtype;
  uint8_t layout; /**< a TdLayout; of arrays that both layouts fit it is TD_ROW_MAJOR */
} TdTensor;

/** One call of an operation, for infer and forward. */
typedef struct TdOpCall
{
  const TdOpClass *cls;
  const void *attrs;
  TdDevice *device;
  int n_in, n_out;
  const TdTensor *in;
  TdTensor *out;                  /**< infer fills dtype and *shape, forward the data */
  bool accumulate;                /**< forward adds to out[0] instead of overwriting it */
  const struct TdProductEnd *end; /**< what a fused group does besides, only of classes that are
                                     TD_OP_ENDS; else NULL */
  const struct TdRowJoin *join;   /**< the same of row norms and softmax */
  uint8_t layout;                 /**< a TdLayout: what operands were brought to */
} TdOpCall;

/** One step of backward: gradients of the outputs in, gradients of the inputs out. */
typedef struct TdBackward
{
  const TdOpClass *cls;
  const void *attrs;
  int n_in, n_out;
  TdVar *const *gy; /**< NULL where no gradient arrived */
  TdVar **gx;       /**< fill where td_backward_needs; NULL means no gradient */
  void *priv;
} TdBackward;

enum
{
  TD_OP_ELEMENTWISE = 1, /**< out[0][i] depends on in[*][i] only (after broadcasting) */
  TD_OP_VIEW = 2,        /**< out[0] shares in[0]'s memory; forward is not called */
  TD_OP_ACCUMULATES = 4, /**< forward obeys call->accumulate */
  TD_OP_RANDOM = 8,      /**< attributes begin with a TdRngKey */
  TD_OP_NO_GRAD = 16,    /**< outputs never want a gradient */
  TD_OP_STATEFUL = 32,   /**< writes inputs in place: those of the class's `writes` mask */
  TD_OP_CAPTURES = 128,  /**< uses variables that are no inputs: its graph is kept, and backward
                            called, though no input wants a gradient */
  TD_OP_HOST = 64,       /**< a user's own forward that reads host memory: on a device that has
                            none operands are copied to the host, and results back; without this
                            or TD_OP_DEVICE, its call is an error there */
  TD_OP_LAYOUTS = 256,   /**< forward takes channels-last operands, then all of them and all
                            outputs of 3 axes and more are; of others those do that are
                            TD_OP_ELEMENTWISE, of operands of one shape */
  TD_OP_IMAGES = 512,    /**< and wants them to be so where the device does */
  TD_OP_ENDS = 1024,     /**< a product or convolution: forward does what call->end says */
  TD_OP_WORKSPACE = 2048, /**< outputs are what a library works in: their memory's category */
  TD_OP_DEVICE = 4096,    /**< a user's own forward that computes where call->device has its
                               memory */
  TD_OP_FILLS = 8192      /**< what it writes in place it does not read */
};

/** Kinds of attribute, for printing, parsing (tapedeck eval) and the tape. */
typedef enum
{
  TD_ATTR_INT,
  TD_ATTR_DOUBLE,
  TD_ATTR_BOOL,
  TD_ATTR_INTS,  /**< int[count], count given */
  TD_ATTR_SHAPE, /**< TdShape */
  TD_ATTR_DTYPE, /**< int holding a TdDtype */
  TD_ATTR_U64,
  TD_ATTR_CHOICE /**< int, the place of a word in `choices` */
} TdAttrKind;

/** One attribute of an operation: its Chainer name, where it lies, its default as text. */
typedef struct TdAttr
{
  const char *name;
  TdAttrKind kind;
  size_t offset;
  int count;       /**< of TD_ATTR_INTS; 0 with n_offset */
  size_t n_offset; /**< where the int that counts variable TD_ATTR_INTS lies, or 0 */
  const char *default_text;
  const char *const *choices; /**< of TD_ATTR_CHOICE, ended by NULL */
} TdAttr;

/** A place in the Philox stream that belongs to one call. */
typedef struct TdRngKey
{
  uint64_t seed, offset;
} TdRngKey;

struct TdOpClass
{
  const char *name; /**< "max_pooling_2d" */
  const char
      *label; /**< Chainer's label in graphs ("MaxPooling2D"); NULL: by `print` or name */
  const char *group;         /**< "activation", "array", "math", "connection", "loss", ... */
  const char *formula;       /**< one line of text */
  int8_t n_in_min, n_in_max; /**< n_in_max -1: any number */
  int8_t n_out;              /**< -1: as many as the caller asks for */
  unsigned flags;
  uint32_t retain_in, retain_out; /**< bit i: backward needs that array */
  uint32_t no_grad_in;            /**< bit i: input never gets a gradient (labels, indices) */
  uint32_t writes;                /**< bit i: forward writes input i in place */
  uint32_t opaque_out;            /**< bit i: what output i holds is for backward alone, and its
                                     bytes may differ between two runs of the same call */
  const char *const *in_names;    /**< operand names for messages */
  size_t attrs_size;
  const TdAttr *attrs;
  int n_attrs;
  TdStatus (*infer) (TdOpCall *call);
  TdStatus (*forward) (TdOpCall *call);
  TdStatus (*backward) (
      TdBackward *b); /**< gx[i]: of input i's shape and dtype.  NULL: an error
                         where a gradient arrives, unless TD_OP_NO_GRAD */
  void (*print) (const void *attrs, char *text,
                 size_t size);   /**< Chainer's label text, "_ + 1" */
  void (*release) (void *attrs); /**< the graph's record of a call ends; may be NULL */
  /** With TD_OP_LAYOUTS, where it depends: may in[0], of this shape, be channels-last?  Then
   * outputs are row-major. */
  bool (*takes_layout) (const void *attrs, const TdShape *x);
};

/** Call an operation.  out[0 .. n_out-1] are poisoned on error.  *Owner*: the innermost
 * scope. */
TD_API TdStatus td_apply_at (const TdOpClass *cls, const void *attrs, TdVar *const *in,
                             int n_in, TdVar **out, int n_out, const TdSite *site);
TD_API TdStatus td_apply (const TdOpClass *cls, const void *attrs, TdVar *const *in, int n_in,
                          TdVar **out, int n_out);
#if !defined(TD_NO_SITES)
#define td_apply(...) td_apply_at (__VA_ARGS__, TD_HERE)
#endif

/** Fail a call from infer or forward: the message gets operation, link path and place added.
 */
TD_API TdStatus td_op_fail (const TdOpCall *call, TdStatus status, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));
/** Fail with "x (2, 3) f32, W (5, 4) f32" appended: every operand's name, shape and dtype. */
TD_API TdStatus td_op_fail_operands (const TdOpCall *call, TdStatus status, const char *format,
                                     ...) __attribute__ ((format (printf, 3, 4)));
/** Set output i's dtype and shape (from infer).  *Errors*: TD_ERR_SHAPE for sizes that
 * overflow. */
TD_API TdStatus td_op_out (TdOpCall *call, int i, TdDtype dtype, const TdShape *shape);
/** Memory for the length of this forward; a second call gives the first back. *Owner*: the
 * call. */
TD_API void *td_op_workspace (TdOpCall *call, size_t bytes);

/** Say whether input i wants a gradient. */
TD_API bool td_backward_needs (const TdBackward *b, int i);
/** A retained input or output as a variable.  *Owner*: the step's scope. */
TD_API TdVar *td_backward_input (TdBackward *b, int i);
TD_API TdVar *td_backward_output (TdBackward *b, int i);
TD_API const TdShape *td_backward_in_shape (const TdBackward *b, int i);
TD_API TdDtype td_backward_in_dtype (const TdBackward *b, int i);
TD_API const TdShape *td_backward_out_shape (const TdBackward *b, int i);
TD_API TdDtype td_backward_out_dtype (const TdBackward *b, int i);
/** The next operation call computes gx[i]: let it add into the gradient that is there
 * already, where that is allowed (its class ACCUMULATES, no double backprop, nobody else
 * holds it).  Its result is gx[i] as it is: whatever else is done to it is an error. */
TD_API void td_backward_into (TdBackward *b, int i);

/** The engine's own operations: how many there are, and each of them; NULL beyond the last. */
TD_API int td_op_class_count (void);
TD_API const TdOpClass *td_op_class_at (int i);
/** The engine's operation of that name, or NULL. */
TD_API const TdOpClass *td_op_class_find (const char *name);

/** In which order the elements of v lie in memory.  All reads are of the logical order. */
TD_API TdLayout td_layout (const TdVar *v);

/** Text of a shape, "(2, 3)", "(5)", "()". */
TD_API const char *td_shape_text (const TdShape *shape, char *text, size_t size);
TD_API int64_t td_shape_size (const TdShape *shape);
TD_API bool td_shape_equal (const TdShape *a, const TdShape *b);

TD_END_DECLS
