/* A communicator's devices: arrays that lie on them go from one to the other, past the host.
 *
 * What ranks tell each other goes as ever, and so do arrays in host memory; only where all
 * ranks have an array on their devices it goes this way.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "comm.h"

/** This rank's device in a team of all ranks of a communicator. */
struct TdFar
{
  TdDevice *device;
  TdTeam *team; /**< NULL: it was given up */
  bool used;    /**< by somebody, on this rank */
  bool alone;   /**< its communicator has ended: who uses it frees it */
  TdFar *next;  /**< of the same communicator; in the same order on all ranks */
};

/** Which way arrays are to go. */
typedef enum
{
  TD_FAR_NEVER,   /**< "mpi" */
  TD_FAR_MACHINE, /**< "shm": never, on one machine */
  TD_FAR_CAN,     /**< where all ranks' devices can */
  TD_FAR_MUST     /**< "nccl" */
} TdFarWish;

/** Make a team of all ranks' devices, if that is wished and can be.  For all ranks.  *Errors*:
 * where it must be and cannot, or ranks wish different things: on all of them. */
TdStatus td__far_join (TdComm *comm, TdDevice *device, TdFarWish wish, const TdSite *site);
/** Another team of the same devices, for what is on its way beside other calls; NULL where
 * there is none, or after td__fail.  For all ranks.  *Owner*: the communicator, while there is
 * one; td__far_leave gives it back, and after the communicator's end frees it. */
TdFar *td__far_another (TdComm *comm, const TdSite *site);
/** It is needed no more. */
void td__far_leave (TdFar *far);
/** Others may never bring their part of what was begun: the device gives it up, and nothing
 * uses its arrays any more. */
void td__far_give_up (TdFar *far);
/** Close all teams of a communicator. */
void td__far_close (TdComm *comm, bool together);
/** Does this array lie on the communicator's device? */
bool td__far_has (const TdComm *comm, const TdVar *v);

/* Exchanges; what is issued on the device after them follows them. */
TdStatus td__far_bcast (TdComm *comm, const TdTensor *x, TdTensor *y, int root);
TdStatus td__far_sum (TdComm *comm, const TdTensor *x, TdTensor *y);
TdStatus td__far_gather (TdComm *comm, const TdTensor *x, TdTensor *y);
TdStatus td__far_exchange (TdComm *comm, const TdTensor *x, TdTensor *y);
