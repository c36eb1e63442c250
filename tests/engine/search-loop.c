/* One iteration of a random program: arguments, calls of the static function, a loss, backward,
 * an update, and whatever happens to it in between.
 *
 * SPDX-License-Identifier: MIT */
#include "search-run.h"

#include <string.h>

static bool
has (const Run *r, EventKind kind)
{
  return program_has (r->p, kind, r->iteration);
}

/* --- hooks --- */

static uint32_t
mixed (uint32_t hash, const char *text)
{
  while (*text != '\0')
    hash = (hash ^ (uint8_t)*text++) * 16777619u;
  return hash;
}

static void
see_forward (TdHook *hook, void *self, const TdFunctionCall *call)
{
  Run *r = *(Run **)self;

  (void)hook;
  r->hooked = mixed (r->hooked, call->name);
}

static void
see_backward (TdHook *hook, void *self, const TdFunctionCall *call)
{
  Run *r = *(Run **)self;

  (void)hook;
  r->hooked = mixed (r->hooked, call->name) + 1;
}

static void
see_link (TdHook *hook, void *self, const TdLinkCall *call)
{
  Run *r = *(Run **)self;

  (void)hook;
  r->hooked = mixed (r->hooked, call->path) + 2;
}

static TdHook *
add_hook (Run *r)
{
  static const TdHookClass cls = { .size = sizeof (TdHookClass),
                                   .name = "see",
                                   .self_bytes = sizeof (Run *),
                                   .forward_postprocess = see_forward,
                                   .backward_postprocess = see_backward,
                                   .link_forward_postprocess = see_link,
                                   .link_backward_postprocess = see_link };
  TdHook *hook;

  if (!has (r, HOOK) && !has (r, LINK_HOOK))
    return NULL;
  hook = td_hook_new (&cls);
  *(Run **)td_hook_self (hook) = r;
  if (has (r, HOOK))
    td_hook_add (hook);
  else
    td_link_add_hook (r->layers[0], hook);
  return hook;
}

/* --- before --- */

/* The arguments of a call. */
static void
arguments (Run *r, unsigned call, TdVar **in)
{
  const unsigned seed = r->p->seed * 97 + (unsigned)r->iteration * 7 + call * 3;
  const int64_t rows = has (r, OTHER_ROWS) ? ROWS + 1 : ROWS;

  in[0] = fresh_array (rows, COLUMNS, seed);
  if (!r->p->frozen_arguments)
    td_variable (in[0], "x");
  in[1] = fresh_array (rows, COLUMNS, seed + 1);
  if (has (r, ALIAS))
    in[1] = in[0];
  if (has (r, PASS_PARAMETER))
    {
      in[0] = td_link_param (r->layers[0], "W"); /* (COLUMNS, COLUMNS) */
      in[1] = fresh_array (COLUMNS, COLUMNS, seed + 1);
    }
  if (has (r, PASS_CAPTURED))
    in[1] = r->captured;
}

void
loop_boundary (Run *r)
{
  td_cleargrads (r->root);
  td_cleargrads (r->other_root);
}

static void
set_up (Run *r)
{
  r->watched.fails = has (r, FLAG);
  r->watched.fails_backward = has (r, FAIL_BACKWARD);
  r->hidden = has (r, HIDDEN_CHANGES) ? -0.5 : 0.75;
  if (has (r, WEIGHTS_BY_HAND))
    fill_array (td_link_param (r->layers[1], "W"), 5);
  if (has (r, SEED))
    td_set_seed (r->p->seed + 11);
  if (has (r, FREEZE))
    td_link_disable_update (r->layers[0]);
  else
    td_link_enable_update (r->layers[0]);
  td_lstm_reset_state (r->stateful);
  if (optimizer_rate (r->p->optimizer) != NULL && !r->p->trainer) /* which has it shifted */
    td_opt_set_lr (r->opt, has (r, OTHER_RATE) ? 0.03 : 0.1);
  if (has (r, CLEAR_SCHEDULES))
    td_static_clear (r->outer);
  if (has (r, VERIFY_NEXT))
    td_static_verify_next (r->outer);
  td_config_set (train, !has (r, EVALUATE));
  td_config_set (enable_backprop, !has (r, WITHOUT_BACKPROP));
}

/* --- between forward and backward --- */

static void
fail_outside (Run *r)
{
  TdVar *y = td_matmul (r->captured, r->captured, false, false);

  note_status (r, "outside", td_poisoned (y) ? TD_ERR_SHAPE : TD_OK);
}

static void
meddle (Run *r, TdVar *const *in, TdVar *const *out)
{
  const struct
  {
    EventKind kind;
    TdVar *v;
  } writes[] = { { WRITE_RESULT, out[0] },
                 { WRITE_ARGUMENT, in[0] },
                 { WRITE_PARAMETER, td_link_param (r->layers[0], "W") } };

  for (size_t k = 0; k < sizeof writes / sizeof *writes; k++)
    if (has (r, writes[k].kind))
      fill_array (writes[k].v, 77);
  if (has (r, UNCHAIN))
    td_unchain (out[1]);
  if (has (r, FAIL_OUTSIDE))
    fail_outside (r);
}

static void
behind (void *user, TdVar *const *xs, int n, TdVar **ys, int m)
{
  const Run *r = user;

  (void)n;
  (void)m;
  ys[0] = td_tanh (td_link (r->layers[1], xs[0]));
}

/* The function's result, or what is computed from it once more in backward. */
static TdVar *
gone_on (Run *r, TdVar *out)
{
  TdVar *y = NULL;

  if (!r->p->goes_on)
    return out;
  td_forget (behind, r, &out, 1, &y, 1);
  return y;
}

static TdVar *
loss_of (Run *r, TdVar *const *out)
{
  TdVar *loss = NULL;

  for (int k = has (r, SECOND_ONLY); k < 2; k++)
    {
      TdVar *x = gone_on (r, out[k]), *y = r->other_opt != NULL ? td_link (r->other, x) : x;
      TdVar *one = td_sum (td_mul (y, td_sigmoid (x)));

      loss = loss == NULL ? one : td_add (loss, one);
    }
  return loss;
}

/* --- backward --- */

static TdStatus
gradients_of (Run *r, TdVar **loss, TdVar *x)
{
  TdVar *xs[] = { x, td_link_param (r->layers[0], "W"), td_link_param (r->layers[1], "W") };
  TdVar *gxs[3] = { NULL, NULL, NULL };
  TdStatus status = TD_OK;

  if (has (r, GRADIENTS_OF))
    {
      status = note_status (r, "td_grad_of", td_grad_of (loss, 1, xs, 3, NULL, 0, gxs));
      for (int k = 0; k < 3 && status == TD_OK; k++)
        note_var (r, "gradient of", gxs[k]);
    }
  if (has (r, DOUBLE_BACKWARD) && status == TD_OK)
    {
      status = note_status (r, "double",
                            td_grad_of (loss, 1, xs, 2, NULL, TD_DOUBLE_BACKPROP, gxs));
      if (status == TD_OK && gxs[1] != NULL)
        *loss = td_add (*loss, td_sum (td_mul (gxs[1], gxs[1])));
    }
  return status;
}

/* By the optimizer, or a plain one in half of the programs: after one whose loss was scaled
 * that is an error. */
static TdStatus
one_backward (const Run *r, TdVar *loss, unsigned flags, bool may_be_plain)
{
  return may_be_plain && r->p->seed % 2 == 0 ? td_backward (loss, flags)
                                             : td_opt_backward (r->opt, loss, flags);
}

static TdStatus
backward (Run *r, TdVar *loss, TdVar *x)
{
  const unsigned flags = has (r, RETAIN_GRADS) ? TD_RETAIN_GRADS : 0;
  TdStatus status = gradients_of (r, &loss, x);

  if (status == TD_OK)
    status
        = note_status (r, "backward", one_backward (r, loss, flags, has (r, BACKWARD_TWICE)));
  if (status == TD_OK && has (r, BACKWARD_TWICE))
    status = note_status (r, "backward again",
                          one_backward (r, loss, flags, r->p->seed / 2 % 2 == 0));
  return status;
}

/* --- after --- */

static void
note_param (const char *path, TdVar *param, void *user)
{
  char what[24];

  snprintf (what, sizeof what, "%s", path);
  note_var (user, what, param);
  snprintf (what, sizeof what, "d %s", path);
  note_var (user, what, td_grad (param));
}

static void
save_and_load (Run *r)
{
  TdStatus status;
  char path[4096];

  run_file ("weights.npz", path, sizeof path);
  status = td_save_npz (path, r->root, .compression = false);
  if (status == TD_OK)
    status = td_load_npz (path, r->root);
  note_status (r, "save and load", status);
}

static void
update (Run *r)
{
  note_status (r, "update", td_opt_update (r->opt));
  if (r->other_opt != NULL)
    note_status (r, "other update", td_opt_update (r->other_opt));
  td_link_each_param (r->root, note_param, r);
  td_link_each_param (r->other_root, note_param, r);
  note_var (r, "mean", td_link_param (r->bn, "avg_mean"));
}

/* --- all of it --- */

static void
iterate (Run *r)
{
  const unsigned calls = has (r, CALL_TWICE) ? 2 : 1;
  TdVar *in[2][2], *out[2], *loss = NULL;

  for (unsigned c = 0; c < calls; c++)
    {
      TdVar *one;

      arguments (r, c, in[c]);
      if (note_status (r, "call", td_static_call (r->outer, in[c], 2, out, 2)) != TD_OK)
        {
          r->failed = true;
          return;
        }
      note_var (r, "result 0", out[0]);
      note_var (r, "result 1", out[1]);
      one = loss_of (r, out);
      loss = loss == NULL ? one : td_add (loss, one);
      meddle (r, in[c], out);
    }
  if (has (r, NO_BACKWARD))
    return;
  if (!has (r, KEEP_GRADIENTS))
    {
      td_cleargrads (r->root);
      td_cleargrads (r->other_root);
    }
  td_cleargrad (r->captured);
  if (backward (r, loss, in[0][0]) != TD_OK)
    {
      loop_boundary (r); /* what was collected until then */
      return;
    }
  note_var (r, "d result", td_grad (out[0]));
  note_var (r, "d x", td_grad (in[0][0]));
  note_var (r, "d captured", td_grad (r->captured));
  update (r);
  if (has (r, SAVE_AND_LOAD))
    save_and_load (r);
}

void
loop_iteration (Run *r)
{
  TdHook *hook;

  r->hooked = 0;
  r->failed = false;
  hook = add_hook (r);
  set_up (r);
  if (r->iteration == r->p->stop_at)
    loop_boundary (r);
  iterate (r);
  if (hook != NULL)
    {
      td_hook_free (hook);
      note_hash (r, "what hooks saw", r->hooked);
    }
  note_hash (r, "effects", (uint64_t)r->n_effects);
  td_config_set (train, 1);
  td_config_set (enable_backprop, 1);
}
