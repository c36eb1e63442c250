/* Links, optimizers and files: what a training program is written with.  Included by
 * tapedeck.h.
 *
 * Names and argument order are Chainer's.  Constructors return inert objects on error, never
 * NULL: calls on them fail again, and td_error () holds the first failure.  Named options are
 * given as designators (td_adam_new (model, .lr = 1e-4)); the constructor with a trailing
 * underscore takes a pointer to options instead, NULL meaning the defaults.  Everything made
 * here is released by td_finish, or earlier by its _free.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

TD_BEGIN_DECLS

/** A size that the link takes from its first input (Chainer's None). */
#define TD_INFER (-1)

/* --- initialisers ------------------------------------------------------------------------- */
typedef enum
{
  TD_INIT_DEFAULT, /**< what the link uses unless told otherwise */
  TD_INIT_CONSTANT,
  TD_INIT_IDENTITY,
  TD_INIT_NORMAL,
  TD_INIT_LECUN_NORMAL,
  TD_INIT_GLOROT_NORMAL,
  TD_INIT_HE_NORMAL,
  TD_INIT_UNIFORM,
  TD_INIT_LECUN_UNIFORM,
  TD_INIT_GLOROT_UNIFORM,
  TD_INIT_HE_UNIFORM,
  TD_INIT_ORTHOGONAL,
  TD_INIT_UPSAMPLING_DECONV,
  TD_INIT_DOWNSAMPLING_CONV
} TdInitKind;
/** How an array gets its first numbers, from the engine's Philox stream. */
typedef struct
{
  TdInitKind kind;
  double scale; /**< the constant, or what the standard deviation or bound is multiplied by */
} TdInit;
/** *Source*: chainer.initializers.*; fans as Chainer computes them: fan_in = size / dim[0],
 * fan_out = size / dim[1]. */
TD_API TdInit td_init_constant (double value);
TD_API TdInit td_init_zero (void);
TD_API TdInit td_init_one (void);
TD_API TdInit td_init_nan (void);
/** scale times the identity matrix. */
TD_API TdInit td_init_identity (void);
/** Normal (0, scale). */
TD_API TdInit td_init_normal (double scale);
/** Normal (0, sqrt (1 / fan_in)). */
TD_API TdInit td_init_lecun_normal (void);
/** Normal (0, sqrt (2 / (fan_in + fan_out))). */
TD_API TdInit td_init_glorot_normal (void);
/** Normal (0, sqrt (2 / fan_in)). */
TD_API TdInit td_init_he_normal (void);
/** Uniform [-scale, scale). */
TD_API TdInit td_init_uniform (double scale);
/** Uniform with bound sqrt (3 / fan_in). */
TD_API TdInit td_init_lecun_uniform (void);
/** Uniform with bound sqrt (6 / (fan_in + fan_out)). */
TD_API TdInit td_init_glorot_uniform (void);
/** Uniform with bound sqrt (6 / fan_in). */
TD_API TdInit td_init_he_uniform (void);
/** Orthonormal rows (or columns), scaled by 1.1 as in Chainer. */
TD_API TdInit td_init_orthogonal (void);
TD_API TdInit td_init_upsampling_deconv_filter (void);
TD_API TdInit td_init_downsampling_conv_filter (void);
/** The same initialiser with another scale. */
TD_API TdInit td_init_scaled (TdInit init, double scale);

/* --- links: the tree ---------------------------------------------------------------------- */
/** A kind of link: what its call computes and what belongs to it. */
typedef struct TdLinkClass
{
  size_t size;       /**< sizeof (TdLinkClass) */
  const char *name;  /**< "Linear": shown in the tree */
  size_t self_bytes; /**< memory of its own, zeroed, given to the functions below */
  /** Compute out from in.  The link's scope is open; out are handed outward afterwards. */
  TdStatus (*forward) (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out,
                       int n_out);
  /** Release what self holds; self itself is freed by the link.  May be NULL. */
  void (*free) (void *self);
  /** Forget recurrent state.  May be NULL. */
  void (*reset_state) (TdLink *link, void *self);
  /** Give waiting parameters the shapes that these inputs ask for.  May be NULL. */
  TdStatus (*prepare) (TdLink *link, void *self, TdVar *const *in, int n_in);
  /** Fill the self of a copy, whose parameters and children are there.  NULL: the bytes are
   * copied, which is right for a self that owns nothing. */
  void (*copied) (TdLink *to, const TdLink *from);
} TdLinkClass;

/** Make a root link of a class of the user's own; td_link_adopt puts it below another. */
TD_API TdLink *td_link_define (const TdLinkClass *cls);
/** Make a link of a class below a parent (NULL: a root of its own). */
TD_API TdLink *td_link_new (const TdLinkClass *cls, TdLink *parent, const char *name);
/** Put a root link below a parent.  *Owner*: the parent.  Returns child. */
TD_API TdLink *td_link_adopt (TdLink *parent, const char *name, TdLink *child);
/** Borrow the link's own memory (TdLinkClass.self_bytes). */
TD_API void *td_link_self (TdLink *link);
/** A link that only groups others; calling it is an error. */
TD_API TdLink *td_chain_new (const char *name);
TD_API TdLink *td_chain_new_in (TdLink *parent, const char *name);
/** A link that calls its children and functions in the order they were added. */
TD_API TdLink *td_sequential_new (const char *name);
TD_API TdLink *td_sequential_new_in (TdLink *parent, const char *name);
/** Append a function, such as td_relu.  Returns the sequential. */
TD_API TdLink *td_sequential_append (TdLink *link, TdVar *(*function) (TdVar *x));
/** Number of steps, links and functions. */
TD_API int td_sequential_n_steps (TdLink *link);
/** Put a function, or a root link under a name, before step i (negative from the end). */
TD_API TdStatus td_sequential_insert (TdLink *link, int i, TdVar *(*function) (TdVar *x));
TD_API TdLink *td_sequential_insert_link (TdLink *link, int i, const char *name, TdLink *child);
/** Take step i out (negative from the end).  Returns the link, a root from then on, or NULL for
 * a function.  *Errors*: NULL and TD_ERR_ARG for no such step. */
TD_API TdLink *td_sequential_pop (TdLink *link, int i);
/** Free all links of a sequential and forget its functions. */
TD_API void td_sequential_clear (TdLink *link);
/** Count, or free, the links of a class: "Linear".  Returns their number. */
TD_API int td_sequential_count_by_layer_type (const TdLink *link, const char *class_name);
TD_API int td_sequential_remove_by_layer_type (TdLink *link, const char *class_name);
/** A list of links, named "0", "1" ... by their places; calling it is an error. */
TD_API TdLink *td_chain_list_new (const char *name);
TD_API TdLink *td_chain_list_new_in (TdLink *parent, const char *name);
/** Put a root link at the end of a list, or before place i (negative from the end); the names
 * of those behind move on.  Returns link. */
TD_API TdLink *td_chain_list_append (TdLink *list, TdLink *link);
TD_API TdLink *td_chain_list_insert (TdLink *list, int i, TdLink *link);
/** Take the link at place i out, a root from then on. */
TD_API TdLink *td_chain_list_remove (TdLink *list, int i);
/** Release a link, its children and their parameters.  NULL is allowed. */
TD_API void td_link_free (TdLink *link);

/** Call a link of one input and one output.  *Owner*: the innermost scope; what the call made
 * besides dies when it returns, unless an operation keeps it. */
TD_API TdVar *td_link (TdLink *link, TdVar *x);
TD_API TdVar *td_link_at (TdLink *link, TdVar *x, const TdSite *site);
/** Call a link.  out are poisoned on error. */
TD_API TdStatus td_link_call (TdLink *link, TdVar *const *in, int n_in, TdVar **out, int n_out);
TD_API TdStatus td_link_call_at (TdLink *link, TdVar *const *in, int n_in, TdVar **out,
                                 int n_out, const TdSite *site);

typedef struct
{
  int begin_;
  int dtype;          /**< a TdDtype; -1: config dtype */
  TdInit initializer; /**< Chainer's default: LeCunNormal, 0 for one axis */
  int end_;
} TdParamOpt;
#define TD_PARAM_DEFAULTS                                                                      \
  .dtype = -1, .initializer = { TD_INIT_DEFAULT, 0 }, .begin_ = 0 /* then dtype, initializer   \
                                                                   */
/** Add a parameter; a shape with a size of TD_INFER waits for td_link_init_param.
 * Returns it, or NULL while its shape is not known.  *Owner*: the link. */
TD_API TdVar *td_link_add_param_ (TdLink *link, const char *name, TdShape shape,
                                  const TdParamOpt *options);
TD_API TdVar *td_link_add_param_at (TdLink *link, const char *name, TdShape shape,
                                    TdParamOpt options, const TdSite *site);
/** Give a waiting parameter its shape, and its first numbers.  Does nothing once it has them.
 * *Owner*: the link. */
TD_API TdVar *td_link_init_param (TdLink *link, const char *name, TdShape shape);
/** Borrow a parameter or persistent by name ("W", or "l1/W" from above), NULL while its shape
 * is not known.  *Errors*: TD_ERR_ARG and poison when there is no such parameter. */
TD_API TdVar *td_link_param (TdLink *link, const char *name);
/** Add an array that is saved with the link but not trained.  *Owner*: the link keeps it.
 * Returns value. */
TD_API TdVar *td_link_add_persistent (TdLink *link, const char *name, TdVar *value);
/** Keep a variable as an attribute (recurrent state); NULL drops it.  Not saved. */
TD_API TdStatus td_link_set_attr (TdLink *link, const char *name, TdVar *value);
TD_API TdStatus td_link_set_attr_at (TdLink *link, const char *name, TdVar *value,
                                     const TdSite *site);
/** Borrow an attribute, or NULL. */
TD_API TdVar *td_link_attr (TdLink *link, const char *name);
TD_API const char *td_link_name (const TdLink *link);
/** The name of a link's class: "Linear". */
TD_API const char *td_link_class_name (const TdLink *link);
/** Borrow a link below by name ("l1", "block/l1").  *Errors*: TD_ERR_ARG, inert link. */
TD_API TdLink *td_link_child (TdLink *link, const char *name);
TD_API int td_link_n_children (const TdLink *link);
TD_API TdLink *td_link_child_at (TdLink *link, int i);
/** The path from the root, "mlp/l1", without a leading slash; equal root names get "#2". */
TD_API const char *td_link_path (const TdLink *link);
/** Number of trained elements at and below a link; parameters that wait count nothing. */
TD_API int64_t td_link_count_params (const TdLink *link);
/** Visit every parameter that has a shape, in order of creation; path is an npz key. */
TD_API void td_link_each_param (TdLink *link,
                                void (*visit) (const char *path, TdVar *param, void *user),
                                void *user);
/** The same with parameters that wait for their shapes: param is NULL then. */
TD_API void td_link_each_param_any (TdLink *link,
                                    void (*visit) (const char *path, TdVar *param, void *user),
                                    void *user);
/** Visit a link (path "") and all links below it, parents first. */
TD_API void td_link_each (TdLink *link,
                          void (*visit) (const char *path, TdLink *link, void *user),
                          void *user);
/** What a copy's parameters are. */
typedef enum
{
  TD_COPY_SHARE, /**< other variables over the same arrays, with gradients of their own */
  TD_COPY_COPY,  /**< arrays of their own, equal values */
  TD_COPY_INIT   /**< arrays of their own, drawn anew */
} TdCopyMode;
/** Copy a link with all below it as a new root of the same name: td_link_copy (link) or
 * (link, mode); without a mode TD_COPY_COPY.  Persistents are shared with TD_COPY_SHARE, else
 * copied; recurrent state and hooks stay behind.  *Source*: chainer.Link.copy. */
TD_API TdLink *td_link_copy (TdLink *link);
TD_API TdLink *td_link_copy_as (TdLink *link, TdCopyMode mode);
TD_API TdLink *td_link_copy_at (TdLink *link, TdCopyMode mode, const TdSite *site);
/** A Sequential of n copies of a link, named "0", "1" ...  *Source*: chainer.Link.repeat, whose
 * mode is TD_COPY_INIT unless said. */
TD_API TdLink *td_link_repeat (TdLink *parent, const char *name, TdLink *link, int n,
                               TdCopyMode mode);
/** Take values (parameters and persistents) over from a link of the same names.  *Errors*:
 * TD_ERR_ARG or TD_ERR_SHAPE naming what is missing or differs; nothing is changed then. */
TD_API TdStatus td_link_copy_params (TdLink *to, TdLink *from);
TD_API TdStatus td_link_copy_params_at (TdLink *to, TdLink *from, const TdSite *site);
/** Add the gradients of a link of the same names. *Errors*: as td_link_copy_params. */
TD_API TdStatus td_link_add_grads (TdLink *to, TdLink *from);
/** Have optimizers update, or leave, the parameters at and below a link, also those whose
 * shapes are still to come. */
TD_API void td_link_enable_update (TdLink *link);
TD_API void td_link_disable_update (TdLink *link);
/** Say whether any parameter at or below a link is updated. */
TD_API bool td_link_update_enabled (const TdLink *link);
/** Move all parameters and persistents to a device. */
TD_API TdStatus td_link_to_device (TdLink *link, TdDevice *device);
TD_API TdStatus td_link_to_device_at (TdLink *link, TdDevice *device, const TdSite *site);
/** Forget the recurrent state at and below a link. */
TD_API void td_link_reset_state (TdLink *link);

/* --- links: the kinds --------------------------------------------------------------------- */
typedef struct
{
  bool nobias;
  TdInit initialW, initial_bias;
  int n_batch_axes; /**< of x, which the result has too; 0: 1 */
  int end_;
} TdLinearOpt;
#define TD_LINEAR_DEFAULTS .nobias = false, .n_batch_axes = 1
/** y = x W^T + b; axes of x after the first n_batch_axes are flattened; in_size TD_INFER waits
 * for the first input.  Parameters W (out, in), LeCunNormal, and b (out), 0. */
TD_API TdLink *td_linear_new_ (TdLink *parent, const char *name, int64_t in_size,
                               int64_t out_size, const TdLinearOpt *options);
TD_API TdLink *td_linear_new_at (TdLink *parent, const char *name, int64_t in_size,
                                 int64_t out_size, TdLinearOpt options, const TdSite *site);

typedef struct
{
  int stride[2], pad[2], dilate[2];
  int groups;
  bool nobias;
  int kw; /**< width of the kernel; 0: as its height */
  TdInit initialW, initial_bias;
  int end_;
} TdConv2dLinkOpt;
#define TD_CONV_2D_LINK_DEFAULTS                                                               \
  .stride = { 1, 1 }, .pad = { 0, 0 }, .dilate = { 1, 1 }, .groups = 1
/** Two-dimensional convolution.  Parameters W (out, in / groups, ksize, ksize), LeCunNormal,
 * and b (out), 0. */
TD_API TdLink *td_convolution_2d_new_ (TdLink *parent, const char *name, int64_t in_channels,
                                       int64_t out_channels, int ksize,
                                       const TdConv2dLinkOpt *options);
TD_API TdLink *td_convolution_2d_new_at (TdLink *parent, const char *name, int64_t in_channels,
                                         int64_t out_channels, int ksize,
                                         TdConv2dLinkOpt options, const TdSite *site);

typedef struct
{
  double decay, eps;
  bool use_gamma, use_beta;
  TdInit initial_gamma, initial_beta;
  int end_;
} TdBatchNormLinkOpt;
#define TD_BATCH_NORM_LINK_DEFAULTS                                                            \
  .decay = 0.9, .eps = 2e-5, .use_gamma = true, .use_beta = true
/** Batch normalization with running statistics; when config train is off it uses those.
 * Parameters gamma, beta (size); persistents avg_mean, avg_var (size) and N; size TD_INFER
 * takes the channels of the first input.  All of them are f32 where config dtype is a half. */
TD_API TdLink *td_batch_normalization_new_ (TdLink *parent, const char *name, int64_t size,
                                            const TdBatchNormLinkOpt *options);
TD_API TdLink *td_batch_normalization_new_at (TdLink *parent, const char *name, int64_t size,
                                              TdBatchNormLinkOpt options, const TdSite *site);

typedef struct
{
  TdInit initialW;
  int ignore_label; /**< ids that give zeros; TD_NONE: none do */
  int end_;
} TdEmbedIdOpt;
#define TD_EMBED_ID_DEFAULTS .initialW = { TD_INIT_DEFAULT, 0 }, .ignore_label = TD_NONE
/** A row of W for each id.  Parameter W (in_size, out_size), Normal (0, 1). */
TD_API TdLink *td_embed_id_new_ (TdLink *parent, const char *name, int64_t in_size,
                                 int64_t out_size, const TdEmbedIdOpt *options);
TD_API TdLink *td_embed_id_new_at (TdLink *parent, const char *name, int64_t in_size,
                                   int64_t out_size, TdEmbedIdOpt options, const TdSite *site);

typedef struct
{
  TdInit lateral_init, upward_init, bias_init, forget_bias_init;
  int end_;
} TdLstmOpt;
#define TD_LSTM_DEFAULTS .lateral_init = { TD_INIT_DEFAULT, 0 }
/** A recurrent layer that keeps its cell c and output h as attributes from call to call.
 * Children upward (4 out, in), with bias, and lateral (4 out, out), without; the forget
 * gate's bias starts at 1.  *Shapes*: x (n, in) -> h (n, out); a smaller batch than the last
 * one continues its first rows, as in Chainer. */
TD_API TdLink *td_lstm_new_ (TdLink *parent, const char *name, int64_t in_size,
                             int64_t out_size, const TdLstmOpt *options);
TD_API TdLink *td_lstm_new_at (TdLink *parent, const char *name, int64_t in_size,
                               int64_t out_size, TdLstmOpt options, const TdSite *site);
/** Forget c and h: the next call starts from zeros. */
TD_API void td_lstm_reset_state (TdLink *link);
/** Continue from any c and h (n, out). */
TD_API TdStatus td_lstm_set_state (TdLink *link, TdVar *c, TdVar *h);
/** Borrow the state, NULL before the first call. */
TD_API TdVar *td_lstm_c (TdLink *link);
TD_API TdVar *td_lstm_h (TdLink *link);

/** Wrap a predictor, which becomes the child "predictor": in x, t; out the softmax cross
 * entropy (and the accuracy as a second output, if asked).  Reports loss and accuracy. */
TD_API TdLink *td_classifier_new (TdLink *parent, const char *name, TdLink *predictor);

/* --- the macros: parents one or two, named options, call sites ---------------------------- */
/* clang-format off */
#define TD_PICK_2_(a, b, pick, ...) pick
#define td_chain_new(...) TD_PICK_2_ (__VA_ARGS__, td_chain_new_in, td_chain_new, 0) (__VA_ARGS__)
#define td_chain_list_new(...) TD_PICK_2_ (__VA_ARGS__, td_chain_list_new_in, td_chain_list_new, 0) (__VA_ARGS__)
#define td_sequential_new(...) TD_PICK_2_ (__VA_ARGS__, td_sequential_new_in, td_sequential_new, 0) (__VA_ARGS__)
#if !defined(TD_NO_SITES)
#define td_link_add_param(link, name, ...) td__link_add_param_x (link, name, __VA_ARGS__, .end_ = 0)
#define td__link_add_param_x(link, name, shape, ...) TD_CALL_ (td_link_add_param_at (link, name, shape, TD_OPTIONS_IN_ORDER_ (TdParamOpt, TD_PARAM_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_linear_new(parent, name, in_size, ...) td__linear_new_x (parent, name, in_size, __VA_ARGS__, .end_ = 0)
#define td__linear_new_x(parent, name, in_size, out_size, ...) TD_CALL_ (td_linear_new_at (parent, name, in_size, out_size, TD_OPTIONS_ (TdLinearOpt, TD_LINEAR_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_convolution_2d_new(parent, name, in_channels, out_channels, ...) td__convolution_2d_new_x (parent, name, in_channels, out_channels, __VA_ARGS__, .end_ = 0)
#define td__convolution_2d_new_x(parent, name, in_channels, out_channels, ksize, ...) TD_CALL_ (td_convolution_2d_new_at (parent, name, in_channels, out_channels, ksize, TD_OPTIONS_ (TdConv2dLinkOpt, TD_CONV_2D_LINK_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_batch_normalization_new(parent, name, ...) td__batch_normalization_new_x (parent, name, __VA_ARGS__, .end_ = 0)
#define td__batch_normalization_new_x(parent, name, size, ...) TD_CALL_ (td_batch_normalization_new_at (parent, name, size, TD_OPTIONS_ (TdBatchNormLinkOpt, TD_BATCH_NORM_LINK_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_embed_id_new(parent, name, in_size, ...) td__embed_id_new_x (parent, name, in_size, __VA_ARGS__, .end_ = 0)
#define td__embed_id_new_x(parent, name, in_size, out_size, ...) TD_CALL_ (td_embed_id_new_at (parent, name, in_size, out_size, TD_OPTIONS_ (TdEmbedIdOpt, TD_EMBED_ID_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_lstm_new(parent, name, in_size, ...) td__lstm_new_x (parent, name, in_size, __VA_ARGS__, .end_ = 0)
#define td__lstm_new_x(parent, name, in_size, out_size, ...) TD_CALL_ (td_lstm_new_at (parent, name, in_size, out_size, TD_OPTIONS_ (TdLstmOpt, TD_LSTM_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_link(...) td_link_at (__VA_ARGS__, TD_HERE)
#define td_link_to_device(...) td_link_to_device_at (__VA_ARGS__, TD_HERE)
#define td_link_call(...) td_link_call_at (__VA_ARGS__, TD_HERE)
#define td_link_copy_params(...) td_link_copy_params_at (__VA_ARGS__, TD_HERE)
#define td_link_set_attr(...) td_link_set_attr_at (__VA_ARGS__, TD_HERE)
#define td_link_copy(...) td__link_copy_x (__VA_ARGS__, TD_COPY_COPY, 0)
#define td__link_copy_x(link, mode, ...) td_link_copy_at (link, mode, TD_HERE)
#define td_link_copy_as(...) td_link_copy_at (__VA_ARGS__, TD_HERE)
#else
#define td_link_copy(...) TD_PICK_2_ (__VA_ARGS__, td_link_copy_as, td_link_copy, 0) (__VA_ARGS__)
#endif
/* clang-format on */

TD_END_DECLS
