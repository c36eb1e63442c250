/* Iterations made by hand: graphs of a size and shape that a test asks for.
 * SPDX-License-Identifier: MIT */
#include "td-synthetic.h"

#include <string.h>

#include "tape/td-mix.h"

struct TdSynthetic
{
  TdTapeIteration head;
  GArray *events, *starts, *durations, *ins, *outs, *vars, *dims, *spans, *grads, *stats;
  GArray *open;     /* guint32 spans */
  GArray *gradient; /* guint32 per variable: its gradient so far, + 1 */
  GPtrArray *texts; /* all ids are indices here */
  GHashTable *text_ids;
  GHashTable *parameters; /* path -> variable + 1 */
  GHashTable *seen;       /* key hash -> count */
};

/* ---- texts ---- */

static guint32
text_id (TdSynthetic *self, const char *text)
{
  guint id = GPOINTER_TO_UINT (g_hash_table_lookup (self->text_ids, text));

  if (id == 0)
    {
      char *copy = g_strdup (text);

      id = self->texts->len;
      g_ptr_array_add (self->texts, copy);
      g_hash_table_insert (self->text_ids, copy, GUINT_TO_POINTER (id));
    }
  return id;
}

static const char *
get_text (gpointer data, guint32 id)
{
  GPtrArray *texts = data;

  return id < texts->len ? texts->pdata[id] : NULL;
}

static const char *
get_site (gpointer data, guint32 site, guint32 *line)
{
  (void)data;
  *line = site;
  return "model.c";
}

static const TdNamesClass names = { get_text, get_text, get_text, get_site };

static void
free_texts (gpointer data)
{
  g_ptr_array_unref (data);
}

/* ---- building ---- */

TdSynthetic *
td_synthetic_new (guint64 number)
{
  TdSynthetic *self = g_new0 (TdSynthetic, 1);

  self->head.size = sizeof self->head;
  self->head.number = number;
  self->events = g_array_new (FALSE, TRUE, sizeof (TdTapeEvent));
  self->starts = g_array_new (FALSE, TRUE, sizeof (guint64));
  self->durations = g_array_new (FALSE, TRUE, sizeof (guint64));
  self->ins = g_array_new (FALSE, TRUE, sizeof (guint32));
  self->outs = g_array_new (FALSE, TRUE, sizeof (guint32));
  self->vars = g_array_new (FALSE, TRUE, sizeof (TdTapeVar));
  self->dims = g_array_new (FALSE, TRUE, sizeof (gint64));
  self->spans = g_array_new (FALSE, TRUE, sizeof (TdTapeSpan));
  self->grads = g_array_new (FALSE, TRUE, sizeof (TdTapeGrad));
  self->stats = g_array_new (FALSE, TRUE, sizeof (TdTapeStats));
  self->open = g_array_new (FALSE, FALSE, sizeof (guint32));
  self->gradient = g_array_new (FALSE, TRUE, sizeof (guint32));
  self->texts = g_ptr_array_new_with_free_func (g_free);
  g_ptr_array_add (self->texts, g_strdup (""));
  self->text_ids = g_hash_table_new (g_str_hash, g_str_equal);
  self->parameters = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  self->seen = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  return self;
}

static TdTapeEvent *
event_at (TdSynthetic *self, guint event)
{
  return &g_array_index (self->events, TdTapeEvent, event);
}

static TdTapeVar *
var_at (TdSynthetic *self, guint var)
{
  return &g_array_index (self->vars, TdTapeVar, var);
}

/* The k-th thing with this hash gets a key of its own. */
static guint64
next_key (TdSynthetic *self, guint64 hash)
{
  guint count = GPOINTER_TO_UINT (g_hash_table_lookup (self->seen, &hash));

  g_hash_table_insert (self->seen, g_memdup2 (&hash, sizeof hash),
                       GUINT_TO_POINTER (count + 1));
  return td__mix (hash, count);
}

static guint
add_var (TdSynthetic *self, const char *name, const gint64 *shape, gint producer,
         guint category, guint flags)
{
  TdTapeVar var
      = { .producer = producer, .category = (guint8)category, .flags = (guint8)flags };
  guint32 none = 0;

  var.name = *name ? text_id (self, name) : 0;
  var.first_dim = self->dims->len;
  var.bytes = 4;
  for (; *shape; shape++)
    {
      var.ndim++;
      var.bytes *= (guint64)*shape;
      g_array_append_val (self->dims, *shape);
    }
  var.dtype = TD_TAPE_F32;
  var.id = self->vars->len + 1;
  var.key = producer >= 0 ? td__mix (event_at (self, (guint)producer)->key, 77)
                          : next_key (self, td__mix_text (1, name));
  g_array_append_val (self->vars, var);
  g_array_append_val (self->gradient, none);
  return self->vars->len - 1;
}

guint
td_synthetic_input (TdSynthetic *self, const char *name, const gint64 *shape)
{
  return add_var (self, name, shape, -1, TD_TAPE_CATEGORY_INPUT, 0);
}

guint
td_synthetic_parameter (TdSynthetic *self, const char *path, const gint64 *shape)
{
  guint known = GPOINTER_TO_UINT (g_hash_table_lookup (self->parameters, path));

  if (known == 0)
    {
      known = add_var (self, path, shape, -1, TD_TAPE_CATEGORY_PARAMETER,
                       TD_TAPE_VAR_PARAMETER | TD_TAPE_VAR_REQUIRES_GRAD)
              + 1;
      g_hash_table_insert (self->parameters, g_strdup (path), GUINT_TO_POINTER (known));
    }
  return known - 1;
}

static void
enter (TdSynthetic *self, guint kind, const char *name, guint line)
{
  TdTapeSpan span = { .kind = kind, .site = line, .parent = TD_TAPE_NONE };
  guint32 index = self->spans->len;

  span.name = text_id (self, name);
  span.path = kind == TD_TAPE_SPAN_LINK ? span.name : 0;
  span.begin = self->events->len;
  span.depth = self->open->len;
  if (self->open->len)
    span.parent = g_array_index (self->open, guint32, self->open->len - 1);
  g_array_append_val (self->spans, span);
  g_array_append_val (self->open, index);
}

void
td_synthetic_enter_link (TdSynthetic *self, const char *path, guint line)
{
  enter (self, TD_TAPE_SPAN_LINK, path, line);
}

void
td_synthetic_enter_scope (TdSynthetic *self, const char *name, guint line)
{
  enter (self, TD_TAPE_SPAN_SCOPE, name, line);
}

void
td_synthetic_leave (TdSynthetic *self)
{
  guint32 span = g_array_index (self->open, guint32, self->open->len - 1);

  g_array_index (self->spans, TdTapeSpan, span).end = self->events->len;
  g_array_set_size (self->open, self->open->len - 1);
}

static guint
add_event (TdSynthetic *self, const char *op, guint line, guint phase, gint twin,
           const guint *inputs, guint n_inputs)
{
  TdTapeEvent event
      = { .phase = (guint8)phase, .twin = twin, .site = line, .span = TD_TAPE_NONE };
  guint64 start = self->events->len * 1000u, duration = 500;

  event.opdef = text_id (self, op);
  event.first_in = self->ins->len;
  event.n_in = (guint16)n_inputs;
  event.first_out = self->outs->len;
  if (self->open->len && phase == TD_TAPE_PHASE_FORWARD)
    {
      event.span = g_array_index (self->open, guint32, self->open->len - 1);
      for (guint i = self->open->len; i-- > 0 && !event.path;)
        event.path
            = g_array_index (self->spans, TdTapeSpan, g_array_index (self->open, guint32, i))
                  .path;
    }
  event.key = next_key (
      self, td__mix (td__mix (td__mix (phase, line), event.path),
                     twin >= 0 ? event_at (self, (guint)twin)->key : td__mix_text (0, op)));
  for (guint i = 0; i < n_inputs; i++)
    {
      guint32 var = inputs[i];

      g_array_append_val (self->ins, var);
      if (phase == TD_TAPE_PHASE_FORWARD
          && !(var_at (self, var)->flags & TD_TAPE_VAR_PARAMETER))
        event.retained_in |= 1u << MIN (i, 31);
    }
  g_array_append_val (self->events, event);
  g_array_append_val (self->starts, start);
  g_array_append_val (self->durations, duration);
  return self->events->len - 1;
}

static guint
add_output (TdSynthetic *self, guint event, const gint64 *shape, guint category)
{
  guint32 var = add_var (self, "", shape, (gint)event, category, TD_TAPE_VAR_REQUIRES_GRAD);

  g_array_append_val (self->outs, var);
  event_at (self, event)->n_out++;
  return var;
}

guint
td_synthetic_op (TdSynthetic *self, const char *op, guint line, const gint64 *shape,
                 const guint *inputs, guint n_inputs)
{
  guint event = add_event (self, op, line, TD_TAPE_PHASE_FORWARD, -1, inputs, n_inputs);

  return add_output (self, event, shape, TD_TAPE_CATEGORY_ACTIVATION);
}

/* ---- backward ---- */

static void
copy_shape (TdSynthetic *self, guint var, gint64 *shape)
{
  const TdTapeVar *v = var_at (self, var);

  memcpy (shape, &g_array_index (self->dims, gint64, v->first_dim), sizeof *shape * v->ndim);
  shape[v->ndim] = 0;
}

static void
add_gradient (TdSynthetic *self, guint var, guint gradient)
{
  guint32 *known = &g_array_index (self->gradient, guint32, var);
  gint64 shape[TD_TAPE_MAX_NDIM + 1];

  if (*known)
    {
      guint both[] = { *known - 1, gradient };
      guint event = add_event (self, "accumulate", 0, TD_TAPE_PHASE_ACCUMULATE, -1, both, 2);

      copy_shape (self, var, shape);
      gradient = add_output (self, event, shape, TD_TAPE_CATEGORY_GRADIENT);
    }
  g_array_index (self->gradient, guint32, var) = gradient + 1;
}

static const char *
last_part (const char *path)
{
  const char *slash = strrchr (path, '/');

  return slash ? slash + 1 : path;
}

static gboolean
wants_gradient (TdSynthetic *self, guint var)
{
  return (var_at (self, var)->flags & TD_TAPE_VAR_REQUIRES_GRAD) != 0;
}

static void
backward_of (TdSynthetic *self, guint event, guint gy)
{
  TdTapeEvent e = *event_at (self, event);
  const char *op = self->texts->pdata[e.opdef];
  gint64 shape[TD_TAPE_MAX_NDIM + 1];
  gboolean has_parameters = FALSE;
  guint grad_event = G_MAXUINT;
  guint16 order = 0;

  for (guint i = 0; i < e.n_in; i++)
    has_parameters
        = has_parameters
          || (var_at (self, g_array_index (self->ins, guint32, e.first_in + i))->flags
              & TD_TAPE_VAR_PARAMETER);
  for (guint i = 0; i < e.n_in; i++)
    {
      guint var = g_array_index (self->ins, guint32, e.first_in + i);
      guint first = g_array_index (self->ins, guint32, e.first_in);
      gboolean is_parameter = (var_at (self, var)->flags & TD_TAPE_VAR_PARAMETER) != 0;

      if (!wants_gradient (self, var))
        continue;
      if (has_parameters || grad_event == G_MAXUINT)
        {
          const char *part
              = is_parameter ? last_part (self->texts->pdata[var_at (self, var)->name]) : "x";
          char *name = has_parameters ? g_strdup_printf ("%s_grad_%s", op, part)
                                      : g_strdup_printf ("%s_grad", op);
          guint reads[] = { gy, is_parameter ? first : var };

          grad_event = add_event (self, name, e.site, TD_TAPE_PHASE_BACKWARD, (gint)event,
                                  reads, strcmp (part, "b") == 0 ? 1 : 2);
          event_at (self, grad_event)->order = order++;
          g_free (name);
        }
      copy_shape (self, var, shape);
      add_gradient (self, var, add_output (self, grad_event, shape, TD_TAPE_CATEGORY_GRADIENT));
    }
}

void
td_synthetic_backward (TdSynthetic *self, guint loss)
{
  guint n = self->events->len;

  for (guint e = n; e-- > 0;)
    {
      TdTapeEvent event = *event_at (self, e);
      guint y = g_array_index (self->outs, guint32, event.first_out);
      guint gradient = g_array_index (self->gradient, guint32, y);

      if (event.phase != TD_TAPE_PHASE_FORWARD || (y != loss && gradient == 0))
        continue;
      /* the first gradient is 1: a value from outside */
      backward_of (self, e, gradient ? gradient - 1 : y);
    }
}

void
td_synthetic_ones (TdSynthetic *self, guint loss)
{
  gint64 shape[TD_TAPE_MAX_NDIM + 1];
  const guint event = add_event (self, "ones_like", 0, TD_TAPE_PHASE_BACKWARD, -1, &loss, 1);

  copy_shape (self, loss, shape);
  add_output (self, event, shape, TD_TAPE_CATEGORY_GRADIENT);
}

void
td_synthetic_update (TdSynthetic *self, const char *optimizer)
{
  guint n = self->vars->len;

  for (guint v = 0; v < n; v++)
    {
      guint32 gradient = g_array_index (self->gradient, guint32, v);
      guint reads[] = { v, gradient - 1 };
      TdTapeGrad grad = { .parameter = v, .gradient = gradient - 1 };
      guint32 written = v;

      if (!(var_at (self, v)->flags & TD_TAPE_VAR_PARAMETER) || gradient == 0)
        continue;
      grad.path = var_at (self, v)->name;
      grad.event = add_event (self, optimizer, 99, TD_TAPE_PHASE_UPDATE, -1, reads, 2);
      event_at (self, grad.event)->n_out = 1;
      g_array_append_val (self->outs, written);
      g_array_append_val (self->grads, grad);
    }
}

/* Returns what the operation makes of it. */
static guint
add_of_gradient (TdSynthetic *self, const char *op, guint line, guint parameter)
{
  const guint gradient = g_array_index (self->gradient, guint32, parameter) - 1;
  gint64 shape[TD_TAPE_MAX_NDIM + 1];

  copy_shape (self, gradient, shape);
  return add_output (self, add_event (self, op, line, TD_TAPE_PHASE_FORWARD, -1, &gradient, 1),
                     shape, TD_TAPE_CATEGORY_GRADIENT);
}

void
td_synthetic_change_gradient (TdSynthetic *self, const char *op, guint line, guint parameter)
{
  const guint changed = add_of_gradient (self, op, line, parameter);

  g_array_index (self->gradient, guint32, parameter) = changed + 1;
}

void
td_synthetic_read_gradient (TdSynthetic *self, const char *op, guint line, guint parameter)
{
  add_of_gradient (self, op, line, parameter);
}

void
td_synthetic_attrs (TdSynthetic *self, const char *attrs)
{
  event_at (self, self->events->len - 1)->attrs = text_id (self, attrs);
}

void
td_synthetic_fail (TdSynthetic *self)
{
  event_at (self, self->events->len - 1)->flags |= TD_TAPE_EVENT_FAILED;
}

void
td_synthetic_nan (TdSynthetic *self)
{
  TdTapeStats stats = { .event = self->events->len - 1, .n = 10, .n_sampled = 10, .n_nan = 1 };

  stats.var = g_array_index (self->outs, guint32, self->outs->len - 1);
  g_array_append_val (self->stats, stats);
}

void
td_synthetic_mean (TdSynthetic *self, guint var, double mean)
{
  TdTapeStats stats = {
    .var = var, .n = 10, .n_sampled = 10, .min = mean - 1, .max = mean + 1, .mean = mean
  };

  g_array_append_val (self->stats, stats);
}

static void
free_tape (const TdTapeIteration *t)
{
  g_free ((gpointer)t->events);
  g_free ((gpointer)t->event_start_ns);
  g_free ((gpointer)t->event_duration_ns);
  g_free ((gpointer)t->ins);
  g_free ((gpointer)t->outs);
  g_free ((gpointer)t->vars);
  g_free ((gpointer)t->dims);
  g_free ((gpointer)t->spans);
  g_free ((gpointer)t->grads);
  g_free ((gpointer)t->stats);
  g_free ((gpointer)t);
}

TdIteration *
td_synthetic_finish (TdSynthetic *self)
{
  TdTapeIteration *t = g_memdup2 (&self->head, sizeof self->head);
  GPtrArray *texts = self->texts;

  while (self->open->len)
    td_synthetic_leave (self);
  t->n_events = self->events->len;
  t->n_ins = self->ins->len;
  t->n_outs = self->outs->len;
  t->n_vars = self->vars->len;
  t->n_dims = self->dims->len;
  t->n_spans = self->spans->len;
  t->n_grads = self->grads->len;
  t->n_stats = self->stats->len;
  t->events = (gpointer)g_array_free (self->events, FALSE);
  t->event_start_ns = (gpointer)g_array_free (self->starts, FALSE);
  t->event_duration_ns = (gpointer)g_array_free (self->durations, FALSE);
  t->ins = (gpointer)g_array_free (self->ins, FALSE);
  t->outs = (gpointer)g_array_free (self->outs, FALSE);
  t->vars = (gpointer)g_array_free (self->vars, FALSE);
  t->dims = (gpointer)g_array_free (self->dims, FALSE);
  t->spans = (gpointer)g_array_free (self->spans, FALSE);
  t->grads = (gpointer)g_array_free (self->grads, FALSE);
  t->stats = (gpointer)g_array_free (self->stats, FALSE);
  g_array_free (self->open, TRUE);
  g_array_free (self->gradient, TRUE);
  g_hash_table_unref (self->text_ids);
  g_hash_table_unref (self->parameters);
  g_hash_table_unref (self->seen);
  g_free (self);
  return td_iteration_new (&names, texts, free_texts, t, free_tape);
}

/* ---- models ---- */

static guint
conv_block (TdSynthetic *s, const char *block, const char *conv, guint x, guint line,
            const gint64 *big, const gint64 *small)
{
  char *link = g_strdup_printf ("lenet/%s/%s", block, conv);
  char *outer = g_strdup_printf ("lenet/%s", block);
  char *W = g_strconcat (link, "/W", NULL), *b = g_strconcat (link, "/b", NULL);
  guint h;

  td_synthetic_enter_link (s, outer, line);
  td_synthetic_enter_link (s, link, line);
  h = TD_OP (s, "convolution_2d", line, big, x,
             td_synthetic_parameter (s, W, TD_SHAPE (16, 6, 5, 5)),
             td_synthetic_parameter (s, b, TD_SHAPE (16)));
  td_synthetic_leave (s);
  h = TD_OP (s, "relu", line + 1, big, h);
  h = TD_OP (s, "max_pooling_2d", line + 2, small, h);
  td_synthetic_leave (s);
  g_free (link);
  g_free (outer);
  g_free (W);
  g_free (b);
  return h;
}

static guint
linear (TdSynthetic *s, const char *link, guint line, guint x, gint64 n)
{
  char *W = g_strconcat (link, "/W", NULL), *b = g_strconcat (link, "/b", NULL);
  guint y;

  td_synthetic_enter_link (s, link, line);
  y = TD_OP (s, "linear", line, TD_SHAPE (64, n), x,
             td_synthetic_parameter (s, W, TD_SHAPE (n, n)),
             td_synthetic_parameter (s, b, TD_SHAPE (n)));
  td_synthetic_leave (s);
  g_free (W);
  g_free (b);
  return y;
}

TdIteration *
td_synthetic_lenet (guint64 number)
{
  TdSynthetic *s = td_synthetic_new (number);
  guint x = td_synthetic_input (s, "x", TD_SHAPE (64, 1, 28, 28));
  guint t = td_synthetic_input (s, "t", TD_SHAPE (64));
  guint h;

  td_synthetic_enter_scope (s, "iteration", 30);
  td_synthetic_enter_link (s, "lenet", 31);
  h = conv_block (s, "block1", "conv1", x, 10, TD_SHAPE (64, 6, 28, 28),
                  TD_SHAPE (64, 6, 14, 14));
  h = conv_block (s, "block2", "conv2", h, 13, TD_SHAPE (64, 16, 10, 10),
                  TD_SHAPE (64, 16, 5, 5));
  td_synthetic_enter_link (s, "lenet/head", 16);
  h = TD_OP (s, "reshape", 17, TD_SHAPE (64, 400), h);
  h = linear (s, "lenet/head/fc1", 18, h, 120);
  h = TD_OP (s, "relu", 19, TD_SHAPE (64, 120), h);
  h = linear (s, "lenet/head/fc2", 20, h, 84);
  h = TD_OP (s, "relu", 21, TD_SHAPE (64, 84), h);
  h = linear (s, "lenet/head/fc3", 22, h, 10);
  td_synthetic_leave (s);
  td_synthetic_leave (s);
  h = TD_OP (s, "softmax_cross_entropy", 33, TD_SHAPE (1), h, t);
  td_synthetic_backward (s, h);
  td_synthetic_update (s, "adam");
  return td_synthetic_finish (s);
}

/* One step of an LSTM, written in small operations; all shapes alike. Its lines begin at
 * `line`. */
static void
lstm_step (TdSynthetic *s, guint line, guint x, guint *h, guint *c)
{
  const gint64 *shape = TD_SHAPE (20, 650);
  const gint64 *wide = TD_SHAPE (20, 2600);
  guint Wx = td_synthetic_parameter (s, "net/lstm/Wx", wide);
  guint Wh = td_synthetic_parameter (s, "net/lstm/Wh", wide);
  guint b = td_synthetic_parameter (s, "net/lstm/b", wide);
  guint a, i, f, o, g;

  a = TD_OP (s, "add", line + 2, wide, TD_OP (s, "matmul", line + 0, wide, x, Wx),
             TD_OP (s, "matmul", line + 1, wide, *h, Wh));
  a = TD_OP (s, "add", line + 3, wide, a, b);
  i = TD_OP (s, "sigmoid", line + 4, shape, TD_OP (s, "get_item", line + 4, shape, a));
  f = TD_OP (s, "sigmoid", line + 5, shape, TD_OP (s, "get_item", line + 5, shape, a));
  o = TD_OP (s, "sigmoid", line + 6, shape, TD_OP (s, "get_item", line + 6, shape, a));
  g = TD_OP (s, "tanh", line + 7, shape, a);
  *c = TD_OP (s, "add", line + 8, shape, TD_OP (s, "mul", line + 8, shape, f, *c),
              TD_OP (s, "mul", line + 8, shape, i, g));
  *h = TD_OP (s, "mul", line + 9, shape, o, *c);
}

TdIteration *
td_synthetic_lstm (guint64 number, guint steps, gboolean odd_step, gboolean backward)
{
  TdSynthetic *s = td_synthetic_new (number);
  const gint64 *shape = TD_SHAPE (20, 650);
  guint h = td_synthetic_input (s, "h", shape), c = td_synthetic_input (s, "c", shape);
  guint y;

  td_synthetic_enter_link (s, "net", 10);
  for (guint t = 0; t < steps; t++)
    {
      guint x = td_synthetic_input (s, "x", shape);

      td_synthetic_enter_link (s, "net/lstm", 12);
      lstm_step (s, 20, x, &h, &c);
      if (odd_step && t + 1 == steps)
        h = TD_OP (s, "dropout", 30, shape, h);
      td_synthetic_leave (s);
    }
  y = linear (s, "net/out", 14, h, 100);
  td_synthetic_leave (s);
  y = TD_OP (s, "softmax_cross_entropy", 40, TD_SHAPE (1), y,
             td_synthetic_input (s, "t", TD_SHAPE (20)));
  if (backward)
    {
      td_synthetic_backward (s, y);
      td_synthetic_update (s, "sgd");
    }
  return td_synthetic_finish (s);
}

TdIteration *
td_synthetic_flat_lstm (guint64 number, guint steps)
{
  TdSynthetic *s = td_synthetic_new (number);
  const gint64 *shape = TD_SHAPE (20, 650);
  guint h = td_synthetic_input (s, "h", shape), c = td_synthetic_input (s, "c", shape);

  for (guint t = 0; t < steps; t++)
    lstm_step (s, 20 + 10 * t, td_synthetic_input (s, "x", shape), &h, &c);
  return td_synthetic_finish (s);
}

TdIteration *
td_synthetic_residual (guint64 number, guint n_ops, gboolean backward)
{
  TdSynthetic *s = td_synthetic_new (number);
  const gint64 *shape = TD_SHAPE (8, 64, 28, 28);
  guint x = td_synthetic_input (s, "x", shape), h;

  /* every line is another one, so that no loop is found */
  for (guint n = 0; n + 6 <= n_ops; n += 6)
    {
      char *W = g_strdup_printf ("net/%u/W", n);

      h = TD_OP (s, "convolution_2d", 100 + n, shape, x, td_synthetic_parameter (s, W, shape));
      h = TD_OP (s, "batch_normalization", 101 + n, shape, h);
      h = TD_OP (s, "relu", 102 + n, shape, h);
      h = TD_OP (s, "dropout", 103 + n, shape, h);
      x = TD_OP (s, "add", 104 + n, shape, x, h);
      x = TD_OP (s, "relu", 105 + n, shape, x);
      g_free (W);
    }
  if (backward)
    {
      td_synthetic_backward (s, x);
      td_synthetic_update (s, "sgd");
    }
  return td_synthetic_finish (s);
}
