/* Teams: devices of several processes that exchange arrays among themselves, past the host.
 * Included by device.h.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdbool.h>

#include "tapedeck-op.h"

enum
{
  TD_DEVICE_IDENTITY = 16 /* bytes */
};

/** What the processes of one team know it by; one of them makes it for all. */
typedef struct TdTeamId
{
  char bytes[128];
} TdTeamId;

/** A device's part in a team; opaque, of the device. */
typedef struct TdTeam TdTeam;
/** A place in the team's work, on this device; the device's. */
typedef struct TdTeamMark TdTeamMark;

/** Exchanges begin behind all work that was issued on this device so far, and behind each
 * other, whatever teams they are of, in one order on all ranks; the host waits for none.  Each
 * has its mark taken before the next one is issued.  What is issued later follows them only
 * after `follow`; until then arrays must stay, and nobody else may use them.  Arrays have one
 * dtype and size on all ranks. */
typedef struct TdDeviceTeams
{
  /** Returns NULL, or in one line why this device can be in no team. */
  const char *(*missing) (TdDevice *d);
  /** Say which device of all that there are it is.  False after fail. */
  bool (*identity) (TdDevice *d, unsigned char id[TD_DEVICE_IDENTITY]);
  /** Make a new team's id.  *Errors*: after fail. */
  TdStatus (*id_new) (TdDevice *d, TdTeamId *id);
  /** Join it, which waits for all `size` ranks.  *Owner*: the caller, close.  *Errors*: NULL
   * after fail. */
  TdTeam *(*open) (TdDevice *d, const TdTeamId *id, int rank, int size);
  /** together: all ranks close it, and all that was begun is waited for; else it is given up.
   */
  void (*close) (TdDevice *d, TdTeam *team, bool together);
  /** y becomes the root's x. */
  TdStatus (*bcast) (TdDevice *d, TdTeam *team, const TdTensor *x, TdTensor *y, int root);
  /** y becomes the sum of all ranks' x, the same bits on all of them; y may be x.  Not of bool.
   */
  TdStatus (*sum) (TdDevice *d, TdTeam *team, const TdTensor *x, TdTensor *y);
  /** y becomes all ranks' x, in their order. */
  TdStatus (*gather) (TdDevice *d, TdTeam *team, const TdTensor *x, TdTensor *y);
  /** Part i of `size` equal parts of x goes to rank i; part i of y is from there. */
  TdStatus (*exchange) (TdDevice *d, TdTeam *team, const TdTensor *x, TdTensor *y);
  /** After what was begun last.  *Owner*: the caller, follow or drop.  *Errors*: NULL after
   * fail. */
  TdTeamMark *(*mark) (TdDevice *d, TdTeam *team);
  /** Has the device come there? */
  bool (*passed) (TdDevice *d, TdTeamMark *mark);
  /** Let what is issued from here on follow it, and give it up. */
  TdStatus (*follow) (TdDevice *d, TdTeamMark *mark);
  /** Give it up; also after the team was closed. */
  void (*drop) (TdDevice *d, TdTeamMark *mark);
} TdDeviceTeams;
