/* Rules for numbers of an operation that may be a size (td__onnx_size_refuses): each says why
 * the symbols of *mask have to stay, or NULL.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

#include "onnx-sizes.h"

const char *td__onnx_number_padding (const TdOnnxSizes *z, const TdStep *step, uint64_t *mask);
const char *td__onnx_number_classes (const TdOnnxSizes *z, const TdStep *step, uint64_t *mask);
/** Images in a size that is given. */
const char *td__onnx_number_images (const TdOnnxSizes *z, const TdStep *step, uint64_t *mask);
const char *td__onnx_number_window (const TdOnnxSizes *z, const TdStep *step, uint64_t *mask);
const char *td__onnx_number_mask (const TdOnnxSizes *z, const TdStep *step, uint64_t *mask);
/** Can an array that is made from nothing be longer with the same numbers in front? */
bool td__onnx_number_goes_on (const TdOnnxSizes *z, const TdStep *step);
