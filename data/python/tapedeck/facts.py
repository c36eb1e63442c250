"""What the recorder and the extension module know of PyTorch, whatever its version.

SPDX-License-Identifier: MIT
"""
import sys
import time

import torch
import torch.utils._python_dispatch

from . import library as L

DETACH = torch.ops.aten.detach.default
MANY_WORDS = 1 << 20
DTYPES = {torch.float32: 0, torch.float64: 1, torch.float16: 2, torch.bfloat16: 3, torch.int32: 4,
          torch.int64: 5, torch.uint8: 6, torch.bool: 7}
CATEGORIES = (L.ACTIVATION, L.GRADIENTS, L.GRADIENTS, L.OPTIMIZER)  # by phase
now = time.perf_counter_ns if sys.platform != "linux" else time.monotonic_ns
current_node = getattr(torch._C, "_current_autograd_node", None)
sequence = getattr(torch._C._autograd, "_get_sequence_nr", None)
accumulate = getattr(torch._C._functions, "AccumulateGrad", None)
expired = torch.UntypedStorage._expired
free_weak_ref = torch.UntypedStorage._free_weak_ref
storage_of = getattr(torch.Tensor, "untyped_storage", None) or torch.Tensor._storage
# PyTorch 1.13 has its stack of modes in Python.
pop_mode = getattr(torch._C, "_pop_torch_dispatch_stack", None)
push_mode = getattr(torch._C, "_push_on_torch_dispatch_stack", None)
set_mode = getattr(torch._C, "_set_torch_dispatch_mode", None)
stack_depth = getattr(torch._C, "_len_torch_dispatch_stack", None)
stack_is_python = set_mode is not None and hasattr(torch.utils._python_dispatch, "_TorchDispatchStackMode")
