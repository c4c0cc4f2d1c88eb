"""Trackers of experiments that a run may be told to: Weights & Biases, MLflow."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from nervex.run.events import EventSink, RunStart, numbers
from nervex.run.folder import leaves
from nervex.utils.declare import setting, settings
from nervex.utils.import_helper import require


class WandB(EventSink):
    """Weights & Biases: a run of the same name, which a resumed run goes on with."""

    config = settings(
        project=setting('nervex', 'str', 'project that the run belongs to'),
        entity=setting(None, 'str | None', 'who it belongs to; None: the default of the account'),
        group=setting(None, 'str | None', 'group of runs'),
        mode=setting(None, "'online' | 'offline' | 'disabled' | None", 'None: as WANDB_MODE says, or online'),
        checkpoints=setting(False, 'bool', 'upload them, too'),
    )

    def on_start(self, run: RunStart) -> None:
        """Begin the run, or go on with it."""
        wandb = require('wandb', "'nervex[wandb]'", 'events.wandb')
        where = {name: self.cfg[name] for name in ('project', 'entity', 'group', 'mode')}
        self._run = wandb.init(
            **where, dir=run.folder, id=run.name, name=run.name, config=run.config, resume='allow', reinit='create_new'
        )
        self._run.define_metric('*', step_metric='env_step')

    def on_log(self, values: Mapping[str, Any], env_step: int, train_iter: int) -> None:
        """Numbers, against env steps."""
        self._run.log({**numbers(values), 'env_step': env_step, 'train_iter': train_iter})

    def on_checkpoint(self, path: str, env_step: int, train_iter: int) -> None:
        """Upload it where that is wanted."""
        if self.cfg['checkpoints']:
            self._run.save(path, base_path=os.path.dirname(path), policy='now')

    def on_end(self, state: str, facts: Mapping[str, Any]) -> None:
        """The result, and the end."""
        self._run.summary.update({'state': state, **facts})
        self._run.finish(exit_code=0 if state == 'finished' else 1)


class MLflow(EventSink):
    """MLflow: a run of an experiment, found again by its tag where it goes on; it is never the process's active run."""

    config = settings(
        experiment=setting('nervex', 'str', 'experiment that the run belongs to; made if it is not there'),
        uri=setting(None, 'str | None', 'tracking server or folder; None: as MLFLOW_TRACKING_URI says'),
        checkpoints=setting(False, 'bool', 'upload them, too'),
    )

    def on_start(self, run: RunStart) -> None:
        """Begin the run, or go on with it."""
        mlflow = require('mlflow', "'nervex[mlflow]'", 'events.mlflow')
        self._client, self._entities = mlflow.MlflowClient(self.cfg['uri']), mlflow.entities
        name, client = self.cfg['experiment'], self._client
        found = client.get_experiment_by_name(name)
        experiment = client.create_experiment(name) if found is None else found.experiment_id
        same = client.search_runs([experiment], f"tags.nervex = '{run.name}'") if run.resumed else []
        if same:
            self._id = same[0].info.run_id
            client.update_run(self._id, status='RUNNING')
            return
        self._id = client.create_run(experiment, tags={'nervex': run.name}, run_name=run.name).info.run_id
        params = [self._entities.Param(path, str(value)[:500]) for path, value in leaves(run.config).items()]
        for first in range(0, len(params), 100):  # more are refused
            client.log_batch(self._id, params=params[first : first + 100])

    def on_log(self, values: Mapping[str, Any], env_step: int, train_iter: int) -> None:
        """Numbers, against env steps."""
        now = int(time.time() * 1000)
        rows = {**numbers(values), 'train_iter': float(train_iter)}
        self._client.log_batch(self._id, [self._entities.Metric(k, v, now, env_step) for k, v in rows.items()])

    def on_checkpoint(self, path: str, env_step: int, train_iter: int) -> None:
        """Upload it where that is wanted."""
        if self.cfg['checkpoints']:
            self._client.log_artifact(self._id, path, 'checkpoints')

    def on_end(self, state: str, facts: Mapping[str, Any]) -> None:
        """The result, and the end."""
        for name, value in {'state': state, **facts}.items():
            if value is not None:
                self._client.set_tag(self._id, name, str(value))
        how = {'finished': 'FINISHED', 'interrupted': 'KILLED'}.get(state, 'FAILED')
        self._client.set_terminated(self._id, how)
