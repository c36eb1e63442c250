/* The producer's insides: what it remembers of variables and storages, to check what it is
 * told, and the assembler that it feeds. SPDX-License-Identifier: MIT */
#pragma once

#include "td-producer.h"
#include "../assembler-private.h"
#include "../made-in.h"

#include <sys/types.h>

/** The most of anything that is numbered: what wants more is a mistake. */
#define PRODUCER_MOST (1u << 26)
#define PRODUCER_TEXT 60000u /* bytes of a text; a longer one is cut */

/** A variable, until its storage is given back. */
typedef struct
{
  uint64_t id, made; /* made: in which iteration, counted from 1; 0: before the first */
  int64_t dims[TD_TAPE_MAX_NDIM], strides[TD_TAPE_MAX_NDIM]; /* in elements */
  uint32_t name, layer, place;
  uint32_t storage, next; /* slot of its storage; the next variable there; TD_TAPE_NONE */
  uint8_t dtype, ndim, category, flags, device;
  bool said, pinned;  /* the assembler knows it; it is remembered whatever comes */
  uint32_t parameter; /* text: its whole name */
  uint32_t layout;    /* text: offset and strides that are not the usual ones */
  uint32_t mark;      /* of the operation that was looked at last */
} ProducerVar;

/** A storage that is alive. */
typedef struct
{
  uint64_t id, address, bytes, buffer;
  uint64_t made; /* as of a variable */
  uint64_t variable;
  uint32_t vars; /* the first slot */
  uint32_t place, kind, name;
  uint8_t category, device;
  bool used, said;
  uint32_t mark;
} ProducerStorage;

/** Storages of one origin that have outlived their iteration. */
typedef struct
{
  uint64_t bytes, oldest, n;
  TdMadeIn made_in;
  uint32_t place, kind, name;
  uint8_t category;
} ProducerHeld;

/** What td_producer_measure_ahead has found, until the words that name its variables. */
typedef struct
{
  TdTapeStats stats;
  void *elements; /* row by row as the first of them has them; NULL: they are not kept */
  uint64_t bytes;
  int64_t dims[TD_TAPE_MAX_NDIM], strides[TD_TAPE_MAX_NDIM]; /* of the first */
  uint8_t dtype, ndim;
  bool named; /* the first is known */
} ProducerMeasured;

struct TdProducer
{
  TdTapeWriter *w;
  TdAssembler *a;
  TdRingShared clock; /* counts nanoseconds */
  char error[300];

  TdProducer *next; /* of this process */
  dev_t device;     /* its file */
  ino_t inode;

  TdIdMap texts, places, layers, kinds; /* by hash */
  uint32_t n_texts, n_places, n_layers, n_kinds;
  TdList record;             /* bytes of the record that is being made */
  TdList layer_paths;        /* uint32_t: text, by layer - 1 */
  struct ProducerLive *live; /* NULL: nobody controls it */
  struct ProducerHang *hang; /* NULL: it has not waited for others */

  TdIdMap var_at, storage_at;
  TdList vars, free_vars;         /* ProducerVar; uint32_t */
  TdList storages, free_storages; /* ProducerStorage; uint32_t */
  TdList pending;                 /* uint32_t: storages whose ALLOC waits for its variable */
  uint64_t newest_id, next_buffer, first_id;

  uint64_t n_begun; /* iterations */
  bool in_iteration, outside, ended;
  uint32_t n_events, mark;
  TdList orders;          /* uint16_t: how many backward events each event has */
  TdList measured;        /* ProducerMeasured */
  bool keeps_elements;    /* level values */
  uint64_t waiting_bytes; /* of elements that are kept */

  /* marks of what has outlived its iteration */
  uint64_t credit, marked_bytes, marked_objects;
  uint32_t n_same;
};

/** Refuse: keep the text, return the status. */
TdProducerStatus td__producer_refuse (TdProducer *p, TdProducerStatus status,
                                      const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));

/** Take the caller's struct of `size` bytes as ours of `ours`: what it lacks is 0, what we lack
 * must be 0.  Returns NULL, or what is wrong. */
const char *td__producer_take (void *to, size_t ours, const void *from, uint32_t least);

/** Can anything be said now?  OK, or refused. */
TdProducerStatus td__producer_ready (TdProducer *p);

/** Return a record of `bytes`, zeroed but for its head; NULL: no memory. */
void *td__producer_record (TdProducer *p, unsigned type, unsigned flags, size_t bytes);
/** Hand it to the assembler. */
void td__producer_feed (TdProducer *p, const void *record);

/** Ticks of a time; 0: now. */
uint64_t td__producer_ticks (uint64_t time_ns);

/** The slots of what is alive; NULL: there is none. */
ProducerVar *td__producer_var (TdProducer *p, uint64_t id);
ProducerStorage *td__producer_storage (TdProducer *p, uint64_t id);

/** The assembler is to know a variable that an operation finds there.  False: no memory. */
bool td__producer_know (TdProducer *p, ProducerVar *v);

/** Write the allocations that wait. */
void td__producer_flush_memory (TdProducer *p);
/** Write what has outlived its iteration, where it is time. */
void td__producer_mark (TdProducer *p);

/** The same as td_producer_begin for work outside. */
TdProducerStatus td__producer_begin (TdProducer *p, uint32_t label, uint64_t time_ns,
                                     bool outside);
/** The same as td_producer_end_iteration; `outside`: it has turned out to be work outside. */
TdProducerStatus td__producer_end_iteration (TdProducer *p, uint64_t time_ns, bool outside);
/** The same as td_producer_operation, with the attributes as one text. */
TdProducerStatus td__producer_operation (TdProducer *p, const TdProducerOperation *op,
                                         uint32_t attributes);
/** A number of a curve whose key is a text's number. */
TdProducerStatus td__producer_report (TdProducer *p, uint32_t key, double value);
TdProducerStatus td__producer_notice (TdProducer *p, uint32_t text);
/** What ranks are compared by: one array, or number. */
TdProducerStatus td__producer_sum (TdProducer *p, const TdTapeRankSum *sum);
/** It waits for nobody any more. (produce-hang.c) */
void td__producer_hang_end (TdProducer *p);
/** Return the number of the first `n` bytes of a text. */
uint32_t td__producer_text_n (TdProducer *p, const char *text, size_t n);

/** At level values: write the `n` elements of a variable, unless they are too many. */
TdProducerStatus td__producer_elements (TdProducer *p, const ProducerVar *v,
                                        const void *elements, uint64_t n);
/** Keep a copy of what was measured. */
void td__producer_keep (TdProducer *p, ProducerMeasured *m, uint32_t dtype,
                        const void *elements, uint64_t n);
/** Write what was kept as the `n` elements of a variable, if it is known to be those. */
TdProducerStatus td__producer_say_kept (TdProducer *p, ProducerMeasured *m,
                                        const ProducerVar *v, uint64_t n);
/** Nothing that was measured is needed any more. */
void td__producer_forget_measured (TdProducer *p);

/** End the tape; the time is now. */
TdProducerStatus td__producer_end (TdProducer *p, TdTapeEnd end);

/** Nobody controls it any more. */
void td__producer_live_end (TdProducer *p);
