/* What a backward needs of a call that was written since: an error, that names it.
 *
 * SPDX-License-Identifier: MIT */
#include "replay.h"

#include <stdio.h>

/* The operation whose graph keeps a value, as its operand number *at: the newest, to which
 * backward comes first. */
static const TdStep *
keeper (const TdSchedule *s, uint32_t value, bool *output, uint32_t *at)
{
  for (uint32_t i = s->forward.n; i-- > 0;)
    {
      const TdStep *step = &s->forward.steps[i];

      if (step->kind != TD_STEP_OP || !step->graph)
        continue;
      for (*output = true, *at = 0; *at < step->n_out && *at < 32; ++*at)
        if (td__bit (step->cls->retain_out, (int)*at)
            && s->nodes[td__step_out (s, step, *at)].value == value)
          return step;
      for (*output = false, *at = 0; *at < step->n_in && *at < 32; ++*at)
        if (td__bit (step->cls->retain_in, (int)*at)
            && s->nodes[td__step_in (s, step, *at)].value == value)
          return step;
    }
  return NULL;
}

/* "q/W", or "input 3"; for what no operation of the code keeps. */
static const char *
name_of_external (const TdInstance *i, bool output, uint32_t k, char *text, size_t size)
{
  const TdVar *v = output ? NULL : i->entry->schedule->externals[k].var;

  if (v != NULL && v->name != NULL)
    return v->name;
  snprintf (text, size, "%s %u", output ? "output" : "input", k);
  return text;
}

/* A backward that no call before had runs the forward again, and needs all that this reads,
 * also what the code's own graph keeps none of. */
static TdStatus
overwritten_for_again (const TdInstance *i, bool output, uint32_t k, const TdBuffer *b)
{
  const TdEntry *entry = i->entry;
  char what[80], where[200] = "";

  if (b->writer != NULL)
    snprintf (where, sizeof where, " at %.150s:%d", b->writer->file, b->writer->line);
  return td__fail (TD_ERR_STATE, entry->owner != NULL ? entry->owner->name : "static schedule",
                   i->site,
                   "no call before this one had such a backward, which needs %s as it was in "
                   "the call; it was overwritten%s since.  The next call runs the code",
                   name_of_external (i, output, k, what, sizeof what), where);
}

/* As the code's own operation would say it, where it would. */
static TdStatus
overwritten (const TdInstance *i, bool output, uint32_t k, const TdBuffer *b, bool again)
{
  const TdSchedule *s = i->entry->schedule;
  const uint32_t node = output ? s->outputs[k].node : s->externals[k].node;
  const TdPath *path = td__engine.path;
  bool made;
  uint32_t at;
  const TdStep *step = keeper (s, s->nodes[node].value, &made, &at);
  const TdSite *kept = step != NULL && step->site != NULL ? step->site : i->site;
  TdStatus status;

  if (step == NULL || (again && !output && !i->entry->reads[k]))
    return overwritten_for_again (i, output, k, b);
  td__engine.path = step->path;
  status = td__fail (TD_ERR_STATE, step->cls->name, kept,
                     "%s %u was kept for backward at %s:%d and overwritten at %s:%d",
                     made ? "output" : "input", at, kept != NULL ? kept->file : "?",
                     kept != NULL ? kept->line : 0, b->writer != NULL ? b->writer->file : "?",
                     b->writer != NULL ? b->writer->line : 0);
  td__engine.path = path;
  return status;
}

/* Whether anything of the forward that is not pruned computes with a value. */
static bool
is_read (const TdSchedule *s, uint32_t value, bool in_graph)
{
  for (uint32_t i = 0; i < s->forward.n; i++)
    for (uint32_t k = 0; k < s->forward.steps[i].n_in; k++)
      if (s->nodes[td__step_in (s, &s->forward.steps[i], k)].value == value
          && (!in_graph || s->forward.steps[i].graph))
        return true;
  return false;
}

/* Whether a backward reads an input.  Again: one that runs the forward again reads all but what
 * leads nowhere; what the forward changes itself it begins with as it was then, and the graph
 * that this makes knows by itself what it has lost. */
static bool
reads_input (const TdInstance *i, uint32_t k, bool again)
{
  const TdSchedule *s = i->plan->s;
  const uint32_t node = s->externals[k].node;

  if (!again)
    return i->entry->reads[k];
  if (td__node_value (s, node)->is_state)
    return i->n_before == 0 && i->entry->reads[k];
  return i->entry->reads[k] || is_read (s, s->nodes[node].value, false);
}

/* An input that a backward reads and that was written since: its number, or TD_ABSENT. */
static uint32_t
written_input (const TdInstance *i, bool again)
{
  for (uint32_t k = 0; k < i->plan->s->n_externals; k++)
    if (i->externals[k]->version != i->versions[k] && reads_input (i, k, again))
      return k;
  return TD_ABSENT;
}

static uint32_t
written_output (const TdInstance *i, bool every)
{
  const uint8_t *reads_out = i->entry->reads_out;

  for (uint32_t k = 0; k < i->plan->s->n_outputs; k++)
    if (i->outputs[k] != NULL && i->outputs[k]->version != i->out_versions[k]
        && reads_out[k] > (every ? TD_READ_BY_NONE : TD_READ_BY_CODE))
      return k;
  return TD_ABSENT;
}

bool
td__replay_needs (const TdInstance *i, const TdBuffer *b)
{
  const TdSchedule *s = i->plan->s;

  for (uint32_t k = 0; k < s->n_externals; k++)
    if (i->externals[k] == b && reads_input (i, k, true)
        && is_read (s, s->nodes[s->externals[k].node].value, true))
      return true;
  return false;
}

bool
td__replay_is_unwritten (const TdInstance *i)
{
  return written_input (i, true) == TD_ABSENT && written_output (i, true) == TD_ABSENT;
}

TdStatus
td__replay_unwritten (const TdInstance *i, bool every)
{
  const uint32_t input = written_input (i, every), output = written_output (i, every);

  if (input != TD_ABSENT)
    return overwritten (i, false, input, i->externals[input], every);
  if (output != TD_ABSENT)
    return overwritten (i, true, output, i->outputs[output], every);
  return TD_OK;
}
