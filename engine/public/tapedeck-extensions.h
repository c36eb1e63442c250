/* Extensions of a trainer, as in Chainer: snapshots, logs, charts, evaluation, learning rates.
 * Included by tapedeck.h.
 *
 * An extension belongs to the trainer that it is given to.  Keys are as the program reports
 * them: "loss", and "validation/loss" from the evaluator.  Files go to the trainer's folder.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

TD_BEGIN_DECLS

/* --- snapshots ---------------------------------------------------------------------------- */
typedef enum
{
  TD_WRITER_SIMPLE, /**< writes before it goes on */
  TD_WRITER_THREAD  /**< copies the state, and writes while training goes on */
} TdSnapshotWriter;
typedef struct
{
  TdLink *target;       /**< a link; NULL: the whole trainer */
  const char *filename; /**< {iteration} and {epoch} are replaced; npz, or .safetensors */
  bool (*condition) (void *self, TdTrainer *trainer); /**< false: not now; NULL: always */
  void *self;                                         /**< of condition */
  TdSnapshotWriter writer;
  bool snapshot_on_error;
  int n_retains; /**< how many files are kept, the newest; -1: all */
  bool autoload; /**< begin with the newest file in the folder, if there is one */
  int end_;
} TdSnapshotOpt;
#define TD_SNAPSHOT_DEFAULTS .filename = "snapshot_iter_{iteration}", .n_retains = -1
/** Save everything that training depends on, every epoch: going on from it gives the same
 * numbers to the last bit.  "snapshot", priority -100. */
TD_API TdExtension *td_ext_snapshot_ (TdSnapshotOpt options);
/** Save a link, every epoch. */
TD_API TdExtension *td_ext_snapshot_object_ (TdLink *target, const char *filename,
                                             TdSnapshotOpt options);

/* --- what was reported -------------------------------------------------------------------- */
typedef struct
{
  const char *const *keys; /**< TD_KEYS (...); NULL: all */
  TdTrigger *trigger;      /**< of a line of the log; NULL: every epoch */
  const char *filename;    /**< NULL: none is written */
  /** Change the line before it is logged. */
  void (*postprocess) (void *self, TdObservation *line);
  void *self;
  int end_;
} TdLogReportOpt;
#define TD_LOG_REPORT_DEFAULTS .filename = "log"
/** Means of what was reported since the last line, with epoch, iteration and elapsed_time, as
 * Chainer's JSON.  "LogReport". */
TD_API TdExtension *td_ext_log_report_ (TdLogReportOpt options);
/** Lines of the log so far, and the value of a key in one; NaN where it has none. */
TD_API int td_log_report_n_lines (TdExtension *log_report);
TD_API double td_log_report_value (TdExtension *log_report, int line, const char *key);

typedef struct
{
  const char *log_report; /**< name of the extension whose lines are printed */
  int fd;
  int end_;
} TdPrintReportOpt;
#define TD_PRINT_REPORT_DEFAULTS .log_report = "LogReport", .fd = 1
/** Print the log as a table of these columns.  "PrintReport". */
TD_API TdExtension *td_ext_print_report_ (const char *const *entries, TdPrintReportOpt options);

typedef struct
{
  const char *x_key; /**< "iteration" or "epoch" */
  TdTrigger *trigger;
  const char *filename;
  bool marker, grid;
  int end_;
} TdPlotReportOpt;
#define TD_PLOT_REPORT_DEFAULTS                                                                \
  .x_key = "iteration", .filename = "plot.svg", .marker = true, .grid = true
/** Draw means of reported values as a line chart in SVG.  "PlotReport". */
TD_API TdExtension *td_ext_plot_report_ (const char *const *y_keys, TdPlotReportOpt options);

typedef struct
{
  double training_length; /**< 0: taken from the trainer's interval trigger */
  const char *unit;
  int update_interval; /**< iterations from one drawing to the next */
  int bar_length;
  int fd;
  int end_;
} TdProgressBarOpt;
#define TD_PROGRESS_BAR_DEFAULTS                                                               \
  .unit = "epoch", .update_interval = 100, .bar_length = 50, .fd = 1
/** Draw how far training is, on a terminal in place, elsewhere as lines; and report it as
 * "progress", 0 to 1, which the app shows.  "ProgressBar". */
TD_API TdExtension *td_ext_progress_bar_ (TdProgressBarOpt options);

/** Report result = sum of numerators / sum of denominators since the last time; trigger NULL:
 * every epoch.  "MicroAverage". */
TD_API TdExtension *td_ext_micro_average (const char *numerator_key,
                                          const char *denominator_key, const char *result_key,
                                          TdTrigger *trigger);

/* --- evaluation --------------------------------------------------------------------------- */
typedef struct
{
  /** Compute and report something of a batch; NULL: the target is called with its fields. */
  void (*eval_func) (void *self, const TdBatch *batch);
  void (*eval_hook) (void *self, TdTrainer *trainer); /**< before each evaluation */
  void *self;
  const char *name; /**< prefix of what is reported */
  int end_;
} TdEvaluatorOpt;
#define TD_EVALUATOR_DEFAULTS .name = "validation"
/** Every epoch: go through a dataset without building graphs, config train off, and report the
 * means over its batches under "validation/".  The iterator must not repeat. */
TD_API TdExtension *td_ext_evaluator_ (TdIter *iter, TdLink *target, TdEvaluatorOpt options);

/* --- looking at the model ----------------------------------------------------------------- */
typedef struct
{
  const char *filename;
  const TdDotOpt *dot;
  int end_;
} TdDumpGraphOpt;
#define TD_DUMP_GRAPH_DEFAULTS .filename = "cg.dot"
/** Write the graph behind a variable reported by td_report_variable, once.  "DumpGraph". */
TD_API TdExtension *td_ext_dump_graph_ (const char *root_name, TdDumpGraphOpt options);
/** Fail when a parameter of the optimizer's target is not finite, and say which.
 * *Sync*: blocks every iteration. */
TD_API TdExtension *td_ext_fail_on_non_number (void);

typedef struct
{
  bool report_params, report_grads;
  const char *prefix;
  TdTrigger *trigger;
  bool skip_nan_params; /**< statistics of a parameter with NaN are NaN */
  int end_;
} TdParameterStatisticsOpt;
#define TD_PARAMETER_STATISTICS_DEFAULTS .report_params = true, .report_grads = true
/** Report mean, std, min, max, zeros and seven percentiles of every parameter below a link:
 * "mlp/l1/W/data/mean", ".../percentile/0". */
TD_API TdExtension *td_ext_parameter_statistics_ (TdLink *link,
                                                  TdParameterStatisticsOpt options);

typedef struct
{
  int max_sample_size;
  bool report_data, report_grad, plot_mean, plot_std;
  TdTrigger *trigger;
  const char *filename;
  bool grid;
  int end_;
} TdVariableStatisticsPlotOpt;
#define TD_VARIABLE_STATISTICS_PLOT_DEFAULTS                                                   \
  .max_sample_size = 1000, .report_data = true, .report_grad = true, .plot_mean = true,        \
  .plot_std = true, .filename = "statistics.svg", .grid = true
/** Draw mean, standard deviation and percentiles (0 0.13 2.28 15.87 50 84.13 97.72 99.87 100)
 * of every parameter below a link over time, as SVG. */
TD_API TdExtension *td_ext_variable_statistics_plot_ (TdLink *link,
                                                      TdVariableStatisticsPlotOpt options);
/** Cut the graphs of all variables that are kept in the iteration's reports. */
TD_API TdExtension *td_ext_unchain_variables (void);

/* --- learning rates ----------------------------------------------------------------------- */
typedef struct
{
  const char *optimizer; /**< its name in the updater */
  const char *key;
  int end_;
} TdObserveLrOpt;
#define TD_OBSERVE_LR_DEFAULTS .optimizer = "main", .key = "lr"
/** Report the learning rate, every epoch. */
TD_API TdExtension *td_ext_observe_lr_ (TdObserveLrOpt options);
/** Report what a function says, every epoch. */
TD_API TdExtension *td_ext_observe_value (const char *key,
                                          double (*value) (void *self, TdTrainer *trainer),
                                          void *self);

typedef struct
{
  double init;      /**< NaN: the optimizer's value at the beginning */
  double target;    /**< the value stops there; NaN: it does not */
  TdOpt *optimizer; /**< NULL: "main" */
  int end_;
} TdShiftOpt;
#define TD_SHIFT_DEFAULTS .init = __builtin_nan (""), .target = __builtin_nan ("")
/** Each call of a shift is a step: t is 1, 2 ...; its trigger says how long a step is.  attr is
 * the name of a hyperparameter: "lr", "alpha" ...
 *
 * init rate^t. */
TD_API TdExtension *td_ext_exponential_shift_ (const char *attr, double rate,
                                               TdShiftOpt options);
/** init (1 + gamma t)^-power. */
TD_API TdExtension *td_ext_inverse_shift_ (const char *attr, double gamma, double power,
                                           TdShiftOpt options);
/** first until t1, last from t2 on, straight in between. */
TD_API TdExtension *td_ext_linear_shift_ (const char *attr, double first, double last,
                                          double t1, double t2, TdShiftOpt options);
/** init gamma^k, k the number of steps <= t. */
TD_API TdExtension *td_ext_multistep_shift_ (const char *attr, double gamma, const int *steps,
                                             int n_steps, TdShiftOpt options);
/** init max (1 - t / max_count, 0)^rate. */
TD_API TdExtension *td_ext_polynomial_shift_ (const char *attr, double rate, double max_count,
                                              TdShiftOpt options);
/** init gamma^floor (t / step). */
TD_API TdExtension *td_ext_step_shift_ (const char *attr, double gamma, double step,
                                        TdShiftOpt options);
/** From warmup_start straight to init in warmup_iter steps. */
TD_API TdExtension *td_ext_warmup_shift_ (const char *attr, double warmup_start,
                                          double warmup_iter, TdShiftOpt options);

/* clang-format off */
#if !defined(TD_NO_SITES)
#define td_ext_snapshot(...) TD_CALL_ (td_ext_snapshot_ (TD_OPTIONS_ (TdSnapshotOpt, TD_SNAPSHOT_DEFAULTS, __VA_ARGS__)))
#define td_ext_snapshot_object(target, ...) td__ext_snapshot_object_x (target, __VA_ARGS__, .end_ = 0)
#define td__ext_snapshot_object_x(target, name, ...) TD_CALL_ (td_ext_snapshot_object_ (target, name, TD_OPTIONS_ (TdSnapshotOpt, TD_SNAPSHOT_DEFAULTS, __VA_ARGS__)))
#define td_ext_log_report(...) TD_CALL_ (td_ext_log_report_ (TD_OPTIONS_ (TdLogReportOpt, TD_LOG_REPORT_DEFAULTS, __VA_ARGS__)))
#define td_ext_print_report(...) td__ext_print_report_x (__VA_ARGS__, .end_ = 0)
#define td__ext_print_report_x(entries, ...) TD_CALL_ (td_ext_print_report_ (entries, TD_OPTIONS_ (TdPrintReportOpt, TD_PRINT_REPORT_DEFAULTS, __VA_ARGS__)))
#define td_ext_plot_report(...) td__ext_plot_report_x (__VA_ARGS__, .end_ = 0)
#define td__ext_plot_report_x(y_keys, ...) TD_CALL_ (td_ext_plot_report_ (y_keys, TD_OPTIONS_ (TdPlotReportOpt, TD_PLOT_REPORT_DEFAULTS, __VA_ARGS__)))
#define td_ext_progress_bar(...) TD_CALL_ (td_ext_progress_bar_ (TD_OPTIONS_ (TdProgressBarOpt, TD_PROGRESS_BAR_DEFAULTS, __VA_ARGS__)))
#define td_ext_evaluator(iter, ...) td__ext_evaluator_x (iter, __VA_ARGS__, .end_ = 0)
#define td__ext_evaluator_x(iter, target, ...) TD_CALL_ (td_ext_evaluator_ (iter, target, TD_OPTIONS_ (TdEvaluatorOpt, TD_EVALUATOR_DEFAULTS, __VA_ARGS__)))
#define td_ext_dump_graph(...) td__ext_dump_graph_x (__VA_ARGS__, .end_ = 0)
#define td__ext_dump_graph_x(root_name, ...) TD_CALL_ (td_ext_dump_graph_ (root_name, TD_OPTIONS_ (TdDumpGraphOpt, TD_DUMP_GRAPH_DEFAULTS, __VA_ARGS__)))
#define td_ext_parameter_statistics(...) td__ext_parameter_statistics_x (__VA_ARGS__, .end_ = 0)
#define td__ext_parameter_statistics_x(link, ...) TD_CALL_ (td_ext_parameter_statistics_ (link, TD_OPTIONS_ (TdParameterStatisticsOpt, TD_PARAMETER_STATISTICS_DEFAULTS, __VA_ARGS__)))
#define td_ext_variable_statistics_plot(...) td__ext_variable_statistics_plot_x (__VA_ARGS__, .end_ = 0)
#define td__ext_variable_statistics_plot_x(link, ...) TD_CALL_ (td_ext_variable_statistics_plot_ (link, TD_OPTIONS_ (TdVariableStatisticsPlotOpt, TD_VARIABLE_STATISTICS_PLOT_DEFAULTS, __VA_ARGS__)))
#define td_ext_observe_lr(...) TD_CALL_ (td_ext_observe_lr_ (TD_OPTIONS_ (TdObserveLrOpt, TD_OBSERVE_LR_DEFAULTS, __VA_ARGS__)))
#define td_ext_exponential_shift(attr, ...) td__ext_exponential_shift_x (attr, __VA_ARGS__, .end_ = 0)
#define td__ext_exponential_shift_x(attr, rate, ...) TD_CALL_ (td_ext_exponential_shift_ (attr, rate, TD_OPTIONS_ (TdShiftOpt, TD_SHIFT_DEFAULTS, __VA_ARGS__)))
#define td_ext_inverse_shift(attr, gamma, ...) td__ext_inverse_shift_x (attr, gamma, __VA_ARGS__, .end_ = 0)
#define td__ext_inverse_shift_x(attr, gamma, power, ...) TD_CALL_ (td_ext_inverse_shift_ (attr, gamma, power, TD_OPTIONS_ (TdShiftOpt, TD_SHIFT_DEFAULTS, __VA_ARGS__)))
#define td_ext_linear_shift(attr, first, last, t1, ...) td__ext_linear_shift_x (attr, first, last, t1, __VA_ARGS__, .end_ = 0)
#define td__ext_linear_shift_x(attr, first, last, t1, t2, ...) TD_CALL_ (td_ext_linear_shift_ (attr, first, last, t1, t2, TD_OPTIONS_ (TdShiftOpt, TD_SHIFT_DEFAULTS, __VA_ARGS__)))
#define td_ext_multistep_shift(attr, gamma, steps, ...) td__ext_multistep_shift_x (attr, gamma, steps, __VA_ARGS__, .end_ = 0)
#define td__ext_multistep_shift_x(attr, gamma, steps, n, ...) TD_CALL_ (td_ext_multistep_shift_ (attr, gamma, steps, n, TD_OPTIONS_ (TdShiftOpt, TD_SHIFT_DEFAULTS, __VA_ARGS__)))
#define td_ext_polynomial_shift(attr, rate, ...) td__ext_polynomial_shift_x (attr, rate, __VA_ARGS__, .end_ = 0)
#define td__ext_polynomial_shift_x(attr, rate, max_count, ...) TD_CALL_ (td_ext_polynomial_shift_ (attr, rate, max_count, TD_OPTIONS_ (TdShiftOpt, TD_SHIFT_DEFAULTS, __VA_ARGS__)))
#define td_ext_step_shift(attr, gamma, ...) td__ext_step_shift_x (attr, gamma, __VA_ARGS__, .end_ = 0)
#define td__ext_step_shift_x(attr, gamma, step, ...) TD_CALL_ (td_ext_step_shift_ (attr, gamma, step, TD_OPTIONS_ (TdShiftOpt, TD_SHIFT_DEFAULTS, __VA_ARGS__)))
#define td_ext_warmup_shift(attr, warmup_start, ...) td__ext_warmup_shift_x (attr, warmup_start, __VA_ARGS__, .end_ = 0)
#define td__ext_warmup_shift_x(attr, warmup_start, warmup_iter, ...) TD_CALL_ (td_ext_warmup_shift_ (attr, warmup_start, warmup_iter, TD_OPTIONS_ (TdShiftOpt, TD_SHIFT_DEFAULTS, __VA_ARGS__)))
#endif
/* clang-format on */

TD_END_DECLS
