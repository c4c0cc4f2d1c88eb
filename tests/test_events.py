"""What happens in a run is told to the sinks that its config names: once, in order, whatever one of them does."""

import json
import re
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import yaml
from tensorboardX.proto import event_pb2

from nervex.config import compile_config
from nervex.entry import serial_pipeline
from nervex.run.curve import curve_rows
from nervex.run.events import EventError, Events, EventSink, Relay, RunStart
from nervex.run.folder import saved_run
from nervex.utils import EVENT_REGISTRY, ConfigError, ExtraMissingError
from nervex.utils.declare import setting, settings
from nervex.utils.log_helper import LISTENERS, TBLogger


def told(folder):
    lines = (Path(folder) / 'log/events.jsonl').read_text(encoding='utf-8').splitlines()
    return [json.loads(line) for line in lines]


def scalars(path):
    """(tag, step, value) of the numbers in an event file."""
    data, place, found = Path(path).read_bytes(), 0, []
    while place < len(data):
        size = int.from_bytes(data[place : place + 8], 'little')
        event = event_pb2.Event.FromString(data[place + 12 : place + 12 + size])
        found += [(v.tag, event.step, v.simple_value) for v in event.summary.value if v.HasField('simple_value')]
        place += size + 16
    return found


@pytest.fixture
def short(short_dqn):
    short_dqn.learner = dict(
        hook=dict(log_show=dict(ext_args=dict(freq=10))), resume=dict(interval_s=0.0, max_cost=None)
    )
    return short_dqn


@pytest.fixture
def sink(monkeypatch):
    """A registered sink that remembers all calls, and raises at the moments that it is asked to."""
    calls = []

    class Own(EventSink):
        config = settings(raises=setting('', 'str', 'the method that raises'))

        def __getattribute__(self, name):
            if not name.startswith('on_'):
                return super().__getattribute__(name)

            def method(*arguments):
                calls.append((name, *arguments))
                if self.cfg['raises'] == name:
                    raise ZeroDivisionError(f'in {name}')

            return method

        def on_round(self, env_step, train_iter):
            """Is listened to."""

    monkeypatch.setattr(EVENT_REGISTRY, '_entries', {**EVENT_REGISTRY._entries, 'own': Own})
    return calls


def test_a_run_is_told_from_start_to_end(short):
    result = serial_pipeline({**short, 'exp_name': 'run', 'events': ['jsonl', 'csv']}, seed=0)
    events = told('run')
    kinds = [event['event'] for event in events]
    assert kinds[0] == 'start' and kinds[-1] == 'end' and kinds.count('start') == kinds.count('end') == 1
    evaluations = [event for event in events if event['event'] == 'eval']
    rows = curve_rows(result.curve_path)
    assert [(e['env_step'], e['train_iter']) for e in evaluations] == [
        (int(row['env_step']), int(row['train_iter'])) for row in rows
    ]
    assert [e['values']['return_mean'] for e in evaluations] == [float(row['return_mean']) for row in rows]
    saved = [event['path'] for event in events if event['event'] == 'checkpoint']
    assert len(saved) >= 2 and all(Path(path).exists() for path in saved)
    assert events[-1]['state'] == 'finished' and events[-1]['env_steps'] == result.env_steps
    names = [(e['env_step'], e['train_iter'], n) for e in events if e['event'] == 'log' for n in e['values']]
    assert max(Counter(names).values()) == 1
    assert {'learner/total_loss', 'buffer_agent/rows', 'actor/envsteps_per_s'} <= {name for *_, name in names}
    table = Path('run/log/events.csv').read_text(encoding='utf-8').splitlines()
    assert table[0] == 'env_step,train_iter,name,value' and len(table) > len(names)
    assert not LISTENERS


def test_tensorboard_has_one_entry_a_run_and_each_number_once(short):
    serial_pipeline({**short, 'exp_name': 'parts', 'events': ['jsonl']}, seed=0)
    serial_pipeline({**short, 'exp_name': 'one', 'events': ['tensorboard']}, seed=0)
    (path,) = Path('one').rglob('events.out*')
    assert path.parent == Path('one/log') and not list(Path('one').rglob('*_tb_logger'))
    found = scalars(path)
    assert max(Counter((tag, step) for tag, step, _ in found).values()) == 1
    of_parts = [number for file in Path('parts').rglob('events.out*') for number in scalars(file)]
    losses = [(step, value) for tag, step, value in of_parts if tag == 'learner_envstep/total_loss']
    assert losses and losses == [(step, value) for tag, step, value in found if tag == 'learner/total_loss']
    logged = [e for e in told('parts') if e['event'] == 'log' and 'learner/total_loss' in e['values']]
    assert [(e['env_step'], pytest.approx(e['values']['learner/total_loss'])) for e in logged] == losses
    assert [value for tag, _, value in found if tag == 'evaluator/return_mean']


def test_a_stopped_run_tells_what_one_without_a_stop_tells(short, monkeypatch):
    def numbers_of(folder):
        text = (Path(folder) / 'log/events.jsonl').read_text(encoding='utf-8')
        lines = [line for line in text.splitlines() if '"event": "log"' in line or '"event": "eval"' in line]
        return [re.sub(r'"[^"]*(?:per_s|seconds)": [-\w.+]+', '', line) for line in lines]

    short.events, short.commander.max_env_step = ['jsonl', 'tensorboard'], 400
    serial_pipeline({**short, 'exp_name': 'halves'}, seed=0)
    serial_pipeline(None, resume='halves', overrides=('commander.max_env_step=800',))
    short.commander.max_env_step = 800
    serial_pipeline({**short, 'exp_name': 'straight'}, seed=0)
    assert numbers_of('halves') == numbers_of('straight')
    starts = [event for event in told('halves') if event['event'] == 'start']
    assert [event['resumed'] for event in starts] == [False, True] and len({event['name'] for event in starts}) == 1


def test_a_resumed_run_may_be_told_to_others(short):
    serial_pipeline({**short, 'exp_name': 'run'}, seed=0)
    serial_pipeline(None, resume='run', overrides=('commander.max_env_step=500', 'events=[jsonl]'))
    assert told('run')[0]['resumed'] and told('run')[-1]['event'] == 'end'


def test_a_sink_is_called_at_every_moment_with_where_the_run_stands(short, sink):
    result = serial_pipeline({**short, 'exp_name': 'run', 'events': ['own']}, seed=0)
    (start,) = [call[1] for call in sink if call[0] == 'on_start']
    assert start.folder == 'run' and start.config['seed'] == 0 and not start.resumed
    assert re.fullmatch(r'run-\d{19}', start.name)
    rounds = [call[1:] for call in sink if call[0] == 'on_round']
    assert rounds == sorted(rounds) and rounds[-1][0] == result.env_steps and len(set(rounds)) == len(rounds)
    assert {call[0] for call in sink} == {f'on_{m}' for m in ('start', 'round', 'log', 'eval', 'checkpoint', 'end')}
    assert sink[-1][:2] == ('on_end', 'finished') and sink[-1][2]['train_iters'] == result.train_iters


@pytest.mark.parametrize('error', [RuntimeError('broken'), KeyboardInterrupt()])
def test_the_end_says_why_a_run_ended(short, sink, monkeypatch, error):
    def stop(*_):
        raise error

    with monkeypatch.context() as patched:
        patched.setattr('nervex.policy.dqn.DQNPolicy._forward_learn', stop)
        with pytest.raises(type(error)):
            serial_pipeline({**short, 'exp_name': 'run', 'events': ['own']}, seed=0)
    broken = isinstance(error, RuntimeError)
    state, facts = ('failed', {'error': 'RuntimeError: broken'}) if broken else ('interrupted', {})
    assert sink[-1] == ('on_end', state, facts)


@pytest.mark.parametrize('moment', ['on_round', 'on_log', 'on_eval', 'on_checkpoint', 'on_end'])
def test_a_sink_that_raises_is_left_out_and_told_of(short, sink, caplog, moment):
    events = {'own': {'raises': moment}, 'jsonl': None}
    result = serial_pipeline({**short, 'exp_name': 'run', 'events': events}, seed=0)
    assert result.env_steps >= 400 and told('run')[-1]['event'] == 'end'
    assert [call[0] for call in sink].count(moment) == 1 and sink[-1][0] == moment
    assert f'events.own: {moment} raised ZeroDivisionError: in {moment}' in caplog.text and 'Traceback' in caplog.text
    facts = yaml.safe_load(Path('run/log/run.yaml').read_text(encoding='utf-8'))
    assert facts['events_failed'] == {'own': f'{moment}: ZeroDivisionError: in {moment}'} and not LISTENERS


def test_a_sink_that_cannot_begin_ends_the_run_before_it_begins(short, sink):
    events = {'jsonl': None, 'own': {'raises': 'on_start'}}
    Path('run').mkdir()  # a folder that was there stays
    with pytest.raises(EventError, match=r'events\.own: cannot begin: ZeroDivisionError: in on_start'):
        serial_pipeline({**short, 'exp_name': 'run', 'events': events}, seed=0)
    first, *_, last = told('run')
    assert first['event'] == 'start' and last['event'] == 'end' and last['state'] == saved_run('run').state == 'failed'
    assert [call[0] for call in sink] == ['on_start']


def test_a_run_that_goes_on_is_not_lost_to_a_sink_that_is_away(short, sink, caplog):
    serial_pipeline({**short, 'exp_name': 'run', 'events': ['jsonl']}, seed=0)
    away = 'events={own: {raises: on_start}, jsonl: null}'
    result = serial_pipeline(None, resume='run', overrides=('commander.max_env_step=500', away))
    assert result.env_steps >= 500 and told('run')[-1]['env_steps'] == result.env_steps
    assert [call[0] for call in sink] == ['on_start'] and 'events.own: on_start raised ZeroDivisionError' in caplog.text
    facts = yaml.safe_load(Path('run/log/run.yaml').read_text(encoding='utf-8'))
    assert facts['events_failed'] == {'own': 'on_start: ZeroDivisionError: in on_start'}


@pytest.mark.parametrize(
    'events, said',
    [
        (['jsonk'], "unknown event sink 'jsonk'; did you mean 'jsonl'"),
        ({'wandb': {'projet': 'x'}}, "did you mean 'project'"),
        ({'wandb': {'mode': 'of'}}, 'events.wandb.mode'),
        ('jsonl', 'events: got'),
    ],
)
def test_what_is_wrong_with_events_is_told_with_the_config(events, said):
    with pytest.raises(ConfigError, match='(?s)' + re.escape(said)):
        compile_config({**compile_config('cartpole_dqn'), 'events': events})


def test_what_another_process_logs_is_relayed_with_where_it_stood(tmp_path, sink):
    where, log = [3, 1], tmp_path / 'log'
    relay = Relay({'tensorboard': {}}, str(log), lambda: tuple(where))
    logger = TBLogger(str(log), 'learner')
    assert not Path(logger.path).exists()  # the run's one entry is the coordinator's
    logger.listener.log({'learner/total_loss': 0.5})
    where[:] = 4, 2
    logger.listener.checkpoint('c.pth.tar')
    events = Events({'own': {'raises': ''}}, str(tmp_path / 'elsewhere'))
    events.start(RunStart('run', {}, 'run', False))
    taken = relay.take()
    events.told(taken)
    assert sink[1:] == [('on_log', {'learner/total_loss': 0.5}, 3, 1), ('on_checkpoint', 'c.pth.tar', 4, 2)]
    assert relay.take() == []
    events.end('finished', {})
    relay.close()
    assert not LISTENERS


# ---- trackers ----
def test_a_tracker_that_is_not_installed_is_told_before_the_run_begins(short, monkeypatch):
    monkeypatch.setitem(sys.modules, 'wandb', None)
    with pytest.raises(
        ExtraMissingError, match=r"events\.wandb needs the package 'wandb': pip install 'nervex\[wandb\]'"
    ):
        serial_pipeline({**short, 'exp_name': 'run', 'events': ['wandb']}, seed=0)
    assert not Path('run').exists()


class Recorder:
    """Stands for any object: remembers the methods that are called, and answers more of itself."""

    def __init__(self, calls, answers=None):
        self.calls, self.answers = calls, answers or {}

    def __getattr__(self, name):
        def called(*args, **kwargs):
            self.calls.append((name, args, kwargs))
            return self.answers.get(name, lambda *a, **k: Recorder(self.calls))(*args, **kwargs)

        return called


def test_wandb_gets_config_numbers_and_the_end_of_a_run_and_goes_on_with_it(short, monkeypatch):
    calls, summary = [], {}
    run = Recorder(calls)
    run.summary = summary
    fake = ModuleType('wandb')
    fake.init = lambda **given: calls.append(('init', (), given)) or run
    monkeypatch.setitem(sys.modules, 'wandb', fake)
    events = {'wandb': {'project': 'mine', 'mode': 'offline', 'checkpoints': True}}
    serial_pipeline({**short, 'exp_name': 'run', 'events': events}, seed=0)
    serial_pipeline(None, resume='run', overrides=('commander.max_env_step=500',))
    first, second = [given for name, _, given in calls if name == 'init']
    assert first['project'] == 'mine' and first['mode'] == 'offline' and first['config']['seed'] == 0
    assert first['id'] == second['id'] and second['resume'] == 'allow' and Path(first['dir']) == Path('run')
    logged = [args[0] for name, args, _ in calls if name == 'log']
    assert all(type(value) in (float, int) for values in logged for value in values.values())
    assert any('learner/total_loss' in values and values['env_step'] > 0 for values in logged)
    assert any('evaluator/return_mean' in values for values in logged)
    assert next(args[0] for name, args, _ in calls if name == 'save').endswith('iteration_0.pth.tar')
    assert [given for name, _, given in calls if name == 'finish'] == [{'exit_code': 0}] * 2
    assert summary['state'] == 'finished' and summary['env_steps'] >= 500


def test_mlflow_gets_config_numbers_and_the_end_of_a_run_and_goes_on_with_it(short, monkeypatch):
    calls, runs = [], []

    def create(experiment, tags, run_name):
        runs.append(SimpleNamespace(info=SimpleNamespace(run_id='7'), tags=tags))
        return runs[-1]

    answers = {
        'get_experiment_by_name': lambda name: None,
        'create_experiment': lambda name: '3',
        'create_run': create,
        'search_runs': lambda ids, text: [run for run in runs if f"tags.nervex = '{run.tags['nervex']}'" == text],
    }
    fake = ModuleType('mlflow')
    fake.MlflowClient = lambda uri: Recorder(calls, answers)
    fake.entities = SimpleNamespace(Param=lambda *item: item, Metric=lambda *item: item)
    monkeypatch.setitem(sys.modules, 'mlflow', fake)
    serial_pipeline({**short, 'exp_name': 'run', 'events': ['mlflow']}, seed=0)
    serial_pipeline(None, resume='run', overrides=('commander.max_env_step=500',))
    batches = [(args, given) for name, args, given in calls if name == 'log_batch']
    assert len(runs) == 1 and ('policy.policy_type', 'dqn') in batches[0][1]['params']
    params = [given['params'] for _, given in batches if 'params' in given]
    assert max(map(len, params)) <= 100 < sum(map(len, params))  # more in one call are refused
    metrics = [metric for args, given in batches if not given for metric in args[1]]
    assert any(name == 'learner/total_loss' and step > 0 for name, _, _, step in metrics)
    assert [args for name, args, _ in calls if name == 'set_terminated'] == [('7', 'FINISHED')] * 2
    assert ('7', 'state', 'finished') in [args for name, args, _ in calls if name == 'set_tag']
