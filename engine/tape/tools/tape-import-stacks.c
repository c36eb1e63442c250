/* Snapshots of PyTorch's memory: where something was allocated, as the frames of its stack
 * say.  A stack that several have is looked at once.
 * SPDX-License-Identifier: MIT */
#include "tape-import-take.h"

#include <stdlib.h>
#include <string.h>

#define MAX_FRAMES 4096               /* of one stack that are looked at */
#define MAX_CALLS ((uint64_t)1 << 22) /* of all stacks together */

typedef struct
{
  const TapeSnapshotTake *m;
  TdTapeStackFrame call;
} WantedCall;

/* Libraries are where a program's own lines are not. */
static bool
is_own_file (const char *file)
{
  static const char *const libraries[]
      = { "/site-packages/", "/dist-packages/", "/lib/python", "<frozen" };
  const size_t n = strlen (file);

  for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
    if (strstr (file, libraries[i]) != NULL)
      return false;
  return n > 3 && strcmp (file + n - 3, ".py") == 0;
}

/* How well a frame tells where: the program's Python, any Python, anything with a file. */
int
td__tape_rank_of_file (const char *file)
{
  const size_t n = strlen (file);

  if (n == 0 || strcmp (file, "??") == 0)
    return 0;
  if (is_own_file (file))
    return 3;
  return n > 3 && strcmp (file + n - 3, ".py") == 0 ? 2 : 1;
}

const char *
td__tape_clean (const char *text, char *out, size_t size)
{
  size_t n = 0;

  while (*text != '\0' && n + 5 < size)
    {
      const uint8_t c = (uint8_t)*text;
      const int more = c < 0x80 ? 0 : c >= 0xc2 && c < 0xe0 ? 1 : c >= 0xe0 && c < 0xf0 ? 2 : 3;
      bool good = c < 0x80 || (c >= 0xc2 && c < 0xf5);

      for (int i = 1; good && i <= more; i++)
        good = ((uint8_t)text[i] & 0xc0) == 0x80;
      if (good
          && ((c == 0xe0 && (uint8_t)text[1] < 0xa0) || (c == 0xed && (uint8_t)text[1] > 0x9f)
              || (c == 0xf0 && (uint8_t)text[1] < 0x90)
              || (c == 0xf4 && (uint8_t)text[1] > 0x8f)))
        good = false;
      if (!good || c < 0x20 || c == 0x7f)
        {
          out[n++] = '?';
          text++;
          continue;
        }
      memcpy (out + n, text, (size_t)more + 1);
      n += (size_t)more + 1;
      text += more + 1;
    }
  out[n] = '\0';
  return out;
}

static bool
make_site (TapeSnapshotTake *m, TapeValue frame, uint32_t *site)
{
  char file[1024], name[512];
  uint64_t line = 0;

  td__tape_clean (
      td__tape_value_text (m->p, td__tape_take_member (m, frame, TAPE_KEY_FILE), NULL), file,
      sizeof file);
  td__tape_clean (
      td__tape_value_text (m->p, td__tape_take_member (m, frame, TAPE_KEY_NAME), NULL), name,
      sizeof name);
  if (!td__tape_take_number (m, frame, TAPE_KEY_LINE, &line) || line > INT32_MAX)
    line = 0;
  *site = td_tape_writer_site (m->s->w, file, (uint32_t)line, name);
  if (!td__tape_sources_note (m->s, file)
      || !td__tape_reserve (&m->s->site_hash, &m->s->room_sites, *site + 1ull,
                            sizeof (uint64_t)))
    return false;
  m->s->site_hash[*site] = td_tape_hash (td_tape_hash_bytes (line, file, strlen (file)),
                                         td_tape_hash_bytes (0, name, strlen (name)));
  return true;
}

/* Tapedeck's own snapshots end their stacks with frames that are none: link and category. */
static void
take_mark (TapeSnapshotTake *m, TapeValue frame, TapePlace *place)
{
  const char *file
      = td__tape_value_text (m->p, td__tape_take_member (m, frame, TAPE_KEY_FILE), NULL);
  const char *name
      = td__tape_value_text (m->p, td__tape_take_member (m, frame, TAPE_KEY_NAME), NULL);
  char path[1024];

  if (strcmp (file, "link") == 0)
    place->path = td_tape_writer_path (m->s->w, td__tape_clean (name, path, sizeof path), "");
  if (strcmp (file, "category") == 0)
    for (unsigned c = 0; c < TD_TAPE_N_CATEGORIES; c++)
      if (strcmp (name, td_tape_category_name (c)) == 0)
        place->category = c;
}

typedef struct
{
  const TapeSnapshotTake *m;
  TapeValue frame;
} WantedFrame;

static bool
same_frame (const void *user, uint32_t value)
{
  const WantedFrame *wanted = user;

  return wanted->m->seen[value - 1] == wanted->frame;
}

/* Stacks share their frames. */
static bool
site_of (TapeSnapshotTake *m, TapeValue frame, uint32_t *site)
{
  const uint64_t hash = td_tape_hash (1, frame);
  const uint32_t known
      = td__tape_map_find (&m->frame_sites, hash, same_frame, &(WantedFrame){ m, frame });

  if (known != 0)
    {
      *site = m->seen_sites[known - 1];
      return true;
    }
  if (!make_site (m, frame, site)
      || !td__tape_reserve (&m->seen, &m->room_seen, m->n_seen + 1, sizeof *m->seen)
      || !td__tape_reserve (&m->seen_sites, &m->room_seen_sites, m->n_seen + 1,
                            sizeof *m->seen_sites)
      || !td__tape_map_add (&m->frame_sites, hash, (uint32_t)m->n_seen + 1))
    return false;
  m->seen[m->n_seen] = frame;
  m->seen_sites[m->n_seen++] = *site;
  return true;
}

static bool
same_call (const void *user, uint32_t value)
{
  const WantedCall *wanted = user;
  const TdTapeStackFrame *f = &wanted->m->s->frames[value - 1];

  return f->site == wanted->call.site && f->outer == wanted->call.outer;
}

/* The number of a call in another one, new or known. */
static bool
call_of (TapeSnapshotTake *m, TdTapeStackFrame call, uint32_t *number)
{
  const uint64_t hash = td_tape_hash (call.site, call.outer);
  TapeSnapshot *s = m->s;

  *number = td__tape_map_find (&m->calls, hash, same_call, &(WantedCall){ m, call });
  if (*number != 0)
    return true;
  if (!td__tape_reserve (&s->frames, &s->room_frames, s->n_frames + 1, sizeof *s->frames)
      || !td__tape_map_add (&m->calls, hash, (uint32_t)s->n_frames + 1))
    return false;
  s->frames[s->n_frames++] = call;
  *number = (uint32_t)s->n_frames;
  return true;
}

/* Frames come innermost first; a tree begins with the outermost. */
static bool
stack_of (TapeSnapshotTake *m, const TapeValue *frames, unsigned n, TapePlace *place)
{
  if (m->s->n_frames + n > MAX_CALLS)
    {
      m->s->n_stackless++;
      return true;
    }
  while (n-- > 0)
    {
      TdTapeStackFrame call = { .outer = place->stack };

      if (!site_of (m, frames[n], &call.site) || !call_of (m, call, &place->stack))
        return false;
    }
  return true;
}

static bool
place_of (TapeSnapshotTake *m, TapeValue list, TapePlace *place)
{
  TapeValue frames[MAX_FRAMES], best = 0;
  unsigned n = 0, n_frames = 0;
  int rank = 0;

  *place = (TapePlace){ .category = TD_TAPE_CATEGORY_OTHER };
  for (TapeItems i = td__tape_items (m->p, list); n++ < MAX_FRAMES && td__tape_next (m->p, &i);)
    {
      const char *file
          = td__tape_value_text (m->p, td__tape_take_member (m, i.value, TAPE_KEY_FILE), NULL);
      uint64_t line = 1;

      td__tape_take_number (m, i.value, TAPE_KEY_LINE, &line);
      if (line == 0 && (strcmp (file, "link") == 0 || strcmp (file, "category") == 0))
        {
          take_mark (m, i.value, place);
          continue;
        }
      if (td__tape_value_kind (i.value) == TAPE_VALUE_DICT)
        frames[n_frames++] = i.value;
      if (td__tape_rank_of_file (file) > rank)
        {
          best = i.value;
          rank = td__tape_rank_of_file (file);
        }
    }
  return stack_of (m, frames, n_frames, place)
         && (best == 0 || site_of (m, best, &place->site));
}

typedef struct
{
  const TapeSnapshotTake *m;
  TapeValue list;
} WantedStack;

static bool
same_stack (const void *user, uint32_t value)
{
  const WantedStack *wanted = user;

  return wanted->m->lists[value - 1] == wanted->list;
}

/* Most stacks are shared: one list for many blocks. */
bool
td__tape_take_frames (TapeSnapshotTake *m, TapeValue dict, TapePlace *place)
{
  const TapeValue list = td__tape_take_member (m, dict, TAPE_KEY_FRAMES);
  const uint64_t hash = td_tape_hash (0, list);
  uint32_t known;

  *place = (TapePlace){ .category = TD_TAPE_CATEGORY_OTHER };
  if (td__tape_value_length (m->p, list) == 0)
    return true;
  known = td__tape_map_find (&m->stacks, hash, same_stack, &(WantedStack){ m, list });
  if (known == 0)
    {
      if (!td__tape_reserve (&m->places, &m->room_places, m->n_places + 1, sizeof *m->places)
          || !td__tape_reserve (&m->lists, &m->room_lists, m->n_places + 1, sizeof *m->lists)
          || !place_of (m, list, &m->places[m->n_places])
          || !td__tape_map_add (&m->stacks, hash, (uint32_t)m->n_places + 1))
        return td__tape_take_fail (m, "no memory");
      m->lists[m->n_places++] = list;
      known = (uint32_t)m->n_places;
    }
  *place = m->places[known - 1];
  return true;
}
