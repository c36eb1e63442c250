/* The link that an ONNX graph becomes.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "run.h"

typedef struct TdOnnxLink
{
  TdOnnxGraph *graph;
  TdParam **params; /**< of each array that is given, or NULL */
  bool said;        /**< that sizes of one name differ */
} TdOnnxLink;

/** A root without arrays; inert after td__fail. */
TdLink *td__onnx_link_new (const char *name, const TdSite *site);
/** *Owner*: the link takes the caller's reference to graph. */
void td__onnx_link_fill (TdLink *link, TdOnnxGraph *graph);
/** What td_onnx_input says of it. */
TdOnnxInfo td__onnx_port_info (const TdOnnxPort *port);
/** Find the parameters by their keys. */
void td__onnx_link_collect (TdLink *link);
