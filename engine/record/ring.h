/* The ring between the model and its supervisor: one producer, one consumer, records in shared
 * memory.  A record is reserved, filled in place and published by one release store of the
 * producer's position.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stdatomic.h>
#include <time.h>

#include "raw.h"

#define TD_RING_MAGIC "TDRING\r\n"
#define TD_RING_VERSION 5
#define TD_RING_BYTES (16u << 20)
#define TD_RING_DATA 4096    /* offset of the records in the file */
#define TD_RING_NO_MORE (-1) /* a consumer that will take nothing more */

/** Largest record: a quarter of the ring, at most 1 MiB. */
#define TD_RING_MAX_RECORD(ring)                                                               \
  ((ring)->capacity / 4 < (1u << 20) ? (uint32_t)((ring)->capacity / 4) : (1u << 20))

/** What the model does now, overwritten by plain stores: what "was running" at a crash. */
typedef struct
{
  uint32_t opdef, site;
  uint32_t path;
  uint32_t phase;
  uint64_t event; /* within the iteration, from 0 */
  uint64_t iteration;
  uint32_t running; /* 1 from an operation's start to its end */
  uint32_t reserved[7];
} TdRingNow;
_Static_assert(sizeof (TdRingNow) == 64, "TdRingNow changed size");

/** The shared first page. */
typedef struct
{
  TdRingNow now;

  /* written by the producer */
  _Atomic uint64_t head; /* bytes published since the start */
  _Atomic uint64_t n_stalls;
  _Atomic uint64_t stalled_ns;
  _Atomic uint32_t gave_up; /* 1: the consumer is gone, nothing more is recorded */
  _Atomic uint32_t producer_waits;
  _Atomic uint64_t cost_ticks; /* what recording took of ran_ticks; 0 and 0: not known */
  _Atomic uint64_t ran_ticks;  /* of the program, since its first iteration, standing aside */
  uint64_t pad1[2];

  /* written by the consumer */
  _Atomic uint64_t tail;
  _Atomic int32_t consumer_pid; /* 0: nobody yet, records wait in the ring; the producer gives
                                   up when it is full and a consumer that was there has died */
  _Atomic uint32_t wake; /* futex, one up with each advance of tail while the producer waits */
  _Atomic uint64_t n_taped; /* the first iteration that is not whole on the tape */
  _Atomic uint64_t limit;   /* bytes that the tape may grow to, of a budget of several runs */
  uint64_t pad2[4];

  /* written once by whoever makes it */
  char magic[8];
  uint32_t version;
  uint32_t data_offset;
  uint64_t capacity; /* a power of two */
  int32_t producer_pid;
  uint32_t level;
  uint64_t mono_ns, ticks; /* the same moment */
  double ns_per_tick;
  uint64_t budget_bytes, values_bytes;
  uint32_t rank, n_ranks;
  char tape[1024]; /* path of the tape, for the recovery of a left-over ring */
} TdRingShared;
_Static_assert(sizeof (TdRingShared) <= TD_RING_DATA, "the ring's head outgrew its page");
_Static_assert(offsetof (TdRingShared, head) == 64, "line 1");
_Static_assert(offsetof (TdRingShared, tail) == 128, "line 2");
_Static_assert(offsetof (TdRingShared, magic) == 192, "line 3");

typedef struct TdRing TdRing;

/** One side's handle. */
struct TdRing
{
  uint64_t head;   /* producer: position of the next record */
  uint64_t cursor; /* consumer: position up to which records were taken */
  uint64_t limit;  /* producer: up to here space is free and contiguous */
  uint64_t asked;  /* producer: lines before this one were asked for */
  char *data;
  uint64_t mask;
  TdRingShared *shared;
  uint64_t capacity;
  size_t mapped;
  int fd;
  bool dead;       /* recording has ended: reserve returns a scratch area */
  bool told;       /* of a consumer that has died */
  uint64_t looked; /* for it, ticks */
  bool cut;        /* the file is shorter than it was: what is mapped behind its end is gone */
  void (*full) (TdRing *ring, void *user); /* in-process: drain now, instead of waiting */
  void (*lost) (TdRing *ring);             /* producer: the consumer that was there has died */
  void *user;
  char *scratch;
};

/** What td_ring_new needs. */
typedef struct
{
  uint64_t capacity; /* 0: TD_RING_BYTES; made a power of two, at least 64 KiB */
  uint32_t level;
  uint32_t rank, n_ranks;
  uint64_t budget_bytes, values_bytes;
  const char *tape;
} TdRingOptions;

/** Make a ring: in the file `path` (made new, 0600, pre-faulted), or in private memory if NULL.
 * Calibrates the time stamp counter, which takes 2 ms.
 * Errors: NULL, one line in `error`. */
TdRing *td_ring_new (const char *path, const TdRingOptions *options, char *error, size_t n);

/** The same in an empty file that is open, whose descriptor the ring takes over. */
TdRing *td_ring_new_fd (int fd, const TdRingOptions *options, char *error, size_t n);

/** The same in memory that has no name: whoever inherits the descriptor has it. */
TdRing *td_ring_new_nameless (const TdRingOptions *options, char *error, size_t n);

/** Open the file at `path`, made where there is none, and lock it for this process, until it
 * ends or closes the file.  *Errors*: -1, one line in `error`: TD_TAPE_TAKEN while another
 * process has it. */
int td_ring_lock (const char *path, char *error, size_t n);

/** Is there a process that has locked this file? */
bool td_ring_is_locked (const char *path);

/** Let go of a file that was locked and not used. */
void td_ring_unlock (const char *path, int fd);

/** Make a ring in the locked file; what a dead run has left in it is replaced.  Takes `fd` over
 * in any case. */
TdRing *td_ring_new_locked (const char *path, int fd, const TdRingOptions *options, char *error,
                            size_t n);

/** From now on let this process survive that the ring's file is cut short: the ring is `dead`
 * then, and lies in memory of its own.  Of one ring at a time. */
void td_ring_guard (TdRing *ring);
void td__ring_unguard (TdRing *ring);

/** Has the ring's file been cut short? */
bool td_ring_is_cut (TdRing *ring);

/** Consumer: take nothing more; the producer gives up when the ring is full. */
void td_ring_abandon (TdRing *ring);

/** Map an existing ring: the model does with the descriptor or path it was given, the repairer
 * with a left-over file.  Everything in its head is checked. */
TdRing *td_ring_open (const char *path, char *error, size_t n);
TdRing *td_ring_open_fd (int fd, char *error, size_t n);

/** Unmap; the file stays. */
void td_ring_free (TdRing *ring);

/** Become the one producer of the ring that is open as `fd`, which is taken over.
 * Errors: NULL, one line in `error`; "": another program is it, or was.  What is no ring stays
 * open as it is: a number that somebody left may be that of a file of the program's own. */
TdRing *td_ring_claim (int fd, char *error, size_t n);

/** Become the producer or the consumer: stores the pid of this process. */
void td_ring_produce (TdRing *ring);
void td_ring_consume (TdRing *ring);

/** Raw time stamp: TSC where there is one, else CLOCK_MONOTONIC in ns. */
static inline uint64_t
td_ring_ticks (void)
{
#if defined(__x86_64__) || defined(__i386__)
  return __builtin_ia32_rdtsc ();
#else
  struct timespec t;
  clock_gettime (CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
#endif
}

void *td__ring_reserve_slow (TdRing *ring, uint32_t bytes);

/** Return `bytes` (a multiple of 8, at most TD_RING_MAX_RECORD) for a record; its head.size and
 * head.type must be set before td_ring_publish.  Only one record at a time is open.  Never
 * NULL: after recording has ended the record goes nowhere. Sync: waits for the consumer when
 * the ring is full. */
static inline void *
td_ring_reserve (TdRing *ring, uint32_t bytes)
{
  if (__builtin_expect (ring->head + bytes > ring->limit, 0))
    return td__ring_reserve_slow (ring, bytes);
  return ring->data + (ring->head & ring->mask);
}

/* The lines that follow were read by the consumer: ask for them back before they are written.
 */
static inline void
td__ring_prefetch (TdRing *ring)
{
#if defined(__x86_64__)
  uint64_t ahead = ring->head + 1024;

  for (; ring->asked < ahead; ring->asked += 64)
    __asm__ volatile("prefetchw %0" : : "m"(ring->data[ring->asked & ring->mask]));
#endif
}

/** The record reserved last is complete; the next td_ring_publish shows it too.  For what makes
 * sense only together with the record that follows: the other side's line is touched once. */
static inline void
td_ring_commit (TdRing *ring, uint32_t bytes)
{
  if (__builtin_expect (ring->dead, 0))
    return;
  ring->head += bytes;
}

/** Publish the record reserved last, of `bytes` bytes (the same, or fewer). */
static inline void
td_ring_publish (TdRing *ring, uint32_t bytes)
{
  if (__builtin_expect (ring->dead, 0))
    return;
  ring->head += bytes;
  td__ring_prefetch (ring);
  atomic_store_explicit (&ring->shared->head, ring->head, memory_order_release);
}

/** Consumer: the bytes after those taken, contiguous; 0 when there is nothing new.  They start
 * with a record (perhaps PAD), end with one, and stay valid until td_ring_release. */
size_t td_ring_peek (TdRing *ring, const void **bytes);

/** Consumer: the first `n` bytes of those have been looked at. */
void td_ring_take (TdRing *ring, size_t n);

/** Consumer: what was taken so far may be overwritten, but for the last `keep` bytes of it. */
void td_ring_release (TdRing *ring, uint64_t keep);

/** Producer: has the consumer died? Looks once a second at most, and calls `lost` at the first
 * time that it has. What is written goes on into the ring until that is full. */
void td_ring_look (TdRing *ring);

/** Producer: wait until the consumer has taken everything, or is gone. */
void td_ring_drain_wait (TdRing *ring);

/** True while a process with this id exists. */
bool td_ring_alive (int32_t pid);
