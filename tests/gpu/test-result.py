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
    'gemm_f32_64': {'us': 10, 'torch_us': 21, 'torch_goal': 2, 'flops': 5e5},
    'conv.tf32.a.data': {'us': 100, 'torch_us': 91, 'torch_goal': 0.9, 'flops': 1e9, 'conv': [1, 1, 1, 1, 1, 1]},
    'adam_160_small': {'us': 50, 'most_us': 60},
    'torch.gelu': {'holds': True, 'difference': 1e-7},
    'train.mlp': {'us': 100, 'weights': 'a', 'flat_updates': 1000, 'changed': 0, 'losses': [1, 2], 'torch_us': 150},
    'train.lstm': {'us': 300, 'weights': 'b', 'flat_updates': 1000, 'changed': 0, 'losses': [1, 2], 'torch_us': 500},
    'train.lstm.static': {'us': 90, 'weights': 'e', 'weights_without_graphs': 'e', 'flat_updates': 1000, 'changed': 0, 'losses': [1, 2],
                          'graph_launches': 5},
    'train.mlp@graph': {'us': 102, 'weights': 'a', 'flat_updates': 100, 'changed': 0, 'losses': [1, 2]},
    'memory.limit_refuses': {'holds': True},
    'model.gpt2.bf16': {'us': 100, 'torch_us': 90, 'finite': True, 'weights': 'd'},
    'model.gpt2.bf16.static': {'us': 100, 'torch_us': 90, 'finite': True, 'weights': 'd'},
    'model.gpt2.bf16@stats': {'us': 102, 'finite': True, 'weights': 'd'},
    'nccl': {'holds': True},
    'nccl.graph_524288': {'holds': True},
    'ranks.1.bcast': {'holds': True},
    'shared': {'holds': True},
}
# (claim, row, key, value): with this change alone, the claim fails.
BAD = (
    ('kernels', 'relu', 'us', 130),
    ('kernels', 'adam_160_small', 'us', 61),
    ('products', 'gemm_f32_64', 'torch_us', 19),
    ('convolutions', 'conv.tf32.a.data', 'us', 102),
    ('convolutions', 'conv.tf32.a.data', 'error', None),
    ('torch_values', 'torch.gelu', 'holds', False),
    ('flat', 'train.mlp', 'changed', 1),
    ('same_weights_when_recorded', 'train.mlp@graph', 'weights', 'c'),
    ('recording', 'train.mlp@graph', 'us', 104),
    ('static_same_losses', 'train.lstm.static', 'losses', [1, 3]),
    ('static_speed', 'train.lstm', 'us', 260),
    ('static_over_torch', 'train.lstm', 'torch_us', 440),
    ('cuda_graphs', 'train.lstm.static', 'graph_launches', 0),
    ('cuda_graphs', 'train.lstm.static', 'weights_without_graphs', 'c'),
    ('recording', 'model.gpt2.bf16@stats', 'us', 104),
    ('same_weights_when_recorded', 'model.gpt2.bf16@stats', 'weights', 'e'),
    ('models_of_size', 'model.gpt2.bf16', 'torch_us', 84),
    ('models_train', 'model.gpt2.bf16', 'finite', False),
    ('static_no_slower', 'model.gpt2.bf16.static', 'us', 102),
    ('nccl', 'nccl.graph_524288', 'holds', False),
    ('ranks', 'ranks.1.bcast', 'holds', False),
    ('shared', 'shared', 'holds', False),
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
    if key == 'error':
        del rows[row]['us']
    c = concluded(rows)['claims']
    tap('%s fails with %s of %s as %s' % (name, key, row, value),
        not c[name]['holds'] and [k for k in c if not c[k]['holds']] == [name])
rows = json.loads(json.dumps(GOOD))
del rows['train.lstm']['losses']
r = concluded(rows)
tap('a row that lacks something costs the claims of its kind alone',
    list(r['not_concluded']) == ['conclude_trainings'] and 'static_same_losses' not in r['claims']
    and r['claims']['kernels']['holds'] and r['claims']['nccl']['holds'])
r = concluded({'relu': {'us': 9, 'most_us': 8}, 'exp': {'us': 9, 'most_us': 8, 'reason': 'told by a person'}})['rows']
tap('a goal that was missed asks for a reason', r['relu']['reason'] == '' and r['relu']['missed'] == ['us'])
tap('a reason that was given stays', r['exp']['reason'] == 'told by a person')
tap('what was not tried is no claim', not concluded({})['claims'] if 'claims' in concluded({}) else True)
tap('a step that failed is a claim that does not hold',
    not concluded({}, **{'numbers.status': '1'})['claims']['numbers']['holds'])
with tempfile.TemporaryDirectory() as folder:
    path, log = os.path.join(folder, 'r.json'), os.path.join(folder, 'log')
    for key, text in (('a', '{"row": "relu", "us": 5}\nno row\n'), ('b', '{"row": "relu", "torch_us": 6}\n')):
        with open(log, 'w', encoding='utf-8') as f:
            f.write(text)
        result.step(path, key, '0', '3', '4', log)
    with open(log, 'w', encoding='utf-8') as f:
        f.write('{"row": "exp", "us": 7}\n{"row": "log", "us": nan, "of": [-nan, inf, 1]}\n{"row": "tanh", "us"\n')
    result.step(path, 'killed', '124', '3', '4', log)
    r = result.load(path)
    tap('a row that was cut off costs no other, and numbers that are none are null',
        (r['killed.status'], r['torn_rows'], r['rows'].pop('exp'), r['rows'].pop('log'))
        == ('124', ['{"row": "tanh", "us"'], {'us': 7}, {'us': None, 'of': [None, None, 1]}))
    tap('what programs say of a row goes together', r['rows'] == {'relu': {'us': 5, 'torch_us': 6}})
    tap('a step leaves its end, its status and both times',
        (r['a'], r['a.status'], r['seconds']['a'], r['expected_seconds']['a']) == ('no row', '0', 3, 4))


def lesson_of(rows, tape, device='cuda:0', **more):
    """What `result.py lesson` makes of such a result and such a tape, by a tapedeck that says so."""
    with tempfile.TemporaryDirectory() as folder:
        result_path, tape_path, program = (os.path.join(folder, x) for x in ('r.json', 't.tdtape', 'tapedeck'))
        with open(result_path, 'w', encoding='utf-8') as f:
            json.dump(dict(rows=rows, **more), f)
        with open(tape_path, 'wb') as f:
            f.write(tape)
        with open(program, 'w', encoding='utf-8') as f:
            f.write('#!/bin/sh\n[ "$1" = check ] || echo \'{"device": "%s"}\'\n' % device)
        os.chmod(program, 0o755)
        out, sys.stdout = sys.stdout, open(os.devnull, 'w', encoding='utf-8')
        try:
            status = result.lesson(result_path, tape_path, program, folder)
        finally:
            sys.stdout.close()
            sys.stdout = out
        written = os.path.join(folder, result.LESSON)
        if not os.path.exists(written):
            return status, None
        with open(written, 'rb') as f:
            return status, f.read()


tap('a tape of a GPU becomes a lesson', lesson_of(GOOD, b'cuda:0 NVIDIA H200') == (0, b'cuda:0 NVIDIA H200'))
for why, said in (('the fake driver', lesson_of(GOOD, b'cuda:0 Fake H200')),
                  ('a run over the fake driver', lesson_of(GOOD, b'cuda:0 NVIDIA H200', fake='yes')),
                  ('the CPU', lesson_of(GOOD, b'cpu', 'cpu')),
                  ('no run', lesson_of({}, b'cuda:0 NVIDIA H200')),
                  ('half a megabyte', lesson_of(GOOD, b'cuda:0 NVIDIA H200' + bytes(500000)))):
    tap('a tape of %s becomes none' % why, said == (1, None))
with tempfile.TemporaryDirectory() as folder:
    path, log = os.path.join(folder, 'gpu.json'), os.path.join(folder, 'log')
    result.save(path, {'what': 'full', 'tree': 't'})
    with open(log, 'w', encoding='utf-8') as f:
        f.write('the first error\n' + '"noise"\n' * 100000 + '{"row": "a", "us": 1}\nthe end\n')
    for i in range(80):
        result.step(path, 's%d' % i, '1', '2', '3', log)
    said = result.load(path)['s7']
    tap('eighty steps that fail leave less than 200 kB', os.path.getsize(path) <= 200000)
    tap('of each there is its begin and its end', said.startswith('the first error') and said.endswith('the end'))
    result.step(path, 's7', '0', '2', '3', log)
    tap('a run that was cut goes on with the same tree alone',
        not result.unfinished(path, 'full', 't') and result.unfinished(path, 'full', 'u') and result.unfinished(path, 'quick', 't'))
    result.save(path, dict(result.load(path), failed='3'))
    tap('one that came to its end only where that is asked for',
        result.unfinished(path, 'full', 't') and not result.unfinished(path, 'full', 't', 'finished'))
    result.save(path, dict(result.load(path), what='quick'))
    tap('a quick run is the beginning of a full one',
        result.unfinished(path, 'full', 'u') and not result.unfinished(path, 'full', 't')
        and 'failed' not in result.load(path))
    with open(log, 'w', encoding='utf-8') as f:
        f.write('a convolution 8 3: 39 engines, 12 exact, 1 plans, workspace 131\n'
                'a convolution 8 4: 39 engines, 0 exact, 0 plans, workspace 0; no engine\n'
                'a convolution 8 3: 0 engines, 0 exact, 1 plans from disk, workspace 131\nanother line\n')
    result.plans(path, folder, log)
    tap("what cuDNN proposed, graphs without a plan first",
        [line[:17] for line in result.load(path)['cudnn_graphs']] == ['a convolution 8 4', 'a convolution 8 3'])
print('1..%d' % n)
sys.exit(failed)
