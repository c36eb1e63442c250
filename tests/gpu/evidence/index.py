#!/usr/bin/env python3
"""The index of what runs on GPUs have shown, from their result files.

    index.py [--check]

reads the *.json beside it, each a result of ../run.sh, and writes index.md; --check says whether
index.md is what it would write, whether every figure about a GPU in the documents names a result
file and a key that is in it, and whether the newest result is older than the newest change of gpu/
(a note, no failure).  A result of the tests' fake driver is never evidence.
SPDX-License-Identifier: MIT"""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
# What is to be shown on a GPU, by the key of a result's claims.
CLAIMS = (
    ('numbers', 'every operation within its tolerance of float64, memory by cuda_vmm'),
    ('numbers_malloc', 'the same with memory by cuda_malloc'),
    ('gradients', 'first and second gradients of every operation against differences'),
    ('kernels', 'each kernel of the table at its fraction of the copy bandwidth'),
    ('products', 'matrix products beside PyTorch: 0.97 of it where large, 0.95 where middling, twice it where small'),
    ('convolutions', "those of ResNet-50 beside PyTorch's: 0.95 of it forward, 0.90 each way backward"),
    ('torch_times', 'times beside PyTorch in the same run'),
    ('torch_values', 'values and gradients of layers as PyTorch computes them'),
    ('memory', 'counters agree with the driver; out of memory by limit and in earnest; usable again'),
    ('flat', '1,000 updates of each model leave memory the same to the byte'),
    ('recording', 'recording costs at most 3 % at graph, 1 % with a breakpoint on NaN, 3 % at stats'),
    ('same_weights_when_recorded', 'weights are bitwise the same at every level of recording'),
    ('nan', 'an injected NaN is found at its first operation, for every kind'),
    ('example', 'an example gives on the device the losses that it gives on the CPU'),
    ('examples', 'examples train to the accuracy that they reach on the CPU'),
    ('life', 'programs of real size train as on the CPU, and recorded or from schedules to the same bits'),
    ('static_same_losses', 'static schedules give the losses of define-by-run'),
    ('static_speed', 'static schedules at least 3 times as fast on launch-bound nets'),
    ('static_over_torch', 'and at least 5 times as fast as PyTorch eager there'),
    ('static_no_slower', 'and on nets of real size never more than 1 % slower than define-by-run'),
    ('nccl', 'NCCL with one rank: a communicator, all-reduces of several sizes, one in a graph'),
    ('ranks', 'a communicator by NCCL: functions, gradients and training, with one rank and, where there are two GPUs, with two'),
    ('shared', 'two processes on one GPU train a net as one does'),
    ('memcheck', 'no finding of compute-sanitizer memcheck'),
    ('racecheck', 'no finding of compute-sanitizer racecheck'),
    ('cuda_graphs', 'static schedules run as CUDA graphs, with the bits of their steps one by one'),
    ('models_train', 'ResNet-50 and GPT-2-124M train in bf16 and TF32, define-by-run and static, with finite losses'),
    ('models_of_size', 'ResNet-50 and GPT-2-124M sized training at 0.85 of PyTorch eager or more'),
)
# A number with a unit of speed or size of work, in a line that speaks of a GPU, is a figure.
GPU_WORDS = re.compile(r'\b(GPU|CUDA|H100|H200|A100|cuda:\d)', re.I)
FIGURE = re.compile(r'\d[\d.,]*\s*(TFLOP/s|GFLOP/s|TB/s|GB/s|[µu]s\b|ms\b|ns\b|%|percent|times (as|faster))')
KEY = re.compile(r'evidence:([\w.+-]+\.json)#([\w.@/+-]+)')
DOCUMENTS = ('README.md', '*/README.md', '*/*/README.md', 'data/*.1', 'data/*.xml')


def results():
    """(name, result) of each run on a GPU, oldest first."""
    found = []
    for path in glob.glob(os.path.join(HERE, '*.json')):
        with open(path, encoding='utf-8') as f:
            found.append((os.path.basename(path), json.load(f)))
    return sorted(found, key=lambda r: (r[1].get('date', ''), r[0]))


def ended_badly(r):
    """How many steps failed; how many were not begun when the machine went."""
    failed = sum(k.endswith('.status') and v not in ('0', '77') for k, v in r.items())
    left = len(r.get('left', '').split())
    return '%d, %d not begun' % (failed, left) if left else '%d' % failed


def index(runs):
    lines = ['# What runs on a GPU have shown', '',
             'Written by index.py from the result files beside it: not to be edited.', '']
    shown = {}
    if runs:
        lines += ['| result | date | commit | GPU | steps failed | claims that held |', '|---|---|---|---|---|---|']
    for name, r in runs:
        claims = r.get('claims', {})
        held = [k for k, c in claims.items() if c['holds']]
        gpu = (r.get('gpu', '').splitlines() or [''])[-1].split(',')[0]
        lines.append('| %s | %s | %s | %s | %s | %d of %d |' % (
            name, r.get('date', '')[:10], r.get('commit', '')[:9], gpu, ended_badly(r), len(held), len(claims)))
        for key, c in claims.items():
            shown[key] = (name, c)
    if not runs:
        lines.append('No result has been committed yet.')
    told = [(k, text) for k, text in CLAIMS if k in shown]
    if told:
        lines += ['', '## Claims, by the newest run that tried them', '', '| key | claim | | result |', '|---|---|---|---|']
        lines += ['| %s | %s | %s | %s |' % (k, text, 'holds' if shown[k][1]['holds'] else '**does not hold**', shown[k][0])
                  for k, text in told]
    missing = [(k, text) for k, text in CLAIMS if k not in shown]
    if missing:
        lines += ['', '## What no run has shown yet', '']
        lines += ['- %s (`%s`)' % (text[0].upper() + text[1:], k) for k, text in missing]
    return '\n'.join(lines) + '\n'


def holds_key(result, key):
    """A row or a claim of this name, or a plain entry."""
    return key in result or key in result.get('rows', {}) or key in result.get('claims', {})


def figures_without_evidence(root, runs):
    known, bad = dict(runs), []
    for pattern in DOCUMENTS:
        for path in sorted(glob.glob(os.path.join(root, pattern))):
            if '/evidence/' in path or '/.build/' in path:
                continue
            with open(path, encoding='utf-8') as f:
                for number, line in enumerate(f, 1):
                    where = '%s:%d' % (os.path.relpath(path, root), number)
                    keys = KEY.findall(line)
                    bad += ['%s: no %s in %s' % (where, key, name) for name, key in keys
                            if name not in known or not holds_key(known[name], key)]
                    if not keys and GPU_WORDS.search(line) and FIGURE.search(line):
                        bad.append('%s: a figure about a GPU without evidence: %s' % (where, line.strip()[:80]))
    return bad


def finds_figures():
    """The search above, in a folder where it must find two of four lines."""
    runs = [('a.json', {'rows': {'relu': {}}})]
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, 'README.md'), 'w', encoding='utf-8') as f:
            f.write('On a GPU it takes 3 ms.\nOn a GPU it takes 3 ms (evidence:a.json#relu).\n'
                    'On a GPU it takes 3 ms (evidence:a.json#gone).\nOn the CPU it takes 3 ms.\n')
        found = figures_without_evidence(folder, runs)
    return [line.split(':')[1] for line in found] == ['1', '3']


def age_note(runs):
    if not runs or not runs[-1][1].get('commit'):
        return None
    commit = runs[-1][1]['commit']
    done = subprocess.run(['git', '-C', ROOT, 'log', '--oneline', commit + '..HEAD', '--', 'gpu'],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    n = len(done.stdout.splitlines())
    return '%d changes of gpu/ are newer than the newest result' % n if n else None


def check(tap):
    runs = results()
    fakes = [name for name, r in runs if r.get('fake')]
    tap('no result is of the fake driver', not fakes, fakes)
    large = [name for name, _ in runs if os.path.getsize(os.path.join(HERE, name)) > 200000]
    tap('results are small', not large, large)
    try:
        with open(os.path.join(HERE, 'index.md'), encoding='utf-8') as f:
            written = f.read()
    except OSError:
        written = ''
    tap('index.md is what index.py writes', written == index(runs), ['run tests/gpu/evidence/index.py'])
    tap('a figure without evidence is found, one with evidence is not', finds_figures(), [])
    bad = figures_without_evidence(ROOT, runs)
    tap('figures about a GPU have evidence', not bad, bad)
    note = age_note(runs)
    if note:
        print('# ' + note)


def main():
    if '--check' not in sys.argv:
        with open(os.path.join(HERE, 'index.md'), 'w', encoding='utf-8') as f:
            f.write(index(results()))
        return 0
    n = failed = 0

    def tap(name, ok, why):
        nonlocal n, failed
        n += 1
        failed += not ok
        print('%sok %d - %s' % ('' if ok else 'not ', n, name))
        for line in [] if ok else why:
            print('# ' + line)
    check(tap)
    print('1..%d' % n)
    return failed


if __name__ == '__main__':
    sys.exit(main())
