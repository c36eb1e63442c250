#!/usr/bin/env python3
"""The result file of run.sh: puts what the steps say into it, and draws the conclusions.

    result.py unfinished FILE WHAT TREE [finished]   whether it is of that run, which was cut off (or not)
    result.py set FILE KEY            text on standard input
    result.py step FILE KEY STATUS SECONDS EXPECTED LOG [SUFFIX]   what a step was, and said
    result.py facts FILE              what is installed here
    result.py plans FILE FOLDER [LOG]   cuDNN's plans, from the module's cache; what it proposed, from its log
    result.py times FILE TAPEDECK PROGRAM [ARG ...]   operations timed by events, by CUPTI
    result.py nan FILE TAPEDECK BARE_NAN
    result.py examples FILE TAPEDECK PREFIX TAPES ITERATIONS NAME ...
    result.py life FILE TAPEDECK PREFIX NAME[:ARG] ...   programs of real size, on both devices
    result.py finish FILE
    result.py lesson FILE TAPE TAPEDECK [FOLDER]   the tape of that run becomes a lesson

SPDX-License-Identifier: MIT"""
import collections
import concurrent.futures
import contextlib
import fcntl
import glob
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

# Percent at most.  `stats` is moments and histograms in one: its goal is the moments' own.
LEVELS = {'graph': 3, 'health': 1, 'stats': 3, 'values': None}
STATIC_OVER_EAGER = 3
STATIC_OVER_TORCH = 5
MODELS_OVER_TORCH = 0.85
STATIC_SLOWER = 1.01  # a static schedule of a large net over define-by-run, at most
MOST_BYTES = 190000
LAUNCH_BOUND = ('mlp_small', 'lenet', 'lstm')


def load(path):
    try:
        with open(path, encoding='utf-8') as f:
            return json.load(f)
    except (OSError, ValueError):
        return {}


def shorten(result):
    """A result that is committed has at most 200 kB: what steps say is cut, the longest first."""
    room = MOST_BYTES - len(json.dumps({k: v for k, v in result.items() if k + '.status' not in result}, indent=1))
    said = {k: v for k, v in result.items() if k + '.status' in result}
    most = 6000
    while most > 100 and sum(len(json.dumps(v[:most])) for v in said.values()) > room:
        most //= 2
    result.update({k: v if len(v) <= most else v[:most // 2] + '\n...\n' + v[-(most // 2):] for k, v in said.items()})


def save(path, result):
    """Without the place of the tree, which is of one machine."""
    shorten(result)
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with open(path + '.new', 'w', encoding='utf-8') as f:
        f.write(json.dumps(result, indent=1, sort_keys=True).replace(root + '/', '') + '\n')
    os.replace(path + '.new', path)


@contextlib.contextmanager
def changing(path):
    """The result, saved at the end; steps that run side by side wait for each other."""
    with open(path + '.lock', 'w', encoding='utf-8') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = load(path)
        yield result
        save(path, result)


def claim(result, key, holds, **more):
    """A claim that this run has put to the test."""
    result.setdefault('claims', {})[key] = dict(holds=bool(holds), **more)


def unfinished(path, what, tree, finished=''):
    result = load(path)
    if what == 'full' and result.get('what') == 'quick' and result.get('tree') == tree:
        result.pop('failed', None)  # what is quick is the beginning of what is full
        result['what'] = 'full'
        save(path, result)
    return not (result.get('what') == what and result.get('tree') == tree and (finished or 'failed' not in result))


def put(path, key):
    result = load(path)
    result[key] = sys.stdin.read().strip()[-4000:]
    save(path, result)


def row_of(line):
    """A row, or None: what C prints of numbers that are none is not JSON, and a program that was killed
    may have printed half a line."""
    for text in (line, re.sub(r'(?<=[:\[,]) ?-?(?:nan|inf)\b', ' null', line)):
        try:
            row = json.loads(text)
        except ValueError:
            continue
        return row if isinstance(row.get('row'), str) else None
    return None


def rows(result, log, suffix=''):
    """What programs print about one row goes together: our time, PyTorch's time."""
    with open(log, encoding='utf-8', errors='replace') as f:
        for line in f:
            if not line.startswith('{"row"'):
                continue
            row = row_of(line)
            if row is None:
                result['torn_rows'] = (result.get('torn_rows', []) + [line.strip()[:200]])[:20]
                continue
            name = row.pop('row') + suffix
            known = result.setdefault('rows', {}).setdefault(name, {})
            if suffix:  # runs that take turns: the best counts, and weights are those of all
                row['us'] = min(row['us'], known.get('us', row['us'])) if 'us' in row else None
                row['weights'] = row.get('weights') if known.get('weights', row.get('weights')) == row.get('weights') else 'several'
                row = {k: v for k, v in row.items() if v is not None}
            known.update(row)


def step(path, key, status, seconds, expected, log, suffix=''):
    """The end of what it said, without its rows; those beside the others."""
    result = load(path)
    with open(log, encoding='utf-8', errors='replace') as f:
        said = ''.join(line for line in f if not line.startswith('{"row"'))
    said = said.strip()
    if status in ('0', '77'):
        said = said[-1500:]
    elif len(said) > 6000:  # the first thing that went wrong says most, and the last where it ended
        said = said[:3000] + '\n...\n' + said[-3000:]
    result.update({key: said, key + '.status': status})
    result.setdefault('seconds', {})[key] = int(seconds)
    result.setdefault('expected_seconds', {})[key] = int(expected)
    rows(result, log, suffix)
    save(path, result)


def facts(path):
    """What a program of ours would find."""
    found = {d.metadata['Name']: d.version for d in importlib.metadata.distributions()
             if re.match(r'nvidia-|torch$|mpi4py|meson$|ninja$|numpy$', d.metadata['Name'] or '')}
    known = run(['/sbin/ldconfig', '-p']).stdout if os.path.exists('/sbin/ldconfig') else ''
    libraries = {}
    for name in ('libcuda.so.1', 'libcudnn.so.9', 'libcublasLt.so.13', 'libnccl.so.2', 'libcupti.so.13', 'libnvrtc.so.13'):
        libraries[name] = 'known to the loader' if name in known else 'not known to it'
    tools = {name: shutil.which(name) or 'none' for name in ('nvcc', 'compute-sanitizer', 'ncu', 'nsys', 'mpirun')}
    result = load(path)
    result['machine'] = {'packages': found, 'libraries': libraries, 'tools': tools, 'cores': os.cpu_count(),
                         'headers_of_toolkit': os.path.exists('/usr/local/cuda/include/cudnn_graph.h')}
    save(path, result)
    print(json.dumps(result['machine'], indent=1))


def plans(path, folder, log=''):
    """Of each plan that the run made: what for, its engine, its workspace; and the device as cuDNN
    describes it, which the keys begin with."""
    made, device = collections.Counter(), None
    for name in sorted(glob.glob(os.path.join(folder, '*.tdcache'))):
        with open(name, 'rb') as f:
            data = f.read()
        n = int.from_bytes(data[8:12], 'little')
        key, value = data[24:24 + n], data[24 + n:].rstrip(b'\0')
        of = key[:64].rstrip(b'\0').decode('utf-8', 'replace')
        if not of.startswith('cuDNN'):
            made[os.path.basename(name).split('-')[0]] += 1
            continue
        device = key[64:].split(b'\0')[0].decode('utf-8', 'replace')
        engine = re.search(rb'"engine_?(?:id|Id|ID|GlobalIndex|global_index)?"\s*:\s*"?(\d+)', value)
        made['%s, engine %s' % (of, engine.group(1).decode() if engine else '?')] += 1
    result = load(path)
    result['plans'] = dict(made)
    if os.path.exists(log):
        # Each graph once, first those that came to nothing.
        with open(log, encoding='utf-8', errors='replace') as f:
            lines = {line.split(':')[0]: line.strip()[:300] for line in f if ' engines, ' in line and ' from disk' not in line}
        told = sorted(lines.values(), key=lambda line: ' 0 plans' not in line)
        result['cudnn_graphs'] = told[:100]
    if device is not None:
        try:
            result['device_by_cudnn'] = json.loads(device)
        except ValueError:
            result['device_by_cudnn'] = device[:4000]
    save(path, result)
    print(json.dumps(result['plans'], indent=1))
    return 0 if made else 77


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
    with changing(path) as result:
        claim(result, 'nan', found and not missed, kinds=len(found), missed=missed)
    print('%d kinds, %d missed: %s' % (len(found), len(missed), ' '.join(missed)))
    return listed.returncode != 0 or not found or bool(missed)


def times(path, tapedeck, program, *args):
    """What timing every operation costs, by events and by CUPTI, and whether CUPTI gave times."""
    result = load(path)
    table = result.setdefault('rows', {})
    for name, more in (('untimed', {'TAPEDECK_DEVICE_TIMES': 'off'}), ('events', {'TAPEDECK_DEVICE_TIMES': 'all'}),
                       ('auto', {'TAPEDECK_DEVICE_TIMES': 'auto'}),
                       ('cupti', {'TAPEDECK_DEVICE_TIMES': 'all', 'TAPEDECK_CUPTI': '1'})):
        with tempfile.TemporaryDirectory() as folder:
            tape = os.path.join(folder, 'times.tdtape')
            done = run([tapedeck, 'run', '--quiet', '--device', 'cuda:0', '-o', tape, program, *args], **more)
            if done.returncode != 0:
                table['times.' + name] = {'error': done.stdout[-300:]}
                continue
            said = run([tapedeck, 'cat', '--json', '--iterations', '10:11', tape]).stdout
            exact = len(re.findall(r'"kind": ?"exact"', said))
            for line in done.stdout.splitlines():
                row = row_of(line) if line.startswith('{"row"') else None
                if row is not None:
                    table['%s@%s' % (row['row'], name)] = {'us': row['us'], 'exact_times': exact}
                    print(name, row['row'], row['us'], exact)
    save(path, result)
    return 'error' in table.get('times.untimed', {})


def curve(tapedeck, tape):
    done = run([tapedeck, 'info', '--json', tape])
    reports = json.loads(done.stdout)['reports']
    return {k: [v for _, v in points] for k, points in reports.items() if points}


def example(tapedeck, program, tapes, iterations):
    """One on the CPU and on the device: what its losses were on both, and whether they are the same."""
    curves, said = {}, {}
    for device in ('cpu', 'cuda:0'):
        name = os.path.basename(program).replace('bare-', '')
        tape = os.path.join(tapes, '%s-%s.tdtape' % (name, device.replace(':', '')))
        command = [tapedeck, 'run', '--quiet', '-f', '--device', device, '-o', tape]
        command += ['--iterations', iterations] if iterations != '0' else []
        with tempfile.TemporaryDirectory() as work:
            done = subprocess.run(command + [program], text=True, cwd=work,
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
    return row


def examples(path, tapedeck, prefix, tapes, iterations, *names):
    """Each example on the CPU and on the device, from the same seed: losses and accuracy, or what it
    prints where it has none.  PREFIX and a name are a program."""
    tapedeck, prefix, tapes = map(os.path.abspath, (tapedeck, prefix, tapes))  # work is elsewhere
    os.makedirs(tapes, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(max(1, (os.cpu_count() or 1) // 2)) as pool:
        made = list(pool.map(lambda name: example(tapedeck, prefix + name, tapes, iterations), names))
    bad = sum(not row['holds'] for row in made)
    with changing(path) as result:
        for name, row in zip(names, made):
            result.setdefault('rows', {})['example.' + name] = row
            print(name, json.dumps(row))
        claim(result, 'examples' if len(names) > 1 else 'example', not bad, n=len(names), whole=iterations == '0')
    return bad


def losses_of(said):
    return [float.fromhex(x) for x in re.findall(r'^\d+ loss (\S+)', said, re.M)]


def one_of_life(tapedeck, program, *args):
    """Its losses on both devices; whether recording, or running from schedules, changes a bit."""
    ways = {'cpu': {'TAPEDECK_DEVICE': 'cpu'}, 'plain': {}, 'recorded': {}, 'static': {}}
    said = {}
    for way, more in ways.items():
        with tempfile.TemporaryDirectory() as folder:
            command = [program, 'hash=1', *args] + (['static=1', 'batch=0'] if way == 'static' else [])
            if way == 'recorded':
                tape = os.path.join(folder, 'life.tdtape')
                command = [tapedeck, 'run', '--quiet', '--level', 'stats', '--device', 'cuda:0', '-o', tape] + command
            done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, errors='replace',
                                  cwd=folder, env=dict(os.environ, **{'TAPEDECK_DEVICE': 'cuda:0', **more}))
        if done.returncode != 0:
            return {'holds': False, 'way': way, 'said': (done.stdout + done.stderr)[-500:]}
        said[way] = [line for line in done.stdout.splitlines() if ' weights ' in line or line.startswith('weights ')]
    a, b = (losses_of('\n'.join(said[w])) for w in ('cpu', 'plain'))
    row = {'iterations': len(b), 'loss_cpu': a[-1] if a else None, 'loss': b[-1] if b else None,
           'same_begin': len(a) == len(b) and all(abs(x - y) <= 1e-3 * (abs(x) + 1e-3) for x, y in list(zip(a, b))[:3]),
           'same_recorded': said['recorded'] == said['plain'], 'same_static': said['static'] == said['plain']}
    row['holds'] = bool(said['plain']) and row['same_begin'] and row['same_recorded'] and row['same_static']
    return row


def life(path, tapedeck, prefix, *names):
    """NAME:ARG:... is a program and what it is called with."""
    tapedeck, prefix = map(os.path.abspath, (tapedeck, prefix))
    with concurrent.futures.ThreadPoolExecutor(max(1, (os.cpu_count() or 1) // 2)) as pool:
        made = list(pool.map(lambda n: one_of_life(tapedeck, prefix + n.split(':')[0], *n.split(':')[1:]), names))
    with changing(path) as result:
        for name, row in zip(names, made):
            result.setdefault('rows', {})['life.' + name.split(':')[0]] = row
            print(name, json.dumps(row))
        missed = [n.split(':')[0] for n, row in zip(names, made) if not row['holds']]
        claim(result, 'life', not missed, n=len(names), missed=missed)
    return len(missed)


def percent_over(table, name, level):
    plain, recorded = table.get(name + '@plain', table.get(name)), table.get(name + '@' + level)
    return 100 * (recorded['us'] / plain['us'] - 1) if plain and recorded else None


def judge(row, copy):
    """What a row comes to beside its floor, its goals and PyTorch.  Returns the goals it missed."""
    missed = []
    if row.get('bytes') and 'us' in row and copy and row.get('goal'):
        row['floor_us'] = row['bytes'] / copy * 1e6
        row['fraction'] = row['floor_us'] / row['us']
        if row['fraction'] < row['goal']:
            missed.append('fraction')
    if row.get('flops') and 'us' in row:
        row['tflops'] = row['flops'] / row['us'] * 1e-6
    if 'us' in row and 'torch_us' in row:
        row['ratio'] = row['torch_us'] / row['us']
        if row.get('torch_goal') and row['ratio'] < row['torch_goal']:
            missed.append('ratio')
    if row.get('most_us') and 'us' in row and row['us'] > row['most_us']:
        missed.append('us')
    if 'error' in row and 'us' not in row:
        missed.append('error')
    return missed


def conclude_kernels(result, table):
    """Each row that missed a goal has a `reason`, which whoever commits the result fills in."""
    copy = table.get('ceiling.copy', {})
    if 'us' in copy:
        result['copy_bytes_per_s'] = copy['bytes'] / (copy['us'] * 1e-6)
    wanted = {'kernels': {}, 'products': {}, 'convolutions': {}}
    for name, row in table.items():
        missed = judge(row, result.get('copy_bytes_per_s'))
        with_goal = any(row.get(k) for k in ('torch_goal', 'most_us')) or 'fraction' in row or 'error' in row
        if not with_goal or name.startswith(('train.', 'example.', 'model.', 'life.')):
            continue
        row['met'] = not missed
        row.pop('missed', None)
        if missed:
            row['missed'] = missed
            row.setdefault('reason', '')
        kind = 'convolutions' if name.startswith('conv.') else 'products' if 'gemm' in name else 'kernels'
        # A goal beside PyTorch is put to the test where PyTorch was.
        if kind == 'kernels' or 'ratio' in row or 'error' in row:
            wanted[kind][name] = missed
    for key, rows_of in wanted.items():
        if rows_of:
            claim(result, key, not any(rows_of.values()), n=len(rows_of),
                  missed=sorted(n for n, missed in rows_of.items() if missed))
    ratios = {n: r['ratio'] for n, r in table.items() if 'ratio' in r}
    if ratios:
        claim(result, 'torch_times', True, n=len(ratios), worst=sorted(ratios, key=ratios.get)[:10])
    crossed = {n: r for n, r in table.items() if n.startswith('torch.')}
    if crossed:
        claim(result, 'torch_values', all(r['holds'] for r in crossed.values()), n=len(crossed))


def conclude_recording(result, table):
    recorded = [n for n, r in table.items() if '@' in n and n.split('@')[1] in LEVELS and 'us' in r
                and n.startswith(('train.', 'model.')) and 'us' in table.get(n.split('@')[0], {})]
    if not recorded:
        return
    other = [n for n in recorded if table[n]['weights'] != table[n.split('@')[0]]['weights']]
    claim(result, 'same_weights_when_recorded', not other, n=len(recorded), other=other)
    over, missed = {}, []
    for name in recorded:
        base, level = name.split('@')
        over[name] = round(percent_over(table, base, level), 2)
        if LEVELS[level] is not None and over[name] > LEVELS[level]:
            missed.append(name)
    claim(result, 'recording', not missed, percent=over, missed=missed)


def conclude_static(result, plain):
    static = {n[6:-7]: r for n, r in plain.items() if n.endswith('.static') and n[:-7] in plain}
    if not static:
        return
    other = [n for n in static if plain['train.' + n]['losses'] != static[n]['losses']]
    claim(result, 'static_same_losses', not other, n=len(static), other=other)
    # Where products were batched, a schedule's last bits are its own (pass-batch.c).
    other = [n for n, r in static.items() if r['weights'] != r['weights_without_graphs']]
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


def conclude_trainings(result, table):
    plain = {n: r for n, r in table.items() if n.startswith('train.') and 'us' in r and '@' not in n}
    if any('changed' in r for r in plain.values()):
        claim(result, 'flat', all(r['changed'] == 0 for r in plain.values()),
              updates=min(r['flat_updates'] for r in plain.values()),
              changed={n: r['changed'] for n, r in plain.items() if r['changed']})
    conclude_static(result, plain)


def conclude_models(result, table):
    """Define-by-run beside PyTorch; a static schedule beside define-by-run."""
    nets = {n: r for n, r in table.items() if n.startswith('model.') and '@' not in n}
    ours = {n: r for n, r in nets.items() if 'us' in r or 'error' in r}
    if not ours:
        return
    eager = {n: r for n, r in ours.items() if not n.endswith('.static')}
    ratios = {n: round(r['torch_us'] / r['us'], 3) for n, r in eager.items() if 'us' in r and 'torch_us' in r}
    failed = {n: r['error'] for n, r in ours.items() if 'us' not in r}
    unfinite = [n for n, r in ours.items() if r.get('finite') is False]
    claim(result, 'models_train', not failed and not unfinite, n=len(ours), failed=failed, not_finite=unfinite)
    if ratios:
        claim(result, 'models_of_size', not any(n in failed for n in eager)
              and all(r >= MODELS_OVER_TORCH for r in ratios.values()), over_torch=ratios)
    static = {n[:-7]: round(r['us'] / eager[n[:-7]]['us'], 3) for n, r in ours.items()
              if n.endswith('.static') and 'us' in r and 'us' in eager.get(n[:-7], {})}
    if static:
        claim(result, 'static_no_slower', all(v <= STATIC_SLOWER for v in static.values()), over_eager=static)


# What was open before a GPU was at hand, by the rows that answer it.
QUESTIONS = (
    ('1_libraries', 'which headers and libraries are there', ('machine', 'gpu_prefix', 'backends'), ()),
    ('2_cudnn', "the device as cuDNN describes it; plans that were made", ('device_by_cudnn', 'plans', 'cudnn_graphs'), ('device', 'attention_')),
    ('3_latency', 'launches, events, graphs', (), ('driver.launch', 'driver.graph', 'ceiling.launch')),
    ('4_pages', 'what mapping a page costs, and whether it is allowed', (), ('driver.map', 'device')),
    ('5_stats', 'statistics beside the copy bandwidth; CUPTI', ('copy_bytes_per_s',), ('stats', 'train.mlp_small@', 'train.lenet@')),
    ('6_ranks', 'NCCL with one rank, and more; two processes on one GPU', (), ('nccl', 'ranks.', 'shared')),
)


def conclude_questions(result, table):
    result['questions'] = {
        key: {'of': text, 'entries': [e for e in entries if e in result],
              'rows': sorted(n for n in table if n.startswith(starts)) if starts else []}
        for key, text, entries, starts in QUESTIONS}


def conclude_rest(result, table):
    memory = {n: r for n, r in table.items() if n.startswith('memory.')}
    if memory:
        claim(result, 'memory', all(r['holds'] for r in memory.values()), n=len(memory),
              failed=[n for n, r in memory.items() if not r['holds']])
    for key in ('nccl', 'ranks', 'shared'):
        found = [r for n, r in table.items() if n.split('.')[0] == key]
        if found:
            claim(result, key, all(r['holds'] for r in found), n=len(found))
    for key, step in (('numbers', 'numbers'), ('numbers_malloc', 'numbers-malloc'),
                      ('gradients', 'gradients'), ('memcheck', 'memcheck'), ('racecheck', 'racecheck')):
        status = result.get(step + '.status')
        if status is not None:
            claim(result, key, status == '0')


def finish(path):
    result = load(path)
    if 'failed' in result:
        result.pop('left', None)
    table = result.setdefault('rows', {})
    result.pop('not_concluded', None)
    for conclude in (conclude_kernels, conclude_trainings, conclude_recording, conclude_models, conclude_questions,
                     conclude_rest):
        try:
            conclude(result, table)
        except (KeyError, TypeError, ZeroDivisionError) as e:  # a row lacks what it should have; the others count
            result.setdefault('not_concluded', {})[conclude.__name__] = repr(e)
    save(path, result)
    claims = result.get('claims', {})
    for key in sorted(claims):
        print('%-8s%s' % ('holds' if claims[key]['holds'] else 'FAILS', key))
    ratios = sorted((r['ratio'], n) for n, r in table.items() if 'ratio' in r)
    seconds, expected = result.get('seconds', {}), result.get('expected_seconds', {})
    print('seconds of steps (expected): ' + ', '.join('%s %d (%d)' % (k, seconds[k], expected.get(k, 0)) for k in seconds))
    print('worst beside PyTorch: ' + ', '.join('%s %.2f' % (n, r) for r, n in ratios[:10]))
    for name, why in result.get('not_concluded', {}).items():
        print('FAILS   %s: %s' % (name, why))
    return sum(not c['holds'] for c in claims.values()) + len(result.get('not_concluded', {}))


LESSON = 'on_a_gpu.tdtape'
LESSON_BYTES = 500000


def lesson(path, tape, tapedeck, folder=None):
    """What was recorded on a GPU, to be opened anywhere: into data/examples, where the start page
    and the installation find it, once the result itself is evidence."""
    here = os.path.dirname(os.path.abspath(__file__))
    result = load(path)
    info, whole = run([tapedeck, 'info', '--json', tape]), run([tapedeck, 'check', tape])
    device = json.loads(info.stdout).get('device', '') if info.returncode == 0 else ''
    with open(tape, 'rb') as f:
        data = f.read()
    committed = folder or os.path.exists(os.path.join(here, 'evidence', os.path.basename(path)))
    folder = folder or os.path.join(here, '../../data/examples')
    for wrong, why in ((not result.get('rows'), 'that is no result'),
                       (result.get('fake') or b'cuda:0 Fake' in data, 'that is of the fake driver, not of a GPU'),
                       (info.returncode != 0 or whole.returncode != 0, 'that tape is not whole: ' + whole.stdout.strip()),
                       (not device.startswith('cuda:'), 'that tape is of %s, not of a GPU' % device),
                       (len(data) > LESSON_BYTES, 'that tape has %d bytes; at most %d' % (len(data), LESSON_BYTES)),
                       (not committed, 'first %s has to lie in evidence' % os.path.basename(path))):
        if wrong:
            print(why)
            return 1
    with open(os.path.join(folder, LESSON), 'wb') as f:
        f.write(data)
    print('%s: %s, %d bytes' % (os.path.join(folder, LESSON), device, len(data)))
    return 0


COMMANDS = {f.__name__: f for f in (unfinished, step, facts, plans, times, nan, examples, life, finish, lesson)}
COMMANDS['set'] = put
if __name__ == '__main__':
    sys.exit(min(100, int(COMMANDS[sys.argv[1]](*sys.argv[2:]) or 0)))
