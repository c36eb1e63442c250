#!/usr/bin/env python3
"""The result file of run.sh: puts what the steps say into it, and draws the conclusions.

    result.py unfinished FILE WHAT TREE   whether it is of that run, which was cut off
    result.py set FILE KEY            text on standard input
    result.py rows FILE LOG [SUFFIX]  lines of JSON that a program printed, by their "row"
    result.py nan FILE TAPEDECK BARE_NAN
    result.py examples FILE TAPEDECK PREFIX TAPES ITERATIONS NAME ...
    result.py finish FILE

SPDX-License-Identifier: MIT"""
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile

# PyTorch's part in each goal: our time over its time, at most.
LEVELS = {'graph': 3, 'health': 1, 'stats': 3, 'values': None}  # percent at most
STATIC_OVER_EAGER = 3
STATIC_OVER_TORCH = 5
LAUNCH_BOUND = ('mlp_small', 'lenet', 'lstm')


def load(path):
    try:
        with open(path, encoding='utf-8') as f:
            return json.load(f)
    except (OSError, ValueError):
        return {}


def save(path, result):
    with open(path + '.new', 'w', encoding='utf-8') as f:
        json.dump(result, f, indent=1, sort_keys=True)
        f.write('\n')
    os.replace(path + '.new', path)


def claim(result, key, holds, **more):
    """A claim that this run has put to the test."""
    result.setdefault('claims', {})[key] = dict(holds=bool(holds), **more)


def unfinished(path, what, tree):
    result = load(path)
    return not (result.get('what') == what and result.get('tree') == tree and 'failed' not in result)


def put(path, key):
    result = load(path)
    result[key] = sys.stdin.read().strip()[-4000:]
    save(path, result)


def rows(path, log, suffix=''):
    """What programs print about one row goes together: our time, PyTorch's time."""
    result = load(path)
    with open(log, encoding='utf-8', errors='replace') as f:
        for line in f:
            if not line.startswith('{"row"'):
                continue
            row = json.loads(line)
            name = row.pop('row') + suffix
            result.setdefault('rows', {}).setdefault(name, {}).update(row)
    save(path, result)


def run(command, **env):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors='replace', env=dict(os.environ, **env))


def nan(path, tapedeck, program):
    """Every kind of operation once as the first that makes a NaN: does the breakpoint name it?  A kind
    that is made of others names the first of those, as the CPU does."""
    listed = run([program, '--list'])
    kinds = [line.split() for line in listed.stdout.splitlines() if re.match(r'\d+ \w+$', line)]

    def named(row, device):
        with tempfile.TemporaryDirectory() as folder:
            done = run([tapedeck, 'run', '--quiet', '--device', device, '--break', 'nan', '-o',
                        os.path.join(folder, 'nan.tdtape'), program, row])
        found = re.search(r'(\w+) made NaN', done.stdout)
        return (found.group(1) if found and done.returncode == 3 else None), done.stdout[-300:]

    def one(kind):
        name, said = named(kind[0], 'cuda:0')
        good = name is not None and (name == kind[1] or name == named(kind[0], 'cpu')[0])
        return kind[1], good, said

    with concurrent.futures.ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        found = list(pool.map(one, kinds))
    missed = {k: text for k, ok, text in found if not ok}
    result = load(path)
    claim(result, 'nan', found and not missed, kinds=len(found), missed=missed)
    save(path, result)
    print('%d kinds, %d missed: %s' % (len(found), len(missed), ' '.join(missed)))
    return listed.returncode != 0 or not found or bool(missed)


def curve(tapedeck, tape):
    done = run([tapedeck, 'info', '--json', tape])
    reports = json.loads(done.stdout)['reports']
    return {k: [v for _, v in points] for k, points in reports.items() if points}


def examples(path, tapedeck, prefix, tapes, iterations, *names):
    """Each example on the CPU and on the device, from the same seed: losses and accuracy, or what it
    prints where it has none.  PREFIX and a name are a program."""
    result = load(path)
    bad = 0
    tapedeck, prefix, tapes = map(os.path.abspath, (tapedeck, prefix, tapes))  # work is elsewhere
    os.makedirs(tapes, exist_ok=True)
    for name in names:
        curves, said = {}, {}
        for device in ('cpu', 'cuda:0'):
            tape = os.path.join(tapes, '%s-%s.tdtape' % (name, device.replace(':', '')))
            command = [tapedeck, 'run', '--quiet', '-f', '--device', device, '-o', tape]
            command += ['--iterations', iterations] if iterations != '0' else []
            with tempfile.TemporaryDirectory() as work:
                done = subprocess.run(command + [prefix + name], text=True, cwd=work,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors='replace',
                                      env=dict(os.environ, TAPEDECK_DATA='', TAPEDECK_SEED='3'))
            said[device] = done.stdout
            if done.returncode != 0:
                break
            curves[device] = curve(tapedeck, tape)
        row = {'ran': len(curves) == 2}
        if row['ran']:
            a, b = (curves[d].get('loss') or next(iter(curves[d].values()), []) for d in ('cpu', 'cuda:0'))
            row.update(iterations=len(a), first_cpu=a[0] if a else None, first=b[0] if b else None,
                       last_cpu=a[-1] if a else None, last=b[-1] if b else None)
            # The first losses are the same numbers; later ones part as roundings do.
            row['same_begin'] = len(a) == len(b) and all(
                abs(x - y) <= 1e-3 * (abs(x) + 1e-3) for x, y in list(zip(a, b))[:3])
            if not a:
                row['same_begin'] = bool(said['cpu']) and said['cpu'] == said['cuda:0']
            accuracy = [re.findall(r'test accuracy ([0-9.]+)', said[d]) for d in ('cpu', 'cuda:0')]
            if all(accuracy):
                row['accuracy_cpu'], row['accuracy'] = (float(x[-1]) for x in accuracy)
            row['holds'] = row['same_begin'] and abs(row.get('accuracy', 0) - row.get('accuracy_cpu', 0)) <= 0.02
        else:
            row.update(holds=False, said=said[list(said)[-1]][-500:])
        bad += not row['holds']
        result.setdefault('rows', {})['example.' + name] = row
        print(name, json.dumps(row))
    claim(result, 'examples', not bad, n=len(names), whole=iterations == '0')
    save(path, result)
    return bad


def percent_over(table, name, level):
    plain, recorded = table.get(name), table.get(name + '@' + level)
    return 100 * (recorded['us'] / plain['us'] - 1) if plain and recorded else None


def conclude_kernels(result, table):
    copy = table.get('ceiling.copy', {})
    if 'us' in copy:
        result['copy_bytes_per_s'] = copy['bytes'] / (copy['us'] * 1e-6)
    missed = []
    for name, row in table.items():
        if row.get('bytes') and 'us' in row and 'us' in copy and not name.startswith('ceiling'):
            row['floor_us'] = row['bytes'] / result['copy_bytes_per_s'] * 1e6
            row['fraction'] = row['floor_us'] / row['us']
            row['met'] = row['fraction'] >= row['goal']
            if not row['met']:
                missed.append(name)
        if row.get('flops') and 'us' in row:
            row['tflops'] = row['flops'] / row['us'] * 1e-6
        if 'us' in row and 'torch_us' in row:
            row['ratio'] = row['torch_us'] / row['us']
    if any('floor_us' in row for row in table.values()):
        claim(result, 'kernels', not missed, missed=missed)
    ratios = {n: r['ratio'] for n, r in table.items() if 'ratio' in r}
    if ratios:
        claim(result, 'torch_times', True, n=len(ratios), worst=sorted(ratios, key=ratios.get)[:10])
    crossed = {n: r for n, r in table.items() if n.startswith('torch.')}
    if crossed:
        claim(result, 'torch_values', all(r['holds'] for r in crossed.values()), n=len(crossed))


def conclude_trainings(result, table):
    trainings = {n: r for n, r in table.items() if n.startswith('train.') and 'us' in r}
    plain = {n: r for n, r in trainings.items() if '@' not in n}
    if plain:
        claim(result, 'flat', all(r['changed'] == 0 for r in plain.values()),
              updates=min(r['flat_updates'] for r in plain.values()),
              changed={n: r['changed'] for n, r in plain.items() if r['changed']})
    recorded = [n for n in trainings if '@' in n]
    if recorded:
        other = [n for n in recorded if trainings[n]['weights'] != plain[n.split('@')[0]]['weights']]
        claim(result, 'same_weights_when_recorded', not other, n=len(recorded), other=other)
        over, missed = {}, []
        for name in recorded:
            base, level = name.split('@')
            over[name] = round(percent_over(table, base, level), 2)
            if LEVELS[level] is not None and over[name] > LEVELS[level]:
                missed.append(name)
        claim(result, 'recording', not missed, percent=over, missed=missed)
    static = {n[6:-7]: r for n, r in plain.items() if n.endswith('.static')}
    if static:
        other = [n for n in static if plain['train.' + n]['losses'] != static[n]['losses']]
        claim(result, 'static_same_losses', not other, n=len(static), other=other)
        other = [n for n in static if plain['train.' + n]['weights'] != static[n]['weights']]
        launches = {n: r.get('graph_launches', 0) for n, r in static.items()}
        claim(result, 'cuda_graphs', not other and all(launches.values()), launches=launches, other=other)
        speed = {n: round(plain['train.' + n]['us'] / r['us'], 3) for n, r in static.items()}
        torch = {n: round(plain['train.' + n]['torch_us'] / r['us'], 3) for n, r in static.items()
                 if 'torch_us' in plain['train.' + n]}
        claim(result, 'static_speed', all(speed[n] >= STATIC_OVER_EAGER for n in LAUNCH_BOUND if n in speed),
              over_eager=speed)
        if torch:
            claim(result, 'static_over_torch', all(torch[n] >= STATIC_OVER_TORCH for n in LAUNCH_BOUND if n in torch),
                  over_torch=torch)


def conclude_rest(result, table):
    memory = {n: r for n, r in table.items() if n.startswith('memory.')}
    if memory:
        claim(result, 'memory', all(r['holds'] for r in memory.values()), n=len(memory),
              failed=[n for n, r in memory.items() if not r['holds']])
    if 'nccl' in table:
        claim(result, 'nccl', table['nccl']['holds'])
    for key, step in (('numbers', 'numbers'), ('numbers_malloc', 'numbers-malloc'),
                      ('gradients', 'gradients'), ('memcheck', 'memcheck'), ('racecheck', 'racecheck')):
        status = result.get(step + '.status')
        if status is not None:
            claim(result, key, status == '0')


def finish(path):
    result = load(path)
    table = result.setdefault('rows', {})
    conclude_kernels(result, table)
    conclude_trainings(result, table)
    conclude_rest(result, table)
    save(path, result)
    claims = result.get('claims', {})
    for key in sorted(claims):
        print('%-8s%s' % ('holds' if claims[key]['holds'] else 'FAILS', key))
    ratios = sorted((r['ratio'], n) for n, r in table.items() if 'ratio' in r)
    print('worst beside PyTorch: ' + ', '.join('%s %.2f' % (n, r) for r, n in ratios[:10]))
    return sum(not c['holds'] for c in claims.values())


COMMANDS = {'unfinished': unfinished, 'set': put, 'rows': rows, 'nan': nan, 'examples': examples, 'finish': finish}
if __name__ == '__main__':
    sys.exit(min(100, int(COMMANDS[sys.argv[1]](*sys.argv[2:]) or 0)))
