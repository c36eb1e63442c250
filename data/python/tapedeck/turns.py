"""Where an iteration ends whose program has several optimizers: those of a GAN take turns, and a turn is what the
program calls a step.

SPDX-License-Identifier: MIT
"""
import itertools
import weakref

MISSED = 2  # turns in a row in which one that stands before the last has stepped twice: they take none


class Turns:
    """While each has stepped once an iteration ends with each step.  Where one steps again then, and others did
    meanwhile, these have had their turn: from there on the iteration ends with the last one's step.  Nothing is
    waited for in vain: one that steps a second time in an iteration, since the last has left out its step, ends it."""

    def __init__(self):
        self.count = itertools.count()
        self.numbers = weakref.WeakKeyDictionary()  # optimizer -> the how manieth that has stepped
        self.newest = 0  # number of who stepped last for the first time
        self.last = None  # number of who ends a turn; None: so far none has stepped twice; -1: nobody
        self.stepped = set()  # numbers, in this iteration
        self.missed = 0

    def ends(self, optimizer):
        """Whether the iteration ends with this step."""
        number = self.numbers.get(optimizer)
        if number is None:
            number = self.numbers[optimizer] = next(self.count)
            if self.last is None:
                self.newest = number
                return True
        if self.last is None:
            self.last = self.newest if number < self.newest else -1
        if self.last == -1:
            return True
        if number != self.last and number not in self.stepped:
            self.stepped.add(number)
            return False
        self.missed = 0 if number == self.last else self.missed + 1
        if self.missed == MISSED:
            self.last = -1
        self.stepped.clear()
        return True
