/* Training loops from the inside.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "../serial/serializer.h"
#include "../optim/optimizer.h"
#include "iterator.h"
#include "../links/report.h"

struct TdTrigger
{
  TdObject object;
  const TdTriggerClass *cls;
  void *self;
  bool inert, owned;
};

struct TdExtension
{
  TdObject object;
  const TdExtensionClass *cls;
  void *self;
  bool inert, owned;
};

typedef struct TdNamedIter
{
  char *name;
  TdIter *iter;
} TdNamedIter;
typedef struct TdNamedOpt
{
  char *name;
  TdOpt *opt;
} TdNamedOpt;

struct TdUpdater
{
  TdObject object;
  TdUpdaterOpt o;
  TdNamedIter *iters;
  int n_iters;
  TdNamedOpt *opts;
  int n_opts;
  int64_t iteration;
  bool inert;
};

/** An extension in its place. */
typedef struct TdExtended
{
  char *name;
  TdExtension *extension;
  TdTrigger *trigger;
  int priority;
  bool call_before_training;
} TdExtended;

struct TdTrainer
{
  TdObject object;
  TdUpdater *updater;
  TdTrigger *stop;
  char *out;
  TdExtended *extended; /**< in the order of adding */
  int n_extended;
  TdObservation *observation;
  double started, elapsed_before; /**< seconds; started < 0: not yet */
  bool done, inert;
};

/** Seconds of a clock that only goes forward; tests put their own here. */
extern double (*td__train_clock) (void);

/** Give a trigger to an owner.  NULL after td__fail: inert, or another's already. */
TdTrigger *td__trigger_take (TdTrigger *trigger, const char *call);
/** The trigger, or every `period` of `unit` when it is NULL; owned by the caller. */
TdTrigger *td__trigger_or (TdTrigger *trigger, double period, const char *unit,
                           const char *call);
void td__trigger_drop (TdTrigger *trigger);
/** The trigger that ends training in any case, of early stopping; else NULL. */
const TdTrigger *td__stopping_max (const TdTrigger *trigger);
/** Save or load a trigger's state, if it has any. */
void td__trigger_serialize (TdTrigger *trigger, TdSerializer *s);
TdTrigger *td__trigger_inert (void);
/** How long training is that a trigger ends; false when it does not say. */
bool td__trigger_length (const TdTrigger *trigger, double *length, bool *by_epoch);

/** What several processes make of their evaluations; ranks fills it. */
typedef struct TdEvaluatorShare
{
  /** Put what all of them have found in place of what this one has: means, with the examples
   * that they are of as weights.  Called after an error, too: the others hear of it. */
  TdStatus (*all) (void *shared, TdObservation *summary);
  void (*free) (void *shared);
} TdEvaluatorShare;
/** From here on share.all is called.  False: no evaluator, or one that is shared already.
 * *Owner*: the extension takes shared. */
bool td__evaluator_share (TdExtension *extension, const TdEvaluatorShare *share, void *shared);

TdExtension *td__extension_inert (void);
void td__extension_drop (TdExtension *extension);
bool (td__trainer_usable) (const TdTrainer *trainer, const char *call);
#ifdef __clang_analyzer__
#define td__trainer_usable(trainer, ...) TD_USABLE (td__trainer_usable, trainer, __VA_ARGS__)
#endif
/** A trainer, as td_save_npz does. */
void td__trainer_serialize (void *trainer, TdSerializer *s);
/** Write "OUT/NAME" to path.  False after td__fail: too long. */
bool td__trainer_path (const TdTrainer *trainer, const char *name, char *path, size_t size,
                       const char *call);

/** The link that an optimizer trains; NULL when it was freed. */
TdLink *td__opt_target (const TdOpt *opt);
void td__updater_serialize (TdUpdater *updater, TdSerializer *s);
void td__observation_serialize (TdObservation *o, TdSerializer *s, const char *name);
/** Where an iterator stands, with Chainer's keys. */
void td__iter_serialize (TdIter *iter, TdSerializer *s);

/** A copy of a list of texts that ends in NULL.  *Owner*: the caller, td__keys_free. */
char **td__keys_copy (const char *const *keys);
void td__keys_free (char **keys);
/** "{iteration}" and "{epoch}" (and Chainer's "{.updater.iteration}") of a file name replaced.
 */
void td__file_name (const char *pattern, const TdUpdater *updater, char *name, size_t size);
/** Write a whole file under the trainer's folder: a temporary file, then its name. */
TdStatus td__trainer_write (const TdTrainer *trainer, const char *name, const char *text,
                            size_t bytes, const char *call);
