/* A list whose steps are launched as CUDA graphs, where the device can.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "play.h"

/** A run begins: may its steps go into graphs?  From the second run of a list on, on a device
 * that captures, when nobody looks at each operation. */
bool td__captures_begin (TdPlay *p);
/** Before step k of the ready ones: true where it goes into a graph, and the caller only opens
 * its gradients.  Otherwise what came before was launched, if the step needs that. */
bool td__captures_defer (TdPlay *p, uint32_t k, TdStatus *status);
/** The step waits, and its event is told of now. */
void td__captures_tell (TdPlay *p, uint32_t k);
/** Launch what still waits; the end of a run. */
TdStatus td__captures_end (TdPlay *p);
/** A whole run, with nobody to tell. */
TdStatus td__captures_play (TdPlay *p);
