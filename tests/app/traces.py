"""`tapedeck import` of real traces: operations, kernels, streams, backward and sums are those that a
second reading of the file, by Python's json and other code, comes to.

    traces.py TAPEDECK [VIZ]     traces that are not in shared/data are skipped

SPDX-License-Identifier: MIT
"""
import collections
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile

tapedeck = sys.argv[1]
have_viz = len(sys.argv) > 2 and sys.argv[2] == 'viz'
root = pathlib.Path(__file__).resolve().parents[2]
folder = pathlib.Path(os.environ.get('TAPEDECK_SHARED', root.parent / 'shared')) / 'data/traces'
DEVICE = 'kernel', 'gpu_memcpy', 'gpu_memset'
HOST = 'cpu_op', 'user_annotation', 'cuda_runtime'
n_claims = 0


def run(*args, status=0):
    result = subprocess.run([tapedeck, *args], capture_output=True, text=True)
    assert result.returncode == status, (args, result.returncode, result.stdout, result.stderr)
    return result


def claim(text):
    global n_claims
    n_claims += 1
    print(f'ok {n_claims} - {text}', flush=True)


def cat(tape):
    return [json.loads(line) for line in run('cat', '--json', tape).stdout.splitlines()]


def ns(microseconds):
    """As the file has it, in decimal: a double has not enough digits."""
    whole, _, part = microseconds.partition('.')
    return int(whole) * 1000 + int((part + '000')[:3])


def read(path):
    with gzip.open(path, 'rt') as file:
        return json.load(file, parse_float=lambda text: text, parse_int=lambda text: text)


def by_thread(events):
    """Slices of each thread in order: start, end, category, whether something lies in it, name."""
    threads = collections.defaultdict(list)
    for e in events:
        if e.get('ph') == 'X' and e['cat'] in HOST and not e['name'].startswith('ProfilerStep#'):
            start = ns(e['ts'])
            threads[e['pid'], e['tid']].append([start, start + ns(e['dur']), e['cat'], False, e['name']])
    for slices in threads.values():
        slices.sort(key=lambda s: (s[0], -s[1]))
        for outer, inner in zip(slices, slices[1:]):
            outer[3] = inner[0] < outer[1]
    return threads.values()


def leaf_names(events):
    return [s[4] for slices in by_thread(events) for s in slices if s[2] == 'cpu_op' and not s[3]]


def self_time(events):
    """How long each thread was in an operation or a call, by going from moment to moment: what is innermost
    there counts, unless it is an annotation with something in it."""
    total = 0
    for slices in by_thread(events):
        moments = sorted({s[0] for s in slices} | {s[1] for s in slices})
        active, k = [], 0
        for now, then in zip(moments, moments[1:]):
            while k < len(slices) and slices[k][0] <= now:
                active.append(slices[k])
                k += 1
            active = [s for s in active if s[1] > now]
            if active and not (active[-1][2] == 'user_annotation' and active[-1][3]):
                total += then - now
    return total


def check(name):
    path = folder / (name + '.json.gz')
    if not path.exists():
        return claim(f'{name} # SKIP the trace is not here')
    events = read(path)['traceEvents']
    tape = os.path.join(scratch, name + '.tdtape')
    said = run('import', path, '-f', '-o', tape).stdout
    assert 'whole' in run('check', tape).stdout
    records = cat(tape)
    ops = [r for r in records if r['record'] == 'event']
    times = [r for r in records if r['record'] == 'device_time']
    kernels = [e for e in events if e.get('cat') in DEVICE]

    # Each kernel once, with its own time and stream.
    assert len(times) == len(kernels), (len(times), len(kernels))
    assert (sorted(t['ns'] for t in times) == sorted(ns(e['dur']) for e in kernels))
    by_stream = collections.Counter(t['stream'] for t in times)
    expected = collections.Counter(e['args']['stream'] for e in kernels)
    assert sorted(by_stream.values()) == sorted(expected.values()), (by_stream, expected)
    claim(f'{name}: {len(kernels)} kernels on {len(expected)} streams, each once with its time')

    # Each has the host's time of the call of its number.
    calls = {e['args']['correlation']: e for e in events if e.get('cat') == 'cuda_runtime'}
    launched = sorted(ns(calls[e['args']['correlation']]['dur']) for e in kernels)
    by_key = {(r['iteration'], r['event']): r for r in ops}
    issued = sorted(by_key[t['iteration'], t['event']]['ns'] for t in times)
    # in a trace with stretches of over 4 s a tape's times are multiples of some ns
    unit = 2 ** max(0, max(r['ns'] for r in ops).bit_length() - 32)
    assert all(abs(a - b) < unit for a, b in zip(launched, issued)), unit
    claim(f'{name}: a kernel has the time of its call on the host')

    # Nothing is counted twice, and nothing lost.
    assert abs(sum(r['ns'] for r in ops) - self_time(events)) <= (unit - 1) * len(ops), (
        sum(r['ns'] for r in ops), self_time(events))
    claim(f'{name}: times of operations add up to what the threads were busy')

    # One operation for each that has time of its own: never more than the file, and of those that call nothing
    # none is missing.
    mine = collections.Counter(r['op'] for r in ops if 'part=' not in r['attributes'])
    theirs = collections.Counter(e['name'] for e in events if e.get('cat') == 'cpu_op')
    leaves = collections.Counter(leaf_names(events))
    for op in (op for op in theirs if len(op) <= 96):
        assert leaves[op] <= mine[op] <= theirs[op], (op, leaves[op], mine[op], theirs[op])
    claim(f'{name}: each of {sum(leaves.values())} operations that call nothing is one')

    steps = [e for e in events if e.get('ph') == 'X' and e['name'].startswith('ProfilerStep#')
             and e['cat'] == 'user_annotation']
    info = json.loads(run('info', '--json', path).stdout)  # the file itself, made into a tape
    assert info['import'] == 'trace' and info['ops_total'] == len(ops)
    labels = {r['label'] for r in records if r['record'] == 'iteration'}
    assert not steps or labels & {e['name'].split('#')[1] for e in steps}, (said, labels)
    return events, ops, path


def twins(events, ops):
    """Arrows from forward to backward are where ours are: from the operation that begins where the arrow does."""
    begins = {e['id']: ns(e['ts']) for e in events if e.get('cat') == 'fwdbwd' and e['ph'] == 's'}
    ends = {e['id']: ns(e['ts']) for e in events if e.get('cat') == 'fwdbwd' and e['ph'] == 'f'}
    host = [e for e in events if e.get('ph') == 'X' and e.get('cat') == 'cpu_op']
    base = min(ns(e['ts']) for e in events if e.get('ph') == 'X' and e['cat'] in HOST + DEVICE)
    iterations = {}
    for r in records:
        if r['record'] == 'iteration':
            iterations[r['number']] = r['start_ns']
    forward = {r['event']: r for r in ops if r['iteration'] == ops[0]['iteration']}
    n = 0
    for arrow, start in begins.items():
        at = next(e for e in host if ns(e['ts']) == start)
        to = next(e for e in host if ns(e['ts']) == ends[arrow] and not e['name'].startswith('autograd'))
        first = iterations[ops[0]['iteration']]
        inside = [r for r in ops if r['phase'] == 'backward'
                  and ns(to['ts']) <= base + first + r['start_ns'] < ns(to['ts']) + ns(to['dur'])]
        assert inside, arrow
        for r in inside:
            twin = forward[r['twin']]
            when = base + first + twin['start_ns']
            assert start <= when < start + ns(at['dur']), (arrow, twin, at)
            n += 1
    return len(begins), n


with tempfile.TemporaryDirectory() as scratch:
    os.environ['XDG_CACHE_HOME'] = os.path.join(scratch, 'cache')
    for name in 'simple_add_cuda_kineto', 'alexnet_cuda_kineto', 'ddp_sampled_rank0_kineto':
        check(name)
    found = check('minitoy_train_rocm_kineto')
    if found:
        records = cat(os.path.join(scratch, 'minitoy_train_rocm_kineto.tdtape'))
        arrows, n = twins(found[0], found[1])
        assert arrows == 4 and n > 20, (arrows, n)
        claim(f'{n} operations of backward belong to where the {arrows} arrows of the profiler begin')
        if have_viz:
            flame = json.loads(run('show', found[2], '--view', 'flame', '--format', 'json').stdout)
            text = json.dumps(flame)
            assert 'aten::addmm' in text and 'Backward' in text
            svg = run('show', found[2], '--view', 'timeline', '--format', 'svg').stdout
            assert '<svg' in svg
            claim('the flame graph and the timeline are drawn of the file itself')

    path = folder / 'memory_timeline.raw.gz'
    if not path.exists():
        claim('memory_timeline # SKIP the file is not here')
    else:
        with gzip.open(path) as file:
            rows = json.load(file)
        now = peak = 0
        for i, (time, action, size, _) in enumerate(rows):
            now += size
            peak = max(peak, now)
        tape = os.path.join(scratch, 'timeline.tdtape')
        run('import', path, '-o', tape)
        iteration, = [r for r in cat(tape) if r['record'] == 'iteration']
        assert iteration['peak_bytes'] == peak, (iteration['peak_bytes'], peak)
        ends = [r for r in cat(tape) if r['record'] == 'memory']
        freed = sum(r['bytes'] if r['kind'] == 'alloc' else -r['bytes'] for r in ends)
        assert freed == sum(size for time, _, size, _ in rows if time >= 0), freed
        claim(f'the memory timeline comes to {peak} bytes at its peak and {now} at its end')
    print(f'1..{n_claims}')
