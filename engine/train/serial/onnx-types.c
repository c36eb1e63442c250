/* Types that operators of ONNX do not take although they take float: there a node is of floats,
 * between casts, as the engine computes in half precision.  And operators that take doubles,
 * but have a number as an attribute, which is a float: of doubles they are composed.
 *
 * *Source*: the schemas of onnx 1.23 (onnx.defs.get_schema) of each operator that is written,
 * opset 17 to 21, which agree in this.  OneHot is not here, as what it spreads is i64, nor are
 * LSTM, GRU and RNN, which are written of f32 only. SPDX-License-Identifier: MIT */
#include "onnx.h"

#include <string.h>

static const struct
{
  const char *type;
  bool bf16, f16; /* not taken */
} lacks[] = {
  { "AveragePool", true, false },
  { "Conv", true, false },
  { "ConvTranspose", true, false },
  { "Cos", true, false },
  { "Elu", true, false },
  { "HardSigmoid", true, false },
  { "MaxPool", true, false },
  { "RandomNormal", true, false },
  { "RandomNormalLike", true, false },
  { "RandomUniform", true, false },
  { "RandomUniformLike", true, false },
  { "Range", true, true },
  { "Sin", true, false },
  { "Softplus", true, false },
};

/* The half precision that a step is of, or TD_F32. */
static TdDtype
half_of (const TdSchedule *s, const TdStep *step)
{
  for (uint32_t k = 0; k < step->n_in + step->n_out; k++)
    {
      const uint32_t node
          = k < step->n_in ? td__step_in (s, step, k) : td__step_out (s, step, k - step->n_in);
      const TdDtype dtype = (TdDtype)s->nodes[node].dtype;

      if (dtype == TD_F16 || dtype == TD_BF16)
        return dtype;
    }
  return TD_F32;
}

TdDtype
td__onnx_cast_around (const TdOnnx *o, const char *type)
{
  for (size_t i = 0; i < sizeof lacks / sizeof *lacks && o->step != NULL; i++)
    if (strcmp (lacks[i].type, type) == 0)
      {
        const TdDtype half = half_of (o->s, o->step);

        return half == TD_BF16 && lacks[i].bf16 ? TD_BF16
               : half == TD_F16 && lacks[i].f16 ? TD_F16
                                                : TD_F32;
      }
  return TD_F32;
}

static const struct
{
  const char *op, *line;
} doubles[] = {
  { "leaky_relu", "Where(Less(a,0),Mul(a,@slope),a)" },
  { "elu", "Where(Less(a,0),Mul(Sub(Exp(a),1),@alpha),a)" },
  { "hard_sigmoid", "Clip(Add(Mul(a,0.2),0.5),0,1)" },
};

bool
td__onnx_double (TdOnnx *o, const TdStep *step)
{
  if (step->n_in == 0 || o->s->nodes[td__step_in (o->s, step, 0)].dtype != TD_F64)
    return false;
  for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++)
    if (strcmp (doubles[i].op, step->cls->name) == 0)
      {
        td__onnx_compose (o, step, doubles[i].line, NULL, 0);
        return true;
      }
  return false;
}
