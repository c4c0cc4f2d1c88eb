"""The section ``parallel`` of a config: every setting has a default, so that a serial config needs none of them."""

from __future__ import annotations

from typing import Any

from nervex.loader import Loader, collection, enum, interval, is_type, optional

_COUNT = is_type(int) & interval(1)
_COUNT_OR_0 = is_type(int) & interval(0)
_POSITIVE = interval(0, left_ok=False)
_TEXT = optional(is_type(str))
_RESOURCES = dict(
    num_cpus=interval(0),
    num_gpus=optional(interval(0)),
    hosts=optional(collection(str)),
    custom=optional(is_type(dict)),
)


class ParallelSettings:
    """What the user may say about a parallel run. A value of None is filled in for the machine and the config."""

    config: dict[str, Any] = dict(
        import_names=None,  # (list of str | None) modules that register commanders or roles
        commander_type='naive',  # (str) registered commander that makes the tasks
        comm_actor_type='ray',  # (str) registered role that collects
        comm_learner_type='ray',  # (str) registered role that learns
        comm_evaluator_type='ray_evaluator',  # (str) registered role, of the comm actors, that evaluates
        carrier='ray',  # (str) how roles run: 'ray', or 'inline': all in one process, in a fixed order
        actor_num=None,  # (int | None) actors; None: one a CPU, at least 2, at most one a collecting env
        envs_per_actor=None,  # (int | None) None: env.actor_env_num shared out to the actors
        evaluator_num=1,  # (int) evaluators; 0: evaluations are left out, the run ends at its limits
        learner_num=1,  # (int) learners; above 1 they average gradients by torch.distributed
        synchronous=None,  # (bool | None) rounds of collecting and learning; None: with on-policy methods
        outstanding=2,  # (int) collect calls that an actor has at most, beside the one that it runs: 1 in rounds
        queue=2,  # (int) blocks per actor that wait for the learner at most
        block=dict(
            rows=None,  # (int | None) samples of a collect call; None: what takes seconds, see below
            seconds=0.1,  # (float) how long a collect call should take, if rows is None
            max_bytes=8_000_000,  # (int) and how large its block may become
        ),
        ratio=None,  # (float | None) samples learned from per sample inserted; None: as in serial mode; 0: no bound
        max_lead=0.05,  # (float | None) part of what the learner has by which actors may be ahead; None: no bound
        max_staleness=None,  # (int | None) updates since a block's weights, above which it is left out; None: no bound
        learn_s=0.05,  # (float) how long a call of the learner should take
        publish_iters=1,  # (int) updates between two versions of the weights, at least
        publish_s=0.0,  # (float) seconds between two versions of the weights, at least
        save_s=10.0,  # (float | None) seconds between two savings of the learner's state; None: learner.resume's
        restarts=20,  # (int) times that one role may be started anew
        restart_window_s=300.0,  # (float) within this time; more ends the run, or goes on with fewer actors
        start_timeout_s=120.0,  # (float) in which a role must have been built
        task_timeout_s=None,  # (float | None) in which a call must be answered; None: no limit
        address=None,  # (str | None) of a running Ray cluster; None: a cluster of its own on this machine
        object_store_mb=300,  # (int) memory for what is under way, in a cluster of its own
        resources=dict(  # of one role; hosts: names or addresses of the nodes that it may run on; custom: Ray's own
            actor=dict(num_cpus=1, num_gpus=0, hosts=None, custom=None),
            evaluator=dict(num_cpus=1, num_gpus=0, hosts=None, custom=None),
            learner=dict(num_cpus=1, num_gpus=None, hosts=None, custom=None),  # num_gpus None: 1 with policy.use_cuda
        ),
        slurm=dict(  # of the batch script that -p slurm submits
            partition=None,  # (str | None)
            account=None,  # (str | None)
            hours=None,  # (float | None) limit
            nodes=None,  # (int | None) None: those that hosts name, or one
            cpus_per_node=None,  # (int | None) None: what the roles need
            gpus_per_node=None,  # (int | None) None: what the roles need
            port=None,  # (int | None) of Ray's head; None: one that follows from the job's number
            options=[],  # (list of str) more lines for sbatch, e.g. ['--qos=high']
            setup=[],  # (list of str) shell lines before anything else, e.g. ['module load cuda']
        ),
        k8s=dict(  # of the manifest that -p k8s submits
            name='nervex',  # (str) of the RayJob
            namespace='default',  # (str)
            image='nervex:latest',  # (str) with Python, Ray, nervex and the env
            ray_version='2.60.0',  # (str) that of the image
            memory='4Gi',  # (str) of each pod
            claim=None,  # (str | None) PersistentVolumeClaim for the run's folder; None: files end with their pods
        ),
    )
    config_rules: dict[str, Any] = dict(
        import_names=optional(Loader(str) | collection(str)),
        carrier=enum('ray', 'inline'),
        actor_num=optional(_COUNT),
        envs_per_actor=optional(_COUNT),
        evaluator_num=_COUNT_OR_0,
        learner_num=_COUNT,
        synchronous=optional(is_type(bool)),
        outstanding=_COUNT,
        queue=_COUNT,
        block=dict(rows=optional(_COUNT), seconds=_POSITIVE, max_bytes=_COUNT),
        ratio=optional(interval(0)),
        max_lead=optional(interval(0)),
        max_staleness=optional(interval(0)),
        learn_s=_POSITIVE,
        publish_iters=_COUNT,
        publish_s=interval(0),
        save_s=optional(_POSITIVE),
        restarts=_COUNT_OR_0,
        restart_window_s=_POSITIVE,
        start_timeout_s=_POSITIVE,
        task_timeout_s=optional(_POSITIVE),
        address=optional(is_type(str)),
        object_store_mb=is_type(int) & interval(80),
        resources=dict(actor=_RESOURCES, evaluator=_RESOURCES, learner=_RESOURCES),
        slurm=dict(
            partition=_TEXT,
            account=_TEXT,
            hours=optional(_POSITIVE),
            nodes=optional(_COUNT),
            cpus_per_node=optional(_COUNT),
            gpus_per_node=optional(_COUNT_OR_0),
            port=optional(is_type(int) & interval(1024, 65535)),
            options=collection(str),
            setup=collection(str),
        ),
        k8s=dict(
            name=is_type(str),
            namespace=is_type(str),
            image=is_type(str),
            ray_version=is_type(str),
            memory=is_type(str),
            claim=_TEXT,
        ),
    )
