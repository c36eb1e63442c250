/* Reports and training loops: updater, trainer, triggers and extensions, as in Chainer.
 * Included by tapedeck.h.
 *
 * Constructors return inert objects on error, never NULL.  What an extension or a trigger is
 * given to belongs to it; everything else is released by td_finish.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

TD_BEGIN_DECLS

typedef struct TdObservation TdObservation;
typedef struct TdUpdater TdUpdater;
typedef struct TdTrainer TdTrainer;
typedef struct TdTrigger TdTrigger;
typedef struct TdExtension TdExtension;
typedef struct TdSerializer TdSerializer;

/** A list of constant texts: TD_KEYS ("epoch", "loss").  The empty asm keeps clang from taking
 * the pointer for a constant of an enclosing initializer, and the array for one that is never
 * filled. */
#define TD_KEYS(...)                                                                           \
  (__extension__({                                                                             \
    static const char *const td_keys_[] = { __VA_ARGS__, NULL };                               \
    const char *const *td_first_key_ = td_keys_;                                               \
    __asm__("" : "+r"(td_first_key_));                                                         \
    td_first_key_;                                                                             \
  }))

/* --- reports ------------------------------------------------------------------------------ */
/** Report a number under a key, for curves and breakpoints; inside TD_REPORT_SCOPE it goes to
 * that observation only. */
TD_API void td_report (const char *key, double value);
/** The same with the link's path before the key: "mlp/l1/scale". */
TD_API void td_report_for (TdLink *link, const char *key, double value);
/** Count, mean, standard deviation, last and extreme values of what was reported. */
typedef struct TdSummary
{
  int64_t n;
  double last, mean, std, min, max;
} TdSummary;
/** Report the number of a variable of one element.  With config keep_graph_on_report an
 * observation keeps the variable with its graph, until it is cleared.  *Sync*: blocks. */
TD_API void td_report_variable (const char *key, TdVar *v);
TD_API TdObservation *td_observation_new (void);
TD_API void td_observation_free (TdObservation *observation);
TD_API void td_observation_clear (TdObservation *observation);
/** Summary of a key; NULL observation: the program's own reports.  n is 0 for an unknown key.
 */
TD_API TdSummary td_observation_get (const TdObservation *observation, const char *key);
/** Add a value to what is known of a key, as if it came weight times. */
TD_API void td_observation_add (TdObservation *observation, const char *key, double value,
                                double weight);
/** Add the last value of every key of another one (Chainer's DictSummary.add). */
TD_API void td_observation_add_last (TdObservation *observation, const TdObservation *from);
TD_API int td_observation_n_keys (const TdObservation *observation);
/** Borrow the key of number i, in order of first appearance. */
TD_API const char *td_observation_key (const TdObservation *observation, int i);
/** Borrow the variable that was reported last under a key, NULL when it was not kept. */
TD_API TdVar *td_observation_variable (const TdObservation *observation, const char *key);
typedef struct
{
  TdObservation *outer;
  int armed;
} TdReportSave;
TD_API TdReportSave td__report_push (TdObservation *observation);
TD_API void td__report_pop (TdReportSave *save);
#define TD_REPORT_SCOPE_(n, observation)                                                       \
  for (TdReportSave TD_CAT (td_save_, n) TD_CLEANUP_ (td__report_pop)                          \
       = td__report_push (observation),                                                        \
       TD_CAT (td_once_, n) = { NULL, 1 };                                                     \
       TD_CAT (td_once_, n).armed; TD_CAT (td_once_, n).armed = 0)
/** A block whose reports go to an observation (Chainer's report_scope). */
#define TD_REPORT_SCOPE(observation) TD_REPORT_SCOPE_ (__COUNTER__, observation)

/* --- updaters ----------------------------------------------------------------------------- */
/** A loss, from the fields of a batch. */
typedef TdVar *(*TdLossFunction) (void *self, const TdBatch *batch);
/** One update of the program's own.  The updater counts it. */
typedef TdStatus (*TdUpdateFunction) (TdUpdater *updater, void *self);
typedef struct
{
  TdLossFunction loss_func; /**< NULL: the optimizer's target is called with the batch's fields;
                               its first output is the loss */
  void *self;
  double loss_scale; /**< what the loss is multiplied by for backward; 0: not at all */
  bool auto_new_epoch;
  TdUpdateFunction update; /**< instead of all that: several optimizers, say */
  int end_;
} TdUpdaterOpt;
#define TD_UPDATER_DEFAULTS .loss_func = NULL, .auto_new_epoch = true
/** Take a batch, compute its loss, go backward, update (Chainer's StandardUpdater).  The
 * iterator and optimizer are called "main", and must outlive the updater. */
TD_API TdUpdater *td_standard_updater_new_ (TdIter *iter, TdOpt *opt, TdUpdaterOpt options);
/** Add an iterator or optimizer under a name of its own. */
TD_API TdStatus td_updater_add_iterator (TdUpdater *updater, const char *name, TdIter *iter);
TD_API TdStatus td_updater_add_optimizer (TdUpdater *updater, const char *name, TdOpt *opt);
/** *Errors*: TD_ERR_ARG and NULL when there is none of that name. */
TD_API TdIter *td_updater_iterator (const TdUpdater *updater, const char *name);
TD_API TdOpt *td_updater_optimizer (const TdUpdater *updater, const char *name);
/** One update. */
TD_API TdStatus td_updater_update (TdUpdater *updater);
TD_API TdStatus td_updater_update_at (TdUpdater *updater, const TdSite *site);
/** Updates so far. */
TD_API int64_t td_updater_iteration (const TdUpdater *updater);
/** Of the iterator "main". */
TD_API int64_t td_updater_epoch (const TdUpdater *updater);
TD_API double td_updater_epoch_detail (const TdUpdater *updater);
TD_API double td_updater_previous_epoch_detail (const TdUpdater *updater);
TD_API bool td_updater_is_new_epoch (const TdUpdater *updater);
TD_API void td_updater_free (TdUpdater *updater);

/* --- triggers: when something is done ----------------------------------------------------- */
/** Units are "iteration" and "epoch". */
TD_API TdTrigger *td_interval_trigger_new (double period, const char *unit);
TD_API TdTrigger *td_manual_schedule_trigger_new (const double *points, int n,
                                                  const char *unit);
/** The first time; with call_on_resume also the first time after a snapshot was loaded. */
TD_API TdTrigger *td_once_trigger_new (bool call_on_resume);
/** Every so many seconds of training. */
TD_API TdTrigger *td_time_trigger_new (double seconds);
typedef struct
{
  TdTrigger *check_trigger; /**< when the value is looked at; NULL: every epoch */
  const char *monitor;      /**< key of the value */
  int patience;             /**< how often it may fail to improve */
  const char *mode;         /**< "max", "min", "auto": max for a key with accuracy in it */
  bool verbose;
  TdTrigger *max_trigger; /**< the end in any case; NULL: 100 epochs */
  int end_;
} TdEarlyStoppingOpt;
#define TD_EARLY_STOPPING_DEFAULTS .monitor = "loss", .patience = 3, .mode = "auto"
TD_API TdTrigger *td_early_stopping_trigger_new_ (TdEarlyStoppingOpt options);
/** When the mean of a key since the last time is the best so far; trigger NULL: asked every
 * epoch. */
TD_API TdTrigger *td_best_value_trigger_new (const char *key,
                                             bool (*better) (double best, double now),
                                             TdTrigger *trigger);
TD_API TdTrigger *td_max_value_trigger_new (const char *key, TdTrigger *trigger);
TD_API TdTrigger *td_min_value_trigger_new (const char *key, TdTrigger *trigger);
/** A kind of trigger of the program's own. */
typedef struct TdTriggerClass
{
  size_t size; /**< sizeof (TdTriggerClass) */
  const char *name;
  size_t self_bytes;
  bool (*call) (void *self, TdTrainer *trainer);
  void (*serialize) (void *self, TdSerializer *serializer); /**< may be NULL */
  void (*free) (void *self);                                /**< of what self holds; or NULL */
} TdTriggerClass;
TD_API TdTrigger *td_trigger_new (const TdTriggerClass *cls);
TD_API void *td_trigger_self (TdTrigger *trigger); /**< Its self_bytes. */
/** Ask it, once an iteration. */
TD_API bool td_trigger_call (TdTrigger *trigger, TdTrainer *trainer);
/** Say whether it will never fire again. */
TD_API bool td_trigger_finished (const TdTrigger *trigger);
TD_API void td_trigger_free (TdTrigger *trigger);

/* --- trainers ----------------------------------------------------------------------------- */
enum
{
  TD_PRIORITY_WRITER = 300, /**< reports values */
  TD_PRIORITY_EDITOR = 200, /**< changes what was reported */
  TD_PRIORITY_READER = 100  /**< reads it */
};
/** A kind of extension. */
typedef struct TdExtensionClass
{
  size_t size; /**< sizeof (TdExtensionClass) */
  const char *name;
  size_t self_bytes;
  int priority;     /**< higher ones are called first */
  double period;    /**< of its trigger; 0: every iteration */
  const char *unit; /**< of period */
  void (*initialize) (void *self, TdTrainer *trainer); /**< before the loop */
  TdStatus (*call) (void *self, TdTrainer *trainer);   /**< when its trigger fires */
  /** The loop ended with an error.  This and those below may be NULL, as may initialize. */
  void (*on_error) (void *self, TdTrainer *trainer, const TdError *error);
  void (*finalize) (void *self, TdTrainer *trainer); /**< after the loop, however it ended */
  void (*serialize) (void *self, TdSerializer *serializer);
  void (*free) (void *self); /**< of what self holds */
  /** Before any initialize: what loads a snapshot. */
  void (*load) (void *self, TdTrainer *trainer);
} TdExtensionClass;
TD_API TdExtension *td_extension_new (const TdExtensionClass *cls);
TD_API void *td_extension_self (TdExtension *extension); /**< Its self_bytes. */
/** An extension that is a function. */
TD_API TdExtension *td_ext_function_new (TdStatus (*function) (void *self, TdTrainer *trainer),
                                         void *self);
TD_API void td_extension_free (TdExtension *extension);

typedef struct
{
  const char *out; /**< folder of its files */
  int end_;
} TdTrainerOpt;
#define TD_TRAINER_DEFAULTS .out = "result"
/** A training loop that ends when stop fires.  The updater must outlive it. */
TD_API TdTrainer *td_trainer_new_ (TdUpdater *updater, TdTrigger *stop, TdTrainerOpt options);
typedef struct
{
  const char *name;   /**< NULL: its class's; equal ones get _1, _2 ... */
  TdTrigger *trigger; /**< NULL: its class's */
  int priority;       /**< 0: its class's */
  bool call_before_training;
  int end_;
} TdExtendOpt;
#define TD_EXTEND_DEFAULTS .name = NULL
TD_API TdStatus td_trainer_extend_ (TdTrainer *trainer, TdExtension *extension,
                                    TdExtendOpt options);
/** Train.  Every update is an iteration of the recording; its reports are the iteration's.
 * *Errors*: the first one ends the loop, after every on_error and finalize. */
TD_API TdStatus td_trainer_run (TdTrainer *trainer);
TD_API TdStatus td_trainer_run_at (TdTrainer *trainer, const TdSite *site);
TD_API TdUpdater *td_trainer_updater (TdTrainer *trainer);
/** What was reported in this iteration. */
TD_API TdObservation *td_trainer_observation (TdTrainer *trainer);
TD_API const char *td_trainer_out (const TdTrainer *trainer);
/** *Units*: seconds, with those before the snapshot that it went on from. */
TD_API double td_trainer_elapsed_time (const TdTrainer *trainer);
/** Find an extension by its name, NULL if there is none. */
TD_API TdExtension *td_trainer_extension (TdTrainer *trainer, const char *name);
/** Save or load everything that the next iterations depend on: what td_save_npz and its family
 * are for a trainer.  *Errors*: nothing is changed then. */
TD_API TdStatus td_trainer_save_npz_at (const char *path, TdTrainer *trainer, TdSaveOpt options,
                                        const TdSite *site);
TD_API TdStatus td_trainer_load_npz_at (const char *path, TdTrainer *trainer, TdLoadOpt options,
                                        const TdSite *site);
TD_API TdStatus td_trainer_save_safetensors_at (const char *path, TdTrainer *trainer,
                                                TdSaveOpt options, const TdSite *site);
TD_API TdStatus td_trainer_load_safetensors_at (const char *path, TdTrainer *trainer,
                                                TdLoadOpt options, const TdSite *site);
TD_API void td_trainer_free (TdTrainer *trainer);

/* clang-format off */
#if !defined(TD_NO_SITES)
#define td_standard_updater_new(iter, ...) td__standard_updater_new_x (iter, __VA_ARGS__, .end_ = 0)
#define td__standard_updater_new_x(iter, opt, ...) TD_CALL_ (td_standard_updater_new_ (iter, opt, TD_OPTIONS_ (TdUpdaterOpt, TD_UPDATER_DEFAULTS, __VA_ARGS__)))
#define td_updater_update(...) td_updater_update_at (__VA_ARGS__, TD_HERE)
#define td_early_stopping_trigger_new(...) TD_CALL_ (td_early_stopping_trigger_new_ (TD_OPTIONS_ (TdEarlyStoppingOpt, TD_EARLY_STOPPING_DEFAULTS, __VA_ARGS__)))
#define td_trainer_new(updater, ...) td__trainer_new_x (updater, __VA_ARGS__, .end_ = 0)
#define td__trainer_new_x(updater, stop, ...) TD_CALL_ (td_trainer_new_ (updater, stop, TD_OPTIONS_ (TdTrainerOpt, TD_TRAINER_DEFAULTS, __VA_ARGS__)))
#define td_trainer_extend(trainer, ...) td__trainer_extend_x (trainer, __VA_ARGS__, .end_ = 0)
#define td__trainer_extend_x(trainer, extension, ...) TD_CALL_ (td_trainer_extend_ (trainer, extension, TD_OPTIONS_ (TdExtendOpt, TD_EXTEND_DEFAULTS, __VA_ARGS__)))
#define td_trainer_run(...) td_trainer_run_at (__VA_ARGS__, TD_HERE)
#endif
/* clang-format on */

TD_END_DECLS
