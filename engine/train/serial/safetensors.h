/* The header of a safetensors file.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "tapedeck-op.h"

enum
{
  TD_SAFE_HEADER_MOST = 100 * 1000 * 1000 /**< the format's own limit, in bytes */
};

typedef struct
{
  char *name;
  char dtype_name[12];
  int dtype; /**< -1: one that there is none for here */
  TdShape shape;
  uint64_t begin, end; /**< bytes behind the header */
} TdSafeTensor;
typedef struct
{
  char *key, *text;
} TdSafeText;
typedef struct
{
  TdSafeTensor *tensors;
  int n_tensors;
  TdSafeText *texts;
  int n_texts;
} TdSafeHeader;

/** Understand a header of n bytes and a final 0; everything that JSON and the format do not
 * allow is refused.  False: *why. */
bool td__safe_header_parse (TdSafeHeader *header, const char *json, size_t n, const char **why);
void td__safe_header_clear (TdSafeHeader *header);
