/* Small programs that train on a device, for what is watched meanwhile.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <tapedeck.h>

typedef struct TrainNet TrainNet;

/** "mlp", "lenet" or "lstm", with labels that lie on the host at first. */
TrainNet *train_new (const char *net, TdDevice *device);
/** One iteration: forward, backward, Adam.  reads: the loss is read; else 0 is returned. */
double train_step (TrainNet *t, bool reads);
/** From here on the images are made on the host and copied. */
void train_copies (TrainNet *t);
void train_free (TrainNet *t);
