"""Whose backward an operator is in PyTorch 1.13, which does not say which node of autograd runs: each node is given
a hook when the operator that made it has returned, and what has run when the hook is called is the node's.

A hook sees and changes nothing; it knows numbers alone and keeps no tensor alive.

SPDX-License-Identifier: MIT
"""
import functools
from threading import get_ident

from . import names
from .facts import accumulate, current_node

OURS = "_tapedeck"


class Nodes:
    """Of a recorder; `own_nodes` and `end_node` are the state's, for they run with each operator.  The extension
    module has `own_node` and `ended` in C."""

    def __init__(self):
        self.fresh = None  # what the last operator made: ((event, layer, plain name), weak references)
        self.adding = self.seeding = 0  # operators: of sums of gradients, of the first gradient
        self.node_from = 0  # the words that are of no node yet
        self.node_layer = self.node_twin = 0  # of the node before
        self.age = 0  # of the iteration, whatever its number
        self.mark = object()  # of nodes that have this recorder's hook: those of leaves may stay

    def agrees(self, node, plain):
        """Whether a node is by its name the backward of an operator; remembered."""
        name = node.name()
        same = self.node_names.get((name, plain))
        if same is None:
            same = self.node_names[name, plain] = names.is_twin(name, plain)
        return same

    def own_node(self, node, made):
        event, layer, plain = made
        same = self.agrees(node, plain)
        node.register_hook(functools.partial(self.ended, layer, event if same else 0, self.age))
        for leaf, _ in node.next_functions:
            if type(leaf) is accumulate and leaf.metadata.get(OURS) is not self.mark:
                leaf.metadata[OURS] = self.mark
                layer = self.update_layers.get(self.by_id.get(id(leaf.variable)), 0)
                leaf.register_hook(functools.partial(self.ended, layer, 0, 0))

    def ended(self, layer, event, age, *_):
        """A node has run, on whatever thread, perhaps of a graph of an iteration before."""
        if not self.on or get_ident() != self.thread:
            return
        try:
            self.end_node(layer, event if age == self.age else 0)
        except Exception as error:
            self.mistake("a node of backward", error)

    def nodes_begin(self):
        if current_node is not None:
            return
        self.own_nodes()
        self.node_from, self.node_layer, self.node_twin = len(self.words), self.layer, 0
