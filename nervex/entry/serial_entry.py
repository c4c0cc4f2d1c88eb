"""Serial mode: collect, learn and evaluate in turn, in one process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nervex.run.launch import EnvSetting
    from nervex.run.result import RunResult


def serial_pipeline(
    cfg: str | dict | None,
    seed: int | None = 0,
    env_setting: EnvSetting | None = None,
    policy_fn: Any = None,
    model_type: Any = None,
    *,
    policy_type: Any = None,
    model: Any = None,
    enable_total_log: bool = False,
    overrides: tuple[str, ...] = (),
    progress: bool | None = None,
    resume: str | None = None,
    trust: bool = False,
) -> RunResult:
    """
    Overview:
        Train until the evaluation return reaches ``evaluator.stop_val`` or the commander's limit is reached.
    Arguments:
        - cfg (:obj:`str | dict | None`): path of a config, name of a built-in one, or the dict itself, which is not
          changed; None only with ``resume``
        - seed (:obj:`int | None`): None draws one; the result and the run folder tell it
        - env_setting (:obj:`tuple | None`): (env class or function, actor env cfgs, evaluator env cfgs)
        - policy_fn (:obj:`type | None`): policy class, instead of the config's; older name ``policy_type``
        - model_type (:obj:`torch.nn.Module | type | None`): model or its class; older name ``model``
        - enable_total_log (:obj:`bool`): also show the log lines of all workers on the terminal
        - overrides (:obj:`tuple[str, ...]`): settings like ``'policy.learn.learning_rate=3e-4'``
        - progress (:obj:`bool | None`): show a live line on a terminal, plain lines elsewhere; None: on a terminal only
        - resume (:obj:`str | None`): folder of a stopped run to continue, with the seed that it has; of a finished one,
          whose limits are raised
        - trust (:obj:`bool`): ``resume`` opens what another user has pickled, which may run any code
    """
    from nervex.run.build import start_serial
    from nervex.run.launch import Passed, prepare_launch
    from nervex.utils import COMMANDER_REGISTRY

    policy, model = _one(policy_fn=policy_fn, policy_type=policy_type), _one(model_type=model_type, model=model)
    launch = prepare_launch(cfg, seed, Passed(env_setting, policy, model), overrides, resume, trust=trust)
    if COMMANDER_REGISTRY.get(launch.cfg.commander.commander_type).many_learners:
        from nervex.run.league_run import league_loop, start_league

        return launch.carry_out(start_league, league_loop, progress, enable_total_log)
    return launch.carry_out(start_serial, serial_loop, progress, enable_total_log)


def serial_loop(run: Any) -> None:
    """The loop of a ``SerialRun``: rounds of collecting and learning, until it is solved or at its limit."""
    while run.going_on():
        run.commander.step()
        if run.evaluator.due(run.learner.train_iter) and run.evaluate():
            break
        run.collect()
        for batch in run.batches():
            run.train(batch)
    else:
        run.evaluate()


def _one(**spellings: Any) -> Any:
    """The one argument that was given among several spellings."""
    given = {name: value for name, value in spellings.items() if value is not None}
    if len(given) > 1:
        raise TypeError(f'give only one of {" and ".join(given)}: they are two names of the same argument')
    return next(iter(given.values()), None)
