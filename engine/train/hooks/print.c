/* PrintHook: what every operation got and made, as text.
 *
 * SPDX-License-Identifier: MIT */
#include "hooks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Shape, dtype and the extent of the finite numbers; the device computes no statistics of its
 * own for this, because a printing hook waits for the numbers anyway. */
static void
print_one (const TdVar *v)
{
  size_t bytes = v != NULL ? v->buffer->bytes : 0;
  double least = INFINITY, most = -INFINITY, sum = 0;
  int64_t n = v != NULL ? td_size (v) : 0;
  char text[200];
  void *host;

  if (v == NULL)
    {
      printf ("  (removed)\n");
      return;
    }
  printf ("  %s%s%s %s", v->name != NULL ? v->name : "", v->name != NULL ? ": " : "",
          td_shape_text (&v->node->shape, text, sizeof text), td_dtype_name (td_dtype (v)));
  host = malloc (bytes > 0 ? bytes : 1);
  if (host != NULL && n > 0 && v->node->device->computes && td_read (v, host, bytes) == TD_OK)
    {
      for (int64_t i = 0; i < n; i++)
        {
          double x = td__host_element (host, td_dtype (v), i);

          sum += x;
          least = fmin (least, x);
          most = fmax (most, x);
        }
      printf (" mean %g min %g max %g", sum / (double)n, least, most);
    }
  free (host);
  printf ("\n");
}

static void
print_all (const char *title, TdVar *const *vars, int n)
{
  printf ("%s\n", title);
  for (int i = 0; i < n; i++)
    print_one (vars[i]);
}

static void
forward_pre (TdHook *hook, void *self, const TdFunctionCall *call)
{
  (void)hook, (void)self;
  printf ("function\t%s%s%s\n", call->label, call->path[0] != '\0' ? "\tin " : "", call->path);
  print_all ("input data", call->in, call->n_in);
}

static void
forward_post (TdHook *hook, void *self, const TdFunctionCall *call)
{
  (void)hook, (void)self;
  if (call->out != NULL)
    print_all ("output data", call->out, call->n_out);
}

static void
backward_pre (TdHook *hook, void *self, const TdFunctionCall *call)
{
  forward_pre (hook, self, call);
  print_all ("output gradient", call->gy, call->n_out);
}

static const TdHookClass print_class = { .size = sizeof (TdHookClass),
                                         .name = "PrintHook",
                                         .forward_preprocess = forward_pre,
                                         .forward_postprocess = forward_post,
                                         .backward_preprocess = backward_pre };

TdHook *
td_print_hook_new (void)
{
  return td_hook_new (&print_class);
}
