/* ONNX models of other programs as links, and the graph that ran as an ONNX model.  Included by
 * tapedeck.h.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

TD_BEGIN_DECLS

/** Options of td_onnx_load. */
typedef struct TdOnnxLoadOpt
{
  int begin_;
  const char *name; /**< of the link; NULL: the graph's */
  bool train;       /**< BatchNormalization and Dropout follow config train, as the engine's own
                       links do; false: they do what the file says, which is nothing but use */
  const char *fixed; /**< initializers that are not trained, by name, separated by commas */
  void (*lack) (const char *line,
                void *user); /**< hears of each thing that the file asks for
                                and that is not there, before the error does */
  void *user;
  int end_;
} TdOnnxLoadOpt;
#define TD_ONNX_LOAD_DEFAULTS .name = (const char *)0, .train = false, .begin_ = 0
TD_API TdOnnxLoadOpt td_onnx_load_options (void);
/** Read an ONNX model, opsets 7 to 21, as a link: td_onnx_load (path, .train = true).  Its
 * parameters are the file's floating-point initializers of one axis or more, under their names,
 * whose slashes make links; names that meet get a number.  It is called with the graph's inputs
 * in order (td_link_call, td_onnx_call), trained, recorded, saved and copied like any other;
 * the mean and variance of BatchNormalization are persistents.
 * *Owner*: the engine, until td_link_free.  *Errors*: an inert link; TD_ERR_IO naming the file:
 * not there, damaged, data outside of its folder; TD_ERR_ARG naming the operators that are not
 * there, and nothing is made. */
TD_API TdLink *td_onnx_load_at (const char *path, TdOnnxLoadOpt options, const TdSite *site);
TD_API TdLink *td_onnx_load (const char *path);
/** Call it with inputs by name, in any order; names NULL: in the graph's.  Inputs that the file
 * has a default of may be left out; in order they come behind the others.  Sizes of one name
 * should be one size in all inputs: where they are not, a line on stderr says so, once for a
 * link.  out are the graph's first outputs.  *Errors*: as td_link_call; a name that is missing,
 * unknown or there twice. */
TD_API TdStatus td_onnx_call_at (TdLink *link, const char *const *names, TdVar *const *in,
                                 int n_in, TdVar **out, int n_out, const TdSite *site);
TD_API TdStatus td_onnx_call (TdLink *link, const char *const *names, TdVar *const *in,
                              int n_in, TdVar **out, int n_out);

/** What goes in or comes out.  ndim -1: any shape; dim -1: any size, and symbol is its name or
 * NULL.  *Owner*: the link, of all texts. */
typedef struct TdOnnxInfo
{
  const char *name; /**< NULL: there is no such one */
  TdDtype dtype;
  int ndim;
  int64_t dim[TD_MAX_DIMS];
  const char *symbol[TD_MAX_DIMS];
  bool is_optional; /**< an input that has a default: an initializer of the same name, in files
                       from IR version 4 on */
} TdOnnxInfo;
/** Input or output i of a link of td_onnx_load; name NULL behind the last. */
TD_API TdOnnxInfo td_onnx_input (TdLink *link, int i);
TD_API TdOnnxInfo td_onnx_output (TdLink *link, int i);

/** An operator that td_onnx_load reads. */
typedef struct TdOnnxOperator
{
  const char *name;   /**< NULL: there is no such one */
  int from, to;       /**< opsets */
  const char *limits; /**< what is left out; NULL: nothing */
} TdOnnxOperator;
/** Operator i, a row for each range of opsets; name NULL behind the last. */
TD_API TdOnnxOperator td_onnx_operator_at (int i);

/** Options of td_save_onnx. */
typedef struct TdOnnxOpt
{
  int begin_;
  int opset;        /**< of the standard's operators, 17 to 21 */
  TdVar *const *in; /**< the inputs, n_in of them, in the order that the file has; NULL: every
                       variable of the graph that no operation made and that no link has, in the
                       order of their use */
  int n_in;
  const char *axes; /**< axes whose size the file leaves open: "0:0=batch,x:1=length", an input
                       by number or name, its axis, and the size's name; NULL: axis 0 of every
                       input is "batch"; "": none */
  const char *name; /**< of the graph; NULL: "graph" */
  bool custom_domains; /**< as in TdStaticSaveOpt, and so are the others */
  bool weights_beside;
  void (*lack) (const char *line, void *user);
  void (*fixed) (const char *line, void *user);
  void (*assumed) (const char *line, void *user);
  void *user;
  int end_;
} TdOnnxOpt;
#define TD_SAVE_ONNX_DEFAULTS .opset = 17, .axes = (const char *)0, .begin_ = 0
TD_API TdOnnxOpt td_save_onnx_options (void);
/** Write the graph from which outs came as an ONNX model: td_save_onnx (&y, 1, "net.onnx", .in
 * = &x, .n_in = 1).  It needs the whole graph: the code runs in TD_USING (keep_graph, true),
 * and with config train as the model is to be used; gradients that td_grad_of gives in it with
 * TD_DOUBLE_BACKPROP are outs like any.  Parameters go out with the numbers they
 * have now; variables of the graph that are no inputs and no link's are constants, also what
 * td_randn drew. *Shapes*: a size that follows an open axis is found through every operation;
 * sizes that the code wrote as numbers follow too where they can be nothing else.  Where an
 * operation has the size as a number, or a reshape has it twice, the axis stays what it was,
 * and `fixed` hears so, also of an input whose axis 0 stays while that of others is open: the
 * file never claims a size with which it does not run.  A number that the code computed from a
 * size by itself, in C, is not seen.  After a call with a batch of 1, a 1 of the code's own may
 * be that size or a number; a size that is a multiple of another batch may follow it, a -1
 * beside it too, and an array of the code may be as long: `assumed` hears which was taken
 * where.  A batch that is no other size and divides none, as 5 or 7, leaves least to assume:
 * of -1, of arrays filled for the batch. Names of nodes and values are paths of links, of
 * inputs the names of variables (td_name). Dropout is written as it ran, and draws other
 * numbers; batch normalization while training normalises by the batch, and leaves its running
 * moments as they are. *Errors*: TD_ERR_ARG naming what ONNX does not have, with its lines, or
 * an input from which no graph leads to outs, and no file is written; TD_ERR_STATE for a
 * constant that is gone; TD_ERR_IO.
 */
TD_API TdStatus td_save_onnx_at (TdVar *const *outs, size_t n, const char *path,
                                 TdOnnxOpt options, const TdSite *site);
TD_API TdStatus td_save_onnx (TdVar *const *outs, size_t n, const char *path);

#if !defined(TD_NO_SITES)
/* clang-format off */
#define td_save_onnx(outs, n, ...) td__save_onnx_x (outs, n, __VA_ARGS__, .end_ = 0)
#define td__save_onnx_x(outs, n, path, ...) TD_CALL_ (td_save_onnx_at (outs, n, path, TD_OPTIONS_IN_ORDER_ (TdOnnxOpt, TD_SAVE_ONNX_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_onnx_load(...) td__onnx_load_x (__VA_ARGS__, .end_ = 0)
#define td__onnx_load_x(path, ...) TD_CALL_ (td_onnx_load_at (path, TD_OPTIONS_IN_ORDER_ (TdOnnxLoadOpt, TD_ONNX_LOAD_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_onnx_call(...) td_onnx_call_at (__VA_ARGS__, TD_HERE)
/* clang-format on */
#endif

TD_END_DECLS
