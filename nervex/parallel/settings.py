"""The section ``parallel`` of a config: every setting has a default, so that a serial config needs none of them."""

from __future__ import annotations

from typing import Any

from nervex.utils.declare import setting, settings

_CPUS = setting(1, 'number >= 0', 'CPUs of one')
_NO_GPU = setting(0, 'number >= 0', 'GPUs of one')
_GPUS = dict(
    actor=_NO_GPU,
    evaluator=_NO_GPU,
    learner=setting(None, 'number >= 0 | None', 'GPUs of one; None: 1 with policy.use_cuda'),
)
_HOSTS = setting(None, 'list of str | None', 'names or addresses of the nodes that it may run on')
_CUSTOM = setting(None, 'dict | None', "Ray's own resources")


class ParallelSettings:
    """What the user may say about a parallel run. A value of None is filled in for the machine and the config."""

    config: dict[str, Any] = settings(
        import_names=setting(None, 'str | list of str | None', 'modules that register commanders or roles'),
        commander_type=setting('naive', 'str', 'registered commander that makes the tasks'),
        comm_actor_type=setting('ray', 'str', 'registered role that collects'),
        comm_learner_type=setting('ray', 'str', 'registered role that learns'),
        comm_evaluator_type=setting('ray_evaluator', 'str', 'registered role, of the comm actors, that evaluates'),
        carrier=setting('ray', "'ray' | 'inline'", "how roles run; 'inline': all in one process, in a fixed order"),
        actor_num=setting(
            None,
            'int >= 1 | None',
            'actors; None: one a CPU, at least 2, at most one a collecting env; of each player of a league',
        ),
        envs_per_actor=setting(None, 'int >= 1 | None', 'None: env.actor_env_num shared out to the actors'),
        evaluator_num=setting(1, 'int >= 0', 'evaluators; 0: no evaluations, the run ends at its limits'),
        learner_num=setting(1, 'int >= 1', 'learners; above 1 they average gradients by torch.distributed'),
        synchronous=setting(None, 'bool | None', 'rounds of collecting and learning; None: with on-policy methods'),
        outstanding=setting(
            2, 'int >= 1', 'collect calls that an actor has at most, with the one that it runs; 1 in rounds'
        ),
        queue=setting(2, 'int >= 1', 'blocks per actor that wait for the learner at most'),
        block=dict(
            rows=setting(None, 'int >= 1 | None', 'samples of a collect call; None: what takes block.seconds'),
            seconds=setting(0.1, 'number > 0', 'how long a collect call should take, if rows is None'),
            max_bytes=setting(8_000_000, 'int >= 1', 'and how large its block may become'),
        ),
        ratio=setting(
            None, 'number >= 0 | None', 'samples learned from per sample inserted; None: as in serial mode; 0: no bound'
        ),
        max_lead=setting(
            0.05, 'number >= 0 | None', 'part of what the learner has by which actors may be ahead; None: no bound'
        ),
        max_staleness=setting(
            None, 'number >= 0 | None', "updates since a block's weights, above which it is left out; None: no bound"
        ),
        learn_s=setting(0.05, 'number > 0', 'how long a call of the learner should take'),
        publish_iters=setting(1, 'int >= 1', 'updates between two versions of the weights, at least'),
        save_s=setting(10.0, 'number > 0 | None', "seconds between two savings of the learner; None: learner.resume's"),
        restarts=setting(20, 'int >= 0', 'times that one role may be started anew'),
        restart_window_s=setting(300.0, 'number > 0', 'in this time; more ends the run, or leaves fewer actors'),
        start_timeout_s=setting(120.0, 'number > 0', 'in which a role must have been built'),
        stall_s=setting(
            120.0, 'number > 0 | None', 'without progress, after which a role is started anew; None: it is waited for'
        ),
        address=setting(None, 'str | None', 'of a running Ray cluster; None: a cluster of its own on this machine'),
        object_store_mb=setting(300, 'int >= 80', 'memory for what is under way, in a cluster of its own'),
        resources={
            kind: dict(num_cpus=_CPUS, num_gpus=gpus, hosts=_HOSTS, custom=_CUSTOM) for kind, gpus in _GPUS.items()
        },
        slurm=dict(  # of the batch script that -p slurm submits
            partition=setting(None, 'str | None', 'where the job runs'),
            account=setting(None, 'str | None', 'who pays'),
            hours=setting(None, 'number > 0 | None', 'limit'),
            nodes=setting(None, 'int >= 1 | None', 'None: those that hosts name, or one'),
            cpus_per_node=setting(None, 'int >= 1 | None', 'None: what the roles need'),
            gpus_per_node=setting(None, 'int >= 0 | None', 'None: what the roles need'),
            port=setting(None, 'int in [1024, 65535] | None', "of Ray's head; None: follows from the job's number"),
            options=setting([], 'list of str', "more lines for sbatch, e.g. ['--qos=high']"),
            setup=setting([], 'list of str', "shell lines before anything else, e.g. ['module load cuda']"),
        ),
        k8s=dict(  # of the manifest that -p k8s submits
            name=setting('nervex', 'str', 'of the RayJob'),
            namespace=setting('default', 'str', 'where it runs'),
            image=setting('nervex:latest', 'str', 'with Python, Ray, nervex and the env'),
            ray_version=setting('2.60.0', 'str', 'that of the image'),
            memory=setting('4Gi', 'str', 'of each pod'),
            claim=setting(None, 'str | None', "PersistentVolumeClaim for the run's folder; None: files end with pods"),
        ),
    )
