/* The ring's slow paths: making and mapping, waiting for room, the consumer's side.
 * SPDX-License-Identifier: MIT */
#include "ring.h"
#include "host-memory.h"
#include "process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MIN_CAPACITY (64u << 10)
#define MAX_CAPACITY (1ull << 30)
#define NOBODY_CAME_NS 10000000000ull /* patience with a consumer that was never there */
#define LOOK_EVERY_NS 1e9

static uint64_t
now_ns (void)
{
  struct timespec t;

  clock_gettime (CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A time stamp and the clock, taken as close together as 8 tries allow. */
static void
clock_pair (uint64_t *ticks, uint64_t *ns)
{
  uint64_t best = UINT64_MAX;

  for (int i = 0; i < 8; i++)
    {
      uint64_t before = td_ring_ticks (), clock = now_ns (), after = td_ring_ticks ();

      if (after - before < best)
        {
          best = after - before;
          *ticks = before + (after - before) / 2;
          *ns = clock;
        }
    }
}

static void
calibrate (TdRingShared *shared)
{
  uint64_t ticks = 0, ns = 0;

  clock_pair (&shared->ticks, &shared->mono_ns);
  while (now_ns () - shared->mono_ns < 2000000)
    ;
  clock_pair (&ticks, &ns);
  shared->ns_per_tick = ticks > shared->ticks
                            ? (double)(ns - shared->mono_ns) / (double)(ticks - shared->ticks)
                            : 1.0;
}

static uint64_t
round_capacity (uint64_t wanted)
{
  uint64_t capacity = MIN_CAPACITY;

  while (capacity < wanted && capacity < MAX_CAPACITY)
    capacity *= 2;
  return capacity;
}

static TdRing *
handle_new (TdRingShared *shared, size_t mapped, int fd)
{
  TdRing *ring = calloc (1, sizeof *ring);

  if (ring == NULL)
    return NULL;
  ring->shared = shared;
  ring->mapped = mapped;
  ring->fd = fd;
  ring->capacity = shared->capacity;
  ring->mask = shared->capacity - 1;
  ring->data = (char *)shared + TD_RING_DATA;
  ring->head = atomic_load (&shared->head);
  ring->cursor = atomic_load (&shared->tail);
  ring->limit = ring->head; /* the first reserve takes the slow path and looks */
  return ring;
}

static TdRing *
failed (char *error, size_t n, const char *what, void *map, size_t mapped, int fd)
{
  snprintf (error, n, "%s: %s", what, strerror (errno));
  if (map != MAP_FAILED && map != NULL)
    munmap (map, mapped);
  if (fd >= 0)
    close (fd);
  return NULL;
}

static TdRing *
new_in (int fd, const TdRingOptions *options, char *error, size_t n)
{
  uint64_t capacity = round_capacity (options->capacity ? options->capacity : TD_RING_BYTES);
  size_t mapped = TD_RING_DATA + (size_t)capacity;
  TdRingShared *shared;
  TdRing *ring;

  /* Real blocks now: a full disk is an error here, not a SIGBUS in the model. */
  errno = fd >= 0 ? posix_fallocate (fd, 0, (off_t)mapped) : 0;
  if (errno != 0)
    return failed (error, n, "no room for the ring", NULL, 0, fd);
  shared = mmap (NULL, mapped, PROT_READ | PROT_WRITE,
                 (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED) | MAP_POPULATE, fd, 0);
  if (shared == MAP_FAILED)
    return failed (error, n, "cannot map the ring", shared, mapped, fd);
  memset (shared, 0, sizeof *shared);
  memcpy (shared->magic, TD_RING_MAGIC, sizeof shared->magic);
  shared->version = TD_RING_VERSION;
  shared->data_offset = TD_RING_DATA;
  shared->capacity = capacity;
  shared->level = options->level;
  shared->rank = options->rank;
  shared->n_ranks = options->n_ranks ? options->n_ranks : 1;
  shared->budget_bytes = options->budget_bytes;
  shared->values_bytes = options->values_bytes;
  if (options->tape != NULL)
    snprintf (shared->tape, sizeof shared->tape, "%s", options->tape);
  calibrate (shared);
  ring = handle_new (shared, mapped, fd);
  return ring ? ring : failed (error, n, "cannot make the ring", shared, mapped, fd);
}

TdRing *
td_ring_new_fd (int fd, const TdRingOptions *options, char *error, size_t n)
{
  return new_in (fd, options, error, n);
}

TdRing *
td_ring_new (const char *path, const TdRingOptions *options, char *error, size_t n)
{
  int fd = -1;
  TdRing *ring;

  if (path != NULL)
    {
      fd = open (path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
      if (fd < 0)
        return failed (error, n, "cannot make the ring", NULL, 0, -1);
    }
  ring = new_in (fd, options, error, n);
  if (ring == NULL && path != NULL)
    unlink (path);
  return ring;
}

/* What is wrong with the head of a mapped ring, NULL if nothing. */
static const char *
head_fault (const TdRingShared *shared, uint64_t file_bytes)
{
  uint64_t head = atomic_load (&shared->head), tail = atomic_load (&shared->tail);

  if (memcmp (shared->magic, TD_RING_MAGIC, sizeof shared->magic) != 0)
    return "not a ring";
  if (shared->version != TD_RING_VERSION || shared->data_offset != TD_RING_DATA)
    return "a ring of another version";
  if (shared->capacity < MIN_CAPACITY || shared->capacity > MAX_CAPACITY
      || (shared->capacity & (shared->capacity - 1)) != 0
      || file_bytes < TD_RING_DATA + shared->capacity)
    return "a ring that was cut off";
  if (head < tail || head - tail > shared->capacity || head % 8 != 0 || tail % 8 != 0)
    return "a ring with impossible positions";
  return NULL;
}

TdRing *
td_ring_open_fd (int fd, char *error, size_t n)
{
  struct stat st;
  TdRingShared *shared;
  const char *fault;
  TdRing *ring;

  if (fstat (fd, &st) != 0)
    return failed (error, n, "cannot read the ring", NULL, 0, fd);
  if (!S_ISREG (st.st_mode) || st.st_size < TD_RING_DATA + MIN_CAPACITY)
    {
      errno = EINVAL;
      return failed (error, n, "not a ring", NULL, 0, fd);
    }
  shared = mmap (NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                 fd, 0);
  if (shared == MAP_FAILED)
    return failed (error, n, "cannot map the ring", shared, 0, fd);
  fault = head_fault (shared, (uint64_t)st.st_size);
  ring = fault == NULL ? handle_new (shared, (size_t)st.st_size, fd) : NULL;
  if (ring == NULL)
    {
      snprintf (error, n, "%s", fault ? fault : "no memory");
      munmap (shared, (size_t)st.st_size);
      close (fd);
    }
  return ring;
}

TdRing *
td_ring_open (const char *path, char *error, size_t n)
{
  int fd = open (path, O_RDWR | O_CLOEXEC);

  if (fd < 0)
    return failed (error, n, "cannot open the ring", NULL, 0, -1);
  return td_ring_open_fd (fd, error, n);
}

void
td_ring_free (TdRing *ring)
{
  if (ring == NULL)
    return;
  td__ring_unguard (ring);
  munmap (ring->shared, ring->mapped);
  if (ring->fd >= 0)
    close (ring->fd);
  free (ring->scratch);
  free (ring);
}

void
td_ring_produce (TdRing *ring)
{
  ring->shared->producer_pid = (int32_t)getpid ();
}

TdRing *
td_ring_claim (int fd, char *error, size_t n)
{
  int32_t nobody = 0;
  const int own = fcntl (fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  TdRing *ring;

  if (own < 0)
    return failed (error, n, "cannot read the ring", NULL, 0, -1);
  ring = td_ring_open_fd (own, error, n);
  if (ring == NULL)
    return NULL;
  close (fd);
  if (__atomic_compare_exchange_n (&ring->shared->producer_pid, &nobody, (int32_t)getpid (),
                                   false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
    return ring;
  td_ring_free (ring);
  if (n > 0)
    *error = '\0';
  return NULL;
}

void
td_ring_consume (TdRing *ring)
{
  atomic_store (&ring->shared->consumer_pid, (int32_t)getpid ());
}

bool
td_ring_alive (int32_t pid)
{
  TdProcess process;

  if (pid <= 0 || (kill (pid, 0) != 0 && errno == ESRCH))
    return false;
  /* A zombie answers signals but drains nothing. */
  return !td__process_read (pid, &process) || strchr ("ZXx", process.state) == NULL;
}

static void
futex_wait_ms (_Atomic uint32_t *word, uint32_t seen, long ms)
{
  struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

  syscall (SYS_futex, word, FUTEX_WAIT, seen, &t, NULL, 0);
}

static void
tell_lost (TdRing *ring)
{
  if (!ring->told && ring->lost != NULL && atomic_load (&ring->shared->consumer_pid) > 0)
    ring->lost (ring);
  ring->told = true;
}

void
td_ring_look (TdRing *ring)
{
  const uint64_t ticks = td_ring_ticks ();
  const int32_t pid = atomic_load (&ring->shared->consumer_pid);

  if (ring->told || pid <= 0
      || (double)(ticks - ring->looked) * ring->shared->ns_per_tick < LOOK_EVERY_NS)
    return;
  ring->looked = ticks;
  if (!td_ring_alive (pid))
    tell_lost (ring);
}

static void
give_up (TdRing *ring)
{
  tell_lost (ring);
  ring->dead = true;
  ring->limit = 0;
  atomic_store (&ring->shared->gave_up, 1);
}

/* Wait until everything before position `wanted` of the last lap was taken; false: gave up. */
static bool
wait_for_tail (TdRing *ring, uint64_t wanted)
{
  TdRingShared *shared = ring->shared;
  uint64_t begin;

  if (atomic_load_explicit (&shared->tail, memory_order_acquire) >= wanted)
    return true;
  if (ring->full != NULL)
    {
      ring->full (ring, ring->user);
      if (atomic_load (&shared->tail) >= wanted)
        return true;
      give_up (ring);
      return false;
    }
  begin = now_ns ();
  atomic_fetch_add (&shared->n_stalls, 1);
  for (unsigned turn = 1;; turn++)
    {
      uint32_t seen = atomic_load (&shared->wake);
      int32_t pid = atomic_load (&shared->consumer_pid);

      atomic_store (&shared->producer_waits, 1);
      if (ring->dead || atomic_load (&shared->tail) >= wanted)
        break; /* dead: the file was cut short under us */
      if (turn % 16 == 0 && (pid ? !td_ring_alive (pid) : now_ns () - begin > NOBODY_CAME_NS))
        {
          give_up (ring);
          break;
        }
      futex_wait_ms (&shared->wake, seen, 2);
    }
  atomic_store (&shared->producer_waits, 0);
  atomic_fetch_add (&shared->stalled_ns, now_ns () - begin);
  return !ring->dead;
}

void *
td__ring_reserve_slow (TdRing *ring, uint32_t bytes)
{
  assert (bytes % 8 == 0 && bytes <= TD_RING_MAX_RECORD (ring));
  atomic_store_explicit (&ring->shared->head, ring->head, memory_order_release);
  while (!ring->dead)
    {
      uint64_t lap_end = (ring->head & ~ring->mask) + ring->capacity;
      uint64_t end = ring->head + bytes <= lap_end ? ring->head + bytes : lap_end;
      uint64_t tail;

      if (end > ring->capacity && !wait_for_tail (ring, end - ring->capacity))
        break;
      tail = atomic_load_explicit (&ring->shared->tail, memory_order_acquire);
      ring->limit = tail + ring->capacity < lap_end ? tail + ring->capacity : lap_end;
      if (ring->head + bytes <= lap_end)
        return ring->data + (ring->head & ring->mask);

      /* The record does not fit before the end of the lap: fill up and begin the next. */
      TdRawHead *pad = (TdRawHead *)(ring->data + (ring->head & ring->mask));
      *pad = (TdRawHead){ .size = (uint32_t)(lap_end - ring->head), .type = TD_RAW_PAD };
      td_ring_publish (ring, pad->size);
    }
  if (ring->scratch == NULL)
    ring->scratch = td__xmalloc (TD_RING_MAX_RECORD (ring));
  return ring->scratch;
}

size_t
td_ring_peek (TdRing *ring, const void **bytes)
{
  uint64_t head = atomic_load_explicit (&ring->shared->head, memory_order_acquire);
  uint64_t lap_end = (ring->cursor & ~ring->mask) + ring->capacity;
  uint64_t end = head < lap_end ? head : lap_end;

  *bytes = ring->data + (ring->cursor & ring->mask);
  /* A producer that went mad must not make the consumer read outside its ring. */
  if (head < ring->cursor || head - ring->cursor > ring->capacity)
    return 0;
  return (size_t)(end - ring->cursor);
}

void
td_ring_take (TdRing *ring, size_t n)
{
  ring->cursor += n;
}

void
td_ring_release (TdRing *ring, uint64_t keep)
{
  uint64_t tail = ring->cursor - keep;

  if (tail > atomic_load_explicit (&ring->shared->tail, memory_order_relaxed))
    atomic_store (&ring->shared->tail, tail);
  if (atomic_load (&ring->shared->producer_waits))
    {
      atomic_fetch_add (&ring->shared->wake, 1);
      syscall (SYS_futex, &ring->shared->wake, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
}

void
td_ring_drain_wait (TdRing *ring)
{
  if (ring->dead)
    return;
  atomic_store_explicit (&ring->shared->head, ring->head, memory_order_release);
  wait_for_tail (ring, ring->head);
}
