/* The graph behind a variable as DOT: Chainer's nodes, labels and edges, in a fixed order.
 *
 * Operations come in the order in which they ran, each with its inputs before and its outputs
 * behind it; numbers are the nodes' ids.  Chainer's text differs in order and ids only.
 *
 * SPDX-License-Identifier: MIT */
#include "dot.h"

#include "replace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char variable_style[] = "shape=\"octagon\",fillcolor=\"#E0E0E0\",style=\"filled\"";
static const char function_style[] = "shape=\"record\",fillcolor=\"#6495ED\",style=\"filled\"";

TdDotOpt
td_dot_options (void)
{
  return (TdDotOpt){ .rankdir = "TB", .show_name = true };
}

/* A growing list of pointers. */
typedef struct
{
  const void **items;
  size_t n, room;
} List;

typedef struct
{
  List ops;       /* in the order of their ids */
  List variables; /* their place is their number */
  FILE *file;
  const TdDotOpt *o;
} Dot;

static bool
list_add (List *l, const void *item)
{
  if (l->n == l->room)
    {
      size_t room = l->room > 0 ? 2 * l->room : 64;
      const void **items = realloc (l->items, room * sizeof *items);

      if (items == NULL)
        return false;
      l->items = items;
      l->room = room;
    }
  l->items[l->n++] = item;
  return true;
}

static int
compare_ops (const void *a, const void *b)
{
  const TdOp *x = *(const TdOp *const *)a, *y = *(const TdOp *const *)b;

  return x->id < y->id ? -1 : x->id > y->id;
}

static int
compare_pointers (const void *a, const void *b)
{
  uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;

  return x < y ? -1 : x > y;
}

/* Every operation behind the roots, by marks, so that a shared one comes once. */
static bool
collect_ops (Dot *d, TdVar *const *ys, int n_y)
{
  uint32_t mark = ++td__engine.mark;

  for (int i = 0; i < n_y; i++)
    {
      TdOp *creator = ys[i]->node->creator;

      if (creator == NULL || creator->mark == mark)
        continue;
      creator->mark = mark;
      if (!list_add (&d->ops, creator))
        return false;
    }
  for (size_t i = 0; i < d->ops.n; i++)
    {
      const TdOp *op = d->ops.items[i];

      for (int k = 0; k < op->n_in; k++)
        {
          TdOp *creator = op->in[k]->creator;

          if (creator == NULL || creator->mark == mark)
            continue;
          creator->mark = mark;
          if (!list_add (&d->ops, creator))
            return false;
        }
    }
  if (d->ops.n > 0)
    qsort (d->ops.items, d->ops.n, sizeof *d->ops.items, compare_ops);
  return true;
}

/* Variables that the walk meets: inputs of its operations, and the roots.  Marks number them.
 */
static bool
collect_variables (Dot *d, TdVar *const *ys, int n_y)
{
  uint32_t mark = ++td__engine.mark;

  for (size_t i = 0; i < d->ops.n; i++)
    {
      const TdOp *op = d->ops.items[i];

      for (int k = 0; k < op->n_in; k++)
        if (op->in[k]->mark != mark)
          {
            op->in[k]->mark = mark;
            if (!list_add (&d->variables, op->in[k]))
              return false;
          }
    }
  for (int i = 0; i < n_y; i++)
    if (ys[i]->node->mark != mark)
      {
        ys[i]->node->mark = mark;
        if (!list_add (&d->variables, ys[i]->node))
          return false;
      }
  return true;
}

/* Text inside double quotes; braces, bars and angle brackets are markup in a record. */
static void
write_text (FILE *f, const char *text, bool record)
{
  for (; *text != '\0'; text++)
    if (*text == '\n' || *text == '\r')
      fputs ("\\n", f);
    else if ((unsigned char)*text < ' ')
      fputc (' ', f);
    else
      {
        if (*text == '"' || *text == '\\' || (record && strchr ("{}|<>", *text) != NULL))
          fputc ('\\', f);
        fputc (*text, f);
      }
}

static void
write_variable (Dot *d, size_t number)
{
  const TdNode *n = d->variables.items[number];

  fprintf (d->file, "%zu [label=\"", number);
  if (n->name != NULL && d->o->show_name)
    {
      write_text (d->file, n->name, false);
      fputs (": ", d->file);
    }
  for (int i = 0; i < n->shape.ndim; i++)
    fprintf (d->file, "%s%lld", i == 0 ? "(" : ", ", (long long)n->shape.dim[i]);
  fprintf (d->file, "%s%s", n->shape.ndim > 0 ? "), " : "", td__dtype_long_names[n->dtype]);
  if (d->o->rich)
    fprintf (d->file, "\\n%lld bytes%s",
             (long long)td_shape_size (&n->shape) * (long long)td_dtype_bytes (n->dtype),
             n->retained != NULL ? ", saved for backward" : "");
  fprintf (d->file, "\",%s];",
           d->o->variable_style != NULL ? d->o->variable_style : variable_style);
}

static void
write_op (Dot *d, const TdOp *op, size_t number)
{
  char text[256];

  td__op_label (op->cls, op->attrs, text, sizeof text);
  fprintf (d->file, "%zu [label=\"", number);
  write_text (d->file, text, true);
  fprintf (d->file, "\",%s];",
           d->o->function_style != NULL ? d->o->function_style : function_style);
}

/* Numbers of variables, found by bisection in the sorted table of (pointer, number). */
typedef struct
{
  const void *item;
  size_t number;
} Numbered;

static Numbered *
number_list (const List *l, size_t first)
{
  Numbered *table = calloc (l->n + 1, sizeof *table);

  for (size_t i = 0; i < l->n && table != NULL; i++)
    table[i] = (Numbered){ l->items[i], first + i };
  if (table != NULL)
    qsort (table, l->n, sizeof *table, compare_pointers);
  return table;
}

static size_t
number_of (const Numbered *table, size_t n, const void *item)
{
  const Numbered key = { item, 0 };
  const Numbered *at = bsearch (&key, table, n, sizeof key, compare_pointers);

  return at != NULL ? at->number : SIZE_MAX;
}

/* An argument used twice gives one edge, as in Chainer; rich graphs name each argument. */
static bool
edge_is_new (const TdOp *op, int k, bool rich)
{
  for (int i = 0; i < k && !rich; i++)
    if (op->in[i] == op->in[k])
      return false;
  return true;
}

static void
write_argument (const Dot *d, const TdOp *op, int k)
{
  const TdOpClass *cls = op->cls;

  if (!d->o->rich)
    return;
  if (cls->in_names != NULL && k < cls->n_in_max)
    fprintf (d->file, " [headlabel=\"%s\"]", cls->in_names[k]);
  else
    fprintf (d->file, " [headlabel=\"%d\"]", k);
}

static void
write_edges (Dot *d, const Numbered *variables, const Numbered *ops)
{
  for (size_t i = 0; i < d->ops.n; i++)
    {
      const TdOp *op = d->ops.items[i];
      size_t to = d->variables.n + i;

      for (int k = 0; k < op->n_in; k++)
        {
          const TdNode *in = op->in[k];
          size_t from = number_of (variables, d->variables.n, in);

          if (d->o->remove_variable)
            from = in->creator != NULL ? number_of (ops, d->ops.n, in->creator) : SIZE_MAX;
          if (from == SIZE_MAX || !edge_is_new (op, k, d->o->rich))
            continue;
          fprintf (d->file, "%zu -> %zu", from, to);
          write_argument (d, op, k);
          fputs (";", d->file);
        }
      for (int k = 0; k < op->n_out && !d->o->remove_variable; k++)
        {
          size_t out = op->out[k] != NULL ? number_of (variables, d->variables.n, op->out[k])
                                          : SIZE_MAX;

          if (out != SIZE_MAX)
            fprintf (d->file, "%zu -> %zu;", to, out);
        }
    }
}

/* One box for each link path. */
static void
write_clusters (Dot *d)
{
  for (size_t i = 0; i < d->ops.n; i++)
    {
      const TdPath *path = ((const TdOp *)d->ops.items[i])->path;
      bool first = path != NULL;

      for (size_t k = 0; k < i && first; k++)
        first = ((const TdOp *)d->ops.items[k])->path != path;
      if (!first)
        continue;
      fprintf (d->file, "subgraph cluster_%u{label=\"", path->id);
      write_text (d->file, path->text, false);
      fputs ("\";", d->file);
      for (size_t k = i; k < d->ops.n; k++)
        if (((const TdOp *)d->ops.items[k])->path == path)
          fprintf (d->file, "%zu;", d->variables.n + k);
      fputs ("}", d->file);
    }
}

static bool
write_dot (Dot *d)
{
  Numbered *variables = number_list (&d->variables, 0);
  Numbered *ops = number_list (&d->ops, d->variables.n);
  bool ok = variables != NULL && ops != NULL;

  if (ok)
    {
      fprintf (d->file, "digraph graphname{rankdir=%s;", d->o->rankdir);
      for (size_t i = 0; i < d->variables.n && !d->o->remove_variable; i++)
        write_variable (d, i);
      for (size_t i = 0; i < d->ops.n; i++)
        write_op (d, d->ops.items[i], d->variables.n + i);
      write_edges (d, variables, ops);
      if (d->o->rich)
        write_clusters (d);
      fputs ("}", d->file);
    }
  free (variables);
  free (ops);
  return ok;
}

void
td__op_label (const TdOpClass *cls, const void *attrs, char *text, size_t size)
{
  if (cls->print != NULL)
    cls->print (attrs, text, size);
  else
    snprintf (text, size, "%s", cls->label != NULL ? cls->label : cls->name);
}

static bool
rankdir_ok (const char *rankdir)
{
  static const char *const known[] = { "TB", "BT", "LR", "RL" };

  for (int i = 0; i < TD_ARRAY_LENGTH (known); i++)
    if (rankdir != NULL && strcmp (rankdir, known[i]) == 0)
      return true;
  return false;
}

static TdStatus
save_text (TdVar *const *ys, int n_y, const char *path, const TdDotOpt *o)
{
  Dot d = { .o = o };
  TdStatus status = TD_OK;
  TdReplace to;

  if (!td__replace_begin (&to, path, 0666))
    return td__fail (TD_ERR_IO, "td_save_dot", NULL, "%.400s: %s", path,
                     strerror (errno)); /* NOLINT(concurrency-mt-unsafe): one thread */
  d.file = to.file;
  if (!collect_ops (&d, ys, n_y) || !collect_variables (&d, ys, n_y) || !write_dot (&d))
    status = td__fail (TD_ERR_MEMORY, "td_save_dot", NULL, "no memory for %zu operations",
                       d.ops.n);
  if (!td__replace_end (&to, status == TD_OK) && status == TD_OK)
    status = td__fail (TD_ERR_IO, "td_save_dot", NULL, "%.400s: it cannot be written: %s", path,
                       strerror (errno)); /* NOLINT(concurrency-mt-unsafe): one thread */
  free (d.ops.items);
  free (d.variables.items);
  return status;
}

static bool
is_text (const char *path)
{
  const char *dot = strrchr (path, '.');

  return dot != NULL && strcasecmp (dot, ".dot") == 0;
}

TdStatus
td_save_dot_all (TdVar *const *ys, int n_y, const char *path, const TdDotOpt *options)
{
  TdDotOpt o = options != NULL ? *options : td_dot_options ();
  char text[4096];
  TdStatus status;

  for (int i = 0; i < n_y; i++)
    if (!td__var_usable (ys != NULL ? ys[i] : NULL, "td_save_dot", NULL))
      return td__engine.has_error ? td__engine.error.status : TD_ERR_STATE;
  if (path == NULL || !rankdir_ok (o.rankdir) || n_y < 1)
    return td__fail (TD_ERR_ARG, "td_save_dot", NULL,
                     "a path, a root, and rankdir TB, BT, LR or RL expected, got %s, %d and "
                     "%.40s",
                     path != NULL ? path : "NULL", n_y, o.rankdir != NULL ? o.rankdir : "NULL");
  if (is_text (path))
    return save_text (ys, n_y, path, &o);
  if (!td__dot_is_picture (path))
    return td__fail (TD_ERR_ARG, "td_save_dot", NULL,
                     "%.400s: a name that ends in .dot, .png, .svg or .pdf expected", path);
  snprintf (text, sizeof text, "%.4080s.dot", path);
  status = save_text (ys, n_y, text, &o);
  return status == TD_OK ? td__dot_draw (text, path) : status;
}

TdStatus
td_save_dot (TdVar *y, const char *path, const TdDotOpt *options)
{
  return td_save_dot_all (&y, 1, path, options);
}
