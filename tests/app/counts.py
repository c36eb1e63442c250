"""One of a thing is never called by its plural: in no golden text, and in nothing that the
commands print of tapes on which there is one of each.

    counts.py TAPEDECK MODEL GOLDEN VIEWS     VIEWS: 'viz', or 'no' where there are none

SPDX-License-Identifier: MIT
"""
import os
import re
import subprocess
import sys
import tempfile

tapedeck, model, golden = sys.argv[1:4]
have_viz = sys.argv[4] == 'viz'

# "structure 1 events 45", "list 1 events 0 to 3": names and numbers in turn, not counts
PAIRS = re.compile(r'\b(?:structure|list|function|schedule|iteration|step|version|level) 1 [a-z]+s\b')
ONE = re.compile(r'(?<![\w.,:/#%+=−-])1 ((?:[a-z]+ )?[a-z]+s)\b')
WORDS = {'is', 'was', 'has', 'its', 'as', 'this', 'does', 'ns', 'us', 'ms', 'axis', 'bias', 'class', 'pass',
         'loss', 'less', 'process', 'address', 'bytes-per', 'plus', 'minus', 'sans', 'status', 'always'}
VIEWS = ['graph', 'backward', 'curves', 'memory', 'blocks', 'holders', 'growth', 'retained', 'gradients',
         'schedule', 'timeline', 'flame', 'origin']
wrong = []
n_texts = 0


def look(where, text):
    global n_texts
    n_texts += 1
    for number, line in enumerate(text.splitlines(), 1):
        for found in ONE.finditer(PAIRS.sub('', line)):
            if not any(word in WORDS for word in found[1].split()):
                wrong.append(f'{where}:{number}: "1 {found[1]}": {line.strip()[:120]}')


def output(*args):
    result = subprocess.run([tapedeck, *args], capture_output=True, text=True, errors='replace')
    look(' '.join(map(os.path.basename, args)), result.stdout + result.stderr)


def commands(tape):
    for command in ('info', 'cat', 'check', 'leaks'):
        output(command, tape)
    output('info', tape, '--oom')
    if have_viz:
        output('diff', tape, tape)
        for view in VIEWS:
            output('show', tape, '--view', view)
            output('show', tape, '--view', view, '--format', 'svg')
        for view in ('graph', 'memory', 'gradients'):
            output('show', tape, '--view', view, '--iteration', '0')


assert ONE.search('of 1 iterations') and not ONE.search('of 1 iteration, 21 arrays, 0.1 s')
for folder, _, names in os.walk(golden):
    for name in names:
        if name.endswith(('.txt', '.scene', '.json', '.jsonl', '.csv')):
            path = os.path.join(folder, name)
            with open(path, errors='replace') as f:
                look(os.path.relpath(path, golden), f.read())
        elif name.endswith('.tdtape'):
            commands(os.path.join(folder, name))
with tempfile.TemporaryDirectory() as folder:
    for level in ('graph', 'values'):
        for args in ([], ['two'], ['nothing']):
            tape = os.path.join(folder, f'{level}{"".join(args)}.tdtape')
            output('run', '--level', level, '-o', tape, model, *args)
            commands(tape)
assert n_texts > 100, n_texts
print(f'{n_texts} texts')
if wrong:
    sys.exit('\n'.join(sorted(set(wrong))[:60]))
