/* The files of `tapedeck weights`: what is in each side, and what is made of them.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "diff/td-weights.h"
#include "train/serial/archive.h"

/** A list of arrays: of a file, npz or safetensors, or of a tape, which has no values. */
typedef struct
{
  const char *path;
  TdArchiveSource *source; /**< NULL: a tape */
  GPtrArray *names;
  GPtrArray *reasons; /**< why some of the arrays are not read */
  GArray *arrays;     /**< TdWeightsArray */
} TdWeightsFile;

/** Read names and shapes.  *Owner*: the caller, td_weights_file_clear, also after an error.
 * *Errors*: FALSE and `error`. */
gboolean td_weights_file_open (TdWeightsFile *file, const char *path, GError **error);
/** The same of the parameters that a tape tells of; the model's own name is left out. */
gboolean td_weights_file_open_tape (TdWeightsFile *file, const char *path, GError **error);
void td_weights_file_clear (TdWeightsFile *file);
/** Say whether two arrays of a file hold the same: a TdWeightsSame. */
gboolean td_weights_file_same (guint i, guint other, gpointer file);

/** Make one array of ours.  *Owner*: the caller, free (value->data); of kind TD_RECORD_NONE it
 * stays as it is where the file is loaded.  *Errors*: FALSE and `why`, the caller's. */
gboolean td_weights_make (const TdWeights *weights, const TdWeightsRow *row,
                          const TdWeightsFile *ours, const TdWeightsFile *theirs,
                          TdRecord *value, char **why);
