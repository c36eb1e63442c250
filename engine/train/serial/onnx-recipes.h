/* Recipes (onnx-recipes.c), and what those of an operation and of its gradient share.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

/** What an operation is; the notation is at the head of onnx-recipes.c. */
typedef struct TdOnnxRecipe
{
  const char *key, *text;
} TdOnnxRecipe;

/** Of gradients (onnx-gradient-formulas.c); the last has no key. */
extern const TdOnnxRecipe td__onnx_gradient_recipes[];

/** How far each query of a goes with each key of b. */
#define TD_ONNX_SCORES "Mul(MatMul(a,Transpose(b;perm=[0,2,1])),!scale)"
/** 1 where the mask, the last operand, lets a query see a key. */
#define TD_ONNX_SEEN(MASK)                                                                     \
  "Cast(Cast(Reshape(Expand(Unsqueeze(" MASK ",[1]),!every),!scores);to=B);to=F)"
/** SCORES where k is not 0, and elsewhere what no exponential sees. */
#define TD_ONNX_HIDDEN(SCORES) "Where(Cast(k;to=B)," SCORES ",!hidden)"
/** -1 at the label b of each row of a, else 1. */
#define TD_ONNX_HINGE_SIGNS "Cast(OneHot(Cast(b;to=I),:#1,[1,-1]);to=F)"
/** 0 that NaN of a goes through, as it does where a gradient has none. */
#define TD_ONNX_NOTHING "Where(Equal(a,a),0,a)"
/** How many of k count, at least one. */
#define TD_ONNX_COUNTED "Max(ReduceSum(Cast(k;to=F);keepdims=0),1)"
