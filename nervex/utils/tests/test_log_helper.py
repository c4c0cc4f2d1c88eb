import glob
import logging
import os
import pathlib
import sys
import zlib

import numpy as np
import pytest
import torch

from nervex.utils.drawing import encode_png
from nervex.utils.log_helper import (
    DistributionTimeImage,
    TBLogger,
    TextLogger,
    build_logger,
    format_value,
    pretty_print,
    pretty_table,
    split_kind,
)
from nervex.utils.tests import quick_start


def test_files_have_the_documented_names(tmp_path):
    text, tb = build_logger(str(tmp_path), 'learner', need_tb=True)
    tb.add_scalar('loss', 1.0, 0)
    tb.close()
    text.close()
    assert sorted(os.listdir(tmp_path)) == ['learner_logger.txt', 'learner_tb_logger']
    assert glob.glob(str(tmp_path / 'learner_tb_logger' / 'events*'))
    assert build_logger(str(tmp_path), 'collect', need_tb=False)[1] is None


def test_lines_are_on_disk_at_once_and_formatted(tmp_path):
    with TextLogger(str(tmp_path), 'a') as text:
        text.info('loss %.2f', 0.123)
        text.debug('not shown')
        assert pathlib.Path(text.path).read_text().endswith('][INFO] loss 0.12\n')
        text.print_vars({'lr': 1e-3, 'step': 3, 'loss': torch.tensor(0.5)})
        assert '| lr   | 0.001 |' in pathlib.Path(text.path).read_text()
    text.close()
    with pytest.raises(ValueError, match='closed'):
        text.info('late')


def test_text_goes_on_in_an_existing_file(tmp_path):
    for line in ('one', 'two'):
        with TextLogger(str(tmp_path), 'a') as text:
            text.info(line)
    assert len((tmp_path / 'a_logger.txt').read_text().splitlines()) == 2


def test_percent_signs_without_arguments_are_plain_text(tmp_path, caplog):
    with TextLogger(str(tmp_path), 'a') as text, caplog.at_level(logging.INFO):
        text.info('100% done')
    assert '100% done' in (tmp_path / 'a_logger.txt').read_text() and '100% done' in caplog.text


def read_events(folder):
    from tensorboardX.proto import event_pb2

    values = []
    for file in pathlib.Path(folder).rglob('events*'):
        raw, at = file.read_bytes(), 0
        while at < len(raw):
            size = int.from_bytes(raw[at : at + 8], 'little')
            event = event_pb2.Event.FromString(raw[at + 12 : at + 12 + size])
            values += [(v, event.step) for v in event.summary.value]
            at += 12 + size + 4
    return values


def test_every_kind_reaches_tensorboard(tmp_path):
    with TBLogger(str(tmp_path), 'a') as tb:
        tb.add_val('plain', torch.tensor(2.0), 1)
        tb.add_val('[scalar]named', 3, 2)
        tb.add_val('[scalars]group', {'p': 4.0, 'q': torch.tensor(5.0)}, 3)
        tb.add_val('[histogram]action', torch.tensor([0, 1, 1]), 4)
        tb.add_val('[histogram]listed', [torch.tensor(0), torch.tensor(1)], 4)
        tb.add_val('[histogram]empty', [], 4)
        tb.add_val('[image]frame', np.zeros((3, 4, 4), dtype=np.uint8), 5)
        tb.add_val('[text]note', 'hello', 6)
    events = read_events(str(tmp_path))
    found = {v.tag: (v, step) for v, step in events}
    assert found['plain'][0].simple_value == 2.0 and found['plain'][1] == 1
    assert found['named'][0].simple_value == 3.0 and found['named'][1] == 2
    assert sorted(v.simple_value for v, _ in events if v.tag.startswith('group')) == [4.0, 5.0]
    assert found['action'][0].histo.num == 3 and found['action'][0].histo.sum == 2.0
    assert found['listed'][0].histo.num == 2
    assert found['frame'][0].image.height == 4
    assert any(tag.startswith('note') for tag in found) and 'empty' not in found


class Listener:
    """Remembers what it hears."""

    def __init__(self, own_files):
        self.own_files, self.heard = own_files, []

    def log(self, values):
        self.heard.append(values)


@pytest.mark.parametrize('own_files', [True, False])
def test_who_listens_to_a_folder_is_told_once_of_what_its_loggers_get(tmp_path, monkeypatch, own_files):
    listener, other = Listener(own_files), Listener(True)
    folders = {str(tmp_path / 'run/log'): listener, str(tmp_path / 'run/lo'): other}
    monkeypatch.setattr('nervex.utils.log_helper.LISTENERS', folders)
    with TBLogger(str(tmp_path / 'run/log/part'), 'a') as logger:
        logger.add_values({'x': 1.0, 'y': 2.0}, 3)
        logger.add_val('z', 4.0, 5)
        logger.add_both('part', {'w': 6.0}, 7, 8)
        logger.add_both('part', {'v': 6.0}, 7, 8, heard=False)
        logger.add_val('[scalars]both', {'p': 1.0}, 6)
        logger.add_val('[histogram]h', [1.0, 2.0], 7)
        logger.add_val('[image]i', np.zeros((2, 2)), 8)
        logger.add_val('[text]t', 'words', 9)
    names = [*({'x', 'y'}, {'z'}, {'part/w'}), *({f'[{kind}]{name}'} for kind, name in KINDS_TOLD)]
    assert [set(values) for values in listener.heard] == names and listener.heard[1] == {'z': 4.0}
    assert other.heard == [] and pathlib.Path(logger.path).exists() == own_files
    if own_files:
        scalars = [(v.tag, v.simple_value, step) for v, step in read_events(logger.path) if v.HasField('simple_value')]
        assert scalars[3:7] == [
            ('part_iter/w', 6.0, 7), ('part_envstep/w', 6.0, 8), ('part_iter/v', 6.0, 7), ('part_envstep/v', 6.0, 8)
        ]  # fmt: skip


KINDS_TOLD = (('scalars', 'both'), ('histogram', 'h'), ('image', 'i'), ('text', 't'))


def test_a_logger_without_a_name_writes_into_its_folder_and_listens_to_nobody(tmp_path, monkeypatch):
    listener = Listener(False)
    monkeypatch.setattr('nervex.utils.log_helper.LISTENERS', {str(tmp_path): listener})
    with TBLogger(str(tmp_path), None) as logger:
        logger.add_scalar('x', 1.0, 2)
    assert logger.path == str(tmp_path) and list(tmp_path.glob('events*')) and not listener.heard


def test_an_event_is_in_its_file_when_the_call_returns(tmp_path):
    with TBLogger(str(tmp_path), 'a') as tb:
        for step in range(3):
            tb.add_values({'x': step, 'y': 2 * step}, step)
            found = [(v.tag, v.simple_value, at) for v, at in read_events(tmp_path)]
            assert found[-2:] == [('x', step, step), ('y', 2 * step, step)] and len(found) == 2 * step + 2


def test_loggers_of_one_folder_write_files_of_their_own(tmp_path):
    """As when a run is resumed within the second in which it was stopped."""
    for step in range(3):
        with TBLogger(str(tmp_path), 'a') as tb:
            tb.add_scalar('x', 1.0, step)
    assert sorted(step for _, step in read_events(tmp_path)) == [0, 1, 2]


def test_an_event_that_does_not_fit_on_the_disk_is_an_error_and_leaves_the_file_whole(tmp_path):
    code = f"""
import resource, signal
from nervex.utils.log_helper import TBLogger
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))  # stands for a full disk
with TBLogger({str(tmp_path)!r}, 'a') as tb:
    for step in range(100):
        tb.add_scalar('x', 1., step)
"""
    done = quick_start.run([sys.executable, '-c', code], capture_output=True, text=True)
    assert done.returncode == 1 and 'OSError: [Errno 27]' in done.stderr and 'a_tb_logger/events' in done.stderr
    events = read_events(tmp_path)
    assert [step for _, step in events] == list(range(len(events))) and 5 < len(events) < 100


@pytest.mark.parametrize('name', ['[bogus]x', '[histogram]', '[histogram', '[histogram]a]b'])
def test_wrong_variable_kinds_are_refused(name):
    with pytest.raises(ValueError, match='variable'):
        split_kind(name)


def test_wrong_values_say_which_variable(tmp_path):
    with TBLogger(str(tmp_path)) as tb:
        with pytest.raises(TypeError, match=r'\[scalars\]x'):
            tb.add_val('[scalars]x', 1.0, 0)
        with pytest.raises(ValueError, match=r'\[image\]'):
            tb.add_val('[image]x', [1.0], 0)


def test_nothing_is_written_before_the_first_event(tmp_path):
    tb = TBLogger(str(tmp_path), 'a')
    assert os.listdir(tb.path) == []
    tb.close()
    with pytest.raises(ValueError, match='closed'):
        tb.add_scalar('x', 1.0)


def test_values_and_tables_as_text():
    assert [format_value(v) for v in (1 / 3, 2, torch.tensor([4.0]), np.float32(0.5), 'x', True, None)] == [
        '0.333333',
        '2',
        '4',
        '0.5',
        'x',
        'True',
        'None',
    ]
    assert pretty_table([['a', 'bb'], [1, 2]]).split('\n')[1:4] == ['| a | bb |', '+---+----+', '| 1 | 2  |']


def test_png_holds_the_pixels():
    pixels = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    png = encode_png(pixels)
    size, kind = int.from_bytes(png[33:37], 'big'), png[37:41]
    rows = np.frombuffer(zlib.decompress(png[41 : 41 + size]), dtype=np.uint8).reshape(2, 10)
    assert png[:8] == b'\x89PNG\r\n\x1a\n' and kind == b'IDAT' and png[16:24] == b'\0\0\0\3\0\0\0\2'
    assert np.array_equal(rows[:, 1:].reshape(2, 3, 3), pixels) and not rows[:, 0].any()


def test_pretty_print_indents_and_prints_only_when_asked(capsys):
    data = {'a': 1 / 3, 'b': {'c': [1, {'d': None}], 'e': {}}}
    expected = 'a: 0.333333\nb:\n    c:\n        [0]: 1\n        [1]:\n            d: None\n    e: {}\n'
    assert pretty_print(data, direct_print=False) == expected and capsys.readouterr().out == ''
    pretty_print(data)
    assert capsys.readouterr().out == expected


def test_distribution_over_time_as_a_picture(tmp_path):
    image = DistributionTimeImage(maxlen=2)
    with pytest.raises(ValueError, match='no step'):
        image.get_image()
    for step in ([9.0, 9.0], [0.0, 1.0], torch.tensor([2.0, 4.0])):
        image.add_one_time_step(step)
    assert image.get_image().tolist() == [[[0.0, 0.5], [0.25, 1.0]]]
    with pytest.raises(ValueError, match='got'):
        image.add_one_time_step([1.0, 2.0, 3.0])
    fixed = DistributionTimeImage(val_range=(0.0, 2.0))
    fixed.add_one_time_step([1.0, 5.0])
    assert fixed.get_image().tolist() == [[[0.5], [1.0]]]
    with TBLogger(str(tmp_path)) as tb:
        tb.add_val('[image]x', image.get_image(), 0)


def test_a_fault_file_is_made_by_the_first_warning_and_changes_nothing_else(tmp_path):
    """Python prints warnings where nobody listens: also beside the file, and once only where two files listen."""
    code = (
        'import logging, sys\n'
        'from nervex.utils.log_helper import FaultFile\n'
        "faults, others = FaultFile('log/faults.txt'), FaultFile('/dev/null/others.txt')  # no place\n"
        "log = logging.getLogger('nervex.part')\n"
        "log.info('fine')\n"
        'import os; assert not os.path.exists("log")\n'
        "log.warning('env %d: lost', 3)\n"
        "faults.say(logging.ERROR, 'no 100 %')\n"
        'faults.close(), faults.close(), others.close()\n'
        "log.warning('later')\n"
    )
    done = quick_start.run([sys.executable, '-c', code], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr.splitlines()) == (0, ['env 3: lost', 'later'])
    lines = (tmp_path / 'log' / 'faults.txt').read_text(encoding='utf-8').splitlines()
    assert [line.partition(']')[2] for line in lines] == ['[WARNING] env 3: lost', '[ERROR] no 100 %']
