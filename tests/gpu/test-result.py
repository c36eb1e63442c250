#!/usr/bin/env python3
"""What result.py concludes of rows: each claim holds where it should, and fails where it should.
SPDX-License-Identifier: MIT"""
import json
import os
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import result  # noqa: E402

GOOD = {
    'ceiling.copy': {'us': 100, 'bytes': 8e8, 'goal': 0},
    'relu': {'us': 110, 'bytes': 8e8, 'goal': 0.85, 'torch_us': 121},
    'torch.gelu': {'holds': True, 'difference': 1e-7},
    'train.mlp': {'us': 100, 'weights': 'a', 'flat_updates': 1000, 'changed': 0, 'losses': [1, 2], 'torch_us': 150},
    'train.lstm': {'us': 300, 'weights': 'b', 'flat_updates': 1000, 'changed': 0, 'losses': [1, 2], 'torch_us': 500},
    'train.lstm.static': {'us': 90, 'weights': 'b', 'flat_updates': 1000, 'changed': 0, 'losses': [1, 2],
                          'graph_launches': 5},
    'train.mlp@graph': {'us': 102, 'weights': 'a', 'flat_updates': 100, 'changed': 0, 'losses': [1, 2]},
    'memory.limit_refuses': {'holds': True},
}
# (claim, row, key, value): with this change alone, the claim fails.
BAD = (
    ('kernels', 'relu', 'us', 130),
    ('torch_values', 'torch.gelu', 'holds', False),
    ('flat', 'train.mlp', 'changed', 1),
    ('same_weights_when_recorded', 'train.mlp@graph', 'weights', 'c'),
    ('recording', 'train.mlp@graph', 'us', 104),
    ('static_same_losses', 'train.lstm.static', 'losses', [1, 3]),
    ('static_speed', 'train.lstm', 'us', 260),
    ('static_over_torch', 'train.lstm', 'torch_us', 440),
    ('cuda_graphs', 'train.lstm.static', 'graph_launches', 0),
    ('cuda_graphs', 'train.lstm.static', 'weights', 'c'),
    ('memory', 'memory.limit_refuses', 'holds', False),
)
n = failed = 0


def tap(name, ok):
    global n, failed
    n += 1
    failed += not ok
    print('%sok %d - %s' % ('' if ok else 'not ', n, name))


def concluded(rows, **more):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'r.json')
        with open(path, 'w', encoding='utf-8') as f:
            json.dump(dict(rows=rows, **more), f)
        out, sys.stdout = sys.stdout, open(os.devnull, 'w', encoding='utf-8')
        try:
            result.finish(path)
        finally:
            sys.stdout.close()
            sys.stdout = out
        return result.load(path)


r = concluded(GOOD)
tap('claims hold where all is well: %s' % ' '.join(k for k, c in r['claims'].items() if not c['holds']),
    all(c['holds'] for c in r['claims'].values()))
tap('the fraction is of the bandwidth that was measured', abs(r['rows']['relu']['fraction'] - 100 / 110) < 1e-9)
tap("the ratio is PyTorch's time over ours", abs(r['rows']['relu']['ratio'] - 1.1) < 1e-9)
for name, row, key, value in BAD:
    rows = json.loads(json.dumps(GOOD))
    rows[row][key] = value
    c = concluded(rows)['claims']
    tap('%s fails with %s of %s as %s' % (name, key, row, value),
        not c[name]['holds'] and [k for k in c if not c[k]['holds']] == [name])
tap('what was not tried is no claim', not concluded({})['claims'] if 'claims' in concluded({}) else True)
tap('a step that failed is a claim that does not hold',
    not concluded({}, **{'numbers.status': '1'})['claims']['numbers']['holds'])
with tempfile.TemporaryDirectory() as folder:
    path, log = os.path.join(folder, 'r.json'), os.path.join(folder, 'log')
    for text in ('{"row": "relu", "us": 5}\nno row\n', '{"row": "relu", "torch_us": 6}\n'):
        with open(log, 'w', encoding='utf-8') as f:
            f.write(text)
        result.rows(path, log)
    tap('what programs say of a row goes together', result.load(path)['rows'] == {'relu': {'us': 5, 'torch_us': 6}})
print('1..%d' % n)
sys.exit(failed)
