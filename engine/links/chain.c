/* Links that are made of links: Chain groups them, Sequential calls them in order.
 *
 * SPDX-License-Identifier: MIT */
#include "link.h"

#include <stdlib.h>

static TdStatus
chain_forward (TdLink *link, void *self, TdVar *const *in, int n_in, TdVar **out, int n_out)
{
  (void)self, (void)in, (void)n_in, (void)out, (void)n_out;
  return td__fail (TD_ERR_STATE, "Chain", td__engine.site,
                   "%s only groups its children: call those, or use a Sequential",
                   link->path->text);
}

static const TdLinkClass chain_class
    = { .size = sizeof (TdLinkClass), .name = "Chain", .forward = chain_forward };

TdLink *(td_chain_new)(const char *name)
{
  return td__link_make (&chain_class, NULL, name, NULL);
}

TdLink *
td_chain_new_in (TdLink *parent, const char *name)
{
  return td__link_make (&chain_class, parent, name, NULL);
}

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

TdLink *
td_sequential_append (TdLink *link, TdVar *(*function) (TdVar *x))
{
  if (!td__link_usable (link, "td_sequential_append", NULL))
    return td__link_inert ();
  if (link->cls != &td__sequential_class || function == NULL)
    {
      td__fail (TD_ERR_ARG, "td_sequential_append", NULL,
                "a Sequential and a function expected, got a %s and %s", link->cls->name,
                function != NULL ? "a function" : "NULL");
      return td__link_inert ();
    }
  add_step (link->self)->function = function;
  return link;
}
