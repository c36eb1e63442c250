/*
 * What to do about a finding, in the words of who made the tapes: the engine's calls, or
 * PyTorch's.
 *
 * SPDX-License-Identifier: MIT
 */
#include "td-ranks-private.h"

typedef enum
{
  MADE_BY_ENGINE,
  MADE_BY_PYTORCH,
  N_MAKERS
} Maker;

static const char *const advices[TD_RANKS_N_ADVICES][N_MAKERS] = {
  [TD_RANKS_SET_NUMBERS]
  = { "Set it on all ranks, or send rank 0's with td_comm_bcast_optimizer",
      "Set it on all ranks alike (optimizer.param_groups, the scheduler's steps); a checkpoint "
      "is "
      "to be loaded by all of them (optimizer.load_state_dict)" },
  [TD_RANKS_ALL_SAME_BITS]
  = { "All ranks must get the same bits: the sum, or what was done to it, is not the same",
      "All ranks must get the same bits: what is done to .grad after DistributedDataParallel's "
      "all_reduce must be the same on all (clip_grad_norm_, noise, a hook)" },
  [TD_RANKS_SET_STATE]
  = { "Load the optimizer on all ranks, or send rank 0's with td_comm_bcast_optimizer",
      "Wrap the model in DistributedDataParallel, so that all ranks step by the same "
      "gradients, and "
      "load the optimizer on all of them (optimizer.load_state_dict)" },
  [TD_RANKS_SET_PARAMETERS]
  = { "Give all ranks the same with td_comm_bcast_link, after the last one was written",
      "Write parameters on all ranks alike, with the same torch.manual_seed, or before "
      "DistributedDataParallel is made, which gives rank 0's to all; after it, "
      "torch.distributed.broadcast does, with src=0" },
  [TD_RANKS_SAME_UPDATES]
  = { "Give the optimizers and hooks of all ranks the same numbers, or use "
      "td_multi_node_optimizer_new, which compares them",
      "Give the optimizers of all ranks the same numbers, and parameters the same hooks" },
  [TD_RANKS_SHARE_PERSISTENTS]
  = { "td_comm_allreduce_persistent on all ranks, before it, gives all their means",
      "torch.nn.SyncBatchNorm.convert_sync_batchnorm gives all the same; "
      "DistributedDataParallel "
      "gives rank 0's to all before each forward, with broadcast_buffers=True" },
  [TD_RANKS_WRITERS] = { "td_write, td_load_npz, a hook of its own",
                         "under torch.no_grad, load_state_dict, a hook of its own" },
  [TD_RANKS_DIVIDE]
  = { "Use td_multi_node_optimizer_new, or td_comm_allreduce_grad once, which "
      "divides by the number of ranks",
      "Use DistributedDataParallel, or divide by "
      "torch.distributed.get_world_size () after all_reduce, once" },
  [TD_RANKS_USE_ALL]
  = { "All ranks must use the same layers in a step, or add a loss of 0 times the others",
      "All ranks must use the same layers in a step, or DistributedDataParallel is to know of "
      "it "
      "(find_unused_parameters=True)" },
  [TD_RANKS_DEAL_OUT] = { "Deal the examples out with td_scatter_dataset, and give ranks "
                          "different seeds where they "
                          "draw their own",
                          "Deal the examples out with torch.utils.data.DistributedSampler, "
                          "whose set_epoch is called "
                          "in each epoch, and give ranks different seeds (torch.manual_seed "
                          "(seed + rank)) where they "
                          "draw their own" },
  [TD_RANKS_EQUAL_BATCHES]
  = { "Give all ranks equal lengths (td_scatter_dataset does with .force_equal_length), or "
      "leave "
      "the last batch out",
      "Give all ranks equal lengths (DistributedSampler does), or leave the last batch out "
      "(drop_last=True)" },
  [TD_RANKS_EQUAL_UPDATES]
  = { "All ranks must update as often; parts of a dataset are of one length with "
      ".force_equal_length of td_scatter_dataset",
      "All ranks must step as often: DistributedSampler gives them equal lengths, and "
      "DistributedDataParallel.join lets those that have fewer batches end" },
  [TD_RANKS_SAME_STEPS] = { "All ranks must update as often",
                            "All ranks must call optimizer.step () as often, once after each "
                            "backward () that is averaged: look for if and continue" },
  [TD_RANKS_OWN_DEVICE]
  = { "Take the device by td_comm_intra_rank",
      "Take the device by LOCAL_RANK: torch.cuda.set_device (local_rank)" },
  [TD_RANKS_AVERAGE] = { "Make the optimizer with td_multi_node_optimizer_new",
                         "Wrap the model in torch.nn.parallel.DistributedDataParallel" },
  [TD_RANKS_AVERAGE_ALL]
  = { "Make each optimizer with td_multi_node_optimizer_new, unless each rank is to have "
      "parameters of its own",
      "Wrap each model in torch.nn.parallel.DistributedDataParallel, unless each rank is to "
      "have "
      "parameters of its own" },
  [TD_RANKS_AVERAGE_LATER]
  = { "Average between backward and the update: td_backward, td_comm_allreduce_grad, "
      "td_opt_update",
      "Average between backward and the step" },
  [TD_RANKS_CALL_WRAPPED]
  = { "Average between backward and the update",
      "Call what DistributedDataParallel returns, and not the module inside, in all that is "
      "trained; under no_sync, let the last backward before a step be outside" },
  [TD_RANKS_END_TOGETHER]
  = { "All ranks must call td_comm_new and td_finish",
      "All ranks must come to init_process_group and to the end: torch.distributed.barrier () "
      "before it" },
};

const char *
td__ranks_advice (const TdRanks *self, TdRanksAdvice which)
{
  const char *producer
      = self->n > 0 ? td_tape_reader_info (self->tapes[0].reader, "producer") : "";

  return advices[which]
                [g_str_has_prefix (producer, "PyTorch") ? MADE_BY_PYTORCH : MADE_BY_ENGINE];
}
