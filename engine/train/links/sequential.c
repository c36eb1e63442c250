/* Sequential: a link that calls its children and functions in order.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"
#include "host-memory.h"

#include <stdlib.h>
#include <string.h>

/* One step: a function, or the link with this id. */
typedef struct
{
  TdVar *(*function) (TdVar *x);
  uint64_t link_id;
} Step;

typedef struct
{
  Step *steps;
  int n_steps;
} Sequential;

/* The steps are not in the link's own memory, which guards look at. */
static void
steps_changed (const TdLink *link)
{
  td__links_changed (link->path, td__engine.site);
}

static Step *
add_step (Sequential *s)
{
  s->steps = td__xrealloc (s->steps, (size_t)(s->n_steps + 1) * sizeof *s->steps);
  s->steps[s->n_steps] = (Step){ NULL, 0 };
  return &s->steps[s->n_steps++];
}

static TdLink *
step_link (const TdLink *link, const Step *step)
{
  for (int i = 0; i < link->n_children; i++)
    if (link->children[i]->id == step->link_id)
      return link->children[i];
  return NULL;
}

static TdStatus
sequential_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out,
                    int n_out)
{
  const Sequential *s = self;
  TdVar *x = in[0];

  if (n_in != 1 || n_out != 1)
    return td__fail (TD_ERR_ARG, "Sequential", td__engine.site,
                     "one input and one output expected, got %d and %d", n_in, n_out);
  for (int i = 0; i < s->n_steps; i++)
    {
      TdLink *child = step_link (link, &s->steps[i]);

      if (child != NULL)
        x = td_link_at (child, x, td__engine.site);
      else if (s->steps[i].function != NULL)
        x = s->steps[i].function (x);
    }
  out[0] = x;
  return td_poisoned (x) && td__engine.has_error ? td__engine.error.status : TD_OK;
}

static void
sequential_free (void *self)
{
  free (((Sequential *)self)->steps);
}

/* A copied link has the same children in the same order, under new ids. */
static void
sequential_copied (TdLink *to, const TdLink *from)
{
  Sequential *t = to->self;
  const Sequential *f = from->self;

  free (t->steps);
  t->steps = NULL;
  t->n_steps = 0;
  for (int i = 0; i < f->n_steps; i++)
    {
      Step *step = add_step (t);

      step->function = f->steps[i].function;
      for (int c = 0; c < from->n_children && c < to->n_children; c++)
        if (from->children[c]->id == f->steps[i].link_id)
          step->link_id = to->children[c]->id;
    }
}

const TdLinkClass td__sequential_class = { .size = sizeof (TdLinkClass),
                                           .name = "Sequential",
                                           .self_bytes = sizeof (Sequential),
                                           .forward = sequential_forward,
                                           .free = sequential_free,
                                           .copied = sequential_copied };

void
td__sequential_child_added (TdLink *link)
{
  add_step (link->self)->link_id = link->children[link->n_children - 1]->id;
}

TdLink *(td_sequential_new)(const char *name)
{
  return td__link_make (&td__sequential_class, NULL, name, NULL);
}

TdLink *
td_sequential_new_in (TdLink *parent, const char *name)
{
  return td__link_make (&td__sequential_class, parent, name, NULL);
}

static TdLink *
append (TdLink *link, TdVar *(*function) (TdVar *x), const char *call)
{
  if (!td__link_usable (link, call, NULL))
    return td__link_inert ();
  if (link->cls != &td__sequential_class || function == NULL)
    {
      td__fail (TD_ERR_ARG, call, NULL, "a Sequential and a function expected, got a %s and %s",
                link->cls->name, function != NULL ? "a function" : "NULL");
      return td__link_inert ();
    }
  add_step (link->self)->function = function;
  steps_changed (link);
  return link;
}

TdLink *
td_sequential_append (TdLink *link, TdVar *(*function) (TdVar *x))
{
  return append (link, function, "td_sequential_append");
}

/* --- its steps as a list --- */

static Sequential *
steps_of (const TdLink *link, const char *call)
{
  if (!td__link_usable (link, call, NULL))
    return NULL;
  if (link->cls == &td__sequential_class)
    return link->self;
  td__fail (TD_ERR_ARG, call, NULL, "%s is a %s, not a Sequential", link->path->text,
            link->cls->name);
  return NULL;
}

/* Steps of links that were freed are passed over in calls; here they go. */
static void
forget_freed (TdLink *link, Sequential *s)
{
  int kept = 0;

  for (int i = 0; i < s->n_steps; i++)
    if (s->steps[i].function != NULL || step_link (link, &s->steps[i]) != NULL)
      s->steps[kept++] = s->steps[i];
  s->n_steps = kept;
}

int
td_sequential_n_steps (TdLink *link)
{
  Sequential *s = steps_of (link, "td_sequential_n_steps");

  if (s == NULL)
    return 0;
  forget_freed (link, s);
  return s->n_steps;
}

/* The place that i means, negative ones from the end; -1 after td__fail. */
static int
place_of (TdLink *link, Sequential *s, int i, int n, const char *call)
{
  int at = i < 0 ? i + s->n_steps : i;

  if (at >= 0 && at < n)
    return at;
  td__fail (TD_ERR_ARG, call, NULL, "%s has %d steps, no place %d", link->path->text,
            s->n_steps, i);
  return -1;
}

/* Put the last step before place at. */
static void
move_last (const TdLink *link, Sequential *s, int at)
{
  Step last = s->steps[s->n_steps - 1];

  for (int i = s->n_steps - 1; i > at; i--)
    s->steps[i] = s->steps[i - 1];
  s->steps[at] = last;
  steps_changed (link);
}

TdStatus
td_sequential_insert (TdLink *link, int i, TdVar *(*function) (TdVar *x))
{
  Sequential *s = steps_of (link, "td_sequential_insert");
  int at;

  if (s == NULL)
    return td__error_status ();
  forget_freed (link, s);
  at = place_of (link, s, i, s->n_steps + 1, "td_sequential_insert");
  if (at < 0 || append (link, function, "td_sequential_insert")->inert)
    return td__error_status ();
  move_last (link, s, at);
  return TD_OK;
}

TdLink *
td_sequential_insert_link (TdLink *link, int i, const char *name, TdLink *child)
{
  Sequential *s = steps_of (link, "td_sequential_insert_link");
  int at;

  if (s == NULL)
    return td__link_inert ();
  forget_freed (link, s);
  at = place_of (link, s, i, s->n_steps + 1, "td_sequential_insert_link");
  if (at < 0 || td_link_adopt (link, name, child)->inert)
    return td__link_inert ();
  move_last (link, s, at);
  return child;
}

TdLink *
td_sequential_pop (TdLink *link, int i)
{
  Sequential *s = steps_of (link, "td_sequential_pop");
  TdLink *child;
  int at;

  if (s == NULL)
    return NULL;
  forget_freed (link, s);
  at = place_of (link, s, i, s->n_steps, "td_sequential_pop");
  if (at < 0)
    return NULL;
  child = s->steps[at].function == NULL ? step_link (link, &s->steps[at]) : NULL;
  for (int k = at; k + 1 < s->n_steps; k++)
    s->steps[k] = s->steps[k + 1];
  s->n_steps--;
  steps_changed (link);
  if (child != NULL)
    td__link_detach (child);
  return child;
}

void
td_sequential_clear (TdLink *link)
{
  Sequential *s = steps_of (link, "td_sequential_clear");

  if (s == NULL)
    return;
  while (link->n_children > 0)
    td_link_free (link->children[link->n_children - 1]);
  s->n_steps = 0;
  steps_changed (link);
}

int
td_sequential_count_by_layer_type (const TdLink *link, const char *class_name)
{
  int n = 0;

  if (steps_of (link, "td_sequential_count_by_layer_type") == NULL || class_name == NULL)
    return 0;
  for (int i = 0; i < link->n_children; i++)
    n += strcmp (link->children[i]->cls->name, class_name) == 0;
  return n;
}

int
td_sequential_remove_by_layer_type (TdLink *link, const char *class_name)
{
  Sequential *s = steps_of (link, "td_sequential_remove_by_layer_type");
  int n = 0;

  if (s == NULL || class_name == NULL)
    return 0;
  for (int i = link->n_children - 1; i >= 0; i--)
    if (strcmp (link->children[i]->cls->name, class_name) == 0)
      {
        td_link_free (link->children[i]);
        n++;
      }
  forget_freed (link, s);
  return n;
}
