"""What a run has written, without what differs between two equal runs: times, speeds and names of folders."""

import re
import struct
from pathlib import Path

import torch
import yaml
from tensorboardX.proto import event_pb2

from nervex.run.state import newest_state
from nervex.utils.file_helper import read_file


def numbers(folder: Path) -> str:
    """The text logs, but for what was saved: a run that was killed behind it finds it there."""
    text = ''
    for name in ('learner/learner_logger.txt', 'evaluator/evaluator_logger.txt', 'actor/collect_logger.txt'):
        text += re.sub(r'^\[.*?\]', '', (folder / 'log' / name).read_text(encoding='utf-8'), flags=re.M)
    text = re.sub(r'^\[INFO\] checkpoint \S+ saved\n', '', text, flags=re.M)
    text = re.sub(r'(avg_step_per_sec|avg_time_per_episode) \S+', '', text)
    text = re.sub(r'\S+ env steps/s|ckptBaseLearner\d+|\./|\w+/', '', text)
    (path,) = folder.glob('log/buffer/*/*_logger.txt')
    table = [line.split('|')[1:-1] for line in path.read_text(encoding='utf-8').splitlines() if line.startswith('|')]
    rates = [i for i, name in enumerate(table[0]) if 'per_s' in name]
    return text + str([[cell.strip() for i, cell in enumerate(row) if i not in rates] for row in table])


def curves(folder: Path) -> list:
    """All scalars in TensorBoard but those that tell speed, in order, and the rows of the curve but their seconds."""
    found = []
    for path in sorted(folder.glob('log/**/events*')):
        data, place = path.read_bytes(), 0
        while place < len(data):
            (size,) = struct.unpack_from('<Q', data, place)
            event = event_pb2.Event.FromString(data[place + 12 : place + 12 + size])
            place += size + 16
            values = [(v.tag, event.step, v.simple_value) for v in event.summary.value if v.HasField('simple_value')]
            found += [(path.parent.name, *value) for value in values if not re.search('per_s|time|seconds', value[0])]
    rows = (folder / 'log/evaluator/curve.csv').read_text(encoding='utf-8').splitlines()
    return [*sorted(found), *(row.split(',')[:2] + row.split(',')[3:] for row in rows)]


def checkpoints(folder: Path) -> dict:
    """The models in the checkpoints of the run, by the names of the files."""
    ckpt = folder / yaml.safe_load((folder / 'log/run.yaml').read_text(encoding='utf-8'))['checkpoints']
    return {path.name: torch.load(path, weights_only=True)['model'] for path in ckpt.glob('[ci]*.pth.tar')}


def same_models(first: dict, second: dict) -> bool:
    """Whether two models, or two folders of them, are equal bit for bit."""
    if first.keys() != second.keys():
        return False
    pairs = [(first[key], second[key]) for key in first]
    return all(same_models(a, b) if isinstance(a, dict) else torch.equal(a, b) for a, b in pairs)


def whole_run(folder: Path) -> dict:
    """Logs, curves and models of a run, or of every player of a league, with what the league knows."""
    runs = sorted(folder.glob('players/*')) or [folder]
    found: dict = {
        'logs': [numbers(run) for run in runs],
        'curves': [curves(run) for run in runs],
        'checkpoints': {run.name if len(runs) > 1 else '': checkpoints(run) for run in runs},
    }
    if len(runs) > 1:
        path, state = newest_state(str(folder / 'league'))
        league = state['league']
        counts = league['payoff'].pop('counts')
        files = [Path(player[1]).name for player in league['historical']]
        league['historical'] = [[Path(place).name, *others] for _, place, *others in league['historical']]
        for player in league['active'].values():
            player['checkpoint_path'] = Path(player['checkpoint_path']).name
        said = (folder / 'log/commander/commander_logger.txt').read_text(encoding='utf-8')
        found['league'] = [Path(path).name, league, re.sub(r'^\[.*?\]', '', said, flags=re.M)]
        found['checkpoints']['payoff'] = {'counts': counts}
        for name in [*files, *league['active']]:
            file = name if name in files else f'{name}_ckpt.pth.tar'
            found['checkpoints'][file] = read_file(str(folder / 'league' / file))['model']
    return found
