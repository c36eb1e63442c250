/* td_onnx_load: a file is read and looked through; only if all of it can be, it becomes a link.
 *
 * SPDX-License-Identifier: MIT */
#include "onnx-link.h"

#include "../serial/read-file.h"
#include "compute/core/copies.h"
#include "host-memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Is the name in a list with commas? */
static bool
is_listed (const char *list, const char *name)
{
  const size_t n = strlen (name);

  for (const char *at = list; at != NULL; at = strchr (at, ','))
    {
      at += *at == ',';
      if (strncmp (at, name, n) == 0 && (at[n] == ',' || at[n] == '\0'))
        return true;
    }
  return false;
}

/* --- what the file asks for and is not there --- */

typedef struct
{
  const TdOnnxLoadOpt *options;
  int n, n_said;
  char first[300]; /* those that are said, as many as fit */
} Lacks;

__attribute__ ((format (printf, 2, 3))) static void
lack (Lacks *l, const char *format, ...)
{
  const size_t used = strlen (l->first);
  char line[400];
  va_list args;

  va_start (args, format);
  vsnprintf (line, sizeof line, format, args);
  va_end (args);
  if (l->options->lack != NULL)
    l->options->lack (line, l->options->user);
  l->n++;
  if (used + strlen (line) + 3 < sizeof l->first)
    {
      strcat (strcat (l->first, used > 0 ? "; " : ""), line);
      l->n_said++;
    }
}

/* Attributes that are no integers; one name is of one kind wherever it is understood. */
static const struct
{
  TdOnnxKind kind;
  const char *names;
} kinds[] = {
  { TD_ONNX_FLOAT, "alpha,beta,bias,epsilon,extrapolation_value,gamma,max,min,momentum,ratio" },
  { TD_ONNX_STRING, "approximate,auto_pad,coordinate_transformation_mode,direction,equation,"
                    "mode,nearest_mode,reduction" },
  { TD_ONNX_INTS,
    "axes,dilations,ends,kernel_shape,output_padding,output_shape,pads,perm,"
    "scan_input_axes,scan_input_directions,scan_output_axes,scan_output_directions,split,"
    "starts,strides" },
};
static const char integers[]
    = "axis,batch_dims,ceil_mode,count_include_pad,exclude_outside,exclusive,fmod,group,"
      "hidden_size,ignore_index,keepdims,layout,linear_before_reset,noop_with_empty_axes,"
      "num_scan_inputs,saturate,"
      "reverse,select_last_index,stash_type,to,training_mode,transA,transB,upper";

/* Is it of another kind than it must be?  One that is empty has none. */
static bool
is_of_another_kind (const TdOnnxAttr *a)
{
  if (a->kind == 0)
    return false;
  for (int i = 0; i < TD_ARRAY_LENGTH (kinds); i++)
    if (is_listed (kinds[i].names, a->name))
      return a->kind != (int)kinds[i].kind;
  return is_listed (integers, a->name) && a->kind != TD_ONNX_INT;
}

/* What is 0 or 1.  (onnxruntime takes other numbers for one or the other, now so, now so.) */
static const char flags[]
    = "ceil_mode,count_include_pad,exclude_outside,exclusive,fmod,keepdims,layout,"
      "linear_before_reset,noop_with_empty_axes,saturate,reverse,select_last_index,"
      "training_mode,transA,transB,upper";

/* Is it one of a few words or numbers, and none of them? */
static bool
has_another_value (const TdOnnxAttr *a)
{
  if (is_listed (flags, a->name))
    return a->i != 0 && a->i != 1;
  return strcmp (a->name, "auto_pad") == 0
         && !is_listed ("NOTSET,VALID,SAME_UPPER,SAME_LOWER", a->s);
}

/* Is the attribute among those of the row, and has the value that it must have? */
static const char *
attribute_lacks (const TdOnnxRow *row, const TdOnnxAttr *a)
{
  const size_t n = strlen (a->name);

  for (const char *at = row->attributes; at != NULL && *at != '\0'; at += strcspn (at, " "))
    {
      at += strspn (at, " ");
      if (strncmp (at, a->name, n) != 0 || n == 0)
        continue;
      if (at[n] == ' ' || at[n] == '\0')
        return row->has_bodies && a->kind == TD_ONNX_GRAPH ? NULL
               : a->kind == TD_ONNX_GRAPH                  ? "of a graph"
               : is_of_another_kind (a)                    ? "of another type"
               : has_another_value (a)                     ? "of this value"
                                                           : NULL;
      if (at[n] == '=')
        return a->kind == TD_ONNX_INT && a->i == strtol (at + n + 1, NULL, 10)
                   ? NULL
                   : "of this value";
    }
  return "";
}

static const TdOnnxRow *
row_of (const TdOnnxNode *n, int64_t opset, const TdOnnxRow **other)
{
  const TdOnnxRow *row;

  *other = NULL;
  for (int i = 0; (row = td__onnx_row_at (i)) != NULL; i++)
    if (strcmp (row->name, n->type) == 0)
      {
        if (opset >= row->from && (row->to == 0 || opset <= row->to))
          return row;
        *other = row;
      }
  return NULL;
}

static void look_at_nodes (Lacks *l, TdOnnxGraph *root, TdOnnxGraph *g);

/* The nodes of its bodies, too. */
static void
look_into (Lacks *l, TdOnnxGraph *root, const TdOnnxNode *n)
{
  for (int i = 0; i < n->n_attrs; i++)
    if (n->attrs[i].graph != NULL)
      look_at_nodes (l, root, n->attrs[i].graph);
}

static void
look_at_node (Lacks *l, TdOnnxGraph *g, TdOnnxNode *n)
{
  const TdOnnxRow *other;
  const char *what;
  char text[240];

  td__onnx_node_text (n, text, sizeof text);
  if (n->domain[0] != '\0' && strcmp (n->domain, "ai.onnx") != 0)
    {
      lack (l, "%s of domain %.60s", text, n->domain);
      return;
    }
  n->row = row_of (n, g->opset, &other);
  if (n->row == NULL && other != NULL)
    lack (l, "%s as opset %lld has it", text, (long long)g->opset);
  else if (n->row == NULL)
    lack (l, "operator %s", text);
  if (n->row == NULL)
    return;
  for (int i = 0; i < n->n_attrs; i++)
    if ((what = attribute_lacks (n->row, &n->attrs[i])) != NULL)
      lack (l, "attribute %.60s%s%s of %s", n->attrs[i].name, what[0] != '\0' ? " " : "", what,
            text);
  if (n->n_in < n->row->least_in || (n->row->most_in >= 0 && n->n_in > n->row->most_in))
    lack (l, "%s with %d inputs", text, n->n_in);
  for (int i = 0; i < n->row->least_in && i < n->n_in; i++)
    if (n->in[i] == TD_ONNX_ABSENT)
      lack (l, "%s without its input %d", text, i);
  for (int k = n->row->most_out > 0 ? n->row->most_out : 1;
       k < n->n_out && n->row->most_out >= 0; k++)
    if (n->out[k] != TD_ONNX_ABSENT)
      lack (l, "output %d of %s", k, text);
  if (n->row->lacks != NULL && (what = n->row->lacks (g, n)) != NULL)
    lack (l, "%s of %s", what, text);
  look_into (l, g, n);
}

/* What a body trains would be one array for all turns, and for other nodes that share it. */
static void
look_at_nodes (Lacks *l, TdOnnxGraph *root, TdOnnxGraph *g)
{
  char text[240];

  for (int i = 0; i < g->n_nodes; i++)
    {
      look_at_node (l, root, &g->nodes[i]);
      if (g != root && root->follows_train && g->nodes[i].row != NULL
          && g->nodes[i].row->state != 0)
        lack (l, "training inside of control flow of %s",
              td__onnx_node_text (&g->nodes[i], text, sizeof text));
    }
}

static void
lack_of_int8 (const TdOnnxNode *n, int input, const char *output, void *user)
{
  char text[240];

  if (n != NULL)
    lack (user, "input %d of int8 of %s", input, td__onnx_node_text (n, text, sizeof text));
  else
    lack (user, "output %.100s of int8", output);
}

static void
lack_of_sizes (const TdOnnxNode *n, void *user)
{
  char text[240];

  lack (user, "%s of an array: it is there %s", td__onnx_node_text (n, text, sizeof text),
        n->row->limits);
}

int
td__onnx_look_through (TdOnnxGraph *g, const TdOnnxLoadOpt *options, char *first, size_t size)
{
  Lacks l = { .options = options };

  if (g->opset > TD_ONNX_OPSET_LAST)
    lack (&l, "opset %lld: those up to %d are read", (long long)g->opset, TD_ONNX_OPSET_LAST);
  else
    {
      look_at_nodes (&l, g, g);
      td__onnx_each_narrow (g, lack_of_int8, &l);
      td__onnx_each_of_sizes (g, lack_of_sizes, &l);
    }
  for (int i = 0; i < g->n_givens; i++)
    if (g->givens[i].tensor.why != NULL
        && (g->givens[i].is_used || g->givens[i].tensor.dtype >= 0))
      lack (&l, "%s %.100s: %s", g->givens[i].initializer ? "initializer" : "constant",
            g->givens[i].tensor.name, g->givens[i].tensor.why);
  for (int i = 0; i < g->n_in + g->n_optional; i++)
    if (g->in[i].dtype < 0)
      lack (&l, "input %.100s %s%s", g->in[i].name, g->in[i].type != 0 ? "of " : "that is ",
            td__onnx_type_name (g->in[i].type));
  if (first != NULL)
    snprintf (first, size, "%s%s", l.first, l.n > l.n_said ? " ..." : "");
  return l.n;
}

static bool
is_all_there (TdOnnxGraph *g, const TdOnnxLoadOpt *options, const char *path,
              const TdSite *site)
{
  char first[320];

  if (td__onnx_look_through (g, options, first, sizeof first) == 0)
    return true;
  td__fail (TD_ERR_ARG, "td_onnx_load", site, "%.200s: not there: %s", path, first);
  return false;
}

/* --- arrays --- */

enum
{
  USE_ARRAY = 1,
  USE_NUMBERS = 2,
  USE_STATE = 4
};

/* What each value is used for; Identity passes it on. */
static void
note_uses (const TdOnnxGraph *g, uint8_t *uses)
{
  for (int k = 0; k < g->n_out; k++)
    uses[g->out[k].value] |= USE_ARRAY;
  for (int i = g->n_nodes - 1; i >= 0; i--)
    {
      const TdOnnxNode *n = &g->nodes[i];
      const bool passes = strcmp (n->type, "Identity") == 0;

      for (int k = 0; k < n->n_attrs; k++)
        if (n->attrs[k].graph != NULL)
          note_uses (n->attrs[k].graph, uses);
      for (int k = 0; k < n->n_in; k++)
        if (n->in[k] != TD_ONNX_ABSENT)
          uses[n->in[k]] |= passes                               ? uses[n->out[0]]
                            : k < 32 && (n->row->read >> k & 1)  ? USE_NUMBERS
                            : k < 32 && (n->row->state >> k & 1) ? USE_STATE
                                                                 : USE_ARRAY;
    }
}

static uint8_t *
uses_of (const TdOnnxGraph *g)
{
  uint8_t *uses = td__xcalloc ((size_t)g->n_values + 1, 1);

  note_uses (g, uses);
  return uses;
}

/* A name that is free in the link: the given one, or with a number behind. */
static void
free_name (const TdLink *link, const char *name, size_t n, bool take_child, char *to,
           size_t size)
{
  for (int k = 1;; k++)
    {
      bool taken = false;

      if (k == 1)
        snprintf (to, size, "%.*s", (int)(n < 180 ? n : 180), name);
      else
        snprintf (to, size, "%.*s_%d", (int)(n < 180 ? n : 180), name, k);
      taken = td__param_find (link, to) != NULL;
      for (int i = 0; i < link->n_children && !taken && !take_child; i++)
        taken = strcmp (link->children[i]->name, to) == 0;
      if (!taken)
        return;
    }
}

static TdStatus
scope_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self, (void)in, (void)n_in, (void)out, (void)n_out;
  return td__fail (TD_ERR_STATE, "OnnxScope", td__engine.site,
                   "%s only holds parameters: call the model", link->path->text);
}

static TdLink *
child_of (TdLink *link, const char *name, const TdSite *site)
{
  static const TdLinkClass scope_class
      = { .size = sizeof (TdLinkClass), .name = "OnnxScope", .forward = scope_forward };

  for (int i = 0; i < link->n_children; i++)
    if (strcmp (link->children[i]->name, name) == 0)
      return link->children[i];
  return td__link_make (&scope_class, link, name, site);
}

/* Links on the way to "l1/W", and the parameter without its array. */
static TdParam *
declare (TdLink *link, TdOnnxGraph *g, TdOnnxGiven *given, TdParamKind kind, const TdSite *site)
{
  static const TdShape waiting = { 1, { TD_INFER } };
  const char *at = given->tensor.name;
  char *key = td__onnx_alloc (&g->arena, 2 * strlen (at) + 220, 1), name[210];
  TdParam *p;
  size_t n;

  for (at += strspn (at, "/"); n = strcspn (at, "/"), at[n + strspn (at + n, "/")] != '\0';
       at += n + strspn (at + n, "/"))
    {
      free_name (link, at, n, true, name, sizeof name);
      link = child_of (link, name, site);
      if (link->inert)
        return NULL;
      strcat (strcat (key, name), "/");
    }
  free_name (link, n > 0 ? at : "array", n > 0 ? n : 5, false, name, sizeof name);
  p = td__param_add (link, name, &waiting, given->tensor.dtype, td_init_zero (),
                     td_init_zero (), site);
  if (p == NULL)
    return NULL;
  p->kind = kind;
  given->key = strcat (key, name);
  return p;
}

static bool
fill (TdParam *p, const TdOnnxTensor *t, const TdSite *site)
{
  TdVar *v = td__param_leaf (p, &t->shape);

  if (v == NULL)
    return false;
  if (td__write_for (TD_COPY_LOAD, v, t->elements, t->bytes, site) == TD_OK)
    td__param_adopt (p, v);
  td__var_unref (v, TD_HOLD_ENGINE);
  return p->var != NULL;
}

/* Is an array that the file gives trained? */
static bool
is_trained (const TdOnnxGiven *given, uint8_t uses, const TdOnnxLoadOpt *options)
{
  return given->initializer && td__onnx_is_float ((TdDtype)given->tensor.dtype)
         && given->tensor.shape.ndim > 0 && (uses & USE_ARRAY) != 0
         && !is_listed (options->fixed, given->tensor.name);
}

static bool
take_given (TdLink *link, TdOnnxGraph *g, TdOnnxGiven *given, uint8_t uses,
            const TdOnnxLoadOpt *options, const TdSite *site)
{
  const bool is_float = td__onnx_is_float ((TdDtype)given->tensor.dtype);
  const bool trained = is_trained (given, uses, options);
  const bool fixed = is_listed (options->fixed, given->tensor.name);
  const bool state = is_float && !trained && given->initializer
                     && ((uses & USE_STATE) != 0 || (fixed && (uses & USE_ARRAY) != 0));
  TdParam *p;

  if (uses == 0)
    return true;
  if (!trained && !state)
    given->host = td__host_from (&g->arena, (TdDtype)given->tensor.dtype, &given->tensor.shape,
                                 given->tensor.elements);
  if (given->host != NULL && !given->is_default
      && (given->host->n == 1 || (uses & (USE_ARRAY | USE_STATE)) == 0))
    return true;
  p = declare (link, g, given,
               trained ? TD_PARAM_TRAINED
               : state ? TD_PARAM_PERSISTENT
                       : TD_PARAM_ATTR,
               site);
  return p != NULL && fill (p, &given->tensor, site);
}

/* --- the whole --- */

/* A name as links have it: without slashes, and not too long. */
static void
root_name (const TdOnnxGraph *g, const TdOnnxLoadOpt *options, char *name, size_t size)
{
  snprintf (name, size, "%.100s",
            options->name != NULL ? options->name
            : g->name[0] != '\0'  ? g->name
                                  : "onnx");
  for (char *c = name; *c != '\0'; c++)
    *c = (char)(*c == '/' ? '_' : *c);
}

/* "/layers/layers.0/conv1/Conv", as exporters of PyTorch name a node, is "layers/0/conv1/Conv":
 * a part that begins with the one before it says the rest. */
static char *
path_of (TdOnnxGraph *g, const char *name)
{
  char *path = td__onnx_alloc (&g->arena, strlen (name) + 2, 1), *end = path;
  const char *before = "";
  size_t n_before = 0;

  for (const char *at = name + strspn (name, "/"); *at != '\0'; at += strspn (at, "/"))
    {
      const size_t n = strcspn (at, "/");
      const bool repeats = n > n_before + 1 && n_before > 0
                           && strncmp (at, before, n_before) == 0 && at[n_before] == '.';
      const size_t skip = repeats ? n_before + 1 : 0;

      if (end > path)
        *end++ = '/';
      memcpy (end, at + skip, n - skip);
      end += n - skip;
      before = at;
      n_before = n;
      at += n;
    }
  return path;
}

/* "Conv", or "Conv_12"? */
static bool
is_type (const char *last, const char *type)
{
  const size_t n = strlen (type);

  return strncmp (last, type, n) == 0
         && (last[n] == '\0'
             || (last[n] == '_' && last[n + 1 + strspn (last + n + 1, "0123456789")] == '\0'));
}

static void
name_nodes (TdOnnxGraph *root, TdOnnxGraph *g)
{
  for (int i = 0; i < g->n_nodes; i++)
    {
      TdOnnxNode *n = &g->nodes[i];
      const char *name = n->name[0] != '\0' ? n->name
                         : n->n_out > 0     ? n->out_names[0]
                                            : n->type;
      const char *last;
      char *scope;

      n->path = path_of (root, name);
      last = strrchr (n->path, '/');
      scope = td__onnx_alloc (&root->arena, strlen (n->path) + 1, 1);
      memcpy (scope, n->path, last != NULL ? (size_t)(last - n->path) : 0);
      n->scope = scope;
      if (last != NULL && is_type (last + 1, n->type))
        n->path = scope; /* "conv1/Conv" says no more than "conv1" */
      for (int k = 0; k < n->n_attrs; k++)
        if (n->attrs[k].graph != NULL)
          name_nodes (root, n->attrs[k].graph);
    }
}

/* Every name of the option fixed is that of an initializer. */
static bool
fixed_are_there (const TdOnnxGraph *g, const char *fixed, const TdSite *site)
{
  for (const char *at = fixed; at != NULL && *at != '\0'; at += *at == ',')
    {
      const size_t n = strcspn (at, ",");
      bool found = false;

      for (int i = 0; i < g->n_givens && !found; i++)
        found = g->givens[i].initializer && strlen (g->givens[i].tensor.name) == n
                && strncmp (g->givens[i].tensor.name, at, n) == 0;
      if (!found)
        {
          td__fail (TD_ERR_ARG, "td_onnx_load", site,
                    "fixed: no initializer is called \"%.*s\"", (int)(n < 200 ? n : 200), at);
          return false;
        }
      at += n;
    }
  return true;
}

/* What Identity nodes pass on as this value. */
static int
passed_on (const TdOnnxGraph *g, int value)
{
  for (int i = g->n_nodes - 1; i >= 0; i--)
    if (g->nodes[i].n_out > 0 && g->nodes[i].out[0] == value)
      {
        if (strcmp (g->nodes[i].type, "Identity") != 0)
          return value;
        value = g->nodes[i].in[0];
      }
  return value;
}

/* What training writes is the link's own, and nobody gives it. */
static void
drop_states_that_are_inputs (TdOnnxGraph *g)
{
  int n = g->n_in;

  for (int i = g->n_in; i < g->n_in + g->n_optional; i++)
    if (g->givens[g->in[i].given].is_default)
      g->in[n++] = g->in[i];
  g->n_optional = n - g->n_in;
}

/* Exporters write equal arrays once.  Training changes a mean and a variance while their nodes
 * run, so that each node gets arrays of its own. */
static void
part_states (TdOnnxGraph *g)
{
  int n = g->n_givens, most = g->n_givens;
  TdOnnxGiven *givens;

  for (int i = 0; i < g->n_nodes; i++)
    most += g->nodes[i].row->state != 0 ? g->nodes[i].n_in : 0;
  if (most == n)
    return;
  givens = td__onnx_alloc (&g->arena, (size_t)most + 1, sizeof *givens);
  memcpy (givens, g->givens, (size_t)n * sizeof *givens);
  for (int i = 0; i < g->n_nodes; i++)
    for (int k = 0; k < g->nodes[i].n_in && k < 32; k++)
      {
        const int value = (g->nodes[i].row->state >> k & 1) != 0 && g->nodes[i].in[k] >= 0
                              ? passed_on (g, g->nodes[i].in[k])
                              : TD_ONNX_ABSENT;

        for (int j = 0; j < g->n_givens && value != TD_ONNX_ABSENT; j++)
          if (givens[j].value == value)
            {
              givens[n] = givens[j];
              givens[n].tensor.external = NULL; /* is freed once */
              givens[n].value = g->nodes[i].in[k] = g->n_values++;
              givens[j].is_default = false;
              n++;
              break;
            }
      }
  g->givens = givens;
  g->n_givens = n;
  drop_states_that_are_inputs (g);
}

static TdLink *
build (TdOnnxGraph *g, const TdOnnxLoadOpt *options, const TdSite *site)
{
  char name[120];
  uint8_t *uses;
  TdLink *link;
  bool ok;

  if (options->train)
    part_states (g);
  uses = uses_of (g);
  root_name (g, options, name, sizeof name);
  link = td__onnx_link_new (name, site);
  ok = !link->inert;
  name_nodes (g, g);
  for (int i = 0; i < g->n_givens && ok; i++)
    ok = take_given (link, g, &g->givens[i], uses[g->givens[i].value], options, site);
  free (uses);
  if (!ok)
    return link->inert ? link : td__link_abandon (link);
  g->refs++;
  td__onnx_link_fill (link, g);
  td__onnx_link_collect (link);
  return link;
}

TdLink *
td_onnx_load_at (const char *path, TdOnnxLoadOpt options, const TdSite *site)
{
  const char *read = "the path is NULL";
  TdLink *link = td__link_inert ();
  TdOnnxGraph *g = NULL;
  char why[400] = "";
  size_t n = 0;
  void *bytes;

  if (td__stranger ("td_onnx_load"))
    return link;
  bytes = path != NULL ? td__read_file (path, &n, &read) : NULL;
  if (bytes == NULL)
    snprintf (why, sizeof why, "%s", read);
  else if (n > INT32_MAX)
    snprintf (why, sizeof why, "it is larger than 2 GB, which no ONNX model is");
  else if ((g = td__onnx_parse (bytes, n, why, sizeof why)) != NULL
           && (g->follows_train = options.train, true) && td__onnx_connect (g, why, sizeof why)
           && is_all_there (g, &options, path, site) && fixed_are_there (g, options.fixed, site)
           && td__onnx_read_external (g, path, why, sizeof why))
    link = build (g, &options, site);
  if (why[0] != '\0')
    td__fail (TD_ERR_IO, "td_onnx_load", site, "%.300s: %s", path != NULL ? path : "", why);
  for (int i = 0; g != NULL && i < g->n_givens; i++)
    {
      free (g->givens[i].tensor.external);
      g->givens[i].tensor.external = NULL;
      g->givens[i].tensor.elements = NULL;
    }
  td__onnx_graph_unref (g);
  free (bytes);
  return link;
}

TdLink *(td_onnx_load)(const char *path)
{
  return td_onnx_load_at (path, td_onnx_load_options (), NULL);
}

TdOnnxLoadOpt
td_onnx_load_options (void)
{
  static const TdOnnxLoadOpt defaults = { TD_ONNX_LOAD_DEFAULTS };

  return defaults;
}

const TdOnnxRow *
td__onnx_row_at (int i)
{
  static const TdOnnxRow *const tables[]
      = { td__onnx_control, td__onnx_quantized, td__onnx_math,      td__onnx_arrays,
          td__onnx_indices, td__onnx_layers,    td__onnx_sequences, td__onnx_sizes };

  for (int t = 0; t < TD_ARRAY_LENGTH (tables); t++)
    for (const TdOnnxRow *row = tables[t]; row->name != NULL; row++)
      if (i-- == 0)
        return row;
  return NULL;
}

TdOnnxOperator
td_onnx_operator_at (int i)
{
  const TdOnnxRow *row = i >= 0 ? td__onnx_row_at (i) : NULL;

  if (row == NULL)
    return (TdOnnxOperator){ .name = NULL };
  return (TdOnnxOperator){ row->name, row->from, row->to > 0 ? row->to : TD_ONNX_OPSET_LAST,
                           row->limits };
}
