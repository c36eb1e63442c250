/* What would have helped when memory ran out: figures from the blocks that were live and from
 * iterations that went well.
 * SPDX-License-Identifier: MIT */
#include "../read/tape-oom.h"
#include "bytes-text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum
{
  MAX_LOOKED_AT = 16 /* earlier iterations, for one that went the same way to its end */
};

typedef struct
{
  TdTapeReader *r;
  const TdTapeOom *oom;
  const TdTapeOomHolder *holders;
  const TdTapeIteration *it;
  TapeLiveSet live;
  uint64_t missing, capacity, asked;
} Case;

static bool
like_parameter (const Case *c, const TdTapeIteration *it, const TdTapeVar *v)
{
  for (uint32_t i = 0; i < td_tape_reader_n_parameters (c->r); i++)
    {
      const TdTapeParameter *p = td_tape_reader_parameter (c->r, i);

      if (p->ndim == v->ndim && v->ndim <= TD_TAPE_MAX_NDIM
          && memcmp (p->dims, it->dims + v->first_dim, v->ndim * sizeof *p->dims) == 0)
        return true;
    }
  return false;
}

/* Is it what one iteration computes, and no parameter nor a parameter's gradient? */
static bool
is_passing (const Case *c, const TdTapeIteration *it, uint32_t var, unsigned category)
{
  if (var >= it->n_vars)
    return false;
  return category == TD_TAPE_CATEGORY_ACTIVATION || category == TD_TAPE_CATEGORY_INPUT
         || (category == TD_TAPE_CATEGORY_GRADIENT && !like_parameter (c, it, &it->vars[var]));
}

/* ------------------------------------------------------- what earlier iterations left */

static bool
free_left (const Case *c, TdTapeRemedy *out)
{
  const TdTapeOomHolder *most = NULL;
  char bytes[32], site[160], at[160], since[64] = "";
  uint32_t n = 0;

  for (uint32_t i = 0; i < c->live.n; i++)
    if (c->live.items[i].at_start && c->live.items[i].category == TD_TAPE_CATEGORY_ACTIVATION)
      {
        out->saved_bytes += c->live.items[i].bytes;
        n++;
      }
  for (uint32_t i = 0; i < c->oom->n_holders; i++)
    if ((c->holders[i].flags & TD_TAPE_OOM_HOLDER_EARLIER)
        && c->holders[i].category == TD_TAPE_CATEGORY_ACTIVATION
        && (most == NULL || (most->holder_site == 0 && c->holders[i].holder_site != 0)))
      most = &c->holders[i];
  if (n == 0 || most == NULL)
    return false;
  out->n = n;
  td_tape_reader_site_text (c->r, most->site, site, sizeof site);
  td_tape_reader_site_text (c->r, most->holder_site, at, sizeof at);
  snprintf (since, sizeof since, " since iteration %" PRIu64, most->oldest);
  snprintf (
      out->text, sizeof out->text,
      "free what earlier iterations left: %s in %" PRIu32
      " arrays%s, first of all %.40s%s%.40s%s%.40s: cut it there with td_unchain_backward, or "
      "keep the number alone",
      td__bytes_text (out->saved_bytes, bytes), n, since,
      most->op != 0 ? td_tape_reader_string (c->r, most->op) : "arrays", *site ? " at " : "",
      site, *at ? ", held at " : "", at);
  return true;
}

/* ------------------------------------------------------------------ fewer items at once */

/* Rows of the batch: the first dimension of the largest input. */
static int64_t
batch_of (const TdTapeIteration *it, uint32_t *input)
{
  uint64_t most = 0;
  int64_t rows = 0;

  for (uint32_t i = 0; i < it->n_vars; i++)
    {
      const TdTapeVar *v = &it->vars[i];

      if (v->category == TD_TAPE_CATEGORY_INPUT && v->ndim > 0 && v->bytes > most
          && it->dims[v->first_dim] > 1)
        {
          most = v->bytes;
          rows = it->dims[v->first_dim];
          *input = i;
        }
    }
  return rows;
}

static bool
grows_with (const Case *c, const TdTapeIteration *it, uint32_t var, unsigned category,
            int64_t rows)
{
  const TdTapeVar *v = var < it->n_vars ? &it->vars[var] : NULL;

  return v != NULL && v->ndim > 0 && it->dims[v->first_dim] >= rows
         && it->dims[v->first_dim] % rows == 0 && is_passing (c, it, var, category);
}

static uint64_t
scaled (uint64_t bytes, int64_t rows, int64_t of)
{
  return td__tape_block_bytes ((uint64_t)((double)bytes * (double)rows / (double)of + 0.5));
}

/* What it would have taken up to the operation that failed. */
static uint64_t
needs_here (const Case *c, int64_t rows, int64_t of)
{
  const TdTapeOom *oom = c->oom;
  const bool array = oom->ndim > 0 && oom->ndim <= TD_TAPE_MAX_NDIM && oom->dims[0] >= of
                     && oom->dims[0] % of == 0;
  uint64_t all = array ? scaled (oom->asked_bytes, rows, of) : c->asked;
  uint64_t known = 0;

  for (uint32_t i = 0; i < c->live.n; i++)
    {
      const TapeLive *l = &c->live.items[i];

      known += l->bytes;
      all += grows_with (c, c->it, l->var, l->category, of) ? scaled (l->bytes, rows, of)
                                                            : l->bytes;
    }
  /* What the tape does not name block by block is there all the same. */
  return all + (oom->live_bytes > known ? oom->live_bytes - known : 0);
}

/* The highest sum of an iteration that went to its end, with so many rows, on top of what this
 * one began with. */
static uint64_t
needs_whole (const Case *c, const TdTapeIteration *it, int64_t rows, int64_t of)
{
  TapeAddresses map = { 0 };
  uint64_t now = 0, peak = 0, *taken;

  for (unsigned i = 0; i < TD_TAPE_N_CATEGORIES; i++)
    now += c->it->start_bytes[i];
  peak = now;
  taken = malloc ((it->n_memory + (size_t)1) * sizeof *taken);
  if (taken == NULL || !td__tape_addresses_init (&map, it->n_memory))
    {
      free (taken);
      return UINT64_MAX;
    }
  for (uint32_t i = 0; i < it->n_memory; i++)
    {
      const TdTapeMemory *m = &it->memory[i];
      uint32_t *at;

      if (m->device != c->oom->device || m->kind > TD_TAPE_MEMORY_FREE)
        continue;
      at = td__tape_address (&map, m->address);
      if (m->kind == TD_TAPE_MEMORY_ALLOC)
        {
          taken[i] = grows_with (c, it, m->var, m->category, of) ? scaled (m->bytes, rows, of)
                                                                 : m->bytes;
          *at = i;
          now += taken[i];
          peak = now > peak ? now : peak;
          continue;
        }
      const uint64_t given = *at != UINT32_MAX ? taken[*at] : m->bytes;

      now -= given < now ? given : now;
      *at = UINT32_MAX;
    }
  td__tape_addresses_clear (&map);
  free (taken);
  return peak;
}

static bool
same_way (const TdTapeIteration *it, const TdTapeIteration *other, uint32_t n)
{
  if (other->n_events <= n || it->n_events < n)
    return false;
  for (uint32_t i = 0; i < n; i++)
    if (it->events[i].opdef != other->events[i].opdef
        || it->events[i].phase != other->events[i].phase)
      return false;
  return true;
}

/* An earlier iteration that did the same up to there, and went on to its end.  *Owner*: the
 * caller. */
static const TdTapeIteration *
went_well (const Case *c)
{
  const TdTapeSummaries s = td_tape_reader_summaries (c->r);
  char error[128];
  int looked_at = 0;

  for (uint32_t i = s.n; i-- > 0 && looked_at < MAX_LOOKED_AT;)
    {
      const TdTapeIteration *it;

      if (s.rows[i].number >= c->it->number
          || (s.rows[i].flags & (TD_TAPE_ITERATION_ERROR | TD_TAPE_ITERATION_PARTIAL))
          || s.rows[i].n_events <= c->oom->event)
        continue;
      looked_at++;
      it = td_tape_iteration_load_row (c->r, &s.rows[i], error, sizeof error);
      if (it != NULL && same_way (c->it, it, c->oom->event))
        return it;
      td_tape_iteration_free (it);
    }
  return NULL;
}

static bool
smaller_batch (const Case *c, TdTapeRemedy *out)
{
  /* A device that has no more will not fill the holes either. */
  const uint64_t holes = c->oom->limit_bytes == 0 ? c->oom->hole_bytes : 0;
  const uint64_t capacity = c->capacity > holes ? c->capacity - holes : c->oom->live_bytes;
  const TdTapeIteration *whole;
  uint32_t input = 0, input_there = 0;
  const int64_t rows = batch_of (c->it, &input);
  int64_t lo = 0, hi = rows - 1, rows_there;
  char item[32], saved[32], here[64];

  if (rows < 2)
    return false;
  whole = went_well (c);
  rows_there = whole != NULL ? batch_of (whole, &input_there) : 0;
  while (lo < hi)
    {
      const int64_t mid = lo + (hi - lo + 1) / 2;

      if (needs_here (c, mid, rows) <= capacity
          && (rows_there < 1 || needs_whole (c, whole, mid, rows_there) <= capacity))
        lo = mid;
      else
        hi = mid - 1;
    }
  out->whole = rows_there > 0;
  snprintf (here, sizeof here, "up to this operation; what follows it was not recorded");
  if (out->whole)
    snprintf (here, sizeof here, "to the end, going as iteration %" PRIu64 " did",
              whole->number);
  td_tape_iteration_free (whole);
  if (lo < 1)
    return false;
  out->batch = (uint64_t)lo;
  out->before = (uint64_t)rows;
  out->saved_bytes = needs_here (c, rows, rows) - needs_here (c, lo, rows);
  for (uint32_t i = 0; i < c->live.n; i++)
    out->n += grows_with (c, c->it, c->live.items[i].var, c->live.items[i].category, rows);
  snprintf (out->text, sizeof out->text,
            "a batch of %" PRIu64 " instead of %" PRIu64 " fits %s: %s less here, %s an item",
            out->batch, out->before, here, td__bytes_text (out->saved_bytes, saved),
            td__bytes_text (out->saved_bytes / (out->before - out->batch), item));
  return true;
}

/* ----------------------------------------------------------- computing a chain again */

/* Blocks by the event that made them, and when they are used. */
typedef struct
{
  uint64_t *bytes;     /* of activations, live, by event */
  uint32_t *used;      /* the last forward event that takes one of the event's outputs */
  uint64_t *duration;  /* ns */
  uint32_t n;          /* events */
  uint32_t first_done; /* the earliest forward event whose backward has begun */
} Chains;

static void
chains_clear (Chains *k)
{
  free (k->bytes);
  free (k->used);
  free (k->duration);
}

static bool
chains_init (Chains *k, const Case *c)
{
  const TdTapeIteration *it = c->it;

  *k = (Chains){ .n = it->n_events, .first_done = it->n_events };
  k->bytes = calloc (k->n + (size_t)1, sizeof *k->bytes);
  k->used = calloc (k->n + (size_t)1, sizeof *k->used);
  k->duration = calloc (k->n + (size_t)1, sizeof *k->duration);
  if (k->bytes == NULL || k->used == NULL || k->duration == NULL)
    return false;
  for (uint32_t i = 0; i < k->n; i++)
    {
      const TdTapeEvent *e = &it->events[i];

      k->duration[i] = it->event_duration_ns[i];
      if (e->twin >= 0 && (uint32_t)e->twin < k->first_done && i < c->oom->event)
        k->first_done = (uint32_t)e->twin;
      for (uint32_t j = 0; e->phase == TD_TAPE_PHASE_FORWARD && j < e->n_in; j++)
        {
          const uint32_t var = it->ins[e->first_in + j];

          if (var < it->n_vars && it->vars[var].producer >= 0
              && (uint32_t)it->vars[var].producer < k->n)
            k->used[it->vars[var].producer] = i;
        }
    }
  for (uint32_t i = 0; i < it->n_device_times; i++)
    if (it->device_times[i].event < k->n)
      k->duration[it->device_times[i].event] = it->device_times[i].duration_ns;
  for (uint32_t i = 0; i < c->live.n; i++)
    {
      const uint32_t var = c->live.items[i].var;

      if (var < it->n_vars && it->vars[var].producer >= 0
          && (uint32_t)it->vars[var].producer < k->n && !c->live.items[i].at_start
          && it->events[it->vars[var].producer].phase == TD_TAPE_PHASE_FORWARD)
        k->bytes[it->vars[var].producer] += c->live.items[i].bytes;
    }
  return true;
}

/* What forgetting the events [begin, end) saves: their arrays that nothing else takes; but not
 * more than what comes after them, because they are there again in backward, when that is gone
 * and all that came before is not. */
static uint64_t
gain (const Case *c, const Chains *k, uint32_t begin, uint32_t end, uint32_t *n, uint64_t *ns)
{
  uint64_t inside = 0, after = c->oom->phase == TD_TAPE_PHASE_FORWARD ? c->asked : 0;

  *n = 0;
  *ns = 0;
  for (uint32_t i = begin; i < end; i++)
    {
      if (c->it->events[i].phase != TD_TAPE_PHASE_FORWARD)
        continue;
      *ns += k->duration[i];
      if (k->bytes[i] == 0 || k->used[i] >= end || k->used[i] <= i)
        continue; /* its results, or what nothing took so far */
      inside += k->bytes[i];
      ++*n;
    }
  for (uint32_t i = end; i < k->n && i <= c->oom->event; i++)
    after += k->bytes[i];
  return inside < after ? inside : after;
}

static void
offer_chain (const Case *c, const Chains *k, uint32_t begin, uint32_t end, const char *name,
             TdTapeRemedy *out)
{
  uint32_t n;
  uint64_t ns, saved;
  char bytes[32];

  if (end > c->oom->event || end <= begin + 1 || end > k->first_done)
    return;
  saved = gain (c, k, begin, end, &n, &ns);
  if (saved <= out->saved_bytes)
    return;
  out->saved_bytes = saved;
  out->cost_ns = ns;
  out->n = n;
  snprintf (out->text, sizeof out->text,
            "td_forget around %.120s (events %" PRIu32 " to %" PRIu32
            "): %s less, for %.3g ms that they take once more in backward",
            name, begin, end - 1, td__bytes_text (saved, bytes), (double)ns / 1e6);
}

/* Where no link or scope is: the operations from the first on, as far as it pays most. */
static void
offer_prefix (const Case *c, const Chains *k, TdTapeRemedy *out)
{
  uint32_t step = c->oom->event / 256 + 1;
  char name[120], site[100];

  for (uint32_t end = 2; end <= c->oom->event && end <= c->it->n_events; end += step)
    {
      td_tape_reader_site_text (c->r, c->it->events[end - 1].site, site, sizeof site);
      snprintf (name, sizeof name, "the operations up to %s%s",
                td_tape_reader_op_name (c->r, c->it->events[end - 1].opdef),
                *site ? " at " : "");
      snprintf (name + strlen (name), sizeof name - strlen (name), "%s", site);
      offer_chain (c, k, 0, end, name, out);
    }
}

static bool
recompute (const Case *c, TdTapeRemedy *out)
{
  Chains k;

  if (chains_init (&k, c))
    {
      for (uint32_t i = 0; i < c->it->n_spans; i++)
        {
          const TdTapeSpan *s = &c->it->spans[i];
          const char *name = s->kind == TD_TAPE_SPAN_LINK
                                 ? td_tape_reader_path_text (c->r, s->path)
                                 : td_tape_reader_string (c->r, s->name);

          offer_chain (c, &k, s->begin, s->end < k.n ? s->end : k.n, name, out);
        }
      if (out->saved_bytes < c->missing)
        offer_prefix (c, &k, out);
    }
  chains_clear (&k);
  return out->saved_bytes > 0;
}

/* ---------------------------------------------------------------------- 16-bit floats */

static bool
halves (const Case *c, TdTapeRemedy *out)
{
  const TdTapeOom *oom = c->oom;
  const bool asked = oom->ndim <= TD_TAPE_MAX_NDIM && oom->dtype == TD_TAPE_F32
                     && oom->phase != TD_TAPE_PHASE_UPDATE;
  char bytes[32];

  for (uint32_t i = 0; i < c->live.n; i++)
    {
      const TapeLive *l = &c->live.items[i];

      if (l->at_start || !is_passing (c, c->it, l->var, l->category)
          || c->it->vars[l->var].dtype != TD_TAPE_F32)
        continue;
      out->saved_bytes += l->bytes / 2;
      out->n++;
    }
  if (asked)
    {
      out->saved_bytes += c->asked / 2;
      out->n++;
    }
  if (out->saved_bytes == 0)
    return false;
  snprintf (out->text, sizeof out->text,
            "bfloat16 for what is computed, parameters as they are: %s less in %" PRIu32
            " arrays of float32%s",
            td__bytes_text (out->saved_bytes, bytes), out->n,
            asked ? ", the one asked for among them" : "");
  return true;
}

static bool (*const remedies[TD_TAPE_N_REMEDIES]) (const Case *c, TdTapeRemedy *out)
    = { [TD_TAPE_REMEDY_FREE] = free_left,
        [TD_TAPE_REMEDY_RECOMPUTE] = recompute,
        [TD_TAPE_REMEDY_BATCH] = smaller_batch,
        [TD_TAPE_REMEDY_HALVES] = halves };

/* Those that are enough before the others; each in the order of what it asks of the user. */
static int
better_first (const void *a, const void *b)
{
  const TdTapeRemedy *x = a, *y = b;

  return x->enough != y->enough ? (x->enough ? -1 : 1) : (int)x->kind - (int)y->kind;
}

uint32_t
td_tape_oom_remedies (TdTapeReader *r, uint32_t i, TdTapeRemedy *out, uint32_t max)
{
  TdTapeRemedy all[TD_TAPE_N_REMEDIES];
  const TdTapeOom *oom = td_tape_reader_oom (r, i);
  Case c = { .r = r, .oom = oom };
  uint32_t n = 0;

  c.it = oom != NULL ? td__tape_oom_iteration (r, oom) : NULL;
  if (c.it == NULL || !td__tape_live_after (c.it, oom->device, oom->n_memory, &c.live))
    {
      td_tape_iteration_free (c.it);
      return 0;
    }
  c.holders = td_tape_reader_oom_holders (r, i);
  c.missing = td__tape_oom_missing (oom);
  c.capacity = td__tape_oom_capacity (oom);
  c.asked = td__tape_block_bytes (oom->asked_bytes);
  for (unsigned k = 0; k < TD_TAPE_N_REMEDIES; k++)
    {
      all[n] = (TdTapeRemedy){ .kind = (uint8_t)k };
      if (!remedies[k](&c, &all[n]))
        continue;
      all[n].enough = k == TD_TAPE_REMEDY_BATCH || all[n].saved_bytes >= c.missing;
      n++;
    }
  free (c.live.items);
  td_tape_iteration_free (c.it);
  qsort (all, n, sizeof *all, better_first);
  n = n < max ? n : max;
  memcpy (out, all, n * sizeof *all);
  return n;
}
