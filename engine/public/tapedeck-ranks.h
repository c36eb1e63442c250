/* Ranks: the same program in several processes, each with its part of the data.  Included by
 * tapedeck.h.
 *
 * A communicator is the processes that compute together; each has a number in it, its rank.
 * What is said here to be for all ranks must be called by all of them, in the same order:
 * before anything is sent, they tell each other what they are about to do, and where that
 * differs, in kind, shape, dtype or root, or where one of them has failed before or has ended,
 * it is an error on all of them.  Names are ChainerMN's.
 *
 * Not found, ranks wait for each other then: a rank in a call of one communicator while another
 * is in a call of another, or in td_recv; and a rank that never calls td_comm_new while others
 * do, which belongs at the beginning of the program.
 *
 * SPDX-License-Identifier: MIT */
#pragma once

TD_BEGIN_DECLS

typedef struct TdComm TdComm;

/* --- communicators ------------------------------------------------------------------------ */
/** The processes that were started together.  name:
 *
 * - "mpi" needs Open MPI's libraries, and takes the shared memory of a machine between its
 *   ranks.  Arrays of GPUs go through the host.
 * - "shm" is the same for ranks that are all on one machine; where they are not, an error on
 *   all of them.  A process that mpirun did not start is alone, without MPI.
 * - "nccl" is the same, but arrays that lie on all ranks' GPUs go from one GPU to the other, by
 *   NCCL, and the host does not wait: bcast, allreduce, allgather, alltoall and the means of
 *   gradients.  A rank's GPU is the engine's device now or, while that is cpu, the one that
 *   td_device_get ("cuda") gives; no two ranks may have the same.  A process that mpirun did
 *   not start is alone, without MPI.
 * - NULL: where mpirun has started the program, "nccl" if the engine's device is a GPU of its
 *   own on every rank and NCCL is there, and starts, else "mpi"; else this process alone.
 *
 * Of processes that something else than mpirun has started together, "nccl", "shm" and NULL
 * refuse to make each one alone.
 *
 * For all ranks.  *Owner*: the caller, td_comm_free or td_finish.  *Errors*: TD_ERR_ARG for an
 * unknown name, and on all ranks where they give different ones; TD_ERR_STATE where MPI cannot
 * be had, "shm" is asked for on several machines, or another than mpirun has started several,
 * TD_ERR_DEVICE on all ranks where NCCL cannot, and why; inert then. */
TD_API TdComm *td_comm_new (const char *name);
TD_API TdComm *td_comm_new_at (const char *name, const TdSite *site);
/** Communicators of the ranks that give the same color, in the order of their keys, then of
 * their ranks.  color below 0: none; inert, which is no error by itself.  For all ranks. */
TD_API TdComm *td_comm_split (TdComm *comm, int color, int key);
TD_API TdComm *td_comm_split_at (TdComm *comm, int color, int key, const TdSite *site);
/** End a communicator.  For all ranks. */
TD_API void td_comm_free (TdComm *comm);
/** This process's number, from 0, and how many there are; -1 and 0 of what is inert. */
TD_API int td_comm_rank (const TdComm *comm);
TD_API int td_comm_size (const TdComm *comm);
/** This process's number among those of its machine, and so of the GPU that is
 * td_device_get ("cuda"). */
TD_API int td_comm_intra_rank (const TdComm *comm);
/** How many ranks its machine has; 0 of what is inert. */
TD_API int td_comm_intra_size (const TdComm *comm);
/** Its machine's number, from 0 in the order of the machines' first ranks, and how many there
 * are; -1 and 0 of what is inert. */
TD_API int td_comm_inter_rank (const TdComm *comm);
TD_API int td_comm_inter_size (const TdComm *comm);
/** Wait until all ranks are here. */
TD_API TdStatus td_comm_barrier (TdComm *comm);
TD_API TdStatus td_comm_barrier_at (TdComm *comm, const TdSite *site);

/* --- functions of variables --------------------------------------------------------------- */
/* Operations with gradients: of a loss that is the sum of all ranks' losses.  Where x wants a
 * gradient on some rank, the backward of the result is for all ranks.  Static functions that
 * call them stay dynamic. */
/** The root's x, on all ranks.  Others give an array of the same shape and dtype, whose numbers
 * are not looked at. */
TD_API TdVar *td_comm_bcast (TdComm *comm, TdVar *x, int root);
TD_API TdVar *td_comm_bcast_at (TdComm *comm, TdVar *x, int root, const TdSite *site);
/** The sum of all ranks' x; of half precision it is summed in float32 and rounded once.  By
 * NCCL the order of the additions is NCCL's: the same on all ranks.
 * *Errors*: TD_ERR_DTYPE for bool. */
TD_API TdVar *td_comm_allreduce (TdComm *comm, TdVar *x);
TD_API TdVar *td_comm_allreduce_at (TdComm *comm, TdVar *x, const TdSite *site);
/** All ranks' x, on a new first axis. *Shapes*: x (...) -> (size, ...). */
TD_API TdVar *td_comm_allgather (TdComm *comm, TdVar *x);
TD_API TdVar *td_comm_allgather_at (TdComm *comm, TdVar *x, const TdSite *site);
/** Row i goes to rank i; row i of the result is from rank i.
 * *Shapes*: x (size, ...) -> (size, ...). */
TD_API TdVar *td_comm_alltoall (TdComm *comm, TdVar *x);
TD_API TdVar *td_comm_alltoall_at (TdComm *comm, TdVar *x, const TdSite *site);

/* One array from one rank to another, through the host; only these two take part.  Arrays come
 * in the order in which they were sent.  Who sends does not wait for who receives; in backward,
 * it waits for the gradient from there, where x wants one. */
/** Send x; returns a scalar 0, the delegate, of whose gradient the backward of x begins: call
 * td_backward on it, or give it to td_recv or td_pseudo_connect. */
TD_API TdVar *td_send (TdVar *x, TdComm *comm, int rank);
TD_API TdVar *td_send_at (TdVar *x, TdComm *comm, int rank, const TdSite *site);
/** The next array from that rank.  delegate: of an earlier td_send, whose backward follows this
 * one's, or NULL.  *Errors*: the sender's, if it cannot send; TD_ERR_STATE if it has ended. */
TD_API TdVar *td_recv (TdComm *comm, int rank, TdVar *delegate);
TD_API TdVar *td_recv_at (TdComm *comm, int rank, TdVar *delegate, const TdSite *site);
/** x, from which backward reaches what the delegate stands for, too. */
TD_API TdVar *td_pseudo_connect (TdVar *delegate, TdVar *x);
TD_API TdVar *td_pseudo_connect_at (TdVar *delegate, TdVar *x, const TdSite *site);

/* --- links -------------------------------------------------------------------------------- */
/** Batch normalization by the mean and variance of all ranks' batches, which may differ in
 * size; otherwise as td_batch_normalization_new, whose parameters it has.  While config train
 * is on, a call of it and its backward are for all ranks; running statistics stay equal on all.
 * comm must stay as long as the link is called.  *Source*:
 * chainermn.links.MultiNodeBatchNormalization. */
TD_API TdLink *td_multi_node_batch_normalization_new_ (TdLink *parent, const char *name,
                                                       int64_t size, TdComm *comm,
                                                       const TdBatchNormLinkOpt *options);
TD_API TdLink *td_multi_node_batch_normalization_new_at (TdLink *parent, const char *name,
                                                         int64_t size, TdComm *comm,
                                                         TdBatchNormLinkOpt options,
                                                         const TdSite *site);

enum
{
  TD_NO_RANK = -1,           /**< the list's own inputs, or its output */
  TD_CHAIN_LIST_PARTNERS = 8 /**< ranks in, and ranks out, of one link */
};
/** A model whose links lie on several ranks: each rank's list has those that it computes, in
 * their order; all lists together are the model.  A call of it and its backward are for all
 * ranks; ranks whose links take nothing from the list's inputs are called with any.  It returns
 * what the link without ranks out gives; where there is none, a scalar 0, the delegate, on
 * which td_backward is called.  *Errors*: of the first call, on all ranks, where links wait in
 * a circle, or for what nobody sends, or send what nobody takes.  *Source*:
 * chainermn.links.MultiNodeChainList. */
TD_API TdLink *td_multi_node_chain_list_new (TdLink *parent, const char *name, TdComm *comm);
TD_API TdLink *td_multi_node_chain_list_new_at (TdLink *parent, const char *name, TdComm *comm,
                                                const TdSite *site);
/** Put a root link behind the others.  rank_in: whose output is its input, rank_out: whose
 * input its output is; TD_NO_RANK: see there; this rank's own number: a later link of this
 * list. *Owner*: the list.  Returns link.  *Errors*: TD_ERR_ARG for a number that is no rank's,
 * and for a second link without ranks out. */
TD_API TdLink *td_multi_node_chain_list_add (TdLink *list, TdLink *link, int rank_in,
                                             int rank_out);
/** The same with several inputs, in the order in which link takes them, and one output that
 * goes to several. */
TD_API TdLink *td_multi_node_chain_list_add_many (TdLink *list, TdLink *link,
                                                  const int *rank_in, int n_in,
                                                  const int *rank_out, int n_out);

/* --- training ----------------------------------------------------------------------------- */
/** Give all ranks the parameters and persistents of rank 0.  Parameters that wait for their
 * shapes get rank 0's.  For all ranks.
 * *Errors*: TD_ERR_SHAPE or TD_ERR_STATE naming the first array that differs; nothing is
 * changed then. */
TD_API TdStatus td_comm_bcast_link (TdComm *comm, TdLink *link);
TD_API TdStatus td_comm_bcast_link_at (TdComm *comm, TdLink *link, const TdSite *site);
/** Give all ranks the states, counts, loss scale and hyperparameters that rank 0's optimizer
 * has.  For all ranks, whose optimizers must be of one kind, for links of the same names. */
TD_API TdStatus td_comm_bcast_optimizer (TdComm *comm, TdOpt *opt);
TD_API TdStatus td_comm_bcast_optimizer_at (TdComm *comm, TdOpt *opt, const TdSite *site);
/** Give all ranks the random state of rank 0's engine, seed and place: what they draw from here
 * on is the same on all, as long as each draws as much.  For all ranks. */
TD_API TdStatus td_comm_bcast_random (TdComm *comm);
TD_API TdStatus td_comm_bcast_random_at (TdComm *comm, const TdSite *site);
/** Put the mean over all ranks in place of every gradient at and below a link.  A gradient that
 * a rank does not have counts as zeros; one that none has stays away.  Half precision is summed
 * in float32.  For all ranks. */
TD_API TdStatus td_comm_allreduce_grad (TdComm *comm, TdLink *link);
TD_API TdStatus td_comm_allreduce_grad_at (TdComm *comm, TdLink *link, const TdSite *site);
typedef struct
{
  /** What gradients are sent as.  TD_F32: what is half precision or float32 as float32, double
   * as double.  TD_F16, TD_BF16: half the bytes; each addition on the way is rounded, and what
   * is below 6e-8 gets lost in float16. */
  TdDtype allreduce_grad_dtype;
  /** Update by the means of the update before, which are summed while the next iteration
   * computes: the weights are ahead of the gradients' by one update.  The first update finds no
   * means: it leaves everything as it is, and is not counted; the last gradients are not
   * used. */
  bool double_buffering;
  /** Sum gradients while backward computes those that come after them, from the fourth update
   * on.  Numbers are the same as without, bit for bit.  Between GPUs, by NCCL, one optimizer at
   * a time does so: the first that was made; others sum in their updates.  Not together with
   * .double_buffering, which leaves nothing to sum in backward: TD_ERR_ARG. */
  bool overlap;
  int64_t bucket_bytes; /**< so many are summed at once, unless one array has more */
  /** Let the random state of rank 0 go with its numbers: noise that hooks add to means
   * (td_gradient_noise_new) is the same on all ranks then, and so are the elements that dropout
   * leaves out, and examples that ranks draw.  Off: each rank draws its own. */
  bool bcast_random;
  int end_;
} TdMultiNodeOpt;
#define TD_MULTI_NODE_DEFAULTS                                                                 \
  .allreduce_grad_dtype = TD_F32, .double_buffering = false, .overlap = false,                 \
  .bucket_bytes = 1 << 20, .bcast_random = false
/** Have an optimizer update by the mean of all ranks' gradients.  Now, with the first update,
 * and with the first after a parameter has come or got its shape, all get rank 0's parameters,
 * persistents and optimizer, and by .bcast_random its random state: rank 0 alone may load a
 * file before that.  Such an update trains, too: by the gradients of the ranks whose parameters
 * were rank 0's already.  From here on td_opt_update is for all ranks.  Returns opt itself.
 * *Errors*: of td_opt_update on all ranks, before anything is updated, where hyperparameters,
 * loss scaling, what is frozen or hooks differ between ranks: TD_ERR_STATE, naming the first
 * that does; where a sum of finite gradients does not fit float16: TD_ERR_NUMERIC, naming the
 * parameter, unless a dynamic loss scale leaves such an update out.
 *
 * What one rank alone writes later stays its own, and so do persistents: the running statistics
 * of td_batch_normalization_new are of its rank's examples.  Call td_comm_allreduce_persistent
 * on all ranks before an evaluation or a snapshot, so that it is of one model. */
TD_API TdOpt *td_multi_node_optimizer_new_ (TdOpt *opt, TdComm *comm,
                                            const TdMultiNodeOpt *options);
TD_API TdOpt *td_multi_node_optimizer_new_at (TdOpt *opt, TdComm *comm, TdMultiNodeOpt options,
                                              const TdSite *site);

/** Have an evaluator (td_ext_evaluator) report what the examples of all ranks come to: means in
 * which each example counts once, however unevenly they are dealt out.  From here on every
 * evaluation is for all ranks.  Each evaluates its own link: see td_multi_node_optimizer_new
 * for running statistics.  Returns the evaluator itself.
 * *Errors*: TD_ERR_ARG for another extension, or one that was given before; inert then. */
TD_API TdExtension *td_multi_node_evaluator_new (TdExtension *evaluator, TdComm *comm);
TD_API TdExtension *td_multi_node_evaluator_new_at (TdExtension *evaluator, TdComm *comm,
                                                    const TdSite *site);

/** Put the mean over all ranks in place of every persistent of floating point at and below a
 * link: running statistics are of all ranks' examples then, and an evaluation or a file of one
 * model.  For all ranks.  *Errors*: TD_ERR_STATE naming the first array that differs; nothing
 * is changed then. */
TD_API TdStatus td_comm_allreduce_persistent (TdComm *comm, TdLink *link);
TD_API TdStatus td_comm_allreduce_persistent_at (TdComm *comm, TdLink *link,
                                                 const TdSite *site);
/** An extension that does so once an epoch, before what evaluates.  *Source*:
 * chainermn.extensions.AllreducePersistent. */
TD_API TdExtension *td_allreduce_persistent_new (TdComm *comm, TdLink *link);

/** An extension that reports, under aggregated_key (NULL: key), the mean of the values that all
 * ranks have reported under key since it did so last: each time that trigger fires, NULL: every
 * iteration.  Ranks that have none do not count.  For all ranks, each time.  *Source*:
 * chainermn.extensions.ObservationAggregator. */
TD_API TdExtension *td_observation_aggregator_new (TdComm *comm, const char *key,
                                                   const char *aggregated_key,
                                                   TdTrigger *trigger);

typedef struct
{
  int n_retains; /**< checkpoints of this rank that stay, the newest; 0: all */
  bool resume;   /**< go on from the newest one when training begins */
  int end_;
} TdCheckpointerOpt;
#define TD_CHECKPOINTER_DEFAULTS .n_retains = 2, .resume = true
/** An extension that saves every rank's trainer, NAME.ITERATION.RANK-of-SIZE.npz in its folder,
 * once an epoch unless td_trainer_extend says otherwise.  When training begins all ranks go on
 * from the newest iteration that each of them has whole, to the same numbers as without a
 * break, each rank's own persistents included; a damaged file is named, and the next older
 * iteration taken.  Where a newer one is of another number of ranks, all get the weights,
 * optimizers and count of iterations of its rank 0, and iterators, epochs and random numbers
 * begin anew, which is said.  Where there is none, training begins.  For all ranks.  *Errors*:
 * TD_ERR_IO on all ranks where one cannot write.  *Source*:
 * chainermn.create_multi_node_checkpointer. */
TD_API TdExtension *td_multi_node_checkpointer_new_ (const char *name, TdComm *comm,
                                                     TdCheckpointerOpt options);

/** Have an iterator give all ranks the batches that rank root reads: the datasets of the others
 * are not looked at, and may be any.  From here on td_iter_next is for all ranks.  Returns the
 * iterator itself.  *Source*: chainermn.iterators.create_multi_node_iterator. */
TD_API TdIter *td_multi_node_iterator_new (TdIter *it, TdComm *comm, int root);
TD_API TdIter *td_multi_node_iterator_new_at (TdIter *it, TdComm *comm, int root,
                                              const TdSite *site);
/** Have iterators of all ranks give the same rows in the same order, from rank 0's place on:
 * each reads its own dataset.  For all ranks, this once.  Returns the iterator itself.
 * *Errors*: TD_ERR_ARG where length, batch size, shuffle or repeat differ.  *Source*:
 * chainermn.iterators.create_synchronized_iterator. */
TD_API TdIter *td_synchronized_iterator_new (TdIter *it, TdComm *comm);
TD_API TdIter *td_synchronized_iterator_new_at (TdIter *it, TdComm *comm, const TdSite *site);

typedef struct
{
  bool shuffle;            /**< deal examples out in a random order */
  uint64_t seed;           /**< of that order; 0: from rank 0's engine */
  bool force_equal_length; /**< parts of one length: neighbours share an example */
  int end_;
} TdScatterOpt;
#define TD_SCATTER_DEFAULTS .shuffle = false, .seed = 0, .force_equal_length = false
/** This rank's part of a dataset: parts share no example, all together are the dataset, and
 * their lengths differ by one at most.  Ranks other than 0 may give NULL: then rank 0 sends
 * them theirs.  Parts of different lengths end their epochs at different updates: what is done
 * once an epoch by all ranks wants .force_equal_length.  For all ranks. *Source*:
 * chainermn.scatter_dataset, whose parts are of one length. */
TD_API TdDataset *td_scatter_dataset_ (TdDataset *dataset, TdComm *comm,
                                       const TdScatterOpt *options);
TD_API TdDataset *td_scatter_dataset_at (TdDataset *dataset, TdComm *comm, TdScatterOpt options,
                                         const TdSite *site);

/* clang-format off */
#if !defined(TD_NO_SITES)
#define td_comm_new(...) td_comm_new_at (__VA_ARGS__, TD_HERE)
#define td_comm_split(...) td_comm_split_at (__VA_ARGS__, TD_HERE)
#define td_comm_barrier(...) td_comm_barrier_at (__VA_ARGS__, TD_HERE)
#define td_comm_bcast(...) td_comm_bcast_at (__VA_ARGS__, TD_HERE)
#define td_comm_allreduce(...) td_comm_allreduce_at (__VA_ARGS__, TD_HERE)
#define td_comm_allgather(...) td_comm_allgather_at (__VA_ARGS__, TD_HERE)
#define td_comm_alltoall(...) td_comm_alltoall_at (__VA_ARGS__, TD_HERE)
#define td_send(...) td_send_at (__VA_ARGS__, TD_HERE)
#define td_recv(...) td_recv_at (__VA_ARGS__, TD_HERE)
#define td_pseudo_connect(...) td_pseudo_connect_at (__VA_ARGS__, TD_HERE)
#define td_multi_node_batch_normalization_new(parent, name, size, ...) td__multi_node_batch_normalization_new_x (parent, name, size, __VA_ARGS__, .end_ = 0)
#define td__multi_node_batch_normalization_new_x(parent, name, size, comm, ...) TD_CALL_ (td_multi_node_batch_normalization_new_at (parent, name, size, comm, TD_OPTIONS_ (TdBatchNormLinkOpt, TD_BATCH_NORM_LINK_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_comm_bcast_link(...) td_comm_bcast_link_at (__VA_ARGS__, TD_HERE)
#define td_comm_bcast_optimizer(...) td_comm_bcast_optimizer_at (__VA_ARGS__, TD_HERE)
#define td_comm_bcast_random(...) td_comm_bcast_random_at (__VA_ARGS__, TD_HERE)
#define td_comm_allreduce_persistent(...) td_comm_allreduce_persistent_at (__VA_ARGS__, TD_HERE)
#define td_comm_allreduce_grad(...) td_comm_allreduce_grad_at (__VA_ARGS__, TD_HERE)
#define td_multi_node_optimizer_new(opt, ...) td__multi_node_optimizer_new_x (opt, __VA_ARGS__, .end_ = 0)
#define td__multi_node_optimizer_new_x(opt, comm, ...) TD_CALL_ (td_multi_node_optimizer_new_at (opt, comm, TD_OPTIONS_ (TdMultiNodeOpt, TD_MULTI_NODE_DEFAULTS, __VA_ARGS__), TD_HERE))
#define td_multi_node_chain_list_new(...) td_multi_node_chain_list_new_at (__VA_ARGS__, TD_HERE)
#define td_multi_node_iterator_new(...) td_multi_node_iterator_new_at (__VA_ARGS__, TD_HERE)
#define td_synchronized_iterator_new(...) td_synchronized_iterator_new_at (__VA_ARGS__, TD_HERE)
#define td_multi_node_checkpointer_new(name, ...) td__multi_node_checkpointer_new_x (name, __VA_ARGS__, .end_ = 0)
#define td__multi_node_checkpointer_new_x(name, comm, ...) TD_CALL_ (td_multi_node_checkpointer_new_ (name, comm, TD_OPTIONS_ (TdCheckpointerOpt, TD_CHECKPOINTER_DEFAULTS, __VA_ARGS__)))
#define td_multi_node_evaluator_new(...) td_multi_node_evaluator_new_at (__VA_ARGS__, TD_HERE)
#define td_scatter_dataset(dataset, ...) td__scatter_dataset_x (dataset, __VA_ARGS__, .end_ = 0)
#define td__scatter_dataset_x(dataset, comm, ...) TD_CALL_ (td_scatter_dataset_at (dataset, comm, TD_OPTIONS_ (TdScatterOpt, TD_SCATTER_DEFAULTS, __VA_ARGS__), TD_HERE))
#endif
/* clang-format on */

TD_END_DECLS
