/* Images in another size, and the gradient, which is the transposed map: each the other's
 * gradient.
 *
 * A device without a kernel for it gathers the (one or four) pixels that each pixel of the
 * result lies between, by their places, and adds them up by weight; the gradient adds to the
 * same places.
 *
 * SPDX-License-Identifier: MIT */
#include "losses.h"

typedef struct
{
  int size[2]; /* of the result */
  int n_size;
  int mode;
  bool align_corners;
} Attrs;

static const char *const modes[] = { "bilinear", "nearest", NULL };

/* clang-format off */
#define ATTR_TABLE(name, of_size)                                                              \
  static const TdAttr name[] = {                                                               \
    { of_size, TD_ATTR_INTS, offsetof (Attrs, size), 0, offsetof (Attrs, n_size), NULL },      \
    { "mode", TD_ATTR_CHOICE, offsetof (Attrs, mode), 0, 0, "bilinear", modes },               \
    { "align_corners", TD_ATTR_BOOL, offsetof (Attrs, align_corners), 0, 0, "True" },          \
  };
/* clang-format on */
ATTR_TABLE (attr_table, "output_shape")
ATTR_TABLE (grad_attr_table, "input_shape")
static const char *const names_gy[] = { "gy" };

static TdStatus
infer (TdOpCall *call)
{
  const Attrs *a = call->attrs;
  TdShape y = *call->in[0].shape;
  TdStatus status = td__check_floats (call, 1);

  if (status == TD_OK)
    status = td__check_ndim (call, 0, 4);
  if (status != TD_OK)
    return status;
  if (a->n_size != 2 || a->size[0] < 1 || a->size[1] < 1)
    return td_op_fail_operands (call, TD_ERR_ARG, "%s: a height and a width above 0 expected",
                                call->cls->attrs[0].name);
  if (y.dim[2] < 1 || y.dim[3] < 1)
    return td_op_fail_operands (call, TD_ERR_SHAPE, "an image that is not empty expected");
  y.dim[2] = a->size[0];
  y.dim[3] = a->size[1];
  return td_op_out (call, 0, call->in[0].dtype, &y);
}

/* --- by gathering: one axis --- */

enum
{
  POSITION, /* f64 */
  WHOLE,    /* f64: without its fraction */
  FRACTION, /* f64 */
  LOW,      /* i64: places of the pixels before and behind, times the step */
  HIGH,
  FROM_LOW, /* of the images' dtype: the weights of these two */
  FROM_HIGH,
  AXIS_PARTS
};

static TdStatus
axis_places (TdDevice *d, const TdResize *r, int64_t n_in, int64_t n_out, int64_t step,
             TdTensor *t)
{
  double scale, shift;
  const bool halfway = td__resize_line (r, n_in, n_out, &scale, &shift);
  const TdDeviceOps *ops = d->ops;
  TdTensor *at = &t[POSITION];
  TdStatus s = ops->arange (d, at, 0, 1);

  if (s == TD_OK && halfway)
    s = ops->unary (d, TD_UNARY_ADD_SCALAR, 0.5, 0, at, at);
  if (s == TD_OK)
    s = ops->unary (d, TD_UNARY_MUL_SCALAR, scale, 0, at, at);
  if (s == TD_OK && halfway)
    s = ops->unary (d, TD_UNARY_ADD_SCALAR, shift, 0, at, at);
  if (s == TD_OK)
    s = ops->unary (d, TD_UNARY_CLIP, 0, (double)(n_in - 1), at, at);
  if (s == TD_OK)
    s = ops->cast (d, at, &t[LOW]);
  if (s == TD_OK && !r->nearest)
    {
      s = ops->cast (d, &t[LOW], &t[WHOLE]);
      if (s == TD_OK)
        s = ops->binary (d, TD_BINARY_SUB, at, &t[WHOLE], &t[FRACTION], false);
      if (s == TD_OK)
        s = ops->cast (d, &t[FRACTION], &t[FROM_HIGH]);
      if (s == TD_OK)
        s = ops->unary (d, TD_UNARY_RSUB_SCALAR, 1, 0, &t[FRACTION], &t[WHOLE]);
      if (s == TD_OK)
        s = ops->cast (d, &t[WHOLE], &t[FROM_LOW]);
      if (s == TD_OK)
        s = ops->unary (d, TD_UNARY_ADD_SCALAR, 1, 0, &t[LOW], &t[HIGH]);
      if (s == TD_OK)
        s = ops->unary (d, TD_UNARY_CLIP, 0, (double)(n_in - 1), &t[HIGH], &t[HIGH]);
      if (s == TD_OK && step != 1)
        s = ops->unary (d, TD_UNARY_MUL_SCALAR, (double)step, 0, &t[HIGH], &t[HIGH]);
    }
  if (s == TD_OK && step != 1)
    s = ops->unary (d, TD_UNARY_MUL_SCALAR, (double)step, 0, &t[LOW], &t[LOW]);
  return s;
}

/* --- by gathering: all --- */

/* `from` is what is gathered from (its gradient: added to), `to` the other side. */
static TdStatus
by_gathering (TdOpCall *call, const TdResize *r, bool grad)
{
  TdDevice *d = call->device;
  const TdDeviceOps *ops = d->ops;
  const TdTensor *x = &call->in[0], *from = grad ? &call->out[0] : x;
  const TdTensor *to = grad ? x : &call->out[0];
  const TdShape *f = from->shape, *t = to->shape;
  TdShape image = TD_SHAPE (f->dim[0] * f->dim[1], 1, 1), row = TD_SHAPE (t->dim[2], 1);
  TdShape column = TD_SHAPE (t->dim[3]), plane = TD_SHAPE (t->dim[2], t->dim[3]);
  TdShape all = TD_SHAPE (image.dim[0], t->dim[2], t->dim[3]);
  enum
  {
    IMAGES = 2 * AXIS_PARTS,
    PLACES, /* i64, of one image */
    INDEX,  /* i64, of all */
    WEIGHT, /* of one image */
    PIXELS, /* of all */
    PARTS
  };
  TdTensor parts[PARTS];
  TdTensor y = call->out[0], g = *x;
  TdStatus s;

  for (int i = 0; i < PARTS; i++)
    {
      const int part = i % AXIS_PARTS;
      TdShape *shape = i < AXIS_PARTS               ? &row
                       : i < IMAGES                 ? &column
                       : i == IMAGES                ? &image
                       : i == PLACES || i == WEIGHT ? &plane
                                                    : &all;
      const TdDtype dtype = i < IMAGES   ? part < LOW        ? TD_F64
                                           : part < FROM_LOW ? TD_I64
                                                             : x->dtype
                            : i < WEIGHT ? TD_I64
                                         : x->dtype;

      parts[i] = (TdTensor){ .shape = shape, .size = td_shape_size (shape), .dtype = dtype };
    }
  s = td__carve (call, parts, PARTS);
  if (s == TD_OK)
    s = axis_places (d, r, f->dim[2], t->dim[2], f->dim[3], parts);
  if (s == TD_OK)
    s = axis_places (d, r, f->dim[3], t->dim[3], 1, parts + AXIS_PARTS);
  if (s == TD_OK)
    s = ops->arange (d, &parts[IMAGES], 0, (double)(f->dim[2] * f->dim[3]));
  if (s == TD_OK && grad)
    s = ops->zero (d, y.data, (size_t)y.size * td_dtype_bytes (y.dtype));
  y.shape = g.shape = &all; /* of the small side: y if gathered to, gy if added from */
  for (int corner = 0; s == TD_OK && corner < (r->nearest ? 1 : 4); corner++)
    {
      const int v = corner / 2, u = AXIS_PARTS + corner % 2;

      s = ops->binary (d, TD_BINARY_ADD, &parts[LOW + v], &parts[LOW + u], &parts[PLACES],
                       false);
      if (s == TD_OK)
        s = ops->binary (d, TD_BINARY_ADD, &parts[IMAGES], &parts[PLACES], &parts[INDEX],
                         false);
      if (s == TD_OK && !r->nearest)
        s = ops->binary (d, TD_BINARY_MUL, &parts[FROM_LOW + v], &parts[FROM_LOW + u],
                         &parts[WEIGHT], false);
      if (s != TD_OK)
        break;
      if (grad)
        {
          const TdTensor *share = &g;

          if (!r->nearest)
            {
              s = ops->binary (d, TD_BINARY_MUL, &g, &parts[WEIGHT], &parts[PIXELS], false);
              share = &parts[PIXELS];
            }
          if (s == TD_OK)
            s = ops->scatter_rows_add (d, &parts[INDEX], share, &call->out[0]);
        }
      else
        {
          TdTensor *pixels = r->nearest ? &y : &parts[PIXELS];

          s = ops->gather_rows (d, x, &parts[INDEX], pixels);
          if (s == TD_OK && !r->nearest)
            s = ops->binary (d, TD_BINARY_MUL, pixels, &parts[WEIGHT],
                             corner == 0 ? &y : pixels, false);
          if (s == TD_OK && corner > 0)
            s = ops->binary (d, TD_BINARY_ADD, &y, pixels, &y, false);
        }
    }
  return s;
}

static TdStatus
run (TdOpCall *call, bool grad)
{
  const Attrs *a = call->attrs;
  const TdResize r = { a->mode == 1, a->align_corners };
  const TdDtype dtype = call->in[0].dtype;

  if (call->out[0].size == 0)
    return TD_OK;
  if (call->device->ops->resize != NULL && (dtype == TD_F32 || dtype == TD_F64))
    return call->device->ops->resize (call->device, &r, grad, &call->in[0], &call->out[0]);
  return by_gathering (call, &r, grad);
}

static TdStatus
forward (TdOpCall *call)
{
  return run (call, false);
}

static TdStatus
grad_forward (TdOpCall *call)
{
  return run (call, true);
}

/* The other direction, to the size of the input. */
static TdStatus
back (TdBackward *b, const TdOpClass *cls)
{
  const TdShape *x = td_backward_in_shape (b, 0);
  Attrs a = *(const Attrs *)b->attrs;

  a.size[0] = (int)x->dim[2];
  a.size[1] = (int)x->dim[3];
  b->gx[0] = td__apply1 (cls, &a, NULL, b->gy[0]);
  return TD_OK;
}

static TdStatus
backward (TdBackward *b)
{
  return back (b, &td__resize_images_grad_class);
}

static TdStatus
grad_backward (TdBackward *b)
{
  return back (b, &td__resize_images_class);
}

#define RESIZE_CLASS(op_name, op_label, text, names, table, forward_of, backward_of)           \
  const TdOpClass td__##op_name##_class = {                                                    \
    .name = #op_name,                                                                          \
    .label = op_label,                                                                         \
    .group = "array",                                                                          \
    .formula = text,                                                                           \
    .n_in_min = 1,                                                                             \
    .n_in_max = 1,                                                                             \
    .n_out = 1,                                                                                \
    .in_names = names,                                                                         \
    .attrs_size = sizeof (Attrs),                                                              \
    .attrs = table,                                                                            \
    .n_attrs = TD_ARRAY_LENGTH (table),                                                        \
    .infer = infer,                                                                            \
    .forward = forward_of,                                                                     \
    .backward = backward_of,                                                                   \
  };

RESIZE_CLASS (resize_images, "ResizeImages", "x between the pixels nearby", td__names_x,
              attr_table, forward, backward)
RESIZE_CLASS (resize_images_grad, "ResizeImagesGrad", "gy shared among the pixels nearby",
              names_gy, grad_attr_table, grad_forward, grad_backward)

TdVar *
td_resize_images_at (TdVar *x, int64_t height, int64_t width, TdResizeImagesOpt options,
                     const TdSite *site)
{
  const int mode = td__choice (modes, options.mode);
  const Attrs attrs
      = { { height > INT32_MAX ? -1 : (int)height, width > INT32_MAX ? -1 : (int)width },
          2,
          mode,
          options.align_corners };

  if (mode < 0)
    return td__choice_fail ("resize_images", "mode", modes, options.mode, site);
  return td__apply1 (&td__resize_images_class, &attrs, site, x);
}

TdVar *
td_resize_images_ (TdVar *x, int64_t height, int64_t width, const TdResizeImagesOpt *options)
{
  static const TdResizeImagesOpt defaults = { TD_RESIZE_IMAGES_DEFAULTS };

  return td_resize_images_at (x, height, width, options != NULL ? *options : defaults, NULL);
}
